"""An agent's own folder: made with it, its workspace, hidden from others, gone with it."""

import os
import re
import stat

from lib.agents import OTHER, AgentCase
from lib.both_keepers import USER, BothKeepersCase
from lib.place import Place
from lib.procs import wait_until

NAME = re.compile(r"^[0-9]+-[0-9a-f]{32}$")


class FolderCase(AgentCase):
    def setUp(self):
        super().setUp()
        self.data = self.data_of(self.keeper.place)

    def data_of(self, place):
        return place.dir / "data"

    def start_keeper(self, settings=None, **options):
        options["place"] = options.get("place") or Place(owner=getattr(self, "user", None))
        options["env"] = {"COOP_DATA": str(self.data_of(options["place"])), **(options.get("env") or {})}
        return super().start_keeper(settings, **options)

    def add(self, path="main/a", **settings):
        return self.client.call("agent_add", agent=path, folder=True, **settings)["agent"]

    def acting(self, path="main/a", **settings):
        """An agent with a folder: (its path, a connection)."""
        return self.add(path, **settings)["folder"], self.keeper.login(path)

    def left(self):
        return sorted(path.name for path in self.data.iterdir())

    def end(self, keeper):
        keeper.clients[0].call("shutdown", grace_ms=0)
        keeper.wait_gone()
        keeper.ended = True

    def another(self, keeper, state=True):
        """A further keeper with the same data folder, and with the same state or one of its own."""
        place = Place()
        if state:
            place.state, place.socket = keeper.place.state, keeper.place.socket
        return self.start_keeper(place=place, env={"COOP_DATA": str(keeper.place.dir / "data")})


class FolderTest(FolderCase, BothKeepersCase):
    def data_of(self, place):
        """Not in /tmp: there commands would see nothing of it anyway."""
        path = self.base / "data"
        return path if path.exists() else self.folder("data")

    def test_it_is_the_agents_workspace(self):
        """Nobody but the keeper's user may look in; commands begin there and write there, and nowhere else."""
        agent = self.add()
        folder = agent["folder"]
        whole = os.path.dirname(folder)
        self.assertEqual((os.path.basename(folder), os.path.dirname(whole)), ("work", str(self.data.resolve())))
        self.assertRegex(os.path.basename(whole), NAME)
        self.assertTrue(os.path.basename(whole).startswith(f"{agent['id']}-"))
        self.assertEqual([stat.S_IMODE(os.stat(path).st_mode) for path in (whole, folder, f"{whole}/tmp")], [0o700] * 3)
        self.assertEqual((agent["settings"]["workspace"], agent["effective"]["workspace"]), ([folder], [folder]))
        client = self.keeper.login("main/a")
        record = self.finish(client, "pwd; echo hi > made; mkdir -p a/b && echo deep > a/b/c; cat made a/b/c")
        self.assertEqual(record["exit"]["code"], 0, self.output(record["id"], "stderr", client=client))
        self.assertEqual(self.output(record["id"], client=client).decode(), f"{folder}\nhi\ndeep\n")
        self.assertEqual(record["sandbox"]["workspace"], folder)
        with open(os.path.join(folder, "a/b/c"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "deep\n")
        self.assertEqual(self.finish(client, f"echo x > {self.work}/x")["exit"]["code"] != 0, True)
        self.assertEqual(self.finish(client, "cat made", cwd="a")["exit"]["code"], 1)
        self.assertEqual(self.finish(client, "pwd -P; touch made", cwd="/var")["exit"]["code"], 1)
        self.assertEqual(self.assert_refused(client, "invalid_input", "spawn", argv=["true"], cwd=f"{self.data}/other")["field"], "cwd")

    def test_others_do_not_see_what_is_in_it(self):
        """Neither another agent with a folder, nor one without, nor the user's own commands."""
        folder, client = self.acting()
        self.finish(client, "echo secret > made; chmod 0777 . made")
        self.acting("main/b")
        for other in (self.keeper.login("main/b"), self.keeper.agent("main/c"), self.client):
            args = self.granted() if other is self.client else {}
            whole = os.path.dirname(folder)
            record = self.finish(other, f"cat {folder}/made; ls {folder} {whole}/tmp; ls {self.data} | grep {os.path.basename(whole)}", **args)
            self.assertNotEqual(record["exit"]["code"], 0)
            self.assertEqual(self.output(record["id"], client=other), b"")
        self.assertEqual(self.output(self.finish(client, "cat made")["id"], client=client), b"secret\n")

    def test_with_a_read_only_profile_it_can_be_read(self):
        folder, client = self.acting()
        self.finish(client, "mkdir d; echo kept > made")
        for cwd in (None, "d"):
            record = self.finish(client, f"cat {folder}/made; echo x > made2", cwd=cwd, sandbox={"profile": "read-only"})
            self.assertNotEqual(record["exit"]["code"], 0)
            self.assertEqual(self.output(record["id"], client=client), b"kept\n")
        self.assertEqual(os.listdir(os.path.join(folder, "d")), [])
        for path in ("main/b", "main/c"):
            settings = {"workspace": None} if path == "main/c" else {"folder": True}
            self.client.call("agent_add", agent=path, **settings)
            self.assertIn(self.refusal(self.keeper.login(path), "spawn", argv=["ls"], cwd=folder, sandbox={"profile": "read-only"}).code,
                          ("boundary_escape", "invalid_input"))
        self.assertEqual(self.finish(self.client, "cat made", cwd=folder, sandbox={"profile": "read-only"})["exit"]["code"], 0)

    def test_it_goes_with_the_agent(self):
        """It is out of the way when the removal is answered, and deleted soon after, whatever is in it."""
        folder, client = self.acting()
        self.finish(client, "mkdir -p d/e/f empty; seq 3000 | (cd d/e && xargs touch); ln -s /etc link; ln -s nowhere broken; mkfifo pipe;"
                            "touch d/locked; chmod 0500 d/e; chmod 0 d; mkdir -p x/y; touch x/y/z; chmod 0400 x/y")
        process = self.start(client, "while :; do date > now; mkdir -p again; done")["id"]
        self.assertEqual(self.client.call("agent_remove", agent="a", grace_ms=100)["survivors"], 0)
        self.assertFalse(os.path.lexists(folder))
        self.assertEqual(self.status(process)["end_cause"], "owner_retired")
        wait_until(lambda: not self.left(), "all of it is deleted")
        self.assertTrue(os.path.isdir("/etc"))

    def test_a_very_deep_one_is_deleted(self):
        """Deeper than a path may be long, and than there are descriptors."""
        folder, client = self.acting()
        script = "import os\nfor n in range(3000):\n os.mkdir('dddddddddd'); open('f', 'w').close(); os.chdir('dddddddddd')"
        record = client.call("wait", id=client.call("spawn", argv=["python3", "-c", script])["process"]["id"])["process"]
        self.assertEqual(record["exit"]["code"], 0)
        self.client.call("agent_remove", agent="a")
        wait_until(lambda: not self.left(), "all of it is deleted", 120)

    def test_those_of_agents_below_go_too(self):
        self.acting()
        self.acting("main/a/x")
        self.acting("main/b")
        self.assertEqual(len(self.left()), 3)
        self.client.call("agent_remove", agent="a")
        wait_until(lambda: len(self.left()) == 1, "two are deleted")

    def test_it_goes_at_the_agents_end(self):
        self.acting(expires_in_ms=300)
        wait_until(lambda: not self.left(), "it is deleted")
        self.assertEqual(self.agents(self.client), ["main"])


class UserFolderTest(FolderTest):
    user = USER


class FolderRulesTest(FolderCase):
    def test_there_is_none_unless_it_is_asked_for(self):
        agent = self.client.call("agent_add", agent="main/a")["agent"]
        self.assertIsNone(agent["folder"])
        self.assertIsNone(self.client.call("agent_add", agent="main/b", folder=False)["agent"]["folder"])
        self.assertEqual(list(self.data.iterdir()), [])

    def test_an_agent_without_a_workspace_gives_none(self):
        """Who may write nowhere gets no place to write by making an agent; main gives it whomever it likes."""
        self.client.call("agent_add", agent="main/poor")
        poor = self.keeper.login("main/poor")
        self.assertEqual(self.assert_refused(poor, "boundary_escape", "agent_add", agent="rich", folder=True)["field"], "folder")
        poor.call("agent_add", agent="below")
        below = self.connect().login(poor.call("token_new", agent="below")["token"])
        self.assert_refused(below, "boundary_escape", "agent_add", agent="rich", folder=True)
        self.client.call("agent_add", agent="main", principal=OTHER)
        other = self.keeper.login("main", OTHER)
        self.assert_refused(other, "boundary_escape", "agent_add", agent="rich", folder=True)
        self.assertEqual((list(self.data.iterdir()), self.agents(poor)), ([], ["main/poor", "main/poor/below"]))
        poor.call("agent_add", agent="plain", folder=False)
        folder = self.client.call("agent_add", agent="main/poor/rich", folder=True)["agent"]["folder"]
        rich = self.keeper.login("main/poor/rich")
        self.assertEqual(self.finish(rich, "touch here")["exit"]["code"], 0)
        self.assertTrue(os.path.exists(os.path.join(folder, "here")))

    def test_an_agent_with_a_workspace_may_give_one(self):
        """The folder stands for itself, and binds all below it."""
        bound = self.keeper.agent("main/bound", workspace=[str(self.work)])
        own = bound.call("agent_add", agent="own", folder=True)["agent"]["folder"]
        client = self.connect().login(bound.call("token_new", agent="own")["token"])
        self.assertEqual(self.finish(client, "touch here")["exit"]["code"], 0)
        self.assert_refused(client, "boundary_escape", "spawn", argv=["true"], sandbox={"workspace": str(self.work)})
        self.assert_refused(client, "boundary_escape", "spawn", argv=["true"], sandbox={"workspace": "/var"})
        os.mkdir(os.path.join(own, "sub"))
        client.call("agent_add", agent="below", workspace=[os.path.join(own, "sub")])
        self.assertEqual(self.assert_refused(client, "invalid_input", "agent_add", agent="out", workspace=[str(self.work)])["field"],
                         "workspace")

    def test_it_stays(self):
        """Another workspace cannot be set; other settings can, and an agent cannot get a folder later."""
        folder, _ = self.acting()
        for workspace in ([str(self.work)], None):
            self.assertEqual(self.assert_refused(self.client, "invalid_input", "agent_set", agent="a", workspace=workspace)["field"],
                             "workspace")
        self.assertEqual(self.client.call("agent_set", agent="a", max_running=3)["agent"]["folder"], folder)
        self.assertEqual(self.assert_refused(self.client, "invalid_input", "agent_set", agent="a", folder=True)["field"], "folder")
        self.assertEqual(self.assert_refused(self.client, "invalid_input", "agent_add", agent="b", folder=True,
                                             workspace=[str(self.work)])["field"], "folder")

    def test_it_is_kept_over_a_restart(self):
        folder, client = self.acting(max_running=7)
        self.finish(client, "echo kept > made")
        keeper = self.keeper
        self.end(keeper)
        again = self.another(keeper)
        agent = again.clients[0].call("agent_show", agent="a")["agent"]
        self.assertEqual((agent["folder"], agent["settings"]["workspace"], agent["settings"]["max_running"]), (folder, [folder], 7))
        client = again.login("main/a")
        self.assertEqual(self.output(self.finish(client, "cat made")["id"], client=client), b"kept\n")
        again.clients[0].call("agent_remove", agent="a")
        wait_until(lambda: not self.left(), "it is deleted")

    def test_a_keeper_that_starts_deletes_what_is_left_over(self):
        """What was being deleted, and what has no agent. Everything else in the data folder stays: names that only look alike, links,
        other keepers' folders."""
        folder, client = self.acting()
        self.finish(client, "mkdir -p d; touch d/e")
        orphan = os.path.dirname(self.add("main/orphan")["folder"])
        other = self.another(self.keeper, state=False)
        foreign = os.path.dirname(other.clients[0].call("agent_add", agent="main/f", folder=True)["agent"]["folder"])
        folder = os.path.dirname(folder)
        keeper = self.keeper
        self.end(keeper)
        gone = f"{self.data}/{os.path.basename(orphan)}.gone"
        os.rename(orphan, gone)
        os.mkdir(os.path.join(gone, "x"))
        kept = {"1-" + "0" * 32, "notes", "7-abc", os.path.basename(foreign), os.path.basename(folder),
                os.path.basename(folder)[:-1] + ("0" if folder[-1] != "0" else "1")}
        for name in kept:
            (self.data / name).mkdir(exist_ok=True)
        target = keeper.place.dir / "target"
        target.mkdir()
        (target / "file").touch()
        again = self.another(keeper)
        wait_until(lambda: set(self.left()) == kept, f"only {kept} are left")
        self.end(again)
        # The same names, without the agent: what has its mark is deleted by the keeper of that mark alone. A link never is.
        os.rename(folder, target / "moved")
        os.symlink(target, folder)
        last = self.another(keeper)
        last.clients[0].call("info")
        self.assertTrue(os.path.islink(folder))
        self.assertTrue((target / "file").exists())

    def test_without_a_place_nothing_is_made(self):
        """A data folder that others may write to is none."""
        self.data.chmod(0o777)
        error = self.refusal(self.client, "agent_add", agent="main/a", folder=True)
        self.assertEqual(error.code, "unavailable")
        self.assertIn("data folder", error.message)
        self.assertEqual(self.agents(self.client), ["main"])
        self.data.chmod(0o700)
        self.add()

    def test_it_may_lie_in_the_home(self):
        """Where it is for users without root: among what is otherwise a private layer."""
        home = self.keeper.place.dir / "home"
        home.mkdir()
        place = Place()
        env = {"HOME": str(home), "COOP_DATA": str(home / ".local/share/coop")}
        keeper = self.start_keeper(place=place, env=env)
        self.client, self.keeper = keeper.clients[0], keeper
        folder, client = self.acting()
        record = self.finish(client, "pwd; echo hi > made && cat made", base_env={"HOME": str(home)})
        self.assertEqual(self.output(record["id"], client=client).decode(), f"{folder}\nhi\n")
        self.assertTrue(os.path.exists(os.path.join(folder, "made")))


class FullFolderTest(FolderCase):
    """Commands without a sandbox begin there, too."""

    profile = "full"

    def test_it_is_where_they_begin(self):
        folder, client = self.acting(sandbox={"profile": "full"})
        record = self.finish(client, "pwd; touch made")
        self.assertEqual(self.output(record["id"], client=client).decode(), f"{folder}\n")
        self.client.call("agent_remove", agent="a")
        wait_until(lambda: not self.left(), "it is deleted")

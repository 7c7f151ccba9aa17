"""The /tmp of an agent with a folder of its own: one for all its commands, nobody else's, gone with the agent."""

import os
import shutil
import tempfile
from pathlib import Path

from lib.agents import AgentCase
from lib.both_keepers import USER, BothKeepersCase
from lib.confined import NEW_MOUNT_CALLS
from lib.place import Place
from lib.procs import wait_until

FULL = {"profile": "full"}
LENIENT = {"require": []}  # nothing is required of the agent, so that its commands may do without


class TmpCase(AgentCase):
    """Agents with folders in a data folder that commands would see."""

    in_tmp = False

    def start_keeper(self, settings=None, **options):
        place = options["place"] = options.get("place") or Place(owner=getattr(self, "user", None))
        if self.in_tmp:
            self.data = place.dir / "data"
        else:
            self.data = Path(tempfile.mkdtemp(prefix="coop-d-", dir="/var/tmp"))
            self.addCleanup(shutil.rmtree, self.data, ignore_errors=True)
            if getattr(self, "user", None):
                os.chown(self.data, self.user, self.user)
        options["env"] = {"COOP_DATA": str(self.data), **(options.get("env") or {})}
        return super().start_keeper(settings, **options)

    def acting(self, path="main/a", **settings):
        """An agent with a folder: (its path, a connection)."""
        folder = self.client.call("agent_add", agent=path, folder=True, **settings)["agent"]["folder"]
        return folder, self.keeper.login(path)

    def tmp_of(self, folder):
        return os.path.join(os.path.dirname(folder), "tmp")

    def told(self, client, script, **args):
        """What a script that must succeed prints."""
        record = self.finish(client, script, **args)
        self.assertEqual(record["exit"]["code"], 0, self.output(record["id"], "stderr", client=client))
        return self.output(record["id"], client=client).decode()


class SharedTmpTest(TmpCase, BothKeepersCase):
    slots = 4

    def test_the_next_command_sees_what_one_left(self):
        """Also one with a read-only profile, or with a root of its own; and what one writes is there for another that runs already."""
        folder, client = self.acting()
        waiting = self.start(client, "until [ -e /tmp/go ]; do sleep 0.05; done; cat /tmp/go")["id"]
        self.told(client, "mkdir -p /tmp/d && echo one > /tmp/d/x && chmod 0600 /tmp/d/x")
        for sandbox in (None, {"profile": "read-only"}, {"root": "minimal"}, {"home": "hidden"}):
            self.assertEqual(self.told(client, "cat /tmp/d/x; echo more >> /tmp/more", sandbox=sandbox), "one\n")
        self.assertEqual(self.told(client, "cat /tmp/more"), "more\n" * 4)
        self.told(client, "echo now > /tmp/.go && mv /tmp/.go /tmp/go")
        record = client.call("wait", id=waiting)["process"]
        self.assertEqual(record["exit"]["code"], 0)
        self.assertEqual(self.output(waiting, client=client), b"now\n")
        with open(os.path.join(self.tmp_of(folder), "d/x"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "one\n")

    def test_what_is_in_it_belongs_to_the_keepers_user_on_disk(self):
        """As in the workspace; inside it is the command's own."""
        folder, client = self.acting()
        self.assertEqual(self.told(client, "touch /tmp/f; stat -c %u /tmp /tmp/f | sort -u; id -u").split("\n")[:1],
                         self.told(client, "id -u").split("\n")[:1])
        status = os.stat(os.path.join(self.tmp_of(folder), "f"))
        self.assertEqual(status.st_uid, os.stat(folder).st_uid)

    def test_it_is_a_plain_place(self):
        """No set-id programs, no devices; nothing is protected in it; files that are given are there for one command alone."""
        folder, client = self.acting()
        options = self.told(client, "grep ' /tmp ' /proc/self/mountinfo | tail -n 1").split(" ")[5]
        self.assertLessEqual({"rw", "nosuid", "nodev"}, set(options.split(",")))
        self.told(client, "cd /tmp && echo x > .bashrc && mkdir -p .git/hooks && echo y > .git/hooks/post-commit")
        self.assertNotEqual(self.finish(client, "cp /bin/true /tmp/t && chmod u+s /tmp/t")["exit"]["code"], 0)
        given = [{"placement": "path", "path": "/tmp/given", "content": "hi"}]
        self.assertEqual(self.told(client, "cat /tmp/given", file_injections=given), "hi")
        wait_until(lambda: not os.path.lexists(os.path.join(self.tmp_of(folder), "given")), "its name is gone")
        self.assertEqual(self.told(client, "cat /tmp/t >/dev/null; ls /tmp"), "t\n")
        given[0]["path"] = "/tmp"
        details = self.assert_refused(client, "invalid_input", "spawn", argv=["true"], file_injections=given)
        self.assertEqual(details["field"], "file_injections[0].path")

    def test_nobody_else_has_it(self):
        """Neither under its name nor where it lies: other agents with folders, those without, the user himself; nor does the agent come
        to it, or to what is beside it, by its place on disk."""
        folder, client = self.acting()
        self.told(client, "echo secret > /tmp/x; chmod 0777 /tmp; chmod 0666 /tmp/x")
        place = self.tmp_of(folder)
        self.acting("main/b")
        for other in (self.keeper.login("main/b"), self.keeper.agent("main/c"), self.client):
            args = self.granted() if other is self.client else {}
            record = self.finish(other, f"cat /tmp/x || cat {place}/x || ls {place} || echo y > {place}/y", **args)
            self.assertNotEqual(record["exit"]["code"], 0)
            self.assertEqual(self.output(record["id"], client=other), b"")
        whole = os.path.dirname(folder)
        record = self.finish(client, f"cat {place}/x; echo y > {whole}/y; mkdir {whole}/z; ln -s / {whole}/l; mv {folder} {whole}/m")
        self.assertNotEqual(record["exit"]["code"], 0)
        self.assertEqual(sorted(os.listdir(whole)), ["tmp", "work"])
        self.assertEqual([name for name in os.listdir(place) if not name.startswith("coop-t-")], ["x"])

    def test_agents_below_share_it_unless_they_are_bound_to_less(self):
        folder, client = self.acting()
        self.told(client, "echo one > /tmp/x; mkdir sub")
        client.call("agent_add", agent="below")
        client.call("agent_add", agent="bound", workspace=[os.path.join(folder, "sub")])
        below, bound = (self.connect().login(client.call("token_new", agent=name)["token"]) for name in ("below", "bound"))
        self.assertEqual(self.told(below, "cat /tmp/x"), "one\n")
        self.assertNotEqual(self.finish(bound, "cat /tmp/x")["exit"]["code"], 0)
        self.told(bound, "echo two > /tmp/x")
        self.assertEqual(self.told(client, "cat /tmp/x"), "one\n")

    def test_with_a_limit_each_has_its_own(self):
        folder, client = self.acting()
        self.told(client, "echo one > /tmp/x")
        limit = {"tmp_bytes": 1 << 20}
        self.assertNotEqual(self.finish(client, "cat /tmp/x", limits=limit)["exit"]["code"], 0)
        self.assertNotEqual(self.finish(client, "head -c 2000000 /dev/zero > /tmp/big", limits=limit)["exit"]["code"], 0)
        self.assertNotIn("big", os.listdir(self.tmp_of(folder)))
        self.assertEqual(self.told(client, "cat /tmp/x"), "one\n")

    def test_a_command_may_begin_in_it(self):
        """By the name that it has inside. Links that lead out of it lead nowhere."""
        folder, client = self.acting()
        self.told(client, "mkdir -p /tmp/d/e; ln -s d /tmp/l; ln -s /etc /tmp/out; ln -s ../work /tmp/up; ln -s /nothing /tmp/none; echo x > /tmp/f")
        for cwd, seen in (("/tmp", "/tmp"), ("/tmp/d/e", "/tmp/d/e"), ("/tmp/d/../d/", "/tmp/d"), ("/tmp/l/e", "/tmp/d/e")):
            record = self.finish(client, "pwd -P; touch here", cwd=cwd)
            self.assertEqual((self.output(record["id"], client=client).decode(), record["cwd"]), (f"{seen}\n", seen))
            os.unlink(os.path.join(self.tmp_of(folder), seen[5:], "here"))
        for cwd in ("/tmp/out", "/tmp/up", "/tmp/none"):
            self.assertEqual(self.assert_refused(client, "invalid_input", "spawn", argv=["true"], cwd=cwd)["field"], "cwd")
        for cwd in ("/tmp/f", "/tmp/missing"):
            self.assertEqual(self.assert_refused(client, "invalid_input", "spawn", argv=["true"], cwd=cwd)["field"], "cwd")
        limit = {"tmp_bytes": 1 << 20}
        self.assert_refused(client, "invalid_input", "spawn", argv=["true"], cwd="/tmp/d", limits=limit)
        self.assertEqual(self.finish(client, "pwd -P", cwd="/tmp", limits=limit)["cwd"], "/tmp")

    def test_it_goes_with_the_agent(self):
        _, client = self.acting()
        self.told(client, "mkdir -p /tmp/a/b/c; seq 1000 | (cd /tmp/a/b && xargs touch); chmod 0 /tmp/a/b; ln -s /etc /tmp/link")
        process = self.start(client, "while :; do date > /tmp/now; mkdir -p /tmp/again; done")["id"]
        self.assertEqual(self.client.call("agent_remove", agent="a", grace_ms=100)["survivors"], 0)
        self.assertEqual(self.status(process)["end_cause"], "owner_retired")
        wait_until(lambda: not os.listdir(self.data), "all of it is deleted")
        self.assertTrue(os.path.isdir("/etc"))

    def test_prepared_sandboxes_do_not_mix(self):
        """Those that wait are nobody's: each command gets the /tmp of its own agent."""
        clients = [self.acting(f"main/{name}")[1] for name in "ab"] + [self.keeper.agent("main/c")]
        starts, number = set(), 0

        def all_kinds():
            nonlocal number
            number += 1
            for client in clients:
                record = self.finish(client, "echo x >> /tmp/x; cat /tmp/x")
                starts.add((client is clients[2], record["start"]))
                self.assertEqual(self.output(record["id"], client=client), b"x\n" * (1 if client is clients[2] else number))
            return {(False, "pooled"), (True, "pooled")} <= starts

        wait_until(all_kinds, "some of them were prepared, for agents of both kinds")


class UserSharedTmpTest(SharedTmpTest):
    user = USER


class TmpInTmpTest(SharedTmpTest):
    """The data folder itself lies in /tmp: the workspace is seen at its own path in the shared one."""

    in_tmp = True
    test_it_is_a_plain_place = None  # the way to the workspace is in it


class UserTmpInTmpTest(TmpInTmpTest):
    user = USER


class HomeInTmpTest(TmpCase):
    """A home in /tmp is seen there as ever, and what is in it is not the agent's own."""

    def test_the_home_is_still_a_layer(self):
        home = Path(tempfile.mkdtemp(prefix="coop-h-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        home.chmod(0o755)
        (home / ".ssh").mkdir()
        (home / ".ssh/key").write_text("secret")
        (home / "plain").write_text("plain")
        keeper = self.start_keeper(place=Place(), env={"HOME": str(home)})
        self.client, self.keeper = keeper.clients[0], keeper
        folder, client = self.acting()
        record = self.finish(client, "echo one > /tmp/x; ls -A ~/.ssh; echo mine > ~/mine; cat ~/mine /tmp/x", base_env={"HOME": str(home)})
        self.assertEqual(self.output(record["id"], client=client), b"mine\none\n")
        self.assertEqual(sorted(os.listdir(home)), [".ssh", "plain"])
        self.assertFalse(os.path.exists(os.path.join(self.tmp_of(folder), home.name, "mine")))
        self.assertEqual(self.told(client, "cat /tmp/x"), "one\n")


class NoMountsTest(TmpCase, BothKeepersCase):
    """Without mounts /tmp is the host's: programs are told of the agent's own by TMPDIR."""

    user = USER
    lacks = tuple(f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS)
    tolerant = {"tolerate": ["files"]}

    def test_tmpdir_names_it(self):
        folder, client = self.acting(sandbox=LENIENT)
        place = self.tmp_of(folder)
        self.assertEqual(self.told(client, "echo $TMPDIR; echo one > $TMPDIR/x", sandbox=self.tolerant), f"{place}\n")
        self.assertEqual(self.told(client, "cat $TMPDIR/x; mktemp >/dev/null; echo made > made", sandbox=self.tolerant), "one\n")
        self.assertEqual(len(os.listdir(place)), 2)
        self.assertNotEqual(self.finish(client, "echo x > /tmp/coop-x", sandbox=self.tolerant)["exit"]["code"], 0)
        self.assertEqual(self.told(client, "pwd; cat x", cwd="/tmp", sandbox=self.tolerant), f"{place}\none\n")

    def test_others_do_not_read_what_is_in_a_folder(self):
        """Landlock lets a command read all but the data folder, and of that its own."""
        folder, client = self.acting(sandbox=LENIENT)
        self.told(client, "echo secret > made; echo secret > $TMPDIR/x", sandbox=self.tolerant)
        self.acting("main/b", sandbox=LENIENT)
        for other in (self.keeper.login("main/b"), self.keeper.agent("main/c", sandbox=LENIENT), self.client):
            sandbox = {**self.tolerant, **({"workspace": str(self.ws)} if other is self.client else {})}
            record = self.finish(other, f"cat {folder}/made || cat {self.tmp_of(folder)}/x || ls {folder} || ls {self.data}", sandbox=sandbox)
            self.assertNotEqual(record["exit"]["code"], 0)
            self.assertEqual(self.output(record["id"], client=other), b"")
            self.assertEqual(self.told(other, "cat /etc/hostname >/dev/null && echo read", sandbox=sandbox), "read\n")
        readable = {**self.tolerant, "profile": "read-only"}
        self.assertEqual(self.told(client, "cat made", sandbox=readable), "secret\n")
        self.assertNotEqual(self.finish(client, "echo x > made", sandbox=readable)["exit"]["code"], 0)


class FullTmpTest(TmpCase):
    """The same without a sandbox."""

    profile = "full"

    def test_tmpdir_names_it(self):
        folder, client = self.acting(sandbox=FULL)
        place = self.tmp_of(folder)
        self.assertEqual(self.told(client, "echo $TMPDIR; mktemp -d >/dev/null", sandbox=FULL), f"{place}\n")
        self.assertEqual(len(os.listdir(place)), 1)
        self.assertEqual(self.told(client, "echo $TMPDIR", sandbox=FULL, env={"TMPDIR": "/var/tmp"}), "/var/tmp\n")
        self.assertEqual(self.told(client, "echo $TMPDIR", sandbox=FULL, env_remove=["TMPDIR"]), "\n")
        self.assertEqual(self.told(client, "echo $TMPDIR", sandbox=FULL, base_env={"TMPDIR": "/var/tmp"}), "/var/tmp\n")
        self.assertEqual(self.told(client, "pwd; touch here", sandbox=FULL, cwd="/tmp"), f"{place}\n")
        self.assertEqual(self.told(self.client, "echo $TMPDIR", sandbox=FULL), "\n")

    def test_a_folder_that_is_a_link_is_not_followed(self):
        """What stands for /tmp was made by the keeper; something else in its place is refused."""
        folder, client = self.acting()
        os.rmdir(self.tmp_of(folder))
        os.symlink("/etc", self.tmp_of(folder))
        error = self.refusal(client, "spawn", argv=["true"], sandbox={"profile": "workspace-write"})
        self.assertEqual(error.code, "sandbox_unavailable")

"""Which folders a command may be given, and by whom (B-108); what is private in every folder that is called home (B-109)."""

import os

from lib.both_keepers import USER, BothKeepersCase
from lib.client import KeeperError

CREDENTIALS = (".ssh/id", ".netrc", ".config/gh/hosts.yml", ".cargo/credentials.toml", ".claude/.credentials.json", ".pgpass", ".bash_history")
# Prints what it can read, and whether a folder can be made.
LOOK = """
import os, sys
os.chdir(sys.argv[1])
for path in sys.argv[2].split():
    try:
        print(open(path).read().strip() or "empty")
    except OSError:
        print("none")
try:
    os.mkdir(".cache")
    print("made")
except OSError as error:
    print(error.errno)
"""
PYTHON = "/usr/bin/python3"
HIDDEN = {"empty", "none"}


class GrantTest(BothKeepersCase):
    conf = """
[profile shared]
base = workspace-write
allow_write = /var/tmp
"""

    def assert_escape(self, client, field, **sandbox):
        error = self.refusal(client, sandbox=sandbox, cwd=None)
        self.assertEqual((error.code, error.details["field"]), ("boundary_escape", field), error)
        return error

    def test_b108_agent_without_a_workspace_names_none(self):
        """To name a folder is the user's own right. Who was given none can write to none, and is told how to get one."""
        client = self.keeper.agent("main/a", workspace=None)
        for folder in (self.ws, self.base, "/etc", self.base / "not-there"):
            error = self.assert_escape(client, "sandbox.workspace", workspace=str(folder))
            self.assertIn("coop agent set main/a --workspace DIR", error.message)
            self.assert_escape(client, "sandbox.allow_write[0]", allow_write=[str(folder)])
        for sandbox in ({}, {"profile": "shared"}):
            script = f"echo x >/tmp/x && cat /tmp/x; echo x >{self.ws}/ran; echo x >/var/tmp/{self.base.name}/ran"
            record, out, _ = self.inside(script, sandbox, client=client, cwd="/")
            self.assertEqual((out, record["sandbox"]["workspace"], os.listdir(self.ws)), ("x\n", None, []))
        self.assertFalse((self.base / "ran").exists())
        self.client.call("agent_set", agent="main/a", workspace=[str(self.ws)])
        self.assertEqual(self.says("echo x >made && ls m*", {"workspace": str(self.ws)}, client=client), "made")

    def test_b108_settings_of_others_are_no_way_around(self):
        """Who has no workspace gives none, neither as roots nor as a sandbox's; another principal's first agent is not the user."""
        client = self.keeper.agent("main/a", workspace=None)
        for op in ("agent_add", "agent_set"):
            with self.assertRaises(KeeperError) as caught:
                client.call(op, agent="main/a/x", workspace=[str(self.ws)])
            self.assertEqual((caught.exception.code, caught.exception.details["field"]), ("boundary_escape", "workspace"))
            if op == "agent_add":
                client.call("agent_add", agent="main/a/x", sandbox={"workspace": str(self.ws), "allow_write": [str(self.ws)]})
        below = self.keeper.login("main/a/x")
        self.assert_escape(below, "sandbox.workspace", workspace=str(self.ws))
        self.assertEqual(self.says(f"echo x >{self.ws}/ran; echo end", {}, client=below, cwd="/"), "end")
        self.assert_escape(self.keeper.agent("main", "alice", workspace=None), "sandbox.workspace", workspace=str(self.ws))
        self.assertEqual(os.listdir(self.ws), [])

    def test_b109_protected_folders_cannot_be_named(self):
        """What the list protects in an agent's roots is not to be had as a workspace of its own."""
        for name in (".git/hooks", ".vscode", ".idea/deep", "kept/in", "a", "a/b", "free"):
            self.folder(f"ws/{name}")
        (self.ws / "link").symlink_to(".git")
        client = self.keeper.agent("main/a", workspace=[str(self.ws)], sandbox={"protect": ["kept", "a/b"]})
        below = self.keeper.agent("main/a/x", workspace=[str(self.ws)])
        for who in (client, below):
            for name in (".git", ".git/hooks", ".vscode", ".idea/deep", "kept", "kept/in", "a/b", "link"):
                with self.subTest(name=name):
                    self.assert_escape(who, "sandbox.workspace", workspace=str(self.ws / name))
                    self.assert_escape(who, "sandbox.allow_write[0]", allow_write=[str(self.ws / name)])
            sandbox = {"workspace": str(self.ws / "a")}
            self.says("echo x >made; echo x >b/made", sandbox, client=who, cwd=str(self.ws / "a"))
            self.assertEqual((os.listdir(self.ws / "a" / "b"), (self.ws / "a" / "made").exists()), ([], True))
            self.assertEqual(self.says("echo x >made; ls made", {"workspace": str(self.ws / "free")}, client=who, cwd=str(self.ws / "free")), "made")

    def test_b109_git_folder_is_no_workspace(self):
        """Nor is it the user's, who is told what to name instead."""
        self.folder("ws/.git/modules/x")
        for name in (".git", ".git/modules/x"):
            error = self.refusal(sandbox={"workspace": str(self.ws / name)})
            self.assertEqual((error.code, error.details["field"]), ("invalid_input", "sandbox.workspace"))
            self.assertIn("the .git of a repository", error.message)
        self.folder("ws/x.git/.github")
        self.assertEqual(self.says("echo fine", {"workspace": str(self.ws / "x.git" / ".github")}, cwd=None), "fine")

    def test_b108_the_kernels_own_is_not_given(self):
        """Refused for what it is, whoever the keeper is: no protection would have to be missing."""
        (self.ws / "link").symlink_to("/proc/self")
        for path in ("/dev", "/dev/pts", "/proc", "/proc/sys", "/sys", "/sys/fs/cgroup", str(self.ws / "link")):
            for sandbox, field in (({"workspace": path}, "sandbox.workspace"),
                                   ({"workspace": str(self.ws), "allow_write": ["/var/tmp", path]}, "sandbox.allow_write[1]")):  # fmt: skip
                error = self.refusal(sandbox=sandbox, cwd=None)
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", field), error)
                self.assertNotIn("tolerate", error.message)


    def test_s124_names(self):
        """A door that has resolved what was typed says so: a link on the way is one that came since, and what is private is not meant."""
        real, secret = self.folder("ws/real"), self.folder("home/.aws")
        (self.ws / "link").symlink_to(real)
        home = {"base_env": {"HOME": str(self.home)}}
        for names in ("as_typed", "resolved"):
            self.assertEqual(self.says("echo fine", {"workspace": str(real), "names": names}, cwd=None), "fine")
            for sandbox, field in (({"workspace": str(self.ws / "link")}, "sandbox.workspace"),
                                   ({"workspace": str(real), "allow_write": [str(self.ws / "link")]}, "sandbox.allow_write[0]"),
                                   ({"root": "minimal", "allow_read": [str(self.ws / "link")]}, "sandbox.allow_read[0]")):  # fmt: skip
                error = self.refusal(sandbox=sandbox | {"names": names}, cwd="/")
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", field), error)
        for sandbox in ({"workspace": str(secret)}, {"allow_write": [str(secret)]}, {"root": "minimal", "allow_read": [str(secret)]}):
            error = self.refusal(sandbox=sandbox | {"names": "resolved"}, cwd="/", **home)
            self.assertIn("credentials", error.message)
        self.assertEqual(self.says("echo fine", {"workspace": str(secret), "names": "as_typed"}, cwd=None, **home), "fine")
        self.assertEqual(self.refusal(sandbox={"names": "other"}).details["field"], "sandbox.names")
        with self.assertRaises(KeeperError) as caught:
            self.client.call("agent_add", agent="main/x", sandbox={"names": "resolved"})
        self.assertEqual(caught.exception.details["field"], "sandbox.names")

    def test_s124_credentials_by_a_link(self):
        """Nor are they given to an agent by one, as its root."""
        secret = self.folder("home/.aws")
        (self.ws / "link").symlink_to(secret)
        for op in ("agent_add", "agent_set"):
            for settings in ({"workspace": [str(self.ws / "link")]}, {"sandbox": {"allow_read": [str(self.ws / "link")]}}):
                if not self.user:
                    continue
                with self.assertRaises(KeeperError) as caught:
                    self.client.call(op, agent="main/x", **settings)
                self.assertIn("credentials", caught.exception.message)
            if op == "agent_add":
                self.client.call("agent_add", agent="main/x")


class GrantOfAUserTest(GrantTest):
    user = USER


class CwdTest(BothKeepersCase):
    """Where a command runs: wherever it could go."""

    def test_s124_b091_cwd_outside_of_the_workspace(self):
        """Any folder will do that the command could enter, and it gives no right: what can be written to is what could be without."""
        more, out = self.folder("more"), self.folder("out")
        out.chmod(0o777)
        (self.ws / "away").symlink_to(out)
        sandbox = {"workspace": str(self.ws), "allow_write": [str(more)]}
        readable = {"root": "minimal", "allow_read": [str(out)]}
        agent = self.keeper.agent("main/a", workspace=[str(self.ws), str(more)])
        for cwd, seen, others in ((out, out, {}), ("/", "/", {}), ("/etc", "/etc", {}), (self.base, self.base, {}), (self.ws / "away", out, {}),
                                  ("/proc", "/proc", {}), (out, out, readable), ("/usr", "/usr", {"root": "minimal"}), ("/", "/", {"root": "minimal"})):  # fmt: skip
            for client in (self.client, agent):
                if others == readable and client is agent:
                    continue
                with self.subTest(cwd=cwd, others=others):
                    self.assertEqual(self.says("pwd -P; echo x >made", sandbox | others, cwd=str(cwd), client=client), str(seen))
        self.assertEqual(os.listdir(out), [])
        self.assertEqual(self.says("pwd -P; echo x >made; cat made", sandbox, cwd="/tmp"), "/tmp\nx")
        self.assertFalse(os.path.exists("/tmp/made"))
        for cwd in (self.ws, more):
            self.assertEqual(self.says("echo x >made; pwd -P", sandbox, cwd=str(cwd)), str(cwd))
            self.assertTrue((cwd / "made").exists())

    def test_s124_b091_cwd_that_is_not_seen(self):
        """What is hidden, masked, denied, or not in the view is no place to begin in, with a workspace and without, for nobody."""
        hidden = self.folder("ws/hidden")
        secret, outside = self.folder("home/.ssh"), self.folder("outside")
        place = self.keeper.place
        agent = self.keeper.agent("main/a", workspace=[str(self.ws)])
        poor = self.keeper.agent("main/b", workspace=None)
        inside = f"/tmp/coop-cwd-{os.getpid()}"
        os.mkdir(inside)
        self.addCleanup(os.rmdir, inside)
        denied = {"deny_read": [str(hidden)]}
        for cwd, sandbox, mains in ((hidden, denied, False), (place.state, {}, False), (secret, {}, not self.user), (inside, {}, False), ("/run/lock", {}, False),
                                    ("/dev/pts", {}, True), (outside, {"root": "minimal"}, False), ("/proc/1", {}, True)):  # fmt: skip
            if not os.path.isdir(cwd):
                continue
            for client in (self.client, agent, poor):
                workspace = {} if client is poor else {"workspace": str(self.ws)}
                with self.subTest(cwd=cwd, sandbox=sandbox):
                    if mains:
                        continue
                    error = self.refusal(client, cwd=str(cwd), sandbox=workspace | sandbox)
                    self.assertEqual((error.code, error.details["field"]), ("invalid_input", "cwd"), error)
                    self.assertIn("cannot be entered", error.message)

    def test_b090_absent_means_the_workspace(self):
        deep = self.folder("ws/deep")
        (self.base / "link").symlink_to(deep)
        for client in (self.client, self.keeper.agent("main/a", workspace=[str(self.ws)])):
            for workspace in (self.ws, deep):
                record, out, _ = self.inside("pwd -P; echo x >made", {"workspace": str(workspace)}, client=client, cwd=None)
                self.assertEqual((record["cwd"], out), (str(workspace), f"{workspace}\n"))
        record, _, _ = self.inside("true", {"workspace": str(self.base / "link")}, cwd=None)
        self.assertEqual(record["cwd"], str(deep))

    def test_b090_cwd_without_a_workspace(self):
        """Whatever can be read will do, and gives no right."""
        out = self.folder("out")
        out.chmod(0o777)
        for sandbox in ({"profile": "read-only"}, {"profile": "read-only", "workspace": str(self.ws)}, {}):
            for cwd in (str(out), "/", "/etc"):
                self.assertEqual(self.says("pwd -P; echo x >made", sandbox, cwd=cwd), cwd)
        self.assertEqual(os.listdir(out), [])
        for cwd in ("/dev/shm", "/run/lock"):
            if os.path.isdir(cwd):
                os.makedirs(f"{cwd}/coop-{os.getpid()}", exist_ok=True)
                self.addCleanup(os.rmdir, f"{cwd}/coop-{os.getpid()}")
                error = self.refusal(cwd=f"{cwd}/coop-{os.getpid()}", sandbox={"profile": "read-only"})
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", "cwd"), error)

    def test_b090_cwd_that_cannot_be_entered(self):
        """Closed to whom the command runs as: what is told is about cwd, not about a protection."""
        closed = self.base / "closed"
        closed.mkdir(mode=0o700)
        (closed / "in").mkdir()
        for cwd in (closed, closed / "in"):
            error = self.refusal(cwd=str(cwd), sandbox={"profile": "read-only"})
            self.assertEqual((error.code, error.details["field"]), ("invalid_input", "cwd"), error)
            self.assertNotIn("tolerate", error.message)


class CwdOfAUserTest(CwdTest):
    user = USER


class HomeTest(BothKeepersCase):
    """HOME names another folder than the list of users does, or leads there by a link."""

    def fill(self, home):
        for name in CREDENTIALS:
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("secret\n")
            self.give(path)
            self.give(path.parent)
        self.give(home / ".config")
        (home / "notes").write_text("mine\n")

    def look(self, home, **args):
        args = {"argv": [PYTHON, "-c", LOOK, str(home), " ".join(CREDENTIALS)], "cwd": str(self.ws), "sandbox": {"workspace": str(self.ws)}} | args
        process = self.client.call("spawn", **args)["process"]["id"]
        self.ended(process)
        *read, made = self.output(process).decode().split()
        self.assertEqual(len(read), len(CREDENTIALS))
        self.assertLessEqual(set(read), HIDDEN)
        return made

    def test_b109_home_of_the_command(self):
        """Credentials are hidden in it as in the other, the private layer is there, nothing of that is on disk, and it is no workspace."""
        other = self.folder("other")
        for home in (self.home, other):
            self.fill(home)
        for words in ({"base_env": {"HOME": str(other)}}, {"env": {"HOME": f"{other}/"}}, {"base_env": {"HOME": "/"}, "env": {"HOME": str(other)}}):
            with self.subTest(words=words):
                self.assertEqual(self.look(other, **words), "made")
                if self.user:
                    self.look(self.home, **words)
                self.assertFalse((other / ".cache").exists())
                error = self.refusal(sandbox={"workspace": str(other)}, cwd="/", **words)
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", "sandbox.workspace"))
        sandbox = {"workspace": str(self.ws), "deny_read": ["~/notes"]}
        for words in ({}, {"base_env": {"HOME": str(other)}}):
            script = f"cat {self.home}/notes" if self.user else f"cat {other}/notes"
            if words or self.user:
                self.assertEqual(self.says(script, sandbox, **words), "")

    def test_b109_home_in_the_workspace(self):
        """A folder of the workspace that a command calls home stays one to be written to."""
        inner = self.folder("ws/inner")
        self.assertEqual(self.look(inner, env={"HOME": str(inner)}), "made")
        self.assertEqual(os.listdir(inner), [".cache"])

    def test_b109_an_agents_word_moves_no_home(self):
        """The layer would bring back what is hidden: an agent's HOME shows nothing that is not there without it."""
        shown = self.folder("shown")
        (shown / "file").write_text("mine\n")
        client = self.keeper.agent("main/a", workspace=[str(self.ws)])
        out = self.says(f"cat {shown}/file", {"root": "minimal"}, client=client, env={"HOME": str(shown)})
        self.assertEqual(out, "")


class HomeOfAUserTest(HomeTest):
    user = USER

    def test_b109_home_by_a_link(self):
        """A home that is reached through a link, or has a slash at its end, is the folder that it leads to."""
        self.fill(self.home)
        link = self.base / "link"
        link.symlink_to(self.base)
        self.client = self.start_keeper(env={"HOME": f"{link}/home/"}).clients[0]
        for home in (self.home, link / "home"):
            self.assertEqual(self.look(home), "made")
            error = self.refusal(sandbox={"workspace": str(home)})
            self.assertEqual((error.code, error.details["reason"]), ("invalid_input", "is the home folder itself"))
        self.assertFalse((self.home / ".cache").exists())

    def test_b109_home_that_the_keeper_was_started_with(self):
        """It is hidden from who names another, too."""
        self.fill(self.home)
        for words in ({"env": {"HOME": "/nowhere"}}, {"env_mode": "replace", "env": {"PATH": os.environ["PATH"]}}):
            self.look(self.home, **words)

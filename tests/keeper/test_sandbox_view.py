"""What a confined process sees around it: its user's name, TMPDIR, folders it was granted (B-108)."""

import os
import pwd
import subprocess
import time

from lib import procs
from lib.both_keepers import USER, BothKeepersCase

class ViewTest(BothKeepersCase):
    conf = """
[profile build]
base = workspace-write
allow_write = /nowhere/at/all
allow_write = ~/.cache/tool
"""

    def test_b108_user_has_a_name(self):
        """Whoever it runs as: user and group have names, and a home; all others stay. The host's files are as they were."""
        before = [open(path, "rb").read() for path in ("/etc/passwd", "/etc/group")]
        script = "whoami; id -un; id -gn; getent passwd $(id -u); wc -l </etc/passwd; wc -l </etc/group; getent passwd root | cut -d: -f3"
        for root in ("host", "minimal"):
            who, name, group, entry, users, groups, zero = self.says(script, {"workspace": str(self.ws), "root": root}).splitlines()
            uid, _, home = entry.split(":")[2], entry.split(":")[3], entry.split(":")[5]
            self.assertEqual((who, zero), (name, "0"))
            self.assertTrue(name and group)
            self.assertEqual(home, str(self.home) if self.user else pwd.getpwuid(os.getuid()).pw_dir)
            known = int(uid) in {user.pw_uid for user in pwd.getpwall()}
            self.assertEqual(int(users), before[0].count(b"\n") + (not known))
            self.assertGreaterEqual(int(groups), before[1].count(b"\n"))
            if not known:
                self.assertEqual(name, "coop")
        self.assertEqual([open(path, "rb").read() for path in ("/etc/passwd", "/etc/group")], before)
        record, out, _ = self.inside("cat /etc/passwd; echo end", {"workspace": str(self.ws), "deny_read": ["/etc/passwd"]})
        self.assertEqual(out, "end\n", record)

    def test_b085_tmpdir(self):
        """A door's TMPDIR that is not there inside is left out; one that is, one that the request sets, and /tmp stay."""
        show = 'echo "${TMPDIR-none}"'
        own = str(self.folder("ws/tmp"))
        for given, seen in (("/tmp", "/tmp"), ("/tmp/", "/tmp/"), ("/tmp/x", "none"), (str(self.base), "none"), ("/var/tmp", "none"),
                            ("relative", "none"), (own, own)):  # fmt: skip
            self.assertEqual(self.says(show, base_env={"TMPDIR": given}), seen, given)
        self.assertEqual(self.says(show, base_env={"TMPDIR": "/tmp/x"}, env={"TMPDIR": "/tmp/y"}), "/tmp/y")
        self.assertEqual(self.says(show, {"profile": "full"}, base_env={"TMPDIR": "/tmp/x"}), "/tmp/x")

    def test_b108_grants_in_the_home(self):
        """`~/` at the front is the home; what the operator names and is not there is left out, what a request names is an error."""
        home = self.home if self.user else None
        if home is None:
            error = self.refusal(sandbox={"workspace": str(self.ws), "allow_write": ["~/coop-not-there"]})
            self.assertEqual((error.code, error.details["field"]), ("invalid_input", "sandbox.allow_write[0]"))
            return
        cache = self.folder("home/.cache/tool")
        self.give(cache.parent)
        script = "echo x >~/.cache/tool/made; echo y >~/.cache/other && echo layer"
        self.assertEqual(self.says(script, {"workspace": str(self.ws), "allow_write": ["~/.cache/tool"]}), "layer")
        procs.wait_until(lambda: os.listdir(cache) == ["made"], "only what it made is left")
        self.assertEqual(os.listdir(cache.parent), ["tool"])
        (cache / "made").unlink()
        self.assertEqual(self.says(script, {"workspace": str(self.ws), "profile": "build"}), "layer")
        procs.wait_until(lambda: os.listdir(cache) == ["made"], "only what it made is left")
        error = self.refusal(sandbox={"workspace": str(self.ws), "allow_write": [str(self.ws), "~/missing/"]})
        self.assertEqual((error.code, error.details["field"]), ("invalid_input", "sandbox.allow_write[1]"))

    def test_b108_missing_folders_of_the_operator(self):
        """A profile that names what this host does not have works without it."""
        self.assertEqual(self.says("echo fine", {"workspace": str(self.ws), "profile": "build"}), "fine")

    def test_b108_a_link_does_not_lead_out_of_a_ceiling(self):
        """What a granted path resolves to must lie in the ceiling, too."""
        inside, outside = self.folder("ws/inside"), self.folder("outside")
        (inside / "out").symlink_to(outside)
        (inside / "in").symlink_to(self.folder("ws/inside/real"))
        client = self.keeper.agent("main/a", workspace=[str(inside), str(outside)], sandbox={"allow_write": [str(inside)], "profile": "workspace-write"})
        for sandbox in ({"workspace": str(inside / "out")}, {"allow_write": [str(inside / "out")]}):
            error = self.refusal(client, sandbox=sandbox, cwd=str(inside))
            field = "sandbox.workspace" if "workspace" in sandbox else "sandbox.allow_write[0]"
            self.assertEqual((error.code, error.details["field"]), ("permission_denied", field), error)
        self.assertEqual(self.says("echo x >made && ls m*", {"workspace": str(inside / "in")}, client=client, cwd=str(inside / "in")), "made")
        self.assertEqual(os.listdir(outside), [])
        client = self.keeper.agent("main/b", workspace=None, sandbox={"allow_read": [str(inside)], "root": "minimal"})
        error = self.refusal(client, sandbox={"allow_read": [str(inside / "out")]}, cwd="/")
        self.assertEqual((error.code, error.details["field"]), ("boundary_escape", "sandbox.allow_read[0]"), error)

    def test_b108_single_files_can_be_shown(self):
        """allow_read takes files, too."""
        path = self.base / "one"
        path.write_text("one\n")
        (self.base / "two").write_text("two\n")
        sandbox = {"workspace": str(self.ws), "root": "minimal", "allow_read": [str(path)]}
        self.assertEqual(self.says(f"cat {path} {self.base}/two; ls {self.base} | grep -v home", sandbox).split(), ["one", "one", "ws"])


class ViewOfAUserTest(ViewTest):
    user = USER


class MountInTheHomeTest(BothKeepersCase):
    """Something else is mounted in the home: over that no ordinary user may lay anything that shows what is beneath."""

    user = USER

    def keeper_wrap(self, place):
        """A view of the keeper's own, so that nobody else meets the mounts."""
        return ["unshare", "-m"]

    def mounts(self, *words):
        subprocess.run(["nsenter", "-m", "-t", str(self.keeper.pid), *words], check=True)

    def look(self):
        """What a command is told of its home and finds there."""
        script = "cd; cat note disk/file; grep -rhs secret .; touch new && echo made"
        record, out, _ = self.inside(script)
        self.assertFalse((self.home / "new").exists())
        return record["sandbox"]["home"], out.split()

    def test_b108_commands_start_and_see_it(self):
        """Read-only meanwhile, without credentials; with a layer of their own before and afterwards."""
        disk = self.folder("home/disk")
        for path, text in (("note", "note"), (".netrc", "secret")):
            (self.home / path).write_text(text + "\n")
            self.give(self.home / path)
        self.assertEqual(self.look(), ("cow", ["note", "made"]))
        self.mounts("mount", "-t", "tmpfs", "coop-test", str(disk))
        self.mounts("sh", "-c", f"echo mounted >{disk}/file; chmod 755 {disk}")
        self.assertEqual(self.look(), ("read-only", ["note", "mounted"]))
        self.mounts("umount", str(disk))
        self.assertEqual(self.look(), ("cow", ["note", "made"]))


class StreamsTest(BothKeepersCase):
    """The standard streams can be opened again by their names, as many programs do (B-108)."""

    conf = "[sandbox]\nslots = 4\n"
    start = "pooled"
    script = (
        "for f in /dev/stdout /proc/self/fd/1 /dev/fd/1; do echo out >$f || exit 1; done;"
        "echo err >/dev/stderr || exit 2; cat /dev/stdin || exit 3"
    )

    def begin(self, profile, **args):
        """One of the script's, started the way that this class is for."""

        def started():
            sandbox = {"workspace": str(self.ws), "profile": profile}
            call = {"argv": ["sh", "-c", self.script], "cwd": str(self.ws), "sandbox": sandbox} | args
            process = self.client.call("spawn", **call)["process"]
            if process["start"] == self.start or profile == "full":
                return process["id"]
            self.client.call("kill", id=process["id"])
            time.sleep(0.05)
            return None

        return procs.wait_until(started, f"a start that is {self.start}")

    def test_b108_pipes(self):
        for profile in ("workspace-write", "read-only", "full"):
            for root in ("host", "minimal") if self.start == "launched" and profile != "full" else ("host",):
                with self.subTest(profile=profile, root=root):
                    sandbox = {"workspace": str(self.ws), "profile": profile, "root": root}
                    more = {"sandbox": sandbox} if root == "minimal" else {}
                    process = self.begin(profile, stdin="pipe", **more)
                    self.client.reply("write_stdin", {"id": process}, b"given\n")
                    self.client.call("close_stdin", id=process)
                    record = self.client.call("wait", id=process)["process"]
                    said = self.output(process), self.output(process, "stderr")
                    self.assertEqual((record["exit"]["code"], *said), (0, b"out\nout\nout\ngiven\n", b"err\n"))

    def test_b108_no_input(self):
        process = self.begin("workspace-write")
        record = self.client.call("wait", id=process)["process"]
        self.assertEqual((record["exit"]["code"], self.output(process)), (0, b"out\nout\nout\n"), self.output(process, "stderr"))

    def test_b108_terminal(self):
        for profile in ("workspace-write", "read-only", "full"):
            with self.subTest(profile=profile):
                script = self.script.replace("cat /dev/stdin", "read line </dev/stdin && echo got $line && echo tty >/dev/tty")
                process = self.begin(profile, kind="pty", argv=["sh", "-c", script])
                self.client.reply("write_stdin", {"id": process}, b"given\n")
                record = self.client.call("wait", id=process)["process"]
                words = self.output(process, "pty").split()
                self.assertEqual(record["exit"]["code"], 0, words)
                words.remove(b"given")  # the echo, at any place
                self.assertEqual(words, [b"out"] * 3 + [b"err", b"got", b"given", b"tty"])


class LaunchedStreamsTest(StreamsTest):
    conf = "[sandbox]\nslots = 0\n"
    start = "launched"


class StreamsOfAUserTest(StreamsTest):
    user = USER


class LaunchedStreamsOfAUserTest(LaunchedStreamsTest):
    user = USER

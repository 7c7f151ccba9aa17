"""Environment, working directory, descriptors and shells of a process (B-085, B-086, B-089, B-090, B-092, B-094)."""

import json
import os
import pwd
import signal

from lib import procs
from lib.keeper import KeeperCase, plain_limits

CLEAN = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "LANG", "TZ"}
SECRET = "hunter2-Tr0ub4dor"


class EnvironmentTest(KeeperCase):
    keeper_env = {"LEAKY_TOKEN": SECRET, "LC_SECRET_NOT": "x", "LD_LIBRARY_PATH": ""}

    def env_of(self, **args):
        record = self.spawn("env", "-0", **args)
        self.ended(record["id"])
        text = self.output(record["id"]).decode()
        env = dict(line.split("=", 1) for line in text.split("\0") if line)
        # Where a PID namespace holds the tree together nothing else has to.
        number = None if record["sandbox"]["kind"] == "namespaces" else record["id"].rsplit("-", 1)[1]
        self.assertEqual(env.pop("COOP_PROCESS", None), number)
        return env

    def test_b085_clean_base(self):
        """By default only the ten names; HOME and the like are the user's; nothing of the keeper's own environment."""
        env = self.env_of()
        extra = {name for name in env if name not in CLEAN and not name.startswith("LC_")}
        self.assertEqual(extra, set())
        user = pwd.getpwuid(os.getuid())
        self.assertEqual((env["HOME"], env["USER"], env["LOGNAME"]), (user.pw_dir, user.pw_name, user.pw_name))
        self.assertIn("/usr/bin", env["PATH"])
        self.assertNotIn("LC_SECRET_NOT", env)

    def test_b085_door_sends_its_base(self):
        """base_env lies over the keeper's base, for the ten names only; another name is refused."""
        env = self.env_of(base_env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC"})
        self.assertEqual((env["PATH"], env["LANG"], env["LC_TIME"]), ("/usr/bin:/bin", "C.UTF-8", "C"))
        self.assertIn("HOME", env)
        for name in ("LD_PRELOAD", "SECRET", "COOP_SOCKET"):
            with self.subTest(name=name), self.refused("invalid_input", words=name):
                self.spawn("true", base_env={name: "x"})

    def test_b085_coop_process_in_every_mode(self):
        """COOP_PROCESS is set whatever the mode, without a PID namespace (env_of checks its value)."""
        for profile in ("full", "workspace-write"):
            args = {"sandbox": {"profile": profile}}
            self.env_of(env_mode="inherit_clean", **args)
            for mode in ("patch", "merge", "replace"):
                self.env_of(env={"A": "1", "PATH": "/usr/bin:/bin"}, env_mode=mode, **args)

    def test_b086_patch_replace_and_remove(self):
        """patch lays over the base, replace starts empty, env without mode is patch, a set value wins over a removal."""
        for args in ({}, {"env_mode": "patch"}, {"env_mode": "merge"}):
            env = self.env_of(env={"A": "1", "HOME": "/tmp"}, **args)
            self.assertEqual((env["A"], env["HOME"]), ("1", "/tmp"))
            self.assertIn("PATH", env)
        for sandbox, names in (({}, {b"A"}), ({"profile": "full"}, {b"A", b"COOP_PROCESS"})):
            args = {"argv": ["/usr/bin/env", "-0"], "env": {"A": "1"}, "env_mode": "replace", "sandbox": sandbox}
            record = self.client.call("spawn", **args)["process"]
            self.ended(record["id"])
            self.assertEqual({line.split(b"=")[0] for line in self.output(record["id"]).split(b"\0") if line}, names)
        env = self.env_of(env={"B": "2"}, env_remove=["HOME", "B"])
        self.assertNotIn("HOME", env)
        self.assertEqual(env["B"], "2")
        env = self.env_of(env_remove=["USER"])
        self.assertNotIn("USER", env)

    def test_b086_odd_values(self):
        """Empty values, equal signs, newlines and non-ASCII come through."""
        given = {"EMPTY": "", "EQ": "a=b=c", "LINES": "x\ny", "UML": "äöü€", "LONG": "v" * 60000}
        env = self.env_of(env=given)
        self.assertEqual({name: env[name] for name in given}, given)

    def test_b089_values_appear_nowhere(self):
        """Values given in env show in no record, list, follow, error, log or file; the names do."""
        env = {"API_KEY": SECRET, "OTHER": SECRET + "2"}
        process = self.spawn("sleep", "300", env=env)["id"]
        spooled = self.spawn("true", env=env, overflow="spool")["id"]
        self.ended(spooled)
        follower = self.connect()
        request = follower.submit("follow", {"id": process})
        texts = [
            self.status(process),
            self.status(spooled),
            self.client.call("list", include_finished=True),
            self.client.call("info"),
            follower.item(request),
        ]
        for args in (
            {"argv": ["/nonexistent"], "env": env},
            {"argv": ["true"], "env": {"X": SECRET + "\0"}},
            {"argv": ["true"], "env": {"bad-name": SECRET}, "cwd": "/nonexistent"},
            {"argv": ["true"], "env": env, "cwd": "/nonexistent"},
            {"argv": ["true"], "env": env, "env_mode": "wrong"},
        ):
            with self.assertRaises(Exception) as caught:
                self.client.call("spawn", **args)
            texts.append(str(caught.exception))
        self.assertNotIn(SECRET, json.dumps(texts))
        self.assertIn("API_KEY", self.status(process)["env_names"])
        self.client.call("kill", id=process)
        for folder, _, files in os.walk(self.keeper.place.dir):
            for name in files:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        self.assertNotIn(SECRET.encode(), file.read(), name)


class PlaceTest(KeeperCase):
    def cwd_of(self, **args):
        record = self.spawn("/bin/pwd", "-P", **args)
        self.ended(record["id"])
        return record["cwd"], self.output(record["id"]).decode().rstrip("\n")

    def test_b090_cwd(self):
        """Resolved once and shown resolved; absent is the workspace, without one the home, where relative ones start; the keeper's own is
        never meant."""
        home, work = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir), os.path.realpath(self.work)
        self.assertEqual(self.cwd_of(), (work, work))
        nowhere = {"sandbox": {"profile": "read-only"}}
        self.assertEqual(self.cwd_of(**nowhere), (home, home))
        self.assertEqual(self.cwd_of(cwd=".", **nowhere), (home, home))
        real = self.work / "real"
        real.mkdir()
        (self.work / "link").symlink_to(real)
        shown = os.path.realpath(real)
        self.assertEqual(self.cwd_of(cwd=str(self.work / "link")), (shown, shown))
        relative = os.path.relpath(real, home)
        self.assertEqual(self.cwd_of(cwd=relative), (shown, shown))

    def test_b090_bad_cwd(self):
        """Missing, a file, empty, NUL: invalid_input naming cwd; nothing starts."""
        file = self.keeper.place.dir / "file"
        file.write_text("")
        for bad in (str(self.keeper.place.dir / "missing"), str(file), "\0", "/tmp\0x", 7, "x" * 5000):
            with self.subTest(bad=str(bad)[:20]), self.assertRaises(Exception) as caught:
                self.spawn("true", cwd=bad)
            self.assertIn(caught.exception.code, ("invalid_input", "too_large"))
            self.assertEqual(caught.exception.details["field"], "cwd")
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])


def dirty_start():
    """Starts the keeper with what a careless parent leaves: extra descriptors, ignored and blocked signals."""
    plain_limits()
    for number in (40, 41, 200):
        os.dup2(2, number)
        os.set_inheritable(number, True)
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGPIPE, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGHUP})


class CleanChildTest(KeeperCase):
    def test_b092_descriptors_signals_group(self):
        """The child has 0, 1, 2 only, default dispositions, an empty mask, its own group; also from a careless parent."""
        keeper = self.start_keeper(before_exec=dirty_start)
        client = keeper.clients[0]
        for kind in ("pipe", "pty"):
            with self.subTest(kind=kind):
                argv = ["/usr/bin/python3", "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"]
                looked = client.call("spawn", argv=argv, kind=kind)["process"]["id"]
                client.call("wait", id=looked)
                stream = "stdout" if kind == "pipe" else "pty"
                text = client.reply("read", {"id": looked, "stream": stream}).bytes(stream).strip()
                self.assertEqual(text, b"[0, 1, 2, 3]", "3 is the folder being listed")
                record = client.call("spawn", argv=["cat", "/proc/self/status"], kind=kind)
                process = record["process"]
                client.call("wait", id=process["id"])
                text = client.reply("read", {"id": process["id"], "stream": stream}).bytes(stream)
                masks = dict(line.split(b":\t") for line in text.split(b"\n") if line.startswith(b"Sig") and b"/" not in line)
                self.assertEqual({int(masks[name], 16) for name in (b"SigBlk", b"SigIgn", b"SigCgt")}, {0}, masks)
                self.assertEqual(process["process_group_id"], process["pid"])

    def test_b092_own_session(self):
        """Its own session, so that no terminal of the keeper's can be reached."""
        record = self.sh("read x </proc/self/stat; echo $$ $x; exec sleep 300")
        text = self.wait_output(record["id"], b"\n")
        own, fields = int(text.split()[0]), text.rpartition(b")")[2].split()
        self.assertEqual((int(fields[2]), int(fields[3]), int(fields[4])), (own, own, 0))
        self.assertEqual(procs.stat(record["pid"])[2:], (record["pid"], record["pid"]))
        self.assertNotEqual(procs.stat(self.keeper.pid)[3], record["pid"])


class ShellTest(KeeperCase):
    FIELDS = {"id", "label", "path", "available", "supports_login", "supports_interactive", "default_args", "login_args"}

    def test_b094_list_shells(self):
        """Every shell has all fields; the default is one of the available ones."""
        answer = self.client.call("list_shells")
        self.assertTrue(answer["shells"])
        for shell in answer["shells"]:
            self.assertLessEqual(self.FIELDS, set(shell))
            self.assertEqual(os.path.exists(shell["path"]) and os.access(shell["path"], os.X_OK), shell["available"])
        available = [shell["id"] for shell in answer["shells"] if shell["available"]]
        self.assertIn(answer["default"], available)
        self.assertIn("sh", available)

    def shell(self, command, **args):
        record = self.client.call("spawn", mode="shell", command=command, **args)["process"]
        self.ended(record["id"])
        return record, self.output(record["id"])

    def test_b094_mode_shell(self):
        """command runs with the default shell or the chosen one, by id or path; login and interactive only if asked."""
        record, out = self.shell("echo $((1+2)) | tr 3 x")
        self.assertEqual((out, record["mode"], record["command"]), (b"x\n", "shell", "echo $((1+2)) | tr 3 x"))
        _, out = self.shell("readlink /proc/$$/exe; :", shell="bash")
        self.assertIn(b"bash", out)
        _, out = self.shell("readlink /proc/$$/exe; :", shell="/bin/sh")
        self.assertEqual(out.strip(), os.path.realpath("/bin/sh").encode())
        _, out = self.shell("shopt -q login_shell && echo login; case $- in *i*) echo inter;; esac; :", shell="bash")
        self.assertEqual(out, b"")
        _, out = self.shell("shopt -q login_shell && echo login; :", shell="bash", login=True)
        self.assertTrue(out.endswith(b"login\n"))
        _, out = self.shell("case $- in *i*) echo inter;; esac; :", shell="bash", interactive=True)
        self.assertIn(b"inter\n", out)

    def test_b094_wrong_forms(self):
        """Unknown shell, command without shell mode, argv with it, missing command: invalid_input with the field."""
        cases = [
            ({"mode": "shell", "command": "true", "shell": "no-such-shell"}, "shell"),
            ({"mode": "shell", "command": "true", "shell": "/etc/passwd"}, "shell"),
            ({"mode": "shell"}, "command"),
            ({"mode": "shell", "command": "true", "argv": ["true"]}, "argv"),
            ({"argv": ["true"], "command": "true"}, "command"),
            ({"argv": ["true"], "shell": "sh"}, "shell"),
            ({"argv": ["true"], "login": True}, "login"),
            ({"mode": "fish", "argv": ["true"]}, "mode"),
        ]
        for args, field in cases:
            with self.subTest(args=args), self.refused("invalid_input", field):
                self.client.call("spawn", **args)

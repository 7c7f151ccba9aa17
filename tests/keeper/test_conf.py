"""coop.conf: every key is taken, whatever is not known is refused with its line, and a bad file changes nothing."""

import os
import random
import signal

from lib import procs
from lib.client import KeeperError
from lib.place import Place
from lib.records import LABELS, ROOT, SECRET, RecordsCase

ORDINARY = 12345  # a user that is nobody else

# Key: a value as one may write it, and what info shows of it.
SETTINGS = {
    "max_running": ("500", 500),
    "agent_max_running": ("5", 5),
    "principal_max_running": ("600", 600),
    "host_max_running": ("700", 700),
    "max_retained": ("0", 0),
    "max_finished": ("10", 10),
    "max_receipts": ("20", 20),
    "max_agents": ("30", 30),
    "max_tokens": ("40", 40),
    "max_sessions": ("7", 7),
    "max_events": ("16", 16),
    "max_connections": ("50", 50),
    "agent_max_connections": ("9", 9),
    "login_max_connections": ("8", 8),
    "login_timeout_ms": ("3s", 3000),
    "hold_idle_ms": ("30s", 30000),
    "principal_buffer_bytes": ("2G", 2 << 30),
    "spool_stream_bytes": ("64K", 65536),
    "spool_total_bytes": ("2M", 2 << 20),
    "idle_exit_ms": ("1h", 3600000),
    "max_lifetime_ms": ("2d", 172800000),
    "persistent_idle_ms": ("90s", 90000),
    "exit_retention_ms": ("15m", 900000),
    "min_retention_ms": ("500ms", 500),
    "max_history": ("1000", 1000),
    "audit_max_bytes": ("8192", 8192),
    "audit_files": ("3", 3),
}
EVERYTHING = (
    "# a comment\n; another\n\n[keeper]\n"
    + "".join(f"{name} = {value}\n" for name, (value, _) in SETTINGS.items())
    + "[policy]\ndenied_commands = forbidden\ndenied_commands=/usr/bin/forbidden\nallowed_commands = true\n"
    + "allowed_commands: echo\ndeny_patterns = echo *never*\nmode = enforce\n"
    + "".join(f"risk.{label} = {'deny' if label == 'deny_pattern' else 'allow'}\n" for label in LABELS)
    + "[environment]\ninherit = CI_*\ndeny = CI_PRIVATE\nset = PAGER=cat\nset = GREETING=a = b ; c\n"
    + "[sandbox]\nprofile = workspace-write\nslots = 4\nprivileged = no\nat_most = full\nat_most_network = host\nprotect = .ci\n"
    + "[profile build]\nbase = workspace-write\nnetwork = host\nmemory_bytes = 4G\nprotect_only =\n[profile empty]\n"
    + "[records]\nenabled = yes\n[audit]\nenabled = yes\n[keeper]\n"
)


class AcceptedTest(RecordsCase):
    conf = EVERYTHING

    def test_every_key_is_in_force(self):
        """A file with every key: info shows the limits, policy and environment are as it says."""
        info = self.client.call("info")
        self.assertEqual({name: info["settings"][name] for name in SETTINGS}, {name: shown for name, (_, shown) in SETTINGS.items()})
        self.assertEqual(set(info["settings"]) - set(SETTINGS), set(), "a setting that no test knows")
        self.assertEqual(info["configuration"]["path"], str(self.conf_path))
        self.assertIsNone(info["configuration"]["error"])
        self.assertTrue(info["configuration"]["loaded_at"])
        verdicts = {argv: self.client.call("check", argv=argv.split())["status"] for argv in ("true", "echo x", "ls", "echo x never y")}
        self.assertEqual(verdicts, {"true": "allowed", "echo x": "allowed", "ls": "blocked", "echo x never y": "blocked"})
        self.assertEqual(self.client.hello["inherit"], ["CI_*"])

    def test_rules_name_their_line(self):
        """A decision of the operator's policy says in which line it stands."""
        line = EVERYTHING.splitlines().index("deny_patterns = echo *never*") + 1
        answer = self.client.call("check", argv=["echo", "never"])
        self.assertIn(f"coop.conf:{line}", [decision["source"] for decision in answer["command_policy"]["decisions"]])


class EnvironmentTest(RecordsCase):
    conf = "[environment]\ninherit = CI_*\ndeny = LANG\ndeny = *_X\nset = GREETING=a ; b\nset = EMPTY=\nset = PATH=/usr/bin:/bin\n"

    def env_of(self, **args):
        process = self.spawn("/usr/bin/env", "-0", **args)["id"]
        self.ended(process)
        return dict(line.split("=", 1) for line in self.output(process).decode().split("\0") if line)

    def test_set_and_deny(self):
        """Values of set are in every command's environment but a replaced one; denied names do not come from a door."""
        env = self.env_of(base_env={"LANG": "C", "CI_X": "1", "CI_Y": "2"})
        self.assertEqual((env["EMPTY"], env.get("CI_X"), env["CI_Y"]), ("", None, "2"))
        self.assertEqual(env["GREETING"], "a ; b")
        self.assertNotIn("LANG", env)
        self.assertEqual(self.env_of(base_env={"PATH": "/bin"})["PATH"], "/bin")
        self.assertEqual(self.env_of(env={"GREETING": "mine", "LANG": "C"})["GREETING"], "mine")
        self.assertNotIn("GREETING", self.env_of(env_mode="replace", env={"A": "1"}))

    def test_order_of_settings(self):
        """COOP_SET goes over the file, --set over COOP_SET, and a reload keeps both."""
        self.write_conf("[keeper]\nmax_finished = 10\nmax_events = 100\nmax_sessions = 5\n")
        self.settings = {"max_finished": 30}
        self.restart(env={"COOP_SET": "max_finished=20 max_events=200"})
        for _ in range(2):
            shown = self.client.call("info")["settings"]
            self.assertEqual([shown[name] for name in ("max_finished", "max_events", "max_sessions")], [30, 200, 5])
            self.client.call("reload")


class RefusedTest(RecordsCase):
    BAD = [
        ("[keeper]\nmax_runing = 5\n", 2, "max_runing"),
        ("[keeper]\n\n# x\nmax_running = 0\n", 4, "max_running"),
        ("[keeper]\nmax_running = -1\n", 2, "max_running"),
        ("[keeper]\nmax_running = 99999999999999999999999\n", 2, "max_running"),
        ("[keeper]\nmax_running = five\n", 2, "max_running"),
        ("[keeper]\nmax_running = 5 6\n", 2, "max_running"),
        ("[keeper]\nmax_running =\n", 2, "max_running"),
        ("[keeper]\nmax_running = 5K\n", 2, "max_running"),
        ("[keeper]\nspool_stream_bytes = 5s\n", 2, "spool_stream_bytes"),
        ("[keeper]\nmax_running = 5\nmax_running = 5\n", 3, "twice"),
        ("[keepers]\n", 1, "section"),
        ("[keeper\n", 1, ""),
        ("[keeper] max_running = 5\n", 1, ""),
        ("[]\n", 1, "section"),
        ("max_running = 5\n", 1, ""),
        ("[keeper]\nmax_running\n", 2, ""),
        ("[keeper]\n= 5\n", 2, ""),
        ("[policy]\nallow = x\n", 2, "allow"),
        ("[policy]\nrisk.nonsense = deny\n", 2, "nonsense"),
        ("[policy]\nrisk.sudo = maybe\n", 2, "sudo"),
        ("[policy]\nmode = off\n", 2, "mode"),
        ("[policy]\nmode = enforce\nmode = enforce\n", 3, "twice"),
        ("[sandbox]\nnetwork = everywhere\n", 2, "network"),
        ("[sandbox]\nmemory_bytes = 64X\n", 2, "memory_bytes"),
        ("[sandbox]\n\nprofile = gone\n", 3, "profile"),
        ("[sandbox]\nuser = root\n", 2, "root"),
        ("[profile full]\n", 1, "built in"),
        ("[keeper]\n[profile a]\nnew_privileges = yes\n", 3, "base = full"),
        ("[profile a]\nslots = 1\n", 2, "slots"),
        ("[policy]\ndeny_patterns = " + "x" * 1025 + "\n", 2, ""),
        ("[policy]\n" + "deny_patterns = x\n" * 257, 258, ""),
        ("[environment]\ninherit = 1X\n", 2, ""),
        ("[environment]\ninherit = A*B\n", 2, ""),
        ("[environment]\nset = NOVALUE\n", 2, ""),
        ("[environment]\nset = A=1\nset = A=2\n", 3, ""),
        ("[environment]\nsecret = x\n", 2, "secret"),
        ("[records]\nenabled = maybe\n", 2, "enabled"),
        ("[audit]\npath = /x\n", 2, "path"),
        ("[keeper]\nmax_running = 5\0\n", 2, ""),
        ("[keeper]\nmax_running = \x015\n", 2, ""),
        (b"[keeper]\n# \xff\n", 2, "UTF-8"),
        ("[keeper]\n#" + "x" * 9000 + "\n", 2, ""),
        ("[keeper]\n" * 3 + "oops", 4, ""),
    ]

    def assert_as_before(self, error=True):
        """The settings of the first file are in force; info says whether there was a bad one since."""
        info = self.client.call("info")
        self.assertEqual(info["settings"]["max_events"], 100)
        self.assertEqual(bool(info["configuration"]["error"]), error, info["configuration"])
        return info["configuration"]["error"]

    def test_reload_refuses_with_the_line(self):
        """Each fault is refused by reload with its line, in the message and the details; what held stays in force."""
        self.write_conf("[keeper]\nmax_events = 100\n")
        self.client.call("reload")
        for text, line, word in self.BAD:
            with self.subTest(text=text[:60]):
                self.write_conf(text)
                with self.refused("invalid_input", "configuration", word) as caught:
                    self.client.call("reload")
                self.assertEqual(caught.exception.details["line"], line)
                self.assertIn(f"coop.conf:{line}:", caught.exception.message)
                self.assertIn(f"coop.conf:{line}:", self.assert_as_before())
                self.wait_log(f"coop.conf:{line}:")
        self.write_conf("[keeper]\nmax_events = 100\n")
        self.client.call("reload")
        self.assert_as_before(error=False)

    def test_start_refuses_with_the_line(self):
        """A keeper that starts with such a file says so in one line and does not start."""
        self.shut_down()
        for text, line, word in self.BAD[:: len(self.BAD) // 8]:
            with self.subTest(text=text[:60]):
                self.write_conf(text)
                self.refuses_to_start(f"coop.conf:{line}:", word)

    def test_garbage(self):
        """Two hundred files of random bytes and of good lines that were damaged: refused or taken, never a crash."""
        self.write_conf("[keeper]\nmax_events = 100\n")
        self.client.call("reload")
        rng = random.Random(20261115)
        taken = 0
        for number in range(200):
            if number % 2:
                data = rng.randbytes(rng.choice((1, 10, 100, 5000, 100000)))
            else:
                good = bytearray(EVERYTHING.replace("max_events = 16", "max_events = 100").encode())
                for _ in range(rng.randint(1, 30)):
                    good[rng.randrange(len(good))] = rng.randrange(256)
                data = bytes(good)
            self.write_conf(data)
            try:
                self.client.call("reload")
                taken += 1
            except KeeperError as error:
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", "configuration"), number)
                self.assertTrue(self.client.call("info")["configuration"]["error"])
        self.assertLess(taken, 50)
        self.assertEqual(self.client.call("info")["pid"], self.keeper.pid)

    def test_file_as_a_whole(self):
        """A file that others may write to, too large, a folder, a pipe, or one that is gone: refused, and the old is in force."""
        self.write_conf("[keeper]\nmax_events = 100\n")
        self.client.call("reload")

        def writable(mode):
            self.write_conf("[keeper]\nmax_events = 99\n")
            self.conf_path.chmod(mode)

        cases = {
            "group": lambda: writable(0o620),
            "others": lambda: writable(0o602),
            "large": lambda: self.write_conf("#" * 100 + "\n" + "# x\n" * (1 << 18)),
            "gone": lambda: None,
            "folder": self.conf_path.mkdir,
            "pipe": lambda: os.mkfifo(self.conf_path, 0o600),
        }
        if ROOT:
            cases["owner"] = lambda: (self.write_conf("[keeper]\n"), os.chown(self.conf_path, 12345, 12345))
        for name, make in cases.items():
            with self.subTest(case=name):
                self.remove_conf()
                make()
                with self.refused("invalid_input", "configuration", "coop.conf"):
                    self.client.call("reload")
                self.assert_as_before()
        self.remove_conf()
        target = self.place.dir / "target"
        self.write_conf("[keeper]\nmax_events = 101\n", target)
        self.conf_path.symlink_to(target)
        self.client.call("reload")
        self.assertEqual(self.client.call("info")["settings"]["max_events"], 101, "a link to a good file will do")

    def remove_conf(self):
        self.conf_path.rmdir() if self.conf_path.is_dir() else self.conf_path.unlink(missing_ok=True)

    def test_values_are_not_told(self):
        """A fault in a line with a value of the environment does not show the value."""
        for lines in (f"set = A-B={SECRET}\n", f"sett = A={SECRET}\n", f"set = A={SECRET}\n" * 2, f"set = {SECRET}\n"):
            self.write_conf("[environment]\n" + lines)
            with self.refused("invalid_input") as caught:
                self.client.call("reload")
            self.assertNotIn(SECRET, str(caught.exception) + self.place.log_tail())


class ReloadTest(RecordsCase):
    def reloaded(self, value):
        procs.wait_until(lambda: self.client.call("info")["settings"]["max_events"] == value, "the new file is in force")

    def test_reload_and_signals(self):
        """reload, SIGHUP to the keeper and SIGHUP to the guard each apply the file as it is then; nothing else happens."""
        running = self.spawn("sleep", "300")["id"]
        self.assertEqual(self.client.call("reload")["path"], str(self.conf_path))
        guard = self.client.call("info")["guard_pid"]
        for value, send in ((101, None), (102, self.keeper.pid), (103, guard)):
            with self.subTest(to=send):
                self.write_conf(f"[keeper]\nmax_events = {value}\n")
                self.client.call("reload") if send is None else os.kill(send, signal.SIGHUP)
                self.reloaded(value)
                self.assertEqual(self.status(running)["state"], "running")
        self.assertEqual(self.client.call("info")["pid"], self.keeper.pid)

    def test_signal_with_a_bad_file(self):
        """SIGHUP with a fault in the file: the old stays in force, info and log say so; the next good one is taken."""
        self.write_conf("[keeper]\nmax_events = 100\n[policy]\ndenied_commands = cat\n")
        self.client.call("reload")
        for to in (self.keeper.pid, self.client.call("info")["guard_pid"]):
            self.write_conf("[keeper]\nmax_events = 200\nwrong = 1\n")
            os.kill(to, signal.SIGHUP)
            error = procs.wait_until(lambda: self.client.call("info")["configuration"]["error"], "the fault is told")
            self.assertIn("coop.conf:3:", error)
            self.wait_log("coop.conf:3:")
            self.assertEqual(self.client.call("info")["settings"]["max_events"], 100)
            self.assertEqual(self.client.call("check", argv=["cat"])["status"], "blocked")
            self.write_conf("[keeper]\nmax_events = 100\n[policy]\ndenied_commands = cat\n")
            self.client.call("reload")
            self.assertIsNone(self.client.call("info")["configuration"]["error"])

    def test_a_file_that_vanishes_takes_no_rule_back(self):
        """Without COOP_CONF a file need not be there; but one that was, and is not any more, is a fault: its rules stay."""
        # Root's file is below /etc; an ordinary user's is where a test can put it.
        place = Place(ORDINARY if ROOT else None)
        home = place.dir / "config"
        path = home / "coop" / "coop.conf"
        path.parent.mkdir(parents=True)
        home.chmod(0o755)
        self.write_conf("[policy]\ndenied_commands = cat\n", path)
        path.chmod(0o644)
        keeper = self.start_keeper(
            place=place, env={"COOP_CONF": "", "XDG_CONFIG_HOME": str(home)}, before_exec=place.become_owner if ROOT else None)
        client = keeper.clients[0]
        self.assertEqual(client.call("info")["configuration"]["path"], str(path))
        path.unlink()
        with self.refused("invalid_input"):
            client.call("reload")
        self.assertEqual(client.call("check", argv=["cat"])["status"], "blocked")
        self.assertIn(str(path), client.call("info")["configuration"]["error"])
        self.write_conf("", path)
        path.chmod(0o644)
        client.call("reload")
        self.assertEqual(client.call("check", argv=["cat"])["status"], "allowed")

    def test_rules_of_a_new_file(self):
        """Policy and limits hold for what is asked from then on; what runs goes on, also over a lower limit."""
        agent, other = self.agent("main/a"), self.agent("main/b")
        ids = [agent.call("spawn", argv=["sleep", "300"])["process"]["id"] for _ in range(3)]
        self.write_conf("[keeper]\nagent_max_running = 2\n[policy]\ndenied_commands = cat\n")
        self.client.call("reload")
        with self.refused("registry_full"):
            agent.call("spawn", argv=["true"])
        with self.refused("permission_denied"):
            other.call("spawn", argv=["cat"])
        self.assertEqual({record["state"] for record in agent.call("status", ids=ids)["processes"]}, {"running"})

    def test_only_the_operator(self):
        """No other agent may reload."""
        with self.refused("permission_denied"):
            self.agent("main/a").call("reload")

    def test_many_signals_while_working(self):
        """A hundred SIGHUPs, with good and bad files in turn, while four agents work: nobody notices."""
        agents = [self.agent(f"main/a{i}") for i in range(4)]
        for number in range(100):
            self.write_conf("[keeper]\nmax_events = 100\n" + ("bad" if number % 2 else ""))
            os.kill(self.keeper.pid, signal.SIGHUP)
            client = agents[number % 4]
            process = client.call("spawn", argv=["sh", "-c", "exit 3"])["process"]["id"]
            self.assertEqual(client.call("wait", id=process)["exit_code"], 3)

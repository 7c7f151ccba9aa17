"""History, events, audit, policy and configuration from the command line."""

import json
import signal

from lib import procs
from lib.cli import CliCase
from lib.place import patience


class HistoryTest(CliCase):
    def rows(self, *options, wanted):
        """What history answers, once what has ended is written down."""
        procs.wait_until(lambda: len(self.json("history", *options)) >= wanted, "the records are written")
        return self.json("history", *options)

    def test_after_a_restart(self):
        """What was run is listed, the newest first, also by the next keeper."""
        self.coop("run", "--", "true")
        self.coop("run", "--", "false", code=1)
        self.rows(wanted=2)
        self.coop("shutdown")
        rows = self.rows(wanted=2)
        self.assertEqual([row["command"] for row in rows], ["false", "true"])
        self.assertEqual([row["exit"]["code"] for row in rows], [1, 0])
        lines = self.out("history").decode().splitlines()
        self.assertRegex(lines[0], r"^STARTED +ID +AGENT +STATE +TOOK +COMMAND$")
        self.assertRegex(lines[1], r"Z  psh-\S+ +main +exited 1 +\d+ms  false$")

    def test_bounds(self):
        """--since and --until take ages and times, --limit goes over pages and says that there is more."""
        for _ in range(3):
            self.coop("run", "--", "true")
        self.rows(wanted=3)
        self.assertEqual(len(self.json("history", "--since", "1h")), 3)
        self.assertEqual(self.json("history", "--until", "1h"), [])
        self.assertEqual(self.json("history", "--until", "2001-02-03T04:05:06Z"), [])
        self.assertEqual(len(self.json("history", "--since", "2001-02-03", "--agent", "main")), 3)
        _, err = self.coop("history", "--limit", "2")
        self.assertIn(b"there are more", err)
        self.assertIn("later", self.refusal("history", "--since", "1h", "--until", "2h", code=2))


class EventsTest(CliCase):
    def watch(self, *options):
        process = self.start("events", *options)
        return process

    def line(self, process):
        return process.stdout.readline().decode()

    def test_lines(self):
        """A line for each event, replay first; Ctrl-C ends it without a failure."""
        self.coop("run", "--", "true")
        process = self.watch()
        self.assertRegex(self.line(process), r"Z exited +psh-\S+ +main  true: exited 0\n$")
        self.coop("run", "--", "echo", "x")
        self.assertRegex(self.line(process), r"Z started +psh-\S+ +main  echo: pid \d+")
        self.assertRegex(self.line(process), r"Z output_first +psh-\S+ +main  echo: stdout")
        self.assertRegex(self.line(process), r"Z exited .*: exited 0, stdout 2 bytes\n$")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=patience(30)), (b"", b""))
        self.assertEqual(process.returncode, 0)

    def test_json(self):
        """With --json each line is an object; --no-replay leaves out what has ended."""
        self.coop("run", "--", "true")
        process = self.watch("--json", "--no-replay")
        client = self.client()
        procs.wait_until(lambda: client.call("info")["subscribers"] > 0, "it has subscribed")
        self.coop("run", "--", "false", code=1)
        started = json.loads(self.line(process))
        self.assertEqual((started["event"], started["process"]["label"]), ("started", "false"))
        exited = json.loads(self.line(process))
        self.assertEqual((exited["event"], exited["process"]["exit"]["code"]), ("exited", 1))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=patience(30))

    def test_reader_goes(self):
        """A reader that has gone ends it quietly, also while nothing happens."""
        self.coop("run", "--", "true")
        process = self.watch()
        self.line(process)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.wait(patience(30)), 0)

    def test_keeper_goes(self):
        """A keeper that ends is a failure, and said."""
        self.coop("run", "--", "true")
        process = self.watch()
        self.line(process)
        self.coop("shutdown")
        _, err = process.communicate(timeout=patience(30))
        self.assertEqual((process.returncode, err.count(b"\n")), (1, 1))


class AuditTest(CliCase):
    def test_tail_and_verify(self):
        """A line for the attempt and one for the end; verify says that all is there, and finds a changed line."""
        self.coop("run", "--", "echo", "audited words")
        self.coop("run", "--", "/nowhere/x", code=127)
        text = self.out("audit", "tail").decode()
        self.assertRegex(text, r"(?m)^SEQ +AT +WHAT +AGENT +TEXT$")
        self.assertRegex(text, r"(?m) spawn allowed +main +echo .*audited words")
        self.assertRegex(text, r"(?m) end .* of \d+: exited 0$")
        lines = self.json("audit", "tail", "-n", "2")
        self.assertEqual([line["kind"] for line in lines], ["spawn", "end"])
        self.assertRegex(self.out("audit", "verify").decode(), r"^good: \d+ lines in 1 file, 1 to \d+\n$")
        path = next(self.place.state.rglob("audit.log"))
        path.write_bytes(path.read_bytes().replace(b"audited words", b"altered words"))
        self.assertIn("the audit is not whole", self.refusal("audit", "verify", code=1))
        out, _ = self.coop("audit", "verify", "--json", code=1)
        self.assertIs(json.loads(out)["good"], False)


class PolicyTest(CliCase):
    def test_blocked_command(self):
        """run says the reason, the rule and what allows it, with exit code 126; --json has the whole verdict."""
        text = self.refusal("run", "--shell", "--", "curl http://localhost/x | sh", code=126)
        self.assertIn("risk.curl_pipe_shell = allow in [policy] of coop.conf", text)
        self.assertIn("standard policy", text)
        (line,) = self.json_lines("run", "--shell", "--", "curl http://localhost/x | sh", code=126)
        self.assertEqual((line["type"], line["error"]["code"]), ("error", "permission_denied"))
        self.assertEqual(line["error"]["details"]["status"], "blocked")
        self.assertEqual(self.refusal("run", "-d", "--shell", "--", "curl http://localhost/x | sh", code=126), text)

    def test_check(self):
        """check judges and starts nothing; the exit code tells."""
        self.assertRegex(self.out("policy", "check", "--", "ls", "-l").decode(), r"^allowed\b")
        text = self.out("policy", "check", "-c", "curl http://localhost/x | sh", code=1).decode()
        self.assertRegex(text, r"^blocked\n")
        self.assertRegex(text, r"(?m)^  deny +standard policy: .*\[.*curl_pipe_shell.*\]")
        self.assertIn("risk.curl_pipe_shell = allow", text)
        self.assertEqual(self.json("policy", "check", "--", "true")["status"], "allowed")
        self.add_agent("a", "--deny-command", "make")
        self.assertEqual(self.json("policy", "check", "--agent", "a", "--", "make", code=1)["status"], "blocked")
        self.assertIn("coop agent set main/a", self.out("policy", "check", "--agent", "a", "--", "make", code=1).decode())
        self.coop("policy", "check", "--", "make")
        self.assertEqual(self.json("ps", "-a"), [])

    def test_modes(self):
        """An agent whose commands are only judged is told so."""
        self.add_agent("a", "--mode", "dry_run")
        token = self.out("token", "new", "a").decode().strip()
        text = self.refusal("run", "--", "true", code=126, env={**self.env, "COOP_TOKEN": token})
        self.assertIn("mode is dry_run", text)
        self.assertEqual(self.json("policy", "check", "--agent", "a", "--", "true", code=1)["status"], "dry_run")


class ReloadTest(CliCase):
    def test_reload(self):
        """reload reads the file again; a fault is named with its line, and what held before stays."""
        self.assertIn("no keeper is running", self.refusal("reload", code=1))
        self.coop("run", "--", "true")
        self.place.conf.write_text("[policy]\ndenied_commands = make\n")
        self.assertEqual(self.out("reload"), f"read {self.place.conf}\n".encode())
        self.refusal("run", "--", "make", "--version", code=126)
        self.place.conf.write_text("[policy]\nnonsense = 1\n")
        text = self.refusal("reload", code=1)
        self.assertIn("2", text)
        self.assertIn("nonsense", text)
        self.refusal("run", "--", "make", "--version", code=126)
        self.assertIn("not in force", self.out("info").decode())
        self.assertEqual(self.json("info")["configuration"]["path"], str(self.place.conf))

    def test_inherited_variables(self):
        """What the operator lets in reaches commands from the caller's environment; the token never does."""
        self.place.conf.write_text("[environment]\ninherit = GOFLAGS\ninherit = CI_*\ninherit = COOP_*\n")
        env = {**self.env, "GOFLAGS": "-v", "CI_JOB": "7", "OTHER": "x"}
        seen = self.out("run", "--", "env", env=env).decode().split("\n")
        self.assertIn("GOFLAGS=-v", seen)
        self.assertIn("CI_JOB=7", seen)
        self.assertNotIn("OTHER=x", seen)
        token = self.out("token", "new").decode().strip()
        self.assertNotIn(token.encode(), self.out("run", "--", "env", env={**env, "COOP_TOKEN": token}))


class ChildrenTest(CliCase):
    def test_keeper_has_no_token(self):
        """A keeper that a command with a token starts does not get it into its environment."""
        self.coop("run", "--", "true")
        token = self.out("token", "new").decode().strip()
        self.coop("shutdown")
        self.coop("run", "--", "true", env={**self.env, "COOP_TOKEN": token})
        pid = self.json("info")["pid"]
        with open(f"/proc/{pid}/environ", "rb") as file:
            self.assertNotIn(b"COOP_TOKEN=", file.read())


class CompletionTest(CliCase):
    def test_words(self):
        """bash offers the verbs of groups, their options, values, agents, and starts no keeper for it."""
        self.assertEqual(self.offered("agent", ""), ["add", "ls", "show", "set", "rm", "--json", "--help"])
        self.assertEqual(self.offered("agent", "add", "--max"), ["--max-running", "--max-buffer", "--max-finished"])
        self.assertEqual(self.offered("agent", "set", "x", "--mode", "d"), ["dry_run"])
        self.assertEqual(self.offered("agent", "set", "x", "--unset", "deny"),
                         ["deny-command", "deny-pattern", "deny-read", "deny-write"])
        self.assertEqual(self.offered("help", "session", "n"), ["new"])
        self.assertEqual(self.offered("ps", "--tok"), ["--token-file"])
        self.assertEqual(self.offered("agent", "show", ""), [])
        self.assertFalse(self.place.socket.exists())
        self.coop("agent", "add", "tester")
        self.assertEqual(self.offered("agent", "show", "main/"), ["main/tester"])
        self.assertEqual(self.offered("ps", "--agent", ""), ["main", "main/tester"])

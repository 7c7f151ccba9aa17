"""History, events, audit and configuration by the command line, over restarts and for several agents (B-125, B-126, B-130)."""

import json
import signal

from lib.cli import CliCase
from lib.procs import wait_until


class HistoryCase(CliCase):
    def value(self, *args, **options):
        return json.loads(self.out(*args, "--json", **options))

    def rows(self, *args, **options):
        found = self.json("history", *args, **options)
        return found["processes"] if isinstance(found, dict) else found

    def run_code(self, code):
        self.coop("run", "--", "sh", "-c", f"exit {code}", code=code)

    def settled(self, count):
        """History once it has so many rows that are all ended."""

        def look():
            rows = self.rows()
            return len(rows) == count and all(row["ended_at"] for row in rows) and rows

        return wait_until(look, f"{count} rows", interval=0.1)

    def agent(self, name):
        """Adds an agent; the environment of a program that acts as it."""
        self.add_agent(name)
        return {**self.env, "COOP_TOKEN": self.out("token", "new", name).decode().strip()}


class HistoryTest(HistoryCase):
    def test_b125_history_after_a_restart(self):
        """What was run is listed newest first, also by the next keeper, and status of an old id answers."""
        for code in (0, 3):
            self.run_code(code)
        live = self.detached("sleep", "300", options=["--tag", "live"])
        self.coop("shutdown", "--grace", "0s")
        rows = self.settled(3)
        self.assertEqual([row["end_cause"] for row in rows], ["shutdown", "self_exit", "self_exit"])
        self.assertEqual([row["exit"]["code"] for row in rows[1:]], [3, 0])
        self.assertEqual(self.json("status", live)["end_cause"], "shutdown")
        text = self.out("history").decode()
        places = [text.index(row["id"]) for row in rows]
        self.assertEqual(places, sorted(places))
        self.assertEqual(self.json("ps", "-q"), [])

    def test_b125_selection(self):
        """--agent, --since, --until and --limit select; wrong ones are refused."""
        env = self.agent("a")
        self.coop("run", "--", "true", env=env)
        self.run_code(3)
        self.settled(2)
        self.assertEqual([row["agent_path"] for row in self.rows("--agent", "a")], ["main/a"])
        self.assertEqual([row["agent_path"] for row in self.rows(env=env)], ["main/a"])
        self.assertEqual(len(self.rows("--limit", "1")), 1)
        self.assertEqual(len(self.rows("--since", "1h")), 2)
        self.assertEqual(self.rows("--until", "1h"), [])
        self.assertEqual(len(self.rows("--since", "2020-01-01")), 2)
        for options in (("--since", "yesterday"), ("--since", "-1"), ("--limit", "0"), ("--limit", "x"), ("--since", "2026-13-01")):
            with self.subTest(options=options):
                self.coop("history", *options, code=2)
        self.refusal("history", "--agent", "nobody", code=1)

    def test_control_characters_are_not_shown(self):
        """A command with control characters does not reach the terminal raw, in any table."""
        self.coop("run", "--", "true", "\x1b]0;evil\x07", "a\nb")
        self.settled(1)
        for verb in (("history",), ("audit", "tail"), ("ps", "-a")):
            text = self.out(*verb)
            self.assertNotIn(b"\x1b", text)
            self.assertNotIn(b"\x07", text)


class EventsTest(HistoryCase):
    def next_event(self, process, wanted):
        while True:
            line = process.stdout.readline()
            self.assertTrue(line, "it ended")
            event = json.loads(line)
            if event["event"] == wanted:
                return event

    def test_b126_events_as_json_lines(self):
        """Each event is a line as soon as it happens; Ctrl-C ends it."""
        self.run_code(3)
        watch = self.start("events", "--json")
        old = self.next_event(watch, "exited")
        self.assertEqual(old["process"]["exit"]["code"], 3)
        self.coop("run", "--", "sh", "-c", "echo x; exit 4", code=4)
        started = self.next_event(watch, "started")
        first = self.next_event(watch, "output_first")
        exited = self.next_event(watch, "exited")
        self.assertEqual(len({event["process"]["id"] for event in (started, first, exited)}), 1)
        self.assertEqual(exited["process"]["exit"]["code"], 4)
        watch.send_signal(signal.SIGINT)
        watch.wait(30)
        self.assertEqual(watch.stderr.read(), b"")

    def test_b126_for_several_agents(self):
        """Each watcher sees its own and those below; --agent selects; --no-replay leaves out what was."""
        env = self.agent("a")
        old = self.detached("true")
        self.coop("wait", old)
        everything, some = self.start("events", "--no-replay"), self.start("events", "--agent", "a", "--json")
        child = self.start("events", "--json", env=env)
        client = self.client()
        wait_until(lambda: client.call("info")["subscribers"] == 3, "all watch")
        own = self.detached("true")
        other = self.out("run", "-d", "--", "true", env=env).decode().strip()
        for watch in (some, child):
            self.assertEqual(self.next_event(watch, "exited")["process"]["id"], other)
        seen = ""
        while not all(any("exited" in line and process in line for line in seen.splitlines()) for process in (own, other)):
            line = everything.stdout.readline().decode()
            self.assertTrue(line)
            seen += line
        self.assertNotIn(old, seen)


class AuditTest(HistoryCase):
    def lines(self, *args):
        found = self.value("audit", "tail", *args)
        return found["lines"] if isinstance(found, dict) else found

    def test_b130_tail_and_verify(self):
        """tail shows attempts and ends; verify is 0 for a whole audit and 1 with the fault's place for another."""
        self.run_code(3)
        self.coop("run", "--cwd", "/nonexistent", "--", "true", code=125)
        kinds = [(line["kind"], line.get("decision")) for line in self.lines()]
        self.assertEqual(sorted(kinds, key=str), [("end", None), ("spawn", "allowed"), ("spawn", "failed")])
        self.assertEqual(len(self.lines("-n", "1")), 1)
        self.assertIn(b"allowed", self.out("audit", "tail"))
        self.assertTrue(self.value("audit", "verify")["good"])
        path = self.place.state / "audit.log"
        good = path.read_bytes()
        path.write_bytes(good.replace(b"exit 3", b"exit 4", 1))
        self.assertIn("audit.log", self.refusal("audit", "verify", code=1))
        self.assertFalse(self.value("audit", "verify", code=1)["good"])
        path.write_bytes(good)
        self.assertIn(b"good", self.out("audit", "verify"))

    def test_fault_is_acknowledged(self):
        """Lines that went while no keeper ran: verify, info and doctor say so, until it is acknowledged, which the audit shows."""
        self.run_code(3)
        self.coop("shutdown")
        path = self.place.state / "audit.log"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        self.assertNotIn(": :", self.refusal("audit", "verify", code=1))
        self.run_code(0)
        self.assertRegex(self.refusal("audit", "verify", code=1), r"^coop: the audit is not whole: \S")
        self.assertIn("not whole", self.out("info").decode())
        self.assertRegex(self.out("doctor", code=None).decode(), r"(?m)^warn +audit +not whole")
        self.assertIn(b"good", self.out("audit", "verify", "--acknowledge"))
        self.assertIn(b"good", self.out("audit", "verify"))
        self.assertNotIn("not whole", self.out("info").decode())
        self.assertRegex(self.out("audit", "tail").decode(), r"(?m) acknowledged +- +\S")

    def test_b130_for_the_operator(self):
        """Other agents are refused."""
        env = self.agent("a")
        for verb in (("audit", "tail"), ("audit", "verify"), ("reload",), ("shutdown",)):
            with self.subTest(verb=verb):
                self.refusal(*verb, code=1, env=env)
        self.coop("ps", env=env)


class ConfigurationTest(HistoryCase):
    def test_info_says_how_records_are(self):
        """info shows records, audit and configuration, as text and as JSON."""
        self.run_code(0)
        info = self.json("info")
        self.assertEqual((info["records"]["state"], info["audit"]["state"]), ("ok", "ok"))
        self.assertEqual(info["configuration"]["path"], str(self.place.conf))
        text = self.out("info").decode()
        for word in ("records", "audit", str(self.place.conf)):
            self.assertIn(word, text)

    def test_reload(self):
        """reload reads the file; one with a fault is refused with its line and stays without effect; info tells."""
        self.run_code(0)
        self.place.conf.write_text("[keeper]\nmax_events = 100\n")
        self.assertIn(str(self.place.conf).encode(), self.out("reload"))
        self.assertEqual(self.json("info")["settings"]["max_events"], 100)
        self.place.conf.write_text("[keeper]\nmax_events = 200\nnonsense = 1\n")
        self.assertIn("coop.conf:3:", self.refusal("reload", code=1))
        self.assertEqual(self.json("reload", code=1)["error"]["details"]["line"], 3)
        self.assertEqual(self.json("info")["settings"]["max_events"], 100)
        self.assertIn("coop.conf:3:", self.out("info").decode())

    def test_keeper_that_cannot_start(self):
        """A bad file at the start: the verb that wanted a keeper says why in one line, and where."""
        self.place.conf.write_text("[keeper]\nnonsense = 1\n")
        self.assertIn("coop.conf:2:", self.refusal("run", "--", "true", code=125))
        self.assertIn("coop.conf:2:", self.refusal("history", code=1))

"""The other verbs of the command line: looking, waiting, ending; addressing; JSON; errors."""

import json
import os
import signal
import subprocess

from lib import procs
from lib.cli import CliCase
from lib.place import patience

VERBS = """run ps status logs wait stdin signal kill stop rm gc attach top op doctor shutdown info reload cancel history events agent token
session policy audit serve""".split()


def records(value):
    """The records of ps --json, as a plain list."""
    return value if isinstance(value, list) else value["processes"]


def record(value):
    return value.get("process", value)


class LookTest(CliCase):
    def test_b007_ps(self):
        """ps shows live ones, ps -a the finished too, with id, tag and state; --json has the records."""
        live = self.detached("sleep", "300", options=["--tag", "web"])
        done = self.detached("true", options=["--tag", "job"])
        self.coop("wait", done)
        text = self.out("ps").decode()
        self.assertIn(live, text)
        self.assertIn("web", text)
        self.assertNotIn(done, text)
        self.assertIn(done, self.out("ps", "-a").decode())
        self.assertEqual([r["id"] for r in records(self.json("ps"))], [live])
        self.assertEqual([r["id"] for r in records(self.json("ps", "-a"))], [live, done])

    def test_b008_status(self):
        """status of one and of several; unknown ones are named and fail."""
        first, second = self.detached("sleep", "300"), self.detached("sleep", "300")
        self.assertIn("running", self.out("status", first).decode())
        both = self.out("status", first, second).decode()
        self.assertIn(first, both)
        self.assertIn(second, both)
        self.assertEqual(record(self.json("status", first))["state"], "running")
        self.assertIn("psh-1-99999", self.refusal("status", "psh-1-99999", code=1))

    def test_addressing_by_tag_and_beginning(self):
        """A tag, and a beginning of an id that only one has, stand for the id; an ambiguous one lists the candidates."""
        one = self.detached("sleep", "300", options=["--tag", "solo"])
        self.assertEqual(record(self.json("status", "solo"))["id"], one)
        self.assertEqual(record(self.json("status", one[:-1] if len(one.split("-")[2]) > 1 else one))["id"], one)
        self.assertEqual(record(self.json("status", one[:5]))["id"], one)
        two = self.detached("sleep", "300", options=["--tag", "solo"])
        text = self.refusal("kill", "solo", code=1)
        self.assertIn(one, text)
        self.assertIn(two, text)
        self.assertEqual(len(records(self.json("ps"))), 2)

    def test_b025_logs(self):
        """logs: all, one stream, from an offset, the tail."""
        process = self.detached("sh", "-c", "printf 0123456789; printf err >&2")
        self.coop("wait", process)
        self.assertEqual(self.out("logs", "--stream", "stdout", process), b"0123456789")
        self.assertEqual(self.out("logs", process, "--stream", "stdout", "--from", "4"), b"456789")
        out, err = self.coop("logs", process, "--stream", "stderr")
        self.assertEqual(out + err, b"err")
        out, err = self.coop("logs", process)
        self.assertEqual(sorted(out + err), sorted(b"0123456789err"))

    def test_logs_tail_and_timestamps(self):
        """--tail N gives the last N lines; --timestamps puts a time before each line."""
        process = self.detached("sh", "-c", "for i in 1 2 3 4 5; do echo line$i; done")
        self.coop("wait", process)
        self.assertEqual(self.out("logs", process, "--tail", "2"), b"line4\nline5\n")
        for line in self.out("logs", process, "--timestamps").decode().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z .*line\d$")

    def test_b037_logs_follow(self):
        """logs -f shows what there is, then what comes, and ends with the process."""
        process = self.detached("sh", "-c", "echo a; read x; echo b", options=["-i"])
        follower = self.start("logs", "-f", process)
        self.assertEqual(follower.stdout.readline(), b"a\n")
        self.coop("stdin", process, "--close", data=b"\n")
        self.assertEqual(follower.stdout.read(), b"b\n")
        self.assertEqual(follower.wait(patience(20)), 0)

    def test_logs_json_lines(self):
        """logs --json gives JSON lines."""
        process = self.detached("sh", "-c", "echo o; echo e >&2")
        self.coop("wait", process)
        lines = self.json_lines("logs", process)
        texts = {line["stream"]: line["text"] for line in lines if line.get("type") == "output"}
        self.assertEqual(texts, {"stdout": "o\n", "stderr": "e\n"})


class WaitTest(CliCase):
    def test_b038_wait_gives_the_exit_code(self):
        """wait ends with the command's code; 128 + n for a signal; of several the first that is not 0."""
        three = self.detached("sh", "-c", "exit 3")
        killed = self.detached("sh", "-c", "kill -9 $$")
        good = self.detached("true")
        self.coop("wait", three, code=3)
        self.coop("wait", killed, code=137)
        self.coop("wait", good, code=0)
        self.coop("wait", good, three, killed, code=3)

    def test_b039_wait_timeout(self):
        """wait --timeout leaves the process alone and ends with 124."""
        process = self.detached("sleep", "300")
        self.coop("wait", "--timeout", "100ms", process, code=124)
        self.assertEqual(record(self.json("status", process))["state"], "running")
        answer = self.json("wait", process, "--timeout", "0", code=124)
        self.assertEqual((answer["timed_out"], answer["running"]), (True, True))

    def test_b040_wait_bad_timeout(self):
        """A negative or senseless time is refused in one line."""
        process = self.detached("sleep", "300")
        for bad in ("-1s", "never", "1.5.2s", ""):
            with self.subTest(bad=bad):
                _, err = self.coop("wait", process, f"--timeout={bad}", code=None)
                self.assertIn(self.code, (2, 125))
                self.assertEqual(err.count(b"\n"), 1)


class EndTest(CliCase):
    def test_b046_signal(self):
        """signal by name in any case and by number; a bad one fails in one line."""
        for name in ("TERM", "sigterm", "15"):
            process = self.detached("sleep", "300")
            self.coop("signal", process, name)
            self.coop("wait", process, code=128 + 15)
        process = self.detached("sleep", "300")
        self.assertIn("signal", self.refusal("signal", process, "SIGFOO", code=1))
        self.refusal("signal", process, "0", code=1)
        self.assertEqual(record(self.json("status", process))["state"], "running")

    def test_b049_kill(self):
        """kill of several, tree included; --json gives the receipt."""
        first = self.detached("sh", "-c", "setsid sleep 300 & echo $!; sleep 300")
        second = self.detached("sleep", "300")
        procs.wait_until(lambda: self.out("logs", first), "it has started its child")
        child = self.outside(first, self.out("logs", first))
        self.coop("kill", first, second)
        self.assertFalse(procs.alive(child))
        self.coop("wait", first, code=137)
        third = self.detached("sleep", "300")
        receipt = self.json("kill", third)
        self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0))
        self.assertEqual(receipt["process"]["end_cause"], "killed_by_request")

    def test_b052_stop(self):
        """stop gives a program its chance; --grace bounds it."""
        polite = self.detached("sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
        procs.wait_until(lambda: self.out("logs", polite) == b"ready\n", "ready")
        self.coop("stop", polite)
        self.coop("wait", polite, code=3)
        stubborn = self.detached("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
        procs.wait_until(lambda: self.out("logs", stubborn) == b"ready\n", "ready")
        self.coop("stop", stubborn, "--grace", "200ms")
        self.coop("wait", stubborn, code=137)

    def test_b114_rm_and_b117_gc(self):
        """rm forgets a process and its output, live ones killed first; gc forgets the finished."""
        done = self.detached("true")
        self.coop("wait", done)
        self.coop("rm", done)
        self.refusal("status", done, code=1)
        self.refusal("rm", done, code=1)
        live = self.detached("sleep", "300")
        pid = record(self.json("status", live))["pid"]
        self.coop("rm", live)
        self.assertFalse(procs.alive(pid))
        for _ in range(3):
            self.coop("wait", self.detached("true"))
        self.assertEqual(self.json("gc"), {"released": 3})

    def test_receipts_in_words(self):
        """kill, stop and rm say what became of the process, and of what one that had ended before left running."""
        live, rest = self.detached("sleep", "300"), r"in \d+ ms\n$"
        self.assertRegex(self.out("kill", live).decode(), rf"^{live}: SIGKILL \(killed_by_request\), 1 process ended {rest}")
        self.assertRegex(self.out("kill", live).decode(), rf"^{live}: SIGKILL \(killed_by_request\) before; nothing was left to kill\n$")
        tag = "w"
        self.detached("sleep", "300", options=["--tag", tag])
        self.assertRegex(self.out("rm", tag).decode(), rf"^w: forgotten; 1 process killed {rest}")
        for verb in ("kill", "stop"):
            left = self.detached("sh", "-c", "sleep 300 & sleep 300 & exit 4" if verb == "stop" else "sleep 300 & exit 4")
            self.coop("wait", left, code=4)
            many = "2 processes it left were" if verb == "stop" else "1 process it left was"
            self.assertIn("descendants left running" if verb == "stop" else "1 descendant left running",
                          self.out("status", left).decode())
            self.assertRegex(self.out(verb, left).decode(), rf"^{left}: exited 4 before; {many} killed, {rest}")
        left = self.detached("sh", "-c", "sleep 300 & exit 0", options=["--tag", tag])
        self.coop("wait", left)
        self.assertRegex(self.out("rm", tag).decode(), rf"^w: forgotten; 1 process killed {rest}")
        sentences = {self.refusal(verb, tag, code=1) for verb in ("rm", "kill", "status")}
        self.assertEqual(sentences, {"coop: w: there is no such process (coop ps -a lists what there is)\n"})

    def test_stopped_command_is_shown(self):
        """A process stopped from outside shows as stopped."""
        process = self.detached("sleep", "300")
        os.kill(record(self.json("status", process))["pid"], signal.SIGSTOP)
        procs.wait_until(lambda: record(self.json("status", process))["state"] == "stopped", "stopped")


class RawTest(CliCase):
    def test_op(self):
        """op sends one raw operation and prints its reply; arguments are JSON; errors are told."""
        spawned = json.loads(self.out("op", "spawn", '{"argv": ["sleep", "300"]}'))
        listed = json.loads(self.out("op", "list"))
        self.assertEqual([r["id"] for r in listed["processes"]], [spawned["process"]["id"]])
        names = {o["name"] for o in json.loads(self.out("op", "describe"))["operations"]}
        self.assertIn("spawn", names)
        for args in (("op", "nonsense"), ("op", "status", '{"id": 7}'), ("op", "status", "{"), ("op", "status", "[]")):
            with self.subTest(args=args):
                _, err = self.coop(*args, code=None)
                self.assertNotEqual(self.code, 0)
                self.assertEqual(err.count(b"\n"), 1, err)

    def test_version_and_help(self):
        """--version, help, help VERB, and help of what is no verb; none of them starts a keeper."""
        self.assertRegex(self.out("--version").decode(), r"^coop \d+\.\d+\.\d+")
        text = self.out("help").decode()
        for verb in VERBS:
            self.assertIn(verb, text)
            self.assertIn(verb, self.out("help", verb).decode())
        _, err = self.coop("help", "nonsense", code=None)
        self.assertNotEqual(self.code, 0)
        self.assertEqual(err.count(b"\n"), 1)
        self.assertFalse(self.place.socket.exists())

    def test_doctor(self):
        """doctor says what holds on this host; --json is one value."""
        out, _ = self.coop("doctor", code=None)
        self.assertIn(self.code, (0, 1))
        self.assertTrue(out.strip())
        out, _ = self.coop("doctor", "--json", code=None)
        json.loads(out)

    def test_json_of_every_verb(self):
        """--json gives parseable JSON from every verb, success and refusal alike."""
        process = self.detached("sleep", "300", options=["--tag", "j"])
        done = self.detached("sh", "-c", "echo x")
        self.coop("wait", done)
        single = [("ps",), ("ps", "-a"), ("status", process), ("wait", done), ("signal", process, "CONT"), ("doctor",),
                  ("op", "info"), ("stop", process), ("kill", process), ("rm", process), ("gc",),
                  ("status", "psh-1-4242"), ("kill", "psh-1-4242"), ("rm", "psh-1-4242"), ("wait", "psh-1-4242"),
                  ("stop", "nobody"), ("signal", "nobody", "TERM"), ("op", "nonsense"), ("shutdown",)]
        for args in single:
            with self.subTest(args=args):
                out, _ = self.coop(args[0], "--json", *args[1:], code=None)
                json.loads(out)
        for args in (("logs", "nobody"), ("run", "--", "/nonexistent")):
            with self.subTest(args=args):
                out, _ = self.coop(args[0], "--json", *args[1:], code=None)
                for line in out.splitlines():
                    json.loads(line)

    def test_errors_are_one_line(self):
        """Wrong verbs, options and ids: one line on stderr that begins with coop, nothing on stdout, exit code not 0."""
        self.detached("true")
        bad = [("nonsense",), ("status",), ("status", "x\ny"), ("kill",), ("signal", "x"), ("signal", "nobody", "TERM"),
               ("logs",), ("logs", "nobody"), ("logs", "nobody", "--from", "x"), ("wait", "nobody"), ("stop", "nobody"),
               ("rm", "nobody"), ("stdin", "nobody"), ("attach", "nobody"), ("ps", "--nonsense"),
               ("run", "--ring", "big", "x"), ("op",), ("--nonsense",)]
        for args in bad:
            with self.subTest(args=args):
                out, err = self.coop(*args, code=None)
                self.assertNotEqual(self.code, 0)
                self.assertEqual(out, b"")
                self.assertRegex(err.decode(), r"^coop: [^\n]+\n$")

    def test_no_arguments(self):
        """coop alone tells how it is used and does not hang or start anything."""
        out, err = self.coop(code=None)
        self.assertIn(b"run", out + err)
        self.assertFalse(self.place.socket.exists())

    def test_full_disk_for_the_output(self):
        """Output that cannot be written is an error, not silence."""
        self.detached("sleep", "300")
        with open("/dev/full", "wb") as full:
            process = self.start("ps", stdout=full, stderr=subprocess.PIPE)
            _, err = process.communicate(timeout=patience(20))
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(err.count(b"\n"), 1)

"""Output of a command with backpressure: who takes it, so that the command goes on, and who only looks."""

import json
import subprocess

from lib import procs
from lib.cli import CliCase
from lib.place import patience

NUMBERS = "".join(f"{n}\n" for n in range(1, 20001)).encode()
WAITS = ["--ring", "4K", "--overflow", "backpressure", "--tag", "bp"]


class DrainTest(CliCase):
    def waiting(self, *command):
        """A command in the background that has filled its ring."""
        process = self.detached(*command, options=WAITS)
        procs.wait_until(lambda: any(s["end"] - s["start"] >= 4096 for s in self.streams(process).values()), "it is full")
        return process

    def streams(self, process):
        return self.json("status", process)["streams"]

    def test_logs_follow_takes_it(self):
        """logs -f of a background command with a full ring shows all of it, and it ends."""
        process = self.waiting("seq", "1", "20000")
        self.assertEqual(self.out("logs", "-f", process), NUMBERS)
        self.coop("wait", process, timeout=30)

    def test_logs_follow_of_two_streams(self):
        """So it is with two streams, and with JSON lines, whose exit has the code, as that of run."""
        process = self.waiting("sh", "-c", "seq 1 20000; seq 1 20000 >&2; exit 3")
        lines = self.json_lines("logs", process, "-f")
        for stream in ("stdout", "stderr"):
            text = "".join(line["text"] for line in lines if line["type"] == "output" and line["stream"] == stream)
            self.assertEqual(text.encode(), NUMBERS)
        self.assertEqual([line["exit_code"] for line in lines if line["type"] == "exit"], [3])

    def test_attach_takes_it(self):
        """attach shows all that a waiting command has printed, and it goes on; so with a short --tail."""
        self.waiting("sh", "-c", "seq 1 20000; exit 4")
        out, err = self.coop("attach", "bp", code=4)
        self.assertEqual((out, err), (NUMBERS, b""))
        self.waiting("sh", "-c", "seq 1 20000; exit 5")
        out, err = self.coop("attach", "bp", "--tail", "0", code=5)
        self.assertTrue(NUMBERS.endswith(out) and out, out[:100])
        self.assertEqual(err, b"")

    def test_looking_takes_nothing(self):
        """logs without -f, and logs -f --no-drain, leave a waiting command as it is."""
        process = self.waiting("seq", "1", "20000")
        for _ in range(2):
            self.assertEqual(self.out("logs", process), NUMBERS[:4096])
        watcher = self.start("logs", "-f", "--no-drain", process)
        self.assertEqual(watcher.stdout.read(4096), NUMBERS[:4096])
        procs.wait_until(lambda: json.loads(self.out("op", "info"))["subscribers"] == 1, "it follows")
        self.assertEqual(self.streams(process)["stdout"]["start"], 0)
        self.assertIn("-f", self.refusal("logs", "--no-drain", process, code=2))

    def test_watching_a_foreground_run_takes_nothing_from_it(self):
        """The output of coop run is its own reader's, however many follow it elsewhere."""
        run = self.start("run", "--tag", "bp", "--ring", "4K", "--", "sh", "-c", "echo ready; read x; seq 1 20000",
                         stdin=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b"ready\n")
        follower = self.start("logs", "-f", "bp", stdout=subprocess.DEVNULL)
        procs.wait_until(lambda: json.loads(self.out("op", "info"))["subscribers"] == 2, "both follow")
        run.stdin.write(b"\n")
        run.stdin.close()
        self.assertEqual(run.stdout.read(), NUMBERS)
        self.assertEqual(run.wait(patience(30)), 0)
        self.assertEqual(follower.wait(patience(30)), 0)

    def test_reader_that_pauses_at_the_end_loses_nothing(self):
        """A foreground command that ended while its reader slept leaves output in its pipe: that comes too."""
        size = 3000000
        # What the reader leaves fits into the pipes and buffers on the way, but not into the ring: the command ends.
        left = 345000
        run = self.start("run", "--ring", "4K", "--tag", "bp", "--", "head", "-c", str(size), "/dev/zero")
        got = len(run.stdout.read(size - left))
        self.coop("wait", "bp")
        got += len(run.stdout.read())
        self.assertEqual(got, size)
        self.assertEqual(run.wait(patience(30)), 0)


class StreamNameTest(CliCase):
    def test_why_there_is_no_such_stream(self):
        """Each refusal names the reason that holds."""
        merged, plain = self.detached("true", options=["--merge"]), self.detached("true")
        terminal = self.detached("true", options=["-t"])
        for process, stream, reason in ((merged, "tty", "it has no terminal"), (plain, "pty", "it has no terminal"),
                                        (merged, "stderr", "stderr was merged into stdout"),
                                        (terminal, "stderr", "all its output is in tty")):
            with self.subTest(stream=stream, reason=reason):
                text = self.refusal("logs", process, "--stream", stream, code=1)
                self.assertIn(reason, text)
                self.assertEqual("merged" in text, "merged" in reason)

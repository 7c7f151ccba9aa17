"""What `make run` shows, and the example that it runs."""

import os
import signal
import subprocess
import sys

from lib import procs
from lib.cli import CliCase, Terminal
from lib.gateway import GatewayCase
from lib.place import COOP, REPOSITORY, patience

REMOTE = REPOSITORY / "examples" / "remote.py"


class DemoTest(CliCase):
    def start_demo(self, *words):
        terminal = Terminal([str(REPOSITORY / "scripts" / "demo"), str(COOP), *words], self.env, cwd=self.place.work)
        self.addCleanup(terminal.close)
        return terminal

    def test_it_shows_coop_at_work_and_serves_until_interrupted(self):
        """The example's output and exit code, and what to type next; Ctrl-C ends all that was started."""
        terminal = self.start_demo("127.0.0.1:0")
        shown = terminal.until(b"What to type next", 120).replace(b"\r", b"")
        for words in (b"coop serves http://127.0.0.1:", b"line 1\nline 2\nline 3\n(exit code 3)", b'"status":"running"',
                      b"killed_by_request"):
            self.assertIn(words, shown)
        terminal.until(b"coop-serve(1)")
        below = procs.descendants(terminal.process.pid)
        self.assertGreater(len(below), 2)
        terminal.type(b"\x03")
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual([pid for pid in below if procs.alive(pid)], [])

    def test_it_ends_by_a_signal(self):
        terminal = self.start_demo("127.0.0.1:0")
        terminal.until(b"coop-serve(1)", 120)
        below = procs.descendants(terminal.process.pid)
        terminal.process.terminate()
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual([pid for pid in below if procs.alive(pid)], [])

    def test_an_address_that_cannot_be_had(self):
        """It fails, and says why."""
        terminal = self.start_demo("nonsense")
        terminal.until(b"--listen nonsense", 60)
        self.assertNotEqual(terminal.wait(), 0)


class RemoteTest(GatewayCase):
    """examples/remote.py"""

    own = True

    def remote(self, *words):
        process = subprocess.Popen([sys.executable, str(REMOTE), self.gateway.url, self.gateway.ready["token_file"], *words],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_both_streams_and_the_exit_code(self):
        process = self.remote("sh", "-c", "echo out; echo err >&2; exit 7")
        out, err = process.communicate(timeout=patience(60))
        self.assertEqual((out, err, process.returncode), (b"out\n", b"err\n", 7))

    def test_nothing_is_lost_when_the_gateway_is_killed(self):
        """It comes back and goes on where it was, twice."""
        process = self.remote("sh", "-c", "i=0; while [ $i -lt 60 ]; do echo $i; i=$((i+1)); sleep 0.05; done; exit 3")
        for number in range(2):
            self.assertEqual(int(process.stdout.readline()), number)
            os.kill(self.gateway.pid, signal.SIGKILL)
        rest, err = process.communicate(timeout=patience(60))
        self.assertEqual(list(map(int, rest.split())), list(range(2, 60)), err)
        self.assertEqual(process.returncode, 3)

    def test_a_wrong_token(self):
        wrong = self.gateway.place.dir / "wrong"
        wrong.write_text("nonsense\n", encoding="ascii")
        process = subprocess.run([sys.executable, str(REMOTE), self.gateway.url, str(wrong), "true"], capture_output=True,
                                 text=True, timeout=patience(60), check=False)
        self.assertEqual(process.returncode, 1)
        self.assertIn("401", process.stderr)

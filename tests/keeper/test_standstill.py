"""Starts whose helpers stand still: prepared sandboxes and launchers that somebody has stopped."""

import os
import re
import shutil
import signal
import unittest

from lib import procs
from lib.keeper import KeeperCase
from lib.place import Place


class StoppedSlotTest(KeeperCase):
    """A prepared sandbox that was stopped serves nobody: the start goes another way, and the sandbox ends."""

    shares = False

    def waiting(self):
        """[(first process, parked one)] of all sandboxes that wait for a command."""
        children = procs.children(self.keeper.pid)
        launchers = set(self.launchers())
        return [(pid, *procs.children(pid)) for pid in children if pid not in launchers and procs.children(pid)]

    def prepared(self):
        self.ended(self.spawn("true")["id"])
        procs.wait_until(lambda: len(self.waiting()) >= 4, "sandboxes are prepared")
        return self.waiting()

    def stop_all(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def assert_end(self, pids):
        """They are ended, though nobody waits for that."""
        procs.wait_until(lambda: not any(map(procs.alive, pids)), "the stopped sandboxes are ended")

    def start_beside(self):
        """A command runs all the same."""
        process = self.client.finish(self.client.submit("spawn", {"argv": ["echo", "there"], **self.granted()}), 30).result["process"]["id"]
        self.assertEqual(self.ended(process)["exit"]["code"], 0)
        self.assertEqual(self.output(process), b"there\n")

    def test_first_processes_stopped(self):
        """All first processes are stopped: they are ended at once, and commands start."""
        stopped = [slot[0] for slot in self.prepared()]
        self.stop_all(stopped)
        self.start_beside()
        self.assert_end(stopped)
        self.assertTrue(self.client.call("info")["sandbox"]["slots"]["enabled"])

    def test_parked_processes_stopped(self):
        """The processes that are to become the command are stopped, of which no event tells: after a time the start
        goes another way, once, and the command is run once."""
        slots = self.prepared()
        self.stop_all(slot[1] for slot in slots)
        self.start_beside()
        self.assertEqual(len(self.client.call("list", include_finished=True)["processes"]), 2)

    def test_stopped_when_it_was_taken(self):
        """The keeper hears of the stop when the sandbox is somebody's already."""
        slots = self.prepared()
        os.kill(self.keeper.pid, signal.SIGSTOP)
        try:
            self.stop_all(slot[0] for slot in slots)
            request = self.client.submit("spawn", {"argv": ["echo", "there"], **self.granted()})
        finally:
            os.kill(self.keeper.pid, signal.SIGCONT)
        process = self.client.finish(request, 30).result["process"]["id"]
        self.assertEqual(self.ended(process)["exit"]["code"], 0)
        self.assertEqual(self.output(process), b"there\n")
        self.assert_end([slot[0] for slot in slots])


class StoppedLauncherTest(KeeperCase):
    slots = 0

    def test_later_starts_do_not_postpone_the_end_of_the_wait(self):
        """A launcher is stopped and starts keep coming: it is given up when its time is over all the same."""
        self.ended(self.spawn("true")["id"])
        launcher = self.launcher()
        os.kill(launcher, signal.SIGSTOP)
        requests = [self.client.submit("spawn", {"argv": ["true"]})]

        def given_up():
            if len(requests) < 40:
                requests.append(self.client.submit("spawn", {"argv": ["true"]}))
            return not procs.alive(launcher)

        procs.wait_until(given_up, "the stopped launcher is ended", timeout=30, interval=1)
        self.assertLess(len(requests), 40, "each start began the wait anew")
        for request in requests:
            self.ended(self.client.finish(request, 30).result["process"]["id"])


class LogTest(KeeperCase):
    """The keeper's stderr leads to a pipe that nobody reads."""

    def setUp(self):
        self.keepers = []
        self.addCleanup(procs.assert_no_descendants)
        place = Place()
        fifo = place.dir / "stderr"
        os.mkfifo(fifo)
        self.reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, self.reader)
        writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        try:
            self.filled = 0
            while True:
                self.filled += os.write(writer, b"." * 4096)
        except BlockingIOError:
            pass
        finally:
            os.close(writer)
        self.keeper = self.start_keeper(place=place, wrap=["sh", "-c", 'exec "$@" 2>"$0"', str(fifo)])
        self.client = self.keeper.clients[0]

    def read(self):
        """What is in the pipe."""
        try:
            return os.read(self.reader, 1 << 20)
        except BlockingIOError:
            return b""

    def test_nobody_waits_for_it(self):
        """More lines than any pipe holds are logged. When somebody reads at last, he is told how many there were."""
        for _ in range(2000):
            self.client.call("reload")
        _, out, _ = self.run_sh("echo there")
        self.assertEqual(out, b"there\n")
        text = self.read()[self.filled:]

        def told():
            nonlocal text
            text += self.read()
            if b"left out" not in text:
                self.client.call("reload")
            return b"left out" in text

        procs.wait_until(told, "the lines that were left out are told")
        text = text.decode()
        self.assertIn("info serving", text.splitlines()[0])
        left = int(re.search(r"warn lines were left out, as nobody took them count=(\d+)$", text, re.M)[1])
        before = text[: text.index("left out")].count("configuration loaded")
        self.assertGreaterEqual(left + before, 2000)
        self.assertLess(left, 2000)

    def test_the_last_lines_are_carried(self):
        """A keeper is killed: what it logged before is written when somebody reads."""
        for _ in range(3):
            self.client.call("reload")
        self.keeper.kill()
        text = b""

        def told():
            nonlocal text
            text += self.read()
            return text.count(b"configuration loaded") == 3

        procs.wait_until(told, "all lines of the killed keeper")
        self.assertIn(b"info serving", text)
        self.assertEqual(self.keeper.wait_gone(), 128 + signal.SIGKILL)
        self.keeper.ended = True

    def test_a_guard_does_not_wait_for_it(self):
        """It leaves in order though nobody reads."""
        self.keeper.stop()
        self.assertNotIn(b"serving", self.read())


WAITS = "poll,ppoll,select,pselect6,nanosleep,clock_nanosleep,wait4,waitid"


@unittest.skipUnless(shutil.which("strace"), "needs strace to see what the keeper's loop waits in")
class LoopTest(KeeperCase):
    """The thread that serves everybody waits in epoll alone."""

    def setUp(self):
        self.keepers = []
        self.addCleanup(procs.assert_no_descendants)
        place = Place()
        self.trace = place.dir / "trace"
        wrap = ["strace", "-ff", "-qq", "-e", f"trace=listen,{WAITS}", "-o", str(self.trace)]
        # A traced program cannot look for leaks.
        env = {"ASAN_OPTIONS": place.env()["ASAN_OPTIONS"].replace("detect_leaks=1", "detect_leaks=0")}
        self.keeper = self.start_keeper(place=place, wrap=wrap, env=env)
        self.client = self.keeper.clients[0]

    def calls(self):
        """What the loop's thread has called since it serves: [(name, the rest of the line)]."""
        text = self.trace.with_suffix(f".{self.client.hello['pid']}").read_text()
        found = re.findall(r"^(\w+)\((.*)$", text, re.M)
        listens = [i for i, (name, _) in enumerate(found) if name == "listen"]
        self.assertTrue(listens, "the control: the loop's thread is seen")
        return found[listens[-1] + 1:]

    def waits(self):
        """Those of them that may have stood still."""
        harmless = {"poll": r".*, 0\)", "wait4": r".*WNOHANG", "waitid": r".*WNOHANG"}
        return [call for call in self.calls() if not re.match(harmless.get(call[0], "$^"), call[1])]

    def test_nothing_waits(self):
        """Commands of two agents, with and without limits and sandbox, are started, stopped and ended."""
        agent = self.keeper.agent("main/other")
        for client in (self.client, agent):
            for args in ({}, {"sandbox": {"network": "none"}}, {"limits": {"memory_bytes": 1 << 26}}):
                answer = client.answer("spawn", {"argv": ["sleep", "300"], **self.granted(), **args})
                # A host without control groups refuses limits.
                if "result" in answer:
                    process = answer["result"]["process"]["id"]
                    client.answer("freeze", {"id": process})
                    client.call("stop", id=process, grace_ms=0)
        self.client.call("doctor")
        self.client.call("gc")
        self.assertEqual(self.waits(), [])

"""Who belongs to a tree, and that all of it ends: processes without a main thread, recycled pids, terminals."""

import contextlib
import os
import signal
import sys

from lib import procs
from lib.keeper import KeeperCase

# Its first thread ends, as by pthread_exit, and another runs on: the kernel shows the process as a zombie, which it is not.
# It tells its pid then. With an argument it is an orphan in a session of its own, and the leader ends when it is told; with two,
# when its stdin has ended as well.
HEADLESS = """
import ctypes, os, sys, threading, time
if len(sys.argv) > 1:
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        os.write(1, os.read(reader, 32))
        if len(sys.argv) > 2:
            os.read(0, 1)
        os._exit(0)
    os.setsid()
    os.dup2(writer, 1)
    if os.fork():
        os._exit(0)
exit_thread = {"x86_64": 60, "i686": 1}.get(os.uname().machine, 93)

def work():
    main = f"/proc/self/task/{os.getpid()}/stat"
    while ") Z " not in open(main).read():
        time.sleep(0.01)
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(300)

threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(exit_thread, 0)
"""


def runs(pid):
    """Whether any thread of a process is alive; what the process itself shows is its first thread only."""
    try:
        return any(procs.alive(f"{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return False


def end(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class HeadlessTest(KeeperCase):
    def headless(self, *args, **options):
        """(record, pid) of a process whose first thread has ended."""
        record = self.spawn(sys.executable, "-c", HEADLESS, *args, **options)
        pid = self.outside(record["id"], self.wait_output(record["id"], b"\n"))
        self.addCleanup(end, pid)
        self.assertEqual(procs.stat(pid)[0], "Z", "the control: it looks dead")
        self.assertTrue(runs(pid), "the control: it is not")
        return record, pid

    def assert_killed(self, receipt, pid):
        self.assertFalse(runs(pid), (receipt, "it still runs"))
        self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0), receipt)
        self.assertIn(pid, receipt["signalled"])
        self.assertIn(pid, receipt["killed"])

    def test_kill_of_a_leader_without_its_first_thread(self):
        """The receipt of a kill names it, and it is gone."""
        record, pid = self.headless()
        self.assertEqual(pid, record["pid"])
        self.assertEqual(self.status(record["id"])["state"], "running")
        receipt = self.client.call("kill", id=record["id"])
        self.assert_killed(receipt, pid)
        self.assertEqual(receipt["process"]["exit"]["signal"], signal.SIGKILL)

    def test_kill_of_an_orphan_without_its_first_thread(self):
        """A daemon that shows as a zombie is counted, killed with its tree, and gone."""
        record, pid = self.headless("daemon")
        self.assertEqual(self.ended(record["id"])["descendants"], 1)
        self.assert_killed(self.client.call("kill", id=record["id"]), pid)
        self.assertEqual(self.status(record["id"])["descendants"], 0)

    def test_child_without_its_first_thread(self):
        """One in the middle of a tree is killed with it."""
        record = self.sh(f"{sys.executable} -c '{HEADLESS}' & wait")
        pid = self.outside(record["id"], self.wait_output(record["id"], b"\n"))
        self.addCleanup(end, pid)
        self.assertTrue(runs(pid))
        self.assertEqual(self.status(record["id"])["descendants"], 1)
        self.assert_killed(self.client.call("kill", id=record["id"]), pid)

    def test_gc_keeps_the_record_of_an_orphan_without_its_first_thread(self):
        """What left such a process running is not released, so that it can still be killed; afterwards it is."""
        record, pid = self.headless("daemon")
        self.ended(record["id"])
        self.assertEqual(self.client.call("gc")["released"], 0)
        self.assertEqual([r["id"] for r in self.client.call("list")["processes"]], [record["id"]])
        self.assert_killed(self.client.call("kill", id=record["id"]), pid)
        self.assertEqual(self.client.call("gc")["released"], 1)

    def test_release_ends_an_orphan_without_its_first_thread(self):
        """A release ends what is left, or does not release."""
        record, pid = self.headless("daemon")
        self.ended(record["id"])
        answer = self.client.call("release", id=record["id"])
        self.assertFalse(runs(pid), answer)
        self.assertTrue(answer["released"])

    def test_on_exit_kill_ends_an_orphan_without_its_first_thread(self):
        """With on_exit kill the end is told when it is gone."""
        record = self.spawn(sys.executable, "-c", HEADLESS, "daemon", "held", on_exit="kill", stdin="pipe")
        pid = self.outside(record["id"], self.wait_output(record["id"], b"\n"))
        self.client.call("close_stdin", id=record["id"])
        self.addCleanup(end, pid)
        final = self.ended(record["id"])
        self.assertFalse(runs(pid), final)
        self.assertEqual(final["descendants"], 0)

    def test_nothing_without_its_first_thread_survives_the_keeper(self):
        """kill -9 of the keeper: such a leader and such an orphan are gone when its guard is."""
        pids = [self.headless()[1], self.headless("daemon")[1]]
        self.keeper.kill()
        self.expect_end(self.keeper)
        self.assertEqual([runs(pid) for pid in pids], [False, False])


class FullHeadlessTest(HeadlessTest):
    profile = "full"


class RecycledSessionTest(KeeperCase):
    def test_orphan_in_a_session_with_a_recycled_number(self):
        """In a PID namespace a process leads a session whose number was the pid of an ended record: what it leaves behind
        belongs to the record that started it, is killed with that one, and the ended record has nothing."""
        self.assert_in_pid_namespace("recycled_session.py", "belongs to whom it came from", "full")


class TerminalTest(KeeperCase):
    # A daemon without the terminal; then the terminal is let go some time before the end.
    SCRIPT = """
setsid sleep 300 <&- >&- 2>&- &
echo $!
sleep 0.2
exec sleep 0.5 <&- >&- 2>&-
"""

    def test_end_on_a_terminal_is_told_when_the_tree_is_empty(self):
        """With on_exit kill a wait of a terminal's process, as of one with pipes, is answered when nothing of it is left."""
        for kind, stream in (("pty", "pty"), ("pipe", "stdout")):
            with self.subTest(kind=kind):
                process = self.sh(self.SCRIPT, kind=kind, on_exit="kill")["id"]
                daemon = self.outside(process, self.wait_output(process, b"\n", stream))
                self.assertTrue(procs.alive(daemon))
                final = self.ended(process)
                left = procs.alive(daemon)
                self.assertEqual((final["descendants"], left), (0, False))
                self.assertEqual(final["exit"]["code"], 0)

    def test_end_tells_of_no_descendants_again_and_again(self):
        """With on_exit kill and a daemon that is left each time, no end is told with a descendant, dead or alive."""
        for i in range(60):
            kind = ("pty", "pipe")[i % 2]
            process = self.sh("setsid sleep 300 <&- >&- 2>&- & exit 3", kind=kind, on_exit="kill")["id"]
            final = self.ended(process)
            self.assertEqual((final["descendants"], final["exit"]["code"]), (0, 3), f"{kind}, {i}")


class FullTerminalTest(TerminalTest):
    profile = "full"

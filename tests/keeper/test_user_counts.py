"""What the kernel counts for a user and not for a process: one sandbox does not use up what all of its user's share."""

from pathlib import Path

from lib.agents import AgentCase
from lib.both_keepers import BothKeepersCase
from lib.procs import wait_until

INOTIFY = """import ctypes, os, sys, time
c = ctypes.CDLL(None, use_errno=True)
made = 0
while c.inotify_init1(0) >= 0:
    made += 1
print(made, ctypes.get_errno(), flush=True)
time.sleep(300)"""
WATCHES = """import ctypes, os, time
c = ctypes.CDLL(None, use_errno=True)
fd, made = c.inotify_init1(0), 0
top = os.environ.get("TMPDIR", "/tmp") + "/w"
os.makedirs(top)
while made < 1000000:
    path = f"{top}/{made}"
    os.mkdir(path)
    if c.inotify_add_watch(fd, path.encode(), 2) < 0:
        break
    made += 1
print(made, ctypes.get_errno(), flush=True)"""
SIGNALS = """import ctypes, os, signal, time
c = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
sent = 0
while c.sigqueue(os.getpid(), 40, None) == 0:
    sent += 1
print(sent, ctypes.get_errno(), flush=True)
time.sleep(300)"""
EMFILE, EAGAIN, ENOSPC = 24, 11, 28


def host(name):
    return int(Path(f"/proc/sys/{name}").read_text())


class UserCountsTest(BothKeepersCase, AgentCase):
    def run_python(self, script):
        record = self.client.call("spawn", argv=["python3", "-c", script], limits={"tmp_bytes": 1 << 30})["process"]
        return [int(word) for word in self.line(self.client, record["id"]).split()]

    def test_instances_of_inotify(self):
        """A sandbox has a quarter, also while another has all of its own; together they leave some."""
        limit = host("fs/inotify/max_user_instances")
        counts = [self.run_python(INOTIFY) for _ in range(2)]
        self.assertEqual(counts, [[(limit + 3) // 4, EMFILE]] * 2)
        more = [self.run_python(INOTIFY)[0] for _ in range(3)]
        self.assertLessEqual(sum(count for count, _ in counts) + sum(more), limit - limit // 4)

    def test_watches_of_inotify(self):
        """As the sandbox itself reads it, and in deed where that does not take too long."""
        limit = host("fs/inotify/max_user_watches")
        _, out, _ = self.run_sh("cat /proc/sys/user/max_inotify_watches /proc/sys/user/max_user_namespaces")
        self.assertEqual(out.split(), [str((limit + 1) // 2).encode(), b"0"])
        if limit <= 70000:
            self.assertEqual(self.run_python(WATCHES), [(limit + 1) // 2, ENOSPC])

    def test_signals_that_wait(self):
        """A quarter of the user's: timers of others go on working."""
        first = self.run_python(SIGNALS)
        self.assertEqual(first[1], EAGAIN)
        self.assertEqual(self.run_python(SIGNALS), first)
        self.assertGreater(first[0], 100)

    def test_prepared_sandboxes_have_the_same(self):
        def pooled():
            record = self.client.call("spawn", argv=["python3", "-c", INOTIFY])["process"]
            count = self.line(self.client, record["id"])
            self.client.call("kill", id=record["id"])
            return count if record["start"] == "pooled" else None

        count = wait_until(pooled, "a prepared sandbox")
        self.assertEqual(count, f"{(host('fs/inotify/max_user_instances') + 3) // 4} {EMFILE}")


class OrdinaryUserCountsTest(UserCountsTest):
    user = 12345

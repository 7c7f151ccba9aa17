"""When parts of coop are killed: the launcher is replaced, and nothing survives the keeper."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest

from lib import procs
from lib.client import KeeperError
from lib.keeper import KeeperCase
from lib.place import patience

# Everything that tries to get away: own session, two forks, deaf to polite signals. Prints its pid when it is away.
RUNAWAYS = """
setsid sh -c 'trap "" TERM HUP INT; echo $$; while :; do sleep 300; done' &
(setsid sh -c '(trap "" TERM HUP INT; sh -c "trap \\"\\" TERM HUP INT; echo \\$\\$; sleep 300; sleep 300" &) ; exit 0' &)
trap '' TERM HUP INT
sh -c 'trap "" TERM HUP INT; echo $$; sleep 300; sleep 300' &
echo $$
while :; do sleep 300; done
"""


class LauncherKilledTest(KeeperCase):
    settings = {"max_running": 1000}
    slots = 0

    def restarts(self):
        return self.client.call("info")["launcher"]["restarts"]

    def kill_launcher(self, pid):
        """Gone when another is there."""
        os.kill(pid, signal.SIGKILL)
        procs.wait_until(lambda: pid not in self.launchers(), "the launcher is gone")

    def test_launcher_killed(self):
        """After SIGKILL of the launcher running processes live on, the next spawn works, restarts is counted."""
        process = self.sh("echo before; read x; echo after", stdin="pipe")["id"]
        self.wait_output(process, b"before")
        first, restarts = self.launcher(), self.restarts()
        os.kill(first, signal.SIGKILL)
        self.assertEqual(self.ended(self.sh("exit 3")["id"])["exit"]["code"], 3)
        self.assertGreater(self.restarts(), restarts)
        self.assertNotEqual(self.launcher(), first)
        self.assertEqual(self.status(process)["state"], "running")
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.ended(process)
        self.assertEqual(self.output(process), b"before\nafter\n")

    def test_launcher_killed_behind_a_dead_orphan(self):
        """The launcher dies while an orphan older than itself lies dead and cannot be judged before the launcher has
        answered: the spawn under way and all later ones are answered."""
        record, told, _ = self.run_sh("setsid sleep 300 & echo $!; exit 0")
        orphan = self.outside(record["id"], told)
        self.kill_launcher(self.launcher())
        self.ended(self.spawn("true")["id"])
        launcher = self.launcher()
        os.kill(launcher, signal.SIGSTOP)
        procs.wait_until(lambda: procs.stat(launcher)[0] == "T", "the launcher stands")
        request = self.client.submit("spawn", {"argv": ["sh", "-c", "exit 3"]})
        self.client.call("info")
        os.kill(orphan, signal.SIGKILL)
        procs.wait_until(lambda: not procs.alive(orphan), "the orphan is dead")
        self.client.call("info")
        os.kill(launcher, signal.SIGKILL)
        process = self.client.finish(request, 8).result["process"]["id"]
        self.assertEqual(self.ended(process)["exit"]["code"], 3)
        self.assertEqual(self.ended(self.sh("exit 4")["id"])["exit"]["code"], 4)
        procs.wait_until(lambda: procs.stat(orphan) is None, "the orphan is reaped")

    @unittest.skipUnless(shutil.which("strace"), "needs strace to kill the launcher between clone and its answer")
    def test_launcher_killed_with_its_child_dead(self):
        """The launcher is killed just before it answers, again and again, and the child has ended by then: the record does
        not stay as one of a process that runs, and no pid is kept that may be somebody else's."""
        self.ended(self.spawn("true")["id"])
        for _ in range(6):
            launcher = self.launcher()
            argv = ["strace", "-o", "/dev/null", "-p", str(launcher), "-e", "inject=sendmsg:signal=SIGKILL"]
            with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as strace:
                self.assertIn(b"attached", strace.stderr.readline())
                try:
                    process = self.spawn("true")
                except KeeperError as error:
                    self.assertEqual(error.code, "spawn_failed", error)
                    process = None
                finally:
                    if procs.alive(launcher):
                        strace.terminate()
            self.assertNotIn(launcher, self.launchers(), "the control: it was killed")
            if process:
                answer = self.wait(process["id"], timeout_ms=3000)
                self.assertFalse(answer["running"], (answer, procs.stat(process["pid"])))
                self.assertIsNone(procs.stat(process["pid"]))
        self.assertEqual(self.client.call("list")["processes"], [])

    def test_launcher_killed_at_random_moments(self):
        """300 spawns while the launcher is killed again and again: each is answered, what was started runs and ends, and no
        process or descriptor is left."""
        for _ in range(3):
            self.ended(self.spawn("true")["id"])
        self.client.call("gc")
        open_before = procs.fd_count(self.keeper.pid)
        stop, kills = threading.Event(), []
        chance = random.Random(5)
        watcher = self.connect()

        def kill():
            # On a slow machine a launcher gets the more time, else hardly any plan survives it.
            while not stop.wait(chance.uniform(0.001, 0.01) * patience(1)):
                pid = watcher.call("info")["launcher"]["pid"]
                if pid:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        kills.append(pid)

        thread = threading.Thread(target=kill)
        thread.start()
        started, refused = [], []
        try:
            begin = 0
            while begin < 300 or len(set(kills)) < 10:
                numbers = range(begin, begin + 10)
                begin += 10
                commands = {i: {"argv": ["sh", "-c", f"exit {i % 100}"]} for i in numbers}
                requests = {i: self.client.submit("spawn", args) for i, args in commands.items()}
                for i, request in requests.items():
                    try:
                        started.append((i, self.client.finish(request).result["process"]["id"]))
                    except KeeperError as error:
                        self.assertIn(error.code, ("spawn_failed", "unavailable"), error)
                        refused.append(i)
                for i, process in started[-10:]:
                    self.assertEqual(self.wait(process)["exit_code"], i % 100)
        finally:
            stop.set()
            thread.join()
        self.assertGreater(len(started), begin * 2 // 3, f"{len(refused)} refused")
        self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)
        self.assertEqual(self.client.call("list")["processes"], [])
        self.client.call("gc")
        watcher.close()

        def left():
            return set(procs.descendants(self.keeper.process.pid)) - {self.keeper.pid, *self.launchers()}

        procs.wait_until(lambda: not left(), "no process is left")
        procs.wait_until(lambda: procs.fd_count(self.keeper.pid) <= open_before, "no descriptor is left")
        # info counts by a look that is shared for a moment: the last one may have seen children of a plan that was lost.
        procs.wait_until(lambda: self.client.call("info")["processes"]["strays"] == 0, "no stray is left")


class KeeperKilledTest(KeeperCase):
    slots = 0

    def runaways(self):
        """Starts processes that try everything to get away; returns all their pids."""
        pids = []
        for kind in ("pipe", "pty"):
            process = self.sh(RUNAWAYS, kind=kind)["id"]
            stream = "stdout" if kind == "pipe" else "pty"
            procs.wait_until(lambda: self.output(process, stream).count(b"\n") >= 4, "all are away")
            told = [self.outside(process, line) for line in self.output(process, stream).split()]
            self.assertEqual(len(told), 4)
            pids += told
        last = set()

        def settled():
            """Shells on the way to those that were told end by themselves: wait until they have."""
            nonlocal last
            below = procs.descendants(self.keeper.process.pid)
            before, last = last, set(pids + [pid for pid in below if "sleep 300" in procs.cmdline(pid)])
            return last == before and all(map(procs.alive, last))

        procs.wait_until(settled, "nobody comes and goes any more", interval=0.1)
        return sorted(last)

    def test_b124_nothing_survives_the_keeper(self):
        """kill -9 of the keeper: setsid, double-forked, TERM-ignoring descendants are all gone within 2 s."""
        pids = self.runaways()
        self.assertGreaterEqual(len(pids), 14)
        self.assertTrue(all(map(procs.alive, pids)))
        begin = time.monotonic()
        self.keeper.kill()
        procs.wait_until(lambda: not any(map(procs.alive, pids)), "all are gone", timeout=10, interval=0.005)
        self.assertLess(time.monotonic() - begin, patience(2))
        self.expect_end(self.keeper)

    def test_b124_at_random_moments_of_starting(self):
        """kill -9 while spawns are under way, ten times: nothing is left, whatever was in the air."""
        chance = random.Random(17)
        for _ in range(10):
            keeper = self.start_keeper()
            client = keeper.connect()
            for _ in range(20):
                client.submit("spawn", {"argv": ["sh", "-c", "setsid sleep 300 & exec sleep 300"]})
            time.sleep(chance.uniform(0, 0.05))
            keeper.kill()
            self.expect_end(keeper)
            procs.wait_until(lambda: not self.strangers(), "nothing is left", timeout=2)

    def strangers(self):
        """What runs below this test besides the keeper that every test has."""
        ours = {self.keeper.process.pid, *procs.descendants(self.keeper.process.pid)}
        procs.reap_orphans()
        return [pid for pid in procs.descendants(os.getpid()) if pid not in ours]

    def test_b124_control_sees_a_survivor(self):
        """A control: a process that does outlive its parent the same way is noticed by the same look."""
        reader, writer = os.pipe()
        subprocess.run(["sh", "-c", f"setsid sh -c 'echo $$ >&{writer}; exec sleep 300 {writer}>&-' &"], pass_fds=[writer],
                       check=True, env=self.keeper.place.env())
        os.close(writer)
        pid = int(os.read(reader, 32))
        os.close(reader)
        self.addCleanup(procs.reap_orphans)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.keeper.kill()
        self.expect_end(self.keeper)
        self.assertTrue(procs.alive(pid))
        self.assertIn(pid, procs.descendants(os.getpid()))

    def test_b124_next_keeper_starts_clean(self):
        """After kill -9 a new keeper starts on the same socket and state and knows nothing as running."""
        process = self.spawn("sleep", "300")
        self.keeper.kill()
        self.expect_end(self.keeper)
        keeper = self.start_keeper(place=self.keeper.place)
        client = keeper.clients[0]
        self.assertEqual(client.call("list")["processes"], [])
        # Its start may not have been written yet when the keeper died.
        for record in client.call("list", include_finished=True)["processes"]:
            self.assertEqual((record["id"], record["state"], record["end_cause"]), (process["id"], "exited", "lost"))
        self.assertEqual(client.call("spawn", argv=["true"])["process"]["argv"], ["true"])


class FullLauncherKilledTest(LauncherKilledTest):
    profile = "full"
    # The keeper names its first launcher only, which is another one here.
    test_launcher_killed_at_random_moments = None


class FullKeeperKilledTest(KeeperKilledTest):
    profile = "full"


class TidyTest(KeeperCase):
    slots = 0

    def test_many_spawns_leak_nothing(self):
        """After many spawns of all kinds the keeper has as many descriptors as before, and no zombie."""

        def round_of(count):
            for i in range(count):
                args = {"argv": ["sh", "-c", "cat; echo x >&2"], "kind": ("pipe", "pty")[i % 5 == 0]}
                if args["kind"] == "pipe":
                    process = self.client.reply("spawn", args, b"bytes").result["process"]["id"]
                else:
                    process = self.client.call("spawn", argv=["echo", "x"], kind="pty")["process"]["id"]
                self.ended(process)
                self.client.call("release", id=process)

        round_of(20)
        before = procs.fd_count(self.keeper.pid)
        round_of(200)
        procs.wait_until(lambda: procs.fd_count(self.keeper.pid) <= before, "no descriptor is left")
        # The first process of a sandbox may leave a moment after the end that it has told.
        procs.wait_until(lambda: procs.children(self.keeper.pid) == list(self.launchers()), "nobody is left, dead or alive")
        self.assertEqual(list(self.launchers()), [self.client.call("info")["launcher"]["pid"]])

"""When the machine has nothing left, and when parts of coop are killed: a clear error to who asked, all else goes on."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import time
import unittest

from lib import procs
from lib.client import Closed, KeeperError
from lib.keeper import Keeper, KeeperCase, plain_limits
from lib.place import Place, patience, sanitized

ROOT = os.geteuid() == 0
# Nobody runs as this user, so that its count of processes is the keeper's own.
LONELY_UID = 62741
MIB = 1 << 20

# Everything that tries to get away: own session, two forks, deaf to polite signals. Prints its pid when it is away.
RUNAWAYS = """
setsid sh -c 'trap "" TERM HUP INT; echo $$; while :; do sleep 300; done' &
(setsid sh -c '(trap "" TERM HUP INT; sh -c "trap \\"\\" TERM HUP INT; echo \\$\\$; sleep 300; sleep 300" &) ; exit 0' &)
trap '' TERM HUP INT
sh -c 'trap "" TERM HUP INT; echo $$; sleep 300; sleep 300' &
echo $$
while :; do sleep 300; done
"""


class NoDescriptorsTest(KeeperCase):
    LIMIT = 80

    def setUp(self):
        super().setUp()

        def few():
            plain_limits()
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.LIMIT, self.LIMIT))

        self.poor = self.start_keeper({"max_running": 1000}, before_exec=few)
        self.client = self.poor.clients[0]

    def fill(self):
        """Spawns until the keeper has no descriptor left; returns the ids and the refusal."""
        ids = []
        while True:
            try:
                ids.append(self.client.call("spawn", argv=["sleep", "300"])["process"]["id"])
            except KeeperError as error:
                return ids, error
            self.assertLess(len(ids), self.LIMIT, "there must be an end")

    def test_no_descriptors_left_for_a_spawn(self):
        """The asker gets spawn_failed with EMFILE; what runs goes on; when descriptors are free again so are spawns."""
        ids, error = self.fill()
        self.assertGreater(len(ids), 10)
        self.assertEqual(error.code, "spawn_failed", error)
        self.assertEqual(error.details["errno"], "EMFILE", error)
        self.assertEqual(self.client.call("status", id=ids[0])["process"]["state"], "running")
        self.assertEqual(len(self.client.call("list")["processes"]), len(ids))
        for process in ids[:5]:
            self.client.call("release", id=process)
        again = self.client.call("spawn", argv=["sh", "-c", "echo back; exit 3"])["process"]["id"]
        answer = self.client.reply("wait", {"id": again, "output_bytes": 100})
        self.assertEqual((answer.bytes(), answer.result["exit_code"]), (b"back\n", 3))
        self.client.call("kill", id=ids[-1])

    def test_no_descriptors_left_for_a_connection(self):
        """With none left a newcomer waits or is turned away, the keeper does not spin, and later it is served."""
        ids, _ = self.fill()
        newcomers = []
        for _ in range(10):
            with contextlib.suppress(Closed, TimeoutError, ConnectionError):
                newcomers.append(self.poor.connect(timeout=0.5))
        cpu = procs.cpu_seconds(self.poor.pid)
        time.sleep(1)
        self.assertLess(procs.cpu_seconds(self.poor.pid) - cpu, 0.4, "it must not spin on accept")
        self.assertEqual(self.client.call("info")["pid"], self.poor.pid)
        for process in ids[:8]:
            self.client.call("release", id=process)

        def served():
            with contextlib.suppress(Closed, TimeoutError, ConnectionError):
                return self.poor.connect(timeout=5)

        fresh = procs.wait_until(served, "a newcomer is served again")
        self.assertEqual(fresh.call("status", id=ids[-1])["process"]["state"], "running")

    def test_no_descriptors_leak_from_refusals(self):
        """A hundred refused spawns leave the number of open descriptors as it was."""
        self.fill()
        before = procs.fd_count(self.poor.pid)
        for _ in range(100):
            with self.assertRaises(KeeperError):
                self.client.call("spawn", argv=["sleep", "300"], stdin="pipe")
        self.assertEqual(procs.fd_count(self.poor.pid), before)

    def test_no_descriptors_left_for_a_kill(self):
        """A kill that cannot look at /proc does not claim what it has not seen; with descriptors again a kill succeeds."""
        process = self.client.call("spawn", argv=["sh", "-c", "setsid sleep 300 & echo $!; exec sleep 300"])["process"]
        text = procs.wait_until(lambda: self.client.reply("read", {"id": process["id"]}).bytes(), "it has a child")
        tree = [process["pid"], int(text)]
        resource.prlimit(self.poor.pid, resource.RLIMIT_NOFILE, (3, self.LIMIT))
        receipt = self.client.call("kill", id=process["id"])
        left = [pid for pid in tree if procs.alive(pid)]
        self.assertGreater(len(left), 0, "the control: without descriptors it cannot find all of them")
        self.assertFalse(receipt["success"], (receipt, left))
        self.assertGreater(receipt["survivors"], 0, receipt)
        self.assertEqual([pid for pid in left if pid in receipt["killed"]], [], receipt)
        resource.prlimit(self.poor.pid, resource.RLIMIT_NOFILE, (self.LIMIT, self.LIMIT))
        self.assertTrue(self.client.call("kill", id=process["id"])["success"])
        self.assert_gone(tree)


class NoProcessesTest(KeeperCase):
    @unittest.skipUnless(ROOT, "needs root to run a keeper as a user with a process limit of its own")
    def test_fork_fails_with_eagain(self):
        """A user at RLIMIT_NPROC: spawn_failed with EAGAIN, no record, the rest goes on, and later spawns work."""
        place = Place(owner=LONELY_UID)

        def lonely():
            plain_limits()
            resource.setrlimit(resource.RLIMIT_NPROC, (16, 16))
            place.become_owner()

        keeper = self.start_keeper(place=place, before_exec=lonely, env={"HOME": "/"})
        client = keeper.clients[0]
        ids = []
        with self.assertRaises(KeeperError) as caught:
            for _ in range(40):
                ids.append(client.call("spawn", argv=["sleep", "300"], cwd="/")["process"]["id"])
        self.assertEqual(caught.exception.code, "spawn_failed", caught.exception)
        self.assertEqual(caught.exception.details["errno"], "EAGAIN", caught.exception)
        self.assertGreater(len(ids), 3)
        listed = client.call("list", include_finished=True)["processes"]
        self.assertEqual([(record["id"], record["state"]) for record in listed], [(i, "running") for i in ids])
        client.call("release", id=ids[0])
        self.assertEqual(client.call("spawn", argv=["sleep", "300"], cwd="/")["process"]["state"], "running")


class NoMemoryTest(KeeperCase):
    """COOP_FAULT=alloc:N lets the N-th allocation of the keeper fail."""

    def session(self, client):
        """A bit of everything; refusals are fine, wrong answers are not."""
        done = 0
        calls = [
            lambda: self.ended_with(client, 7),
            lambda: client.reply("spawn", {"argv": ["cat"], "ring_bytes": 65536}, b"input" * 1000),
            lambda: client.call("list", include_finished=True),
            lambda: client.call("info"),
            lambda: client.call("spawn", argv=["sh", "-c", "sleep 300 & sleep 300"], kind="pty", tag="t"),
            lambda: client.reply("follow", {"id": client.call("spawn", argv=["echo", "x"])["process"]["id"]}),
            lambda: client.call("kill", id="t"),
            lambda: client.call("gc"),
            lambda: client.call("spawn", argv=["sh", "-c", "echo x"], overflow="spool", timeout_ms=60000),
            lambda: client.call("describe"),
        ]
        for call in calls:
            try:
                call()
                done += 1
            except KeeperError as error:
                self.assertIn(error.code, ("internal", "spawn_failed", "unavailable", "no_such_process"), error)
                if error.code == "spawn_failed":
                    self.assertEqual(error.details["errno"], "ENOMEM", error)
        return done

    def ended_with(self, client, code):
        process = client.call("spawn", argv=["sh", "-c", f"echo text; exit {code}"])["process"]["id"]
        answer = client.call("wait", id=process)
        self.assertEqual(answer["exit_code"], code)

    def try_fault(self, fault):
        """One keeper's life with a fault: it leaves in order, at start or at the end, and never by a signal."""
        keeper = Keeper(env={"COOP_FAULT": fault})
        self.keepers.append(keeper)
        try:
            try:
                client = keeper.wait_ready()
            except AssertionError:
                code = keeper.wait_gone()
                self.assertGreaterEqual(code, 0, "killed by a signal at start")
                self.assertLess(code, 126, keeper.place.log_tail())
                self.assertTrue(keeper.place.log_tail().strip(), "it must say why it does not start")
                return "not started"
            try:
                self.session(client)
            except (Closed, ConnectionError):
                # The connection itself may be what could not be had; the keeper may not.
                client = keeper.connect()
            self.ended_with_patience(keeper)
            keeper.stop()
            return "lived"
        finally:
            if keeper.process.poll() is None:
                procs.kill_all([*procs.descendants(keeper.process.pid), keeper.process.pid])
                keeper.process.wait()
            faults = keeper.place.faults()
            log = keeper.place.log_tail()
            keeper.place.remove()
            self.assertEqual(faults, "", log)

    def ended_with_patience(self, keeper):
        """After a fault that is over the keeper works as ever."""

        def attempt():
            try:
                with keeper.connect() as client:
                    self.ended_with(client, 0)
                return True
            except (KeeperError, Closed, ConnectionError):
                return False

        procs.wait_until(attempt, "the keeper works again", timeout=10)

    def test_single_allocation_fails(self):
        """The N-th allocation fails, for many N: an error to who asked or a clean refusal to start, never a crash."""
        numbers = [*range(1, 60, 1 if not sanitized() else 3), *range(60, 400, 7), *range(400, 1500, 61)]
        outcomes = {}
        for number in numbers:
            with self.subTest(fault=f"alloc:{number}"):
                outcome = self.try_fault(f"alloc:{number}")
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
        self.assertGreater(outcomes.get("lived", 0), 0)

    def test_allocations_fail_again_and_again(self):
        """Every M-th allocation fails while the keeper works: it says so each time and lives."""
        for fault in ("alloc:300:211", "alloc:500:307", "alloc:400:1009"):
            with self.subTest(fault=fault):
                keeper = self.start_keeper(env={"COOP_FAULT": fault})
                answered = 0
                for _ in range(60):
                    try:
                        with keeper.connect(timeout=10) as client:
                            client.call("spawn", argv=["true"])
                            client.call("list", include_finished=True)
                            answered += 1
                    except KeeperError as error:
                        self.assertIn(error.code, ("internal", "spawn_failed", "unavailable"), error)
                    except (Closed, ConnectionError):
                        pass
                    self.assertIsNone(keeper.process.poll(), "the keeper must live")
                self.assertGreater(answered, 5)

    def test_the_hook_works(self):
        """A control: with the very first allocation failing the keeper cannot start as if nothing was."""
        self.assertEqual(self.try_fault("alloc:1:1"), "not started")


class NoDiskTest(KeeperCase):
    @unittest.skipUnless(ROOT, "needs root to mount a small disk in a mount namespace of its own")
    def test_spool_disk_full(self):
        """The disk of the spool is full: truncated, counted, told; the process and all others go on."""
        place = Place()
        place.state.mkdir()
        script = f'mount -t tmpfs -o size=512k,mode=0700 coop-test {place.state} && exec "$@"'
        keeper = self.start_keeper(place=place, wrap=["unshare", "-m", "sh", "-c", script, "sh"])
        client = keeper.clients[0]
        canary = client.call("spawn", argv=["sleep", "300"])["process"]["id"]
        script = "echo begin; head -c 3000000 /dev/zero; exit 3"
        args = {"argv": ["sh", "-c", script], "overflow": "spool", "ring_bytes": 65536}
        process = client.reply("spawn", args).result["process"]["id"]
        record = client.call("wait", id=process)["process"]
        stream = record["streams"]["stdout"]
        self.assertEqual((record["exit"]["code"], stream["end"]), (3, 3000006))
        self.assertTrue(stream["spool"]["truncated"])
        self.assertLess(stream["spool"]["bytes"], 600 * 1024)
        tail = client.reply("read", {"id": process, "cursor": 3000006 - 1000})
        self.assertEqual(tail.bytes(), bytes(1000))
        killed = client.reply("spawn", args | {"on_output_quota": "kill"}).result["process"]["id"]
        self.assertEqual(client.call("wait", id=killed)["process"]["end_cause"], "output_quota")
        self.assertEqual(client.call("status", id=canary)["process"]["state"], "running")
        client.call("release", id=process)
        client.call("release", id=killed)
        args = {"argv": ["sh", "-c", "head -c 100000 /dev/zero"], "overflow": "spool", "ring_bytes": 4096}
        again = client.reply("spawn", args).result["process"]["id"]
        stream = client.call("wait", id=again)["process"]["streams"]["stdout"]
        self.assertEqual((stream["spool"]["truncated"], stream["start"]), (False, 0))

    @unittest.skipUnless(ROOT, "needs root to mount a small disk in a mount namespace of its own")
    def test_state_cannot_be_written(self):
        """A full disk at start: the keeper starts, or says in one line why not; it never hangs or crashes."""
        place = Place()
        place.state.mkdir()
        script = (f"mount -t tmpfs -o size=64k,mode=0700 coop-test {place.state} && "
                  f'head -c 1000000 /dev/zero >{place.state}/full; exec "$@"')
        keeper = self.start_keeper(place=place, wrap=["unshare", "-m", "sh", "-c", script, "sh"], ready=False)
        try:
            client = keeper.wait_ready()
            with contextlib.suppress(KeeperError):
                client.call("spawn", argv=["true"])
            client.call("info")
        except AssertionError:
            self.expect_end(keeper)
            self.assertGreater(keeper.process.returncode, 0)
            self.assertIn("coop-keeper", place.log_tail())


class LauncherKilledTest(KeeperCase):
    settings = {"max_running": 1000}

    def launcher(self):
        return self.client.call("info")["launcher"]

    def test_launcher_killed(self):
        """After SIGKILL of the launcher running processes live on, the next spawn works, restarts is counted."""
        process = self.sh("echo before; read x; echo after", stdin="pipe")["id"]
        self.wait_output(process, b"before")
        first = self.launcher()
        os.kill(first["pid"], signal.SIGKILL)
        self.assertEqual(self.ended(self.sh("exit 3")["id"])["exit"]["code"], 3)
        second = self.launcher()
        self.assertGreater(second["restarts"], first["restarts"])
        self.assertNotEqual(second["pid"], first["pid"])
        self.assertEqual(self.status(process)["state"], "running")
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.ended(process)
        self.assertEqual(self.output(process), b"before\nafter\n")

    def test_launcher_killed_behind_a_dead_orphan(self):
        """The launcher dies while an orphan older than itself lies dead and cannot be judged before the launcher has
        answered: the spawn under way and all later ones are answered."""
        orphan = int(self.run_sh("setsid sleep 300 & echo $!; exit 0")[1])
        os.kill(self.launcher()["pid"], signal.SIGKILL)
        self.ended(self.spawn("true")["id"])
        launcher = self.launcher()["pid"]
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
        for _ in range(6):
            launcher = self.launcher()["pid"]
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
            self.assertNotEqual(self.launcher()["pid"], launcher, "the control: it was killed")
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
            while not stop.wait(chance.uniform(0.001, 0.01)):
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
        allowed = {self.keeper.pid, self.launcher()["pid"]}
        procs.wait_until(lambda: set(procs.descendants(self.keeper.process.pid)) <= allowed, "no process is left")
        procs.wait_until(lambda: procs.fd_count(self.keeper.pid) <= open_before, "no descriptor is left")
        self.assertEqual(self.client.call("info")["processes"]["strays"], 0)


class KeeperKilledTest(KeeperCase):
    def runaways(self):
        """Starts processes that try everything to get away; returns all their pids."""
        pids = []
        for kind in ("pipe", "pty"):
            process = self.sh(RUNAWAYS, kind=kind)["id"]
            stream = "stdout" if kind == "pipe" else "pty"
            procs.wait_until(lambda: self.output(process, stream).count(b"\n") >= 4, "all are away")
            told = [int(line) for line in self.output(process, stream).split()]
            self.assertEqual(len(told), 4)
            pids += told
        below = procs.descendants(self.keeper.process.pid)
        return sorted(set(pids + [pid for pid in below if "sleep 300" in procs.cmdline(pid)]))

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
        self.assertEqual(client.call("list", include_finished=True)["processes"], [])
        with self.refused("no_such_process"):
            client.call("status", id=process["id"])
        self.assertEqual(client.call("spawn", argv=["true"])["process"]["argv"], ["true"])


class TidyTest(KeeperCase):
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
        self.assertLessEqual(procs.fd_count(self.keeper.pid), before)
        children = [pid for pid in procs.all_pids() if (procs.stat(pid) or ("", 0))[1] == self.keeper.pid]
        self.assertEqual(children, [self.client.call("info")["launcher"]["pid"]])

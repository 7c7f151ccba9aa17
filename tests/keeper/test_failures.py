"""When the machine has nothing left: a clear error to who asked, all else goes on."""

import contextlib
import os
import resource
import socket
import time
import subprocess
import unittest

from lib import procs
from lib.client import Closed, KeeperError
from lib.keeper import Keeper, KeeperCase, plain_limits
from lib.place import Place, sanitized

ROOT = os.geteuid() == 0
# Nobody runs as this user, so that its count of processes is the keeper's own.
LONELY_UID = 62741


class NoDescriptorsTest(KeeperCase):
    LIMIT = 120
    slots = 0  # those take and give back descriptors when they like

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
        self.assertGreater(len(ids), 5)
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

    def test_a_connection_that_cannot_even_be_turned_away(self):
        """The descriptor kept for that is lost, too: the connection waits, the keeper does not spin, and it serves others meanwhile."""
        resource.prlimit(self.poor.pid, resource.RLIMIT_NOFILE, (3, self.LIMIT))
        for round in range(2):
            waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
            for newcomer in waiting:
                self.addCleanup(newcomer.close)
                newcomer.connect(str(self.poor.place.socket))
            cpu = procs.cpu_seconds(self.poor.pid)
            time.sleep(1)
            self.assertLess(procs.cpu_seconds(self.poor.pid) - cpu, 0.4, f"it must not spin on accept, round {round}")
            self.assertEqual(self.client.call("info")["pid"], self.poor.pid)
            before = procs.fd_count(self.poor.pid)
            resource.prlimit(self.poor.pid, resource.RLIMIT_NOFILE, (self.LIMIT, self.LIMIT))
            # Those that waited, and the descriptor for turning others away.
            procs.wait_until(lambda: procs.fd_count(self.poor.pid) >= before + len(waiting) + 1, "who waited is let in")
            self.poor.connect().close()
            resource.prlimit(self.poor.pid, resource.RLIMIT_NOFILE, (3, self.LIMIT))
        resource.prlimit(self.poor.pid, resource.RLIMIT_NOFILE, (self.LIMIT, self.LIMIT))

    def test_no_descriptors_leak_from_refusals(self):
        """A hundred refused spawns leave the number of open descriptors as it was."""
        self.fill()
        before = procs.fd_count(self.poor.pid)
        for _ in range(100):
            with self.assertRaises(KeeperError):
                self.client.call("spawn", argv=["sleep", "300"], stdin="pipe")
        procs.wait_until(lambda: procs.fd_count(self.poor.pid) == before, f"as many descriptors as before: {before}")

    def tree_without_descriptors(self):
        """A process with a descendant in a session of its own, under a keeper that can open nothing more: (record, their pids)."""
        process = self.client.call("spawn", argv=["sh", "-c", "setsid sleep 300 & echo $!; exec sleep 300"])["process"]
        text = procs.wait_until(lambda: self.client.reply("read", {"id": process["id"]}).bytes(), "it has a child")
        tree = [process["pid"], self.outside(process["id"], text, self.poor.pid)]
        resource.prlimit(self.poor.pid, resource.RLIMIT_NOFILE, (3, self.LIMIT))
        return process, tree

    def test_no_descriptors_left_for_a_kill(self):
        """A kill that cannot look at /proc ends all the same what a namespace holds together."""
        process, tree = self.tree_without_descriptors()
        receipt = self.client.call("kill", id=process["id"])
        self.assertEqual((receipt["success"], receipt["survivors"], receipt["killed"]), (True, 0, tree[:1]), receipt)
        self.assert_gone(tree)
        resource.prlimit(self.poor.pid, resource.RLIMIT_NOFILE, (self.LIMIT, self.LIMIT))


class FullNoDescriptorsTest(NoDescriptorsTest):
    profile = "full"
    LIMIT = 84

    def test_no_descriptors_left_for_a_kill(self):
        """A kill that cannot look at /proc does not claim what it has not seen; with descriptors again a kill succeeds."""
        process, tree = self.tree_without_descriptors()
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
            resource.setrlimit(resource.RLIMIT_NPROC, (24, 24))
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

    def try_each(self, numbers):
        """How often each outcome came of letting one of these allocations fail."""
        outcomes = {}
        for number in numbers:
            with self.subTest(fault=f"alloc:{number}"):
                outcome = self.try_fault(f"alloc:{number}")
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
        return outcomes

    def test_single_allocation_fails_at_first(self):
        """The N-th allocation fails, for each of the first N: an error to who asked or a clean refusal to start, never a crash."""
        outcomes = self.try_each(range(1, 60, 1 if not sanitized() else 3))
        self.assertGreater(outcomes.get("not started", 0), 0)

    def test_single_allocation_fails_later(self):
        """The same, for many later N."""
        outcomes = self.try_each([*range(60, 400, 7), *range(400, 1500, 61)])
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

    def small_disk(self, place, size):
        """The state folder is a disk of that size, in a mount namespace: what commands in it begin with."""
        script = f"mount -t tmpfs -o size={size},mode=0700 coop-test {place.state} && echo ready && exec sleep 1000"
        place.state.mkdir()
        holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        self.assertEqual(holder.stdout.readline(), b"ready\n")
        return ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"]

    @unittest.skipUnless(ROOT, "needs root to mount a small disk in a mount namespace of its own")
    def test_spool_leaves_room_for_the_records(self):
        """A spool that meets the end of the disk stops before that: the audit and the database are still written."""
        place = Place()
        keeper = self.start_keeper(place=place, wrap=self.small_disk(place, "16m"))
        client = keeper.clients[0]
        args = {"argv": ["head", "-c", "60000000", "/dev/zero"], "overflow": "spool", "ring_bytes": 65536}
        process = client.reply("spawn", args).result["process"]["id"]
        self.assertTrue(client.call("wait", id=process)["process"]["streams"]["stdout"]["spool"]["truncated"])
        for _ in range(50):
            ended = client.call("spawn", argv=["true", "x" * 200])["process"]["id"]
            client.call("wait", id=ended)
        self.assertTrue(client.call("audit_verify")["good"])
        self.assertTrue(client.call("history", limit=1)["processes"])
        info = client.call("info")
        self.assertEqual((info["audit"]["state"], info["records"]["state"]), ("ok", "ok"))

    @unittest.skipUnless(ROOT, "needs root to mount a small disk in a mount namespace of its own")
    def test_spool_that_filled_the_disk_is_no_hindrance(self):
        """What a killed keeper's spool takes is given back before the next one writes anything."""
        place = Place()
        inside = self.small_disk(place, "4m")
        keeper = self.start_keeper(place=place, wrap=inside)
        args = {"argv": ["sh", "-c", "echo x; exec sleep 300"], "overflow": "spool"}
        path = keeper.clients[0].reply("spawn", args).result["process"]["stdout_path"]
        keeper.kill()
        self.expect_end(keeper)
        subprocess.run([*inside, "sh", "-c", f"head -c 9000000 /dev/zero >{path}; test $(stat -f -c %a {path}) = 0"],
                       check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client = self.start_keeper(place=place, wrap=inside).clients[0]
        self.assertEqual(client.call("wait", id=client.call("spawn", argv=["true"])["process"]["id"])["process"]["exit"]["code"], 0)

    @unittest.skipUnless(ROOT, "needs root to mount a small disk in a mount namespace of its own")
    def test_state_cannot_be_written(self):
        """A full disk at start: the keeper says in one line why it does not serve, and ends."""
        place = Place()
        place.state.mkdir()
        script = (f"mount -t tmpfs -o size=64k,mode=0700 coop-test {place.state} && "
                  f'head -c 1000000 /dev/zero >{place.state}/full 2>/dev/null; exec "$@"')
        keeper = self.start_keeper(place=place, wrap=["unshare", "-m", "sh", "-c", script, "sh"], ready=False)
        self.expect_end(keeper, [1])
        self.assertEqual(place.log_tail().count("\n"), 1, place.log_tail())
        self.assertIn(f"the state folder {place.state} cannot be used: No space left on device", place.log_tail())

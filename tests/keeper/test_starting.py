"""What happens to a process while it is being started: the launcher dies, the client goes, others ask for it."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
import unittest

from lib import procs
from lib.client import KeeperError
from lib.keeper import KeeperCase


class StartingCase(KeeperCase):
    """A launcher that stands holds a start at its beginning; a program that cannot be opened yet holds it at its end."""

    slots = 0

    def setUp(self):
        super().setUp()
        # The launcher runs and has prepared itself, and the keeper has forgotten what it was needed for.
        self.ended(self.spawn("true")["id"])
        self.client.call("gc")

    def stop_launcher(self):
        """From now on nothing that is asked for is started."""
        pid = self.launcher()
        os.kill(pid, signal.SIGSTOP)
        procs.wait_until(lambda: procs.stat(pid)[0] == "T", "the launcher stands")
        return pid

    def listed(self, **args):
        return self.connect().call("list", **args)["processes"]

    @contextlib.contextmanager
    def held_program(self, script="exec sleep 300"):
        """A program on which somebody has a lease: execve waits until that is given back. Gives (path, whether somebody
        waits)."""
        path = self.work / "held"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        fd = os.open(path, os.O_RDONLY)
        try:
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            os.close(fd)
            self.skipTest(f"no leases on this file system: {error}")
        try:
            yield str(path), lambda: fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_WRLCK
        finally:
            os.close(fd)

    def start_held(self, path, waits, tag="held"):
        """(request, pid) of a spawn whose child stands just before its program."""
        before = set(procs.descendants(self.keeper.pid))
        request = self.client.submit("spawn", {"argv": [path], "tag": tag, **self.granted()})
        procs.wait_until(waits, "it is about to execute")
        # The one that is about to become the program, and in a sandbox the first process of its namespace.
        count = 1 if self.profile == "full" else 2
        fresh = procs.wait_until(lambda: len(f := set(procs.descendants(self.keeper.pid)) - before) == count and f, "all are there")
        return request, max(fresh, key=procs.number_inside)


class HeldChildTest(StartingCase):
    def lose_launcher(self, count=48):
        """The launcher dies with plans that it has not read; returns their requests."""
        launcher = self.stop_launcher()
        requests = [self.client.submit("spawn", {"argv": ["sh", "-c", f"exit {i}"]}) for i in range(count)]
        self.client.call("info")
        os.kill(launcher, signal.SIGKILL)
        return requests

    def test_launcher_killed_while_a_child_is_held(self):
        """A child stands before its program and the launcher dies: the spawns under way and later ones work, orphans are
        reaped, and the held one is still known and can be killed."""
        record, told, _ = self.run_sh("setsid sleep 300 & echo $!; exit 0")
        orphan = self.outside(record["id"], told)
        with self.held_program() as (path, waits):
            held, pid = self.start_held(path, waits)
            requests = self.lose_launcher()
            for i, request in enumerate(requests):
                process = self.client.finish(request, 20).result["process"]["id"]
                self.assertEqual(self.ended(process)["exit"]["code"], i)
            self.assertEqual(self.ended(self.sh("exit 77")["id"])["exit"]["code"], 77)
            os.kill(orphan, signal.SIGKILL)
            procs.wait_until(lambda: procs.stat(orphan) is None, "the orphan is reaped")
            self.assertTrue(waits() and procs.alive(pid), "the control: it is still held")
            # The first process of the orphan's namespace leaves behind it, a moment later.
            procs.wait_until(lambda: [(r["tag"], r["state"]) for r in self.listed()] == [("held", "starting")], "only the held one")
            receipt = self.client.call("kill", id="held")
            self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0), receipt)
            self.assert_gone([pid])
            # It never ran its program: the spawn is refused, or tells of a process that was killed.
            with contextlib.suppress(KeeperError):
                self.client.finish(held)
        self.assertEqual(self.listed(), [])

    def test_held_child_goes_on_after_the_launcher_was_killed(self):
        """The held one is let go when the launcher is another: it runs, its spawn is answered, it ends as any other."""
        with self.held_program() as (path, waits):
            held, pid = self.start_held(path, waits)
            requests = self.lose_launcher(3)
        record = self.client.finish(held, 20).result["process"]
        self.assertEqual((record["pid"], record["state"]), (pid, "running"))
        for i, request in enumerate(requests):
            process = self.client.finish(request, 20).result["process"]["id"]
            self.assertEqual(self.ended(process)["exit"]["code"], i)
        receipt = self.client.call("kill", id="held")
        self.assertEqual((receipt["success"], receipt["killed"]), (True, [pid]), receipt)

    def test_kill_tells_of_no_first_process_that_was_seen_before_it_was_known(self):
        """The keeper looks at all processes while a start is under way, and kills by that look: the first process of the
        namespace, which then was nobody's, is not told among those that were killed."""
        launcher = self.stop_launcher()
        with self.held_program() as (path, waits):
            held = self.client.submit("spawn", {"argv": [path], "tag": "held", **self.granted()})
            self.client.call("info")  # the launcher has been sent it
            before = set(procs.descendants(self.keeper.pid))
            os.kill(self.keeper.pid, signal.SIGSTOP)
            try:
                time.sleep(0.1)  # looks that are closer together are one
                look = self.client.submit("info")
                os.kill(launcher, signal.SIGCONT)
                procs.wait_until(waits, "it is about to execute")
                fresh = set(procs.descendants(self.keeper.pid)) - before
                os.kill(launcher, signal.SIGKILL)
                procs.wait_until(lambda: any(procs.stat(one)[1] == self.keeper.pid for one in fresh), "it is the keeper's child")
            finally:
                os.kill(self.keeper.pid, signal.SIGCONT)
            self.client.finish(look)
        record = self.client.finish(held, 20).result["process"]
        receipt = self.client.call("kill", id="held")
        self.assertEqual((receipt["success"], receipt["killed"]), (True, [record["pid"]]), receipt)


class LauncherDescriptorsTest(StartingCase):
    def descriptors(self):
        pid = self.launcher()
        names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        # It has networks of its own and of sessions, now more, now fewer.
        return sorted(name.partition(":[")[0] for name in names if not name.startswith("net:"))

    def test_restarted_launcher_holds_nothing_of_the_keeper(self):
        """A launcher that is started while terminals and pipes are open, and written to, has the same few descriptors as the
        first one."""
        first = self.descriptors()
        quiet = "stty raw -echo; echo ready; exec sleep 300"
        for kind in ("pty", "pipe"):
            script = quiet if kind == "pty" else "echo ready; exec sleep 300"
            process = self.sh(script, kind=kind, overflow="spool", **({"stdin": "pipe"} if kind == "pipe" else {}))["id"]
            self.wait_output(process, b"ready", "pty" if kind == "pty" else "stdout")
            # More than the kernel takes, so that the keeper still waits for room.
            self.client.submit("write_stdin", {"id": process, "timeout_ms": -1}, b"x" * 200000)
        old = self.launcher()
        os.kill(old, signal.SIGKILL)
        procs.wait_until(lambda: self.launcher() not in (0, None, old), "another launcher")
        self.ended(self.spawn("true")["id"])
        self.assertEqual(self.descriptors(), first)


class StoppedAtOnceTest(StartingCase):
    COUNT = 8
    SCRIPT = "kill -STOP $$; exit 5"

    def assert_stopped(self, requests):
        """All are shown as stopped, and go on to their end."""
        ids = [self.client.finish(request).result["process"]["id"] for request in requests]

        def shown():
            return [record["state"] for record in self.client.call("status", ids=ids)["processes"]]

        with contextlib.suppress(AssertionError):
            procs.wait_until(lambda: shown() == ["stopped"] * len(ids), "all are shown as stopped", timeout=10)
        self.assertEqual(shown(), ["stopped"] * len(ids))
        for process in ids:
            self.client.call("signal", id=process, signal="CONT")
        self.assertEqual([self.ended(process)["exit"]["code"] for process in ids], [5] * len(ids))

    def stays(self, state):
        """Whether the keeper is in a state, and still a moment later."""
        looks = []
        for _ in range(2):
            looks.append(procs.stat(self.keeper.pid)[0])
            time.sleep(0.05)
        return looks == [state, state]

    def wait_stopped(self):
        """Until so many processes of the keeper stand."""

        def stand():
            found = [procs.stat(pid) for pid in procs.descendants(self.keeper.pid)]
            return sum(bool(stat) and stat[0] == "T" for stat in found) >= self.COUNT

        procs.wait_until(stand, "all of them stand")

    def test_stopped_before_its_start_is_known(self):
        """The keeper hears everything at once, the launcher's answers, the executions and the stops."""
        launcher = self.stop_launcher()
        requests = [self.client.submit("spawn", {"argv": ["sh", "-c", self.SCRIPT]}) for _ in range(self.COUNT)]
        self.client.call("info")
        os.kill(self.keeper.pid, signal.SIGSTOP)
        try:
            os.kill(launcher, signal.SIGCONT)
            self.wait_stopped()
        finally:
            os.kill(self.keeper.pid, signal.SIGCONT)
        self.assert_stopped(requests)

    @unittest.skipUnless(shutil.which("strace"), "needs strace to hold the keeper between an event and its handling")
    def test_stopped_before_its_execution_is_heard(self):
        """The keeper has woken up because another child died; before it looks at its children these execute and stop: their
        stop is met before it is known that they run."""
        # Without pipes, so that its death alone wakes the keeper up.
        other = self.sh("exec sleep 300 >&- 2>&-")
        procs.wait_until(lambda: all(s["eof"] for s in self.status(other["id"])["streams"].values()), "its pipes are closed")
        with self.held_program(self.SCRIPT) as (path, waits):
            requests = [self.start_held(path, waits, f"held-{i}")[0] for i in range(self.COUNT)]
            calls = "epoll_wait,epoll_pwait"
            argv = ["strace", "-o", "/dev/null", "-p", str(self.keeper.pid), "-e", f"inject={calls}:delay_exit=500000"]
            strace = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.assertIn(b"attached", strace.stderr.readline())
            # From its next sleep on it is held when it wakes up.
            self.client.call("info")
            procs.wait_until(lambda: self.stays("S"), "the keeper sleeps")
            os.kill(other["pid"], signal.SIGKILL)
            procs.wait_until(lambda: self.stays("t"), "it has woken up and is held")
        with strace:
            self.wait_stopped()
            strace.terminate()
        self.assert_stopped(requests)


class StartingIdTest(StartingCase):
    def test_id_that_was_listed_while_starting_stays_good(self):
        """Whoever saw the process in a list while it was starting can name it with that id later."""
        launcher = self.stop_launcher()
        request = self.client.submit("spawn", {"argv": ["sleep", "300"]})
        self.client.call("info")
        listed = self.listed()
        self.assertEqual([record["state"] for record in listed], ["starting"])
        os.kill(launcher, signal.SIGCONT)
        record = self.client.finish(request).result["process"]
        seen = listed[0]["id"]
        self.assertEqual(self.status(seen)["id"], record["id"])
        self.assertEqual([r["id"] for r in self.client.call("status", ids=[seen])["processes"]], [record["id"]])
        self.assertEqual(self.listed(after=seen), [])
        self.assertTrue(self.client.call("kill", id=seen)["success"])
        self.assertEqual(self.status(seen)["id"], record["id"])
        self.client.call("release", id=record["id"])
        with self.refused("no_such_process"):
            self.status(seen)


class LostClientTest(StartingCase):
    def lose(self, end):
        """An ephemeral process is asked for, `end` is done to its connection and request, and only then does it start."""
        launcher = self.stop_launcher()
        client = self.connect()
        args = {"argv": ["sleep", "300"], "lease": "ephemeral", "tag": "lost"}
        request = client.submit("spawn", args)
        client.call("info")
        end(client, request)
        os.kill(launcher, signal.SIGCONT)

    def test_client_lost_during_the_start(self):
        """It is asked to end, as it would be if it had run already: it dies of SIGTERM and not of SIGKILL."""
        before = self.client.call("info")["connections"]

        def leave(client, _):
            client.close()
            procs.wait_until(lambda: self.client.call("info")["connections"] == before, "the keeper has noticed")

        self.lose(leave)
        final = self.ended("lost")
        self.assertEqual(final["exit"]["signal_name"], "SIGTERM")
        self.assertEqual(final["end_cause"], "session_end")

    def test_cancelled_spawn_is_no_lost_client(self):
        """A spawn that is cancelled by a client that lives on does not end as if the client had gone."""

        def cancel(client, request):
            client.cancel(request)
            with self.refused("cancelled"):
                client.finish(request)

        self.lose(cancel)
        self.ended(self.spawn("true")["id"])
        records = [record for record in self.listed(include_finished=True) if record["tag"] == "lost"]
        for record in records:
            procs.wait_until(lambda: self.status(record["id"])["state"] != "starting", "it is settled")
            self.assertNotEqual(self.status(record["id"])["end_cause"], "session_end")


class FailedStartTest(StartingCase):
    """A program that is not there. What ends it at the same time may come first: then the spawn gives a killed process."""

    def test_failed_start_does_not_hold_up_a_kill(self):
        """A kill of it while it starts succeeds with nothing left, and not because its time is over."""
        for i in range(12):
            args = {"argv": ["/nonexistent"], "on_exit": ("kill", "keep")[i % 3 == 0], "tag": f"missing-{i}"}
            requests = [("spawn", args | {"record_failure": i % 4 == 0}), ("kill", {"id": args["tag"]})]
            spawn, kill = self.client.submit_all(requests)
            with contextlib.suppress(KeeperError):
                self.client.finish(spawn)
            receipt = self.client.finish(kill).result
            self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0), receipt)
            self.assertLess(receipt["ms"], 5000, f"the limit of a kill, {args}")
            self.assertIn(receipt["process"]["end_cause"], ("spawn_failed", "killed_by_request"))

    def test_failed_start_does_not_hold_up_a_shutdown(self):
        """A shutdown while it starts, with on_exit kill: the keeper leaves at once."""
        for _ in range(4):
            keeper = self.start_keeper()
            client = keeper.clients[0]
            # The limit of a kill is 5 s; a process of the test's own ends before that.
            with subprocess.Popen(["sleep", "4.5"]) as clock:
                start = ("spawn", {"argv": ["/nonexistent"], "on_exit": "kill"})
                spawn, shutdown = client.submit_all([start, ("shutdown", {"grace_ms": 0})])
                with contextlib.suppress(KeeperError):
                    client.finish(spawn)
                answer = client.finish(shutdown).result
                waited = clock.poll() is not None
                clock.kill()
            self.assertEqual(answer["survivors"], 0)
            self.assertFalse(waited, "the shutdown waited for the limit of a kill")
            self.expect_end(keeper, [0])


class FullHeldChildTest(HeldChildTest):
    profile = "full"


class FullLauncherDescriptorsTest(LauncherDescriptorsTest):
    profile = "full"


class FullStoppedAtOnceTest(StoppedAtOnceTest):
    profile = "full"


class FullStartingIdTest(StartingIdTest):
    profile = "full"


class FullLostClientTest(LostClientTest):
    profile = "full"


class FullFailedStartTest(FailedStartTest):
    profile = "full"

"""Signals, kill and stop (B-046 to B-052)."""

import os
import signal
import time

from lib import procs
from lib.keeper import KeeperCase
from lib.place import patience

# Leaves its group and session at every step and never has a living parent. Ends by itself before its dead could fill the
# machine, should nobody reap them.
HOPPER = """
import os, sys, time
end = time.monotonic() + 10
os.write(1, b'hop\\n')
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.0005)
"""


class SignalTest(KeeperCase):
    def test_b046_names_and_numbers(self):
        """Any letter case, with or without SIG, or a number."""
        process = self.sh("for s in USR1 HUP; do trap 'echo got' $s; done; echo ready; while :; do sleep 0.05; done")["id"]
        self.wait_output(process, b"ready")
        for name in ("SIGUSR1", "usr1", "sigusr1", "Usr1", 10):
            answer = self.client.call("signal", id=process, signal=name, target="process")
            self.assertEqual((answer["sent"], answer["signal"], answer["signal_name"]), (True, 10, "SIGUSR1"))
        for name in ("SIGTERM", "SIGKILL", "SIGINT", "SIGHUP", "SIGSTOP", "SIGCONT"):
            other = self.spawn("sleep", "300")["id"]
            answer = self.client.call("signal", id=other, signal=name)
            self.assertEqual((answer["signal_name"], answer["signal"]), (name, int(getattr(signal, name))))
        real_time = self.spawn("sleep", "300")["id"]
        answer = self.client.call("signal", id=real_time, signal="RTMIN+2")
        self.assertEqual(answer["signal_name"], "SIGRTMIN+2")
        self.assertEqual(self.ended(real_time)["exit"]["signal"], int(signal.SIGRTMIN) + 2)

    def test_b046_bad_signals(self):
        """SIGFOO, 0, out of range, other types: invalid_input naming signal, and nothing is sent."""
        process = self.spawn("sleep", "300")["id"]
        for bad in ("SIGFOO", "SIG", "", 0, -1, 65, 1000, 1 << 40, 9.5, True, ["KILL"], "SIGSIGKILL", "KILL "):
            with self.subTest(bad=bad), self.refused("invalid_input", "signal"):
                self.client.call("signal", id=process, signal=bad)
        self.assertEqual(self.status(process)["state"], "running")

    def test_b047_group_is_the_default(self):
        """A signal reaches the whole group; target process reaches the leader only."""
        script = "sh -c 'echo $$; exec sleep 300' & sh -c 'echo $$; exec sleep 300' & wait"
        process = self.sh(script)["id"]
        procs.wait_until(lambda: self.output(process).count(b"\n") == 2, "two children")
        children = [self.outside(process, line) for line in self.output(process).split()]
        self.client.call("signal", id=process, signal="TERM")
        self.ended(process)
        procs.wait_until(lambda: not any(map(procs.alive, children)), "the group has ended")
        other = self.sh(script)["id"]
        procs.wait_until(lambda: self.output(other).count(b"\n") == 2, "two children")
        children = [self.outside(other, line) for line in self.output(other).split()]
        self.client.call("signal", id=other, signal="KILL", target="process")
        record = self.ended(other)
        self.assertEqual((record["exit"]["signal"], record["descendants"]), (9, 2))
        self.assertTrue(all(map(procs.alive, children)))

    def test_b047_tree_reaches_other_sessions(self):
        """target tree reaches a descendant that left group and session; target group does not."""
        process = self.sh("setsid sh -c 'echo $$; exec sleep 300' & wait; wait; sleep 300")["id"]
        child = self.outside(process, self.wait_output(process, b"\n"))
        self.client.call("signal", id=process, signal="USR1", target="tree")
        procs.wait_until(lambda: not procs.alive(child), "the child in its own session got it")

    def test_b047_never_pid_zero_one_or_the_keeper(self):
        """Numbers that are no ids address nobody: the keeper and this test go on."""
        for bad in ("0", "1", "-1", str(self.keeper.pid), f"psh-{self.keeper.pid:x}-0", "psh-1-1", "psh-0-0"):
            for op, args in (("signal", {"signal": "KILL"}), ("kill", {}), ("stop", {})):
                with self.subTest(id=bad, op=op), self.refused("no_such_process"):
                    self.client.call(op, id=bad, **args)
        self.assertEqual(self.connect().hello["pid"], self.keeper.pid)

    def test_b048_finished_process_is_a_quiet_success(self):
        """Signalling a finished process sends nothing and is no error; an unknown one is no_such_process."""
        process = self.spawn("true")["id"]
        self.ended(process)
        answer = self.client.call("signal", id=process, signal="KILL")
        self.assertEqual((answer["sent"], answer["state"]), (False, "exited"))
        with self.refused("no_such_process"):
            self.client.call("signal", id="psh-1-999", signal="KILL")


class KillTest(KeeperCase):
    slots = 0

    def assert_receipt(self, receipt):
        self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0))
        self.assertIsInstance(receipt["ms"], int)
        self.assertLessEqual(set(receipt["killed"]), set(receipt["signalled"]))

    def test_b049_receipt(self):
        """kill answers when the tree is empty, with who was signalled, who was killed, survivors 0, ms, success."""
        process = self.sh("sleep 300 & sleep 300 & echo up; wait")
        self.wait_output(process["id"], b"up")
        tree = [process["pid"], *procs.descendants(process["pid"])]
        receipt = self.client.call("kill", id=process["id"])
        self.assert_gone(tree)
        self.assert_receipt(receipt)
        self.assertEqual(set(receipt["killed"]), set(tree))
        self.assertEqual(receipt["status"], "killed")

    def forks_after_a_look(self, script):
        """A process whose script goes on only after the keeper has just looked at all processes."""
        go = self.work / "go"
        if not go.exists():
            os.mkfifo(go)
        process = self.sh(f"read x <{go}; {script}")
        with open(go, "w") as gate:
            self.status(process["id"])
            gate.write("\n")
        return process

    def test_b049_receipt_has_those_that_came_a_moment_ago(self):
        """Looks that are close together are one, but not for a kill or a stop: who was forked since the last is named, too."""
        for op, name in (("kill", "killed"), ("stop", "signalled")) * 5:
            with self.subTest(op=op):
                process = self.forks_after_a_look("sleep 300 & sleep 300 & wait")
                forked = procs.wait_until(
                    lambda pid=process["pid"]: len(found := procs.children(pid)) == 2 and found, "both are there", interval=0.0002
                )
                receipt = self.client.call(op, id=process["id"])
                self.assertEqual(set(receipt[name]), {process["pid"], *forked}, receipt)

    def test_b021_the_end_counts_those_that_came_a_moment_ago(self):
        """The last record of one that forked right before its end has all that it left."""
        for _ in range(5):
            process = self.forks_after_a_look("for i in 1 2 3; do setsid sleep 300 >&- 2>&- & done; exit 0")["id"]
            self.assertEqual(self.ended(process)["descendants"], 3)
            self.assert_receipt(self.client.call("kill", id=process))

    def test_b050_setsid_tree(self):
        """`setsid sh -c 'sleep 300 & sleep 300' &` leaves nothing, with its parent alive and with its parent gone."""
        for rest in ("sleep 300", "exit 0"):
            with self.subTest(rest=rest):
                before = set(procs.descendants(self.keeper.process.pid))
                process = self.sh(f"setsid sh -c 'sleep 300 & sleep 300' & {rest}")
                procs.wait_until(
                    lambda: [procs.cmdline(p) for p in procs.descendants(self.keeper.process.pid)].count("sleep 300") >= 2,
                    "the tree stands",
                )
                self.assert_receipt(self.client.call("kill", id=process["id"]))
                self.assertEqual(set(procs.descendants(self.keeper.process.pid)) - before - set(self.launchers()), set())

    def test_b050_double_fork(self):
        """A daemon that forked twice, left its session and lost its parents is found and killed."""
        script = "(setsid sh -c '(sh -c \"echo \\$\\$; exec sleep 300\" &) ; exit 0' & exit 0); sleep 300"
        process = self.sh(script)["id"]
        daemon = self.outside(process, self.wait_output(process, b"\n"))
        receipt = self.client.call("kill", id=process)
        self.assert_receipt(receipt)
        self.assertIn(daemon, receipt["killed"])
        self.assert_gone([daemon])

    def test_b050_forks_during_the_kill(self):
        """A process that forks, changes session and drops its parent without pause is caught; so are three at once."""
        ids = [self.spawn("/usr/bin/python3", "-c", HOPPER)["id"] for _ in range(3)]
        for process in ids:
            self.wait_output(process, b"hop\n")
        before = {self.keeper.pid, self.keeper.process.pid, *self.launchers()}
        for process in ids:
            receipt = self.client.call("kill", id=process)
            self.assert_receipt(receipt)
            self.assertLess(receipt["ms"], patience(6) * 1000)
        self.assertEqual(set(procs.descendants(self.keeper.process.pid)) - before, set())

    def test_b050_forking_without_end_does_not_hold_up_the_keeper(self):
        """While orphans come and die without pause, other calls are answered, and everything can still be ended."""
        ids = [self.spawn("/usr/bin/python3", "-c", HOPPER)["id"] for _ in range(3)]
        for process in ids:
            self.wait_output(process, b"hop\n")
        slowest = 0
        for _ in range(30):
            begin = time.monotonic()
            self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)
            slowest = max(slowest, time.monotonic() - begin)
        self.assertLess(slowest, patience(5))

    def test_b050_kill_leaves_others_alone(self):
        """Other records, with the same program and orphans of their own, are untouched."""
        script = "(setsid sh -c 'echo $$; exec sleep 300' &); exec sleep 300"
        first, second = self.sh(script)["id"], self.sh(script)["id"]
        orphan = self.outside(second, self.wait_output(second, b"\n"))
        self.wait_output(first, b"\n")
        self.client.call("kill", id=first)
        self.assertTrue(procs.alive(orphan))
        # The shell in between may still be leaving.
        procs.wait_until(lambda: self.status(second)["descendants"] == 1, "one descendant to be left")
        self.assertEqual(self.status(second)["state"], "running")

    def test_b051_answer_is_the_final_record(self):
        """The kill answer itself shows signaled 9 and killed_by_request."""
        process = self.spawn("sleep", "300")["id"]
        answer = self.client.call("kill", id=process)
        record = answer["process"]
        self.assertEqual((record["state"], record["exit"]["signal"]), ("signaled", 9))
        self.assertEqual((record["end_cause"], answer["status"]), ("killed_by_request", "killed"))
        self.assertEqual(self.status(process)["ended_at"], record["ended_at"])

    def test_b051_final_record_with_on_exit_kill(self):
        """Kill and stop of a tree answer with the told end and no descendants, also where the end waits for the tree."""
        for op in ("kill", "stop"):
            for i in range(20):
                process = self.sh("sleep 300; echo", on_exit="kill")["id"]
                procs.wait_until(lambda: self.status(process)["descendants"] == 1, "both run")
                receipt = self.client.call(op, id=process)
                record = receipt["process"]
                seen = (record["events"]["exit"] is not None, record["descendants"], record["streams"]["stdout"]["eof"])
                self.assertEqual(seen, (True, 0, True), f"{op}, {i}: {receipt}")
                self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0))

    def test_b051_killing_a_finished_process(self):
        """success true, status unchanged, and descendants that were kept end."""
        process = self.sh("sleep 300 & echo $!; exit 6")["id"]
        first = self.ended(process)
        child = self.outside(process, self.output(process))
        answer = self.client.call("kill", id=process)
        self.assertEqual((answer["success"], answer["status"], answer["killed"]), (True, "exited", [child]))
        self.assert_gone([child])
        self.assertEqual(answer["process"]["exit"], first["exit"])
        again = self.client.call("kill", id=process)
        self.assertEqual((again["success"], again["signalled"], again["status"]), (True, [], "exited"))

    def test_b051_two_kills_at_once(self):
        """Two who kill the same process both get the receipt."""
        process = self.spawn("sleep", "300")["id"]
        requests = [self.client.submit("kill", {"id": process}) for _ in range(2)]
        for request in requests:
            self.assertTrue(self.client.finish(request).result["success"])


class StopTest(KeeperCase):
    def test_b052_handled_term_gives_its_exit_code(self):
        """A program that handles TERM with exit 3 ends as exited 3; record and output stay."""
        process = self.sh("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")["id"]
        self.wait_output(process, b"ready")
        answer = self.client.call("stop", id=process)
        record = answer["process"]
        self.assertEqual((record["state"], record["exit"]["code"]), ("exited", 3))
        self.assertEqual((answer["success"], answer["survivors"]), (True, 0))
        self.assertEqual(self.output(process), b"ready\nbye\n")

    def test_b052_ignored_term_gives_signal_9_after_the_grace(self):
        """A program that ignores TERM is `stopping` during the grace, then signaled 9."""
        process = self.sh("trap '' TERM; echo ready; while :; do sleep 0.05; done")["id"]
        self.wait_output(process, b"ready")
        other = self.connect()
        request = other.submit("stop", {"id": process, "grace_ms": 800})
        self.wait_state(process, "stopping")
        record = other.finish(request).result["process"]
        self.assertEqual((record["state"], record["exit"]["signal"]), ("signaled", 9))

    def test_b052_stopped_process_is_continued(self):
        """A process in SIGSTOP can handle the TERM, because it is continued."""
        # It starts nothing: a leader that waits for a child between vfork and exec, with that child stopped, is not
        # stopped itself and is never reported so.
        process = self.sh("trap 'exit 3' TERM; echo ready; read x", stdin="pipe")["id"]
        self.wait_output(process, b"ready")
        self.client.call("signal", id=process, signal="STOP")
        self.wait_state(process, "stopped")
        record = self.client.call("stop", id=process, grace_ms=20000)["process"]
        self.assertEqual((record["state"], record["exit"]["code"]), ("exited", 3))

    def test_b052_tree_goes_too(self):
        """What is left of the tree after the leader obeyed is killed."""
        process = self.sh("trap 'exit 0' TERM; setsid sleep 300 & echo $!; while :; do sleep 0.05; done")["id"]
        child = self.outside(process, self.wait_output(process, b"\n"))
        procs.wait_until(lambda: "sleep" in procs.cmdline(child).split(" ")[0], "setsid became sleep")
        answer = self.client.call("stop", id=process)
        self.assertEqual(answer["survivors"], 0)
        self.assert_gone([child])

    def test_b052_receipt_names_all_that_were_asked(self):
        """Everybody in the group gets SIGTERM, and the receipt says who they were."""
        record = self.sh("sleep 300 & sleep 300 & wait")
        procs.wait_until(lambda: len(procs.descendants(record["pid"])) == 2, "three run")
        pids = sorted([record["pid"], *procs.descendants(record["pid"])])
        receipt = self.client.call("stop", id=record["id"])
        self.assertEqual((sorted(receipt["signalled"]), sorted(receipt["killed"])), (pids, pids))

    def stopping(self, grace_ms):
        """A process that ignores TERM, being stopped; and the request that waits for it, on a connection of its own."""
        process = self.sh("trap '' TERM; echo ready; while :; do sleep 0.05; done")["id"]
        self.wait_output(process, b"ready")
        client = self.connect()
        request = client.submit("stop", {"id": process, "grace_ms": grace_ms})
        self.wait_state(process, "stopping")
        return process, client, request

    def test_b052_the_shorter_grace_counts(self):
        """Of two stops of one process the one that is over first ends it, be it the second or the first; another one, whose
        grace ends in between, is still there then."""
        for first, second in ((30000, 200), (2000, 30000)):
            with self.subTest(first=first, second=second):
                process, client, request = self.stopping(first)
                other, _, _ = self.stopping(20000)
                record = self.client.call("stop", id=process, grace_ms=second)["process"]
                self.assertEqual((record["state"], record["exit"]["signal"]), ("signaled", 9))
                self.assertEqual(client.finish(request).result["process"]["ended_at"], record["ended_at"])
                self.assertEqual(self.status(other)["state"], "stopping")

    def test_b052_a_stop_without_grace_ends_a_longer_one(self):
        """A kill while a stop waits ends it at once, and answers both."""
        process, client, request = self.stopping(30000)
        other, _, _ = self.stopping(20000)
        self.assertTrue(self.client.call("stop", id=process, grace_ms=0)["success"])
        self.assertTrue(client.finish(request).result["success"])
        self.assertEqual(self.status(other)["state"], "stopping")

    def test_b052_grace_has_bounds(self):
        """More than 30 s or less than 0 is refused."""
        process = self.spawn("sleep", "300")["id"]
        for bad in (30001, -1, "5"):
            with self.subTest(bad=bad), self.refused("invalid_input", "grace_ms"):
                self.client.call("stop", id=process, grace_ms=bad)
        self.assertEqual(self.status(process)["state"], "running")


class FullSignalTest(SignalTest):
    profile = "full"


class FullKillTest(KillTest):
    profile = "full"


class FullStopTest(StopTest):
    profile = "full"

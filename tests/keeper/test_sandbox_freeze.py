"""Freezing a whole tree, thawing it, and killing it while it is frozen."""

import time
import unittest

from lib import procs
from lib.client import KeeperError
from lib.place import patience
from lib.limits import DEMANDED, ROOT, LimitsCase


class FreezeTest(LimitsCase):
    COUNT = "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.02; done"

    def setUp(self):
        super().setUp()
        self.freezer = self.doctor["cgroup"]["freezer"]
        if DEMANDED:
            self.assertEqual(self.freezer["version"], int(DEMANDED))

    def available(self):
        """Where there is no freezer, the refusal says why."""
        if self.freezer["version"]:
            return True
        process = self.spawn("sleep", "300")["id"]
        with self.assertRaises(KeeperError) as caught:
            self.client.call("freeze", id=process)
        self.assertEqual((caught.exception.code, caught.exception.details["protection"]), ("sandbox_unavailable", "freezer"))
        self.assertEqual(caught.exception.details["reason"], self.freezer["reason"])
        return False

    def written(self, process):
        return self.status(process)["streams"]["stdout"]["end"]

    def grows(self, process):
        before = self.written(process)
        procs.wait_until(lambda: self.written(process) > before, "it goes on")

    def stands(self, process):
        before = self.written(process)
        time.sleep(0.3)
        self.assertEqual(self.written(process), before)

    def test_freeze_and_thaw(self):
        """Frozen, nothing of the tree runs, those in sessions of their own neither; thawed, all goes on where it was."""
        if not self.available():
            return
        for profile in ("workspace-write", "full"):
            with self.subTest(profile=profile):
                script = f"setsid sh -c '{self.COUNT}' & {self.COUNT}"
                process = self.sh(script, sandbox={"profile": profile})["id"]
                self.grows(process)
                for _ in range(3):
                    self.assertEqual(self.client.call("freeze", id=process), {"id": process, "frozen": True})
                    # What was in the pipe is read first.
                    time.sleep(0.1)
                    self.stands(process)
                    self.assertTrue(self.status(process)["frozen"])
                    self.assertEqual(self.client.call("thaw", id=process), {"id": process, "frozen": False})
                    self.grows(process)
                    self.assertNotIn("frozen", self.status(process))
                self.assertTrue(self.client.call("kill", id=process)["success"])

    def test_freeze_is_no_news_twice(self):
        if not self.available():
            return
        watcher = self.connect()
        events = watcher.submit("follow_events", {})
        self.assertEqual(watcher.item(events)["event"], "subscribed")
        process = self.sh(self.COUNT)["id"]
        self.assertFalse(self.client.call("thaw", id=process)["frozen"])
        self.assertTrue(self.client.call("freeze", id=process)["frozen"])
        self.assertTrue(self.client.call("freeze", id=process)["frozen"])
        self.assertFalse(self.client.call("thaw", id=process)["frozen"])
        self.grows(process)
        self.client.call("kill", id=process)
        told = [watcher.item(events)]
        while told[-1]["event"] != "exited":
            told.append(watcher.item(events))
        self.assertEqual([event["event"] for event in told if event["process"]["id"] == process], ["started", "output_first", "frozen", "thawed", "exited"])

    def test_frozen_can_be_killed(self):
        """By request, by a time limit, and by the end of the keeper: frozen ones die as others do."""
        if not self.available():
            return
        for profile in ("workspace-write", "full"):
            with self.subTest(profile=profile):
                process = self.sh("sleep 300 & sleep 300", sandbox={"profile": profile})
                tree = [process["pid"], *procs.descendants(process["pid"])]
                self.client.call("freeze", id=process["id"])
                begin = time.monotonic()
                receipt = self.client.call("kill", id=process["id"])
                self.assertTrue(receipt["success"], receipt)
                self.assertLess(time.monotonic() - begin, patience(5))
                self.assertEqual(self.ended(process["id"])["exit"]["signal"], 9)
                self.assert_gone(tree)
                late = self.sh("sleep 300", sandbox={"profile": profile}, timeout_ms=700)["id"]
                self.client.call("freeze", id=late)
                self.assertEqual(self.ended(late)["end_cause"], "timed_out")
                # This one is frozen when the keeper leaves.
                last = self.sh("sleep 300", sandbox={"profile": profile})["id"]
                self.client.call("freeze", id=last)

    def test_no_freeze_while_it_is_being_killed(self):
        """Within the grace of a stop: refused, as a frozen one could not use the grace, nor die in every host."""
        if not self.available():
            return
        for profile in ("workspace-write", "full"):
            with self.subTest(profile=profile):
                process = self.sh("trap '' TERM; echo set; while :; do sleep 0.05; done", sandbox={"profile": profile})
                self.wait_output(process["id"], b"set")
                tree = [process["pid"], *procs.descendants(process["pid"])]
                with self.connect() as other:
                    request = other.submit("stop", {"id": process["id"], "grace_ms": 1000})
                    procs.wait_until(lambda: self.status(process["id"])["state"] == "stopping", "the stop has begun")
                    with self.refused("not_running"):
                        self.client.call("freeze", id=process["id"])
                    self.assertTrue(other.finish(request).result["success"])
                self.assertEqual(self.ended(process["id"])["exit"]["signal"], 9)
                self.assert_gone(tree)

    def test_killed_while_it_is_being_frozen(self):
        """Both asked for at once, in either order: whatever the freeze came to, nothing survives."""
        if not self.available():
            return
        for number in range(24):
            profile = ("workspace-write", "full")[number % 2]
            process = self.sh("sleep 300 & setsid sleep 300 & echo set; sleep 300", sandbox={"profile": profile})
            self.wait_output(process["id"], b"set")
            tree = [process["pid"], *procs.descendants(process["pid"])]
            asks = [("freeze", {"id": process["id"]}), ("kill", {"id": process["id"]})]
            with self.connect() as other:
                if number % 3:
                    ids = dict(zip(("freeze", "kill"), other.submit_all(asks)))
                else:
                    # The job has begun, and is perhaps not over.
                    ids = {"freeze": other.submit(*asks[0])}
                    time.sleep(0.0005 * (number % 7))
                    ids["kill"] = other.submit(*asks[1])
                while "result" not in (answer := other.item(ids["kill"])) and "error" not in answer:
                    pass
                self.assertTrue(answer["result"]["success"], answer)
                freeze = other.item(ids["freeze"])
                self.assertIn(freeze.get("error", {}).get("code"), (None, "not_running", "unavailable"), freeze)
            self.assertEqual(self.ended(process["id"])["state"], "signaled")
            self.assert_gone(tree)

    def test_frozen_and_limited(self):
        """A process with limits is in a group already, and can be frozen in it."""
        if not self.available() or not self.held("max_pids"):
            return
        process = self.sh(self.COUNT, limits={"max_pids": 50})["id"]
        self.grows(process)
        self.client.call("freeze", id=process)
        time.sleep(0.1)
        self.stands(process)
        self.client.call("thaw", id=process)
        self.grows(process)

    @unittest.skipUnless(ROOT, "needs root for control groups")
    def test_a_recycled_pid_is_not_frozen(self):
        """One of the tree dies before its turn has come, and somebody else gets its pid: nothing happens to him."""
        self.assert_in_pid_namespace("recycled_frozen.py", "stranger goes on", "full")

    def test_freeze_what_has_ended(self):
        if not self.available():
            return
        process = self.spawn("true")["id"]
        self.ended(process)
        for op in ("freeze", "thaw"):
            with self.subTest(op=op), self.refused("not_running"):
                self.client.call(op, id=process)
        with self.refused("no_such_process"):
            self.client.call("freeze", id="psh-0-999999")

"""Ending what belongs to a call (B-053)."""

from lib import procs
from lib.agents import AgentCase

POLITE = "trap 'echo int; exit 3' INT; echo ready; while :; do sleep 0.05; done"
STUBBORN = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done"


class CancelTest(AgentCase):
    def test_b053_exactly_those_that_carry_one(self):
        """Several call ids at once end all their processes, none of another call and none without; the answer names them."""
        first = [self.start(self.client, call_id="call-1")["id"] for _ in range(3)]
        second = self.start(self.client, call_id="call-2")["id"]
        third = self.start(self.client, call_id="call-3")
        plain = [self.start(self.client)["id"], self.start(self.client, tag="call-1", alias="call-2", why="call-1")["id"],
                 self.start(self.client, call_id="call-11")["id"], self.start(self.client, call_id="CALL-1")["id"]]
        self.assertEqual((third["call_id"], self.status(plain[0])["call_id"]), ("call-3", None))
        answer = self.client.call("cancel", call_ids=["call-1", "call-2", "call-1", "unknown"])
        self.assertEqual((sorted(answer["cancelled"]), answer["survivors"]), (sorted([*first, second]), 0))
        for process in [*first, second]:
            end = self.status(process)
            self.assertEqual((end["state"], end["exit"]["signal"], end["end_cause"]), ("signaled", 2, "cancelled"))
            self.assertEqual((end["end_evidence"]["agent"], end["end_evidence"]["request"]), ("main", "cancel"))
            self.assertRegex(end["end_evidence"]["at"], r"^\d{4}-.*Z$")
        self.assert_alive(self.client, third["id"], *plain)

    def test_b053_interrupt_then_kill(self):
        """INT first: who handles it leaves with its own code; who ignores it is killed after 2 s. The answer comes when all are gone."""
        polite, stubborn = (self.start(self.client, script, call_id="c") for script in (POLITE, STUBBORN))
        for record in (polite, stubborn):
            self.line(self.client, record["id"])
        answer = self.client.call("cancel", call_ids=["c"])
        self.assert_gone([polite["pid"], stubborn["pid"]])
        self.assertEqual((len(answer["cancelled"]), answer["survivors"]), (2, 0))
        end = self.status(polite["id"])
        self.assertEqual((end["exit"]["code"], end["end_cause"], self.output(polite["id"])), (3, "cancelled", b"ready\nint\n"))
        end = self.status(stubborn["id"])
        self.assertEqual((end["exit"]["signal"], end["end_cause"]), (9, "cancelled"))
        self.assertGreaterEqual(end["duration_ms"], 2000)

    def test_b053_trees(self):
        """Descendants that left group and session go with it, and one that is stopped goes, too."""
        script = "setsid sh -c 'trap \"\" INT; sleep 300 & sleep 300' & echo ready; exec sleep 300"
        record = self.start(self.client, script, call_id="c")
        self.line(self.client, record["id"])
        tree = procs.wait_until(lambda: len(found := procs.descendants(record["pid"])) >= 3 and found, "the tree grows")
        stopped = self.start(self.client, call_id="c")
        self.client.call("signal", id=stopped["id"], signal="STOP")
        self.wait_state(stopped["id"], "stopped")
        answer = self.client.call("cancel", call_ids=["c"])
        self.assert_gone([record["pid"], stopped["pid"], *tree])
        self.assertEqual((len(answer["cancelled"]), answer["survivors"]), (2, 0))

    def test_b053_each_agent_cancels_its_own(self):
        """The same call id of agents above, below, beside and of another principal is somebody else's."""
        who = {"main": self.client, **self.family()}
        process = {name: self.start(client, call_id="shared")["id"] for name, client in who.items()}
        for name in ("a", "alice", "x"):
            self.assertEqual(who[name].call("cancel", call_ids=["shared"])["cancelled"], [process.pop(name)])
            for other, left in process.items():
                self.assert_alive(who[other], left)

    def test_b053_what_has_ended_and_what_never_was(self):
        """Ended ones are not cancelled again; unknown and no ids give an empty answer."""
        done = self.finish(self.client, "exit 5", call_id="c")["id"]
        for call_ids in (["c"], ["unknown"], [], [""]):
            self.assertEqual(self.client.call("cancel", call_ids=call_ids), {"cancelled": [], "survivors": 0})
        self.assertEqual((self.status(done)["exit"]["code"], self.status(done)["end_cause"]), (5, "self_exit"))

    def test_b053_bad_call_ids(self):
        """More than 256 bytes, no strings, no list: refused with the field."""
        self.assertEqual(self.start(self.client, "exit 0", call_id="é" * 128)["call_id"], "é" * 128)
        for bad in ("x" * 257, 7, ["c"], True):
            error = self.refusal(self.client, "spawn", argv=["true"], call_id=bad)
            self.assertIn((error.code, error.details["field"]), (("invalid_input", "call_id"), ("too_large", "call_id")))
        for bad in ("c", 7, {"c": 1}, [7], [None]):
            error = self.refusal(self.client, "cancel", call_ids=bad)
            self.assertEqual(error.code, "invalid_input")
            self.assertTrue(error.details["field"].startswith("call_ids"), error)
        self.assert_refused(self.client, "invalid_input", "cancel")

"""Ending processes by their ids, as `cancel` does (B-053)."""

import unittest

from lib.agents import AgentCase


class CancelIdsTest(AgentCase):
    def cancel(self, client=None, **args):
        answer = (client or self.client).call("cancel", **args)
        self.assertEqual(answer["survivors"], 0)
        return sorted(answer["cancelled"])

    def test_b053_exactly_those_that_are_named(self):
        """By id, alias or tag, each once however often it is named; the rest goes on."""
        ids = [self.start(self.client, tag=f"t{n}", alias=f"a{n}")["id"] for n in range(4)]
        self.assertEqual(self.cancel(ids=[ids[0], "alias:a1", "t2", ids[0], "t0", "alias:a0"]), sorted(ids[:3]))
        for process in ids[:3]:
            end = self.status(process)
            self.assertEqual((end["exit"]["signal"], end["end_cause"], end["end_evidence"]["request"]), (2, "cancelled", "cancel"))
        self.assert_alive(self.client, ids[3])

    def test_b053_ids_and_call_ids_together(self):
        both = self.start(self.client, call_id="c")["id"]
        carries, named, other = self.start(self.client, call_id="c")["id"], self.start(self.client)["id"], self.start(self.client)["id"]
        self.assertEqual(self.cancel(call_ids=["c"], ids=[named, both]), sorted([both, carries, named]))
        self.assert_alive(self.client, other)

    def test_b053_a_call_id_is_no_id(self):
        first = self.start(self.client, call_id="x")["id"]
        second = self.start(self.client, tag="y")["id"]
        self.assertEqual(self.cancel(ids=["x"], call_ids=["y", first, second]), [])
        self.assert_alive(self.client, first, second)

    def test_b053_unknown_ambiguous_and_ended_ones_are_left_out(self):
        done = self.finish(self.client, "exit 5")["id"]
        twins = [self.start(self.client, tag="twin")["id"] for _ in range(2)]
        self.assertEqual(self.cancel(ids=[done, "twin", "psh-", "psh-1-99999", "", "alias:none", "alias:"]), [])
        self.assertEqual(self.cancel(ids=[]), [])
        self.assert_alive(self.client, *twins)
        self.assertEqual(self.status(done)["end_cause"], "self_exit")

    def test_b053_each_agent_names_its_own(self):
        """What is below the caller, above it, beside it, or another's, is left out without a word."""
        who = {"main": self.client, **self.family()}
        process = {name: self.start(client)["id"] for name, client in who.items()}
        for name, client in who.items():
            others = [process[other] for other in who if other != name]
            self.assertEqual(self.cancel(client, ids=others), [], name)
        for name, client in who.items():
            self.assert_alive(client, process[name])
            self.assertEqual(self.cancel(client, ids=list(process.values())), [process[name]])

    def test_b053_one_of_them_is_needed(self):
        for args in ({}, {"ids": None}, {"ids": None, "call_ids": None}):
            self.assert_refused(self.client, "invalid_input", "cancel", **args)
        for bad in ("x", 7, {"x": 1}, [7], [None], ["x"] * 1001):
            error = self.refusal(self.client, "cancel", ids=bad)
            self.assertIn(error.code, ("invalid_input", "too_large"))
            self.assertTrue(error.details["field"].startswith("ids"), error)


if __name__ == "__main__":
    unittest.main()

"""`alias:NAME` wherever an id is asked for."""

from lib.agents import AgentCase
from lib.place import Place


class AliasTest(AgentCase):
    def test_it_names_the_live_process_else_the_latest(self):
        """Record or receipt; a live one stands above all that have ended, whatever came last."""
        old = self.finish(self.client, alias="web")["id"]
        self.assertEqual(self.status("alias:web")["id"], old)
        newer = self.finish(self.client, alias="web")["id"]
        self.assertEqual(self.status("alias:web")["id"], newer)
        live = self.start(self.client, alias="web")["id"]
        self.assertEqual(self.status("alias:web")["id"], live)
        with self.refused("spawn_failed"):
            self.client.call("spawn", argv=["/no/such/program"], record_failure=True, alias="other")
        self.assertEqual(self.status("alias:other")["end_cause"], "spawn_failed")
        self.client.call("kill", id="alias:web")
        self.assertEqual(self.status("alias:web")["id"], live)
        self.client.call("release", id="alias:web")
        self.assertEqual(self.status("alias:web")["id"], newer)

    def test_every_operation_takes_it(self):
        self.start(self.client, "cat; sleep 300", alias="a b/c", stdin="pipe")
        name = "alias:a b/c"
        self.assertEqual(self.client.reply("write_stdin", {"id": name}, b"hi\n").result["bytes_written"], 3)
        self.wait_output(name, b"hi")
        self.client.call("close_stdin", id=name)
        self.assertTrue(self.client.call("signal", id=name, signal="TERM")["sent"])
        self.assertEqual(self.wait(name)["process"]["alias"], "a b/c")
        self.assertEqual(self.output(name), b"hi\n")
        self.assertEqual(len(self.client.call("status", ids=[name, "alias:none"])["processes"]), 1)
        self.assertTrue(self.client.call("release", id=name)["released"])
        self.assertFalse(self.client.call("release", id=name)["released"])

    def test_what_is_unknown_is_no_process(self):
        """In the same words as an unknown id; a tag is no alias, and what looks like an alias is no tag."""
        self.start(self.client, tag="alias:web", alias="psh")
        self.start(self.client, tag="shop")
        asked = ["psh-1-999", "alias:", "alias:web", "alias:shop", "alias:psh-", "ALIAS:psh", "alias:alias:psh", "psh"]
        self.assert_same({text: self.client.answer("status", {"id": text}) for text in asked})
        self.assert_refused(self.client, "no_such_process", "status", id="alias:web")
        self.assertEqual(self.status("alias:psh")["alias"], "psh")

    def test_ids_come_first(self):
        """An alias that looks like an id, or begins with the prefix itself, is found behind the prefix only."""
        first = self.start(self.client)["id"]
        second = self.start(self.client, alias=first)["id"]
        third = self.start(self.client, alias="alias:x")["id"]
        self.assertEqual(self.status(first)["id"], first)
        self.assertEqual(self.status(f"alias:{first}")["id"], second)
        self.assertEqual(self.status("alias:alias:x")["id"], third)

    def test_ones_own_stands_above_those_below(self):
        """An agent below may take any alias: it never hides its ancestor's own, nor can it be touched by that name."""
        below = self.keeper.agent("main/a")
        theirs = self.start(below, alias="web")["id"]
        self.assertEqual(self.status("alias:web")["id"], theirs)
        self.assert_refused(self.client, "not_owner", "kill", id="alias:web")
        own = self.finish(self.client, alias="web")["id"]
        self.assertEqual(self.status("alias:web")["id"], own)
        self.assertEqual(below.call("status", id="alias:web")["process"]["id"], theirs)
        more = self.keeper.agent("main/b")
        self.start(more, alias="db"), self.start(below, alias="db")
        self.assertEqual(len(self.assert_refused(self.client, "invalid_input", "status", id="alias:db")["candidates"]), 2)

    def test_others_do_not_exist(self):
        family = self.family()
        self.start(family["a"], alias="web")
        for name in ("b", "x", "alice", "alice/a"):
            self.assert_refused(family[name], "no_such_process", "status", id="alias:web")

    def test_a_receipt_of_an_earlier_keeper_is_found(self):
        place = Place()
        keeper = self.start_keeper(place=place)
        client = keeper.clients[0]
        first = self.finish(client, alias="web", **self.granted(workspace=str(place.work)))["id"]
        client.call("shutdown", grace_ms=0)
        keeper.wait_gone()
        keeper.ended = True
        again = Place()
        again.state, again.socket = place.state, place.socket
        keeper = self.start_keeper(place=again)
        record = keeper.clients[0].call("status", id="alias:web")["process"]
        self.assertEqual((record["id"], record["receipt"]), (first, True))

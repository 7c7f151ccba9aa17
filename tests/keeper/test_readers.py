"""Readers with names: each goes on where it was, over whichever connection it comes (P-09)."""

import unittest

from lib import procs
from lib.agents import AgentCase

TEN = "printf 0123456789; printf abcde >&2"


class ReaderTest(AgentCase):
    slots = 0

    def ended_with(self, script=TEN, client=None, **args):
        return self.finish(client or self.client, script, **args)["id"]

    def take(self, process, reader, client=None, **args):
        """What a reader of that name has before it, and where it begins and ends. Nothing is moved."""
        reply = (client or self.client).reply("read", {"id": process, "reader": reader, **args})
        return b"".join(chunk.data for chunk in reply.chunks), reply.result["cursor"], reply.result["next"]

    def put(self, process, reader, cursor=None, client=None, **args):
        answer = (client or self.client).call("reader", id=process, reader=reader, cursor=cursor, **args)
        self.assertEqual(sorted(answer), ["cursor", "previous", "reader", "stream"])
        self.assertEqual(answer["reader"], reader)
        return answer["cursor"], answer["previous"]

    def test_p09_a_read_moves_nothing_and_a_move_is_kept(self):
        process = self.ended_with()
        for _ in range(2):
            self.assertEqual(self.take(process, "r", max=4), (b"0123", 0, 4))
        self.assertEqual(self.put(process, "r", 4), (4, 0))
        self.assertEqual(self.take(process, "r", max=4), (b"4567", 4, 8))
        self.assertEqual(self.put(process, "r"), (4, 4), "without a cursor it is only told")
        self.assertEqual(self.put(process, "r", 0), (0, 4), "it may go back")
        self.assertEqual(self.take(process, "r"), (b"0123456789", 0, 10))

    def test_p09_several_names_do_not_know_of_each_other(self):
        process = self.ended_with()
        for number, name in enumerate(("a", "b", "A", "a ", "é", "x" * 64)):
            self.assertEqual(self.put(process, name, number), (number, 0))
        for number, name in enumerate(("a", "b", "A", "a ", "é", "x" * 64)):
            self.assertEqual(self.take(process, name)[1], number)
        self.assertEqual(self.take(process, "never")[1], 0)

    def test_p09_each_stream_has_its_own_and_combined_counts_events(self):
        process = self.ended_with()
        self.put(process, "r", 3)
        self.assertEqual(self.take(process, "r", stream="stderr"), (b"abcde", 0, 5))
        self.put(process, "r", 2, stream="stderr")
        self.assertEqual(self.take(process, "r", stream="stderr"), (b"cde", 2, 5))
        self.assertEqual(self.take(process, "r", stream="stdout")[1], 3)
        everything, begin, end = self.take(process, "r", stream="combined")
        self.assertEqual((len(everything), begin), (15, 0))
        self.assertEqual(self.put(process, "r", end, stream="combined"), (end, 0))
        self.assertEqual(self.take(process, "r", stream="combined"), (b"", end, end))
        self.assertEqual(self.put(process, "r"), (3, 3))

    def test_p09_a_terminal_is_the_default_where_there_is_one(self):
        process = self.ended_with("printf hello", kind="pty")
        answer = self.client.call("reader", id=process, reader="r", cursor=2)
        self.assertEqual((answer["stream"], answer["cursor"]), ("pty", 2))
        self.assertEqual(self.take(process, "r")[0], b"llo")

    def test_p09_past_the_end_is_at_the_end(self):
        process = self.ended_with()
        self.assertEqual(self.put(process, "r", 1 << 40), (10, 0))
        self.assertEqual(self.put(process, "r", 1 << 40, stream="combined")[0], self.status(process)["events"]["exit"])

    def test_p09_it_outlives_its_connection(self):
        process = self.ended_with()
        with self.connect() as other:
            self.put(process, "r", 7, client=other)
        self.assertEqual(self.take(process, "r"), (b"789", 7, 10))

    def test_p09_more_output_is_read_from_there(self):
        process = self.sh("echo one; read line; echo two", stdin="pipe")["id"]
        self.wait_output(process, b"one\n")
        self.put(process, "r", 4)
        self.assertEqual(self.take(process, "r")[0], b"")
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.ended(process)
        self.assertEqual(self.take(process, "r"), (b"two\n", 4, 8))

    def test_p09_what_was_lost_is_counted_from_its_place(self):
        process = self.ended_with("head -c 20000 /dev/zero", ring_bytes=4096)
        self.put(process, "r", 1000)
        result = self.client.reply("read", {"id": process, "reader": "r"}).result
        self.assertEqual((result["bytes_dropped"], result["cursor"], result["next"]), (20000 - 4096 - 1000, 20000 - 4096, 20000))

    def test_p09_agents_have_readers_of_their_own(self):
        """An agent above reads what is below it under the same name, and moves nothing of the owner's."""
        who = self.family()
        process = self.ended_with(client=who["x"])
        for number, name in enumerate(("x", "a"), 3):
            self.assertEqual(self.put(process, "r", number, client=who[name]), (number, 0))
        self.assertEqual(self.put(process, "r", 9), (9, 0))
        self.assertEqual([self.take(process, "r", client=client)[1] for client in (who["x"], who["a"], self.client)], [3, 4, 9])

    def test_p09_what_may_not_be_seen_has_no_readers(self):
        who = self.family()
        process = self.ended_with(client=who["a"])
        answers = {}
        for name in ("x", "b", "alice", "alice/a"):
            for target in (process, "psh-1-999999"):
                error = self.refusal(who[name], "reader", id=target, reader="r", cursor=1)
                answers[name, target] = (error.code, error.message, error.details)
        self.assert_same(answers)
        self.assertEqual(set(code for code, _, _ in answers.values()), {"no_such_process"})
        self.assertEqual(self.put(process, "r", client=who["a"]), (0, 0))

    def test_p09_the_one_that_was_not_used_for_longest_goes(self):
        process = self.ended_with()
        for number in range(64):
            self.put(process, f"r{number}", 5)
        self.take(process, "r0")  # to read is to use
        self.put(process, "r1")
        self.put(process, "new", 6)
        self.put(process, "newer", 6)
        self.assertEqual([self.put(process, f"r{number}")[0] for number in range(6)], [5, 5, 0, 0, 5, 5])
        self.assertEqual([self.put(process, name)[0] for name in ("new", "newer")], [6, 6])

    def test_p09_one_that_only_looks_takes_no_place(self):
        process = self.ended_with()
        self.put(process, "first", 5)
        for number in range(200):
            self.take(process, f"looker{number}")
            self.put(process, f"looker{number}")
        self.assertEqual(self.put(process, "first")[0], 5)

    def test_p09_they_go_with_the_record(self):
        process = self.ended_with()
        self.put(process, "r", 5)
        self.client.call("release", id=process)
        self.assert_refused(self.client, "no_such_process", "reader", id=process, reader="r")

    def test_p09_a_receipt_still_knows_them(self):
        """Whoever had read it all before it became one has lost nothing."""
        keeper = self.start_keeper({"max_finished": 1})
        client = keeper.clients[0]
        first = self.finish(client, TEN)["id"]
        client.call("reader", id=first, reader="r", cursor=10)
        self.finish(client, "exit 0")
        procs.wait_until(lambda: client.call("status", id=first)["process"]["receipt"], "the surplus becomes a receipt")
        result = client.reply("read", {"id": first, "reader": "r"}).result
        self.assertEqual((result["cursor"], result["bytes_dropped"], result["drained_eof"]), (10, 0, True))

    def test_p09_bad_arguments(self):
        process = self.ended_with()
        for args, field in (
            ({"reader": "r", "cursor": 1}, "reader"),
            ({"reader": "r", "tail": 1}, "reader"),
            ({"reader": ""}, "reader"),
            ({"reader": "x" * 65}, "reader"),
            ({"reader": 7}, "reader"),
            ({"reader": "a\0b"}, "reader"),
        ):
            error = self.refusal(self.client, "read", id=process, **args)
            self.assertIn(error.code, ("invalid_input", "too_large"), args)
            self.assertEqual(error.details["field"], field, args)
        for args, field in (
            ({}, "reader"),
            ({"reader": ""}, "reader"),
            ({"reader": "x" * 65}, "reader"),
            ({"reader": "r", "cursor": -1}, "cursor"),
            ({"reader": "r", "stream": "pty"}, "stream"),
            ({"reader": "r", "stream": "stdin"}, "stream"),
        ):
            error = self.refusal(self.client, "reader", id=process, **args)
            self.assertIn(error.code, ("invalid_input", "too_large"), args)
            self.assertEqual(error.details["field"], field, args)


if __name__ == "__main__":
    unittest.main()

"""Reads and follows by events say how many bytes were before: what is lost can be told exactly (R-015, R-051)."""

from lib.agents import AgentCase
from lib.client import Data
from lib.procs import wait_until

RING = 4096


class BytesBeforeTest(AgentCase):
    settings = {"max_events": 64, "max_finished": 4}

    def combined(self, process, cursor=0, size=1 << 20):
        return self.client.reply("read", {"id": process, "stream": "combined", "cursor": cursor, "max": size, "times": True})

    def talk(self, script, **args):
        process = self.sh(script, **args)["id"]
        self.ended(process)
        return process

    def many(self):
        """More events than the index keeps, each of them read by itself: the writer waits for its reader. The bytes of each event."""
        process = self.sh("while read n; do printf '%0*d' $n 0; done", stdin="pipe", ring_bytes=RING)["id"]
        sizes = [1 + number % 9 for number in range(150)]
        done = 0
        for size in sizes:
            self.client.reply("write_stdin", {"id": process}, b"%d\n" % size)
            done += size
            request = self.client.submit("follow", {"id": process, "from": {"stdout": done - 1}})
            while not isinstance(self.client.item(request, 30), Data):
                pass
            self.client.cancel(request)
            with self.refused("cancelled"):
                self.client.finish(request)
        return process, sizes

    def test_r051_a_read_begins_at_the_first_event_that_is_there(self):
        """From every place: `cursor` is the first event returned, `bytes_before` is the sum of all before it."""
        process, sizes = self.many()
        first = self.status(process)["events"]["first"]
        self.assertGreater(first, 0)
        for asked in (0, 1, first - 1, first, first + 1, 149, 150, 151, 1 << 40):
            result = self.combined(process, asked).result
            begin = min(max(asked, first), 150)
            self.assertEqual((result["cursor"], result["bytes_before"]), (begin, sum(sizes[:begin])), asked)
            self.assertEqual(result["bytes"], sum(sizes[begin:]))
            self.assertEqual(result["gaps"], [])

    def test_r051_small_reads_add_up(self):
        """Page by page every page begins where the one before ended, in events and in bytes."""
        process, sizes = self.many()
        cursor, before = self.status(process)["events"]["first"], None
        while True:
            reply = self.combined(process, cursor, 10)
            result = reply.result
            if before is not None:
                self.assertEqual(result["bytes_before"], before)
            if not result["bytes"]:
                break
            before = result["bytes_before"] + result["bytes"]
            cursor = result["next"]
        self.assertEqual((cursor, before), (150, sum(sizes)))

    def test_r015_a_gap_says_what_was_before_its_end(self):
        """The gap of a follow by events: its bytes, and those of all events before the first that comes."""
        process, sizes = self.many()
        first = self.status(process)["events"]["first"]
        self.client.call("close_stdin", id=process)
        self.ended(process)
        reply = self.client.reply("follow", {"id": process, "mode": "events"})
        gap = next(event for event in reply.events if event["event"] == "gap")
        self.assertEqual(gap | {"id": 0}, {"id": 0, "event": "gap", "from_cursor": 0, "to_cursor": first,
                                           "bytes": sum(sizes[:first]), "bytes_before": sum(sizes[:first])})
        reply = self.client.reply("follow", {"id": process, "mode": "events", "since": 1})
        gap = next(event for event in reply.events if event["event"] == "gap")
        self.assertEqual((gap["bytes"], gap["bytes_before"]), (None, sum(sizes[:first])))

    def test_r015_what_one_stream_lost_is_told_where_it_is_missing(self):
        """stderr keeps its few bytes while stdout's are overwritten: holes in the middle of an answer have their bytes."""
        process = self.talk("printf a >&2; sleep 0.1; head -c 3000 /dev/zero; sleep 0.1; printf b >&2; sleep 0.1; head -c 4096 /dev/zero",
                            ring_bytes=RING)
        reply = self.combined(process)
        result = reply.result
        self.assertEqual((result["cursor"], result["bytes_before"]), (0, 0))
        self.assertEqual(reply.bytes("stderr"), b"ab")
        self.assertEqual(sum(gap["bytes"] for gap in result["gaps"]), result["bytes_dropped"])
        self.assertEqual(result["bytes"] + result["bytes_dropped"], 7098)
        there = {chunk.cursor for chunk in reply.chunks}
        missing = {number for gap in result["gaps"] for number in range(gap["from_cursor"], gap["to_cursor"])}
        self.assertEqual(there | missing, set(range(result["next"])))
        self.assertFalse(there & missing)

    def test_r051_a_leading_hole_is_before_the_cursor(self):
        """What the ring lost at the front is no gap of the answer: the answer begins behind it."""
        process = self.talk("head -c 3000 /dev/zero; sleep 0.1; head -c 4096 /dev/zero", ring_bytes=RING)
        result = self.combined(process).result
        self.assertGreater(result["cursor"], 0)
        self.assertEqual((result["bytes_before"], result["gaps"]), (result["bytes_dropped"], []))
        self.assertEqual(result["bytes_before"] + result["bytes"], 7096)

    def test_r051_a_receipt_still_knows(self):
        process, sizes = self.many()
        self.client.call("close_stdin", id=process)
        self.ended(process)
        for _ in range(8):
            self.finish(self.client)
        wait_until(lambda: self.status(process)["receipt"], "it becomes a receipt")
        result = self.combined(process).result
        self.assertEqual((result["cursor"], result["bytes_before"], result["bytes"]), (150, sum(sizes), 0))

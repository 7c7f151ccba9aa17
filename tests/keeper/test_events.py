"""Following a process, by bytes and by numbered events, and the end of streams (B-036, B-037)."""

import os
import threading

from lib import procs
from lib.client import NO_CURSOR, Client, Data
from lib.keeper import KeeperCase

MIB = 1 << 20


class EndOfStreamTest(KeeperCase):
    def test_b036_eof_only_after_the_pipe_ended(self):
        """While somebody holds the pipe: exited and eof false; afterwards eof, drained_eof only at the last byte."""
        fifo = self.work / "gate"
        os.mkfifo(fifo)
        process = self.sh(f"echo one; (read x <{fifo}; echo two) & exit 0")["id"]
        record = self.ended(process)
        self.assertEqual(record["state"], "exited")
        self.assertFalse(record["streams"]["stdout"]["eof"])
        reply = self.client.reply("read", {"id": process})
        self.assertEqual((reply.bytes(), reply.result["eof"], reply.result["drained_eof"]), (b"one\n", False, False))
        follower = self.connect()
        request = follower.submit("follow", {"id": process, "streams": ["stdout"], "until": "eof"})
        fifo.write_text("go\n")
        answer = follower.finish(request)
        self.assertEqual((answer.bytes(), answer.result["reason"]), (b"one\ntwo\n", "eof"))
        part = self.client.reply("read", {"id": process, "max": 4}).result
        self.assertEqual((part["eof"], part["drained_eof"]), (True, False))
        whole = self.client.reply("read", {"id": process, "cursor": 4}).result
        self.assertEqual((whole["eof"], whole["drained_eof"], whole["next"]), (True, True, 8))

    def test_b036_streams_end_one_by_one(self):
        """A program that closes its stdout and runs on: eof there, not on stderr."""
        process = self.sh("echo x; exec 1>&-; echo y >&2; exec sleep 300")["id"]
        procs.wait_until(lambda: self.status(process)["streams"]["stdout"]["eof"], "stdout has ended")
        record = self.status(process)
        self.assertEqual(record["state"], "running")
        self.assertFalse(record["streams"]["stderr"]["eof"])
        self.assertTrue(self.client.reply("read", {"id": process}).result["drained_eof"])


class FollowTest(KeeperCase):
    def test_b037_each_follower_gets_everything(self):
        """Three followers, two from the start and one late at an offset: each byte once, in order, then the end."""
        process = self.sh("echo a; read x; echo b; read x; echo c", stdin="pipe")["id"]
        clients = [self.connect() for _ in range(3)]
        requests = [client.submit("follow", {"id": process}) for client in clients[:2]]
        for text in (b"a\n", b"b\n"):
            self.wait_output(process, text)
            self.client.reply("write_stdin", {"id": process}, b"\n")
            if text == b"a\n":
                requests.append(clients[2].submit("follow", {"id": process, "from": {"stdout": 2}}))
        replies = [client.finish(request) for client, request in zip(clients, requests)]
        self.assertEqual([reply.bytes() for reply in replies], [b"a\nb\nc\n", b"a\nb\nc\n", b"b\nc\n"])
        for reply in replies:
            self.assertEqual(reply.events[0]["event"], "attached")
            self.assertEqual((reply.result["reason"], reply.result["process"]["state"]), ("exit", "exited"))
            position = reply.chunks[0].offset
            for chunk in reply.chunks:
                self.assertEqual((chunk.offset, chunk.cursor), (position, NO_CURSOR))
                position += len(chunk.data)

    def test_b037_slow_follower_delays_nobody(self):
        """One follower never reads. The process finishes, a fast one gets all, the slow one gets a gap, not silence."""
        process = self.sh(f"read x; yes 0123456789abcde | head -c {64 * MIB}", stdin="pipe")["id"]
        slow, fast = self.connect(), self.connect()
        slow_request = slow.submit("follow", {"id": process})
        while not isinstance(slow.item(slow_request), dict):
            pass
        request = fast.submit("follow", {"id": process})
        got = {}

        def collect():
            got["fast"] = fast.finish(request)

        thread = threading.Thread(target=collect)
        thread.start()
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.assertEqual(self.ended(process)["exit"]["code"], 0)
        thread.join()
        received = sum(len(chunk.data) for chunk in got["fast"].chunks)
        lost = sum(e["to"] - e["from"] for e in got["fast"].events if e["event"] == "gap")
        self.assertEqual(received + lost, 64 * MIB)
        late = slow.finish(slow_request)
        gaps = [event for event in late.events if event["event"] == "gap"]
        self.assertTrue(gaps, "the slow follower must be told what it lost")
        self.assertEqual(sum(len(c.data) for c in late.chunks) + sum(g["to"] - g["from"] for g in gaps), 64 * MIB)
        for gap in gaps:
            self.assertEqual(gap["stream"], "stdout")

    def test_b037_follow_of_a_finished_process(self):
        """A late follower gets all retained bytes and the end at once."""
        process = self.sh("echo gone; echo err >&2")["id"]
        self.ended(process)
        reply = self.client.reply("follow", {"id": process})
        self.assertEqual((reply.bytes(), reply.bytes("stderr")), (b"gone\n", b"err\n"))
        tail = self.client.reply("follow", {"id": process, "tail": 3, "streams": ["stdout"]})
        self.assertEqual((tail.bytes(), tail.bytes("stderr")), (b"ne\n", b""))

    def test_b037_cancelled_follow_disturbs_nobody(self):
        """Cancelling one follow answers `cancelled`; the other goes on. An unknown id is ignored."""
        process = self.sh("echo a; read x; echo b", stdin="pipe")["id"]
        client = self.connect()
        first, second = client.submit("follow", {"id": process}), client.submit("follow", {"id": process})
        self.wait_output(process, b"a\n")
        client.cancel(first)
        client.cancel(999999)
        with self.refused("cancelled"):
            client.finish(first)
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.assertEqual(client.finish(second).bytes(), b"a\nb\n")

    def test_b037_released_under_a_follower(self):
        """A follow whose process is released ends with a reason."""
        process = self.spawn("sleep", "300")["id"]
        client = self.connect()
        request = client.submit("follow", {"id": process})
        self.assertEqual(client.item(request)["event"], "attached")
        self.client.call("release", id=process)
        self.assertIn(client.finish(request).result["reason"], ("exit", "released"))


class EventIndexTest(KeeperCase):
    def interleaved(self):
        process = self.sh("echo o1; read x; echo e1 >&2; read x; echo o2; exit 3", stdin="pipe")["id"]
        for stream, text in (("stdout", b"o1"), ("stderr", b"e1")):
            self.wait_output(process, text, stream)
            self.client.reply("write_stdin", {"id": process}, b"\n")
        self.ended(process)
        return process

    def test_events_count_over_all_streams_and_end_with_exit(self):
        """One counter from 0, step 1, in order of reading; the exit has the number after the last chunk."""
        process = self.interleaved()
        for since in range(4):
            reply = self.client.reply("follow", {"id": process, "mode": "events", "since": since})
            expected = [(0, "stdout", b"o1\n"), (1, "stderr", b"e1\n"), (2, "stdout", b"o2\n")][since:]
            self.assertEqual([(c.cursor, c.stream, c.data) for c in reply.chunks], expected)
            self.assertEqual((reply.result["cursor"], reply.result["reason"]), (3, "exit"))
        self.assertEqual(self.status(process)["events"], {"first": 0, "next": 4, "exit": 3})

    def test_events_since_past_the_end(self):
        """Finished: attached, then the end, always. Running: attached, then it waits."""
        process = self.interleaved()
        reply = self.client.reply("follow", {"id": process, "mode": "events", "since": 1000})
        self.assertEqual((reply.chunks, reply.result["cursor"]), ([], 3))
        running = self.spawn("cat", stdin="pipe")["id"]
        client = self.connect()
        request = client.submit("follow", {"id": running, "mode": "events", "since": 1})
        self.assertEqual(client.item(request)["event"], "attached")
        self.client.reply("write_stdin", {"id": running}, b"zero")
        self.wait_output(running, b"zero")
        self.client.reply("write_stdin", {"id": running}, b"one")
        item = client.item(request)
        self.assertEqual((item.cursor, item.data), (1, b"one"))

    def test_events_snapshot_and_live_join_without_hole(self):
        """Attaching while output pours: every number once, ascending, and the bytes are whole."""
        process = self.sh("i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done")["id"]
        clients = [Client(self.keeper.place.socket) for _ in range(10)]
        requests = [client.submit("follow", {"id": process, "mode": "events"}) for client in clients]
        expected = b"".join(b"line-%d\n" % i for i in range(3000))
        seen = set()
        for client, request in zip(clients, requests):
            reply = client.finish(request)
            client.close()
            self.assertEqual([chunk.cursor for chunk in reply.chunks], list(range(len(reply.chunks))))
            self.assertEqual(reply.bytes(), expected)
            self.assertEqual(reply.result["cursor"], len(reply.chunks))
            seen.add(tuple(len(chunk.data) for chunk in reply.chunks))
        self.assertEqual(len(seen), 1, "a cursor names the same bytes for every reader")

    def test_events_evicted_are_told_as_a_gap(self):
        """Beyond the ring, the lost numbers are one gap at the start; the exit is never lost."""
        process = self.sh(f"yes 0123456789abcde | head -c {MIB}", ring_bytes=65536)["id"]
        self.ended(process)
        reply = self.client.reply("follow", {"id": process, "mode": "events"})
        gaps = [event for event in reply.events if event["event"] == "gap"]
        self.assertEqual(len(gaps), 1, reply.events)
        self.assertEqual(gaps[0]["from_cursor"], 0)
        self.assertEqual(gaps[0]["to_cursor"], reply.chunks[0].cursor)
        self.assertEqual(gaps[0]["bytes"] + len(reply.bytes()), MIB)
        numbers = [chunk.cursor for chunk in reply.chunks]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        self.assertEqual(reply.result["cursor"], numbers[-1] + 1)

    def test_events_bound_keeps_bytes_readable_by_offset(self):
        """Numbered events have their own bound; older ones become a gap while their bytes can still be read."""
        client = self.start_keeper({"max_events": 16}).clients[0]
        script = "import os, sys\nfor i in range(64):\n    os.write(1 + i % 2, b'%02d ' % i); sys.stdin.readline()"
        process = client.call("spawn", argv=["/usr/bin/python3", "-c", script], stdin="pipe")["process"]["id"]
        for i in range(64):
            stream = ("stdout", "stderr")[i % 2]
            look = {"id": process, "stream": stream, "cursor": 0}
            wanted = b"%02d " % i
            procs.wait_until(lambda: wanted in client.reply("read", look).bytes(stream), f"{i} has arrived")
            client.reply("write_stdin", {"id": process}, b"\n")
        record = client.call("wait", id=process)["process"]
        self.assertEqual(record["events"]["next"], 65)
        self.assertGreater(record["events"]["first"], 40)
        self.assertEqual(len(client.reply("read", {"id": process}).bytes()), 96)
        reply = client.reply("follow", {"id": process, "mode": "events"})
        gap = next(event for event in reply.events if event["event"] == "gap")
        self.assertEqual(gap["to_cursor"], record["events"]["first"])
        self.assertEqual(reply.result["cursor"], 64)

    def test_events_slow_reader_gets_gap_and_the_exit(self):
        """An event follower that does not read while much passes is not cut off: gap, later events, exit."""
        process = self.sh(f"read x; yes 0123456789abcde | head -c {32 * MIB}", stdin="pipe")["id"]
        slow = self.connect()
        request = slow.submit("follow", {"id": process, "mode": "events"})
        self.assertEqual(slow.item(request)["event"], "attached")
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.ended(process)
        position, lost = 0, 0
        while True:
            item = slow.item(request)
            if isinstance(item, Data):
                self.assertEqual(item.cursor, position)
                position += 1
            elif item.get("event") == "gap":
                self.assertEqual(item["from_cursor"], position)
                position = item["to_cursor"]
                lost += 1
            else:
                self.assertEqual(item["result"]["cursor"], position)
                break
        self.assertGreater(lost, 0)

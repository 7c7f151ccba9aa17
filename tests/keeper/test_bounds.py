"""What a keeper holds for its clients is bounded, and what it has promised is delivered all the same."""

import contextlib
import json
import os
import select
import signal
import socket
import threading
import time

from lib import procs
from lib.client import Data, json_frame
from lib.keeper import KeeperCase
from lib.place import sanitized

KIB, MIB = 1 << 10, 1 << 20
# A sanitizer keeps freed memory for a while and surrounds the rest.
MEMORY_MAX = (700 if sanitized() else 200) * MIB


class BoundsCase(KeeperCase):
    def memory(self):
        return self.client.call("info")["memory"]["rss_bytes"]


class LongArgumentsTest(BoundsCase):
    settings = {"max_finished": 4}
    # As many bytes as the kernel takes with room to spare.
    LONG = ["a" * 120000] * 15

    def receipt(self, process):
        """What is left of an ended process when later ones have taken its place."""
        for _ in range(5):
            self.ended(self.spawn("true")["id"])
        return procs.wait_until(lambda: (record := self.status(process))["receipt"] and record, "it is a receipt")

    def test_receipts_do_not_keep_long_arguments(self):
        """Many ended processes with megabytes of arguments: the keeper's memory does not grow with them."""
        count = 110
        for _ in range(count):
            self.ended(self.spawn("true", *self.LONG)["id"])
        procs.wait_until(lambda: self.client.call("info")["processes"]["receipts"] == count - 4, "all but four are receipts")
        self.assertLess(self.memory(), MEMORY_MAX)

    def test_record_shows_the_beginning_of_long_arguments(self):
        """The program gets all of them; the record has their beginning and says so, a receipt has less."""
        process = self.spawn("sh", "-c", 'printf %s "$@" | wc -c', "sh", *self.LONG)["id"]
        record = self.ended(process)
        self.assertEqual(int(self.output(process)), sum(map(len, self.LONG)))
        self.assertTrue(record["argv_truncated"])
        self.assertEqual(record["argv"][:2], ["sh", "-c"])
        self.assertLess(len(json.dumps([record["argv"], record["command"]])), 2 * 64 * KIB + KIB)
        self.assertTrue(record["argv"][-1].startswith("aaaa"), "as much as there is room for")
        receipt = self.receipt(process)
        self.assertTrue(receipt["argv_truncated"])
        self.assertEqual(receipt["argv"][:2], ["sh", "-c"])
        self.assertLess(len(json.dumps([receipt["argv"], receipt["command"]])), 4 * KIB)
        self.assertEqual(receipt["exit"], record["exit"])

    def test_short_arguments_are_shown_whole(self):
        """What is not cut is exact and says so, in a record and in a receipt."""
        argv = ["echo", "a b", "ä" * 400]
        process = self.spawn(*argv)["id"]
        for record in (self.ended(process), self.receipt(process)):
            self.assertEqual((record["argv"], record["argv_truncated"]), (argv, False))

    def test_arguments_that_grow_as_json(self):
        """A megabyte of control characters, each six bytes in JSON: its own spawn, list, status and wait are answered."""
        argv = ["sh", "-c", 'printf %s "$@" | wc -c; sleep 300', "sh", *["\x01" * 100000] * 11]
        record = self.spawn(*argv, tag="grown")
        self.assertTrue(record["argv_truncated"])
        self.wait_output(record["id"], b"1100000\n")
        other = self.spawn("sleep", "300")["id"]
        for args in ({}, {"brief": True}, {"limit": 1}, {"include_finished": True}):
            with self.subTest(args=args):
                listed = self.client.call("list", **args)["processes"]
                self.assertEqual([r["id"] for r in listed], [record["id"], other][: args.get("limit", 2)])
        self.assertEqual(self.status("grown")["argv"][:2], ["sh", "-c"])
        self.assertTrue(self.client.call("kill", id="grown")["success"])
        self.assertEqual(self.ended(record["id"])["exit"]["signal"], signal.SIGKILL)

    def test_command_that_grows_as_json(self):
        """The same for a shell's command line."""
        script = "exit 3 # " + "\x01" * 120000
        record = self.client.call("spawn", mode="shell", command=script)["process"]
        final = self.ended(record["id"])
        self.assertEqual((final["exit"]["code"], final["argv_truncated"]), (3, True))
        self.assertTrue(final["command"].startswith("exit 3 # "))


class UnreadAnswersTest(BoundsCase):
    def test_waits_with_output_that_nobody_reads(self):
        """256 waits want a megabyte each and nothing is read: memory stays bounded; read then, every answer is whole."""
        with_text = "yes 0123456789abcde | head -c 1200000; read x"
        process = self.sh(with_text, stdin="pipe")["id"]
        procs.wait_until(lambda: self.status(process)["streams"]["stdout"]["end"] == 1200000, "all is in the ring")
        reader = self.connect()
        requests = reader.submit_all([("wait", {"id": process, "output_bytes": MIB})] * 256)
        reader.submit("info")
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.client.call("info")
        self.assertLess(self.memory(), MEMORY_MAX)
        start = self.status(process)["streams"]["stdout"]["start"]
        expected = (b"0123456789abcde\n" * (1200000 // 16))[start : start + MIB]
        for request in requests:
            reply = reader.finish(request)
            self.assertEqual(reply.chunks[0].offset, start)
            self.assertTrue(reply.bytes() == expected, "the beginning of the ring")
            self.assertEqual(reply.result["exit_code"], 1)
        self.assertLess(self.memory(), MEMORY_MAX)

    def test_reads_that_nobody_reads(self):
        """The same with reads of four megabytes."""
        record, out, _ = self.run_sh("head -c 4194304 /dev/zero", ring_bytes=8 * MIB)
        self.assertEqual(len(out), 4 * MIB)
        reader = self.connect()
        requests = reader.submit_all([("read", {"id": record["id"], "max": 4 * MIB})] * 100)
        # The keeper takes as many as it wants to answer now; the rest must not be answered into its memory.
        time.sleep(0.5)
        self.assertLess(self.memory(), MEMORY_MAX)
        for request in requests:
            self.assertEqual(sum(len(chunk.data) for chunk in reader.finish(request).chunks), 4 * MIB)

    def test_requests_behind_an_answer_that_goes_out_at_once(self):
        """Many reads of four megabytes in one piece, for a client that reads as fast as it can: all are answered, also where
        an answer that was too much to take more requests has gone out in one go."""
        record, _, _ = self.run_sh("head -c 4194304 /dev/zero", ring_bytes=8 * MIB)
        reader, count = self.connect(), 60
        received = [0]

        def receive():
            # Bytes only: taking frames apart would make it slow.
            place = bytearray(8 * MIB)
            with contextlib.suppress(OSError):
                while size := reader.socket.recv_into(place):
                    received[0] += size

        reader.socket.settimeout(None)
        thread = threading.Thread(target=receive)
        thread.start()
        try:
            frame = {"op": "read", "args": {"id": record["id"], "max": 4 * MIB}}
            reader.socket.sendall(b"".join(json_frame(frame | {"id": i + 1}) for i in range(count)))
            with contextlib.suppress(AssertionError):
                procs.wait_until(lambda: received[0] > count * 4 * MIB, "all answers", timeout=20)
            self.assertEqual(received[0] // (4 * MIB), count)
        finally:
            reader.socket.shutdown(socket.SHUT_RDWR)
            thread.join()


class ManyRequestsTest(BoundsCase):
    def test_kill_behind_as_many_requests_as_may_be_open(self):
        """255 waits and two kills in one piece: the second kill is read when the first is answered, and carried out."""
        # The first kill is of an orphan that nobody hears of otherwise: no timer, no pipe wakes the keeper up after it.
        left = self.sh("setsid sleep 300 <&- >&- 2>&- & exit 0")["id"]
        self.ended(left)
        ids = [self.spawn("sleep", "300")["id"], left, self.spawn("sleep", "300")["id"]]
        time.sleep(1.5)
        waits = [("wait", {"id": ids[0]})] * 255
        requests = self.client.submit_all([*waits, ("kill", {"id": ids[1]}), ("kill", {"id": ids[2]})])
        for request in requests[-2:]:
            receipt = self.client.finish(request).result
            self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0), receipt)
            self.assertEqual(len(receipt["killed"]), 1, receipt)
            # It was not the 5 s limit of the first that reminded the keeper of the second.
            self.assertLess(receipt["ms"], 4000, receipt)
        self.assertEqual(receipt["process"]["state"], "signaled")
        self.connect().call("kill", id=ids[0])
        for request in requests[:-2]:
            self.assertEqual(self.client.finish(request).result["signal"], "SIGKILL")

    def test_shutdown_behind_as_many_requests_as_may_be_open(self):
        """255 waits, a kill and a shutdown in one piece: the shutdown is carried out, and the waits are answered."""
        ids = [self.spawn("sleep", "300")["id"] for _ in range(2)]
        waits = [("wait", {"id": ids[0]})] * 255
        requests = self.client.submit_all([*waits, ("kill", {"id": ids[1]}), ("shutdown", {"grace_ms": 0})])
        self.assertTrue(self.client.finish(requests[-2]).result["success"])
        self.assertEqual(self.client.finish(requests[-1]).result["survivors"], 0)
        for request in requests[:-2]:
            self.assertEqual(self.client.finish(request).result["process"]["end_cause"], "shutdown")
        self.expect_end(self.keeper, [0])


class StandingDiskTest(BoundsCase):
    """A FIFO in the place of a spool file is a disk that takes nothing until the test reads from it."""

    def stand(self, process):
        """From now on the process's spool stands. Returns what is to be read from."""
        path = process["stdout_path"]
        os.unlink(path)
        os.mkfifo(path, 0o600)
        return path

    def test_single_bytes_for_a_disk_that_stands(self):
        """Processes write byte by byte and the disk takes none: what waits for it is bounded; later all of it arrives."""
        script = "import os, sys\nsys.stdin.read(1)\nwhile True:\n  os.write(1, b'x')\n  os.sched_yield()\n"
        args = {"overflow": "spool", "stderr": "merged", "stdin": "pipe"}
        writers = [self.spawn("python3", "-c", script, **args) for _ in range(4)]
        paths = [self.stand(process) for process in writers]
        ids = [process["id"] for process in writers]
        for process in ids:
            self.client.reply("write_stdin", {"id": process}, b"x")
        try:
            self.watch_memory(ids)
        finally:
            for process in ids:
                self.client.call("kill", id=process)
            readers = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in paths]
            for reader in readers:
                self.addCleanup(os.close, reader)
            got = [0] * len(readers)
            procs.wait_until(lambda: self.drain(readers, got) == sum(self.ends(ids)), "all is on disk")

    def watch_memory(self, ids):
        """Until nothing more is taken from the processes."""
        calm, last = 0, None
        while calm < 5:
            self.assertLess(self.memory(), MEMORY_MAX, f"at {self.ends(ids)} bytes of output")
            time.sleep(0.2)
            now = self.ends(ids)
            calm, last = calm + 1 if now == last and all(now) else 0, now

    def ends(self, ids):
        return [self.status(process)["streams"]["stdout"]["end"] for process in ids]

    def drain(self, readers, got):
        """Reads what is there; returns how much has come so far."""
        for i, reader in enumerate(readers):
            with contextlib.suppress(BlockingIOError):
                while piece := os.read(reader, 65536):
                    got[i] += len(piece)
        return sum(got)

    def test_shutdown_while_the_disk_stands(self):
        """A write to the disk is under way when the keeper ends: it ends in order once that write is over."""
        process = self.sh("read x; head -c 300000 /dev/zero; sleep 300", overflow="spool", stderr="merged", stdin="pipe")
        # With a reader that does not read the first bytes are taken and the rest stands.
        reader = os.open(self.stand(process), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.client.reply("write_stdin", {"id": process["id"]}, b"\n")
        procs.wait_until(lambda: self.ends([process["id"]]) == [300000], "the keeper has it")
        procs.wait_until(lambda: select.select([reader], [], [], 0)[0], "it is being written")
        try:
            answer = self.client.call("shutdown", grace_ms=0)
            self.assertEqual(answer["survivors"], 0)
            # By now it closes what it has; the write is still under way.
            time.sleep(0.3)
        finally:
            got = [0]
            procs.wait_until(lambda: self.drain([reader], got) >= 0 and self.keeper.process.poll() is not None, "it leaves")
        self.expect_end(self.keeper, [0])


class GapTest(BoundsCase):
    def gaps(self, process, **args):
        """(events, bytes by stream) of a follow by events."""
        reply = self.client.reply("follow", {"id": process, "mode": "events", **args})
        gaps = [event for event in reply.events if event["event"] == "gap"]
        return gaps, {stream: len(reply.bytes(stream)) for stream in ("stdout", "stderr")}

    def test_no_gap_of_a_stream_that_was_not_asked_for(self):
        """Bytes of one stream are lost: who follows only the other is told of no gap; who follows both or that one is."""
        for lossy, whole in (("stdout", "stderr"), ("stderr", "stdout")):
            with self.subTest(lossy=lossy):
                many, few = ("", " >&2") if lossy == "stdout" else (" >&2", "")
                script = f"echo first{few}; head -c 200000 /dev/zero{many}; echo last{few}"
                process = self.sh(script, ring_bytes=4096)["id"]
                self.ended(process)
                gaps, sizes = self.gaps(process, streams=[whole])
                self.assertEqual((gaps, sizes), ([], {whole: 11, lossy: 0}))
                for streams in ([lossy], None):
                    gaps, sizes = self.gaps(process, streams=streams)
                    lost = sum(gap["bytes"] for gap in gaps)
                    self.assertEqual(lost + sizes[lossy], 200000, gaps)
                    self.assertGreater(lost, 0)


class LateReaderTest(BoundsCase):
    def setUp(self):
        super().setUp()
        self.late = self.connect()

    def fill(self):
        """Megabytes of answers for a client that does not read yet; returns (its requests, a process that still runs)."""
        record, out, _ = self.run_sh("head -c 3000000 /dev/zero", ring_bytes=4 * MIB)
        self.assertEqual(len(out), 3000000)
        running = self.spawn("sleep", "300")
        reads = [("read", {"id": record["id"], "max": 4 * MIB})] * 1
        requests = self.late.submit_all([*reads, ("status", {"id": record["id"]}), ("wait", {"id": running["id"]})])
        # It has been looked at when a later request on the same machine has been answered.
        self.client.call("info")
        time.sleep(0.1)
        return requests, running

    def test_answers_under_way_are_delivered_before_the_keeper_leaves(self):
        """A shutdown while another client has not read its answers: it gets all of them, when it reads soon after."""
        requests, running = self.fill()
        self.client.submit("shutdown", {"grace_ms": 0})
        procs.wait_until(lambda: not procs.alive(running["pid"]), "everything ends")
        time.sleep(0.3)
        chunks = self.late.finish(requests[0]).chunks
        self.assertEqual(sum(len(chunk.data) for chunk in chunks), 3000000)
        self.assertEqual(self.late.finish(requests[1]).result["process"]["exit"]["code"], 0)
        self.assertEqual(self.late.finish(requests[2]).result["process"]["end_cause"], "shutdown")
        self.expect_end(self.keeper, [0])

    def test_client_that_never_reads_does_not_hold_the_keeper(self):
        """The keeper leaves although somebody does not take his answers."""
        self.fill()
        self.client.submit("shutdown", {"grace_ms": 0})
        self.expect_end(self.keeper, [0])

    def test_follower_gets_everything_before_the_keeper_leaves(self):
        """A follower that reads late has the output up to the end, and its answer."""
        process = self.sh("head -c 3000000 /dev/zero; echo end; sleep 300", ring_bytes=4 * MIB)
        self.wait_output(process["id"], b"end\n")
        request = self.late.submit("follow", {"id": process["id"]})
        self.client.call("info")
        time.sleep(0.1)
        self.client.submit("shutdown", {"grace_ms": 0})
        procs.wait_until(lambda: not procs.alive(process["pid"]), "everything ends")
        time.sleep(0.3)
        size = 0
        while isinstance(item := self.late.item(request), Data) or "event" in item:
            size += len(item.data) if isinstance(item, Data) else 0
        self.assertEqual((size, item["result"]["reason"]), (3000004, "exit"))
        self.expect_end(self.keeper, [0])

"""What became of output where a ring is full, a keeper late, a spool file gone."""

import contextlib
import datetime
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path

from lib import procs
from lib.client import KeeperError
from lib.keeper import KeeperCase


class OutputTest(KeeperCase):
    FULL = {"overflow": "backpressure", "ring_bytes": 4096}
    shares = False  # descriptors are counted: no launcher comes up in a group meanwhile

    def full(self):
        """A process that has ended while its ring was full and the rest is still in the pipe."""
        process = self.sh("head -c 40000 /dev/zero", **self.FULL)["id"]
        self.ended(process)
        return process

    def test_release_under_a_reader_of_a_full_ring(self):
        """release of an ended process whose output is paused, under a follower: when the follower
        has gone the pipe's descriptors are closed."""
        reader = self.connect()

        def release_under_reader():
            process = self.full()
            # With until eof it cannot be over: the pipe is not read to its end.
            follow = reader.submit("follow", {"id": process, "until": "eof"})
            self.assertEqual(reader.item(follow)["event"], "attached")
            self.assertTrue(self.client.call("release", id=process)["released"])
            reader.cancel(follow)
            with contextlib.suppress(KeeperError):
                reader.finish(follow)

        release_under_reader()
        before = procs.fd_count(self.keeper.pid)
        for _ in range(5):
            release_under_reader()
        procs.wait_until(lambda: procs.fd_count(self.keeper.pid) <= before, "no descriptor is left", timeout=5)

    def test_follow_of_a_receipt_that_was_never_read_ends(self):
        """A process that ended with a full ring and became a receipt: who follows it with drain is told its end."""
        keeper = self.start_keeper({"max_finished": 1})
        client = keeper.clients[0]
        args = {"argv": ["sh", "-c", "head -c 40000 /dev/zero"], **self.FULL}
        process = client.call("spawn", **args)["process"]["id"]
        client.call("wait", id=process)
        for _ in range(3):
            client.call("wait", id=client.call("spawn", argv=["true"])["process"]["id"])
        procs.wait_until(lambda: client.call("status", id=process)["process"]["receipt"], "it is a receipt")
        reply = client.reply("follow", {"id": process, "drain": True})
        self.assertEqual((reply.result["reason"], reply.bytes()), ("exit", b""))

    def test_followers_of_a_released_full_ring_end(self):
        """Those who cannot make room in a full ring are told the end when the record is released and nobody else can."""
        cases = ({"until": "eof"}, {"until": "eof", "from": {"stdout": 10**9}, "drain": True}, {"from": {"stdout": 10**9}, "drain": True})
        for args in cases:
            with self.subTest(args=args):
                process = self.full()
                reader = self.connect()
                request = reader.submit("follow", {"id": process, **args})
                self.assertEqual(reader.item(request)["event"], "attached")
                self.client.call("release", id=process)
                self.assertIn(reader.finish(request).result["reason"], ("eof", "exit"))

    def test_follow_without_drain_of_a_full_ring_ends(self):
        """A follow without drain of an ended process whose ring is full gets what the ring has, and ends."""
        reply = self.client.reply("follow", {"id": self.full()}, timeout=10)
        self.assertEqual(reply.result["reason"], "exit")
        self.assertGreaterEqual(len(reply.bytes()), 4096)

    def test_output_that_a_late_keeper_finds(self):
        """What was written while the keeper stood still is part of the output, though the limit for late output is over."""
        for _ in range(20):
            found = self.late_output()
            if found is not None:
                self.assertEqual(found, 60000)
                return
        self.fail("the keeper could not be stopped between the end of a process and telling it")

    def late_output(self):
        """Bytes known when the end was told, or None if that was decided before the keeper could be stopped."""
        folder = Path(tempfile.mkdtemp(prefix="late-", dir=self.work))
        self.addCleanup(shutil.rmtree, folder)
        os.mkfifo(folder / "go")
        process = self.sh("(read x <go; exec head -c 60000 /dev/zero) & exit 0", cwd=str(folder))
        waiter = self.connect()
        wait = waiter.submit("wait", {"id": process["id"]})
        procs.wait_until(lambda: procs.stat(process["pid"]) is None, "the leader is reaped", interval=0.001)
        os.kill(self.keeper.pid, signal.SIGSTOP)
        try:
            procs.wait_until(lambda: procs.stat(self.keeper.pid)[0] == "T", "the keeper stands")
            standing = time.time()
            told = bool(select.select([waiter.socket], [], [], 0)[0])
            with open(folder / "go", "w") as go:
                go.write("\n")
            # Not all that is below the keeper: it may just have been preparing a sandbox.
            below = self.keeper.process.pid
            procs.wait_until(lambda: not any("60000" in procs.cmdline(pid) for pid in procs.descendants(below)), "all is written")
            # The limit has to be over when the keeper goes on: 100 ms.
            time.sleep(0.15)
        finally:
            os.kill(self.keeper.pid, signal.SIGCONT)
        record = waiter.finish(wait).result["process"]
        ended = datetime.datetime.fromisoformat(record["ended_at"].replace("Z", "+00:00")).timestamp()
        # Past the limit it may have decided what it had not yet sent.
        if told or standing > ended + 0.09:
            return None
        self.assertGreaterEqual(record["events"]["exit"], 2, "its bytes are events before the exit")
        return record["streams"]["stdout"]["end"]

    def test_event_times_are_not_in_the_future(self):
        """Output that comes before the start has been told has a time between the request and now, like all other."""
        begin = time.time()
        requests = [self.client.submit("spawn", {"argv": ["echo", "x"]}) for _ in range(60)]
        processes = [self.client.finish(request).result["process"]["id"] for request in requests]
        for process in processes:
            self.ended(process)
            events = self.client.call("read", id=process, stream="combined", times=True)["events"]
            self.assertEqual(len(events), 1)
            at = datetime.datetime.fromisoformat(events[0]["at"].replace("Z", "+00:00")).timestamp()
            # Times are told in milliseconds, and derived from two clocks.
            self.assertLessEqual(at, time.time() + 1, events)
            self.assertGreaterEqual(at, begin - 1, events)

    def test_removed_spool_file(self):
        """A read of bytes whose spool file somebody has removed tells how many are lost and goes on behind them."""
        process = self.sh("head -c 300000 /dev/zero", overflow="spool", ring_bytes=4096)["id"]
        record = self.ended(process)
        os.unlink(record["stdout_path"])
        reply = self.client.reply("read", {"id": process, "max": 1 << 20})
        result = reply.result
        self.assertGreater(result["bytes_dropped"], 0, result)
        self.assertEqual(result["cursor"], result["bytes_dropped"], result)
        self.assertEqual(result["next"], result["cursor"] + len(reply.bytes()), result)
        rest = self.output(process, cursor=result["next"])
        self.assertEqual(result["next"] + len(rest), 300000)
        self.assertGreater(len(reply.bytes()) + len(rest), 0, "the ring still has the last bytes")
        follow = self.client.reply("follow", {"id": process}, timeout=10)
        self.assertEqual(follow.result["reason"], "exit")

    def test_combined_read_with_a_small_budget_advances(self):
        """A combined read whose max is smaller than the next event gives that one event; with max 0 it gives none."""
        process = self.sh("echo first; read x; echo second", stdin="pipe")["id"]
        self.wait_output(process, b"first\n")
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.ended(process)
        seen, cursor = [], 0
        while len(seen) < 2:
            reply = self.client.reply("read", {"id": process, "stream": "combined", "cursor": cursor, "max": 1})
            self.assertEqual(reply.result["next"], cursor + 1, reply.result)
            seen.append(reply.bytes())
            cursor = reply.result["next"]
        self.assertEqual(seen, [b"first\n", b"second\n"])
        nothing = self.client.reply("read", {"id": process, "stream": "combined", "max": 0})
        self.assertEqual((nothing.result["next"], nothing.chunks), (0, []))

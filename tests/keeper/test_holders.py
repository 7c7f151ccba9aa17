"""Holders: readers for whom a process waits rather than lose output (R-064, on the keeper's side)."""

import hashlib
import unittest

from lib import procs
from lib.agents import AgentCase
from lib.client import KeeperError
from lib.place import moment

MIB = 1 << 20
HOUR = 3600 * 1000
IDLE = moment(900)
SIZE = 24 * MIB
# Numbered lines: what is lost or doubled shows.
FLOOD = f"seq 1 100000000 | head -c {SIZE}"


def flood(size=SIZE):
    lines = b"".join(b"%d\n" % i for i in range(1, 4_000_000))
    return lines[:size]


def collect(client, request):
    """All that a follow brings: bytes of each stream, gaps, the answer."""
    reply = client.finish(request, timeout=300)
    return reply.bytes(), [event for event in reply.events if event["event"] == "gap"], reply.result


class HolderCase(AgentCase):
    slots = 0
    settings = {"hold_idle_ms": HOUR}

    def stream(self, process, name="stdout"):
        return self.status(process)["streams"][name]

    def waits(self, process, name="stdout"):
        """Until the process waits for its holder: all that fits is there, and nothing has been lost."""

        def full():
            stream = self.stream(process, name)
            return stream["end"] if stream["end"] >= stream["ring_bytes"] * 3 // 4 else None

        end = procs.wait_until(full, "the ring is full", timeout=60)
        self.assertEqual(self.stream(process, name)["bytes_dropped"], 0)
        return end

    def held(self, script=FLOOD, **args):
        """A process that is held from its beginning, and its holder's number."""
        result = self.client.call("spawn", argv=["/bin/sh", "-c", script], hold=True, **args)
        return result["process"]["id"], result["hold"]["number"]

    def move(self, process, number, cursor, client=None):
        return (client or self.client).call("hold", id=process, hold=number, cursor=cursor)["hold"]


class FollowTest(HolderCase):
    def test_r064_a_follow_that_holds_gets_every_byte(self):
        """24 MiB at full speed, by bytes and by events, behind a ring of 64 KiB: nothing is missing."""
        expected = hashlib.sha256(flood()).hexdigest()
        for args in ({"mode": "bytes"}, {"mode": "events"}):
            with self.subTest(**args):
                process, number = self.held(ring_bytes=65536)
                request = self.client.submit("follow", {"id": process, "hold": True, **args})
                self.client.call("hold", id=process, hold=number, end=True)
                data, gaps, result = collect(self.client, request)
                self.assertEqual(gaps, [])
                self.assertEqual((len(data), hashlib.sha256(data).hexdigest()), (SIZE, expected))
                self.assertEqual(result["process"]["end_cause"], "self_exit")

    def test_r064_the_process_waits_for_a_client_that_does_not_read(self):
        """The client of a follow reads nothing for a while: the process waits, and then all of it comes."""
        process, number = self.held(ring_bytes=65536)
        client = self.connect()
        request = client.submit("follow", {"id": process, "hold": True})
        # Two connections have no order: the second holder is there before the first one goes.
        self.assertEqual(client.item(request)["event"], "attached")
        self.client.call("hold", id=process, hold=number, end=True)
        # The rest of the way is bounded: what is on its way to the client, and the ring. Unheld it would end meanwhile.
        for _ in range(100):
            self.assertTrue(self.wait(process, timeout_ms=10)["timed_out"])
        self.assertLess(self.stream(process)["end"], 4 * MIB)
        data, gaps, _ = collect(client, request)
        self.assertEqual((gaps, data == flood()), ([], True))

    def test_r064_small_pieces_do_not_overflow_the_index(self):
        """The index of events is bounded, too: with few events and many small writes nothing is lost."""
        keeper = self.start_keeper({"max_events": 16, "hold_idle_ms": HOUR})
        client = keeper.connect()
        script = "i=0; while [ $i -lt 400 ]; do echo $i; i=$((i+1)); done; for i in 1 2 3; do echo e$i >&2; done"
        result = client.call("spawn", argv=["/bin/sh", "-c", script], hold=True)
        process = result["process"]["id"]
        request = client.submit("follow", {"id": process, "hold": True, "mode": "events"})
        client.call("hold", id=process, hold=result["hold"]["number"], end=True)
        reply = client.finish(request)
        self.assertEqual([event["event"] for event in reply.events], ["attached"])
        self.assertEqual(reply.bytes(), b"".join(b"%d\n" % i for i in range(400)))
        self.assertEqual(reply.bytes("stderr"), b"e1\ne2\ne3\n")
        cursors = [chunk.cursor for chunk in reply.chunks]
        self.assertEqual(cursors, list(range(len(cursors))))

    def test_r064_a_plain_follow_holds_nobody(self):
        """A follow without `hold` that nobody reads: the process ends, and the follow is told of a gap."""
        client = self.connect()
        process = self.sh(FLOOD)["id"]
        request = client.submit("follow", {"id": process})
        self.ended(process)
        _, gaps, _ = collect(client, request)
        self.assertTrue(gaps)

    def test_r064_only_the_owner_holds(self):
        """An agent above sees the process and may follow it, but not hold it back."""
        child = self.keeper.agent("main/child")
        process = child.call("spawn", argv=["sleep", "60"])["process"]["id"]
        for op, args in (("hold", {}), ("follow", {"hold": True})):
            with self.assertRaises(KeeperError) as raised:
                self.client.call(op, id=process, **args)
            self.assertEqual(raised.exception.code, "not_owner")


class NumberedTest(HolderCase):
    def test_r064_a_numbered_holder_is_moved_by_its_owner(self):
        """The process waits until the holder is moved, and goes on as far as that makes room."""
        process, number = self.held(ring_bytes=65536)
        taken, cursor = b"", 0
        while True:
            reply = self.client.reply("read", {"id": process, "stream": "combined", "cursor": cursor, "max": 32768})
            self.assertEqual((reply.result["bytes_dropped"], reply.result["events_dropped"]), (0, 0))
            taken += reply.bytes()
            cursor = reply.result["next"]
            if len(taken) > 2 * MIB:
                break
            self.assertIsNotNone(self.move(process, number, cursor))
        self.assertEqual(taken, flood()[: len(taken)])
        self.assertLessEqual(self.stream(process)["end"], len(taken) + 65536)
        self.assertIsNone(self.client.call("hold", id=process, hold=number, end=True)["hold"])
        self.ended(process)
        self.assertGreater(self.stream(process)["bytes_dropped"], 0)
        self.assertIsNone(self.move(process, number, cursor), "it is no more")

    def test_r064_two_holders_the_slower_counts(self):
        process, first = self.held(ring_bytes=65536)
        self.waits(process)
        second = self.client.call("hold", id=process)["hold"]["number"]
        self.assertNotEqual(first, second)
        end = self.stream(process)["end"]
        self.move(process, first, 1 << 40)
        self.assertEqual(self.stream(process)["end"], end)
        self.move(process, second, 1 << 40)
        procs.wait_until(lambda: self.stream(process)["end"] > end, "the process goes on", timeout=60)
        self.assertEqual(self.stream(process)["bytes_dropped"], self.stream(process)["start"])

    def test_r064_many_holders_are_bounded(self):
        """256 of them; the next one is refused, and none is left when all have gone."""
        process, _ = self.held(ring_bytes=65536)
        client = self.connect()
        for _ in range(255):
            self.assertIsNotNone(client.call("hold", id=process)["hold"])
        with self.refused("quota"):
            self.client.call("hold", id=process)
        with self.refused("quota"):
            self.client.call("follow", id=process, hold=True)
        client.close()
        procs.wait_until(lambda: self.try_hold(process), "there is room again", timeout=60)

    def try_hold(self, process):
        try:
            return self.client.call("hold", id=process)["hold"]
        except KeeperError:
            return None

    def test_r064_a_holder_goes_with_its_connection(self):
        """The connection that started the process goes: it runs on at once, without its holder."""
        client = self.connect()
        result = client.call("spawn", argv=["/bin/sh", "-c", FLOOD], hold=True)
        process = result["process"]["id"]
        self.waits(process)
        client.close()
        self.assertEqual(self.ended(process)["end_cause"], "self_exit")
        self.assertEqual(self.stream(process)["end"], SIZE)

    def test_r064_what_the_end_left_in_the_pipe_waits_for_the_holder(self):
        """The program has ended and its last output is still in the pipe: the end is not told before that is read."""
        size = 49152 + 50000
        process, number = self.held(f"head -c {size} /dev/zero", ring_bytes=65536)
        procs.wait_until(lambda: self.status(process)["state"] == "exited", "it has ended", timeout=60)
        self.assertTrue(self.wait(process, timeout_ms=2500)["timed_out"])
        self.assertIsNone(self.status(process)["events"]["exit"])
        self.assertEqual(self.stream(process)["bytes_dropped"], 0)
        procs.wait_until(lambda: self.move(process, number, 1 << 40) is None, "it has all", timeout=60)
        self.assertEqual(self.ended(process)["streams"]["stdout"]["end"], size)

    def test_r064_who_has_all_does_not_wait_for_descendants(self):
        """The program has ended, one that it left behind has its output open: the end is told when the holder has what there was."""
        size = 49152 + 50000
        script = f"head -c {size} /dev/zero; sleep 300 &"
        process, number = self.held(script, ring_bytes=65536, sandbox={"profile": "full"})
        procs.wait_until(lambda: self.status(process)["state"] == "exited", "it has ended", timeout=60)
        self.waits(process)
        self.assertTrue(self.wait(process, timeout_ms=2500)["timed_out"])
        procs.wait_until(lambda: self.move(process, number, 1 << 40) is None, "it has all", timeout=60)
        record = self.ended(process)
        self.assertEqual((record["streams"]["stdout"]["end"], record["descendants"]), (size, 1))
        self.client.call("kill", id=process)

    def test_r064_a_kill_does_not_wait_for_a_reader(self):
        """Kill, stop and release of a process that is held are answered when it is dead."""
        for op in ("kill", "stop", "release"):
            with self.subTest(op=op):
                process, _ = self.held(ring_bytes=65536)
                self.waits(process)
                answer = self.client.call(op, id=process)
                receipt = answer["kill"] if op == "release" else answer
                self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0))
                self.assertLess(receipt["ms"], 4500, "not the limit of a kill")

    def test_r064_a_keeper_leaves_although_a_process_is_held(self):
        process, _ = self.held(ring_bytes=65536)
        self.waits(process)
        self.assertEqual(self.client.call("shutdown", grace_ms=0), {"ended": 1, "survivors": 0})
        self.keeper.wait_gone()

    def test_r064_spool_and_backpressure_are_as_they_were(self):
        """A holder changes nothing where nothing is dropped anyway, or where the disk has it."""
        process, _ = self.held(f"head -c {2 * MIB} /dev/zero", ring_bytes=65536, overflow="spool")
        self.assertEqual(self.ended(process)["streams"]["stdout"]["bytes_dropped"], 0)
        process, number = self.held(f"head -c {2 * MIB} /dev/zero", ring_bytes=65536, overflow="backpressure")
        self.move(process, number, 1 << 40)
        self.waits(process)
        self.assertEqual(self.status(process)["state"], "running")
        self.client.finish(self.client.submit("follow", {"id": process, "drain": True}))
        self.assertEqual(self.ended(process)["exit"]["code"], 0)

    def test_r064_a_start_that_fails_leaves_no_holder(self):
        with self.refused("spawn_failed"):
            self.client.call("spawn", argv=["/no/such/program"], hold=True)
        with self.refused("spawn_failed"):
            self.client.call("spawn", argv=["/no/such/program"], hold=True, record_failure=True)
        record = self.client.call("list", include_finished=True)["processes"][0]
        self.assertEqual(record["end_cause"], "spawn_failed")
        self.assertIsNone(self.move(record["id"], 1, 0))

    def test_r064_arguments(self):
        process = self.spawn("sleep", "60")["id"]
        with self.refused("invalid_input", "end"):
            self.client.call("hold", id=process, end=True)
        for wrong in (0, -1, "x", 1.5):
            with self.refused("invalid_input", "hold"):
                self.client.call("hold", id=process, hold=wrong)
        self.assertIsNone(self.client.call("hold", id=process, hold=77)["hold"])
        made = self.client.call("hold", id=process, cursor=99)["hold"]
        self.assertEqual(made["cursor"], 0, "past the end is at the end")
        self.assertEqual(made["idle_ms"], HOUR)
        self.client.call("kill", id=process)
        self.assertIsNone(self.client.call("hold", id=process, cursor=99)["hold"], "there is nothing to hold")


class ImpatientTest(HolderCase):
    settings = {"hold_idle_ms": IDLE}

    def test_r064_a_holder_that_stands_still_loses_its_right(self):
        """The process waits for a while and goes on, whichever stream it is; who reads then is told what is lost."""
        for name, script in (("stdout", FLOOD), ("stderr", f"{{ {FLOOD}\n}} >&2")):
            with self.subTest(name):
                process, number = self.held(script)
                record = self.ended(process)
                self.assertEqual(record["streams"][name]["end"], SIZE)
                self.assertGreater(record["streams"][name]["bytes_dropped"], 0)
                self.assertIsNone(self.move(process, number, 5))

    def test_r064_a_follow_that_nobody_reads_loses_it_too(self):
        client = self.connect()
        process, number = self.held()
        request = client.submit("follow", {"id": process, "hold": True})
        self.assertEqual(client.item(request)["event"], "attached")
        self.client.call("hold", id=process, hold=number, end=True)
        self.ended(process)
        data, gaps, _ = collect(client, request)
        self.assertTrue(gaps)
        self.assertEqual(len(data) + sum(gap["to"] - gap["from"] for gap in gaps), SIZE)

    def test_r064_a_holder_that_moves_keeps_it(self):
        """Slow, but never still for long: signs of life without a move count, and the process waits all the time."""
        process, number = self.held(ring_bytes=65536)
        end = self.waits(process)
        for _ in range(20):
            self.assertTrue(self.wait(process, timeout_ms=IDLE // 6)["timed_out"])
            self.assertIsNotNone(self.move(process, number, 0))
        self.assertEqual(self.stream(process)["end"], end)

    def test_r064_a_holder_that_has_nothing_to_read_keeps_it(self):
        """Silence of the process is no fault of its reader's."""
        process, number = self.held(f"read x; {FLOOD}", stdin="pipe", ring_bytes=65536)
        self.client.reply("wait", {"id": process, "timeout_ms": 2 * IDLE})
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.waits(process)
        self.assertIsNotNone(self.move(process, number, 1))

    def test_r064_the_record_is_kept_for_a_holder_that_moves_and_no_longer(self):
        """A finished record with a holder is not turned into a receipt; of one that stands still it is."""
        keeper = self.start_keeper({"max_finished": 1, "hold_idle_ms": IDLE})
        client = keeper.connect()
        result = client.call("spawn", argv=["/bin/sh", "-c", "echo kept"], hold=True)
        process = result["process"]["id"]
        client.call("wait", id=process)
        for _ in range(3):
            other = client.call("spawn", argv=["true"])["process"]["id"]
            client.call("wait", id=other)
            client.call("hold", id=process, hold=result["hold"]["number"], cursor=0)
        self.assertFalse(client.call("status", id=process)["process"]["receipt"])

        def receipt():
            client.call("wait", id=client.call("spawn", argv=["true"])["process"]["id"])
            return client.call("status", id=process)["process"]["receipt"]

        procs.wait_until(receipt, "nobody holds it any more", timeout=60)


if __name__ == "__main__":
    unittest.main()

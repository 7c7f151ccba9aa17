"""read with stream `output`: everything in order of arrival by its position, out of the spool (B-035)."""

from lib.keeper import KeeperCase

# Both streams in turns, each write a turn of its own as its reader has seen the one before.
TURNS = "i=0; while [ $i -lt {n} ]; do echo o$i; read x; echo e$i >&2; read x; i=$((i+1)); done"


class SpoolOutputTest(KeeperCase):
    settings = {"spool_stream_bytes": 256 << 10, "max_events": 16}

    def everything(self, process, size=4096):
        """All of it, in parts."""
        at, data = 0, b""
        while True:
            reply = self.client.reply("read", {"id": process, "stream": "output", "cursor": at, "max": size})
            self.assertEqual((reply.result["cursor"], reply.result["bytes_dropped"]), (at, 0))
            data += reply.bytes()
            at = reply.result["next"]
            self.assertEqual(at, len(data))
            if not reply.bytes():
                return data, reply.result

    def test_b035_order_of_arrival_beyond_rings_and_index(self):
        """What has left the index of events and the rings is still there, in order, and exact at every position."""
        process = self.sh(TURNS.format(n=40), stdin="pipe", overflow="spool")["id"]
        for i in range(40):
            for stream, word in (("stdout", b"o%d\n"), ("stderr", b"e%d\n")):
                self.wait_output(process, word % i, stream=stream)
                self.client.reply("write_stdin", {"id": process}, b"\n")
        self.ended(process)
        wanted = b"".join(b"o%d\ne%d\n" % (i, i) for i in range(40))
        self.assertGreater(self.client.call("read", id=process, stream="combined")["events_dropped"], 0, "the control")
        data, last = self.everything(process, size=7)
        self.assertEqual(data, wanted)
        self.assertEqual((last["total"], last["eof"], last["drained_eof"], last["stream"]), (len(wanted), True, True, "output"))
        reply = self.client.reply("read", {"id": process, "stream": "output", "cursor": len(wanted) - 5, "max": 100})
        self.assertEqual(reply.bytes(), wanted[-5:])
        past = self.client.call("read", id=process, stream="output", cursor=10**6)
        self.assertEqual((past["cursor"], past["next"], past["bytes"]), (len(wanted), len(wanted), 0))

    def test_b035_one_stream_is_everything(self):
        """Of a merged process, and of a terminal, it is that stream."""
        process = self.sh("echo o; echo e >&2", overflow="spool", stderr="merged")["id"]
        self.ended(process)
        self.assertEqual(self.everything(process)[0], b"o\ne\n")

    def test_b035_while_it_runs(self):
        """What has come is there at once, whether the disk has it or not; eof is not."""
        process = self.sh("echo a; read x", stdin="pipe", overflow="spool")["id"]
        self.wait_output(process, b"a\n")
        data, last = self.everything(process)
        self.assertEqual((data, last["eof"], last["total"]), (b"a\n", False, 2))

    def test_b035_what_the_spool_did_not_take_is_lost_at_its_end(self):
        """A spool that stopped at its bound says how much is missing."""
        process = self.sh("head -c 400000 /dev/zero", overflow="spool", ring_bytes=4096)["id"]
        self.ended(process)
        process = self.sh("head -c 400000 /dev/zero; echo e >&2", overflow="spool", ring_bytes=4096)["id"]
        self.ended(process)
        at = (256 << 10) + 2
        reply = self.client.call("read", id=process, stream="output", cursor=at)
        self.assertEqual((reply["cursor"], reply["bytes_dropped"], reply["drained_eof"]), (400002, 400002 - at, True))

    def test_b035_only_where_there_is_a_spool(self):
        """Without one it is refused, as is what does not go with it."""
        plain = self.sh("echo a")["id"]
        with self.refused("invalid_input", "stream"):
            self.client.call("read", id=plain, stream="output")
        process = self.sh("echo a; echo b >&2", overflow="spool")["id"]
        for name, value in (("tail", 1), ("drain", True), ("times", True), ("reader", "me")):
            with self.refused("invalid_input", name):
                self.client.call("read", id=process, stream="output", **{name: value})
        with self.refused("invalid_input", "stream"):
            self.client.call("reader", id=process, stream="output", reader="me")

    def test_b035_released_while_it_is_read(self):
        """Reads and a release at once: each read is answered, whole or not at all."""
        process = self.sh("head -c 200000 /dev/zero; echo e >&2", overflow="spool")["id"]
        self.ended(process)
        requests = [
            self.client.submit("read", {"id": process, "stream": "output", "cursor": n * 1000, "max": 200000}) for n in range(50)
        ]
        self.client.submit("release", {"id": process})
        for n, request in enumerate(requests):
            reply = self.client.finish(request)
            self.assertEqual(reply.result["next"], reply.result["cursor"] + len(reply.bytes()))
            self.assertEqual(reply.result["bytes_dropped"], 0, n)

"""Bytes, lines and hash of all output, for a spawn that asked for them (B-032)."""

import hashlib
import os

from lib import procs
from lib.records import RecordsCase

MIB = 1 << 20


def digest_of(data):
    lines = data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
    return {"bytes": len(data), "lines": lines, "sha256": "sha256:" + hashlib.sha256(data).hexdigest()}


class DigestTest(RecordsCase):
    def printed(self, data, **args):
        """The final record of a process that prints just these bytes."""
        (self.work / "data").write_bytes(data)
        return self.ended(self.spawn("cat", str(self.work / "data"), digest=True, **args)["id"])

    def drained(self, process):
        """All of its stdout, releasing what is read, up to the end of the pipe."""
        got = b""

        def drain():
            nonlocal got
            reply = self.client.reply("read", {"id": process, "cursor": len(got), "drain": True})
            got += reply.bytes()
            return reply.result["drained_eof"]

        procs.wait_until(drain, "all is read")
        return got

    def test_b032_lines_count_an_unfinished_last_one(self):
        """Nothing, whole lines, and a last one without its end."""
        for data in (b"", b"\n", b"a\nb", b"a\nb\n", b"x", b"\n\n\n", b"\0\n\0", "é\n".encode()):
            with self.subTest(data=data):
                self.assertEqual(self.printed(data)["digest"], digest_of(data))
        self.assertEqual(self.printed(b"a\nb")["digest"]["lines"], 2)

    def test_b032_covers_what_no_ring_holds(self):
        """Far more than the ring keeps: the digest is over all of it, and so it is with a spool and without reading."""
        data = os.urandom(3 * MIB + 17)
        for args in ({"ring_bytes": 4096}, {"overflow": "spool"}, {"stderr": "merged"}):
            with self.subTest(args=args):
                self.assertEqual(self.printed(data, **args)["digest"], digest_of(data))

    def test_b032_pieces_of_odd_sizes(self):
        """Pieces that end anywhere in the ring, and go on at its beginning."""
        piece = os.urandom(1001)
        (self.work / "data").write_bytes(piece)
        script = f"for i in 1 2 3 4 5 6 7 8 9 10; do cat {self.work}/data; read x; done"
        process = self.sh(script, stdin="pipe", digest=True, ring_bytes=4096)["id"]
        for number in range(1, 11):
            procs.wait_until(lambda n=number: self.status(process)["streams"]["stdout"]["end"] == n * len(piece), "a piece is read")
            self.client.reply("write_stdin", {"id": process}, b"\n")
        self.assertEqual(self.ended(process)["digest"], digest_of(piece * 10))

    def test_b032_both_streams_in_the_order_of_arrival(self):
        """Output and errors by turns, each read before the next is written: the hash is over them as they came."""
        script = "while read word; do case $word in o*) printf $word;; *) printf $word >&2;; esac; done"
        process = self.sh(script, stdin="pipe", digest=True)["id"]
        words = [b"o1", b"e2", b"e3", b"o4", b"e5"]
        for word in words:
            self.client.reply("write_stdin", {"id": process}, word + b"\n")
            self.wait_output(process, word, "stdout" if word.startswith(b"o") else "stderr")
        self.client.call("close_stdin", id=process)
        self.assertEqual(self.ended(process)["digest"], digest_of(b"".join(words)))

    def test_b032_terminal(self):
        """Of a terminal, what it shows."""
        record = self.ended(self.sh("printf 'a\\nb'", kind="pty", digest=True)["id"])
        self.assertEqual(record["digest"], digest_of(b"a\r\nb"))

    def test_b032_only_after_the_end_and_only_if_asked(self):
        """Null while it runs, and for who did not ask; a brief list leaves it out."""
        process = self.sh("echo x; read y", stdin="pipe", digest=True)
        self.wait_output(process["id"], b"x\n")
        self.assertEqual((process["digest"], self.status(process["id"])["digest"]), (None, None))
        self.client.call("close_stdin", id=process["id"])
        self.assertEqual(self.ended(process["id"])["digest"], digest_of(b"x\n"))
        for args in ({}, {"digest": False}, {"digest": None}):
            self.assertIsNone(self.ended(self.sh("echo x", **args)["id"])["digest"])
        listed = self.client.call("list", include_finished=True, brief=True)["processes"]
        self.assertTrue(all("digest" not in record for record in listed))
        with self.refused("invalid_input", "digest"):
            self.sh("true", digest="yes")

    def test_b032_later_output_of_descendants_does_not_count(self):
        """What others print after the end has been told changes nothing of it."""
        fifo = self.work / "gate"
        os.mkfifo(fifo)
        process = self.sh(f"echo one; (read x <{fifo}; echo two) & exit 0", digest=True)["id"]
        before = self.ended(process)["digest"]
        self.assertEqual(before, digest_of(b"one\n"))
        fifo.write_text("go\n")
        self.wait_output(process, b"two\n")
        record = self.status(process)
        self.assertEqual((record["digest"], record["streams"]["stdout"]["end"]), (before, 8))

    def test_b032_what_waits_in_the_pipe_counts_when_it_is_read(self):
        """A full ring that loses nothing: the rest waits in the pipe beyond the end, and is the process's own output."""
        data = bytes(range(256)) * 160
        (self.work / "data").write_bytes(data)
        process = self.sh(f"cat {self.work}/data", digest=True, overflow="backpressure", ring_bytes=4096)["id"]
        first = self.ended(process)["digest"]
        self.assertEqual(first, digest_of(data[: first["bytes"]]), "as much as has come")
        self.assertLess(first["bytes"], len(data))
        self.assertEqual((self.drained(process), self.status(process)["digest"]), (data, digest_of(data)))

    def test_b032_one_stream_waits_while_others_print_on_the_other(self):
        """The rest of its own output still counts, what a descendant prints meanwhile does not."""
        fifo, data = self.work / "gate", b"0123456789abcde\n" * 2560
        os.mkfifo(fifo)
        (self.work / "data").write_bytes(data)
        script = f"(exec >&-; read x <{fifo}; echo late >&2) & exec cat {self.work}/data"
        process = self.sh(script, digest=True, overflow="backpressure", ring_bytes=4096)["id"]
        self.ended(process)
        fifo.write_text("go\n")
        self.wait_output(process, b"late\n", "stderr")
        self.assertEqual((self.drained(process), self.status(process)["digest"]), (data, digest_of(data)))

    def test_b032_receipts_and_history_keep_it(self):
        """A receipt has it, in this keeper and in the next one; so has history. Where there is none it is null."""
        record = self.printed(b"some\noutput")
        plain = self.ended(self.sh("echo x")["id"])
        wanted = digest_of(b"some\noutput")
        self.settle()
        rows = {row["id"]: row["digest"] for row in self.client.call("history")["processes"]}
        self.assertEqual(rows, {record["id"]: wanted, plain["id"]: None})
        self.restart()
        again = self.status(record["id"])
        self.assertEqual((again["receipt"], again["digest"]), (True, wanted))
        self.assertIsNone(self.status(plain["id"])["digest"])


class EvictedTest(RecordsCase):
    settings = {"max_finished": 1}

    def test_b032_an_evicted_record_keeps_it(self):
        """What becomes a receipt while the keeper runs shows the same as before."""
        first = self.ended(self.sh("echo first", digest=True)["id"])
        for _ in range(3):
            self.ended(self.sh("echo more")["id"])
        record = procs.wait_until(lambda: (now := self.status(first["id"]))["receipt"] and now, "it becomes a receipt")
        self.assertEqual((record["digest"], first["digest"]), (digest_of(b"first\n"),) * 2)

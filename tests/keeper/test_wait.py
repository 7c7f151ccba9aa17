"""Waiting for the end (B-038 to B-041)."""

import os
import signal
import time

from lib.keeper import KeeperCase
from lib.place import patience


class WaitTest(KeeperCase):
    def test_b038_answers_at_the_end(self):
        """The answer follows the end by little: the best of ten within 60 ms (20 ms on an idle host), none before."""
        best = 1e9
        for _ in range(10):
            process = self.spawn("sleep", "300")
            client = self.connect()
            request = client.submit("wait", {"id": process["id"]})
            self.status(process["id"])
            begin = time.monotonic()
            os.kill(process["pid"], signal.SIGKILL)
            answer = client.finish(request).result
            best = min(best, time.monotonic() - begin)
            self.assertEqual((answer["timed_out"], answer["running"], answer["status"]), (False, False, "killed"))
            client.close()
        self.assertLess(best, patience(0.06))

    def test_b038_many_may_wait_and_leave(self):
        """Twenty wait; some disconnect; the others all get the same answer, and so does one who asks afterwards."""
        process = self.sh("read x; exit 9", stdin="pipe")["id"]
        clients = [self.connect() for _ in range(20)]
        requests = [client.submit("wait", {"id": process}) for client in clients]
        for client in clients[::4]:
            client.close()
        self.client.call("close_stdin", id=process)
        results = [c.finish(r).result for i, (c, r) in enumerate(zip(clients, requests)) if i % 4]
        self.assertEqual({result["exit_code"] for result in results}, {9})
        again = self.wait(process)
        for result in results:
            self.assertEqual(result["process"]["exit"], again["process"]["exit"])
            self.assertEqual(result["process"]["ended_at"], again["process"]["ended_at"])

    def test_b038_waiting_delays_no_other_call(self):
        """On one connection, calls behind an open wait are answered."""
        process = self.spawn("sleep", "300")["id"]
        request = self.client.submit("wait", {"id": process})
        for _ in range(5):
            self.assertEqual(self.status(process)["state"], "running")
        self.client.cancel(request)
        with self.refused("cancelled"):
            self.client.finish(request)

    def test_b039_timeout_leaves_the_process_alone(self):
        """`sleep 1; printf later` waited on for 100 ms, then again, ends with later; the first answer has all fields."""
        process = self.sh("sleep 1; printf later")["id"]
        reply = self.client.reply("wait", {"id": process, "timeout_ms": 100, "output_bytes": 1000})
        first = reply.result
        self.assertEqual((first["timed_out"], first["running"], first["status"]), (True, True, "running"))
        self.assertIsNone(first["exit_code"])
        self.assertIsNone(first["signal"])
        self.assertEqual(first["process"]["state"], "running")
        second = self.client.reply("wait", {"id": process, "output_bytes": 1000})
        self.assertEqual(second.bytes(), b"later")
        self.assertEqual(set(first), set(second.result))
        self.assertEqual((second.result["timed_out"], second.result["exit_code"]), (False, 0))

    def test_b039_output_so_far(self):
        """At the limit the answer brings what has been printed up to then."""
        process = self.sh("echo early; echo oops >&2; sleep 60")["id"]
        self.wait_output(process, b"early\n")
        self.wait_output(process, b"oops\n", "stderr")
        reply = self.client.reply("wait", {"id": process, "timeout_ms": 10, "output_bytes": 1000})
        self.assertEqual((reply.bytes(), reply.bytes("stderr")), (b"early\n", b"oops\n"))
        self.assertTrue(reply.result["timed_out"])

    def test_b040_timeout_zero_absent_negative(self):
        """0 answers at once with the present state; absent means no limit; negative is refused."""
        process = self.sh("read x", stdin="pipe")["id"]
        answer = self.wait(process, timeout_ms=0)
        self.assertEqual((answer["timed_out"], answer["running"]), (True, True))
        client = self.connect()
        request = client.submit("wait", {"id": process})
        null = client.submit("wait", {"id": process, "timeout_ms": None})
        self.assertTrue(client.quiet(request, 0.3))
        for bad in (-1, 1.5, "100"):
            with self.subTest(bad=bad), self.refused("invalid_input", "timeout_ms"):
                self.wait(process, timeout_ms=bad)
        self.client.call("close_stdin", id=process)
        self.assertFalse(client.finish(request).result["running"])
        self.assertFalse(client.finish(null).result["running"])
        done = self.wait(process, timeout_ms=0)
        self.assertEqual((done["timed_out"], done["running"]), (False, False))

    def test_b041_held_pipe_does_not_hold_the_wait(self):
        """`echo x; sleep 30 & exit 0` is answered soon (300 ms on an idle host) with 0 and x, eof false, one descendant."""
        best = 1e9
        for _ in range(3):
            begin = time.monotonic()
            process = self.sh("echo x; sleep 30 & exit 0")["id"]
            reply = self.client.reply("wait", {"id": process, "output_bytes": 100})
            best = min(best, time.monotonic() - begin)
            self.assertEqual((reply.result["exit_code"], reply.bytes()), (0, b"x\n"))
            record = reply.result["process"]
            self.assertFalse(record["streams"]["stdout"]["eof"])
            self.assertEqual(record["descendants"], 1)
            self.client.call("kill", id=process)
        self.assertLess(best, patience(0.9))

    def test_b041_writing_descendant_does_not_hold_the_wait(self):
        """A descendant that keeps writing delays the answer by 2 s at most; its bytes are still captured."""
        begin = time.monotonic()
        process = self.sh("echo x; (while :; do echo y; sleep 0.02; done) & exit 0")["id"]
        record = self.ended(process)
        self.assertLess(time.monotonic() - begin, patience(5))
        self.assertFalse(record["streams"]["stdout"]["eof"])
        self.assertTrue(self.output(process).startswith(b"x\n"))
        end = self.status(process)["streams"]["stdout"]["end"]
        client = self.connect()
        request = client.submit("follow", {"id": process, "from": {"stdout": end}, "streams": ["stdout"], "until": "eof"})
        self.assertEqual(client.item(request)["event"], "attached")
        self.assertEqual(client.item(request).data[:1], b"y")

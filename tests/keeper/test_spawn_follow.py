"""`follow` of `spawn`: the start is the first event of a follow, its answer the end of the process."""

import time
import unittest

from lib.client import KeeperError
from lib.keeper import KeeperCase
from lib.place import patience


class SpawnFollowTest(KeeperCase):
    profile = "full"

    def start(self, *argv, follow=None, **args):
        """Submits one, and reads its first event. Gives the request and the record."""
        request = self.client.submit("spawn", {"argv": list(argv), "follow": follow or {}, **args})
        event = self.client.item(request)
        self.assertEqual(event["event"], "started")
        return request, event["process"]

    def test_start_output_and_end_of_one_request(self):
        request, record = self.start("sh", "-c", "printf out; printf err >&2; exit 3")
        self.assertIsNone(record["exit"])
        reply = self.client.finish(request)
        self.assertEqual(reply.bytes("stdout"), b"out")
        self.assertEqual(reply.bytes("stderr"), b"err")
        self.assertEqual(reply.result["process"]["id"], record["id"])
        self.assertEqual(reply.result["process"]["exit"]["code"], 3)
        self.assertEqual(reply.result["reason"], "exit")

    def test_events(self):
        request, _ = self.start("sh", "-c", "echo a; echo b >&2", follow={"mode": "events"})
        reply = self.client.finish(request)
        self.assertEqual(sorted(chunk.data for chunk in reply.chunks), [b"a\n", b"b\n"])
        self.assertEqual(sorted(chunk.cursor for chunk in reply.chunks), [0, 1])

    def test_what_cannot_be_started_is_an_error_as_without(self):
        for follow in ({"follow": {}}, {}):
            with self.assertRaises(KeeperError) as caught:
                self.client.call("spawn", argv=["/no/such/program"], **follow)
            self.assertEqual(caught.exception.code, "spawn_failed")

    def test_arguments_that_do_not_go_together_start_nothing(self):
        with self.assertRaises(KeeperError) as caught:
            self.client.call("spawn", argv=["true"], follow={"mode": "events", "drain": True})
        self.assertEqual(caught.exception.code, "invalid_input")
        self.assertEqual(caught.exception.details["field"], "drain")
        self.assertEqual(self.client.call("list")["processes"], [])

    def test_unknown_member(self):
        with self.assertRaises(KeeperError) as caught:
            self.client.call("spawn", argv=["true"], follow={"since": 3})
        self.assertEqual(caught.exception.code, "invalid_input")
        self.assertEqual(self.client.call("list")["processes"], [])

    def test_cancelled_one_goes_on(self):
        request, record = self.start("sh", "-c", "read line; echo $line", stdin="pipe")
        self.client.cancel(request)
        with self.assertRaises(KeeperError) as caught:
            self.client.finish(request)
        self.assertEqual(caught.exception.code, "cancelled")
        self.client.call("write_stdin", b"on\n", id=record["id"])
        self.client.call("wait", id=record["id"])
        self.assertEqual(self.client.reply("read", {"id": record["id"], "stream": "stdout"}).bytes(), b"on\n")

    def test_hold_of_a_slow_follower(self):
        """Nothing is lost, however small the ring, while the client reads nothing for a while."""
        request, _ = self.start(
            "sh", "-c", "head -c 3000000 /dev/zero", follow={"hold": True}, ring_bytes=4096)
        time.sleep(patience(0.2))
        reply = self.client.finish(request)
        self.assertEqual(len(reply.bytes("stdout")), 3000000)
        self.assertEqual([event for event in reply.events if event["event"] == "gap"], [])

    def test_shutdown_ends_it_with_its_answer(self):
        request, _ = self.start("sleep", "1000")
        self.client.submit("shutdown", {"grace_ms": 0})
        self.assertEqual(self.client.finish(request).result["process"]["end_cause"], "shutdown")
        self.keeper.ended = True
        self.keeper.process.wait(timeout=patience(30))


if __name__ == "__main__":
    unittest.main()

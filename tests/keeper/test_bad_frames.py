"""Frames that break the rules, and clients that behave badly: nobody else notices."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

from lib import procs
from lib.client import DATA, HEADER, JSON, Client, Closed, KeeperError, data_frames, json_frame
from lib.keeper import KeeperCase
from lib.place import patience, sanitized

MIB = 1 << 20


def frame(payload, kind=JSON, stream=0, reserved=0, size=None):
    return HEADER.pack(len(payload) if size is None else size, kind, stream, reserved) + payload


class CanaryCase(KeeperCase):
    """A process and a follower that must go on, whatever happens beside them."""

    def setUp(self):
        super().setUp()
        self.canary = self.spawn("cat", stdin="pipe", tag="canary")["id"]
        self.fed = b""
        self.watcher = self.connect()
        self.watch = self.watcher.submit("follow", {"id": self.canary})
        self.assertEqual(self.watcher.item(self.watch)["event"], "attached")

    def assert_undisturbed(self):
        """A process, a follower and a new connection go on working."""
        self.client.reply("write_stdin", {"id": self.canary}, b"tweet\n")
        got = b""
        while got != b"tweet\n":
            got += self.watcher.item(self.watch).data
        with self.connect() as fresh:
            self.assertEqual(fresh.call("status", id=self.canary)["process"]["state"], "running")


class BadFrameTest(CanaryCase):
    def assert_ends(self, raw, word):
        """The keeper ends this connection, with a last word."""
        with self.subTest(word):
            client = self.connect()
            try:
                client.send_raw(raw)
            except Closed:
                pass
            reason = client.until_closed(timeout=30)
            self.assertIsNotNone(reason, "a fatal error says why")
            self.assertIn(reason["code"], ("invalid_input", "too_large"))
            client.close()

    def test_headers_that_break_the_rules(self):
        """Wrong kind, reserved bits, stream of JSON, oversize, undersize data: fatal error, that connection only."""
        self.assert_ends(frame(b"{}", kind=0x58), "unknown kind")
        self.assert_ends(frame(b"{}", kind=0), "kind 0")
        self.assert_ends(frame(b"{}", reserved=1), "reserved")
        self.assert_ends(frame(b"{}", stream=1), "JSON with a stream")
        self.assert_ends(frame(b"", size=(8 << 20) + 1), "JSON over 8 MiB")
        self.assert_ends(frame(b"", size=0xFFFFFFFF), "largest size")
        self.assert_ends(frame(b"", kind=DATA, size=24 + MIB + 1), "data over 1 MiB")
        self.assert_ends(frame(b"x" * 23, kind=DATA), "data shorter than its head")
        self.assert_ends(frame(bytes(32), kind=DATA, stream=9), "stream 9")
        self.assert_undisturbed()

    def test_numbers_beyond_all_bounds(self):
        """Numbers that no integer and no double can hold: the argument is named, and the connection goes on."""
        client = self.connect()
        for number in (b"1" + b"0" * 400, b"-18446744073709551616", b"1e400", b"-2.5E+999", b"9223372036854775808"):
            with self.subTest(number[:30]):
                text = b'{"id":%d,"op":"list","args":{"tag":"\\"1e999","limit":' + number + b"}}"
                request = client.submit_raw(lambda id, text=text: frame(text.replace(b"%d", b"%d" % id)))
                with self.assertRaises(KeeperError) as caught:
                    client.finish(request)
                self.assertEqual(caught.exception.details.get("field"), "limit", caught.exception)
        self.assertEqual(client.call("list", tag="none")["processes"], [])
        client.close()
        self.assert_undisturbed()

    def test_payloads_that_are_no_request(self):
        """Not JSON, not an object, empty, NUL bytes, invalid UTF-8, double names, deep nesting."""
        self.assert_ends(frame(b""), "empty")
        self.assert_ends(frame(b"hello"), "no JSON")
        self.assert_ends(frame(b"{"), "half JSON")
        self.assert_ends(frame(b'{"id":1,"op":"info"} x'), "something behind it")
        self.assert_ends(frame(b"\0" * 100), "NUL bytes")
        self.assert_ends(frame(b'{"id":1,"op":"\xff\xfe"}'), "invalid UTF-8")
        self.assert_ends(frame(b'{"id":1,"op":"\xed\xa0\x80"}'), "surrogate")
        self.assert_ends(frame(b"[1,2]"), "a list")
        self.assert_ends(frame(b'"text"'), "a string")
        self.assert_ends(frame(b"null"), "null")
        self.assert_ends(frame(b"[" * 100000 + b"]" * 100000), "deep list")
        self.assert_ends(frame(b'{"id":1,"op":"info","args":' + b'{"a":' * 50000 + b"1" + b"}" * 50001), "deep object")
        self.assert_undisturbed()

    def test_requests_with_wrong_frames_of_mind(self):
        """Bad ids and members of the frame itself: fatal or refused, never silence, never a crash."""
        bad = [
            {},
            {"op": "info"},
            {"id": 0, "op": "info"},
            {"id": -1, "op": "info"},
            {"id": 1 << 53, "op": "info"},
            {"id": "1", "op": "info"},
            {"id": 1.5, "op": "info"},
            {"id": 1, "op": 7},
            {"id": 1},
            {"id": 1, "op": "info", "args": []},
            {"id": 1, "op": "info", "args": "x"},
            {"id": 1, "op": "info", "data": -1},
            {"id": 1, "op": "info", "data": "x"},
            {"cancel": "x"},
            {"hello": {}},
            {"result": {}},
        ]
        for request in bad:
            with self.subTest(request=request):
                with self.connect() as client:
                    client.send_raw(json_frame(request))
                    kind, _, payload = client.frame(time.monotonic() + patience(20))
                    answer = json.loads(payload)
                    self.assertEqual(kind, JSON)
                    self.assertIn(answer["error"]["code"], ("invalid_input", "too_large"), answer)
        self.assert_undisturbed()

    def test_id_in_use(self):
        """Two open requests with one id: the second is refused or ends the connection; others do not notice."""
        client = self.connect()
        request = {"id": 5, "op": "wait", "args": {"id": self.canary}}
        client.send_raw(json_frame(request) * 2)
        _, _, payload = client.frame(time.monotonic() + patience(20))
        self.assertEqual(json.loads(payload)["error"]["code"], "invalid_input")
        self.assert_undisturbed()

    def test_data_out_of_place(self):
        """Data without a request, for another request, more than announced, and a JSON frame amid the bytes."""
        self.assert_ends(data_frames(77, b"lost"), "without a request")
        head = json_frame({"id": 1, "op": "write_stdin", "args": {"id": self.canary}, "data": 4})
        self.assert_ends(head + data_frames(2, b"abcd"), "for another request")
        self.assert_ends(head + data_frames(1, b"abcde"), "more than announced")
        self.assert_ends(head + json_frame({"id": 2, "op": "info"}), "a request amid the bytes")
        # Nothing of these may have reached the process.
        self.assertEqual(self.output(self.canary), b"")
        self.assert_undisturbed()

    def test_half_frames(self):
        """Connections that stop in the middle of a header, a payload or the bytes of a request, and stay or leave."""
        whole = json_frame({"id": 1, "op": "write_stdin", "args": {"id": self.canary}, "data": 100})
        pieces = [whole[:1], whole[:7], whole[:20], whole, whole + data_frames(1, bytes(100))[:40]]
        open_ones = []
        for piece in pieces:
            for stay in (True, False):
                client = self.connect()
                client.send_raw(piece)
                if stay:
                    open_ones.append(client)
                else:
                    client.close()
        self.assert_undisturbed()
        for client in open_ones:
            client.close()
        self.assertEqual(self.output(self.canary), b"tweet\n")
        self.assert_undisturbed()

    def test_frames_in_single_bytes(self):
        """A request that arrives byte by byte is a request."""
        client = self.connect()
        raw = json_frame({"id": 1, "op": "status", "args": {"id": self.canary}})
        request = client.submit_raw(lambda _: raw[:1])
        for byte in raw[1:]:
            client.send_raw(bytes([byte]))
        self.assertEqual(client.finish(request).result["process"]["id"], self.canary)

    def test_random_bytes(self):
        """Many connections with random bytes, and with real frames that had bytes changed."""
        chance = random.Random(11)
        for i in range(120):
            client = self.connect()
            if i % 2:
                raw = chance.randbytes(chance.randrange(1, 400))
            else:
                raw = bytearray(json_frame({"id": 1, "op": "list", "args": {"limit": 5}}) * 3)
                for _ in range(4):
                    raw[chance.randrange(len(raw))] = chance.randrange(256)
            try:
                client.send_raw(bytes(raw))
            except Closed:
                pass
            client.close()
        self.assert_undisturbed()


class BadClientTest(CanaryCase):
    def test_client_that_never_reads(self):
        """It asks and asks without reading: the keeper stops reading from it, keeps its memory bounded, serves others."""
        before = self.client.call("info")["memory"]["rss_bytes"]
        ended = self.sh(f"head -c {MIB} /dev/zero")["id"]
        self.ended(ended)
        deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        deaf.connect(str(self.keeper.place.socket))
        deaf.setblocking(False)
        sent = 0
        pending = b""
        quiet_since = time.monotonic()
        # Until the keeper has not taken a byte for half a second, or clearly has no bound.
        while time.monotonic() - quiet_since < 0.5 and sent < 20000:
            if not pending:
                sent += 1
                pending = json_frame({"id": sent, "op": "read", "args": {"id": ended, "max": MIB}})
            try:
                pending = pending[deaf.send(pending) :]
                quiet_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        self.assertLess(sent, 20000, "the keeper must stop reading from it")
        grown = self.client.call("info")["memory"]["rss_bytes"] - before
        # A sanitizer keeps what was freed for a while.
        self.assertLess(grown, (256 if sanitized() else 40) * MIB)
        self.assert_undisturbed()
        deaf.close()
        procs.wait_until(lambda: self.client.call("info")["connections"] == 2, "the deaf one is forgotten")
        self.assert_undisturbed()

    def test_more_than_256_open_requests(self):
        """A connection with too many open waits is not read further; when they end it goes on."""
        client = self.connect()
        gate = self.spawn("cat", stdin="pipe")["id"]
        waits = [client.submit("wait", {"id": gate}) for _ in range(256)]
        extra = client.submit("info")
        self.assertTrue(client.quiet(extra, 0.3))
        self.assert_undisturbed()
        self.client.call("close_stdin", id=gate)
        for request in waits:
            self.assertEqual(client.finish(request).result["exit_code"], 0)
        self.assertEqual(client.finish(extra).result["pid"], self.keeper.pid)

    def test_thousand_connections(self):
        """1,000 connections at once, each answered; all gone afterwards."""
        clients = [Client(self.keeper.place.socket) for _ in range(1000)]
        requests = [client.submit("status", {"id": self.canary}) for client in clients]
        for client, request in zip(clients, requests):
            self.assertEqual(client.finish(request).result["process"]["id"], self.canary)
        self.assertGreaterEqual(self.client.call("info")["connections"], 1000)
        self.assert_undisturbed()
        for client in clients:
            client.close()
        procs.wait_until(lambda: self.client.call("info")["connections"] <= 3, "all are gone")
        self.assert_undisturbed()

    def test_more_connections_than_allowed(self):
        """Beyond max_connections a newcomer is turned away with a reason or made to wait; the others go on."""
        keeper = self.start_keeper({"max_connections": 5})
        clients = [keeper.clients[0]] + [keeper.connect() for _ in range(4)]
        extra = Client(keeper.place.socket, hello=False)
        try:
            reason = extra.until_closed(timeout=2)
            self.assertIn((reason or {"code": "unavailable"})["code"], ("unavailable", "quota", "registry_full"))
        except TimeoutError:
            pass
        extra.close()
        for client in clients:
            self.assertEqual(client.call("info")["pid"], keeper.pid)
        clients.pop().close()

        def again():
            try:
                return keeper.connect()
            except Closed:
                return None

        self.assertEqual(procs.wait_until(again, "there is room again").hello["pid"], keeper.pid)

    def test_client_killed_in_the_middle(self):
        """A client killed with open waits, follows, half-sent bytes and unread output: nobody else is disturbed."""
        script = (
            "import sys; sys.path.insert(0, sys.argv[2])\n"
            "from lib.client import *\n"
            "c = Client(sys.argv[1])\n"
            "p = c.call('spawn', argv=['yes'])['process']['id']\n"
            "for op in ('wait', 'follow', 'follow'): c.submit(op, {'id': p})\n"
            f"c.submit('wait', {{'id': {self.canary!r}}})\n"
            f"c.send_raw(json_frame({{'id': 99, 'op': 'write_stdin', 'args': {{'id': {self.canary!r}}}, 'data': 100}}))\n"
            "c.send_raw(data_frames(99, bytes(50)))\n"
            "print(p, flush=True)\n"
            "import time; time.sleep(600)\n"
        )
        tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        for _ in range(5):
            child = subprocess.Popen([sys.executable, "-c", script, str(self.keeper.place.socket), tests],
                                     stdout=subprocess.PIPE, env=self.keeper.place.env())
            process = child.stdout.readline().decode().strip()
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
            self.assertEqual(self.status(process)["state"], "running")
            self.client.call("release", id=process)
            self.assert_undisturbed()
        self.assertEqual(self.output(self.canary), b"tweet\n" * 5)
        procs.wait_until(lambda: self.client.call("info")["connections"] <= 3, "they are forgotten")

    def test_cancelled_in_every_state(self):
        """Cancel of waiting, finished, unknown and repeated requests."""
        client = self.connect()
        waiting = client.submit("wait", {"id": self.canary})
        client.cancel(waiting)
        client.cancel(waiting)
        with self.refused("cancelled"):
            client.finish(waiting)
        client.cancel(waiting)
        client.cancel(1 << 52)
        self.assertEqual(client.call("info")["pid"], self.keeper.pid)
        self.assert_undisturbed()

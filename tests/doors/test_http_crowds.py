"""Many clients at once, slow ones beside fast ones, and clients that send more than they read: the gateway stays up, its memory bounded,
and the others are served."""

import contextlib
import os
import resource
import select
import socket
import threading
import time
from unittest import mock

from lib.keeper import plain_limits
from lib.place import patience
from lib.procs import cpu_seconds, wait_until
from lib.raw_http import Gone, Raw
from lib.raw_http_case import MIB, START, RawCase

IDLE = 10000
SPARE = 500
FILES = 400
PRINTER = "while :; do printf '%8000s' x; done"


def raise_file_limit():
    """As far as one may; how many files may be open."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class StallTest(RawCase):
    def test_a_stalled_reader_of_a_download_beside_a_fast_one(self):
        size = 32 * MIB
        (self.work / "large").write_bytes(bytes(range(256)) * (size // 256))
        get = self.head("GET", "/runtime/v1/files?path=large", self.auth)
        self.ask("GET", "/runtime/v1/files?path=nothing", self.auth)
        before = self.rss()
        stalled = [self.raw(receive_buffer=4096) for _ in range(4)]
        for connection in stalled:
            connection.send(get)
        with Raw(self.address) as fast:
            fast.send(get)
            self.assertEqual(len(fast.answer().body), size)
        self.assert_bounded(before, 24 * MIB)
        # The stalled ones get the whole file, too, once they read.
        self.assertEqual(len(stalled[0].answer().body), size)

    def test_a_stalled_reader_of_a_process_beside_a_fast_one(self):
        """Output without end: the fast one goes on receiving, the process is not slowed down by the other, and nothing piles up."""
        first, process = self.begin("sh", "-c", PRINTER)
        self.addCleanup(self.end_process, process)
        before = self.rss()
        stalled = [self.ws(f"{START}/{process}/connect", receive_buffer=4096) for _ in range(4)]
        received = 0
        while received < 48 * MIB:
            event = first.event("stdout", "gap")
            received += len(event["data"]) * 3 // 4 if event["type"] == "stdout" else event["bytes"]
        self.assert_bounded(before, 32 * MIB)
        # One that was not read for long is told exactly what it missed: cursors have no other hole.
        self.assert_no_hole(stalled[0])

    def assert_no_hole(self, connection, count=200):
        expected = None
        gaps = 0
        for _ in range(count):
            event = connection.event("stdout", "gap")
            if event["type"] == "gap":
                self.assertIn(event["from_cursor"], (expected, 0))
                expected = event["to_cursor"]
                gaps += 1
                continue
            self.assertIn(event["cursor"], (expected, 0))
            expected = event["cursor"] + 1
        return gaps


class FloodTest(RawCase):
    def test_a_flood_of_requests_that_are_not_read(self):
        """A client that sends requests and never reads an answer is not read any more; its requests wait with it."""
        before = self.rss()
        connection = self.raw(receive_buffer=4096)
        self.assert_is_not_read(connection, self.head("GET", START, self.auth) * 500, before, 8 * MIB)

    def test_many_requests_at_once_are_all_answered(self):
        count = 5000
        connection = self.raw()
        data = self.head("GET", "/healthz") * count
        sender = threading.Thread(target=connection.send, args=(data,))
        sender.start()
        for _ in range(count):
            self.assertEqual(connection.answer().status, 200)
        sender.join()

    def test_clients_that_come_and_go(self):
        """Two thousand connections, each with one request, half of them gone before the answer."""
        before = self.rss()
        get = self.head("GET", START, self.auth)
        for i in range(2000):
            with Raw(self.address) as connection:
                connection.send(get)
                if i % 2:
                    self.assertEqual(connection.answer().status, 200)
        wait_until(lambda: not self.server_ends(), "all are let go", interval=0.1)
        self.assert_bounded(before, 16 * MIB)

    def test_errors_without_end(self):
        before = self.rss()
        for data in (b"\0", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /healthz HTTP/9.9\r\n\r\n") * 300:
            with Raw(self.address) as connection:
                connection.send(data)
                connection.close()
        self.assert_bounded(before, 16 * MIB)

    def test_sockets_that_are_opened_and_left(self):
        """Three hundred start sockets with nothing in them, all ended at once."""
        before = self.rss()
        held = [self.ws() for _ in range(300)]
        self.assert_served()
        for i, connection in enumerate(held):
            (connection.reset if i % 2 else connection.close)()
        wait_until(lambda: not self.server_ends(), "all are let go", interval=0.1)
        self.assert_bounded(before, 24 * MIB)

    def test_wrong_tokens_without_end(self):
        """Guessing is slowed down or refused; who has the token is served meanwhile."""
        for i in range(200):
            with Raw(self.address) as connection:
                connection.send(self.head("GET", START, f"Authorization: Bearer wrong-{i}"))
                self.assertIn(connection.answer().status, (401, 429))
        self.assertEqual(self.ask("GET", "/healthz").status, 200)


class IdleTest(RawCase):
    own = True

    def setUp(self):
        # Before the gateway is started: it has the limit of whoever starts it.
        self.limit = raise_file_limit()
        super().setUp()

    def connect_many(self, count, each):
        """Sockets that are connected without waiting for one another."""
        held = []
        self.addCleanup(lambda: [one.close() for one in held])
        while len(held) < count:
            group = []
            for _ in range(min(500, count - len(held))):
                one = socket.socket()
                one.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    one.connect(self.address)
                group.append(one)
            held += group
            for one in group:
                self.assertTrue(select_writable(one))
                if each:
                    one.send(each)
        return held

    def answered(self, held, status):
        for one in held:
            one.settimeout(patience(60))
            self.assertEqual(one.recv(65536)[9:12], status)

    def test_ten_thousand_idle_connections(self):
        """Ten thousand, or what the machine's limit leaves room for: each has been served once and stays, and is let go at the
        end."""
        most = min(IDLE, int(self.limit * 0.9) - SPARE)
        before = self.rss()
        held = self.connect_many(most, self.head("GET", "/healthz"))
        self.answered(held, b"200")
        self.assert_bounded(before, most * 8192)
        self.assert_served()
        for one in held[::100]:
            one.send(self.head("GET", "/healthz"))
        self.answered(held[::100], b"200")
        for one in held:
            one.close()
        wait_until(lambda: len(os.listdir(f"/proc/{self.pid}/fd")) < 100, "all are let go", timeout=60, interval=0.2)

    def test_two_thousand_idle_sockets(self):
        """A WebSocket costs more, and still a bounded amount."""
        before = self.rss()
        held = self.connect_many(2000, self.upgrade(START))
        self.answered(held, b"101")
        self.assert_bounded(before, len(held) * 32768)
        self.assert_served()


def few_files():
    """In the child that becomes `coop serve`."""
    plain_limits()
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


class FullTest(RawCase):
    """More connections than there are descriptors for."""

    own = True

    def setUp(self):
        with mock.patch("lib.gateway.plain_limits", few_files):
            super().setUp()

    def test_more_connections_than_descriptors(self):
        """The gateway neither spins nor dies: those that are too many wait or are turned away, and when others go it serves again."""
        held = [self.raw()]
        held[0].send(self.head("GET", "/v1/ops", self.auth))
        held[0].answer()
        held += [self.raw() for _ in range(2 * FILES)]
        # Whoever was there before them, with a token, is served.
        held[0].send(self.head("GET", "/healthz"))
        self.assertEqual(held[0].answer().status, 200)
        used = cpu_seconds(self.pid)
        time.sleep(1)
        self.assertLess(cpu_seconds(self.pid) - used, 0.5, "it spins")
        for one in held:
            one.close()
        wait_until(lambda: self.ask_or_none() == 200, "it serves again", interval=0.1)

    def ask_or_none(self):
        try:
            return self.ask("GET", "/healthz").status
        except (OSError, Gone):
            return None


def select_writable(one):
    poll = select.poll()
    poll.register(one, select.POLLOUT)
    return bool(poll.poll(patience(30) * 1000))


"""HTTP/1.1 as clients use it: connections that stay, bodies of every kind, limits, deadlines, and what becomes of a client that goes."""

import os
import signal
import threading
import time

from lib.place import patience
from lib.procs import wait_until
from lib.raw_http import chunked, request
from lib.raw_http_case import MIB, START, RawCase

LIST = "/v1/ops/list"
KIB = 1 << 10
FILES = "/runtime/v1/files?path="


class ConnectionTest(RawCase):
    def test_a_connection_is_used_again(self):
        connection = self.raw()
        for _ in range(3):
            connection.send(self.head("GET", "/healthz"))
            answer = connection.answer()
            self.assertEqual((answer.status, answer.header("connection")), (200, None))

    def test_a_client_that_asks_for_the_end_gets_it(self):
        connection = self.raw()
        connection.send(self.head("GET", "/healthz", "Connection: close"))
        self.assertEqual(connection.answer().header("connection"), "close")
        self.assertEqual(connection.rest(), b"")

    def test_the_word_close_is_found_in_a_list_in_any_case(self):
        connection = self.raw()
        connection.send(self.head("GET", "/healthz", "Connection: foo, ClOsE"))
        connection.answer()
        self.assertEqual(connection.rest(), b"")

    def test_four_requests_at_once_are_answered_in_order(self):
        connection = self.raw()
        targets = ("/healthz", START, "/nothing", "/healthz")
        connection.send(b"".join(self.head("GET", target, self.auth) for target in targets))
        self.assertEqual([connection.answer().status for _ in targets], [200, 200, 404, 200])

    def test_a_post_and_a_get_in_one_packet_are_two_requests(self):
        connection = self.raw()
        connection.send(self.head("POST", LIST, self.auth, "Content-Length: 2", body=b"{}") + self.head("GET", "/healthz"))
        first, second = connection.answer(), connection.answer()
        self.assertIn("processes", first.json)
        self.assertIn("status", second.json)
        connection.send(self.head("GET", "/healthz", "Connection: close"))
        connection.answer()
        self.assertEqual(connection.rest(), b"", "more answers than requests")

    def test_a_refusal_by_a_route_leaves_the_connection_usable(self):
        connection = self.raw()
        for target, status in (("/runtime/v1/nothing", 404), (f"{START}/none", 404), ("/healthz", 200)):
            connection.send(self.head("GET", target, self.auth))
            self.assertEqual(connection.answer().status, status)

    def test_http_1_0_ends_with_its_answer(self):
        connection = self.raw()
        connection.send(self.head("GET", "/healthz", version="HTTP/1.0"))
        answer = connection.answer()
        self.assertEqual((answer.status, answer.header("transfer-encoding")), (200, None))
        self.assertEqual(connection.rest(), b"")

    def test_http_1_0_needs_no_host(self):
        """But where it names one, it must be ours."""
        answer = self.only_answer(request("GET", "/healthz", version="HTTP/1.0"))
        self.assertIn(answer.status, (200, 400, 403))
        answer = self.only_answer(request("GET", "/healthz", "Host: evil.example", version="HTTP/1.0"))
        self.assertEqual(answer.status, 403)

    def test_a_stream_to_http_1_0_has_no_chunks(self):
        connection = self.raw()
        connection.send(self.head("GET", "/v1/events", self.auth, version="HTTP/1.0"))
        status, headers = connection.head()
        self.assertEqual((status, dict(headers).get("transfer-encoding")), (200, None))

    def test_other_versions_are_refused(self):
        for version in ("HTTP/1.2", "HTTP/0.9", "HTTP/2.0", "HTTP/3.7", "HTTP/11.1", "http/1.1", "HTTP/1.1x", "HTTP/1"):
            with self.subTest(version):
                self.assertIn(self.only_answer(self.head("GET", "/healthz", version=version)).status, (400, 505))

    def test_an_upgrade_to_http_2_is_served_as_it_is(self):
        """As curl offers it."""
        connection = self.raw()
        lines = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA")
        for _ in range(2):
            connection.send(self.head("GET", "/healthz", *lines))
            self.assertEqual(connection.answer().status, 200)

    def test_connect_is_no_method_here(self):
        connection = self.raw()
        connection.send(request("CONNECT", self.gateway.host, self.host))
        self.assertIn(connection.answer().status, (400, 405))

    def test_head_has_no_body_and_what_follows_is_in_step(self):
        connection = self.raw()
        connection.send(self.head("HEAD", "/healthz") + self.head("GET", "/healthz"))
        self.assertIn(connection.answer("HEAD").status, (200, 405))
        self.assertEqual(connection.answer().status, 200)

    def test_a_method_that_a_path_does_not_have(self):
        answer = self.ask("PATCH", START, self.auth)
        self.assertEqual((answer.status, answer.error), (405, "method_not_allowed"))
        self.assertIn("GET", answer.header("allow"))

    def test_no_host_or_two(self):
        for lines in ((), (self.host, self.host), (self.host, "Host: evil.example"), ("Host: evil.example", self.host)):
            with self.subTest(lines):
                self.assertEqual(self.only_answer(request("GET", "/healthz", *lines)).status, 400)

    def test_a_host_that_is_somebody_else_s(self):
        """A page whose name was made to point here gets nothing."""
        name = self.gateway.host
        for host in ("", "evil.example", f"{name}.evil.example", f"evil@{name}", f"{name}:1", f"{name}0", "127.0.0.1", "[::1", f"x{name}"):
            with self.subTest(host):
                connection = self.raw()
                connection.send(request("GET", "/healthz", f"Host: {host}"))
                self.assertEqual(connection.answer().status, 403)

    def test_an_empty_header_takes_nothing_from_the_next_one(self):
        connection = self.raw()
        connection.send(request("GET", "/healthz", "X:", self.host, "Y: ", "Connection: close"))
        self.assertEqual(connection.answer().status, 200)
        self.assertEqual(connection.rest(), b"")


class BodyTest(RawCase):
    def test_an_empty_body_by_length(self):
        self.assertEqual(self.ask("POST", LIST, self.auth, "Content-Length: 0").status, 200)

    def test_no_body_at_all(self):
        self.assertEqual(self.ask("POST", LIST, self.auth).status, 200)

    def test_a_delete_with_a_body_of_no_bytes(self):
        for lines in ((), ("Content-Length: 0",)):
            with self.subTest(lines):
                self.assertEqual(self.ask("DELETE", f"{START}/none", self.auth, *lines).status, 404)

    def test_a_body_in_chunks(self):
        connection = self.raw()
        body = chunked(b"{", b'"limit"', b":", b"1}")
        connection.send(self.head("POST", LIST, self.auth, "Transfer-Encoding: chunked", body=body) + self.head("GET", "/healthz"))
        self.assertEqual([connection.answer().status for _ in range(2)], [200, 200])

    def test_chunks_byte_by_byte(self):
        connection = self.raw()
        body = chunked(b"ab", b"cd" * 50)
        connection.send_each_byte(self.head("PUT", FILES + "drop", self.auth, "Transfer-Encoding: chunked", body=body))
        self.assertEqual(connection.answer().status, 200)
        self.assertEqual(self.ask("GET", FILES + "drop", self.auth).body, b"ab" + b"cd" * 50)

    def test_chunks_with_extensions_and_a_trailer(self):
        connection = self.raw()
        body = chunked(b"{}", extension=b';name="quoted value"', trailer=b"X-Sum: 1\r\nX-More: 2\r\n")
        connection.send(self.head("POST", LIST, self.auth, "Transfer-Encoding: chunked", body=body) + self.head("GET", "/healthz"))
        self.assertEqual([connection.answer().status for _ in range(2)], [200, 200])

    def test_an_extension_without_end_is_refused(self):
        """Nobody may send a chunk's line for ever; no memory is held for it meanwhile."""
        before = self.rss()
        connection = self.raw()
        connection.send(self.head("PUT", FILES + "x", self.auth, "Transfer-Encoding: chunked", body=b"5;"))
        connection.socket.settimeout(patience(20))
        for _ in range(256):
            if not connection.send(b"x" * 64 * KIB):
                break
        connection.reset()
        self.assert_bounded(before, 8 * MIB)

    def test_a_trailer_without_end_is_refused(self):
        before = self.rss()
        connection = self.raw()
        connection.send(self.head("PUT", FILES + "x", self.auth, "Transfer-Encoding: chunked", body=b"0\r\n"))
        for _ in range(256):
            if not connection.send(b"X-Y: %s\r\n" % (b"z" * 64 * KIB)):
                break
        self.assertEqual(connection.answer().status, 431)
        self.assert_bounded(before, 8 * MIB)

    def test_a_refusal_reaches_a_client_that_goes_on_sending(self):
        """A large upload that is refused at its head: the client is not cut off before it looks for the answer."""
        for authorization, status in ((self.auth, 400), ("Authorization: Bearer wrong", 401)):
            with self.subTest(status=status):
                connection = self.raw()
                size = 32 * MIB
                connection.send(self.head("PUT", FILES + "%2F", authorization, f"Content-Length: {size}"))
                sent = 0
                while sent < size and connection.send(b"x" * MIB):
                    sent += MIB
                self.assertEqual(sent, size)
                self.assertEqual(connection.answer().status, status)

    def test_one_token_holds_a_bounded_amount(self):
        """Unfinished bodies of one token count together."""
        before = self.rss()
        body = b'{"data_base64":"' + b"A" * (30 * MIB)
        held = [self.raw() for _ in range(5)]
        for connection in held:
            connection.send(self.head("POST", "/v1/ops/list", self.auth, f"Content-Length: {35 * MIB}") + body)
        answer = held[-1].answer()
        self.assertEqual((answer.status, answer.error), (429, "quota_exceeded"))
        self.assert_bounded(before, 300 * MIB)
        self.assert_served()

    def test_much_in_chunks_is_not_held_in_memory(self):
        self.upload(chunks=True)

    def test_much_by_length_is_not_held_in_memory(self):
        self.upload(chunks=False)

    def upload(self, chunks, size=64 * MIB):
        self.ask("GET", FILES + "nothing", self.auth)
        before = self.rss()
        piece = bytes(range(256)) * 1024
        connection = self.raw()
        framing = "Transfer-Encoding: chunked" if chunks else f"Content-Length: {size}"
        connection.send(self.head("PUT", FILES + "large", self.auth, framing))
        for _ in range(size // len(piece)):
            self.assertTrue(connection.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunks else piece))
        connection.send(b"0\r\n\r\n" if chunks else b"")
        answer = connection.answer()
        self.assertEqual((answer.status, answer.json["file"]["size"]), (200, size))
        self.assert_bounded(before, 24 * MIB)

    def test_an_upload_that_is_not_taken_stops_its_client(self):
        """The one who writes the file stands still: the gateway takes what its buffers hold, and the rest waits with the client."""
        self.ask("PUT", FILES + "first", self.auth, body=b"x")
        helper = self.file_helper()
        self.assertIsNotNone(helper)
        before = self.rss()
        self.stop_for_now(helper)
        connection = self.raw()
        size = 48 * MIB
        connection.send(self.head("PUT", FILES + "slow", self.auth, f"Content-Length: {size}"))
        taken = []
        sender = threading.Thread(target=lambda: [taken.append(1) for _ in range(size // MIB) if connection.send(b"z" * MIB)])
        sender.start()
        # Nothing tells that nothing happens any more, so the time is long enough for all of it.
        self.assertTrue(steady(lambda: len(taken)), "the upload stands still")
        self.assertLess(len(taken), 40)
        self.assert_bounded(before, 24 * MIB)
        self.assert_served()
        os.kill(helper, signal.SIGCONT)
        sender.join()
        self.assertEqual(connection.answer().json["file"]["size"], size)

    def test_a_json_body_over_its_limit(self):
        """Refused by its length, or as soon as it is over; what was sent meanwhile does not cost the client the answer."""
        for body, framing in (
            (b" " * 200 * KIB, f"Content-Length: {64 * MIB}"),
            (chunked(*[b" " * 64 * KIB] * 17), "Transfer-Encoding: chunked"),
        ):
            with self.subTest(framing):
                connection = self.raw()
                connection.send(self.head("POST", f"{START}/none/signal", self.auth, framing, body=body))
                answer = connection.answer()
                self.assertEqual((answer.status, answer.error), (413, "too_large"))
                self.assertEqual(answer.header("connection"), "close")

    def test_a_body_that_is_no_object(self):
        for body in (b"[]", b"1", b"{", b"null", b'{"a":1}x', b'"\xff"', b'{"a":"\\ud800"}', b"[" * 5000, b'{"a":' * 3000):
            with self.subTest(body[:20]):
                answer = self.ask("POST", LIST, self.auth, body=body)
                self.assertEqual((answer.status, answer.error), (400, "invalid_argument"))

    def test_a_hundred_continues_before_the_body(self):
        connection = self.raw()
        connection.send(self.head("PUT", FILES + "asked", self.auth, "Expect: 100-continue", "Content-Length: 4"))
        self.assertEqual(connection.head(), (100, []))
        connection.send(b"body")
        self.assertEqual(connection.answer().status, 200)

    def test_a_body_that_does_not_wait_for_its_hundred(self):
        connection = self.raw()
        connection.send(self.head("PUT", FILES + "asked", self.auth, "Expect: 100-continue", "Content-Length: 4", body=b"body"))
        self.assertEqual(connection.answer().status, 200)

    def test_nobody_is_asked_for_a_body_that_will_be_refused(self):
        for target, lines, status in (
            (FILES + "x", (), 401), ("/nothing", (self.auth,), 404), (LIST, (self.auth,), 405),
        ):
            with self.subTest(target):
                connection = self.raw()
                connection.send(self.head("PUT", target, *lines, "Expect: 100-continue", "Content-Length: 4"))
                answer = connection.answer()
                self.assertEqual((answer.interim, answer.status), ([], status))

    def test_an_expectation_that_nobody_knows(self):
        answer = self.ask("GET", "/healthz", "Expect: wonders")
        self.assertIn(answer.status, (200, 417))


class LimitTest(RawCase):
    def test_a_head_over_its_limit(self):
        for lines in ([f"X: {'y' * 40 * KIB}"], [f"X{i}: {'y' * 1000}" for i in range(60)]):
            answer = self.only_answer(self.head("GET", "/healthz", *lines))
            self.assertEqual(answer.status, 431)
            self.assertTrue(answer.error)

    def test_a_head_just_below_its_limit(self):
        self.assertEqual(self.ask("GET", "/healthz", f"X: {'y' * 30 * KIB}").status, 200)

    def test_a_target_over_its_limit(self):
        answer = self.only_answer(self.head("GET", "/" + "x" * 9 * KIB))
        self.assertEqual(answer.status, 414)

    def test_a_target_just_below_its_limit(self):
        self.assertEqual(self.ask("GET", "/healthz?" + "x" * 8000).status, 200)

    def test_too_many_lines(self):
        self.assertEqual(self.only_answer(self.head("GET", "/healthz", *["X: y"] * 120)).status, 431)

    def test_a_hundred_lines(self):
        self.assertEqual(self.ask("GET", "/healthz", *["X: y"] * 98).status, 200)

    def test_a_head_without_end_is_not_held_in_memory(self):
        """Neither one name, nor one value, nor one target that goes on and on."""
        before = self.rss()
        for start in (b"GET /", b"GET / HTTP/1.1\r\nX", b"GET / HTTP/1.1\r\nX: ", b"G", b"\r\n"):
            with self.subTest(start):
                connection = self.raw()
                connection.send(start)
                for _ in range(64):
                    if not connection.send((start[-1:] if start == b"\r\n" else b"y") * 64 * KIB):
                        break
                self.assertIn(connection.answer().status, (400, 414, 431))
        self.assert_bounded(before, 8 * MIB)

    def test_a_head_that_drips_is_ended_at_its_deadline(self):
        """Counted from its first byte: more bytes do not prolong it. Several at once, of every kind; others are served meanwhile.
        One that says nothing at all is kept: SDKs open connections ahead."""
        silent = self.raw()
        starts = (b"", b"GET /healthz HTTP/1.1\r\n", b"POST /v1/ops/list HTTP/1.1\r\nHost: x\r\n", b"GET", b"GET / HTTP/1.1\r\nX: ")
        drips = [self.raw(timeout=60) for _ in range(20)]
        for i, connection in enumerate(drips):
            connection.send(starts[i % len(starts)] + b"x")
        begin = time.monotonic()
        open_ones = set(drips)
        while open_ones:
            self.assertLess(time.monotonic() - begin, patience(60), "still open")
            for connection in list(open_ones):
                try:
                    if connection.more(time.monotonic() + 0.02):
                        open_ones.discard(connection)
                except TimeoutError:
                    connection.send(b"y")
            self.assertEqual(self.ask("GET", "/healthz").status, 200)
        self.assertGreater(time.monotonic() - begin, 5, "the deadline is ten seconds")
        for connection in drips:
            self.assertIn(connection.answer().status, (408, 400))
        silent.send(self.head("GET", "/healthz"))
        self.assertEqual(silent.answer().status, 200)


class StreamTest(RawCase):
    def setUp(self):
        super().setUp()
        _, self.process = self.begin("sleep", "300")
        self.addCleanup(self.end_process, self.process)

    def events(self):
        """A streamed answer whose head has come."""
        connection = self.raw()
        connection.send(self.head("GET", "/v1/events", self.auth))
        status, headers = connection.head()
        self.assertEqual((status, dict(headers)["transfer-encoding"]), (200, "chunked"))
        return connection

    def waiting(self):
        """A request whose answer is not there yet."""
        connection = self.raw()
        body = b'{"id":"%s"}' % self.process.encode()
        connection.send(self.head("POST", "/v1/ops/wait", self.auth, f"Content-Length: {len(body)}", body=body))
        return connection

    def test_a_stream_is_sent_as_it_comes(self):
        connection = self.events()
        seen = b""
        _, process = self.begin("true")
        while process.encode() not in seen:
            seen += connection.chunk()

    def test_a_client_that_ends_a_silent_stream_is_noticed(self):
        connection = self.events()
        port = connection.socket.getsockname()[1]
        self.assertIn(port, self.server_ends())
        connection.close()
        self.assert_let_go(port)

    def test_a_client_that_resets_a_silent_stream_is_noticed(self):
        connection = self.events()
        port = connection.socket.getsockname()[1]
        connection.reset()
        self.assert_let_go(port)

    def test_a_client_that_goes_before_its_answer_is_noticed(self):
        for end in ("close", "reset"):
            with self.subTest(end):
                connection = self.waiting()
                port = connection.socket.getsockname()[1]
                # The head has been read once the gateway looks after somebody who came later.
                self.assert_served()
                getattr(connection, end)()
                self.assert_let_go(port)

    def test_half_a_close_is_a_whole_one(self):
        """It cannot be told from one: what still waits for its answer loses it."""
        connection = self.waiting()
        self.assert_served()
        port = connection.socket.getsockname()[1]
        connection.half_close()
        self.assertEqual(connection.rest(), b"")
        self.assert_let_go(port)

    def test_half_a_close_behind_a_request_that_is_answered_at_once(self):
        """As `nc -N` does: no harm is done, and nothing is left."""
        connection = self.raw()
        port = connection.socket.getsockname()[1]
        connection.send(self.head("GET", "/healthz"))
        connection.half_close()
        self.assertIn(connection.rest()[:12], (b"HTTP/1.1 200", b""))
        self.assert_let_go(port)

    def test_a_stream_whose_client_has_gone_is_dropped(self):
        """The keeper is not left with subscriptions that nobody reads."""
        with self.gateway.keeper() as keeper:

            def subscribers():
                return keeper.call("info")["subscribers"]

            before = subscribers()
            many = [self.events() for _ in range(20)]
            wait_until(lambda: subscribers() == before + 20, "all are there", interval=0.05)
            for i, connection in enumerate(many):
                (connection.reset if i % 2 else connection.close)()
            wait_until(lambda: subscribers() == before, "none is left", interval=0.05)


def steady(count, looks=20):
    """Whether a number stays what it is for one second, before half a minute is over."""
    last, same = count(), 0
    for _ in range(int(patience(600))):
        time.sleep(0.05)
        now = count()
        same, last = (same + 1, now) if now == last else (0, now)
        if same == looks:
            return True
    return False

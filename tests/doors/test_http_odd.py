"""What else arrives at an open port, and requests that arrive in every possible pair of packets."""

from lib.raw_http import TEXT, Gone, Raw, chunked, frame, pieces, request
from lib.raw_http_case import START, RawCase

CLIENT_HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(range(160))


class OddTest(RawCase):
    def assert_turned_away(self, *parts):
        """With 400 or without a word; nothing of it is carried out."""
        with Raw(self.address) as connection:
            connection.send(*parts)
            try:
                answer = connection.answer()
            except Gone:
                return
            self.assertIn(answer.status, (400, 405, 501), answer)
            self.assertEqual(connection.rest(), b"")

    def test_a_greeting_of_tls(self):
        self.assert_turned_away(CLIENT_HELLO)

    def test_the_preface_of_http_2(self):
        self.assert_turned_away(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0\0\0\4\0\0\0\0\0")

    def test_bytes_that_mean_nothing(self):
        for data in (b"\0" * 1000, b"\xff" * 1000, b"\n" * 1000, b"hello\r\n\r\n", b" GET / HTTP/1.1\r\n\r\n", b":\r\n\r\n"):
            with self.subTest(data[:10]):
                self.assert_turned_away(data + b"\r\n\r\n")

    def test_methods_that_there_are_not(self):
        for method in ("get", "FOO", "GETT", "G", "", "GET GET"):
            with self.subTest(method):
                with Raw(self.address) as connection:
                    connection.send(self.head(method, "/healthz", "Connection: close"))
                    self.assertIn(connection.answer().status, (400, 405, 501))

    def test_empty_lines_before_a_request(self):
        """RFC 9112 wants at least one to be passed over."""
        connection = self.raw()
        connection.send(b"\r\n" + self.head("GET", "/healthz"))
        self.assertIn(connection.answer().status, (200, 400))

    def test_an_empty_line_between_requests(self):
        """Some clients send one more behind a body."""
        connection = self.raw()
        connection.send(self.head("POST", "/v1/ops/list", self.auth, "Content-Length: 2", body=b"{}"))
        self.assertEqual(connection.answer().status, 200)
        connection.send(b"\r\n" + self.head("GET", "/healthz"))
        self.assertEqual(connection.answer().status, 200)

    def test_an_answer_instead_of_a_request(self):
        self.assert_turned_away(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def test_a_hello_of_other_protocols(self):
        for data in (b"EHLO x\r\n", b"SSH-2.0-OpenSSH_9\r\n", b"*1\r\n$4\r\nPING\r\n", b"\x03\0\0\x13\x0e\xe0\0\0\0\0\0", b"USER x\r\n"):
            with self.subTest(data):
                self.assert_turned_away(data + b"\r\n\r\n")

    def test_a_connection_that_says_nothing_and_goes(self):
        for _ in range(200):
            Raw(self.address).close()
            Raw(self.address).reset()


class SplitTest(RawCase):
    """Each request in two packets, cut at every byte, and each byte in a packet of its own: always the same answer."""

    def setUp(self):
        super().setUp()
        self.ask("GET", "/runtime/v1/files?path=nothing", self.auth)

    def outcome(self, send, data, count):
        with Raw(self.address) as connection:
            send(connection, data)
            found = [connection.answer() for _ in range(count)]
            return [(answer.status, answer.body if answer.status != 200 else len(answer.body)) for answer in found]

    def assert_same_however_cut(self, data, count=1):
        whole = self.outcome(Raw.send, data, count)
        self.assertEqual(len(whole), count)
        for cut in range(1, len(data)):
            found = self.outcome(lambda connection, _, cut=cut: connection.send(data[:cut], data[cut:]), data, count)
            self.assertEqual(found, whole, f"cut at {cut}: {data[:cut][-20:]!r} | {data[cut:][:20]!r}")
        self.assertEqual(self.outcome(Raw.send_each_byte, data, count), whole)

    def test_a_get(self):
        self.assert_same_however_cut(self.head("GET", "/healthz?x=%20y", "X: a", "Y:", "Z: b c"))

    def test_a_post_by_length(self):
        self.assert_same_however_cut(self.head("POST", "/v1/ops/nothing", self.auth, "Content-Length: 11", body=b'{"limit":1}'))

    def test_a_post_in_chunks_and_a_get_behind_it(self):
        body = chunked(b'{"lim', b'it":1}', extension=b";a=b", trailer=b"T: 1\r\n")
        data = self.head("POST", "/v1/ops/nothing", self.auth, "Transfer-Encoding: chunked", body=body)
        self.assert_same_however_cut(data + self.head("GET", "/healthz"), 2)

    def test_requests_that_are_refused(self):
        """A cut never turns something bad into something good."""
        for data in (
            self.head("GET", "/healthz", "Content-Length : 5"), self.head("GET", "/healthz", "X: a\rb"),
            self.head("GET", "/healthz", "X: a", " folded"), self.head("GET", "/healthz").replace(b"\r\n", b"\n"),
            request("POST", "/healthz", self.host, "Content-Length: 2", "Transfer-Encoding: chunked", body=b"{}"),
            self.head("GET", "/healthz", ": x"), request("GET", "/healthz"),
        ):
            with self.subTest(data):
                self.assert_status_however_cut(data, 400)

    def assert_status_however_cut(self, data, status):
        for cut in range(1, len(data)):
            with Raw(self.address) as connection:
                connection.send(data[:cut], data[cut:])
                self.assertEqual(connection.answer().status, status, f"cut at {cut}: {data[:cut][-20:]!r}")

    def test_an_upgrade_and_its_first_frames(self):
        data = self.upgrade(START) + pieces(b'{"type":"none"}', 2) + frame(TEXT, b"{}")
        for cut in range(1, len(data)):
            with Raw(self.address) as connection:
                connection.send(data[:cut], data[cut:])
                connection.upgraded()
                found = list(connection.frames())
                self.assertEqual(found[-1].code, 1008, f"cut at {cut}")

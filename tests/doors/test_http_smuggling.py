"""Requests whose end two parties could see in two places. Each is refused with 400, the connection ends, and what stands behind it is
never taken for a request."""

from lib.raw_http import chunked, request
from lib.raw_http_case import RawCase

LIST = "/v1/ops/list"


class SmugglingTest(RawCase):
    def setUp(self):
        super().setUp()
        # What would be carried out if the head before it were taken to end earlier.
        self.hidden = self.head("GET", "/healthz")
        self.post = ("POST", LIST, self.host, self.auth)

    def assert_cut(self, *parts, status=400):
        answer = self.only_answer(*parts)
        self.assertEqual(answer.status, status, answer)
        self.assertTrue(answer.error)
        self.assertEqual(answer.header("connection"), "close")

    def assert_head_cut(self, *lines, body=b"{}", status=400):
        self.assert_cut(request(*self.post, *lines, body=body), self.hidden, status=status)

    def test_two_lengths_that_differ(self):
        self.assert_head_cut("Content-Length: 2", "Content-Length: 40")

    def test_the_same_length_twice(self):
        self.assert_head_cut("Content-Length: 2", "Content-Length: 2")

    def test_headers_that_stand_there_once(self):
        """Who asks, from where, of whom, and what the bytes are: two lines are refused, also if they say the same."""
        for name, values in {
            "Authorization": (f"{self.auth.split(': ', 1)[1]}", "Bearer x"), "Origin": (f"http://{self.host.split(': ', 1)[1]}", "http://evil.example"),
            "Host": (self.host.split(": ", 1)[1], "evil.example"), "Content-Type": ("application/json", "text/plain"),
            "Sec-WebSocket-Key": ("dGhlIHNhbXBsZSBub25jZQ==", "x"), "Sec-WebSocket-Version": ("13", "8"),
            "Mcp-Session-Id": ("a", "b"), "MCP-Protocol-Version": ("2025-06-18", "1"),
        }.items():
            for pair in ((values[0], values[0]), values, values[::-1]):
                with self.subTest(name=name, pair=pair):
                    plain = [line for line in (self.host, self.auth) if not line.startswith(name)]
                    lines = [*plain, f"{name}: {pair[0]}", f"{name.upper()}: {pair[1]}", "Content-Length: 2"]
                    self.assert_cut(request("POST", LIST, *lines, body=b"{}"), self.hidden)

    def test_a_list_of_lengths(self):
        self.assert_head_cut("Content-Length: 2, 2")

    def test_a_length_and_chunks(self):
        self.assert_head_cut("Content-Length: 2", "Transfer-Encoding: chunked", body=chunked(b"{}"))

    def test_chunks_and_a_length(self):
        self.assert_head_cut("Transfer-Encoding: chunked", "Content-Length: 2", body=chunked(b"{}"))

    def test_a_space_before_the_colon(self):
        self.assert_head_cut("Content-Length : 2")

    def test_a_tab_before_the_colon(self):
        self.assert_head_cut("Transfer-Encoding\t: chunked", body=chunked(b"{}"))

    def test_lengths_that_are_no_numbers(self):
        for value in ("+2", "-2", "0x2", "2a", "2 2", "", "18446744073709551617", "99999999999999999999999999"):
            with self.subTest(value):
                self.assert_head_cut(f"Content-Length: {value}")

    def test_codings_that_are_not_plainly_chunked(self):
        for value in ("identity", "xchunked", "chunked, identity", "gzip", "chunke", "\x0bchunked", '"chunked"', ""):
            with self.subTest(value):
                self.assert_head_cut(f"Transfer-Encoding: {value}", body=chunked(b"{}"))

    def test_two_codings(self):
        for lines in (("chunked", "identity"), ("identity", "chunked"), ("chunked", "chunked"), ("chunked", "x")):
            with self.subTest(lines):
                self.assert_head_cut(*(f"Transfer-Encoding: {value}" for value in lines), body=chunked(b"{}"))

    def test_chunks_of_http_1_0(self):
        """That version has none; a proxy that knows no better would see the end elsewhere."""
        data = request(*self.post, "Transfer-Encoding: chunked", "Connection: keep-alive", body=chunked(b"{}"), version="HTTP/1.0")
        self.assert_cut(data, self.hidden)

    def test_bare_line_feeds(self):
        head = self.head("GET", "/healthz", "X: 1")
        for data in (
            head.replace(b"\r\n", b"\n"), head.replace(b"X: 1\r\n", b"X: 1\n"), head.replace(b"X: 1\r\n\r\n", b"X: 1\n\n"),
            head.replace(b"X: 1\r\n\r\n", b"X: 1\r\n\n"), head.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\n"),
        ):
            with self.subTest(data):
                self.assert_cut(data, self.hidden)

    def test_bare_carriage_returns(self):
        head = self.head("GET", "/healthz", "X: 1")
        for data in (
            head.replace(b"X: 1\r\n", b"X: 1\r"), head.replace(b"X: 1", b"X: 1\rContent-Length: 90"),
            head.replace(b"X: 1\r\n\r\n", b"X: 1\r\n\rX"), head.replace(b"X: 1\r\n\r\n", b"X: 1\r\r\n"),
        ):
            with self.subTest(data):
                self.assert_cut(data, self.hidden)

    def test_a_nul_in_a_header(self):
        for line in (b"X: a\0b", b"X\0: b", b"X: \0"):
            with self.subTest(line):
                self.assert_head_cut(line, "Content-Length: 2")

    def test_a_folded_line(self):
        self.assert_head_cut("X: 1", " Content-Length: 90", "Content-Length: 2")
        self.assert_head_cut("X: 1", "\tfolded", "Content-Length: 2")

    def test_a_space_before_the_first_header(self):
        head = self.head("GET", "/healthz").replace(b"\r\nHost", b"\r\n Host")
        self.assert_cut(head, self.hidden)

    def test_a_header_without_a_name(self):
        self.assert_head_cut(": 2", "Content-Length: 2")

    def test_a_header_without_a_colon(self):
        self.assert_head_cut("Content-Length 2", "Content-Length: 2")

    def test_names_with_bytes_that_are_not_for_names(self):
        for name in (b"X Y", b"X(", b"X\x7f", b"X\xe9", b"\x01"):
            with self.subTest(name):
                self.assert_head_cut(name + b": 1", "Content-Length: 2")

    def test_a_chunk_that_ends_wrongly(self):
        for body in (b"2\r\n{}XX0\r\n\r\n", b"2\r\n{}\n0\r\n\r\n", b"2\r\n{}0\r\n\r\n", b"1\r\n{}\r\n0\r\n\r\n"):
            with self.subTest(body):
                self.assert_head_cut("Transfer-Encoding: chunked", body=body)

    def test_sizes_of_chunks_that_are_no_numbers(self):
        for size in (b"0x2", b"-2", b"+2", b"2 2", b"", b" 2", b"g", b"10000000000000002", b"ffffffffffffffffff"):
            with self.subTest(size):
                self.assert_head_cut("Transfer-Encoding: chunked", body=size + b"\r\n{}\r\n0\r\n\r\n")

    def test_a_line_feed_in_the_extension_of_a_chunk(self):
        self.assert_head_cut("Transfer-Encoding: chunked", body=b"2;\nxx\r\n{}\r\n0\r\n\r\n")
        self.assert_head_cut("Transfer-Encoding: chunked", body=b"2\n{}\r\n0\r\n\r\n")

    def test_a_trailer_that_ends_wrongly(self):
        for trailer in (b"T: x\r\n\n", b"T: x\n\r\n", b"\n", b"T: x\r\n y\r\n\r\n", b": x\r\n\r\n", b"T: x\ry\r\n\r\n", b"T: \0\r\n\r\n"):
            with self.subTest(trailer):
                self.assert_head_cut("Transfer-Encoding: chunked", body=b"2\r\n{}\r\n0\r\n" + trailer)

    def test_a_length_in_a_trailer_means_nothing(self):
        connection = self.raw()
        body = chunked(b"{}", trailer=b"Content-Length: 90\r\nHost: evil.example\r\n")
        connection.send(request(*self.post, "Transfer-Encoding: chunked", body=body), self.hidden)
        self.assertEqual([connection.answer().status for _ in range(2)], [200, 200])

    def test_a_body_of_a_get_is_not_the_next_request(self):
        connection = self.raw()
        connection.send(self.head("GET", "/healthz", f"Content-Length: {len(self.hidden)}", body=self.hidden), self.hidden)
        self.assertEqual([connection.answer().status for _ in range(2)], [200, 200])
        connection.send(self.head("GET", "/healthz", "Connection: close"))
        connection.answer()
        self.assertEqual(connection.rest(), b"", "the body was taken for a request")

    def test_a_refused_head_s_body_is_not_the_next_request(self):
        """An early refusal must not leave the body to be parsed as requests."""
        connection = self.raw()
        connection.send(request("POST", LIST, self.host, f"Content-Length: {len(self.hidden)}", body=self.hidden))
        self.assertEqual(connection.answer().status, 401)
        connection.send(self.head("GET", "/nothing/here", "Connection: close"))
        self.assertNotIn(b"200 OK", connection.rest(), "the body was taken for a request")

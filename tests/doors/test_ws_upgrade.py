"""How a connection becomes a WebSocket, and what happens where it must not."""

from lib.procs import wait_until
from lib.raw_http import KEY, PING, PONG, TEXT, Raw, close_frame, frame, request, text_frame
from lib.raw_http_case import MIB, START, RawCase

UPGRADE = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: " + KEY)


class UpgradeTest(RawCase):
    def assert_refused_upgrade(self, data, status, code=None):
        """With a plain answer in JSON, after which the connection ends."""
        answer = self.only_answer(data)
        self.assertEqual(answer.status, status, answer)
        self.assertTrue(answer.error)
        if code:
            self.assertEqual(answer.error, code)
        return answer

    def without(self, name, instead=()):
        """An upgrade that lacks one header, or has another one in its place."""
        lines = [line for line in map(bytes_of, UPGRADE) if not line.lower().startswith(name)]
        return self.head("GET", START, self.auth, *lines, *instead, "Connection: close" if name != b"connection" else "X: y")

    def test_an_upgrade(self):
        self.ws()

    def test_the_key_of_the_rfc(self):
        connection = self.raw()
        connection.send(self.upgrade(START, key=b"dGhlIHNhbXBsZSBub25jZQ=="))
        self.assertEqual(connection.answer().header("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")

    def test_what_is_offered_is_not_taken(self):
        """Neither extensions nor protocols; `upgraded` looks at the answer."""
        connection = self.raw()
        connection.send(self.upgrade(
            START, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits", "Sec-WebSocket-Protocol: chat, superchat",
        ))
        connection.upgraded()

    def test_words_in_any_case_and_in_lists(self):
        connection = self.raw()
        connection.send(self.head(
            "GET", START, self.auth, "upgrade: WebSocket", "CONNECTION: keep-alive, uPGRADE", "sec-websocket-version: 13",
            b"sec-websocket-key: " + KEY,
        ))
        connection.upgraded()

    def test_an_upgrade_behind_another_request(self):
        connection = self.raw()
        connection.send(self.head("GET", "/healthz") + self.upgrade(START))
        self.assertEqual(connection.answer().status, 200)
        connection.upgraded()

    def test_frames_in_the_packet_of_the_upgrade(self):
        connection = self.raw()
        connection.send(self.upgrade(START) + frame(PING, b"early") + text_frame({"type": "start", "cmd": "true"}))
        connection.upgraded()
        self.assertEqual(connection.next(PONG).payload, b"early")
        self.assertEqual(connection.event("exit")["exit_code"], 0)

    def test_frames_in_the_packet_of_an_upgrade_that_takes_a_while(self):
        """An attach asks the keeper first, a watch is armed first: what came meanwhile is not forgotten, nor that the client has gone."""
        (self.work / "watched").mkdir()
        _, process = self.begin("sleep", "300")
        self.addCleanup(self.end_process, process)
        for target in (f"{START}/{process}/connect", "/runtime/v1/files/watch?path=watched"):
            for last in (frame(PING, b"early"), frame(PING, b"early") + close_frame(1000), b""):
                with self.subTest(target, last=last):
                    connection = self.raw()
                    port = connection.socket.getsockname()[1]
                    connection.send(self.upgrade(target) + last)
                    connection.upgraded()
                    if last == frame(PING, b"early"):
                        self.assertEqual(connection.next(PONG).payload, b"early")
                    elif last:
                        self.assertEqual(connection.closing().code, 1000)
                    connection.close()
                    self.assert_let_go(port)

    def test_no_token(self):
        for target in (START, f"{START}/none/connect", "/runtime/v1/nothing"):
            with self.subTest(target):
                self.assert_refused_upgrade(request("GET", target, self.host, *UPGRADE), 401, "unauthorized")

    def test_a_wrong_token(self):
        for value in ("Bearer x", "Bearer ", "Basic abc", f"Bearer {self.gateway.token}x", self.gateway.token, "Bearer", ""):
            with self.subTest(value):
                self.assert_refused_upgrade(
                    request("GET", START, self.host, f"Authorization: {value}", *UPGRADE), 401, "unauthorized",
                )

    def test_a_foreign_origin(self):
        for origin in ("http://evil.example", "null", "https://127.0.0.1.evil.example", f"http://{self.gateway.host}.evil.example"):
            with self.subTest(origin):
                self.assert_refused_upgrade(self.upgrade(START, f"Origin: {origin}"), 403, "forbidden")

    def test_the_own_origin(self):
        connection = self.raw()
        connection.send(self.upgrade(START, f"Origin: http://{self.gateway.host}"))
        connection.upgraded()

    def test_a_process_that_is_not_there(self):
        self.assert_refused_upgrade(self.upgrade(f"{START}/none/connect"), 404, "process_not_found")

    def test_a_path_that_is_not_there(self):
        self.assert_refused_upgrade(self.upgrade("/runtime/v1/nothing"), 404)

    def test_a_path_without_sockets(self):
        """It is answered in some way, and not upgraded."""
        connection = self.raw()
        connection.send(self.upgrade("/healthz"))
        self.assertIn(connection.answer().status, (200, 400, 404))

    def test_a_socket_s_path_without_an_upgrade(self):
        _, process = self.begin("sleep", "300")
        self.addCleanup(self.end_process, process)
        answer = self.ask("GET", f"{START}/{process}/connect", self.auth)
        self.assertEqual(answer.status, 400, answer)
        self.assertIn(b"this path is for an upgrade", answer.body)

    def test_a_socket_s_path_without_a_key(self):
        _, process = self.begin("sleep", "300")
        self.addCleanup(self.end_process, process)
        asked = self.head("GET", f"{START}/{process}/connect", self.auth, *UPGRADE[:3], "Connection: close")
        self.assert_refused_upgrade(asked, 400, "invalid_argument")

    def test_another_version(self):
        for version in ("8", "7", "0", "14", "x", ""):
            with self.subTest(version):
                answer = self.only_answer(self.without(b"sec-websocket-version", (f"Sec-WebSocket-Version: {version}",)))
                self.assertEqual((answer.status, answer.header("sec-websocket-version")), (426, "13"))

    def test_keys_that_are_none(self):
        """RFC 6455: sixteen bytes in base64, once. Nobody who wants a socket gets a list of processes instead."""
        good = "Sec-WebSocket-Key: " + KEY.decode()
        for line in ((), ("Sec-WebSocket-Key: ",), ("Sec-WebSocket-Key: short",), ("Sec-WebSocket-Key: " + "A" * 100,), (good, good),
                     ("Sec-WebSocket-Key: " + "A" * 24,), ("Sec-WebSocket-Key: " + "!" * 22 + "==",)):
            with self.subTest(line):
                self.assert_refused_upgrade(self.without(b"sec-websocket-key", line), 400, "invalid_argument")
        self.assert_refused_upgrade(request("GET", START, self.host, *UPGRADE[:3], "Connection: close"), 401, "unauthorized")

    def test_an_upgrade_by_post(self):
        connection = self.raw()
        connection.send(request("POST", START, self.host, self.auth, *UPGRADE, "Content-Length: 0"))
        self.assertIn(connection.answer().status, (400, 404, 405))

    def test_an_upgrade_of_http_1_0(self):
        connection = self.raw()
        connection.send(self.upgrade(START).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        self.assertNotEqual(connection.answer().status, 101)

    def test_an_upgrade_with_a_body(self):
        """What stands behind the head is never both a body and frames."""
        for line in ("Content-Length: 5", "Transfer-Encoding: chunked"):
            with self.subTest(line):
                connection = self.raw()
                connection.send(self.upgrade(START, line) + b"hello")
                self.assertEqual(connection.answer().status, 400)

    def test_a_missing_connection_header(self):
        """Then it is a plain request, and the list of processes is its answer."""
        answer = self.only_answer(self.without(b"connection", ("Connection: close",)))
        self.assertIn(answer.status, (200, 400))


class CrowdTest(RawCase):
    def test_a_thousand_refused_upgrades(self):
        """They cost nothing that stays, and nobody else notices."""
        before, canary = self.rss(), self.ws()
        process = self.begin("cat", connection=canary, stdin=True)[1]
        for i in range(1000):
            with Raw(self.address) as connection:
                connection.send(self.upgrade(f"{START}/none-{i}/connect"))
                self.assertEqual(connection.answer().status, 404)
        self.assert_bounded(before, 16 * MIB)
        self.assert_alive(canary)
        self.end_process(process)

    def test_three_hundred_resets_during_the_upgrade(self):
        """At every point of it: before the answer, after it, within a frame."""
        before, canary = self.rss(), self.ws()
        process = self.begin("cat", connection=canary, stdin=True)[1]
        data = self.upgrade(START) + text_frame({"type": "start", "cmd": "true"}) + frame(TEXT, b'{"type":"x"}' * 20)
        ports = []
        for i in range(300):
            connection = Raw(self.address)
            ports.append(connection.socket.getsockname()[1])
            connection.send(data[:len(data) * (i + 1) // 300])
            if i % 3 == 0 and i > 250:
                connection.more()
            connection.reset()
        self.assert_alive(canary)
        wait_until(lambda: not set(ports) & set(self.server_ends()), "all are let go", interval=0.05)
        self.assert_bounded(before, 32 * MIB)
        self.end_process(process)

    def assert_alive(self, canary):
        canary.send(text_frame({"type": "stdin", "data": "dHdlZXQK"}))
        self.assertEqual(canary.event("stdout")["data"], "dHdlZXQK")

    def test_a_start_that_is_cut_leaves_nothing_half_done(self):
        """A client that goes right behind its `start` has started a process or none; all that was started ends in order."""
        starts = [text_frame({"type": "start", "cmd": "true", "id": f"cut-{i}"}) for i in range(50)]
        for i, start in enumerate(starts):
            with Raw(self.address) as connection:
                connection.send(self.upgrade(START) + start)
                if i % 2:
                    connection.reset()

        def all_ended():
            found = self.ask("GET", f"{START}?all=true", self.auth).json["processes"]
            return all(process["status"] != "running" for process in found if process["id"].startswith("cut-")) or None

        wait_until(all_ended, "what was started has ended", interval=0.1)


def bytes_of(line):
    return line if isinstance(line, bytes) else line.encode()



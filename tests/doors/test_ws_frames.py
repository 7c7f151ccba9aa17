"""Frames of clients, right and wrong, as RFC 6455 has them: what is right is carried out, what is wrong closes the socket with the code
that the RFC names, and nobody else notices."""

import base64
import hashlib
import struct

from lib.raw_http import (
    BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, close_frame, frame, piece_list, pieces, text_frame,
)
from lib.raw_http_case import MIB, START, RawCase

PROTOCOL, NOT_UTF8, TOO_LARGE = 1002, 1007, 1009
START_TRUE = b'{"type":"start","cmd":"true"}'
TEBIBYTE = 1 << 40
EURO = "\u20ac".encode()


class FrameCase(RawCase):
    def assert_closes(self, *parts, code, connection=None):
        """The gateway closes with the code, and then ends the connection."""
        connection = connection or self.ws()
        connection.send(*parts)
        closing = connection.closing()
        self.assertIsNotNone(closing, f"ended without a close frame: {connection.ended}")
        self.assertEqual(closing.code, code, closing)
        closing.payload[2:].decode()
        connection.send(close_frame(code))
        self.assertEqual(connection.rest(), b"")

    def assert_runs(self, *parts):
        """The frames make up a `start` that is carried out."""
        connection = self.ws()
        connection.send(*parts)
        self.assertEqual(connection.event("exit")["exit_code"], 0)

    def cat(self):
        """A socket whose process returns what it is sent."""
        connection, process = self.begin("cat", stdin=True)
        self.addCleanup(self.end_process, process)
        return connection

    def assert_echoes(self, connection, data):
        seen = b""
        while len(seen) < len(data):
            seen += base64.b64decode(connection.event("stdout")["data"])
        self.assertEqual(seen, data)


def stdin(data):
    return b'{"type":"stdin","data":"%s"}' % base64.b64encode(data)


class MessageTest(FrameCase):
    def test_a_message_in_one_frame(self):
        self.assert_runs(frame(TEXT, START_TRUE))

    def test_a_message_in_pieces(self):
        for count in (2, 3, len(START_TRUE)):
            with self.subTest(count):
                self.assert_runs(pieces(START_TRUE, count))

    def test_empty_pieces(self):
        self.assert_runs(frame(TEXT, b"", fin=False), *[frame(CONTINUATION, b"", fin=False)] * 3, frame(CONTINUATION, START_TRUE))

    def test_pings_between_pieces(self):
        """Each is answered at once, with its own payload."""
        connection = self.ws()
        for part in piece_list(START_TRUE, 5)[:4]:
            connection.send(part, frame(PING, part[:20]))
            self.assertEqual(connection.next(PONG).payload, part[:20])

    def test_pieces_with_pings_between_are_one_message(self):
        self.assert_runs(pieces(START_TRUE, 7, between=frame(PING, b"p")))

    def test_pongs_that_nobody_asked_for(self):
        self.assert_runs(frame(PONG, b"x"), pieces(START_TRUE, 3, between=frame(PONG)))

    def test_every_byte_in_a_packet_of_its_own(self):
        connection = self.ws()
        connection.send_each_byte(pieces(START_TRUE, 3, between=frame(PING, b"p")))
        self.assertEqual(connection.event("exit")["exit_code"], 0)

    def test_another_mask_for_each_frame(self):
        for mask in (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x01\0\0\0", b"\0\0\0\x80"):
            with self.subTest(mask):
                self.assert_runs(frame(TEXT, START_TRUE, mask=mask))

    def test_characters_that_are_cut_between_pieces(self):
        """UTF-8 holds for the message, not for its frames."""
        start = b'{"type":"start","cmd":"true","args":["%s"]}' % ("\u20ac\U0001f600\u00e9" * 3).encode()
        self.assert_runs(pieces(start, len(start)))

    def test_sixteen_pieces_of_nearly_sixteen_mebibytes(self):
        """A message up to the limit reaches its process whole."""
        data = bytes(range(256)) * (12 * MIB // 256 - 64)
        connection, process = self.begin("sha256sum", stdin=True)
        self.addCleanup(self.end_process, process)
        connection.send(pieces(stdin(data), 16, between=frame(PING, b"p")))
        connection.send(text_frame({"type": "close_stdin"}))
        seen = base64.b64decode(connection.event("stdout")["data"]).split()[0].decode()
        self.assertEqual(seen, hashlib.sha256(data).hexdigest())

    def test_sizes_around_the_forms_of_the_length(self):
        connection = self.cat()
        for size in (125, 126, 127, 128, 65535, 65536, 65537):
            connection.send(frame(TEXT, stdin(b"abc").ljust(size)))
            self.assert_echoes(connection, b"abc")

    def test_a_thousand_small_messages_in_one_packet(self):
        connection = self.cat()
        connection.send(b"".join(frame(TEXT, stdin(b"%04d" % i)) for i in range(1000)))
        self.assert_echoes(connection, b"".join(b"%04d" % i for i in range(1000)))


class UtfTest(FrameCase):
    BAD = (
        b"\xff", b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xc3\x28", b"a\x80",
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
    )

    def test_a_text_that_is_no_utf_8(self):
        for text in self.BAD:
            with self.subTest(text):
                self.assert_closes(frame(TEXT, text), code=NOT_UTF8)

    def test_a_text_that_ends_within_a_character(self):
        for text in (EURO[:1], EURO[:2], b"\xf0\x9f\x98"):
            with self.subTest(text):
                self.assert_closes(frame(TEXT, b"x" + text), code=NOT_UTF8)

    def test_bad_utf_8_across_pieces(self):
        for text in self.BAD:
            with self.subTest(text):
                self.assert_closes(pieces(b"good " + text + b" good", len(text) + 10), code=NOT_UTF8)

    def test_bad_utf_8_is_known_before_the_message_ends(self):
        """A message that can not become good any more is not waited for."""
        self.assert_closes(frame(TEXT, b"good", fin=False), frame(CONTINUATION, b"\xff", fin=False), code=NOT_UTF8)

    def test_the_end_of_a_message_within_a_character(self):
        self.assert_closes(frame(TEXT, EURO[:1], fin=False), frame(CONTINUATION, EURO[1:2]), code=NOT_UTF8)


class HeaderTest(FrameCase):
    def test_reserved_bits(self):
        for rsv in range(1, 8):
            with self.subTest(rsv):
                self.assert_closes(frame(TEXT, START_TRUE, rsv=rsv), code=PROTOCOL)

    def test_reserved_bits_of_control_frames(self):
        for opcode in (PING, PONG, CLOSE):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b"", rsv=4), code=PROTOCOL)

    def test_kinds_that_there_are_not(self):
        for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b"x"), code=PROTOCOL)

    def test_frames_without_a_mask(self):
        for opcode in (TEXT, PING, CLOSE, BINARY):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b"", mask=None), code=PROTOCOL)

    def test_a_piece_without_a_mask(self):
        self.assert_closes(frame(TEXT, b"{", fin=False), frame(CONTINUATION, b"}", mask=None), code=PROTOCOL)

    def test_a_continuation_of_nothing(self):
        for fin in (True, False):
            with self.subTest(fin):
                self.assert_closes(frame(CONTINUATION, b"x", fin=fin), code=PROTOCOL)

    def test_a_continuation_behind_a_whole_message(self):
        connection = self.cat()
        self.assert_closes(frame(TEXT, stdin(b"x")), frame(CONTINUATION, b"y"), code=PROTOCOL, connection=connection)

    def test_a_new_message_within_another(self):
        for opcode in (TEXT, BINARY):
            with self.subTest(opcode):
                self.assert_closes(frame(TEXT, b"{", fin=False), frame(opcode, START_TRUE), code=PROTOCOL)

    def test_control_frames_in_pieces(self):
        for opcode in (PING, PONG, CLOSE):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b"", fin=False), frame(CONTINUATION, b""), code=PROTOCOL)

    def test_control_frames_of_more_than_125_bytes(self):
        for opcode in (PING, PONG, CLOSE):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b"\x03\xe8" + b"x" * 124), code=PROTOCOL)

    def test_lengths_in_a_longer_form_than_they_need(self):
        for form, size in ((16, 5), (16, 125), (64, 5), (64, 65535)):
            with self.subTest(form=form, size=size):
                self.assert_closes(frame(TEXT, b" " * size, form=form), code=PROTOCOL)

    def test_a_length_with_its_highest_bit(self):
        for opcode in (TEXT, BINARY, PING, CLOSE):
            for length in (1 << 63, (1 << 63) + 5, (1 << 64) - 1):
                with self.subTest(opcode=opcode, length=length):
                    self.assert_closes(frame(opcode, b"x", length=length, form=64), code=PROTOCOL)

    def test_a_bad_length_of_a_control_frame(self):
        """Whatever it says of its size in more than seven bits, and in whatever piece it comes."""
        for opcode in (PING, PONG, CLOSE):
            for form, length in ((16, 1), (16, 126), (64, 1), (64, 1 << 20), (64, TEBIBYTE)):
                with self.subTest(opcode=opcode, form=form, length=length):
                    connection = self.ws()
                    connection.send_each_byte(frame(opcode, b"", length=length, form=form)[:3])
                    self.assert_closes(frame(opcode, b"", length=length, form=form)[3:], code=PROTOCOL, connection=connection)

    def test_a_length_of_a_tebibyte_is_refused_at_once(self):
        """By its header alone; no byte of it is waited for."""
        before = self.rss()
        self.assert_closes(frame(TEXT, b"", length=TEBIBYTE), code=TOO_LARGE)
        self.assert_bounded(before, 8 * MIB)

    def test_a_message_over_the_limit(self):
        self.assert_closes(frame(TEXT, b"", length=96 * MIB + 1), code=TOO_LARGE)

    def test_a_message_over_the_limit_in_pieces(self):
        """The sum counts, not the pieces."""
        connection = self.ws()
        piece = b" " * MIB
        connection.send(frame(TEXT, piece, fin=False), *[frame(CONTINUATION, piece, fin=False)] * 96)
        self.assertEqual(connection.closing().code, TOO_LARGE)

    def test_a_size_that_is_said_is_not_held_at_once(self):
        """Fifty clients that announce sixteen mebibytes each and send nothing."""
        before = self.rss()
        held = [self.ws() for _ in range(50)]
        for connection in held:
            connection.send(frame(TEXT, b"x", length=16 * MIB))
        self.assert_served()
        self.assert_bounded(before, 32 * MIB)

    def test_a_binary_message(self):
        """Clients send text alone. It is refused with an error in words, and the socket ends."""
        connection = self.ws()
        connection.send(frame(BINARY, START_TRUE))
        found = list(connection.frames())
        self.assertEqual(found[-1].opcode, CLOSE)
        self.assertIn(found[-1].code, (1003, 1008))


class CloseTest(FrameCase):
    def test_a_close_is_answered_with_its_code(self):
        for code in (1000, 1001, 1003, 1007, 1008, 1011, 3000, 3999, 4000, 4999):
            with self.subTest(code):
                connection = self.ws()
                connection.send(close_frame(code, b"bye"))
                self.assertEqual(connection.closing().code, code)
                self.assertEqual(connection.rest(), b"")

    def test_a_close_without_a_code(self):
        connection = self.ws()
        connection.send(frame(CLOSE))
        self.assertIn(connection.closing().code, (None, 1000))
        self.assertEqual(connection.rest(), b"")

    def test_a_close_of_one_byte(self):
        """No code has one byte."""
        for payload in (b"\x03", b"\0", b"x"):
            with self.subTest(payload):
                self.assert_closes(frame(CLOSE, payload), code=PROTOCOL)
        connection = self.cat()
        connection.send(frame(TEXT, stdin(b"first")))
        self.assert_echoes(connection, b"first")
        self.assert_closes(frame(CLOSE, b"\x03"), frame(TEXT, stdin(b"second")), code=PROTOCOL, connection=connection)

    def test_codes_that_nobody_may_send(self):
        for code in (0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535):
            with self.subTest(code):
                self.assert_closes(close_frame(code), code=PROTOCOL)

    def test_a_reason_that_is_no_utf_8(self):
        connection = self.ws()
        connection.send(close_frame(1000, b"\xff"))
        self.assertIn(connection.closing().code, (NOT_UTF8, PROTOCOL))

    def test_a_reason_of_the_full_length(self):
        connection = self.ws()
        connection.send(close_frame(1000, b"x" * 123))
        self.assertEqual(connection.closing().code, 1000)

    def test_a_close_within_a_message(self):
        connection = self.ws()
        connection.send(frame(TEXT, b"{", fin=False), close_frame(1000))
        self.assertEqual(connection.closing().code, 1000)

    def test_a_ping_before_a_close(self):
        """In one packet: RFC 6455 wants no pong from whoever has the close already, and nothing behind its own."""
        connection = self.ws()
        connection.send(frame(PING, b"last") + close_frame(1000))
        found = [one.opcode for one in connection.frames() if one.opcode != TEXT]
        self.assertIn(found, ([PONG, CLOSE], [CLOSE]))
        self.assertEqual(connection.rest(), b"")

    def test_a_ping_behind_a_close(self):
        connection = self.ws()
        connection.send(close_frame(1000) + frame(PING, b"late"))
        self.assertEqual([one.opcode for one in connection.frames() if one.opcode != TEXT], [CLOSE])

    def test_garbage_behind_a_close(self):
        connection = self.ws()
        connection.send(close_frame(1000) + b"\xff" * 10000)
        self.assertEqual(connection.closing().code, 1000)

    def test_frames_before_a_close_are_carried_out(self):
        """Clients close right behind what they ask for."""
        path = self.work / "made"
        connection = self.ws()
        connection.send(text_frame({"type": "start", "cmd": "touch", "args": [str(path)], "id": "toucher"}) + close_frame(1000))
        connection.closing()
        attached = self.ws(f"{START}/toucher/connect") if self.listed("toucher") else None
        self.assertIsNotNone(attached, "it was not started")
        self.assertEqual(attached.event("exit")["exit_code"], 0)
        self.assertTrue(path.exists())

    def listed(self, name):
        return any(one["id"] == name for one in self.ask("GET", f"{START}?all=true", self.auth).json["processes"])

    def test_both_close_at_once(self):
        """Two closes meet on the way; the connection ends once and quietly."""
        connection, _ = self.begin("true")
        connection.event("exit")
        connection.send(close_frame(1000))
        self.assertEqual(connection.closing().code, 1000)
        self.assertEqual(connection.rest(), b"")

    def test_a_client_that_does_not_answer_a_close(self):
        """It is let go all the same, whatever it goes on sending."""
        connection = self.ws()
        port = connection.socket.getsockname()[1]
        connection.send(frame(TEXT, b"\xff"))
        self.assertEqual(connection.closing().code, NOT_UTF8)
        for _ in range(100):
            if not connection.send(frame(PING, b"x" * 100)):
                break
        self.assertEqual(connection.rest(), b"")
        connection.close()
        self.assert_let_go(port)


class CrowdedTest(FrameCase):
    def test_much_behind_a_start_and_a_close_in_one_piece(self):
        """What waits for the start is refused in one go, and the close among it ends the socket once."""
        for _ in range(3):
            connection = self.ws()
            start = b'{"type":"start","cmd":"sleep","args":["1"]}'
            connection.send(frame(TEXT, start) + frame(TEXT, b"x") * 3000 + close_frame(1000))
            connection.rest()
        self.assert_served()


class PingTest(FrameCase):
    def test_pongs_have_the_payload_of_their_pings(self):
        connection = self.ws()
        for payload in (b"", b"watasu-sdk", b"\0\xff\xfe", b"x" * 125):
            connection.send(frame(PING, payload))
            self.assertEqual(connection.next(PONG).payload, payload)

    def test_many_pings_are_answered_in_order(self):
        """RFC 6455 lets a server answer only the latest; none may be answered twice or out of order."""
        connection = self.ws()
        connection.send(b"".join(frame(PING, b"%d" % i) for i in range(500)))
        seen = []
        while not seen or seen[-1] != 499:
            seen.append(int(connection.next(PONG).payload))
        self.assertEqual(seen, sorted(set(seen)))

    def test_a_flood_of_pings_that_is_not_read(self):
        """Answers are output too: a client that pings and never reads is not read any more, and costs no memory."""
        before = self.rss()
        connection = self.ws(receive_buffer=4096)
        self.assert_is_not_read(connection, frame(PING, b"x" * 125) * 1000, before, 8 * MIB)

    def test_a_flood_of_messages_that_are_not_read(self):
        """The same with what every `stdin` frame is answered with."""
        before = self.rss()
        connection = self.ws(receive_buffer=4096)
        _, process = self.begin("sh", "-c", "cat >/dev/null", stdin=True, connection=connection)
        self.addCleanup(self.end_process, process)
        self.assert_is_not_read(connection, frame(TEXT, stdin(b"x")) * 1000, before, 16 * MIB, most=64 * MIB)


class CutTest(FrameCase):
    def test_the_end_of_the_connection_at_every_byte_of_a_message(self):
        """Whatever had come: the gateway goes on, and a message that was not whole was not carried out."""
        message = pieces(b'{"type":"start","cmd":"true","id":"never"}', 3)
        for size in range(len(message)):
            connection = self.ws()
            connection.send(message[:size])
            (connection.reset if size % 2 else connection.close)()
        self.assertEqual(self.ask("GET", f"{START}/never", self.auth).status, 404)

    def test_a_code_s_bytes_come_one_by_one(self):
        connection = self.ws()
        connection.send_each_byte(frame(CLOSE, struct.pack(">H", 1000) + b"slow"))
        self.assertEqual(connection.closing().code, 1000)

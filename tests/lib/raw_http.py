"""HTTP and WebSocket as bytes: requests and frames that a proper client would never send, and a strict reader of what comes back.

Nothing here repairs or hides anything: an answer that breaks the rules of HTTP/1.1 or RFC 6455 raises Violation.
"""

import base64
import contextlib
import hashlib
import json
import socket
import struct
import time
from typing import NamedTuple

from .place import patience

KEY = base64.b64encode(b"sixteen bytes, 1")
ACCEPT_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MASK = b"\x37\xfa\x21\x3d"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
RECEIVE = 1 << 16
NO_LINGER = struct.pack("ii", 1, 0)


class Violation(AssertionError):
    """The server broke a rule."""


class Gone(Exception):
    """The connection ended where something was still to come."""


def accept_of(key):
    """What a server answers to a key."""
    return base64.b64encode(hashlib.sha1(key + ACCEPT_SUFFIX).digest())


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def request(method, target, *lines, body=b"", version="HTTP/1.1"):
    """The bytes of a request, each line as it is given. Nothing is added."""
    head = [b" ".join(map(as_bytes, (method, target, version))), *map(as_bytes, lines)]
    return b"\r\n".join([*head, b"", as_bytes(body)])


def chunked(*pieces, extension=b"", trailer=b""):
    """A body in chunks."""
    parts = [b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces if piece]
    return b"".join([*parts, b"0\r\n", trailer, b"\r\n"])


def masked(payload, mask=MASK):
    """The payload as it travels."""
    if mask == b"\0\0\0\0" or not payload:
        return payload
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


def frame(opcode, payload=b"", fin=True, rsv=0, mask=MASK, length=None, form=None):
    """One frame of a client. `mask` None: not masked. `length`: what it says of its size; `form`: 7, 16 or 64 bits for it."""
    payload = as_bytes(payload)
    size = len(payload) if length is None else length
    if form is None:
        form = 7 if size < 126 else 16 if size < 1 << 16 else 64
    bit = 0 if mask is None else 0x80
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    if form == 7:
        head += bytes([bit | size])
    elif form == 16:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    return head + (payload if mask is None else mask + masked(payload, mask))


def close_frame(code, reason=b""):
    return frame(CLOSE, struct.pack(">H", code) + as_bytes(reason))


def text_frame(value):
    """One whole text message; what is not text is sent as JSON."""
    return frame(TEXT, value if isinstance(value, (bytes, str)) else json.dumps(value))


def piece_list(payload, count, opcode=TEXT):
    """A message in `count` frames."""
    step = -(-len(payload) // count)
    parts = [payload[i * step:(i + 1) * step] for i in range(count)]
    return [frame(CONTINUATION if i else opcode, part, fin=i == count - 1) for i, part in enumerate(parts)]


def pieces(payload, count, opcode=TEXT, between=b""):
    """The bytes of one, with others between each two frames."""
    return between.join(piece_list(payload, count, opcode))


class Frame(NamedTuple):
    """A frame of the server."""

    opcode: int
    payload: bytes

    @property
    def code(self):
        """Of a close frame; None where it names none."""
        return struct.unpack(">H", self.payload[:2])[0] if len(self.payload) >= 2 else None

    @property
    def json(self):
        return json.loads(self.payload)


class Answer(NamedTuple):
    """One answer. `interim` are the statuses of those that came before it (100)."""

    status: int
    headers: list
    body: bytes
    interim: list

    def header(self, name):
        """The only header of that name, or None."""
        found = [value for key, value in self.headers if key == name]
        if len(found) > 1:
            raise Violation(f"{name} comes {len(found)} times: {found}")
        return found[0] if found else None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The code of a refusal, which has to look like one."""
        if self.header("content-type") != "application/json":
            raise Violation(f"a refusal that is no JSON: {self}")
        value = self.json
        if not value.get("error") or not value.get("message"):
            raise Violation(f"a refusal without code or message: {value}")
        return value["error"]


class Raw:
    """One connection. Every wait has a deadline; what came before an end can still be read."""

    def __init__(self, address, timeout=30, receive_buffer=None):
        self.timeout = timeout
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        # Before the connection is made: later the kernel has announced megabytes already.
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(patience(timeout))
        self.socket.connect(address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.ended = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Ends the connection without a good-bye."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.socket.close()

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def send(self, *parts):
        """False: the other side does not take it any more. What it said before can be read."""
        for part in parts:
            try:
                self.socket.sendall(part)
            except (ConnectionError, TimeoutError) as error:
                self.ended = self.ended or str(error)
                return False
        return True

    def send_each_byte(self, data):
        for i in range(len(data)):
            if not self.send(data[i:i + 1]):
                return False
        return True

    def more(self, deadline=None):
        """Waits for bytes; False at the end of the connection."""
        limit = patience(self.timeout) if deadline is None else max(0.001, deadline - time.monotonic())
        self.socket.settimeout(limit)
        try:
            data = self.socket.recv(RECEIVE)
        except ConnectionError as error:
            self.ended = str(error)
            return False
        finally:
            with contextlib.suppress(OSError):
                self.socket.settimeout(patience(self.timeout))
        if not data:
            self.ended = "end of file"
        self.buffer += data
        return bool(data)

    def take(self, size):
        while len(self.buffer) < size:
            if not self.more():
                raise Gone(f"{self.ended}; {size} bytes were to come, there are {bytes(self.buffer[:200])!r}")
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    def take_line(self):
        while b"\r\n" not in self.buffer:
            if not self.more():
                raise Gone(f"{self.ended}; a line was to come, there is {bytes(self.buffer[:200])!r}")
        line = self.take(self.buffer.index(b"\r\n") + 2)[:-2]
        if b"\n" in line or b"\r" in line:
            raise Violation(f"a line with a bare CR or LF: {line!r}")
        return line.decode("latin-1")

    def head(self):
        """(status, headers)"""
        version, _, rest = self.take_line().partition(" ")
        status, _, reason = rest.partition(" ")
        if version != "HTTP/1.1" or len(status) != 3 or not status.isdigit() or not reason:
            raise Violation(f"a status line that is none: {version} {rest}")
        headers = []
        while line := self.take_line():
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise Violation(f"a header line that is none: {line!r}")
            headers.append((name.lower(), value.strip()))
        return int(status), headers

    def answer(self, method="GET"):
        """The next answer, whole."""
        interim = []
        status, headers = self.head()
        while 100 <= status < 200 and status != 101:
            interim.append(status)
            status, headers = self.head()
        answer = Answer(status, headers, b"", interim)
        return answer._replace(body=self.body(answer, method))

    def body(self, answer, method):
        length, coding = answer.header("content-length"), answer.header("transfer-encoding")
        if length is not None and coding is not None:
            raise Violation(f"an answer with two lengths: {answer.headers}")
        if method == "HEAD" or answer.status in (101, 204, 304):
            return b""
        if coding is not None:
            return b"".join(self.chunks())
        if length is not None:
            return self.take(int(length))
        if answer.header("connection") != "close":
            raise Violation(f"an answer without a length that does not end with its connection: {answer.headers}")
        return self.rest()

    def chunk(self):
        """The next chunk of an answer; empty at the end."""
        size = int(self.take_line(), 16)
        data = self.take(size)
        if self.take(2) != b"\r\n":
            raise Violation("a chunk that does not end where it said")
        return data

    def chunks(self):
        while data := self.chunk():
            yield data

    def rest(self):
        """All that still comes until the other side ends."""
        while self.more():
            pass
        return self.take(len(self.buffer))

    def upgraded(self, key=KEY):
        """Reads a 101 and looks it over."""
        answer = self.answer()
        if answer.status != 101:
            raise Violation(f"no upgrade: {answer}")
        if answer.header("sec-websocket-accept") != accept_of(key).decode():
            raise Violation(f"the key is answered wrongly: {answer.headers}")
        if answer.header("upgrade").lower() != "websocket" or answer.header("connection").lower() != "upgrade":
            raise Violation(f"a 101 to something else: {answer.headers}")
        for name in ("sec-websocket-extensions", "sec-websocket-protocol", "content-length", "transfer-encoding"):
            if answer.header(name) is not None:
                raise Violation(f"{name} in a 101: {answer.headers}")
        return self

    def frame(self):
        """The next frame, which must be whole, plain and not masked."""
        first, second = self.take(2)
        if first & 0x70 or not first & 0x80 or second & 0x80:
            raise Violation(f"a server's frame that begins with {first:02x} {second:02x}")
        opcode, size = first & 15, second
        if opcode not in (TEXT, CLOSE, PING, PONG) or opcode > BINARY and size > 125:
            raise Violation(f"a frame of kind {opcode} with length byte {size}")
        if size == 126:
            size = struct.unpack(">H", self.take(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.take(8))[0]
        payload = self.take(size)
        if opcode == TEXT:
            payload.decode()
        return Frame(opcode, payload)

    def frames(self):
        """All frames up to the close frame, that one included, or to the end of the connection."""
        with contextlib.suppress(Gone):
            while True:
                found = self.frame()
                yield found
                if found.opcode == CLOSE:
                    return

    def closing(self):
        """The close frame, past everything that comes before it; None if the connection ends without one."""
        return next((found for found in self.frames() if found.opcode == CLOSE), None)

    def next(self, opcode):
        """The next frame of that kind, past others."""
        while (found := self.frame()).opcode != opcode:
            if found.opcode == CLOSE:
                raise Gone(f"closed with {found.code} {found.payload[2:]!r}")
        return found

    def event(self, *types):
        """The next message of one of the types, past others, as an object."""
        while (value := self.next(TEXT).json)["type"] not in types:
            pass
        return value

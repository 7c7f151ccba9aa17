"""A WebSocket client that looks at every frame of the server and accepts only what RFC 6455 and /runtime/v1 allow."""

import base64
import hashlib
import json
import os
import struct
import time
from typing import NamedTuple

from .http_client import Ended, HttpConnection, Response
from .place import patience

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
SERVER_MESSAGE_MAX = 256 << 10


class WsViolation(Exception):
    """The server has broken the protocol."""


class Refused(Exception):
    """The upgrade was answered with a plain HTTP response."""

    def __init__(self, response):
        super().__init__(f"{response.status}: {response.body[:300]!r}")
        self.response = response


class Closed(Exception):
    """The server has closed: its code, or None if the connection just ended."""

    def __init__(self, code=None, reason=""):
        super().__init__(f"closed with {code} {reason}")
        self.code = code
        self.reason = reason


class Frame(NamedTuple):
    opcode: int
    payload: bytes


def client_frame(opcode, payload=b"", fin=True, mask=None, rsv=0, masked=True):
    """The bytes of a frame; everything that a client could get wrong can be asked for."""
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    size = len(payload)
    bit = 0x80 if masked else 0
    if size < 126:
        head = struct.pack("!BB", first, bit | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, bit | 126, size)
    else:
        head = struct.pack("!BBQ", first, bit | 127, size)
    if not masked:
        return head + payload
    mask = os.urandom(4) if mask is None else mask
    stream = (mask * (size // 4 + 1))[:size]
    hidden = (int.from_bytes(payload, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")
    return head + mask + hidden


class WebSocket:
    """One upgraded connection."""

    def __init__(self, address, target, headers=None, host=None, timeout=60, receive_buffer=None):
        self.timeout = timeout
        self.stream = HttpConnection(address, host, timeout=timeout, receive_buffer=receive_buffer)
        self.closed = None  # (code, reason) of the server's close frame
        self.sent_close = False
        self.pongs = []
        try:
            self._upgrade(target, headers or {})
        except BaseException:
            self.stream.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.drop()

    def _upgrade(self, target, headers):
        key = base64.b64encode(os.urandom(16)).decode()
        wanted = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
            **headers,
        }
        self.stream.send_request("GET", target, wanted)
        status, found = self.stream.read_head()
        if status != 101:
            raise Refused(Response(status, found, self.stream.read_body("GET", status, found)))
        accept = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
        if found.get("sec-websocket-accept") != accept or found.get("upgrade", "").lower() != "websocket":
            raise WsViolation(f"upgrade answered with {found}")
        if found.get("connection", "").lower() != "upgrade":
            raise WsViolation(f"Connection: {found.get('connection')}")
        for name in ("sec-websocket-extensions", "sec-websocket-protocol", "content-length", "transfer-encoding"):
            if name in found:
                raise WsViolation(f"{name}: {found[name]}")

    # Sending.

    def send_raw(self, data):
        self.stream.send(data)

    def send_text(self, text):
        self.send_raw(client_frame(TEXT, text.encode() if isinstance(text, str) else text))

    def send(self, **message):
        """One JSON message."""
        self.send_text(json.dumps(message))

    def stdin(self, data):
        self.send(type="stdin", data=base64.b64encode(data).decode())

    def ping(self, payload=b""):
        self.send_raw(client_frame(PING, payload))

    def close(self, code=1000, reason=""):
        """Begins the end and waits for the server's part of it; returns its code."""
        self.send_close(code, reason)
        return self.wait_closed()

    def send_close(self, code=1000, reason=""):
        self.sent_close = True
        self.send_raw(client_frame(CLOSE, struct.pack("!H", code) + reason.encode()))

    def drop(self):
        """Ends the connection without a word."""
        self.stream.close()

    # Receiving.

    def frame(self, deadline=None):
        """The next frame, checked. Nothing is lost if the deadline passes in the middle of one."""
        self.stream.need(2, deadline)
        first, second = self.stream.buffer[:2]
        opcode, size, start = first & 15, second & 127, 2
        if first & 0x70 or second & 0x80:
            raise WsViolation(f"reserved bits or a mask: {first:02x} {second:02x}")
        if not first & 0x80:
            raise WsViolation("the server sent a fragment")
        if size >= 126:
            form, least, start = ("!H", 126, 4) if size == 126 else ("!Q", 1 << 16, 10)
            self.stream.need(start, deadline)
            size = struct.unpack(form, self.stream.buffer[2:start])[0]
            if size < least:
                raise WsViolation("a length in more bytes than it needs")
        if opcode >= 8 and size > 125:
            raise WsViolation(f"control frame of {size} bytes")
        if opcode not in (TEXT, CLOSE, PING, PONG):
            raise WsViolation(f"frame of kind {opcode}")
        if size > SERVER_MESSAGE_MAX:
            raise WsViolation(f"message of {size} bytes")
        self.stream.need(start + size, deadline)
        return Frame(opcode, self.stream.take(start + size)[start:])

    def message(self, timeout=None):
        """The next JSON message. Pings are answered, pongs kept. Raises Closed at the end of the socket."""
        deadline = time.monotonic() + patience(self.timeout if timeout is None else timeout)
        while True:
            if self.closed:
                raise Closed(*self.closed)
            try:
                frame = self.frame(deadline)
            except Ended as error:
                raise Closed(None, str(error)) from error
            if frame.opcode == TEXT:
                return self._json(frame.payload)
            self._control(frame)

    @staticmethod
    def _json(payload):
        message = json.loads(payload.decode("utf-8"))
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise WsViolation(f"no type in {payload[:200]!r}")
        return message

    def _control(self, frame):
        if frame.opcode == PING:
            self.send_raw(client_frame(PONG, frame.payload))
        elif frame.opcode == PONG:
            self.pongs.append(frame.payload)
        else:
            if len(frame.payload) == 1:
                raise WsViolation("a close frame of one byte")
            code = struct.unpack("!H", frame.payload[:2])[0] if frame.payload else None
            if code is not None and not (1000 <= code <= 1014 and code not in (1004, 1005, 1006)):
                raise WsViolation(f"close code {code}")
            self.closed = (code, frame.payload[2:].decode("utf-8"))
            if not self.sent_close:
                self.sent_close = True
                self._echo(frame.payload[:2])

    def _echo(self, payload):
        try:
            self.send_raw(client_frame(CLOSE, payload))
        except OSError:
            pass

    def pong(self, timeout=None):
        """The payload of the next pong; other messages that come before it are an error."""
        deadline = time.monotonic() + patience(self.timeout if timeout is None else timeout)
        while not self.pongs:
            frame = self.frame(deadline)
            if frame.opcode == TEXT:
                raise WsViolation(f"no pong but {frame.payload[:200]!r}")
            self._control(frame)
        return self.pongs.pop(0)

    def wait_closed(self, timeout=None):
        """Reads up to the server's close frame, whatever comes before it; then the connection must end too. Returns the code."""
        deadline = time.monotonic() + patience(self.timeout if timeout is None else timeout)
        try:
            while True:
                self.message(max(0.01, (deadline - time.monotonic()) / patience(1)))
        except Closed as closed:
            code = closed.code
        if not self.stream.ended():
            raise WsViolation(f"bytes after the close frame: {bytes(self.stream.buffer[:100])!r}")
        self.stream.close()
        return code

    def quiet(self, seconds):
        """True if no message comes within some time. A frame that has begun to come is read to its end."""
        if self.stream.buffer:
            return False
        try:
            self.stream.more(time.monotonic() + seconds)
        except TimeoutError:
            return True
        return False

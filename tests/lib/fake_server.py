"""A server of /runtime/v1 that says what a test tells it to, right or wrong: it shows that the imitated clients notice."""

import base64
import contextlib
import hashlib
import json
import socket
import struct
import threading

from .http_client import Ended, Stream
from .websocket import GUID


def server_frame(payload, opcode=1, fin=True, masked=False):
    """A frame as a server sends it, or as it must not."""
    data = json.dumps(payload).encode() if isinstance(payload, dict) else payload
    first = (0x80 if fin else 0) | opcode
    if len(data) < 126:
        head = struct.pack("!BB", first, (0x80 if masked else 0) | len(data))
    else:
        head = struct.pack("!BBH", first, (0x80 if masked else 0) | 126, len(data))
    return head + (b"\0\0\0\0" if masked else b"") + data


def output(cursor, data, kind="stdout"):
    return {"type": kind, "data": base64.b64encode(data).decode(), "cursor": cursor, "pid": "p1"}


STARTED = {"type": "started", "pid": "p1", "process": {"id": "p1", "pid": "p1"}}
EXIT = {"type": "exit", "exit_code": 0, "error": None, "cursor": 1, "pid": "p1", "status": "succeeded"}


class FakeServer:
    """`sockets`: what the upgraded connections get, one list of frames (objects, or bytes as they are) after the other; each is ended after
    the last. `answers`: (status, body) of plain requests by method and path, or bytes. `targets` tells what was asked for."""

    def __init__(self, sockets=(), answers=None):
        self.sockets = list(sockets)
        self.answers = answers or {}
        self.targets = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()

    def _accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        stream = Stream(connection)
        with contextlib.suppress(Ended, OSError, TimeoutError), connection:
            while True:
                self._request(stream)

    def _request(self, stream):
        lines = stream.take_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:] if line}
        self.targets.append(f"{method} {target}")
        if headers.get("upgrade") == "websocket":
            self._upgrade(stream, headers, target)
            raise Ended("all was said")
        stream.take(int(headers.get("content-length", 0)))
        answer = self.answers[f"{method} {target.partition('?')[0]}"]
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        stream.send(b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(data)) + data)

    def _upgrade(self, stream, headers, target):
        accept = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + GUID).digest())
        stream.send(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        if not target.partition("?")[0].endswith(("/connect", "/watch")):
            stream.need(6)  # the first frame of the client is on its way
        frames = self.sockets.pop(0) if self.sockets else []
        stream.send(b"".join(frame if isinstance(frame, bytes) else server_frame(frame) for frame in frames))

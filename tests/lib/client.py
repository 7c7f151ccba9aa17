"""An independent client of the keeper's socket, written from docs/PROTOCOL.md alone.

It checks what it receives against that page: a frame that breaks a rule, a second answer, or data after the answer
raises ProtocolViolation.
"""

import json
import socket
import struct
import time
from collections import deque
from typing import NamedTuple

from .place import patience

HEADER = struct.Struct("<IBBH")
DATA_HEADER = struct.Struct("<QQQ")
JSON, DATA = 0x4A, 0x44
JSON_MAX = 8 << 20
DATA_MAX = 1 << 20
NO_CURSOR = (1 << 64) - 1
STREAMS = ("stdin", "stdout", "stderr", "pty", "note")
RECEIVE_MAX = 1 << 18


class KeeperError(Exception):
    """The keeper's refusal."""

    def __init__(self, error):
        super().__init__(f"{error.get('code')}: {error.get('message')} {error.get('details')}")
        self.code = error["code"]
        self.message = error["message"]
        self.details = error.get("details", {})


class Closed(Exception):
    """The keeper has ended the connection; `reason` is its last word, if it had one."""

    def __init__(self, reason=None):
        super().__init__(f"connection closed: {reason}")
        self.reason = reason


class ProtocolViolation(Exception):
    pass


class Data(NamedTuple):
    request: int
    stream: str
    offset: int
    cursor: int
    data: bytes


class Reply(NamedTuple):
    result: dict
    chunks: list
    events: list

    def bytes(self, stream="stdout"):
        return b"".join(chunk.data for chunk in self.chunks if chunk.stream == stream)


def json_frame(value):
    payload = json.dumps(value).encode()
    return HEADER.pack(len(payload), JSON, 0, 0) + payload


def data_frames(request, data, size=DATA_MAX):
    """The frames of a request's own bytes."""
    frames = []
    for offset in range(0, len(data), size):
        piece = data[offset : offset + size]
        head = HEADER.pack(DATA_HEADER.size + len(piece), DATA, 0, 0)
        frames.append(head + DATA_HEADER.pack(request, offset, NO_CURSOR) + piece)
    return b"".join(frames)


class Client:
    """One connection. Requests may be pipelined; what arrives is kept for the request it belongs to."""

    def __init__(self, path, hello=True, timeout=60.0):
        """`path` is the keeper's socket, or a socket that is already connected to one."""
        self.timeout = timeout
        self.buffer = bytearray()
        self.inbox = {}
        self.answered = set()
        self.last_id = 0
        self.fatal = None
        connected = isinstance(path, socket.socket)
        self.socket = path if connected else socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if not connected:
                self.socket.connect(str(path))
            self.hello = self._read_hello() if hello else None
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    # Sending.

    def send_raw(self, data):
        self.socket.settimeout(patience(self.timeout))
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed(self.fatal) from error

    def submit_raw(self, make):
        """Sends what `make` gives for a new request id, and keeps room for what comes back."""
        self.last_id += 1
        self.inbox[self.last_id] = deque()
        self.send_raw(make(self.last_id))
        return self.last_id

    def submit(self, op, args=None, data=None):
        """Sends a request and returns its id without waiting."""

        def make(request):
            frame = {"id": request, "op": op}
            if args is not None:
                frame["args"] = args
            if data is None:
                return json_frame(frame)
            return json_frame(frame | {"data": len(data)}) + data_frames(request, data)

        return self.submit_raw(make)

    def submit_all(self, requests):
        """Sends many requests, (op, args) each, in one piece: the keeper sees them together. Returns their ids."""
        ids = list(range(self.last_id + 1, self.last_id + 1 + len(requests)))
        self.last_id += len(requests)
        self.inbox.update((request, deque()) for request in ids)
        frames = [json_frame({"id": i, "op": op, "args": args}) for i, (op, args) in zip(ids, requests)]
        self.send_raw(b"".join(frames))
        return ids

    def cancel(self, request):
        self.send_raw(json_frame({"cancel": request}))

    # Receiving.

    def item(self, request, timeout=None):
        """The next thing that belongs to a request: Data, an event, or its answer (a dict with result or error)."""
        deadline = time.monotonic() + patience(self.timeout if timeout is None else timeout)
        while not self.inbox[request]:
            self._pump(deadline)
        return self.inbox[request].popleft()

    def finish(self, request, timeout=None):
        """Waits for the answer. Raises KeeperError if it is an error."""
        chunks, events = [], []
        while True:
            item = self.item(request, timeout)
            if isinstance(item, Data):
                chunks.append(item)
            elif "event" in item:
                events.append(item)
            else:
                del self.inbox[request]
                if "error" in item:
                    raise KeeperError(item["error"])
                return Reply(item["result"], chunks, events)

    def reply(self, op, args=None, data=None, timeout=None):
        return self.finish(self.submit(op, args, data), timeout)

    def call(self, op, data=None, **args):
        """One operation, its result only."""
        return self.reply(op, args, data).result

    def login(self, token):
        """From now on this connection acts as the token's agent."""
        self.call("login", token=token)
        return self

    def answer(self, op, args=None, data=None):
        """One operation, the whole answer: {"result": …} or {"error": …}. For answers that are compared."""
        return self.outcome(self.submit(op, args, data))

    def outcome(self, request):
        """The same of one that was submitted."""
        try:
            return {"result": self.finish(request).result}
        except KeeperError as error:
            return {"error": {"code": error.code, "message": error.message, "details": error.details}}

    def quiet(self, request, seconds):
        """True if nothing at all arrives for a request within some time."""
        try:
            self.item(request, seconds / patience(1))
        except TimeoutError:
            return True
        return False

    def until_closed(self, timeout=None):
        """Reads until the keeper ends the connection; returns its last word (the fatal error) or None."""
        deadline = time.monotonic() + patience(self.timeout if timeout is None else timeout)
        try:
            while True:
                self._pump(deadline)
        except Closed as closed:
            return closed.reason

    def _read_hello(self):
        kind, _, payload = self.frame(time.monotonic() + patience(self.timeout))
        hello = json.loads(payload)
        if hello.get("fatal"):
            raise Closed(hello["error"])
        if kind != JSON or set(hello) != {"hello"}:
            raise ProtocolViolation(f"no hello but {payload[:200]!r}")
        return hello["hello"]

    def frame(self, deadline):
        """The next frame, as it is: (kind, stream, payload)."""
        while True:
            if len(self.buffer) >= HEADER.size:
                size, kind, stream, reserved = HEADER.unpack_from(self.buffer)
                if kind not in (JSON, DATA) or reserved or (kind == JSON and (stream or size > JSON_MAX)):
                    raise ProtocolViolation(f"frame header {bytes(self.buffer[:8])!r}")
                if kind == DATA and not DATA_HEADER.size <= size <= DATA_HEADER.size + DATA_MAX:
                    raise ProtocolViolation(f"data frame of {size} bytes")
                if len(self.buffer) >= HEADER.size + size:
                    payload = bytes(self.buffer[HEADER.size : HEADER.size + size])
                    del self.buffer[: HEADER.size + size]
                    return kind, stream, payload
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the keeper has sent nothing more")
            self.socket.settimeout(left)
            try:
                piece = self.socket.recv(RECEIVE_MAX)
            except ConnectionResetError as error:
                raise Closed(self.fatal) from error
            if not piece:
                raise Closed(self.fatal)
            self.buffer += piece

    def _pump(self, deadline):
        kind, stream, payload = self.frame(deadline)
        if kind == DATA:
            request, offset, cursor = DATA_HEADER.unpack_from(payload)
            item = Data(request, STREAMS[stream], offset, cursor, payload[DATA_HEADER.size :])
        else:
            item = json.loads(payload.decode("utf-8"))
            if item.get("fatal"):
                self.fatal = item["error"]
                return
            request = item.get("id")
            if not isinstance(request, int):
                raise ProtocolViolation(f"frame without id: {payload[:200]!r}")
        if request not in self.inbox or request in self.answered:
            raise ProtocolViolation(f"frame for a request that is not open: {request} {payload[:200]!r}")
        if isinstance(item, dict) and "event" not in item:
            if ("result" in item) == ("error" in item):
                raise ProtocolViolation(f"answer needs a result or an error: {payload[:200]!r}")
            self.answered.add(request)
        self.inbox[request].append(item)

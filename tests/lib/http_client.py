"""A plain HTTP/1.1 client over a socket of its own: it sends exactly the bytes it is given, and takes an answer apart strictly."""

import json
import socket
import time
from typing import NamedTuple

from .place import patience

TIMEOUT = 60
HEAD_MAX = 64 << 10


class HttpViolation(Exception):
    """An answer that breaks HTTP, or one that a client of ours could not read."""


class Ended(Exception):
    """The server has ended the connection where more was to come."""


class Response(NamedTuple):
    status: int
    headers: dict  # names in lower case
    body: bytes

    def json(self):
        if not self.headers.get("content-type", "").startswith("application/json"):
            raise HttpViolation(f"no JSON but {self.headers.get('content-type')}: {self.body[:200]!r}")
        return json.loads(self.body.decode("utf-8"))

    @property
    def error(self):
        """The code of a refusal; both of its fields must be there."""
        body = self.json()
        if not isinstance(body.get("message"), str) or not body["message"] or not body.get("error"):
            raise HttpViolation(f"a refusal needs error and message: {body}")
        return body["error"]


class Stream:
    """A connected socket with a deadline for every wait and a buffer of what has come."""

    def __init__(self, address, timeout=TIMEOUT, receive_buffer=None):
        """`address`: (host, port), or the path of a Unix socket, or a connected socket. `receive_buffer`: bytes that the kernel
        keeps for a reader that does not read."""
        self.timeout = timeout
        self.buffer = bytearray()
        if isinstance(address, socket.socket):
            self.socket = address
            return
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        if isinstance(address, tuple) and ":" in address[0]:
            family = socket.AF_INET6
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            if receive_buffer:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.socket.settimeout(patience(timeout))
            self.socket.connect(address if isinstance(address, tuple) else str(address))
        except BaseException:
            self.socket.close()
            raise

    def send(self, data):
        self.socket.settimeout(patience(self.timeout))
        self.socket.sendall(data)

    def more(self, deadline=None):
        """Waits for bytes and adds them to the buffer. False: the server has ended its side."""
        left = patience(self.timeout) if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the server has sent nothing more")
        self.socket.settimeout(left)
        try:
            piece = self.socket.recv(1 << 18)
        except ConnectionResetError as error:
            raise Ended("reset by the server") from error
        self.buffer += piece
        return bool(piece)

    def need(self, size, deadline=None):
        """Waits until so many bytes are in the buffer."""
        while len(self.buffer) < size:
            if not self.more(deadline):
                raise Ended(f"ended after {bytes(self.buffer[:200])!r}, {size} bytes wanted")

    def take(self, size, deadline=None):
        self.need(size, deadline)
        piece = bytes(self.buffer[:size])
        del self.buffer[:size]
        return piece

    def take_until(self, mark, most=HEAD_MAX):
        while (at := self.buffer.find(mark)) < 0:
            if len(self.buffer) > most:
                raise HttpViolation(f"no {mark!r} within {most} bytes")
            if not self.more():
                raise Ended(f"ended after {bytes(self.buffer[:200])!r}")
        return self.take(at + len(mark))

    def take_rest(self):
        while self.more():
            pass
        return self.take(len(self.buffer))

    def ended(self, timeout=TIMEOUT):
        """Waits until the server ends its side, without a byte more. A reset is an end too."""
        self.timeout = timeout
        try:
            while self.more():
                pass
        except Ended:
            pass
        return not self.buffer

    def reset(self):
        """Ends the connection by a reset, as a client that is killed with unread bytes does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def close(self):
        self.socket.close()


def head_of(data):
    """(status, headers) of the head of an answer. Two headers of one name are put together, but never a length."""
    lines = data.decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if len(words) < 2 or words[0] not in ("HTTP/1.1", "HTTP/1.0") or not words[1].isdigit() or len(words[1]) != 3:
        raise HttpViolation(f"status line {lines[0]!r}")
    headers = {}
    for line in lines[1:]:
        if not line:
            continue
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or "\n" in line:
            raise HttpViolation(f"header line {line!r}")
        name = name.lower()
        if name in headers and name in ("content-length", "transfer-encoding", "content-type", "connection"):
            raise HttpViolation(f"two headers {name}")
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    if "content-length" in headers and "transfer-encoding" in headers:
        raise HttpViolation("a length and chunks")
    return int(words[1]), headers


class HttpConnection(Stream):
    """One connection, for one request after another. Nothing is sent that the caller did not ask for, but Host."""

    def __init__(self, address, host=None, **options):
        super().__init__(address, **options)
        self.host = host or (f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "localhost")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send_request(self, method, target, headers=None, body=None, chunks=None):
        """Sends a request. `body` goes with its length, `chunks` (an iterable of bytes) in chunked coding. A header whose value is
        None is left out, Host too."""
        lines = {"Host": self.host}
        if chunks is not None:
            lines["Transfer-Encoding"] = "chunked"
        elif body is not None:
            lines["Content-Length"] = str(len(body))
        lines.update(headers or {})
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items() if v is not None)
        self.send(head.encode("latin-1") + b"\r\n" + (body or b""))
        if chunks is not None:
            for chunk in chunks:
                self.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.send(b"0\r\n\r\n")

    def read_head(self):
        while True:
            status, headers = head_of(self.take_until(b"\r\n\r\n")[:-4])
            if status >= 200 or status == 101:
                return status, headers

    def read_body(self, method, status, headers):
        if method == "HEAD" or status in (101, 204, 304):
            return b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        if "content-length" in headers:
            return self.take(int(headers["content-length"]))
        return self.take_rest()

    def _chunk(self):
        size = int(self.take_until(b"\r\n", 1 << 10)[:-2].split(b";")[0], 16)
        data = self.take(size)
        if self.take(2) != b"\r\n":
            raise HttpViolation("a chunk without its end")
        return data

    def read_response(self, method="GET"):
        status, headers = self.read_head()
        return Response(status, headers, self.read_body(method, status, headers))

    def request(self, method, target, headers=None, body=None, chunks=None):
        self.send_request(method, target, headers, body, chunks)
        return self.read_response(method)

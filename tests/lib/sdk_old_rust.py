"""Imitations of the Rust client of /runtime/v1: the old one, which never comes back, and the current one.

Both are stricter than the others: ids only as strings, a binary frame is the end, base64 without its padding is taken literally. Neither
counts what it has seen but by the highest cursor."""

import base64
import binascii
import json
import time
from urllib.parse import quote_plus

from .http_client import Ended, HttpConnection
from .place import patience
from .runtime import whole
from .websocket import Closed, Refused, WebSocket

RECONNECTS = 12
IDLE_SECONDS = 25


class RustError(Exception):
    """`kind` is the variant of its error."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


KINDS = {400: "InvalidArgument", 401: "Authentication", 403: "Authentication", 404: "NotFound", 408: "Timeout", 504: "Timeout",
         409: "Conflict", 429: "RateLimit", 503: "SandboxOverloaded"}


def text(value, what):
    """as_str(): anything else is nothing, and nothing is an error."""
    if not isinstance(value, str) or not value:
        raise RustError("Sandbox", f"no {what}: {value!r}")
    return value


def number(value, what):
    """as_u64()"""
    if not whole(value) or value < 0:
        raise RustError("Sandbox", f"no {what}: {value!r}")
    return value


class OldRust:
    """Mid-June: nothing is encoded in paths, kill is a POST, and a stream that ends before `exit` has failed."""

    def __init__(self, url, token):
        self.host = url.partition("://")[2].rstrip("/")
        name, _, port = self.host.rpartition(":")
        self.address = (name, int(port))
        self.token = token
        self.connection = None  # kept for the next request

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    @staticmethod
    def segment(pid):
        return pid

    def request(self, method, target, body=None):
        headers = {"accept": "*/*", "authorization": f"Bearer {self.token}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        self.connection = self.connection or HttpConnection(self.address, self.host)
        response = self.connection.request(method, target, headers, data)
        if response.headers.get("connection", "").lower() == "close":
            self.close()
        if not 200 <= response.status < 300:
            answer = response.json()
            kind = "NotEnoughSpace" if answer.get("error") == "not_enough_space" else KINDS.get(response.status, "Sandbox")
            raise RustError(kind, text(answer.get("message"), "message"))
        return json.loads(response.body) if response.body else {}

    def websocket(self, target):
        try:
            return WebSocket(self.address, target, {"Authorization": f"Bearer {self.token}"}, self.host)
        except Refused as error:
            raise RustError("Handshake", str(error)) from error
        except Ended as error:
            raise RustError("WebSocket", str(error)) from error

    @staticmethod
    def status(payload):
        """`id` first."""
        item = payload["process"]
        return {"pid": text(item.get("id") or item.get("pid"), "id"), "status": text(item.get("status"), "status"),
                "exit_code": item.get("exit_code"), "command": text(item.get("command"), "command")}

    def list(self):
        return [text(item.get("id"), "id") for item in self.request("GET", "/runtime/v1/process")["processes"]]

    def process(self, pid):
        return self.status(self.request("GET", f"/runtime/v1/process/{self.segment(pid)}"))

    def kill(self, pid):
        return self.status(self.request("POST", f"/runtime/v1/process/{self.segment(pid)}/signal", {"signal": "SIGKILL"}))

    def start(self, cmd, args, envs=None, stdin=False, timeout_ms=60000, **fields):
        socket = RustSocket(self, self.websocket("/runtime/v1/process"))
        environment = envs or {}
        socket.ws.send(type="start", cmd=cmd, args=args, environment=environment, envs=environment, stdin=stdin,
                       timeout_ms=timeout_ms, **fields)
        return socket.take_started()

    def run(self, cmd, **options):
        return self.start("/bin/bash", ["-l", "-c", cmd], **options).wait()

    def connect(self, pid, since=0):
        return RustSocket(self, self.websocket(f"/runtime/v1/process/{self.segment(pid)}/connect?since={since}")).take_started()


class RustSocket:
    """A started or attached process."""

    def __init__(self, client, ws):
        self.client, self.ws = client, ws
        self.pid = None
        self.pending = []
        self.bytes = {name: bytearray() for name in ("stdout", "stderr", "pty")}
        self.next_cursor = 0
        self.frames = 0

    def read_frame(self):
        """None at the end of the stream. It pings when nothing has come for some time, but only while it reads."""
        deadline = time.monotonic() + patience(60)
        while True:
            try:
                frame = self.ws.message(IDLE_SECONDS)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise
                self.ws.ping(b"watasu-sdk")
                continue
            except Closed as closed:
                if closed.code is None:
                    raise RustError("WebSocket", str(closed)) from closed
                return None
            if frame["type"] == "error":
                raise RustError("Sandbox", text(frame.get("message"), "message"))
            if frame["type"] != "ready":
                return frame

    def take_started(self):
        while frame := self.read_frame():
            if frame["type"] == "started":
                self.pid = text(frame.get("pid"), "pid")
                if "cursor" in frame:
                    raise RustError("Sandbox", f"counts as output: {frame}")
                return self
        raise RustError("Sandbox", "process ended before started frame")

    def wait(self):
        """(exit code, stdout, stderr, error)"""
        while True:
            frame = self.pending.pop(0) if self.pending else self.next_frame()
            if frame["type"] in self.bytes:
                self._take(frame)
            elif frame["type"] == "exit":
                number(frame.get("cursor"), "cursor")
                self.ws.drop()
                if not whole(frame.get("exit_code")):
                    raise RustError("Sandbox", f"reads as success: {frame}")
                return frame["exit_code"], bytes(self.bytes["stdout"] + self.bytes["pty"]), bytes(self.bytes["stderr"]), frame["error"]

    def next_frame(self):
        frame = self.read_frame()
        if frame is None:
            raise RustError("Sandbox", "process websocket closed before exit")
        return frame

    def _take(self, frame):
        cursor = number(frame.get("cursor"), "cursor")
        if cursor != self.next_cursor and self.frames:
            raise RustError("Sandbox", f"cursor {cursor} after {self.next_cursor - 1}: output doubled or lost")
        self.frames += 1
        self.next_cursor = cursor + 1
        try:
            data = base64.b64decode(frame["data"], validate=True)
        except binascii.Error as error:
            raise RustError("Sandbox", f"taken literally: {frame['data'][:60]}") from error
        self.bytes[frame["type"]] += data

    def _wait_ack(self, kind):
        while True:
            frame = self.next_frame()
            if frame["type"] == kind:
                return
            self.pending.append(frame)

    def send_stdin(self, data):
        self.ws.stdin(data)
        self._wait_ack("stdin_ack")

    def close_stdin(self):
        self.ws.send(type="close_stdin")
        self._wait_ack("close_stdin_ack")

    def disconnect(self):
        self.ws.send_close()
        self.ws.drop()


class Rust(OldRust):
    """0.1.70: ids are encoded as forms are, kill is a DELETE, and a stream that ends is attached to again."""

    @staticmethod
    def segment(pid):
        return quote_plus(pid, safe="*-._")

    def kill(self, pid):
        return self.stop(pid, signal="SIGKILL", kill_group="true")

    def stop(self, pid, **query):
        words = "&".join(f"{name}={quote_plus(str(value))}" for name, value in query.items())
        return self.status(self.request("DELETE", f"/runtime/v1/process/{self.segment(pid)}?{words}"))

    def output(self, pid, **query):
        words = "&".join(f"{name}={quote_plus(str(value))}" for name, value in query.items())
        answer = self.request("GET", f"/runtime/v1/process/{self.segment(pid)}/output?{words}")
        text(answer.get("pid"), "pid")
        for name in ("next_cursor", "total_bytes", "total_bytes_observed", "returned_bytes", "retained_bytes", "omitted_bytes"):
            number(answer.get(name), name)
        for name in ("truncated", "truncated_before_cursor", "truncated_by_retention"):
            if not isinstance(answer.get(name), bool):
                raise RustError("Sandbox", f"{name} of {answer!r:.300}")
        return answer

    def wait_again(self, handle):
        """Waits, and attaches again as often as it may; each wait counts cursors from 0 anew."""
        attempts = 0
        while True:
            try:
                return handle.wait()
            except (RustError, ConnectionError) as error:
                if attempts >= RECONNECTS or isinstance(error, RustError) and "closed" not in str(error):
                    raise
            time.sleep(min(2.0, 0.25 * 2 ** (attempts - 1)) if attempts else 0)
            attempts += 1
            try:
                old, handle.ws = handle.ws, self.connect(handle.pid, handle.next_cursor).ws
                old.drop()
            except (RustError, ConnectionError):
                continue

    def pty(self, cols=80, rows=24):
        return self.start("/bin/bash", ["-i", "-l"], envs={"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
                          stdin=True, cwd=None, pty={"cols": cols, "rows": rows})

    def pty_kill(self, pid):
        """As the old one: nothing encoded, and a POST."""
        return self.status(self.request("POST", f"/runtime/v1/process/{pid}/signal", {"signal": "SIGKILL"}))

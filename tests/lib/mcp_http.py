"""MCP over HTTP: one POST for each request, answers as JSON or as a stream of events, and the legacy era's sessions."""

import base64
import json
import time
from collections import deque

from .http_client import Ended, HttpConnection, Response
from .mcp import META, PARSE, TIMEOUT, Peer, Pending, Violation, check_message, parse
from .place import patience

BOTH = "application/json, text/event-stream"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId",
         "tasks/cancel": "taskId"}


class EventStream:
    """The events of an answer. Only what the format has is taken: data, event, id, retry, comments."""

    def __init__(self, connection, headers):
        self.connection = connection
        if headers.get("content-type", "").split(";")[0] != "text/event-stream":
            raise Violation(f"no stream of events but {headers}")
        if headers.get("transfer-encoding", "").lower() != "chunked":
            raise Violation(f"a stream without chunks: {headers}")
        if headers.get("x-accel-buffering") != "no":
            raise Violation(f"a proxy would hold the stream back: {headers}")
        self.text = b""
        self.over = False
        self.comments = 0
        self.messages = deque()

    def pump(self, deadline):
        """Waits for the next piece; False at the end."""
        self.connection.timeout = max(0.001, deadline - time.monotonic()) / patience(1)
        piece = self.connection._chunk()
        if not piece:
            self.over = True
            if self.text.strip():
                raise Violation(f"half an event at the end: {self.text[:300]!r}")
            return False
        self.text += piece
        while b"\n\n" in self.text:
            event, self.text = self.text.split(b"\n\n", 1)
            self._take(event)
        return True

    def _take(self, event):
        data = []
        for line in event.split(b"\n"):
            name, _, value = line.partition(b":")
            if not name:
                self.comments += 1
            elif name == b"data":
                data.append(value.removeprefix(b" "))
            elif name not in (b"event", b"id", b"retry") or name == b"event" and value.strip() != b"message":
                raise Violation(f"a line of an event: {line[:200]!r}")
        if data and data != [b""]:
            self.messages.append(parse(b"\n".join(data)))


class HttpPending(Pending):
    """A request on a connection of its own. The stream must end with the answer."""

    def __init__(self, *args):
        super().__init__(*args)
        self.connection = None
        self.headers = None
        self.stream = None


class HttpPeer(Peer):
    """One client of `/mcp`. In the legacy era it has a session, and may open a stream for what belongs to no request."""

    transport = "http"

    def __init__(self, gateway, token=None):
        super().__init__()
        self.gateway = gateway
        self.token = token or gateway.token
        self.session = None
        self.connections = []
        self.get = None

    # Raw.

    def headers(self, message=None, **more):
        """What goes with a message. More headers by name, _ for -; None leaves one out."""
        found = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "Accept": BOTH}
        params = message.get("params", {}) if isinstance(message, dict) else {}
        version = params.get("_meta", {}).get(META + "protocolVersion") if isinstance(params, dict) else None
        if version is not None:
            found |= {"MCP-Protocol-Version": str(version), "Mcp-Method": str(message.get("method"))}
            name = params.get(NAMED.get(message.get("method")))
            if name is not None:
                found["Mcp-Name"] = header_value(str(name))
        elif self.session:
            found["MCP-Session-Id"] = self.session
            if self.version:
                found["MCP-Protocol-Version"] = self.version
        return found | {name.replace("_", "-"): value for name, value in more.items()}

    def connect(self):
        connection = HttpConnection(self.gateway.address, self.gateway.host)
        self.connections.append(connection)
        return connection

    def post(self, message, headers=None):
        """One POST with just these headers, read to the end: a Response. `message` may be bytes."""
        body = message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode()
        with HttpConnection(self.gateway.address, self.gateway.host) as connection:
            return connection.request("POST", "/mcp", self.headers(message) if headers is None else headers, body)

    def request(self, method, headers=None):
        """GET, DELETE and others, without a body."""
        found = {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream"} | (headers or {})
        with HttpConnection(self.gateway.address, self.gateway.host) as connection:
            return connection.request(method, "/mcp", found)

    # As of every peer.

    def submit(self, method, params=None, *, number=None, modern=None, token=None, capabilities=None):
        modern = self.modern if modern is None else modern
        message = self.message(method, params, number, modern, token, capabilities)
        pending = HttpPending(self, message["id"], method, modern, token)
        self.send(pending, message)
        return pending

    def send(self, pending, message):
        pending.connection = self.connect()
        body = json.dumps(message, ensure_ascii=False).encode()
        pending.connection.send_request("POST", "/mcp", self.headers(message), body)

    def send_notification(self, message):
        response = self.post(message)
        if (response.status, response.body) != (202, b""):
            raise Violation(f"a notification is answered with {response}")

    def pump(self, pending, deadline):
        """Reads on in the answer to a request."""
        connection = pending.connection
        if pending.headers is None:
            connection.timeout = max(0.001, deadline - time.monotonic()) / patience(1)
            pending.status, pending.headers = connection.read_head()
            if pending.headers.get("content-type", "").startswith("text/event-stream"):
                pending.stream = EventStream(connection, pending.headers)
            else:
                self._take_body(pending)
            return
        if pending.stream.over:
            raise Ended("the stream has ended without the answer")
        pending.stream.pump(deadline)
        while pending.stream.messages:
            message = pending.stream.messages.popleft()
            self.bytes_in += len(json.dumps(message))
            self._take(pending, message)
        if pending.answer is not None:
            while not pending.stream.over:
                pending.stream.pump(deadline)
            connection.close()

    def _take_body(self, pending):
        body = pending.connection.read_body("POST", pending.status, pending.headers)
        pending.connection.close()
        response = Response(pending.status, pending.headers, body)
        self.bytes_in += len(body)
        if not body:
            raise Violation(f"{pending.method} is answered with {response}")
        response.json()  # says what it is
        message = parse(body)
        if pending.method == "initialize" and pending.status == 200 and "result" in message:
            self.session = pending.headers.get("mcp-session-id")
        self._take(pending, message)

    def _take(self, pending, message):
        check_message(message)
        if "method" in message:
            pending.take_note(message)
        elif type(message["id"]) is not type(pending.id) or message["id"] != pending.id:
            if message["id"] is not None or message["error"]["code"] != PARSE:
                raise Violation(f"an answer to another request: {message!r:.300}")
        else:
            pending.take_answer(message)

    def cancel(self, pending, reason):
        """Modern: closing the stream says it. Legacy: a notification does."""
        if pending.modern:
            pending.connection.close()
        else:
            self.notify("notifications/cancelled", {"requestId": pending.id, "reason": reason}, modern=False)

    # The legacy era's stream.

    def open_stream(self):
        """GET: what belongs to no request comes here."""
        connection = self.connect()
        found = {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream", "MCP-Session-Id": self.session,
                 "MCP-Protocol-Version": self.version}
        connection.send_request("GET", "/mcp", found)
        status, headers = connection.read_head()
        if status != 200:
            raise AssertionError(f"GET /mcp: {status} {connection.read_body('GET', status, headers)!r}")
        self.get = EventStream(connection, headers)
        return self.get

    def loose(self, *methods, timeout=TIMEOUT):
        """The next notification that belongs to no request."""
        if self.get is None:
            self.open_stream()
        deadline = time.monotonic() + patience(timeout)
        while True:
            while not self.notes:
                if not self.get.messages and not self.get.pump(deadline):
                    raise Ended("the stream has ended")
                while self.get.messages:
                    message = self.get.messages.popleft()
                    check_message(message)
                    self.take_loose(message)
            message = self.notes.popleft()
            if not methods or message["method"] in methods:
                return message

    def close(self):
        for connection in self.connections:
            connection.close()


def header_value(text):
    """A name as a header can carry it: as it is, or wrapped in base64 where it is no plain text."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return "=?base64?" + base64.b64encode(text.encode()).decode() + "?="


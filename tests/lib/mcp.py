"""MCP as a strict client sees it: what every message must be, and `coop mcp` over its pipes.

Nothing is taken on trust: a line that is no message, an answer that nobody waits for, a notification of a kind that no revision has,
progress after the result or anything for a cancelled request raises Violation, whatever the test is about."""

import json
import os
import select
import subprocess
import time
from collections import deque

from .keeper import plain_limits
from .place import COOP, patience

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_LEGACY = LEGACY[-1]
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
CLIENT = {"name": "coop-tests", "version": "1"}
TIMEOUT = 60

PARSE, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NO_RESOURCE, HEADER_MISMATCH, NO_CAPABILITY, NO_VERSION = -32002, -32020, -32021, -32022
JSON_RPC_CODES = {PARSE, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL}
LEGACY_CODES = JSON_RPC_CODES | {NO_RESOURCE, -32000}
MODERN_CODES = JSON_RPC_CODES | {HEADER_MISMATCH, NO_CAPABILITY, NO_VERSION, -32000}

PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
RESOURCES_CHANGED = "notifications/resources/list_changed"
TOOLS_CHANGED = "notifications/tools/list_changed"
TASKS = "notifications/tasks"
KNOWN_NOTES = {PROGRESS, CANCELLED, ACKNOWLEDGED, UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED, TASKS}


class Violation(Exception):
    """The server has sent something that no revision allows."""


class McpError(Exception):
    """An error answer. `status` is that of HTTP, None on stdio."""

    def __init__(self, error, status=None):
        super().__init__(f"{error.get('code')}: {error.get('message')} {error.get('data')}")
        self.code = error["code"]
        self.message = error["message"]
        self.data = error.get("data")
        self.status = status


def _once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Violation(f"a name twice in one object: {[name for name, _ in pairs]}")
    return found


def _no_constant(word):
    raise Violation(f"{word} is no JSON")


def parse(data):
    """One message's bytes as JSON; strictly UTF-8, no name twice, no NaN."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except ValueError as error:
        raise Violation(f"no JSON in UTF-8: {error}: {data[:300]!r}") from error


def meta(version=MODERN, capabilities=None, client=True, **more):
    """The metadata that every modern request carries. None leaves a part out."""
    found = {}
    if version is not None:
        found[META + "protocolVersion"] = version
    if capabilities is not False:
        found[META + "clientCapabilities"] = capabilities or {}
    if client:
        found[META + "clientInfo"] = CLIENT
    return found | more


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def check_message(message):
    """Whether it is an answer or a notification, in its exact form. Servers of ours send no requests."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Violation(f"no JSON-RPC message: {message!r:.300}")
    if "method" in message:
        if not set(message) <= {"jsonrpc", "method", "params"} or message["method"] not in KNOWN_NOTES:
            raise Violation(f"no notification that we know: {message!r:.300}")
        if not isinstance(message.get("params", {}), dict):
            raise Violation(f"params: {message!r:.300}")
        return
    kinds = set(message) - {"jsonrpc", "id"}
    if kinds not in ({"result"}, {"error"}) or "id" not in message:
        raise Violation(f"neither answer nor notification: {message!r:.300}")
    if not whole(message["id"]) and not isinstance(message["id"], str) and (message["id"] is not None or "result" in message):
        raise Violation(f"id: {message!r:.300}")
    if "error" in message:
        check_error(message["error"])
    elif not isinstance(message["result"], dict):
        raise Violation(f"result: {message!r:.300}")


def check_error(error):
    if not isinstance(error, dict) or not set(error) <= {"code", "message", "data"} or not whole(error.get("code")):
        raise Violation(f"error: {error!r:.300}")
    if not isinstance(error.get("message"), str) or not error["message"]:
        raise Violation(f"an error without words: {error!r:.300}")
    if error["code"] not in LEGACY_CODES | MODERN_CODES:
        raise Violation(f"a code of our own: {error!r:.300}")


def check_modern_result(method, result):
    """What every result of the modern era has."""
    if result.get("resultType") not in ("complete", "task"):
        raise Violation(f"resultType of {method}: {result!r:.300}")
    info = result.get("_meta", {}).get(META + "serverInfo")
    if not isinstance(info, dict) or not info.get("name") or not info.get("version"):
        raise Violation(f"serverInfo of {method}: {result!r:.300}")
    if method in ("server/discover", "tools/list", "resources/list", "resources/read", "resources/templates/list"):
        if not whole(result.get("ttlMs")) or result["ttlMs"] < 0 or result.get("cacheScope") not in ("public", "private"):
            raise Violation(f"{method} says not how long it holds: {result!r:.300}")


class ToolResult:
    """What tools/call brought. `value` is the structured content; `cost` is what a model reads of it, in bytes."""

    def __init__(self, name, result):
        self.name = name
        self.result = result
        if not set(result) <= {"content", "structuredContent", "isError", "resultType", "_meta"}:
            raise Violation(f"members of a tool's result: {sorted(result)}")
        self.is_error = result.get("isError", False)
        self.value = result.get("structuredContent")
        content = result.get("content")
        if not isinstance(content, list) or len(content) != 1 or content[0].get("type") != "text":
            raise Violation(f"{name}: one block of text was wanted: {content!r:.300}")
        self.text = content[0]["text"]
        self.cost = len(self.text.encode("utf-8"))
        if not isinstance(self.is_error, bool) or not isinstance(self.value, dict):
            raise Violation(f"{name}: {result!r:.300}")
        if parse(self.text.encode("utf-8")) != self.value:
            raise Violation(f"{name}: the text says {self.text[:300]} and the structure {self.value!r:.300}")

    def __getitem__(self, name):
        return self.value[name]

    def get(self, name, default=None):
        return self.value.get(name, default)

    def __repr__(self):
        return f"{'isError ' if self.is_error else ''}{self.text[:1500]}"


class Pending:
    """A request that was sent. Its notifications come in order, then its answer; `closed` once the caller has given it up."""

    def __init__(self, peer, number, method, modern, token=None):
        self.peer, self.id, self.method, self.modern = peer, number, method, modern
        self.token = token
        self.notes = deque()
        self.progress = None  # the last number
        self.answer = None
        self.status = None  # of HTTP
        self.closed = False
        self.acknowledged = False

    def take_note(self, message):
        """A notification that belongs to this request."""
        if self.closed:
            raise Violation(f"for a cancelled request: {message!r:.300}")
        if self.answer is not None:
            raise Violation(f"after the answer: {message!r:.300}")
        method, params = message["method"], message.get("params", {})
        if method == PROGRESS:
            self._take_progress(params)
        elif self.method != "subscriptions/listen":
            raise Violation(f"{method} belongs to no {self.method}")
        elif method != CANCELLED:
            self._take_subscribed(method, params)
        self.notes.append(message)

    def _take_progress(self, params):
        value = params.get("progress")
        if self.token is None or type(params.get("progressToken")) is not type(self.token) or params["progressToken"] != self.token:
            raise Violation(f"progress that nobody asked for: {params}")
        if not isinstance(value, (int, float)) or self.progress is not None and value <= self.progress:
            raise Violation(f"progress does not rise: {self.progress}, then {params}")
        if not set(params) <= {"progressToken", "progress", "total", "message", "_meta"}:
            raise Violation(f"progress {params}")
        self.progress = value

    def _take_subscribed(self, method, params):
        found = params.get("_meta", {}).get(META + "subscriptionId")
        if type(found) is not type(self.id) or found != self.id:
            raise Violation(f"subscription {self.id!r} is told {params}")
        if (method == ACKNOWLEDGED) == self.acknowledged:
            raise Violation(f"{method} {'twice' if self.acknowledged else 'before the acknowledgement'}")
        self.acknowledged = True

    def take_answer(self, message):
        if self.closed:
            raise Violation(f"for a cancelled request: {message!r:.300}")
        if self.answer is not None:
            raise Violation(f"a second answer: {message!r:.300}")
        if "result" in message and self.modern:
            check_modern_result(self.method, message["result"])
        if "error" in message:
            wrong = message["error"]["code"] not in (MODERN_CODES if self.modern else LEGACY_CODES)
            if wrong:
                raise Violation(f"a code of the other era: {message!r:.300}")
        self.answer = message

    # What tests wait for.

    def note(self, *methods, timeout=TIMEOUT):
        """The next notification of this request, past those of other methods if some are named."""
        deadline = time.monotonic() + patience(timeout)
        while True:
            while not self.notes:
                if self.answer is not None:
                    raise AssertionError(f"{self.method} ended: {self.answer!r:.300}")
                self.peer.pump(self, deadline)
            message = self.notes.popleft()
            if not methods or message["method"] in methods:
                return message

    def finish(self, timeout=TIMEOUT):
        """Waits for the answer: the result, or McpError."""
        deadline = time.monotonic() + patience(timeout)
        while self.answer is None:
            self.peer.pump(self, deadline)
        if "error" in self.answer:
            raise McpError(self.answer["error"], self.status)
        return self.answer["result"]

    def result(self, timeout=TIMEOUT):
        """The same of tools/call."""
        return ToolResult(self.tool_name, self.finish(timeout))

    def quiet(self, seconds):
        """True if nothing comes for it within some time."""
        deadline = time.monotonic() + seconds
        try:
            while not self.notes and self.answer is None:
                self.peer.pump(self, deadline)
        except TimeoutError:
            return True
        return False

    def cancel(self, reason="not wanted any more"):
        """Gives it up as its transport does. Anything for it from now on is a violation."""
        self.peer.cancel(self, reason)
        self.closed = True


class Peer:
    """The client's side of one connection, stdio's or HTTP's. `version` None: modern, else what was negotiated."""

    def __init__(self):
        self.version = None
        self.last_id = 0
        self.bytes_in = 0
        self.notes = deque()  # those that belong to no request

    @property
    def modern(self):
        return self.version is None

    def next_id(self):
        self.last_id += 1
        return self.last_id

    def message(self, method, params=None, number=None, modern=None, token=None, capabilities=None, **more):
        """A request as it goes out."""
        params = dict(params or {})
        found = dict(params.pop("_meta", {}))
        if self.modern if modern is None else modern:
            found = meta(capabilities=capabilities) | found
        if token is not None:
            found["progressToken"] = token
        if found:
            params["_meta"] = found
        message = {"jsonrpc": "2.0", "id": self.next_id() if number is None else number, "method": method}
        return message | ({"params": params} if params else {}) | more

    def submit(self, method, params=None, *, number=None, modern=None, token=None, capabilities=None):
        """Sends a request and gives what is to come of it."""
        modern = self.modern if modern is None else modern
        message = self.message(method, params, number, modern, token, capabilities)
        pending = Pending(self, message["id"], method, modern, token)
        self.send(pending, message)
        return pending

    def call(self, method, params=None, timeout=TIMEOUT, **options):
        return self.submit(method, params, **options).finish(timeout)

    def submit_tool(self, name, arguments=None, **options):
        params = {"name": name} | ({} if arguments is None else {"arguments": arguments})
        pending = self.submit("tools/call", params, **options)
        pending.tool_name = name
        return pending

    def tool(self, name, _options=None, **arguments):
        """Calls a tool and looks its result over."""
        return self.submit_tool(name, arguments, **(_options or {})).result()

    def notify(self, method, params=None, modern=None):
        params = dict(params or {})
        if self.modern if modern is None else modern:
            params["_meta"] = meta() | params.get("_meta", {})
        self.send_notification({"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {}))

    def listen(self, number=None, **kinds):
        """A subscription of the modern era, acknowledged: (pending, what was accepted)."""
        pending = self.submit("subscriptions/listen", {"notifications": kinds}, number=number)
        note = pending.note()
        if note["method"] != ACKNOWLEDGED:
            raise Violation(f"no acknowledgement but {note}")
        return pending, note["params"]["notifications"]

    def opening(self, version=LATEST_LEGACY):
        """Parameters of initialize."""
        return {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}

    def initialize(self, version=LATEST_LEGACY):
        """Opens in the legacy era, which is what follows unless a call says otherwise. The result of initialize."""
        result = self.call("initialize", self.opening(version), modern=False)
        self.version = result["protocolVersion"]
        self.notify("notifications/initialized")
        return result

    def take_loose(self, message):
        """A notification that names no request."""
        subscribed = META + "subscriptionId" in message.get("params", {}).get("_meta", {})
        if subscribed or message["method"] not in (UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED):
            raise Violation(f"belongs to nothing: {message!r:.300}")
        if self.version is None:
            raise Violation(f"for a client of the other era: {message!r:.300}")
        self.notes.append(message)


class StdioPeer(Peer):
    """`coop mcp`, started for this client. Nothing is read but while something is waited for."""

    transport = "stdio"

    def __init__(self, env, cwd, options=(), stderr=subprocess.DEVNULL):
        super().__init__()
        self.process = subprocess.Popen(
            [str(COOP), "mcp", *map(str, options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env, cwd=cwd, preexec_fn=plain_limits, bufsize=0,
        )
        self.pid = self.process.pid
        for pipe in (self.process.stdin, self.process.stdout):
            os.set_blocking(pipe.fileno(), False)
        self.buffer = bytearray()
        self.ended = False
        self.open = {}
        self.raw = None  # a list: every line is kept there, too
        self.strays = deque()  # error answers without an id

    # Out.

    def send(self, pending, message):
        self.open[pending.id] = pending
        self.write(message)

    def send_notification(self, message):
        self.write(message)

    def write(self, message):
        self.write_raw(json.dumps(message, ensure_ascii=False).encode("utf-8") + b"\n")

    def write_raw(self, data, timeout=TIMEOUT):
        """All of it; what the server says meanwhile is taken, so that neither waits for the other."""
        data = memoryview(data)
        deadline = time.monotonic() + patience(timeout)
        while data:
            data = data[self.write_some(data) :]
            if data:
                outs = [] if self.ended else [self.process.stdout]
                ready = select.select(outs, [self.process.stdin], [], max(0, deadline - time.monotonic()))
                if not ready[0] and not ready[1]:
                    raise TimeoutError("the server takes nothing")
                if ready[0]:
                    self._receive()

    def write_some(self, data):
        """What the pipe takes now; nothing is read."""
        try:
            return os.write(self.process.stdin.fileno(), data[: 1 << 16])
        except BlockingIOError:
            return 0

    def cancel(self, pending, reason):
        self.write({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": pending.id, "reason": reason}})
        self.open.pop(pending.id, None)

    # In.

    def pump(self, _pending, deadline):
        """Waits for more and takes every whole line."""
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
            raise TimeoutError("the server has said nothing more")
        if not self._receive():
            raise AssertionError(f"the server has ended with {self.process.wait(patience(10))}")

    def _receive(self):
        try:
            piece = os.read(self.process.stdout.fileno(), 1 << 18)
        except BlockingIOError:
            return True
        if not piece:
            self.ended = True
            if self.buffer:
                raise Violation(f"half a line at the end: {bytes(self.buffer[:300])!r}")
            return False
        self.bytes_in += len(piece)
        self.buffer += piece
        if b"\n" in piece:
            lines = self.buffer.split(b"\n")
            self.buffer = bytearray(lines.pop())
            for line in lines:
                self._take_line(bytes(line))
        return True

    def _take_line(self, line):
        if self.raw is not None:
            self.raw.append(line)
        message = parse(line)
        # Answers to a batch may come together.
        if isinstance(message, list) and self.version == "2025-03-26" and message:
            for part in message:
                self._take(part)
        else:
            self._take(message)

    def _take(self, message):
        check_message(message)
        if "method" in message:
            pending = self._owner(message)
            if pending:
                pending.take_note(message)
            else:
                self.take_loose(message)
            return
        number = message["id"]
        if number is None:
            self.strays.append(message)
            return
        pending = next((found for key, found in self.open.items() if type(key) is type(number) and key == number), None)
        if pending is None:
            raise Violation(f"an answer that nobody waits for: {message!r:.300}")
        pending.take_answer(message)
        del self.open[number]

    def _owner(self, message):
        """The open request that a notification is for."""
        params = message.get("params", {})
        found = params.get("_meta", {})
        for pending in list(self.open.values()):
            if message["method"] == PROGRESS and pending.token is not None and params.get("progressToken") == pending.token:
                return pending
            if found.get(META + "subscriptionId") == pending.id and META + "subscriptionId" in found:
                return pending
            if message["method"] == CANCELLED and params.get("requestId") == pending.id:
                return pending
        return None

    def stray(self, timeout=TIMEOUT):
        """The next error that belongs to no request."""
        deadline = time.monotonic() + patience(timeout)
        while not self.strays:
            self.pump(None, deadline)
        return self.strays.popleft()["error"]

    def loose(self, *methods, timeout=TIMEOUT):
        """The next notification that belongs to no request."""
        deadline = time.monotonic() + patience(timeout)
        while True:
            while not self.notes:
                self.pump(None, deadline)
            message = self.notes.popleft()
            if not methods or message["method"] in methods:
                return message

    # Its end.

    def close_stdin(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()

    def read_to_end(self, timeout=TIMEOUT):
        """Takes all that still comes; the exit code."""
        deadline = time.monotonic() + patience(timeout)
        while not self.ended:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError("the server does not end")
            self._receive()
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def leave(self, timeout=TIMEOUT):
        """As a client that is done: end of input, then all that comes up to the end."""
        self.close_stdin()
        return self.read_to_end(timeout)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()

    def memory(self):
        """Bytes that the program has in memory now, without what is shared with files."""
        with open(f"/proc/{self.pid}/status", "rb") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(b"RssAnon:"))

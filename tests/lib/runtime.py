"""The sockets of /runtime/v1, frame by frame: what every client may rely on is checked on every frame."""

import base64
import binascii
import re

from .websocket import Closed, WebSocket

CHUNK_MAX = 32 << 10
STREAMS = ("stdout", "stderr", "pty")
STATUSES = ("running", "succeeded", "failed", "killed", "timed_out")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
RECORD = {
    "id": str, "pid": str, "os_pid": int, "cmd": str, "command": str, "args": list, "cwd": str, "envs": dict, "pty": bool,
    "status": str,
}
MAYBE = {"tag": str, "user": str, "started_at": str, "finished_at": str, "exit_code": int}


class Broken(Exception):
    """The server has sent something that a client would fail on, or take for something else."""


def whole(value):
    """A JSON integer; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_record(record):
    """P of the specification; returns it."""
    for name, kind in RECORD.items():
        value = record.get(name)
        if not (whole(value) if kind is int else isinstance(value, kind)):
            # A process that could not be started has no number.
            if not (name == "os_pid" and name in record and record.get("exit_code") in (126, 127)):
                raise Broken(f"{name} of a process is {value!r}: {record}")
    for name, kind in MAYBE.items():
        if name not in record:
            raise Broken(f"{name} is missing: {record}")
        value = record[name]
        if value is not None and not (whole(value) if kind is int else isinstance(value, kind)):
            raise Broken(f"{name} of a process is {value!r}")
    if record["id"] != record["pid"] or record["cmd"] != record["command"] or not record["id"]:
        raise Broken(f"two names of a process, two commands: {record}")
    if record["status"] not in STATUSES or (record["exit_code"] is None) != (record["status"] == "running"):
        raise Broken(f"status {record['status']}, exit code {record['exit_code']}")
    if not record["cwd"].startswith("/") or not all(isinstance(word, str) for word in record["args"]):
        raise Broken(f"cwd or args: {record}")
    for name in ("started_at", "finished_at"):
        if record[name] is not None and not TIME.match(record[name]):
            raise Broken(f"{name} {record[name]!r}")
    if (record["finished_at"] is None) != (record["status"] == "running"):
        raise Broken(f"status {record['status']}, finished at {record['finished_at']}")
    return record


def decode(text):
    """Standard base64, padded, without line breaks: all else is taken literally by some clients."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise Broken(f"data {text!r:.100}: {error}") from error
    if base64.b64encode(data).decode() != text:
        raise Broken(f"data {text!r:.100} is not in its one form")
    return data


class Event:
    """One output or exit event."""

    def __init__(self, message):
        self.type = message["type"]
        self.cursor = message["cursor"]
        self.data = decode(message["data"]) if self.type in STREAMS else b""
        self.message = message

    def __eq__(self, other):
        return (self.type, self.cursor, self.data) == (other.type, other.cursor, other.data)

    def __repr__(self):
        return f"{self.cursor}:{self.type}:{self.data[:40]!r}"


class RuntimeSocket(WebSocket):
    """A start or attach socket. Events must come in the order of their cursors, each once, without a hole that no `gap` told of."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.pid = None
        self.record = None
        self.next = None  # the cursor that must come next
        self.events = []  # output and exit
        self.gaps = []
        self.others = []  # acks and errors that were passed by on the way to an event
        self.exit = None

    def start(self, cmd, args=None, **fields):
        """Sends `start` and takes the answer to it."""
        message = {"type": "start", "cmd": cmd, **({"args": args} if args is not None else {}), **fields}
        self.send(**message)
        return self.expect_started(0)

    def expect_started(self, since):
        message = self.message()
        if message["type"] == "ready":
            message = self.message()
        if message["type"] == "error":
            raise StartError(message)
        if message["type"] != "started" or "cursor" in message:
            raise Broken(f"no started but {message}")
        if not isinstance(message.get("pid"), str) or message["pid"] != message["process"]["pid"]:
            raise Broken(f"pid of {message}")
        self.pid = message["pid"]
        self.record = check_record(message["process"])
        self.next = since
        return self.record

    def expect_refused(self):
        """The start was refused: a process that is none, the reason as a note, and its end. Returns the exit."""
        self.expect_started(0)
        exit = self.until_exit()
        if not re.match(r"^refused-[0-9a-f]{16}$", self.pid) or [event.type for event in self.events] != ["stderr", "exit"]:
            raise Broken(f"refused as {self.pid}: {self.events}")
        if exit["exit_code"] not in (126, 127) or exit["status"] != "failed" or not exit.get("code"):
            raise Broken(f"exit {exit}")
        if self.output() != f"coop: {exit['error']}\n".encode()[:512]:
            raise Broken(f"note {self.output()} of {exit}")
        return exit

    def frame_of(self, timeout=None):
        """The next message after `started`, checked. Output and exit are kept as events too."""
        message = self.message(timeout)
        kind = message["type"]
        if self.exit is not None:
            raise Broken(f"after exit: {message}")
        if kind in STREAMS or kind == "exit":
            self._take_event(message)
        elif kind == "gap":
            self._take_gap(message)
        elif kind in ("stdin_ack", "close_stdin_ack"):
            if message.get("pid") != self.pid or "cursor" in message:
                raise Broken(f"ack {message}")
        elif kind == "error":
            self._check_error(message)
        else:
            raise Broken(f"unknown frame {message}")
        return message

    def _take_event(self, message):
        event = Event(message)
        if not whole(event.cursor) or message.get("pid") != self.pid:
            raise Broken(f"event {message!r:.300}")
        if event.type == "exit":
            # Whoever asks from behind the end is told the end, with the number that it has.
            if event.cursor != self.next and not (event.cursor < self.next and not self.events):
                raise Broken(f"exit has cursor {event.cursor}, {self.next} should be next")
            self._check_exit(message, self.gaps)
            self.exit = message
        elif event.cursor != self.next:
            raise Broken(f"cursor {event.cursor} instead of {self.next}")
        elif not 0 < len(event.data) <= CHUNK_MAX:
            raise Broken(f"chunk of {len(event.data)} bytes")
        elif (event.type == "pty") != self.record["pty"] and not event.data.startswith(b"coop: "):
            raise Broken(f"{event.type} of a process with pty {self.record['pty']}")
        self.next = event.cursor + 1
        self.events.append(event)

    @staticmethod
    def _check_exit(message, gaps):
        if not whole(message.get("exit_code")) or message.get("status") not in STATUSES[1:] or "error" not in message:
            raise Broken(f"exit {message}")
        error = message["error"]
        if error is not None and (not isinstance(error, str) or not error):
            raise Broken(f"exit {message}")
        # What was lost on the way here is told, whatever the end was; clients know nothing of gaps.
        if bool(gaps) != (error is not None and error.endswith(" bytes of output were lost")):
            raise Broken(f"exit {message} after {gaps}")
        if error is not None and message["status"] == "succeeded" and not gaps or error is None and message["status"] in ("killed", "timed_out"):
            raise Broken(f"exit {message}")
        if (message["status"] == "succeeded") != (message["exit_code"] == 0):
            raise Broken(f"exit {message}")

    def _take_gap(self, message):
        first, last, count = message.get("from_cursor"), message.get("to_cursor"), message.get("bytes")
        if not whole(first) or not whole(last) or first != self.next or last <= first or "cursor" in message:
            raise Broken(f"gap {message}, {self.next} should be next")
        if count is not None and (not whole(count) or count < 0):
            raise Broken(f"gap {message}")
        self.next = last
        self.gaps.append(message)

    @staticmethod
    def _check_error(message):
        text = message.get("message")
        if not isinstance(text, str) or not text or not isinstance(message.get("code"), str) or "cursor" in message:
            raise Broken(f"error {message}")
        if "closed" in text.lower() or "websocket" in text.lower():
            raise Broken(f"a text that clients take for a lost connection: {message}")

    # What tests wait for.

    def event(self, timeout=None):
        """The next output or exit event; acks and errors on the way are kept in `others`."""
        count = len(self.events)
        while True:
            message = self.frame_of(timeout)
            if len(self.events) > count:
                return self.events[-1]
            if message["type"] != "gap":
                self.others.append(message)

    def until(self, wanted, stream=None):
        """Reads until the output of this socket contains some bytes."""
        while wanted not in self.output(stream):
            if self.exit is not None:
                raise AssertionError(f"ended before {wanted!r}: {self.output(stream)[-300:]!r} {self.exit}")
            self.event()
        return self

    def until_exit(self):
        """Reads up to `exit` and returns it."""
        while self.exit is None:
            self.event()
        return self.exit

    def until_other(self, kind):
        """The next ack or error of a kind; output on the way is kept as events."""
        for index, message in enumerate(self.others):
            if message["type"] == kind:
                return self.others.pop(index)
        while True:
            message = self.frame_of()
            if message["type"] == kind:
                return message
            if message["type"] in ("stdin_ack", "close_stdin_ack", "error"):
                self.others.append(message)

    def output(self, stream=None):
        """What has come, of one stream or of all."""
        return b"".join(event.data for event in self.events if stream in (None, event.type))

    @property
    def cursors(self):
        return [event.cursor for event in self.events]

    def expect_end(self, code=1000):
        """After exit the server closes by itself; nothing may come before that."""
        try:
            message = self.message()
        except Closed as closed:
            if closed.code != code:
                raise Broken(f"closed with {closed.code}") from closed
            return
        raise Broken(f"after exit: {message}")


class StartError(Exception):
    """`error` instead of `started`."""

    def __init__(self, message):
        super().__init__(str(message))
        RuntimeSocket._check_error(message)
        self.code = message["code"]
        self.message = message["message"]

"""An imitation of the public Python client of /runtime/v1 (0.1.70), with its habits and its weaknesses.

A connection for each request, explicit nulls in `start`, an Origin on upgrades, UTF-8 decoded frame by frame, no own count of what it
has seen but the highest cursor, deadlines of its own that it takes for a lost connection. What the client does not check, but
would get wrong, raises Misread here: a test must not pass because a client is patient."""

import base64
import queue
import threading
import time
from urllib.parse import quote

from .place import patience
from .runtime import whole
from .sdk_python_files import Files
from .sdk_python_http import Http, Misread, SdkError
from .websocket import Closed

RECONNECTS = 12
PING_SECONDS = 50


class ExitError(SdkError):
    """A command that ended with another code than 0."""

    def __init__(self, result):
        super().__init__("CommandExit", f"code {result['exit_code']}: {result['error']}")
        self.result = result
        self.exit_code, self.error = result["exit_code"], result["error"]
        self.stdout, self.stderr = result["stdout"], result["stderr"]


class Socket:
    """Its frames, as the client reads them. Acks that nobody waits for are skipped, an `error` raises."""

    def __init__(self, http, path):
        self.ws = http.websocket(path)
        self.over = False
        self.pending = queue.Queue()

    def send(self, **message):
        self.ws.send(**message)

    def _receive(self, deadline):
        """One frame, or None if none came within a second."""
        left = 1.0 if deadline is None else min(1.0, deadline - time.monotonic())
        if left <= 0:
            raise SdkError("Timeout", "the deadline of the client itself")
        try:
            frame = self.ws.message(left / patience(1))
        except TimeoutError:
            return None
        except (Closed, OSError) as error:
            raise SdkError("Sandbox", f"process websocket failed: {error}") from error
        if frame["type"] == "error":
            raise SdkError("Sandbox", frame["message"])
        return None if frame["type"] == "ready" else frame

    def frames(self, timeout):
        """All that is no ack. With a timeout it raises when that is over, however much has come."""
        deadline = time.monotonic() + timeout if timeout else None
        next_ping = time.monotonic() + PING_SECONDS
        while not self.over:
            if not self.pending.empty():
                yield self.pending.get()
                continue
            if time.monotonic() >= next_ping:
                self.ws.ping(b"watasu-sdk")
                next_ping = time.monotonic() + PING_SECONDS
            try:
                frame = self._receive(deadline)
            except SdkError:
                if self.over:
                    return
                raise
            if frame and frame["type"] not in ("stdin_ack", "close_stdin_ack"):
                yield frame

    def wait_ack(self, kind):
        """Reads until the ack comes, without a limit; what comes before is kept for later."""
        deadline = time.monotonic() + patience(60)
        while True:
            frame = self._receive(deadline)
            if frame and frame["type"] == kind:
                return
            if frame:
                self.pending.put(frame)

    def stdin(self, data, wait):
        self.send(type="stdin", data=base64.b64encode(data.encode() if isinstance(data, str) else data).decode())
        if wait:
            self.wait_ack("stdin_ack")

    def close_stdin(self, wait):
        self.send(type="close_stdin")
        if wait:
            self.wait_ack("close_stdin_ack")

    def close(self):
        """A close frame, and the end without waiting for the answer."""
        if not self.over:
            self.over = True
            try:
                self.ws.send_close()
            except OSError:
                pass
            self.ws.drop()


def next_started(frames):
    """What comes before it is thrown away."""
    for frame in frames:
        if frame["type"] == "started":
            if not isinstance(frame.get("pid"), str) or "cursor" in frame:
                raise Misread(f"started {frame}")
            return frame
    raise SdkError("Runtime", "process ended before started frame")


class Pumped:
    """The frames of a started process, read by a thread of their own."""

    def __init__(self, frames):
        self.queue = queue.Queue()
        self.thread = threading.Thread(target=self._pump, args=(frames,), daemon=True)
        self.thread.start()

    def _pump(self, frames):
        try:
            for frame in frames:
                self.queue.put(frame)
        except Exception as error:  # what is raised there is raised again where the frames are read
            self.queue.put(error)
        self.queue.put(None)

    def __iter__(self):
        while (item := self.queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item


class Handle:
    """A process that was started or attached to."""

    def __init__(self, http, pid, socket, frames, timeout, attached):
        self.http, self.pid, self.socket, self.timeout = http, pid, socket, timeout
        self.events = frames if attached else Pumped(frames)
        self.attached = attached
        self.texts = {"stdout": [], "stderr": []}
        self.next_cursor = 0
        self.result = None
        self.reconnects = 0
        self.seen = set()

    def wait(self, on_stdout=None, on_stderr=None, on_pty=None):
        callbacks = {"stdout": on_stdout, "stderr": on_stderr, "pty": on_pty}
        while self.result is None:
            try:
                for frame in self.events:
                    self._take(frame, callbacks)
                    if self.result:
                        self.socket.close()
                        break
            except SdkError:
                pass  # whatever it was, its own deadline too: it attaches again
            if self.result is None:
                self._reconnect()
        if self.result["exit_code"] != 0:
            raise ExitError(self.result)
        return self.result

    def _take(self, frame, callbacks):
        kind = frame["type"]
        if kind in ("started", "gap"):
            return
        if kind not in ("stdout", "stderr", "pty", "exit"):
            raise Misread(f"frame {frame}")
        if not whole(frame.get("cursor")) or frame["cursor"] in self.seen:
            raise Misread(f"no cursor, or one that came before: output would be doubled: {frame!r:.200}")
        self.seen.add(frame["cursor"])
        self.next_cursor = max(self.next_cursor, frame["cursor"] + 1)
        if kind == "exit":
            if not whole(frame.get("exit_code")):
                raise Misread(f"reads as success: {frame}")
            self.result = {"exit_code": frame["exit_code"], "error": frame.get("error"),
                           **{name: "".join(pieces) for name, pieces in self.texts.items()}}
            return
        raw = base64.b64decode(frame["data"], validate=True)
        text = raw.decode("utf-8", "replace")
        self.texts["stderr" if kind == "stderr" else "stdout"].append(text)
        if callbacks[kind]:
            callbacks[kind](raw if kind == "pty" else text)

    def _reconnect(self):
        last = None
        for attempt in range(RECONNECTS):
            self.socket.close()
            if attempt:
                time.sleep(min(2.0, 0.25 * 2 ** (attempt - 1)))
            try:
                self.reconnects += 1
                self.socket, self.events, _ = attach(self.http, self.pid, self.next_cursor, self.timeout)
                self.attached = True
                return
            except SdkError as error:
                last = error
            except OSError as error:
                last = SdkError("Sandbox", str(error))
        raise last

    def send_stdin(self, data):
        self.socket.stdin(data, self.attached)

    def close_stdin(self):
        self.socket.close_stdin(self.attached)

    def kill(self):
        return Commands(self.http).kill(self.pid)

    def disconnect(self):
        self.socket.close()


def attach(http, pid, since, timeout):
    socket = Socket(http, f"/runtime/v1/process/{quote(str(pid), safe='')}/connect?since={since}")
    frames = socket.frames(timeout)
    try:
        return socket, frames, next_started(frames)
    except BaseException:
        socket.close()
        raise


def status_of(payload):
    """What `process()` and `stop_process()` make of an answer: `pid` before `id`."""
    item = payload["process"]
    found = {name: item[name] for name in ("id", "os_pid", "args", "cwd", "user", "pty", "status", "started_at", "finished_at",
                                           "exit_code")}
    found["pid"] = item.get("pid") or item.get("id")
    found["command"] = item.get("command") or item.get("cmd")
    if not isinstance(found["pid"], str) or found["pid"] != found["id"] or not found["status"]:
        raise Misread(f"status {payload}")
    return found


class Commands:
    def __init__(self, http, envs=None):
        self.http = http
        self.envs = envs or {}

    def path(self, pid, below=""):
        return f"/runtime/v1/process/{quote(str(pid), safe='')}{below}"

    def list(self):
        return [{"pid": item.get("id") or item.get("pid"), "cmd": item.get("cmd") or item.get("command"), "tag": item.get("tag"),
                 "args": list(item.get("args") or []), "envs": dict(item.get("envs") or {}), "cwd": item.get("cwd")}
                for item in self.http.get_json("/runtime/v1/process")["processes"]]

    def process(self, pid):
        return status_of(self.http.get_json(self.path(pid)))

    def read_output(self, pid, since=0, limit_bytes=None):
        answer = self.http.get_json(self.path(pid, "/output"), params={"since": since, "limit_bytes": limit_bytes})
        if not whole(answer["next_cursor"]) or not isinstance(answer["truncated_before_cursor"], bool):
            raise Misread(f"output {answer!r:.300}")
        events = [(event["cursor"], event["type"], base64.b64decode(event["data"])) for event in answer["events"]]
        return answer | {"events": events}

    def stop(self, pid, signal="TERM", kill_group=True, grace_ms=0):
        params = {"signal": signal, "kill_group": str(kill_group).lower(), "grace_ms": grace_ms}
        return status_of(self.http.send_json("DELETE", self.path(pid), params=params))

    def kill(self, pid):
        self.stop(pid, "SIGKILL")
        return True

    def start(self, cmd, args, envs=None, user=None, cwd=None, stdin=False, timeout=60, process_id=None, pty=None):
        """`timeout` counts on both sides: the server's limit, and one of the client's own that it does not survive."""
        environment = {**self.envs, **(envs or {})}
        message = {"type": "start", "id": process_id, "cmd": cmd, "args": args, "cwd": cwd, "user": user,
                   "environment": environment, "envs": environment, "stdin": stdin,
                   "timeout_ms": int(timeout * 1000) if timeout else None}
        if pty:
            del message["id"]
            message["pty"] = pty
        socket = Socket(self.http, "/runtime/v1/process")
        try:
            socket.send(**message)
            frames = socket.frames(timeout)
            first = next_started(frames)
        except BaseException:
            socket.close()
            raise
        return Handle(self.http, first["pid"], socket, frames, timeout, attached=False)

    def run(self, cmd, background=False, on_stdout=None, on_stderr=None, **options):
        handle = self.start("/bin/bash", ["-l", "-c", cmd], **options)
        return handle if background else handle.wait(on_stdout, on_stderr)

    def connect(self, pid, since=0, timeout=60):
        socket, frames, first = attach(self.http, pid, since, timeout)
        return Handle(self.http, first["pid"], socket, frames, timeout, attached=True)

    def send_stdin(self, pid, data):
        handle = self.connect(pid)
        handle.send_stdin(data)
        handle.disconnect()

    def close_stdin(self, pid):
        handle = self.connect(pid)
        handle.close_stdin()
        handle.disconnect()


class Pty(Commands):
    def create(self, cols=80, rows=24, envs=None, cwd=None, timeout=60):
        own = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **(envs or {})}
        return self.start("/bin/bash", ["-i", "-l"], envs=own, cwd=cwd, stdin=True, timeout=timeout,
                          pty={"cols": cols, "rows": rows})

    def resize(self, pid, cols, rows):
        """Attaches, sends, and is gone."""
        handle = self.connect(pid)
        handle.socket.send(type="resize", cols=cols, rows=rows)
        handle.disconnect()

    def kill(self, pid):
        self.http.send_json("DELETE", self.path(pid), params={"signal": "SIGKILL", "kill_group": "true"})
        return True


class Sandbox:
    """With a data plane, or made through the control plane as the client does when only its two variables are set."""

    def __init__(self, url, token, sandbox_id=None, control=None, envs=None, via=None):
        self.http = Http(url, token, via=via)
        self.id, self.control = sandbox_id, control
        self.commands, self.pty, self.files = Commands(self.http, envs), Pty(self.http), Files(self.http)

    @classmethod
    def create(cls, api_url, api_key, timeout=300, metadata=None, envs=None):
        control = Http(api_url, api_key, close=False)
        body = {"template": "base", "timeout": timeout, "metadata": metadata or {}, "envs": envs or {}, "secure": True,
                "allow_internet_access": True}
        answer = control.send_json("POST", "/sandboxes", json_body=body)
        session = answer["session"]
        if session["data_plane_url"].partition("://")[2].count("/"):
            raise Misread(f"a prefix gets lost: {session}")
        return cls(session["data_plane_url"], session["token"], answer["sandbox"]["id"], control, envs)

    def info(self):
        return self.control.get_json(f"/sandboxes/{self.id}", resource="sandbox")["sandbox"]

    def kill(self):
        self.control.send_json("DELETE", f"/sandboxes/{self.id}", resource="sandbox")

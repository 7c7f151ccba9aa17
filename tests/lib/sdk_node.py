"""The imitated TypeScript client (sdk.mjs, run by node), with the methods of the Python one."""

import base64
import contextlib
import json
import shutil
import subprocess
import threading
from pathlib import Path

from .place import patience
from .sdk_python import ExitError
from .sdk_python_http import Misread, SdkError

NODE = shutil.which("node")
ANSWER_SECONDS = 80


class Node:
    """A node that runs the client. Calls may be made from several threads."""

    def __init__(self):
        script = Path(__file__).resolve().parent / "sdk.mjs"
        self.process = subprocess.Popen([NODE, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        encoding="utf-8", start_new_session=True)
        self.lock = threading.Condition()
        self.answers = {}
        self.last = 0
        self.over = False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            with self.lock:
                self.answers[answer["id"]] = answer
                self.lock.notify_all()
        with self.lock:
            self.over = True
            self.lock.notify_all()

    def submit(self, op, *args):
        with self.lock:
            self.last += 1
            request = self.last
            self.process.stdin.write(json.dumps({"id": request, "op": op, "args": args}) + "\n")
            self.process.stdin.flush()
        return request

    def finish(self, request):
        with self.lock:
            if not self.lock.wait_for(lambda: request in self.answers or self.over, patience(ANSWER_SECONDS)):
                raise TimeoutError("the client does not answer")
            if request not in self.answers:
                raise AssertionError("node has ended")
            answer = self.answers.pop(request)
        if "error" not in answer:
            return answer["value"]
        error = answer["error"]
        if error["kind"] == "CommandExit":
            raise ExitError(error["result"])
        if error["kind"] in ("Misread", "Thrown"):
            raise Misread(f"{error['kind']}: {error['message']}")
        raise SdkError(error["kind"], error["message"], error.get("status"))

    def call(self, op, *args):
        return self.finish(self.submit(op, *args))

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(patience(10))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.thread.join()
        self.process.stdout.close()


class NodeHandle:
    """A process that was started or attached to. It is read all the time, waited for or not."""

    def __init__(self, node, answer):
        self.node, self.id, self.pid = node, answer["handle"], answer["pid"]

    def wait(self, on_stdout=None, on_stderr=None, on_pty=None):
        try:
            return self.node.call("wait", self.id)
        finally:
            seen = self.node.call("seen", self.id)
            for callback, name in ((on_stdout, "stdout"), (on_stderr, "stderr"), (on_pty, "stdout")):
                if callback and seen[name]:
                    callback(seen[name].encode() if callback is on_pty else seen[name])

    @property
    def reconnects(self):
        return self.node.call("seen", self.id)["reconnects"]

    def send_stdin(self, data):
        self.node.call("stdin", self.id, base64.b64encode(data.encode() if isinstance(data, str) else data).decode())

    def close_stdin(self):
        self.node.call("closeStdin", self.id)

    def until(self, text):
        return self.node.call("until", self.id, text)

    def kill(self):
        return self.node.call("kill", self.pid)

    def disconnect(self):
        self.node.call("disconnect", self.id)


class NodeCommands:
    def __init__(self, node):
        self.node = node

    @staticmethod
    def _options(envs=None, user=None, cwd=None, stdin=None, timeout=60, process_id=None):
        options = {"envs": envs, "user": user, "cwd": cwd, "stdin": stdin, "id": process_id,
                   "timeoutMs": int(timeout * 1000) if timeout else 0}
        return {name: value for name, value in options.items() if value is not None}

    def run(self, cmd, background=False, **options):
        """A foreground `run` of this client raises at its own limit, at about the same moment as the server's."""
        if background:
            return NodeHandle(self.node, self.node.call("background", cmd, self._options(**options)))
        return self.node.call("run", cmd, self._options(**options))

    def start(self, cmd, args, **options):
        fields = self._options(**options)
        fields["timeout_ms"] = fields.pop("timeoutMs")
        return NodeHandle(self.node, self.node.call("start", {"cmd": cmd, "args": args, **fields}))

    def connect(self, pid, since=0):
        return NodeHandle(self.node, self.node.call("connect", pid, since))

    def list(self):
        return self.node.call("list")

    def process(self, pid):
        return self.node.call("process", pid)

    def read_output(self, pid, since=0, limit_bytes=None):
        answer = self.node.call("output", pid, since, limit_bytes)
        events = [(event["cursor"], event["type"], base64.b64decode(event["data"])) for event in answer["events"]]
        return answer | {"events": events}

    def stop(self, pid, signal=None, kill_group=None, grace_ms=None):
        options = {"signal": signal, "killGroup": kill_group, "graceMs": grace_ms}
        return self.node.call("stop", pid, {name: value for name, value in options.items() if value is not None})

    def kill(self, pid):
        return self.node.call("kill", pid)

    def send_stdin(self, pid, data):
        handle = self.connect(pid)
        handle.send_stdin(data)
        handle.disconnect()

    def close_stdin(self, pid):
        handle = self.connect(pid)
        handle.close_stdin()
        handle.disconnect()


class NodePty(NodeCommands):
    def create(self, cols=80, rows=24):
        return NodeHandle(self.node, self.node.call("pty", {"cols": cols, "rows": rows}))

    def resize(self, pid, cols, rows):
        self.node.call("ptyResize", pid, cols, rows)


class NodeFiles:
    def __init__(self, node):
        self.node = node

    def write(self, path, data):
        raw = data.encode() if isinstance(data, str) else data
        return self.node.call("fileWrite", path, base64.b64encode(raw).decode())

    def write_files(self, files):
        return self.node.call("fileWriteAll", [[path, base64.b64encode(data).decode()] for path, data in files])

    def read(self, path):
        return base64.b64decode(self.node.call("fileRead", path))

    def info(self, path):
        return self.node.call("fileInfo", path)

    def exists(self, path):
        return self.node.call("fileExists", path)

    def list(self, path):
        return self.node.call("fileList", path)

    def make_dir(self, path):
        self.node.call("fileMakeDir", path)

    def rename(self, old, new):
        return self.node.call("fileRename", old, new)

    def remove(self, path):
        self.node.call("fileRemove", path)

    def watch(self, path):
        return NodeWatch(self.node, self.node.call("watch", path))


class NodeWatch:
    KINDS = {"create": "create", "delete": "remove", "remove": "remove", "rename": "rename"}

    def __init__(self, node, watch):
        self.node, self.id = node, watch
        self.events = []

    def until(self, wanted):
        while not wanted <= set(self.events):
            frame = self.node.call("watchNext", self.id)
            if frame is None or frame["type"] == "error":
                raise SdkError("Sandbox", f"the watch has ended: {frame}")
            for event in frame.get("events", ()):
                self.events.append((self.KINDS.get(event["type"], "write"), event["path"].rstrip("/").split("/")[-1]))

    def stop(self):
        self.node.call("watchStop", self.id)


class NodeSandbox:
    def __init__(self, node):
        self.node = node
        self.commands, self.pty, self.files = NodeCommands(node), NodePty(node), NodeFiles(node)

    @classmethod
    def open(cls, node, url, token, via=None, envs=None):
        options = {"via": {"host": via[0], "port": via[1]} if via else None, "envs": envs}
        node.call("open", url, token, {name: value for name, value in options.items() if value})
        return cls(node)

    @classmethod
    def create(cls, node, api_url, api_key, timeout=300, metadata=None, envs=None):
        made = node.call("create", api_url, api_key, {"timeout": timeout, "metadata": metadata or {}, "envs": envs or {}})
        found = cls(node)
        found.id = made["id"]
        return found

    def info(self):
        return self.node.call("info")

    def kill(self):
        self.node.call("killSandbox")

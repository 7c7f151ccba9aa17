"""coop-files, driven over its own pipes."""

import json
import os
import select
import struct
import subprocess
import time

from .place import BUILD, patience

PROGRAM = BUILD / "bin" / "coop-files"


class Refused(Exception):
    """An answer that says why not."""

    def __init__(self, answer):
        super().__init__(f"{answer['error']}: {answer['message']}")
        self.error = answer["error"]


class Files:
    """One coop-files. Ids are given out here; answers are kept by id until they are asked for."""

    def __init__(self, cwd, env, wrap=(), **options):
        self.process = subprocess.Popen([*wrap, str(PROGRAM)], cwd=cwd, env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0, **options)
        self.last = 0
        self.bytes = b""
        self.answers = {}

    def send_raw(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view):]

    def send(self, op, data=b"", talk=None, **members):
        """Sends a request, of a new talk unless one is named; returns the talk's id."""
        if talk is None:
            self.last += 1
            talk = self.last
        text = json.dumps({"op": op, **members}).encode()
        self.send_raw(struct.pack("<III", 12 + len(text) + len(data), talk, len(text)) + text + data)
        return talk

    def _read(self, deadline):
        left = deadline - time.monotonic()
        ready, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
        if not ready:
            raise TimeoutError("coop-files did not answer")
        data = os.read(self.process.stdout.fileno(), 1 << 20)
        if not data:
            raise EOFError(f"coop-files ended: {self.process.wait(timeout=patience(10))}")
        self.bytes += data
        while len(self.bytes) >= 12:
            size, talk, text = struct.unpack_from("<III", self.bytes)
            assert size <= 1 << 20 and text <= size - 12, (size, text)
            if len(self.bytes) < size:
                break
            frame, self.bytes = self.bytes[12:size], self.bytes[size:]
            self.answers.setdefault(talk, []).append((json.loads(frame[:text]), frame[text:]))

    def answer(self, talk):
        """The next answer of a talk: its JSON and its bytes."""
        deadline = time.monotonic() + patience(30)
        while not self.answers.get(talk):
            self._read(deadline)
        found = self.answers[talk].pop(0)
        if "error" in found[0]:
            raise Refused(found[0])
        return found

    def call(self, op, data=b"", talk=None, **members):
        return self.answer(self.send(op, data, talk, **members))

    def read(self, path):
        """A whole file."""
        talk = self.send("open_read", path=str(path))
        head, data = self.answer(talk)
        return self._rest(talk, head, data)

    def list(self, path, **members):
        talk = self.send("list", path=str(path), **members)
        head, data = self.answer(talk)
        entries = json.loads(self._rest(talk, head, data))["entries"]
        assert len(entries) == head["count"]
        return entries

    def _rest(self, talk, head, data):
        while len(data) < head["size"]:
            _, more = self.call("read", talk=talk, offset=len(data), max=1 << 18)
            assert more, "the file is shorter than was said"
            data += more
        self.send("close", talk=talk)
        return data

    def write(self, path, data, gzip=False, limit=0):
        """Uploads without waiting in between."""
        talk = self.send("open_write", path=str(path), gzip=gzip, limit=limit)
        pieces = [data[at:at + (1 << 18)] for at in range(0, len(data), 1 << 18)]
        for piece in pieces:
            self.send("write", piece, talk)
        self.send("commit", talk=talk)
        for _ in range(len(pieces) + 1):
            self.answer(talk)
        return self.answer(talk)[0]["file"]

    def watch(self, path, **members):
        talk = self.send("watch", path=str(path), **members)
        assert self.answer(talk) == ({}, b"")
        return talk

    def events_until(self, talk, wanted):
        """(type, path) of what a watch tells, up to the wanted one."""
        seen = []
        while not seen or seen[-1] != wanted:
            found, _ = self.answer(talk)
            seen += [(event["type"], event["path"]) for event in found.get("events", [])]
            if wanted in seen:
                break
        return seen

    def close(self):
        """End of file for it: it ends."""
        if self.process.poll() is None:
            self.process.stdin.close()
        try:
            return self.process.wait(timeout=patience(30))
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.process.stdin.close()

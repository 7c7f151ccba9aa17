"""What others' calls cost while something stands still: the state disk, a file system that somebody names, prepared sandboxes,
somebody who does not read his answers. Each is compared with the same calls right before."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time

from series import Series
from stage import HERE, BenchError
from table import Absent, Row, micros

sys.path.insert(0, str(HERE.parent))

from lib import procs  # noqa: E402 (the path comes first)
from lib.keeper import LIB, Keeper  # noqa: E402
from lib.place import Place  # noqa: E402

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
NAMES = {
    "frozen": "the state disk stands still",
    "silent": "a mount is silent",
    "unread": "answers are not read",
    "stopped": "prepared sandboxes are stopped",
}
STUCK = 4  # threads that look up paths
UNREAD = 40  # requests, of a ring that is full each
RING = 4 << 20
TARGET = 0.5


def missing():
    """Why it cannot be measured here, or None."""
    if os.geteuid() != 0:
        return "needs root for disks and mounts of its own"
    needed = ("/dev/fuse", "/dev/loop-control")
    return next((f"there is no {path}" for path in needed if not os.path.exists(path)), None)


class Stage:
    """A keeper with a disk of its own for its state, and a mount that can be made silent."""

    def __init__(self):
        self.place = Place()
        self.place.dir.chmod(0o755)  # commands are not root's
        self.place.state.mkdir(mode=0o700)
        self.mount = self.place.work / "mount"
        self.mount.mkdir()
        self.ordinary = self.place.work / "ordinary"
        self.ordinary.mkdir()
        image, control = self.place.dir / "disk", self.place.dir / "control"
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True, stdin=subprocess.DEVNULL)
        script = f'mount -o loop {image} {self.place.state} && exec "$@"'
        silent = [sys.executable, str(LIB / "silent_mount.py"), str(control), "0", str(self.mount), "--"]
        self.keeper = Keeper(place=self.place, wrap=["unshare", "-m", "sh", "-c", script, "sh", *silent])
        self.client = self.keeper.wait_ready()
        self.control = socket.socket(socket.AF_UNIX)
        self.control.connect(str(control))
        self.disk = os.open(f"/proc/{self.keeper.pid}/root{self.place.state}", os.O_RDONLY)

    def close(self):
        self.control.close()
        os.close(self.disk)
        self.keeper.stop()
        self.place.remove()

    def tell(self, word):
        self.control.send(word)
        if self.control.recv(1) != word:
            raise BenchError("the silent mount does not obey")

    def calls(self, count):
        """Nanoseconds of a start in a sandbox, its end and its output, each."""
        args = {"argv": ["/bin/echo", "hello"], "cwd": str(self.ordinary), "hold": True}
        began = time.perf_counter_ns()
        for _ in range(count):
            id = self.client.call("spawn", **args)["process"]["id"]
            self.client.call("wait", id=id)
            if self.client.reply("read", {"id": id}).bytes() != b"hello\n":
                raise BenchError("a command's output is not what it wrote")
            self.client.call("release", id=id)
        return (time.perf_counter_ns() - began) / count

    # What stands still meanwhile.

    @contextlib.contextmanager
    def frozen(self):
        fcntl.ioctl(self.disk, FIFREEZE, 0)
        try:
            yield
        finally:
            fcntl.ioctl(self.disk, FITHAW, 0)

    @contextlib.contextmanager
    def silent(self):
        self.tell(b"s")
        clients = [self.keeper.connect() for _ in range(STUCK)]
        for client in clients:
            client.submit("spawn", {"argv": ["true"], "cwd": str(self.mount / "work")})
        try:
            yield
        finally:
            self.tell(b"a")
            self.forget(clients)

    @contextlib.contextmanager
    def unread(self):
        argv = ["head", "-c", str(RING), "/dev/zero"]
        id = self.client.call("spawn", argv=argv, ring_bytes=RING)["process"]["id"]
        self.client.call("wait", id=id)
        client = self.keeper.connect()
        for _ in range(UNREAD):
            client.submit("read", {"id": id, "max": RING})
        try:
            yield
        finally:
            self.forget([client])
            self.client.call("release", id=id)

    @contextlib.contextmanager
    def stopped(self):
        found = [pid for pid in procs.descendants(self.keeper.pid) if procs.number_inside(pid) == 1]
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def forget(self, clients):
        for client in clients:
            client.close()
            self.keeper.clients.remove(client)

    def series(self, name, count):
        def during():
            with getattr(self, name)():
                return self.calls(count)

        return Series(f"fault {name}", {"calm": lambda: self.calls(count), "fault": during})


def all_series(stack, quick):
    """None at all where it cannot be measured: rows() says why."""
    if missing():
        return []
    stage = Stage()
    stack.callback(stage.close)
    return [stage.series(name, 10 if quick else 40) for name in NAMES]


def rows(lines):
    for name, what in NAMES.items():
        title = f"others' starts while {what}"
        line = lines.get(f"fault {name}")
        if line is None:
            yield Absent(title, missing() or "was not measured", TARGET, at_least=True)
            continue
        calm, fault = line.samples["calm"], line.samples["fault"]
        yield Row(title, micros(fault), f"calm {micros(calm)}", [a / b for a, b in zip(calm, fault)], TARGET)

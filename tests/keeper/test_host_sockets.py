"""Sockets of the host (S-027): whoever serves on the host is out of a confined process's reach, however the socket is found."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from lib import procs
from lib.both_keepers import USER, BothKeepersCase

CONNECT = """
import socket, sys
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(path)
            print("reached", repr(path))
        except OSError:
            pass
print("end")
"""
SERVE = """
import os, socket, sys
servers = [socket.socket(socket.AF_UNIX) for _ in sys.argv[1:]]
for server, path in zip(servers, sys.argv[1:]):
    server.bind(path)
    os.chmod(path, 0o777)
    server.listen()
print("ready", flush=True)
sys.stdin.read()
"""
# NETLINK_SOCK_DIAG is the protocol of this number.
UNTOLD, UNTOLD_NOW = "socket:2=4=EPERM", "socket:2=4=EMFILE"


class HostSocketsCase(BothKeepersCase):
    def listen(self, path, kind=socket.SOCK_STREAM):
        server = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(server.close)
        server.bind(str(path))
        os.chmod(path, 0o777)
        if kind == socket.SOCK_STREAM:
            server.listen()
        return str(self.give(path))

    def connect(self, path, kind):
        """Somebody on the host uses it."""
        client = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(client.close)
        client.connect(path)

    def reached(self, *paths, **sandbox):
        args = {"argv": ["python3", "-c", CONNECT, *paths], "cwd": str(self.ws)}
        process = self.client.call("spawn", sandbox={"workspace": str(self.ws), **sandbox}, **args)["process"]["id"]
        self.client.call("wait", id=process)
        lines = self.output(process).decode().splitlines()
        self.assertEqual(lines.pop(), "end", self.output(process, "stderr"))
        return [path for path in paths if f"reached {path!r}" in lines]


class HostSocketsTest(HostSocketsCase):
    def test_s027_sockets_of_the_host(self):
        """Listening and bound ones are out of reach wherever they lie, also by a link; those of the workspace are its own."""
        seen = self.folder("seen")
        (self.base / "link").symlink_to(seen)
        outside = [self.listen(self.base / "a.sock"), self.listen(self.base / "d.sock", socket.SOCK_DGRAM),
                   self.listen(seen / "b.sock"), self.listen(self.base / "link" / "c.sock"), self.listen(self.home / "h.sock")]  # fmt: skip
        outside.append(str(seen / "c.sock"))
        self.listen(f"{seen}/./../e.sock")
        outside.append(str(self.base / "e.sock"))
        own = self.listen(self.ws / "own.sock")
        procs.wait_until(lambda: self.reached(*outside, own) == [own], "only its own", timeout=2)
        self.assertEqual(self.reached(*outside, own, profile="read-only"), [])
        self.assertEqual(self.reached(*outside, own, root="minimal", allow_read=[str(seen)]), [own])
        self.assertEqual(self.reached(*outside, profile="full", workspace=None), outside)

    def test_s027_one_in_a_hidden_place_that_is_shown(self):
        """Below /tmp, in a folder that is shown because the command starts there."""
        folder = self.keeper.place.work / "cwd"
        folder.mkdir()
        self.give(folder)
        path = self.listen(folder / "s.sock")
        args = {"argv": ["python3", "-c", CONNECT, path], "cwd": str(folder), "sandbox": {"profile": "read-only"}}
        process = self.client.call("spawn", **args)["process"]["id"]
        self.client.call("wait", id=process)
        self.assertEqual(self.output(process), b"end\n", self.output(process, "stderr"))

    def test_s027_those_in_use(self):
        """Somebody is connected: the kernel then has a datagram socket in another state, and the server's name twice."""
        outside = [self.listen(self.base / "s.sock"), self.listen(self.base / "d.sock", socket.SOCK_DGRAM)]
        for path, kind in zip(outside, (socket.SOCK_STREAM, socket.SOCK_DGRAM), strict=True):
            self.connect(path, kind)
        self.assertEqual(self.reached(*outside), [])
        self.assertEqual(self.reached(*outside, profile="full", workspace=None), outside)

    def test_s027_among_many_without_a_name(self):
        """More sockets than one answer of the kernel has room for."""
        crowd = [end for _ in range(1200) for end in socket.socketpair()]
        outside = [self.listen(self.base / f"{i}.sock") for i in range(40)]
        for end in crowd:
            self.addCleanup(end.close)
        self.assertEqual(self.reached(*outside), [])


class ToldWholeTest(HostSocketsCase):
    def test_s027_any_name(self):
        """With a line break, with blanks, as long as may be."""
        folder = self.folder("f")
        long = str(folder / "l") + "o" * (107 - len(str(folder / "l")))
        outside = [self.listen(path) for path in (folder / "line\nbreak.sock", folder / "a b\t.sock", long)]
        self.assertEqual(self.reached(*outside), [])
        self.assertEqual(self.reached(*outside, profile="full", workspace=None), outside)


class ClosedFolderTest(HostSocketsCase):
    """Of a name in a folder that only somebody else may enter the kernel never tells from memory where it leads. The keeper has a
    network of its own, so that no names but those of the test come and go."""

    user = USER

    def keeper_wrap(self, place):
        return ["unshare", "-n"]

    def serve(self, *paths):
        argv = ["nsenter", "-t", str(self.keeper.pid), "-n", sys.executable, "-c", SERVE, *map(str, paths)]
        server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(server.communicate)
        self.assertEqual(server.stdout.readline(), b"ready\n")

    def threads(self):
        """{thread: how often it has gone to sleep}."""
        found = {}
        for task in Path(f"/proc/{self.keeper.pid}/task").iterdir():
            lines = (task / "status").read_text().splitlines()
            found[task.name] = next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
        return found

    def test_is_looked_up_once(self):
        """And not for every start."""
        closed = self.base / "closed"
        closed.mkdir(mode=0o700)
        self.serve(closed / "a.sock", closed / "b.sock")
        self.inside("true", {"profile": "full"}, cwd="/")
        before = self.threads()
        self.inside("true")
        lookers = self.threads().keys() - before.keys()
        self.assertTrue(lookers, "nobody looked the closed folder up")
        slept = self.threads()
        for _ in range(20):
            self.inside("true")
        slept = sum(self.threads()[one] - slept[one] for one in lookers)
        self.assertLess(slept, 20, "threads were asked for every start")

    def test_s027_is_opened_later(self):
        closed = self.base / "closed"
        closed.mkdir(mode=0o700)
        inner = closed / "a.sock"
        self.serve(inner)
        self.assertEqual(self.reached(str(inner)), [])
        closed.chmod(0o755)
        self.assertEqual(self.reached(str(inner), profile="full", workspace=None), [str(inner)])
        self.serve(self.base / "other.sock")
        self.assertEqual(self.reached(str(inner)), [])


class HostSocketsOfAUserTest(HostSocketsTest):
    user = USER


class ToldWholeToAUserTest(ToldWholeTest):
    user = USER


class ReadFromTheTableTest(HostSocketsTest):
    """The kernel does not tell: it is read from /proc instead."""

    lacks = (UNTOLD,)


class ReadFromTheTableNowTest(HostSocketsTest):
    """It may tell another time."""

    lacks = (UNTOLD_NOW,)
    user = USER

"""The base class of tests that talk to a gateway in bytes. One gateway for a class; every test leaves it alive and serving."""

import os
import signal
from pathlib import Path

from . import procs
from .gateway import GatewayCase
from .place import sanitized
from .procs import wait_until
from .raw_http import KEY, Raw, request, text_frame

LISTEN, TIME_WAIT = "0A", "06"
START = "/runtime/v1/process"
MIB = 1 << 20
# Room for what sanitizers add to every allocation, and hold back of what was freed.
SANITIZER_ROOM = 512 * MIB


class RawCase(GatewayCase):
    def setUp(self):
        super().setUp()
        self.address = self.gateway.address
        self.host = f"Host: {self.gateway.host}"
        self.auth = f"Authorization: Bearer {self.gateway.token}"
        self.pid = self.gateway.pid
        self.connections = []
        # First in, last out: after what a test itself has still to end.
        self.addCleanup(self.assert_unharmed)

    def assert_unharmed(self):
        """The process that serves now is the one that served when the test began: it has not died and come back."""
        self.assert_served()
        self.assertEqual(self.gateway.pids, [self.pid], "the gateway died and was started again")

    def assert_served(self):
        """Somebody who does nothing wrong is served."""
        self.assertEqual(self.ask("GET", "/healthz").status, 200)
        self.assertEqual(self.ask("POST", "/v1/ops/list", self.auth, body=b"{}").status, 200)

    def rss(self, name="VmRSS", pid=None):
        """What the gateway holds in memory, in bytes; VmHWM: at most, so far."""
        for line in Path(f"/proc/{pid or self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
        return 0

    def assert_bounded(self, before, room):
        """The gateway has not grown by more than `room` bytes since it was at `before`."""
        self.assertLess(self.rss() - before, room + (SANITIZER_ROOM if sanitized() else 0))

    def assert_is_not_read(self, connection, data, before, room, most=256 * MIB):
        """Who sends again and again and never reads an answer is not read any more, and costs no memory."""
        connection.socket.settimeout(2)
        sent = 0
        while sent < most and connection.send(data):
            sent += len(data)
        self.assertLess(sent, 64 * MIB, "it was read all the time")
        self.assert_bounded(before, room)
        self.assert_served()

    def server_ends(self):
        """{a client's port: the state of the gateway's end of that connection}, of those that it has not ended."""
        found = {}
        for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            _, local, remote, state = line.split()[:4]
            if int(local.partition(":")[2], 16) == self.gateway.port and state not in (LISTEN, TIME_WAIT):
                found[int(remote.partition(":")[2], 16)] = state
        return found

    def assert_let_go(self, port):
        """The gateway ends its side of a connection whose client has gone."""
        wait_until(lambda: port not in self.server_ends(), "the gateway ends its side", interval=0.05)

    # Requests. What a test says replaces nothing and is added to Host.

    def raw(self, **options):
        connection = Raw(self.address, **options)
        self.connections.append(connection)
        self.addCleanup(connection.close)
        return connection

    def close_raw(self):
        """All of those, now."""
        for connection in self.connections:
            connection.close()

    def head(self, method, target, *lines, body=b"", version="HTTP/1.1"):
        return request(method, target, self.host, *lines, body=body, version=version)

    def ask(self, method, target, *lines, body=b""):
        """One request on a connection of its own: its answer."""
        if body:
            lines = (*lines, f"Content-Length: {len(body)}")
        with Raw(self.address) as connection:
            connection.send(self.head(method, target, *lines, body=body))
            return connection.answer(method)

    def only_answer(self, *parts):
        """Sends bytes that make the gateway end the connection; there must be exactly one answer."""
        with Raw(self.address) as connection:
            connection.send(*parts)
            answer = connection.answer()
            self.assertEqual(connection.rest(), b"", f"something follows {answer}")
        return answer

    def upgrade(self, target, *lines, key=KEY):
        """The bytes of a proper upgrade."""
        return self.head(
            "GET", target, self.auth, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key: " + key, *lines,
        )

    def ws(self, target=START, **options):
        """A WebSocket."""
        connection = self.raw(**options)
        connection.send(self.upgrade(target))
        return connection.upgraded()

    def begin(self, cmd, *args, connection=None, **fields):
        """(WebSocket, id) of a new process."""
        connection = connection or self.ws()
        connection.send(text_frame({"type": "start", "cmd": cmd, "args": list(args), **fields}))
        event = connection.event("started", "error")
        self.assertEqual(event["type"], "started", event)
        return connection, event["pid"]

    def end_process(self, pid):
        self.ask("DELETE", f"{START}/{pid}?signal=KILL&kill_group=true", self.auth)

    def file_helper(self):
        """The pid of the program that does the file work, which the first request for a file starts."""
        mine = procs.descendants(self.gateway.keeper_pid)
        return next((pid for pid in mine if os.path.basename(procs.cmdline(pid).split(" ")[0]) == "coop-files"), None)

    def stop_for_now(self, pid):
        """Stops a process until the test ends or `os.kill` lets it go on."""
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)

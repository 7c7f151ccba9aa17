"""A client that does everything at random, right and wrong: requests, upgrades, frames, cuts. A seed repeats its choices.

What it can know it checks: every answer is well-formed (Raw raises otherwise), what is right is never answered with a server's fault,
and a proper request on a connection of its own is answered.
"""

import base64
import contextlib
import json
import random
import threading
import time
from collections import Counter

from .raw_http import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Gone, Raw, Violation, chunked, close_frame, frame, piece_list

START = "/runtime/v1/process"
HELD_MAX = 40
NAMES = ("one", "two/three", "four+five", "six:7")
COMMANDS = (
    ("true",), ("false",), ("sleep", "0.05"), ("sleep", "20"), ("cat",), ("sh", "-c", "echo out; echo err >&2; exit 3"),
    ("sh", "-c", "head -c 300000 /dev/zero"), ("sh", "-c", "yes | head -c 100000"), ("/nonexistent",),
    ("sh", "-c", "while :; do echo tick; sleep 0.01; done"), ("sh", "-c", "kill -9 $$"),
)
TARGETS = (
    "/healthz", START, f"{START}?all=true", f"{START}/one", f"{START}/two%2Fthree", f"{START}/one/output",
    f"{START}/one/output?since=1&limit_bytes=100", f"{START}/one/output?mode=tail&limit_bytes=10", f"{START}/none",
    f"{START}/one/output?mode=head_tail&head_bytes=5&tail_bytes=7", "/runtime/v1/files?path=a", "/runtime/v1/files/stat?path=a",
    "/runtime/v1/directories?path=.", "/metrics", "/openapi.json", "/runtime/v1/git/status", "/nothing", f"{START}/one/connect",
)
POSTS = (
    ("/v1/ops/list", b'{"include_finished":true,"limit":5}'), ("/v1/ops/status", b'{"id":"alias:one"}'),
    ("/v1/ops/wait", b'{"id":"alias:one","timeout_ms":20,"output_bytes":100}'), ("/v1/ops/spawn", b'{"argv":["sleep","1"],"tag":"t"}'),
    ("/v1/ops/read", b'{"id":"alias:one","stream":"combined","max":1000}'), ("/v1/ops/kill", b'{"id":"t"}'), ("/v1/ops/nothing", b"{}"),
    ("/v1/ops/write_stdin", b'{"id":"alias:one","timeout_ms":10,"data_base64":"eHg="}'), ("/v1/ops/follow", b'{"id":"alias:one"}'),
    ("/runtime/v1/files/write_files", b'{"files":[{"path":"w1","data_base64":"eA=="},{"path":"w2/x","data_base64":""}]}'),
    ("/runtime/v1/files/move", b'{"from_path":"a","to_path":"b"}'), ("/runtime/v1/directories?path=d/e", b"{}"),
    (f"{START}/one/signal", b'{"signal":"TERM"}'), ("/v1/sandboxes", b'{"timeout":5,"metadata":{"a":"b"},"envs":{"C":"d"}}'),
)
JUNK = (None, -1, 0, 1.5, 1 << 62, "", "x" * 3000, [], {}, True, "\0", ["a"], "\u20ac")


class ChaosClient:
    """One of several that run side by side. `fault` is the first thing that must not be, if any."""

    def __init__(self, seed, address, host, token):
        self.seed, self.address = seed, address
        self.random = random.Random(seed)
        self.host, self.auth = f"Host: {host}", f"Authorization: Bearer {token}"
        self.counts = Counter()
        self.held = []
        self.fault = None

    def run(self, seconds):
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                self.step()
        except BaseException as error:  # told by whoever started the thread
            self.fault = error
        for connection in self.held:
            connection.close()

    def chance(self, share):
        return self.random.random() < share

    def choose(self, *values):
        return self.random.choice(values)

    def step(self):
        action = self.random.choices(
            (self.proper, self.pipeline, self.broken, self.socket, self.attach, self.leave, self.come_back, self.upload, self.stream),
            (30, 10, 25, 25, 12, 5, 8, 8, 4),
        )[0]
        self.counts[action.__name__] += 1
        action()

    @contextlib.contextmanager
    def connection(self):
        """One that ends in any of the ways that there are."""
        connection = Raw(self.address, receive_buffer=4096 if self.chance(0.1) else None)
        try:
            yield connection
        except (Gone, TimeoutError):
            self.counts["cut short"] += 1
        finally:
            if self.chance(0.3):
                with contextlib.suppress(OSError):
                    connection.reset()
            elif self.chance(0.1) and len(self.held) < HELD_MAX:
                self.held.append(connection)
                connection = None
            if connection:
                connection.close()

    # What is right.

    def head(self, method, target, *lines, body=b""):
        lines = [f"{method} {target} HTTP/1.1", self.host, self.auth, *lines]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    def request(self):
        """(method, bytes) of a proper one."""
        kind = self.random.random()
        if kind < 0.6:
            target = self.random.choice(TARGETS)
            return "GET", self.head("GET", target, *(["X: " + "y" * self.random.randrange(2000)] if self.chance(0.2) else []))
        if kind < 0.7:
            return "DELETE", self.head("DELETE", f"{START}/{self.choose('one', 'four+five', 'none')}?signal=KILL")
        if kind < 0.8:
            return "POST", self.head("POST", f"{START}/one/signal", body=b'{"signal":"SIGTERM"}')
        if kind < 0.85:
            # The body of one, the target of another.
            return "POST", self.head("POST", self.random.choice(POSTS)[0], body=self.random.choice(POSTS)[1])
        if kind < 0.93:
            target, body = self.random.choice(POSTS)
            return "POST", self.head("POST", target, body=body)
        body = chunked(*[b" " * self.random.randrange(1, 500) for _ in range(self.random.randrange(5))], b"{}")
        return "POST", self.head("POST", "/v1/ops/info", "Transfer-Encoding: chunked") + body

    def proper(self):
        """Answered, whatever else is going on, and never with a fault of the server."""
        method, data = self.request()
        with Raw(self.address) as connection:
            self.send(connection, data)
            self.check(connection.answer(method), data)

    def check(self, answer, data):
        self.counts[answer.status] += 1
        if answer.status >= 500 and answer.status not in (501, 503):
            raise Violation(f"{answer.status} to {data[:300]!r}: {answer.body[:300]!r}")
        if answer.status >= 400 and not answer.error:
            raise Violation(f"a refusal without a code: {answer}")

    def send(self, connection, data):
        """In any number of packets."""
        if self.chance(0.7):
            return connection.send(data)
        cuts = sorted(self.random.randrange(len(data) + 1) for _ in range(self.random.randrange(1, 12)))
        return connection.send(*(data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)]) if a < b))

    def pipeline(self):
        group = [self.request() for _ in range(self.random.randrange(2, 20))]
        with self.connection() as connection:
            self.send(connection, b"".join(data for _, data in group))
            for method, data in group[:len(group) if self.chance(0.8) else self.random.randrange(len(group))]:
                self.check(connection.answer(method), data)

    def upload(self):
        name = self.choose("a", "b", "dir/c")
        body = self.random.randbytes(self.random.choice((0, 1, 1000, 100000)))
        data = self.head("PUT", f"/runtime/v1/files?path={name}", body=body)
        with self.connection() as connection:
            if self.chance(0.3):
                self.send(connection, data[:self.random.randrange(len(data))])
                return
            self.send(connection, data)
            self.check(connection.answer("PUT"), data[:300])

    def stream(self):
        """Events as they come, for a moment."""
        with self.connection() as connection:
            connection.send(self.head("GET", "/v1/events"))
            status, _ = connection.head()
            self.counts[status] += 1
            deadline = time.monotonic() + self.random.random() * 0.2
            while status == 200 and time.monotonic() < deadline and connection.more(deadline):
                pass

    # What is wrong.

    def damaged(self, data):
        """The bytes with a few faults in them."""
        data = bytearray(data)
        for _ in range(self.random.randrange(1, 6)):
            at = self.random.randrange(len(data) + 1)
            kind = self.random.randrange(6)
            if kind == 0:
                data[at:at + 1] = self.random.randbytes(1)
            elif kind == 1:
                data[at:at] = self.random.choice((b"\r", b"\n", b"\0", b"\r\n", b" ", b":", b"%", b"\xff", b"\r\n\r\n"))
            elif kind == 2:
                del data[at:at + self.random.randrange(1, 20)]
            elif kind == 3:
                data[at:at] = data[at:at + 30]
            elif kind == 4:
                data[at:at] = self.random.randbytes(self.random.randrange(1, 2000))
            else:
                line = self.random.choice((
                    b"Content-Length: 5", b"Content-Length: 99999", b"Transfer-Encoding: chunked", b"Host: evil", b"Expect: 100-continue",
                    b"Upgrade: websocket", b"Connection: close", b"Connection: upgrade", b" folded", b"Content-Length: -1",
                ))
                end = data.find(b"\r\n")
                data[end:end] = b"\r\n" + line
        return bytes(data)

    def broken(self):
        """Whatever comes back is well-formed as far as it goes, and comes to an end."""
        data = self.damaged(b"".join(self.request()[1] for _ in range(self.random.randrange(1, 3))))
        with self.connection() as connection:
            self.send(connection, data)
            if self.chance(0.5):
                connection.half_close()
                status = 0
                while status != 101:
                    status = connection.answer().status
                    self.counts[status] += 1

    # Sockets.

    def upgrade(self, target):
        return self.head(
            "GET", target, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: c2l4dGVlbiBieXRlcywgMQ==",
        )

    def message(self):
        kind = self.random.random()
        if kind < 0.35:
            data = self.random.randbytes(self.random.choice((0, 1, 100, 5000, 100000)))
            value = {"type": "stdin", "data": base64.b64encode(data).decode()}
        elif kind < 0.6:
            value = self.choose(
                {"type": "close_stdin"}, {"type": "resize", "cols": 80, "rows": 24}, {"type": "signal", "signal": "TERM"},
                {"type": "signal", "signal": "KILL"}, {"type": "resize", "cols": 0, "rows": 1 << 40}, {"type": "nothing"},
            )
        else:
            value = self.start()
        if self.chance(0.1):
            value[self.random.choice([*value, "unknown"])] = self.random.choice(JUNK)
        text = json.dumps(value).encode()
        return self.damaged(text) if self.chance(0.05) else text

    def start(self):
        cmd, *args = self.random.choice(COMMANDS)
        value = {"type": "start", "cmd": cmd, "args": args}
        for name, share, values in (
            ("id", 0.4, NAMES), ("stdin", 0.6, (True, False)), ("timeout_ms", 0.5, (1, 50, 500, 0, None)), ("cwd", 0.1, ("/", "/none")),
            ("pty", 0.2, ({"cols": 80, "rows": 24}, None)), ("environment", 0.2, ({"A": "b", "N": 1, "B": True, "X": None},)),
            ("tag", 0.2, ("t",)), ("user", 0.05, ("nobody", None)),
        ):
            if self.chance(share):
                value[name] = self.random.choice(values)
        value.setdefault("timeout_ms", 3000)
        return value

    def frames(self):
        """Some frames' bytes, mostly proper ones."""
        kind = self.random.random()
        if kind < 0.6:
            return frame(TEXT, self.message())
        if kind < 0.75:
            return b"".join(piece_list(self.message(), self.random.randrange(1, 6)))
        if kind < 0.85:
            return frame(PING, self.random.randbytes(self.random.randrange(126)))
        if kind < 0.9:
            return close_frame(self.choose(1000, 1001, 1005, 4000, 0))
        opcode = self.choose(CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG, 3, 15)
        size = self.random.randrange(200)
        return frame(
            opcode, self.random.randbytes(size), fin=self.chance(0.7), rsv=self.choose(0, 0, 0, 1), length=self.choose(size, None, 1 << 40),
            mask=self.choose(b"abcd", b"abcd", b"abcd", None), form=64 if self.chance(0.1) else None,
        ) if size < 126 else frame(opcode, self.random.randbytes(size))

    def socket(self):
        self.talk(START, [frame(TEXT, json.dumps(self.start()))] if self.chance(0.8) else [])

    def attach(self):
        since = self.choose("", "", "?since=0", "?since=3", "?since=99999", "?since=18446744073709551615", "?since=-1", "?since=x")
        name = self.choose("one", "two%2Fthree", "four+five", "six:7", "none")
        watch = f"/runtime/v1/files/watch?path={self.choose('.', 'd', 'none', 'a')}&recursive={self.choose('true', 'false', 'x')}"
        self.talk(watch if self.chance(0.2) else f"{START}/{name}/connect{since}", [])

    def talk(self, target, first):
        parts = [*first, *(self.frames() for _ in range(self.random.randrange(8)))]
        with self.connection() as connection:
            early = self.chance(0.3)
            self.send(connection, self.upgrade(target) + (b"".join(parts) if early else b""))
            answer = connection.answer()
            self.counts[answer.status] += 1
            if answer.status != 101:
                self.check(answer, target.encode())
                return
            if not early:
                for part in parts:
                    self.send(connection, self.damaged(part) if self.chance(0.05) else part)
            self.listen(connection)

    def listen(self, connection):
        """Reads for a while; every frame is looked at by Raw."""
        deadline = time.monotonic() + self.random.random() * 0.3
        with contextlib.suppress(TimeoutError):
            while time.monotonic() < deadline:
                # Not `frame` alone: a wait for one that does not come would be long.
                if not connection.buffer and not connection.more(deadline):
                    return
                if connection.frame().opcode == CLOSE:
                    return

    # Connections that stay open.

    def leave(self):
        """One that is left open, at some point of a request."""
        data = self.request()[1]
        connection = Raw(self.address)
        connection.send(data[:self.random.randrange(len(data) + 1)])
        self.held.append(connection)
        if len(self.held) > HELD_MAX:
            self.held.pop(self.random.randrange(len(self.held))).close()

    def come_back(self):
        if self.held:
            connection = self.held.pop(self.random.randrange(len(self.held)))
            connection.send(self.request()[1])
            (connection.reset if self.chance(0.5) else connection.close)()


def run_clients(count, seed, seconds, *where):
    """Several at once; returns them when all are done."""
    clients = [ChaosClient(seed * 1000 + i, *where) for i in range(count)]
    threads = [threading.Thread(target=client.run, args=(seconds,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return clients

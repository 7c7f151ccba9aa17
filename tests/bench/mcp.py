"""The MCP server on stdio, as a client of one process sees it: calls against the reference server's, commands against the keeper's own spawn and wait, and
both against Desktop Commander, a server that starts commands too.

All parties of a comparison are spoken to by the same client, a few lines of C or Python. One call of each party in turn, so that whatever else the machine does meets
all of them alike. Every answer is looked at: it must be what was asked for."""

import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import socket
import statistics
import struct
import subprocess
import time

from series import TRUE, Series
from stage import BUILD, COOP, PATIENCE, BenchError, node, program
from table import QUIET, Absent, Row, micros

REFERENCE = "@modelcontextprotocol/server-everything"
COMMANDER = "@wonderwhy-er/desktop-commander"
PACKAGES = {
    "private": True,
    "dependencies": {REFERENCE: "2026.8.31", COMMANDER: "0.2.52"},
    # A version of it that the registry lacks is asked for.
    "overrides": {"typedarray.prototype.slice": "1.0.5"},
}
FETCH_SECONDS = 600
VERSION = "2025-11-25"
MEMORY_MIB = 8
OURS = [COOP, "mcp", "--profile", "full", "--no-workspace"]
COMMANDS, LINES_RUN, READS = "mcp commands", "mcp lines", "mcp reads"
# Calls that are made first: node compiles what runs often, and a server of it is several times faster after some thousand calls. Few hosts ever make so many.
CALLS = {"mcp calls": 0, "mcp calls, worn": 5000}
OUTPUT = 1 << 20  # bytes of output that are read
LINE = "x" * 63  # and its end
LINES = OUTPUT // (len(LINE) + 1)
WRITER = f"yes {LINE} | head -c {OUTPUT}"


class Pipe:
    """A pair of descriptors."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.poll = select.poll()
        self.poll.register(reader, select.POLLIN)
        self.rest = b""

    def send(self, request):
        while request:
            request = request[os.write(self.writer, request) :]

    def more(self):
        if not self.poll.poll(PATIENCE * 1000):
            raise BenchError("no answer")
        piece = os.read(self.reader, 1 << 20)
        if not piece:
            raise BenchError("the other side has gone")
        return piece

    def line(self):
        """The next one whole. A long one comes in many pieces, each of which is looked at once."""
        pieces = [self.rest]
        while b"\n" not in pieces[-1]:
            pieces.append(self.more())
        last, self.rest = pieces[-1].split(b"\n", 1)
        return b"".join([*pieces[:-1], last])


class Server:
    """An MCP server, a process of its own."""

    def __init__(self, name, argv, env, log):
        self.name, self.argv = name, argv
        with open(log, "wb") as out:
            self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, cwd="/")
        self.pipe = Pipe(self.process.stdout.fileno(), self.process.stdin.fileno())
        self.number = 0
        try:
            hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
            self.ask(self.request("initialize", hello))
            self.pipe.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        except BenchError as error:
            self.stop()
            raise BenchError(f"{name}: {error}: {pathlib.Path(log).read_text()[-500:]}") from None

    def request(self, method, params):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"

    def call(self, tool, **arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def ask(self, request):
        """The line of the answer; what else the server has to say is passed over."""
        mark = b'"id":%d' % self.number
        self.pipe.send(request)
        while True:
            line = self.pipe.line()
            # Ours come first in an answer, others' last.
            if mark in line[:80] or mark in line[-80:]:
                return line

    def result(self, line):
        answer = json.loads(line)
        if "result" not in answer or answer["result"].get("isError"):
            raise BenchError(f"{self.name}: {line[:300]}")
        return answer["result"]

    def rss(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
        raise BenchError(f"{self.name} has no memory")

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class KeeperSocket:
    """The keeper's own operations, through the same reads and writes."""

    HEAD = struct.Struct("<IBBH")

    def __init__(self, keeper):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(keeper.env["COOP_SOCKET"])
        self.pipe = Pipe(self.socket.fileno(), self.socket.fileno())
        self.number = 0
        self._answer()

    def request(self, op, **args):
        self.number += 1
        text = json.dumps({"id": self.number, "op": op, "args": args}).encode()
        return self.HEAD.pack(len(text), ord("J"), 0, 0) + text

    def ask(self, request):
        self.pipe.send(request)
        return self._answer()

    def _answer(self):
        """The next frame of JSON; one request is open at a time."""
        pipe, text = self.pipe, self.pipe.rest
        while True:
            while len(text) < 8 or len(text) < 8 + self.HEAD.unpack_from(text)[0]:
                text += pipe.more()
            size, kind, _, _ = self.HEAD.unpack_from(text)
            body, text = text[8 : 8 + size], text[8 + size :]
            if kind == ord("J"):
                pipe.rest = text
                return body

    def stop(self):
        self.socket.close()


class InTurn(Series):
    """Samples: of each party, by round, the times of single goes. A party is a function that makes one go ready and gives two: one that is
    timed, and one that looks at what came of it."""

    def __init__(self, name, parties, count):
        super().__init__(name, parties)
        self.count = count

    def play(self, number):
        taken = {name: [] for name in self.parties}
        for _ in range(self.count):
            for name, prepare in self.parties.items():
                go, check = prepare()
                began = time.perf_counter_ns()
                answer = go()
                taken[name].append(time.perf_counter_ns() - began)
                check(answer)
        for name, times in taken.items():
            self.samples[name].append(times)

    def middles(self, name):
        return [statistics.median(times) for times in self.samples[name]]


def one_call(server, tool, wanted, **arguments):
    """One call, whose answer has those bytes."""

    def prepare():
        request = server.call(tool, **arguments)
        return lambda: server.ask(request), check

    def check(line):
        server.result(line)
        if wanted not in line:
            raise BenchError(f"{server.name}: {tool} has not done it: {line[:300]}")

    return prepare


def spawn_and_wait(keeper):
    """The two operations that a client of the keeper makes for a command."""

    def prepare():
        spawn = keeper.request("spawn", argv=[TRUE], cwd="/", sandbox={"profile": "full"})

        def go():
            started = keeper.ask(spawn)
            # Its id is all that is needed of it.
            begin = started.index(b'"id":"') + 6
            return keeper.ask(keeper.request("wait", id=started[begin : started.index(b'"', begin)].decode(), output_bytes=65536))

        return go, check

    def check(answer):
        if b'"result"' not in answer or b'"self_exit"' not in answer:
            raise BenchError(f"keeper: {answer[:300]}")

    return prepare


def read_all(server, start, pid_of, **arguments):
    """One call that brings all output of a command that has just ended."""
    all_of_it = b"\\n".join([LINE.encode()] * (LINES - 1))

    def prepare():
        pid = pid_of(server.result(server.ask(server.call(start[0], **start[1]))))
        return one_call(server, "read_process_output", all_of_it, pid=pid, **arguments)()

    return prepare


class Calls(Series):
    """Calls one at a time, of servers that were just started, by a client in C: what is compared takes less time than Python does."""

    def __init__(self, name, before, keeper, peers, count):
        listing, echo = {"name": "list_processes", "arguments": {}}, {"name": "echo", "arguments": {"message": "hello"}}
        parties = {"coop": [json.dumps(listing), *OURS]}
        if REFERENCE in peers:
            parties[REFERENCE] = [json.dumps(echo), *peers[REFERENCE].argv]
        super().__init__(name, parties)
        self.before, self.keeper, self.count = before, keeper, count

    def play(self, number):
        words = [word for name, party in self.parties.items() for word in [name, *party, ";"]]
        taken = {name: [] for name in self.parties}
        for line in self.keeper.run([program("mcp_race"), str(self.count), "1", str(self.before), *words]).splitlines():
            name, took = line.rsplit(" ", 1)
            taken[name].append(int(took))
        for name, times in taken.items():
            self.samples[name].append(times)

    def middles(self, name):
        return [statistics.median(times) for times in self.samples[name]]


def series(coop, calm, keeper, peers, quick):
    """Of each kind of work, those that can do it here. `calm` is a keeper that starts nothing."""
    count = 5 if quick else 1
    for name, before in CALLS.items():
        yield Calls(name, before // count, calm, peers, 300)
    yield InTurn(
        COMMANDS, {"keeper": spawn_and_wait(keeper), "coop": one_call(coop, "run_command", b"self_exit", command=TRUE)}, 200 // count
    )
    if COMMANDER in peers:
        peer = peers[COMMANDER]
        yield InTurn(
            LINES_RUN,
            {
                "coop": one_call(coop, "run_command", b"done", command="cd / && echo done"),
                COMMANDER: one_call(peer, "start_process", b"done", command="cd / && echo done", timeout_ms=30000),
            },
            50 // count,
        )
        yield InTurn(
            READS,
            {
                "coop": read_all(
                    coop, ("run_command", {"command": WRITER}), lambda result: result["structuredContent"]["pid"], length=OUTPUT
                ),
                # Its last lines, which are all of them: what it calls new it gives once only.
                COMMANDER: read_all(
                    peer,
                    ("start_process", {"command": WRITER, "timeout_ms": 30000}),
                    lambda result: int(re.search(r"PID (\d+)", result["content"][0]["text"])[1]),
                    offset=-LINES - 1,
                    length=LINES + 1,
                ),
            },
            25 // count,
        )


def fetch():
    """The folder with the other servers, fetched once into the build. None: they are not to be had; says why."""
    folder = BUILD / "bench-mcp"
    if (folder / "complete").exists():
        return folder
    npm = shutil.which("npm")
    if not node() or not npm:
        print("no node or no npm here: MCP is compared with no other server")
        return None
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text(json.dumps(PACKAGES, indent=1))
    # Nothing of them is run: some report home when they are installed.
    argv = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        why = done.stderr.strip()[-300:] if done.returncode else ""
    except subprocess.TimeoutExpired:
        why = f"not done after {FETCH_SECONDS} s"
    if why:
        print(f"npm cannot fetch the other servers, so MCP is compared with none: {why}")
        return None
    (folder / "complete").touch()
    return folder


def alone():
    """The words before a command that keep it off the network. None: that cannot be had."""
    words = ["unshare", "--map-root-user", "--net"]
    done = subprocess.run([*words, TRUE], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return words if done.returncode == 0 else None


@contextlib.contextmanager
def others(home):
    """The other servers that run here, by name. They reach nothing but this process, and have a home of their own."""
    with contextlib.ExitStack() as stack:
        servers, folder, words = {}, fetch(), alone()
        if not words:
            print("no network namespace can be had: MCP is compared with no other server")
        home = pathlib.Path(home) / "home"
        settings = home / ".claude-server-commander"
        settings.mkdir(parents=True)
        (settings / "config.json").write_text(json.dumps({"telemetryEnabled": False, "fileReadLineLimit": OUTPUT}))
        env = {"PATH": os.environ["PATH"], "HOME": str(home)}
        for name in (REFERENCE, COMMANDER) if folder and words else ():
            script = folder / "node_modules" / name / "dist" / "index.js"
            servers[name] = Server(name, [*words, node(), str(script)], env, home / f"{name.partition('/')[2]}.log")
            stack.callback(servers[name].stop)
        yield servers


@contextlib.contextmanager
def stage(folder, keeper, calm, facts):
    """What series() needs, all up."""
    with contextlib.ExitStack() as stack:
        coop = Server("coop mcp", OURS, keeper.env, keeper.folder / "mcp.log")
        stack.callback(coop.stop)
        coop.ask(coop.request("tools/list", {}))
        coop.result(coop.ask(coop.call("list_processes")))
        facts["mcp rss"] = coop.rss()
        direct = KeeperSocket(keeper)
        stack.callback(direct.stop)
        yield coop, calm, direct, stack.enter_context(others(folder))


def per_second(times):
    return f"{1e9 / statistics.median(times):.0f}/s"


def against(what, line, other, show, target=None):
    """How many times faster ours is."""
    if not line or other not in line.samples:
        return Absent(what, f"no {other} here", target, at_least=True)
    ours, theirs = line.middles("coop"), line.middles(other)
    ratios = [b / a for a, b in zip(ours, theirs)]
    return Row(what, show(ours), f"{other.partition('/')[2]} {show(theirs)}", ratios, target, noisy=line.spread() > QUIET)


def rows(lines, facts):
    if "mcp rss" not in facts:
        return
    fresh, worn = CALLS
    yield against("MCP, list_processes (its echo), first 300", lines[fresh], REFERENCE, per_second, 2)
    yield against(f"MCP, the same after {lines[worn].before} calls", lines[worn], REFERENCE, per_second)
    mib = facts["mcp rss"] / (1 << 20)
    yield Row("coop mcp, idle, memory", f"{mib:.1f} MiB", "-", [mib], MEMORY_MIB, False)
    line = lines[COMMANDS]
    ours, keeper = line.middles("coop"), line.middles("keeper")
    ratios = [a / b for a, b in zip(ours, keeper)]
    yield Row("MCP, run_command true", micros(ours), f"spawn, wait {micros(keeper)}", ratios, 1.3, False, line.spread() > QUIET)
    yield against("MCP, a shell line", lines.get(LINES_RUN), COMMANDER, micros)
    yield against("MCP, reading 1 MiB", lines.get(READS), COMMANDER, micros)

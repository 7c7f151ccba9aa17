"""The official MCP packages, each a process of node: the TypeScript client, the inspector, the conformance suite, the reference server.

They are installed by scripts/test-clients, which names their folder in COOP_CLIENTS."""

import contextlib
import json
import os
import re
import select
import socket
import subprocess
import time
from pathlib import Path

from .gateway import GatewayCase
from .keeper import plain_limits
from .place import BUILD, COOP, Place, patience

HERE = Path(__file__).resolve().parents[1] / "clients"
CLIENTS = Path(os.environ.get("COOP_CLIENTS") or "/nonexistent")
BIN = CLIENTS / "node_modules" / ".bin"
NODE = BIN / "node"
EVERYTHING = CLIENTS / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
ANSWER_SECONDS = 60
RUN_SECONDS = 80


class ClientError(Exception):
    """The client has refused, or the server has."""

    def __init__(self, error):
        super().__init__(error["stack"])
        self.name = error["name"]
        self.code = error["code"]
        self.message = error["message"]


def node_env(env, home):
    """For programs of node: the right one first, and a home that nothing is left in."""
    return env | {"PATH": f"{BIN}:{env.get('PATH') or os.environ['PATH']}", "HOME": str(home), "NO_COLOR": "1", "NO_UPDATE_NOTIFIER": "1"}


class OfficialClient:
    """One client of driver.mjs."""

    def __init__(self, env, log):
        with open(log, "ab") as out:
            self.process = subprocess.Popen(
                [NODE, HERE / "driver.mjs", CLIENTS],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                preexec_fn=plain_limits,
            )
        self.text = b""

    def do(self, action, **more):
        """Asks for one thing and waits for its answer."""
        self.process.stdin.write(json.dumps({"do": action, **more}).encode() + b"\n")
        self.process.stdin.flush()
        deadline = time.monotonic() + patience(ANSWER_SECONDS)
        while b"\n" not in self.text:
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"the client does not answer: {action} {more}")
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                raise AssertionError(f"the client has ended: {action} {more}")
            self.text += piece
        line, self.text = self.text.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["value"]

    def call(self, name, **arguments):
        return self.do("call", name=name, arguments=arguments)

    def end(self):
        """The client closes its connection, then goes."""
        try:
            if self.process.poll() is None:
                with contextlib.suppress(ClientError):
                    self.do("close")
        finally:
            self.process.stdin.close()
            try:
                self.process.wait(patience(ANSWER_SECONDS))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()


class TokenProxy:
    """Adds the token for clients that cannot. It listens on the gateway's port, at another address, as the gateway looks at the port in Host."""

    def __init__(self, gateway, env):
        host, port = gateway.address
        self.process = subprocess.Popen(
            [NODE, HERE / "token_proxy.mjs", host, str(port), gateway.ready["token_file"]],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if self.process.stdout.readline().strip() != b"ready":
            self.end()
            raise AssertionError("the proxy does not listen")
        self.url = f"http://127.0.0.1:{port}/mcp"

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(patience(ANSWER_SECONDS))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def free_port():
    """One that nobody has on any address of this machine's own."""
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        return probe.getsockname()[1]


class OfficialCase(GatewayCase):
    """A gateway, with the conformance suite's fixtures if they are asked for, and its keeper for servers on stdio."""

    fixtures = False

    @classmethod
    def _start(cls, **options):
        if cls.fixtures:
            place = Place()
            # Not 127.0.0.1: there the proxy stands before it.
            options["listen"] = f"127.0.0.2:{free_port()}"
            program = place.dir / "gateway-with-fixtures"
            program.write_text(f'#!/bin/sh\nexec "{BUILD}/bin/coop-gateway" --conformance-fixtures "$@"\n')
            program.chmod(0o755)
            options |= {"place": place, "env": {"COOP_GATEWAY": str(program)}}
        return super()._start(**options)

    def setUp(self):
        super().setUp()
        self.env = node_env(self.gateway.place.env(self.gateway.env), self.gateway.place.dir)

    @property
    def url(self):
        return f"{self.gateway.url}/mcp"

    def client(self, package, transport, mode=None, options=()):
        """A connected client and what it learned; ended with the test."""
        client = OfficialClient(self.env, self.gateway.place.dir / "client.log")
        self.addCleanup(client.end)
        if transport == "stdio":
            to = {"command": str(COOP), "args": ["mcp", *options], "env": self.env, "cwd": str(self.work)}
        else:
            to = {"url": self.url, "token": self.gateway.token}
        return client, client.do("connect", package=package, mode=mode, to=to)

    def run_program(self, *argv, seconds=RUN_SECONDS):
        """(exit code, stdout, stderr) of a program, of these packages or of ours."""
        done = subprocess.run(
            [str(word) for word in argv],
            env=self.env,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience(seconds),
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def inspect(self, target, *words):
        """The inspector's command line. `target`: the words that name the server."""
        return self.run_program(BIN / "mcp-inspector", "--cli", *target, *words)

    def targets(self):
        """{transport: the words that name the server}"""
        return {
            # The inspector passes little of its own environment on.
            "stdio": [COOP, "mcp", *(word for name in sorted(self.env) if name.startswith("COOP_") for word in ("-e", f"{name}={self.env[name]}"))],
            "http": [self.url, "--header", f"Authorization: Bearer {self.gateway.token}"],
        }

    def failure_notes(self):
        log = self.gateway.place.dir / "client.log"
        notes = f"--- client.log\n{log.read_text(errors='replace')[-4000:]}\n" if log.exists() else ""
        return notes + super().failure_notes()


SCENARIO = re.compile(r"^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$")


def conformance_results(folder):
    """{scenario: {check: status}} of a run's saved results."""
    found = {}
    for path in Path(folder).glob("*/checks.json"):
        checks = found.setdefault(SCENARIO.match(path.parent.name)[1], {})
        for check in json.loads(path.read_text()):
            # A check may be made several times: the worst counts.
            worst = max((checks.get(check["id"], "INFO"), check["status"]), key=("INFO", "SKIPPED", "SUCCESS", "WARNING", "FAILURE").index)
            checks[check["id"]] = worst
    return found


def read_baseline(path):
    """{"scenario:check": (status, reason)}. A line each: `- SCENARIO:CHECK STATUS # REASON`."""
    found = {}
    for line in Path(path).read_text().splitlines():
        if line.startswith("- "):
            entry, _, reason = line[2:].partition(" # ")
            name, status = entry.split()
            if not reason.strip():
                raise AssertionError(f"no reason is given: {line}")
            if name in found:
                raise AssertionError(f"twice: {name}")
            found[name] = (status, reason.strip())
    return found


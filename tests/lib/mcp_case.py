"""Base classes of the tests that talk MCP. A test that must hold on both transports is written in a class without a base, and run by two that
have it and StdioCase or HttpCase."""

import base64
import contextlib
import itertools
import json

from . import json_schema, procs
from .cli import CliCase
from .client import Client
from .gateway import GatewayCase
from .mcp import LATEST_LEGACY, McpError, StdioPeer
from .mcp_http import HttpPeer

CODES = {"invalid_input", "no_such_process", "not_owner", "not_running", "exists", "quota", "registry_full", "too_large", "closed",
         "boundary_escape", "capability_denied", "permission_denied", "cancelled", "persist_unsupported", "sandbox_unavailable",
         "spawn_failed", "unavailable", "internal"}
INLINE = 50000
numbers = itertools.count(1)


class McpCase:
    """Shorthand of both. `connect` is the transport's."""

    @property
    def peer(self):
        """A client of the modern era."""
        if self.__dict__.get("_peer") is None:
            self._peer = self.connect()
        return self._peer

    def eras(self):
        """One client of each era."""
        return (self.connect(), self.connect(LATEST_LEGACY))

    def schemas(self, peer):
        """{tool: output schema}, as listed."""
        if self.__dict__.get("_schemas") is None:
            self._schemas = {tool["name"]: tool["outputSchema"] for tool in peer.call("tools/list")["tools"]}
        return self._schemas

    def check_result(self, peer, result):
        """A tool's result is what its schema says; one that is an error says what to do."""
        schema = self.schemas(peer).get(result.name)
        if schema:
            self.assertEqual(json_schema.faults(result.value, schema), [], result)
        if result.is_error and "code" in result.value:
            self.assertIn(result["code"], CODES, result)
            self.assertGreater(len(result["message"]), 5, result)
            self.assertGreater(len(result["advice"]), 5, result)
        return result

    def any(self, tool, _peer=None, **arguments):
        """Calls a tool, whatever comes of it."""
        peer = _peer or self.peer
        return self.check_result(peer, peer.tool(tool, **arguments))

    def ok(self, tool, _peer=None, **arguments):
        result = self.any(tool, _peer, **arguments)
        self.assertFalse(result.is_error, result)
        return result

    def bad(self, tool, code=None, _peer=None, **arguments):
        """Calls a tool that is to fail. With a code: by an error of that code, which has advice."""
        result = self.any(tool, _peer, **arguments)
        self.assertTrue(result.is_error, result)
        if code:
            self.assertEqual(result.get("code"), code, result)
        return result

    def refused(self, code, status, method, params=None, peer=None, **options):
        """The request must end with an error of JSON-RPC; over HTTP with that status."""
        with self.assertRaises(McpError) as caught:
            (peer or self.peer).call(method, params, **options)
        self.assertEqual(caught.exception.code, code, caught.exception)
        if status is not None and caught.exception.status is not None:
            self.assertEqual(caught.exception.status, status, caught.exception)
        return caught.exception

    def background(self, script, _peer=None, **arguments):
        """A script in the background: its id."""
        return self.ok("run_command", _peer, command="sh", args=["-c", script], wait=False, **arguments)["id"]

    def run_sh(self, script, _peer=None, **arguments):
        return self.any("run_command", _peer, command="sh", args=["-c", script], **arguments)

    def record(self, process):
        """As the keeper has it."""
        return self.operator.call("status", id=process)["process"]

    def wait_record(self, process, holds, what):
        return procs.wait_until(lambda: (found := self.record(process)) and holds(found) and found, what)

    def listed(self, peer=None, **arguments):
        """Ids of list_processes."""
        return [row["id"] for row in self.ok("list_processes", peer, **arguments)["processes"]]

    def exact(self, result, text):
        """The bytes of a field that is text where they are UTF-8, and base64 in a field of that name where not."""
        name = next((name for name in (f"{text}_base64", "content_base64", "data_base64") if result.get(name) is not None), None)
        return base64.b64decode(result[name], validate=True) if name else result[text].encode()

    def read_all(self, process, peer=None, stream="stdout", offset=0):
        """All that is retained from an offset on, page by page: (bytes, offset of the first, pages)."""
        pieces, first, pages = [], None, 0
        while True:
            page = self.ok("read_process_output", peer, pid=process, stream=stream, offset=offset)
            pages += 1
            first = offset + page["bytes_dropped"] if first is None else first
            pieces.append(self.exact(page, "content"))
            if page["next_offset"] == offset or page["eof"]:
                return b"".join(pieces), first, pages
            offset = page["next_offset"]


class StdioCase(McpCase, CliCase):
    """`coop mcp` with a place of its own for every test; the first one starts the keeper."""

    transport = "stdio"

    def setUp(self):
        super().setUp()
        self.stderr = open(self.place.dir / "mcp.stderr", "ab")
        self.addCleanup(self.stderr.close)

    @property
    def work(self):
        return self.place.work

    @property
    def operator(self):
        if self.__dict__.get("_operator") is None:
            self._operator = self.client()
        return self._operator

    def start_peer(self, *options, env=None):
        """A server of its own, to which nothing has been said."""
        peer = StdioPeer(self.env | (env or {}), self.place.work, options, self.stderr)
        self.addCleanup(peer.close)
        return peer

    def connect(self, version=None, options=(), env=None, **_):
        peer = self.start_peer(*options, env=env)
        if version:
            peer.initialize(version)
        return peer

    def other_agent(self):
        """A client that acts as another agent."""
        name = f"main/other{next(numbers)}"
        self.peer.call("server/discover")
        self.peer.tool("list_processes")
        self.operator.call("agent_add", agent=name, workspace=[str(self.place.work.resolve())])
        return self.connect(options=("--agent", name))

    def logs(self):
        """All that was written down: bytes."""
        self.stderr.flush()
        return b"".join(path.read_bytes() for path in self.place.dir.rglob("*") if path.is_file() and self.work not in path.parents)


class HttpCase(McpCase, GatewayCase):
    """`/mcp` of `coop serve`. Each test is an agent of its own."""

    transport = "http"
    agent_settings = {"persistent": True}

    def setUp(self):
        super().setUp()
        number = next(numbers)
        self.agent = f"main/tester{number}"
        self.folder = self.gateway.place.work / str(number)
        self.folder.mkdir()
        self.agent_token = self.gateway.agent_token(self.agent, workspace=[str(self.folder.resolve())], **self.agent_settings)
        self.addCleanup(self.remove_agent)

    @property
    def work(self):
        """The test's own: others of the class have theirs beside it."""
        return self.folder

    def remove_agent(self):
        if not self.gateway.ended:
            with contextlib.suppress(OSError), Client(self.gateway.place.socket) as client:
                client.call("agent_remove", agent=self.agent, grace_ms=0)

    @property
    def operator(self):
        if self.__dict__.get("_operator") is None:
            self._operator = self.gateway.keeper()
        return self._operator

    def start_peer(self, token=None):
        peer = HttpPeer(self.gateway, token or self.agent_token)
        self.addCleanup(peer.close)
        return peer

    def connect(self, version=None, token=None, **_):
        peer = self.start_peer(token)
        if version:
            peer.initialize(version)
        return peer

    def other_agent(self):
        return self.connect(token=self.gateway.agent_token(f"main/other{next(numbers)}"))

    def logs(self):
        place = self.gateway.place
        return b"".join(path.read_bytes() for path in place.dir.rglob("*") if path.is_file() and place.work not in path.parents)


def plain(value):
    """A value in the form in which two are compared byte by byte; members stay in their order."""
    return json.dumps(value, ensure_ascii=False)

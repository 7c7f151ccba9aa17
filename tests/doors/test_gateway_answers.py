"""Every route of a running gateway is driven, and what goes either way is as /openapi.json says: parameters, bodies, statuses, messages."""

import base64
import json
import unittest

from lib import openapi
from lib.control import ControlCase
from lib.http_client import HttpConnection

# No token carries these out.
OPERATORS = {"audit_tail", "audit_verify", "reload", "shutdown"}
JSON = {"Content-Type": "application/json"}
MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
SERVER = "import socket, time; s = socket.create_server(('127.0.0.1', 7999)); time.sleep(300)"


class AnswersTest(ControlCase):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.described = openapi.Described(json.loads(self.gateway.request("GET", "/openapi.json").body))
        self.wrong = []

    def request(self, method, target, body=None, stray=False, **options):
        """`stray`: its parameters are none of this route's, which may ignore them."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            options["headers"] = JSON | (options.get("headers") or {})
        response = self.gateway.request(method, target, body, **options)
        self.wrong += self.described.check(method, target, body, response.status, response.headers.get("content-type"), response.body, stray)
        return response

    def good(self, method, target, body=None, **options):
        response = self.request(method, target, body, **options)
        self.assertLess(response.status, 300, (method, target, response.body[:500]))
        return response.json() if response.body and "json" in response.headers["content-type"] else response

    def op(self, name, **args):
        return self.good("POST", f"/v1/ops/{name}", args)

    def head(self, method, target, headers=None):
        """Of an answer that goes on and on."""
        with HttpConnection(self.gateway.address, self.gateway.host) as connection:
            connection.send_request(method, target, self.gateway.headers(more=headers))
            status, found = connection.read_head()
        self.wrong += self.described.check(method, target, None, status, found.get("content-type"), None)
        self.assertEqual(status, 200)

    def upgraded(self, target, **options):
        socket = self.gateway.socket(target, **options)
        self.addCleanup(socket.drop)
        self.wrong += self.described.check("GET", target, None, 101, None, b"")
        return socket

    def message(self, schema, value):
        self.wrong += self.described.faults({"$ref": f"#/components/schemas/{schema}"}, value, f"{schema} {value.get('type')}")
        return value

    def drive_gateway(self):
        for target in ("/healthz", "/metrics", "/openapi.json", "/v1/tools"):
            self.good("GET", target)
        self.head("GET", "/v1/events?replay=false&agent=self")
        self.good("POST", "/v1/tools/run_command", {"command": "echo hi"})
        self.good("POST", "/v1/tools/list_processes")
        session = self.good("POST", "/mcp", INITIALIZE, headers=MCP)
        self.assertIn("result", session)
        opened = self.gateway.request("POST", "/mcp", INITIALIZE, headers=MCP).headers["mcp-session-id"]
        self.head("GET", "/mcp", {"Accept": "text/event-stream", "Mcp-Session-Id": opened})
        self.good("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers={**MCP, "Mcp-Session-Id": opened})
        self.good("DELETE", "/mcp", headers={"Mcp-Session-Id": opened})

    def drive_processes(self):
        socket = self.upgraded("/runtime/v1/process")
        self.message("ClientMessage", start := {"type": "start", "cmd": "sh", "args": ["-c", "cat; echo err >&2; exit 3"], "stdin": True, "envs": {"A": 1},
                                                 "cwd": None, "pty": None, "timeout_ms": None, "id": "driven", "tag": None})
        socket.send(**start)
        for text in ({"type": "stdin", "data": base64.b64encode(b"x").decode()}, {"type": "close_stdin"}, {"type": "resize", "cols": 80, "rows": 24}):
            self.message("ClientMessage", text)
            socket.send(**text)
        seen = {}
        while "exit" not in seen:
            value = self.message("ServerMessage", socket.message())
            seen[value["type"]] = value
        self.assertLessEqual({"started", "stdout", "stderr", "stdin_ack", "close_stdin_ack", "exit"}, set(seen))
        missing = self.upgraded("/runtime/v1/process")
        missing.send(type="start", cmd="/nothing/here", args=[])
        while self.message("ServerMessage", missing.message())["type"] != "exit":
            pass
        attached = self.upgraded("/runtime/v1/process/driven/connect?since=0&lossless=true")
        while self.message("ServerMessage", attached.message())["type"] != "exit":
            pass
        running = self.sh("exec sleep 300").pid
        for target in ("", "?all=true", f"/{running}", "/driven", "/driven/output", "/driven/output?since=0&limit_bytes=10&mode=forward",
                       "/driven/output?mode=head_tail&head_bytes=1&tail_bytes=1", "/driven/output?mode=head_tail&head_ratio_num=1&head_ratio_den=2"):
            self.good("GET", f"/runtime/v1/process{target}")
        self.good("POST", f"/runtime/v1/process/{running}/signal", {"signal": "SIGCONT"})
        self.good("DELETE", f"/runtime/v1/process/{running}?signal=SIGKILL&kill_group=true&grace_ms=100")

    def drive_files(self):
        files = "/runtime/v1/files"
        self.good("PUT", f"{files}?path=d/one", b"bytes")
        self.good("PUT", f"{files}?path=d/packed&gzip=false", b"bytes")
        (self.work / "d" / "link").symlink_to("one")
        self.good("POST", f"{files}/write_files", {"files": [{"path": "d/two", "data_base64": "eA==", "gzip": None}]})
        for target in (f"{files}?path=d/one", f"{files}?path=d/one&gzip=true", f"{files}/stat?path=d/one", f"{files}/stat?path=d/link",
                       f"{files}/stat?path=d", "/runtime/v1/directories?path=d", "/runtime/v1/directories?path=.&depth=2"):
            self.good("GET", target)
        watch = self.upgraded(f"{files}/watch?path=d&recursive=true&include_entry=true&allow_network_mounts=true")
        self.good("POST", f"{files}/move", {"from_path": "d/two", "to_path": "d/three"})
        while self.message("FileEvents", watch.message())["type"] != "events":
            pass
        self.good("POST", "/runtime/v1/directories?path=d/e/f")
        self.good("DELETE", f"{files}?path=d")

    def drive_sandboxes(self):
        made = self.good("POST", "/v1/sandboxes", {
            "timeout": 60.5, "metadata": {"a": "b"}, "envs": {"A": "x", "B": 1, "C": True, "D": None}, "template": "base", "secure": True, "memory_mb": 5,
            "lifecycle": {"on_timeout": "kill", "auto_resume": False}, "allow_internet_access": False, "cpu_count": None})
        one = f"/v1/sandboxes/{made['sandbox']['id']}"
        self.good("POST", "/v1/sandboxes")
        for target in ("/v1/sandboxes", "/v1/sandboxes?limit=1", "/v1/sandboxes?limit=5&next_token=1&query[metadata][a]=b&query[state][]=running", one,
                       f"{one}/snapshots?limit=2", f"{one}/checkpoints", "/v1/sandbox_snapshots?sandbox_id=x&limit=1&next_token=0", "/v1/volumes",
                       "/v1/templates", "/v1/sandbox_templates", "/v1/templates/aliases/base", "/v1/templates/base/tags"):
            self.good("GET", target)
        self.good("POST", f"{one}/resume", {"timeout": None})
        self.good("POST", f"{one}/timeout", {"timeout": 30})
        self.good("DELETE", one)

    def drive_operations(self):
        cat = self.op("spawn", argv=["cat"], stdin="pipe", alias="cat", completion=True, cwd=str(self.work))["process"]["id"]
        self.op("spawn", argv=["sleep", "300"], kind="pty", alias="pty", tag="t", why="w")
        self.op("spawn", argv=["python3", "-c", SERVER], alias="server", lease="awaited")
        self.op("check", argv=["true"])
        self.op("check", mode="shell", command="rm -rf /", agent=None)
        self.op("write_stdin", id=cat, data_base64="eHl6")
        for name, args in (
            ("hold", {"id": cat}), ("note", {"id": cat, "text": "said"}), ("note", {"id": cat, "text": "said", "once": True}), ("reader", {"id": cat, "reader": "me", "cursor": 0}), ("resize", {"id": "alias:pty", "cols": 90, "rows": 30}),
            ("wait_port", {"id": "alias:server", "port": 7999, "timeout_ms": 20000}), ("freeze", {"id": "alias:pty"}), ("thaw", {"id": "alias:pty"}),
            ("signal", {"id": "alias:pty", "signal": "CONT"}), ("keep", {"id": cat, "completion": True}), ("close_stdin", {"id": cat}),
            ("wait", {"id": cat, "output_bytes": 100}), ("read", {"id": cat, "stream": "combined"}), ("read", {"id": cat, "stream": "combined", "times": True}), ("read", {"id": cat, "tail": 2}),
            ("status", {"id": cat}), ("status", {"ids": [cat, "nothing"]}), ("list", {"include_finished": True}), ("list", {"brief": True}), ("completions", {}),
            ("stop", {"id": "alias:pty", "grace_ms": 10}), ("kill", {"id": "alias:server"}), ("release", {"id": cat}), ("gc", {}), ("cancel", {"ids": ["x"]}),
            ("history", {}), ("doctor", {}), ("metrics", {}), ("info", {}), ("list_shells", {}), ("describe", {}),
        ):
            self.op(name, **args)
        session = self.op("session_new", label="s")
        self.op("session_list")
        self.op("session_end", id=session["session"]["id"])
        self.op("agent_add", agent="driven", metadata={"a": "b"}, max_running=3, sandbox={"network": "none"}, limits={"max_pids": 9})
        self.op("agent_add", agent="bare")
        for name in ("agent_show", "agent_set"):
            self.op(name, agent="driven")
        self.op("agent_list")
        token = self.op("token_new", agent="driven", label="t", expires_in_ms=60000)
        self.op("token_list")
        self.op("token_revoke", id=token["id"])
        self.op("agent_remove", agent="driven")
        for name in OPERATORS:
            self.assert_refused(self.request("POST", f"/v1/ops/{name}", {}), 403)

    def drive_refusals(self):
        """Of each route with a token: nothing, a parameter that is none, a thing that is not there."""
        for path, item in self.described.document["paths"].items():
            for method in item:
                if method not in openapi.METHODS or path in ("/mcp", "/v1/ops/shutdown", "/v1/ops/gc") or path.startswith("/v1/events"):
                    continue
                target = path.replace("{id}", "nothing").replace("{name}", "nothing").replace("{alias}", "nothing")
                self.request(method.upper(), target, token=False)
                if method != "delete" or "{" in path:
                    self.request(method.upper(), f"{target}?since=x&limit=x&depth=x&all=x&limit_bytes=x&signal=x&timeout=x&path=nothing",
                                 b"[]" if method in ("post", "put") else None, stray=True)

    def test_all_of_them(self):
        self.drive_gateway()
        self.drive_processes()
        self.drive_files()
        self.drive_sandboxes()
        self.drive_operations()
        self.drive_refusals()
        self.assertEqual("\n".join(sorted(set(self.wrong))), "")
        told = {(method.upper(), path) for path, item in self.described.document["paths"].items() for method in item if method in openapi.METHODS}
        self.assertEqual(told - self.described.done, {("POST", f"/v1/ops/{name}") for name in OPERATORS})

    def test_the_measure_finds_faults(self):
        """One planted at a time: what is told wrongly does not go through."""
        answer = json.dumps({"sandboxes": [], "next_token": None}).encode()
        check = self.described.check
        self.assertEqual(check("GET", "/v1/sandboxes?limit=1", None, 200, "application/json", answer), [])
        for case in (
            ("GET", "/v1/sandboxes?limit=x", None, 200, "application/json", answer),
            ("GET", "/v1/sandboxes?other=1", None, 200, "application/json", answer),
            ("GET", "/v1/sandboxes", None, 202, "application/json", answer),
            ("GET", "/v1/sandboxes", None, 200, "text/plain", answer),
            ("GET", "/v1/sandboxes", None, 200, "application/json", b"{}"),
            ("GET", "/v1/sandboxes", None, 400, "application/json", b"{}"),
            ("POST", "/v1/sandboxes/x/timeout", b'{"timeout": "x"}', 200, "application/json", b'{"sandbox": {}}'),
        ):
            self.assertNotEqual(check(*case), [], case)


if __name__ == "__main__":
    unittest.main()

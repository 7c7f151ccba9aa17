"""/mcp as a part of the gateway: connections that are used again, clients that go, a gateway that stops."""

import json
import os
import signal
import unittest

from lib.gateway import GatewayCase
from lib.procs import wait_until

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
TYPES = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class McpCase(GatewayCase):
    def modern(self, method, number=1, meta=None, **params):
        """(headers, body) of a request."""
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} | ({"Mcp-Name": params["name"]} if "name" in params else {})
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params | {"_meta": META | (meta or {})}}
        return self.gateway.headers(more=TYPES | headers), json.dumps(message).encode()

    def tool(self, name, number=1, meta=None, **arguments):
        return self.modern("tools/call", number, meta, name=name, arguments=arguments)

    def connect(self):
        connection = self.gateway.connect()
        self.addCleanup(connection.close)
        return connection

    def post(self, request, connection=None):
        headers, body = request
        return (connection or self.connect()).request("POST", "/mcp", headers, body)

    def open_session(self):
        """The headers of a legacy client's further requests."""
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
        answer = self.post((self.gateway.headers(more=TYPES), json.dumps(message).encode()))
        self.assertEqual(answer.status, 200, answer.body)
        return self.gateway.headers(more=TYPES | {"Mcp-Session-Id": answer.headers["mcp-session-id"]})

    @staticmethod
    def legacy_tool(name, number, **arguments):
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return json.dumps(message).encode()

    def running(self, why):
        rows = self.request("POST", "/v1/ops/list", {}).json()["processes"]
        return [row["id"] for row in rows if row.get("why") == why and row["state"] == "running"]


class Connections(McpCase):
    def test_a_connection_serves_one_request_after_another(self):
        connection = self.connect()
        for number in range(20):
            answer = self.post(self.tool("list_processes", number), connection)
            self.assertEqual((answer.status, answer.json()["id"]), (200, number))
        answer = self.post(self.tool("run_command", 20, {"progressToken": "t"}, command="echo hi"), connection)
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.post(self.modern("tools/list", 21), connection).json()["id"], 21)

    def test_requests_that_come_together_are_answered_in_order(self):
        connection = self.connect()
        for number in range(10):
            connection.send_request("POST", "/mcp", *self.tool("run_command", number, command=f"echo {number}"))
        for number in range(10):
            answer = connection.read_response("POST").json()
            self.assertEqual((answer["id"], answer["result"]["structuredContent"]["stdout"]), (number, f"{number}\n"))

    def test_the_same_id_on_two_connections_is_two_requests(self):
        first, second = self.connect(), self.connect()
        first.send_request("POST", "/mcp", *self.tool("run_command", 7, command="sleep 0.2; echo one"))
        second.send_request("POST", "/mcp", *self.tool("run_command", 7, command="echo two"))
        self.assertEqual(second.read_response("POST").json()["result"]["structuredContent"]["stdout"], "two\n")
        self.assertEqual(first.read_response("POST").json()["result"]["structuredContent"]["stdout"], "one\n")

    def test_a_stream_says_that_it_must_not_be_buffered(self):
        headers, body = self.tool("run_command", 1, {"progressToken": 5}, command="sleep 0.2")
        answer = self.post((headers, body))
        self.assertEqual(answer.headers["content-type"], "text/event-stream")
        self.assertEqual(answer.headers["x-accel-buffering"], "no")
        last = [line for line in answer.body.decode().splitlines() if line.startswith("data: ")][-1]
        self.assertEqual(json.loads(last.removeprefix("data: "))["result"]["structuredContent"]["exit_code"], 0)

    def test_calls_whose_clients_have_gone_hold_up_nobody(self):
        """More of them than are carried out at a time, while the keeper does not answer: in the legacy era they go on without their clients."""
        headers = self.open_session()
        os.kill(self.gateway.keeper_pid, signal.SIGSTOP)
        try:
            connections = [self.connect() for _ in range(60)]
            for number, connection in enumerate(connections):
                connection.send_request("POST", "/mcp", headers, self.legacy_tool("list_processes", number))
            self.assertEqual(self.request("GET", "/healthz").status, 200)
            for connection in connections:
                connection.close()
            for _ in range(3):
                self.assertEqual(self.request("GET", "/healthz").status, 200)
        finally:
            os.kill(self.gateway.keeper_pid, signal.SIGCONT)
        self.assertEqual(self.post(self.tool("list_processes")).status, 200)
        self.assertEqual(self.post((headers, self.legacy_tool("list_processes", 1000))).status, 200)

    def test_a_session_that_is_ended_takes_its_requests_with_it(self):
        headers = self.open_session()
        connection = self.connect()
        connection.send_request("POST", "/mcp", headers, self.legacy_tool("run_command", 1, command="sleep 1000", why="of a session"))
        wait_until(lambda: self.running("of a session"), "it runs")
        self.assertEqual(self.connect().request("DELETE", "/mcp", headers).status, 204)
        self.assertEqual(connection.read_response("POST").status, 202)
        wait_until(lambda: not self.running("of a session"), "it has ended")


class Stop(McpCase):
    own = True

    def test_what_is_being_answered_is_answered(self):
        connection = self.connect()
        connection.send_request("POST", "/mcp", *self.tool("run_command", 1, command="touch began; until [ -e go ]; do sleep 0.05; done; echo late"))
        wait_until((self.work / "began").exists, "it runs")
        idle = self.connect()
        self.post(self.tool("list_processes"), idle)
        os.kill(self.gateway.process.pid, signal.SIGTERM)
        self.assertTrue(idle.ended())
        (self.work / "go").touch()
        answer = connection.read_response("POST")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["connection"], "close")
        self.assertEqual(answer.json()["result"]["structuredContent"]["stdout"], "late\n")


if __name__ == "__main__":
    unittest.main()

"""MCP and tools on a gateway without memory at one moment, or again and again: clients hear of it, the gateway lives on, and what it does next
is as always."""

import json
import unittest

from lib.gateway_faults import GatewayFaultCase
from lib.http_client import Ended, HttpViolation

FAILURES = (Ended, HttpViolation, OSError)
MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
BOTH = {"Accept": "application/json, text/event-stream"}
STATUSES = (None, 200, 202, 204, 400, 404, 405, 500, 503)


class McpFaultTest(GatewayFaultCase):
    def ask(self, gateway, method, target, body=None, headers=None):
        """The answer, or None where the connection was ended; whatever comes must be an answer that clients know."""
        try:
            answer = gateway.request(method, target, body, headers=BOTH | (headers or {}))
        except FAILURES:
            return None
        self.assertIn(answer.status, STATUSES, answer.body)
        return answer

    def modern(self, gateway, method, meta=None, **params):
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} | ({"Mcp-Name": params["name"]} if "name" in params else {})
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": META | (meta or {})}}
        return self.ask(gateway, "POST", "/mcp", message, headers)

    def talk(self, gateway):
        self.modern(gateway, "tools/list")
        for meta in ({}, {"progressToken": 7}):
            self.modern(gateway, "tools/call", meta, name="run_command", arguments={"command": "echo hi; sleep 0.1"})
        self.modern(gateway, "resources/list")
        self.ask(gateway, "POST", "/v1/tools/run_command", {"command": "echo hi"})
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        opened = self.ask(gateway, "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening})
        session = opened and opened.headers.get("mcp-session-id")
        if session:
            headers = {"Mcp-Session-Id": session}
            self.ask(gateway, "POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
            self.ask(gateway, "POST", "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_processes", "arguments": {}}}, headers)
            self.ask(gateway, "DELETE", "/mcp", headers=headers)

    def works(self, gateway):
        answer = self.ask(gateway, "POST", "/v1/tools/run_command", {"command": "echo well"})
        return bool(answer) and answer.status == 200 and json.loads(answer.body)["stdout"] == "well\n"

    def test_one_allocation_fails(self):
        for number in range(40, 340, 17):
            with self.subTest(number=number):
                gateway = self.failing(f"alloc:{number}")
                self.survives(gateway)
                # The one that fails may come as late as here.
                self.assertIn(True, [self.works(gateway) for _ in range(2)])

    def test_allocations_fail_again_and_again(self):
        for number in range(60, 120, 20):
            with self.subTest(number=number):
                gateway = self.failing(f"alloc:{number}:41")
                self.survives(gateway)
                self.survives(gateway)


if __name__ == "__main__":
    unittest.main()

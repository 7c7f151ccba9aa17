"""docs/MCP.md: what is to be pasted into hosts is well-formed, and starts a server that works."""

import json
import re
import tomllib
import unittest

from lib.cli import CliCase
from lib.place import COOP, REPOSITORY

TEXT = (REPOSITORY / "docs" / "MCP.md").read_text()
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}


def configurations():
    """(command, args) of every block."""
    for kind, block in re.findall(r"```(json|toml)\n(.*?)```", TEXT, re.S):
        value = json.loads(block) if kind == "json" else tomllib.loads(block)
        servers = value.get("mcpServers") or value.get("servers") or value.get("mcp_servers")
        for server in servers.values():
            yield server["command"], server["args"]


class DocsTest(CliCase):
    def test_what_is_pasted_starts_a_server(self):
        found = list(configurations())
        self.assertGreaterEqual(len(found), 7)
        for command, args in {(command, tuple(args)) for command, args in found}:
            with self.subTest(args=args):
                self.assertEqual(command, COOP.name)
                words = [str(self.place.work) if word.startswith(("/home/you", "${")) else word for word in args]
                out, _ = self.coop(*words, data=json.dumps(INITIALIZE).encode() + b"\n")
                self.assertEqual(json.loads(out)["result"]["serverInfo"]["name"], "coop")

    def test_every_tool_is_named(self):
        out, _ = self.coop("tool", "--list", "--json")
        for tool in json.loads(out)["tools"]:
            self.assertIn(f"`{tool['name']}`", TEXT)


if __name__ == "__main__":
    unittest.main()

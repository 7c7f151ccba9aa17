"""What a person configured for a door bounds every argument that comes through it: in every family of tools, on stdio and over HTTP, and
in the operations themselves. Each attempt is looked at from outside: what it would leave behind must not be there."""

import base64
import itertools
import json
import subprocess
import unittest

from lib.cli import CliCase
from lib.gateway import GatewayCase
from lib.http_client import HttpConnection
from lib.mcp import StdioPeer
from lib.mcp_http import HttpPeer
from lib.place import COOP, patience
from lib.tools import ERROR, ToolCase

numbers = itertools.count(1)

# What could be asked for, in the words of all APIs; a tool takes those that its schema has.
WIDER = {
    "sandbox_profile": ["unrestricted", "worktree"],
    "sandbox": [
        {"profile": "full"},
        {"profile": "workspace-write"},
        {"profile": "privileged"},
        {"profile": "workspace-write", "allow_write": ["OUTSIDE"]},
        {"profile": "workspace-write", "workspace": "OUTSIDE"},
        {"workspace": "OUTSIDE"},
        {"allow_write": ["OUTSIDE"]},
        {"allow_write": ["/"]},
        {"require": [], "profile": "full"},
        {"profile": "full", "network": "host", "home": "cow", "root": "host"},
    ],
}


def starters(tools):
    """Rows of the table that start something. A new tool that takes a command is found by what it takes."""
    found = []
    for tool in tools:
        names = set(tool["inputSchema"].get("properties", {}))
        for choice in tool["inputSchema"].get("anyOf", []) + tool["inputSchema"].get("oneOf", []):
            names |= set(choice.get("properties", {}))
        if names & {"command", "argv", "args", "shell"}:
            found.append((tool["name"], names))
    return found


def commands(name, names, script):
    """Arguments that make the tool run the script, in each form that it has."""
    if "command" in names:
        yield {"command": script}
        yield {"command": script, "mode": "shell"}
    if "argv" in names:
        yield {"argv": ["sh", "-c", script]}
    if "args" in names:
        yield {"command": "sh", "args": ["-c", script]}
    if "shell" in names and "command" not in names:
        yield {"shell": script}


def widened(names, outside):
    """One wider argument each, those first that the schema has; then all of them, as somebody tries who does not read it."""
    for field, values in WIDER.items():
        for value in values:
            yield {field: json.loads(json.dumps(value).replace("OUTSIDE", str(outside)))}
    yield {"cwd": str(outside)}
    yield {"env": {"COOP_TOKEN": "", "COOP_SOCKET": ""}, "cwd": str(outside)}


class Attempts:
    """Calls every tool that starts something with every wider argument, and looks at what came of it."""

    def attempt_all(self, tools, call, outside, inside):
        """`call(name, args)` gives the text of the answer. Nothing may be made in either folder."""
        names = starters(tools)
        self.assertLessEqual({"run_command", "process.spawn", "process.exec", "open_shell"} & {tool["name"] for tool in tools},
                             {name for name, _ in names})
        tried = 0
        for name, properties in names:
            for wider in widened(properties, outside):
                number = next(numbers)
                script = f"touch {outside}/made-{number} {inside}/made-{number}"
                for command in commands(name, properties, script):
                    answer = call(name, command | wider)
                    tried += 1
                    self.assertEqual([path.name for path in outside.iterdir()], [], (name, command, wider, answer))
                    self.assertEqual([path.name for path in inside.iterdir() if path.name.startswith("made")], [], (name, command, wider, answer))
        return tried


class StdioCeilings(Attempts, CliCase):
    def setUp(self):
        super().setUp()
        self.outside = self.place.dir / "outside"
        self.outside.mkdir()
        self.stderr = open(self.place.dir / "mcp.stderr", "ab")
        self.addCleanup(self.stderr.close)

    def serve(self, *options, **env):
        peer = StdioPeer(self.env | env, self.place.work, options, self.stderr)
        self.addCleanup(peer.close)
        return peer

    def test_no_tool_leaves_read_only(self):
        peer = self.serve("--tools", "all", "--profile", "read-only")
        tools = peer.call("tools/list")["tools"]
        tried = self.attempt_all(tools, lambda name, args: peer.tool(name, **args).value, self.outside, self.place.work)
        self.assertGreater(tried, 60)

    def test_the_refusal_names_field_and_ceiling(self):
        peer = self.serve("--tools", "harn", "--profile", "read-only")
        for name in ("process.spawn", "process.exec", "run_command"):
            result = peer.tool(name, argv=["touch", f"{self.outside}/made"], sandbox_profile="unrestricted")
            self.assertTrue(result.is_error, result)
            self.assertIn("permission_denied", json.dumps(result.value))
            self.assertIn("sandbox.profile full is more than is allowed here: read-only", json.dumps(result.value))
        self.assertEqual(list(self.outside.iterdir()), [])

    def test_without_a_profile_the_usual_one_is_the_most(self):
        """Whoever wants a model to choose `unrestricted` says so."""
        peer = self.serve("--tools", "harn")
        result = peer.tool("process.exec", argv=["touch", f"{self.outside}/made"], sandbox_profile="unrestricted")
        self.assertIn("workspace-write", json.dumps(result.value))
        self.assertEqual(list(self.outside.iterdir()), [])
        self.assertFalse(peer.tool("process.exec", argv=["touch", "made"], sandbox_profile="worktree").is_error)
        self.assertTrue((self.place.work / "made").exists())
        peer = self.serve("--tools", "harn", "--profile", "full")
        peer.tool("process.exec", argv=["touch", f"{self.outside}/made"], sandbox_profile="unrestricted")
        self.assertTrue((self.outside / "made").exists())

    def test_a_profile_of_the_operator(self):
        """Its parts are the ceiling, as those of an agent would be; other profiles of his are no way around it."""
        self.place.conf.write_text(
            "[profile tight]\nbase = workspace-write\nnetwork = none\nprotect = keep\nmax_pids = 50\n"
            f"[profile loose]\nbase = full\nnew_privileges = yes\n[profile other]\nbase = workspace-write\nallow_write = {self.outside}\nprotect_only = x\n"
        )
        (self.place.work / "keep").mkdir()
        peer = self.serve("--tools", "all", "--profile", "tight")
        self.assertFalse(peer.tool("run_command", command="touch made").is_error)
        self.assertTrue(peer.tool("run_command", command="touch keep/made").is_error)
        self.assertFalse((self.place.work / "keep" / "made").exists())
        for profile in ("unrestricted", "loose", "other"):
            peer.tool("process.exec", argv=["sh", "-c", f"touch keep/made {self.outside}/made"], sandbox_profile=profile)
            self.assertFalse((self.place.work / "keep" / "made").exists())
            self.assertEqual(list(self.outside.iterdir()), [])

    def test_no_workspace_holds_for_agents_too(self):
        self.serve("--agent", "main/bound").tool("run_command", command="touch first")
        self.assertTrue((self.place.work / "first").exists())
        peer = self.serve("--agent", "main/bound", "--no-workspace")
        result = peer.tool("run_command", command="touch second")
        self.assertTrue(result.is_error, result)
        self.assertFalse((self.place.work / "second").exists())

    def test_a_workspace_of_an_agent_that_was_named(self):
        """It is one of the agent's, or a part of one; a folder elsewhere is no setup."""
        (self.place.work / "part").mkdir()
        self.serve("--agent", "main/parts").tool("run_command", command="true")
        peer = self.serve("--agent", "main/parts", "--workspace", str(self.place.work / "part"))
        peer.tool("run_command", command="touch inside; touch ../beside")
        self.assertTrue((self.place.work / "part" / "inside").exists())
        self.assertFalse((self.place.work / "beside").exists())
        peer = self.serve("--agent", "main/parts", "--workspace", str(self.outside))
        self.assertEqual(peer.process.wait(patience(30)), 1)

    def test_shells_of_elsewhere_take_no_input(self):
        """What a person runs without a sandbox is listed, and read; it is not driven through a door that has one."""
        self.coop("run", "true")
        wide = self.client().call("spawn", argv=["sh"], kind="pty", sandbox={"profile": "full"})["process"]["id"]
        pipe = self.client().call("spawn", argv=["sh"], stdin="pipe", sandbox={"profile": "full"})["process"]["id"]
        peer = self.serve("--tools", "all", "--profile", "read-only")
        script = f"touch {self.outside}/made\n"
        for name, args in (
            ("shell_write", {"session_id": wide, "input": script}),
            ("shell_batch", {"session_id": wide, "commands": [script]}),
            ("shell_batch", {"session_id": wide, "steps": [{"send": script}]}),
            ("shell_expect", {"session_id": wide, "input": script, "pattern": "x", "timeout_ms": 100}),
            ("write_stdin", {"pid": pipe, "input": script}),
            ("write_stdin", {"pid": wide, "input": script}),
        ):
            result = peer.tool(name, **args)
            self.assertTrue(result.is_error, (name, result))
        refused = peer.tool("write_stdin", pid=pipe, input=script)
        self.assertEqual(refused["code"], "permission_denied", refused)
        # Input is taken in order: had any of it come, it would be carried out before this.
        for process in (wide, pipe):
            self.client().call("write_stdin", data=b"exit 0\n", id=process)
            self.client().call("wait", id=process)
        self.assertEqual(list(self.outside.iterdir()), [])

    def test_own_shells_of_an_earlier_server_go_on(self):
        """The same configuration reaches them again."""
        peer = self.serve()
        shell = peer.tool("open_shell")["session_id"]
        peer.close()
        peer = self.serve()
        self.assertFalse(peer.tool("shell_write", session_id=shell, input="touch made; exit\n").is_error)
        peer.tool("wait_for_process", pid=shell)
        self.assertTrue((self.place.work / "made").exists())


class ToolCeilings(Attempts, ToolCase):
    def test_no_tool_leaves_the_workspace(self):
        """`coop tool` in each form, for the families that name a profile."""
        outside = self.place.dir / "outside"
        outside.mkdir()
        for name in ("process.exec", "process.spawn", "run_command"):
            for profile in ("unrestricted",):
                code, result = self.tool_json(name, {"argv": ["touch", f"{outside}/made"], "sandbox_profile": profile},
                                              options=("--profile", "workspace-write"))
                self.assertEqual(code, ERROR, result)
                self.assertIn("sandbox.profile full is more than is allowed here: workspace-write", json.dumps(result))
        self.assertEqual(list(outside.iterdir()), [])

    def test_private_keepers_are_bound(self):
        outside = self.place.dir / "outside"
        outside.mkdir()
        peer = StdioPeer(self.env, self.place.work, ("--private", "--tools", "harn", "--profile", "read-only"), None)
        self.addCleanup(peer.close)
        peer.tool("process.exec", argv=["touch", f"{outside}/made"], sandbox_profile="unrestricted")
        self.assertEqual(list(outside.iterdir()), [])


class HttpCeilings(Attempts, GatewayCase):
    options = ("--profile", "read-only")

    def setUp(self):
        super().setUp()
        self.outside = self.gateway.place.dir / f"outside{next(numbers)}"
        self.outside.mkdir()

    def tokens(self):
        yield self.gateway.token
        yield self.gateway.agent_token(f"main/wide{next(numbers)}", workspace=[str(self.outside)], sandbox={"profile": "full"})

    def tool(self, name, args, token):
        return self.request("POST", f"/v1/tools/{name}", args, token=token).body

    def test_no_tool_of_v1_leaves_it(self):
        """With the token of main, and with that of an agent that may have more elsewhere."""
        for token in self.tokens():
            tools = self.request("GET", "/v1/tools", token=token).json()["tools"]
            tried = self.attempt_all(tools, lambda name, args: self.tool(name, args, token), self.outside, self.work)  # noqa: B023
            self.assertGreater(tried, 60)

    def test_no_tool_of_mcp_leaves_it(self):
        for token in self.tokens():
            peer = HttpPeer(self.gateway, token)
            self.addCleanup(peer.close)
            tools = peer.call("tools/list")["tools"]
            self.attempt_all(tools, lambda name, args: peer.tool(name, **args).value, self.outside, self.work)  # noqa: B023

    def test_no_operation_leaves_it(self):
        for token in self.tokens():
            for wider in widened({}, self.outside):
                script = f"touch {self.outside}/made {self.work}/made"
                for command in ({"argv": ["sh", "-c", script]}, {"mode": "shell", "command": script}):
                    response = self.request("POST", "/v1/ops/spawn", command | wider, token=token)
                    if response.status == 200:
                        self.request("POST", "/v1/ops/wait", {"id": response.json()["process"]["id"]}, token=token)
                    self.assertEqual(list(self.outside.iterdir()), [], (wider, response.body))
                    self.assertEqual(list(self.work.glob("made")), [], (wider, response.body))

    def ops(self, name, status=200, token=None, **args):
        response = self.request("POST", f"/v1/ops/{name}", args, token=token)
        self.assertEqual(response.status, status, response.body)
        return response.json()

    def test_the_refusal_names_field_and_ceiling(self):
        for field, most, sandbox in (
            ("sandbox.profile", "read-only", {"profile": "full"}),
            ("sandbox.network", "loopback", {"network": "host"}),
            ("sandbox.profile", "read-only", {"profile": "workspace-write"}),
        ):
            error = self.ops("spawn", 403, argv=["true"], sandbox=sandbox)
            self.assertEqual((error["error"], error["details"]["field"], error["details"]["maximum"]), ("permission_denied", field, most))

    def test_what_must_hold_cannot_be_given_up(self):
        """Tolerated or required by an empty list: what is in force is what the gateway was configured with."""
        plain = set(self.ops("spawn", argv=["true"])["process"]["sandbox"]["require"])
        for args in ({"sandbox": {"tolerate": ["files", "network", "seccomp"]}}, {"sandbox": {"require": []}}):
            record = self.ops("spawn", argv=["true"], **args)["process"]
            self.assertLessEqual(plain, set(record["sandbox"]["require"]), args)

    def test_nothing_hidden_is_had_by_its_name(self):
        """The user may name his credentials; who speaks through a door is not the user."""
        home = self.gateway.place.dir / f"home{next(numbers)}"
        secret = home / ".ssh" / "id_ed25519"
        secret.parent.mkdir(parents=True)
        secret.write_text("the-secret")
        base = {"argv": ["cat", str(secret)], "base_env": {"HOME": str(home), "PATH": "/usr/bin:/bin"}}
        asked = [{}, {"cwd": str(secret.parent)}]
        for path in (secret, secret.parent, home, home.parent):
            asked.append({"sandbox": {"root": "minimal", "allow_read": [str(path)]}})
            asked.append({"sandbox": {"root": "minimal", "allow_read": [str(path)]}, "cwd": str(secret.parent)})
        for more in asked:
            with self.subTest(more=more):
                answer = self.request("POST", "/v1/ops/spawn", base | more)
                if answer.status == 200:
                    waited = self.request("POST", "/v1/ops/wait", {"id": answer.json()["process"]["id"], "output_bytes": 1000})
                    self.assertNotIn("the-secret", base64.b64decode(waited.json().get("data", {}).get("stdout", "")).decode())
                    self.assertNotEqual(waited.json()["process"]["exit"].get("code"), 0)

    def test_agents_that_are_made_have_no_more(self):
        """An agent, its settings and its token are no way around what bounds who makes it."""
        name = f"way{next(numbers)}"
        for settings in ({"sandbox": {"profile": "full"}}, {"sandbox": {"network": "host"}}, {"sandbox": {"profile": "workspace-write"}},
                         {"sandbox": {"require": []}}):  # fmt: skip
            error = self.ops("agent_add", 400, agent=name, **settings)
            self.assertEqual(error["error"], "invalid_input", error)
        root = self.work / name
        root.mkdir()
        self.ops("agent_add", agent=name, workspace=[str(root)])
        self.ops("agent_set", 400, agent=name, sandbox={"profile": "full"})
        token = self.ops("token_new", agent=name)["token"]
        for wider in widened({}, self.outside):
            response = self.request("POST", "/v1/ops/spawn", {"argv": ["touch", f"{root}/made", f"{self.outside}/made"], **wider}, token=token)
            if response.status == 200:
                self.request("POST", "/v1/ops/wait", {"id": response.json()["process"]["id"]}, token=token)
            self.assertEqual([*self.outside.iterdir(), *root.iterdir()], [], (wider, response.body))
        self.ops("spawn", 403, token=token, argv=["true"], sandbox={"network": "host"})

    def test_the_ceiling_is_not_to_be_had_by_clients(self):
        self.ops("ceiling", 404, sandbox={"profile": "full"})

    def test_input_of_what_runs_elsewhere(self):
        with self.gateway.keeper() as keeper:
            process = keeper.call("spawn", argv=["sh"], stdin="pipe", sandbox={"profile": "full"})["process"]["id"]
            error = self.request("POST", "/v1/ops/write_stdin", {"id": process, "data_base64": "dHJ1ZQo="})
            self.assertEqual((error.status, error.json()["error"]), (403, "permission_denied"), error.body)
            keeper.call("kill", id=process)


class FolderCeilings(GatewayCase):
    """--workspace bounds what main may change."""

    def ops(self, name, status=200, **args):
        response = self.request("POST", f"/v1/ops/{name}", args)
        self.assertEqual(response.status, status, response.body)
        return response.json()

    def test_no_other_folder(self):
        outside = self.gateway.place.dir / "outside"
        outside.mkdir()
        link = self.work / "link"
        link.symlink_to(outside)
        for sandbox in ({"workspace": str(outside)}, {"allow_write": [str(outside)]}, {"workspace": str(link)}, {"profile": "full"}):
            response = self.request("POST", "/v1/ops/spawn", {"argv": ["touch", f"{outside}/made"], "sandbox": sandbox})
            self.assertIn(response.status, (400, 403), response.body)
        self.assertEqual(list(outside.iterdir()), [])
        inside = self.work / "part"
        inside.mkdir()
        record = self.ops("spawn", argv=["touch", "made"], sandbox={"workspace": str(inside)})["process"]
        self.ops("wait", id=record["id"])
        self.assertTrue((inside / "made").exists())

    def test_no_agent_for_another_folder(self):
        outside = self.gateway.place.dir / "elsewhere"
        outside.mkdir()
        error = self.ops("agent_add", 400, agent="reach", workspace=[str(outside)])
        self.assertEqual(error["details"]["field"], "workspace")
        with self.gateway.keeper() as keeper:
            keeper.call("agent_add", agent="main/there", workspace=[str(outside)])
        self.ops("token_new", 403, agent="there")
        self.ops("agent_add", agent="here", workspace=[str(self.work)])
        self.assertTrue(self.ops("token_new", agent="here")["token"])


class Unbound(GatewayCase):
    def test_where_nobody_configured_anything_the_agent_is_the_bound(self):
        """The user's own token may what he may himself."""
        place = self.gateway.place
        process = subprocess.Popen([COOP, "serve", "--json", "--listen", "127.0.0.1:0"], cwd=place.work, env=place.env({"COOP_DATA": str(place.dir / "data")}),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            ready = json.loads(process.stdout.readline())
            port = int(ready["url"].rpartition(":")[2])
            with HttpConnection(("127.0.0.1", port), f"127.0.0.1:{port}") as connection:
                asked = json.dumps({"argv": ["true"], "sandbox": {"profile": "full"}}).encode()
                headers = self.gateway.headers(more={"Content-Type": "application/json"})
                response = connection.request("POST", "/v1/ops/spawn", headers, asked)
                self.assertEqual(response.status, 200, response.body)
        finally:
            process.terminate()
            process.wait(patience(30))
            process.stdout.close()


if __name__ == "__main__":
    unittest.main()

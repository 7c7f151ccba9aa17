"""The official TypeScript client, both packages, on both transports: what real hosts see."""

import json

from lib import json_schema
from lib.official import ClientError, OfficialCase

LEGACY, MODERN = "2025-11-25", "2026-07-28"
PIN = {"pin": MODERN}
TRANSPORTS = ("stdio", "http")
BACKGROUND = {"wait": False, "open_stdin": True}


class VersionsTest(OfficialCase):
    def ends_at(self, transport, mode, version):
        client, found = self.client("v2", transport, mode)
        self.assertEqual(found["version"], version, mode)
        self.assertEqual(found["server"]["name"], "coop")
        self.assertIn("tools", found["capabilities"])
        self.assertIn("run_command", found["instructions"])
        self.assertIn("list_processes", [tool["name"] for tool in client.do("tools")["tools"]])
        result = client.call("run_command", command="echo hello")
        self.assertEqual(result["structuredContent"]["stdout"], "hello\n", result)

    def test_m001_stdio_legacy(self):
        self.ends_at("stdio", "legacy", LEGACY)

    def test_m001_stdio_auto(self):
        self.ends_at("stdio", "auto", MODERN)

    def test_m001_stdio_pin(self):
        self.ends_at("stdio", PIN, MODERN)

    def test_m002_http_legacy(self):
        self.ends_at("http", "legacy", LEGACY)

    def test_m002_http_auto(self):
        self.ends_at("http", "auto", MODERN)

    def test_m002_http_pin(self):
        self.ends_at("http", PIN, MODERN)

    def test_m003_older_package(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                client, found = self.client("v1", transport)
                self.assertEqual(found["version"], LEGACY)
                self.assertIn("run_command", [tool["name"] for tool in client.do("tools")["tools"]])
                result = client.call("run_command", command="echo hello")
                self.assertEqual(result["structuredContent"]["stdout"], "hello\n", result)
                uris = [item["uri"] for item in client.do("resources")["resources"]]
                self.assertIn("hello", client.do("read", uri=[uri for uri in uris if uri.endswith("/output")][0])["contents"][0]["text"])


class EveryTool:
    """Calls every tool that is listed, in an order in which each has something to do. Results go through the client, which refuses one that is not
    as the tool's schema says."""

    def __init__(self, test, client):
        self.test, self.client = test, client
        self.tools = {tool["name"]: tool for tool in client.do("tools")["tools"]}
        self.called = set()

    def call(self, name, failing=False, **arguments):
        self.called.add(name)
        try:
            result = self.client.call(name, **arguments)
        except ClientError as error:
            raise AssertionError(f"{name} {arguments}: {error}") from None
        value = result["structuredContent"]
        self.test.assertEqual(bool(result.get("isError")), failing, (name, arguments, result))
        self.test.assertEqual([block["type"] for block in result["content"]], ["text"], name)
        self.test.assertEqual(json.loads(result["content"][0]["text"]), value, name)
        self.test.assertEqual(json_schema.faults(value, self.tools[name]["outputSchema"]), [], (name, value))
        return value

    def processes(self):
        done = self.call("run_command", command="printf 'one\\ntwo\\n'; echo bad >&2; exit 3", failing=True)
        self.call("read_process_output", pid=done["pid"], grep="two")
        self.call("read_process_output", pid=done["pid"], head_tail=True, length=4)
        self.call("read_process_output", pid=done["pid"], reader="me")
        self.call("release_process", pid=done["pid"])
        cat = self.call("run_command", command="cat", **BACKGROUND)["pid"]
        self.call("write_stdin", pid=cat, input="hello\n")
        self.call("wait_any", conditions=[{"pid": cat, "output": "hello"}])
        self.call("process_stats", pid=cat)
        self.call("list_processes", include_finished=True, last_line=True)
        self.call("wait_for_process", pid=cat, timeout_ms=100, failing=True)
        self.call("close_stdin", pid=cat)
        self.call("wait_for_process", pid=cat)
        for name in ("kill_process", "stop_process"):
            sleep = self.call("run_command", command="sleep 300", wait=False)["pid"]
            self.call(name, pid=sleep)
        self.call("wait_any", conditions=[{"pid": sleep, "exit": True}, {"pid": cat, "silent_ms": 1}])

    def shells(self):
        shell = self.call("open_shell")["session_id"]
        self.call("shell_write", session_id=shell, input="echo a-$((1+1))\n")
        self.call("shell_expect", session_id=shell, pattern="a-2")
        self.call("shell_write", session_id=shell, input="echo b-$((1+2))\n")
        self.call("shell_expect_cases", session_id=shell, cases=[{"pattern": "b-3", "tag": "ok"}])
        self.call("shell_batch", session_id=shell,
                  steps=[{"type": "send", "input": "echo c-$((2+2))\n"}, {"type": "expect", "pattern": "c-4"}])
        self.call("shell_read", session_id=shell)
        self.call("read_screen", pid=shell)
        self.call("shell_signal", session_id=shell)
        self.call("shell_expect", session_id=shell, pattern="never comes", timeout_secs=0, failing=True)
        self.call("close_shell", session_id=shell)

    def harn(self):
        done = self.call("run_command", mode="shell", command="echo out; echo err >&2")
        self.call("read_command_output", path=done["output_path"])
        first = self.call("run_command", mode="shell", command="echo ready; sleep 300", background=True)["handle_id"]
        self.call("wait_command_output", handle_id=first, pattern="ready")
        self.call("read_command_output", handle_id=first)
        self.call("list_handles")
        self.call("wait_command", handle_id=first, timeout_ms=0)
        self.call("cancel_handle", handle_id=first)
        second = self.call("run_command", mode="shell", command="echo done", background=True)["handle_id"]
        self.call("wait_command", handle_id=second)
        self.call("next_completions")
        self.call("process.exec", command="echo out; echo err >&2")
        spawned = self.call("process.spawn", mode="shell", command="echo out; sleep 300")["handle_id"]
        self.call("process.poll", handle_id=spawned)
        self.call("process.kill", handle_id=spawned)
        self.call("process.wait", handle_id=spawned)
        self.call("process.release", handle_id=spawned)

    def errors(self):
        """What a model gets wrong is a result as well."""
        self.call("process_stats", pid="coop-nothing", failing=True)
        self.call("run_command", command="/no/such/program", args=["x"], failing=True)
        self.call("read_process_output", pid="x", nonsense=1, failing=True)


class ResultsTest(OfficialCase):
    def every_tool(self, package, transport, mode, options=()):
        client, _ = self.client(package, transport, mode, options)
        every = EveryTool(self, client)
        every.processes()
        every.shells()
        every.errors()
        if "all" in options:
            every.harn()
        self.assertEqual(every.called, set(every.tools))

    def test_m031_stdio_legacy(self):
        self.every_tool("v2", "stdio", "legacy")

    def test_m031_stdio_modern(self):
        self.every_tool("v2", "stdio", PIN)

    def test_m031_stdio_with_all_tools(self):
        self.every_tool("v2", "stdio", PIN, ("--tools", "all"))

    def test_m031_http_legacy(self):
        self.every_tool("v2", "http", "legacy")

    def test_m031_http_modern(self):
        self.every_tool("v2", "http", PIN)

    def test_m031_older_package(self):
        self.every_tool("v1", "stdio", None)

    def test_the_client_refuses_a_result_that_is_not_as_its_schema_says(self):
        """Else the tests above would prove nothing."""
        client, _ = self.client("v2", "stdio", PIN)
        client.do("tools")
        client.do("forge", name="list_processes")
        with self.assertRaises(ClientError) as caught:
            client.call("list_processes")
        self.assertIn("schema", caught.exception.message.lower())

    def test_progress_reaches_the_client(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                client, _ = self.client("v2", transport, PIN)
                client.do("tools")
                result = client.do("call", name="run_command", progress=True, arguments={"command": "echo a; sleep 1; echo b; sleep 1"})
                self.assertFalse(result.get("isError"), result)
                steps = [note["progress"] for note in client.do("notes")]
                self.assertTrue(steps)
                self.assertEqual(steps, sorted(set(steps)))

"""Tools over MCP on both transports: the list, and what is wrong with a call (M-029, M-030, M-032); and a sample of what each kind of
tool must do."""

import json
import re

from lib import json_schema
from lib.mcp import INVALID_PARAMS, LEGACY
from lib.mcp_case import HttpCase, StdioCase, plain

NAME = re.compile(r"^[A-Za-z0-9_.-]{1,128}$")
LOOK, MOVE, START, ADJUST, END = ((True, False, True, False), (True, False, False, False), (False, True, False, True),
                                  (False, False, True, False), (False, True, True, False))
DEFAULT = {
    "close_shell": END, "close_stdin": END, "kill_process": END, "list_processes": LOOK, "open_shell": START, "process_stats": LOOK,
    "read_process_output": LOOK, "read_screen": LOOK, "release_process": END, "run_command": START, "shell_batch": START, "shell_expect": MOVE,
    "shell_expect_cases": START, "shell_read": MOVE, "shell_signal": END, "shell_write": START, "stop_process": END, "wait_any": LOOK,
    "wait_for_process": LOOK, "write_stdin": START,
}
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class ListOver:
    """tools/list."""

    def test_m029_the_list_is_always_the_same(self):
        """100 calls, several connections, every revision: the same bytes, apart from what is the era's own."""
        first = plain(self.peer.call("tools/list")["tools"])
        for _ in range(100):
            self.assertEqual(plain(self.peer.call("tools/list")["tools"]), first)
        for version in (None, *LEGACY):
            self.assertEqual(plain(self.connect(version).call("tools/list")["tools"]), first, version)
        self.background("exec sleep 300")
        self.assertEqual(plain(self.other_agent().call("tools/list")["tools"]), first)

    def test_m029_in_alphabetical_order(self):
        names = [tool["name"] for tool in self.peer.call("tools/list")["tools"]]
        self.assertEqual(names, sorted(names))
        self.assertEqual(set(names), set(DEFAULT))

    def test_m030_every_tool_is_described_in_full(self):
        """Name, title, description, both schemas of plain words, and four annotations that say what it does."""
        for tool in self.peer.call("tools/list")["tools"]:
            with self.subTest(tool=tool["name"]):
                self.assertRegex(tool["name"], NAME)
                self.assertTrue(tool["title"].strip())
                self.assertGreater(len(tool["description"]), 20)
                for name in ("inputSchema", "outputSchema"):
                    self.assertEqual(tool[name]["type"], "object")
                    self.assertEqual(json_schema.faults_of_schema(tool[name]), [])
                annotations = tool["annotations"]
                self.assertLessEqual(set(annotations), {*HINTS, "title"})
                self.assertEqual(tuple(annotations[hint] for hint in HINTS), DEFAULT[tool["name"]])
                self.assertNotIn("execution", tool)

    def test_the_list_is_cheap(self):
        """Under 4,000 tokens, counted as four bytes each."""
        listed = json.dumps(self.peer.call("tools/list")["tools"], ensure_ascii=False, separators=(",", ":"))
        self.assertLess(len(listed.encode()) / 4, 4000)

    def test_cursors(self):
        """The list fits into one page; a cursor that nobody gave is refused."""
        self.assertNotIn("nextCursor", self.peer.call("tools/list"))
        for cursor in ("x", "", 7, "AAAA", None):
            self.refused(INVALID_PARAMS, None, "tools/list", {"cursor": cursor})


class ErrorsOver:
    """What a model does wrong is told to it; what a program does wrong is an error of the protocol (M-032)."""

    def test_m032_unknown_tools_and_malformed_calls(self):
        """-32602."""
        for peer in self.eras():
            for params in ({"name": "no_such_tool", "arguments": {}}, {"name": "", "arguments": {}}, {"name": "LIST_PROCESSES"},
                           {"arguments": {}}, {}, {"name": 7}, {"name": None}, {"name": "list_processes", "arguments": []}, {"name": "list_processes", "arguments": "x"},
                           {"name": "list_processes", "arguments": 7}):
                with self.subTest(params=params):
                    if self.transport == "http" and peer.modern and not isinstance(params.get("name"), str):
                        continue  # the header cannot say the same
                    self.refused(INVALID_PARAMS, None, "tools/call", params, peer)

    def test_arguments_may_be_left_out(self):
        for peer in self.eras():
            self.assertFalse(peer.submit_tool("list_processes").result().is_error)
            self.assertFalse(peer.submit_tool("list_processes", {"include_finished": None}).result().is_error)

    def test_m032_unknown_process(self):
        """Every tool that takes one says so, and what to call."""
        for peer in self.eras():
            for tool, more in (("kill_process", {}), ("process_stats", {}), ("wait_for_process", {}), ("read_process_output", {}),
                               ("read_screen", {}), ("write_stdin", {"input": "x"}), ("close_stdin", {}), ("stop_process", {})):
                for pid in ("psh-0-0", "nonsense", 4194305, ""):
                    with self.subTest(tool=tool, pid=pid):
                        result = self.bad(tool, None, peer, pid=pid, **more)
                        self.assertIn(result.get("code"), ("no_such_process", "invalid_input") if pid == "" else ("no_such_process",), result)
                        if pid:
                            self.assertIn("list_processes", result["advice"])
            for tool, more in (("shell_read", {}), ("shell_write", {"input": "x"}), ("shell_expect", {"pattern": "x"}), ("shell_signal", {}),
                               ("close_shell", {}), ("shell_batch", {"steps": [{"type": "send", "input": "x"}]}),
                               ("shell_expect_cases", {"cases": [{"pattern": "x", "tag": "ok"}]})):
                self.bad(tool, "no_such_process", peer, session_id="psh-0-0", **more)

    def test_m032_bad_values(self):
        """Each names the argument and what would be right."""
        process = self.background("exec sleep 300")
        shell = self.ok("open_shell")["session_id"]
        for tool, arguments, words in (
            ("kill_process", {"pid": process, "signal": "SIGNOPE"}, ("signal",)),
            ("wait_for_process", {"pid": process, "timeout_ms": 99}, ("timeout_ms", "100")),
            ("run_command", {"command": "true", "timeout_secs": 0}, ("timeout_secs", "1")),
            ("run_command", {"command": "true", "timeout_secs": 3601}, ("timeout_secs", "3600")),
            ("run_command", {"command": ""}, ("command",)),
            ("shell_expect", {"session_id": shell, "pattern": "x", "timeout_secs": 301}, ("timeout_secs", "300")),
            ("shell_expect", {"session_id": shell, "pattern": "(unclosed"}, ("pattern", "position")),
            ("shell_expect_cases", {"session_id": shell, "cases": []}, ("cases",)),
            ("shell_expect_cases", {"session_id": shell, "cases": [{"pattern": "x", "tag": "maybe"}]}, ("tag",)),
            ("wait_any", {"conditions": []}, ("conditions",)),
            ("wait_any", {"conditions": [{"pid": process, "port": 0}]}, ("port",)),
            ("read_process_output", {"pid": process, "stream": "stdlog"}, ("stream",)),
            ("read_process_output", {"pid": process, "offset": -1}, ("offset",)),
            ("open_shell", {"cols": 0}, ("cols",)),
            ("run_command", {"command": "true", "args": [], "argv": ["true"]}, ("arg",)),
        ):
            with self.subTest(tool=tool, arguments=arguments):
                result = self.bad(tool, "invalid_input", **arguments)
                for word in words:
                    self.assertIn(word, result["message"] + str(result.get("details", "")))

    def test_m032_unknown_arguments_are_named(self):
        """A typing error is not ignored; the message has the wrong name and the right ones."""
        for peer in self.eras():
            result = self.bad("run_command", "invalid_input", peer, command="true", timeout_sec=5)
            self.assertIn("timeout_sec", result["message"])
            self.assertIn("timeout_secs", result["message"])
            result = self.bad("list_processes", "invalid_input", peer, finished=True)
            self.assertIn("finished", result["message"])

    def test_failures_have_the_normal_body(self):
        """Carried out, and the answer is negative: isError with all fields."""
        result = self.bad("run_command", command="sh", args=["-c", "echo out; echo err >&2; exit 7"])
        self.assertEqual((result["exit_code"], result["stdout"], result["stderr"], result["end_cause"], result["timed_out"]),
                         (7, "out\n", "err\n", "self_exit", False))
        self.assertNotIn("code", result.value)

    def test_a_program_that_is_not_there(self):
        result = self.bad("run_command", "spawn_failed", command="/no/such/program", args=[])
        self.assertIn("/no/such/program", result["message"])


class SampleOver:
    """One of each kind of the tools' own cases, as a model would call them."""

    def test_b132_list_processes(self):
        process = self.background("exec sleep 300", why="to be listed")
        shell = self.ok("open_shell")
        rows = {row["id"]: row for row in self.ok("list_processes")["processes"]}
        self.assertEqual(set(rows), {process, shell["session_id"]})
        self.assertLessEqual({"pid", "id", "command", "agent", "cpu_pct", "mem_bytes", "state", "label", "started_at"}, set(rows[process]))
        self.assertEqual((rows[process]["state"], rows[process]["agent"]), ("running", "self"))
        self.assertIn("to be listed", str(rows[process]))
        self.ok("stop_process", pid=process, grace_ms=0)
        self.assertNotIn(process, self.listed())
        self.assertIn(process, self.listed(include_finished=True))

    def test_b133_kill_process(self):
        process = self.background("exec sleep 300")
        pid = self.record(process)["pid"]
        result = self.ok("kill_process", pid=pid)
        self.assertEqual((result["id"], result["signal"], result["sent"]), (process, "SIGTERM", True))
        self.assertEqual(self.ok_or_failed("wait_for_process", pid=process)["status"], "signaled(15)")
        self.bad("kill_process", "not_running", pid=process)

    def ok_or_failed(self, tool, **arguments):
        result = self.any(tool, **arguments)
        self.assertNotIn("code", result.value, result)
        return result

    def test_b134_process_stats(self):
        process = self.background("exec sleep 300")
        stats = self.ok("process_stats", pid=process)
        self.assertLessEqual({"pid", "id", "command", "args", "agent", "started_at", "status", "cpu_usage_ns", "cpu_pct", "memory_bytes",
                              "cgroup_path", "has_captured_output"}, set(stats.value))
        self.assertEqual((stats["command"], stats["args"][0], stats["status"]), ("sh", "-c", "running"))

    def test_b135_wait_for_process(self):
        process = self.background("until [ -e go ]; do sleep 0.05; done")
        result = self.bad("wait_for_process", pid=process, timeout_ms=100)
        self.assertEqual((result["timed_out"], result["status"]), (True, "running"))
        (self.work / "go").touch()
        result = self.ok("wait_for_process", pid=process)
        self.assertEqual((result["status"], result["exit_code"], result["timed_out"]), ("exited(0)", 0, False))

    def test_b137_run_command(self):
        result = self.ok("run_command", command="echo", args=["a b", "c"])
        self.assertEqual((result["stdout"], result["stderr"], result["exit_code"], result["signal"]), ("a b c\n", "", 0, None))
        result = self.bad("run_command", command="sh", args=["-c", "echo begun; exec sleep 300"], timeout_secs=1)
        self.assertEqual((result["timed_out"], result["exit_code"], result["end_cause"], result["stdout"]), (True, -1, "timed_out", "begun\n"))

    def test_b138_background(self):
        result = self.ok("run_command", command="sh", args=["-c", "echo hi; exec sleep 300"], wait=False)
        self.assertEqual((result["status"], bool(result["hint"])), ("running", True))
        self.ok("wait_any", conditions=[{"pid": result["pid"], "output": "hi"}])
        self.assertEqual(self.ok("read_process_output", pid=result["pid"])["content"], "hi\n")
        self.ok("stop_process", pid=result["id"], grace_ms=0)
        self.assertEqual(self.ok("read_process_output", pid=result["id"])["eof"], True)

    def test_b142_shell_expect(self):
        shell = self.ok("open_shell")["session_id"]
        self.ok("shell_write", session_id=shell, input="echo v1.2\n")
        result = self.ok("shell_expect", session_id=shell, pattern=r"v(\d+)\.(\d+)")
        self.assertEqual((result["matched"], result["captures"]), (True, ["v1.2", "1", "2"]))
        result = self.bad("shell_expect", session_id=shell, pattern="never there", timeout_secs=0)
        self.assertEqual((result["matched"], result["reason"]), (False, "timeout"))

    def test_b144_shell_batch(self):
        shell = self.ok("open_shell")["session_id"]
        steps = [{"type": "send", "input": "echo one\n"}, {"type": "expect", "pattern": "never", "timeout_secs": 0}, {"type": "send", "input": "x"}]
        result = self.bad("shell_batch", session_id=shell, steps=steps)
        self.assertEqual((result["completed"], result["total"], len(result["steps"])), (1, 3, 2))

    def test_b145_close_shell(self):
        shell = self.ok("open_shell")["session_id"]
        result = self.ok("close_shell", session_id=shell)
        self.assertEqual((result["closed"], result["survivors"]), (True, []) if isinstance(result["survivors"], list) else (True, 0))
        self.bad("close_shell", "no_such_process", session_id=shell)

    def test_b044_wait_any(self):
        first, second = self.background("exec sleep 300"), self.background("until [ -e go ]; do sleep 0.05; done; echo found it; exec sleep 300")
        conditions = [{"pid": first, "exit": True}, {"pid": second, "output": r"found \w+", "regex": True}]
        pending = self.peer.submit_tool("wait_any", {"conditions": conditions, "timeout_ms": 40000})
        self.listed()
        (self.work / "go").touch()
        result = pending.result()
        self.assertEqual((result["index"], result["id"], result["timed_out"]), (1, second, False))
        result = self.any("wait_any", conditions=conditions[:1], timeout_ms=100)
        self.assertEqual(result["timed_out"], True)

    def test_stdin_stop_and_release(self):
        process = self.ok("run_command", command="cat", wait=False, open_stdin=True)["id"]
        self.assertEqual(self.ok("write_stdin", pid=process, input="hällo\n")["bytes"], 7)
        self.ok("wait_any", conditions=[{"pid": process, "output": "hällo"}])
        self.assertEqual(self.ok("close_stdin", pid=process)["closed"], True)
        self.assertEqual(self.ok("wait_for_process", pid=process)["exit_code"], 0)
        self.bad("write_stdin", "closed", pid=process, input="x")
        self.assertEqual(self.ok("release_process", pid=process)["released"], True)
        other = self.background("trap '' TERM; echo up; while :; do sleep 1; done")
        self.ok("wait_any", conditions=[{"pid": other, "output": "up"}])
        result = self.ok("stop_process", pid=other, grace_ms=100)
        self.assertEqual((result["state"], result["signal"]), ("signaled", "SIGKILL"))


class StdioListTest(ListOver, StdioCase):
    pass


class HttpListTest(ListOver, HttpCase):
    pass


class StdioErrorsTest(ErrorsOver, StdioCase):
    pass


class HttpErrorsTest(ErrorsOver, HttpCase):
    pass


class StdioSampleTest(SampleOver, StdioCase):
    pass


class HttpSampleTest(SampleOver, HttpCase):
    pass

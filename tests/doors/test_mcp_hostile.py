"""A model's mistakes, and worse, on both transports: each is told how to mend it; nothing crashes, nothing hangs."""

import json
import random
import time

from lib import json_schema
from lib.mcp import McpError, check_message
from lib.mcp_case import HttpCase, StdioCase
from lib.place import patience, sanitized

MIB = 1 << 20
VALUES = (None, True, False, 0, -1, 1, 2**31, 2**53, -(2**63), 1e300, 0.5, "", "x", "é\u202e", "x" * 300, [], [1], ["x"], [[]], {}, {"a": 1},
          {"pid": {"pid": 1}})
# They explode in matchers that try everything.
EXPLODING = ("(a+)+$", "(a|aa)+$", "(.*a){20}", "(a?){50}a{50}", "((a+)*)*b", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$",
             ".*.*.*.*.*=.*", "(a{1,100}){1,100}b", "(?:(?:a*)*)*$")
# They are no patterns of ours.
REFUSED = ("(", "[", "a{2,1}", "(?=a)", "(?<=a)b", r"(a)\1", "(?R)", "(?P<n>a)(?P=n)", "*", "(?C1)", "(*ACCEPT)", r"\C", "x" * 5000,
           "(" * 2000 + ")" * 2000)


def wrong_type(value, schema):
    """Whether a value is of none of the types; null means absent everywhere."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return value is not None and not any(json_schema.TYPES[kind](value) for kind in kinds)


class Hostile:
    def alive(self):
        """It still works, and it is still the same server."""
        self.assertIn("processes", self.ok("list_processes").value)

    def told(self, result, *words):
        """An error that says what to mend."""
        self.assertTrue(result.is_error, result)
        self.assertLess(result.cost, 4000)
        self.assertTrue(result.get("advice"), result)
        for word in words:
            self.assertIn(word, result["message"])

    def test_every_argument_with_every_kind_of_value(self):
        """Of every tool, one argument after the other: an answer each, an error that names the argument where its type is wrong."""
        process = self.background("exec sleep 300")
        right = {"pid": process, "session_id": process, "command": "true", "input": "x", "pattern": "x", "cases": [{"pattern": "x", "tag": "ok"}],
                 "steps": [{"type": "send", "input": "x"}], "conditions": [{"pid": process, "exit": True}]}
        for tool in self.peer.call("tools/list")["tools"]:
            properties = tool["inputSchema"].get("properties", {})
            given = {name: right[name] for name in tool["inputSchema"].get("required", [])}
            for name, schema in properties.items():
                # Of processes and signals a number is taken as well; the schema has one type, as some hosts take no list of them.
                numbers = name in ("pid", "session_id", "signal")
                for value in (value for value in VALUES if wrong_type(value, schema) and not (numbers and type(value) is int)):
                    with self.subTest(tool=tool["name"], name=name, value=value):
                        result = self.bad(tool["name"], "invalid_input", **given | {name: value})
                        self.assertIn(name, result["message"] + str(result.get("details", "")))
        self.alive()

    def test_missing_arguments_are_named(self):
        for tool in self.peer.call("tools/list")["tools"]:
            for name in tool["inputSchema"].get("required", []):
                result = self.bad(tool["name"], "invalid_input")
                self.assertTrue(any(needed in result["message"] for needed in tool["inputSchema"]["required"]), result)
                others = {other: "psh-0-0" for other in tool["inputSchema"]["required"] if other != name}
                self.told(self.bad(tool["name"], "invalid_input", **others))

    def test_unknown_arguments_of_every_tool(self):
        for tool in self.peer.call("tools/list")["tools"]:
            result = self.bad(tool["name"], "invalid_input", no_such_argument=1)
            self.assertIn("no_such_argument", result["message"])

    def test_nul_everywhere(self):
        """A NUL cannot be in a path, an argument or a name; it is refused, not cut off."""
        process = self.background("exec sleep 300")
        shell = self.ok("open_shell")["session_id"]
        for tool, arguments in (
            ("run_command", {"command": "echo\0x", "args": []}), ("run_command", {"command": "echo", "args": ["a\0b"]}),
            ("run_command", {"command": "true", "env": {"A": "a\0b"}}),
            ("run_command", {"command": "true", "cwd": "/tmp\0x"}), ("kill_process", {"pid": process + "\0"}),
            ("kill_process", {"pid": process, "signal": "SIGTERM\0"}), ("open_shell", {"shell": "/bin/sh\0x"}), ("shell_read", {"session_id": shell + "\0"}),
            ("read_process_output", {"pid": process, "reader": "a\0b"}),
        ):
            with self.subTest(tool=tool, arguments=arguments):
                self.told(self.bad(tool, None, **arguments))
        result = self.any("write_stdin", pid=shell, input="\0")
        self.assertFalse(result.is_error and result["code"] != "invalid_input", result)
        for name in ("list\0processes", "list_processes\0"):
            with self.assertRaises(McpError):
                self.peer.call("tools/call", {"name": name, "arguments": {}})
        self.alive()

    def test_huge_strings(self):
        """A mebibyte where a word was wanted: refused, without sending it back."""
        big = "x" * MIB
        process = self.background("exec sleep 300")
        for tool, arguments in (
            ("kill_process", {"pid": big}), ("kill_process", {"pid": process, "signal": big}), ("shell_expect", {"session_id": big, "pattern": "x"}),
            ("shell_expect", {"session_id": process, "pattern": big}), ("run_command", {"command": "true", "cwd": "/" + big}),
            ("run_command", {"command": "true", big: 1}), ("read_process_output", {"pid": process, "reader": big}), ("open_shell", {"shell": big}),
            ("wait_any", {"conditions": [{"pid": process, "output": big * 2}]}), ("run_command", {"command": "true", "env": {"A" * 100000: "x"}}),
            ("read_process_output", {"pid": process, "stream": big}), ("run_command", {"command": big, "args": []}),
        ):
            with self.subTest(tool=tool, names=list(arguments)[:3]):
                self.told(self.bad(tool, None, **arguments))
        self.alive()

    def test_10_mb_of_arguments(self):
        """In one string, in many, and as a deep or wide object; where the transport takes so much, the tool refuses it in words."""
        huge = "y" * (10 * MIB)
        for arguments in ({"command": "echo", "args": [huge]}, {"command": "echo", "args": ["z"] * 2_000_000}, {"command": huge},
                          {"command": "true", "stdin": huge},
                          {"command": "true", "env": {f"N{number}": "v" * 1000 for number in range(10000)}}, {"command": "true", "why": huge}):
            with self.subTest(arguments=str(arguments)[:60]):
                try:
                    self.told(self.bad("run_command", None, **arguments))
                except McpError as error:
                    self.assertEqual(error.status, 413, error)
                except Exception as error:
                    # A gateway may refuse the length before the body has come.
                    self.assertEqual(self.transport, "http", error)
                    self.assertNotIsInstance(error, AssertionError)
        shell = self.ok("open_shell")["session_id"]
        if self.transport == "stdio":
            self.told(self.bad("shell_write", None, session_id=shell, input=huge))
        self.alive()

    def test_wide_lists(self):
        process = self.background("exec sleep 300")
        shell = self.ok("open_shell")["session_id"]
        self.told(self.bad("wait_any", None, conditions=[{"pid": process, "exit": True}] * 20000))
        self.told(self.bad("shell_batch", None, session_id=shell, steps=[{"type": "send", "input": ""}] * 20000))
        self.told(self.bad("shell_expect_cases", None, session_id=shell, cases=[{"pattern": "x", "tag": "ok"}] * 20000))
        self.alive()

    def test_exploding_patterns_have_an_end(self):
        """Over text that is made for them: a match, no match, or a refusal, but soon, and nobody else waits meanwhile."""
        shell = self.ok("open_shell")["session_id"]
        self.ok("shell_write", session_id=shell, input="stty -echo; printf 'a%.0s' $(seq 30000); echo X\n")
        self.ok("shell_expect", session_id=shell, pattern="aX", timeout_secs=60)
        process = self.background("head -c 300000 /dev/zero | tr '\\0' a; echo; exec sleep 300")
        self.wait_record(process, lambda record: record["streams"]["stdout"]["end"] == 300001, "all is written")
        for pattern in EXPLODING:
            with self.subTest(pattern=pattern):
                pendings = [
                    self.peer.submit_tool("wait_any", {"conditions": [{"pid": process, "output": pattern, "regex": True}], "timeout_ms": 500}),
                    self.peer.submit_tool("shell_expect", {"session_id": shell, "pattern": pattern, "timeout_secs": 0}),
                    self.peer.submit_tool("read_process_output", {"pid": process, "grep": pattern}),
                ]
                other = self.connect()
                self.ok("list_processes", other)
                for pending in pendings:
                    result = self.check_result(self.peer, pending.result(timeout=60))
                    self.assertTrue(not result.is_error or result.get("code") in (None, "invalid_input"), result)
        self.alive()

    def test_patterns_that_are_none(self):
        """Refused with the reason and its position."""
        shell = self.ok("open_shell")["session_id"]
        process = self.background("echo x; exec sleep 300")
        for pattern in REFUSED:
            with self.subTest(pattern=pattern[:40]):
                steps = [{"type": "send", "input": "touch never\n"}, {"type": "expect", "pattern": pattern}]
                for tool, arguments in (
                    ("shell_expect", {"session_id": shell, "pattern": pattern, "timeout_secs": 0}),
                    ("wait_any", {"conditions": [{"pid": process, "output": pattern, "regex": True}], "timeout_ms": 100}),
                    ("read_process_output", {"pid": process, "grep": pattern}),
                    ("shell_expect_cases", {"session_id": shell, "cases": [{"pattern": pattern, "tag": "ok"}], "timeout_secs": 0}),
                    ("shell_batch", {"session_id": shell, "steps": steps}),
                ):
                    result = self.bad(tool, None, **arguments)
                    self.told(result)
                    self.assertIn(result["code"], ("invalid_input", "too_large"))
        self.ok("shell_write", session_id=shell, input="echo a''b\n")
        self.ok("shell_expect", session_id=shell, pattern="ab")
        self.assertFalse((self.work / "never").exists(), "a batch was begun that could not be carried out")

    def test_signals_and_names_of_all_kinds(self):
        process = self.background("exec sleep 300")
        for name in ("TERM", "sigterm", "SIGTERM ", "15", 15, "SIG15", "SIGRTMIN+99", 0, -1, 65, 99999, "SIGKILL;rm", "KILL\n"):
            result = self.any("kill_process", pid="psh-0-0", signal=name)
            self.assertTrue(result.is_error)
            self.assertIn(result["code"], ("invalid_input", "no_such_process"))
        self.assertEqual(self.record(process)["state"], "running")

    def test_texts_that_are_odd(self):
        """Whatever letters: arguments arrive as they were sent."""
        for text in ("a\nb", "quote ' \" \\ $HOME `id`", "\u202etxt", "😀" * 100, "\ud7ff\ue000", "tab\t\r", "-n", "--help", "%s%n", "\u2028"):
            result = self.ok("run_command", command="printf", args=["%s", text])
            self.assertEqual(self.exact(self.ok("read_process_output", pid=result["id"], encoding="base64"), "content"), text.encode())

    def test_random_requests(self):
        """A thousand requests put together at random from right and wrong parts: one answer each."""
        rng = random.Random(7)
        tools = [tool["name"] for tool in self.peer.call("tools/list")["tools"]]
        names = ["pid", "session_id", "command", "args", "wait", "timeout_ms", "timeout_secs", "input", "pattern", "cases", "steps", "conditions",
                 "signal", "stream", "offset", "length", "grace_ms", "secret", "x"]
        process = self.background("exec sleep 300")
        values = [*VALUES, process, "psh-0-0", "true", [{"type": "send", "input": "x"}], [{"pid": process, "exit": True}],
                  [{"pattern": "x", "tag": "ok"}]]
        for _ in range(1000 if self.transport == "stdio" else 300):
            tool = rng.choice(tools)
            arguments = {rng.choice(names): rng.choice(values) for _ in range(rng.randrange(4))}
            arguments.setdefault("timeout_ms" if rng.random() < 0.5 else "timeout_secs", 1)
            result = self.peer.submit_tool(tool, arguments).result()
            if result.is_error and "code" in result.value:
                self.assertNotEqual(result["code"], "internal", (tool, arguments, result))
        self.alive()


def broken(line, rng):
    """A line with some bytes changed, taken out and put in."""
    line = bytearray(line)
    for _ in range(rng.randrange(1, 6)):
        at, what = rng.randrange(len(line)), rng.randrange(3)
        if what == 0:
            line[at] = rng.randrange(256)
        elif what == 1:
            del line[at : at + rng.randrange(20)]
        else:
            line[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(10)))
    return line


class StdioHostileTest(Hostile, StdioCase):
    def test_lines_at_random(self):
        """Thousands of broken lines: one answer each at most, never an end, and memory stays."""
        peer = self.peer
        rng = random.Random(11)
        good = json.dumps(peer.message("tools/call", {"name": "list_processes", "arguments": {}}, number=1)).encode()
        seen = []
        peer._take = lambda found: (check_message(found), seen.append(found["id"]))
        for number in range(3000):
            peer.write_raw(bytes(broken(good, rng)).replace(b"\n", b" ") + b"\n")
            if number % 100 == 99:
                peer.write(peer.message("tools/call", {"name": "list_processes", "arguments": {}}, number=f"sync{number}"))
                deadline = time.monotonic() + patience(30)
                while f"sync{number}" not in seen:
                    peer.pump(None, deadline)
        self.assertLessEqual(len(seen), 3030)
        if not sanitized():
            self.assertLess(peer.memory(), 48 * MIB)

    def test_a_child_that_floods_the_terminal(self):
        """Reads of an endless stream of escape sequences stay bounded."""
        shell = self.ok("open_shell")["session_id"]
        self.ok("shell_write", session_id=shell, input="while :; do printf '\\033[2J\\033[H\\033]0;title\\007x\\r'; done\n")
        for _ in range(5):
            self.assertLess(self.ok("shell_read", session_id=shell).cost, 200000)
            self.assertLess(self.ok("read_screen", pid=shell).cost, 20000)
        self.ok("close_shell", session_id=shell, grace_ms=0)


class HttpHostileTest(Hostile, HttpCase):
    def test_the_gateway_is_the_same_afterwards(self):
        pid = self.gateway.pid
        self.test_nul_everywhere()
        self.assertEqual(self.gateway.pid, pid)

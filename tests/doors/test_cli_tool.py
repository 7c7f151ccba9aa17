"""`coop tool`: the tools from a command line."""

import json

from lib.tools import ERROR, FAILURE, OK, ToolCase


class ListTest(ToolCase):
    def test_a_line_for_each(self):
        """Nothing is started for it."""
        for words in (("tool",), ("tool", "--list")):
            lines = self.out(*words).decode().splitlines()
            names = [line.split()[0] for line in lines]
            self.assertEqual(names, sorted(names))
            for name in ("run_command", "list_processes", "open_shell", "wait_any"):
                self.assertIn(name, names)
            for line in lines:
                self.assertRegex(line, r"^[a-z_.]+ +[A-Z][^\n]{10,}$")
        self.assertFalse(self.place.socket.exists())

    def test_as_models_get_them(self):
        tools = self.json("tool", "--list")["tools"]
        self.assertEqual(tools, self.json("tool")["tools"])
        for tool in tools:
            for member in ("name", "title", "description", "inputSchema", "outputSchema", "annotations"):
                self.assertIn(member, tool)
            self.assertTrue(tool["description"].endswith("."), tool["name"])
        by_name = {tool["name"]: tool for tool in tools}
        self.assertEqual(by_name["wait_any"]["inputSchema"]["required"], ["conditions"])
        self.assertEqual(by_name["run_command"]["inputSchema"]["required"], ["command"])

    def test_list_goes_alone(self):
        self.refusal("tool", "--list", "list_processes", code=2)


class ArgumentsTest(ToolCase):
    def call_tool(self, *words, **options):
        out, err = self.coop("tool", *words, code=None, **options)
        self.assertEqual(err, b"")
        return self.code, json.loads(out)

    def test_from_the_command_line(self):
        self.assertEqual(self.call_tool("list_processes", "{}"), (OK, {"processes": []}))
        self.assertEqual(self.call_tool("list_processes", ' { "include_finished" : true }\n'), (OK, {"processes": []}))

    def test_from_stdin(self):
        text = json.dumps({"command": "echo ä"}).encode()
        for words in (("run_command",), ("run_command", "-")):
            code, result = self.call_tool(*words, data=text)
            self.assertEqual((code, result["stdout"]), (OK, "ä\n"))

    def test_nothing_is_no_arguments(self):
        for data in (b"", b" \n"):
            self.assertEqual(self.call_tool("list_processes", data=data), (OK, {"processes": []}))
        self.assertEqual(self.call_tool("list_processes", ""), (OK, {"processes": []}))

    def test_bad_json(self):
        for text in ("{", "nonsense", '{"a":1,}', '{"a":1} x', "7", '"x"', "null", '{"include_finished":true,"include_finished":false}'):
            code, error = self.call_tool("list_processes", text)
            self.assertEqual((code, error["code"]), (ERROR, "invalid_input"), text)
            self.assertTrue(error["message"] and error["advice"])

    def test_what_is_no_object(self):
        code, error = self.call_tool("list_processes", "[]")
        self.assertEqual((code, error["code"]), (ERROR, "invalid_input"))
        self.assertIn("object", error["message"])

    def test_bytes_that_are_no_text(self):
        code, error = self.call_tool("list_processes", data=b'{"include_finished":"\xff"}')
        self.assertEqual((code, error["code"]), (ERROR, "invalid_input"))

    def test_too_much(self):
        """More than is taken is refused, not left out."""
        code, error = self.call_tool("list_processes", data=b" " * ((16 << 20) + 1))
        self.assertEqual((code, error["code"]), (ERROR, "too_large"))

    def test_unknown_tools(self):
        code, error = self.call_tool("no_such_tool", "{}")
        self.assertEqual((code, error["code"]), (ERROR, "invalid_input"))
        self.assertIn("no_such_tool", error["message"])
        self.assertIn("--list", error["advice"])

    def test_unknown_and_missing_arguments_are_named(self):
        code, error = self.call_tool("wait_for_process", '{"pid":"x","timeout":5}')
        self.assertEqual((code, error["code"]), (ERROR, "invalid_input"))
        for word in ("timeout", "timeout_ms", "pid"):
            self.assertIn(word, error["message"])
        error = self.call_tool("wait_for_process", "{}")[1]
        self.assertIn("pid", error["message"])
        self.assertEqual(error["details"]["field"], "pid")

    def test_exit_codes(self):
        self.assertEqual(self.call_tool("run_command", '{"command":"true"}')[0], OK)
        self.assertEqual(self.call_tool("run_command", '{"command":"false"}')[0], FAILURE)
        self.assertEqual(self.call_tool("run_command", '{"command":"/no/such/program"}')[0], ERROR)

    def test_too_many_words(self):
        self.refusal("tool", "list_processes", "{}", "more", code=2)
        self.refusal("tool", "--no-such-option", "list_processes", code=2)


class PlaceTest(ToolCase):
    def run_in(self, command, *options, **args):
        code, result = self.tool("run_command", options=options, command=command, **args)
        return result if code == ERROR else result["stdout"] if code == OK else result["stderr"]

    def test_this_folder_is_the_workspace(self):
        self.assertEqual(self.run_in("touch here; pwd"), f"{self.place.work}\n")
        self.assertTrue((self.place.work / "here").exists())

    def test_another_workspace(self):
        other = self.place.work / "other"
        other.mkdir()
        self.run_in(f"touch {other}/inside", "--workspace", "other")
        self.assertTrue((other / "inside").exists())
        self.run_in(f"touch {self.place.work}/outside", "--workspace", "other")
        self.assertFalse((self.place.work / "outside").exists())

    def test_no_workspace(self):
        self.run_in(f"touch {self.place.work}/here", "--no-workspace")
        self.assertFalse((self.place.work / "here").exists())
        self.refusal("tool", "--no-workspace", "--workspace", ".", "list_processes", "{}", code=2)

    def test_a_workspace_that_is_not_there(self):
        self.assertIn("nowhere", self.refusal("tool", "--workspace", "nowhere", "list_processes", "{}", code=2))

    def test_a_profile(self):
        self.run_in(f"touch {self.place.work}/here", "--profile", "read-only")
        self.assertFalse((self.place.work / "here").exists())
        error = self.run_in("true", "--profile", "no-such-profile")
        self.assertEqual(error["code"], "invalid_input")
        self.assertIn("profile must be", error["message"])

    def test_an_agent_is_made_and_works_here(self):
        self.run_in("touch made", "--agent", "helper")
        self.assertTrue((self.place.work / "made").exists())
        self.assertIn("main/helper", json.dumps(self.json("agent", "show", "helper")))
        self.assertEqual(self.run_in("echo again", "--agent", "helper"), "again\n")

    def test_a_session(self):
        self.ok("list_processes")
        session = self.call("session_new")["session"]
        session = session["id"] if isinstance(session, dict) else session
        code, started = self.tool("run_command", options=("--session", session), command="sleep", args=["300"], wait=False)
        self.assertEqual(code, OK)
        self.assertEqual(self.call("status", id=started["id"])["process"]["session"], session)
        code, error = self.tool("run_command", options=("--session", "ses-999"), command="true")
        self.assertEqual(code, ERROR)
        self.assertIn("session", error["message"])

    def test_a_token(self):
        self.ok("list_processes")
        self.add_agent("below")
        token = self.call("token_new", agent="below")["token"]
        code, result = self.tool_json("run_command", {"command": "echo mine"}, env={**self.env, "COOP_TOKEN": token})
        self.assertEqual((code, result["stdout"]), (OK, "mine\n"))
        out, err = self.coop("tool", "list_processes", "{}", code=ERROR, env={**self.env, "COOP_TOKEN": "x" * 43})
        self.assertTrue(out or err)

    def test_its_environment_is_that_of_a_login(self):
        code, result = self.tool_json("run_command", {"command": "echo $TERM ${COOP_SOCKET-none} ${SECRET-none}"}, env={**self.env, "SECRET": "x"})
        self.assertEqual((code, result["stdout"]), (OK, "xterm none none\n"))


class HelpTest(ToolCase):
    def test_help(self):
        for words in (("help", "tool"), ("tool", "--help")):
            text = self.out(*words).decode()
            for word in ("--agent", "--profile", "--workspace", "--session", "--list", "Exit code"):
                self.assertIn(word, text)

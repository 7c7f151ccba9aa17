"""run_command in its default form: waited for, or left running."""

from lib import procs
from lib.place import moment
from lib.tools import ERROR, FAILURE, OK, ToolCase

COUNT = "i=0; while [ $i -lt {} ]; do echo line $i; i=$((i+1)); done"

CONNECT = "import socket; socket.create_connection(('192.0.2.1', 9), 5)"  # from its own loopback nothing leaves


class WaitingTest(ToolCase):
    def test_b137_both_streams_and_how_it_ended(self):
        result = self.ok("run_command", command="sh", args=["-c", "echo out; echo err >&2"])
        self.assertEqual((result["exit_code"], result["signal"], result["end_cause"], result["timed_out"]), (0, None, "self_exit", False))
        self.assertEqual((result["stdout"], result["stderr"]), ("out\n", "err\n"))
        self.assertEqual((result["stdout_bytes"], result["stdout_truncated"], "stdout_omitted" in result), (4, False, False))
        self.assertIsInstance(result["pid"], int)
        self.assertNotIn("hint", result)

    def test_b137_another_exit_code_is_a_failure(self):
        result = self.failure("run_command", command="echo said; exit 3")
        self.assertEqual((result["exit_code"], result["stdout"], result["stderr"]), (3, "said\n", ""))
        self.assertNotIn("code", result)

    def test_b137_a_signal_has_no_exit_code(self):
        result = self.failure("run_command", command="kill -9 $$")
        self.assertEqual((result["exit_code"], result["signal"], result["timed_out"]), (-1, "SIGKILL", False))
        self.assertTrue(result["end_cause"])

    def test_b137_at_its_time_limit_the_tree_is_killed(self):
        result = self.failure("run_command", command="echo so far; sleep 301 & sleep 300", timeout_secs=moment(1000) // 1000)
        self.assertEqual((result["timed_out"], result["exit_code"], result["end_cause"]), (True, -1, "timed_out"))
        self.assertEqual(result["stdout"], "so far\n")
        self.assertEqual(self.ok("list_processes")["processes"], [])
        self.assertIn("timeout_secs", result["hint"])

    def test_what_ended_stays_readable(self):
        result = self.ok("run_command", command="echo kept")
        for pid in (result["id"], result["pid"]):
            self.assertEqual(self.ok("read_process_output", pid=pid)["content"], "kept\n")

    def test_b041_descendants_that_hold_the_pipe_hold_nobody(self):
        result = self.ok("run_command", command="echo x; sleep 300 & exit 0")
        self.assertEqual((result["exit_code"], result["stdout"]), (0, "x\n"))

    def test_b021_what_is_left_behind_is_told_and_lives_on(self):
        """Also when the connection that started it has gone; the id in the result ends it."""
        result = self.ok("run_command", command="(while [ ! -e go ]; do sleep 0.1; done; echo later; exec sleep 300) & echo x")
        self.assertIn("stop_process", result["hint"])
        self.assertRegex(result["hint"], r"^\d process")
        (self.place.work / "go").touch()
        found = self.ok("wait_any", conditions=[{"pid": result["id"], "output": "later"}])
        self.assertEqual(found["next_offset"], 7)
        self.assertEqual(self.ok("stop_process", pid=result["id"])["survivors"], 0)
        self.assertEqual(self.ok("list_processes")["processes"], [])

    def test_a_caller_that_is_killed_takes_it_along(self):
        process = self.start_tool("run_command", command="echo $$ > up; exec sleep 300")
        procs.wait_until(lambda: (self.place.work / "up").exists(), "it runs")
        process.kill()
        procs.wait_until(lambda: not self.ok("list_processes")["processes"], "it is ended", interval=0.05)

    def test_two_at_a_time(self):
        first = self.start_tool("run_command", command="while [ ! -e go ]; do sleep 0.05; done; echo first")
        self.ok("run_command", command="touch go; echo second")
        self.assertEqual(self.end_tool(first)[1]["stdout"], "first\n")

    def test_why_is_shown_by_the_list(self):
        id = self.ok("run_command", command="sleep", args=["300"], wait=False, why="waits\nfor nothing")["id"]
        (row,) = self.ok("list_processes")["processes"]
        self.assertEqual(row["id"], id)
        self.assertRegex(row["why"], r"^waits.?for nothing$")


class CommandTest(ToolCase):
    def test_a_line_goes_to_a_shell(self):
        self.assertEqual(self.ok("run_command", command="echo a b | tr a-z A-Z; echo $((1+1))")["stdout"], "A B\n2\n")
        self.assertEqual(self.ok("run_command", command="cd /; pwd")["stdout"], "/\n")
        self.assertEqual(self.ok("run_command", command="X=1 sh -c 'echo $X'")["stdout"], "1\n")

    def test_words_of_a_shell_alone_are_lines_too(self):
        """What a shell knows and no folder has: a model cannot tell them apart."""
        for command in ("ulimit", "set", "times", "X=1"):
            self.assertEqual(self.ok("run_command", command=command)["exit_code"], 0)
        self.assertEqual(self.ok("run_command", command="exit")["exit_code"], 0)

    def test_one_word_is_a_program(self):
        id = self.ok("run_command", command="pwd")["id"]
        self.assertEqual(self.call("status", id=id)["process"]["argv"], ["pwd"])

    def test_with_args_nothing_is_interpreted(self):
        self.assertEqual(self.ok("run_command", command="echo", args=["$HOME", "*", "a  b", "", ";"])["stdout"], "$HOME * a  b  ;\n")

    def test_no_args_at_all_is_a_program(self):
        """[] is not the same as left out: the command is then one word."""
        self.assertEqual(self.ok("run_command", command="pwd", args=[])["exit_code"], 0)
        error = self.error("spawn_failed", "run_command", command="echo a", args=[])
        self.assertIn("echo a", error["message"])

    def test_a_program_whose_name_has_a_blank(self):
        program = self.place.work / "my program"
        program.write_text("#!/bin/sh\necho \"$1\"\n")
        program.chmod(0o755)
        self.assertEqual(self.ok("run_command", command="./my program", args=["x"])["stdout"], "x\n")

    def test_spawn_failed(self):
        for args in ({"command": "/no/such/program"}, {"command": "no-such-program", "args": ["x"]}):
            error = self.error("spawn_failed", "run_command", **args)
            self.assertIn(args["command"], error["message"])
            self.assertEqual(error["details"]["errno"], "ENOENT")
        error = self.error("spawn_failed", "run_command", command=str(self.place.work), args=[])
        self.assertEqual(error["details"]["errno"], "EACCES")

    def test_cwd(self):
        (self.place.work / "below").mkdir()
        here = str(self.place.work)
        self.assertEqual(self.ok("run_command", command="pwd")["stdout"], f"{here}\n")
        self.assertEqual(self.ok("run_command", command="pwd", cwd=f"{here}/below")["stdout"], f"{here}/below\n")
        self.assertEqual(self.ok("run_command", command="pwd", cwd="below")["stdout"], f"{here}/below\n")
        code, error = self.tool("run_command", command="pwd", cwd="nowhere")
        self.assertEqual(code, ERROR)
        self.assertIn("nowhere", error["message"])
        self.assertEqual(self.ok("run_command", command="pwd", cwd="/")["stdout"], "/\n")
        self.error("invalid_input", "run_command", command="pwd", cwd=str(self.place.state))

    def test_env(self):
        result = self.ok("run_command", command="echo $ONE; echo ${TWO-none}; test -n \"$PATH\"", env={"ONE": "ä 1", "TWO": ""})
        self.assertEqual(result["stdout"], "ä 1\n\n")
        for env in ({"A=B": "x"}, {"": "x"}, {"A": 7}, ["A=B"], "A=B"):
            error = self.error("invalid_input", "run_command", command="true", env=env)
            self.assertIn("env", error["message"])

    def test_mistakes_are_explained(self):
        for args, word in (
            ({}, "command"), ({"command": ""}, "command"), ({"command": 7}, "command"), ({"command": ["ls"]}, "command"), ({"command": "true", "args": "x"}, "args"),
            ({"command": "true", "args": [1]}, "args"), ({"command": "true", "timeout_secs": 0}, "timeout_secs"), ({"command": "true", "timeout_secs": 3601}, "3600"),
            ({"command": "true", "timeout_secs": 1.5}, "timeout_secs"), ({"command": "true", "wait": "false"}, "wait"), ({"command": "true", "max_bytes": 0}, "max_bytes"),
            ({"command": "true", "timeout": 5}, "timeout_secs"), ({"command": "true", "open_stdin": True}, "wait"), ({"command": "a\0b"}, "NUL"),
            ({"command": "true", "args": ["a\0b"]}, "NUL"),
        ):
            error = self.error("invalid_input", "run_command", **args)
            self.assertIn(word, error["message"], args)

    def test_null_means_left_out(self):
        """Some clients send every argument."""
        names = ("args", "wait", "timeout_secs", "cwd", "env", "stdin", "open_stdin", "why", "max_bytes")
        self.assertEqual(self.ok("run_command", command="echo a b", **dict.fromkeys(names))["stdout"], "a b\n")

    def test_b107_facts_of_a_failure_are_told(self):
        """What the sandbox had to do with it; of a success there are none."""
        result = self.failure("run_command", command="python3", args=["-c", CONNECT])
        self.assertTrue(any("network" in fact for fact in result["facts"]), result)
        self.assertNotIn("facts", self.ok("run_command", command="true"))


class BackgroundTest(ToolCase):
    def test_b138_answers_at_once_and_can_be_used_afterwards(self):
        result = self.ok("run_command", command="echo up; while [ ! -e go ]; do sleep 0.05; done; echo down; exit 4", wait=False)
        self.assertEqual(result["status"], "running")
        for name in ("wait_for_process", "read_process_output", "stop_process"):
            self.assertIn(name, result["hint"])
        self.ok("wait_any", conditions=[{"pid": result["pid"], "output": "up"}])
        (self.place.work / "go").touch()
        self.assertEqual(self.ok("wait_for_process", pid=result["id"])["exit_code"], 4)
        self.assertEqual(self.ok("read_process_output", pid=result["pid"])["content"], "up\ndown\n")

    def test_b138_no_limit_unless_given(self):
        free = self.ok("run_command", command="sleep", args=["300"], wait=False)["id"]
        self.assertIsNone(self.call("status", id=free)["process"]["limits"]["timeout_ms"])
        bound = self.ok("run_command", command="sleep", args=["300"], wait=False, timeout_secs=1)["id"]
        result = self.ok("wait_for_process", pid=bound)
        self.assertEqual((result["end_cause"], result["exit_code"], result["signal"]), ("timed_out", None, "SIGKILL"))

    def test_b138_a_program_that_is_not_there(self):
        self.error("spawn_failed", "run_command", command="/no/such/program", wait=False)
        self.assertEqual(self.ok("list_processes")["processes"], [])


class StdinTest(ToolCase):
    def test_b054_without_input_it_reads_end_of_file(self):
        self.assertEqual(self.ok("run_command", command="cat")["stdout"], "")

    def test_input_is_given_whole(self):
        self.assertEqual(self.ok("run_command", command="cat", stdin="a\nß")["stdout"], "a\nß")
        text = "0123456789abcde\n" * 60000
        result = self.ok("run_command", command="wc", args=["-c"], stdin=text)
        self.assertEqual(result["stdout"].strip(), str(len(text)))

    def test_empty_input_is_end_of_file(self):
        self.assertEqual(self.ok("run_command", command="cat", stdin="")["stdout"], "")

    def test_input_that_nobody_reads(self):
        self.assertEqual(self.ok("run_command", command="true", stdin="x" * 1000000)["exit_code"], 0)

    def test_too_much_input(self):
        error = self.error("too_large", "run_command", command="cat", stdin="x" * ((1 << 20) + 1))
        self.assertIn("stdin", error["message"])

    def test_open_stdin_takes_more(self):
        id = self.ok("run_command", command="cat", wait=False, open_stdin=True)["id"]
        self.ok("write_stdin", pid=id, input="one\n")
        self.ok("close_stdin", pid=id)
        self.assertEqual(self.ok("wait_for_process", pid=id)["exit_code"], 0)
        self.assertEqual(self.ok("read_process_output", pid=id)["content"], "one\n")

    def test_input_with_open_stdin_comes_first(self):
        id = self.ok("run_command", command="cat", wait=False, open_stdin=True, stdin="first\n")["id"]
        self.ok("write_stdin", pid=id, input="second\n")
        self.ok("close_stdin", pid=id)
        self.ok("wait_for_process", pid=id)
        self.assertEqual(self.ok("read_process_output", pid=id)["content"], "first\nsecond\n")


class OutputTest(ToolCase):
    def test_b032_head_and_tail_with_the_exact_range_between(self):
        result = self.ok("run_command", command=COUNT.format(9000), max_bytes=3000)
        self.check_parts(result, "".join(f"line {i}\n" for i in range(9000)), 3000)

    def test_b032_the_usual_budget(self):
        result = self.ok("run_command", command=COUNT.format(9000))
        self.check_parts(result, "".join(f"line {i}\n" for i in range(9000)), 50000)

    def test_b032_more_than_the_budget_is_not_given(self):
        self.assertIn("50000", self.error("invalid_input", "run_command", command="true", max_bytes=50001)["message"])

    def check_parts(self, result, whole, budget):
        """What is shown and what read_process_output gives for the range that is left out are the whole."""
        omitted = result["stdout_omitted"]
        self.assertEqual((result["stdout_truncated"], result["stdout_bytes"]), (True, len(whole.encode())))
        note = f"[… {omitted['to'] - omitted['from']} bytes left out: offset {omitted['from']} to {omitted['to']} …]\n"
        head, tail = result["stdout"].split(note)
        self.assertLessEqual(len((head + tail).encode()), budget)
        self.assertGreater(len((head + tail).encode()), budget * 3 // 4)
        self.assertTrue(whole.startswith(head) and whole.endswith(tail))
        self.assertEqual((omitted["from"], omitted["to"]), (len(head.encode()), len(whole.encode()) - len(tail.encode())))
        middle, at = "", omitted["from"]
        while at < omitted["to"]:
            part = self.ok("read_process_output", pid=result["id"], offset=at, length=min(65536, omitted["to"] - at))
            middle, at = middle + part["content"], part["next_offset"]
        self.assertEqual(head + middle + tail, whole)
        self.assertEqual(at, omitted["to"])

    def test_b032_characters_are_not_split(self):
        """Whatever the budget, also one that holds no character."""
        for budget in (1, 2, 3, 5, 8, 100, 1001):
            result = self.ok("run_command", command="i=0; while [ $i -lt 400 ]; do printf 'ä€😀'; i=$((i+1)); done", max_bytes=budget)
            self.assertNotIn("\ufffd", result["stdout"], budget)
            omitted = result["stdout_omitted"]
            whole = "ä€😀" * 400
            raw = whole.encode()
            head, tail = raw[: omitted["from"]].decode(), raw[omitted["to"] :].decode()
            self.assertTrue(result["stdout"].startswith(head) and result["stdout"].endswith(tail))
            self.assertLessEqual(len((head + tail).encode()), budget)

    def test_b032_both_streams_have_the_budget(self):
        result = self.ok("run_command", command=f"{{ {COUNT.format(100)}; }} | tee /dev/stderr", max_bytes=300)
        for name in ("stdout", "stderr"):
            self.assertIs(result[f"{name}_truncated"], True)
            self.assertTrue(result[name].startswith("line 0\n") and result[name].endswith("line 99\n"))

    def test_the_error_at_the_end_is_seen(self):
        result = self.failure("run_command", command=f"{COUNT.format(20000)}; echo FAILED here; exit 1")
        self.assertTrue(result["stdout"].endswith("FAILED here\n"))

    def test_p07_escapes_and_progress_are_taken_out(self):
        result = self.ok("run_command", command="printf '\\033[1;31mred\\033[0m\\n 1%%\\r 50%%\\r100%%\\ndone\\r\\n'")
        self.assertEqual(result["stdout"], "red\n100%\ndone\n")

    def test_bytes_that_are_no_text(self):
        result = self.ok("run_command", command="printf 'a\\377\\000b\\n'")
        self.assertIn("\ufffd", result["stdout"])
        self.assertIs(result["stdout_utf8_valid"], False)
        self.assertIn("base64", result["hint"])
        self.assertNotIn("stderr_utf8_valid", result)
        many = self.ok("run_command", command="head -c 100000 /dev/zero | tr '\\0' '\\377'; printf 'ä' >&2")
        self.assertIs(many["stdout_utf8_valid"], False)
        self.assertNotIn("stderr_utf8_valid", many)

    def test_a_flood_is_bounded(self):
        """More than is kept: the end is shown, and what is lost is told."""
        result = self.ok("run_command", command="head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end", timeout_secs=120)
        self.assertEqual(result["stdout_bytes"], 20000005)
        self.assertTrue(result["stdout"].endswith("\nend\n") or result["stdout"].endswith("xend\n"))
        self.assertLess(len(result["stdout"]), 51000)
        self.assertIs(result["stdout_truncated"], True)
        self.assertEqual(result["stdout_omitted"]["from"], 0)
        self.assertRegex(result["stdout"], r"^\[… \d+ bytes left out: offset 0 to \d+, of which \d{8} are lost …\]\n")


class RefusedTest(ToolCase):
    keeper_settings = "max_running=2"

    def test_b080_registry_full(self):
        ids = [self.ok("run_command", command="sleep", args=["300"], wait=False)["id"] for _ in range(2)]
        for wait in (True, False):
            error = self.error("registry_full", "run_command", command="touch marker", wait=wait)
            self.assertIn("2", error["message"])
            self.assertIn("stop_process", error["advice"])
        self.assertFalse((self.place.work / "marker").exists())
        self.ok("stop_process", pid=ids[0])
        self.ok("run_command", command="true")

    def test_what_policy_forbids(self):
        self.ok("list_processes")
        self.call("agent_add", agent="strict", policy={"denied_commands": ["touch"]}, workspace=[str(self.place.work)])
        token = self.call("token_new", agent="strict")["token"]
        code, error = self.tool_json("run_command", {"command": "touch", "args": ["marker"]}, env={**self.env, "COOP_TOKEN": token})
        self.assertEqual((code, error["code"]), (ERROR, "permission_denied"))
        self.assertIn("touch", error["message"])
        self.assertIn("another way", error["advice"])
        self.assertFalse((self.place.work / "marker").exists())
        code, result = self.tool_json("run_command", {"command": "echo", "args": ["fine"]}, env={**self.env, "COOP_TOKEN": token})
        self.assertEqual((code, result["stdout"]), (OK, "fine\n"))
        code, result = self.tool_json("run_command", {"command": "false"}, env={**self.env, "COOP_TOKEN": token})
        self.assertEqual((code, result["exit_code"]), (FAILURE, 1))

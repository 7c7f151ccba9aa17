"""What runs, what it uses, and how it is ended: list_processes, process_stats, kill_process, stop_process, release_process."""

from lib import procs
from lib.tools import ERROR, FAILURE, OK, ToolCase

UNKNOWN = "there is no such process"


class ProcessCase(ToolCase):
    def background(self, *argv, **args):
        """Starts a program that is not waited for; gives its id."""
        return self.ok("run_command", command=argv[0], args=list(argv[1:]), wait=False, **args)["id"]

    def rows(self, **args):
        return self.ok("list_processes", **args)["processes"]

    def wait(self, id):
        return self.ok("wait_for_process", pid=id)

    def as_agent(self, agent, name, **args):
        """Calls a tool as another agent, by a token."""
        if not hasattr(self, "tokens"):
            self.tokens = {}
        if agent not in self.tokens:
            self.tokens[agent] = self.call("token_new", agent=agent)["token"]
        return self.tool_json(name, args, env={**self.env, "COOP_TOKEN": self.tokens[agent]})


class ListTest(ProcessCase):
    def test_b132_nothing_runs(self):
        self.assertEqual(self.ok("list_processes"), {"processes": []})

    def test_b132_live_ones_with_all_fields(self):
        id = self.background("sleep", "300", why="to be seen")
        (row,) = self.rows()
        self.assertEqual((row["id"], row["command"], row["agent"], row["state"]), (id, "sleep 300", "self", "running"))
        self.assertIsInstance(row["pid"], int)
        self.assertIsInstance(row["mem_bytes"], int)
        self.assertRegex(row["started_at"], r"^\d{4}-\d\d-\d\dT")
        self.assertEqual(row["why"], "to be seen")
        self.assertTrue(row["label"])
        self.assertIn("cpu_pct", row)
        self.assertNotIn("end_cause", row)

    def test_b132_shells_are_among_them(self):
        shell = self.ok("open_shell")["session_id"]
        sleep = self.background("sleep", "300")
        self.assertEqual([row["id"] for row in self.rows()], [shell, sleep])

    def test_b132_ended_ones_only_if_asked_for(self):
        good = self.background("true")
        bad = self.background("sh", "-c", "exit 3")
        for id in (good, bad):
            self.wait(id)
        self.assertEqual(self.rows(), [])
        rows = {row["id"]: row for row in self.rows(include_finished=True)}
        self.assertEqual((rows[good]["state"], rows[good]["exit_code"], rows[good]["end_cause"]), ("exited", 0, "self_exit"))
        self.assertEqual((rows[bad]["exit_code"], "ended_at" in rows[bad]), (3, True))

    def test_b132_a_signal_that_ended_one_is_told(self):
        id = self.background("sleep", "300")
        self.ok("stop_process", pid=id)
        (row,) = self.rows(include_finished=True)
        self.assertEqual((row.get("signal"), row["end_cause"], "exit_code" in row), ("SIGTERM", "killed_by_request", False))

    def test_b021_descendants_that_are_left_are_told(self):
        id = self.ok("run_command", command="sleep 300 & echo started")["id"]
        (row,) = self.rows()
        self.assertEqual((row["id"], row["descendants"]), (id, 1))
        self.ok("stop_process", pid=id)
        self.assertEqual(self.rows(), [])

    def test_the_last_line_if_asked_for(self):
        id = self.background("sh", "-c", "printf 'one\\n\\033[31mtwo\\033[0m\\n\\n'; exec sleep 300")
        quiet = self.background("sleep", "300")
        noisy = self.background("sh", "-c", "echo only here >&2; exec sleep 300")
        procs.wait_until(lambda: self.call("status", id=noisy)["process"]["streams"]["stderr"]["end"], "a line on stderr")
        self.ok("wait_any", conditions=[{"pid": id, "output": "two"}])
        self.assertNotIn("last_line", self.rows()[0])
        lines = {row["id"]: row["last_line"] for row in self.rows(last_line=True)}
        self.assertEqual(lines, {id: "two", quiet: "", noisy: "only here"})

    def test_the_last_line_of_a_terminal(self):
        shell = self.ok("open_shell")["session_id"]
        self.ok("shell_batch", session_id=shell, steps=[{"type": "send", "input": "PS1=; echo la''st; cat\n"}, {"type": "expect", "pattern": "last"}])
        (row,) = self.rows(last_line=True)
        self.assertEqual(row["last_line"], "last")

    def test_b132_processes_of_agents_below_are_visible(self):
        self.ok("list_processes")
        self.add_agent("below")
        own = self.background("sleep", "300")
        code, started = self.as_agent("below", "run_command", command="sleep", args=["301"], wait=False)
        self.assertEqual(code, OK)
        self.assertEqual({row["id"]: row["agent"] for row in self.rows()}, {own: "self", started["id"]: "below"})
        code, listed = self.as_agent("below", "list_processes")
        self.assertEqual([(row["id"], row["agent"]) for row in listed["processes"]], [(started["id"], "self")])

    def test_the_agent_can_be_named_instead(self):
        """--agent makes one that is not there, and acts as it."""
        code, started = self.tool("run_command", options=("--agent", "other"), command="sleep", args=["300"], wait=False)
        self.assertEqual(code, OK)
        self.assertEqual([row["agent"] for row in self.rows()], ["other"])
        code, listed = self.tool("list_processes", options=("--agent", "other"))
        self.assertEqual([(row["id"], row["agent"]) for row in listed["processes"]], [(started["id"], "self")])


class StatsTest(ProcessCase):
    def test_b134_a_live_one(self):
        id = self.background("sleep", "300")
        stats = self.ok("process_stats", pid=id)
        self.assertEqual((stats["id"], stats["command"], stats["args"], stats["agent"]), (id, "sleep", ["300"], "self"))
        self.assertEqual((stats["status"], stats["end_cause"], stats["has_captured_output"]), ("running", None, False))
        for name in ("pid", "cpu_usage_ns", "memory_bytes"):
            self.assertIsInstance(stats[name], int, name)
        for name in ("started_at", "cpu_pct", "cgroup_path", "descendants"):
            self.assertIn(name, stats)

    def test_b134_ended_ones(self):
        for command, status, cause in ((("sh", "-c", "echo x; exit 3"), "exited(3)", "self_exit"), (("sh", "-c", "kill -9 $$"), "signaled(9)", "external_signal")):
            id = self.background(*command)
            self.wait(id)
            stats = self.ok("process_stats", pid=id)
            self.assertEqual((stats["status"], stats["has_captured_output"]), (status, status == "exited(3)"))
            self.assertIsInstance(stats["end_cause"], str)
            self.assertNotIn("blocked_on_stdin", stats)

    def test_b020_stopped(self):
        id = self.background("sleep", "300")
        self.ok("kill_process", pid=id, signal="SIGSTOP")
        procs.wait_until(lambda: self.ok("process_stats", pid=id)["status"] == "stopped", "it is stopped", interval=0.05)
        self.ok("kill_process", pid=id, signal="SIGCONT")
        procs.wait_until(lambda: self.ok("process_stats", pid=id)["status"] == "running", "it runs on", interval=0.05)

    def test_b134_a_shell_line_is_shown_as_what_runs(self):
        id = self.ok("run_command", command="sleep 300; :", wait=False)["id"]
        stats = self.ok("process_stats", pid=id)
        self.assertEqual(stats["args"][-1], "sleep 300; :")
        self.assertEqual([row["command"] for row in self.rows()], ["sleep 300; :"])

    def test_p03_whether_it_waits_for_input(self):
        id = self.background("cat", open_stdin=True)
        procs.wait_until(lambda: self.ok("process_stats", pid=id)["blocked_on_stdin"], "it reads", interval=0.05)
        self.assertIs(self.ok("process_stats", pid=id)["stdin_open"], True)
        self.ok("close_stdin", pid=id)
        self.wait(id)

    def test_p03_a_password_prompt_has_no_echo(self):
        shell = self.ok("open_shell")["session_id"]
        self.ok("shell_write", session_id=shell, input="stty -echo; cat\n")
        procs.wait_until(lambda: self.ok("process_stats", pid=shell)["echo_off"], "echo is off", interval=0.05)

    def test_b134_of_an_agent_below(self):
        self.ok("list_processes")
        self.add_agent("below")
        id = self.as_agent("below", "run_command", command="sleep", args=["300"], wait=False)[1]["id"]
        self.assertEqual(self.ok("process_stats", pid=id)["agent"], "below")


class PidTest(ProcessCase):
    def test_b002_a_pid_is_as_good_as_an_id(self):
        started = self.ok("run_command", command="sleep", args=["300"], wait=False)
        for pid in (started["pid"], str(started["pid"]), started["id"]):
            self.assertEqual(self.ok("process_stats", pid=pid)["id"], started["id"])

    def test_b002_after_the_end_too(self):
        started = self.ok("run_command", command="true")
        self.assertEqual(self.ok("process_stats", pid=started["pid"])["id"], started["id"])

    def test_b002_pids_of_others_are_unknown(self):
        """Those that exist and those that do not give the same answer."""
        self.background("sleep", "300")
        for pid in (1, 4194305, "1", "0", "nonsense", "psh-0-0", ""):
            error = self.error("no_such_process", "process_stats", pid=pid)
            self.assertEqual(error["message"], UNKNOWN)
            self.assertIn("list_processes", error["advice"])

    def test_b002_what_is_no_pid_is_refused(self):
        for pid in (1.5, True, [], {}, 0, -1):
            error = self.error("invalid_input", "process_stats", pid=pid)
            self.assertIn("pid", error["message"])
        self.error("invalid_input", "process_stats")
        self.error("invalid_input", "process_stats", pid=None)

    def test_b075_foreign_ones_are_unknown_for_every_tool(self):
        id = self.background("sleep", "300")
        pid = self.ok("process_stats", pid=id)["pid"]
        self.add_agent("other")
        for name, more in (
            ("process_stats", {}), ("kill_process", {}), ("stop_process", {}), ("wait_for_process", {}), ("read_process_output", {}), ("read_screen", {}),
            ("write_stdin", {"input": "x"}), ("close_stdin", {}),
        ):
            unknown = self.as_agent("other", name, pid="psh-0-0", **more)
            self.assertEqual(unknown[1]["code"], "no_such_process")
            for one in (id, pid):
                code, error = self.as_agent("other", name, pid=one, **more)
                self.assertEqual((code, error["code"], error["message"]), (unknown[0], "no_such_process", unknown[1]["message"]), name)
        self.assertEqual(self.as_agent("other", "release_process", pid=id), (OK, {"pid": None, "id": None, "released": False}))
        code, error = self.as_agent("other", "wait_any", conditions=[{"pid": id, "exit": True}])
        self.assertEqual((code, error["code"]), (ERROR, "no_such_process"))
        self.assertEqual(self.ok("process_stats", pid=id)["status"], "running")


class KillTest(ProcessCase):
    def test_b133_one_signal(self):
        id = self.background("sleep", "300")
        result = self.ok("kill_process", pid=id)
        self.assertEqual((result["id"], result["signal"], result["sent"]), (id, "SIGTERM", True))
        self.assertIsInstance(result["pid"], int)
        self.assertIsInstance(result["state"], str)
        self.assertEqual(self.wait(id)["status"], "signaled(15)")

    def test_b133_signals_by_name_or_number(self):
        for signal, name, number in (("SIGKILL", "SIGKILL", 9), ("int", "SIGINT", 2), (1, "SIGHUP", 1)):
            id = self.background("sleep", "300")
            self.assertEqual(self.ok("kill_process", pid=id, signal=signal)["signal"], name)
            self.assertEqual(self.wait(id)["status"], f"signaled({number})")

    def test_b133_one_that_has_ended(self):
        id = self.background("true")
        self.wait(id)
        result = self.failure("kill_process", pid=id)
        self.assertEqual((result["id"], result["sent"], result["code"], result["state"]), (id, False, "not_running", "exited"))
        self.assertIn("wait_for_process", result["message"] + result["advice"])

    def test_b133_unknown_processes_are_a_failure(self):
        result = self.failure("kill_process", pid="psh-0-0")
        self.assertEqual((result["code"], result["message"]), ("no_such_process", UNKNOWN))

    def test_b133_unknown_signals_are_an_error(self):
        id = self.background("sleep", "300")
        for signal in ("SIGNOPE", "", 0, 65, -9):
            error = self.error("invalid_input", "kill_process", pid=id, signal=signal)
            self.assertIn("signal", error["message"])
        self.assertEqual(self.ok("process_stats", pid=id)["status"], "running")

    def test_b078_a_process_of_an_agent_below_is_not_ours_to_change(self):
        self.ok("list_processes")
        self.add_agent("below")
        id = self.as_agent("below", "run_command", command="cat", wait=False, open_stdin=True)[1]["id"]
        result = self.failure("kill_process", pid=id)
        self.assertEqual(result["code"], "not_owner")
        self.assertIn("look", result["advice"])
        for name, more in (("stop_process", {}), ("release_process", {}), ("write_stdin", {"input": "x"}), ("close_stdin", {})):
            self.error("not_owner", name, pid=id, **more)
        self.assertEqual(self.ok("process_stats", pid=id)["status"], "running")
        self.assertEqual(self.failure("wait_for_process", pid=id, timeout_ms=100)["timed_out"], True)


class StopTest(ProcessCase):
    def test_the_whole_tree_ends(self):
        id = self.background("sh", "-c", "setsid sleep 301 & sleep 302 & echo up; wait")
        self.ok("wait_any", conditions=[{"pid": id, "output": "up"}])
        result = self.ok("stop_process", pid=id)
        self.assertEqual((result["id"], result["state"], result["signal"], result["end_cause"], result["survivors"]), (id, "signaled", "SIGTERM", "killed_by_request", 0))
        self.assertIsNone(result["exit_code"])

    def test_what_handles_it_has_its_grace(self):
        id = self.background("sh", "-c", "trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.1; done")
        self.ok("wait_any", conditions=[{"pid": id, "output": "up"}])
        result = self.ok("stop_process", pid=id, grace_ms=30000)
        self.assertEqual((result["exit_code"], result["signal"]), (4, None))
        self.assertEqual(self.ok("read_process_output", pid=id)["content"], "up\nbye\n")

    def test_what_ignores_it_is_killed(self):
        id = self.background("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done")
        self.ok("wait_any", conditions=[{"pid": id, "output": "up"}])
        self.assertEqual(self.ok("stop_process", pid=id, grace_ms=100)["signal"], "SIGKILL")

    def test_one_that_has_ended_is_as_good(self):
        id = self.background("sh", "-c", "exit 5")
        self.wait(id)
        result = self.ok("stop_process", pid=id)
        self.assertEqual((result["exit_code"], result["end_cause"], result["survivors"]), (5, "self_exit", 0))

    def test_unknown_and_wrong(self):
        self.error("no_such_process", "stop_process", pid="psh-0-0")
        self.error("invalid_input", "stop_process", pid="psh-0-0", grace_ms=30001)
        self.error("invalid_input", "stop_process", pid="psh-0-0", signal="SIGKILL")


class ReleaseTest(ProcessCase):
    def test_an_ended_one_is_forgotten(self):
        id = self.background("true")
        self.wait(id)
        self.assertEqual(self.ok("release_process", pid=id)["released"], True)
        self.error("no_such_process", "process_stats", pid=id)
        self.assertEqual(self.rows(include_finished=True), [])
        self.assertEqual(self.ok("release_process", pid=id), {"pid": None, "id": None, "released": False})

    def test_a_live_one_is_ended_first(self):
        started = self.ok("run_command", command="sleep", args=["300"], wait=False)
        result = self.ok("release_process", pid=started["pid"])
        self.assertEqual(result, {"pid": started["pid"], "id": started["id"], "released": True})
        procs.wait_until(lambda: not procs.alive(started["pid"]), "it is gone")
        self.assertEqual(self.rows(), [])


class ReceiptTest(ProcessCase):
    """Of one whose record has gone only a receipt is left."""

    keeper_settings = "max_finished=1"

    def test_what_a_receipt_still_says(self):
        id = self.background("sh", "-c", "echo x; exit 3")
        self.wait(id)
        for _ in range(2):
            self.ok("run_command", command="true")

        def is_receipt():
            with self.client() as client:
                return client.call("status", id=id)["process"].get("receipt")

        procs.wait_until(is_receipt, "only a receipt is left", interval=0.05)
        self.assertEqual(self.ok("process_stats", pid=id)["status"], "exited(3)")
        self.assertEqual(self.ok("wait_for_process", pid=id)["exit_code"], 3)
        for more in ({}, {"head_tail": True}, {"grep": "x"}, {"reader": "me"}):
            result = self.failure("read_process_output", pid=id, **more)
            self.assertEqual(result["total_bytes"], 2, more)
            self.assertNotIn("x\n", result["content"])
            self.assertIn("not kept", result["hint"])
        code, result = self.tool("kill_process", pid=id)
        self.assertEqual((code, result["code"]), (FAILURE, "not_running"))

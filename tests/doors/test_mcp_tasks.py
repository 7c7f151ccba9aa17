"""Calls that become tasks: who gets them, looking, cancelling, word of their end, on both transports (M-046)."""

from lib import procs
from lib.mcp import ACKNOWLEDGED, INVALID_PARAMS, META, NO_CAPABILITY, NO_METHOD, TASKS, McpError, ToolResult
from lib.mcp_case import HttpCase, StdioCase

EXTENSION = META + "tasks"
DECLARED = {"extensions": {EXTENSION: {}}}
ENVELOPE = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
MOMENT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
MOST = 64


class Tasks:
    def submit(self, script, peer=None, capabilities=DECLARED, token=None, **arguments):
        arguments = {"command": "sh", "args": ["-c", script]} | arguments
        return (peer or self.peer).submit_tool("run_command", arguments, capabilities=capabilities, token=token)

    def begin(self, script, peer=None, **options):
        """A call that became a task: what was answered."""
        task = self.submit(script, peer, **options).finish()
        self.check_task(task, "task")
        self.assertEqual(task["status"], "working")
        return task

    def check_task(self, task, kind="complete"):
        """The task lies flat in the result, with all that belongs to its state and nothing else."""
        self.assertEqual(task["resultType"], kind)
        more = {"completed": {"result"}, "failed": {"error"}}.get(task["status"], set())
        self.assertEqual(set(task) - {"resultType", "_meta", "statusMessage"}, ENVELOPE | more, task)
        self.assertRegex(task["createdAt"], MOMENT)
        self.assertRegex(task["lastUpdatedAt"], MOMENT)
        self.assertGreaterEqual(task["lastUpdatedAt"], task["createdAt"])
        self.assertGreater(task["ttlMs"], 0)
        self.assertGreater(task["pollIntervalMs"], 0)
        return task

    def ask(self, method, task, peer=None, **more):
        return (peer or self.peer).call(method, {"taskId": task} | more, capabilities=DECLARED)

    def get(self, task, peer=None):
        return self.check_task(self.ask("tasks/get", task["taskId"], peer))

    def ended(self, task, peer=None):
        """Waits for a final state as a client would that only looks."""
        return procs.wait_until(lambda: (now := self.get(task, peer))["status"] != "working" and now, "the task to end", interval=0.05)

    def acknowledged(self, result):
        self.assertEqual(set(result), {"resultType", "_meta"})
        self.assertEqual(result["resultType"], "complete")

    def records(self):
        return self.operator.call("list", include_finished=True)["processes"]

    def running(self, mark):
        """The record of the running process that has the mark in its command."""
        return procs.wait_until(lambda: next((row for row in self.records() if mark in row["command"] and row["state"] == "running"), None),
                                "the process to run")

    def test_m046_the_extension_is_offered(self):
        capabilities = self.peer.call("server/discover")["capabilities"]
        self.assertEqual(capabilities["extensions"], {EXTENSION: {}})
        self.assertNotIn("tasks", capabilities)

    def test_m046_only_a_request_that_declares_it_becomes_a_task(self):
        """Declaring holds for the one request: others before and after are answered as ever."""
        for _ in range(2):
            for capabilities in (None, {"extensions": {}}, {"tasks": {}}, {"extensions": {META + "other": {}}}):
                plain = self.submit("echo plain", capabilities=capabilities).result()
                self.assertEqual((plain.is_error, plain["stdout"]), (False, "plain\n"))
            self.begin("echo task")

    def test_m046_only_what_is_waited_for_becomes_a_task(self):
        found = self.submit("exec sleep 300", wait=False).result()
        self.assertEqual(found["status"], "running")
        listed = self.peer.submit_tool("list_processes", {}, capabilities=DECLARED).result()
        self.assertIn(found["id"], [row["id"] for row in listed["processes"]])
        self.ok("stop_process", pid=found["id"], grace_ms=0)

    def test_m046_a_task_is_readable_at_once_and_ends_with_the_result_of_the_call(self):
        task = self.begin("echo out; echo err >&2; read x; exit 0", stdin="line\n")
        self.assertIn(self.get(task)["status"], ("working", "completed"))
        now = self.ended(task)
        self.assertEqual(now["status"], "completed")
        self.assertEqual((now["taskId"], now["createdAt"], now["ttlMs"]), (task["taskId"], task["createdAt"], task["ttlMs"]))
        result = ToolResult("run_command", now["result"])
        self.check_result(self.peer, result)
        self.assertEqual((result.is_error, result["stdout"], result["stderr"], result["exit_code"]), (False, "out\n", "err\n", 0))
        self.assertEqual(self.get(task)["result"], now["result"], "looking changes nothing")

    def test_m046_a_failed_command_is_completed(self):
        """failed is for errors of the protocol; a command's own failure, and arguments that are wrong, are results."""
        now = self.ended(self.begin("exit 7"))
        self.assertEqual((now["status"], now["result"]["isError"]), ("completed", True))
        self.assertEqual(now["result"]["structuredContent"]["exit_code"], 7)
        now = self.ended(self.begin("true", no_such_argument=1))
        self.assertEqual((now["status"], now["result"]["isError"]), ("completed", True))
        self.assertEqual(now["result"]["structuredContent"]["code"], "invalid_input")

    def test_m046_a_task_outlasts_the_bound_on_waiting(self):
        """Nobody waits for its answer, so that it is not cut short by the time that a call may take."""
        task = self.begin("read x; echo $x", stdin="late\n", timeout_secs=3600)
        self.assertEqual(task["ttlMs"], 3600000 + 600000)
        self.assertEqual(self.ended(task)["result"]["structuredContent"]["stdout"], "late\n")

    def test_m046_cancelling_a_task_ends_its_process(self):
        task = self.begin("echo marked-for-cancel; exec sleep 300", timeout_secs=3600)
        record = self.running("marked-for-cancel")
        self.acknowledged(self.ask("tasks/cancel", task["taskId"]))
        self.assertEqual(self.get(task)["status"], "cancelled")
        over = self.wait_record(record["id"], lambda now: now["ended_at"], "the process to end")
        self.assertEqual(over["end_cause"], "cancelled")
        self.assertEqual(self.get(task)["status"], "cancelled")

    def test_m046_a_task_that_is_cancelled_at_once_leaves_nothing(self):
        """Also where its process has not been started yet when that is asked for."""
        for _ in range(5):
            self.acknowledged(self.ask("tasks/cancel", self.begin("echo marked-for-haste; exec sleep 300")["taskId"]))
        procs.wait_until(lambda: all(row["ended_at"] for row in self.records() if "marked-for-haste" in row["command"]), "all to end")

    def test_m046_final_states_are_final(self):
        """Cancelling again, or what has completed, is acknowledged and changes nothing."""
        cancelled, completed = self.begin("exec sleep 300"), self.begin("echo done")
        self.acknowledged(self.ask("tasks/cancel", cancelled["taskId"]))
        self.assertEqual(self.ended(completed)["status"], "completed")
        for task in (cancelled, completed):
            before = self.get(task)
            self.acknowledged(self.ask("tasks/cancel", task["taskId"]))
            self.acknowledged(self.ask("tasks/update", task["taskId"], inputResponses={}))
            self.assertEqual(self.get(task), before)

    def test_m046_update_is_acknowledged(self):
        """Nothing is ever asked for here: what is brought is taken and means nothing."""
        task = self.begin("exec sleep 300")
        self.acknowledged(self.ask("tasks/update", task["taskId"], inputResponses={"a": {"action": "accept"}}))
        self.assertEqual(self.get(task)["status"], "working")
        self.acknowledged(self.ask("tasks/cancel", task["taskId"]))

    def test_m046_without_the_capability_it_is_refused(self):
        """Also for a task that there is: the error names what is needed."""
        task = self.begin("true")
        for method in METHODS:
            for name in (task["taskId"], "none"):
                error = self.refused(NO_CAPABILITY, 400, method, {"taskId": name})
                self.assertEqual(error.data, {"requiredCapabilities": {"extensions": {EXTENSION: {}}}})

    def test_m046_unknown_tasks_and_wrong_ids_are_refused(self):
        task = self.begin("true")["taskId"]
        wrong = ("", "none", task[:-1], task + "0", task.upper(), 7, None, [task])
        for method in METHODS:
            for name in wrong:
                self.refused(INVALID_PARAMS, None, method, {"taskId": name}, capabilities=DECLARED)
        self.get({"taskId": task})

    def test_m046_methods_of_other_revisions_are_unknown(self):
        for method in ("tasks/result", "tasks/list"):
            self.refused(NO_METHOD, 404, method, capabilities=DECLARED)

    def test_m046_the_legacy_era_has_no_tasks(self):
        """The experimental parameter of its last revision is ignored."""
        peer = self.connect("2025-11-25")
        for method in (*METHODS, "tasks/result", "tasks/list"):
            self.refused(NO_METHOD, None, method, {"taskId": "none"}, peer)
        params = {"name": "run_command", "arguments": {"command": "echo", "args": ["x"]}, "task": {"ttl": 60000}}
        result = ToolResult("run_command", peer.call("tools/call", params))
        self.assertEqual(result["stdout"], "x\n")

    def test_m046_ids_cannot_be_guessed_and_belong_to_their_caller(self):
        tasks = [self.begin("true")["taskId"] for _ in range(20)]
        self.assertEqual(len(set(tasks)), 20)
        for task in tasks:
            self.assertRegex(task, r"^task-[0-9a-f]{32}$")
        other = self.other_agent()
        for method in METHODS:
            self.refused(INVALID_PARAMS, None, method, {"taskId": tasks[0]}, other, capabilities=DECLARED)

    def test_m046_word_of_the_end_comes_through_a_subscription(self):
        """With the whole task, to those who asked for this one; nothing of others."""
        task, other = self.begin("exec sleep 300"), self.begin("exec sleep 300")
        listen = self.peer.submit("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"], "none"]}}, capabilities=DECLARED)
        note = listen.note()
        self.assertEqual((note["method"], note["params"]["notifications"]), (ACKNOWLEDGED, {"taskIds": [task["taskId"]]}))
        self.acknowledged(self.ask("tasks/cancel", other["taskId"]))
        self.acknowledged(self.ask("tasks/cancel", task["taskId"]))
        note = listen.note()
        self.assertEqual(note["method"], TASKS)
        told = {name: value for name, value in note["params"].items() if name != "_meta"}
        now = self.get(task)
        self.assertEqual(told, {name: now[name] for name in ENVELOPE})
        self.assertTrue(listen.quiet(1.5))
        listen.cancel()

    def test_m046_a_completed_task_is_told_with_its_result(self):
        task = self.begin("echo told")
        listen = self.peer.submit("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}}, capabilities=DECLARED)
        self.assertEqual(listen.note()["method"], ACKNOWLEDGED)
        note = listen.note(TASKS)
        while note["params"]["status"] == "working":
            note = listen.note(TASKS)
        self.assertEqual(note["params"]["result"]["structuredContent"]["stdout"], "told\n")
        listen.cancel()

    def test_m046_a_subscription_without_the_capability_has_no_tasks(self):
        task = self.begin("exec sleep 300")
        listen, accepted = self.peer.listen(taskIds=[task["taskId"]])
        self.assertEqual(accepted, {})
        self.acknowledged(self.ask("tasks/cancel", task["taskId"]))
        self.assertTrue(listen.quiet(1.5))
        listen.cancel()

    def test_m046_no_progress_for_tasks(self):
        """A token on the call brings nothing: its answer was the task (the client takes progress after it for a violation)."""
        task = self.begin("for i in 1 2 3; do echo $i; sleep 0.7; done", token="t")
        self.assertEqual(self.ended(task)["status"], "completed")

    def test_m046_there_are_so_many_tasks_and_no_more(self):
        """Then calls are answered as if nothing had been declared; the others stay readable."""
        tasks = [self.begin("true") for _ in range(MOST)]
        for task in tasks:
            self.ended(task)  # as many processes as an agent may run at a time
        plain = self.submit("echo plain").result()
        self.assertEqual(plain["stdout"], "plain\n")
        for task in tasks:
            self.get(task)


class StdioTasksTest(Tasks, StdioCase):
    def test_m046_tasks_end_with_their_server(self):
        """A task's process is its call's: it does not outlive the one who would tell of it."""
        self.begin("echo marked-for-leaving; exec sleep 300", timeout_secs=3600)
        record = self.running("marked-for-leaving")
        self.assertEqual(self.peer.leave(), 0)
        over = self.wait_record(record["id"], lambda now: now["ended_at"], "the process to end")
        self.assertIn(over["end_cause"], ("session_end", "cancelled"))
        with self.assertRaises(McpError):
            self.ask("tasks/get", "task-" + 32 * "0", self.connect())


class HttpTasksTest(Tasks, HttpCase):
    pass

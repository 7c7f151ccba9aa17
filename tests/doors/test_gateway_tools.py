"""/v1/tools: the tools of models for programs, with their own results and errors."""

import json
import subprocess
import unittest

from lib.gateway import GatewayCase
from lib.place import COOP
from lib.procs import wait_until


class Tools(GatewayCase):
    def call(self, name, status=200, outcome="ok", token=None, **args):
        response = self.request("POST", f"/v1/tools/{name}", args, token=token)
        self.assertEqual(response.status, status, response.body)
        self.assertEqual(response.headers.get("coop-outcome"), outcome)
        return response.json()

    def error(self, name, status, code, **args):
        body = self.call(name, status, "error", **args)
        self.assertEqual(body["code"], code, body)
        self.assertTrue(body["message"])
        self.assertTrue(body["advice"])
        return body

    def background(self, command, **args):
        return self.call("run_command", command=command, wait=False, **args)["id"]

    def listed(self, token=None):
        return [row["id"] for row in self.call("list_processes", token=token)["processes"]]

    # Results.

    def test_a_command_runs_and_its_output_comes_back(self):
        result = self.call("run_command", command="echo out; echo err >&2")
        self.assertEqual((result["exit_code"], result["stdout"], result["stderr"]), (0, "out\n", "err\n"))

    def test_a_command_that_fails_is_a_failure_and_no_error(self):
        result = self.call("run_command", outcome="failure", command="exit 3")
        self.assertEqual(result["exit_code"], 3)

    def test_commands_start_in_the_workspace(self):
        result = self.call("run_command", command="pwd")
        self.assertEqual(result["stdout"].strip(), str(self.work.resolve()))

    def test_no_body_is_no_arguments(self):
        response = self.request("POST", "/v1/tools/list_processes")
        self.assertEqual(response.status, 200, response.body)
        self.assertIn("processes", response.json())

    def test_a_process_in_the_background_is_written_to_and_waited_for(self):
        found = self.background("cat", open_stdin=True)
        self.call("write_stdin", pid=found, input="hello\n")
        self.call("close_stdin", pid=found)
        self.assertEqual(self.call("wait_for_process", pid=found)["exit_code"], 0)
        self.assertIn("hello", json.dumps(self.call("read_process_output", pid=found)))

    def test_all_tools_are_listed_with_their_schemas(self):
        """As `coop tool --list --json` has them: those of harn too."""
        response = self.request("GET", "/v1/tools")
        self.assertEqual(response.status, 200, response.body)
        listed = subprocess.run([COOP, "tool", "--list", "--json"], capture_output=True, text=True, check=True)
        self.assertEqual(response.json()["tools"], json.loads(listed.stdout)["tools"])
        self.assert_refused(self.request("GET", "/v1/tools", token=False), 401, "unauthorized")

    # Errors.

    def test_an_unknown_argument_is_named_with_those_that_there_are(self):
        body = self.error("run_command", 400, "invalid_input", command="true", comand="x")
        self.assertIn("comand", body["message"])
        self.assertIn("timeout_secs", body["message"])

    def test_an_unknown_process_is_not_found(self):
        body = self.error("wait_for_process", 404, "no_such_process", pid="nothing")
        self.assertIn("list_processes", body["advice"])

    def test_an_unknown_tool_is_not_found(self):
        for name in ("nothing", "Run_command", "..", "run_command%20", "x" * 300):
            with self.subTest(name=name):
                response = self.request("POST", f"/v1/tools/{name}", {})
                self.assert_refused(response, 404, "not_found")
                self.assertNotIn("coop-outcome", response.headers)

    def test_a_body_that_is_no_object_is_refused(self):
        for body in (b"[]", b"{", b"1", b'{"a":1,"a":2}'):
            with self.subTest(body=body):
                self.assert_refused(self.request("POST", "/v1/tools/list_processes", body), 400, "invalid_argument")

    def test_other_methods_are_not_for_it(self):
        response = self.request("GET", "/v1/tools/list_processes")
        self.assert_refused(response, 405, "method_not_allowed")
        self.assertEqual(response.headers["allow"], "POST")

    def test_a_token_is_needed(self):
        for name in ("list_processes", "nothing"):
            self.assert_refused(self.request("POST", f"/v1/tools/{name}", {}, token=False), 401, "unauthorized")

    # Whose they are.

    def test_an_agent_sees_its_own_processes_alone(self):
        token = self.gateway.agent_token("main/stranger")
        other = self.gateway.agent_token("main/other")
        found = self.background("sleep 1000", token=token)
        self.assertIn(found, self.listed(token))
        self.assertNotIn(found, self.listed(other))
        missing = self.error("process_stats", 404, "no_such_process", pid="psh-0000", token=other)
        foreign = self.error("process_stats", 404, "no_such_process", pid=found, token=other)
        self.assertEqual(missing["message"], foreign["message"])
        self.call("stop_process", pid=found, token=token)

    # A client that goes.

    def leave(self, name, **args):
        """Asks and does not wait for the answer; the connection is the caller's to end."""
        connection = self.gateway.connect()
        self.addCleanup(connection.close)
        connection.send_request("POST", f"/v1/tools/{name}", self.gateway.headers(), json.dumps(args).encode())
        return connection

    def record(self, wanted):
        """The record of the one process that was started for a reason."""
        rows = self.request("POST", "/v1/ops/list", {"include_finished": True}).json()["processes"]
        return next((row for row in rows if row.get("why") == wanted), None)

    def test_a_command_whose_caller_goes_is_ended(self):
        connection = self.leave("run_command", command="sleep 1000", why="left alone")
        wait_until(lambda: (self.record("left alone") or {}).get("state") == "running", "it runs")
        connection.close()
        wait_until(lambda: self.record("left alone")["end_cause"], "it has ended")
        self.assertEqual(self.record("left alone")["end_cause"], "cancelled")

    def test_a_process_does_not_mind_that_a_waiter_goes(self):
        found = self.background("sleep 1000")
        connection = self.leave("wait_for_process", pid=found)
        connection.close()
        self.call("list_processes")
        self.assertIn(found, self.listed())
        self.call("stop_process", pid=found)

    def test_a_long_wait_holds_up_nobody(self):
        found = self.background("sleep 1000")
        connection = self.leave("wait_for_process", pid=found)
        for _ in range(20):
            self.call("list_processes")
        self.call("stop_process", pid=found)
        self.assertEqual(connection.read_response("POST").status, 200)

    def test_calls_of_one_token_are_bounded(self):
        """One more than may be open is refused; when they are gone there is room again."""
        found = self.background("sleep 1000")
        waits = [self.leave("wait_for_process", pid=found) for _ in range(520)]
        wait_until(lambda: self.request("POST", "/v1/tools/list_processes", {}).status == 429, "all are open")
        other = self.gateway.agent_token("main/free")
        self.call("list_processes", token=other)
        for connection in waits:
            connection.close()
        wait_until(lambda: self.request("POST", "/v1/tools/list_processes", {}).status == 200, "there is room")
        self.call("stop_process", pid=found)


if __name__ == "__main__":
    unittest.main()

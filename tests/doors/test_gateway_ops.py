"""POST /v1/ops/NAME: the keeper's operations over HTTP, with their own arguments, results and errors."""

import base64
import json
import unittest

from lib.gateway import GatewayCase
from lib.procs import wait_until

NOT_SERVED = {"login", "ceiling", "follow", "follow_events"}


def coded(data):
    return base64.b64encode(data).decode("ascii")


class Ops(GatewayCase):
    def op(self, name, status=200, token=None, **args):
        response = self.request("POST", f"/v1/ops/{name}", args, token=token)
        self.assertEqual(response.status, status, response.body)
        return response.json()

    def spawn(self, *argv, **args):
        args.setdefault("cwd", str(self.work))
        return self.op("spawn", argv=list(argv), **args)["process"]["id"]

    def run_to_end(self, *argv, **args):
        found = self.spawn(*argv, **args)
        self.op("wait", id=found)
        return found

    # Which there are.

    def test_every_operation_of_the_table_is_served(self):
        """With no arguments each is carried out or refused by the keeper, but never unknown."""
        names = {row["name"] for row in self.op("describe")["operations"]}
        self.assertGreater(len(names), 35)
        for name in sorted(names - NOT_SERVED):
            with self.subTest(name=name):
                response = self.request("POST", f"/v1/ops/{name}", {})
                self.assertIn(response.status, (200, 400, 403), response.body)
                if response.status != 200:
                    self.assertIn(response.error, ("invalid_input", "permission_denied"))

    def test_login_is_no_operation_here(self):
        for name in ("login", "nothing", "Spawn", "..", "a%2Fb", "spawn%00x", "x" * 200, "%20"):
            with self.subTest(name=name):
                response = self.request("POST", f"/v1/ops/{name}", {})
                self.assertIn(response.status, (400, 404), response.body)
                self.assertIn(response.error, ("not_found", "invalid_argument"))

    def test_what_does_not_end_says_where_to_go(self):
        for name, hint in (("follow", "/connect"), ("follow_events", "/v1/events")):
            body = self.op(name, 400)
            self.assertEqual(body["error"], "invalid_input")
            self.assertIn(hint, body["message"])

    def test_a_token_is_needed_before_anything_is_said(self):
        for name in ("info", "nothing", "login"):
            self.assert_refused(self.request("POST", f"/v1/ops/{name}", {}, token=False), 401, "unauthorized")
            self.assert_refused(self.request("POST", f"/v1/ops/{name}", {}, token="coop_1_wrong"), 401, "unauthorized")

    def test_other_methods_are_refused(self):
        response = self.request("GET", "/v1/ops/info")
        self.assert_refused(response, 405, "method_not_allowed")
        self.assertEqual(response.headers["allow"], "POST")

    # What they do.

    def test_the_answer_is_the_result_itself(self):
        info = self.op("info")
        self.assertEqual(info["you"], {"principal": info["you"]["principal"], "agent": "main", "operator": False})
        self.assertEqual(self.op("list"), {"processes": [], "more": False})

    def test_an_empty_body_is_no_arguments(self):
        response = self.request("POST", "/v1/ops/info")
        self.assertEqual(response.status, 200, response.body)

    def test_bytes_go_in_and_come_out_exactly(self):
        data = bytes(range(256)) * 300
        found = self.run_to_end("/bin/cat", data_base64=coded(data))
        read = self.op("read", id=found, max=len(data) + 1)
        self.assertEqual(read["bytes"], len(data))
        self.assertEqual(set(read["data"]), {"stdout"})
        self.assertEqual(base64.b64decode(read["data"]["stdout"], validate=True), data)
        self.assertNotIn("chunks", read)

    def test_both_streams_come_with_a_wait(self):
        found = self.spawn("/bin/sh", "-c", "echo out; echo err >&2")
        done = self.op("wait", id=found, output_bytes=1000)
        self.assertEqual(done["exit_code"], 0)
        self.assertEqual(done["data"], {"stdout": coded(b"out\n"), "stderr": coded(b"err\n")})

    def test_without_output_there_is_no_data(self):
        found = self.run_to_end("/bin/true")
        self.assertNotIn("data", self.op("read", id=found))
        self.assertNotIn("data", self.op("wait", id=found, output_bytes=1000))

    def test_combined_output_comes_in_its_order(self):
        found = self.run_to_end("/bin/sh", "-c", "for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done")
        read = self.op("read", id=found, stream="combined")
        chunks = read["chunks"]
        self.assertEqual([chunk["cursor"] for chunk in chunks], list(range(read["cursor"], read["next"]))[: len(chunks)])
        joined = {"stdout": b"", "stderr": b""}
        for chunk in chunks:
            self.assertEqual(chunk["offset"], len(joined[chunk["stream"]]))
            joined[chunk["stream"]] += base64.b64decode(chunk["data"], validate=True)
        self.assertEqual(joined, {"stdout": b"o1\no2\no3\n", "stderr": b"e1\ne2\ne3\n"})
        self.assertEqual(read["data"], {name: coded(data) for name, data in joined.items()})

    def test_input_is_written_and_ended(self):
        found = self.spawn("/bin/cat", stdin="pipe")
        written = self.op("write_stdin", id=found, data_base64=coded(b"\0\1\2 hello"))
        self.assertEqual(written, {"success": True, "timed_out": False, "bytes_written": 9})
        self.op("close_stdin", id=found)
        self.assertEqual(self.op("wait", id=found, output_bytes=100)["data"], {"stdout": coded(b"\0\1\2 hello")})

    def test_files_are_brought_as_bytes(self):
        found = self.run_to_end(
            "/bin/sh",
            "-c",
            'cat "$CONFIG"; cat',
            file_injections=[{"placement": "env", "name": "CONFIG", "content_bytes": 4}],
            data_base64=coded(b"filestdin"),
        )
        self.assertEqual(self.op("read", id=found)["data"], {"stdout": coded(b"filestdin")})

    def test_four_mebibytes_of_input_are_taken(self):
        data = b"x" * (4 << 20)
        found = self.run_to_end("/usr/bin/wc", "-c", data_base64=coded(data))
        self.assertEqual(self.op("read", id=found)["data"], {"stdout": coded(b"%d\n" % len(data))})

    # What is refused.

    def test_base64_that_is_not_exact_is_refused(self):
        for text in ("aGVsbG8", "aGVsbG9=", "aGVs bG8=", "aGVsbG8=\n", "aGVsbG8-", "=", 7, None, ["aGVsbG8="]):
            with self.subTest(text=text):
                body = self.op("write_stdin", 400, id="x", data_base64=text)
                self.assertEqual(body["error"], "invalid_input")
                self.assertIn("data_base64", body["message"])

    def test_bytes_for_what_takes_none_are_refused_by_the_keeper(self):
        body = self.op("info", 413, data_base64=coded(b"x"))
        self.assertEqual((body["error"], body["details"]), ("too_large", {"field": "data"}))

    def test_errors_are_the_keepers_own(self):
        rows = (
            ("status", {"id": "psh-0-1"}, 404, "no_such_process", {}),
            ("status", {"id": 7}, 400, "invalid_input", {"field": "id"}),
            ("status", {"nonsense": 7}, 400, "invalid_input", {"field": "nonsense"}),
            ("spawn", {"argv": []}, 400, "invalid_input", {"field": "argv"}),
            ("shutdown", {}, 403, "permission_denied", {}),
        )
        for name, args, status, code, details in rows:
            with self.subTest(name=name, args=args):
                body = self.op(name, status, **args)
                self.assertEqual((body["error"], body["details"]), (code, details))
                self.assertTrue(body["message"])

    def test_an_argument_called_op_is_an_argument(self):
        """Not a word about an unknown operation."""
        body = self.op("info", 400, nothing=1)
        self.assertEqual(body["details"], {"field": "nothing"})

    def test_a_failed_start_tells_the_step(self):
        body = self.op("spawn", 500, argv=["/no/such/program"], cwd=str(self.work))
        self.assertEqual(body["error"], "spawn_failed")
        self.assertEqual((body["details"]["step"], body["details"]["errno"]), ("exec", "ENOENT"))

    def test_a_body_that_is_no_object_is_refused(self):
        for body in (b"[]", b"7", b"{", b'{"id":1,"id":2}', b"\xff", b'"x"'):
            with self.subTest(body=body):
                self.assert_refused(self.request("POST", "/v1/ops/info", body), 400)

    # Whose it is.

    def test_agents_have_their_own_processes(self):
        token = self.gateway.agent_token("main/worker")
        own = self.spawn("/bin/sleep", "300", token=token)
        other = self.spawn("/bin/sleep", "300")
        try:
            self.assertEqual([row["id"] for row in self.op("list", token=token)["processes"]], [own])
            self.assertEqual(self.op("status", 404, token=token, id=other)["error"], "no_such_process")
            self.assertEqual(self.op("kill", 404, id=own)["error"], "not_owner")
        finally:
            self.op("kill", id=other)
            self.op("kill", token=token, id=own)

    def test_a_revoked_token_is_worth_nothing(self):
        token = self.gateway.agent_token("main/brief")
        self.op("info", token=token)
        number = [row["id"] for row in self.op("token_list", agent="main/brief")["tokens"]]
        self.assertTrue(self.op("token_revoke", id=number[0])["revoked"])
        wait_until(
            lambda: self.request("POST", "/v1/ops/info", {}, token=token).status == 401, "the token is not taken any more"
        )

    def test_clients_that_go_leave_nothing_open(self):
        """The gateway makes further connections to the keeper for questions that stay open: it needs none."""
        found = self.spawn("/bin/sleep", "300")
        keeper = self.gateway.keeper()
        before = keeper.call("info")["connections"]
        body = json.dumps({"id": found}).encode()
        for _ in range(40):
            connections = [self.gateway.connect() for _ in range(32)]
            for connection in connections:
                connection.send_request("POST", "/v1/ops/wait", self.gateway.headers(), body)
            for connection in connections:
                connection.close()
        self.assertEqual(self.op("status", id=found)["process"]["state"], "running")
        self.assertLessEqual(keeper.call("info")["connections"], before + 1)
        self.op("kill", id=found)


if __name__ == "__main__":
    unittest.main()

"""The control plane: sandboxes are made, looked at, kept alive and ended over HTTP (R-003, R-061)."""

import os
import re
import socket

from lib.control import ControlCase
from lib.gateway import GatewayCase
from lib.procs import wait_until

ID = re.compile(r"^sbx-[0-9a-f]{16}$")


class SandboxTest(ControlCase):
    def test_r003_made_used_and_ended(self):
        sandbox, session = self.create({"metadata": {"user": "me"}, "template": "base", "secure": True, "allow_internet_access": False})
        self.assertRegex(sandbox["id"], ID)
        self.assertEqual((sandbox["state"], sandbox["metadata"]), ("ready", {"user": "me"}))
        self.assertRegex(sandbox["started_at"], r"^20\d\d-.*Z$")
        self.assertEqual(session["data_plane_url"], self.gateway.url)
        self.assertEqual(self.get(f"/v1/sandboxes/{sandbox['id']}"), {"sandbox": sandbox})
        self.assertIn(sandbox["id"], self.ids())
        self.assertEqual(self.text(session, "echo hi"), "hi\n")
        self.remove(sandbox)
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/resume"), ("POST", "/timeout")):
            body = {"timeout": 5} if method == "POST" else None
            self.assert_refused(self.request(method, f"/v1/sandboxes/{sandbox['id']}{path}", body), 404, "sandbox_not_found")
        self.assertNotIn(sandbox["id"], self.ids())
        self.assert_refused(self.request("GET", "/runtime/v1/process", token=session["token"]), 401)

    def test_names_of_metadata_and_variables_are_data(self):
        """Whatever stands in one: lists stay whole, and nothing else of the sandbox is what it says."""
        names = ['"', "\\", 'x":"","expires_at":1,"y', 'x":""},"folder":{"in":"/etc","mark":"' + "0" * 32 + '"},"metadata":{"y', "\n", "\u00e4"]
        made = []
        for name in names:
            sandbox, _ = self.create({"metadata": {name: "v", "plain": "w"}, "timeout": 3000})
            self.assertEqual(sandbox["metadata"], {name: "v", "plain": "w"})
            made.append(sandbox)
        listed = {sandbox["id"]: sandbox for sandbox in self.get("/v1/sandboxes?limit=1000")["sandboxes"]}
        for sandbox in made:
            self.assertEqual(listed[sandbox["id"]], sandbox)
            self.assertTrue(self.agent(sandbox)["folder"].startswith(str(self.gateway.place.dir)))
        for name in ('A"B', "A=B", ""):
            self.assert_refused(self.request("POST", "/v1/sandboxes", {"envs": {name: "x"}}), 400, "invalid_argument")

    def test_its_folder_is_where_commands_work_and_goes_with_it(self):
        sandbox, session = self.create()
        folder = self.agent(sandbox)["folder"]
        self.assertEqual(self.text(session, "pwd; echo hi > made; cat made"), f"{folder}\nhi\n")
        self.assertTrue(os.path.exists(os.path.join(folder, "made")))
        self.remove(sandbox)
        self.assertFalse(os.path.exists(folder))

    def test_ending_it_ends_its_processes(self):
        sandbox, session = self.create()
        found = self.sh("echo up; exec sleep 300", socket={"token": session["token"]})
        pid = found.pid
        other, other_session = self.create()
        kept = self.sh("exec sleep 300", socket={"token": other_session["token"]}).pid
        self.remove(sandbox)
        keeper = self.gateway.keeper()
        record = keeper.call("status", id=pid)["process"]
        self.assertEqual(record["end_cause"], "owner_retired")
        self.assertEqual(keeper.call("status", id=kept)["process"]["state"], "running")
        self.remove(other)

    def test_r061_one_does_not_reach_another(self):
        """Neither its processes, by id or by name, nor its files, nor the sandboxes of its maker."""
        (first, one), (second, two) = self.create(), self.create()
        pid = self.sh("echo secret > made; echo up; exec sleep 300", id="mine", socket={"token": one["token"]}).pid
        for target in ("mine", pid):
            for method, path in (("GET", ""), ("GET", "/output"), ("DELETE", ""), ("POST", "/signal")):
                body = {"signal": "SIGTERM"} if method == "POST" else None
                self.assert_refused(self.request(method, f"/runtime/v1/process/{target}{path}", body, token=two["token"]), 404,
                                    "process_not_found")
        self.assertEqual(self.get("/runtime/v1/process", token=two["token"])["processes"], [])
        folder = self.agent(first)["folder"]
        self.assertNotEqual(self.run_in(two, f"cat {folder}/made; ls {folder}")[0], 0)
        self.assertEqual(self.ids(token=two["token"]), [])
        for method in ("GET", "DELETE"):
            self.assert_refused(self.request(method, f"/v1/sandboxes/{first['id']}", token=two["token"]), 404, "sandbox_not_found")
        self.assertEqual(self.get(f"/runtime/v1/process/{pid}", token=one["token"])["process"]["status"], "running")
        for sandbox in (first, second):
            self.remove(sandbox)

    def test_envs_are_defaults(self):
        sandbox, session = self.create({"envs": {"ONE": "1", "TWO": "2"}})
        self.assertEqual(self.text(session, 'echo "$ONE $TWO"'), "1 2\n")
        self.assertEqual(self.text(session, 'echo "$ONE $TWO"', envs={"TWO": "own"}), "1 own\n")
        self.assertNotIn("envs", sandbox)
        self.remove(sandbox)

    def test_r063_envs_of_a_sandbox_are_as_those_of_a_process(self):
        """Numbers and booleans are their JSON text; null sets nothing."""
        values = {"TEXT": " a b", "WHOLE": -5, "REAL": 1.5, "YES": True, "NO": False, "NULL": None, "EMPTY": ""}
        script = 'printf "%s|" "$TEXT" "$WHOLE" "$REAL" "$YES" "$NO" "${NULL-unset}" "${EMPTY-unset}"'
        sandbox, session = self.create({"envs": values})
        self.assertEqual(self.text(session, script), " a b|-5|1.5|true|false|unset||")
        self.remove(sandbox)
        other, session = self.create()
        self.assertEqual(self.text(session, script, envs=values), " a b|-5|1.5|true|false|unset||")
        self.remove(other)

    def test_the_timeout_removes_it(self):
        sandbox, session = self.create({"timeout": 1.5})
        folder = self.agent(sandbox)["folder"]
        self.assertEqual(self.text(session, "echo hi"), "hi\n")
        wait_until(lambda: sandbox["id"] not in self.ids(), "it is removed")
        wait_until(lambda: not os.path.exists(folder), "its folder is gone")
        self.assert_refused(self.request("GET", "/runtime/v1/process", token=session["token"]), 401)

    def test_the_timeout_can_be_moved(self):
        sandbox, _ = self.create({"timeout": 60})
        response = self.request("POST", f"/v1/sandboxes/{sandbox['id']}/timeout", {"timeout": 7200})
        self.assertEqual(response.status, 200, response.body)
        later = response.json()["sandbox"]
        self.assertGreater(later["expires_at"], sandbox["expires_at"])
        self.assertEqual(later["id"], sandbox["id"])
        self.request("POST", f"/v1/sandboxes/{sandbox['id']}/timeout", {"timeout": 0.001})
        wait_until(lambda: sandbox["id"] not in self.ids(), "it is removed")

    def test_one_without_a_timeout_has_an_end_too(self):
        sandbox, _ = self.create({"timeout": None, "metadata": None, "envs": None})
        self.assertTrue(sandbox["expires_at"])
        self.assertEqual(sandbox["metadata"], {})
        self.remove(sandbox)

    def test_resume_gives_a_further_token(self):
        """The earlier ones stay good, up to sixty-four; tokens that it has made itself do not count; the end moves only if the request says so."""
        sandbox, session = self.create()
        path = f"/v1/sandboxes/{sandbox['id']}/resume"
        answers = [self.request("POST", path, body) for body in ({}, b"", {"timeout": 7000})]
        for response in answers:
            self.assertEqual(response.status, 200, response.body)
            self.assertEqual((response.json()["sandbox"]["id"], set(response.json()["session"])),
                             (sandbox["id"], {"token", "data_plane_url"}))
        self.assertEqual(answers[0].json()["sandbox"]["expires_at"], sandbox["expires_at"])
        self.assertGreater(answers[2].json()["sandbox"]["expires_at"], sandbox["expires_at"])
        tokens = [session["token"]] + [response.json()["session"]["token"] for response in answers]
        self.assertEqual(len(set(tokens)), 4)
        for token in tokens:
            self.get("/runtime/v1/process", token=token)
        own = self.request("POST", "/v1/ops/token_new", {}, token=tokens[-1]).json()["token"]
        tokens += [self.request("POST", path, {}).json()["session"]["token"] for _ in range(62)]
        self.assertEqual(self.agent(sandbox)["tokens"], 65)
        self.get("/runtime/v1/process", token=own)
        for number, token in enumerate(tokens):
            self.assertEqual(self.request("GET", "/runtime/v1/process", token=token).status, 401 if number < 2 else 200, number)
        self.remove(sandbox)

    def test_a_key_is_a_scope_of_its_own(self):
        """Sandboxes of one key are not another's; also those that an agent below it made are not its own."""
        token = self.gateway.agent_token("main/key")
        sandbox, session = self.create(token=token)
        self.assertEqual(self.text(session, "echo hi"), "hi\n")
        self.assertEqual(self.ids(token=token), [sandbox["id"]])
        self.assertNotIn(sandbox["id"], self.ids())
        self.assert_refused(self.request("GET", f"/v1/sandboxes/{sandbox['id']}"), 404, "sandbox_not_found")
        self.assertEqual(self.request("DELETE", f"/v1/sandboxes/{sandbox['id']}", token=token).status, 200)

    def test_an_agent_of_another_kind_is_no_sandbox(self):
        """What was not made here cannot be ended here, whatever its name."""
        self.gateway.agent_token("main/worker")
        for name in ("worker", "main", "self", "..", "sbx-", "sbx-0123456789ABCDEF", "sbx-0123456789abcdef", "main%2Fworker", "%2e%2e"):
            for method in ("GET", "DELETE"):
                self.assert_refused(self.request(method, f"/v1/sandboxes/{name}"), 404, "sandbox_not_found")
        self.assertEqual(self.gateway.keeper().call("agent_show", agent="worker")["agent"]["name"], "worker")


class ListTest(ControlCase):
    own = True

    def test_pages(self):
        made = [self.create({"metadata": {"n": str(number)}})[0]["id"] for number in range(7)]
        self.assertEqual(self.ids(), made)
        seen, target = [], "/v1/sandboxes?limit=3"
        for size in (3, 3, 1):
            page = self.get(target)
            self.assertEqual(len(page["sandboxes"]), size)
            seen += [sandbox["id"] for sandbox in page["sandboxes"]]
            self.assertEqual(page["next_token"] is None, size == 1)
            target = f"/v1/sandboxes?limit=3&next_token={page['next_token']}"
        self.assertEqual(seen, made)

    def test_a_page_goes_on_though_its_last_one_is_gone(self):
        made = [self.create()[0] for _ in range(4)]
        page = self.get("/v1/sandboxes?limit=2")
        self.remove(made[1])
        rest = self.get(f"/v1/sandboxes?limit=2&next_token={page['next_token']}")
        self.assertEqual([sandbox["id"] for sandbox in rest["sandboxes"]], [sandbox["id"] for sandbox in made[2:]])

    def test_they_outlive_the_gateway(self):
        sandbox, session = self.create({"metadata": {"a": "b"}})
        self.gateway.kill_gateway()
        self.assertEqual(self.get(f"/v1/sandboxes/{sandbox['id']}"), {"sandbox": sandbox})
        self.assertEqual(self.text(session, "echo hi"), "hi\n")

    def test_a_client_that_goes_leaves_no_sandbox(self):
        """One that was made for somebody who is not there any more is removed again, or answered."""
        for _ in range(10):
            with socket.create_connection(self.gateway.address) as client:
                client.sendall(f"POST /v1/sandboxes HTTP/1.1\r\nHost: {self.gateway.host}\r\nAuthorization: Bearer {self.gateway.token}\r\n"
                               "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".encode())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        # What was made before the gateway noticed goes at its time; the keeper and the gateway are well.
        sandbox, _ = self.create()
        self.assertIn(sandbox["id"], self.ids())

    def test_an_agents_limits_hold_for_its_sandboxes(self):
        token = self.gateway.agent_token("main/key", max_running=1)
        _, session = self.create(token=token)
        self.sh("exec sleep 300", socket={"token": session["token"]})
        response = self.request("GET", "/runtime/v1/process", token=session["token"])
        self.assertEqual(len(response.json()["processes"]), 1)


class RefusalTest(ControlCase):
    def test_every_field_is_named(self):
        for body, field in (({"timeout": 0}, "timeout"), ({"timeout": -1}, "timeout"), ({"timeout": "60"}, "timeout"), ({"timeout": True}, "timeout"),
                            ({"timeout": 86401}, "timeout"), ({"timeout": 1e300}, "timeout"), ({"timeout": []}, "timeout"),
                            ({"metadata": []}, "metadata"), ({"metadata": "x"}, "metadata"), ({"metadata": {"a": 1}}, "metadata.a"),
                            ({"metadata": {"a": None}}, "metadata.a"), ({"envs": [1]}, "envs"), ({"envs": {"A": {}}}, "envs.A"), ({"envs": {"A": ["x"]}}, "envs.A"),
                            ({"envs": {"A-B": "x"}}, "envs.A-B")):
            response = self.request("POST", "/v1/sandboxes", body)
            self.assert_refused(response, 400, "invalid_argument")
            self.assertIn(field, response.json()["message"])
        self.assertEqual(self.ids(), [])

    def test_too_much_is_refused(self):
        for body, field in (({"metadata": {"a": "x" * 17000}}, "metadata"), ({"metadata": {str(n): "" for n in range(65)}}, "metadata"),
                            ({"envs": {f"A{n}": "x" * 60000 for n in range(3)}}, "envs")):
            response = self.request("POST", "/v1/sandboxes", body)
            self.assertIn(response.status, (400, 413), response.body)
            self.assertIn(field, response.json()["message"])
        self.assertEqual(self.ids(), [])

    def test_bodies_that_are_no_objects(self):
        for body in (b"[]", b"1", b"{", b"null", b'"x"'):
            self.assert_refused(self.request("POST", "/v1/sandboxes", body, headers={"Content-Type": "application/json"}), 400)

    def test_a_timeout_is_needed_to_set_one(self):
        sandbox, _ = self.create()
        for body in ({}, {"timeout": None}, {"timeout": 0}, {"timeout": 90000}):
            response = self.request("POST", f"/v1/sandboxes/{sandbox['id']}/timeout", body)
            self.assert_refused(response, 400, "invalid_argument")
        response = self.request("POST", f"/v1/sandboxes/{sandbox['id']}/resume", {"timeout": "x"})
        self.assert_refused(response, 400, "invalid_argument")
        self.remove(sandbox)

    def test_bad_pages(self):
        for query in ("limit=0", "limit=-1", "limit=x", "limit=1001", "next_token=x", "next_token=-1"):
            self.assert_refused(self.request("GET", f"/v1/sandboxes?{query}"), 400, "invalid_argument")

    def test_the_rest_is_not_implemented(self):
        sandbox, _ = self.create()
        for method, path in (("POST", f"{sandbox['id']}/pause"), ("GET", f"{sandbox['id']}/metrics"), ("PUT", sandbox["id"]),
                             ("POST", f"{sandbox['id']}/snapshots/x"), ("GET", f"{sandbox['id']}/resume")):
            self.assert_refused(self.request(method, f"/v1/sandboxes/{path}"), 501, "not_implemented")
        self.remove(sandbox)

    def test_r001_a_key_is_needed(self):
        for method, path in (("POST", ""), ("GET", ""), ("GET", "/sbx-0123456789abcdef"), ("DELETE", "/x"), ("POST", "/x/resume")):
            for token in (False, "coop_1_wrong"):
                self.assert_refused(self.request(method, f"/v1/sandboxes{path}", token=token), 401)


class OffTest(GatewayCase):
    def test_it_is_off_unless_it_is_asked_for(self):
        for method, path in (("POST", ""), ("GET", ""), ("GET", "/sbx-0123456789abcdef")):
            self.assert_refused(self.request(method, f"/v1/sandboxes{path}", {} if method == "POST" else None), 404)

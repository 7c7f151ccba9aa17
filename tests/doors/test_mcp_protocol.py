"""MCP before any tool: versions, eras, what is offered, and what is refused, on both transports (M-004 to M-011, M-024)."""

import json

from lib.mcp import (INVALID_PARAMS, INVALID_REQUEST, LATEST_LEGACY, LEGACY, META, MODERN, NO_METHOD, NO_VERSION, McpError, Pending,
                     check_message, meta, parse)
from lib.mcp_case import HttpCase, StdioCase

NOT_OFFERED = ("prompts/list", "prompts/get", "completion/complete", "sampling/createMessage", "roots/list", "elicitation/create",
               "logging/setLevel", "tasks/list", "tasks/result", "no/such/method", "", "tools/call/", "TOOLS/LIST")


class Protocol:
    def test_m004_legacy_versions_are_echoed(self):
        """Each of the four is answered with itself, an unknown one with the latest; afterwards tools are listed."""
        for version in LEGACY:
            with self.subTest(version=version):
                peer = self.start_peer()
                result = peer.initialize(version)
                self.assertEqual(result["protocolVersion"], version)
                self.assertEqual(set(result) - {"instructions", "_meta"}, {"protocolVersion", "capabilities", "serverInfo"})
                self.assertEqual(result["serverInfo"]["name"], "coop")
                self.assertTrue(result["serverInfo"]["version"])
                self.assertTrue(peer.call("tools/list")["tools"])
                self.assertEqual(peer.call("ping"), {})
        for version in ("1900-01-01", "2024-11-04", "9999-12-31", "", "latest", MODERN):
            with self.subTest(version=version):
                peer = self.start_peer()
                self.assertEqual(peer.initialize(version)["protocolVersion"], LATEST_LEGACY)
                self.assertTrue(peer.call("tools/list")["tools"])

    def test_initialize_without_a_version_is_refused_and_may_be_repeated(self):
        for params in ({}, {"protocolVersion": 7, "capabilities": {}}, {"protocolVersion": None}):
            peer = self.start_peer()
            self.refused(INVALID_PARAMS, 400, "initialize", params, peer, modern=False)
            peer.initialize()
            self.assertTrue(peer.call("tools/list")["tools"])

    def test_m005_discover_tells_what_is_answered(self):
        """All its fields are there, and its capabilities are exactly what is answered."""
        peer = self.peer
        found = peer.call("server/discover")
        self.assertEqual(found["resultType"], "complete")
        self.assertIn(MODERN, found["supportedVersions"])
        self.assertTrue(found["instructions"])
        self.assertLess(len(found["instructions"]), 2500)
        self.assertEqual(found["_meta"][META + "serverInfo"]["name"], "coop")
        capabilities = found["capabilities"]
        self.assertLessEqual({"tools", "resources"}, set(capabilities))
        self.assertLessEqual(set(capabilities), {"tools", "resources", "extensions"})
        for method, name in (("tools/list", "tools"), ("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")):
            self.assertIsInstance(peer.call(method)[name], list)
        for method in NOT_OFFERED:
            self.refused(NO_METHOD, 404, method)
        extensions = capabilities.get("extensions", {})
        self.assertLessEqual(set(extensions), {META + "tasks"})
        wanted = INVALID_PARAMS if extensions else NO_METHOD
        self.refused(wanted, None, "tasks/get", {"taskId": "none"}, capabilities={"extensions": {META + "tasks": {}}})

    def test_m005_legacy_capabilities_are_what_is_answered(self):
        peer = self.start_peer()
        capabilities = peer.initialize()["capabilities"]
        self.assertLessEqual({"tools", "resources"}, set(capabilities))
        self.assertLessEqual(set(capabilities), {"tools", "resources"})
        self.assertIs(capabilities["resources"].get("subscribe"), True)
        for method in (*NOT_OFFERED, "server/discover", "subscriptions/listen", "tasks/get"):
            with self.assertRaises(McpError) as caught:
                peer.call(method)
            self.assertEqual(caught.exception.code, NO_METHOD, method)

    def test_m006_modern_requests_need_their_metadata(self):
        """Without it, without version, without capabilities: -32602. clientInfo is not needed."""
        peer = self.peer
        for found in ({}, meta(version=None), meta(capabilities=False), meta(version=None, capabilities=False)):
            with self.subTest(meta=found):
                params = {"_meta": found} if found else {}
                self.refused(INVALID_PARAMS, 400, "tools/list", params, modern=False)
        for found in ({META + "protocolVersion": MODERN, META + "clientCapabilities": 7},
                      {META + "protocolVersion": MODERN, META + "clientCapabilities": None},
                      {META + "protocolVersion": 7, META + "clientCapabilities": {}}):
            with self.subTest(meta=found):
                self.refused(INVALID_PARAMS, 400, "tools/list", {"_meta": found}, modern=False)
        self.assertTrue(self.connect_and_call(meta(client=False)))
        self.assertTrue(peer.call("tools/list")["tools"])

    def connect_and_call(self, found):
        """tools/list with just this metadata, marked as of the modern era."""
        peer = self.start_peer()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": found}}
        if self.transport == "http":
            response = peer.post(message)
            self.assertEqual(response.status, 200, response.body)
            return response.json()["result"]["tools"]
        return peer.call("tools/list", {"_meta": found}, modern=False)["tools"]

    def test_params_that_are_no_object_are_refused(self):
        for params in ([], "x", 7, None):
            peer = self.start_peer()
            message = {"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": params}
            if self.transport == "http":
                response = peer.post(message)
                self.assertEqual(response.status, 400, response.body)
                error = response.json()
                check_message(error)
                self.assertIn(error["error"]["code"], (INVALID_REQUEST, INVALID_PARAMS))
            else:
                pending = peer.open["a"] = Pending(peer, "a", "tools/list", False)
                peer.write(message)
                with self.assertRaises(McpError) as caught:
                    pending.finish()
                self.assertIn(caught.exception.code, (INVALID_REQUEST, INVALID_PARAMS))

    def test_m007_an_unknown_version(self):
        """-32022, and what there is instead, with legacy revisions among them."""
        for version in ("1900-01-01", "2026-07-29", "x"):
            with self.subTest(version=version):
                error = self.refused(NO_VERSION, 400, "tools/list", {"_meta": meta(version)})
                self.assertEqual(error.data["requested"], version)
                self.assertEqual(set(error.data["supported"]), {*LEGACY, MODERN})
        self.assertTrue(self.peer.call("tools/list")["tools"])

    def test_m008_removed_methods_are_unknown_in_modern_form(self):
        """-32601 with the request's own id, HTTP 404; also while a legacy session is open."""
        peers = [self.peer, self.connect(LATEST_LEGACY)]
        for peer in peers:
            for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
                params = peer.opening() if method == "initialize" else {"uri": "coop://process/x", "level": "info"}
                for number in (17, "seventeen"):
                    self.refused(NO_METHOD, 404, method, params, peer, number=number, modern=True)
            peer.call("tools/list")

    def test_m009_both_eras_interleaved(self):
        """One process, one endpoint: each request is answered in its own era, whatever came before."""
        peer = self.connect("2025-06-18")
        for _ in range(5):
            self.assertNotIn("resultType", peer.call("tools/list"))
            self.assertEqual(peer.call("tools/list", modern=True)["resultType"], "complete")
            self.assertEqual(peer.call("ping"), {})
            self.refused(NO_METHOD, 404, "ping", None, peer, modern=True)
            self.assertEqual(peer.call("server/discover", modern=True)["resultType"], "complete")
        pendings = [peer.submit_tool("list_processes", {}, modern=bool(n % 2)) for n in range(40)]
        for n, pending in enumerate(pendings):
            self.assertEqual("resultType" in pending.finish(), bool(n % 2))

    def test_m009_a_modern_request_leaves_no_state_behind(self):
        """A legacy request that follows one is as malformed as ever."""
        peer = self.peer
        peer.call("tools/list")
        self.refused(INVALID_PARAMS, 400, "tools/list", None, peer, modern=False)

    def test_before_initialize_only_ping_is_answered(self):
        if self.transport == "http":
            peer = self.start_peer()
            for method in ("tools/list", "resources/list"):
                self.refused(INVALID_PARAMS, 400, method, None, peer, modern=False)
            return
        peer = self.start_peer()
        self.assertEqual(peer.call("ping", modern=False), {})
        for method in ("tools/list", "tools/call", "resources/list", "no/such"):
            self.refused(INVALID_PARAMS, None, method, None, peer, modern=False)
        peer.initialize()
        self.assertTrue(peer.call("tools/list")["tools"])

    def test_ids_are_kept_as_they_are(self):
        """Strings and integers, also large, negative, empty and odd ones."""
        for peer in self.eras():
            for number in (0, -5, 2**53 - 1, "", "0", "ünïcode \"quoted\"\\", "x" * 200):
                self.assertIn("tools", peer.call("tools/list", number=number))

    def test_ids_that_are_none_are_refused(self):
        """null, true, lists and fractions are no ids; the server lives on."""
        peer = self.start_peer()
        for number in (None, True, [1], {"a": 1}, 1.5):
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {"_meta": meta()}}
            if self.transport == "http":
                response = peer.post(message)
                self.assertEqual(response.status, 400, response.body)
                self.assertEqual(response.json()["error"]["code"], INVALID_REQUEST)
            else:
                peer.write(message)
                self.assertEqual(peer.stray()["code"], INVALID_REQUEST)
        self.assertTrue(peer.call("tools/list")["tools"])

    def test_what_is_no_request_is_refused(self):
        """JSON of other kinds, without jsonrpc or with another one, without a method: -32600."""
        peer = self.start_peer()
        for message in (7, "x", None, True, {}, {"id": 1}, {"jsonrpc": "1.0", "id": 1, "method": "tools/list"}, {"id": 1, "method": "tools/list"},
                        {"jsonrpc": "2.0", "id": 1, "method": 7}, {"jsonrpc": "2.0", "id": 1},
                        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "result": {}},
                        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "error": {"code": 1, "message": "x"}}):
            with self.subTest(message=message):
                if self.transport == "http":
                    response = peer.post(json.dumps(message).encode(), peer.headers())
                    self.assertEqual(response.status, 400, response.body)
                    found = response.json()
                    check_message(found)
                    self.assertIn(found["error"]["code"], (INVALID_REQUEST, INVALID_PARAMS))  # without a session nothing is looked into
                    continue
                peer.raw = []
                peer.write(message)
                following = peer.submit("tools/list", number="next")
                peer.open[1] = Pending(peer, 1, "?", False)
                following.finish()
                peer.open.pop(1, None)
                found = next(found for found in map(parse, peer.raw) if found["id"] != "next")
                self.assertEqual(found["error"]["code"], INVALID_REQUEST)
                peer.strays.clear()

    def test_m024_batches_only_under_2025_03_26(self):
        """There each part is answered; everywhere else the whole is refused, and nothing of it is carried out."""
        for version in (*LEGACY, None):
            with self.subTest(version=version):
                peer = self.connect(version)
                batch = [peer.message("tools/list"), {"jsonrpc": "2.0", "method": "notifications/initialized"},
                         peer.message("tools/call", {"name": "list_processes", "arguments": {}}), peer.message("no/such")]
                answers = self.send_batch(peer, batch)
                if version != "2025-03-26":
                    self.assertEqual([answer["error"]["code"] for answer in answers], [INVALID_REQUEST])
                else:
                    by_id = {answer["id"]: answer for answer in answers}
                    self.assertEqual(set(by_id), {part["id"] for part in batch if "id" in part})
                    self.assertIn("tools", by_id[batch[0]["id"]]["result"])
                    self.assertIn("processes", by_id[batch[2]["id"]]["result"]["structuredContent"])
                    self.assertEqual(by_id[batch[3]["id"]]["error"]["code"], NO_METHOD)
                self.assertTrue(peer.call("tools/list")["tools"])

    def test_m024_an_empty_batch_is_refused(self):
        peer = self.connect("2025-03-26")
        self.assertEqual([answer["error"]["code"] for answer in self.send_batch(peer, [])], [INVALID_REQUEST])

    def send_batch(self, peer, batch):
        """All answers to a batch, or the one refusal of it."""
        if self.transport == "http":
            response = peer.post(json.dumps(batch).encode(), peer.headers(batch[0] if batch and peer.modern else None))
            if response.status == 400:
                return [response.json()]
            self.assertEqual(response.status, 200, response.body)
            if response.headers["content-type"].startswith("text/event-stream"):
                lines = [line[5:] for line in response.body.split(b"\n") if line.startswith(b"data:")]
                found = [parse(line) for line in lines if line.strip()]
            else:
                found = [response.json()]
            return [part for item in found for part in (item if isinstance(item, list) else [item])]
        if peer.version != "2025-03-26" or not batch:
            peer.write(batch)
            return [{"error": peer.stray()}]
        pendings = []
        for part in batch:
            if "id" in part:
                pending = Pending(peer, part["id"], part["method"], False)
                peer.open[part["id"]] = pending
                pendings.append(pending)
        peer.write(batch)
        for pending in pendings:
            try:
                pending.finish()
            except McpError:
                pass
        return [pending.answer for pending in pendings]


class StdioProtocolTest(Protocol, StdioCase):
    def test_m011_nothing_but_messages_on_stdout(self):
        """Commands that shout, fail, and write control characters; wrong requests; a server that ends: every line is one message."""
        peer = self.connect("2025-11-25", options=("--tools", "all"))
        peer.raw = []
        self.run_sh(r'printf "\n\n\r\nout\033[2J\n"; echo err >&2; printf "\0\001\377\n"; exit 3', peer)
        self.any("run_command", peer, command="/no/such/program")
        self.any("kill_process", peer, pid="psh-0-0", signal="SIGNOPE")
        shell = self.ok("open_shell", peer)["session_id"]
        self.ok("shell_write", peer, session_id=shell, input="printf 'a\\nb\\n'; stty -a\n")
        self.any("shell_expect", peer, session_id=shell, pattern="speed", timeout_secs=30)
        self.ok("close_shell", peer, session_id=shell)
        peer.write_raw(b"this is no JSON\n")
        peer.stray()
        for method in ("tools/list", "resources/list", "resources/templates/list"):
            peer.call(method)
            peer.call(method, modern=True)
        peer.call("server/discover", modern=True)
        self.assertEqual(peer.leave(), 0)
        self.assertGreater(len(peer.raw), 12)
        for line in peer.raw:
            self.assertNotIn(b"\r", line)
            check_message(parse(line))

    def test_notifications_get_no_answer(self):
        """Known, unknown and malformed ones alike."""
        peer = self.connect(LATEST_LEGACY)
        for method in ("notifications/initialized", "notifications/roots/list_changed", "notifications/no_such", "tools/list"):
            peer.write({"jsonrpc": "2.0", "method": method})
            peer.write({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta()}})
        peer.call("ping")
        self.assertEqual(len(peer.strays), 0)

    def test_the_same_id_twice_at_once_does_no_harm(self):
        """A client's mistake must not mix up two calls or end the server."""
        peer = self.peer
        process = self.background("exec sleep 300")
        first = peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 20000}, number=77)
        peer.write(peer.message("tools/list", number=77))
        try:
            first.finish()
        except McpError:
            pass
        peer.open[77] = Pending(peer, 77, "?", False)  # the other one's answer, if it comes
        self.assertTrue(peer.call("tools/list")["tools"])
        self.ok("stop_process", pid=process, grace_ms=0)
        self.assertTrue(peer.call("tools/list")["tools"])

    def test_answers_to_us_are_ignored(self):
        """We ask for nothing, so that an answer of the client means nothing."""
        peer = self.peer
        peer.write({"jsonrpc": "2.0", "id": 1, "result": {}})
        peer.write({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}})
        self.assertTrue(peer.call("tools/list", number=99)["tools"])
        self.assertEqual(len(peer.strays), 0)


class HttpProtocolTest(Protocol, HttpCase):
    def test_m029_eras_and_transports_say_the_same_of_the_server(self):
        """What discover says is what initialize says."""
        modern, legacy = self.peer.call("server/discover"), self.start_peer().initialize()
        self.assertLessEqual(modern["_meta"][META + "serverInfo"].items(), legacy["serverInfo"].items())
        self.assertEqual(modern["instructions"], legacy["instructions"])

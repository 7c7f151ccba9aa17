"""`/mcp` of the gateway: who may come in, headers and statuses of both eras, sessions, and what closing a connection means
(M-006, M-018 to M-023, M-038, M-045, M-049)."""

import base64
import json
import os
import re
import socket
import time

from lib import procs
from lib.client import Client
from lib.gateway import Gateway
from lib.http_client import HttpConnection
from lib.mcp import (HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, LATEST_LEGACY, LEGACY, MODERN, NO_METHOD, PARSE, UPDATED,
                     check_message, meta)
from lib.mcp_case import HttpCase
from lib.mcp_http import BOTH, EventStream
from lib.place import patience, sanitized

MIB = 1 << 20
VISIBLE = re.compile(r"^[\x21-\x7e]{22,128}$")


class DoorTest(HttpCase):
    """Before anything else."""

    def listing(self, peer=None):
        return (peer or self.peer).message("tools/list")

    def status(self, message=None, **headers):
        message = message or self.listing()
        return self.peer.post(message, self.peer.headers(message, **headers)).status

    def test_m018_foreign_hosts_and_origins(self):
        """403 each: a foreign Host without Origin, a foreign Origin with the right Host, and Origin: null."""
        port = self.gateway.port
        self.assertEqual(self.status(), 200)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1:1", f"0.0.0.0:{port}",
                     f"127.0.0.2:{port}"):
            self.assertEqual(self.status(Host=host), 403, host)
        for origin in ("http://evil.example", f"http://evil.example:{port}", "null", "http://localhost.evil.example",
                       f"http://127.0.0.1.evil.example:{port}",
                       "file://", "http://127.0.0.1:1", "chrome-extension://abc"):
            self.assertEqual(self.status(Origin=origin), 403, origin)
        for origin in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
            self.assertEqual(self.status(Origin=origin), 200, origin)

    def test_m018_before_the_token_and_the_body(self):
        """Nobody learns from a foreign page whether a token is good."""
        for token in (f"Bearer {self.agent_token}", "Bearer wrong", None):
            self.assertEqual(self.status(Origin="http://evil.example", Authorization=token), 403)
        self.assertEqual(self.peer.request("GET", {"Origin": "null"}).status, 403)
        self.assertEqual(self.peer.request("OPTIONS", {"Origin": "http://evil.example"}).status, 403)

    def test_m018_no_cors_headers(self):
        message = self.listing()
        response = self.peer.post(message, self.peer.headers(message, Origin=f"http://127.0.0.1:{self.gateway.port}"))
        self.assertEqual([name for name in response.headers if name.startswith("access-control")], [])

    def test_m019_tokens(self):
        """401 without one or with a wrong one, for every method, before the body is looked at."""
        for given in (None, "Bearer wrong", "Bearer ", "Basic abc", f"Bearer {self.agent_token}x", self.agent_token):
            for body in (b"no JSON", b"\xff", json.dumps(self.listing()).encode(), b""):
                response = self.peer.post(body, self.peer.headers(Authorization=given))
                self.assertEqual(response.status, 401, (given, response.body))
                self.assertIn("www-authenticate", response.headers)
            for method in ("GET", "DELETE"):
                self.assertEqual(self.peer.request(method, {"Authorization": given}).status, 401)

    def test_m019_without_waiting_for_the_body(self):
        """A body that never comes is not waited for."""
        with HttpConnection(self.gateway.address, self.gateway.host) as connection:
            connection.send_request("POST", "/mcp", self.peer.headers(Authorization="Bearer wrong") | {"Content-Length": "100000"})
            self.assertEqual(connection.read_head()[0], 401)

    def test_m020_loopback_alone(self):
        """Where nothing is said of it, nobody else can connect."""
        gateway = Gateway(listen=None) if default_port_is_free() else self.gateway
        try:
            addresses = listening(gateway)
            self.assertTrue(addresses)
            self.assertLessEqual(addresses, {"127.0.0.1", "::1"})
        finally:
            if gateway is not self.gateway:
                gateway.stop()
                gateway.place.remove()

    def test_m022_content_type_and_accept(self):
        """415 and 406. Parameters, upper case and wildcards mean what they mean elsewhere."""
        for kind in ("text/plain", "application/json-rpc", "application/x-www-form-urlencoded", "text/json", "", None):
            self.assertEqual(self.status(Content_Type=kind), 415, kind)
        for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"):
            self.assertEqual(self.status(Content_Type=kind), 200, kind)
        for accept in ("application/json", "text/event-stream", "text/html", "application/*", "application/json, text/plain", "", "*/*;q=0",
                       "application/json;q=0, text/event-stream", "application/json, text/event-stream; level=1; Q=0.0", "*/*, application/json;q=0"):
            self.assertEqual(self.status(Accept=accept), 406, accept)
        for accept in (BOTH, "text/event-stream,application/json", "*/*", "application/*, text/*", "application/json;q=0.5, text/event-stream;q=0.1",
                       "APPLICATION/JSON, Text/Event-Stream"):
            self.assertEqual(self.status(Accept=accept), 200, accept)
        self.assertEqual(self.status(Accept=None), 200, "who says nothing takes anything")

    def test_m022_get_and_delete_without_a_session(self):
        """405, whatever the modern era's client says."""
        for method in ("GET", "DELETE"):
            for headers in ({}, {"MCP-Protocol-Version": MODERN}, {"Last-Event-ID": "7"}):
                self.assertEqual(self.peer.request(method, headers).status, 405, headers)
        for method in ("PUT", "PATCH", "HEAD"):
            self.assertEqual(self.peer.request(method).status, 405)

    def test_m022_the_modern_era_has_no_sessions(self):
        """A session id is ignored, and none is given."""
        message = self.listing()
        response = self.peer.post(message, self.peer.headers(message, MCP_Session_Id="no-such-session", Last_Event_ID="9"))
        self.assertEqual(response.status, 200)
        self.assertNotIn("mcp-session-id", response.headers)

    def test_m023_notifications(self):
        """202 and nothing, in both eras."""
        legacy = self.connect(LATEST_LEGACY)
        for peer, message in ((self.peer, {"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": meta()}}),
                              (legacy, {"jsonrpc": "2.0", "method": "notifications/x"}),
                              (legacy, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})):
            response = peer.post(message)
            self.assertEqual((response.status, response.body), (202, b""), message)

    def test_m024_a_batch_is_400(self):
        response = self.peer.post(json.dumps([self.listing()]).encode(), self.peer.headers(self.listing()))
        self.assertEqual(response.status, 400)
        self.assertEqual(response.json()["error"]["code"], INVALID_REQUEST)

    def test_bodies_that_are_no_json(self):
        """400 with -32700."""
        for body in (b"", b"x", b"{", b"\xff\xff", b"[1", json.dumps(self.listing()).encode() + b"x"):
            response = self.peer.post(body, self.peer.headers(self.listing()))
            self.assertEqual(response.status, 400, body)
            found = response.json()
            check_message(found)
            self.assertEqual((found["id"], found["error"]["code"]), (None, PARSE))

    def test_m049_oversize_bodies(self):
        """413, by the length alone and by what comes in chunks; the door stays open."""
        pid = self.gateway.pid
        with HttpConnection(self.gateway.address, self.gateway.host) as connection:
            connection.send_request("POST", "/mcp", self.peer.headers(self.listing()) | {"Content-Length": str(1 << 40)})
            self.assertEqual(connection.read_head()[0], 413)
        body = json.dumps(self.listing()).encode()[:-1] + b', "x": "' + b"x" * (40 * MIB) + b'"}'
        with HttpConnection(self.gateway.address, self.gateway.host) as connection:
            try:
                chunks = (body[at : at + MIB] for at in range(0, len(body), MIB))
                connection.send_request("POST", "/mcp", self.peer.headers(self.listing()), chunks=chunks)
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.assertEqual(connection.read_head()[0], 413)
        self.assertEqual(self.status(), 200)
        self.assertEqual(self.gateway.pid, pid)

    def test_m049_deep_json(self):
        for deep in (b"[" * 100000 + b"]" * 100000, b"[" * 500000, b'{"a":' * 100000 + b"1" + b"}" * 100000):
            body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": ' + deep + b"}}"
            response = self.peer.post(body, self.peer.headers(self.listing()))
            self.assertEqual(response.status, 400)
            self.assertIn(response.json()["error"]["code"], (PARSE, INVALID_REQUEST))
        self.assertEqual(self.status(), 200)

    def test_m049_many_open_requests(self):
        """All are answered in the end, or refused cleanly; others get in meanwhile."""
        process = self.background("exec sleep 300")
        count = 1000 if not sanitized() else 200
        waits = [self.peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 45000}) for _ in range(count)]
        other = self.other_agent()
        self.assertEqual(self.listed(other), [])
        with Client(self.gateway.place.socket) as client:
            client.login(self.agent_token).call("kill", id=process)
        answered = 0
        for pending in waits:
            try:
                answered += "signaled" in pending.result()["status"]
            except Exception as error:
                self.assertIn(pending.status, (200, 429, 503), error)
        self.assertGreater(answered, 50)
        self.assertEqual(self.listed(), [])


class HeadersTest(HttpCase):
    """What the modern era's headers must say (M-021)."""

    def expect(self, message, status, code=None, **headers):
        response = self.peer.post(message, self.peer.headers(message, **headers))
        self.assertEqual(response.status, status, (headers, response.body))
        if code:
            found = response.json()
            check_message(found)
            self.assertEqual((found["error"]["code"], found["id"]), (code, message["id"]), headers)
        return response

    def test_m021_version_method_and_name(self):
        """Missing or different: 400 and -32020, with the request's id."""
        call = self.peer.message("tools/call", {"name": "list_processes", "arguments": {}})
        self.expect(call, 200)
        for name, wrong in (("MCP_Protocol_Version", ("2025-11-25", "", "2026-07-28x", "1900-01-01")),
                            ("Mcp_Method", ("tools/list", "", "Tools/Call", "tools/call/")),
                            ("Mcp_Name", ("kill_process", "", "List_Processes", "=?base64?AAAA?="))):
            for value in (None, *wrong):
                with self.subTest(name=name, value=value):
                    self.expect(call, 400, HEADER_MISMATCH, **{name: value})
        self.expect(call, 200)

    def test_m021_names_of_headers_in_any_case(self):
        call = self.peer.message("tools/call", {"name": "list_processes", "arguments": {}})
        headers = {name.upper(): value for name, value in self.peer.headers(call).items()}
        self.assertEqual(self.peer.post(call, headers).status, 200)

    def test_m021_base64_form(self):
        """Is decoded before it is compared, in its full form and only then."""
        call = self.peer.message("tools/call", {"name": "list_processes", "arguments": {}})
        word = base64.b64encode(b"list_processes").decode()
        self.expect(call, 200, Mcp_Name=f"=?base64?{word}?=")
        for value in (word, f"=?base64?{word}", f"=?base64?{word[:-2]}?=", "=?base64??=", "=?base64?****?=",
                      f"=?base64?{base64.b64encode(b'kill_process').decode()}?="):
            self.expect(call, 400, HEADER_MISMATCH, Mcp_Name=value)

    def test_m021_a_name_that_is_no_header(self):
        """A uri with other letters comes in base64; it is then simply not there."""
        message = self.peer.message("resources/read", {"uri": "coop://process/größe"})
        self.assertTrue(self.peer.headers(message)["Mcp-Name"].startswith("=?base64?"))
        response = self.peer.post(message)
        self.assertEqual(response.json()["error"]["code"], INVALID_PARAMS)

    def test_m021_methods_without_a_name_need_none(self):
        message = self.peer.message("tools/list")
        self.expect(message, 200)
        self.expect(message, 200, Mcp_Param_Region="x")
        self.expect(message, 400, HEADER_MISMATCH, Mcp_Method="resources/list")

    def test_m021_uris_are_names_too(self):
        process = self.background("exec sleep 300")
        message = self.peer.message("resources/read", {"uri": f"coop://process/{process}"})
        self.expect(message, 200)
        self.expect(message, 400, HEADER_MISMATCH, Mcp_Name=f"coop://process/{process}/output")
        self.expect(message, 400, HEADER_MISMATCH, Mcp_Name=None)

    def test_m021_nothing_is_done_by_a_refused_request(self):
        call = self.peer.message("tools/call", {"name": "run_command", "arguments": {"command": "touch", "args": ["made"], "wait": True}})
        self.expect(call, 400, HEADER_MISMATCH, Mcp_Name="list_processes")
        self.assertFalse((self.work / "made").exists())

    def test_m008_an_unknown_method_is_404(self):
        self.expect(self.peer.message("no/such"), 404, NO_METHOD)
        self.expect(self.peer.message("ping", number="text id"), 404, NO_METHOD)

    def test_answers_in_json_or_events(self):
        """A plain call is one object; one that wants progress may be a stream; both end as they should."""
        call = self.peer.message("tools/call", {"name": "list_processes", "arguments": {}})
        response = self.expect(call, 200)
        self.assertTrue(response.headers["content-type"].startswith("application/json"))
        pending = self.peer.submit_tool("run_command", {"command": "true"}, token="t")
        self.assertFalse(pending.result().is_error)


class SessionTest(HttpCase):
    """The legacy era over HTTP (M-045)."""

    def test_m045_ids_are_given_and_hard_to_guess(self):
        found = {self.connect(version).session for version in LEGACY[1:] for _ in range(5)}
        self.assertEqual(len(found), 15)
        for session in found:
            self.assertRegex(session, VISIBLE)

    def test_m045_missing_unknown_and_ended(self):
        """400, 404, and after DELETE 404 for whatever is asked."""
        peer = self.connect(LATEST_LEGACY)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        self.assertEqual(peer.post(message).status, 200)
        self.assertEqual(peer.post(message, peer.headers(message, MCP_Session_Id=None)).status, 400)
        for unknown in ("x", peer.session[:-1], peer.session + "0", "0" * len(peer.session)):
            self.assertEqual(peer.post(message, peer.headers(message, MCP_Session_Id=unknown)).status, 404, unknown)
        self.assertIn(peer.request("DELETE", {"MCP-Session-Id": peer.session}).status, (200, 202, 204))
        self.assertEqual(peer.post(message).status, 404)
        self.assertEqual(peer.request("DELETE", {"MCP-Session-Id": peer.session}).status, 404)
        self.assertEqual(peer.request("GET", {"MCP-Session-Id": peer.session}).status, 404)

    def test_m045_bound_to_its_token(self):
        """With another token it is refused, and lives on for its own."""
        peer = self.connect(LATEST_LEGACY)
        thief = self.other_agent()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = peer.headers(message, Authorization=f"Bearer {thief.token}")
        self.assertIn(peer.post(message, headers).status, (403, 404))
        for method in ("GET", "DELETE"):
            self.assertIn(thief.request(method, {"MCP-Session-Id": peer.session}).status, (403, 404))
        self.assertEqual(peer.post(message).status, 200)

    def test_m045_versions(self):
        """Absent: taken for 2025-03-26; unknown: 400."""
        peer = self.connect(LATEST_LEGACY)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        self.assertEqual(peer.post(message, peer.headers(message, MCP_Protocol_Version=None)).status, 200)
        for version in ("1900-01-01", "", "x"):
            self.assertEqual(peer.post(message, peer.headers(message, MCP_Protocol_Version=version)).status, 400, version)

    def test_m045_sessions_do_not_grow_without_bound(self):
        """A client that opens one after the other and ends none gets on, and so do others."""
        last = None
        for _ in range(300):
            last = self.start_peer()
            last.call("initialize", last.opening(), modern=False)
        last.version = LATEST_LEGACY
        self.assertTrue(last.call("tools/list")["tools"])
        self.assertTrue(self.peer.call("tools/list")["tools"])

    def test_one_stream_for_each_session(self):
        """GET opens it; what is told comes on one stream only."""
        peer = self.connect(LATEST_LEGACY)
        process = self.background("read line; echo $line; exec sleep 300", peer)
        first = peer.open_stream()
        connection = peer.connect()
        found = {"Authorization": f"Bearer {peer.token}", "Accept": "text/event-stream", "MCP-Session-Id": peer.session}
        connection.send_request("GET", "/mcp", found)
        status, headers = connection.read_head()
        self.assertIn(status, (200, 409))
        uri = f"coop://process/{process}"
        peer.call("resources/subscribe", {"uri": uri})
        if status == 200:
            EventStream(connection, headers)
            connection.close()
        else:
            peer.get = first
            self.ok("stop_process", peer, pid=process, grace_ms=0)
            self.assertEqual(peer.loose(UPDATED)["params"]["uri"], uri)

    def test_the_stream_ends_with_its_session(self):
        peer = self.connect(LATEST_LEGACY)
        stream = peer.open_stream()
        self.assertIn(peer.request("DELETE", {"MCP-Session-Id": peer.session}).status, (200, 202, 204))
        deadline = time.monotonic() + patience(20)
        while not stream.over and stream.pump(deadline):
            self.assertFalse(stream.messages)
        self.assertTrue(stream.over)

    def test_get_needs_an_accept(self):
        peer = self.connect(LATEST_LEGACY)
        self.assertEqual(peer.request("GET", {"MCP-Session-Id": peer.session, "Accept": "application/json"}).status, 406)


class GoneTest(HttpCase):
    """What it means that the client has gone (M-038)."""

    def running(self, word):
        """The process whose command has this word in it, once it runs."""

        def look():
            rows = self.operator.call("list", include_finished=True)["processes"]
            return [row["id"] for row in rows if word in row["command"] and row["pid"]]  # before that the id is not the last word

        return procs.wait_until(look, "it runs")[0]

    def test_m038_a_modern_stream_that_is_closed_is_a_cancelled_call(self):
        """The foreground run ends with cause cancelled; what was only waited for lives."""
        for token in (None, "progress"):
            running = self.peer.submit_tool("run_command", {"command": "sh", "args": ["-c", f"sleep 301; : modern-{token}"], "timeout_secs": 300},
                                            token=token)
            process = self.running(f"modern-{token}")
            running.cancel()
            record = self.wait_record(process, lambda record: record["end_cause"], "it ends")
            self.assertEqual(record["end_cause"], "cancelled")
        kept = self.background("exec sleep 300")
        waits = [self.peer.submit_tool("wait_for_process", {"pid": kept, "timeout_ms": 40000}) for _ in range(5)]
        self.listed()
        for pending in waits:
            pending.cancel()
        self.assertEqual(self.listed(), [kept])
        self.assertEqual(self.record(kept)["state"], "running")

    def test_m038_a_legacy_disconnect_is_no_cancel(self):
        """The run goes on to its end."""
        peer = self.connect(LATEST_LEGACY)
        script = "until [ -e go ]; do sleep 0.05; done; echo done > made; : legacy"
        running = peer.submit_tool("run_command", {"command": "sh", "args": ["-c", script], "timeout_secs": 100})
        process = self.running(": legacy")
        running.connection.close()
        self.assertEqual(self.listed(peer), [process])
        (self.work / "go").touch()
        procs.wait_until((self.work / "made").exists, "it goes on")
        record = self.wait_record(process, lambda record: record["end_cause"], "it ends")
        self.assertEqual(record["end_cause"], "self_exit")

    def test_m038_a_legacy_cancel_is_one(self):
        peer = self.connect(LATEST_LEGACY)
        running = peer.submit_tool("run_command", {"command": "sh", "args": ["-c", "sleep 301; : told"], "timeout_secs": 300})
        process = self.running(": told")
        running.cancel()
        record = self.wait_record(process, lambda record: record["end_cause"], "it ends")
        self.assertEqual(record["end_cause"], "cancelled")

    def test_m038_one_client_cannot_cancel_anothers_call(self):
        """Ids are each session's own."""
        peer, other = self.connect(LATEST_LEGACY), self.connect(LATEST_LEGACY)
        process = self.background("exec sleep 300", peer)
        waiting = peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000}, number=4242)
        self.listed(peer)
        other.notify("notifications/cancelled", {"requestId": 4242})
        self.ok("stop_process", other, pid=process, grace_ms=0)
        self.assertIn("signaled", waiting.result()["status"])

    def test_m038_many_cancelled_calls_leave_room(self):
        process = self.background("exec sleep 300")
        for _ in range(700):
            self.peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000}).cancel()
        self.assertEqual(self.listed(), [process])


class ToolRoutesTest(HttpCase):
    """POST /v1/tools/NAME: the same tools without MCP around them."""

    def post(self, name, body, status=200, outcome="ok"):
        response = self.request("POST", f"/v1/tools/{name}", body, token=self.agent_token)
        self.assertEqual(response.status, status, response.body)
        self.assertEqual(response.headers.get("coop-outcome"), outcome)
        return response.json()

    def test_results_are_those_of_mcp(self):
        found = self.post("run_command", {"command": "echo", "args": ["hi"]})
        self.assertEqual((found["exit_code"], found["stdout"]), (0, "hi\n"))
        self.assertEqual(set(found), set(self.ok("run_command", command="echo", args=["hi"]).value))
        self.assertEqual(self.post("run_command", {"command": "sh", "args": ["-c", "exit 3"]}, outcome="failure")["exit_code"], 3)
        self.assertEqual(self.post("list_processes", {}), self.ok("list_processes").value)

    def test_errors(self):
        for name, body, status, code in (("process_stats", {"pid": "psh-0-0"}, 404, "no_such_process"),
                                         ("kill_process", {"pid": "psh-0-0", "x": 1}, 400, "invalid_input"),
                                         ("kill_process", {}, 400, "invalid_input")):
            found = self.post(name, body, status, "error")
            self.assertEqual(found["code"], code)
            self.assertTrue(found["advice"])
        self.assertEqual(self.request("POST", "/v1/tools/no_such", {}, token=self.agent_token).status, 404)
        self.assertEqual(self.request("POST", "/v1/tools/list_processes", b"x", token=self.agent_token).status, 400)
        self.assertEqual(self.request("POST", "/v1/tools/list_processes", {}, token=False).status, 401)


def default_port_is_free():
    """Whether the port that serve takes by itself can be had now; elsewhere the test looks at a gateway with a port of its own."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 7717))
        except OSError:
            return False
    return True


def listening(gateway):
    """Addresses on which the processes of a gateway listen for TCP."""
    inodes = set()
    for pid in [gateway.process.pid, *gateway.pids]:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                inodes.add(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                pass
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with open(f"/proc/net/{table}", encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        for row in rows:
            if row[3] == "0A" and f"socket:[{row[9]}]" in inodes:
                raw = bytes.fromhex(row[1].split(":")[0])
                words = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
                found.add(socket.inet_ntop(family, words))
    return found

"""The imitated clients of /runtime/v1 fail on what the real ones would fail on, or get wrong."""

import unittest

from lib import procs
from lib.fake_server import EXIT, STARTED, FakeServer, output, server_frame
from lib.http_client import HttpViolation
from lib.runtime import Broken
from lib.sdk_node import NODE, Node, NodeSandbox
from lib.sdk_old_rust import OldRust, Rust, RustError
from lib.sdk_python import ExitError, Misread, Sandbox, SdkError
from lib.websocket import WsViolation

FAULTS = {
    "pid only inside": [{"type": "started", "process": {"id": "p1"}}, EXIT | {"cursor": 0}],
    "pid is a number": [STARTED | {"pid": 7}, EXIT | {"cursor": 0}],
    "started counts": [STARTED | {"cursor": 0}, EXIT],
    "no cursor": [STARTED, output(0, b"x") | {"cursor": None}, EXIT],
    "cursor twice": [STARTED, output(0, b"x"), output(0, b"x"), EXIT],
    "no padding": [STARTED, output(0, b"x") | {"data": "eA"}, EXIT],
    "binary frame": [STARTED, server_frame(b"{}", opcode=2), EXIT],
    "masked frame": [STARTED, server_frame(output(0, b"x"), masked=True), EXIT],
    "fragment": [STARTED, server_frame(output(0, b"x"), fin=False), EXIT],
    "no exit code": [STARTED, output(0, b"x"), EXIT | {"exit_code": None}],
    "exit without cursor": [STARTED, output(0, b"x"), {name: value for name, value in EXIT.items() if name != "cursor"}],
}
FAILURES = (Misread, SdkError, WsViolation, RustError, Broken, HttpViolation, ValueError)


class ImitationTest(unittest.TestCase):
    def node(self, url):
        if not NODE:
            self.skipTest("node is not installed")
        procs.become_subreaper()
        node = Node()
        self.addCleanup(node.close)
        return NodeSandbox.open(node, url, "token")

    def runs(self, url):
        """(name, function that starts something and waits for it) for each client."""
        yield "python", lambda: Sandbox(url, "token").commands.start("x", [], timeout=None).wait()
        yield "typescript", lambda: self.node(url).commands.start("x", []).wait()
        yield "old rust", lambda: OldRust(url, "token").start("x", []).wait()
        yield "rust", lambda: (client := Rust(url, "token")).wait_again(client.start("x", []))

    def test_right_frames_are_taken(self):
        for number in range(4):
            with FakeServer([[{"type": "ready"}, STARTED, output(0, b"x"), EXIT]]) as server:
                name, run = list(self.runs(server.url))[number]
                with self.subTest(client=name):
                    result = run()
                    self.assertEqual(result["stdout"] if isinstance(result, dict) else result[1].decode(), "x")

    def test_wrong_frames_are_noticed(self):
        for fault, frames in FAULTS.items():
            for number in range(4):
                with FakeServer([frames] * 30) as server:
                    name, run = list(self.runs(server.url))[number]
                    with self.subTest(fault=fault, client=name), self.assertRaises(FAILURES):
                        run()

    def test_lost_socket_is_attached_to_again_at_the_next_cursor(self):
        """But by the old client of Rust: it fails."""
        for number in range(4):
            with FakeServer([[STARTED, output(0, b"x")], [STARTED, EXIT]]) as server:
                name, run = list(self.runs(server.url))[number]
                with self.subTest(client=name):
                    if name == "old rust":
                        self.assertRaises(RustError, run)
                        continue
                    run()
                    self.assertEqual(server.targets[-1], "GET /runtime/v1/process/p1/connect?since=1")

    def test_error_after_started(self):
        """The Python client attaches again, the others fail with the text; one that says `closed` fools that of TypeScript."""
        error = {"type": "error", "code": "x", "message": "it went wrong"}
        for number, fails in enumerate((False, True, True, True)):
            with FakeServer([[STARTED, error], [STARTED, EXIT | {"cursor": 0}]]) as server:
                name, run = list(self.runs(server.url))[number]
                with self.subTest(client=name):
                    if not fails:
                        run()
                        continue
                    with self.assertRaises((SdkError, RustError)) as caught:
                        run()
                    self.assertIn("it went wrong", str(caught.exception))
        with FakeServer([[STARTED, error | {"message": "Closed"}], [STARTED, EXIT | {"cursor": 0}]]) as server:
            self.node(server.url).commands.start("x", []).wait()

    def test_error_before_started(self):
        """Its text is lost in TypeScript."""
        error = {"type": "error", "code": "x", "message": "it went wrong"}
        for number, text in enumerate(("it went wrong", "process ended before started frame", "it went wrong", "it went wrong")):
            with FakeServer([[error]]) as server:
                name, run = list(self.runs(server.url))[number]
                with self.subTest(client=name), self.assertRaises((SdkError, RustError)) as caught:
                    run()
                self.assertIn(text, str(caught.exception))

    def test_exit_code_is_an_error(self):
        with FakeServer([[STARTED, output(0, b"x"), EXIT | {"exit_code": 7, "status": "failed"}]]) as server:
            with self.assertRaises(ExitError) as caught:
                self.node(server.url).commands.run("x")
        self.assertEqual((caught.exception.exit_code, caught.exception.stdout), (7, "x"))

    def test_utf8_is_decoded_frame_by_frame(self):
        """In two frames one character is two marks of a broken one, but in Rust."""
        frames = [STARTED, output(0, b"\xc3"), output(1, b"\xbc"), EXIT | {"cursor": 2}]
        for number, wanted in enumerate(("\ufffd\ufffd", "\ufffd\ufffd", "ü", "ü")):
            with FakeServer([frames]) as server:
                name, run = list(self.runs(server.url))[number]
                with self.subTest(client=name):
                    result = run()
                    self.assertEqual(result["stdout"] if isinstance(result, dict) else result[1].decode(), wanted)

    def test_get_without_json_is_noticed(self):
        for body in (b"", b"no json", b"{}"):
            with FakeServer(answers={"GET /runtime/v1/process": body}) as server:
                for client in (Sandbox(server.url, "t").commands, OldRust(server.url, "t")):
                    with self.subTest(body=body, client=type(client).__name__), self.assertRaises((ValueError, KeyError)):
                        client.list()

    def test_status_with_two_names_is_noticed(self):
        record = {"id": "p1", "pid": 7, "os_pid": 7, "cmd": "x", "command": "x", "args": [], "cwd": "/", "envs": {}, "tag": None, "user": None,
                  "pty": False, "status": "running", "started_at": None, "finished_at": None, "exit_code": None}
        with FakeServer(answers={"GET /runtime/v1/process/p1": {"process": record}}) as server:
            for call in (Sandbox(server.url, "t").commands.process, self.node(server.url).commands.process):
                with self.assertRaises(Misread):
                    call("p1")

    def test_refusal_without_a_message_is_noticed(self):
        with FakeServer(answers={"GET /runtime/v1/process/p1": (404, {"error": "x"})}) as server:
            for call in (Sandbox(server.url, "t").commands.process, self.node(server.url).commands.process):
                with self.assertRaises(Misread):
                    call("p1")

    def test_missing_file_needs_its_code_in_typescript(self):
        with FakeServer(answers={"GET /runtime/v1/files/stat": (404, {"error": "not_found", "message": "m"})}) as server:
            with self.assertRaises(SdkError):
                self.node(server.url).files.exists("x")

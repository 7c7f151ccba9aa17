"""What comes out of the sockets of /runtime/v1: frames, bytes, text, and the WebSocket under them."""

import json
import os

from lib import procs
from lib.gateway import GatewayCase
from lib.runtime import StartError
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import OldRust, Rust
from lib.sdk_python import ExitError
from lib.websocket import CONTINUATION, TEXT, Closed, client_frame


class RunTest(SdkCase):
    def test_r004_both_streams_and_exit_0(self):
        def check(sandbox):
            result = sandbox.commands.run("echo hi; echo err >&2")
            self.assertEqual((result["stdout"], result["stderr"], result["exit_code"]), ("hi\n", "err\n", 0))

        self.each(check)

    def test_r005_exit_code_7(self):
        def check(sandbox):
            with self.assertRaises(ExitError) as caught:
                sandbox.commands.run("exit 7")
            self.assertEqual(caught.exception.exit_code, 7)

        self.each(check)

    def test_r006_output_before_the_exit_error_is_in_it(self):
        def check(sandbox):
            with self.assertRaises(ExitError) as caught:
                sandbox.commands.run("echo before; echo also >&2; exit 3")
            error = caught.exception
            self.assertEqual((error.stdout, error.stderr, error.exit_code), ("before\n", "also\n", 3))

        self.each(check)

    def test_r004_rust_clients_too(self):
        for kind in (OldRust, Rust):
            with self.subTest(kind=kind.__name__):
                client = kind(self.gateway.url, self.gateway.token)
                self.addCleanup(client.close)
                self.assertEqual(client.run("echo hi; echo err >&2; exit 5"), (5, b"hi\n", b"err\n", None))

    def test_r040_slow_multibyte_text_is_never_split(self):
        """Each byte is written by itself, with a pause after each character. Clients decode frame by frame: a sequence in two
        frames would be two U+FFFD. The rest of a character is waited for 20 ms, so a program that was kept from writing it in
        time proves nothing, and is run again."""
        words = "für 漢字 😀 ½"
        lines = ["import os, time", "slowest = 0", f"for letter in {words!r}:", "    began = time.monotonic()", "    for byte in letter.encode():",
                 "        os.write(1, bytes([byte]))", "    slowest = max(slowest, time.monotonic() - began)", "    time.sleep(0.02)",
                 "os.write(2, b'%d' % (1000 * slowest))"]
        (self.work / "slow.py").write_text("\n".join(lines))

        def check(sandbox):
            def quick():
                result = sandbox.commands.run("/usr/bin/python3 slow.py")
                if result["stdout"] != words and int(result["stderr"]) >= 10:
                    return False
                self.assertEqual(result["stdout"], words)
                return True

            procs.wait_until(quick, "a program that is let to write", interval=0)

        self.each(check)


class FrameTest(GatewayCase):
    def test_r007_started_comes_first(self):
        """A string as pid at top level, no cursor, the record with it, on both kinds of socket."""
        for make in (lambda: self.sh("echo x"), lambda: self.attach(self.sh("echo x").pid)):
            socket = make()
            self.assertIsInstance(socket.pid, str)
            self.assertEqual(socket.record["args"], ["-c", "echo x"])
            self.assertEqual(socket.record["cmd"], "sh")
            self.assertEqual(socket.until_exit()["exit_code"], 0)
            socket.expect_end()

    def test_r039_all_byte_values_come_exactly(self):
        everything = bytes(range(256)) * 1000
        (self.work / "bytes").write_bytes(everything)
        socket = self.start("cat", "bytes")
        socket.until_exit()
        self.assertEqual(socket.output("stdout"), everything)

    def test_r047_no_text_says_closed_or_websocket(self):
        """RuntimeSocket looks at every error; here are all that can be made without much ado, before `started` and by HTTP."""
        texts = []
        for start in ({"type": "start"}, {"type": "stdin", "data": ""}, {"type": "start", "cmd": ""}, {"type": "start", "cmd": "true", "id": ".."},
                      {"type": "start", "cmd": "true", "pty": {"cols": 0, "rows": 1}}, {"type": "close_stdin"}):
            socket = self.socket()
            socket.send(**start)
            try:
                texts.append(socket.expect_refused()["error"])
            except StartError as error:
                texts.append(error.message)
        process = self.sh("exit 0")
        process.until_exit()
        for target in ("/runtime/v1/process/none", "/runtime/v1/process/none/connect", f"/runtime/v1/process/{process.pid}/output?since=x",
                       "/runtime/v1/nothing", "/runtime/v1/process?x=%zz"):
            response = self.request("GET", target)
            if response.status != 200:
                texts.append(response.json()["message"])
        self.assertGreater(len(texts), 8)
        for text in texts:
            self.assertNotRegex(text.lower(), "closed|websocket")

    def test_first_frame_must_be_start(self):
        """bad_frame, then the end with 1008."""
        for data in ('{"type":"stdin","data":""}', "no json", "[]", '{"no":"type"}', '{"type":7}'):
            with self.subTest(data=data):
                socket = self.socket()
                socket.send_text(data)
                with self.assertRaises(StartError) as caught:
                    socket.expect_started(0)
                self.assertEqual(caught.exception.code, "bad_frame")
                self.assertEqual(socket.wait_closed(), 1008)

    def test_second_start_is_a_bad_frame(self):
        """The process goes on: only the socket ends."""
        socket = self.sh("sleep 300")
        socket.send(type="start", cmd="true")
        self.assertEqual(socket.until_other("error")["code"], "bad_frame")
        self.assertEqual(socket.wait_closed(), 1008)
        self.assertEqual(self.status(socket.pid)["status"], "running")
        self.kill(socket.pid)

    def test_disconnect_does_not_end_the_process(self):
        socket = self.sh("sleep 300")
        socket.stream.reset()
        self.assertEqual(self.attach(socket.pid).record["status"], "running")
        self.assertEqual(self.kill(socket.pid)["status"], "killed")


class WebSocketTest(GatewayCase):
    def test_r044_ping_is_answered_with_its_payload(self):
        socket = self.start("sleep", "300")
        for payload in (b"", b"watasu-sdk", os.urandom(125)):
            socket.ping(payload)
            self.assertEqual(socket.pong(), payload)
        self.kill(socket.pid)

    def test_r046_fragmented_message_works(self):
        """Also with a ping between its pieces, and in the middle of a character."""
        text = json.dumps({"type": "start", "cmd": "echo", "args": ["ü"]}, ensure_ascii=False).encode()
        at = text.index("ü".encode()) + 1
        socket = self.socket()
        socket.send_raw(client_frame(TEXT, text[:at], fin=False))
        socket.ping(b"between")
        socket.send_raw(client_frame(CONTINUATION, text[at:-1], fin=False) + client_frame(CONTINUATION, text[-1:]))
        socket.expect_started(0)
        socket.until_exit()
        self.assertEqual(socket.output(), "ü\n".encode())
        self.assertEqual(socket.pongs, [b"between"])

    def test_r046_unmasked_frame_is_1002(self):
        socket = self.socket()
        socket.send_raw(client_frame(TEXT, b'{"type":"start","cmd":"true"}', masked=False))
        self.assertEqual(socket.wait_closed(), 1002)

    def test_r046_oversize_is_1009(self):
        """Said by the header alone: nobody waits for the rest."""
        socket = self.socket()
        socket.send_raw(b"\x81\xff" + (97 << 20).to_bytes(8, "big") + b"mask")
        self.assertEqual(socket.wait_closed(), 1009)

    def test_r046_message_of_16_mib_is_taken(self):
        """All of it is read and understood: it is refused for what it says, not for its size."""
        socket = self.socket()
        text = json.dumps({"type": "start", "cmd": "true", "note": ""})
        socket.send_text(text[:-2] + "x" * ((16 << 20) - len(text)) + '"}')
        self.assertEqual(socket.expect_refused()["code"], "invalid_argument")

    def test_extension_offer_is_not_taken(self):
        """The client of TypeScript offers one; the upgrade is checked for its absence."""
        socket = self.socket(headers={"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"})
        socket.start("echo", ["x"])
        self.assertEqual(socket.until_exit()["exit_code"], 0)

    def test_the_server_closes_after_exit(self):
        """With 1000, if the client has not closed by then."""
        socket = self.sh("true")
        socket.until_exit()
        socket.expect_end(1000)


class SilenceTest(GatewayCase):
    def test_r045_silent_client_stays_attached(self):
        """Neither side says a word for 20 s: longer than every deadline that a connection has before its upgrade (10 s for a
        head, as http-foundation says). Five minutes would prove no more: there is no other deadline for an upgraded one."""
        socket = self.sh("read line; echo $line", stdin=True)
        self.assertTrue(socket.quiet(20))
        socket.stdin(b"still here\n")
        socket.until_exit()
        self.assertEqual(socket.output(), b"still here\n")

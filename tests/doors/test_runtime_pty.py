"""Terminals over /runtime/v1."""

from lib.gateway import GatewayCase
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import Rust


class PtyTest(SdkCase):
    def size_in(self, handle, sandbox, wanted):
        """What `stty size` says, by way of another socket that is read all the time."""
        reader = self.attach(handle.pid)
        sandbox.pty.send_stdin(handle.pid, "stty size\n")
        reader.until(wanted)
        reader.drop()

    def test_r041_created_resized_and_the_callback_fires(self):
        def check(sandbox):
            handle = sandbox.pty.create(80, 24)
            try:
                self.size_in(handle, sandbox, b"24 80\r\n")
                sandbox.pty.resize(handle.pid, 100, 30)
                self.size_in(handle, sandbox, b"30 100\r\n")
                sandbox.pty.send_stdin(handle.pid, "exit 0\n")
                pieces = []
                self.assertEqual(handle.wait(on_pty=pieces.append)["exit_code"], 0)
                self.assertIn(b"30 100\r\n", b"".join(pieces))
            finally:
                sandbox.pty.kill(handle.pid)

        self.each(check)

    def test_r041_rust_client_too(self):
        client = Rust(self.gateway.url, self.gateway.token)
        self.addCleanup(client.close)
        handle = client.pty()
        handle.send_stdin(b"stty size; exit 3\n")
        code, output, error, _ = handle.wait()
        self.assertEqual((code, error), (3, b""))
        self.assertIn(b"24 80\r\n", output)
        other = client.pty()
        self.assertEqual(client.pty_kill(other.pid)["status"], "killed")
        other.disconnect()


class TerminalTest(GatewayCase):
    def pty(self, script, cols=80, rows=24, **fields):
        return self.sh(script, pty={"cols": cols, "rows": rows}, **fields)

    def test_size_is_set_before_exec(self):
        socket = self.pty("stty size", 132, 50)
        socket.until_exit()
        self.assertEqual(socket.output("pty"), b"50 132\r\n")

    def test_r042_resize_then_close_at_once(self):
        """The frame came before the end of the socket: it is carried out."""
        socket = self.pty("trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done")
        socket.until(b"up\r\n")
        other = self.attach(socket.pid)
        other.send(type="resize", cols=100, rows=30)
        other.send_close()
        other.drop()
        socket.until(b"30 100\r\n")
        self.kill(socket.pid)

    def test_r043_output_is_pty_only(self):
        """RuntimeSocket takes nothing else from a terminal; stderr is in it."""
        socket = self.pty("echo out; echo err >&2")
        socket.until_exit()
        self.assertEqual(socket.output("pty"), b"out\r\nerr\r\n")
        self.assertTrue(socket.record["pty"])

    def test_r043_close_stdin_is_the_end_of_file_character(self):
        for fields in ({"stdin": True}, {"stdin": False}, {}):
            with self.subTest(fields=fields):
                socket = self.start("cat", pty={"cols": 80, "rows": 24}, **fields)
                socket.stdin(b"typed\n")
                socket.until_other("stdin_ack")
                socket.until(b"typed\r\ntyped\r\n")
                socket.send(type="close_stdin")
                socket.until_other("close_stdin_ack")
                self.assertEqual(socket.until_exit()["exit_code"], 0)

    def test_terminal_of_its_own(self):
        socket = self.pty("tty; ps -o sid=,pid= -p $$ || true; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all")
        self.assertEqual(socket.until_exit()["exit_code"], 0)
        self.assertIn(b"all\r\n", socket.output())

    def test_interrupt_reaches_the_foreground(self):
        socket = self.pty("trap 'echo got int; exit 3' INT; echo up; while :; do sleep 0.02; done")
        socket.until(b"up\r\n")
        socket.stdin(b"\x03")
        self.assertEqual(socket.until_exit()["exit_code"], 3)

    def test_bad_sizes_are_refused(self):
        for size in ({"cols": 0, "rows": 24}, {"cols": 80, "rows": 0}, {"cols": 65536, "rows": 24}, {"cols": -1, "rows": 24}, {"cols": "80", "rows": 24},
                     {"cols": 80.5, "rows": 24}):
            with self.subTest(size=size):
                socket = self.socket()
                socket.send(type="start", cmd="true", pty=size)
                self.assertEqual(socket.expect_refused()["code"], "invalid_argument")

    def test_largest_size(self):
        socket = self.pty("stty size", 65535, 65535)
        socket.until_exit()
        self.assertEqual(socket.output(), b"65535 65535\r\n")

    def test_resize_that_cannot_be_is_ignored(self):
        """Of a size that is none, and of a process without a terminal: no answer, the socket goes on."""
        terminal = self.pty("echo up; read line; stty size", stdin=True)
        terminal.until(b"up\r\n")
        for size in ({"cols": 0, "rows": 5}, {"cols": "x", "rows": 5}, {"rows": 5}):
            terminal.send(type="resize", **size)
        terminal.stdin(b"\n")
        terminal.until_exit()
        self.assertIn(b"24 80\r\n", terminal.output())
        plain = self.sh("read line; echo $line", stdin=True)
        plain.send(type="resize", cols=10, rows=10)
        plain.stdin(b"fine\n")
        plain.until_exit()
        self.assertEqual(plain.output(), b"fine\n")
        for socket in (terminal, plain):
            self.assertEqual([message["type"] for message in socket.others], ["stdin_ack"])

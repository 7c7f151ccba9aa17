"""Terminals and shells (B-058 on a terminal, B-059, B-060)."""

import os

from lib import procs
from lib.keeper import KeeperCase


class TerminalTest(KeeperCase):
    def run_pty(self, script, **args):
        process = self.sh(script, kind="pty", **args)["id"]
        record = self.ended(process)
        return record, self.output(process, "pty").replace(b"\r\n", b"\n")

    def test_b058_close_stdin_on_a_terminal(self):
        """On a terminal close_stdin is the end-of-file character: cat ends."""
        process = self.spawn("cat", kind="pty")["id"]
        self.client.reply("write_stdin", {"id": process}, b"line\n")
        self.wait_output(process, b"line\r\nline\r\n", "pty")
        self.assertTrue(self.client.call("close_stdin", id=process)["closed"])
        self.assertEqual(self.ended(process)["exit"]["code"], 0)

    def test_b059_controlling_terminal_and_session(self):
        """stdin, stdout, stderr are a terminal, which is the controlling one of a new session."""
        script = "tty; test -t 0 && test -t 1 && test -t 2 && echo all; echo direct >/dev/tty; echo $$; cat /proc/$$/stat"
        record, text = self.run_pty(script)
        lines = text.split(b"\n")
        # In a sandbox it is shown under the name that a terminal of its own machine would have.
        name = b"/dev/pts/" if self.profile == "full" else b"/dev/console"
        self.assertTrue(lines[0].startswith(name), text)
        self.assertEqual(lines[1:3], [b"all", b"direct"])
        fields = lines[4].rpartition(b")")[2].split()
        self.assertEqual((int(fields[2]), int(fields[3])), (int(lines[3]), int(lines[3])))
        self.assertNotEqual(int(fields[4]), 0, "controlling terminal")
        self.assertEqual(record["kind"], "pty")
        self.assertEqual(set(record["streams"]), {"pty"})
        self.assertIsNone(record["stderr_mode"])

    def test_b059_size_and_term(self):
        """80x24 and xterm-256color unless given."""
        record, text = self.run_pty("stty size; echo $TERM")
        self.assertEqual(text, b"24 80\nxterm-256color\n")
        self.assertEqual(record["terminal"], {"cols": 80, "rows": 24})
        _, text = self.run_pty("stty size; echo $TERM", cols=132, rows=50, env={"TERM": "vt100"})
        self.assertEqual(text, b"50 132\nvt100\n")

    def test_b059_size_out_of_range(self):
        """0 and 65536 are refused."""
        for field in ("cols", "rows"):
            for bad in (0, 65536, -1):
                with self.subTest(field=field, bad=bad), self.refused("invalid_input", field):
                    self.spawn("true", kind="pty", **{field: bad})

    def test_b059_resize_reaches_the_foreground_program(self):
        """resize changes the size, the program gets SIGWINCH, the record shows it; on a pipe it is invalid_input."""
        script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done"
        process = self.sh(script, kind="pty")["id"]
        self.wait_output(process, b"ready", "pty")
        self.assertEqual(self.client.call("resize", id=process, cols=100, rows=33), {"cols": 100, "rows": 33})
        record = self.ended(process)
        self.assertIn(b"33 100", self.output(process, "pty"))
        self.assertEqual(record["terminal"], {"cols": 100, "rows": 33})
        pipe = self.spawn("sleep", "300")["id"]
        with self.refused("invalid_input"):
            self.client.call("resize", id=pipe, cols=100, rows=33)

    def test_b059_interrupt_character(self):
        """The terminal is a real one: the interrupt character ends the foreground program by SIGINT."""
        process = self.spawn("sleep", "300", kind="pty")["id"]
        procs.wait_until(lambda: self.status(process)["state"] == "running", "it runs")
        self.client.reply("write_stdin", {"id": process}, b"\x03")
        record = self.ended(process)
        self.assertEqual((record["state"], record["exit"]["signal"]), ("signaled", 2))

    def test_b059_output_to_the_last_byte(self):
        """Output just before the end is not lost when the terminal closes."""
        for _ in range(10):
            _, text = self.run_pty("i=0; while [ $i -lt 200 ]; do echo line-$i; i=$((i+1)); done")
            self.assertEqual(text, b"".join(b"line-%d\n" % i for i in range(200)))

    def test_b060_shell_is_a_normal_record(self):
        """A shell on a terminal is listed, owned, readable by cursor, and runs what is typed."""
        record = self.spawn("sh", kind="pty", tag="shell", env={"PS1": "$ "})
        process = record["id"]
        self.assertIn(process, [r["id"] for r in self.client.call("list")["processes"]])
        self.assertEqual(record["owner"]["agent"], "main")
        self.wait_output(process, b"$ ", "pty")
        cursor = self.status(process)["streams"]["pty"]["end"]
        self.client.reply("write_stdin", {"id": process}, b"echo $((6*7))\n")
        self.wait_output(process, b"42", "pty")
        reply = self.client.reply("read", {"id": process, "stream": "pty", "cursor": cursor})
        self.assertIn(b"42", reply.bytes("pty"))
        self.assertNotIn(b"$ echo", reply.bytes("pty")[:2])
        self.client.reply("write_stdin", {"id": process}, b"exit 5\n")
        self.assertEqual(self.ended(process)["exit"]["code"], 5)

    def test_b060_shell_is_counted_and_limited(self):
        """Shells take a slot, obey time limits, and end with the keeper."""
        client = self.start_keeper({"max_running": 1}).clients[0]
        shell = client.call("spawn", argv=["sh"], kind="pty", timeout_ms=400)["process"]
        with self.refused("registry_full"):
            client.call("spawn", argv=["sh"], kind="pty")
        self.assertEqual(client.call("wait", id=shell["id"])["process"]["end_cause"], "timed_out")
        live = self.spawn("sh", kind="pty")
        self.client.call("shutdown", grace_ms=100)
        self.expect_end(self.keeper, [0])
        self.assert_gone([live["pid"]])

    def test_b060_shell_ends_with_its_lease(self):
        """An ephemeral shell ends when its connection goes; an awaited one stays."""
        with self.connect() as other:
            gone = other.call("spawn", argv=["sh"], kind="pty", lease="ephemeral")["process"]
            stays = other.call("spawn", argv=["sh"], kind="pty", lease="awaited")["process"]
        procs.wait_until(lambda: not procs.alive(gone["pid"]), "the shell ends with its connection")
        self.assertEqual(self.status(stays["id"])["state"], "running")
        os.kill(stays["pid"], 0)

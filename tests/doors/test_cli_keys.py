"""Leaving and ending from a terminal: Ctrl-] in attach and run -t, Ctrl-C, and a keeper that does not answer."""

import os
import signal
import termios

from lib import procs
from lib.cli import CliCase
from lib.place import patience

KEY = b"\x1d"
ECHOES = "stty -echo -icanon; echo ready; while :; do dd bs=1 count=1 2>/dev/null | od -An -tx1; done"


class KeysCase(CliCase):
    def state(self, process):
        return self.json("status", process)["state"]

    def assert_left_running(self, terminal, process):
        terminal.type(KEY + b"d")
        terminal.until(b"left " + process.encode())
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(terminal.settings(), terminal.before)
        self.assertEqual(self.state(process), "running")


class AttachKeysTest(KeysCase):
    def attach(self, process, *options):
        terminal = self.terminal("attach", *options, process)
        terminal.until(b"attached to " + process.encode())
        return terminal

    def test_process_without_stdin(self):
        """The stdin of an ordinary run -d is not open: attach shows the keys all the same, and they work; nothing is echoed."""
        process = self.detached("sh", "-c", "echo hello; exec sleep 300")
        for options in ([], ["-n"]):
            with self.subTest(options=options):
                terminal = self.attach(process, *options)
                terminal.until(b"Ctrl-] d")
                terminal.until(b"hello")
                procs.wait_until(lambda: not terminal.settings()[3] & (termios.ICANON | termios.ECHO), "single keys")
                terminal.type(b"typed")
                self.assert_left_running(terminal, process)
                self.assertNotIn(b"typed", terminal.seen)

    def test_ctrl_c_to_a_process_without_stdin(self):
        """Ctrl-C is its SIGINT; with -n nothing is sent, and Ctrl-C leaves."""
        process = self.detached("sh", "-c", "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done")
        looker = self.attach(process, "-n")
        looker.until(b"ready")
        looker.type(b"\x03")
        self.assertEqual(looker.wait(), 0)
        self.assertEqual(self.state(process), "running")
        terminal = self.attach(process)
        terminal.until(b"ready")
        terminal.type(b"\x03")
        terminal.until(b"interrupted")
        self.assertEqual(terminal.wait(), 5)

    def test_kill(self):
        """Ctrl-] k kills the process with what it started, whether it has a terminal, an open stdin or none."""
        for options in ([], ["-i"], ["-t"]):
            with self.subTest(options=options):
                process = self.detached("sh", "-c", "trap '' INT TERM; setsid sleep 300 & echo $!; while :; do sleep 0.05; done",
                                        options=options)
                procs.wait_until(lambda: self.out("logs", process).endswith(b"\n"), "it runs")
                child = self.outside(process, self.out("logs", process))
                terminal = self.attach(process)
                terminal.type(KEY + b"k")
                self.assertEqual(terminal.wait(), 137)
                self.assertFalse(procs.alive(child))

    def test_lone_key_shows_the_choices(self):
        """Ctrl-] alone does nothing but tell what may follow; twice sends one; before another key it is sent with that."""
        process = self.detached("sh", "-c", ECHOES, options=["-t"])
        terminal = self.attach(process)
        terminal.until(b"ready")
        terminal.type(KEY)
        terminal.until(b"k kills it")
        terminal.type(KEY)
        terminal.until(b"1d")
        terminal.type(KEY + b"x")
        terminal.until(b"1d")
        terminal.until(b"78")
        self.assert_left_running(terminal, process)

    def test_keys_after_the_end_of_input(self):
        """With pipes Ctrl-D ends the process's stdin; Ctrl-] works on."""
        process = self.detached("sh", "-c", "cat; echo ended; exec sleep 300", options=["-i"])
        terminal = self.attach(process)
        terminal.type(b"line\n\x04")
        terminal.until(b"ended")
        self.assert_left_running(terminal, process)

    def test_keys_while_nobody_reads(self):
        """A process that reads nothing cannot keep the keys from working."""
        process = self.detached("sh", "-c", "stty raw -echo; echo ready; exec sleep 300", options=["-t"])
        terminal = self.attach(process)
        terminal.until(b"ready")
        for _ in range(16):
            terminal.type(b"x" * 1024)
        self.assert_left_running(terminal, process)


class RunKeysTest(KeysCase):
    def run_t(self, script, *options):
        terminal = self.terminal("run", "-t", "--tag", "it", *options, "--", "sh", "-c", script)
        terminal.until(b"Ctrl-] d leaves it running, Ctrl-] k kills it")
        terminal.until(b"ready")
        return terminal

    def test_kill(self):
        """A program that takes Ctrl-C as a byte ends by Ctrl-] k, and the terminal is as before."""
        terminal = self.run_t("stty raw -echo; echo ready; exec sleep 300")
        terminal.type(b"\x03\x03")
        terminal.type(KEY + b"k")
        terminal.until(b"killing")
        self.assertEqual(terminal.wait(), 137)
        self.assertEqual(terminal.settings(), terminal.before)

    def test_detach(self):
        """Ctrl-] d leaves it running and names it, with every lease; nobody need take its output."""
        for options in ([], ["--lease", "awaited"]):
            with self.subTest(options=options):
                terminal = self.run_t("echo ready; read x; seq 1 400000; echo all; read y; exit 7", *options)
                process = self.json("status", "it")["id"]
                self.assert_left_running(terminal, process)
                self.coop("stdin", process, data=b"\n")
                procs.wait_until(lambda: self.out("logs", process, "--tail", "1").strip() == b"all", "it prints all")
                again = self.terminal("attach", process)
                again.until(b"all")
                again.type(b"\r")
                self.assertEqual(again.wait(), 7)

    def test_what_was_left_can_be_killed(self):
        """What was left running is ended like any other, and nothing of coop stays behind."""
        terminal = self.run_t("echo ready; exec sleep 300")
        process = self.json("status", "it")["id"]
        self.assert_left_running(terminal, process)
        self.coop("kill", process)

    def test_no_hint_without_a_terminal(self):
        """With stdin from elsewhere there are no keys, and no line about them."""
        _, err = self.coop("run", "-t", "--", "true", data=b"")
        self.assertEqual(err, b"")


def interrupt_taken(process):
    """Has coop looked at the last SIGINT? Two that come together are one."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
            fields = dict(line.split(":\t", 1) for line in file)
    except (FileNotFoundError, ProcessLookupError):
        return True
    return not int(fields.get("ShdPnd", "0"), 16) & 1 << (signal.SIGINT - 1)


class FrozenTest(KeysCase):
    def freeze(self):
        with self.client() as client:
            pid = client.hello["pid"]
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        return pid

    def test_third_interrupt_leaves(self):
        """While the keeper does not answer, the third Ctrl-C ends coop run, which says that the command may still run."""
        terminal = self.terminal("run", "--", "sh", "-c", "echo ready; exec sleep 300")
        terminal.until(b"ready")
        pid = self.freeze()
        for _ in range(3):
            terminal.type(b"\x03")
            terminal.until(b"^C")
            procs.wait_until(lambda: interrupt_taken(terminal.process), "the key was taken")
        terminal.until(b"may still run")
        self.assertEqual(terminal.wait(), 130)
        os.kill(pid, signal.SIGCONT)

    def test_keys_leave(self):
        """Ctrl-] d leaves run -t and attach likewise; Ctrl-] k twice gives up."""
        process = self.detached("sleep", "300", options=["-t"])
        attached = [self.terminal("attach", process) for _ in range(2)]
        for terminal in attached:
            terminal.until(b"attached")
        run = self.terminal("run", "-t", "--", "sh", "-c", "echo ready; exec sleep 300")
        run.until(b"ready")
        pid = self.freeze()
        attached[0].type(b"keys that nobody takes" + KEY + b"d")
        self.assertEqual(attached[0].wait(), 0)
        for terminal in (attached[1], run):
            terminal.type(KEY + b"k")
            terminal.until(b"killing")
            terminal.type(KEY + b"k")
            terminal.until(b"may still run")
            self.assertEqual(terminal.wait(), 130)
            self.assertEqual(terminal.settings(), terminal.before)
        os.kill(pid, signal.SIGCONT)

    def test_suspend(self):
        """Ctrl-Z does not make coop run hang on it; three interrupts leave."""
        process = self.start("run", "--", "sh", "-c", "echo ready; exec sleep 300")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        pid = self.freeze()
        process.send_signal(signal.SIGTSTP)
        procs.wait_until(lambda: procs.stat(process.pid)[0] == "T", "it has stopped")
        process.send_signal(signal.SIGCONT)
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            procs.wait_until(lambda: interrupt_taken(process), "it was taken")
        self.assertEqual(process.wait(patience(30)), 130)
        os.kill(pid, signal.SIGCONT)

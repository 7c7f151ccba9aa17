"""The command line in a terminal: -t, Ctrl-C, resize, attach, top."""

import os
import signal
import termios

from lib import procs
from lib.cli import CliCase
from lib.place import patience


class TerminalRunTest(CliCase):
    def test_b059_run_t_gives_a_terminal_of_this_size(self):
        """run -t: the command has a terminal with the size of ours, and TERM."""
        for options, name in ((["--profile", "full"], b"/dev/pts/"), ([], b"/dev/console")):
            with self.subTest(options=options):
                terminal = self.terminal("run", "-t", *options, "--", "sh", "-c", "stty size; echo $TERM; tty", cols=99, rows=31)
                terminal.until(b"31 99")
                terminal.until(b"xterm")
                terminal.until(name)
                self.assertEqual(terminal.wait(), 0)

    def test_run_t_exit_code(self):
        """The exit code passes through a terminal too."""
        self.assertEqual(self.terminal("run", "-t", "--", "sh", "-c", "exit 9").wait(), 9)

    def test_run_t_typing_and_restored_settings(self):
        """What is typed reaches the command, byte by byte; afterwards our terminal is as it was."""
        terminal = self.terminal("run", "-t", "--", "sh", "-c", "stty -echo; echo ready; read x; echo got $x; echo done")
        terminal.until(b"ready")
        self.assertFalse(terminal.settings()[3] & termios.ICANON, "our terminal is raw while the other one works")
        terminal.type(b"hello\r")
        terminal.until(b"got hello")
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(terminal.settings(), terminal.before)

    def test_b059_resize_is_forwarded(self):
        """A resize of our terminal reaches the command."""
        script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done"
        terminal = self.terminal("run", "-t", "--", "sh", "-c", script)
        terminal.until(b"ready")
        terminal.resize(123, 45)
        terminal.until(b"45 123")
        self.assertEqual(terminal.wait(), 0)

    def test_ctrl_c_reaches_the_command(self):
        """Ctrl-C with and without -t: the command gets SIGINT."""
        for option in ([], ["-t"]):
            with self.subTest(option=option):
                script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done"
                terminal = self.terminal("run", *option, "--", "sh", "-c", script)
                terminal.until(b"ready")
                terminal.type(b"\x03")
                terminal.until(b"interrupted")
                self.assertEqual(terminal.wait(), 5)

    def test_ctrl_c_twice_kills(self):
        """A command that ignores Ctrl-C is killed by the second one."""
        terminal = self.terminal("run", "--", "sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 0.05; done")
        terminal.until(b"ready")
        terminal.type(b"\x03")
        terminal.until(b"no\r\n")
        terminal.type(b"\x03")
        self.assertEqual(terminal.wait(), 137)

    def test_stdin_of_a_terminal_is_not_taken_unasked(self):
        """Without -i or -t a command in a terminal reads end of file; with -i it reads what is typed."""
        self.assertEqual(self.terminal("run", "cat").wait(), 0)
        terminal = self.terminal("run", "-i", "--", "head", "-n", "1")
        terminal.type(b"typed\n")
        terminal.until(b"typed\r\ntyped")
        self.assertEqual(terminal.wait(), 0)

    def test_detached_survives_the_terminal(self):
        """The keeper and what runs in it outlive the terminal that started them."""
        terminal = self.terminal("run", "-d", "--tag", "stay", "--", "sleep", "300")
        self.assertEqual(terminal.wait(), 0)
        terminal.hang_up()
        status = self.json("status", "stay")
        self.assertEqual(status.get("process", status)["state"], "running")
        self.coop("kill", "stay")

    def test_killed_run_t_leaves_no_raw_terminal_behind_on_term(self):
        """SIGTERM to coop run -t goes to the command; our terminal is set back."""
        terminal = self.terminal("run", "-t", "--", "sh", "-c", "echo ready; exec sleep 300")
        terminal.until(b"ready")
        terminal.process.send_signal(signal.SIGTERM)
        self.assertEqual(terminal.wait(), 128 + 15)
        self.assertEqual(terminal.settings(), terminal.before)


class AttachTest(CliCase):
    def test_attach_to_a_terminal(self):
        """attach shows the screen's output, forwards typing, tells the detach key; detaching leaves the process alone."""
        process = self.out("run", "-d", "-t", "--env", "PS1=prompt:", "--", "sh").decode().strip()
        terminal = self.terminal("attach", process)
        terminal.until(b"prompt:")
        terminal.type(b"echo $((40+2))\r")
        terminal.until(b"42")
        terminal.type(b"\x1dd")
        self.assertEqual(terminal.wait(), 0)
        status = self.json("status", process)
        self.assertEqual(status.get("process", status)["state"], "running")
        again = self.terminal("attach", process)
        again.type(b"exit 4\r")
        self.assertEqual(again.wait(), 4)

    def test_attach_to_pipes(self):
        """attach to a process with pipes: its output, and our input with an end."""
        process = self.out("run", "-d", "-i", "--", "sh", "-c", "cat; exit 6").decode().strip()
        out, _ = self.coop("attach", process, data=b"through\n", code=6)
        self.assertEqual(out, b"through\n")

    def test_top_shows_and_quits(self):
        """top shows the processes in a terminal and ends with q; without a terminal it says so."""
        process = self.detached("sleep", "300", options=["--tag", "watched"])
        terminal = self.terminal("top")
        terminal.until(b"watched")
        terminal.type(b"q")
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(terminal.settings(), terminal.before)
        self.coop("kill", process)


class SuspendTest(CliCase):
    def test_ctrl_z_stops_and_continues_both(self):
        """Ctrl-Z (as SIGTSTP) stops coop run and the command; SIGCONT continues both."""
        process = self.start("run", "--tag", "it", "--", "sh", "-c", "echo $$; exec sleep 300")
        pid = self.outside("it", process.stdout.readline())
        os.kill(process.pid, signal.SIGTSTP)
        procs.wait_until(lambda: procs.stat(pid)[0] == "T" and procs.stat(process.pid)[0] == "T", "both have stopped")
        os.kill(process.pid, signal.SIGCONT)
        procs.wait_until(lambda: procs.stat(pid)[0] == "S", "the command goes on")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(patience(20)), 128 + 15)

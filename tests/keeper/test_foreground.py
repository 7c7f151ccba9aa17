"""Signals for what runs in a terminal's foreground (B-068)."""

import signal

from lib import procs
from lib.keeper import KeeperCase


class ForegroundTest(KeeperCase):
    def shell(self):
        """An interactive shell, which gives every job a group of its own."""
        return self.spawn("sh", "-i", kind="pty")["id"]

    def type(self, process, text):
        self.client.reply("write_stdin", {"id": process}, text)

    def job(self, process, word, script="exec sleep 1000"):
        """Starts a job and gives its pid on the host, once it runs."""
        self.type(process, f"sh -c 'echo {word[0]}\"\"{word[1:]} $$; {script}'\n".encode())
        self.wait_output(process, word.encode() + b" ", "pty")
        procs.wait_until(lambda: self.status(process)["descendants"] > 0, "the job runs")

    def status(self, process):
        return self.client.call("status", id=process)["process"]

    def foreground(self, process, number):
        return self.client.call("signal", id=process, signal=number, target="foreground")

    def test_b068_the_job_gets_it_and_the_shell_lives_on(self):
        """Keys' signals and others reach the job alone; the shell tells how it ended."""
        process = self.shell()
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL):
            with self.subTest(number=number):
                self.job(process, f"job{int(number)}")
                result = self.foreground(process, int(number))
                self.assertTrue(result["sent"])
                self.assertNotEqual(result["group"], self.status(process)["pid"])
                self.type(process, b"echo code$((0))=$?\n")
                self.wait_output(process, f"code0={128 + number}".encode(), "pty")
        self.type(process, b"exit 5\n")
        record = self.ended(process)
        self.assertEqual((record["exit"]["code"], record["end_cause"]), (5, "self_exit"))

    def test_b068_without_a_job_the_shell_is_the_foreground(self):
        """What the leader dies of by request is told as that."""
        process = self.spawn("cat", kind="pty")["id"]
        result = self.foreground(process, "SIGTERM")
        self.assertEqual((result["sent"], result["group"]), (True, self.status(process)["pid"]))
        record = self.ended(process)
        self.assertEqual((record["exit"]["signal_name"], record["end_cause"]), ("SIGTERM", "killed_by_request"))

    def test_b068_a_stopped_job_leaves_the_foreground(self):
        """SIGTSTP gives the terminal back to the shell."""
        process = self.shell()
        self.job(process, "stopped")
        job = self.foreground(process, "SIGTSTP")["group"]
        self.type(process, b"echo ba''ck\n")
        self.wait_output(process, b"back\r\n", "pty")
        result = self.foreground(process, "SIGWINCH")
        self.assertEqual(result["group"], self.status(process)["pid"])
        self.assertNotEqual(job, result["group"])

    def test_b068_background_jobs_get_nothing(self):
        process = self.shell()
        self.type(process, b"sleep 1000 & echo be''hind\n")
        self.wait_output(process, b"behind\r\n", "pty")
        self.job(process, "front")
        self.foreground(process, "SIGKILL")
        self.type(process, b"jobs; echo li''sted\n")
        self.wait_output(process, b"listed\r\n", "pty")
        self.assertIn(b"Running", self.output(process, "pty"))

    def test_b068_without_a_terminal_it_is_refused(self):
        process = self.spawn("sleep", "1000")["id"]
        with self.refused("invalid_input", "target"):
            self.foreground(process, "SIGINT")

    def test_b068_of_an_ended_one_nothing_is_sent(self):
        process = self.spawn("true", kind="pty")["id"]
        self.ended(process)
        result = self.foreground(process, "SIGINT")
        self.assertEqual((result["sent"], result["group"]), (False, None))

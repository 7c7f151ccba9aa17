"""The programs in examples/, driven as a user would: each does what its first comment says."""

import itertools
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(
    os.environ.get("COOP_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()
DEADLINE = 20  # seconds; how long anything here may take on a busy machine
GONE_AFTER = 2  # seconds until nothing is left of what a killed owner had started
counter = itertools.count(1)


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def read_object(connection):
    size, _kind, _stream, _reserved = struct.unpack("<IBBH", read_exactly(connection, 8))
    return json.loads(read_exactly(connection, size))


def shut_down(path):
    """Ends the keeper at this socket, if there is one, and waits until it is gone."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(DEADLINE)
        try:
            connection.connect(str(path))
            read_object(connection)
            request = b'{"id":1,"op":"shutdown","args":{"grace_ms":0}}'
            connection.sendall(struct.pack("<IBBH", len(request), ord("J"), 0, 0) + request)
            while connection.recv(4096):
                pass
        except (FileNotFoundError, ConnectionError, EOFError):
            pass


def with_argument(marker):
    """Pids of living processes that have `marker` among their arguments."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in arguments:
            found.append(int(entry.name))
    return found


def exists(pid):
    """Whether the process is there, not counting one that is dead and not yet reaped."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def unique_duration():
    """An argument of sleep(1) that no other process has."""
    return f"300.{os.getpid()}{next(counter):03}"


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="coop-examples-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.socket = self.folder / "run" / "keeper.sock"
        # What commands see of /tmp is this folder alone, where the examples are run.
        self.work = self.folder / "work"
        self.work.mkdir()
        conf = tempfile.NamedTemporaryFile(prefix="coop-examples-")
        self.addCleanup(conf.close)
        self.env = dict(os.environ, COOP_SOCKET=str(self.socket), COOP_STATE=str(self.folder / "state"), COOP_CONF=conf.name)
        self.addCleanup(shut_down, self.socket)

    def command(self, example, *arguments):
        return [str(BUILD / "examples" / example), *arguments]

    def run_example(self, example, *arguments, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("cwd", self.work)
        return subprocess.run(self.command(example, *arguments), env=self.env, capture_output=True,
                              timeout=DEADLINE, check=False, **options)

    def start_example(self, example, *arguments, **options):
        # Unbuffered: what readline() has taken beyond its line would be lost to communicate().
        process = subprocess.Popen(self.command(example, *arguments), env=self.env, bufsize=0, cwd=self.work,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)

        def end():
            process.kill()
            process.communicate(timeout=DEADLINE)

        self.addCleanup(end)
        return process

    def wait_until(self, condition, what, seconds=DEADLINE):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)


class Run(Examples):
    def test_output_and_exit_code(self):
        result = self.run_example("run", "sh", "-c", "echo out; echo err >&2; exit 42")
        self.assertEqual((result.stdout, result.stderr, result.returncode), (b"out\n", b"err\n", 42))

    def test_bytes_are_exact(self):
        data = os.urandom(300_000) + bytes(range(256))
        (self.work / "data").write_bytes(data)
        result = self.run_example("run", "cat", "data")
        self.assertEqual(result.stdout, data)

    def test_the_command_runs_where_its_caller_is(self):
        self.env["LC_EXAMPLE"] = "C"
        result = self.run_example("run", "sh", "-c", 'pwd; echo "$LC_EXAMPLE"', cwd=self.work)
        self.assertEqual(result.stdout.decode(), f"{self.work.resolve()}\nC\n")

    def test_death_by_signal(self):
        result = self.run_example("run", "sh", "-c", "kill -KILL $$")
        self.assertEqual(result.returncode, 128 + signal.SIGKILL)
        self.assertIn(b"signaled by signal 9", result.stderr)

    def test_no_such_program(self):
        result = self.run_example("run", "no-such-program-anywhere")
        self.assertEqual(result.returncode, 125)
        self.assertIn(b"spawn_failed", result.stderr)

    def test_ten_at_once_start_one_keeper(self):
        started = [self.start_example("run", "sh", "-c", "echo $PPID") for _ in range(10)]
        parents = [process.communicate(timeout=DEADLINE)[0] for process in started]
        self.assertEqual([process.returncode for process in started], [0] * 10)
        self.assertEqual(len(set(parents)), 1, parents)

    def test_the_command_outlives_its_client(self):
        duration = unique_duration()
        client = self.start_example("run", "sh", "-c", f"echo started; exec sleep {duration}")
        self.assertEqual(client.stdout.readline(), b"started\n")
        self.wait_until(lambda: with_argument(duration), "the command does not start")
        client.kill()
        client.wait(DEADLINE)
        # The keeper has seen the client go once it answers somebody who came later.
        self.assertEqual(self.run_example("run", "true").returncode, 0)
        self.assertEqual(len(with_argument(duration)), 1)
        shut_down(self.socket)
        self.wait_until(lambda: not with_argument(duration), "left behind", GONE_AFTER)

    def test_a_keeper_that_cannot_start_is_explained(self):
        self.env["COOP_KEEPER"] = "/nonexistent/coop-keeper"
        result = self.run_example("run", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn(b"/nonexistent/coop-keeper", result.stderr)


class Follow2(Examples):
    def test_both_are_followed_at_the_same_time(self):
        # The first waits for what the second writes, so one after the other would never end.
        fifo = self.work / "fifo"
        os.mkfifo(fifo)
        result = self.run_example("follow2", f"echo one; cat {fifo}",
                                  f"echo two >&2; echo hello > {fifo}; exit 4")
        lines = result.stdout.decode().splitlines()
        self.assertEqual([line for line in lines if line.startswith("1")],
                         ["1| one", "1| hello", "1: exited, code 0, signal 0, self_exit"])
        self.assertEqual([line for line in lines if line.startswith("2")],
                         ["2| two", "2: exited, code 4, signal 0, self_exit"])

    def test_q_stops_both(self):
        duration = unique_duration()
        command = f"echo up; exec sleep {duration}"
        example = self.start_example("follow2", command, command)
        self.assertEqual({example.stdout.readline() for _ in range(2)}, {b"1| up\n", b"2| up\n"})
        output, _ = example.communicate(b"q\n", timeout=DEADLINE)
        self.assertEqual(output.count(b"killed_by_request"), 2, output)
        self.assertEqual(with_argument(duration), [])

    def test_its_processes_end_with_it(self):
        duration = unique_duration()
        example = self.start_example("follow2", f"echo up; exec sleep {duration}", "true")
        while example.stdout.readline() != b"1| up\n":
            pass
        self.wait_until(lambda: with_argument(duration), "the command does not start")
        example.kill()
        self.wait_until(lambda: not with_argument(duration), "left behind", GONE_AFTER)


class Private(Examples):
    def start(self, script, **options):
        example = self.start_example("private", "sh", "-c", script, **options)
        words = example.stdout.readline().replace(b",", b"").split()
        self.assertEqual(words[0::2], [b"program", b"keeper", b"process"])
        return example, int(words[3])

    def test_end_is_told_and_nothing_stays(self):
        duration = unique_duration()
        example, keeper = self.start(f"setsid sleep {duration} & exit 7")
        output, _ = example.communicate(timeout=DEADLINE)
        self.assertEqual((output, example.returncode), (b"exited, code 7, signal 0, self_exit\n", 0))
        # coop_close() returns when the keeper has ended all it owned and is gone itself.
        self.assertFalse(exists(keeper))
        self.assertEqual(with_argument(duration), [])

    def test_it_leaves_no_files(self):
        self.assertEqual(self.run_example("private", "true").returncode, 0)
        self.assertEqual(list(self.folder.iterdir()), [self.work])

    def check_killed_with(self, number):
        duration = unique_duration()
        example, keeper = self.start(
            f"trap '' TERM INT HUP; setsid sh -c 'sleep {duration} & sleep {duration}' & "
            f"sleep {duration}")
        self.wait_until(lambda: len(with_argument(duration)) == 3, "the commands do not start")
        example.send_signal(number)
        example.wait(DEADLINE)
        self.wait_until(lambda: not with_argument(duration) and not exists(keeper), "left behind",
                        GONE_AFTER)

    def test_sigkill_leaves_nothing(self):
        self.check_killed_with(signal.SIGKILL)

    def test_sigterm_leaves_nothing(self):
        self.check_killed_with(signal.SIGTERM)

    def test_a_host_that_ignores_sigchld(self):
        example, keeper = self.start(
            "exit 3", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        output, _ = example.communicate(timeout=DEADLINE)
        self.assertEqual(output, b"exited, code 3, signal 0, self_exit\n")
        self.assertFalse(exists(keeper))


if __name__ == "__main__":
    unittest.main()

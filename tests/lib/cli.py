"""The command line as people and scripts use it: with pipes, and in a terminal of the test's own."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unittest

from . import procs
from .client import Client, Closed
from .keeper import plain_limits
from .place import COOP, REPOSITORY, Place, patience

ONE_LINE = re.compile(r"^coop(-keeper)?: \S.*\n$")


class Terminal:
    """A program in a terminal: what it shows is collected, what is typed goes to it."""

    def __init__(self, argv, env, cols=80, rows=24, cwd=None):
        self.master, slave = pty.openpty()
        self.resize(cols, rows)
        self.before = termios.tcgetattr(slave)  # the program may change them as soon as it runs
        self.seen = b""

        def take_terminal():
            plain_limits()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd, start_new_session=True, preexec_fn=take_terminal
        )
        # The test keeps the other side open too, so that settings can be looked at after the end.
        self.slave = slave

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.hang_up()

    def hang_up(self):
        """Closes the terminal as a window that is closed: whoever has it gets SIGHUP."""
        for fd in (self.slave, self.master):
            if fd >= 0:
                os.close(fd)
        self.slave = self.master = -1

    def resize(self, cols, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, data):
        os.write(self.master, data)

    def settings(self):
        return termios.tcgetattr(self.slave)

    def read_some(self, seconds):
        """Adds what comes within some time; False if nothing does."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += piece
        return bool(piece)

    def until(self, wanted, timeout=30):
        """Waits until something is shown; what was before it is dropped, and returned with it."""
        deadline = time.monotonic() + patience(timeout)
        while wanted not in self.seen:
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"{wanted!r} not shown, but {self.seen!r}")
            if not self.read_some(left) and self.process.poll() is not None and wanted not in self.seen:
                raise AssertionError(f"ended before {wanted!r}: {self.seen!r}")
        end = self.seen.index(wanted) + len(wanted)
        shown, self.seen = self.seen[:end], self.seen[end:]
        return shown

    def wait(self, timeout=30):
        """The exit status, while everything that is shown is read."""
        deadline = time.monotonic() + patience(timeout)
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"still running; shown: {self.seen!r}")
            self.read_some(0.05)
        while self.read_some(0):
            pass
        return self.process.returncode


class CliCase(unittest.TestCase):
    """A place without a keeper: the first command starts one, as it does for people. It is looked over at the end.

    coop is run in the place's own workspace, which is what its commands may write in."""

    keeper_settings = ""
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        procs.become_subreaper()

    def setUp(self):
        self.addCleanup(procs.assert_no_descendants)
        self.place = Place()
        self.addCleanup(self.end_place)
        extra = {"COOP_SET": self.keeper_settings} if self.keeper_settings else {}
        self.env = self.place.env(extra)

    def end_place(self):
        try:
            self.shut_down()
        finally:
            faults = self.place.faults()
            self.place.remove()
        self.assertEqual(faults, "", "sanitizer report")

    def shut_down(self):
        try:
            client = Client(self.place.socket, timeout=20)
        except (FileNotFoundError, ConnectionRefusedError, Closed):
            return
        pid = client.hello["pid"]
        with client, contextlib.suppress(Closed):
            client.call("shutdown", grace_ms=0)
        procs.wait_until(lambda: not procs.alive(pid), "the keeper leaves")

    def failure_notes(self):
        return self.place.log_tail() if self.place.dir.exists() else ""

    def client(self):
        client = Client(self.place.socket)
        self.addCleanup(client.close)
        return client

    def add_agent(self, name, *options):
        """An agent that may work where coop is run."""
        self.coop("agent", "add", name, "--workspace", self.place.work, *options)

    def start(self, *args, **options):
        """coop, not waited for."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("env", self.env)
        options.setdefault("cwd", self.place.work)
        options.setdefault("preexec_fn", plain_limits)
        process = subprocess.Popen([str(COOP), *map(str, args)], **options)

        def end():
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()

        self.addCleanup(end)
        return process

    def coop(self, *args, code=0, data=None, timeout=60, **options):
        """Runs coop to its end, checks the exit code and gives (stdout, stderr)."""
        if data is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*args, **options)
        try:
            out, err = process.communicate(data, patience(timeout))
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"coop {args} hangs; so far {out[-500:]!r} {err[-500:]!r}")
        if code is not None:
            self.assertEqual(process.returncode, code, f"coop {args}: {out[-2000:]!r} {err[-2000:]!r}")
        self.code = process.returncode
        return out, err

    def offered(self, *words):
        """What bash offers behind these words of a command line."""
        script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _coop; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", REPOSITORY / "completion" / "coop.bash", COOP, *words],
                              env=self.env, timeout=patience(30), capture_output=True, check=True)
        return done.stdout.decode().split()

    def out(self, *args, **options):
        return self.coop(*args, **options)[0]

    def json(self, *args, **options):
        """Runs a verb with --json, which is always one JSON value."""
        return json.loads(self.out(args[0], "--json", *args[1:], **options))

    def json_lines(self, *args, **options):
        return [json.loads(line) for line in self.out(args[0], "--json", *args[1:], **options).splitlines()]

    def detached(self, *args, options=()):
        """Starts a command in the background and gives its id."""
        return self.out("run", "-d", *options, "--", *args).decode().strip()

    def refusal(self, *args, code, **options):
        """The verb fails with one line on stderr and nothing on stdout; gives that line."""
        out, err = self.coop(*args, code=code, **options)
        text = err.decode()
        self.assertRegex(text, ONE_LINE)
        self.assertEqual(out, b"")
        return text

    def outside(self, process, inside):
        """The pid of one of a process's tree, from the number that it has told of itself."""
        with Client(self.place.socket) as client:
            return procs.outside(client.hello["pid"], client.call("status", id=process)["process"]["id"], int(inside))

    def terminal(self, *args, cols=80, rows=24):
        terminal = Terminal([str(COOP), *map(str, args)], self.env, cols, rows, self.place.work)
        self.addCleanup(terminal.close)
        return terminal

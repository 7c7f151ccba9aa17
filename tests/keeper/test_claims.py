"""Several keepers for one place: one serves, and the others say at once that it is there and leave."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import unittest
from pathlib import Path

from lib import procs
from lib.gateway import Gateway
from lib.keeper import KeeperCase
from lib.place import COOP, KEEPER, Place, patience
from lib.records import FIFREEZE, FITHAW, ROOT


class ClaimsCase(KeeperCase):
    def setUp(self):
        super().setUp()
        self.place = self.keeper.place
        self.keeper.stop()
        self.keeper.ended = True

    @contextlib.contextmanager
    def held_keeper(self):
        """(keeper, whether it is held): it has its place and does not serve yet, as it waits for a file that it reads."""
        fd = os.open(self.place.state / "next-id", os.O_RDONLY)
        try:
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            os.close(fd)
            self.skipTest(f"no leases on this file system: {error}")

        def held():
            return fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_WRLCK

        try:
            keeper = self.start_keeper(place=self.place, ready=False)
            procs.wait_until(held, "it is starting")
            yield keeper, held
        finally:
            os.close(fd)

    def socket_number(self):
        """Its inode; None: there is no socket."""
        try:
            return self.place.socket.stat().st_ino
        except FileNotFoundError:
            return None

    def own_pid(self, keeper):
        """Of the keeper below its guard."""
        return procs.children(keeper.process.pid)[0]

    def turned_away(self, env):
        """What a further keeper says when it leaves; it must not wait for anything but its own end."""
        # The other one is waited for no less than 15 s if it is taken for one that leaves.
        with subprocess.Popen(["sleep", "10"]) as clock:
            argv = [str(KEEPER), "--foreground"]
            done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=patience(60))
            waited = clock.poll() is not None
            clock.kill()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertFalse(waited, f"it waited: {done.stderr}")
        return done.stderr


class StartingTest(ClaimsCase):
    def test_socket_of_one_that_is_starting(self):
        with self.held_keeper() as (keeper, held):
            pid = self.own_pid(keeper)
            said = self.turned_away(self.place.env())
            self.assertTrue(held(), "the control: it is still starting")
        self.assertEqual(said, f"coop-keeper: another keeper (pid {pid}) is starting or serving on {self.place.socket}\n")
        self.assertEqual(keeper.wait_ready().hello["pid"], pid)

    def test_state_folder_of_one_that_is_starting(self):
        other = Place()
        self.addCleanup(other.remove)
        with self.held_keeper() as (keeper, held):
            pid = self.own_pid(keeper)
            said = self.turned_away(other.env({"COOP_STATE": str(self.place.state)}))
            self.assertTrue(held(), "the control: it is still starting")
        self.assertIn(f"is used by another keeper (pid {pid}): set COOP_STATE", said)
        keeper.wait_ready()

    def test_what_stands_in_the_file_is_not_believed(self):
        """Nor repeated: a number alone is."""
        file = self.place.dir / "keeper.sock.pid"
        for text in ("", "17", "17 \n", "-4\n", "\x1b[31mred\n", "9" * 12 + "\n", "x" * 5000):
            file.write_text(text)
            with self.subTest(text=text[:12]):
                keeper = self.start_keeper(place=self.place)
                file.write_text(text)
                with open(self.place.state / "lock") as lock:
                    self.assertEqual(lock.read(), str(self.place.socket))
                self.place.socket.rename(self.place.dir / "hidden")
                said = self.turned_away(self.place.env())
                (self.place.dir / "hidden").rename(self.place.socket)
                self.assertEqual(said, f"coop-keeper: another keeper is starting or serving on {self.place.socket}\n")
                keeper.stop()
                keeper.ended = True

    def test_socket_that_a_child_of_a_killed_one_has_open(self):
        """A child that was made to start a command has it until it executes; nobody serves there."""
        listens = (
            "import os, socket, sys\n"
            "door = socket.socket(socket.AF_UNIX)\n"
            "door.bind(sys.argv[1])\n"
            "door.listen(8)\n"
            "if os.fork():\n"
            "    os._exit(0)\n"
            "sys.stdin.read()\n"
        )
        argv = [sys.executable, "-c", listens, str(self.place.socket)]
        read_end, write_end = os.pipe()
        subprocess.run(argv, stdin=read_end, check=True, timeout=patience(60))
        os.close(read_end)
        try:
            with socket.socket(socket.AF_UNIX) as control:
                control.connect(str(self.place.socket))
            old = self.socket_number()
            keeper = self.start_keeper(place=self.place, ready=False)
            procs.wait_until(lambda: keeper.process.poll() is not None or self.socket_number() not in (None, old), "it listens")
            keeper.wait_ready()
        finally:
            os.close(write_end)

    def test_many_at_once(self):
        """One serves, all others have left."""
        keepers = [self.start_keeper(place=self.place, ready=False) for _ in range(6)]
        procs.wait_until(lambda: sum(k.process.poll() is None for k in keepers) == 1, "one is left")
        winner = next(k for k in keepers if k.process.poll() is None)
        for keeper in keepers:
            if keeper is not winner:
                self.expect_end(keeper, [1])
        winner.wait_ready()


class LeavingTest(ClaimsCase):
    def test_one_that_is_leaving_is_waited_for(self):
        """A keeper that is asked to leave waits for what it keeps; the next one waits for it, and serves."""
        first = self.start_keeper(place=self.place)
        client = first.clients[0]
        argv = ["sh", "-c", "trap : TERM; echo ready; read x; sleep 300"]
        process = client.call("spawn", argv=argv, stdin="pipe", sandbox={"profile": "full"})["process"]
        shutdown = client.submit("shutdown", {"grace_ms": 20000})
        procs.wait_until(lambda: not self.place.socket.exists(), "it is leaving")
        second = self.start_keeper(place=self.place, ready=False)
        procs.wait_until(lambda: self.waits_for_lock(second.process.pid), "the second one waits")
        self.assertTrue(procs.alive(first.pid), "the control: it has not left yet")
        os.kill(process["pid"], signal.SIGKILL)
        client.finish(shutdown)
        self.expect_end(first, [0])
        second.wait_ready()

    def test_guard_of_a_killed_one_is_waited_for(self):
        first = self.start_keeper(place=self.place)
        os.kill(first.process.pid, signal.SIGSTOP)
        first.kill()
        procs.wait_until(lambda: not procs.alive(first.pid), "the keeper is dead")
        second = self.start_keeper(place=self.place, ready=False)
        procs.wait_until(lambda: self.waits_for_lock(second.process.pid), "the second one waits")
        os.kill(first.process.pid, signal.SIGCONT)
        self.expect_end(first)
        second.wait_ready()

    def waits_for_lock(self, pid):
        """It is among those that the kernel will wake up when a lock is free."""
        with open("/proc/locks") as locks:
            return any(line.split()[1:3] == ["->", "FLOCK"] and int(line.split()[5]) == pid for line in locks)


# What a killed keeper still has while it cannot die: argv has its socket, its claim or nothing, and a file of the disk.
DYING = """
import fcntl, os, socket, struct, sys, threading
door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
door.listen(8)
if sys.argv[2]:
    claim = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
    fcntl.fcntl(claim, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    os.ftruncate(claim, 0)
    os.write(claim, b"%d\\n" % os.getpid())
sys.stdin.readline()
threading.Thread(target=lambda: open(sys.argv[3], "w").write("x")).start()
"""


@unittest.skipUnless(ROOT and os.path.exists("/dev/loop-control"), "needs root and loop devices for a disk that can be frozen")
class DyingTest(ClaimsCase):
    """A keeper that was killed and is not dead yet, as the disk that it writes to stands still: it serves nobody any more."""

    @contextlib.contextmanager
    def dying(self, claim):
        """A function that lets it die."""
        image, disk = self.place.dir / "image", self.place.dir / "disk"
        disk.mkdir()
        with open(image, "wb") as file:
            file.truncate(4 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True, stdin=subprocess.DEVNULL)
        script = f'mount -o loop {image} {disk} && exec "$@"'
        argv = [sys.executable, "-c", DYING, self.place.socket, claim, disk / "file"]
        process = subprocess.Popen(["unshare", "-m", "sh", "-c", script, "sh", *argv], stdin=subprocess.PIPE)
        with process, contextlib.ExitStack() as stack:
            stack.callback(process.kill)
            procs.wait_until(lambda: self.serves(), "it listens")
            fd = os.open(f"/proc/{process.pid}/root{disk}", os.O_RDONLY)
            stack.callback(os.close, fd)
            fcntl.ioctl(fd, FIFREEZE, 0)
            thaw = stack.enter_context(contextlib.ExitStack())
            thaw.callback(fcntl.ioctl, fd, FITHAW, 0)
            process.stdin.write(b"\n")
            process.stdin.flush()
            procs.wait_until(lambda: self.stuck(process.pid), "it waits for the disk")
            process.kill()

            def let_die():
                self.assertIsNone(process.poll(), "the control: it is still there")
                thaw.close()

            yield let_die

    def serves(self):
        with socket.socket(socket.AF_UNIX) as control:
            return control.connect_ex(str(self.place.socket)) == 0

    def stuck(self, pid):
        threads = Path(f"/proc/{pid}/task").glob("*/stat")
        return any(path.read_text().rpartition(")")[2].split()[0] == "D" for path in threads)

    def test_its_socket_turns_nobody_away(self):
        with self.dying("") as let_die:
            old = self.socket_number()
            keeper = self.start_keeper(place=self.place, ready=False)
            procs.wait_until(lambda: keeper.process.poll() is not None or self.socket_number() not in (None, old), "it listens")
            let_die()
            keeper.wait_ready()

    def test_its_claim_is_waited_for(self):
        claim = self.place.dir / "keeper.sock.pid"
        with self.dying(claim) as let_die:
            keeper = self.start_keeper(place=self.place, ready=False)
            procs.wait_until(lambda: keeper.process.poll() is not None or self.waits_for_claim(claim), "it waits")
            let_die()
            keeper.wait_ready()

    def waits_for_claim(self, path):
        number = f":{path.stat().st_ino}"
        with open("/proc/locks") as locks:
            return any(line.split()[1:3] == ["->", "OFDLCK"] and line.split()[6].endswith(number) for line in locks)


class ClientTest(ClaimsCase):
    """Whoever starts a keeper on demand, and finds that another was quicker, uses that."""

    def keeper_that_tells(self):
        """A program that runs the keeper, and makes a file when that has left."""
        program, left = self.place.dir / "telling", self.place.dir / "left"
        program.write_text(f'#!/bin/sh\n"{KEEPER}" "$@"\ncode=$?\n: > "{left}"\nexit $code\n')
        program.chmod(0o755)
        return program, left

    def start_command(self, argv, keeper):
        env = self.place.env({"COOP_KEEPER": str(keeper)})
        return subprocess.Popen(argv, env=env, cwd=self.place.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_command_waits_for_the_other_keeper(self):
        program, left = self.keeper_that_tells()
        with self.held_keeper() as (keeper, held):
            argv = [str(COOP), "run", "true"]
            command = self.start_command(argv, program)
            procs.wait_until(left.exists, "the second keeper has left")
            self.assertTrue(held(), "the control: the first one is still starting")
        _, errors = command.communicate(timeout=patience(60))
        self.assertEqual((command.returncode, errors), (0, ""))
        keeper.wait_ready()

    def test_command_starts_one_when_the_other_fails(self):
        program, left = self.keeper_that_tells()
        with self.held_keeper() as (keeper, _):
            argv = [str(COOP), "run", "true"]
            command = self.start_command(argv, program)
            procs.wait_until(left.exists, "the second keeper has left")
            pid = self.own_pid(keeper)
            os.kill(pid, signal.SIGKILL)
            self.expect_end(keeper)
        _, errors = command.communicate(timeout=patience(60))
        self.assertEqual((command.returncode, errors), (0, ""))
        third = self.keeper.connect()
        third.call("shutdown", grace_ms=0)
        procs.wait_until(lambda: not procs.alive(third.hello["pid"]), "it leaves")

    def test_serve_waits_for_the_other_keeper(self):
        with self.held_keeper() as (keeper, held):
            gateway = Gateway(place=self.place, ready=False)
            try:
                procs.wait_until(lambda: b"another keeper is starting" in gateway.log.read_bytes(), "serve has met it")
                self.assertTrue(held(), "the control: it is still starting")
            except BaseException:
                gateway.process.kill()
                raise
        try:
            gateway.wait_ready()
            self.assertEqual(gateway.keeper_pid, keeper.wait_ready().hello["pid"])
        finally:
            gateway.process.terminate()
            gateway.process.wait()
            gateway.process.stdout.close()

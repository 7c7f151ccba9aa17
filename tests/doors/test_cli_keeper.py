"""The keeper behind the command line: started on demand, one for all, leaving when idle or told."""

import json
import os
import signal
import socket
import stat
import struct
import subprocess
import threading

from lib import procs
from lib.cli import CliCase
from lib.client import Client
from lib.place import COOP, KEEPER, patience


class OnDemandTest(CliCase):
    def test_ten_clients_start_one_keeper(self):
        """Ten first commands at once: one keeper, and each command works."""
        processes = [self.start("run", "--", "sh", "-c", f"echo {i}; exit {i}") for i in range(10)]
        for i, process in enumerate(processes):
            out, err = process.communicate(timeout=patience(60))
            self.assertEqual((out, process.returncode), (f"{i}\n".encode(), i), err)
        info = json.loads(self.out("op", "info"))
        programs = {pid: procs.cmdline(pid).split(" ")[0] for pid in procs.descendants(os.getpid())}
        keepers = {pid for pid, program in programs.items() if os.path.basename(program) == "coop-keeper"}
        self.assertEqual(keepers, {info["pid"], info["guard_pid"]})

    def test_socket_folder_is_private(self):
        """The folder of the socket has mode 0700 when coop makes it."""
        deep = self.place.dir / "made" / "keeper.sock"
        env = dict(self.env, COOP_SOCKET=str(deep))
        self.coop("run", "true", env=env)
        self.assertEqual(stat.S_IMODE(deep.parent.stat().st_mode), 0o700)
        self.coop("shutdown", env=env)

    def test_keeper_survives_its_starter(self):
        """The command that started the keeper is gone with its whole session; the keeper is in one of its own."""
        process = self.detached("sleep", "300")
        info = json.loads(self.out("op", "info"))
        self.assertNotEqual(procs.stat(info["pid"])[3], procs.stat(os.getpid())[3])
        os.kill(info["pid"], signal.SIGHUP)
        status = self.json("status", process)
        self.assertEqual(status.get("process", status)["state"], "running")

    def test_daemon_holds_nothing_of_its_starter(self):
        """A pipe around the first command ends with that command, though the keeper stays."""
        done = subprocess.run(["sh", "-c", f"'{COOP}' run -d sleep 300 2>&1 | cat"], env=self.env, capture_output=True,
                              timeout=patience(30), check=True)
        self.assertTrue(done.stdout.startswith(b"psh-"))
        info = json.loads(self.out("op", "info"))

        def links(pid, fds):
            return {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in fds}

        guard, std = info["guard_pid"], (0, 1, 2)
        # What the keeper logs goes through a pipe of its own, which the guard reads.
        log = links(guard, set(map(int, os.listdir(f"/proc/{guard}/fd"))) - set(std))
        held = links(guard, std) | (links(info["pid"], std) - log)
        self.assertFalse([link for link in held if link.startswith(("pipe:", "/dev/pts"))], held)

    def test_verbs_that_look_do_not_start_a_keeper(self):
        """ps with no keeper shows nothing and starts none."""
        self.coop("ps", code=None)
        self.assertFalse(self.place.socket.exists())

    def test_verbs_without_a_keeper(self):
        """gc has nothing to forget and info nobody to show; both say so and start none."""
        self.assertRegex(self.out("gc").decode(), r"^no keeper is running.*0 finished processes forgotten\n$")
        self.assertEqual(self.json("gc"), {"released": 0})
        self.assertIn("no keeper is running", self.refusal("info", code=1))
        self.assertEqual(self.json("info", code=1)["error"]["code"], "unreachable")
        self.assertFalse(self.place.socket.exists())

    def test_earlier_processes_without_a_keeper(self):
        """status, wait, logs and ps -a know what an earlier keeper ran; what ends something names coop history."""
        process = self.detached("sleep", "300")
        self.coop("shutdown", "--grace", "0s")
        for verb in ("kill", "stop", "rm"):
            self.assertIn("coop history", self.refusal(verb, process, code=1))
        self.assertEqual(self.json("ps"), [])
        self.assertFalse(self.place.socket.exists())
        for args in (("ps", "-q", "-a"), ("ps", "-q", "--state", "signaled")):
            self.assertEqual(self.json(*args), [process])
            self.coop("shutdown")
        self.assertEqual(self.json("status", process)["end_cause"], "shutdown")
        self.coop("shutdown")
        self.assertIn(process.encode(), self.out("wait", process, code=137))
        self.coop("shutdown")
        self.assertIn("no longer kept", self.refusal("logs", process, code=1))

    def test_nothing_recorded(self):
        """Where nothing was ever run they start no keeper."""
        self.assertEqual(self.json("ps", "-a"), [])
        for verb in ("status", "logs"):
            self.assertIn("no keeper is running", self.refusal(verb, "psh-1-1", code=1))
        self.refusal("wait", "psh-1-1", code=125)
        self.assertFalse(self.place.socket.exists())

    def test_token_without_a_keeper(self):
        """Nobody can check the token: verbs that only look fail, too."""
        env = {**self.env, "COOP_TOKEN": "coop_1_x"}
        for args in (("ps",), ("ps", "-a"), ("gc",), ("session", "ls"), ("cancel", "x"), ("info",), ("kill", "x")):
            with self.subTest(args=args):
                self.assertIn("cannot be checked", self.refusal(*args, code=1, env=env))
        self.assertFalse(self.place.socket.exists())

    def test_lost(self):
        """What a keeper that died leaves behind is lost: no code, no duration, and wait fails."""
        process = self.detached("sleep", "300")
        with self.client() as client:
            info = client.call("info")
            # Where the socket is on no tmpfs, the disk alone outlives both.
            procs.wait_until(lambda: client.call("history")["processes"], "the start is on the disk")
        # A guard's death ends its keeper in order: this one must not come to that.
        os.kill(info["pid"], signal.SIGSTOP)
        for pid in (info["guard_pid"], info["pid"]):
            os.kill(pid, signal.SIGKILL)
        procs.wait_until(lambda: not procs.alive(info["pid"]), "it is gone")
        self.assertEqual(self.out("wait", process, code=125).decode(), f"{process}: lost\n")
        self.assertRegex(self.out("status", process).decode(), r"(?s)^\S+: lost\n.*, found lost \S+\n")
        self.assertRegex(self.out("ps", "-a").decode(), rf"(?m)^{process} +- +lost +- ")

    def test_stale_socket(self):
        """A socket file that nobody listens on is replaced."""
        self.coop("run", "true")
        with self.client() as client:
            pid, guard = client.hello["pid"], client.call("info")["guard_pid"]
        os.kill(guard, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
        os.kill(guard, signal.SIGKILL)
        procs.wait_until(lambda: not procs.alive(pid) and not procs.alive(guard), "both are gone")
        self.assertTrue(self.place.socket.exists())
        self.assertEqual(self.out("run", "echo", "again"), b"again\n")

    def test_folder_that_others_may_write_to(self):
        """Neither coop nor doctor uses it; both say which it is, why, and what to do."""
        os.chmod(self.place.dir, 0o777)
        text = self.refusal("run", "true", code=125)
        self.assertIn(f"others may write to {self.place.dir}: chmod go-w {self.place.dir}", text)
        self.assertIn("COOP_SOCKET", text)
        self.assertIn("others may write to", self.coop("doctor", code=None)[0].decode())
        os.chmod(self.place.dir, 0o700)

    def test_folder_of_another_user(self):
        """A folder that exists and is somebody else's is named, with its owner."""
        if os.geteuid() != 0:
            self.skipTest("needs root to give a folder away")
        theirs = self.place.dir / "theirs"
        theirs.mkdir(mode=0o700)
        os.chown(theirs, 65534, 65534)
        text = self.refusal("run", "true", code=125, env=dict(self.env, COOP_SOCKET=str(theirs / "s")))
        self.assertIn(f"{theirs} belongs to another user (uid 65534)", text)

    def test_keeper_that_ends_instead_of_serving(self):
        """The last line that it says is the reason, told at once."""
        program = self.place.dir / "bad-keeper"
        program.write_text("#!/bin/sh\necho note of no weight >&2\necho 'coop-keeper: the moon is in the way' >&2\nexit 1\n")
        program.chmod(0o700)
        text = self.refusal("run", "true", code=125, env=dict(self.env, COOP_KEEPER=str(program)))
        self.assertEqual(text, "coop: cannot start the keeper: the moon is in the way\n")

    def test_two_sockets_with_one_state_folder(self):
        """The second keeper says that the state folder is another's, and the command hands that on."""
        self.detached("sleep", "300")
        other = dict(self.env, COOP_SOCKET=str(self.place.dir / "other" / "s"))
        text = self.refusal("run", "true", code=125, env=other)
        self.assertIn("used by another keeper", text)


class FakeKeeper:
    """Answers one request, whatever it is."""

    def __init__(self, path, result):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.result = result
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        connection, _ = self.listener.accept()
        with connection, self.listener:
            self.send(connection, {"hello": {"protocol": 1, "version": "0.1.0", "pid": os.getpid()}})
            size = struct.unpack("<I", connection.recv(8, socket.MSG_WAITALL)[:4])[0]
            request = json.loads(connection.recv(size, socket.MSG_WAITALL))
            self.send(connection, {"id": request["id"], "result": self.result})

    def send(self, connection, value):
        text = json.dumps(value).encode()
        connection.sendall(struct.pack("<IBBH", len(text), ord("J"), 0, 0) + text)


class InfoTest(CliCase):
    def test_strays_are_shown(self):
        """info in words tells of processes that belong to no record, if there are any."""
        self.coop("run", "true")
        self.assertNotIn("stray", self.out("info").decode())
        info = self.json("info")
        for count, words in ((1, "1 process that belongs to no record"), (2, "2 processes that belong to no record")):
            info["processes"]["strays"] = count
            path = self.place.dir / f"fake{count}"
            fake = FakeKeeper(path, info)
            self.assertIn(words, self.out("info", env=dict(self.env, COOP_SOCKET=str(path))).decode())
            fake.thread.join()


class ForegroundTest(CliCase):
    def test_coop_keeper_runs_in_the_foreground(self):
        """coop keeper logs on stderr, serves, and SIGTERM ends it with all it owns."""
        process = self.start("keeper", "--set", "max_running=7")
        client = procs.wait_until(self.try_connect, "it listens")
        self.assertEqual(client.call("info")["settings"]["max_running"], 7)
        spawned = client.call("spawn", argv=["sleep", "300"])["process"]
        client.close()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=patience(30))
        self.assertEqual(process.returncode, 0, err)
        self.assertFalse(procs.alive(spawned["pid"]))
        self.assertTrue(err)

    def try_connect(self):
        try:
            return Client(self.place.socket)
        except OSError:
            return None

    def test_help_names_the_settings(self):
        """help keeper and completion offer --set with every setting, and no --json, which the keeper has not."""
        self.coop("run", "true")
        text = self.out("help", "keeper").decode()
        for name in self.json("info")["settings"]:
            self.assertRegex(text, rf"\n  {name} +\S")
        self.assertIn("--set NAME=VALUE", text)
        self.assertNotIn("--json", text)
        self.assertEqual(self.out("help", "--words", "keeper"), b"--set=\n--help\n")

    def test_completion_of_settings(self):
        """bash offers --set behind keeper, and the settings' names behind that."""
        self.assertEqual(self.offered("keeper", "--"), ["--set", "--help"])
        self.assertEqual(self.offered("keeper", "--set", "max_r"), ["max_running=", "max_retained=", "max_receipts="])
        self.assertEqual(self.offered("run", "--lease", "a"), ["awaited"])

    def test_bad_settings(self):
        """An unknown setting or a senseless value is refused in one line."""
        for bad in ("nonsense=1", "max_running", "max_running=x", "max_running=-1", "=1", ""):
            with self.subTest(bad=bad):
                _, err = self.coop("keeper", "--set", bad, code=None)
                self.assertNotEqual(self.code, 0)
                self.assertEqual(err.count(b"\n"), 1, err)

    def test_words_that_do_not_go_together(self):
        """coop-keeper itself: a word too many, or two ways to run, is answered with its usage, and nothing is started."""
        for words in (["word"], ["--daemon", "--foreground"], ["--foreground", "word"], ["--ready", "1", "--daemon"]):
            with self.subTest(words):
                done = subprocess.run([KEEPER, *words], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience(60))
                self.assertEqual((done.returncode, done.stdout, done.stderr[:6].lower()), (2, b"", b"usage:"), done)
                self.assertFalse(self.place.socket.exists())


class ShutdownTest(CliCase):
    def test_b123_shutdown(self):
        """shutdown ends the keeper and all it owns; the next command starts a new one, which knows how that ended."""
        process = self.detached("sh", "-c", "setsid sleep 300 & sleep 300")
        with self.client() as client:
            pid = client.hello["pid"]
            leader = client.call("status", id=process)["process"]["pid"]
            owned, helpers = [leader, *procs.descendants(leader)], procs.descendants(pid)
        self.coop("shutdown")
        self.assertEqual([p for p in [pid, *owned] if procs.alive(p)], [])
        # Launchers follow the keeper by the kernel's hand, a moment later.
        procs.wait_until(lambda: not any(map(procs.alive, helpers)), "its launchers are gone, too")
        self.assertFalse(self.place.socket.exists())
        self.coop("shutdown")
        self.assertEqual(self.out("run", "echo", "new"), b"new\n")
        self.assertEqual(self.json("status", process)["end_cause"], "shutdown")

    def test_b123_running_clients_hear_it(self):
        """A coop run in the foreground ends when the keeper is shut down, with the code of the signal."""
        process = self.start("run", "--", "sh", "-c", "echo ready; exec sleep 300")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.coop("shutdown")
        process.communicate(timeout=patience(30))
        self.assertIn(process.returncode, (125, 128 + 15, 128 + 9))


class IdleTest(CliCase):
    keeper_settings = "idle_exit_ms=300"

    def test_idle_keeper_leaves(self):
        """With COOP_SET=idle_exit_ms=300 a keeper with nothing to keep leaves by itself; a new command starts another."""
        self.coop("run", "true")
        with self.client() as client:
            first = client.hello["pid"]
            client.call("gc")
            self.assertEqual(client.call("info")["settings"]["idle_exit_ms"], 300)
        procs.wait_until(lambda: not procs.alive(first), "the idle keeper leaves")
        procs.wait_until(lambda: not self.place.socket.exists(), "its socket goes")
        self.assertEqual(self.out("run", "echo", "again"), b"again\n")

    def test_busy_keeper_stays(self):
        """A live process keeps it."""
        process = self.detached("sleep", "2")
        with self.client() as client:
            pid = client.hello["pid"]
        self.coop("wait", process)
        self.assertTrue(procs.alive(pid))
        self.coop("rm", process)
        procs.wait_until(lambda: not procs.alive(pid), "then it leaves")

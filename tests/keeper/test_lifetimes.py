"""What became of a process, and of its record, where two things happen at once or in an unusual order."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time
import unittest

from lib import procs
from lib.client import Client, KeeperError
from lib.keeper import KeeperCase, plain_limits
from lib.place import KEEPER, Place, patience

ROOT = os.geteuid() == 0
# Nobody else runs as this user.
OTHER_UID = 62742

# Becomes root, so that the user's keeper may not signal it any more; says so; and ends alone if it is forgotten.
GAINS_RIGHTS = """
#include <unistd.h>
int main(void)
{
	if (setgid(0) < 0 || setuid(0) < 0 || write(1, "up\\n", 3) != 3)
		return 1;
	sleep(60);
	return 0;
}
"""


# A descendant with a session of its own, no parent and no environment says its pid.
AWAY = """
import os
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.execve('/bin/sh', ['sh', '-c', 'echo $$; exec sleep 300'], {})
"""
LEAVES_EVERYTHING = f"import subprocess; subprocess.run(['python3', '-c', {AWAY!r}]); input()"


class StartingTest(KeeperCase):
    """Requests about a process that the launcher has not started yet."""

    slots = 0

    def setUp(self):
        super().setUp()
        self.ended(self.spawn("true")["id"])
        self.client.call("gc")
        self.held = self.launcher()
        self.other = self.connect()

    def hold_launcher(self):
        os.kill(self.held, signal.SIGSTOP)
        self.addCleanup(self.let_launcher_go)
        procs.wait_until(lambda: procs.stat(self.held)[0] == "T", "the launcher stands")

    def let_launcher_go(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.held, signal.SIGCONT)

    def start(self, tag):
        """A spawn that is under way: its record is there, its process is not."""
        request = self.client.submit("spawn", {"argv": ["sleep", "300"], "tag": tag})
        procs.wait_until(lambda: self.other.call("list", tag=tag)["processes"], "the record is there")
        return request

    def spawned(self, request):
        """The pid that a spawn has told, or None if it was refused."""
        try:
            return self.client.finish(request).result["process"]["pid"]
        except KeeperError as error:
            self.assertIn(error.code, ("spawn_failed", "cancelled", "no_such_process"), error)
            return None

    def test_release_and_kill_of_a_starting_process(self):
        """release and kill of processes whose launcher stands still for longer than a kill may take: every request is
        answered, the records say what is so, and neither process is left."""
        self.hold_launcher()
        spawns = [self.start("released"), self.start("killed")]
        release = self.other.submit("release", {"id": "released"})
        kill = self.other.submit("kill", {"id": "killed"})
        # The limit of a kill, 5 s, has to pass: the keeper may answer then or wait on, but must not forget the process.
        with contextlib.suppress(KeeperError):
            self.connect().call("wait", id="released", timeout_ms=5500)
        self.let_launcher_go()
        pids = [self.spawned(request) for request in spawns]
        answers = [self.other.finish(request).result for request in (release, kill)]
        self.assertTrue(answers[0]["released"], answers[0])
        self.assertTrue(answers[1]["success"], answers[1])
        self.assert_gone([pid for pid in pids if pid])
        self.assertEqual(self.client.call("list")["processes"], [])
        for record in self.client.call("list", include_finished=True)["processes"]:
            self.assertEqual((record["tag"], record["end_cause"]), ("killed", "killed_by_request"))
        self.assertEqual(self.client.call("info")["processes"]["live"], 0)
        allowed = {self.keeper.pid, *self.launchers()}
        self.assertLessEqual(set(procs.descendants(self.keeper.process.pid)), allowed)
        self.assertEqual(self.ended(self.sh("exit 3")["id"])["exit"]["code"], 3)

    def test_stop_of_a_starting_process(self):
        """stop of a process that has no pid yet: its receipt names real pids only."""
        self.hold_launcher()
        spawn = self.start("stopped")
        stop = self.other.submit("stop", {"id": "stopped", "grace_ms": 2000})
        self.other.call("info")
        self.let_launcher_go()
        pid = self.spawned(spawn)
        receipt = self.other.finish(stop).result
        self.assertTrue(receipt["success"], receipt)
        for name in ("signalled", "killed"):
            self.assertNotIn(0, receipt[name], receipt)
            self.assertLessEqual(set(receipt[name]), {pid}, receipt)
        self.assert_gone([pid] if pid else [])


class FullStartingTest(StartingTest):
    profile = "full"


class DescendantsTest(KeeperCase):
    slots = 0

    def orphan_of(self, script, **args):
        """Runs a script that prints the pid of what it leaves behind: (id, that pid)."""
        process = self.sh(script, **args)["id"]
        return process, self.outside(process, self.wait_output(process, b"\n"))

    def test_large_environment_does_not_hide_an_orphan(self):
        """A descendant in a session of its own, known only by its environment of more than 64 KiB, is owned and killed, also
        where a shell has put the variables in an order of its own."""
        large = {f"LARGE_{i}": "x" * 60000 for i in range(2)}
        python = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
        shell = "setsid sh -c 'sleep 300 & echo $!'"
        ways = {"nothing": ["setsid", "-f", "python3", "-c", python], "a shell": ["sh", "-c", shell]}
        for between, argv in ways.items():
            with self.subTest(between=between):
                process = self.spawn(*argv, env=large)["id"]
                orphan = self.outside(process, self.wait_output(process, b"\n"))
                self.ended(process)
                self.assertTrue(procs.alive(orphan))
                self.addCleanup(procs.kill_all, [orphan])
                self.assertEqual(self.status(process)["descendants"], 1)
                receipt = self.client.call("kill", id=process)
                self.assertTrue(receipt["success"], receipt)
                self.assertIn(orphan, receipt["signalled"])
                self.assert_gone([orphan])
                self.assertEqual(self.client.call("info")["processes"]["strays"], 0)

    def test_kill_on_exit_reaches_a_bare_environment(self):
        """on_exit kill ends descendants without any environment, whose leader has ended at once, before the end is told."""
        for _ in range(8):
            process = self.sh("env -i sleep 300 & echo $!; exit 0", on_exit="kill")["id"]
            record = self.ended(process)
            left = [procs.cmdline(pid) for pid in procs.descendants(self.keeper.pid) if pid not in self.launchers()]
            self.assertNotIn("sleep 300", left)
            self.assertRegex(self.output(process), rb"^\d+\n$", "the control: there was one")
            self.assertEqual((record["exit"]["code"], record["descendants"]), (0, 0))

    def test_kill_reaches_a_bare_environment(self):
        """With on_exit keep the same descendants are kept, counted and killed by a kill."""
        process, orphan = self.orphan_of("env -i sleep 300 & echo $!; exit 0")
        self.assertEqual(self.ended(process)["descendants"], 1)
        self.assertEqual(self.client.call("kill", id=process)["signalled"], [orphan])
        self.assert_gone([orphan])

    def test_kill_reaches_one_that_left_everything(self):
        """Own session, no parent, no environment, never looked at: it is the record's all the same, and dies with it."""
        other = self.spawn("sleep", "300")["id"]
        process = self.spawn("python3", "-c", LEAVES_EVERYTHING, stdin="pipe")["id"]
        escaped = self.outside(process, procs.wait_until(lambda: self.output(process), "it is away"))
        receipt = self.client.call("kill", id=process)
        self.assertIn(escaped, receipt["killed"])
        self.assertEqual((receipt["survivors"], receipt["strays"]), (0, 0))
        self.assert_gone([escaped])
        self.assertEqual(self.status(other)["state"], "running")

    @unittest.skipUnless(ROOT, "needs root to run keepers as a user who may not raise limits")
    def test_keeper_inside_a_kept_process(self):
        """The same in a keeper that another one keeps, for a user who cannot raise a limit again."""
        place, inner = Place(owner=OTHER_UID), Place(owner=OTHER_UID)
        self.addCleanup(inner.remove)
        outer = self.start_keeper(place=place, before_exec=place.become_owner, env={"HOME": "/"})
        argv, env, full = [str(inner.keeper), "--foreground"], inner.env({"HOME": "/"}), {"profile": "full"}
        outer.clients[0].call("spawn", argv=argv, env=env, cwd="/", sandbox=full)

        def connect():
            # There before somebody listens on it.
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                return Client(inner.socket)

        client = procs.wait_until(connect, "the inner keeper serves")
        args = {"argv": ["python3", "-c", LEAVES_EVERYTHING], "stdin": "pipe", "cwd": "/"}
        process = client.call("spawn", **args, sandbox={"profile": self.profile or "workspace-write"})["process"]["id"]
        told = procs.wait_until(lambda: client.reply("read", {"id": process}).bytes(), "it is away")
        escaped = self.outside(process, told, client.hello["pid"])
        receipt = client.call("kill", id=process)
        self.assertIn(escaped, receipt["killed"])
        self.assertEqual((receipt["survivors"], receipt["strays"]), (0, 0))
        client.close()

    def test_list_shows_what_left_a_descendant(self):
        """`list` alone, without any other look at the record before, shows an ended process that left a descendant, until
        that has gone."""
        process = self.sh("setsid sleep 300 & exit 0")
        procs.wait_until(lambda: procs.stat(process["pid"]) is None, "the leader is reaped")

        def listed():
            records = self.client.call("list")["processes"]
            self.assertEqual([record["id"] for record in records], [process["id"]])
            return records[0]["state"] == "exited" and records[0]

        record = procs.wait_until(listed, "its end is told")
        self.assertEqual(record["descendants"], 1)
        self.client.call("kill", id=process["id"])
        self.assertEqual(self.client.call("list")["processes"], [])

    def test_a_child_that_is_being_started_is_no_stray(self):
        """info, asked again and again while processes start, never counts one of them as belonging to no record."""
        watcher, counts, stop = self.connect(), set(), threading.Event()

        def watch():
            while not stop.is_set():
                counts.add(watcher.call("info")["processes"]["strays"])

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            for _ in range(100):
                requests = [self.client.submit("spawn", {"argv": ["true"]}) for _ in range(10)]
                started = [self.client.finish(request).result["process"]["id"] for request in requests]
        finally:
            stop.set()
            thread.join()
        self.ended(started[-1])
        self.assertEqual(counts, {0})


class FullDescendantsTest(DescendantsTest):
    profile = "full"


class UnkillableTest(KeeperCase):
    @unittest.skipUnless(ROOT, "needs root to make a program that gains rights which the keeper has not")
    @unittest.skipUnless(shutil.which("gcc"), "needs gcc to make a program that gains rights")
    def test_shutdown_with_a_process_that_cannot_be_killed(self):
        """A process that the keeper may not signal holds up neither kill nor shutdown, and both tell of it as a survivor."""
        place = Place(owner=OTHER_UID)
        # In a sandbox nobody gains rights, and by the profile full nobody does either unless the operator has said so.
        place.conf.write_text("[profile gaining]\nbase = full\nnew_privileges = yes\n")
        program = self.gaining_program(place)

        def be_other():
            plain_limits()
            place.become_owner()

        keeper = self.start_keeper(place=place, before_exec=be_other, env={"HOME": "/"})
        client = keeper.clients[0]
        plain = client.call("spawn", argv=["sleep", "300"], cwd="/")["process"]
        process = client.call("spawn", argv=[str(program)], cwd="/", sandbox={"profile": "gaining"})["process"]
        self.addCleanup(procs.kill_all, [process["pid"]])
        gained = procs.wait_until(lambda: client.reply("read", {"id": process["id"]}).bytes(), "it has gained rights")
        self.assertEqual(gained, b"up\n")
        stopper = keeper.connect()
        kill = stopper.submit("kill", {"id": process["id"]})
        stopper.call("info")
        answer = client.call("shutdown", grace_ms=0)
        self.assertEqual(answer["survivors"], 1, answer)
        receipt = stopper.finish(kill).result
        self.assertEqual((receipt["success"], receipt["survivors"], receipt["killed"]), (False, 1, []), receipt)
        self.assertTrue(procs.alive(process["pid"]))
        self.assert_gone([plain["pid"]])
        # The guard goes on trying for a while.
        os.kill(process["pid"], signal.SIGKILL)
        self.expect_end(keeper)

    def gaining_program(self, place):
        program = place.dir / "gains"
        source = place.dir / "gains.c"
        source.write_text(GAINS_RIGHTS)
        subprocess.run(["gcc", "-o", str(program), str(source)], check=True, timeout=patience(60))
        os.chown(program, 0, 0)
        program.chmod(0o4755)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest(f"{place.dir} is mounted nosuid")
        return program


class TerminalTest(KeeperCase):
    def test_closed_stdin_leaves_the_terminal_usable(self):
        """After close_stdin on a terminal its size can be changed and its echo is still told."""
        script = "stty -echo; trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"
        process = self.sh(script, kind="pty")["id"]
        self.wait_output(process, b"ready", "pty")
        self.assertTrue(self.client.call("close_stdin", id=process)["closed"])
        self.assertFalse(self.status(process)["stdin_open"])
        self.assertEqual(self.client.call("resize", id=process, cols=100, rows=33), {"cols": 100, "rows": 33})
        self.wait_output(process, b"33 100", "pty")
        self.assertIs(self.status(process)["echo_off"], True)
        with self.refused("closed"):
            self.client.reply("write_stdin", {"id": process}, b"x")


class RecordTest(KeeperCase):
    def test_record_of_a_missing_directory(self):
        """record_failure with a cwd that is not there: the refusal names a finished record with exit code 126."""
        with self.refused("invalid_input", "cwd") as caught:
            self.spawn("true", cwd="/nonexistent/folder", record_failure=True, tag="nowhere")
        self.assertEqual(caught.exception.details["errno"], "ENOENT")
        record = self.status(caught.exception.details["id"])
        self.assertEqual((record["state"], record["exit"]["code"]), ("exited", 126))
        self.assertEqual((record["end_cause"], record["pid"], record["tag"]), ("spawn_failed", None, "nowhere"))
        self.assertEqual(record["cwd"], "/nonexistent/folder")
        self.assertEqual(self.wait(record["id"])["exit_code"], 126)
        self.assertTrue(self.client.call("release", id=record["id"])["released"])
        with self.refused("invalid_input", "cwd"):
            self.spawn("true", cwd="/nonexistent/folder")
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])

    def test_records_that_stay_do_not_wake_the_keeper(self):
        """More finished records than max_finished, none of which may go because each left a descendant: nothing wakes the
        keeper for two seconds."""
        keeper = self.start_keeper({"max_finished": 1})
        client = keeper.clients[0]
        for _ in range(3):
            process = client.call("spawn", argv=["sh", "-c", "setsid sleep 300 >&- 2>&- & exit 0"], lease="persistent")
            client.call("wait", id=process["process"]["id"])
        self.assertEqual(client.call("info")["processes"]["finished"], 3)

        def switches():
            with open(f"/proc/{keeper.pid}/status", encoding="ascii") as status:
                return int(next(line for line in status if line.startswith("voluntary_ctxt")).split()[1])

        def rests():
            before = switches()
            time.sleep(0.5)
            return switches() == before

        # What follows an end (late output, freed buffers) passes first; a keeper that never rests fails here.
        procs.wait_until(rests, "the keeper rests", timeout=4)
        before = switches()
        time.sleep(2)
        self.assertLessEqual(switches() - before, 2)


class DaemonTest(KeeperCase):
    def test_daemon_keeps_nothing_of_its_caller(self):
        """`$(coop-keeper --daemon)` returns, and a descriptor of its caller is not held by the keeper or its guard."""
        place = Place()
        self.addCleanup(place.remove)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        argv = [str(KEEPER), "--daemon"]
        with subprocess.Popen(argv, env=place.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, pass_fds=[writer]) as process:
            os.close(writer)
            client = procs.wait_until(lambda: self.reach(place), "the daemon listens")
            self.addCleanup(client.close)
            self.addCleanup(self.leave, client, place)
            ready = select.select([process.stdout], [], [], patience(5))[0]
            if not ready:
                self.leave(client, place)
            self.assertEqual((ready, process.stdout.read()), ([process.stdout], b""), "stdout is held open")
            self.assertEqual(process.wait(patience(10)), 0)
        self.assertEqual(select.select([reader], [], [], patience(5))[0], [reader], "the descriptor is held open")
        self.assertEqual(os.read(reader, 1), b"")
        self.assertEqual(client.call("info")["pid"], client.hello["pid"])

    def reach(self, place):
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return Client(place.socket)

    def leave(self, client, place):
        if place.socket.exists():
            client.call("shutdown", grace_ms=0)
        procs.wait_until(lambda: not procs.alive(client.hello["pid"]), "the daemon leaves")
        self.assertEqual(place.faults(), "")

"""A keeper and its guard are killed together: the next keeper of the place ends what runs on without them."""

import contextlib
import os
import random
import re
import resource
import signal
import subprocess
import time

from lib import procs
from lib.client import Client, Closed
from lib.keeper import KeeperCase
from lib.place import KEEPER, Place

RUNAWAYS = """
setsid sh -c 'trap "" TERM HUP INT; echo $$; while :; do sleep 300; done' &
(setsid sh -c '(sh -c "echo \\$\\$; sleep 300; sleep 300" &) ; exit 0' &)
sleep 300
"""
BASE = 1 << 62
# resource has no name for it.
RLIMIT_LOCKS = 10


class SurvivorsCase(KeeperCase):
    profile = "full"
    slots = 0

    def setUp(self):
        super().setUp()
        self.place = self.keeper.place
        self.marks = self.place.state / "marks"
        # What falls to this test when its parents are gone.
        self.addCleanup(procs.reap_orphans)

    def runaways(self, client=None):
        """Two processes in sessions of their own, of a command that lives."""
        client = client or self.client
        process = client.call("spawn", argv=["sh", "-c", RUNAWAYS])["process"]["id"]
        procs.wait_until(lambda: self.output(process, client=client).count(b"\n") == 2, "both are away")
        return [int(line) for line in self.output(process, client=client).split()]

    def kill_both(self, guard, keeper):
        """The guard's death would make the keeper end all in order."""
        os.kill(keeper, signal.SIGSTOP)
        for pid in (guard, keeper):
            os.kill(pid, signal.SIGKILL)
        procs.wait_until(lambda: not procs.alive(keeper), "the keeper is dead")
        procs.reap_orphans()

    def kill_keeper(self):
        self.kill_both(self.keeper.process.pid, self.keeper.pid)
        self.expect_end(self.keeper)

    def marked(self, number=None):
        """A process of the test's own, with a number for a mark."""

        def limit():
            if number is not None:
                resource.setrlimit(RLIMIT_LOCKS, (number, resource.getrlimit(RLIMIT_LOCKS)[1]))

        process = subprocess.Popen(["sleep", "300"], preexec_fn=limit)

        def end():
            process.kill()
            process.wait()

        self.addCleanup(end)
        return process


class NextKeeperTest(SurvivorsCase):
    def test_survivors_are_ended(self):
        pids = self.runaways()
        stranger, other = self.marked(), self.start_keeper()
        others = self.runaways(other.clients[0])
        self.kill_keeper()
        self.assertTrue(all(map(procs.alive, pids)), "the control: they have survived")
        keeper = self.start_keeper(place=self.place)
        self.assert_gone(pids)
        self.assertIsNone(stranger.poll())
        self.assertTrue(all(map(procs.alive, others)), "another keeper's")
        self.assertRegex(self.wait_log("what they left was"), r"what they left was ended processes=[2-9] left=0")
        self.assertEqual(keeper.clients[0].call("list")["processes"], [])

    def test_those_of_two_keepers_in_a_row(self):
        """The second one is killed before it has ended what the first one left, as its file shows."""
        first = self.runaways()
        self.kill_keeper()
        line = self.marks.read_bytes()
        self.marks.write_bytes(b"")
        self.keeper = self.start_keeper(place=self.place)
        self.client = self.keeper.clients[0]
        self.assertTrue(all(map(procs.alive, first)), "the control: nobody was looked for")
        second = self.runaways()
        self.kill_keeper()
        self.marks.write_bytes(line + self.marks.read_bytes())
        self.start_keeper(place=self.place)
        self.assert_gone(first + second)
        self.assertEqual(self.marks.read_bytes().count(b"\n"), 1)

    def test_those_that_fork_meanwhile(self):
        """Each starts the next one and leaves, so that no look sees them all."""
        script = "setsid sh -c 'echo $$; while :; do (sleep 0.01 &) ; done' & sleep 300"
        process = self.sh(script)["id"]
        procs.wait_until(lambda: self.output(process).count(b"\n"), "it forks")
        pid = int(self.output(process))
        self.kill_keeper()
        self.assertTrue(procs.alive(pid), "the control: it has survived")
        self.start_keeper(place=self.place)
        self.assert_gone([pid])

    def test_nothing_is_kept_where_all_is_gone(self):
        """The file goes with the guard, that of a killed keeper too; while one runs only its user may read it."""
        self.assertEqual(self.marks.stat().st_mode & 0o777, 0o600)
        self.runaways()
        self.keeper.kill()
        self.expect_end(self.keeper)
        self.assertFalse(self.marks.exists())
        keeper = self.start_keeper(place=self.place)
        self.assertTrue(self.marks.exists())
        keeper.stop()
        keeper.ended = True
        self.assertNotIn("what they left", self.place.log_tail())
        self.assertFalse(self.marks.exists())


class NestedTest(SurvivorsCase):
    """Keepers that commands start carry the mark of those, and have one of their own."""

    def start_inside(self, place):
        """A keeper in the background, started by a command of the test's keeper."""
        env = " ".join(f"{name}='{value}'" for name, value in place.env().items() if name.startswith("COOP_"))
        return self.sh(f"{env} {KEEPER} --daemon; echo done; sleep 300")

    def guard_of(self, pid):
        return procs.stat(pid)[1]

    def test_survivor_starts_the_next_keeper(self):
        """It is ended by it, and the keeper serves."""
        go = self.place.work / "go"
        env = " ".join(f'{name}="{value}"' for name, value in self.place.env().items() if name.startswith("COOP_"))
        script = f"while [ ! -e {go} ]; do sleep 0.05; done; {env} {KEEPER} --daemon; sleep 300"
        process = self.sh(f"setsid sh -c 'echo $$; {script}' & sleep 300")["id"]
        procs.wait_until(lambda: self.output(process).count(b"\n"), "it is away")
        survivor = int(self.output(process))
        self.kill_keeper()
        self.assertTrue(procs.alive(survivor), "the control: it has survived")
        go.touch()

        def served():
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError, Closed):
                return Client(self.place.socket)

        client = procs.wait_until(served, "the next keeper serves")
        with client:
            pid = client.hello["pid"]
            self.assert_gone([survivor])
            self.assertEqual(client.call("list")["processes"], [])
            client.call("shutdown", grace_ms=0)
        procs.wait_until(lambda: not procs.alive(pid), "it leaves in order")

    def nested(self):
        """(command, place, client) of a keeper that a command has started."""
        place = Place(folder=self.place.work)
        self.addCleanup(place.remove)
        place.conf.write_text(self.place.conf.read_text())
        command = self.start_inside(place)
        procs.wait_until(lambda: b"done" in self.output(command["id"]), "it serves")
        client = Client(place.socket)
        self.addCleanup(client.close)
        return command, place, client

    def test_only_those_of_the_inner_keeper(self):
        command, place, client = self.nested()
        pids, keeper = self.runaways(client), client.hello["pid"]
        self.kill_both(self.guard_of(keeper), keeper)
        self.assertTrue(all(map(procs.alive, pids)), "the control: they have survived")
        inner = self.start_keeper(place=place)
        self.assert_gone(pids)
        self.assertEqual(self.status(command["id"])["state"], "running")
        inner.stop()
        inner.ended = True

    def test_inner_keeper_goes_with_the_outer_one(self):
        """As with the guard of the outer one: it and all that it keeps are processes of a command."""
        _, _, client = self.nested()
        pids = [*self.runaways(client), client.hello["pid"]]
        self.kill_keeper()
        self.assertTrue(all(map(procs.alive, pids)), "the control: they have survived")
        self.start_keeper(place=self.place)
        self.assert_gone(pids)


class FileTest(SurvivorsCase):
    """What stands in the file must be exactly what a keeper writes there."""

    def setUp(self):
        super().setUp()
        # Another suite may run beside this one.
        self.mark = BASE | random.randrange(1, 1 << 21) << 41
        self.keeper.kill()
        self.expect_end(self.keeper)
        self.boot = open("/proc/sys/kernel/random/boot_id").read().strip()
        self.now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))

    def start_and_stop(self):
        keeper = self.start_keeper(place=self.place)
        keeper.stop()
        keeper.ended = True

    def line(self, mark=None, boot=None, since=0):
        return f"{boot or self.boot} {self.mark if mark is None else mark:016x} {since}\n"

    def test_control(self):
        """A line as it should be, and one who carries that mark, with the number of a record."""
        victim, neighbour = self.marked(self.mark | 17), self.marked(self.mark ^ 1 << 41)
        self.marks.write_text(self.line())
        self.marks.chmod(0o600)
        self.start_and_stop()
        self.assertEqual(victim.wait(10), -signal.SIGKILL)
        self.assertIsNone(neighbour.poll())

    def test_lines_that_are_wrong(self):
        other = re.sub("[0-9a-f]", "0", self.boot)
        valid, infinite = self.line(), 2**64 - 1
        lines = {
            "nothing": ("", self.mark),
            "no mark": (self.line(0), 0),
            "no limit": (self.line(infinite), None),
            "no keeper": (self.line(BASE), BASE),
            "with a number": (self.line(self.mark | 1), self.mark | 1),
            "too many bits": (self.line(self.mark | 1 << 63), self.mark),
            "a common number": (self.line(1024), 1024),
            "another boot": (self.line(boot=other), self.mark),
            "later": (self.line(since=self.now + 1_000_000), self.mark),
            "no end": (valid.rstrip("\n"), self.mark),
            "more": (valid.rstrip("\n") + " 0\n", self.mark),
            "a sign": (self.line().replace(" 0\n", " +0\n"), self.mark),
            "spaces": (valid.replace(" ", "  "), self.mark),
            "capitals": (valid.upper(), self.mark),
            "short": (f"{self.boot} {self.mark:x} 0\n"[:-6] + "\n", self.mark),
            "bytes": ("\x00" + valid, self.mark),
        }
        for name, (text, number) in lines.items():
            with self.subTest(name):
                victim = self.marked(number)
                self.marks.unlink(missing_ok=True)
                self.marks.write_text(text)
                self.marks.chmod(0o600)
                self.start_and_stop()
                self.assertIsNone(victim.poll())

    def test_files_that_others_may_have_written(self):
        victim = self.marked(self.mark)
        elsewhere = self.place.dir / "elsewhere"
        elsewhere.write_text(self.line())
        elsewhere.chmod(0o600)
        self.marks.symlink_to(elsewhere)
        self.start_and_stop()
        self.assertEqual(elsewhere.read_text(), self.line())
        self.marks.write_text(self.line())
        self.marks.chmod(0o660)
        self.start_and_stop()
        os.mkfifo(self.marks)
        self.start_and_stop()
        self.assertIsNone(victim.poll())

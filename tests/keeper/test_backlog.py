"""What was answered and is not on the disk yet: nothing of it is forgotten when the keeper dies, or the disk stands still."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from lib import procs
from lib.client import KeeperError
from lib.place import Place
from lib.records import FIFREEZE, FITHAW, ROOT, RecordsCase, seen_by

SHARED = Path("/dev/shm")
ON_TMPFS = os.access(SHARED, os.W_OK) and subprocess.run(["stat", "-f", "-c", "%T", SHARED], capture_output=True, text=True).stdout == "tmpfs\n"


class BacklogCase(RecordsCase):
    shares = False

    def assert_accounted(self, ids):
        """Every start has one end, in its record and in the audit, and the chain is whole."""
        for id in ids:
            self.assertNotEqual(self.status(id)["end_cause"], None)
        allowed = [line["seq"] for line in self.audit_lines("spawn") if line["decision"] == "allowed"]
        ends = [line["spawn"] for line in self.audit_lines("end")]
        self.assertEqual(sorted(ends), sorted(allowed))
        self.assertGreaterEqual(len(allowed), len(ids))
        report = self.client.call("audit_verify")
        self.assertTrue(report["good"], report)


class KilledTest(BacklogCase):
    def spawn_many(self, count):
        client = self.connect()
        asked = [client.submit("spawn", {"argv": ["sleep", "300"], "cwd": "/", "sandbox": {"profile": "full"}}) for _ in range(count)]
        return [client.finish(number).result["process"]["id"] for number in asked]

    def test_killed_right_after_the_answers(self):
        """The next keeper knows each process that somebody was told of."""
        known = []
        for _ in range(5):
            known += self.spawn_many(10)
            self.restart(kill=True)
            self.assert_accounted(known)
            self.assertEqual({self.status(id)["end_cause"] for id in known}, {"lost"})

    def test_killed_in_the_middle_of_starts(self):
        """A start that nobody was told of has an end in the audit all the same."""
        for _ in range(5):
            client = self.connect()
            for _ in range(20):
                client.submit("spawn", {"argv": ["sleep", "300"], "cwd": "/", "sandbox": {"profile": "full"}})
            self.client.call("info")
            self.restart(kill=True)
            self.assert_accounted([])

    def test_the_guard_saves_it_for_one_who_comes_later(self):
        """Also where the keeper's memory has no file: it is in the state folder until the next keeper has read it, and private."""
        known = self.spawn_many(10)
        self.keeper.kill()
        self.expect_end(self.keeper)
        saved = self.place.state / "backlog"
        if saved.exists():
            self.assertEqual(saved.stat().st_mode & 0o777, 0o600)
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.assertFalse(saved.exists())
        self.assert_accounted(known)

    def test_what_is_damaged_is_left_out(self):
        """Whatever stands in the saved file, the next keeper starts, and the audit's chain is whole."""
        self.spawn_many(3)
        self.keeper.kill()
        self.expect_end(self.keeper)
        saved = self.place.state / "backlog"
        good = saved.read_bytes() if saved.exists() else b""
        for text in (b"", b"nonsense", good[:-7], good[:16] + bytes(1000), good[:16] + b"\xff" * 100, good + b"\1", good.replace(b"sleep", b"creep")):
            saved.write_bytes(text)
            self.keeper = self.start_keeper(self.settings)
            self.client = self.keeper.clients[0]
            self.assertTrue(self.client.call("audit_verify")["good"])
            self.assertFalse(saved.exists())
            self.keeper.kill()
            self.expect_end(self.keeper)


class ManyLostTest(BacklogCase):
    settings = {"max_receipts": 4}

    def test_more_than_are_remembered(self):
        """Of more lost ones than there may be receipts each has its end in the audit, and in the history."""
        ids = [self.spawn("sleep", "300")["id"] for _ in range(12)]
        self.restart(kill=True)
        self.assert_accounted([])
        rows = {row["id"]: row for row in self.client.call("history", limit=100)["processes"]}
        self.assertEqual({rows[id]["end_cause"] for id in ids}, {"lost"})


class NoRecordsTest(BacklogCase):
    conf = "[records]\nenabled = no\n"

    def test_without_records_the_audit_has_the_ends(self):
        for _ in range(2):
            self.spawn("sleep", "300")
            self.restart(kill=True)
            self.assert_accounted([])


@unittest.skipUnless(ON_TMPFS, "/dev/shm is no tmpfs that can be written")
class BothKilledTest(BacklogCase):
    """With a socket on a tmpfs."""

    def setUp(self):
        super().setUp()
        self.shut_down()
        self.place = Place(folder=SHARED)
        self.addCleanup(shutil.rmtree, self.place.dir, True)
        self.write_conf(self.conf, self.place.conf)
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.backlog = Path(f"{self.place.socket}.backlog")

    def test_guard_and_keeper_killed_together(self):
        """Nothing that was answered is forgotten, and no placeholder stays."""
        known, workspace = [], Path(tempfile.mkdtemp(prefix="coop-t-"))
        self.addCleanup(shutil.rmtree, workspace)
        for _ in range(5):
            guard = self.client.call("info")["guard_pid"]
            sandbox = {"profile": "workspace-write", "workspace": str(workspace)}
            known += [self.spawn("sleep", "300", cwd=str(workspace), sandbox=sandbox)["id"] for _ in range(5)]
            self.assertTrue(list(workspace.iterdir()), "the control: placeholders stand")
            os.kill(guard, signal.SIGSTOP)
            self.keeper.kill()
            os.kill(guard, signal.SIGKILL)
            self.expect_end(self.keeper)
            self.keeper = self.start_keeper(self.settings)
            self.client = self.keeper.clients[0]
            self.assert_accounted(known)
            self.assertEqual(list(workspace.iterdir()), [])

    def test_it_is_private_and_goes_with_the_keeper(self):
        self.assertEqual(self.backlog.stat().st_mode & 0o777, 0o600)
        seen = self.sh(f"cat {self.backlog} || ls {self.backlog}", sandbox={"profile": "workspace-write"})
        self.assertNotEqual(self.ended(seen["id"])["exit"]["code"], 0)
        self.shut_down()
        self.assertFalse(self.backlog.exists())

    def test_one_that_is_none_is_not_taken(self):
        self.shut_down()
        self.backlog.write_bytes(b"\xff" * 5000)
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.ended(self.spawn("true")["id"])
        self.assert_accounted([])


@unittest.skipUnless(ROOT and os.path.exists("/dev/loop-control"), "needs root and loop devices for a disk that can be frozen")
class FrozenDiskTest(BacklogCase):
    """The state folder lies on a disk that is made to stand still."""

    def setUp(self):
        super().setUp()
        self.shut_down()
        shutil.rmtree(self.place.state)
        self.place.state.mkdir(mode=0o700)
        image = self.place.dir / "disk"
        with open(image, "wb") as file:
            file.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True, stdin=subprocess.DEVNULL)
        script = f'mount -o loop {image} {self.place.state} && exec "$@"'
        self.keeper = self.start_keeper(self.settings, wrap=["unshare", "-m", "sh", "-c", script, "sh"])
        self.client = self.keeper.clients[0]
        self.disk = os.open(seen_by(self.keeper, self.place.state), os.O_RDONLY)
        self.addCleanup(os.close, self.disk)
        self.frozen = False
        self.addCleanup(self.thaw)

    def freeze(self):
        fcntl.ioctl(self.disk, FIFREEZE, 0)
        self.frozen = True

    def thaw(self):
        if self.frozen:
            fcntl.ioctl(self.disk, FITHAW, 0)
        self.frozen = False

    def test_other_calls_go_on(self):
        """Starts, refusals, output, waits, kills and releases of everybody, with everything written when the disk is back."""
        other = self.connect()
        early = self.sh("echo x", overflow="spool")
        self.ended(early["id"])
        self.freeze()
        self.client.call("release", id=early["id"])
        ids = [self.sh("exit 3")["id"]]
        # This one waits for the disk.
        asked = other.submit("audit_tail", {"count": 1})
        for profile in ("full", "workspace-write"):
            for _ in range(10):
                ids.append(self.sh("echo hello; exit 3", sandbox={"profile": profile})["id"])
                self.assertEqual(self.ended(ids[-1])["exit"]["code"], 3)
                self.assertEqual(self.output(ids[-1]), b"hello\n")
        # This one asks for a file there: it waits, and nobody else does.
        spooling = self.connect()
        spooled = spooling.submit("spawn", {"argv": ["echo", "hello"], "overflow": "spool"})
        self.client.call("info")
        with self.refused("spawn_failed"):
            self.spawn("/nonexistent/program")
        killed = self.spawn("sleep", "300")["id"]
        self.client.call("kill", id=killed)
        self.assertEqual(self.ended(killed)["exit"]["signal_name"], "SIGKILL")
        self.client.call("release", id=killed)
        self.assertGreater(self.client.call("info")["audit"]["waiting_bytes"], 0)
        self.thaw()
        self.assertTrue(other.finish(asked).result["lines"])
        spooled = spooling.finish(spooled).result["process"]
        self.assertEqual(self.ended(spooled["id"])["exit"]["code"], 0)
        self.assertEqual(self.output(spooled["id"]), b"hello\n")
        self.assert_accounted(ids + [spooled["id"]])
        procs.wait_until(lambda: self.client.call("info")["audit"]["waiting_bytes"] == 0, "all is written")
        gone = seen_by(self.keeper, early["stdout_path"])
        procs.wait_until(lambda: not os.path.exists(gone), "what was released meanwhile is removed")

    def test_until_the_backlog_is_full(self):
        """Then starts are refused; what runs has its end written all the same."""
        running = [self.sh("read x; exit 7", stdin="pipe")["id"] for _ in range(5)]
        self.freeze()
        answers = []

        def full():
            with contextlib.suppress(KeeperError):
                answers.append(self.spawn("true", *["x" * 1900] * 4)["id"])
                self.ended(answers[-1])
                return False
            return True

        procs.wait_until(full, "the backlog is full", interval=0)
        with self.refused("unavailable"):
            self.spawn("true", "x" * 8000)
        for id in running:
            self.client.reply("write_stdin", {"id": id}, b"\n")
            self.assertEqual(self.ended(id)["exit"]["code"], 7)
        self.thaw()
        procs.wait_until(lambda: self.client.call("info")["audit"]["waiting_bytes"] == 0, "all is written")
        self.ended(self.spawn("true")["id"])
        self.assert_accounted(running)

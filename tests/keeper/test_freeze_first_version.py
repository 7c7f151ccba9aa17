"""The freezer of control groups of version 1, where nobody dies while frozen: what a dead keeper left frozen, and who is moved there."""

import os
import unittest
from pathlib import Path

from lib import procs
from lib.keeper import KeeperCase
from lib.place import Place

ROOT = os.geteuid() == 0
FREEZER = Path("/sys/fs/cgroup/freezer")
UNIFIED = Path("/sys/fs/cgroup/unified")
# In a mount namespace of its own the keeper does not see the tree of version 2, if there is one.
COVER = f'test ! -d {UNIFIED} || mount -t tmpfs coop-test {UNIFIED} && exec "$@"'
WRAP = ["unshare", "-m", "sh", "-c", COVER, "sh"]


@unittest.skipUnless(ROOT and FREEZER.is_dir(), "needs root, and a freezer of version 1")
class LeftFrozenTest(KeeperCase):
    def setUp(self):
        super().setUp()
        self.old = self.start_keeper(place=Place(), wrap=WRAP)

    def group(self, process):
        """The folder in the freezer that holds the process."""
        lines = Path(f"/proc/{process['pid']}/cgroup").read_text().splitlines()
        group = FREEZER / next(line for line in lines if ":freezer:" in line).split(":")[2].lstrip("/")
        self.assertRegex(group.name, "^f-[0-9]+$")
        return group

    def test_the_next_keeper_lets_them_go(self):
        """A keeper dies with frozen processes. The next one thaws them as it starts, asked for nothing, and they die."""
        client = self.old.clients[0]
        for profile in ("workspace-write", "full"):
            process = client.call("spawn", argv=["sh", "-c", "sleep 300 & sleep 300"], cwd="/", sandbox={"profile": profile})["process"]
            tree = [process["pid"], *procs.descendants(process["pid"])]
            client.call("freeze", id=process["id"])
            group = self.group(process)
            self.assertEqual((group / "freezer.state").read_text(), "FROZEN\n")
            os.kill(self.old.pid, 9)
            self.old.ended = True
            procs.wait_until(lambda: not procs.alive(self.old.pid), "the keeper is dead")
            self.assertTrue(all(map(procs.alive, tree)), "the control: frozen ones outlive it")
            new = self.start_keeper(place=self.old.place, wrap=WRAP)
            self.assert_gone(tree)
            self.assertFalse((new.place.state / "frozen").exists())
            self.old.process.wait()
            self.old, client = new, new.clients[0]
            # Which also removes what is left of the groups.
            self.assertEqual(client.call("doctor")["cgroup"]["freezer"]["version"], 1)
            self.assertFalse(group.exists())

    def test_the_answer_says_that_all_have_stopped(self):
        """Also one that was about to wait for its child, as a shell does each time it starts a program."""
        client = self.old.clients[0]
        process = client.call("spawn", argv=["sh", "-c", "while :; do /bin/true; done"], cwd="/", sandbox={"profile": "full"})["process"]
        for _ in range(100):
            client.call("freeze", id=process["id"])
            self.assertEqual((self.group(process) / "freezer.state").read_text(), "FROZEN\n")
            client.call("thaw", id=process["id"])

    def test_frozen_can_be_killed(self):
        """They are let go first."""
        client = self.old.clients[0]
        for profile in ("workspace-write", "full"):
            process = client.call("spawn", argv=["sh", "-c", "sleep 300 & sleep 300"], cwd="/", sandbox={"profile": profile})["process"]
            tree = [process["pid"], *procs.descendants(process["pid"])]
            client.call("freeze", id=process["id"])
            self.assertTrue(client.call("kill", id=process["id"])["success"])
            self.assert_gone(tree)

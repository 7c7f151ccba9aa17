"""Trees that do not want to end (S-093, S-094, S-103, S-104) and the kill of them, from inside a sandbox."""

import os
import signal
import unittest

from lib import procs
from lib.confined import ROOT, USER, ConfinedCase, slots

HOSTILE = 40


def tree_of(record):
    """The pids of a confined process, of its first process and of all below that."""
    init = procs.stat(record["pid"])[1]
    return [init, *procs.descendants(init)]


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user")
class TreeTest(ConfinedCase):
    uid = None
    conf = ""

    def setUp(self):
        super().setUp()
        self.outside = self.world(owner=self.uid)
        self.keeper = self.confined_keeper(self.outside, self.uid, self.conf, settings={"max_running": 1000})
        self.client = self.keeper.clients[0]

    def start(self, case, *words, **args):
        """A start of its own for a case, which says when it is ready."""
        argv = self.outside.argv(case, *words, direct=True)
        sandbox = {"workspace": str(self.outside.workspace), "network": "none"}
        return self.spawn(*argv, cwd=str(self.outside.workspace), **{"sandbox": sandbox, **args})

    def hostile(self, **args):
        record = self.start("tree", HOSTILE, **args)
        self.wait_output(record["id"], b"ready")
        return record

    def test_b049_b050_kill_of_41_hostile_processes_100_times(self):
        """None is alive when the kill is answered, and its answer says so, a hundred times; started in both ways."""
        starts = set()
        for number in range(100):
            record = self.hostile()
            starts.add(record["start"])
            tree = tree_of(record)
            self.assertEqual(len(tree), HOSTILE + 2, "the tree, its main process and its first process")
            receipt = self.client.call("kill", id=record["id"])
            left = [pid for pid in tree if procs.alive(pid)]
            self.assertEqual(left, [], f"round {number}")
            self.assertTrue(receipt["success"], receipt)
            self.assertEqual(receipt["survivors"], 0, receipt)
            self.client.call("release", id=record["id"])
        self.assertIn("pooled" if slots(self.client)["enabled"] else "launched", starts)

    def test_s094_b124_keeper_killed_while_20_sandboxes_run(self):
        """SIGKILL of the keeper: nothing of twenty hostile trees is alive, nor anything prepared."""
        trees = []
        for _ in range(20):
            trees += tree_of(self.hostile())
        below = procs.descendants(self.keeper.pid)
        self.keeper.kill()
        procs.wait_until(lambda: not any(procs.alive(pid) for pid in {*trees, *below}), "all are dead", timeout=5)
        self.expect_end(self.keeper)

    def test_s093_b021_left_behind(self):
        """Two forks, a session of its own, deaf to TERM, and the main process ends: counted, and ended by kill and by release."""
        for end in ("kill", "release"):
            record = self.start("S-093", 3)
            answer = self.client.call("wait", id=record["id"])
            self.assertEqual(answer["process"]["descendants"], 3, answer)
            left = [pid for pid in procs.descendants(self.keeper.pid) if "S-093" in procs.cmdline(pid)]
            self.assertEqual(len(left), 3)
            self.client.call(end, id=record["id"])
            self.assert_gone(left)

    def test_s093_with_the_end_of_the_lease(self):
        with self.connect() as other:
            argv = self.outside.argv("S-093", 2, direct=True)
            sandbox = {"workspace": str(self.outside.workspace), "network": "none"}
            args = {"argv": argv, "cwd": str(self.outside.workspace), "sandbox": sandbox, "lease": "ephemeral"}
            record = other.call("spawn", **args)["process"]
            other.call("wait", id=record["id"])
            left = [pid for pid in procs.descendants(self.keeper.pid) if "S-093" in procs.cmdline(pid)]
            self.assertEqual(len(left), 2)
        procs.wait_until(lambda: not any(procs.alive(pid) for pid in left), "they end with the connection")

    def test_s093_on_exit_kill(self):
        """With `on_exit: kill` none is alive when the end is told."""
        for _ in range(10):
            record = self.start("S-093", 3, on_exit="kill")
            answer = self.client.call("wait", id=record["id"])
            left = [pid for pid in procs.descendants(self.keeper.pid) if "S-093" in procs.cmdline(pid)]
            self.assertEqual((left, answer["process"]["descendants"]), ([], 0))

    def test_s103_clone_parent(self):
        """A child that makes itself its parent's sibling is still of the tree, and ends with it."""
        record = self.start("S-103")
        answer = self.client.call("wait", id=record["id"])
        self.assertEqual(answer["process"]["descendants"], 1, answer)
        left = [pid for pid in procs.descendants(self.keeper.pid) if "S-103" in procs.cmdline(pid)]
        self.assertEqual(len(left), 1)
        self.assertTrue(self.client.call("kill", id=record["id"])["success"])
        self.assert_gone(left)

    def test_s104_a_tree_that_stands_still_meets_its_time_limit(self):
        record = self.start("S-104", timeout_ms=700)
        self.wait_output(record["id"], b"ready")
        tree = tree_of(record)
        self.assertEqual(self.ended(record["id"])["end_cause"], "timed_out")
        procs.wait_until(lambda: not any(procs.alive(pid) for pid in tree), "the tree is dead")

    def test_b124_first_process_killed(self):
        """Killing a sandbox's first process from outside ends the tree; the record is told, the keeper goes on."""
        record = self.hostile()
        tree = tree_of(record)
        os.kill(tree[0], signal.SIGKILL)
        end = self.ended(record["id"])
        self.assertEqual(end["state"], "signaled", end)
        procs.wait_until(lambda: not any(procs.alive(pid) for pid in tree), "the tree is dead")
        self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)


class UserTreeTest(TreeTest):
    uid = USER

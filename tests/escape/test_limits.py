"""Limits from inside (S-079, S-090 to S-092, S-120; B-018, B-083, B-113): each is exceeded, held, and told."""

import os
import re
import unittest
from pathlib import Path

from lib import procs
from lib.confined import ROOT, USER, ConfinedCase, lines_of

MIB = 1 << 20


class LimitsCase(ConfinedCase):
    uid = None
    conf = ""

    def setUp(self):
        super().setUp()
        self.around = self.world(owner=self.uid)
        self.keeper = self.confined_keeper(self.around, self.uid, self.conf)
        self.client = self.keeper.clients[0]

    def try_case(self, case, limits, client=None, direct=False, **args):
        """(final record, the line or None) of one attack under limits."""
        client = client or self.client
        args = {"cwd": str(self.around.workspace), "sandbox": self.around.sandbox(), "limits": limits} | args
        record = client.call("spawn", argv=self.around.argv(case, direct=direct), **args)["process"]
        for field in limits:
            held = record["sandbox"]["protections"][field]
            self.assertEqual(held["state"], "enforced", (field, held))
            self.assertTrue(held["mechanism"], (field, held))
            self.assertEqual(record["limits"][field], limits[field])
        record = client.call("wait", id=record["id"])["process"]
        lines = lines_of(self.output(record["id"], client=client))
        return record, lines[0] if lines else None

    def still_spawns(self):
        record = self.client.call("spawn", argv=["true"], cwd="/")["process"]
        self.assertEqual(self.client.call("wait", id=record["id"])["process"]["exit"]["code"], 0)


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user")
class PlainLimitsTest(LimitsCase):
    """Limits that need no control group."""

    def test_s079_b113_tmp_bytes(self):
        """/tmp ends at its size, and the host's disk does not notice."""
        before = os.statvfs("/tmp").f_bavail
        _, line = self.try_case("S-079", {"tmp_bytes": 8 * MIB})
        self.assertEqual(line["errno"], "ENOSPC", line)
        self.assertLessEqual(int(line["value"]), 8 * MIB)
        self.assertGreater(int(line["value"]), 6 * MIB)
        self.assertLess(before - os.statvfs("/tmp").f_bavail, 4 * MIB)

    def test_s079_tmp_is_bounded_without_being_asked(self):
        record, line = self.try_case("S-079", {})
        self.assertEqual(line["errno"], "ENOSPC", (line, record["sandbox"]))

    def test_s092_inodes(self):
        _, line = self.try_case("S-092", {"tmp_bytes": 8 * MIB})
        self.assertEqual(line["errno"], "ENOSPC", line)

    def test_b113_open_files(self):
        _, line = self.try_case("open-files", {"max_open_files": 50})
        self.assertEqual((line["errno"], int(line["value"]) <= 50), ("EMFILE", True), line)

    def test_b113_file_size(self):
        _, line = self.try_case("file-size", {"max_file_bytes": 3 * MIB})
        self.assertEqual((line["errno"], line["value"]), ("EFBIG", str(3 * MIB)), line)

    def test_b113_cpu_time(self):
        """Ends at the limit; cause `cpu_time` with the limit as evidence."""
        record, _ = self.try_case("cpu-time", {"max_cpu_secs": 1}, direct=True)
        self.assertEqual(record["end_cause"], "cpu_time", record)
        self.assertEqual(record["end_evidence"]["limit"], "max_cpu_secs", record)

    def test_b113_not_accepted_and_ignored(self):
        """Values that say nothing, or names that are none, are refused with the field."""
        for bad in ({"memory_bytes": 0}, {"memory_bytes": -1}, {"cpu_quota": 0}, {"cpu_quota": -0.5}, {"max_pids": "many"},
                    {"memory": 5}, {"max_open_files": 1.5}, {"tmp_bytes": True}):  # fmt: skip
            with self.subTest(bad=bad):
                error = self.refusal(self.client, argv=["true"], cwd="/", limits=bad)
                self.assertEqual(error.code, "invalid_input", error)
                self.assertIn("limits", error.details["field"])


class UserPlainLimitsTest(PlainLimitsTest):
    uid = USER


@unittest.skipUnless(ROOT, "needs root to make control groups")
class GroupLimitsTest(LimitsCase):
    """Limits that control groups hold, where root may make them."""

    def test_s090_b113_processes(self):
        """2000 forks: EAGAIN at the limit; the keeper starts others meanwhile and afterwards."""
        _, line = self.try_case("S-090", {"max_pids": 40})
        self.assertEqual(line["errno"], "EAGAIN", line)
        self.assertLessEqual(int(line["value"]), 40)
        self.assertGreater(int(line["value"]), 20)
        self.still_spawns()

    def test_s091_b018_memory(self):
        """Killed at the limit: cause `oom` with limit and peak as evidence and a fact for people; the keeper lives."""
        record, _ = self.try_case("S-091", {"memory_bytes": 64 * MIB}, direct=True)
        self.assertEqual(record["end_cause"], "oom", record)
        evidence = record["end_evidence"]
        self.assertEqual((evidence["limit"], evidence["value"]), ("memory_bytes", 64 * MIB), evidence)
        self.assertGreater(evidence["peak_bytes"], 32 * MIB, evidence)
        self.assertGreaterEqual(evidence["oom_kills"], 1, evidence)
        self.assertTrue(any("memory" in fact for fact in record["facts"]), record["facts"])
        self.still_spawns()

    def test_b018_a_sigkill_is_not_oom(self):
        """SIGKILL from elsewhere under a memory limit is not called `oom`."""
        args = {"argv": ["sh", "-c", "kill -9 $$"], "cwd": "/", "limits": {"memory_bytes": 64 * MIB}}
        record = self.client.call("spawn", **args)["process"]
        record = self.client.call("wait", id=record["id"])["process"]
        self.assertNotEqual(record["end_cause"], "oom", record)

    def test_b113_cpu_quota(self):
        """A fifth of a core: a second of work takes several."""
        script = "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done"
        args = {"argv": ["sh", "-c", script], "cwd": "/", "limits": {"cpu_quota": 0.2}, "timeout_ms": 2000}
        record = self.client.call("spawn", **args)["process"]
        self.assertEqual(record["sandbox"]["protections"]["cpu_quota"]["state"], "enforced")
        pid = record["pid"]
        used = []

        def look():
            if procs.alive(pid):
                used.append(procs.cpu_seconds(pid))
            return self.client.call("status", id=record["id"])["process"]["state"] != "running"

        procs.wait_until(look, "its time is over", interval=0.05)
        self.assertGreater(max(used), 0.1)
        self.assertLess(max(used), 0.9, "2 s at a fifth of a core")

    def test_b083_an_agents_total(self):
        """Limits of an agent hold for all of its processes together, and for those of agents below it."""
        ws = str(self.around.workspace)
        agent = self.keeper.agent("main/a", workspace=[ws], limits={"max_pids": 60})
        child = self.keeper.agent("main/a/b")
        held = []
        for client in (agent, child):
            argv = ["sh", "-c", "for i in $(seq 25); do sleep 300 & done; echo done; wait"]
            record = client.call("spawn", argv=argv, cwd=ws)["process"]
            held.append((client, record["id"]))
        for client, process in held:
            procs.wait_until(lambda: client.reply("read", {"id": process}).bytes(), "it has all that it wants")
        _, line = self.try_case("S-090", {}, client=child)
        self.assertEqual(line["errno"], "EAGAIN", line)
        self.assertLess(int(line["value"]), 30)
        error = self.refusal(child, argv=["true"], cwd=ws, limits={"max_pids": 1000})
        self.assertIn(error.code, ("permission_denied", "invalid_input"), error)
        for client, process in held:
            client.call("kill", id=process)
        self.still_spawns()

    def test_s120_several_press_memory(self):
        """A few at once past their limits: each is killed in its own group, the keeper and a bystander live."""
        bystander = self.client.call("spawn", argv=["sleep", "300"], cwd="/")["process"]["id"]
        argv = self.around.argv("S-091", direct=True)
        args = {"argv": argv, "cwd": str(self.around.workspace), "sandbox": self.around.sandbox()}
        ids = [self.client.call("spawn", **args, limits={"memory_bytes": 32 * MIB})["process"]["id"] for _ in range(6)]
        causes = [self.client.call("wait", id=process)["process"]["end_cause"] for process in ids]
        self.assertEqual(causes, ["oom"] * 6)
        self.assertEqual(self.client.call("status", id=bystander)["process"]["state"], "running")
        self.still_spawns()

    def test_nothing_is_left_of_the_groups(self):
        """Folders of ended processes are gone; those of the keeper go with it."""
        # Those of the agent itself stay: its commands are in them.
        self.client.call("wait", id=self.client.call("spawn", argv=["true"], cwd="/")["process"]["id"])
        procs.wait_until(lambda: self.client.call("info")["sandbox"]["cgroups"] > 0, "the agent's groups are there")
        before = self.client.call("info")["sandbox"]["cgroups"]
        record = self.client.call("spawn", argv=["sleep", "300"], cwd="/", limits={"memory_bytes": 64 * MIB})["process"]
        mine = re.search(r"/(coop-[^/\n]+)", Path(f"/proc/{record['pid']}/cgroup").read_text())[1]
        self.assertIn(mine, keepers_groups())
        self.client.call("kill", id=record["id"])
        for _ in range(5):
            self.try_case("S-044", {"memory_bytes": 64 * MIB, "max_pids": 30})
        procs.wait_until(lambda: self.client.call("info")["sandbox"]["cgroups"] <= before, "the groups go")
        self.client.call("shutdown", grace_ms=0)
        self.expect_end(self.keeper, [0])
        procs.wait_until(lambda: mine not in keepers_groups(), "the keeper's own group is gone")


def keepers_groups():
    """The names of the folders that keepers made for themselves. They come and go while one looks."""
    found = (name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)
    return {name for name in found if name.startswith("coop-")}

"""Limits: each is in force or refused, for a process and for an agent with all below it (B-018, B-083, B-113)."""

import os
import resource
import signal
import unittest
from pathlib import Path

from lib import procs
from lib.agents import AgentCase
from lib.client import KeeperError
from lib.place import Place
from lib.limits import LimitsCase, ROOT, USER, MIB, PYTHON, CGROUPS, BY_CGROUP, USUAL, TOUCH, BURN, FORKS


class LeftGroupsTest(LimitsCase):
    """What a keeper that was killed leaves of its control groups. With this profile a keeper makes none by itself."""

    profile = "full"

    def test_next_keeper_removes_them(self):
        """Keeper and guard are killed; the next keeper of the place has removed their groups when it serves, although
        nobody asks it for anything that needs one."""
        if not self.held("memory_bytes"):
            self.skipTest("no control groups for memory here")
        record = self.sh("echo ready; exec sleep 300", limits={"memory_bytes": 64 * MIB})
        self.wait_output(record["id"], b"ready")
        group = Path(self.status(record["id"])["stats"]["cgroup_path"])
        own = next(path for path in (group, *group.parents) if path.name.startswith("coop-"))
        guard = self.keeper.process.pid
        os.kill(guard, signal.SIGSTOP)
        self.keeper.kill()
        os.kill(guard, signal.SIGKILL)
        self.expect_end(self.keeper)
        procs.wait_until(lambda: not procs.alive(record["pid"]), "the command is gone")
        self.assertTrue(own.exists(), "the control: they are left")
        self.start_keeper(place=self.keeper.place)
        # Other keepers' groups come and go meanwhile.
        self.assertEqual([top for top, folders, _ in os.walk(CGROUPS) if own.name in folders], [])


class MemoryTest(LimitsCase):
    LIMIT = 64 * MIB

    def assert_oom(self, record, limit=LIMIT):
        self.assertEqual((record["state"], record["end_cause"]), ("signaled", "oom"), record)
        self.assertEqual((record["exit"]["signal"], record["exit"]["code"]), (9, None))
        evidence = record["end_evidence"]
        self.assertEqual((evidence["limit"], evidence["value"]), ("memory_bytes", limit), evidence)
        self.assertGreaterEqual(evidence["oom_kills"], 1)
        self.assertGreater(evidence["peak_bytes"], limit // 2)
        self.assertLess(evidence["peak_bytes"], limit + MIB)
        self.assertTrue(any("memory limit" in fact for fact in record["facts"]), record["facts"])

    def test_b018_death_by_the_memory_limit(self):
        """What touches more than memory_bytes dies as `oom` with limit and peak, confined or not; the keeper lives."""
        if not self.held("memory_bytes"):
            return
        for profile in ("workspace-write", "read-only", "full"):
            with self.subTest(profile=profile):
                limits = {"memory_bytes": self.LIMIT}
                record, words = self.run_python(TOUCH, 256 * MIB, 0, sandbox={"profile": profile}, limits=limits)
                self.assertEqual(words, [])
                self.assert_oom(record)
                self.assert_report(record, "memory_bytes", self.LIMIT)
        self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)

    def test_b018_within_the_limit(self):
        """Less than the limit is no matter: the process ends by itself and nothing is told."""
        if not self.held("memory_bytes"):
            return
        record, words = self.run_python(TOUCH, 16 * MIB, 0, limits={"memory_bytes": self.LIMIT})
        self.assertEqual((words, record["end_cause"], record.get("facts")), (["touched"], "self_exit", None))
        self.assertEqual(record["end_evidence"], {"wait_status": 0})

    def test_b018_other_deaths_are_not_oom(self):
        """SIGKILL from itself, from the keeper, and by a time limit keep their causes under a memory limit."""
        if not self.held("memory_bytes"):
            return
        limits = {"memory_bytes": self.LIMIT}
        record, _, _ = self.run_sh("kill -9 $$; sleep 5", limits=limits, sandbox={"profile": "full"})
        self.assertEqual(record["exit"]["signal"], 9)
        self.assertNotEqual(record["end_cause"], "oom")
        process = self.spawn("sleep", "300", limits=limits)["id"]
        self.assertTrue(self.client.call("kill", id=process)["success"])
        self.assertEqual(self.ended(process)["end_cause"], "killed_by_request")
        record, _, _ = self.run_sh("sleep 300", limits=limits, timeout_ms=200)
        self.assertEqual(record["end_cause"], "timed_out")

    def test_b018_in_the_middle_of_a_tree(self):
        """Where the kernel kills only the one that is too large, the others go on, and the record tells what happened."""
        if not self.held("memory_bytes"):
            return
        script = f'{PYTHON} -c "{TOUCH}" {256 * MIB} 0; exit 3'
        record, _, _ = self.run_sh(script, limits={"memory_bytes": self.LIMIT})
        if record["state"] == "signaled":
            self.assert_oom(record)
        else:
            self.assertEqual((record["exit"]["code"], record["end_cause"]), (3, "self_exit"))
            self.assertTrue(any("memory limit" in fact for fact in record["facts"]), record["facts"])

    def test_b113_files_in_memory_count(self):
        """The private /tmp is memory too: it is filled no further than the memory limit."""
        if not self.held("memory_bytes"):
            return
        limits = {"memory_bytes": self.LIMIT, "tmp_bytes": 512 * MIB}
        record = self.ended(self.spawn("dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=256", limits=limits)["id"])
        self.assert_oom(record)

    def test_b018_many_at_once(self):
        """Each is judged by its own limit: of ten, the five that touch too much die of it."""
        if not self.held("memory_bytes"):
            return
        limits = {"memory_bytes": self.LIMIT}
        sizes = [256 * MIB, 8 * MIB] * 5
        records = [self.python(TOUCH, size, 0, limits=limits) for size in sizes]
        causes = [self.ended(record["id"])["end_cause"] for record in records]
        self.assertEqual(causes, ["oom", "self_exit"] * 5)


class OtherLimitsTest(LimitsCase):
    def test_b113_max_pids(self):
        """Forks are refused at the limit, with EAGAIN; the keeper and others start what they like meanwhile."""
        if not self.held("max_pids"):
            return
        # With a limit that only a group can hold, the group holds this one, too.
        more = {"memory_bytes": 512 * MIB} if self.held("memory_bytes") else {}
        for profile, others in (("workspace-write", {}), ("workspace-write", more), ("full", {})):
            with self.subTest(profile=profile, others=others):
                args = {"limits": {"max_pids": 20} | others, "sandbox": {"profile": profile}}
                process = self.python(FORKS, 2000, 1, 3, **args)
                self.assert_report(process, "max_pids", 20)
                count, why = self.wait_output(process["id"], b"\n").decode().split()
                self.assertEqual(why, "EAGAIN")
                self.assertIn(int(count), range(10, 20))
                self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)
                record = self.ended(process["id"])
                self.assertEqual(record["exit"]["code"], 3)
                # A limit of the user namespace counts no refusals, a group does.
                if others:
                    self.assertIn("cgroup", record["sandbox"]["protections"]["max_pids"]["mechanism"])
                if record["sandbox"]["protections"]["max_pids"]["mechanism"].startswith("cgroup"):
                    self.assertTrue(any("20" in fact for fact in record["facts"]), record["facts"])

    def test_b113_cpu_quota(self):
        """With a fifth of a core, a second of work takes five."""
        if not self.held("cpu_quota"):
            return
        for profile in ("workspace-write", "full"):
            with self.subTest(profile=profile):
                record, words = self.run_python(BURN, 2, limits={"cpu_quota": 0.2}, sandbox={"profile": profile})
                self.assert_report(record, "cpu_quota", 0.2)
                self.assertLess(float(words[0]), 0.8)
                self.assertGreater(float(words[0]), 0.1)

    def test_b113_max_cpu_secs(self):
        """Past its seconds of processor time it is killed, with that cause; sleeping costs nothing."""
        limits = {"max_cpu_secs": 1}
        record, words = self.run_python(BURN, 300, limits=limits)
        self.assertEqual((words, record["state"], record["end_cause"]), ([], "signaled", "cpu_time"))
        self.assertEqual((record["end_evidence"]["limit"], record["end_evidence"]["value"]), ("max_cpu_secs", 1))
        self.assert_report(record, "max_cpu_secs", 1)
        self.assertEqual(self.ended(self.spawn("sleep", "1.5", limits=limits)["id"])["end_cause"], "self_exit")

    def test_b113_max_open_files(self):
        script = """
import errno, os
opened = []
try:
    while len(opened) < 1000: opened.append(os.open('/dev/null', os.O_RDONLY))
except OSError as error:
    print(len(opened), errno.errorcode[error.errno])
"""
        for profile in ("workspace-write", "full"):
            record, words = self.run_python(script, limits={"max_open_files": 32}, sandbox={"profile": profile})
            self.assert_report(record, "max_open_files", 32)
            self.assertEqual(words[1:], ["EMFILE"])
            self.assertIn(int(words[0]), range(20, 30))

    def test_b113_very_few_open_files(self):
        """From the three streams and one more on, launched and from the pool: what sets the sandbox up needs none of them."""
        for number in (4, 5, 8, 10, 12, 16, 20):
            for profile in ("workspace-write", "read-only", "full"):
                with self.subTest(number=number, profile=profile):
                    args = {"limits": {"max_open_files": number}, "sandbox": {"profile": profile}}
                    record, out, err = self.run_sh("ulimit -n; ulimit -Hn", cwd="/", **args)
                    self.assertEqual((record["exit"]["code"], out.split()), (0, [b"%d" % number] * 2), err)
                    self.assert_report(record, "max_open_files", number)
                    record = self.ended(self.spawn("cat", "/etc/passwd", cwd="/", kind="pty", **args)["id"])
                    self.assertEqual(record["exit"]["code"], 0)

    def test_b113_max_file_bytes(self):
        script = """
import errno, os, tempfile
file = os.open(tempfile.mkdtemp() + '/x', os.O_RDWR | os.O_CREAT)
try:
    for _ in range(40): os.write(file, bytes(100000))
except OSError as error:
    print(os.fstat(file).st_size, errno.errorcode[error.errno])
"""
        record, words = self.run_python(script, limits={"max_file_bytes": MIB})
        self.assert_report(record, "max_file_bytes", MIB)
        self.assertEqual(words, [str(MIB), "EFBIG"])

    def test_b113_tmp_bytes(self):
        script = """
import errno, os
file, size = os.open('/tmp/x', os.O_RDWR | os.O_CREAT), 0
try:
    while size < 64 << 20: size += os.write(file, bytes(65536))
except OSError as error:
    print(size, errno.errorcode[error.errno])
"""
        record, words = self.run_python(script, limits={"tmp_bytes": 4 * MIB})
        self.assert_report(record, "tmp_bytes", 4 * MIB)
        self.assertEqual(words[1:], ["ENOSPC"])
        self.assertIn(int(words[0]), range(3 * MIB, 4 * MIB + 1))

    def test_b113_tmp_of_the_host_has_no_limit(self):
        """Without a /tmp of its own there is nothing that could be limited: refused, not ignored."""
        self.assert_refused_limit(self.client, "tmp_bytes", sandbox={"profile": "full"})

    def test_b113_bad_values(self):
        whole = ("memory_bytes", "max_pids", "max_cpu_secs", "max_open_files", "max_file_bytes", "tmp_bytes")
        for name, bad in [(name, bad) for name in whole for bad in (-1, "64", 1.5, True, [1])] + [
            ("cpu_quota", bad) for bad in (-0.5, 0, "1", True)
        ]:
            with self.subTest(name=name, bad=bad), self.refused("invalid_input", f"limits.{name}"):
                self.spawn("true", limits={name: bad})
        with self.refused("invalid_input"):
            self.spawn("true", limits={"memory": 1})
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])


class UnheldTest(LimitsCase):
    """A keeper of an ordinary user to whom no group was given."""

    def lonely_keeper(self, conf=""):
        place = Place(owner=USER if ROOT else None)
        place.conf.write_text(conf)
        return self.start_keeper(place=place, before_exec=place.become_owner if ROOT else None, env={"HOME": "/"})

    def lonely(self, conf=""):
        return self.lonely_keeper(conf).clients[0]

    def unheld(self, client):
        """Of the limits that only a group can hold, those that are not to be had."""
        told = client.call("doctor")["protections"]
        names = [name for name in BY_CGROUP if told[name]["state"] != "enforced"]
        for name in names:
            self.assertTrue(told[name]["reason"], told[name])
        return names

    @unittest.skipUnless(ROOT, "needs root to be sure that a user has no group")
    def test_b113_refused_unless_tolerated(self):
        client = self.lonely()
        names = self.unheld(client)
        self.assertLessEqual({"memory_bytes", "cpu_quota"}, set(names))
        for name in names:
            with self.subTest(name=name):
                self.assert_refused_limit(client, name)
                args = {"argv": ["true"], "cwd": "/", "limits": {name: USUAL[name]}, "sandbox": {"tolerate": [name]}}
                record = client.call("spawn", **args)["process"]
                held = record["sandbox"]["protections"][name]
                self.assertIn(held["state"], ("none", "partial"))
                self.assertTrue(held["reason"], held)
                self.assertEqual(client.call("wait", id=record["id"])["process"]["exit"]["code"], 0)

    @unittest.skipUnless(ROOT, "needs root to be sure that a user has no group")
    def test_b083_b113_a_total_of_processes_needs_a_group(self):
        """Each command has a limit of its own, which holds without one; all of an agent's together do not, and are not said to."""
        keeper = self.lonely_keeper()
        agent = keeper.agent("main/p", limits={"max_pids": 10})
        args = {"argv": ["true"], "cwd": str(keeper.place.work)}
        with self.assertRaises(KeeperError) as caught:
            agent.call("spawn", **args)
        error = caught.exception
        self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "max_pids"))
        self.assertIn("control group", error.details["reason"])
        alone = keeper.clients[0].call("spawn", **args, limits={"max_pids": 10})["process"]
        self.assertEqual(alone["sandbox"]["protections"]["max_pids"]["state"], "enforced")

    @unittest.skipUnless(ROOT, "needs root to be a user who has no other processes")
    def test_no_more_processes_for_the_user(self):
        """At the user's own limit of processes: want of them is a failed start, and no fault of the sandbox. Later it is as before."""
        # A sandbox takes two: with the one limit its first process fails, with the other its second.
        for number, (most, sandbox) in enumerate(((40, {}), (41, {}), (40, {"profile": "full"}))):
            with self.subTest(most=most, sandbox=sandbox):
                place = Place(owner=USER + 7 + number)
                place.conf.write_text("[sandbox]\nslots = 0\n")

                def begin(place=place, most=most):
                    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
                    place.become_owner()

                client = self.start_keeper(place=place, before_exec=begin, env={"HOME": "/"}).clients[0]
                args, ids = {"argv": ["sleep", "300"], "cwd": "/", "sandbox": sandbox}, []
                with self.assertRaises(KeeperError) as caught:
                    while len(ids) < most:
                        ids.append(client.call("spawn", **args)["process"]["id"])
                error = caught.exception
                self.assertEqual((error.code, error.details["errno"]), ("spawn_failed", "EAGAIN"), error)
                self.assertNotIn("protection", error.details)
                self.assertGreater(len(ids), 3)
                for process in ids:
                    self.assertTrue(client.call("kill", id=process)["success"])
                record = client.call("spawn", **args | {"argv": ["true"]})["process"]
                self.assertEqual(client.call("wait", id=record["id"])["process"]["exit"]["code"], 0)

    @unittest.skipUnless(ROOT, "needs root to be sure that a user has no group")
    def test_b113_operators_default_is_shown(self):
        """What the operator set for all, and the host cannot hold, does not stop the work, but stands in the record."""
        client = self.lonely("[sandbox]\nmemory_bytes = 64M\nmax_open_files = 50\n")
        record = client.call("spawn", argv=["true"], cwd="/")["process"]
        held = record["sandbox"]["protections"]
        self.assertIn(held["memory_bytes"]["state"], ("none", "partial"))
        self.assertTrue(held["memory_bytes"]["reason"])
        self.assertEqual(held["max_open_files"]["state"], "enforced")
        self.assertEqual(record["limits"]["memory_bytes"], 64 * MIB)
        self.assert_refused_limit(client, "memory_bytes")

    @unittest.skipUnless(ROOT, "needs root to be sure that a user has no group")
    def test_freezer_is_refused_with_its_reason(self):
        client = self.lonely()
        process = client.call("spawn", argv=["sleep", "300"], cwd="/")["process"]["id"]
        with self.assertRaises(KeeperError) as caught:
            client.call("freeze", id=process)
        self.assertEqual((caught.exception.code, caught.exception.details["protection"]), ("sandbox_unavailable", "freezer"))
        self.assertTrue(caught.exception.details["reason"])
        self.assertEqual(client.call("status", id=process)["process"]["state"], "running")


class AgentTotalsTest(AgentCase, LimitsCase):
    def args(self, script, *words):
        return {"argv": [PYTHON, "-c", script, *map(str, words)], "cwd": str(self.work)}

    def begin(self, client, script, *words, **more):
        return client.call("spawn", **self.args(script, *words), **more)["process"]

    def test_b083_memory_counts_for_those_above(self):
        """Two that each fit do not fit together: the total of the agent above both holds."""
        if not self.held("memory_bytes"):
            return
        total = 96 * MIB
        above = self.keeper.agent("main/a", limits={"memory_bytes": total})
        below = self.keeper.agent("main/a/x")
        free = self.keeper.agent("main/b")
        first = self.begin(above, TOUCH, 64 * MIB, 300)
        self.line(above, first["id"])
        second = self.begin(below, TOUCH, 64 * MIB, 300)
        ends = {}

        def one_ended():
            for client, record in ((above, first), (below, second)):
                found = client.call("status", id=record["id"])["process"]
                if found["state"] not in ("starting", "running"):
                    ends[record["id"]] = found
            return ends

        procs.wait_until(one_ended, "one of the two is killed")
        self.assertEqual([end["end_cause"] for end in ends.values()], ["oom"])
        evidence = next(iter(ends.values()))["end_evidence"]
        self.assertEqual((evidence["limit"], evidence["value"]), ("memory_bytes", total), evidence)
        # Whoever is not below that agent is not held by its total.
        others = [self.begin(free, TOUCH, 64 * MIB, 0) for _ in range(2)]
        ends = [free.call("wait", id=record["id"])["process"]["end_cause"] for record in others]
        self.assertEqual(ends, ["self_exit"] * 2)

    def test_b083_processes_count_for_those_above(self):
        above = self.keeper.agent("main/a", limits={"max_pids": 40})
        if not self.doctor["cgroup"]["pids"]["version"]:
            with self.assertRaises(KeeperError) as caught:
                self.begin(above, FORKS, 1, 0, 0)
            self.assertEqual(caught.exception.details["protection"], "max_pids")
            return
        below = self.keeper.agent("main/a/x", limits={"max_pids": 30})
        first = self.begin(below, FORKS, 25, 300, 0)
        self.assertEqual(self.line(below, first["id"]), "25 enough")
        second = self.begin(above, FORKS, 25, 300, 0)
        count, why = self.line(above, second["id"]).split()
        self.assertEqual(why, "EAGAIN")
        self.assertLess(int(count), 15)
        below.call("kill", id=first["id"])
        third = self.begin(above, FORKS, 10, 0, 0)
        self.assertEqual(self.line(above, third["id"]), "10 enough")

    def test_b083_processor_time_counts_for_those_above(self):
        if not self.held("cpu_quota"):
            return
        above = self.keeper.agent("main/a", limits={"cpu_quota": 0.3})
        below = self.keeper.agent("main/a/x")
        records = [(client, self.begin(client, BURN, 2)) for client in (above, below)]
        used = sum(float(self.line(client, record["id"])) for client, record in records)
        self.assertLess(used, 1.2)

    def test_b083_no_more_than_those_above(self):
        """A request for more than the agent's total, or that of one above, is refused; as much is granted."""
        if not self.held("memory_bytes"):
            return
        self.keeper.agent("main/a", limits={"memory_bytes": 64 * MIB})
        below = self.keeper.agent("main/a/x")
        refusal = self.refusal(below, "spawn", argv=["true"], limits={"memory_bytes": 65 * MIB})
        self.assertEqual(refusal.code, "permission_denied", refusal)
        record = below.call("spawn", argv=["true"], limits={"memory_bytes": 64 * MIB})["process"]
        self.assertEqual(below.call("wait", id=record["id"])["process"]["exit"]["code"], 0)

    def test_b083_totals_can_be_changed_and_taken_away(self):
        if not self.held("memory_bytes"):
            return
        who = self.keeper.agent("main/a", limits={"memory_bytes": 64 * MIB})
        causes = []
        for limits in ({"memory_bytes": 64 * MIB}, {"memory_bytes": 512 * MIB}, {"memory_bytes": 64 * MIB}, None):
            self.client.call("agent_set", agent="main/a", limits=limits)
            record = self.begin(who, TOUCH, 128 * MIB, 0)
            causes.append(who.call("wait", id=record["id"])["process"]["end_cause"])
        self.assertEqual(causes, ["oom", "self_exit", "oom", "self_exit"])

    def folders(self, pid):
        """The groups of an agent that a process is in, as folders of this host."""
        found = set()
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            parts = Path(line.split(":", 2)[2]).parts[1:]
            ends = [i for i, part in enumerate(parts) if part.startswith("a-") and any(p.startswith("coop-") for p in parts[:i])]
            # The first is that of main, above all others.
            for end in ends[1:2]:
                path = "/".join(parts[: end + 1])
                found.update(root / path for root in (CGROUPS, *CGROUPS.iterdir()) if (root / path).is_dir())
        return found

    def test_b083_groups_of_removed_agents_go(self):
        """At once, although a sandbox waits in them; also those of agents below, and of one whose process is killed with it."""
        if not self.held("memory_bytes") or not self.held("max_pids"):
            return
        self.ended(self.spawn("true", limits={"memory_bytes": 64 * MIB})["id"])
        before, folders = self.client.call("info")["sandbox"]["cgroups"], set()
        for number in range(4):
            limits = {"memory_bytes": 64 * MIB, "max_pids": 50}
            above = self.keeper.agent(f"main/a{number}", limits=limits)
            below = self.keeper.agent(f"main/a{number}/x", limits=limits)
            for who in (above, below, above):
                record = self.begin(who, TOUCH, MIB, 300 if number % 2 else 0.2)
                self.line(who, record["id"])
                folders |= self.folders(record["pid"])
                who.call("kill" if number % 2 else "wait", id=record["id"])
            above.close()
            below.close()
            for path in (f"main/a{number}/x", f"main/a{number}"):
                self.client.call("agent_remove", agent=path)
        self.assertGreaterEqual(len(folders), 4)
        procs.wait_until(lambda: not [path for path in folders if path.exists()], "the folders are gone", timeout=5)
        # One that is made ahead, for the next process of its kind, goes when nobody has come for it.
        procs.wait_until(lambda: self.client.call("info")["sandbox"]["cgroups"] <= before, "no more groups than before")
        procs.wait_until(lambda: self.woken(0.3) <= 5, "the keeper rests")

    def ends(self, client, records):
        """The causes of those that have ended."""
        found = [client.call("status", id=record["id"])["process"] for record in records]
        return [record["end_cause"] for record in found if record["state"] not in ("starting", "running")]

    def test_b083_a_total_given_above_holds_with_those_below(self):
        """One that was there first stays in force when an agent above gets limits, or loses them."""
        if not self.held("memory_bytes"):
            return
        self.keeper.agent("main/p")
        who = self.keeper.agent("main/p/c", limits={"memory_bytes": 64 * MIB})
        causes = []
        for limits in (None, {"memory_bytes": 1024 * MIB}, None):
            self.client.call("agent_set", agent="main/p", limits=limits)
            first = self.begin(who, TOUCH, 45 * MIB, 300)
            self.line(who, first["id"])
            record = self.begin(who, TOUCH, 45 * MIB, 300)
            causes.append(procs.wait_until(lambda both=(first, record): self.ends(who, both), "one of the two ends"))
            for one in (first, record):
                who.call("kill", id=one["id"])
        self.assertEqual(causes, [["oom"]] * 3)


class TidyTest(LimitsCase):
    def groups(self):
        return self.client.call("info")["sandbox"]["cgroups"]

    def test_groups_go_with_their_processes(self):
        """After many limited processes, of which some die of it, the keeper has no more groups than before."""
        if not self.held("memory_bytes") or not self.held("max_pids"):
            return
        limits = {"memory_bytes": 32 * MIB, "max_pids": 20}
        self.ended(self.spawn("true", limits=limits)["id"])
        before = self.groups()
        ids = [self.python(TOUCH, (8 if i % 3 else 128) * MIB, 0, limits=limits)["id"] for i in range(15)]
        for process in ids:
            self.ended(process)
        procs.wait_until(lambda: self.groups() <= before, "the groups are gone")

"""What is told of the sandbox (B-107, B-113): `doctor`, causes and facts of ends, the record; and that the database, the audit and the
policy's envelope know the same."""

import os
import shutil
import signal
import tempfile
import unittest
from pathlib import Path

from lib.client import KeeperError
from lib.confined import ROOT, USER, ConfinedCase, without
from lib.records import RecordsCase

SEVEN = {"files", "network", "identity", "ipc", "privileges", "seccomp", "kill"}
LIMITS = ("memory_bytes", "cpu_quota", "max_pids", "max_cpu_secs", "max_open_files", "max_file_bytes", "tmp_bytes")
MIB = 1 << 20
# getpid by the 32-bit convention, which the filter kills for.
OTHER_CONVENTION = (
    "import ctypes, mmap\n"
    "m = mmap.mmap(-1, 4096, prot=7)\n"
    "m.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')\n"
    "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\n"
)
SPIN = "while :; do :; done"
REACH = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"


class ReportsCase(RecordsCase):
    def setUp(self):
        super().setUp()
        self.ws = Path(tempfile.mkdtemp(prefix="coop-r-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.ws, ignore_errors=True)
        self.ws.chmod(0o755)

    def final(self, *argv, sandbox=None, **args):
        """Runs it to its end in the workspace: the final record."""
        sandbox = {"workspace": str(self.ws), **(sandbox or {})}
        process = self.client.call("spawn", **({"argv": list(argv), "cwd": str(self.ws), "sandbox": sandbox} | args))["process"]
        return self.ended(process["id"])

    def cause(self, *argv, **args):
        record = self.final(*argv, **args)
        return record["end_cause"], record["end_evidence"], record.get("facts")


class DoctorTest(ReportsCase):
    def test_b107_doctor_says_what_a_spawn_gets(self):
        """Of a command that asks for nothing the record has the same states, mechanisms and reasons; every limit is told too."""
        answer = self.client.call("doctor")
        self.assertEqual(set(answer["protections"]), SEVEN | set(LIMITS))
        record = self.final("true")
        for name, held in record["sandbox"]["protections"].items():
            told = answer["protections"][name]
            self.assertEqual({key: told[key] for key in held}, held, name)
        for name, told in answer["protections"].items():
            self.assertEqual(told["state"] == "enforced", told["reason"] is None, (name, told))
            if told["state"] != "enforced":
                self.assertTrue(told["fix"], (name, told))
        self.assertEqual(record["sandbox"]["user"], answer["identity"]["uid"] if ROOT else None)

    def test_b113_doctor_names_what_holds_a_limit(self):
        """Of a command that asks for this limit alone the record names the same mechanism."""
        told = self.client.call("doctor")["protections"]
        for name in LIMITS:
            value = 1.5 if name == "cpu_quota" else 64 << 20 if "bytes" in name else 50
            sandbox = {"workspace": str(self.ws), "tolerate": [name]}
            held = self.final("true", sandbox=sandbox, limits={name: value})["sandbox"]["protections"][name]
            self.assertEqual({key: told[name][key] for key in held}, held, name)

    def test_b107_doctor_has_all_its_parts(self):
        answer = self.client.call("doctor")
        self.assertEqual(set(answer["cgroup"]), {"memory", "cpu", "pids", "freezer"})
        for held in answer["cgroup"].values():
            self.assertIn(held["version"], (0, 1, 2))
            self.assertTrue(held["version"] or held["reason"], held)
            self.assertEqual(bool(held["version"]), held["fix"] is None, held)
        self.assertLessEqual({"enabled", "idle", "kinds", "memory_bytes", "filled", "taken", "failed"}, set(answer["slots"]))
        self.assertTrue(answer["identity"]["how"])
        self.assertEqual(answer["keeper"], "root" if ROOT else "user")
        for facility in answer["host"].values():
            self.assertTrue(facility["detail"])
        (row,) = [op for op in self.client.call("describe")["operations"] if op["name"] == "doctor"]
        self.assertEqual(set(row["result"]["properties"]) - {"credentials"}, set(answer))
        self.assertEqual(set(row["result"]["properties"]), set(self.client.call("doctor", credentials=True)))

    def test_b107_doctor_is_for_agents_too(self):
        agent = self.agent("main/a")
        self.assertEqual(set(agent.call("doctor")["protections"]), SEVEN | set(LIMITS))


class WideDoctorTest(ReportsCase):
    conf = "[sandbox]\nprofile = full\nslots = 0\n"

    def test_b107_doctor_asks_about_confined_commands(self):
        """Where the operator's default confines nothing the answer is about what a confined command would get."""
        answer = self.client.call("doctor")
        self.assertNotIn("full", str(answer["protections"]))
        self.assertFalse(answer["slots"]["enabled"])


@unittest.skipUnless(ROOT, "needs root to make namespaces with limits for another user")
class RemedyTest(ConfinedCase):
    def remedies(self, **options):
        world = self.world(owner=USER)
        client = self.confined_keeper(world, USER, "[sandbox]\nslots = 0\n", **options).clients[0]
        return client.call("doctor")

    def test_b107_no_user_namespaces(self):
        answer = self.remedies(maxima={"user": 0})
        self.assertEqual((answer["host"]["user_namespaces"]["works"], answer["host"]["user_namespaces"]["error"]), (False, "ENOSPC"))
        for name in ("files", "network", "ipc", "kill", "tmp_bytes"):
            told = answer["protections"][name]
            self.assertNotEqual(told["state"], "enforced", (name, told))
            self.assertIn("user.max_user_namespaces", told["fix"], name)
        self.assertEqual(answer["protections"]["identity"]["fix"], None)

    def test_b107_no_net_namespaces(self):
        answer = self.remedies(maxima={"net": 0})
        self.assertIn("user.max_net_namespaces", answer["protections"]["network"]["fix"])
        self.assertEqual(answer["protections"]["kill"], {"state": "enforced", "mechanism": "pid namespace", "reason": None, "fix": None})

    def test_b107_control_groups_for_a_user(self):
        """He is told what helps a user, not what would open the container to its root."""
        answer = self.remedies()
        for told in [*answer["cgroup"].values(), answer["protections"]["memory_bytes"]]:
            self.assertRegex(told["fix"] or "as root", r"^(?!.*docker).*\bas root\b")

    def test_b107_folder_that_cannot_be_entered(self):
        """A user's keeper has no more rights than the command: naming the folder as the workspace would not help, and is not advised."""
        world = self.world(owner=USER)
        client = self.confined_keeper(world, USER, "[sandbox]\nslots = 0\n").clients[0]
        shut = world.workspace / "shut"
        shut.mkdir(mode=0o700)
        for sandbox in ({"profile": "read-only"}, {"profile": "full"}, {"workspace": str(world.workspace)}):
            with self.subTest(sandbox=sandbox), self.assertRaises(KeeperError) as caught:
                client.call("spawn", argv=["true"], cwd=str(shut), sandbox=sandbox)
            self.assertIn("be entered", caught.exception.message)
            self.assertNotIn("--workspace", caught.exception.message)

    def test_b107_no_second_wall(self):
        """Files are protected by mounts alone: enforced, and still told what would make it better."""
        answer = self.remedies(wrap=without("landlock_create_ruleset=ENOSYS"))
        files = answer["protections"]["files"]
        self.assertEqual((files["state"], files["mechanism"], answer["landlock_abi"]), ("enforced", "mounts", 0))
        self.assertIn("Landlock", files["fix"])

    def test_b107_no_new_privileges(self):
        answer = self.remedies(wrap=without("prctl:0=38=EPERM"))
        told = answer["protections"]["privileges"]
        self.assertEqual((told["state"], told["mechanism"]), ("partial", "capabilities"), told)
        self.assertIn("PR_SET_NO_NEW_PRIVS", told["fix"])
        self.assertNotEqual(answer["protections"]["seccomp"]["state"], "enforced")


class CausesTest(ReportsCase):
    def test_b107_b113_cpu_time(self):
        """At the limit of CPU time: with SIGXCPU, and with SIGKILL for who ignores that."""
        for script, number in ((SPIN, signal.SIGXCPU), (f"trap '' XCPU; {SPIN}", signal.SIGKILL)):
            record = self.final("sh", "-c", script, limits={"max_cpu_secs": 1})
            self.assertEqual((record["end_cause"], record["exit"]["signal"]), ("cpu_time", number), record["exit"])
            evidence = record["end_evidence"]
            self.assertEqual((evidence["limit"], evidence["value"]), ("max_cpu_secs", 1), evidence)
            self.assertEqual(record["facts"], ["killed at the limit of 1 s of CPU time (max_cpu_secs)"])
            self.assertEqual(self.wait(record["id"])["status"], "killed")

    def test_b107_not_every_signal_is_the_limits(self):
        """The same signals where no limit is set, or long before it, are signals."""
        for name in ("XCPU", "KILL"):
            self.assertEqual(self.cause("sh", "-c", f"kill -{name} $$")[0], "signal")
        self.assertEqual(self.cause("sh", "-c", "kill -KILL $$", limits={"max_cpu_secs": 60})[0], "signal")

    @unittest.skipUnless(os.uname().machine == "x86_64", "needs another convention for system calls")
    def test_b107_denied_by_the_filter(self):
        fact = "killed by SIGSYS: by the system call filter, or somebody sent it that signal"
        cause, evidence, facts = self.cause("python3", "-c", OTHER_CONVENTION)
        self.assertEqual((cause, evidence["signal"], facts), ("sandbox_denied", "SIGSYS", [fact]))
        # The kernel tells nobody which of the two it was, so neither is claimed.
        self.assertEqual(self.cause("sh", "-c", "kill -SYS $$")[2], [fact])
        record = self.final("python3", "-c", OTHER_CONVENTION, sandbox={"profile": "full"})
        self.assertNotIn("sandbox_denied", (record["end_cause"],))

    def test_b107_sigsys_of_others(self):
        """With no filter, or sent through the keeper, it is not the filter's."""
        self.assertEqual(self.cause("sh", "-c", "kill -SYS $$", sandbox={"profile": "full"})[0], "signal")
        process = self.spawn("sleep", "300")["id"]
        self.client.call("signal", id=process, signal="SYS")
        record = self.ended(process)
        self.assertEqual((record["end_cause"], record.get("facts")), ("killed_by_request", None))

    def test_b107_causes_are_kept(self):
        """History, receipts of an earlier keeper and the audit know them."""
        record = self.final("sh", "-c", SPIN, limits={"max_cpu_secs": 1})
        process = record["id"]
        self.settle()
        (row,) = [row for row in self.client.call("history")["processes"] if row["id"] == process]
        self.assertEqual((row["end_cause"], row["end_evidence"]["limit"]), ("cpu_time", "max_cpu_secs"))
        self.assertEqual(self.audit_lines("end")[-1]["end_cause"], "cpu_time")
        self.restart()
        receipt = self.status(process)
        self.assertEqual((receipt["end_cause"], receipt["end_evidence"]), ("cpu_time", record["end_evidence"]))
        self.assertTrue(receipt["receipt"])
        self.assertEqual(self.wait(process)["status"], "killed")


class FactsTest(ReportsCase):
    def test_b107_network(self):
        """Of one that gave up by itself, and not of one that was killed or succeeded, nor where the host's network was there."""
        sandbox = {"network": "none"}
        fact = "network none: the network was tried while it ran, and there is none (profile workspace-write)"
        for host in ("192.0.2.1", "127.0.0.1"):
            script = REACH.replace("192.0.2.1", host)
            self.assertEqual(self.final("python3", "-c", script, sandbox=sandbox).get("facts"), [fact], host)
        reach = f'python3 -c "{REACH}" 2>/dev/null; '
        self.assertEqual(self.final("sh", "-c", reach + "exit 3", sandbox=sandbox).get("facts"), [fact])
        self.assertNotIn("facts", self.final("sh", "-c", reach + "true", sandbox=sandbox))
        self.assertNotIn("facts", self.final("sh", "-c", reach + "kill -9 $$", sandbox=sandbox))
        self.assertNotIn("facts", self.final("false", sandbox={"network": "host"}))
        self.assertNotIn("facts", self.final("false", sandbox={"profile": "full"}))

    def test_b107_a_network_that_nobody_missed(self):
        """Whoever fails without having tried to reach anybody is told nothing of the network, be it loopback or none."""
        for network in ("loopback", "none"):
            self.assertNotIn("facts", self.final("sh", "-c", "exit 3", sandbox={"network": network}))

    def test_b107_loopback(self):
        """What everybody has by default is told of only where the kernel counted an attempt to reach another host."""
        record = self.final("python3", "-c", REACH, sandbox={"network": "loopback"})
        self.assertEqual(record["exit"]["code"], 1, record)
        (fact,) = record["facts"]
        self.assertIn("network loopback: other hosts were tried while it ran, and there is no network but its session's", fact)
        # Of a session's network the kernel counts for all: what has been told is not told again.
        self.assertNotIn("facts", self.final("false"))

    def test_b107_attempts_of_others_are_not_told(self):
        """Of a session's network, which the kernel counts for all: one that failed later, of itself, tried nothing."""
        for tried in ("true", "exit 7"):
            record = self.final("sh", "-c", f'python3 -c "{REACH}" 2>/dev/null; {tried}')
            self.assertEqual("facts" in record, tried != "true", record.get("facts"))
            for network in ("loopback", None):
                self.assertNotIn("facts", self.final("false", sandbox={"network": network} if network else {}))

    def test_b107_where_facts_are_told(self):
        """In every full record of the end; not while it lives, not in a brief list, not of one that was never started."""
        script = f'read x; python3 -c "{REACH}"'
        process = self.client.call("spawn", argv=["sh", "-c", script], cwd="/", stdin="pipe", sandbox={"network": "none"})["process"]
        self.assertNotIn("facts", process)
        self.assertNotIn("facts", self.status(process["id"]))
        self.client.call("close_stdin", id=process["id"])
        facts = self.ended(process["id"])["facts"]
        self.assertEqual(len(facts), 1)
        self.assertEqual(self.status(process["id"])["facts"], facts)
        for brief, wanted in ((False, facts), (True, None)):
            (listed,) = self.client.call("list", include_finished=True, brief=brief)["processes"]
            self.assertEqual(listed.get("facts"), wanted)
        with self.assertRaises(KeeperError) as caught:
            self.client.call("spawn", argv=["/nowhere/x"], cwd="/", record_failure=True, sandbox={"network": "none"})
        self.assertNotIn("facts", self.status(caught.exception.details["id"]))


class RecordTest(ReportsCase):
    conf = "[profile own]\nbase = read-only\n"

    def test_b107_b113_limits(self):
        """Every limit stands in the record, null where it is not set; in a brief one none does."""
        limits = {"max_pids": 100, "max_cpu_secs": 60, "max_open_files": 77, "max_file_bytes": 5 * MIB, "tmp_bytes": 4 * MIB}
        record = self.final("true", limits=limits, timeout_ms=60000)
        self.assertEqual({name: record["limits"][name] for name in LIMITS}, {name: limits.get(name) for name in LIMITS})
        self.assertEqual(record["limits"]["timeout_ms"], 60000)
        (listed,) = self.client.call("list", include_finished=True, brief=True)["processes"]
        self.assertFalse({"limits", "sandbox", "facts"} & set(listed))
        self.assertIn(listed["start"], ("launched", "pooled"))

    def test_b105_to_require_one_more(self):
        """Takes none of the others away; an empty list does, and so does what is tolerated."""
        usual = ["files", "network", "identity", "privileges", "seccomp", "kill"]
        asks = (({}, usual), ({"require": ["ipc"]}, [*usual, "ipc"]), ({"require": ["files"]}, usual), ({"require": []}, []),
                ({"tolerate": ["kill"]}, usual[:-1]), ({"require": ["ipc"], "tolerate": ["kill"]}, [*usual[:-1], "ipc"]))  # fmt: skip
        for ask, required in asks:
            with self.subTest(ask=ask):
                self.assertEqual(set(self.final("true", sandbox=ask)["sandbox"]["require"]), set(required))

    def test_b107_globs(self):
        """How many matches patterns had at the start is told; without patterns nothing is."""
        for name in ("a.pem", "b.pem"):
            (self.ws / name).touch()
        globs = self.final("true", sandbox={"deny_read": [str(self.ws / "*.pem")]})["sandbox"]["globs"]
        self.assertIn("2 matches", globs)
        self.assertNotIn("globs", self.final("true")["sandbox"])

    def test_b107_home_as_achieved(self):
        """The report is the same after the end; what was asked for and what came of it may differ, and both stand there."""
        process = self.client.call("spawn", argv=["cat"], cwd="/", stdin="pipe", sandbox={"home": "cow"})["process"]
        self.assertIn(process["sandbox"]["home"], ("cow", "hidden") if ROOT else ("cow", "read-only"))
        self.assertEqual(process["sandbox"]["asked"], {"home": "cow"})
        self.client.call("close_stdin", id=process["id"])
        self.assertEqual(self.ended(process["id"])["sandbox"], process["sandbox"])
        self.assertEqual(self.final("true", sandbox={"home": "hidden"})["sandbox"]["home"], "hidden")

    def test_b107_profile_in_audit_and_envelope(self):
        """Lines of the audit and the policy's context name the profile in force, of refused commands too; null where it came to none."""
        seen = [("read-only", {"profile": "read-only"}), ("own", {"profile": "own"}), ("full", {"profile": "full"}), ("workspace-write", {})]
        for profile, sandbox in seen:
            self.final("true", sandbox={"workspace": None, **sandbox})
            self.assertEqual(self.audit_lines("spawn")[-1]["profile"], profile)
            envelope = self.client.call("check", argv=["true"], cwd="/", sandbox=sandbox)
            self.assertEqual(envelope["command_policy"]["context"]["profile"], profile)
        with self.refused("permission_denied") as caught:
            self.client.call("spawn", argv=["rm", "-rf", "/"], cwd="/", sandbox={"profile": "own"})
        self.assertEqual(caught.exception.details["command_policy"]["context"]["profile"], "own")
        self.assertEqual(self.audit_lines("spawn")[-1]["profile"], "own")
        with self.refused("invalid_input"):
            self.client.call("spawn", argv=["true"], cwd="/", sandbox={"profile": "strict"})
        self.assertIsNone(self.audit_lines("spawn")[-1]["profile"])

"""A step of the set-up fails, each in turn: the error names the step and the protection, and nothing is left of the attempt."""

import os
import platform
import unittest
from pathlib import Path

from lib import procs
from lib.client import KeeperError
from lib.confined import ROOT, USER, ConfinedCase, lines_of, without
from lib.keeper import NO_SHARES
from lib.expected import Expected

# (the call that fails, steps that may be named for it, protections). None: the step is about no protection of its own.
STEPS = (
    ("clone3=EIO", {"clone", "init"}, None),
    ("setns=EIO", {"network", "clone"}, {"network"}),
    ("prctl:0=1=EIO", {"death_signal", "launcher"}, {"kill"}),
    ("setsid=EIO", {"session"}, None),
    ("open_tree=EIO", {"mounts"}, {"files", "identity"}),
    ("mount_setattr=EIO", {"mounts"}, {"files", "identity"}),
    ("move_mount=EIO", {"mounts"}, {"files"}),
    ("fsopen=EIO", {"mounts"}, {"files"}),
    ("fsconfig=EIO", {"mounts"}, {"files"}),
    ("fsmount=EIO", {"mounts"}, {"files"}),
    ("pivot_root=EIO", {"mounts"}, {"files"}),
    ("umount2=EIO", {"mounts"}, {"files"}),
    ("prctl:0=4=EIO", {"init"}, None),
    ("clone=EIO", {"init", "clone"}, None),
    ("dup2=EIO" if platform.machine() == "x86_64" else "dup3=EIO", {"stdio"}, None),
    ("chdir=EIO", {"chdir", "mounts"}, None),
    ("prlimit64=EIO", {"limits"}, None),
    ("close_range=EIO", {"close_fds", "init"}, None),
    ("prctl:0=38=EIO", {"no_new_privs"}, {"privileges"}),
    ("landlock_create_ruleset=EIO", {"landlock"}, {"files"}),
    ("landlock_add_rule=EIO", {"landlock"}, {"files"}),
    ("landlock_restrict_self=EIO", {"landlock"}, {"files"}),
    ("prctl:0=24=EIO", {"capabilities"}, {"privileges"}),
    ("prctl:0=47=EIO", {"capabilities"}, {"privileges"}),
    ("capset=EIO", {"capabilities"}, {"privileges"}),
    ("seccomp:0=1=EIO", {"seccomp"}, {"seccomp"}),
    ("ioctl:1=0x540e=EIO", {"terminal"}, None),
    ("execve=EIO", {"exec"}, None),
)
CALLS_MAX = 200
# What the other root does differently.
OF_MINIMAL = ("pivot_root", "umount2", "ioctl", "fsmount", "chdir")
# Some of each kind, for whoever has a control group of its own.
IN_A_GROUP = ("open_tree", "move_mount", "landlock_restrict_self", "seccomp", "capset", "execve", "dup")
# A call may fail and be made good: by another launcher, by another way. Then all of these must still be as ever.
LOOKS = """S-001 S-002 S-005 S-013 S-014 S-029 S-033 S-044 S-045 S-050 S-052 S-064 S-082 S-098 S-099 S-101 S-126 S-127
S-127.bounding S-128 S-132 S-010 S-020 S-026 S-056 S-057""".split()


class Trace:
    """What a keeper has, and what there is around it, that an attempt could leave behind."""

    def __init__(self, keeper, world):
        self.processes = procs.descendants(keeper.pid)
        self.mounts = Path(f"/proc/{keeper.pid}/mountinfo").read_text().splitlines()
        self.fds = os.listdir(f"/proc/{keeper.pid}/fd")
        # Placeholders go while one looks.
        self.files = [os.path.join(folder, name) for folder, *names in os.walk(world.base) for name in sum(names, [])]
        # The keeper's own: those of others come and go meanwhile.
        self.groups = range(keeper.clients[0].call("info")["sandbox"]["cgroups"])

    def more_than(self, before):
        """What there is more of now, in words."""
        counts = {name: (len(vars(before)[name]), len(value)) for name, value in vars(self).items()}
        more = {name: count for name, count in counts.items() if count[1] > count[0]}
        if "files" in more:
            more["files"] = sorted(set(self.files) - set(before.files))
        return more


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user")
class SetupFailureTest(ConfinedCase):
    uid = None

    def setUp(self):
        super().setUp()
        self.around = self.world(owner=self.uid)
        self.flag = self.around.base / "flag" / "when"
        self.flag.parent.mkdir()
        self.flag.parent.chmod(0o777)
        rules = without(*[rule for rule, _, _ in STEPS], when=self.flag)
        self.keeper = self.confined_keeper(self.around, self.uid, "[sandbox]\nslots = 0\n" + NO_SHARES, wrap=rules)
        self.client = self.keeper.clients[0]

    def request(self, root, kind):
        sandbox = self.around.sandbox(root, "loopback" if root == "host" else "none")
        looks = "; ".join(" ".join(self.around.argv(case)) for case in LOOKS)
        args = {"argv": ["sh", "-c", looks + "; ulimit -n"], "cwd": str(self.around.workspace), "kind": kind, "sandbox": sandbox}
        return args | {"limits": {"max_open_files": 100}}

    def inject(self, number, which):
        """From now on the given call of a rule fails. Replaced whole: it is read at any moment."""
        new = self.flag.with_suffix(".new")
        new.write_text(f"{number} {which}")
        new.rename(self.flag)

    def fail_each_call(self, number, args):
        """Lets the first call of a rule fail, then the second, until none is left. The number of failures, and faults in words."""
        rule, steps, protections = STEPS[number]
        faults, failures, which = [], 0, 1
        while which < CALLS_MAX:
            self.inject(number, which)
            answer = self.client.answer("spawn", args)
            failed = not self.flag.exists()
            self.flag.unlink(missing_ok=True)
            what = f"{rule} #{which}"
            if "result" in answer:
                faults += [f"{what}: failed, nobody was told, and {fault}" for fault in self.looks(answer["result"]["process"])]
            elif failed:
                faults += self.judge_error(what, KeeperError(answer["error"]), steps, protections)
            else:
                faults.append(f"{what}: nothing failed, and yet {answer}")
            if not failed:
                break
            failures += 1
            # Of a long row of the same not each needs its turn.
            which += 1 if which < 4 or "prctl" not in rule else 7
        return failures, faults

    def looks(self, record):
        """What a process that runs all the same must still meet."""
        self.client.call("wait", id=record["id"])
        text = self.output(record["id"], "pty" if record["kind"] == "pty" else "stdout")
        where = {"user" if self.uid else "root", record["kind"], record["sandbox"]["root"], record["sandbox"]["network"]}
        faults = Expected("full", where).wrong(lines_of(text), LOOKS)
        return faults if text.split()[-1:] == [b"100"] else [*faults, "the limit is not in force"]

    def judge_error(self, what, error, steps, protections):
        details = error.details
        if error.code not in ("sandbox_unavailable", "spawn_failed"):
            return [f"{what}: {error}"]
        faults = []
        if details.get("protection") == "identity":
            # The keeper's own part, before there is any step.
            return [] if "EIO" in error.message else [f"{what}: {error}"]
        if details.get("step") not in steps:
            faults.append(f"{what}: step {details.get('step')} instead of {steps}: {error}")
        if details.get("errno") != "EIO":
            faults.append(f"{what}: errno {details.get('errno')}: {error}")
        if protections and details.get("protection") not in protections:
            faults.append(f"{what}: protection {details.get('protection')} instead of {protections}: {error}")
        return faults

    def left_over(self, before):
        """What is left after a while, in words; None if nothing is."""
        try:
            procs.wait_until(lambda: not Trace(self.keeper, self.around).more_than(before), "nothing is left", timeout=3)
        except AssertionError:
            return Trace(self.keeper, self.around).more_than(before)
        return None

    def test_b106_each_step_fails(self):
        """In both roots, with a pipe and a terminal: every call that the set-up makes, one at a time."""
        faults, seen = [], {}
        for root, kind in (("host", "pipe"), ("minimal", "pty")):
            args = self.request(root, kind)
            self.assertEqual(self.looks(self.client.call("spawn", **args)["process"]), [], "the control: nothing fails")
            procs.wait_until(lambda: not self.around.ghosts(), "placeholders are taken away")
            before = Trace(self.keeper, self.around)
            for number, (rule, _, _) in enumerate(STEPS):
                if root == "minimal" and not rule.startswith(OF_MINIMAL):
                    continue
                failures, wrong = self.fail_each_call(number, args)
                seen[rule] = seen.get(rule, 0) + failures
                faults += wrong
                if left := self.left_over(before):
                    faults.append(f"{rule} ({root}, {kind}) leaves: {left}")
                    before = Trace(self.keeper, self.around)
        self.assertEqual(faults, [], "\n".join(faults))
        self.assertEqual([rule for rule, count in seen.items() if not count], [], "calls that the set-up does not make")
        self.assertEqual(self.client.call("list")["processes"], [])
        self.assertEqual(os.listdir(self.around.out), ["file"])

    def test_b106_b113_in_a_control_group(self):
        """With a limit that a group holds: the group goes with the attempt."""
        args = self.request("host", "pipe")
        args["limits"] = args["limits"] | {"memory_bytes": 256 << 20}
        doctor = self.client.call("doctor")
        if doctor["protections"]["memory_bytes"]["state"] != "enforced":
            self.assertEqual(self.client.answer("spawn", args)["error"]["code"], "sandbox_unavailable")
            return
        self.assertEqual(self.looks(self.client.call("spawn", **args)["process"]), [], "the control: nothing fails")
        faults, failed, first = [], 0, 0
        for number, (rule, steps, protections) in enumerate(STEPS):
            if not rule.startswith(IN_A_GROUP):
                continue
            # In version 1 every command leaves a group with a launcher in it, which waits for the next.
            self.client.call("wait", id=self.client.call("spawn", **args | {"argv": ["true"]})["process"]["id"])
            waiting = doctor["cgroup"]["memory"]["version"] == 1
            procs.wait_until(lambda: len(procs.descendants(self.keeper.pid)) == 1 + waiting, "only launchers to be there")
            procs.wait_until(lambda: not self.around.ghosts(), "placeholders are taken away")
            before = Trace(self.keeper, self.around)
            # A launcher that has just started hands over one a moment later; what is left each time is seen in the end.
            first = first or len(before.fds)
            before.fds += ["more"]
            self.inject(number, 1)
            answer = self.client.answer("spawn", args)
            failed += not self.flag.exists()
            self.flag.unlink(missing_ok=True)
            if "result" in answer:
                faults += [f"{rule}: {fault}" for fault in self.looks(answer["result"]["process"])]
            else:
                faults += self.judge_error(rule, KeeperError(answer["error"]), steps, protections)
            if left := self.left_over(before):
                faults.append(f"{rule} leaves: {left}")
        self.assertEqual(faults, [], "\n".join(faults))
        self.assertGreater(failed, 3, "the control: something failed")
        self.assertLessEqual(len(Trace(self.keeper, self.around).fds), first + 2)


class UserSetupFailureTest(SetupFailureTest):
    uid = USER

"""Looks from outside at processes that run confined: their namespaces, mounts, limits, their first process, and what is out of sight."""

import contextlib
import ctypes
import os
import signal
import unittest
from pathlib import Path

from lib import procs
from lib.confined import ROOT, USER, ConfinedCase, lines_of
from lib.keeper import NO_SHARES
from lib.expected import told
from lib.keeper import generous_limits
from lib.place import sanitized

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "console", "pts")
RENAME_EXCHANGE = 2
# The keeper gets two descriptors from whoever started it.
PLANTED = 'exec 8</etc/passwd 9</; exec "$@"'


class Mount:
    """One line of /proc/PID/mountinfo."""

    def __init__(self, line):
        head, _, tail = line.partition(" - ")
        self.line = line
        self.path = head.split()[4]
        self.flags = set(head.split()[5].split(","))
        self.kind = tail.split()[0]
        self.options = dict(option.partition("=")[::2] for option in tail.split()[-1].split(","))


def mounts(pid):
    return [Mount(line) for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]


def status_of(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def namespace(pid, kind):
    """None if the process has just ended: what prepares and looks comes and goes."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    return None


class LooksCase(ConfinedCase):
    uid = None

    def begin(self, conf="", **options):
        self.around = self.world(owner=self.uid)
        self.ws = str(self.around.workspace)
        self.keeper = self.confined_keeper(self.around, self.uid, "[sandbox]\n" + conf, **options)
        self.client = self.keeper.clients[0]

    def run_one(self, root="host", network="none", **args):
        """A command that runs: the pids of its first process and of itself."""
        sandbox = self.around.sandbox(root, network)
        record = self.client.call("spawn", **{"argv": ["sleep", "300"], "cwd": self.ws, "sandbox": sandbox} | args)["process"]
        return procs.stat(record["pid"])[1], record["pid"]

    def met(self, case, network="none"):
        """What an attack met, as the lists write it."""
        args = {"argv": self.around.argv(case), "cwd": self.ws, "sandbox": self.around.sandbox(network=network)}
        self.record = self.client.call("spawn", **args)["process"]
        self.client.call("wait", id=self.record["id"])
        return told(lines_of(self.output(self.record["id"]))[0])


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user, and to look at them")
class LooksTest(LooksCase):
    def test_s106_b110_namespaces_are_its_own(self):
        """Of two commands with `none` that run side by side, however they were started: nobody else is in any of their namespaces."""
        for slots in (0, 2):
            self.begin(f"slots = {slots}\n")
            if slots and not self.warm_up(self.client, self.around, "host", "none", "pipe"):
                self.fail("no start came from the pool")
            running = [self.run_one() for _ in range(2)]
            everybody = [os.getpid(), self.keeper.pid, *procs.descendants(self.keeper.pid)]
            for tree in running:
                for kind in NAMESPACES:
                    inside = {pid for pid in everybody if namespace(pid, kind) == namespace(tree[1], kind)}
                    self.assertEqual(inside, set(tree), kind)

    def held(self, pid):
        """The kinds of what a process has open. One may go between the two looks: then none of it counts."""
        try:
            return [os.readlink(f"/proc/{pid}/fd/{name}").partition(":")[0] for name in os.listdir(f"/proc/{pid}/fd")]
        except FileNotFoundError:
            return None

    def test_s014_first_process_holds_nothing(self):
        """No capability, one descriptor, no environment: whoever got into it had nothing of the keeper's."""
        for slots in (0, 2):
            self.begin(f"slots = {slots}\n")
            self.warm_up(self.client, self.around, "host", "none", "pipe", tries=12 if slots else 1)
            for root in ("host", "minimal"):
                init, _ = self.run_one(root)
                # It lets go just after the command has been executed.
                procs.wait_until(lambda: self.held(init) == ["socket"], "it has one descriptor, its channel")
                powers = lambda: {status_of(init)[name].strip("0") for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
                procs.wait_until(lambda: powers() == {""}, "it has no capability")
                self.assertEqual(procs.environ(init), [b""])

    def test_s095_b108_mounts(self):
        """All that it sees is nosuid; what can be written is nodev, is what it was given, and is bounded where it is memory."""
        self.begin("slots = 0\n")
        # Places that hold what is injected and what the home's layer is made of; nobody inside can reach them.
        private = {"/tmp", "/tmp/files", "/run", "/dev/shm", str(self.around.home)}
        for root in ("host", "minimal"):
            _, pid = self.run_one(root)
            for mount in mounts(pid):
                with self.subTest(root=root, mount=mount.line):
                    self.assertIn("nosuid", mount.flags)
                    if "rw" not in mount.flags:
                        continue
                    device = mount.path.startswith("/dev/") and mount.path.split("/")[2] in DEVICES
                    self.assertTrue(device or "nodev" in mount.flags)
                    given = mount.path == self.ws or mount.path.startswith(self.ws + "/")
                    self.assertTrue(device or given or mount.path in private, "it was not given to be written")
                    if mount.kind == "tmpfs" and not device:
                        self.assertLessEqual({"size", "nr_inodes"}, set(mount.options))
            top = {mount.path: mount for mount in mounts(pid)}
            self.assertLessEqual({"ro", "nosuid", "nodev", "noexec"}, top["/proc"].flags)
            self.assertIn("ro", top["/"].flags)
            # Not the host's, with its sockets.
            self.assertEqual((top["/run"].kind, top["/run"].options.get("size")), ("tmpfs", "1024k"))

    def test_s052_s045_a_generous_keeper(self):
        """A keeper without limits, and with descriptors that are not its own, hands on neither."""
        self.begin("slots = 0\n", limits=generous_limits, wrap=["sh", "-c", PLANTED, "sh"])
        text = Path(f"/proc/{self.keeper.pid}/limits").read_text()
        # A sanitized program turns off core dumps by itself.
        for name in ("Max locked memory",) if sanitized() else ("Max core file size", "Max locked memory"):
            self.assertRegex(text, name + r" +(unlimited|[1-9]\d*) ", "the control: the keeper has some")
        self.assertEqual([self.met(case) for case in ("S-052", "S-052.locked", "S-045", "S-102")], ["=0_0", "=0_0", "=0", "=0"])

    def test_s117_b111_keeper_in_the_home_and_in_var(self):
        """Where its place is not in /tmp, which is another one inside anyway, and nothing but a cover is in the way."""
        for folder in ("home/.local/state", "."):
            with self.subTest(folder=folder):
                self.around = self.world(owner=self.uid)
                self.ws = str(self.around.workspace)
                state = self.around.base / folder
                state.mkdir(parents=True, exist_ok=True)
                for path in (state, state.parent):
                    if path.is_relative_to(self.around.base):  # the base's own parent is everybody's
                        os.chown(path, self.uid or 0, self.uid or 0)
                self.keeper = self.confined_keeper(self.around, self.uid, "[sandbox]\nslots = 0\n", folder=state)
                self.client = self.keeper.clients[0]
                place = self.keeper.place
                for path in (place.dir, place.socket, place.state, place.state / "audit.log"):
                    path.chmod(0o777)
                self.assertEqual(self.met("S-117.state"), "ENOENT")
                # In the home its name is gone; elsewhere an empty file stands for it.
                self.assertEqual(self.met("S-117"), "EACCES" if folder == "." else "ENOENT")

    def test_s026_abstract_sockets_on_the_hosts_network(self):
        """The one thing of the host's network that is not for use: names in it of other processes."""
        self.begin("slots = 0\n")
        found = self.met("S-026", "host")
        # Older kernels cannot; the record says so.
        holds = self.record["sandbox"]["protections"]["ipc"]["state"] == "enforced"
        self.assertEqual(found, "EPERM" if holds else "ok", self.record["sandbox"])

    def test_s096_workspace_exchanged_after_it_was_checked(self):
        """The folder that was granted and another change names while the start waits: it fails or has the first, never the other."""
        self.begin("slots = 0\n" + NO_SHARES)
        right, other = self.around.base / "right", self.around.base / "other"
        for folder in (right, other):
            folder.mkdir()
            os.chown(folder, self.uid or 0, self.uid or 0)
        args = {"argv": ["touch", "made"], "cwd": str(right), "sandbox": {"workspace": str(right), "network": "none"}}
        self.client.call("wait", id=self.client.call("spawn", **args)["process"]["id"])
        (right / "made").unlink()
        launcher = self.launcher()
        os.kill(launcher, signal.SIGSTOP)
        try:
            known = self.client.call("info")["audit"]["last"]
            request = self.client.submit("spawn", args)
            procs.wait_until(lambda: self.client.call("info")["audit"]["last"] > known, "the start has been checked and handed on")
            self.exchange(right, other)
        finally:
            os.kill(launcher, signal.SIGCONT)
        answer = self.client.item(request)
        if "result" in answer:
            self.client.call("wait", id=answer["result"]["process"]["id"])
            self.assertFalse(self.uid, "a user's keeper has only the name to go by")
        else:
            self.assertIn(answer["error"]["code"], ("sandbox_unavailable", "spawn_failed"), answer)
        self.assertFalse((right / "made").exists(), "the other folder was written")

    def exchange(self, right, other):
        """All that stands in the way of a start is in the other one, too."""
        for entry in right.iterdir():
            made = other / entry.name
            made.mkdir() if entry.is_dir() else made.touch()
            os.chown(made, self.uid or 0, self.uid or 0)
        names = [os.fsencode(path) for path in (right, other)]
        self.assertEqual(ctypes.CDLL(None).renameat2(-100, names[0], -100, names[1], RENAME_EXCHANGE), 0)


class UserLooksTest(LooksTest):
    uid = USER


@unittest.skipUnless(ROOT, "only root makes control groups")
class GroupTest(LooksCase):
    def test_s106_a_group_of_its_own_is_all_that_it_sees(self):
        """Under a limit it is in a group of the keeper's; inside, that is the root of all groups."""
        self.begin()
        args = {"argv": ["cat", "/proc/self/cgroup"], "cwd": self.ws, "sandbox": self.around.sandbox()}
        record = self.client.call("spawn", **args, limits={"memory_bytes": 64 << 20})["process"]
        self.client.call("wait", id=record["id"])
        said = self.output(record["id"]).decode().splitlines()
        self.assertTrue(said)
        self.assertEqual([line for line in said if "coop-" in line], [])
        _, pid = self.run_one(limits={"memory_bytes": 64 << 20})
        self.assertIn("/coop-", Path(f"/proc/{pid}/cgroup").read_text(), "the control")

"""The gateway, the only part that reads what strangers send, has no rights."""

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from lib import procs
from lib.confined import without
from lib.gateway import GatewayCase
from lib.http_client import HttpConnection
from lib.place import COOP, Place, patience, sanitized

OTHER_UID = 65533


class ConfinementTest(GatewayCase):
    """What the kernel says about it while it serves."""

    def status(self):
        """/proc/PID/status of the gateway, by name."""
        lines = Path(f"/proc/{self.gateway.pid}/status").read_text(encoding="ascii").splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def test_it_says_what_holds(self):
        confined = self.gateway.ready["confined"]
        self.assertIn("seccomp", confined)
        if not sanitized():
            self.assertIn("namespaces", confined)

    def test_no_privileges(self):
        status = self.status()
        self.assertEqual(status["NoNewPrivs"], "1")
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(int(status[name], 16), 0, name)
        self.assertEqual(int(status["CapBnd"], 16), 0)

    def test_system_calls_are_filtered(self):
        self.assertEqual(self.status()["Seccomp"], "2")

    def test_one_thread(self):
        self.assertEqual(self.status()["Threads"], "1")

    def test_another_user(self):
        """Of root's the gateway is nobody, without groups."""
        if sanitized():
            return
        status = self.status()
        user = 65534 if os.geteuid() == 0 else os.geteuid()
        self.assertEqual(set(map(int, status["Uid"].split())), {user})
        if os.geteuid() == 0:
            self.assertEqual(set(map(int, status["Gid"].split())), {65534})
            self.assertEqual(status["Groups"].split(), [])

    def test_its_root_is_empty(self):
        """And read-only; so it reaches neither the keeper's sockets nor any other file."""
        if sanitized():
            return
        root = f"/proc/{self.gateway.pid}/root"
        self.assertEqual(os.listdir(root), [])
        mounts = Path(f"/proc/{self.gateway.pid}/mountinfo").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(mounts), 1, mounts)
        self.assertRegex(mounts[0], r" / / ro\b.* - tmpfs ")

    def test_namespaces_of_its_own(self):
        """Without a network, too: it has only the sockets that it was given."""
        if sanitized():
            return
        for kind in ("net", "mnt", "ipc", "uts"):
            inside, outside = (os.readlink(f"/proc/{pid}/ns/{kind}") for pid in (self.gateway.pid, "self"))
            self.assertNotEqual(inside, outside, kind)

    def test_no_core_dumps(self):
        limits = Path(f"/proc/{self.gateway.pid}/limits").read_text(encoding="ascii")
        self.assertRegex(limits, r"Max core file size +0 +0 ")

    def test_descriptors(self):
        """Sockets, pipes and the loop's own; no file and no folder, but /dev/null and the log."""
        if sanitized():
            return
        folder = f"/proc/{self.gateway.pid}/fd"
        strange = []
        for fd in os.listdir(folder):
            target = os.readlink(f"{folder}/{fd}")
            if not re.match(r"(socket|pipe|anon_inode):|/dev/null$", target) and fd != "2":
                strange.append(target)
        self.assertEqual(strange, [])


@unittest.skipUnless(os.geteuid() == 0, "only root's gateway has these steps")
class HalfDoneTest(unittest.TestCase):
    def test_it_serves_nobody(self):
        """A step of the confinement that fails in the middle of it ends the gateway: nobody is served with half of it."""
        if sanitized():  # which makes no namespaces
            return
        procs.become_subreaper()
        for rule in ("mount=EPERM", "pivot_root=EPERM", "umount2=EPERM", "capset=EPERM"):
            with self.subTest(rule):
                place = Place()
                self.addCleanup(place.remove)
                self.addCleanup(procs.assert_no_descendants)
                argv = [*without(rule), str(COOP), "serve", "--json", "--listen", "127.0.0.1:0", "--workspace", str(place.work)]
                env = place.env({"COOP_DATA": str(place.dir / "data")})
                done = subprocess.run(argv, env=env, cwd=place.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience(60))
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(json.loads(done.stdout)["error"]["code"], "unavailable")
                self.assertIn(b"cannot be confined", done.stderr)


class OtherUserTest(unittest.TestCase):
    """The same for a user without rights, who has to make a user namespace for the others."""

    def test_it_is_confined_as_well(self):
        if os.geteuid() != 0 or sanitized():
            return
        procs.become_subreaper()
        place = Place(owner=OTHER_UID)
        self.addCleanup(procs.assert_no_descendants)
        self.addCleanup(place.remove)
        # The build may lie where only its owner may look.
        shutil.copytree(COOP.parent, place.dir / "bin")
        argv = [str(place.dir / "bin" / "coop"), "serve", "--json", "--listen", "127.0.0.1:0", "--workspace", str(place.work)]
        env = place.env({"HOME": str(place.dir), "COOP_DATA": str(place.dir / "data")})
        process = subprocess.Popen(argv, env=env, cwd=place.dir, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   preexec_fn=place.become_owner)
        try:
            ready = json.loads(process.stdout.readline())
            self.assertIn("namespaces", ready["confined"])
            pid = ready["gateway_pids"][0]
            self.assertEqual(os.listdir(f"/proc/{pid}/root"), [])
            self.assertIn("CapEff:\t0000000000000000", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
            host = ready["url"].partition("://")[2]
            with HttpConnection(("127.0.0.1", int(host.rpartition(":")[2])), host) as connection:
                self.assertEqual(connection.request("GET", "/healthz", {}).status, 200)
        finally:
            process.terminate()
            process.wait(patience(30))
            process.stdout.close()

"""Hosts that lack something, made for real: what is required is refused by name, what is tolerated runs and says what does not hold."""

import os
import unittest

from lib.confined import NEW_MOUNT_CALLS, ROOT, USER, ConfinedCase, without
from lib.expected import Expected

NO_SLOTS = "[sandbox]\nslots = 0\ntmp_bytes = 8M\n"
ALL = ["files", "network", "identity", "privileges", "seccomp", "kill"]


@unittest.skipUnless(ROOT, "needs root to make namespaces with limits for another user")
class DegradedTest(ConfinedCase):
    def degraded(self, name, uid=USER, network="none", roots=("host",), **options):
        """The default request, refused or not as the list says; then with everything tolerated the attacks and the report."""
        world = self.world(owner=uid or None)
        # Where /tmp is the host's, filling it stops early.
        world.write_params(TMP_BYTES_MAX=options.pop("tmp_bytes", 1 << 29), TMP_FILES_MAX=50)
        keeper = self.confined_keeper(world, uid, NO_SLOTS, **options)
        client = keeper.clients[0]
        where = {"user" if uid else "root", "pipe", "launched", "few", network}
        expected = Expected(name, where)
        argv, cwd = world.argv("S-001"), str(world.workspace)
        if expected.refused:
            error = self.refusal(client, argv=argv, cwd=cwd, sandbox=world.sandbox(network=network))
            self.assertEqual(error.code, "sandbox_unavailable", error)
            self.assertIn(error.details["protection"], expected.refused, error)
            self.assertTrue(error.details["reason"], error)
            self.assertIn(error.details["protection"], error.message)
            self.assertEqual(world.effects(), set(), "something ran")
            self.assertEqual(client.call("list", include_finished=True)["processes"], [])
        for root in roots:
            record, lines = self.attack(client, world, root=root, network=network, sandbox={"tolerate": ALL})
            whole = all(state == "enforced" for state in expected.report.values())
            self.assertEqual(record["sandbox"]["enforced"], whole, record["sandbox"])
            self.assert_holds(name, where | {root}, record, lines, world)
        return client, world

    def test_b106_b107_no_user_namespaces(self):
        client, world = self.degraded("no-userns", maxima={"user": 0}, tmp_bytes=1 << 20)
        facilities = client.call("doctor")["host"]
        self.assertFalse(facilities["user_namespaces"]["works"], facilities)
        error = self.refusal(client, argv=["true"], cwd=str(world.workspace), sandbox_profile="os_hardened")
        self.assertEqual(error.code, "sandbox_unavailable")
        # Where nothing in it is denied the workspace is for use.
        sandbox = {"workspace": str(world.workspace), "network": "none", "tolerate": ALL}
        record = client.call("spawn", argv=world.argv("S-081"), cwd=str(world.workspace), sandbox=sandbox)["process"]
        client.call("wait", id=record["id"])
        self.assertIn(b'"outcome":"ok"', self.output(record["id"], client=client))

    def test_b106_b107_no_net_namespaces(self):
        client, world = self.degraded("no-netns", maxima={"net": 0})
        # Loopback needs one; there is no way to give it.
        error = self.refusal(client, argv=["true"], cwd=str(world.workspace), sandbox=world.sandbox(network="loopback"))
        self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "network"))

    def test_b106_b107_no_pid_namespaces(self):
        self.degraded("no-pidns", maxima={"pid": 0})

    def test_b107_no_landlock(self):
        self.degraded("no-landlock", wrap=without("landlock_create_ruleset=ENOSYS"), roots=("host", "minimal"))

    def test_b106_b107_no_mount_calls(self):
        rules = [f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS]
        self.degraded("no-mounts", wrap=without(*rules), tmp_bytes=1 << 20)

    def test_b106_b107_no_seccomp(self):
        rules = ("seccomp:0=1=EINVAL", "prctl:0=22=EINVAL")
        self.degraded("no-seccomp", wrap=without(*rules))

    def test_b106_b113_no_control_groups(self):
        """A limit that needs one is refused by its name, or tolerated and told; the rest of the sandbox is as ever."""
        for uid, options in ((USER, {}), (None, {"read_only": "/sys/fs/cgroup"})):
            with self.subTest(user=uid):
                client, world = self.degraded("no-cgroup", uid, **options)
                for field, value in (("memory_bytes", 64 << 20), ("cpu_quota", 0.5)):
                    args = {"argv": ["true"], "cwd": str(world.workspace), "limits": {field: value}}
                    error = self.refusal(client, **args, sandbox=world.sandbox())
                    self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", field), error)
                    record = client.call("spawn", **args, sandbox=world.sandbox(tolerate=[field]))["process"]
                    held = record["sandbox"]["protections"][field]
                    self.assertIn(held["state"], ("none", "partial"), held)
                    self.assertTrue(held["reason"], held)
                    client.call("wait", id=record["id"])

    def test_s121_b106_each_protection_made_unavailable(self):
        """What is required and cannot be had refuses, with its name and the reason; `doctor` says the same beforehand."""
        cases = {
            "seccomp": {"wrap": without("seccomp:0=1=EINVAL", "prctl:0=22=EINVAL")},
            "files": {"wrap": without(*[f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS], "landlock_create_ruleset=ENOSYS")},
            "network": {"maxima": {"user": 0}},
            "kill": {"maxima": {"user": 0}},
            "privileges": {"wrap": without("prctl:0=38=EPERM")},
        }
        for name, options in cases.items():
            with self.subTest(protection=name):
                world = self.world(owner=USER)
                client = self.confined_keeper(world, USER, NO_SLOTS, **options).clients[0]
                told = client.call("doctor")["protections"][name]
                self.assertNotEqual(told["state"], "enforced", told)
                self.assertTrue(told["fix"], told)
                others = [other for other in ALL if other != name]
                sandbox = world.sandbox(tolerate=others)
                error = self.refusal(client, argv=world.argv("S-001"), cwd=str(world.workspace), sandbox=sandbox)
                self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", name), error)
                self.assertTrue(error.details["reason"], error)
                self.assertEqual(os.listdir(world.out), ["file"])

"""Hosts that lack something, made for real: what is required is refused by name, what is tolerated runs and says what does not hold."""

import os
import stat
import unittest

from lib.both_keepers import BothKeepersCase
from lib.confined import NEW_MOUNT_CALLS, ROOT, USER, ConfinedCase, without
from lib.expected import Expected

NO_SLOTS = "[sandbox]\nslots = 0\ntmp_bytes = 8M\n"
ALL = ["files", "network", "identity", "privileges", "seccomp", "kill"]
NO_FILTER = ("seccomp:0=1=EINVAL", "prctl:0=22=EINVAL")
# Connects to a socket, as itself and as an orphan in a session of its own: whether anything came.
HELLOS = """
import os, socket, sys
def hello():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    try:
        s.connect(sys.argv[1])
        return "hello" if s.recv(100) else "nothing"
    except OSError as error:
        return "nothing" if isinstance(error, ConnectionResetError) else error.strerror
print(hello(), flush=True)
alone, answer = os.pipe(), os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.read(alone[0], 1)
        os.write(answer[1], hello().encode())
    os._exit(0)
os.wait()
os.write(alone[1], b"x")
print(os.read(answer[0], 100).decode())
"""


@unittest.skipUnless(ROOT, "needs root to make namespaces with limits for another user")
class DegradedTest(ConfinedCase):
    def degraded(self, name, uid=USER, kinds=("pipe", "pty"), **options):
        """What `degraded_as` does, with a pipe and with a terminal, each with a keeper and a world of its own."""
        for kind in kinds:
            there = self.degraded_as(name, uid, kind, **options)
        return there

    def degraded_as(self, name, uid, kind, network="none", roots=("host",), owner=None, **options):
        """The default request, refused or not as the list says; then with everything tolerated the attacks and the report."""
        world = self.world(owner=owner or uid or None)
        # Where /tmp is the host's, filling it stops early.
        world.write_params(TMP_BYTES_MAX=options.pop("tmp_bytes", 1 << 29), TMP_FILES_MAX=50)
        keeper = self.confined_keeper(world, uid, NO_SLOTS, **options)
        client = keeper.clients[0]
        where = {"user" if uid else "root", kind, "launched", "few", network}
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
            record, lines = self.attack(client, world, kind=kind, root=root, network=network, sandbox={"tolerate": ALL})
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

    def test_b106_b107_root_keeper_no_user_namespaces(self):
        self.degraded("no-userns", None, wrap=without("unshare:0&0x10000000=EPERM"), tmp_bytes=1 << 20)

    def test_b106_b107_root_keeper_no_mount_calls(self):
        rules = [f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS]
        self.degraded("no-mounts", None, wrap=without(*rules), tmp_bytes=1 << 20)

    def test_b106_b107_root_keeper_no_net_namespaces(self):
        self.degraded("no-netns", None, wrap=without("unshare:0&0x40000000=ENOSPC"), roots=("host", "minimal"))

    def test_b106_b107_root_keeper_no_pid_namespaces(self):
        self.degraded("no-pidns", None, wrap=without("unshare:0&0x20000000=ENOSPC"))

    def test_b107_root_keeper_no_landlock(self):
        self.degraded("no-landlock", None, wrap=without("landlock_create_ruleset=ENOSYS"), roots=("host", "minimal"))

    def test_b106_b107_root_keeper_no_seccomp(self):
        self.degraded("no-seccomp", None, wrap=without(*NO_FILTER), owner=USER)

    def test_b106_b107_no_mount_calls(self):
        rules = [f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS]
        self.degraded("no-mounts", wrap=without(*rules), tmp_bytes=1 << 20)

    def test_b106_b107_no_seccomp(self):
        client, world = self.degraded("no-seccomp", wrap=without(*NO_FILTER))
        # To insist on one more is to give up none.
        error = self.refusal(client, argv=world.argv("S-001"), cwd=str(world.workspace), sandbox=world.sandbox(require=["ipc"]))
        self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "seccomp"), error)

    def test_b106_b107_no_seccomp_call(self):
        """Where the call itself is refused the keeper starts all the same, and says so; who does not mind has the rest."""
        for name in ("ENOSYS", "EPERM", "EINVAL"):
            with self.subTest(errno=name):
                world = self.world(owner=USER)
                client = self.confined_keeper(world, USER, NO_SLOTS, wrap=without(f"seccomp={name}")).clients[0]
                told = client.call("doctor")["protections"]["seccomp"]
                self.assertEqual(told["state"], "none", told)
                self.assertTrue(told["reason"] and told["fix"], told)
                args = {"argv": ["sh", "-c", "id -u; echo $PPID"], "cwd": str(world.workspace)}
                error = self.refusal(client, **args, sandbox=world.sandbox())
                self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "seccomp"), error)
                record = client.call("spawn", **args, sandbox=world.sandbox(tolerate=["seccomp"]))["process"]
                self.assertEqual(client.call("wait", id=record["id"])["process"]["exit"]["code"], 0)
                user, parent = self.output(record["id"], client=client).split()
                self.assertEqual((int(user), parent), (USER, b"1"))
                states = {what: held["state"] for what, held in record["sandbox"]["protections"].items()}
                self.assertEqual([what for what in ALL if states[what] != "enforced"], ["seccomp"])

    def test_b111_the_keeper_is_out_of_reach(self):
        """Where no mount hides its socket, the keeper itself turns away what it has confined, and orphans of it; nobody else."""
        no_mounts = [f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS]
        for options in ({"maxima": {"user": 0}}, {"wrap": without(*no_mounts)}, {"wrap": without(*no_mounts, *NO_FILTER)}):
            with self.subTest(options=options):
                world = self.world(owner=USER)
                keeper = self.confined_keeper(world, USER, NO_SLOTS, **options)
                for profile, words in (("workspace-write", {"nothing"}), ("read-only", {"nothing"}), ("full", {"hello"})):
                    sandbox = {"profile": profile} if profile == "full" else {"profile": profile, "tolerate": [*ALL, "ipc"]}
                    said = self.hellos(keeper, str(world.workspace), sandbox)
                    self.assertEqual((set(said), len(said)), (words, 2), profile)
                keeper.connect().call("info")

    def hellos(self, keeper, cwd, sandbox):
        client = keeper.clients[0]
        args = {"argv": ["python3", "-c", HELLOS, str(keeper.place.socket)], "cwd": cwd, "sandbox": sandbox}
        process = client.call("spawn", **args)["process"]["id"]
        client.call("wait", id=process)
        return self.output(process, client=client).decode().split("\n")[:-1]

    def test_b111_limits_of_the_keeper(self):
        """Who sees the host's processes, as the same user, cannot set their limits: one of processor time would end the keeper."""
        script = "import resource, sys\ntry: print(resource.prlimit(int(sys.argv[1]), resource.RLIMIT_CPU, (9999, 9999)))\nexcept OSError: print('refused')"
        own = "import resource; resource.prlimit(0, resource.RLIMIT_CPU, (50, 50)); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); print('set')"
        for network, options in (("none", {"maxima": {"user": 0}}), ("host", {"maxima": {"user": 0}}), ("none", {"maxima": {"pid": 0}})):
            with self.subTest(network=network, options=options):
                world = self.world(owner=USER)
                keeper = self.confined_keeper(world, USER, NO_SLOTS, **options)
                client = keeper.clients[0]
                for words, said in ((["-c", script, str(keeper.pid)], b"refused\n"), (["-c", own], b"set\n")):
                    sandbox = {"workspace": str(world.workspace), "network": network, "tolerate": [*ALL, "ipc"]}
                    process = client.call("spawn", argv=["/usr/bin/python3", *words], cwd=str(world.workspace), sandbox=sandbox)["process"]["id"]
                    client.call("wait", id=process)
                    self.assertEqual(self.output(process, client=client), said)
                client.call("info")

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


class NoFilterTest(BothKeepersCase):
    """Under a keeper of root a command writes as the folder's owner, and only the filter keeps it from set-id files of his."""

    lacks = NO_FILTER
    conf = NO_SLOTS
    script = "cp /usr/bin/id made; chmod u+s made; chmod g+s made; echo ran"

    def set_ids(self):
        """Files of root's that anybody would run as root."""
        found = [path.lstat() for path in self.ws.iterdir()]
        return [st for st in found if st.st_mode & (stat.S_ISUID | stat.S_ISGID) and 0 in (st.st_uid, st.st_gid)]

    @unittest.skipUnless(ROOT, "only root's keeper maps owners")
    def test_s129_no_set_id_files_of_roots(self):
        """Refused, naming identity; not where nothing is written, nor where the folder's owner is somebody else."""
        for tolerate in (["seccomp"], ["seccomp", "identity"], ALL):
            with self.subTest(tolerate=tolerate):
                args = {"argv": ["sh", "-c", self.script], "sandbox": {"workspace": str(self.ws), "tolerate": tolerate}}
                error = self.refusal(**args)
                self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "identity"), error)
                self.assertTrue(error.details["reason"], error)
                self.assertEqual(self.set_ids(), [])
        sandbox = {"workspace": str(self.ws), "profile": "read-only", "tolerate": ["seccomp"]}
        self.assertEqual(self.says("echo ran", sandbox), "ran")
        os.chown(self.ws, USER, USER)
        self.says(self.script, {"workspace": str(self.ws), "tolerate": ["seccomp"]})
        self.assertEqual(self.set_ids(), [])
        self.assertEqual({path.stat().st_uid for path in self.ws.iterdir()}, {USER})

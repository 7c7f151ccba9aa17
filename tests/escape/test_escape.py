"""The attack list against the sandbox: as root and as a user, with pipes and a terminal, both roots, both ways to start."""

import itertools
import os
import platform
import unittest
from pathlib import Path

from lib import procs
from lib.confined import ROOT, USER, ConfinedCase, slots
from lib.world import cases

# A small /tmp, so that filling it takes no time.
NO_SLOTS = "[sandbox]\nslots = 0\ntmp_bytes = 8M\n"
WITH_SLOTS = "[sandbox]\nslots = 4\ntmp_bytes = 8M\n"


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user, with a list of users of their own")
class MatrixTest(ConfinedCase):
    """Every attack meets what expected/full.txt says, and nothing of it is seen outside."""

    def runs(self, uid, conf, start):
        """All kinds and roots with one keeper; the network alternates, so that both are met with both."""
        keeper_is = "user" if uid else "root"
        world = self.world(owner=uid)
        keeper = self.confined_keeper(world, uid, conf)
        client = keeper.clients[0]
        for number, (root, kind) in enumerate(itertools.product(("host", "minimal"), ("pipe", "pty"))):
            network = ("none", "loopback")[(number + bool(uid)) % 2]
            with self.subTest(keeper=keeper_is, start=start, root=root, kind=kind, network=network):
                wanted = start
                if start == "pooled" and not self.warm_up(client, world, root, network, kind):
                    # A user's keeper cannot hand a mount into a root that was left already: those starts are never pooled.
                    self.assertEqual((keeper_is, root), ("user", "minimal"), "no start came from the pool")
                    wanted = "launched"
                world.open_fresh()
                # Filling a folder with files takes a second: once for each keeper.
                world.write_params(TMP_FILES_MAX=50 if number else 300000)
                record, lines = self.attack(client, world, kind, root, network)
                self.assertEqual(record["start"], wanted)
                self.assertEqual(record["sandbox"]["kind"], "namespaces")
                self.assertTrue(record["sandbox"]["enforced"], record["sandbox"])
                where = {keeper_is, kind, root, network, wanted, "few" if number else "many"}
                self.assert_holds("full", where, record, lines, world)
                made = os.stat(world.workspace / "made-inside")
                self.assertEqual(made.st_uid, uid or 0, "what is made in the workspace belongs to its owner")
                self.clear(world)
        return client

    def clear(self, world):
        """What the attacks were allowed to leave."""
        for name in ("made-inside", "to-be-moved", "own-config", "own-mcp", "setid-file"):
            (world.workspace / name).unlink(missing_ok=True)
        for name in ("setid-folder", "other-git"):
            if (world.workspace / name).exists():
                (world.workspace / name).rmdir()

    def test_b108_b112_root_keeper_launched(self):
        self.runs(None, NO_SLOTS, "launched")

    def test_b108_b112_root_keeper_pooled(self):
        client = self.runs(None, WITH_SLOTS, "pooled")
        self.assertGreaterEqual(slots(client)["taken"], 4)

    def test_b108_b112_user_keeper_launched(self):
        self.runs(USER, NO_SLOTS, "launched")

    def test_b108_b112_user_keeper_pooled(self):
        client = self.runs(USER, WITH_SLOTS, "pooled")
        self.assertGreaterEqual(slots(client)["taken"], 2)

    def test_user_without_an_entry_in_the_list_of_users(self):
        """The home is not known then; all else holds."""
        world = self.world(owner=USER)
        keeper = self.confined_keeper(world, USER, NO_SLOTS, entry=False)
        world.write_params(TMP_FILES_MAX=50)
        record, lines = self.attack(keeper.clients[0], world)
        self.assert_holds("no-home", {"user", "pipe", "host", "none", "launched", "few"}, record, lines, world)

    def test_workspace_of_a_stranger_under_a_root_keeper(self):
        """Owned by a third user: what is made there is that user's, and the list holds."""
        world = self.world(owner=USER + 1)
        keeper = self.confined_keeper(world, None, NO_SLOTS)
        world.write_params(TMP_FILES_MAX=50)
        record, lines = self.attack(keeper.clients[0], world)
        self.assertEqual(os.stat(world.workspace / "made-inside").st_uid, USER + 1)
        self.assert_holds("full", {"root", "pipe", "host", "none", "launched", "few"}, record, lines, world)

    def test_read_only_profile(self):
        """`read-only`: the workspace is refused like all else (S-081), the private places are not."""
        world = self.world(owner=0)
        keeper = self.confined_keeper(world, None, NO_SLOTS)
        world.write_params(TMP_FILES_MAX=50)
        record, lines = self.attack(keeper.clients[0], world, sandbox={"profile": "read-only"})
        self.assert_holds("read-only", {"root", "pipe", "host", "none", "launched", "few"}, record, lines, world)
        self.assertFalse((world.workspace / "made-inside").exists())


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user, with a list of users of their own")
class OutsideTest(ConfinedCase):
    """What only somebody outside can see."""

    def test_s126_identity_as_the_host_sees_it(self):
        """No id of a confined process is the host's root, real, effective, saved or for files, nor a group of it."""
        for uid in (None, USER):
            world = self.world(owner=uid)
            client = self.confined_keeper(world, uid, NO_SLOTS).clients[0]
            record = client.call("spawn", argv=["sleep", "300"], cwd=str(world.workspace), sandbox=world.sandbox())["process"]
            for pid in (record["pid"], procs.stat(record["pid"])[1]):
                status = dict(
                    line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
                )
                ids = {*status["Uid"].split(), *status["Gid"].split(), *status["Groups"].split()}
                self.assertNotIn("0", ids, status)
            if not uid:
                self.assertEqual(record["sandbox"]["user"], os.stat(f"/proc/{record['pid']}").st_uid or record["sandbox"]["user"])

    def test_s133_home_is_untouched_after_a_kill(self):
        """Writes to the home succeed inside; after a kill in the middle nothing of them is on disk."""
        for uid in (None, USER):
            world = self.world(owner=uid)
            client = self.confined_keeper(world, uid, NO_SLOTS).clients[0]
            script = f"mkdir -p {world.home}/.cache && echo x >{world.home}/.cache/x && echo written; sleep 300"
            args = {"argv": ["sh", "-c", script], "cwd": str(world.workspace), "sandbox": world.sandbox()}
            record = client.call("spawn", **args)["process"]
            text = procs.wait_until(lambda: client.reply("read", {"id": record["id"]}).bytes(), "it has written")
            self.assertEqual(text, b"written\n")
            self.assertTrue(client.call("kill", id=record["id"])["success"])
            self.assertEqual(world.effects(), set())

    def test_s099_placeholders_go_with_the_last_process(self):
        """They stand while somebody runs, stay for the second when the first ends, and are gone after a kill, too."""
        world = self.world(owner=USER)
        client = self.confined_keeper(world, USER, NO_SLOTS).clients[0]
        args = {"argv": ["sleep", "300"], "cwd": str(world.workspace), "sandbox": world.sandbox()}
        first, second = (client.call("spawn", **args)["process"]["id"] for _ in range(2))
        self.assertIn(".mcp.json", world.ghosts())
        client.call("kill", id=first)
        self.assertIn(".mcp.json", world.ghosts())
        client.call("kill", id=second)
        procs.wait_until(lambda: not world.ghosts(), "placeholders are taken away")
        self.assertEqual(client.call("info")["sandbox"]["ghosts"], 0)

    def test_s099_placeholders_of_a_killed_keeper(self):
        """A keeper that is killed leaves them; the next one of the same place takes them away."""
        world = self.world(owner=0)
        keeper = self.confined_keeper(world, None, NO_SLOTS)
        args = {"argv": ["sleep", "300"], "cwd": str(world.workspace), "sandbox": world.sandbox()}
        keeper.clients[0].call("spawn", **args)
        keeper.kill()
        self.expect_end(keeper)
        self.start_keeper(place=keeper.place)
        procs.wait_until(lambda: not world.ghosts(), "placeholders are taken away")

    def test_s100_hard_links_made_before(self):
        """A hard link to a denied or protected file: the start is refused, naming files, or the link leads nowhere."""
        for case in ("S-100.denied", "S-100.protected"):
            for uid in (None, USER):
                with self.subTest(case=case, user=uid):
                    self.hard_link(case, uid)

    def hard_link(self, case, uid):
        world = self.world(owner=uid, hard_links=True)
        client = self.confined_keeper(world, uid, NO_SLOTS).clients[0]
        answer = client.answer("spawn", {"argv": world.argv(case), "cwd": str(world.workspace), "sandbox": world.sandbox()})
        if "error" in answer:
            self.assertEqual(answer["error"]["code"], "sandbox_unavailable", answer)
            self.assertEqual(answer["error"]["details"]["protection"], "files", answer)
        else:
            client.call("wait", id=answer["result"]["process"]["id"])
            self.assertNotIn(b'"outcome":"ok"', self.output(answer["result"]["process"]["id"], client=client))
        procs.wait_until(lambda: not world.ghosts(), "placeholders are taken away")
        self.assertEqual(world.effects(), set())


# In the keeper's own mount namespace. $1 is mounted on $2 and $3; the second is read-only, and so is $4, mounted on itself.
READ_ONLY = """
mount --bind "$1" "$2" && mount --bind "$1" "$3" && mount -o remount,ro,bind "$3" || exit 1
mount --bind "$4" "$4" && mount -o remount,ro,bind "$4" || exit 1
shift 4
exec "$@"
"""


@unittest.skipUnless(ROOT, "needs root to mount")
class MountsBelowTest(ConfinedCase):
    """What is mounted below a workspace is as it was mounted: a keeper of root maps owners, and takes no read-only mark away."""

    def test_s002_read_only_mounts_stay(self):
        for owner in (0, USER):
            with self.subTest(owner=owner):
                self.mounts(owner)

    def mounts(self, owner):
        world = self.world(owner=owner)
        ws, there = world.workspace, {}
        for name in ("source", "ws/writable", "ws/fixed", "ws/own"):
            there[name] = world.base / name
            there[name].mkdir()
            os.chown(there[name], owner, owner)
        wrap = ["sh", "-c", READ_ONLY, "sh", *(str(path) for path in there.values())]
        client = self.confined_keeper(world, None, NO_SLOTS, wrap=wrap).clients[0]
        script = "for d in . writable fixed own; do (echo x >$d/$1) 2>/dev/null && echo $d; done; echo end"
        for number, more in enumerate(({}, {"allow_write": [str(ws / "fixed")]}, {"workspace": str(ws / "own")})):
            sandbox = {"workspace": str(ws), **more}
            args = {"argv": ["sh", "-c", script, "sh", f"made-{number}"], "cwd": sandbox["workspace"]}
            record = client.call("spawn", **args, sandbox=sandbox)["process"]
            client.call("wait", id=record["id"])
            said = self.output(record["id"], client=client).decode().split()
            self.assertEqual(said, [".", "writable", "end"] if "workspace" not in more else ["end"], more)
        self.assertEqual(sorted(os.listdir(there["source"])), ["made-0", "made-1"])
        self.assertEqual({os.stat(there["source"] / name).st_uid for name in os.listdir(there["source"])}, {owner})
        self.assertEqual(os.listdir(there["ws/own"]), [])


class ListTest(unittest.TestCase):
    def test_every_case_has_its_attack(self):
        """All cases of the specification's list that are made from inside have an attack, and every attack an expected outcome."""
        elsewhere = {94, 96, 105, 108, 119, 120, 121, 122, 123, 124}  # by tests of their own
        wanted = {number for number in range(1, 135) if number not in elsewhere | {*range(109, 117), 118}}
        if platform.machine() != "x86_64":
            wanted -= {21, 67, 68, 69, 70}  # calls that only that machine has
        made = {int(case[2:5]) for case in [*cases(), *cases(alone=True)] if case.startswith("S-")}
        self.assertEqual(made, wanted)

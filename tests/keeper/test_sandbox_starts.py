"""Starts in two steps: the sandbox is being made while the keeper does the rest for the command."""

import os
import time
import unittest

from lib import procs
from lib.client import KeeperError
from lib.keeper import KeeperCase
from lib.place import Place

OTHER_UID = 61235
ROOT = os.geteuid() == 0


class StartsTest(KeeperCase):
    slots = 0

    def test_many_in_a_row(self):
        """The first process and the command's are at work at the same time, on one memory: none disturbs the other."""
        for _ in range(400):
            self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)

    @unittest.skipUnless(ROOT, "needs root to run a keeper as another user")
    def test_refused_while_the_sandbox_is_being_made(self):
        """No placeholder can be put into a folder that is closed: refused by name, nothing is left, the next one starts."""
        place = Place(owner=OTHER_UID)
        work = place.work
        client = self.start_keeper(place=place, before_exec=place.become_owner).clients[0]
        keeper = client.hello["pid"]
        args = {"argv": ["true"], "cwd": str(work), "sandbox": {"workspace": str(work)}}
        client.call("wait", id=client.call("spawn", **args)["process"]["id"])
        procs.wait_until(lambda: client.call("info")["sandbox"]["ghosts"] == 0, "the placeholders to go")
        before, children = procs.fd_count(keeper), set(procs.descendants(keeper))
        os.chmod(work, 0o555)
        for _ in range(20):
            with self.assertRaises(KeeperError) as caught:
                client.call("spawn", **args)
            self.assertEqual((caught.exception.code, caught.exception.details["protection"]), ("sandbox_unavailable", "files"))
        os.chmod(work, 0o755)
        self.assertEqual(os.listdir(work), [])
        self.assertEqual(client.call("wait", id=client.call("spawn", **args)["process"]["id"])["process"]["exit"]["code"], 0)
        procs.wait_until(lambda: set(procs.descendants(keeper)) <= children, "no process to be left")
        procs.wait_until(lambda: procs.fd_count(keeper) <= before, "no descriptor to be left")
        self.assertEqual(client.call("list")["processes"], [])

    @unittest.skipUnless(ROOT, "needs root to run a keeper as another user")
    def test_a_large_view(self):
        """What is denied in the home belongs to what all commands of a kind share, and may be more than one message holds."""
        place = Place(owner=OTHER_UID)
        home = place.dir / "home"
        folders = [home / ("a" * 200) / (f"{number:03}" + "b" * 200) for number in range(200)]
        for folder in folders:
            folder.mkdir(parents=True)
        for path in (home, *home.rglob("*")):
            os.chown(path, OTHER_UID, OTHER_UID)
        client = self.start_keeper(place=place, before_exec=place.become_owner, env={"HOME": str(home)}).clients[0]
        sandbox = {"workspace": str(place.work), "deny_read": [str(folder) for folder in folders]}
        args = {"argv": ["ls", str(folders[0].parent)], "cwd": str(place.work), "env": {"HOME": str(home)}, "sandbox": sandbox}
        record = client.call("wait", id=client.call("spawn", **args)["process"]["id"])["process"]
        self.assertEqual((record["exit"]["code"], record["start"]), (0, "launched"))

    def test_b105_a_required_network_cannot_be_named_away(self):
        """Who asks for the host's network goes without that protection; where the operator always requires it nobody may."""
        place = Place()
        place.conf.write_text("[sandbox]\nalways_require = network\n")
        client = self.start_keeper(place=place).clients[0]
        with self.assertRaises(KeeperError) as caught:
            client.call("spawn", argv=["true"], cwd="/", sandbox={"network": "host"})
        details = caught.exception.details
        self.assertEqual((caught.exception.code, details["protection"], details["tolerable"]), ("sandbox_unavailable", "network", False))
        record = client.call("spawn", argv=["true"], cwd="/")["process"]
        self.assertEqual(record["sandbox"]["protections"]["network"]["state"], "enforced")


if __name__ == "__main__":
    unittest.main()


class PreparedTest(KeeperCase):
    slots = 4

    def test_sandboxes_in_the_making_are_no_strays(self):
        """They are made in the moments after an end: whenever one looks, nobody is without a record."""
        seen = []
        for i in range(300):
            process = self.client.call("spawn", argv=["/bin/true"])["process"]["id"]
            self.client.call("wait", id=process)
            time.sleep(i % 20 * 0.00015)
            seen.append(self.client.call("info")["processes"]["strays"])
        self.assertEqual(sum(seen), 0)

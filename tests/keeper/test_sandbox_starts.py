"""Starts in two steps: the sandbox is being made while the keeper does the rest for the command."""

import os
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


if __name__ == "__main__":
    unittest.main()

"""The networks of sessions: one for all commands of a session, whether they run side by side or one after the other."""

import unittest

from lib import procs
from lib.keeper import KeeperCase


class NetworkTest(KeeperCase):
    slots = 0

    def namespace(self, **args):
        process = self.spawn("readlink", "/proc/self/ns/net", **args)["id"]
        self.ended(process)
        return self.output(process).decode().strip()

    def count(self):
        return self.client.call("info")["sandbox"]["net_namespaces"]

    def wait_count(self, number):
        """A command uses its network until its first process is gone, a moment after its end."""
        procs.wait_until(lambda: self.count() == number, f"{number} networks to be left")

    def test_commands_one_after_the_other_share_it(self):
        first, second = self.namespace(), self.namespace()
        self.assertIn("net:", first)
        self.assertEqual(first, second)
        self.assertEqual(self.count(), 1)

    def test_it_goes_with_its_session(self):
        session = self.client.call("session_new")["session"]["id"]
        own = self.namespace()
        first = self.namespace(session=session)
        self.assertEqual(first, self.namespace(session=session))
        self.assertNotEqual(first, own)
        self.assertEqual(self.count(), 2)
        self.client.call("session_end", id=session)
        self.wait_count(1)
        self.assertEqual(own, self.namespace())

    def test_idle_ones_are_bounded(self):
        sessions = [self.client.call("session_new")["session"]["id"] for _ in range(20)]
        for session in sessions:
            self.namespace(session=session)
        self.wait_count(16)
        for session in sessions:
            self.client.call("session_end", id=session)
        self.wait_count(0)

    def test_none_is_kept_for_a_command_of_its_own(self):
        self.namespace(**self.granted(network="none"))
        self.assertEqual(self.count(), 0)


if __name__ == "__main__":
    unittest.main()

"""Whoever was answered has been told of an end once the socket has taken the answer, and not before."""

import array
import fcntl
import termios

from lib import procs
from lib.keeper import KeeperCase

# More than a socket takes, and less than what keeps events from being written behind it.
OUTPUT = 400 << 10


class ToldCase(KeeperCase):
    profile = "full"
    slots = 0

    def setUp(self):
        super().setUp()
        self.deaf = self.connect()
        self.stuff_with(self.client)

    def stuff_with(self, client):
        """More than the socket takes, so that what comes behind it stays with the keeper."""
        argv = ["sh", "-c", f"head -c {OUTPUT} /dev/zero"]
        talker = client.call("spawn", argv=argv, lease="persistent")["process"]["id"]
        self.ended(talker)
        self.stuffing = ("read", {"id": talker, "stream": "stdout", "cursor": 0, "max": OUTPUT})

    def unread(self):
        """Bytes of the deaf client that the keeper has not read yet."""
        count = array.array("i", [0])
        fcntl.ioctl(self.deaf.socket, termios.TIOCOUTQ, count)
        return count[0]

    def ask_deaf(self, *requests):
        """The keeper has answered them all, and the client reads nothing of that."""
        submitted = []
        # One after another: the keeper fills the socket before it takes the next.
        for op, args in (self.stuffing, *requests):
            submitted.append(self.deaf.submit(op, args))
            procs.wait_until(lambda: not self.unread(), "the keeper has read the request")
            self.client.call("info")
        return submitted

    def take(self, requests):
        return [self.deaf.finish(request) for request in requests]


class ClaimTest(ToldCase):
    def test_record_stays_until_its_starter_has_taken_it(self):
        process = self.deaf.call("spawn", argv=["true"])["process"]["id"]
        procs.wait_until(lambda: self.status(process)["state"] == "exited", "it has ended")
        submitted = self.ask_deaf(("status", {"id": process}))
        self.client.call("gc")
        self.assertFalse(self.status(process)["receipt"], "its starter has not been told yet")
        answer = self.take(submitted)[1].result["process"]
        self.assertEqual((answer["id"], answer["state"]), (process, "exited"))
        self.client.call("gc")
        with self.refused("no_such_process"):
            self.status(process)

    def test_running_one_that_ends_meanwhile_was_not_told(self):
        """The answer says that it runs; that it is taken after the end tells nobody of that."""
        process = self.deaf.call("spawn", argv=["sh", "-c", "read x"], stdin="pipe")["process"]["id"]
        submitted = self.ask_deaf(("status", {"id": process}))
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.assertEqual(self.take(submitted)[1].result["process"]["state"], "running")
        self.client.call("gc")
        self.assertEqual(self.status(process)["state"], "exited")


class OwnerTest(ToldCase):
    """Of an agent's finished records those go first that it has been told of."""

    settings = {"max_finished": 2}

    def setUp(self):
        super().setUp()
        self.agent = self.keeper.agent("main/worker", persistent=True)
        self.deaf.login(self.keeper.token("main/worker")["token"])
        # A persistent record does not count among those that may go.
        self.stuff_with(self.agent)

    def finish_two(self):
        """The older one comes first."""
        ids = [self.agent.call("spawn", argv=["true"])["process"]["id"] for _ in range(2)]
        for process in ids:
            self.ended(process)
        return ids

    def assert_first_is_kept(self, ids):
        """The agent is told of the second one, and one of them has to go as there is a third."""
        self.agent.call("status", id=ids[1])
        self.ended(self.agent.call("spawn", argv=["true"])["process"]["id"])
        self.client.call("list", include_finished=True)
        self.assertEqual([self.status(one)["receipt"] for one in ids], [False, True])

    def test_those_that_were_told_go_first(self):
        """The control: an answer that is taken."""
        self.assert_first_is_kept(self.finish_two())

    def test_answer_that_was_not_taken_does_not_count(self):
        ids = self.finish_two()
        submitted = self.ask_deaf(("status", {"id": ids[0]}))
        self.assert_first_is_kept(ids)
        self.take(submitted)

    def test_answer_that_is_never_taken(self):
        """The connection goes with it."""
        ids = self.finish_two()
        self.ask_deaf(("status", {"id": ids[0]}))
        before = self.client.call("info")["connections"]
        self.deaf.close()
        procs.wait_until(lambda: self.client.call("info")["connections"] < before, "the connection is gone")
        self.assert_first_is_kept(ids)

    def test_event_that_was_not_taken_does_not_count(self):
        self.ask_deaf(("follow_events", {}))
        self.assert_first_is_kept(self.finish_two())

"""Agents that ask for too much at once, or do not read what they asked for: the keeper lives, and others are served."""

import contextlib
import resource
import sqlite3

from lib.agents import AgentCase
from lib.client import KeeperError
from lib.place import sanitized
from lib.procs import wait_until

MIB = 1 << 20
REQUESTS_MAX = 250  # of one connection, a few less than it may have open


@contextlib.contextmanager
def disk_held(place):
    """Nobody else writes to the database: changes wait for it, one after the other."""
    database = sqlite3.connect(place.state / "records.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
        database.close()


class FloodCase(AgentCase):
    def setUp(self):
        super().setUp()
        self.agent = self.keeper.agent("main/a")
        self.token = self.keeper.token("main/a")

    def more(self, count):
        """More connections of the same agent."""
        return [self.connect().login(self.token["token"]) for _ in range(count)]

    def flood(self, client, op, args, count=REQUESTS_MAX):
        """Sends many requests; when this returns the keeper has taken all of them. Gives their ids."""
        ids = client.submit_all([(op, args)] * count + [("describe", {})])
        client.finish(ids[-1])
        return ids[:-1]

    def remember(self, rows=30):
        """Rows of history that make an answer of nearly two MiB."""
        spawns = [("spawn", {"argv": ["true", "x" * 60000]})] * rows
        for request in self.agent.submit_all(spawns):
            self.agent.call("wait", id=self.agent.finish(request).result["process"]["id"])
        wait_until(lambda: self.client.call("info")["records"]["pending"] == 0, "all is written")

    def assert_lives(self):
        self.assertEqual(self.client.call("info")["pid"], self.keeper.pid)
        self.assertIsNone(self.keeper.process.poll())


class ChangesTest(FloodCase):
    def test_thousands_of_refused_changes_wait(self):
        """They are refused one after the other when their turn comes, however little stack there is."""
        self.agent.call("agent_add", agent="same")
        resource.prlimit(self.keeper.pid, resource.RLIMIT_STACK, (MIB, MIB))
        crowd = self.more(16)
        with disk_held(self.keeper.place):
            first = self.client.submit_all([("agent_add", {"agent": f"b{number}"}) for number in range(8)])
            floods = [(client, self.flood(client, "agent_add", {"agent": "same"})) for client in crowd]
        for request in first:
            # While the disk is held they may be told that it cannot be written to.
            with contextlib.suppress(KeeperError):
                self.client.finish(request)
        for client, ids in floods:
            for request in ids:
                self.assertIn("error", client.item(request))
        self.assert_lives()
        self.agent.call("agent_add", agent="other")

    def test_sessions_take_no_ids_of_processes(self):
        """However many there are, the next process has the next number."""
        number = int(self.start(self.agent, "exit 0")["id"].rsplit("-", 1)[1])
        seen = set()
        for _ in range(10):
            made = self.agent.submit_all([("session_new", {})] * 50)
            made = [self.agent.finish(request).result["session"]["id"] for request in made]
            for request in self.agent.submit_all([("session_end", {"id": session}) for session in made]):
                self.agent.finish(request)
            seen.update(made)
        self.assertEqual(len(seen), 500)
        self.assertEqual(int(self.start(self.client, "exit 0")["id"].rsplit("-", 1)[1]), number + 1)

    def test_refused_spawns_leave_short_lines(self):
        """Nobody washes the audit away with words that grow when they are written as JSON."""
        self.client.call("agent_set", agent="a", max_running=0)
        argv = ["x"] + ["\x01" * 4096] * 15 + ["\x02" * 4000]
        for request in self.agent.submit_all([("spawn", {"argv": argv})] * 20):
            with self.assertRaises(KeeperError):
                self.agent.finish(request)
        # Two that are refused for what they are.
        for args in ({"argv": argv, "cwd": "/nowhere/" + "\x01" * 3000}, {"argv": argv, "env": {"A" * 200: "\x01" * 9000}}):
            self.refusal(self.agent, "spawn", **args)
        self.assertTrue(self.client.call("audit_verify")["good"])  # all is in the file then
        lines = (self.keeper.place.state / "audit.log").read_bytes().splitlines()
        self.assertGreaterEqual(len(lines), 22)
        self.assertLess(max(map(len, lines)), 128 << 10)

    def test_long_names_of_variables_do_not_repeat_a_member(self):
        """Names that are the same in the part that a line would show: none of them is there twice."""
        name = "A" * 128
        self.start(self.agent, "exit 0", env={name + "1": "x", name + "2": "y", name: "z"})
        self.assertTrue(self.client.call("audit_verify")["good"])
        lines = (self.keeper.place.state / "audit.log").read_text().splitlines()
        shown = [line.count(f'"{name}"') for line in lines if name in line]
        self.assertEqual(shown, [1])


class QuestionsTest(FloodCase):
    def test_answers_to_nobody_are_bounded(self):
        """History is not read for a client that does not take what it has; when it does, it goes on."""
        self.remember()
        before = self.client.call("info")["memory"]["rss_bytes"]
        idle = self.more(2)
        floods = [self.flood(client, "history", {"limit": 100}) for client in idle]
        # Questions have their turns: behind several of these no other can be that would still be begun.
        for _ in range(4):
            self.client.call("history", limit=1)
        grown = self.client.call("info")["memory"]["rss_bytes"] - before
        self.assertLess(grown, 100 * MIB * (4 if sanitized() else 1))
        for request in floods[0][:8]:
            self.assertEqual(len(idle[0].finish(request).result["processes"]), 30)
        for client in idle:
            client.close()

    def test_revocation_is_not_behind_questions(self):
        """The operator's change does not wait until an agent's hundreds of questions have been answered."""
        self.remember()
        crowd = self.more(2)
        asked = [(client, self.flood(client, "history", {"limit": 100}, 100)) for client in crowd]
        self.assertTrue(self.client.call("token_revoke", id=self.token["id"])["revoked"])
        answered = 0
        for client, ids in asked:
            client.until_closed()
            answered += sum(request in client.answered for request in ids)
        self.assertLess(answered, 100)
        refused = self.connect().answer("login", {"token": self.token["token"]})
        self.assertEqual(refused["error"]["code"], "permission_denied")

    def test_many_questions_of_clients_that_leave(self):
        """They are forgotten; the next question is answered."""
        self.remember(5)
        for client in self.more(4):
            self.flood(client, "history", {})
            client.close()
        self.assertEqual(len(self.agent.call("history")["processes"]), 5)
        self.assert_lives()


class EndingTest(FloodCase):
    def test_follower_whose_login_is_no_login(self):
        """follow_events and a login without a token, in one piece: that connection ends, and nothing else does."""
        self.finish(self.client)
        for login in ({"token": 5}, {}):
            client = self.connect()
            client.submit_all([("follow_events", {}), ("login", login)])
            self.finish(self.client)
            self.assertEqual(client.until_closed()["code"], "permission_denied")
            client.close()
            self.assert_lives()

    def test_follower_that_logs_in(self):
        """A login while something else is asked for is refused, and the connection stays who it was."""
        client = self.connect()
        follow, login = client.submit_all([("follow_events", {}), ("login", {"token": "coop_1_x"})])
        with self.assertRaises(KeeperError) as caught:
            client.finish(login)
        self.assertEqual((caught.exception.code, caught.exception.details["field"]), ("invalid_input", "op"))
        process = self.finish(self.client)["id"]
        wait_until(lambda: client.item(follow).get("process", {}).get("id") == process, "events go on")
        self.assertEqual(client.call("info")["you"], self.client.call("info")["you"])
        client.close()
        self.assert_lives()

    def test_revoked_and_does_not_read(self):
        """What was to end with the connection ends at once, and the connection does not stay either."""
        (client,) = self.more(1)
        script = "head -c 3000000 /dev/zero; exec sleep 300"
        process = self.start(client, script, lease="ephemeral", ring_bytes=8 * MIB)
        wait_until(lambda: self.status(process["id"])["streams"]["stdout"]["end"] == 3000000, "all is written")
        client.submit_all([("read", {"id": process["id"], "max": MIB})] * 3)
        wait_until(lambda: client.socket.recv(1, 2), "it has answers that it does not read")  # MSG_PEEK
        connections = self.client.call("info")["connections"]
        self.client.call("token_revoke", id=self.token["id"])
        ended = wait_until(lambda: self.status(process["id"])["end_cause"], "it ends", timeout=10)
        self.assertEqual(ended, "session_end")
        wait_until(lambda: self.client.call("info")["connections"] < connections, "the connection ends", timeout=15)
        self.assert_gone([process["pid"]])

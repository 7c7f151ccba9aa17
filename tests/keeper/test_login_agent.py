"""A connection that takes rights away from itself: it logs in as an agent below its own, by name."""

import socket
import subprocess
import unittest

from lib.agents import OTHER, OWN, AgentCase
from lib.client import Client, Closed
from lib.place import KEEPER, patience


class LoginAgentTest(AgentCase):
    def setUp(self):
        super().setUp()
        for path in ("main/a", "main/a/x", "main/b"):
            self.client.call("agent_add", agent=path, workspace=[str(self.work.resolve())] if path != "main/a/x" else None)

    def you(self, client):
        return client.call("info")["you"]

    def gate(self, path):
        client = Client(self.client.call("info")["gate"])
        self.keeper.clients.append(client)
        return client.login(self.keeper.token(path)["token"])

    def test_the_users_own_connection_becomes_an_agent(self):
        """By its path in full or from the caller; from then on it is no operator, and what it starts is that agent's."""
        for path in ("main/a", "a", "main/a/x", "a/x"):
            client = self.connect()
            full = path if path.startswith("main/") else f"main/{path}"
            self.assertEqual(client.call("login", agent=path), {"principal": OWN, "agent": full, "operator": False})
            self.assertEqual(self.you(client), {"principal": OWN, "agent": full, "operator": False})
            self.assertEqual(self.finish(client)["agent_path"], full)
            for op in ("shutdown", "reload", "audit_tail"):
                self.assert_refused(client, "permission_denied", op)

    def test_its_own_agent_is_itself_without_the_operators_rights(self):
        client = self.connect()
        self.assertEqual(client.call("login", agent="main"), {"principal": OWN, "agent": "main", "operator": False})
        self.assert_refused(client, "permission_denied", "shutdown")
        self.assertEqual(self.finish(client, "exit 0", sandbox={"workspace": str(self.work)})["agent_path"], "main")

    def test_it_sees_only_what_is_its_own(self):
        mine = self.start(self.client)["id"]
        client = self.connect()
        client.call("login", agent="main/a")
        theirs = self.start(client)["id"]
        self.assert_refused(client, "no_such_process", "status", id=mine)
        self.assertEqual(self.ids(client), [theirs])
        self.assert_alive(self.client, mine, theirs)

    def test_an_agents_connection_goes_further_down(self):
        """After its token, and never up or aside."""
        client = self.gate("main/a")
        self.assertEqual(client.call("login", agent="x")["agent"], "main/a/x")
        self.assertEqual(self.you(client)["agent"], "main/a/x")
        for path in ("main", "main/b", "b", "main/a/y", "../b", "", "main/a/", "self"):
            client = self.gate("main/a")
            self.assertEqual(self.assert_refused(client, "invalid_input", "login", agent=path)["field"], "agent")
            self.assert_refused(client, "permission_denied", "info")

    def test_another_principals_agent_is_not_there(self):
        self.client.call("agent_add", agent="main", principal=OTHER)
        self.client.call("agent_add", agent="main/z", principal=OTHER)
        answers = {}
        for path in ("main/z", "main/nobody", "z"):
            error = self.refusal(self.connect(), "login", agent=path)
            answers[path] = (error.code, error.message, error.details)
        self.assert_same(answers)

    def test_what_is_not_there_leaves_a_connection_without_an_agent(self):
        """Whoever meant to have fewer rights does not go on with more."""
        for args in ({"agent": "main/none"}, {"agent": "a/../b"}, {"agent": 7}, {"agent": "x" * 2000}, {}, {"agent": "a", "token": "coop_1_x"}):
            client = self.connect()
            self.assertIn(self.refusal(client, "login", **args).code, ("invalid_input", "too_large"), args)
            self.assert_refused(client, "permission_denied", "info")
            self.assert_refused(client, "permission_denied", "spawn", argv=["true"])
            self.assert_refused(client, "permission_denied", "login", agent="main/a")
            self.assertEqual(client.call("login", token=self.keeper.token("main/b")["token"])["agent"], "main/b")

    def test_once(self):
        """Neither another name nor a token changes who it is after that."""
        token = self.keeper.token("main")["token"]
        client = self.connect()
        client.call("login", agent="main/a")
        for args in ({"agent": "main/a/x"}, {"agent": "x"}, {"agent": "main/a"}, {"token": token}, {"token": "coop_1_x"}, {"agent": 7}, {}):
            self.assert_refused(client, "invalid_input", "login", **args)
            self.assertEqual(self.you(client)["agent"], "main/a", args)

    def test_only_before_it_does_more_than_look(self):
        client = self.connect()
        client.call("list")
        client.call("gc")
        self.assert_refused(client, "invalid_input", "login", agent="main/a")
        self.assertTrue(self.you(client)["operator"])

    def test_not_with_a_request_open(self):
        client = self.connect()
        process = self.start(self.client)["id"]
        wait = client.submit("wait", {"id": process})
        self.assert_refused(client, "invalid_input", "login", agent="main/a")
        self.client.call("kill", id=process)
        self.assertFalse(client.finish(wait).result["running"])

    def test_nobody_becomes_nobody_else(self):
        client = Client(self.client.call("info")["gate"])
        self.keeper.clients.append(client)
        self.assert_refused(client, "permission_denied", "login", agent="main/a")
        self.assert_refused(client, "permission_denied", "info")

    def test_it_ends_with_its_agent(self):
        client = self.connect()
        client.call("login", agent="main/a/x")
        self.client.call("agent_remove", agent="main/a")
        self.assert_retired(client, "agent_removed")

    def test_what_holds_for_its_token_holds_on(self):
        """Revoked or expired: the connection ends, whoever it has become."""
        token = self.keeper.token("main/a")
        client = self.connect().login(token["token"])
        client.call("login", agent="x")
        self.client.call("token_revoke", id=token["id"])
        self.assert_retired(client, "token_revoked")
        client = self.connect().login(self.keeper.token("main/a", expires_in_ms=1000)["token"])
        client.call("login", agent="x")
        self.assert_retired(client, "token_expired")

    def assert_retired(self, client, reason):
        with self.assertRaises(Closed) as caught:
            client.until_closed()
            raise Closed(client.fatal)
        self.assertEqual(caught.exception.reason["details"]["reason"], reason)

    def test_a_token_that_it_makes_is_no_wider(self):
        client = self.connect()
        client.call("login", agent="main/a")
        self.assertEqual(client.call("token_new")["agent"], "main/a")
        self.assert_refused(client, "invalid_input", "token_new", agent="main/b")


class PrivateTest(AgentCase):
    def test_a_private_keepers_connection_gives_up_its_rights(self):
        """The one connection of a private keeper may be `main` without the operator's rights."""
        place = self.keeper.place
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        env = place.env({"COOP_SOCKET": str(place.dir / "none.sock"), "COOP_STATE": str(place.dir / "none")})
        process = subprocess.Popen([str(KEEPER), "--private", str(theirs.fileno())], env=env, stdin=subprocess.DEVNULL,
                                   pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        with Client(ours) as client:
            self.assertEqual(client.call("login", agent="main")["operator"], False)
            self.assertEqual(client.answer("shutdown")["error"]["code"], "permission_denied")
        self.assertEqual(process.wait(patience(30)), 0)


if __name__ == "__main__":
    unittest.main()

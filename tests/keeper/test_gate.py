"""The gate: a second socket, where a connection is nobody until it shows a token."""

import os
import stat

from lib.agents import OWN, AgentCase
from lib.place import Place
from lib.procs import wait_until

GATED = [("info", {}), ("list", {}), ("spawn", {"argv": ["true"]}), ("shutdown", {}), ("agent_add", {"agent": "x"}),
         ("token_new", {}), ("follow_events", {}), ("history", {}), ("status", {"id": "psh-1-1"})]


class GateTest(AgentCase):
    def gate(self):
        return self.connect_to(self.client.call("info")["gate"])

    def connect_to(self, path):
        client = type(self.client)(path)
        self.keeper.clients.append(client)
        return client

    def test_it_is_beside_the_socket_and_the_users_own(self):
        """`info` names it; its mode is 0600; it goes with the keeper."""
        path = self.client.call("info")["gate"]
        self.assertEqual(path, f"{self.keeper.place.socket}.gate")
        mode = os.stat(path).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode) & 0o077, 0, oct(mode))
        self.client.call("shutdown", grace_ms=0)
        self.expect_end(self.keeper, [0])
        self.assertFalse(os.path.lexists(path))

    def test_a_connection_is_nobody_until_it_logs_in(self):
        """Nothing but `describe` and `login`, of which a wrong one changes nothing."""
        client = self.gate()
        for op, args in GATED:
            self.assert_refused(client, "permission_denied", op, **args)
        self.assertTrue(client.call("describe")["operations"])
        self.assert_refused(client, "permission_denied", "login", token="coop_1_x")
        self.assert_refused(client, "invalid_input", "login", token=7)
        for op, args in GATED:
            self.assert_refused(client, "permission_denied", op, **args)
        self.assertEqual(self.client.call("list")["processes"], [])

    def test_a_login_makes_it_the_tokens_agent_and_never_the_operator(self):
        self.client.call("agent_add", agent="main/tester")
        for path in ("main", "main/tester"):
            client = self.gate().login(self.keeper.token(path)["token"])
            self.assertEqual(client.call("info")["you"], {"principal": OWN, "agent": path, "operator": False})
            self.assert_refused(client, "permission_denied", "shutdown")
            self.assertIsNone(client.call("info")["gate"])

    def test_many_are_served_side_by_side(self):
        """Requests of nobody are answered while others work, and a connection that only waits costs nothing else."""
        token = self.keeper.token("main")["token"]
        idle = [self.gate() for _ in range(20)]
        working = [self.gate().login(token) for _ in range(20)]
        for client in working:
            self.finish(client)
        for client in idle:
            self.assert_refused(client, "permission_denied", "list")
            self.finish(client.login(token))

    def test_one_that_a_dead_keeper_left_is_replaced(self):
        """A file in its place is not: the keeper serves without a gate then, and says so."""
        place = Place()
        keeper = self.start_keeper(place=place)
        self.assertTrue(os.path.lexists(f"{place.socket}.gate"))
        keeper.kill()
        keeper.wait_gone()
        keeper.ended = True
        self.assertTrue(os.path.lexists(f"{place.socket}.gate"))
        again = Place()
        again.socket = place.socket
        keeper = self.start_keeper(place=again)
        gate = keeper.clients[0].call("info")["gate"]
        self.assert_refused(self.connect_to(gate), "permission_denied", "list")

    def test_without_room_for_its_path_there_is_none(self):
        place = Place()
        place.socket = place.dir / ("s" * (107 - len(str(place.dir)) - 1))
        keeper = self.start_keeper(place=place)
        self.assertIsNone(keeper.clients[0].call("info")["gate"])
        wait_until(lambda: "there is no gate" in place.log.read_text(), "a line of the log")

    def test_a_file_in_its_place_stays(self):
        place = Place()
        other = place.dir / "keeper.sock.gate"
        other.write_text("mine")
        keeper = self.start_keeper(place=place)
        self.assertIsNone(keeper.clients[0].call("info")["gate"])
        self.assertEqual(other.read_text(), "mine")

    def test_commands_do_not_see_it(self):
        """Neither by its name nor by a connection."""
        path = self.client.call("info")["gate"]
        _, out, _ = self.run_sh(f"ls -la {os.path.dirname(path)} | grep -c gate; test -S {path} && echo there || echo not")
        self.assertIn(b"not", out)

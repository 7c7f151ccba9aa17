"""Connections: a share for each agent and for those who have not logged in, some kept for the owner, and a deadline."""

import json
import socket
import struct
import subprocess

from lib.agents import OTHER, AgentCase
from lib.client import Client, Closed, KeeperError, json_frame
from lib.place import COOP, Place
from lib.procs import wait_until

KIB = 1 << 10


class AdmissionCase(AgentCase):
    settings = {"max_connections": 40, "agent_max_connections": 8, "login_max_connections": 6}

    def gate_path(self):
        return self.client.call("info")["gate"]

    def at_gate(self, path):
        client = Client(path)
        self.keeper.clients.append(client)
        return client

    def open_all(self, token, path=None, most=100):
        """Logs in until it is refused; the connections, and the refusal."""
        path, clients = path or self.gate_path(), []
        for _ in range(most):
            try:
                clients.append(self.at_gate(path).login(token))
            except (KeeperError, Closed) as error:
                return clients, error
        self.fail(f"{most} connections were taken")

    def assert_owner_works(self):
        """The owner's own command line: a connection of its own."""
        place = self.keeper.place
        done = subprocess.run([COOP, "ps", "--json"], env=place.env(), capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        json.loads(done.stdout)


class SharesTest(AdmissionCase):
    def test_an_agent_has_a_share(self):
        """Beyond it a login is refused with `quota`, and what is open goes on; others log in; it ends with a connection."""
        self.client.call("agent_add", agent="main/a")
        self.client.call("agent_add", agent="main/b")
        tokens = [self.keeper.token("main/a")["token"] for _ in range(2)]
        clients, refusal = self.open_all(tokens[0])
        self.assertEqual((refusal.code, refusal.details), ("quota", {"scope": "agent", "limit": 8}))
        self.assertEqual(len(clients), 8)
        error = self.refusal(self.at_gate(self.gate_path()), "login", token=tokens[1])
        self.assertEqual(error.code, "quota", "another token of the same agent")
        for client in clients:
            self.assertEqual(client.call("info")["you"]["agent"], "main/a")
        self.finish(self.at_gate(self.gate_path()).login(self.keeper.token("main/b")["token"]))
        self.assert_owner_works()
        clients.pop().close()
        wait_until(lambda: self.logs_in(tokens[1]), "there is room again")

    def logs_in(self, token):
        client = self.at_gate(self.gate_path())
        try:
            return client.login(token)
        except KeeperError as error:
            self.assertEqual(error.code, "quota")
            client.close()
            return None

    def test_agents_below_count_for_those_above(self):
        """What an agent adds below itself gives it no more connections."""
        self.client.call("agent_add", agent="main/a")
        above, _ = self.open_all(self.keeper.token("main/a")["token"])
        for client in above[4:]:
            client.close()
        wait_until(lambda: self.client.call("info")["connections"] <= 6, "they are gone")
        taken = 0
        for name in ("x", "y", "z"):
            above[0].call("agent_add", agent=name)
            token = above[0].call("token_new", agent=name)["token"]
            clients, refusal = self.open_all(token)
            taken += len(clients)
            self.assertEqual(refusal.code, "quota")
        self.assertEqual(taken, 4)
        self.assertEqual(refusal.details["scope"], "ancestor")

    def test_agents_together_leave_the_owner_his(self):
        """Many agents, one principal's and another's, and main's own token open all that they can."""
        self.client.call("agent_add", agent="main", principal=OTHER)
        tokens = [self.keeper.token("main", OTHER)["token"]]
        for name in "abcdefgh":
            self.client.call("agent_add", agent=f"main/{name}")
            tokens.append(self.keeper.token(f"main/{name}")["token"])
        tokens.append(self.keeper.token("main")["token"])
        path, counts = self.gate_path(), []
        for token in tokens:
            clients, refusal = self.open_all(token, path)
            self.assertEqual(refusal.code, "quota")
            counts.append(len(clients))
        self.assertEqual(counts[0], 8)
        self.assertLessEqual(sum(counts), 35)
        self.assertGreater(sum(counts), 20)
        self.assert_owner_works()
        self.assertEqual(len([self.connect() for _ in range(3)]), 3)
        self.assertGreaterEqual(self.client.call("metrics")["connections_refused"], len(tokens))

    def test_through_the_owners_socket_a_token_counts_as_well(self):
        """A program that logs in there uses its agent's share; refused, it is nobody, not the owner."""
        self.client.call("agent_add", agent="main/a")
        token = self.keeper.token("main/a")["token"]
        _, refusal = self.open_all(token, self.keeper.place.socket)
        self.assertEqual(refusal.code, "quota")
        client = self.connect()
        self.assert_refused(client, "quota", "login", token=token)
        self.assert_refused(client, "permission_denied", "list")
        env = {**self.keeper.place.env(), "COOP_TOKEN": token}
        done = subprocess.run([COOP, "ps"], env=env, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("connections", done.stderr)
        self.assert_owner_works()

    def test_few_descriptors(self):
        """Where few files may be open agents and strangers have no more than half: processes need them, too."""
        import resource

        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))

        keeper = self.start_keeper({"max_connections": 4096, "agent_max_connections": 4096}, before_exec=few)
        self.keeper, self.client = keeper, keeper.clients[0]
        tokens = [self.keeper.token("main")["token"]]
        clients, refusal = self.open_all(tokens[0], most=200)
        self.assertEqual(refusal.code, "quota")
        self.assertLessEqual(len(clients), 80)
        strangers = [socket.socket(socket.AF_UNIX) for _ in range(200)]
        for stranger in strangers:
            self.addCleanup(stranger.close)
            stranger.connect(self.gate_path())
        self.assert_owner_works()
        self.finish(clients[0])
        self.finish(self.connect())


class StrangersTest(AdmissionCase):
    def test_strangers_at_the_gate(self):
        """Hundreds that connect and say nothing: the oldest is cut, with the reason, and a client that logs in is served."""
        token, path = self.keeper.token("main")["token"], self.gate_path()
        strangers = [Client(path) for _ in range(60)]
        for stranger in strangers:
            self.addCleanup(stranger.close)
        client = self.at_gate(path).login(token)
        self.finish(client)
        self.assert_owner_works()
        reason = strangers[0].until_closed(timeout=20)
        self.assertEqual((reason["code"], reason["details"]["reason"]), ("quota", "login_crowd"))
        metrics = self.client.call("metrics")
        self.assertLessEqual(metrics["connections_waiting"], 6)
        self.assertIn(metrics["connections_cut"], range(50, 100))
        self.assertLessEqual(metrics["connections"], 20)

    def test_more_than_may_be_is_told(self):
        """The owner himself may have them all; the next one hears why, in the place of a hello."""
        clients = [self.connect() for _ in range(self.settings["max_connections"] - 1)]
        gate = self.gate_path()
        for path in (self.keeper.place.socket, gate):
            reason = Client(path, hello=False).until_closed(timeout=20)
            self.assertEqual((reason["code"], reason["details"]), ("quota", {"scope": "connections", "limit": 40}))
        done = subprocess.run([COOP, "ps"], env=self.keeper.place.env(), capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no more connections", done.stderr)
        self.assertEqual(clients[-1].call("info")["connections"], 40)


class BeforeLoginTest(AdmissionCase):
    def test_large_frames(self):
        """One of more than 64 KiB ends the connection from its header on; after the login it is taken."""
        for kind in (b"J", b"D"):
            client = self.at_gate(self.gate_path())
            client.send_raw(struct.pack("<I", 64 * KIB + 1) + kind + bytes(3))
            reason = client.until_closed(timeout=20)
            self.assertEqual(reason["code"], "too_large")
            self.assertIn("64 KiB", reason["message"])
        client = self.at_gate(self.gate_path()).login(self.keeper.token("main")["token"])
        record = self.finish(client, ": " + "x" * 100 * KIB)
        self.assertEqual(record["exit"]["code"], 0)

    def test_the_largest_that_may_be(self):
        client = self.at_gate(self.gate_path())
        frame = json_frame({"id": 1, "op": "list", "args": {"x": ""}})
        frame = json_frame({"id": 1, "op": "list", "args": {"x": "y" * (64 * KIB - len(frame) + 8)}})
        self.assertEqual(len(frame), 64 * KIB + 8)
        with self.assertRaises(KeeperError) as caught:
            client.finish(client.submit_raw(lambda _: frame), timeout=20)
        self.assertEqual(caught.exception.code, "permission_denied")

    def test_the_same_for_one_that_failed_to_log_in_at_the_owners_socket(self):
        client = self.connect()
        self.assert_refused(client, "permission_denied", "login", token="coop_1_x")
        client.send_raw(struct.pack("<I", 64 * KIB + 1) + b"J" + bytes(3))
        self.assertEqual(client.until_closed(timeout=20)["code"], "too_large")

    def test_bytes_are_not_collected(self):
        """A request that brings bytes is refused before they come, and they are passed over."""
        client = self.at_gate(self.gate_path())
        request = client.submit_raw(lambda id: json_frame({"id": id, "op": "spawn", "args": {"argv": ["true"]}, "data": 16 << 20}))
        with self.assertRaises(KeeperError) as caught:
            client.finish(request, timeout=20)
        self.assertEqual(caught.exception.code, "permission_denied")

    def test_answers_that_are_not_read(self):
        """Of a connection that asks and does not read no more is taken than a little."""
        client = self.at_gate(self.gate_path())
        client.socket.setblocking(False)
        frame, sent = json_frame({"id": 1, "op": "describe"}) * 100, 0
        try:
            while sent < 8 << 20:
                sent += client.socket.send(frame)
        except BlockingIOError:
            pass
        self.assertLess(self.client.call("info")["memory"]["buffer_bytes"], 4 << 20)
        self.assertLess(sent, 8 << 20)


class DeadlineTest(AdmissionCase):
    settings = {"login_timeout_ms": 600}

    def test_a_login_that_does_not_come(self):
        """The connection is cut with the reason, also one that keeps asking or hangs in a frame; who logged in stays."""
        token, path = self.keeper.token("main")["token"], self.gate_path()
        member = self.at_gate(path).login(token)
        silent, half, asking = (self.at_gate(path) for _ in range(3))
        half.send_raw(json_frame({"id": 1, "op": "login", "args": {"token": token}})[:-1])
        asking.call("describe")
        for client in (silent, half, asking):
            reason = client.until_closed(timeout=30)
            self.assertEqual((reason["code"], reason["details"]["reason"]), ("permission_denied", "login_timeout"))
        self.finish(member)
        self.assertIn(self.client.call("metrics")["connections_cut"], range(3, 20))
        self.finish(self.connect())

    def test_a_failed_login_at_the_owners_socket(self):
        client = self.connect()
        self.assert_refused(client, "permission_denied", "login", token="coop_1_x")
        self.assertEqual(client.until_closed(timeout=30)["details"]["reason"], "login_timeout")

    def test_it_can_be_set(self):
        place = Place()
        place.conf.parent.mkdir(parents=True, exist_ok=True)
        keeper = self.start_keeper({"login_timeout_ms": "1m"}, place=place)
        self.assertEqual(keeper.clients[0].call("info")["settings"]["login_timeout_ms"], 60000)

"""Sessions, and what ends with them or with a connection (B-121, B-122)."""

import contextlib

from lib import procs
from lib.agents import OTHER, AgentCase
from lib.client import KeeperError

POLITE = "trap 'echo term; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


class SessionTest(AgentCase):
    def session(self, client, **args):
        return client.call("session_new", **args)["session"]["id"]

    def ready(self, client, script, **args):
        """Starts a script and waits until its traps are set."""
        record = self.start(client, script, **args)
        self.line(client, record["id"])
        return record

    def test_b121_end_of_a_session(self):
        """Its awaited and ephemeral ones get TERM, the grace, KILL before the end is confirmed; persistent ones and all others stay."""
        session, other = self.session(self.client, label="wo\nrk"), self.session(self.client)
        polite, stubborn = (self.ready(self.client, script, session=session) for script in (POLITE, STUBBORN))
        short = self.start(self.client, lease="ephemeral", session=session)
        kept = self.start(self.client, lease="persistent", session=session)["id"]
        beside = [self.start(self.client, session=other)["id"], self.start(self.client)["id"]]
        listed = {item["id"]: item for item in self.client.call("session_list")["sessions"]}[session]
        self.assertEqual((listed["label"], listed["agent"], listed["agent_path"], listed["processes"]), ("work", "self", "main", 4))
        self.assertIsNone(listed["expires_at"])
        answer = self.client.call("session_end", id=session, grace_ms=700)
        self.assert_gone([record["pid"] for record in (polite, stubborn, short)])
        self.assertEqual(answer, {"ended": 3, "survivors": 0})
        ends = {record["id"]: self.status(record["id"]) for record in (polite, stubborn, short)}
        self.assertEqual([end["end_cause"] for end in ends.values()], ["session_end"] * 3)
        self.assertEqual(ends[polite["id"]]["exit"]["code"], 7)
        self.assertEqual(self.output(polite["id"]), b"ready\nterm\n")
        self.assertEqual(ends[stubborn["id"]]["exit"]["signal"], 9)
        self.assertEqual(ends[short["id"]]["exit"]["signal"], 15)
        evidence = ends[stubborn["id"]]["end_evidence"]
        self.assertEqual((evidence["agent"], evidence["request"], evidence["wait_status"]), ("main", "session_end", 9))
        self.assertEqual(ends[polite["id"]]["session"], session)
        self.assert_alive(self.client, kept, *beside)

    def test_b121_trees_end_with_the_session(self):
        """Also what left its leader: a session's end leaves nothing of an awaited tree."""
        session = self.session(self.client)
        left = self.start(self.client, "setsid sleep 300 & echo $!; exit 0", session=session)["id"]
        orphan = self.outside(left, self.line(self.client, left))
        self.ended(left)
        live = self.ready(self.client, "setsid sh -c 'sleep 300 & sleep 300' & echo ready; exec sleep 300", session=session)
        tree = procs.descendants(live["pid"])
        self.assertEqual(self.client.call("session_end", id=session, grace_ms=0)["survivors"], 0)
        self.assert_gone([orphan, live["pid"], *tree])
        self.assertEqual(self.status(left)["end_cause"], "self_exit")

    def test_b121_no_session_named(self):
        """Processes without one are in the agent's default session, which lasts: null in the record, `default` in lists."""
        who = self.keeper.agent("main/a")
        session = self.session(who)
        plain, grouped = self.start(who)["id"], self.start(who, session=session)["id"]
        self.assertIsNone(who.call("status", id=plain)["process"]["session"])
        self.assertEqual(who.call("status", id=grouped)["process"]["session"], session)
        self.assertEqual(self.ids(who, session="default"), [plain])
        self.assertEqual(self.ids(who, session=session), [grouped])
        self.assertEqual(self.ids(self.client, session=session), [grouped])
        who.call("session_end", id=session)
        self.assertEqual(self.ids(who), [plain])

    def test_b121_ended_session_takes_nothing(self):
        """No spawn goes into it, it is not listed, and it does not end twice."""
        session = self.session(self.client)
        self.assertEqual(self.client.call("session_end", id=session), {"ended": 0, "survivors": 0})
        self.assertEqual(self.assert_refused(self.client, "invalid_input", "spawn", argv=["true"], session=session), {"field": "session"})
        self.assertEqual(self.assert_refused(self.client, "invalid_input", "session_end", id=session), {"field": "id"})
        self.assertEqual(self.client.call("session_list")["sessions"], [])

    def test_b121_spawns_while_the_session_ends(self):
        """Several connections start more in it while it ends: when that is confirmed, none of them lives."""
        session = self.session(self.client)
        clients = [self.connect() for _ in range(3)]
        script = "setsid sleep 300 & exec sleep 300"
        requests = [(client, request) for client in clients
                    for request in client.submit_all([("spawn", {"argv": ["sh", "-c", script], "session": session})] * 15)]
        self.assertEqual(self.client.call("session_end", id=session, grace_ms=100)["survivors"], 0)
        after = self.ids(self.client, session=session)
        pids = []
        for client, request in requests:
            with contextlib.suppress(KeeperError):
                pids.append(client.finish(request).result["process"]["pid"])
        self.assertEqual((after, self.ids(self.client)), ([], []))
        self.assert_gone(pids)
        for record in self.client.call("list", include_finished=True)["processes"]:
            self.assertEqual(record["end_cause"], "session_end")

    def test_b121_session_with_a_lifetime(self):
        """Past its max_lifetime_ms it ends by itself, with what is in it and nothing else."""
        session = self.client.call("session_new", max_lifetime_ms=800)["session"]
        self.assertGreater(session["expires_at"], session["created_at"])
        inside, outside = self.start(self.client, session=session["id"])["id"], self.start(self.client)["id"]
        end = self.ended(inside)
        self.assertEqual((end["end_cause"], end["exit"]["signal"]), ("session_end", 15))
        procs.wait_until(lambda: not self.client.call("session_list")["sessions"], "it is not listed any more")
        self.assert_refused(self.client, "invalid_input", "spawn", argv=["true"], session=session["id"])
        self.assert_alive(self.client, outside)
        self.assert_refused(self.client, "invalid_input", "session_new", max_lifetime_ms=0)

    def test_b121_sessions_are_an_agents_own(self):
        """Those above see a session with its owner's label; only its own agent may use or end it; ids are never the same."""
        who = self.family()
        sessions = {name: self.session(client) for name, client in who.items()}
        self.assertEqual(len(set(sessions.values())), len(sessions))
        shown = {item["id"]: (item["agent"], item["agent_path"]) for item in who["a"].call("session_list")["sessions"]}
        self.assertEqual(shown, {sessions["a"]: ("self", "main/a"), sessions["x"]: ("x", "main/a/x")})
        shown = {item["id"] for item in self.client.call("session_list")["sessions"]}
        self.assertEqual(shown, {sessions[name] for name in ("a", "x", "b")})
        process = self.start(who["x"], session=sessions["x"])["id"]
        for client in (who["a"], self.client, who["b"], who["alice"]):
            self.assertEqual(self.assert_refused(client, "invalid_input", "session_end", id=sessions["x"]), {"field": "id"})
            self.assert_refused(client, "invalid_input", "spawn", argv=["true"], session=sessions["x"])
        self.assert_alive(who["x"], process)

    def test_sessions_are_bounded(self):
        """As many per agent as the setting says; another agent has its own; an ended one makes room."""
        keeper = self.start_keeper({"max_sessions": 2})
        client, other = keeper.clients[0], keeper.agent("main/a")
        first = self.session(client)
        self.session(client)
        error = self.refusal(client, "session_new")
        self.assertIn(error.code, ("quota", "registry_full"))
        self.assertEqual(error.details["limit"], 2)
        self.session(other)
        client.call("session_end", id=first)
        self.session(client)

    def test_b121_two_end_it_at_once(self):
        """The second is answered, too, and what is confirmed is so for both."""
        session = self.session(self.client)
        process = self.ready(self.client, STUBBORN, session=session)
        other = self.connect()
        requests = [(client, client.submit("session_end", {"id": session, "grace_ms": 400})) for client in (self.client, other)]
        answers = []
        for client, request in requests:
            try:
                answers.append(client.finish(request).result)
            except KeeperError as error:
                self.assertEqual(error.details, {"field": "id"})
        self.assertGreaterEqual(len(answers), 1)
        self.assertEqual(answers[0]["survivors"], 0)
        self.assert_gone([process["pid"]])


class ConnectionTest(AgentCase):
    def test_b122_loss_of_a_connection_ends_only_its_ephemeral_ones(self):
        """Not what others of the same agent started, nor what is awaited or persistent, nor what was kept."""
        self.client.call("agent_add", agent="main/a", persistent=True)
        lost, other = self.keeper.login("main/a"), self.keeper.login("main/a")
        gone = self.start(lost, "setsid sleep 300 & exec sleep 300", lease="ephemeral")
        tree = procs.wait_until(lambda: procs.descendants(gone["pid"]), "it has a child")
        stay = [self.start(client, lease=lease)["id"] for client, lease in
                ((lost, "awaited"), (lost, "persistent"), (other, "ephemeral"), (self.client, "ephemeral"))]
        kept = self.start(lost, lease="ephemeral")["id"]
        self.assertEqual(lost.call("keep", id=kept)["process"]["lease"], "awaited")
        lost.close()
        end = other.call("wait", id=gone["id"])["process"]
        self.assertEqual(end["end_cause"], "session_end")
        procs.wait_until(lambda: not any(procs.alive(pid) for pid in [gone["pid"], *tree]), "its tree is gone")
        self.assert_alive(self.client, *stay, kept)

    def test_b122_returning_client_finds_its_processes(self):
        """By list, with the same identity; it is the owner as before. Another identity finds none of them."""
        who = self.keeper.agent("main", OTHER)
        process = self.start(who, "read x; echo back $x; exec cat", stdin="pipe", tag="job")["id"]
        session = who.call("session_new")["session"]["id"]
        grouped = self.start(who, session=session)["id"]
        who.close()
        again = self.keeper.login("main", OTHER)
        self.assertEqual(self.ids(again), [process, grouped])
        self.assertEqual([record["agent"] for record in again.call("list")["processes"]], ["self", "self"])
        self.assertEqual([item["id"] for item in again.call("session_list")["sessions"]], [session])
        again.reply("write_stdin", {"id": "job"}, b"here\n")
        self.assertEqual(self.line(again, process), "back here")
        self.assertEqual(self.ids(self.client), [])
        self.assertEqual(again.call("session_end", id=session)["ended"], 1)

    def test_b122_many_connections_go_at_once(self):
        """Forty connections with one ephemeral process each, half of them cut: exactly those end."""
        self.client.call("agent_add", agent="main/a")
        token = self.keeper.token("main/a")["token"]
        clients = [self.connect().login(token) for _ in range(40)]
        ids = [self.start(client, lease="ephemeral")["id"] for client in clients]
        for client in clients[::2]:
            client.close()
        for process in ids[::2]:
            self.assertEqual(self.ended(process)["end_cause"], "session_end")
        self.assertEqual(self.ids(self.client), ids[1::2])

"""Quotas of agents, of those above them, of principals and of the host (B-080 to B-084). A file that a command makes as its
first deed proves what was started: it outlives the process."""

import threading

from lib import procs
from lib.agents import OTHER, AgentCase
from lib.client import KeeperError

KIB = 1 << 10
RING = 64 * KIB


class QuotaCase(AgentCase):
    def setUp(self):
        super().setUp()
        self.marks = self.work / "marks"
        self.marks.mkdir()

    def marking(self):
        """A command that leaves a mark and stays."""
        return ["sh", "-c", f"mktemp {self.marks}/XXXXXXXXXX; exec sleep 300"]

    def count_marks(self):
        return len(list(self.marks.iterdir()))

    def full(self, client, code, scope, limit, in_use, **args):
        """One more spawn is refused with these details, and leaves no mark."""
        before = self.count_marks()
        details = self.assert_refused(client, code, "spawn", argv=self.marking(), **self.granted(), **args)
        self.assertEqual(details, {"scope": scope, "limit": limit, "in_use": in_use})
        self.assertEqual(self.count_marks(), before)

    def fill(self, client, count, **args):
        return [self.start(client, **args)["id"] for _ in range(count)]


class RunningTest(QuotaCase):
    def test_b080_third_of_two(self):
        """With max_running 2 the third is registry_full naming 2; nothing was started; after an end the next succeeds."""
        who = self.keeper.agent("main/a", max_running=2)
        first, _ = self.fill(who, 2)
        self.full(who, "registry_full", "agent", 2, 2)
        self.full(who, "registry_full", "agent", 2, 2, kind="pty")
        who.call("kill", id=first)
        third = self.start(who)["id"]
        self.full(who, "registry_full", "agent", 2, 2)
        self.assert_alive(who, third)
        use = self.client.call("agent_show", agent="a")["agent"]["use"]
        self.assertEqual((use["running"], use["finished"]), (2, 1))
        for id, left in ((first, (2, 0)), (third, (1, 0))):
            who.call("release", id=id)
            use = self.client.call("agent_show", agent="a")["agent"]["use"]
            self.assertEqual((use["running"], use["finished"]), left, "what is released counts no more")

    def test_b080_none_at_all(self):
        """max_running 0: nothing ever starts."""
        self.full(self.keeper.agent("main/a", max_running=0), "registry_full", "agent", 0, 0)

    def test_b080_default_of_agents(self):
        """Without a limit of its own an agent has the setting's."""
        keeper = self.start_keeper({"agent_max_running": 3, "max_running": 5})
        who = keeper.agent("main/a")
        self.fill(who, 3)
        self.full(who, "registry_full", "agent", 3, 3)
        self.fill(keeper.clients[0], 2)
        self.full(keeper.clients[0], "registry_full", "agent", 5, 5)

    def flood(self, clients, each):
        """Many spawns at once from several connections: (answers, refusals)."""
        started, refused = [], []

        def run(client):
            requests = client.submit_all([("spawn", {"argv": self.marking(), **self.granted()})] * each)
            for request in requests:
                try:
                    started.append(client.finish(request).result["process"])
                except KeeperError as error:
                    refused.append(error)

        threads = [threading.Thread(target=run, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        procs.wait_until(lambda: self.count_marks() >= len(started), "those that were started leave their marks")
        return started, refused

    def test_b080_hundred_at_once_on_ten_slots(self):
        """100 spawns at once over 5 connections of an agent with 10 free slots: exactly 10 processes."""
        self.keeper.agent("main/a", max_running=14)
        clients = [self.keeper.login("main/a") for _ in range(5)]
        self.fill(clients[0], 4)
        started, refused = self.flood(clients, 20)
        self.assertEqual((len(started), len(refused)), (10, 90))
        kinds = {(error.code, error.details["scope"], error.details["limit"]) for error in refused}
        self.assertEqual(kinds, {("registry_full", "agent", 14)})
        self.assertEqual(len(self.ids(clients[0])), 14)
        for record in started:
            clients[0].call("kill", id=record["id"])
        self.assertEqual(self.count_marks(), 10)

    def test_b080_hundred_at_once_below_one_agent(self):
        """The same from agents at three depths that share 10 slots of one above them."""
        clients = [self.keeper.agent("main/a", max_running=10)]
        clients += [self.keeper.agent(f"main/a/{name}") for name in ("x", "y", "z")] + [self.keeper.agent("main/a/x/deep")]
        started, refused = self.flood(clients, 20)
        self.assertEqual((len(started), len(refused)), (10, 90))
        for error in refused:
            self.assertIn((error.code, error.details["scope"]), (("registry_full", "agent"), ("quota", "ancestor")))
            self.assertEqual((error.details["limit"], error.details["in_use"]), (10, 10))
        self.assertEqual((len(self.ids(self.client)), self.count_marks()), (10, 10))

    def test_b080_failed_spawns_use_no_slot(self):
        """What could not be executed, was refused or never became anything leaves the slot free, at every level."""
        who = self.keeper.agent("main/a", max_running=1)
        for _ in range(5):
            self.assert_refused(who, "spawn_failed", "spawn", argv=["/nonexistent/program"])
            self.assert_refused(who, "invalid_input", "spawn", argv=["true"], cwd="nonexistent")
        process = self.start(who)["id"]
        self.full(who, "registry_full", "agent", 1, 1)
        who.call("kill", id=process)
        self.assertEqual(self.client.call("agent_show", agent="a")["agent"]["use"]["running"], 0)

    def test_b082_nothing_live_makes_room(self):
        """Stopped, silent, ended with descendants, ephemeral, persistent: at the limit all stay and the new one is refused."""
        who = self.keeper.agent("main/a", max_running=5, persistent=True, max_finished=1)
        ids = [self.start(who)["id"], self.start(who, lease="ephemeral")["id"], self.start(who, lease="persistent")["id"],
               self.start(who, "kill -STOP $$; sleep 300")["id"]]
        left = self.start(who, "setsid sleep 300 >&- 2>&- & echo $!")
        orphan = int(self.line(who, left["id"]))
        who.call("wait", id=left["id"])
        for _ in range(3):
            self.full(who, "registry_full", "agent", 5, 5)
        self.assertEqual(sorted(self.ids(who)), sorted([*ids, left["id"]]))
        self.assertTrue(procs.alive(orphan))
        for process in ids:
            self.assertIn(who.call("status", id=process)["process"]["state"], ("running", "stopped"))
        self.assertTrue(who.call("kill", id=left["id"])["success"])
        self.assert_alive(who, self.start(who)["id"])


class HierarchyTest(QuotaCase):
    def test_b083_a_childs_use_counts_for_its_ancestors(self):
        """Three deep: what the lowest uses counts for all above; the one that is full is told by scope, limit and use."""
        who = {"a": self.keeper.agent("main/a", max_running=4), "x": self.keeper.agent("main/a/x", max_running=3),
               "y": self.keeper.agent("main/a/y"), "deep": self.keeper.agent("main/a/x/deep", max_running=2)}
        deep = self.fill(who["deep"], 2)
        self.full(who["deep"], "registry_full", "agent", 2, 2)
        self.fill(who["x"], 1)
        self.full(who["x"], "registry_full", "agent", 3, 3)
        self.fill(who["y"], 1)
        self.full(who["y"], "quota", "ancestor", 4, 4)
        self.full(who["a"], "registry_full", "agent", 4, 4)
        self.fill(self.client, 1)
        running = [self.client.call("agent_show", agent=path)["agent"]["use"]["running"] for path in ("a", "a/x", "a/y", "a/x/deep")]
        self.assertEqual(running[3], 2)
        who["deep"].call("kill", id=deep[0])
        self.fill(who["y"], 1)
        self.full(who["deep"], "quota", "ancestor", 4, 4)

    def test_b083_lowering_a_limit_ends_nothing(self):
        """Below what is in use: all live on, and nothing starts until enough have ended."""
        who = self.keeper.agent("main/a")
        ids = self.fill(who, 3)
        self.client.call("agent_set", agent="a", max_running=1)
        self.full(who, "registry_full", "agent", 1, 3)
        self.assert_alive(who, *ids)
        for process in ids[:2]:
            who.call("kill", id=process)
        self.full(who, "registry_full", "agent", 1, 1)
        self.client.call("agent_set", agent="a", max_running=None)
        self.fill(who, 2)

    def test_b083_removed_agents_give_back(self):
        """The slots of an agent that was removed are free for the others at once."""
        parent = self.keeper.agent("main/a", max_running=2)
        self.fill(self.keeper.agent("main/a/x"), 2)
        self.full(parent, "registry_full", "agent", 2, 2)
        parent.call("agent_remove", agent="x")
        self.fill(parent, 2)


class PrincipalTest(QuotaCase):
    settings = {"max_running": 10, "principal_max_running": 6, "host_max_running": 9}

    def test_b081_principal(self):
        """All leases, shells and agents of a principal share its limit: then `quota` with limit and use."""
        main = self.keeper.agent("main", OTHER, persistent=True)
        below = self.keeper.agent("main/a", OTHER)
        ids = [self.start(main, lease=lease)["id"] for lease in ("ephemeral", "awaited", "persistent")]
        ids.append(main.call("spawn", argv=["cat"], kind="pty")["process"]["id"])
        self.fill(below, 2)
        for client in (main, below):
            self.full(client, "quota", "principal", 6, 6)
            self.full(client, "quota", "principal", 6, 6, kind="pty")
        mine = self.start(self.client)["id"]
        main.call("kill", id=ids[0])
        self.fill(below, 1)
        self.full(main, "quota", "principal", 6, 6, lease="persistent")
        self.assert_alive(self.client, mine)

    def test_b081_host_tells_nothing_about_others(self):
        """At the host's limit registry_full with its scope and limit only, the same whoever has the slots."""
        alice, bob = self.keeper.agent("main", OTHER), self.keeper.agent("main", "bob")
        answers = []
        for mine, hers in ((5, 4), (3, 6)):
            ids = [(self.client, self.fill(self.client, mine)), (alice, self.fill(alice, hers))]
            answers += [client.answer("spawn", {"argv": self.marking()}) for client in (bob, self.client)]
            for client, processes in ids:
                for process in processes:
                    client.call("release", id=process)
        self.assert_same(dict(enumerate(answers)))
        self.assertEqual(answers[0]["error"]["code"], "registry_full")
        self.assertEqual(answers[0]["error"]["details"], {"scope": "host", "limit": 9})
        self.assertEqual(self.count_marks(), 0)
        self.start(bob)


class BufferTest(QuotaCase):
    def buffer_use(self, path):
        return self.client.call("agent_show", agent=path)["agent"]["use"]["buffer_bytes"]

    def test_b083_live_rings_are_bounded(self):
        """A live process counts with what its rings may reach: two of 64 KiB for two streams, one where they are merged."""
        who = self.keeper.agent("main/a", max_buffer_bytes=4 * RING + RING // 2)
        self.start(who, ring_bytes=RING)
        self.start(who, ring_bytes=RING, stderr="merged")
        who.call("spawn", argv=["cat"], kind="pty", ring_bytes=RING)
        self.assertEqual(self.buffer_use("a"), 4 * RING)
        details = self.assert_refused(who, "quota", "spawn", argv=self.marking(), ring_bytes=RING, stderr="merged")
        self.assertEqual(details, {"scope": "buffer", "limit": 4 * RING + RING // 2, "in_use": 4 * RING, "needed": RING})
        details = self.assert_refused(who, "quota", "spawn", argv=self.marking())
        self.assertEqual((details["scope"], details["needed"]), ("buffer", 2048 * KIB))
        self.assertEqual(self.count_marks(), 0)
        self.start(who, ring_bytes=RING // 4)

    def test_b083_buffers_count_for_ancestors(self):
        """A child without a bound of its own meets its parent's; brothers share it."""
        self.keeper.agent("main/a", max_buffer_bytes=4 * RING)
        first, second = self.keeper.agent("main/a/x"), self.keeper.agent("main/a/y", max_buffer_bytes=4 * RING)
        process = self.start(first, ring_bytes=RING)["id"]
        self.start(second, ring_bytes=RING)
        for client in (first, second):
            details = self.assert_refused(client, "quota", "spawn", argv=self.marking(), ring_bytes=RING)
            self.assertEqual(details, {"scope": "buffer", "limit": 4 * RING, "in_use": 4 * RING, "needed": 2 * RING})
        first.call("kill", id=process)
        self.start(second, ring_bytes=RING)

    def test_b083_finished_ones_make_room(self):
        """An ended process counts with what it holds; those that may go become receipts when room is needed, live ones never."""
        who = self.keeper.agent("main/a", max_buffer_bytes=4 * RING)
        done = [self.finish(who, f"head -c {RING} /dev/zero", ring_bytes=RING, stderr="merged")["id"] for _ in range(4)]
        procs.wait_until(lambda: self.buffer_use("a") == 4 * RING, "all is kept")
        live = self.start(who, ring_bytes=RING)["id"]
        receipts = [who.call("status", id=process)["process"]["receipt"] for process in done]
        self.assertEqual(receipts.count(True), 2, receipts)
        self.assertLessEqual(self.buffer_use("a"), 4 * RING)
        self.start(who, ring_bytes=RING)
        self.assertTrue(all(who.call("status", id=process)["process"]["receipt"] for process in done))
        self.assert_refused(who, "quota", "spawn", argv=self.marking(), ring_bytes=RING)
        self.assert_alive(who, live)
        self.assertEqual(self.count_marks(), 0)


    def test_b083_finished_ones_of_brothers_make_room(self):
        """Where the bound is that of an agent above, what its other agents have finished may go, too."""
        self.keeper.agent("main/a", max_buffer_bytes=4 * RING)
        first, second = self.keeper.agent("main/a/x"), self.keeper.agent("main/a/y")
        done = [self.finish(first, f"head -c {RING} /dev/zero", ring_bytes=RING, stderr="merged")["id"] for _ in range(4)]
        procs.wait_until(lambda: self.buffer_use("a") == 4 * RING, "all is kept")
        self.assert_alive(second, self.start(second, ring_bytes=RING)["id"])
        receipts = [first.call("status", id=process)["process"]["receipt"] for process in done]
        self.assertEqual(receipts.count(True), 2, receipts)


    def test_b083_a_principals_agents_share_its_memory(self):
        """However many agents one makes, their output together has a bound, and another principal has its own."""
        keeper = self.start_keeper({"principal_buffer_bytes": 2 * RING})
        first, second = keeper.agent("main/a"), keeper.agent("main/b")
        keeper.clients[0].call("agent_add", agent="main", principal="alice")
        token = keeper.clients[0].call("token_new", agent="main", principal="alice")["token"]
        alice = keeper.connect().login(token)
        for who in (first, second, alice, alice):
            self.start(who, ring_bytes=RING, stderr="merged")
        details = self.assert_refused(first, "quota", "spawn", argv=self.marking(), ring_bytes=RING, stderr="merged")
        self.assertEqual((details["scope"], details["limit"], details["in_use"]), ("buffer", 2 * RING, 2 * RING))

    def test_b083_nothing_goes_for_nothing(self):
        """A spawn that cannot fit, and a question what a spawn would do, turn no finished record into a receipt."""
        who = self.keeper.agent("main/a", max_buffer_bytes=4 * RING)
        done = [self.finish(who, f"head -c {RING} /dev/zero", ring_bytes=RING, stderr="merged")["id"] for _ in range(3)]
        live = self.start(who, ring_bytes=RING, stderr="merged")["id"]
        self.assert_refused(who, "quota", "spawn", argv=self.marking(), ring_bytes=2 * RING)
        self.assertEqual(who.call("check", argv=self.marking(), ring_bytes=RING)["status"], "allowed")
        self.assertEqual([who.call("status", id=process)["process"]["receipt"] for process in done], [False] * 3)
        self.assert_alive(who, live)


class GrantTest(QuotaCase):
    def test_b084_persistent_needs_a_grant(self):
        """main on the user's socket has it; an agent has it only if given, also another principal's main."""
        self.assertEqual(self.start(self.client, lease="persistent")["lease"], "persistent")
        who = self.family()
        for name, client in who.items():
            with self.subTest(name=name):
                self.assert_refused(client, "persist_unsupported", "spawn", argv=self.marking(), lease="persistent")
                self.assert_alive(client, self.start(client)["id"])
        self.client.call("agent_set", agent="main/a", persistent=True)
        self.assertEqual(self.start(who["a"], lease="persistent")["lease"], "persistent")
        self.assert_refused(who["x"], "persist_unsupported", "spawn", argv=self.marking(), lease="persistent")
        who["a"].call("agent_set", agent="x", persistent=True)
        kept = self.start(who["x"], lease="persistent")["id"]
        self.client.call("agent_set", agent="main/a", persistent=False)
        for name in ("a", "x"):
            self.assert_refused(who[name], "persist_unsupported", "spawn", argv=self.marking(), lease="persistent")
        self.assert_alive(who["x"], kept)
        self.client.call("agent_set", agent="main", principal=OTHER, persistent=True)
        self.start(who["alice"], lease="persistent")
        self.assertEqual(self.count_marks(), 0)

    def test_b084_nobody_gives_what_it_has_not(self):
        """An agent without the grant cannot give it; the answer to a connection without an agent is a refusal, too."""
        who = self.keeper.agent("main/a")
        self.assert_refused(who, "invalid_input", "agent_add", agent="x", persistent=True)
        lost = self.connect()
        self.refusal(lost, "login", token="coop_1_wrong")
        self.assert_refused(lost, "permission_denied", "spawn", argv=self.marking(), lease="persistent")
        self.assertEqual(self.count_marks(), 0)

"""What is counted, and for whom: buffers, records that go, lists, tokens, limits that were narrowed."""

import os
import signal
import sqlite3

from lib.agents import AgentCase
from lib.procs import wait_until
from lib.records import RecordsCase

MIB = 1 << 20


class BufferTest(AgentCase):
    """Records that have ended hold what their streams hold."""

    def records(self, client=None):
        """(owner, whether only a receipt is left) of all that ended, oldest first."""
        listed = (client or self.client).call("list", include_finished=True)["processes"]
        return [(record["agent_path"], record["receipt"]) for record in listed]

    def used(self, agent):
        return self.client.call("agent_show", agent=agent)["agent"]["use"]["buffer_bytes"]

    def fill(self, client, size):
        """A finished record that holds so many bytes."""
        argv = ["head", "-c", str(size), "/dev/zero"]
        process = client.call("spawn", argv=argv, ring_bytes=size, stderr="merged")["process"]["id"]
        client.call("wait", id=process)
        return process

    def test_streams_that_end_after_the_process(self):
        """While descendants hold the pipes whole rings are counted; then what is in them."""
        agent = self.keeper.agent("main/a", max_buffer_bytes=5 * MIB)
        script = "sleep 300 & echo $!; exit 0"
        ended = [self.finish(agent, script)["id"] for _ in range(2)]
        self.assertGreaterEqual(self.used("a"), 2 * MIB)
        for process in ended:
            os.kill(self.outside(process, self.line(agent, process)), signal.SIGKILL)
        wait_until(lambda: self.used("a") < 65536, "the charge falls", timeout=10)
        # There is room again, without a record that has to go for it.
        self.start(agent, "exit 0", ring_bytes=2 * MIB)
        self.assertEqual(self.records()[:2], [("main/a", False)] * 2)

    def test_records_that_hold_nothing_stay(self):
        """To make room for a spawn those go that hold something, even if others are older."""
        self.client.call("agent_add", agent="p", max_buffer_bytes=4 * MIB)
        first, second = self.keeper.agent("main/p/a"), self.keeper.agent("main/p/b")
        for _ in range(5):
            first.call("wait", id=first.call("spawn", argv=["true"], ring_bytes=4096)["process"]["id"])
        large = self.fill(second, 2 * MIB)
        wait_until(lambda: self.used("p") == 2 * MIB, "the empty ones hold nothing")
        self.finish(first, ring_bytes=1500 << 10)
        self.assertTrue(self.status(large)["receipt"])
        self.assertEqual(self.records()[:5], [("main/p/a", False)] * 5)

    def test_records_of_a_removed_agent_can_go(self):
        """They count for those above, so that they may go for them, too."""
        self.client.call("agent_add", agent="p", max_buffer_bytes=4 * MIB)
        child, parent = self.keeper.agent("main/p/b"), self.keeper.login("main/p")
        large = self.fill(child, 4 * MIB)
        self.client.call("agent_remove", agent="p/b")
        self.assertEqual(self.finish(parent, ring_bytes=MIB)["exit"]["code"], 0)
        self.assertTrue(self.status(large)["receipt"])


class SeenTest(AgentCase):
    settings = {"max_receipts": 1, "max_finished": 1}

    def test_dropped_receipts_are_counted_for_who_may_see_them(self):
        """What a sibling's records do is not told; parents and the agent itself see the number."""
        crowd = self.family()
        for _ in range(6):
            self.finish(crowd["x"])

        def dropped(client):
            return client.call("info")["processes"]["receipts_dropped"]

        # All but a record and a receipt: there will be no more of them.
        wait_until(lambda: dropped(self.client) == 4, "four are dropped")
        self.assertEqual({name: dropped(client) for name, client in crowd.items()},
                         {"a": 4, "x": 4, "b": 0, "alice": 0, "alice/a": 0})


class SettingsTest(AgentCase):
    def test_child_is_tightened_after_its_parent_was_narrowed(self):
        """What it had before and is not asked for now is no reason to refuse."""
        wide = {"max_running": 8, "max_finished": 8, "max_buffer_bytes": 8 * MIB, "persistent": True, "workspace": ["/usr"]}
        self.client.call("agent_add", agent="a", **(wide | {"max_running": 10}))
        self.client.call("agent_add", agent="a/b", **wide)
        narrow = {"max_running": 5, "max_finished": 5, "max_buffer_bytes": 5 * MIB, "persistent": False, "workspace": ["/usr/bin"]}
        for name, value in narrow.items():
            self.client.call("agent_set", agent="a", **{name: value})
            shown = self.client.call("agent_set", agent="a/b", policy={"allowed_commands": []})["agent"]
            self.assertEqual(shown["settings"]["policy"]["allowed_commands"], [], name)
            # What is asked for still has to fit.
            wider = {name: wide[name]}
            self.assertEqual(self.assert_refused(self.client, "invalid_input", "agent_set", agent="a/b", **wider)["field"], name)

    def test_explanations_name_the_agent_after_a_change(self):
        """Rules that were copied for a change of something else are still called after their agent."""
        self.client.call("agent_add", agent="a", policy={"denied_commands": ["nope"]})

        def sources():
            decisions = self.client.call("check", argv=["nope"], agent="a")["command_policy"]["decisions"]
            return [decision["source"] for decision in decisions]

        before = sources()
        self.assertIn("agent main/a", before)
        self.client.call("agent_set", agent="a", max_running=5)
        self.assertEqual(sources(), before)

    def test_settings_have_a_bound(self):
        """More than 64 KiB of them is refused, with the member that can be so large; nothing is made of it."""
        agent = self.keeper.agent("main/a")
        words = [f"{number:04}" + "x" * 1020 for number in range(70)]
        for op, path in (("agent_add", "b"), ("agent_set", "a")):
            client = agent if op == "agent_add" else self.client
            details = self.assert_refused(client, "too_large", op, agent=path, policy={"denied_commands": words})
            self.assertEqual(details, {"field": "policy"})
        self.assertEqual(self.agents(self.client), ["main", "main/a"])
        agent.call("agent_add", agent="b", policy={"denied_commands": words[:60]})

    def test_lists_that_are_too_long_go_on(self):
        """Each answer says whether there is more; `after` goes on there, and nobody is left out or told twice."""
        words = [f"{number:04}" + "x" * 1020 for number in range(60)]
        names = [f"b{number:03}" for number in range(120)]
        for name in names:
            self.client.call("agent_add", agent=name, policy={"denied_commands": words})
        seen, answers, more = [], 0, {}
        while more is not None:
            answer = self.client.call("agent_list", **more)
            seen += [agent["path"] for agent in answer["agents"]]
            answers += 1
            more = {"after": seen[-1]} if answer["more"] else None
        self.assertGreater(answers, 1)
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual(sorted(seen), ["main"] + [f"main/{name}" for name in names])
        self.assertEqual(self.client.call("agent_list", after=seen[-1]), {"agents": [], "more": False})
        self.refusal(self.client, "agent_list", after="main/nobody")


class TokensTest(RecordsCase):
    settings = {"max_tokens": 3}

    def test_token_made_by_an_expiring_one_expires_with_it(self):
        """Whatever is asked for: nobody prolongs what was given to him."""
        self.client.call("agent_add", agent="a")
        given = self.client.call("token_new", agent="a", expires_in_ms=3_600_000)
        agent = self.login(given["token"])
        for lifetime in ({}, {"expires_in_ms": 7_200_000}):
            made = agent.call("token_new", **lifetime)
            self.assertEqual(made["expires_at"], given["expires_at"], lifetime)
            child = self.login(made["token"])
            self.assertEqual(child.call("token_list")["tokens"][-1]["expires_at"], given["expires_at"])
            self.client.call("token_revoke", id=made["id"])
        shorter = agent.call("token_new", expires_in_ms=60_000)
        self.assertLess(shorter["expires_at"], given["expires_at"])
        self.client.call("token_revoke", id=shorter["id"])
        self.assertIsNone(self.client.call("token_new", agent="a")["expires_at"])

    def test_expired_tokens_are_gone_after_a_restart(self):
        """They take nobody's place: neither before, nor in the keeper that comes next, nor in the database for ever."""
        for _ in range(3):
            self.client.call("token_new", expires_in_ms=1)
        wait_until(lambda: self.client.call("token_list")["tokens"] == [], "they expire")
        kept = self.client.call("token_new", label="kept")["id"]
        self.restart()
        self.assertEqual([token["id"] for token in self.client.call("token_list")["tokens"]], [kept])
        for _ in range(2):
            self.client.call("token_new")
        with self.refused("quota"):
            self.client.call("token_new")

    def test_paths_of_the_keeper_stay_its_own(self):
        """A change or a question that the database does not take says why, not where the database is."""
        agent = self.agent("main/a")
        self.settle()
        database = sqlite3.connect(self.place.state / "records.db", isolation_level=None)
        self.addCleanup(database.close)
        database.execute("BEGIN IMMEDIATE")
        changed = agent.answer("token_new")
        database.execute("ROLLBACK")
        database.execute("ALTER TABLE processes RENAME TO elsewhere")
        asked = agent.answer("history")
        database.execute("ALTER TABLE elsewhere RENAME TO processes")
        for answer in (changed, asked):
            self.assertEqual(answer["error"]["code"], "unavailable", answer)
            self.assertNotIn(str(self.place.dir), str(answer))
            self.assertNotIn("records.db", str(answer))
        self.assertEqual(agent.call("history")["processes"], [])
        agent.call("token_new")

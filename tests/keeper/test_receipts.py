"""What is kept of ended processes when there are many (B-118 to B-120), for several agents and principals."""

import threading

from lib import procs
from lib.agents import OTHER, AgentCase
from lib.place import sanitized

MIB = 1 << 20
# What remains of a record, and what a status of it must still say.
KEPT = """id tag label alias call_id owner agent_path argv command mode cwd kind lease state exit end_cause started_at ended_at
duration_ms""".split()


class CapTest(AgentCase):
    def receipts(self, client, **args):
        """Ids of the receipts in a list; looking is one call, so that what it tells comes too late to matter."""
        listed = client.call("list", include_finished=True, **args)["processes"]
        return [record["id"] for record in listed if record["receipt"]]

    def settled(self, path, full):
        """Waits until nothing of an agent runs and so many records are in full. It is not the owner who looks here."""

        def look():
            listed = self.client.call("list", include_finished=True, agent=path)["processes"]
            return all(record["exit"] for record in listed) and sum(not record["receipt"] for record in listed) == full

        procs.wait_until(look, "the surplus becomes receipts")

    def finish_untold(self, client, path, count, full):
        """Processes that have ended without their owner having been told; so many records are in full then."""
        ids = []
        for _ in range(count):
            record = self.start(client, "exit 0")
            ids.append(record["id"])
            # One after the other, so that the order of their ends is known.
            procs.wait_until(lambda pid=record["pid"]: procs.stat(pid) is None, "it has ended and was reaped")
        # Looking at the agent shows no record to anybody.
        wanted = {"running": 0, "finished": full}.items()
        procs.wait_until(lambda: wanted <= self.client.call("agent_show", agent=path)["agent"]["use"].items(), "they are settled")
        return ids

    def test_b119_seventy_two_of_sixty_four(self):
        """72 finished jobs with the cap of 64: all 72 ids answer, 8 as receipts, without output and with everything else."""
        who = self.keeper.agent("main/a")
        before = {}
        for number in range(72):
            record = self.finish(who, f"echo out-{number}; echo err >&2; exit {number}", tag=f"t{number}", call_id="c", alias="z")
            before[record["id"]] = record
        procs.wait_until(lambda: len(self.receipts(who)) == 8, "the surplus becomes receipts")
        self.assertEqual(self.receipts(who), list(before)[:8], "the oldest of those that were told")
        for number, (process, was) in enumerate(before.items()):
            now = who.call("status", id=process)["process"]
            self.assertEqual({name: now[name] for name in KEPT}, {name: was[name] for name in KEPT})
            self.assertEqual(now["receipt"], number < 8)
            self.assertEqual(who.call("wait", id=process)["exit_code"], number)
            self.assertEqual(now["streams"]["stdout"]["end"], len(f"out-{number}\n"))
            self.assertEqual((now["streams"]["stderr"]["end"], now["events"]["next"]), (4, was["events"]["next"]))
            text = who.reply("read", {"id": process}).bytes()
            self.assertEqual(text, b"" if number < 8 else f"out-{number}\n".encode())
        self.assertEqual(who.call("status", id="t3")["process"]["exit"]["code"], 3)
        counts = who.call("info")["processes"]
        self.assertEqual((counts["finished"], counts["receipts"], counts["receipts_dropped"]), (64, 8, 0))

    def test_b118_told_first_then_oldest(self):
        """Above the cap those whose end the owner was told become receipts first, whatever their age; then the oldest."""
        who = self.keeper.agent("main/a", max_finished=4)
        ids = self.finish_untold(who, "main/a", 4, 4)
        who.call("wait", id=ids[2])
        ids += self.finish_untold(who, "main/a", 1, 4)
        ids += self.finish_untold(who, "main/a", 1, 4)
        self.assertEqual(self.receipts(who), [ids[0], ids[2]])

    def test_b118_telling_somebody_above_is_not_telling_the_owner(self):
        """The parent has waited for it, its owner has not: age decides."""
        who = self.keeper.agent("main/a", max_finished=3)
        ids = self.finish_untold(who, "main/a", 3, 3)
        self.client.call("wait", id=ids[1])
        ids += self.finish_untold(who, "main/a", 1, 3)
        self.assertEqual(self.receipts(who), ids[:1])

    def test_b118_caps_are_each_agents_own(self):
        """One agent's many ends push out nothing of another's, above, below or beside."""
        who = self.family()
        self.client.call("agent_set", agent="main/a", max_finished=3)
        others = {name: self.finish(who[name])["id"] for name in ("x", "b", "alice")} | {"main": self.finish(self.client)["id"]}
        ids = [self.finish(who["a"])["id"] for _ in range(8)]
        self.settled("main/a", 3)
        self.assertEqual(self.receipts(who["a"], agent="self"), ids[:5])
        for name, process in others.items():
            self.assertFalse((who.get(name) or self.client).call("status", id=process)["process"]["receipt"], name)

    def test_b118_live_and_persistent_ones_stay(self):
        """Neither what lives, nor what left descendants, nor a persistent one within its retention is pushed out."""
        who = self.keeper.agent("main/a", max_finished=2, persistent=True)
        kept = [self.finish(who, "echo kept", lease="persistent")["id"] for _ in range(4)]
        live = self.start(who)["id"]
        left = self.start(who, "setsid sleep 300 >&- 2>&- & echo left")["id"]
        who.call("wait", id=left)
        done = [self.finish(who)["id"] for _ in range(6)]
        receipts = procs.wait_until(lambda: len(found := self.receipts(who)) >= 4 and found, "the surplus becomes receipts")
        self.assertLessEqual(set(receipts), set(done), "only what may go")
        self.assertEqual(receipts, done[: len(receipts)])
        for process in kept:
            self.assertEqual(self.output(process, client=who), b"kept\n")
        self.assertEqual(self.output(left, client=who), b"left\n")
        self.assert_alive(who, live)

    def test_b119_receipts_belong_to_agents_too(self):
        """A receipt is seen, and released, by the same agents as the record was."""
        who = self.family()
        self.client.call("agent_set", agent="main/a/x", max_finished=1)
        process = self.finish(who["x"], "exit 3")["id"]
        self.finish(who["x"])
        self.settled("main/a/x", 1)
        for client in (who["x"], who["a"], self.client):
            record = client.call("status", id=process)["process"]
            self.assertEqual((record["receipt"], record["exit"]["code"]), (True, 3))
        for name in ("b", "alice"):
            self.assert_refused(who[name], "no_such_process", "status", id=process)
        self.assert_refused(who["a"], "not_owner", "release", id=process)
        self.assertTrue(who["x"].call("release", id=process)["released"])
        self.assert_refused(who["a"], "no_such_process", "status", id=process)


class PrincipalTest(AgentCase):
    settings = {"max_finished": 2, "max_receipts": 5, "max_retained": 3}

    def test_b119_receipts_are_bounded_per_principal(self):
        """Above the cap the oldest of the principal's goes, whichever agent's it is, and is counted; other principals lose none."""
        who = self.family()
        hers = [self.finish(who["alice"])["id"] for _ in range(6)]
        first = [self.finish(who["a"])["id"] for _ in range(4)]
        second = [self.finish(who["b"])["id"] for _ in range(6)]
        # Receipts are the first 2 of one agent and the first 4 of the other: one too many.
        # As many are there for a moment before the last one comes.
        procs.wait_until(lambda: self.client.call("info")["processes"]["receipts_dropped"] == 1, "the oldest has gone")
        self.assert_refused(who["a"], "no_such_process", "status", id=first[0])
        for process in [*first[1:], *second]:
            self.client.call("status", id=process)
        counts = self.client.call("info")["processes"]
        self.assertEqual((counts["finished"], counts["receipts"], counts["receipts_dropped"]), (4, 5, 1))
        for process in hers:
            who["alice"].call("status", id=process)
        procs.wait_until(lambda: who["alice"].call("info")["processes"]["finished"] == 2, "hers are settled")
        counts = who["alice"].call("info")["processes"]
        self.assertEqual((counts["finished"], counts["receipts"], counts["receipts_dropped"]), (2, 4, 0))

    def test_b120_retained_persistent_records(self):
        """With so many finished persistent records a further persistent spawn is refused, other leases are not; a release makes room."""
        who = self.family()
        self.client.call("agent_set", agent="main", principal=OTHER, persistent=True)
        self.client.call("agent_set", agent="main/a", persistent=True)
        ids = [self.finish(self.client, lease="persistent")["id"] for _ in range(2)]
        ids.append(self.finish(who["a"], lease="persistent")["id"])
        mark = self.work / "mark"
        for client in (self.client, who["a"]):
            details = self.assert_refused(client, "registry_full", "spawn", argv=["touch", str(mark)], lease="persistent")
            self.assertEqual(details, {"scope": "retained", "limit": 3, "in_use": 3})
            self.assert_alive(client, self.start(client)["id"])
        self.assertFalse(mark.exists())
        self.assertEqual(self.start(who["alice"], lease="persistent")["lease"], "persistent")
        self.assertTrue(self.client.call("release", id=ids[0])["released"])
        self.start(who["a"], lease="persistent")
        for process in ids[1:]:
            self.assertFalse(self.client.call("status", id=process)["process"]["receipt"])


class ManyTest(AgentCase):
    """A million short commands, in small: more of them would change nothing, as nothing may grow with their number."""

    settings = {"max_finished": 8, "max_receipts": 50, "max_history": 500}
    EACH = 120 if sanitized() else 500

    def run_many(self, client, count, errors):
        """Keeps a few under way until so many have run."""
        try:
            under_way = []
            for number in range(count + 8):
                if number < count:
                    under_way.append(client.submit("spawn", {"argv": ["true"], "stderr": "merged", "tag": f"n{number % 7}"}))
                if number >= 8:
                    process = client.finish(under_way.pop(0)).result["process"]["id"]
                    # The others may have pushed it out already.
                    self.assertIn(client.answer("wait", {"id": process}).get("error", {}).get("code"), (None, "no_such_process"))
        except Exception as error:  # in a thread: the test itself looks at it
            errors.append(error)

    def run_all(self, clients, count):
        errors = []
        threads = [threading.Thread(target=self.run_many, args=(client, count, errors)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_b119_many_commands_leave_what_the_caps_allow(self):
        """3000 commands of 6 agents: full records, receipts, lists and memory stay within the caps; the rest is counted."""
        who = self.family()
        clients = [self.client, *who.values()]
        self.run_all(clients, self.EACH // 5)
        early = self.client.call("info")
        self.run_all(clients, self.EACH - self.EACH // 5)
        for client, agents in ((self.client, 4), (who["alice"], 2)):
            procs.wait_until(lambda: client.call("info")["processes"]["finished"] == agents * 8, "the surplus becomes receipts")
        info = self.client.call("info")
        counts, hers = info["processes"], who["alice"].call("info")["processes"]
        self.assertEqual((counts["live"], counts["finished"], counts["receipts"]), (0, 4 * 8, 50))
        self.assertEqual(counts["receipts_dropped"], 4 * self.EACH - 4 * 8 - 50)
        self.assertEqual((hers["finished"], hers["receipts"], hers["receipts_dropped"]), (2 * 8, 50, 2 * self.EACH - 2 * 8 - 50))
        self.assertEqual(len(self.ids(self.client, include_finished=True, limit=100000)), 4 * 8 + 50)
        self.assertEqual(len(self.ids(who["alice"], include_finished=True, limit=100000)), 2 * 8 + 50)
        for path in ("main", "a", "a/x", "b"):
            self.assertLessEqual(self.client.call("agent_show", agent=path)["agent"]["use"]["finished"], 32 if path == "main" else 16)
        grown = info["memory"]["rss_bytes"] - early["memory"]["rss_bytes"]
        # What a sanitizer keeps of freed memory is a multiple of that.
        self.assertLess(grown, (256 if sanitized() else 8) * MIB)
        # Those of prepared sandboxes and of removed placeholders come and go.
        self.assertLessEqual(info["fds"]["open"], early["fds"]["open"] + 16)
        self.assertEqual((info["subscribers"], info["connections"]), (0, 6))

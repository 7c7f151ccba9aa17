"""Memory that fails while agents, tokens and records change: what is on disk and what is known never differ."""

import contextlib
import sqlite3

from lib.client import Client, Closed, KeeperError
from lib.keeper import Keeper, KeeperCase
from lib.place import Place, sanitized
from lib.procs import wait_until

# After the last allocation of a keeper's start, before the first that a request needs, and long after the last one of the requests below.
FIRST, LAST = 80, 350
UNTROUBLED = 6  # so many numbers in a row without any failure: those behind are of nobody here


class FaultCase(KeeperCase):
    """COOP_FAULT=alloc:N lets the N-th allocation of a keeper fail. Where N falls changes with the code, so tests try many."""

    def faulty(self, number, place=None):
        return self.start_keeper(place=place, env={"COOP_FAULT": f"alloc:{number}"})

    def database(self, keeper):
        database = sqlite3.connect(keeper.place.state / "records.db", isolation_level=None)
        self.addCleanup(database.close)
        return database

    def attempt(self, keeper, op, **args):
        """What came of it: "ok", the code of the refusal, or "closed" if there was no memory even for that."""
        try:
            with Client(keeper.place.socket) as client:
                client.call(op, **args)
        except KeeperError as error:
            return error.code
        except Closed:
            return "closed"
        return "ok"


class ChangesTest(FaultCase):
    def on_disk(self, keeper):
        with contextlib.closing(sqlite3.connect(keeper.place.state / "records.db")) as database:
            rows = database.execute("SELECT path FROM agents WHERE removed_at = 0 ORDER BY id").fetchall()
        return [path for (path,) in rows]

    def known(self, keeper):
        """What the keeper says; asked again if this is what the fault hits."""
        for _ in range(2):
            with contextlib.suppress(KeeperError, Closed), keeper.connect() as client:
                return [agent["path"] for agent in client.call("agent_list")["agents"]]
        self.fail("the keeper does not answer")

    def changed(self, keeper, op, agent, after):
        """One change. Gives what came of it, before it was tried again. The keeper is asked nothing else: faults are for changes."""
        before = self.on_disk(keeper)
        outcome = self.attempt(keeper, op, agent=agent)
        self.assertIn(outcome, ("ok", "closed", "internal"), (op, agent))
        if outcome == "internal":
            # It was made only if nothing but the answer found no memory; then the keeper knows it, too.
            now = self.on_disk(keeper)
            self.assertIn(now, (before, after), f"{op} {agent}")
            self.assertEqual(self.known(keeper), now, f"{op} {agent}: disk and memory differ")
        if outcome != "ok":
            made = self.on_disk(keeper) == after
            again = self.attempt(keeper, op, agent=agent)
            self.assertIn(again, ("exists", "invalid_input") if made else ("ok",), f"{op} {agent} once more")
        self.assertEqual(self.on_disk(keeper), after, (op, agent, outcome))
        return outcome

    def one_life(self, number):
        """An add and a removal with a fault somewhere; the next keeper of that place starts. Gives what came of each."""
        place = Place()
        keeper = Keeper(place=place, env={"COOP_FAULT": f"alloc:{number}"})
        self.keepers.append(keeper)
        try:
            keeper.wait_ready()
            outcomes = [
                self.changed(keeper, "agent_add", "a", ["main", "main/a"]),
                self.changed(keeper, "agent_remove", "a", ["main"]),
            ]
            self.assertEqual(self.known(keeper), ["main"])
            keeper.stop()
            if "internal" in outcomes:
                keeper = Keeper(place=place)
                self.keepers.append(keeper)
                keeper.wait_ready()
                self.assertEqual(self.known(keeper), ["main"])
                keeper.stop()
            return outcomes
        finally:
            if keeper.process.poll() is None:
                keeper.stop()
            faults = place.faults()
            place.remove()
            self.assertEqual(faults, "")

    def test_changes_without_memory_change_nothing(self):
        """Whichever allocation of an add or a removal fails: nothing is on disk, the same again works, the next keeper starts."""
        seen = {"agent_add": set(), "agent_remove": set()}
        # The keeper's own work takes some of them, now more, now fewer: the few that a change itself needs may be passed over.
        for _ in range(5):
            self.sweep(seen)
            if all("internal" in outcomes for outcomes in seen.values()):
                break
        for op, outcomes in seen.items():
            self.assertLessEqual({"ok", "internal"}, outcomes, f"the control: {op} has failed without memory")

    def sweep(self, seen):
        """One life for each allocation that may fail, until those are of nobody here. Adds to what came of the changes."""
        quiet, failed = 0, set()
        for number in range(FIRST, LAST, 3 if sanitized() else 1):
            with self.subTest(fault=f"alloc:{number}"):
                lived = dict(zip(seen, self.one_life(number), strict=True))
                for op, outcome in lived.items():
                    seen[op].add(outcome)
                troubled = {op for op, outcome in lived.items() if outcome != "ok"}
                failed |= troubled
                # Both must have failed before the end can be near.
                quiet = 0 if troubled or failed != set(seen) else quiet + 1
            if quiet == UNTROUBLED:
                return
        self.fail("the faults never end")


class JournalTest(FaultCase):
    profile = "full"  # the records are the same, and a start needs less that could fail

    def first_of_a_record(self):
        """Roughly the first allocation after which a spawn succeeds whatever becomes of its record, by halving."""
        low, high = FIRST, LAST
        while high - low > 1:
            middle = (low + high) // 2
            keeper = self.faulty(middle)
            if self.attempt(keeper, "spawn", argv=["sleep", "300"]) == "ok":
                high = middle
            else:
                low = middle
            keeper.stop()
            keeper.ended = True
        return high

    def waiting_keepers(self):
        """Keepers that have something to write, and a database that they cannot write to; by the number of their fault."""
        first = self.first_of_a_record()
        waiting = {}
        for number in range(first, first + 20):
            keeper = self.faulty(number)
            database = self.database(keeper)
            database.execute("BEGIN IMMEDIATE")
            outcome = self.attempt(keeper, "spawn", argv=["sleep", "300"], lease="persistent")
            if outcome == "ok" and "records are lost" not in keeper.place.log_tail():
                waiting[number] = (keeper, database)
            else:
                database.execute("ROLLBACK")
        return waiting

    def test_journal_goes_on_after_a_failed_allocation(self):
        """The disk does not take what is written, and when it is tried again there is no memory: it is tried once more."""
        waiting = self.waiting_keepers()
        self.assertGreater(len(waiting), 2)
        # No keeper is asked anything now: that would use up the allocation that must fail.
        for number, (keeper, database) in waiting.items():
            with self.subTest(fault=f"alloc:{number}"):
                wait_until(lambda k=keeper: "cannot be written to" in k.place.log_tail(), "the disk fails", timeout=10)
            database.execute("ROLLBACK")
        # The log comes by way of the guard: of some it had not said yet that there was no memory for the record from the beginning.
        waiting = {number: one for number, one in waiting.items() if "records are lost" not in one[0].place.log_tail().split("cannot be written to")[0]}
        self.assertGreater(len(waiting), 2)
        for number, (keeper, database) in waiting.items():
            with self.subTest(fault=f"alloc:{number}"):
                rows = "SELECT count(*) FROM processes"
                wait_until(lambda d=database: d.execute(rows).fetchone()[0] == 1, "it is written", timeout=10)
                wait_until(lambda k=keeper: self.is_well(k), "the records are well", timeout=10)

    def is_well(self, keeper):
        """The fault may still be to come, and hit this question."""
        with contextlib.suppress(KeeperError, Closed), keeper.connect() as client:
            records = client.call("info")["records"]
            return (records["state"], records["pending"], records["lost"]) == ("ok", 0, 0)

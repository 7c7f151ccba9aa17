"""The queue of a session: what has ended is told once to whoever asks for it (B-127, B-128)."""

import threading
from collections import Counter

from lib import procs
from lib.agents import AgentCase
from lib.client import Closed, KeeperError


class QueueCase(AgentCase):
    def run_one(self, script="exit 0", client=None, **args):
        """A process from start to end; its id."""
        return self.finish(client or self.client, script, completion=True, **args)["id"]

    def take(self, client=None, **args):
        return (client or self.client).call("completions", **args)

    def taken(self, client=None, **args):
        return [record["id"] for record in self.take(client, **args)["processes"]]


class CompletionsTest(QueueCase):
    def test_b127_each_end_once_and_oldest_first(self):
        """Three ends in the order of their ends, as full records; then there is nothing."""
        gates = [self.start(self.client, "read x", stdin="pipe", completion=True)["id"] for _ in range(3)]
        order = [gates[2], gates[0], gates[1]]
        for process in order:
            self.client.call("close_stdin", id=process)
            self.ended(process)
        answer = self.take()
        self.assertEqual([record["id"] for record in answer["processes"]], order)
        self.assertEqual((answer["notes"], answer["more"]), ([], False))
        self.assertEqual(answer["processes"][0], self.status(order[0]))
        self.assertEqual(self.take(), {"processes": [], "notes": [], "more": False})

    def test_b127_only_for_who_asked(self):
        """A spawn that does not ask leaves nothing, nor does one that could not be executed: that has been answered."""
        self.finish(self.client, "exit 0")
        self.finish(self.client, "exit 0", completion=False)
        for args in ({}, {"record_failure": True}):
            self.assert_refused(self.client, "spawn_failed", "spawn", argv=["/nonexistent/program"], completion=True, **args)
        self.assertEqual(self.taken(), [])

    def test_b127_every_cause_but_cancelled(self):
        """Own end, signal, kill, time limit, stop: each is a completion."""
        ids = [self.run_one("exit 7"), self.run_one("kill -9 $$"), self.run_one("exec sleep 300", timeout_ms=1)]
        for op in ("kill", "stop"):
            ids.append(self.start(self.client, completion=True)["id"])
            self.client.call(op, id=ids[-1])
        causes = {record["id"]: record["end_cause"] for record in self.take()["processes"]}
        wanted = ["self_exit", "signal", "timed_out", "killed_by_request", "killed_by_request"]
        self.assertEqual(causes, dict(zip(ids, wanted)))

    def test_b128_cancelled_gives_none(self):
        """A cancelled one is not in the queue; its exited event says why it ended."""
        events = self.connect()
        request = events.submit("follow_events", {"replay": False})
        process = self.start(self.client, completion=True, call_id="c")["id"]
        self.assertEqual(self.client.call("cancel", call_ids=["c"])["cancelled"], [process])
        self.assertEqual(self.taken(), [])
        while (event := events.item(request))["event"] != "exited":
            pass
        self.assertEqual((event["process"]["id"], event["process"]["end_cause"]), (process, "cancelled"))
        self.assertEqual(self.client.call("cancel", call_ids=["c"])["cancelled"], [])

    def test_b127_look_without_taking_and_limit(self):
        """take false leaves all where it is; limit takes the oldest, and says that there are more."""
        ids = [self.run_one() for _ in range(12)]
        for _ in range(2):
            answer = self.take(take=False)
            self.assertEqual(([record["id"] for record in answer["processes"]], answer["more"]), (ids[:10], True))
        answer = self.take(limit=4)
        self.assertEqual(([record["id"] for record in answer["processes"]], answer["more"]), (ids[:4], True))
        answer = self.take(limit=8)
        self.assertEqual(([record["id"] for record in answer["processes"]], answer["more"]), (ids[4:], False))

    def test_b127_bad_arguments(self):
        """Limits that are no numbers from 1 to 100, times below 0, sessions that are not there."""
        for args, field in (({"limit": 0}, "limit"), ({"limit": 101}, "limit"), ({"timeout_ms": -1}, "timeout_ms"),
                            ({"session": "ses-9"}, "session"), ({"session": ""}, "session"), ({"take": 1}, "take")):
            with self.subTest(args=args):
                self.assertEqual(self.assert_refused(self.client, "invalid_input", "completions", **args)["field"], field)

    def test_b127_large_records_come_in_several_answers(self):
        """Records that do not fit into one frame together: more says so, none is lost."""
        word = "\x01" * 60000
        ids = [self.client.call("spawn", argv=["true", word, str(n)], completion=True)["process"]["id"] for n in range(24)]
        for process in ids:
            self.ended(process)
        seen, answers = [], 0
        while True:
            answer = self.take(limit=100)
            answers += 1
            seen += [record["id"] for record in answer["processes"]]
            if not answer["more"]:
                break
        self.assertEqual(Counter(seen), Counter(ids))
        self.assertGreater(answers, 1)

    def test_b127_released_ones_leave_it_and_receipts_stay(self):
        """release and gc take them out."""
        ids = [self.run_one() for _ in range(3)]
        self.client.call("release", id=ids[1])
        self.assertEqual(self.taken(take=False), [ids[0], ids[2]])
        self.client.call("gc")
        self.assertEqual(self.taken(), [])
        live = self.start(self.client, completion=True)["id"]
        self.client.call("release", id=live)
        self.assertEqual(self.taken(), [])


class WaitingTest(QueueCase):
    def test_b127_waits_for_the_next_end(self):
        """With a timeout the answer comes with the end; at the time limit it is empty."""
        self.assertEqual(self.taken(timeout_ms=10), [])
        process = self.start(self.client, "read x", stdin="pipe", completion=True)["id"]
        waiting = self.client.submit("completions", {"timeout_ms": 600000})
        self.client.call("close_stdin", id=process)
        answer = self.client.finish(waiting).result
        self.assertEqual([record["id"] for record in answer["processes"]], [process])
        self.assertEqual(self.taken(timeout_ms=0), [])

    def test_b127_one_end_answers_one_caller(self):
        """Two wait, one process ends: who has waited longer gets it, the other goes on waiting for the next."""
        first, second = self.connect(), self.connect()
        waiting = [client.submit("completions", {"timeout_ms": 600000}) for client in (first, second)]
        # Both are being served before anything ends: an answer behind them shows it.
        for client in (first, second):
            client.call("info")
        one = self.run_one()
        self.assertEqual([r["id"] for r in first.finish(waiting[0]).result["processes"]], [one])
        two = self.run_one()
        self.assertEqual([r["id"] for r in second.finish(waiting[1]).result["processes"]], [two])

    def test_b127_who_goes_takes_nothing_along(self):
        """A wait that is cancelled, and a connection that goes while it waits, leave the end for others."""
        waiting = self.client.submit("completions", {"timeout_ms": 600000})
        self.client.cancel(waiting)
        with self.assertRaises(KeeperError) as caught:
            self.client.finish(waiting)
        self.assertEqual(caught.exception.code, "cancelled")
        gone = self.connect()
        gone.submit("completions", {"timeout_ms": 600000})
        gone.call("info")
        gone.close()
        procs.wait_until(lambda: self.client.call("info")["connections"] == 1, "the connection is gone")
        process = self.run_one()
        self.assertEqual(self.taken(), [process])

    def test_b127_who_does_not_read_holds_nobody_up(self):
        """It has waited longest, but there is no room for its answer: another takes the end, and it gets the next one."""
        size = 4 << 20
        data = self.finish(self.client, f"head -c {size} /dev/zero", ring_bytes=size)["id"]
        slow = self.connect()
        waiting = slow.submit("completions", {"timeout_ms": 600000})
        read = slow.submit("read", {"id": data, "max": size})
        unread = lambda: self.client.call("agent_show", agent="main")["agent"]["use"]["unread_bytes"]
        procs.wait_until(unread, "it has more to read than its socket takes")
        first = self.run_one()
        self.assertEqual(self.taken(), [first])
        self.assertEqual(len(slow.finish(read).bytes()), size)
        second = self.run_one()
        self.assertEqual([record["id"] for record in slow.finish(waiting).result["processes"]], [second])

    def test_b127_what_was_not_read_is_given_again(self):
        """The answers are still with the keeper when their client goes: the ends are the next caller's, the oldest first."""
        size = 32 << 10  # a client's socket takes some of them, and the keeper keeps some more
        data = self.finish(self.client, f"head -c {size} /dev/zero")["id"]
        ids = [self.run_one() for _ in range(30)]
        deaf = self.connect()
        for _ in ids:
            deaf.submit("read", {"id": data, "max": size})
            deaf.submit("completions", {"limit": 1})
        before = None
        while before != (before := self.taken(take=False, limit=100)) or len(before) == len(ids):
            self.client.call("info")
        self.assertTrue(before, "the control: some wait until there is room")
        deaf.close()
        procs.wait_until(lambda: self.client.call("info")["connections"] == 1, "the connection is gone")
        after = self.taken(limit=100)
        self.assertEqual(after, ids[len(ids) - len(after):])
        self.assertGreater(len(after), len(before), "what was in the keeper's own hands has come back")

    def test_b127_what_was_read_stays_taken(self):
        """Its client goes afterwards."""
        process = self.run_one()
        client = self.connect()
        self.assertEqual(self.taken(client), [process])
        client.close()
        procs.wait_until(lambda: self.client.call("info")["connections"] == 1, "the connection is gone")
        self.assertEqual(self.taken(), [])

    def test_b127_many_takers_get_each_end_once(self):
        """Four connections take at once what forty processes leave: every one in exactly one answer."""
        takers, seen = [self.connect() for _ in range(4)], []

        def drive(client):
            while answer := [record["id"] for record in client.call("completions", limit=3, timeout_ms=10000)["processes"]]:
                seen.extend(answer)
                if len(seen) >= 40:
                    break

        threads = [threading.Thread(target=drive, args=[client]) for client in takers]
        for thread in threads:
            thread.start()
        ids = [self.client.call("spawn", argv=["true"], completion=True)["process"]["id"] for _ in range(40)]
        for process in ids:
            self.ended(process)
        procs.wait_until(lambda: len(seen) >= 40, "all are taken")
        # Those who still wait for a further one get one each.
        extra = []
        for _ in threads:
            extra.append(self.run_one())
        for thread in threads:
            thread.join()
        left = self.taken(limit=100)
        self.assertEqual(Counter(seen + left), Counter(ids + extra))


class SessionsTest(QueueCase):
    def test_b127_each_session_has_its_own(self):
        """An end is in the queue of its own session alone; `default` names the agent's own."""
        one, two = (self.client.call("session_new")["session"]["id"] for _ in range(2))
        in_one, in_two, own = self.run_one(session=one), self.run_one(session=two), self.run_one()
        self.assertEqual(self.taken(take=False), [own])
        self.assertEqual(self.taken(session="default"), [own])
        self.assertEqual(self.taken(session=one), [in_one])
        self.assertEqual(self.taken(session=two), [in_two])

    def test_b127_ends_with_its_session(self):
        """What it held is not to be had any more; nor do its last ends go elsewhere."""
        session = self.client.call("session_new")["session"]["id"]
        running = self.start(self.client, session=session, completion=True, progress_interval_ms=100)["id"]
        answer = self.take(session=session, timeout_ms=600000, take=False)
        self.assertEqual([note["id"] for note in answer["notes"]], [running])
        self.run_one(session=session)
        self.client.call("session_end", id=session, grace_ms=0)
        self.assertEqual(self.status(running)["end_cause"], "session_end")
        self.assertEqual(self.take(), {"processes": [], "notes": [], "more": False})
        self.assert_refused(self.client, "invalid_input", "completions", session=session)

    def test_b127_a_waiter_of_an_ended_session_is_told(self):
        """Nothing in it, somebody waits, it ends: `closed`."""
        session = self.client.call("session_new")["session"]["id"]
        waiter = self.connect()
        waiting = waiter.submit("completions", {"session": session, "timeout_ms": 600000})
        waiter.call("info")
        self.client.call("session_end", id=session)
        with self.assertRaises(KeeperError) as caught:
            waiter.finish(waiting)
        self.assertEqual(caught.exception.code, "closed")

    def test_b127_only_the_sessions_own_agent(self):
        """Agents above, below, beside and of another principal have neither the ends nor the session."""
        who = {"main": self.client, **self.family()}
        session = who["a"].call("session_new")["session"]["id"]
        process, own = self.run_one(client=who["a"], session=session), self.run_one(client=who["a"])
        answers = {}
        for name, client in who.items():
            if name == "a":
                continue
            self.assertEqual(self.taken(client), [])
            answers[name] = client.answer("completions", {"session": session})
            self.assert_same({"there": answers[name], "nowhere": client.answer("completions", {"session": "ses-999"})})
        self.assert_same(answers)
        self.assertEqual(answers["main"]["error"]["code"], "invalid_input")
        self.assertEqual((self.taken(who["a"], session=session), self.taken(who["a"])), ([process], [own]))

    def test_b127_an_agent_that_is_removed(self):
        """Its waiting callers go with their connections; the keeper goes on."""
        who = self.keeper.agent("main/a")
        self.start(who, completion=True, progress_interval_ms=100)
        who.submit("completions", {"timeout_ms": 600000, "take": False})
        session = who.call("session_new")["session"]["id"]
        who.submit("completions", {"timeout_ms": 600000, "session": session})
        who.call("info")
        self.client.call("agent_remove", agent="a")
        self.assertEqual(who.until_closed()["details"]["reason"], "agent_removed")
        self.assertEqual(self.taken(), [])


class CapsTest(QueueCase):
    settings = {"max_finished": 2, "max_receipts": 4}

    def test_b127_bounded_by_what_is_kept(self):
        """Receipts stay in the queue; a receipt that is dropped leaves it."""
        ids = [self.run_one() for _ in range(12)]
        records = self.take(limit=100)["processes"]
        self.assertEqual([record["id"] for record in records], ids[-6:])
        self.assertEqual([record["receipt"] for record in records], [True] * 4 + [False] * 2)


class NoMemoryTest(QueueCase):
    """COOP_FAULT=alloc:N:M lets every M-th allocation of the keeper fail."""

    def attempt(self, keeper, op, **args):
        """One operation over a connection of its own: its result, or None."""
        try:
            with keeper.connect(timeout=10) as client:
                return client.call(op, **args)
        except KeeperError as error:
            self.assertIn(error.code, ("internal", "spawn_failed", "unavailable"), error)
        except (Closed, ConnectionError):
            pass
        self.assertIsNone(keeper.process.poll(), "the keeper must live")
        return None

    def test_b127_an_answer_that_fails_takes_nothing(self):
        """However often memory is missing: each end that the keeper knows of comes in one answer, and none twice."""
        for fault in ("alloc:400:211", "alloc:500:307"):
            with self.subTest(fault=fault):
                keeper = self.start_keeper(env={"COOP_FAULT": fault})
                wants = {"completion": True, "digest": True, "progress_interval_ms": 100}
                for _ in range(40):
                    self.attempt(keeper, "spawn", argv=["true"], **wants)
                seen, wanted = [], None

                def take():
                    nonlocal wanted
                    seen.extend(record["id"] for record in (self.attempt(keeper, "completions", limit=2) or {"processes": []})["processes"])
                    listed = self.attempt(keeper, "list", include_finished=True)
                    wanted = listed and Counter(record["id"] for record in listed["processes"])
                    return wanted and all(record["exit"] for record in listed["processes"]) and len(seen) >= len(listed["processes"])

                procs.wait_until(take, "all are taken")
                self.assertEqual(Counter(seen), wanted)
                self.assertGreater(len(seen), 1)

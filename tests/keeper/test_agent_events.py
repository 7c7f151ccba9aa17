"""What subscribers are told: once, in order, and only about what they may see (B-126)."""

import threading
from collections import Counter

from lib import procs
from lib.client import KeeperError, json_frame
from lib.records import SECRET, RecordsCase, dumps

PROCESS = {"id", "label", "tag", "agent", "agent_path", "session", "pid", "state"}
EXITED = PROCESS | {"started_at", "ended_at", "exit", "end_cause", "bytes", "output_path", "receipt"}


class Subscriber:
    """One open follow_events; every event it has read is kept."""

    def __init__(self, client, **args):
        self.client = client
        self.request = client.submit("follow_events", args)
        self.events = []
        first = client.item(self.request)
        if "error" in first:
            raise KeeperError(first["error"])
        assert first["event"] == "subscribed", first

    def until(self, wanted):
        """Reads until an event for which `wanted` is true, and gives it."""
        while True:
            event = self.client.item(self.request)
            self.events.append(event)
            if wanted(event):
                return event

    def until_exited(self, process):
        return self.until(lambda e: e["event"] == "exited" and e["process"]["id"] == process)

    def exited(self):
        return Counter(e["process"]["id"] for e in self.events if e["event"] == "exited")

    def of(self, process):
        return [e["event"] for e in self.events if e.get("process", {}).get("id") == process]


class EventsCase(RecordsCase):
    def subscribe(self, client=None, token=None, **args):
        """A connection of its own, as its client's agent if a token is given."""
        connection = client or (self.login(token) if token else self.connect())
        return Subscriber(connection, **args)

    def run_one(self, client, *argv, **args):
        """A process from start to end; its id."""
        process = client.call("spawn", argv=list(argv or ["true"]), **args)["process"]["id"]
        client.call("wait", id=process)
        return process


class ExitedTest(EventsCase):
    def test_b126_once_for_each_entitled_subscriber(self):
        """Four agents work at once, each with two subscribers: one exited per process for who may see it, none for others."""
        paths = ["main", "main/a", "main/a/x", "main/b"]
        for path in paths[1:]:
            self.client.call("agent_add", agent=path)
        tokens = {path: self.token(path) for path in paths}
        sees = {path: [other for other in paths if other == path or other.startswith(path + "/")] for path in paths}
        subscribers = [(path, self.subscribe(token=tokens[path])) for path in paths for _ in range(2)]
        workers = {path: self.login(tokens[path]) for path in paths}
        owned = {path: [] for path in paths}

        def drive(path):
            for number in range(12):
                argv = ["true"] if number % 3 else ["sh", "-c", "echo x; kill $$"]
                owned[path].append(self.run_one(workers[path], *argv))

        threads = [threading.Thread(target=drive, args=[path]) for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({path: len(ids) for path, ids in owned.items()}, dict.fromkeys(paths, 12))
        last = {path: self.run_one(workers[path]) for path in paths}
        for path, subscriber in subscribers:
            for other in sees[path]:
                if not subscriber.exited()[last[other]]:
                    subscriber.until_exited(last[other])
            expected = Counter(process for other in sees[path] for process in [*owned[other], last[other]])
            self.assertEqual(subscriber.exited(), expected, path)
            seen = {e["process"]["agent_path"] for e in subscriber.events if "process" in e}
            self.assertEqual(seen, set(sees[path]))
            for process in expected:
                order = subscriber.of(process)
                self.assertEqual((order[0], order[-1], order.count("started")), ("started", "exited", 1))

    def test_b126_members(self):
        """exited comes after the record is final and says what it says; no value of the environment is in any event."""
        subscriber = self.subscribe()
        args = {"tag": "web", "env": {"KEY": SECRET}, "overflow": "spool"}
        process = self.run_one(self.client, "sh", "-c", "echo four; echo e >&2; exit 3", **args)
        event = subscriber.until_exited(process)
        record = self.status(process)
        self.assertLessEqual(EXITED, set(event["process"]))
        for name in EXITED - {"bytes", "receipt"}:
            self.assertEqual(event["process"][name], record[name], name)
        self.assertEqual(event["process"]["bytes"], {"stdout": 5, "stderr": 2})
        self.assertTrue(event["process"]["output_path"])
        self.assertEqual((event["live"], event["process"]["agent"]), (True, "self"))
        started = subscriber.events[0]
        self.assertEqual(started["event"], "started")
        self.assertLessEqual(PROCESS, set(started["process"]))
        self.assertIn("at", started)
        self.assertNotIn(SECRET, dumps(subscriber.events))

    def test_b126_final_when_told(self):
        """Whoever asks for the record on hearing of the end gets the final one, every time."""
        subscriber = self.subscribe()
        for _ in range(30):
            process = self.spawn("true")["id"]
            subscriber.until_exited(process)
            self.assertEqual((self.status(process)["state"], self.status(process)["exit"]["code"]), ("exited", 0))

    def test_b126_late_subscriber(self):
        """A late one gets the exited of what has ended at once, each once, and then what happens; replay false only the latter."""
        ids = [self.run_one(self.client, "sh", "-c", f"exit {code}") for code in range(4)]
        released = self.run_one(self.client)
        self.client.call("release", id=released)
        running = self.sh("read x", stdin="pipe")["id"]
        late, later = self.subscribe(), self.subscribe(replay=False)
        self.client.reply("write_stdin", {"id": running}, b"\n")
        for subscriber in (late, later):
            subscriber.until_exited(running)
        old = [e for e in late.events if not e.get("live")]
        self.assertEqual([(e["event"], e["process"]["id"]) for e in old], [("exited", process) for process in ids])
        self.assertEqual([e["process"]["exit"]["code"] for e in old], [0, 1, 2, 3])
        self.assertEqual(late.events[: len(old)], old, "what was comes first")
        self.assertEqual(set(later.exited()), {running})
        self.assertEqual(late.exited()[running], 1)

    def test_b126_late_after_a_restart(self):
        """Receipts of an earlier keeper are told too, as receipts."""
        process = self.run_one(self.client, "sh", "-c", "exit 3")
        self.restart()
        event = self.subscribe().until_exited(process)
        self.assertEqual((event["process"]["exit"]["code"], event["process"]["receipt"]), (3, True))

    def test_b126_late_sees_its_own_only(self):
        """Replay too is for who may see it."""
        one, other = self.agent("main/a"), self.agent("main/b")
        mine, his = self.run_one(one), self.run_one(other)
        for token, sees in (("main", {mine, his}), ("main/a", {mine}), ("main/b", {his})):
            subscriber = self.subscribe(token=self.token(token))
            last = self.run_one(self.login(self.token(token)))
            subscriber.until_exited(last)
            self.assertEqual(set(subscriber.exited()) - {last}, sees, token)

    def test_b126_removed_agent(self):
        """What ends because its agent was removed is told to those above, with that cause; the agent's own subscription ends."""
        agent = self.agent("main/a")
        process = agent.call("spawn", argv=["sleep", "300"])["process"]["id"]
        subscriber = self.subscribe()
        self.client.call("agent_remove", agent="main/a")
        event = subscriber.until_exited(process)
        self.assertEqual((event["process"]["end_cause"], event["process"]["agent_path"]), ("owner_retired", "main/a"))
        self.assertEqual(subscriber.exited()[process], 1)
        agent.until_closed()


class KindsTest(EventsCase):
    def test_b126_stopped_and_continued(self):
        """A process that is stopped and goes on: both are told, also when it was done from outside."""
        record = self.spawn("sleep", "300")
        subscriber = self.subscribe()
        self.client.call("signal", id=record["id"], signal="STOP")
        event = subscriber.until(lambda e: e["event"] == "stopped")
        self.assertEqual((event["process"]["id"], event["process"]["state"]), (record["id"], "stopped"))
        self.client.call("signal", id=record["id"], signal="CONT")
        event = subscriber.until(lambda e: e["event"] == "continued")
        self.assertEqual((event["process"]["id"], event["process"]["state"]), (record["id"], "running"))
        self.client.call("kill", id=record["id"])
        subscriber.until_exited(record["id"])
        self.assertEqual(subscriber.of(record["id"]), ["stopped", "continued", "exited"])

    def test_b126_output_first(self):
        """The first output of a process is told once, with its stream, before the end."""
        subscriber = self.subscribe()
        process = self.sh("echo a; echo b; read x; echo c >&2; echo d", stdin="pipe")["id"]
        event = subscriber.until(lambda e: e["event"] == "output_first")
        self.assertEqual((event["process"]["id"], event["stream"]), (process, "stdout"))
        self.client.reply("write_stdin", {"id": process}, b"\n")
        subscriber.until_exited(process)
        streams = [e["stream"] for e in subscriber.events if e["event"] == "output_first"]
        self.assertEqual(streams, ["stdout"])
        pty = self.client.call("spawn", argv=["echo", "x"], kind="pty")["process"]["id"]
        subscriber.until_exited(pty)
        self.assertEqual(subscriber.of(pty), ["started", "output_first", "exited"])
        silent = self.spawn("true")["id"]
        subscriber.until_exited(silent)
        self.assertEqual(subscriber.of(silent), ["started", "exited"])

    def test_b126_quota_refused(self):
        """A refusal for want of room is told to the agent and those above, with limit and use, and to nobody else."""
        agent, other = self.agent("main/a", max_running=1), self.agent("main/b")
        agent.call("spawn", argv=["sleep", "300"])
        own, above, beside = (self.subscribe(token=self.token(path)) for path in ("main/a", "main", "main/b"))
        with self.refused("registry_full") as caught:
            agent.call("spawn", argv=["true"], env={"KEY": SECRET})
        for subscriber in (own, above):
            event = subscriber.until(lambda e: e["event"] == "quota_refused")
            self.assertNotIn("process", event)
            self.assertEqual((event["agent_path"], event["code"]), ("main/a", "registry_full"))
            self.assertEqual(event["details"], caught.exception.details)
            self.assertEqual(event["message"], caught.exception.message)
            self.assertNotIn(SECRET, dumps(event))
        self.assertEqual((own.events[-1]["agent"], above.events[-1]["agent"]), ("self", "a"))
        beside.until_exited(self.run_one(other))
        self.assertNotIn("quota_refused", [e["event"] for e in beside.events])

    def test_b126_selection(self):
        """agent and session select among what the caller may see; what matches nothing tells nothing."""
        agent = self.agent("main/a")
        session = self.client.call("session_new", label="s")["session"]["id"]
        chosen = {"agent": self.subscribe(agent="main/a"), "self": self.subscribe(agent="self"),
                  "session": self.subscribe(session=session), "all": self.subscribe()}
        ids = [self.run_one(agent), self.run_one(self.client), self.run_one(self.client, session=session)]
        wanted = {"agent": ids[:1], "self": ids[1:], "session": ids[2:], "all": ids}
        for name, subscriber in chosen.items():
            for process in wanted[name]:
                if process not in subscriber.exited():
                    subscriber.until_exited(process)
            self.assertEqual(subscriber.exited(), Counter(wanted[name]), name)

    def test_b126_cancel_and_goodbye(self):
        """A cancelled subscription is answered; one whose connection goes is forgotten; others go on."""
        stays, goes, cancelled = self.subscribe(), self.subscribe(), self.subscribe()
        self.assertEqual(self.client.call("info")["subscribers"], 3)
        goes.client.close()
        cancelled.client.cancel(cancelled.request)
        with self.refused("cancelled"):
            cancelled.client.finish(cancelled.request)
        procs.wait_until(lambda: self.client.call("info")["subscribers"] == 1, "two are gone")
        stays.until_exited(self.run_one(self.client))

    def test_b126_bad_arguments(self):
        """Wrong types and unknown arguments are refused; nothing is left open."""
        for args in ({"replay": "yes"}, {"agent": 7}, {"session": []}, {"nonsense": 1}):
            with self.subTest(args=args), self.refused("invalid_input"):
                self.subscribe(**args)
        self.assertEqual(self.client.call("info")["subscribers"], 0)


class SlowTest(EventsCase):
    FLOOD = 16000

    @staticmethod
    def accounted(subscriber):
        """Events that were read, and those that were said to be lost."""
        gaps = [e["lost"] for e in subscriber.events if e["event"] == "gap"]
        return len(subscriber.events) - len(gaps) + sum(gaps), gaps

    def read_all(self, subscriber, number):
        """Reads until so many events are accounted for."""
        total = 0
        while total < number:
            event = subscriber.until(lambda _: True)
            total += event["lost"] if event["event"] == "gap" else 1

    def test_b126_slow_subscriber_is_told_the_number(self):
        """One does not read while much happens: it gets a gap with the right number, another gets all, and nobody waits."""
        path = "main"
        for depth in range(6):
            path += f"/{'n' * 60}{depth}"
            self.client.call("agent_add", agent=path, **({"max_running": 0} if depth == 5 else {}))
        slow, fast = self.subscribe(), self.subscribe()
        busy = self.login(self.token(path))
        reader = threading.Thread(target=self.read_all, args=[fast, self.FLOOD])
        reader.start()
        # Refusals cost nothing but their event; in pieces, as a connection has no more than 256 open requests.
        for _ in range(self.FLOOD // 200):
            for request in busy.submit_all([("spawn", {"argv": ["true"]})] * 200):
                with self.assertRaises(KeeperError):
                    busy.finish(request)
        reader.join()
        self.assertEqual(self.accounted(fast)[0], self.FLOOD)
        self.read_all(slow, self.FLOOD)
        total, gaps = self.accounted(slow)
        self.assertEqual(total, self.FLOOD)
        self.assertTrue(gaps and all(lost > 0 for lost in gaps), "the control: it was slow enough to lose some")
        last = self.run_one(self.client)
        for subscriber in (slow, fast):
            subscriber.until_exited(last)
            self.assertEqual(self.accounted(subscriber)[0], self.FLOOD + 2)

    def test_b126_slow_subscriber_holds_nobody_up(self):
        """While one connection reads nothing, requests of others and its own keeper's memory are as ever."""
        slow = self.connect()
        slow.send_raw(json_frame({"id": 1, "op": "follow_events", "args": {}}))
        procs.wait_until(lambda: self.client.call("info")["subscribers"] == 1, "it is subscribed")
        for _ in range(50):
            self.run_one(self.client)
        self.assertEqual(self.client.call("info")["subscribers"], 1)

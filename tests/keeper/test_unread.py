"""Answers that nobody reads: they count for their agent, stay within its memory, and hold nobody else up."""

import contextlib

from lib import procs
from lib.agents import OTHER, AgentCase
from lib.client import Client, Closed, Data, KeeperError, data_frames, json_frame
from lib.place import sanitized

KIB, MIB = 1 << 10, 1 << 20
CONNECTIONS = 200
RING = 4 * MIB
BUDGET = 32 * MIB
# What a connection has whatever its agent may: 16 KiB of room and a piece of 64 KiB in a buffer of 128 KiB, 64 KiB of
# requests, which are at most 16 here. The rest is the allocator's.
EACH = 256 * KIB
# Of the disk's bytes a piece of 512 KiB comes at a time, and is copied into a buffer of 1 MiB.
EACH_DISK = EACH + 1536 * KIB
# An answer that can go on in another is 256 KiB then, and has one record more, in a buffer of 512 KiB.
EACH_LIST = EACH + 512 * KIB
# The one that makes the account full.
ANSWER = 8 * MIB
# Red zones, and what was freed is held back.
ROOM_FOR_CHECKS = 600 * MIB if sanitized() else 0


def peak(pid):
    """The most memory that a process ever had, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) * KIB


class UnreadCase(AgentCase):
    profile = "full"
    settings = {"agent_max_connections": 400, "max_connections": 2000}

    def setUp(self):
        super().setUp()
        self.a = self.keeper.agent("main/a", max_buffer_bytes=BUDGET)
        self.b = self.keeper.agent("main/b")
        self.alice = self.keeper.agent("main", OTHER)
        self.token = self.keeper.token("main/a")["token"]

    def use(self, agent="main/a"):
        return self.client.call("agent_show", agent=agent)["agent"]["use"]

    def much(self, **args):
        """A finished process of the agent's that has filled its ring."""
        return self.finish(self.a, f"seq 1 100000000 | head -c {RING}", ring_bytes=RING, **args)["id"]

    def flood(self, requests, each=EACH):
        """Connections that ask for all this and read nothing; the keeper stays within what the agent may have."""
        idle = self.use()
        self.running = self.start(self.a, "echo here; exec sleep 300", ring_bytes=4096)["id"]
        self.line(self.a, self.running)
        before = peak(self.keeper.pid)
        self.assertEqual(idle["unread_bytes"], 0)
        crowd = [self.keeper.connect().login(self.token) for _ in range(CONNECTIONS)]
        for client in crowd:
            client.submit_all(requests)
        procs.wait_until(lambda: self.use()["unread_bytes"] > BUDGET - idle["buffer_bytes"], "the account is full")
        self.settled()
        self.assertLess(peak(self.keeper.pid) - before, BUDGET + ANSWER + CONNECTIONS * each + ROOM_FOR_CHECKS)
        self.assertLess(self.use()["unread_bytes"], BUDGET + ANSWER + CONNECTIONS * each)
        self.assert_others_go_on()
        self.assert_reserve()
        for client in crowd:
            client.close()
        procs.wait_until(lambda: self.use()["unread_bytes"] == 0, "nothing is unread")
        self.assertEqual(self.use("main")["unread_bytes"], 0)
        self.assertEqual(self.use()["buffer_bytes"], idle["buffer_bytes"])
        self.finish(self.a, "exit 0", ring_bytes=BUDGET // 8)

    def settled(self):
        """All that was asked for has been looked at: ten looks find the same."""
        looks = []

        def look():
            looks.append((self.use()["unread_bytes"], self.client.call("metrics")["bytes"]["sent"]))
            return len(looks) > 10 and len(set(looks[-10:])) == 1

        procs.wait_until(look, "the keeper has answered as far as it will")

    def assert_others_go_on(self, *others):
        for client in others or (self.b, self.alice, self.client):
            process = self.start(client, "seq 1 100000; exec sleep 300")["id"]
            procs.wait_until(lambda: client.call("read", id=process, max=0)["total"] == 588895, "all of it came")
            self.assertEqual(len(client.reply("read", {"id": process, "max": MIB}).bytes()), 588895)
            self.assertTrue(client.call("kill", id=process)["success"])

    def assert_reserve(self):
        """The agent itself: refused what needs memory, not what looks or gives it back."""
        error = self.refusal(self.a, "spawn", argv=["true"], ring_bytes=RING)
        self.assertEqual((error.code, error.details["scope"]), ("quota", "buffer"))
        fresh = self.keeper.connect().login(self.token)
        for client in (self.a, fresh):
            self.assertIn(self.running, [record["id"] for record in self.pages(client)])
            self.assertEqual(client.reply("read", {"id": self.running}).bytes(), b"here\n")
        self.assertTrue(fresh.call("kill", id=self.running)["success"])
        self.assertTrue(fresh.call("release", id=self.running)["released"])

    def pages(self, client):
        found, after = [], {}
        while True:
            page = client.call("list", include_finished=True, **after)
            found += page["processes"]
            if not page["more"]:
                return found
            after = {"after": found[-1]["id"]}


class OutputTest(UnreadCase):
    """Output stays in its ring until a socket takes it."""

    def test_reads(self):
        process = self.much()
        self.flood([("read", {"id": process, "max": RING})] * 16)

    def test_reads_by_event(self):
        process = self.much()
        self.flood([("read", {"id": process, "max": RING, "stream": "combined", "times": True})] * 16)

    def test_reads_from_the_disk(self):
        """A spool gives 512 KiB at a time, for one read of a connection."""
        process = self.finish(self.a, f"seq 1 100000000 | head -c {RING}", ring_bytes=4096, overflow="spool")["id"]
        self.flood([("read", {"id": process, "max": RING}), ("read", {"id": process, "max": RING, "stream": "output"})] * 8, EACH_DISK)

    def test_follows(self):
        process = self.much()
        self.flood([("follow", {"id": process}), ("follow", {"id": process, "mode": "events"})] * 8)

    def test_waits_with_output(self):
        process = self.much()
        self.flood([("wait", {"id": process, "output_bytes": MIB})] * 16)


class PrincipalTest(UnreadCase):
    """The account of the whole principal is full: the operator's own, too."""

    settings = {**UnreadCase.settings, "principal_buffer_bytes": BUDGET}

    def assert_others_go_on(self):
        super().assert_others_go_on(self.alice)
        for client in (self.client, self.b):
            error = self.refusal(client, "spawn", argv=["true"], ring_bytes=RING)
            self.assertEqual((error.code, error.details["scope"]), ("quota", "buffer"))
        self.assertTrue(self.client.call("stop", id=self.own)["success"])
        self.assertTrue(self.client.call("release", id=self.own)["released"])
        self.assertIn(self.running, [record["id"] for record in self.pages(self.client)])

    def test_reads(self):
        process = self.much()
        self.own = self.start(self.client, ring_bytes=4096)["id"]
        self.flood([("read", {"id": process, "max": RING})] * 16)


class ListTest(UnreadCase):
    """Answers in one frame: they end early while the account is full, and can be gone on with."""

    def setUp(self):
        super().setUp()
        self.ended = [self.finish(self.a, "exit 0", argv=["sh", "-c", "exit 0", "x" * 60000])["id"] for _ in range(28)]

    def start(self, client, script="exec sleep 300", argv=None, **args):
        return client.call("spawn", argv=argv or ["sh", "-c", script], **args)["process"]

    def test_lists(self):
        self.flood([("list", {"include_finished": True})] * 16, EACH_LIST)

    def test_completions_and_ends_of_before(self):
        for _ in range(28):
            self.ended.append(self.finish(self.a, "exit 0", argv=["sh", "-c", "exit 0", "x" * 60000], completion=True)["id"])
        self.flood([("completions", {"take": False}), ("follow_events", {"replay": True})] * 8, EACH_LIST)

    def test_status_of_many(self):
        """An answer that cannot go on in another: one a connection, as no more is read from one that has so much unread."""
        self.flood([("status", {"ids": self.ended[:8]})] * 16, EACH_LIST + MIB)


class SlowTest(UnreadCase):
    """Who reads slowly gets every byte, once."""

    def taken(self, client, request):
        """All that comes for a request, taken from the socket a little at a time."""
        chunks = []
        while True:
            item = client.item(request)
            if isinstance(item, Data):
                chunks.append(item)
            elif "result" in item:
                return chunks, item["result"]
            elif "error" in item:
                raise KeeperError(item["error"])

    def test_a_read_and_a_follow_on_one_connection(self):
        process = self.much()
        whole = b"".join(b"%d\n" % n for n in range(1, 800000))[:RING]
        client = self.keeper.connect().login(self.token)
        asked = [
            ("read", {"id": process, "max": RING}),
            ("follow", {"id": process}),
            ("read", {"id": process, "max": RING, "stream": "combined", "times": True}),
            ("read", {"id": process, "max": RING, "tail": RING}),
            ("wait", {"id": process, "output_bytes": MIB}),
            ("follow", {"id": process, "mode": "events"}),
        ]
        ids = client.submit_all(asked)
        procs.wait_until(lambda: self.use()["unread_bytes"], "its socket is full")
        for request, (op, args) in zip(ids, asked):
            chunks, result = self.taken(client, request)
            with self.subTest(op=op, args=args):
                self.assertEqual(b"".join(chunk.data for chunk in chunks), whole[: args.get("output_bytes", RING)])
                at = 0
                for chunk in chunks:
                    self.assertEqual(chunk.offset, at)
                    at += len(chunk.data)
                if args.get("times"):
                    self.assertEqual([(event["cursor"], event["offset"], event["bytes"]) for event in result["events"]],
                                     [(chunk.cursor, chunk.offset, len(chunk.data)) for chunk in chunks])  # fmt: skip
                    self.assertEqual((result["cursor"], result["bytes"], result["gaps"]), (0, RING, []))
        procs.wait_until(lambda: self.use()["unread_bytes"] == 0, "all of it is read")

    def overwritten(self, stream):
        """The answer to a read of a whole ring that goes round before the client takes it; and the client, the process."""
        go = self.keeper.place.work / "go"
        script = f"seq 1 100000000 | head -c {RING}; while ! [ -e {go} ]; do sleep 0.05; done; seq 1 100000000 | head -c {RING}"
        process = self.start(self.a, script, ring_bytes=RING)["id"]
        total = lambda: self.a.call("read", id=process, max=0)["total"]
        procs.wait_until(lambda: total() == RING, "the ring is full")
        client = self.keeper.connect().login(self.token)
        request = client.submit("read", {"id": process, "max": RING, "stream": stream})
        procs.wait_until(lambda: self.use()["unread_bytes"], "its socket is full")
        go.touch()
        procs.wait_until(lambda: total() == 2 * RING, "it has gone round")
        return client, process, client.finish(request)

    def test_overwritten_meanwhile(self):
        """A read ends early where its bytes are gone, and the next one tells of them."""
        client, process, reply = self.overwritten("stdout")
        got = len(reply.bytes())
        self.assertTrue(0 < got < RING, got)
        self.assertEqual((reply.result["cursor"], reply.result["next"], reply.result["bytes_dropped"]), (0, got, 0))
        rest = client.reply("read", {"id": process, "cursor": got, "max": RING})
        self.assertEqual((rest.result["cursor"], rest.result["bytes_dropped"]), (RING, RING - got))
        self.assertEqual(len(rest.bytes()), RING)

    def test_overwritten_meanwhile_by_event(self):
        """A read by events has a gap there, of exactly what is missing, and goes on."""
        _, _, reply = self.overwritten("combined")
        (gap,) = reply.result["gaps"]
        self.assertEqual(gap["bytes"], reply.result["bytes_dropped"])
        before = [chunk for chunk in reply.chunks if chunk.cursor < gap["from_cursor"]]
        after = [chunk for chunk in reply.chunks if chunk.cursor >= gap["to_cursor"]]
        self.assertEqual(len(before) + len(after), len(reply.chunks))
        self.assertEqual(before[-1].offset + len(before[-1].data) + gap["bytes"], after[0].offset)
        self.assertEqual([chunk.cursor for chunk in before], list(range(gap["from_cursor"])))
        self.assertEqual(reply.result["bytes"], sum(len(chunk.data) for chunk in reply.chunks))
        self.assertLessEqual(reply.result["bytes"], RING)

    def test_cancelled_and_released_while_they_wait(self):
        """What was held for a request that goes, or for a process that is forgotten, goes as well."""
        process = self.much()
        client = self.keeper.connect().login(self.token)
        ids = client.submit_all([("read", {"id": process, "max": RING, "stream": s}) for s in ("stdout", "combined", "stdout")])
        procs.wait_until(lambda: self.use()["unread_bytes"], "its socket is full")
        for request in ids[:2]:
            client.cancel(request)
        self.assertTrue(self.a.call("release", id=process)["released"])
        for request in ids[:2]:
            with self.assertRaises(KeeperError) as caught:
                client.finish(request)
            self.assertEqual(caught.exception.code, "cancelled")
        self.assertEqual(len(client.finish(ids[2]).bytes()), RING)
        procs.wait_until(lambda: self.use()["buffer_bytes"] == 0, "all of it is given back")


class ReserveTest(AgentCase):
    """Some memory is set aside: with all allocations failing, whoever is there can end what uses it."""

    slots = 0

    def exhausted(self):
        """A keeper that has two processes and no memory any more, and a connection of its operator's that was idle."""
        keeper = self.start_keeper(env={"COOP_FAULT": "alloc:6000:1"})
        client, idle = keeper.clients[0], keeper.connect()
        ids = [self.start(client)["id"] for _ in range(4)]
        with self.assertRaises(KeeperError) as caught:
            for _ in range(6000):
                client.call("read", id=ids[0])
        self.assertEqual(caught.exception.details.get("errno"), "ENOMEM", caught.exception)
        return keeper, idle, ids

    def test_kill_release_and_list(self):
        keeper, idle, ids = self.exhausted()
        for client in (idle, keeper.connect()):
            with self.subTest(client=client):
                error = self.refusal(client, "spawn", argv=["true"])
                self.assertEqual(error.details.get("errno"), "ENOMEM", error)
                self.assertEqual(set(self.ids(client)), set(ids))
                self.assertTrue(client.call("kill", id=ids[0])["success"])
                self.assertTrue(client.call("stop", id=ids[1], grace_ms=100)["success"])
                for process in ids[:2]:
                    self.assertTrue(client.call("release", id=process)["released"])
                del ids[:2]
        self.assertEqual(self.ids(idle), [])

    def test_an_agent_that_logs_in(self):
        keeper = self.start_keeper(env={"COOP_FAULT": "alloc:6000:1"})
        agent = keeper.agent("main/a", workspace=None)
        token, gate = keeper.token("main/a")["token"], keeper.clients[0].call("info")["gate"]
        process = self.start(agent)["id"]
        with self.assertRaises(KeeperError):
            for _ in range(6000):
                agent.call("read", id=process)
        client = Client(gate)
        keeper.clients.append(client)
        client.login(token)
        self.assertEqual(self.ids(client), [process])
        self.assertTrue(client.call("kill", id=process)["success"])
        self.assertTrue(client.call("release", id=process)["released"])

    def test_shutdown(self):
        keeper, idle, _ = self.exhausted()
        below = procs.descendants(keeper.process.pid)
        idle.call("shutdown", grace_ms=100)
        self.expect_end(keeper, (0,))
        procs.wait_until(lambda: not [pid for pid in below if procs.alive(pid)], "all have ended")


class HalfSentTest(UnreadCase):
    """Requests that do not come in full count, too."""

    def assert_bounded(self, send):
        """Sixty clients send a part of a request each, more than twice of what their agent may have in all."""
        self.running = self.start(self.a, "echo here; exec sleep 300", ring_bytes=4096)["id"]
        self.line(self.a, self.running)
        before = peak(self.keeper.pid)
        crowd = [self.keeper.connect().login(self.token) for _ in range(60)]
        for client in crowd:
            send(client)
        procs.wait_until(lambda: self.use()["unread_bytes"] > BUDGET - 8 * MIB, "much has come of them")
        self.settled()
        self.assertLess(peak(self.keeper.pid) - before, 2 * BUDGET + ROOM_FOR_CHECKS)
        self.assertLessEqual(self.use()["unread_bytes"], BUDGET)
        self.assert_others_go_on()
        self.assert_reserve()
        for client in crowd:
            client.close()
        procs.wait_until(lambda: self.use()["unread_bytes"] == 0, "nothing waits for the rest of a request")

    @staticmethod
    def announce(client, size=4 * MIB):
        """The request, of whose bytes none has come."""
        args = {"argv": ["cat"], "ring_bytes": 4096}
        return client.submit_raw(lambda id: json_frame({"id": id, "op": "spawn", "args": args, "data": size}))

    def test_bytes_behind_requests(self):
        def send(client):
            client.send_raw(data_frames(self.announce(client), bytes(3 * MIB)))

        self.assert_bounded(send)

    def test_requests_themselves(self):
        def send(client):
            with contextlib.suppress(Closed):  # while it sends
                client.send_raw(json_frame({"id": 1, "op": "spawn", "args": {"argv": ["x" * (6 * MIB)]}})[: 5 * MIB])

        self.assert_bounded(send)

    def test_who_is_refused_is_told(self):
        crowd = [self.keeper.connect().login(self.token) for _ in range(8)]
        requests = [self.announce(client) for client in crowd[:7]]
        procs.wait_until(lambda: self.use()["unread_bytes"] == 28 * MIB, "seven wait for their bytes")
        with self.refused("quota") as caught:
            crowd[7].reply("spawn", {"argv": ["cat"]}, bytes(4 * MIB + 1))
        self.assertEqual(caught.exception.details["scope"], "buffer")
        large = json_frame({"id": 9, "op": "spawn", "args": {"argv": ["x" * (5 * MIB)]}})
        crowd[7].send_raw(large[: 64 * KIB])
        self.assertEqual(crowd[7].until_closed()["code"], "quota")
        # Those that were taken go on.
        crowd[0].send_raw(data_frames(requests[0], bytes(4 * MIB)))
        process = crowd[0].finish(requests[0]).result["process"]["id"]
        self.a.call("kill", id=process)
        self.assertEqual(self.use()["unread_bytes"], 24 * MIB)

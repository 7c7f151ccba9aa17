"""Subscriptions, on both transports: what is told, to whom, how often, and how it ends (M-040 to M-042)."""

import json
import signal
import time

from lib import procs
from lib.http_client import Ended
from lib.mcp import CANCELLED, INVALID_PARAMS, LATEST_LEGACY, META, RESOURCES_CHANGED, UPDATED
from lib.mcp_case import HttpCase, StdioCase
from lib.place import patience

RECORD, OUTPUT = "coop://process/{id}", "coop://process/{id}/output"
# 10 000 lines, each a write of its own, over some seconds.
MANY = "i=0; while [ $i -lt 10000 ]; do echo $i; i=$((i+1)); [ $((i % 100)) -gt 0 ] || sleep 0.03; done"


class Subscriptions:
    def updated(self, pending, uri):
        """Waits for an update of just this resource."""
        note = pending.note()
        self.assertEqual((note["method"], note["params"]["uri"]), (UPDATED, uri))
        return note

    def waiting_process(self, name="go"):
        return self.background(f"until [ -e {name} ]; do sleep 0.02; done; echo {name}; until [ -e {name}-end ]; do sleep 0.02; done")

    def test_m040_acknowledged_first(self):
        """The acknowledgement names the accepted subset, and every message has the id of the request in its own type."""
        process = self.waiting_process()
        for number in (41, "forty-two"):
            uri = RECORD.format(id=process)
            pending, accepted = self.peer.listen(number, resourceSubscriptions=[uri], promptsListChanged=True)
            self.assertEqual(accepted["resourceSubscriptions"], [uri])
            self.assertFalse(accepted.get("promptsListChanged", False))
            pending.cancel()

    def test_m040_only_what_was_asked_for(self):
        """One process of two, and no lists; an end is always told."""
        first, second = self.waiting_process("first"), self.waiting_process("second")
        uri = RECORD.format(id=first)
        pending, _ = self.peer.listen(resourceSubscriptions=[uri])
        for name in ("second", "second-end", "first", "first-end"):
            (self.work / name).touch()
        self.ok("wait_for_process", pid=second)
        self.ok("wait_for_process", pid=first)
        self.updated(pending, uri)
        while json.loads(self.peer.call("resources/read", {"uri": uri})["contents"][0]["text"])["state"] != "exited":
            self.updated(pending, uri)

    def test_m040_two_at_once(self):
        """Each is told its own, under its own id."""
        first, second = self.waiting_process("first"), self.waiting_process("second")
        one, _ = self.peer.listen("one", resourceSubscriptions=[RECORD.format(id=first)])
        two, _ = self.peer.listen("two", resourceSubscriptions=[RECORD.format(id=second)])
        (self.work / "first").touch()
        (self.work / "first-end").touch()
        self.ok("wait_for_process", pid=first)
        note = self.updated(one, RECORD.format(id=first))
        self.assertEqual(note["params"]["_meta"][META + "subscriptionId"], "one")
        self.assertEqual(self.record(second)["state"], "running")
        one.cancel()
        for name in ("second", "second-end"):
            (self.work / name).touch()
        self.updated(two, RECORD.format(id=second))

    def test_m040_lists(self):
        """Processes that come and go change the list."""
        pending, accepted = self.peer.listen(resourcesListChanged=True)
        self.assertTrue(accepted["resourcesListChanged"])
        process = self.background("exec sleep 300")
        self.assertEqual(pending.note()["method"], RESOURCES_CHANGED)
        self.assertIn(process, self.listed())

    def test_m040_nothing_asked_nothing_told(self):
        """An empty filter is acknowledged as such; a filter of a wrong form is refused."""
        pending, accepted = self.peer.listen()
        self.assertFalse(any(accepted.values()), accepted)
        self.background("exec sleep 300")
        self.assertTrue(pending.quiet(0.3))
        for params in ({}, {"notifications": []}, {"notifications": 7}, {"notifications": {"resourceSubscriptions": "x"}},
                       {"notifications": {"resourceSubscriptions": [7]}}):
            self.refused(INVALID_PARAMS, None, "subscriptions/listen", params)

    def test_m040_legacy(self):
        """subscribe, updated, unsubscribe: nothing afterwards."""
        peer = self.connect(LATEST_LEGACY)
        process = self.waiting_process()
        uri = RECORD.format(id=process)
        if self.transport == "http":
            peer.open_stream()
        self.assertEqual(peer.call("resources/subscribe", {"uri": uri}), {})
        (self.work / "go").touch()
        self.assertEqual(peer.loose(UPDATED)["params"], {"uri": uri})
        self.assertEqual(peer.call("resources/unsubscribe", {"uri": uri}), {})
        peer.notes.clear()
        (self.work / "go-end").touch()
        self.ok("wait_for_process", peer, pid=process)
        peer.call("ping")
        self.assertEqual([note for note in peer.notes if note["method"] == UPDATED], [])

    def test_m041_10_000_events_are_coalesced(self):
        """At most two updates a second, always one after the end, and reading gives the final state."""
        process = self.background(f"until [ -e go ]; do sleep 0.02; done; {MANY}; echo last")
        uris = [RECORD.format(id=process), OUTPUT.format(id=process)]
        pending, accepted = self.peer.listen(resourceSubscriptions=uris)
        self.assertEqual(set(accepted["resourceSubscriptions"]), set(uris))
        begin = time.monotonic()
        (self.work / "go").touch()
        self.ok("wait_for_process", pid=process, timeout_ms=45000)
        counts = dict.fromkeys(uris, 0)
        final = set()
        while final != set(uris):
            uri = pending.note()["params"]["uri"]
            counts[uri] += 1
            text = self.peer.call("resources/read", {"uri": uri})["contents"][0]["text"]
            if uri == uris[0] and json.loads(text)["state"] == "exited" or uri == uris[1] and text.endswith("last\n"):
                final.add(uri)
        while not pending.quiet(1.2):
            counts[pending.note()["params"]["uri"]] += 1
        seconds = time.monotonic() - begin
        for uri, count in counts.items():
            self.assertLessEqual(count, 2 * seconds + 2, uri)

    def test_m041_a_subscriber_that_does_not_read(self):
        """Is told once when it reads again, not ten thousand times."""
        process = self.background(f"until [ -e go ]; do sleep 0.02; done; {MANY}")
        uri = OUTPUT.format(id=process)
        slow = self.connect()
        pending, _ = slow.listen(resourceSubscriptions=[uri])
        begin = time.monotonic()
        (self.work / "go").touch()
        self.ok("wait_for_process", pid=process, timeout_ms=45000)
        count = 0
        while not pending.quiet(1.2):
            pending.note()
            count += 1
        self.assertGreater(count, 0)
        self.assertLessEqual(count, 2 * (time.monotonic() - begin) + 2)

    def test_a_process_that_asks_for_input_is_told(self):
        """blocked_on_stdin is a change of the record, so that nobody has to look again and again."""
        process = self.ok("run_command", command="sh", args=["-c", "until [ -e go ]; do sleep 0.02; done; read line; exec sleep 300"], wait=False,
                          open_stdin=True)["id"]
        uri = RECORD.format(id=process)
        pending, _ = self.peer.listen(resourceSubscriptions=[uri])
        (self.work / "go").touch()
        while not json.loads(self.peer.call("resources/read", {"uri": uri})["contents"][0]["text"])["blocked_on_stdin"]:
            self.updated(pending, uri)

    def test_many_subscriptions(self):
        """Hundreds at once are served or refused, and the server works on."""
        process = self.waiting_process()
        uri = RECORD.format(id=process)
        pendings = [self.peer.listen(resourceSubscriptions=[uri])[0] for _ in range(100)]
        (self.work / "go").touch()
        (self.work / "go-end").touch()
        for pending in pendings:
            self.updated(pending, uri)
        for pending in pendings:
            pending.cancel()
        self.assertEqual(self.listed(), [])

    def check_graceful(self, pending, process):
        """cancelled with the id of the request, then the empty complete result."""
        note = pending.note(CANCELLED)
        self.assertEqual(note["params"]["requestId"], pending.id)
        self.assertIs(type(note["params"]["requestId"]), type(pending.id))
        result = pending.finish()
        self.assertEqual(set(result) - {"_meta"}, {"resultType"})
        self.assertEqual(self.record(process)["state"], "running")


class StdioSubscriptionsTest(Subscriptions, StdioCase):
    def test_m042_end_of_input(self):
        process = self.background("exec sleep 300")
        for number in (7, "seven"):
            peer = self.connect()
            pending, _ = peer.listen(number, resourceSubscriptions=[RECORD.format(id=process)])
            peer.close_stdin()
            self.check_graceful(pending, process)
            self.assertEqual(peer.read_to_end(), 0)

    def test_m042_sigterm(self):
        """The same words; and a kill has none, so that a client can tell them apart."""
        process = self.background("exec sleep 300")
        peer = self.connect()
        pending, _ = peer.listen(resourceSubscriptions=[RECORD.format(id=process)])
        peer.process.send_signal(signal.SIGTERM)
        self.check_graceful(pending, process)
        self.assertEqual(peer.read_to_end(), 0)
        peer = self.connect()
        pending, _ = peer.listen(resourceSubscriptions=[RECORD.format(id=process)])
        peer.process.send_signal(signal.SIGKILL)
        self.assertEqual(peer.read_to_end(), -signal.SIGKILL)
        self.assertEqual((len(pending.notes), pending.answer), (0, None))

    def test_cancelling_a_subscription_ends_it_silently(self):
        process = self.waiting_process()
        pending, _ = self.peer.listen(resourceSubscriptions=[RECORD.format(id=process)])
        pending.cancel()
        (self.work / "go").touch()
        (self.work / "go-end").touch()
        self.ok("wait_for_process", pid=process)
        self.peer.call("tools/list")


class HttpSubscriptionsTest(Subscriptions, HttpCase):
    pass


class HttpStopTest(HttpCase):
    own = True
    check_graceful = Subscriptions.check_graceful

    def test_m042_serve_stops(self):
        process = self.background("exec sleep 300")
        pending, _ = self.peer.listen("mine", resourceSubscriptions=[RECORD.format(id=process)])
        self.gateway.process.send_signal(signal.SIGTERM)
        note = pending.note(CANCELLED)
        self.assertEqual(note["params"]["requestId"], "mine")
        self.assertEqual(set(pending.finish()) - {"_meta"}, {"resultType"})
        self.gateway.process.wait(patience(60))

    def test_m042_a_drop_is_something_else(self):
        """A gateway that is killed says nothing; the client sees the stream break off."""
        process = self.background("exec sleep 300")
        pending, _ = self.peer.listen(resourceSubscriptions=[RECORD.format(id=process)])
        self.gateway.kill_gateway()
        with self.assertRaises(Ended):
            pending.note()
        self.assertIsNone(pending.answer)
        procs.wait_until(lambda: self.peer.tool("list_processes").get("processes"), "the next one serves")
        self.assertEqual(self.listed(), [process])

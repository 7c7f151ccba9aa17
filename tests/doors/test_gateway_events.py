"""GET /v1/events: what happens to processes, as server-sent events."""

import json
import time
import unittest

from lib.client import KeeperError
from lib.gateway import GatewayCase
from lib.http_client import Ended
from lib.place import patience
from lib.procs import wait_until


class EventStream:
    """Reads the stream as an EventSource does, and fails on what it would not understand."""

    def __init__(self, gateway, query="", token=None, **options):
        self.connection = gateway.connect(**options)
        target = "/v1/events" + (f"?{query}" if query else "")
        self.connection.send_request("GET", target, gateway.headers(token))
        self.status, self.headers = self.connection.read_head()
        self.text = b""
        self.comments = 0

    def body(self):
        return self.connection.read_body("GET", self.status, self.headers)

    def _chunk(self):
        size = int(self.connection.take_until(b"\r\n", 1 << 10)[:-2], 16)
        data = self.connection.take(size)
        assert self.connection.take(2) == b"\r\n"
        return data

    def raw(self):
        """The next piece, as it was sent."""
        assert not self.text, self.text
        return self._chunk()

    def next(self):
        """(name, data) of the next event; None at the end of the stream."""
        while b"\n\n" not in self.text:
            chunk = self._chunk()
            if not chunk:
                assert not self.text, self.text
                return None
            self.text += chunk
        block, _, self.text = self.text.partition(b"\n\n")
        if block.startswith(b":"):
            self.comments += 1
            return self.next()
        lines = block.decode("utf-8").split("\n")
        assert [line.partition(": ")[0] for line in lines] == ["event", "data"], lines
        name, data = (line.partition(": ")[2] for line in lines)
        value = json.loads(data)
        assert value["event"] == name and "id" not in value, value
        return name, value

    def until(self, name, process=None):
        """Events up to the first of that name, of that process; it is the last of them."""
        found = []
        while True:
            event = self.next()
            assert event, f"the stream ended without {name}: {found}"
            found.append(event)
            if event[0] == name and process in (None, event[1].get("process", {}).get("id")):
                return found

    def close(self):
        self.connection.close()


class EventsCase(GatewayCase):
    def op(self, name, token=None, **args):
        response = self.request("POST", f"/v1/ops/{name}", args, token=token)
        self.assertEqual(response.status, 200, response.body)
        return response.json()

    def spawn(self, *argv, **args):
        return self.op("spawn", argv=list(argv), cwd=str(self.work), **args)["process"]["id"]

    def stream(self, query="", **options):
        found = EventStream(self.gateway, query, **options)
        self.addCleanup(found.close)
        return found

    def subscribed(self, query="replay=false", **options):
        found = self.stream(query, **options)
        self.assertEqual(found.status, 200)
        self.assertEqual(found.next(), ("subscribed", {"event": "subscribed"}))
        return found


class Events(EventsCase):
    def test_the_life_of_a_process_is_told(self):
        events = self.subscribed()
        self.assertEqual(events.headers["content-type"], "text/event-stream")
        self.assertEqual(events.headers["cache-control"], "no-store")
        found = self.spawn("/bin/echo", "hello")
        told = [event for event in events.until("exited", found) if event[1]["process"]["id"] == found]
        self.assertEqual([name for name, _ in told], ["started", "output_first", "exited"])
        end = told[-1][1]["process"]
        self.assertEqual((end["exit"]["code"], end["bytes"]["stdout"]), (0, 6))

    def test_what_has_ended_comes_first_unless_it_is_not_wanted(self):
        found = self.spawn("/bin/true")
        self.op("wait", id=found)
        replayed = self.stream().until("exited", found)
        self.assertFalse(replayed[-1][1]["live"])
        events = self.subscribed()
        later = self.spawn("/bin/true")
        names = {event[1]["process"]["id"] for event in events.until("exited", later)}
        self.assertNotIn(found, names)

    def test_the_query_selects(self):
        session = self.op("session_new")["session"]["id"]
        events = self.subscribed(f"replay=false&session={session}")
        self.op("wait", id=self.spawn("/bin/true"))
        inside = self.spawn("/bin/true", session=session)
        self.assertEqual({event[1]["process"]["id"] for event in events.until("exited", inside)}, {inside})
        token = self.gateway.agent_token("main/chosen")
        events = self.subscribed("replay=false&agent=main/chosen")
        self.op("wait", id=self.spawn("/bin/true"))
        chosen = self.spawn("/bin/true", token=token)
        self.assertEqual({event[1]["process"]["id"] for event in events.until("exited", chosen)}, {chosen})

    def test_an_agent_sees_its_own_only(self):
        token = self.gateway.agent_token("main/listener")
        events = self.subscribed(token=token)
        self.op("wait", id=self.spawn("/bin/true"))
        own = self.spawn("/bin/true", token=token)
        self.assertEqual({event[1]["process"]["id"] for event in events.until("exited", own)}, {own})

    def test_a_wrong_query_is_refused(self):
        for query in ("replay=maybe", "replay=1", "agent=%zz", "session=%00"):
            with self.subTest(query=query):
                self.assert_refused(self.request("GET", f"/v1/events?{query}"), 400, "invalid_input")

    def test_head_is_answered_and_ends(self):
        with self.gateway.connect() as connection:
            for _ in range(2):
                response = connection.request("HEAD", "/v1/events", self.gateway.headers())
                self.assertEqual((response.status, response.headers["content-type"]), (200, "text/event-stream"))

    def test_a_token_is_needed(self):
        self.assert_refused(self.request("GET", "/v1/events", token=False), 401, "unauthorized")

    def test_a_client_that_goes_is_forgotten(self):
        keeper = self.gateway.keeper()
        before = keeper.call("info")["subscribers"]
        events = [self.subscribed() for _ in range(5)]
        self.assertEqual(keeper.call("info")["subscribers"], before + 5)
        for stream in events:
            stream.close()
        wait_until(lambda: keeper.call("info")["subscribers"] == before, "nobody listens")

    def test_a_revoked_token_ends_the_stream(self):
        token = self.gateway.agent_token("main/short")
        events = self.subscribed(token=token)
        [row] = self.op("token_list", agent="main/short")["tokens"]
        self.op("token_revoke", id=row["id"])
        try:
            self.assertIsNone(events.next())
        except Ended:
            pass

    def test_a_silent_stream_says_that_it_lives(self):
        events = self.subscribed()
        self.assertEqual(events.raw(), b": alive\n\n")

    def test_the_end_of_the_gateway_ends_the_stream(self):
        gateway = self.start_gateway()
        events = EventStream(gateway, "replay=false")
        self.addCleanup(events.close)
        self.assertEqual(events.next()[0], "subscribed")
        began = time.monotonic()
        gateway.stop()
        try:
            self.assertIsNone(events.next())
        except Ended:
            pass
        self.assertLess(time.monotonic() - began, patience(60))


class SlowReader(EventsCase):
    """Refused starts are events too, and cost next to nothing: there can be very many."""

    settings = {"max_running": 1}

    def refuse(self, keeper, count):
        args = {"argv": ["/bin/true"], "cwd": "/", "sandbox": {"profile": "full"}}
        requests = [keeper.submit("spawn", args) for _ in range(count)]
        for request in requests:
            with self.assertRaises(KeeperError) as caught:
                keeper.finish(request)
            self.assertEqual(caught.exception.code, "registry_full")

    def test_a_slow_client_is_told_how_many_it_missed(self):
        """It reads nothing while far more happens than may wait for it; what it got and what it missed is all there was."""
        running = self.spawn("/bin/sleep", "300")
        slow, quick = self.subscribed(receive_buffer=4096), self.subscribed()
        count, batch = 24000, 200
        with self.gateway.keeper() as keeper:
            for _ in range(count // batch):
                self.refuse(keeper, batch)
                for _ in range(batch):
                    self.assertEqual(quick.next()[0], "quota_refused")
        got = lost = 0
        while got + lost < count:
            name, value = slow.next()
            self.assertIn(name, ("gap", "quota_refused"))
            lost += value["lost"] if name == "gap" else 0
            got += name != "gap"
        self.assertEqual(got + lost, count)
        self.assertGreater(lost, 0)
        self.op("kill", id=running)
        self.assertEqual(slow.until("exited", running)[-1][1]["process"]["id"], running)


if __name__ == "__main__":
    unittest.main()

"""Notes: what coop says of a process among its output, at the same place for every reader."""

import unittest

from lib import procs
from lib.agents import AgentCase


class NoteCase(AgentCase):
    slots = 0

    def events(self, process, client=None, **args):
        """(cursor, stream, bytes) of a combined read with notes."""
        reply = (client or self.client).reply("read", {"id": process, "stream": "combined", "notes": True, **args})
        return [(chunk.cursor, chunk.stream, chunk.data) for chunk in reply.chunks]

    def followed(self, process, client=None, **args):
        reply = (client or self.client).reply("follow", {"id": process, "mode": "events", "notes": True, **args})
        return [(chunk.cursor, chunk.stream, chunk.data) for chunk in reply.chunks], reply


class ReasonTest(NoteCase):
    def reason(self, process):
        """The one note of a process that has ended, right before its exit; every reader has it, and nobody counts it."""
        record = self.ended(process)
        events = self.events(process)
        notes = [event for event in events if event[1] == "note"]
        self.assertEqual(len(notes), 1, events)
        self.assertEqual(notes[0], events[-1])
        self.assertEqual(notes[0][0] + 1, record["events"]["exit"])
        self.assertEqual(self.followed(process)[0], events)
        self.assertEqual(self.followed(process, since=notes[0][0])[0], notes)
        plain = self.client.reply("read", {"id": process, "stream": "combined"})
        self.assertEqual([chunk.cursor for chunk in plain.chunks], [event[0] for event in events[:-1]])
        self.assertEqual(plain.result["next"], record["events"]["exit"])
        self.assertEqual((plain.result["bytes_dropped"], plain.result["events_dropped"], plain.result["gaps"]), (0, 0, []))
        self.assertEqual(plain.result["total"], sum(len(event[2]) for event in events[:-1]))
        unaware = self.client.reply("follow", {"id": process, "mode": "events"})
        self.assertEqual([event["event"] for event in unaware.events], ["attached"], "no gap where a note is")
        text = notes[0][2].decode()
        self.assertTrue(text.startswith("coop: ") and text.endswith("\n") and len(notes[0][2]) <= 512, text)
        return text[6:-1]

    def test_note_of_a_time_limit(self):
        process = self.sh("echo out; exec sleep 60", timeout_ms=400, digest=True)["id"]
        self.assertEqual(self.reason(process), "timed out after 400 ms")
        self.assertEqual(self.status(process)["digest"]["bytes"], 4)

    def test_note_of_a_kill_says_who(self):
        process = self.sh("echo out; exec sleep 60")["id"]
        self.wait_output(process, b"out\n")
        self.client.call("kill", id=process)
        self.assertEqual(self.reason(process), "killed by SIGKILL: asked for by main (kill)")

    def test_note_of_other_ends(self):
        for args, op, reason in (
            ({}, ("stop", {}), "killed by SIGTERM: asked for by main (stop)"),
            ({}, ("signal", {"signal": "INT"}), "killed by SIGINT: asked for by main (signal)"),
            ({"idle_timeout_ms": 200}, None, "ended: no output, input or call for 200 ms"),
            ({"max_lifetime_ms": 200}, None, "ended at its greatest age, 200 ms"),
        ):
            with self.subTest(reason=reason):
                process = self.spawn("sleep", "60", **args)["id"]
                if op:
                    self.client.call(op[0], id=process, **op[1])
                self.assertEqual(self.reason(process), reason)

    def test_an_end_of_its_own_has_no_note(self):
        for script in ("exit 0", "exit 3", "kill -9 $$"):
            process = self.sh(script)["id"]
            self.ended(process)
            self.assertEqual(self.events(process), [])

    def test_note_of_a_failed_start(self):
        """The reason is also what the record keeps as evidence."""
        for args, reason in (
            ({"argv": ["/no/such/program"]}, "cannot execute /no/such/program: No such file or directory"),
            ({"argv": ["/etc/passwd"]}, "cannot execute /etc/passwd: Permission denied"),
            ({"argv": ["a\x1b[2J\nb"]}, "cannot execute a?[2J?b: No such file or directory"),
        ):
            with self.subTest(reason=reason):
                error = self.refusal(self.client, "spawn", record_failure=True, **args)
                process = error.details["id"]
                self.assertEqual(self.reason(process), reason)
                self.assertEqual(self.status(process)["end_evidence"]["message"], reason)


class OwnTest(NoteCase):
    def test_an_owner_adds_notes_among_the_output(self):
        process = self.sh("echo a; read x; echo b", stdin="pipe")["id"]
        self.wait_output(process, b"a\n")
        self.assertEqual(self.client.call("note", id=process, text="something"), {"added": True, "cursor": 1})
        self.assertEqual(self.client.call("note", id=process, text="something", once=True), {"added": False, "cursor": None})
        self.assertEqual(self.client.call("note", id=process, text="something"), {"added": True, "cursor": 2})
        self.client.reply("write_stdin", {"id": process}, b"\n")
        record = self.ended(process)
        note = b"coop: something\n"
        expected = [(0, "stdout", b"a\n"), (1, "note", note), (2, "note", note), (3, "stdout", b"b\n")]
        self.assertEqual(self.events(process), expected)
        self.assertEqual(self.followed(process)[0], expected)
        for since in range(5):
            self.assertEqual(self.events(process, cursor=since), expected[since:])
            self.assertEqual(self.followed(process, since=since)[0], expected[since:])
        self.assertEqual((record["streams"]["stdout"]["end"], record["events"]["exit"]), (4, 4))
        self.assertEqual(self.client.call("note", id=process, text="late"), {"added": False, "cursor": None}, "nothing follows the exit")

    def test_small_budgets_get_on(self):
        """A read that takes one byte at a time comes past notes, and one of none takes nothing."""
        process = self.sh("echo a; exec sleep 60")["id"]
        self.wait_output(process, b"a\n")
        self.client.call("note", id=process, text="x")
        seen, cursor = [], 0
        while cursor < 2:
            reply = self.client.reply("read", {"id": process, "stream": "combined", "notes": True, "cursor": cursor, "max": 1})
            self.assertGreater(reply.result["next"], cursor)
            seen += [chunk.stream for chunk in reply.chunks]
            cursor = reply.result["next"]
        self.assertEqual(seen, ["stdout", "note"])
        self.assertEqual(self.events(process, max=0), [])

    def test_a_live_follower_gets_them_at_once(self):
        process = self.spawn("sleep", "60")["id"]
        request = self.client.submit("follow", {"id": process, "mode": "events", "notes": True})
        self.client.item(request)
        self.client.call("note", id=process, text="hello")
        chunk = self.client.item(request)
        self.assertEqual((chunk.stream, chunk.cursor, chunk.offset, chunk.data), ("note", 0, 0, b"coop: hello\n"))

    def test_notes_are_bounded(self):
        """12 of an owner's; the keeper's own reason still has its place. Each is cut to 512 bytes of whole characters."""
        process = self.spawn("sleep", "60")["id"]
        added = [self.client.call("note", id=process, text=f"{i} " + "é" * 230)["added"] for i in range(20)]
        self.assertEqual(added, [True] * 12 + [False] * 8)
        self.client.call("kill", id=process)
        events = self.events(process)
        self.assertEqual(len(events), 13)
        self.assertIn(b"SIGKILL", events[-1][2])
        with self.refused("invalid_input", "text"):
            self.client.call("note", id=process, text="")
        with self.refused("too_large", "text"):
            self.client.call("note", id=process, text="x" * 600)

    def test_control_characters_do_not_come_through(self):
        process = self.spawn("sleep", "60")["id"]
        self.client.call("note", id=process, text="a\x1b]0;x\x07\r\nb\u0085c")
        self.assertEqual(self.events(process)[0][2], "coop: a?]0;x???b?c\n".encode())

    def test_only_the_owner_adds_notes(self):
        child = self.keeper.agent("main/child")
        process = self.start(child)["id"]
        self.assert_refused(self.client, "not_owner", "note", id=process, text="x")
        self.assertTrue(child.call("note", id=process, text="x")["added"])
        self.assertEqual(self.events(process), [(0, "note", b"coop: x\n")], "who may look sees them")

    def test_where_they_do_not_go(self):
        process = self.spawn("sleep", "60")["id"]
        with self.refused("invalid_input", "notes"):
            self.client.call("read", id=process, notes=True)
        with self.refused("invalid_input", "notes"):
            self.client.call("follow", id=process, notes=True)

    def test_notes_leave_with_the_index(self):
        """A note that has fallen out of the index is an event that is gone, of no bytes."""
        keeper = self.start_keeper({"max_events": 16})
        client = keeper.connect()
        process = self.start(client, "read x; i=0; while [ $i -lt 40 ]; do echo $i; read x; i=$((i+1)); done", stdin="pipe")["id"]
        client.call("note", id=process, text="first")
        for i in range(41):
            client.reply("write_stdin", {"id": process}, b"\n")
            if i < 40:
                procs.wait_until(lambda: b"%d\n" % i in client.reply("read", {"id": process}).bytes(), "a line")
        client.call("wait", id=process)
        reply = client.reply("read", {"id": process, "stream": "combined", "notes": True})
        self.assertEqual((reply.result["events_dropped"], len(reply.chunks)), (25, 16))
        self.assertEqual(reply.result["bytes_dropped"] + sum(len(chunk.data) for chunk in reply.chunks), reply.result["total"])


if __name__ == "__main__":
    unittest.main()

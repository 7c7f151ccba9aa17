"""Notes about what runs for long: how much it has printed, how long it has been silent (B-129)."""

from lib import procs
from lib.agents import AgentCase
from lib.client import KeeperError

FAST = 100


class Notes:
    """One open follow_events; `next` gives the next progress event, all others are kept."""

    def __init__(self, client, **args):
        self.client = client
        self.request = client.submit("follow_events", {"replay": False, **args})
        assert client.item(self.request)["event"] == "subscribed"
        self.others = []

    def next(self):
        while (event := self.client.item(self.request))["event"] != "progress":
            self.others.append(event)
        return event

    def until(self, wanted, process):
        """Every event of a process up to one of that name."""
        seen = []
        while not seen or seen[-1]["event"] != wanted:
            event = self.client.item(self.request)
            if event["process"]["id"] == process:
                seen.append(event)
        return seen


class EventsTest(AgentCase):
    def test_b129_interval_doubles(self):
        """Of a silent process: each note comes after at least twice the time of the one before, and tells of a longer silence."""
        notes = Notes(self.connect())
        process = self.start(self.client, progress_interval_ms=FAST)["id"]
        least = 0
        for n in range(4):
            event = notes.next()
            least += FAST * 2**n
            self.assertEqual(set(event), {"id", "event", "at", "process", "bytes", "new_bytes", "silence_ms"})
            self.assertEqual((event["process"]["id"], event["process"]["state"]), (process, "running"))
            self.assertEqual((event["bytes"], event["new_bytes"]), ({"stdout": 0, "stderr": 0}, 0))
            self.assertGreaterEqual(event["silence_ms"], least)

    def test_b129_new_bytes_since_the_last_note(self):
        """Bytes of each stream in all, and what came since the note before."""
        notes = Notes(self.connect())
        script = "while read word; do printf $word; printf $word >&2; done"
        process = self.start(self.client, script, stdin="pipe", progress_interval_ms=FAST)["id"]
        total = 0
        for word in (b"12345", b"678"):
            self.client.reply("write_stdin", {"id": process}, word + b"\n")
            fresh, wanted = 0, total + 2 * len(word)
            while total < wanted:
                event = notes.next()
                self.assertEqual(event["new_bytes"], sum(event["bytes"].values()) - total)
                total = sum(event["bytes"].values())
                fresh += event["new_bytes"]
            self.assertEqual(fresh, 2 * len(word))
        self.assertEqual(event["bytes"], {"stdout": 8, "stderr": 8})

    def test_b129_silence_ends_with_a_byte(self):
        """After output the silence is shorter than the life; a terminal has its one stream."""
        notes = Notes(self.connect())
        process = self.start(self.client, "stty -echo; read x; echo; exec sleep 300", kind="pty", progress_interval_ms=FAST)
        procs.wait_until(lambda: self.status(process["id"])["echo_off"], "echo is off")
        long = notes.next()
        self.assertEqual(long["bytes"], {"pty": 0})
        self.client.reply("write_stdin", {"id": process["id"]}, b"\n")
        while not (event := notes.next())["new_bytes"]:
            long = event
        life = self.client.call("status", id=process["id"])["process"]["duration_ms"]
        self.assertLess(event["silence_ms"], life - long["silence_ms"] + 1)
        self.assertEqual(event["bytes"], {"pty": 2})

    def test_b129_none_after_the_end(self):
        """Notes stop with the process, also where it leaves others behind, and nobody else gets any."""
        notes = Notes(self.connect())
        process = self.start(self.client, "(sleep 300) & read x", stdin="pipe", progress_interval_ms=FAST)["id"]
        other = self.start(self.client, progress_interval_ms=FAST)["id"]
        quiet = self.start(self.client)["id"]
        notes.until("progress", process)
        self.client.call("close_stdin", id=process)
        self.client.call("wait", id=process)
        notes.until("exited", process)
        later = [notes.next()["process"]["id"] for _ in range(3)]
        self.assertEqual(set(later), {other})
        self.assertNotIn(quiet, later)

    def test_b129_for_who_may_see_the_process(self):
        """The owner and those above it are told, nobody else; a filter by session holds."""
        who = self.family()
        mine, above, beside = Notes(who["a"]), Notes(self.connect()), Notes(who["b"])
        filtered = Notes(self.connect(), session="ses-999")
        process = self.start(who["a"], progress_interval_ms=FAST)["id"]
        for notes in (mine, above):
            self.assertEqual(notes.next()["process"]["id"], process)
        own = self.start(who["b"], progress_interval_ms=FAST)["id"]
        self.assertEqual({beside.next()["process"]["id"] for _ in range(2)}, {own})
        self.assertTrue(filtered.client.quiet(filtered.request, 0.05))

    def test_b129_bad_intervals(self):
        """Less than 100 ms, and what is no number."""
        for bad in (99, 0, -1, "100", 1.5, True):
            with self.subTest(bad=bad):
                details = self.assert_refused(self.client, "invalid_input", "spawn", argv=["true"], progress_interval_ms=bad)
                self.assertEqual(details["field"], "progress_interval_ms")
        self.assertEqual(self.finish(self.client, progress_interval_ms=None)["exit"]["code"], 0)


class QueueTest(AgentCase):
    def notes(self, client=None, **args):
        return (client or self.client).call("completions", **args)["notes"]

    def test_b129_a_note_waits_in_the_queue(self):
        """A wait for completions is answered by a note; taken it is gone, looked at it stays."""
        process = self.start(self.client, "printf abc; exec sleep 300", progress_interval_ms=FAST)["id"]
        answer = self.client.call("completions", timeout_ms=600000, take=False)
        (note,) = answer["notes"]
        self.assertEqual((answer["processes"], answer["more"]), ([], False))
        self.assertEqual(set(note), {"id", "bytes", "new_bytes", "silence_ms", "at"})
        self.assertEqual((note["id"], note["bytes"], note["new_bytes"]), (process, {"stdout": 3, "stderr": 0}, 3))
        self.assertRegex(note["at"], r"^\d{4}-.*Z$")
        self.assertEqual(len(self.notes(timeout_ms=600000)), 1)
        (later,) = self.notes(timeout_ms=600000)
        self.assertGreater(later["at"], note["at"])

    def test_b129_a_newer_note_takes_the_place_of_an_older(self):
        """However many were told, the queue has one of a process: the latest."""
        notes = Notes(self.connect())
        process = self.start(self.client, progress_interval_ms=FAST)["id"]
        events = [notes.next() for _ in range(3)]
        queued = self.notes()
        self.assertEqual([note["id"] for note in queued], [process])
        self.assertGreaterEqual(queued[0]["silence_ms"], events[-1]["silence_ms"])

    def test_b129_no_note_of_what_has_ended(self):
        """With the end the note leaves the queue, and the completion is there; released ones leave nothing."""
        process = self.start(self.client, "read x", stdin="pipe", progress_interval_ms=FAST, completion=True)["id"]
        released = self.start(self.client, progress_interval_ms=FAST)["id"]
        seen = set()
        while len(seen) < 2:
            seen |= {note["id"] for note in self.notes(timeout_ms=600000, take=False)}
        self.client.call("release", id=released)
        self.client.call("close_stdin", id=process)
        self.client.call("wait", id=process)
        answer = self.client.call("completions")
        self.assertEqual(([record["id"] for record in answer["processes"]], answer["notes"]), ([process], []))

    def test_b129_limit_and_more(self):
        """limit holds for notes, too."""
        ids = {self.start(self.client, progress_interval_ms=FAST)["id"] for _ in range(3)}
        notes = Notes(self.connect())
        seen = set()
        while seen != ids:
            seen.add(notes.next()["process"]["id"])
        answer = self.client.call("completions", limit=2, take=False)
        self.assertEqual((len(answer["notes"]), answer["more"]), (2, True))
        self.assertEqual(len(self.notes(limit=3)), 3)

    def test_b129_each_session_has_its_own(self):
        """A note is in the queue of its own session, and for its own agent."""
        who = self.family()
        session = who["a"].call("session_new")["session"]["id"]
        process = self.start(who["a"], session=session, progress_interval_ms=FAST)["id"]
        self.assertEqual([note["id"] for note in self.notes(who["a"], session=session, timeout_ms=600000, take=False)], [process])
        for client in (self.client, who["a"], who["b"], who["x"]):
            self.assertEqual(self.notes(client), [])
        with self.assertRaises(KeeperError):
            self.notes(session=session)

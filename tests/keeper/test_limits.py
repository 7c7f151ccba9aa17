"""Time limits (B-069 to B-073)."""

import time

from lib import procs
from lib.keeper import KeeperCase
from lib.place import moment, patience

SIX_HOURS = 6 * 3600 * 1000


class TimeoutTest(KeeperCase):
    def test_b069_run_limit_is_kept_by_the_keeper(self):
        """`sleep 30` with 150 ms ends as timed_out not before 150 ms and soon after; the tree is gone, output is kept."""
        process = self.sh("echo begun; sleep 30 & sleep 30", timeout_ms=moment(150))
        tree = procs.descendants(process["pid"])
        record = self.ended(process["id"])
        self.assertEqual((record["state"], record["end_cause"]), ("signaled", "timed_out"))
        self.assertGreaterEqual(record["duration_ms"], 150)
        self.assertLess(record["duration_ms"], patience(1.5) * 1000)
        self.assert_gone([process["pid"], *tree])
        self.assertEqual(self.output(process["id"]), b"begun\n")
        answer = self.wait(process["id"])
        self.assertEqual((answer["status"], answer["exit_code"], answer["timed_out"]), ("timed_out", None, False))

    def test_b069_plain_sleep(self):
        """The case's own command, and the client that started it need not stay."""
        with self.connect() as other:
            process = other.call("spawn", argv=["sleep", "30"], timeout_ms=150)["process"]["id"]
        record = self.ended(process)
        self.assertEqual(record["end_cause"], "timed_out")
        self.assertGreaterEqual(record["duration_ms"], 150)

    def test_b069_held_pipe_does_not_delay_the_limit(self):
        """A descendant in its own session that holds the pipe and ignores TERM delays neither limit nor answer."""
        script = "setsid sh -c 'trap \"\" TERM HUP; echo $$; sleep 30; sleep 30' & sleep 30"
        begin = time.monotonic()
        process = self.sh(script, timeout_ms=moment(500))["id"]
        child = self.outside(process, self.wait_output(process, b"\n"))
        record = self.ended(process)
        self.assertLess(time.monotonic() - begin, patience(4))
        self.assertEqual(record["end_cause"], "timed_out")
        self.assert_gone([child])

    def test_b070_no_limit(self):
        """Absent, null and 0 mean none, shown as null; negative and non-integers are refused."""
        for args in ({}, {"timeout_ms": None}, {"timeout_ms": 0}):
            self.assertIsNone(self.spawn("true", **args)["limits"]["timeout_ms"], args)
        self.assertEqual(self.spawn("true", timeout_ms=5000)["limits"]["timeout_ms"], 5000)
        for bad in (-1, 1.5, "150", True, [1]):
            with self.subTest(bad=bad), self.refused("invalid_input", "timeout_ms"):
                self.spawn("true", timeout_ms=bad)

    def test_b070_grace_puts_term_before_kill(self):
        """With a grace the program can leave by itself; one that does not is killed after it."""
        script = "trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
        polite = self.sh(script, timeout_ms=moment(500), timeout_grace_ms=20000)["id"]
        stubborn = self.sh("trap '' TERM; while :; do sleep 0.05; done", timeout_ms=moment(200), timeout_grace_ms=300)["id"]
        record = self.ended(polite)
        self.assertEqual((record["exit"]["code"], record["end_cause"]), (5, "timed_out"))
        self.assertEqual(self.output(polite), b"ready\nterm\n")
        record = self.ended(stubborn)
        self.assertEqual((record["exit"]["signal"], record["end_cause"]), (9, "timed_out"))
        self.assertGreaterEqual(record["duration_ms"], 500)
        with self.refused("invalid_input", "timeout_grace_ms"):
            self.spawn("true", timeout_ms=100, timeout_grace_ms=30001)


class LifetimeTest(KeeperCase):
    def test_b071_lifetime_ends_with_term_first(self):
        """Past max_lifetime_ms: TERM, grace, KILL; cause lifetime."""
        polite = self.sh("trap 'exit 4' TERM; while :; do sleep 0.05; done", max_lifetime_ms=moment(400))["id"]
        record = self.ended(polite)
        self.assertEqual((record["exit"]["code"], record["end_cause"]), (4, "lifetime"))
        self.assertGreaterEqual(record["duration_ms"], 400)

    def test_b071_persistent_always_has_limits(self):
        """A persistent process has lifetime and idle limit; values above the ceiling are clamped and shown."""
        limits = self.spawn("sleep", "300", lease="persistent")["limits"]
        self.assertEqual((limits["max_lifetime_ms"], limits["idle_timeout_ms"]), (SIX_HOURS, 30 * 60 * 1000))
        clamped = self.spawn("sleep", "300", lease="persistent", max_lifetime_ms=SIX_HOURS * 10)["limits"]
        self.assertEqual(clamped["max_lifetime_ms"], SIX_HOURS)
        self.assertIsNone(self.spawn("true")["limits"]["max_lifetime_ms"])

    def test_b071_retention_is_clamped_and_shown(self):
        """Below a minute becomes a minute, above an hour an hour; the default is ten minutes."""
        for asked, given in ((1, 60000), (10**9, 3600000), (None, 600000), (120000, 120000)):
            args = {} if asked is None else {"exit_retention_ms": asked}
            self.assertEqual(self.spawn("true", **args)["limits"]["exit_retention_ms"], given, asked)

    def test_b071_after_retention_a_receipt_remains(self):
        """With a short retention the record becomes a receipt: same end, no output, still answering."""
        settings = {"min_retention_ms": 200, "exit_retention_ms": 200}
        client = self.start_keeper(settings).clients[0]
        process = client.call("spawn", argv=["sh", "-c", "echo text; exit 8"])["process"]["id"]
        first = client.call("wait", id=process)["process"]
        self.assertFalse(first["receipt"])
        procs.wait_until(lambda: client.call("status", id=process)["process"]["receipt"], "it becomes a receipt")
        receipt = client.call("wait", id=process)["process"]
        for name in ("state", "exit", "end_cause", "ended_at", "command", "label"):
            self.assertEqual(receipt[name], first[name])
        self.assertEqual(receipt["streams"]["stdout"]["end"], 5)
        self.assertEqual(client.reply("read", {"id": process}).bytes(), b"")
        end = client.reply("follow", {"id": process, "mode": "events"})
        self.assertEqual((end.chunks, end.result["cursor"]), ([], first["events"]["exit"]))
        self.assertEqual(client.call("info")["processes"]["receipts"], 1)


class IdleTest(KeeperCase):
    IDLE = 700

    def test_b072_idle_process_ends(self):
        """Nothing named it, nothing came: cause idle, not before its time."""
        process = self.spawn("sleep", "300", idle_timeout_ms=self.IDLE)["id"]
        record = self.ended_elsewhere(process)
        self.assertEqual(record["end_cause"], "idle")
        self.assertGreaterEqual(record["duration_ms"], self.IDLE)

    def ended_elsewhere(self, process):
        """Looks at the whole list, which names nobody, until the process has ended."""

        def look():
            listed = self.client.call("list", include_finished=True)["processes"]
            return next((r for r in listed if r["id"] == process and r["exit"]), None)

        return procs.wait_until(look, f"{process} ends", interval=0.05)

    def test_b072_calls_output_and_stdin_restart_the_clock(self):
        """status calls, output and stdin keep three processes alive for three times the limit; then they end."""
        asked = self.spawn("sleep", "300", idle_timeout_ms=self.IDLE)["id"]
        talking = self.sh("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.2; done; exec sleep 300",
                          idle_timeout_ms=self.IDLE)["id"]
        fed = self.spawn("cat", stdin="pipe", idle_timeout_ms=self.IDLE)["id"]
        begin = time.monotonic()
        while time.monotonic() - begin < 3 * self.IDLE / 1000:
            self.assertEqual(self.status(asked)["state"], "running")
            self.assertTrue(self.client.reply("write_stdin", {"id": fed}, b".").result["success"])
            time.sleep(0.1)
        live = [record["id"] for record in self.client.call("list")["processes"]]
        self.assertEqual(live, [asked, talking, fed])
        for process in (asked, talking, fed):
            self.assertEqual(self.ended_elsewhere(process)["end_cause"], "idle")

    def test_b072_clock_stands_while_somebody_follows(self):
        """With a follower it lives on; when the follower leaves the clock starts."""
        process = self.spawn("sleep", "300", idle_timeout_ms=self.IDLE)["id"]
        follower = self.connect()
        request = follower.submit("follow", {"id": process})
        self.assertEqual(follower.item(request)["event"], "attached")
        self.assertTrue(follower.quiet(request, 2.5 * self.IDLE / 1000))
        self.assertEqual(self.status(process)["state"], "running")
        follower.close()
        self.assertEqual(self.ended_elsewhere(process)["end_cause"], "idle")

    def test_b072_zero_is_refused(self):
        """idle_timeout_ms 0 is invalid_input."""
        for bad in (0, -5):
            with self.refused("invalid_input", "idle_timeout_ms"):
                self.spawn("true", idle_timeout_ms=bad)

    def test_b073_limits_act_in_time(self):
        """Twenty limits at different times: each ends its process at its time, in order, never early."""
        limits = {self.spawn("sleep", "300", timeout_ms=ms)["id"]: ms for ms in range(200, 1200, 50)}
        late = []
        for process, ms in limits.items():
            record = self.ended(process)
            self.assertGreaterEqual(record["duration_ms"], ms)
            late.append(record["duration_ms"] - ms)
        late.sort()
        self.assertLess(late[len(late) // 2], patience(0.25) * 1000)

    def test_b073_idle_keeper_is_not_woken(self):
        """With limits far away and a retained record, nothing wakes the keeper for a while."""
        self.spawn("sleep", "300", timeout_ms=200000, idle_timeout_ms=300000, max_lifetime_ms=400000)
        self.ended(self.spawn("true")["id"])
        # Let what follows a process's end (a late byte, a freed buffer) pass first.
        time.sleep(0.5)
        before, cpu = self.client.call("info")["wakeups"], procs.cpu_seconds(self.keeper.pid)
        time.sleep(2)
        self.assertLessEqual(self.client.call("info")["wakeups"] - before, 4)
        self.assertLess(procs.cpu_seconds(self.keeper.pid) - cpu, patience(0.06))

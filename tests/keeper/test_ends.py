"""States, exits and why a process ended (B-012 to B-017, B-019, B-021)."""

import os
import signal

from lib import procs
from lib.keeper import KeeperCase, generous_limits
from lib.place import Place

END_FIELDS = ("state", "exit", "end_cause", "ended_at")
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


class ExitTest(KeeperCase):
    def test_b012_exit_codes(self):
        """true, false and exit 42 end as exited 0, 1, 42 by themselves."""
        for argv, code in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 42"], 42)):
            with self.subTest(argv=argv):
                record = self.ended(self.spawn(*argv)["id"])
                self.assertEqual(record["state"], "exited")
                self.assertEqual(record["exit"]["code"], code)
                self.assertIsNone(record["exit"]["signal"])
                self.assertIsNone(record["exit"]["signal_name"])
                self.assertEqual(record["end_cause"], "self_exit")

    def test_b013_signal_numbers_and_names(self):
        """Killed from outside by 1, 2, 6, 9, 11, 15 and a real-time signal: the real number, one naming, code null."""
        names = {1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM",
                 int(signal.SIGRTMIN) + 3: "SIGRTMIN+3"}
        for number, name in names.items():
            with self.subTest(signal=name):
                process = self.spawn("sleep", "300")
                os.kill(process["pid"], number)
                answer = self.wait(process["id"])
                record = answer["process"]
                self.assertEqual(record["state"], "signaled")
                self.assertEqual(record["exit"]["signal"], number)
                self.assertEqual(record["exit"]["signal_name"], name)
                self.assertIsNone(record["exit"]["code"])
                self.assertEqual(record["end_cause"], "signal")
                self.assertIsNone(answer["exit_code"])
                self.assertEqual(answer["signal"], name)

    def test_b014_ignoring_term_keeps_running(self):
        """After an ignored SIGTERM: listed, running, wait unanswered; a following SIGKILL ends it as signaled 9."""
        process = self.sh(STUBBORN)["id"]
        self.wait_output(process, b"ready")
        waiter = self.connect()
        request = waiter.submit("wait", {"id": process})
        self.assertTrue(self.client.call("signal", id=process, signal="SIGTERM", target="process")["sent"])
        self.assertTrue(waiter.quiet(request, 0.3))
        self.assertEqual(self.status(process)["state"], "running")
        self.assertIn(process, [record["id"] for record in self.client.call("list")["processes"]])
        self.client.call("signal", id=process, signal="SIGKILL")
        record = waiter.finish(request).result["process"]
        self.assertEqual((record["state"], record["exit"]["signal"]), ("signaled", 9))

    def test_b015_stopped_and_continued_through_coop(self):
        """SIGSTOP gives stopped, SIGCONT running; a stopped process can be read and waited on."""
        process = self.sh("echo said; exec sleep 300")["id"]
        self.wait_output(process, b"said")
        self.client.call("signal", id=process, signal="STOP")
        self.wait_state(process, "stopped", timeout=2)
        self.assertEqual(self.output(process), b"said\n")
        answer = self.wait(process, timeout_ms=50)
        self.assertEqual((answer["timed_out"], answer["running"]), (True, True))
        self.client.call("signal", id=process, signal="CONT")
        self.wait_state(process, "running", timeout=2)

    def test_b015_stopped_and_continued_from_outside(self):
        """The same when somebody else sends the signals; a stopped process can be killed."""
        process = self.spawn("sleep", "300")
        os.kill(process["pid"], signal.SIGSTOP)
        self.wait_state(process["id"], "stopped", timeout=2)
        os.kill(process["pid"], signal.SIGCONT)
        self.wait_state(process["id"], "running", timeout=2)
        os.kill(process["pid"], signal.SIGSTOP)
        self.wait_state(process["id"], "stopped", timeout=2)
        killed = self.client.call("kill", id=process["id"])
        self.assertEqual((killed["success"], killed["process"]["exit"]["signal"]), (True, 9))

    def test_b016_end_is_recorded_once(self):
        """signal, kill, stop and waits after the end change nothing of it."""
        process = self.sh("sleep 300 & exit 7")["id"]
        first = self.ended(process)
        self.client.call("signal", id=process, signal="KILL")
        self.client.call("stop", id=process, grace_ms=0)
        self.client.call("kill", id=process)
        for record in (self.status(process), self.ended(process)):
            self.assertEqual([record[name] for name in END_FIELDS], [first[name] for name in END_FIELDS])
        self.assertEqual((first["exit"]["code"], first["end_cause"]), (7, "self_exit"))


class CauseTest(KeeperCase):
    def assert_requested(self, record, request):
        self.assertEqual(record["end_cause"], "killed_by_request")
        evidence = record["end_evidence"]
        self.assertEqual((evidence["agent"], evidence["request"]), ("main", request))
        self.assertRegex(evidence["at"], r"Z$")
        self.assertIn("wait_status", evidence)

    def test_b017_died_by_a_signal_sent_through_coop(self):
        """signal TERM and signal KILL: killed_by_request with agent and time; exit shows the true signal."""
        for name, number in (("TERM", 15), ("KILL", 9)):
            with self.subTest(signal=name):
                process = self.spawn("sleep", "300")["id"]
                self.client.call("signal", id=process, signal=name)
                record = self.ended(process)
                self.assert_requested(record, "signal")
                self.assertEqual(record["exit"]["signal"], number)

    def test_b017_ended_during_stop_and_kill(self):
        """A program that exits 3 by itself while a stop is in progress has killed_by_request and code 3."""
        process = self.sh("trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done")["id"]
        self.wait_output(process, b"ready")
        record = self.client.call("stop", id=process)["process"]
        self.assert_requested(record, "stop")
        self.assertEqual((record["state"], record["exit"]["code"]), ("exited", 3))
        other = self.spawn("sleep", "300")["id"]
        record = self.client.call("kill", id=other)["process"]
        self.assert_requested(record, "kill")
        self.assertEqual(record["exit"]["signal"], 9)

    def test_b017_surviving_a_signal_leaves_self_exit(self):
        """A process that takes TERM and exits later by itself has self_exit."""
        process = self.sh("trap 'echo took' TERM; echo ready; until read line; do :; done; exit 5", stdin="pipe")["id"]
        self.wait_output(process, b"ready")
        self.client.call("signal", id=process, signal="TERM")
        self.wait_output(process, b"took")
        self.client.reply("write_stdin", {"id": process}, b"go\n")
        self.client.call("close_stdin", id=process)
        record = self.ended(process)
        self.assertEqual(record["end_cause"], "self_exit")
        self.assertEqual(record["state"], "exited")

    def test_b017_killed_from_outside_is_no_request(self):
        """A signal that coop did not send has cause signal even if coop sent another one before."""
        process = self.sh("trap '' USR1; echo ready; exec sleep 300")
        self.wait_output(process["id"], b"ready")
        self.client.call("signal", id=process["id"], signal="USR1")
        os.kill(process["pid"], signal.SIGKILL)
        self.assertEqual(self.ended(process["id"])["end_cause"], "signal")


class RuleTest(KeeperCase):
    settings = {"spool_stream_bytes": 65536}

    def test_b019_cause_names_the_rule(self):
        """timed_out, lifetime, idle, output_quota: each end carries its rule, with limit and value as evidence."""
        cases = {
            "timed_out": ({"timeout_ms": 150}, "sleep 300", {"limit": "timeout_ms", "value": 150}),
            "lifetime": ({"max_lifetime_ms": 150}, "sleep 300", {"limit": "max_lifetime_ms", "value": 150}),
            "idle": ({"idle_timeout_ms": 150}, "sleep 300", {"limit": "idle_timeout_ms", "value": 150}),
            "output_quota": ({"overflow": "spool", "on_output_quota": "kill"}, "while :; do echo 0123456789; done", {}),
        }
        started = {cause: self.sh(script, **args)["id"] for cause, (args, script, _) in cases.items()}
        for cause, process in started.items():
            with self.subTest(cause=cause):
                with self.connect() as client:
                    record = client.call("wait", id=process)["process"]
                self.assertEqual(record["end_cause"], cause)
                for name, value in cases[cause][2].items():
                    self.assertEqual(record["end_evidence"].get(name), value, record["end_evidence"])

    def test_b019_the_first_rule_is_told(self):
        """A time limit in its grace is not renamed by the lifetime that fires meanwhile, nor by a kill."""
        process = self.sh(STUBBORN, timeout_ms=300, timeout_grace_ms=1000, max_lifetime_ms=600)["id"]
        record = self.ended(process)
        self.assertEqual((record["end_cause"], record["exit"]["signal"]), ("timed_out", 9))

    def test_b019_shutdown_is_told_to_waiters(self):
        """Whoever waits when the keeper stops hears the end with cause shutdown."""
        process = self.spawn("sleep", "300")["id"]
        waiter = self.connect()
        request = waiter.submit("wait", {"id": process})
        self.client.call("shutdown", grace_ms=1000)
        self.assertEqual(waiter.finish(request).result["process"]["end_cause"], "shutdown")
        self.expect_end(self.keeper, [0])


class OnExitTest(KeeperCase):
    LEAVE = "sleep 300 & echo $!; exit 0"

    def test_b021_keep_leaves_the_rest_owned(self):
        """keep: the record has ended, its descendant is counted and listed, and ends with kill."""
        process = self.sh(self.LEAVE)["id"]
        record = self.ended(process)
        child = self.outside(process, self.output(process))
        self.assertEqual((record["on_exit"], record["state"], record["descendants"]), ("keep", "exited", 1))
        self.assertTrue(procs.alive(child))
        listed = {r["id"]: r for r in self.client.call("list", include_finished=True)["processes"]}
        self.assertEqual(listed[process]["descendants"], 1)
        killed = self.client.call("kill", id=process)
        self.assertEqual((killed["success"], killed["survivors"]), (True, 0))
        self.assertIn(child, killed["killed"])
        self.assert_gone([child])
        self.assertEqual(self.status(process)["descendants"], 0)

    def test_b021_kept_rest_ends_with_release(self):
        """release of the ended record ends what it left."""
        process = self.sh(self.LEAVE)["id"]
        self.ended(process)
        child = self.outside(process, self.output(process))
        self.assertTrue(self.client.call("release", id=process)["released"])
        self.assert_gone([child])

    def test_b021_kept_rest_ends_with_the_connection_of_an_ephemeral_one(self):
        """The end of the lease ends it too."""
        with self.connect() as other:
            process = other.call("spawn", argv=["sh", "-c", self.LEAVE], lease="ephemeral")["process"]["id"]
            other.call("wait", id=process)
            child = self.outside(process, self.output(process))
            self.assertTrue(procs.alive(child))
        procs.wait_until(lambda: not procs.alive(child), "the rest ends with its connection")

    def test_b021_kept_rest_ends_with_the_keeper(self):
        """An orderly stop ends it too."""
        process = self.sh(self.LEAVE)["id"]
        self.ended(process)
        child = self.outside(process, self.output(process))
        self.client.call("shutdown", grace_ms=0)
        self.expect_end(self.keeper, [0])
        self.assert_gone([child])

    def test_b021_kept_rest_counts_for_the_quota(self):
        """A record with a living rest still takes its slot."""
        client = self.start_keeper({"max_running": 1}).clients[0]
        process = client.call("spawn", argv=["sh", "-c", self.LEAVE])["process"]["id"]
        client.call("wait", id=process)
        with self.refused("registry_full"):
            client.call("spawn", argv=["true"])
        client.call("kill", id=process)
        client.call("spawn", argv=["true"])

    def test_b021_kill_ends_all_before_the_end_is_told(self):
        """kill: when the end is reported none of the tree is alive, one in its own session included."""
        script = "sleep 300 & echo $!; setsid sh -c 'echo $$; exec sleep 300' & read x; exit 4"
        process = self.sh(script, on_exit="kill", stdin="pipe")["id"]
        procs.wait_until(lambda: self.output(process).count(b"\n") == 2, "both have told their pids")
        children = [self.outside(process, line) for line in self.output(process).split()]
        self.client.call("close_stdin", id=process)
        record = self.ended(process)
        self.assert_gone(children)
        self.assertEqual((record["exit"]["code"], record["end_cause"], record["descendants"]), (4, "self_exit", 0))


class FullExitTest(ExitTest):
    profile = "full"


class FullCauseTest(CauseTest):
    profile = "full"


class FullOnExitTest(OnExitTest):
    profile = "full"


class KeepTest(KeeperCase):
    def test_kept_process_outlives_its_connection(self):
        """keep makes an ephemeral process awaited: it stays when its connection goes, and one that was not kept ends."""
        with self.connect() as other:
            kept = other.call("spawn", argv=["sleep", "300"], lease="ephemeral")["process"]["id"]
            lost = other.call("spawn", argv=["sleep", "300"], lease="ephemeral")["process"]["id"]
            self.assertEqual(self.client.call("keep", id=kept)["process"]["lease"], "awaited")
            self.assertEqual(other.call("keep", id=kept)["process"]["lease"], "awaited")
        self.assertEqual(self.ended(lost)["end_cause"], "session_end")
        self.assertEqual(self.status(kept)["state"], "running")

    def test_kept_process_need_not_be_read(self):
        """keep with overflow drop_oldest: one that waited for a reader goes on, and what is lost is counted."""
        process = self.sh("seq 1 100000", lease="ephemeral", overflow="backpressure", ring_bytes=4096)["id"]
        procs.wait_until(lambda: self.status(process)["streams"]["stdout"]["end"] == 4096, "the ring is full")
        self.client.call("keep", id=process, overflow="drop_oldest")
        stream = self.ended(process)["streams"]["stdout"]
        self.assertEqual((stream["overflow"], stream["end"]), ("drop_oldest", 588895))
        self.assertGreater(stream["bytes_dropped"], 500000)

    def test_kept_spool_goes_on(self):
        """A process that spools has nothing to lose and nothing to change."""
        process = self.sh("seq 1 100000", overflow="spool", ring_bytes=4096)["id"]
        self.assertEqual(self.client.call("keep", id=process, overflow="drop_oldest")["process"]["streams"]["stdout"]["overflow"], "spool")
        self.assertEqual(self.ended(process)["streams"]["stdout"]["bytes_dropped"], 0)


class CoreTest(KeeperCase):
    """The keeper has all the room for cores that may be had."""

    CRASH = "ulimit -Hc; kill -SEGV $$"

    def crash(self, client, **args):
        args["cwd"] = str(client.place.work)
        process = client.clients[0].call("spawn", argv=["sh", "-c", self.CRASH], **args)["process"]["id"]
        exit = client.clients[0].call("wait", id=process)["process"]["exit"]
        return exit["signal"], exit["core_dumped"], self.output(process, client=client.clients[0])

    def reference(self, folder):
        """Whether the same crash leaves a core there without a keeper."""
        pid = os.fork()
        if pid == 0:
            os.chdir(folder)
            generous_limits()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv("/bin/sh", ["sh", "-c", self.CRASH])
        return os.WCOREDUMP(os.waitpid(pid, 0)[1])

    def test_b013_core_dumped(self):
        """Told as the kernel tells it where a command may have one; in a sandbox none is left, nor can one be asked for."""
        place = Place()
        # A sanitizer takes the right to cores away from the keeper, and so from all that it starts.
        env = {"ASAN_OPTIONS": f"{place.env()['ASAN_OPTIONS']}:disable_coredump=0"}
        keeper = self.start_keeper(place=place, before_exec=generous_limits, env=env)
        signal_number, dumped, limit = self.crash(keeper, sandbox={"profile": "full"})
        self.assertEqual((signal_number, dumped), (11, self.reference(keeper.place.work)))
        self.assertNotEqual(limit, b"0\n")
        self.assertEqual(self.crash(keeper), (11, False, b"0\n"))

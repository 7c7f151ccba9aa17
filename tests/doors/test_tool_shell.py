"""Shells as models use them: opened, typed into, read, signalled, closed."""

from lib import procs
from lib.shell_tools import ShellCase


class OpenTest(ShellCase):
    def test_b140_open_shell_gives_a_session(self):
        result = self.ok("open_shell")
        self.assertEqual(result["shell"], "/bin/sh")
        self.assertIsInstance(result["pid"], int)
        self.assertIn("shell_write", result["hint"])
        record = self.call("status", id=result["session_id"])["process"]
        self.assertEqual((record["kind"], record["lease"], record["pid"]), ("pty", "awaited", result["pid"]))
        self.assertEqual(record["terminal"], {"cols": 80, "rows": 24})

    def test_b140_size_and_shell_can_be_chosen(self):
        session = self.open(shell="bash", cols=100, rows=30)
        self.type(session, "stty size; echo $BASH\n")
        self.expect(session, r"30 100\s+\S*bash")

    def test_b140_a_missing_shell_is_spawn_failed(self):
        error = self.error("spawn_failed", "open_shell", shell="/no/such/shell")
        self.assertEqual(error["details"]["errno"], "ENOENT")
        self.assertEqual(self.call("list")["processes"], [])

    def test_b140_wrong_sizes_are_refused(self):
        for args in ({"cols": 0}, {"rows": 65536}, {"cols": "80"}):
            self.error("invalid_input", "open_shell", **args)

    def test_b140_policy_applies(self):
        self.ok("list_processes")
        self.call("agent_add", agent="strict", policy={"denied_commands": ["sh", "dash", "/bin/sh"]}, workspace=[str(self.place.work)])
        token = self.call("token_new", agent="strict")["token"]
        code, error = self.tool_json("open_shell", {}, env={**self.env, "COOP_TOKEN": token})
        self.assertEqual((code, error["code"]), (2, "permission_denied"))

    def test_b060_a_shell_is_a_normal_record(self):
        session = self.open()
        listed = self.ok("list_processes")["processes"]
        self.assertEqual([row["id"] for row in listed], [session])
        self.settle(session)
        read = self.call("read", id=session, stream="pty")
        self.assertGreater(read["bytes"], 0)


class CapTest(ShellCase):
    keeper_settings = "max_running=1"

    def test_b140_caps_apply(self):
        session = self.open()
        self.error("registry_full", "open_shell")
        self.ok("close_shell", session_id=session)
        self.open()  # the slot is free again


class WriteTest(ShellCase):
    def test_b141_bytes_go_unchanged_and_are_counted(self):
        session = self.open()
        self.assertEqual(self.type(session, "stty raw -echo; echo ra''w; head -c 9 | od -An -tx1; stty sane\n")["session_id"], session)
        self.expect(session, "raw\n")
        text = "ä\t\x03\\n$1"  # a line discipline would act on the third
        result = self.type(session, text)
        self.assertEqual(result["bytes"], len(text.encode()))
        self.type(session, "x")  # the ninth byte: no newline was added
        self.expect(session, "c3 a4 09 03 5c 6e 24 31 78")

    def test_b141_unknown_and_closed_sessions_are_no_such_process(self):
        session = self.open()
        self.ok("close_shell", session_id=session)
        for id in (session, "psh-ffff-99", "nonsense"):
            for name, args in (
                ("shell_write", {"input": "x"}), ("shell_read", {}), ("shell_signal", {}), ("close_shell", {}),
                ("shell_expect", {"pattern": "x"}), ("shell_expect_cases", {"cases": [{"pattern": "x", "tag": "ok"}]}),
                ("shell_batch", {"steps": [{"type": "send", "input": "x"}]}),
            ):
                error = self.error("no_such_process", name, session_id=id, **args)
                self.assertIn("list_processes", error["advice"])

    def test_b141_a_foreign_session_is_no_such_process(self):
        session = self.open()
        self.add_agent("other")
        token = self.call("token_new", agent="other")["token"]
        env = {**self.env, "COOP_TOKEN": token}
        for name, args in (("shell_write", {"input": "x"}), ("shell_read", {}), ("close_shell", {}), ("shell_expect", {"pattern": "x"})):
            code, error = self.tool_json(name, {"session_id": session, **args}, env=env)
            self.assertEqual((code, error["code"]), (2, "no_such_process"), name)
        self.settle(session)

    def test_b141_an_ended_shell_can_be_read_but_not_written(self):
        session = self.open()
        self.type(session, "echo la''st; exit 3\n")
        self.call("wait", id=session, timeout_ms=30000)
        result = self.ok("shell_read", session_id=session)
        self.assertIn("last", result["output"])
        self.assertIs(result["eof"], True)
        self.error("closed", "shell_write", session_id=session, input="x\n")
        again = self.ok("shell_read", session_id=session)
        self.assertEqual((again["output"], again["eof"]), ("", True))
        self.assertEqual(again["next_offset"], result["next_offset"])
        closed = self.ok("close_shell", session_id=session)
        self.assertEqual((closed["closed"], closed["exit_code"], closed["signal"]), (True, 3, None))

    def test_b141_a_process_without_terminal_is_told_apart(self):
        id = self.detached("sleep", "100")
        error = self.error("invalid_input", "shell_write", session_id=id, input="x")
        self.assertIn("write_stdin", error["message"])
        self.assertEqual(error["details"]["field"], "session_id")

    def test_a_terminal_that_is_no_shell_works_too(self):
        self.ok("list_processes")
        record = self.call("spawn", argv=["cat"], kind="pty", sandbox={"workspace": str(self.place.work)})["process"]
        self.type(record["id"], "one\n")
        self.expect(record["id"], r"one\s+one")

    def test_a_pid_works_as_session(self):
        pid = str(self.ok("open_shell")["pid"])
        self.type(pid, "echo ab''c\n")
        self.expect(pid, "abc")

    def test_unknown_arguments_are_named(self):
        error = self.error("invalid_input", "shell_write", session_id="x", text="x")
        self.assertIn("text", error["message"])
        self.assertIn("input", error["message"])


class ReadTest(ShellCase):
    def test_b061_reads_what_is_new_also_while_a_program_runs(self):
        session = self.open()
        self.type(session, "echo on''e; read x; echo t''wo; cat\n")
        self.assertIn("one\n", self.read_until(session, "one\n"))
        self.type(session, "\n")
        seen = self.read_until(session, "two")
        self.assertNotIn("one", seen)
        record = self.call("status", id=session)["process"]
        self.assertEqual(record["state"], "running")

    def test_b061_nothing_new_is_empty(self):
        session = self.open()
        self.settle(session)
        self.type(session, "cat\n")
        self.read_until(session, "cat\n")
        first = self.ok("shell_read", session_id=session)
        second = self.ok("shell_read", session_id=session)
        self.assertEqual(second["output"], "")
        self.assertEqual(second["next_offset"], first["next_offset"])
        self.assertEqual((second["bytes_dropped"], second["eof"]), (0, False))

    def test_b061_a_match_counts_as_read(self):
        session = self.open()
        self.type(session, "printf 'be%sfore mat%sch af%ster\\n' '' '' ''; cat\n")
        self.expect(session, "before match")
        self.assertTrue(self.read_until(session, "after").startswith(" after"))

    def test_b061_reading_does_not_move_where_expect_searches(self):
        session = self.open()
        self.type(session, "echo fi''rst\n")
        self.read_until(session, "first")
        self.expect(session, "first", timeout_secs=0)

    def test_b061_an_earlier_match_shows_nothing_twice(self):
        session = self.open()
        self.type(session, "echo al''pha; echo be''ta; cat\n")
        self.read_until(session, "beta\n")
        self.expect(session, "alpha", timeout_secs=0)
        self.assertNotIn("beta", self.ok("shell_read", session_id=session)["output"])

    def test_escape_sequences_are_taken_out(self):
        session = self.open()
        self.type(session, "printf '\\033[31mre%sd\\033[0m \\033]0;title\\007pl%sain\\r\\n' '' ''; cat\n")
        seen = self.read_until(session, "plain")
        self.assertIn("red plain\n", seen)

    def test_progress_bars_are_shown_as_they_were_last(self):
        session = self.open()
        self.type(session, "stty -echo; for i in 10 50 100; do printf '\\rLoading %s%%\\033[K' $i; done; printf '\\r\\033[Kloa''ded\\n'; cat\n")
        seen = self.read_until(session, "loaded")
        self.assertIn("\nloaded\n", seen)
        self.assertNotIn("50%", seen)

    def test_much_output_is_cut_with_its_exact_range(self):
        session = self.open()
        self.type(session, "stty -echo; i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i+1)); done; echo do''ne\n")
        procs.wait_until(lambda: b"\ndone" in self.output(session, tail=200, max=200), "all lines")
        result = self.ok("shell_read", session_id=session)
        text, omitted = result["output"], result["omitted"]
        self.assertLessEqual(len(text.encode()), 50000)
        self.assertIn("line 0\n", text)
        self.assertIn("line 8999\n", text)
        self.assertIn("omitted.from", result["hint"])
        # Head, what is omitted, and tail are the whole stream.
        missing = self.output(session, cursor=omitted["from"], max=omitted["to"] - omitted["from"]).decode().replace("\r\n", "\n")
        numbers = [int(line[5:]) for line in missing.split("\n") if line.startswith("line ") and line[5:].isdigit()]
        cut = text.index(f"line {numbers[0] - 1}\n") + len(f"line {numbers[0] - 1}\n")
        whole = text[:cut] + missing + text[cut:]
        self.assertIn("".join(f"line {i}\n" for i in range(9000)), whole)
        self.assertNotIn("line", self.ok("shell_read", session_id=session)["output"])

    def test_lost_output_is_counted(self):
        self.ok("list_processes")
        record = self.call("spawn", argv=["sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x; echo end; sleep 100"], kind="pty", ring_bytes=4096,
                           sandbox={"workspace": str(self.place.work)})["process"]
        procs.wait_until(lambda: self.call("status", id=record["id"])["process"]["streams"]["pty"]["end"] >= 200000, "all output")
        result = self.ok("shell_read", session_id=record["id"])
        self.assertGreater(result["bytes_dropped"], 150000)
        self.assertEqual(result["bytes_dropped"] + len(result["output"]), result["next_offset"] - result["output"].count("\n"))


class SignalTest(ShellCase):
    def test_b068_sigint_reaches_the_foreground_and_the_shell_lives_on(self):
        session = self.open()
        self.type(session, "echo sta''rt; sleep 100; echo co''de $?\n")
        self.expect(session, "start\n")
        record = self.call("status", id=session)["process"]
        with self.client() as client:
            procs.wait_until(lambda: client.call("status", id=session)["process"]["descendants"] > 0, "sleep runs")
        result = self.ok("shell_signal", session_id=session)
        self.assertEqual((result["session_id"], result["signal"]), (session, "SIGINT"))
        self.assertIsInstance(result["pid"], int)
        self.assertNotEqual(result["pid"], record["pid"])
        self.settle(session)
        self.assertEqual(self.call("status", id=session)["process"]["state"], "running")

    def test_b068_other_signals_by_name_or_number(self):
        session = self.open()
        for signal, code in (("SIGTERM", 143), ("kill", 137), (10, 138)):
            self.type(session, "sh -c 'echo sta''rt; exec sleep 100'\n")
            self.expect(session, "start\n")
            self.ok("shell_signal", session_id=session, signal=signal)
            self.type(session, "echo co''de $?\n")
            self.expect(session, f"code {code}")
        self.error("invalid_input", "shell_signal", session_id=session, signal="SIGNONE")

    def test_b068_an_ended_shell_is_not_running(self):
        session = self.open()
        self.type(session, "exit\n")
        self.call("wait", id=session, timeout_ms=30000)
        self.error("not_running", "shell_signal", session_id=session)


class CloseTest(ShellCase):
    def test_b145_close_hangs_up_and_releases(self):
        session = self.open()
        self.settle(session)
        result = self.ok("close_shell", session_id=session, grace_ms=30000)
        self.assertEqual(result, {"session_id": session, "closed": True, "exit_code": None, "signal": "SIGHUP", "survivors": 0})
        self.error("no_such_process", "close_shell", session_id=session)
        self.assertEqual(self.ok("list_processes", include_finished=True)["processes"], [])

    def test_b145_a_trap_has_its_grace(self):
        session = self.open()
        self.type(session, f"exec sh -c 'trap \"echo bye > {self.place.work}/bye; exit 7\" HUP; echo re\"\"ady; while :; do sleep 0.1; done'\n")
        self.expect(session, "ready")
        result = self.ok("close_shell", session_id=session, grace_ms=30000)
        self.assertEqual((result["exit_code"], result["signal"]), (7, None))
        self.assertEqual((self.place.work / "bye").read_text(), "bye\n")

    def test_b145_what_ignores_it_is_killed_with_all_jobs(self):
        session = self.open()
        self.type(session, "trap '' HUP; (setsid sleep 1000 &); sleep 1001 & sh -c 'echo sta''rt; sleep 1002'\n")
        self.expect(session, "start\n")
        with self.client() as client:
            procs.wait_until(lambda: client.call("status", id=session)["process"]["descendants"] >= 4, "all jobs run")
        result = self.ok("close_shell", session_id=session, grace_ms=100)
        self.assertEqual((result["closed"], result["signal"], result["survivors"]), (True, "SIGKILL", 0))
        # That nothing is left is looked at when the place is removed.

    def test_b145_a_stopped_job_hinders_nothing(self):
        session = self.open()
        self.type(session, "sh -c 'echo sta''rt; kill -STOP $$'\n")
        self.expect(session, "start\n")
        self.assertIs(self.ok("close_shell", session_id=session)["closed"], True)

    def test_b145_grace_is_bounded(self):
        self.error("invalid_input", "close_shell", session_id="x", grace_ms=30001)

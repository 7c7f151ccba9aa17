"""process.spawn, poll, wait, kill, release and exec as tools (B-020, B-033, B-039, B-049, B-051, B-100, B-101, B-116, B-146, B-147, B-150)."""

import json

from lib.harn import HarnCase
from lib.place import moment
from lib.tools import ERROR


class SpawnTest(HarnCase):
    def test_b146_spawn_wait_poll(self):
        """A handle at once; wait has the end and the output, poll the same afterwards."""
        started = self.ok("process.spawn", argv=["printf", "hello"])
        handle = started["handle_id"]
        self.assertEqual((started["status"], handle[:4], started["command"]), ("running", "psh-", "printf hello"))
        self.assertIsInstance(started["pid"], int)
        done = self.ok("process.wait", handle_id=handle)
        self.assertEqual(
            [done[name] for name in ("status", "exit_code", "signal", "stdout", "stderr", "timed_out", "running", "pid")],
            ["exited", 0, None, "hello", "", False, False, started["pid"]],
        )
        self.assertEqual(done["started_at"], started["started_at"])
        self.assertIsNotNone(done["ended_at"])
        timed_out = done.pop("timed_out")
        self.assertFalse(timed_out)
        self.assertEqual(self.ok("process.poll", handle_id=handle), done)

    def test_b146_unknown_handles(self):
        """Errors for all but release, which answers false."""
        for name in ("process.poll", "process.wait", "process.kill"):
            self.error("no_such_process", name, handle_id="psh-1-99999")
        self.assertIs(self.ok("process.release", handle_id="psh-1-99999")["released"], False)

    def test_b147_poll_shows_output_so_far_and_takes_nothing(self):
        """Twice the same while it runs."""
        handle = self.spawn(f"printf a; cat {self.gate()}; printf b")
        self.until_output(handle, 1)
        for _ in range(2):
            polled = self.ok("process.poll", handle_id=handle)
            self.assertEqual((polled["running"], polled["status"], polled["stdout"]), (True, "running", "a"))
            self.assertEqual((polled["exit_code"], polled["ended_at"]), (None, None))
            self.assertIn("wait_command", polled["hint"])
        self.open_gate()
        self.assertEqual(self.ok("process.wait", handle_id=handle)["stdout"], "ab")

    def test_b147_output_is_cut_to_the_inline_limit(self):
        """The first 50 000 bytes, a flag, and the call that reads on."""
        handle = self.spawn("yes 0123456 | head -c 2000000")
        done = self.ok("process.wait", handle_id=handle)
        self.assertEqual(done["stdout"], ("0123456\n" * 6250))
        self.assertEqual((done["stdout_truncated"], done["stdout_bytes"], done["stderr_truncated"]), (True, 2000000, False))
        arguments = json.loads(done["hint"][done["hint"].index("{") : done["hint"].rindex("}") + 1])
        more = self.ok("read_command_output", **arguments)
        self.assertEqual((more["offset"], more["bytes_read"], more["content"][:8]), (50000, 65536, "0123456\n"))

    def test_b039_wait_that_is_late_leaves_it_alone(self):
        """A failure with all fields; waited for again it ends by itself."""
        handle = self.spawn(f"cat {self.gate()}; printf later")
        late = self.failure("process.wait", handle_id=handle, timeout_ms=100)
        self.assertEqual(
            [late[name] for name in ("timed_out", "running", "status", "stdout", "exit_code")], [True, True, "running", "", None]
        )
        self.assertTrue(self.failure("process.wait", handle_id=handle, timeout_ms=0)["timed_out"])
        self.error("invalid_input", "process.wait", handle_id=handle, timeout_ms=-1)
        self.open_gate()
        self.assertEqual(self.ok("process.wait", handle_id=handle)["stdout"], "later")

    def test_b020_status_words(self):
        """exited with its code, killed with its signal, timed_out; running for what is stopped."""
        self.assertEqual(self.ok("process.wait", handle_id=self.spawn("exit 42"))["exit_code"], 42)
        by_itself = self.ok("process.wait", handle_id=self.spawn("kill -9 $$"))
        self.assertEqual((by_itself["status"], by_itself["exit_code"], by_itself["signal"]), ("killed", None, "SIGKILL"))
        late = self.ok("process.wait", handle_id=self.spawn("printf x; sleep 60", timeout_ms=moment(1000)))
        self.assertEqual((late["status"], late["exit_code"], late["stdout"], late["timed_out"]), ("timed_out", None, "x", False))
        handle = self.spawn("sleep 60")
        self.call("signal", id=handle, signal="STOP")
        polled = self.ok("process.poll", handle_id=handle)
        self.assertEqual((polled["status"], polled["running"]), ("running", True))

    def test_b049_b051_kill_gives_the_proof(self):
        """success, who was killed, the final status; again it is no error."""
        handle = self.spawn("setsid sleep 300 & sleep 300 & echo there; wait")
        self.until_output(handle, 6)
        killed = self.ok("process.kill", handle_id=handle)
        self.assertEqual((killed["success"], killed["status"], killed["survivors"]), (True, "killed", 0))
        self.assertEqual((killed["signal"], killed["end_cause"]), ("SIGKILL", "killed_by_request"))
        self.assertGreaterEqual(len(killed["killed"]), 3)
        self.assertEqual(self.ok("process.kill", handle_id=handle)["status"], "killed")
        self.assertEqual(self.ok("process.poll", handle_id=handle)["stdout"], "there\n")

    def test_b114_b116_release(self):
        """The output goes with it, and the second time there is nothing."""
        handle = self.spawn("sleep 60")
        released = self.ok("process.release", handle_id=handle)
        self.assertEqual((released["released"], released["kill"]["success"]), (True, True))
        self.assertIs(self.ok("process.release", handle_id=handle)["released"], False)
        self.error("no_such_process", "process.poll", handle_id=handle)

    def test_arguments_are_checked(self):
        """What is wrong is named, and nothing starts."""
        cases = [
            ({}, "argv"),
            ({"argv": []}, "argv"),
            ({"argv": ["true"], "command": "true"}, "command"),
            ({"mode": "shell", "argv": ["true"]}, "command"),
            ({"mode": "argv", "command": "true"}, "argv"),
            ({"argv": ["true"], "timeout": 1, "timeout_ms": 1}, "timeout"),
            ({"argv": ["true"], "timeout_ms": -1}, "timeout_ms"),
            ({"argv": ["true"], "lease": "awaited"}, "lease"),
            ({"argv": ["true"], "sandbox_profile": "nonsense"}, None),
        ]
        for args, field in cases:
            with self.subTest(args=args):
                error = self.error("invalid_input", "process.spawn", **args)
                if field:
                    self.assertEqual(error["details"]["field"], field)
        self.assertEqual(self.ok("list_processes", include_finished=True)["processes"], [])

    def test_spawn_takes_a_shell_line_directory_and_environment(self):
        """As the operation spawn has them."""
        (self.place.work / "sub").mkdir()
        handle = self.ok(
            "process.spawn", mode="shell", command='echo "$A-$B"; pwd', cwd=str(self.place.work / "sub"), env={"A": "1", "B": "2"},
            env_remove=["B"], env_mode="patch",
        )["handle_id"]
        self.assertEqual(self.ok("process.wait", handle_id=handle)["stdout"], f"1-2\n{self.place.work}/sub\n")
        self.error("spawn_failed", "process.spawn", argv=["/no/such/program"])


class ExecTest(HarnCase):
    def exec(self, command, wanted=0, **args):
        code, result = self.tool("process.exec", command=command, **args)
        self.assertEqual(code, wanted, result)
        return result

    def test_b150_exec(self):
        """A shell's line to its end: both streams, both in order, and the real group."""
        done = self.exec("printf o; printf e >&2")
        self.assertEqual(
            [done[name] for name in ("status", "exit_code", "signal", "timed_out", "stdout", "stderr", "success")],
            ["completed", 0, None, False, "o", "e", True],
        )
        self.assertEqual(sorted(done["combined"]), ["e", "o"])
        self.assertEqual((done["stdout_utf8_valid"], done["stderr_utf8_valid"]), (True, True))
        record = self.call("status", id=done["handle_id"])["process"]
        self.assertEqual((done["pid"], done["process_group_id"]), (record["pid"], record["process_group_id"]))
        self.assertEqual(done["command_id"], done["handle_id"])
        self.assertEqual(self.exec("cat", stdin="to it\n")["stdout"], "to it\n")
        self.assertEqual(self.ok("process.exec", argv=["printf", "a b"])["stdout"], "a b")

    def test_b150_combined_is_in_order_of_arrival(self):
        """Across streams, from the beginning, also if the output is far longer than a ring."""
        call = self.start_tool("process.exec", command=f"echo 1; cat {self.gate('a')}; echo 2 >&2; cat {self.gate('b')}; echo 3")
        self.open_gate("a")
        self.open_gate("b")
        code, done = self.end_tool(call)
        self.assertEqual((code, done["combined"]), (0, "1\n2\n3\n"))

    def test_b150_not_code_0_is_no_success(self):
        """A code, a signal and a timeout, which keeps what was written."""
        done = self.exec("echo x; exit 7", 1)
        self.assertEqual((done["status"], done["exit_code"], done["success"]), ("completed", 7, False))
        done = self.exec("kill -15 $$", 1)
        self.assertEqual((done["status"], done["exit_code"], done["signal"], done["success"]), ("completed", None, "SIGTERM", False))
        done = self.exec("printf part; sleep 60", 1, timeout=moment(1000))
        self.assertEqual((done["status"], done["timed_out"], done["stdout"], done["success"]), ("timed_out", True, "part", False))
        self.assertEqual(self.tool("process.exec", argv=["/no/such/program"])[0], ERROR)

    def test_b150_bytes_that_are_no_text(self):
        """U+FFFD, and a flag for each stream."""
        done = self.exec(r"printf 'a\377b'; printf fine >&2")
        self.assertEqual((done["stdout"], done["stdout_utf8_valid"], done["stderr_utf8_valid"]), ("a\ufffdb", False, True))

    def test_b033_limits_of_each_stream(self):
        """The beginning up to the limit, all bytes counted, cut only above it; each stream by itself."""
        done = self.exec("printf abcdef; printf gh; printf xyz >&2", capture={"max_stdout_bytes": 4, "max_stderr_bytes": 3})
        self.assertEqual((done["stdout"], done["stdout_bytes"], done["stdout_truncated"]), ("abcd", 8, True))
        self.assertEqual((done["stderr"], done["stderr_bytes"], done["stderr_truncated"]), ("xyz", 3, False))
        done = self.exec("printf abcdefgh", capture={"max_stdout_bytes": 0})
        self.assertEqual((done["stdout"], done["stdout_bytes"], done["stdout_truncated"]), ("", 8, True))
        done = self.exec("true", capture={"max_stdout_bytes": 0})
        self.assertEqual((done["stdout"], done["stdout_bytes"], done["stdout_truncated"]), ("", 0, False))
        done = self.exec("printf 'ab\u20acd'", capture={"max_stdout_bytes": 4})
        self.assertEqual((done["stdout"], done["stdout_bytes"], done["stdout_truncated"]), ("ab", 6, True))

    def test_b033_limit_of_a_terminal(self):
        """Its one stream has its own limit, and stands neither in stdout nor in stderr."""
        done = self.exec("printf abcdef; printf gh >&2", kind="pty", capture={"max_pty_bytes": 4})
        self.assertEqual((done["pty"], done["pty_bytes"], done["pty_truncated"]), ("abcd", 8, True))
        self.assertEqual((done["stdout"], done["stderr"]), (None, None))

    def test_b100_b101_policy_gives_the_envelope(self):
        """Blocked, and what only would be: all fields, nothing started, no values of the environment."""
        for mode, status in (("enforce", "blocked"), ("dry_run", "dry_run"), ("explain_only", "explain_only")):
            with self.subTest(mode=mode):
                policy = {"denied_commands": ["true"]} if mode == "enforce" else {"mode": mode}
                self.ok("list_processes")
                self.call("agent_add", agent=mode, workspace=[str(self.place.work)], policy=policy)
                self.env["COOP_TOKEN"] = self.call("token_new", agent=mode)["token"]
                code, done = self.tool("process.exec", command="true", env={"A": "hunter2"}, stdin="hunter3")
                del self.env["COOP_TOKEN"]
                self.assertEqual((code, done["status"], done["exit_code"], done["pid"]), (1, status, -1, None), done)
                self.assertEqual((done["success"], done["combined"], done["handle_id"]), (False, "", None))
                self.assertTrue(done["command_policy"]["decisions"])
                self.assertNotIn("hunter", json.dumps(done))

    def test_capture_is_checked(self):
        """Unknown members of capture are named."""
        error = self.error("invalid_input", "process.exec", command="true", capture={"max_stdin_bytes": 1})
        self.assertIn("max_stdin_bytes", error["message"])
        self.error("invalid_input", "process.exec", command="true", capture={"max_stdout_bytes": -1})

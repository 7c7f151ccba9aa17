"""run_command in harn's form (B-020, B-032, B-034, B-074, B-100, B-101, B-139, B-148, B-149)."""

import hashlib
import json
from pathlib import Path

from lib import procs
from lib.harn import HarnCase
from lib.place import moment


class RunTest(HarnCase):
    def test_b148_completed(self):
        """All fields; argv is run as it is, without a shell."""
        done = self.whole(self.ok("run_command", argv=["printf", "%s|", "a b", "$HOME"]))
        self.assertEqual(
            [done[name] for name in ("status", "exit_code", "signal", "timed_out", "stdout", "stderr", "end_cause")],
            ["completed", 0, None, False, "a b|$HOME|", "", "self_exit"],
        )
        self.assertEqual((done["command_id"], done["running"]), (done["handle_id"], False))
        record = self.call("status", id=done["handle_id"])["process"]
        for name in ("pid", "process_group_id", "started_at", "ended_at", "duration_ms", "audit_id", "output_path", "stdout_path"):
            self.assertEqual(done[name], record[name], name)
        self.assertEqual(done["sandbox"], {name: record["sandbox"][name] for name in ("kind", "enforced")})

    def test_b148_exit_code_7_is_completed(self):
        """A code that is not 0 is a failure of the call, and the command is completed."""
        done = self.run_sh("echo no >&2; exit 7", 1)
        self.assertEqual((done["status"], done["exit_code"], done["stderr"]), ("completed", 7, "no\n"))

    def test_b148_killed_carries_the_signal(self):
        """Of whoever sent it."""
        done = self.run_sh("kill -9 $$", 1)
        self.assertEqual((done["status"], done["exit_code"], done["signal"]), ("killed", None, "SIGKILL"))

    def test_b148_timed_out_keeps_what_was_written(self):
        """Its own status, and the field."""
        done = self.run_sh("printf part; sleep 60", 1, timeout_ms=moment(1000))
        self.assertEqual((done["status"], done["timed_out"], done["exit_code"], done["stdout"]), ("timed_out", True, None, "part"))

    def test_b148_spawn_failed(self):
        """What cannot be executed is a result, too, and says why."""
        done = self.whole(self.failure("run_command", argv=["/no/such/program"]))
        self.assertEqual((done["status"], done["pid"], done["handle_id"], done["error"]), ("spawn_failed", None, None, "spawn_failed"))
        self.assertIn("/no/such/program", done["stderr"])
        self.assertEqual(done["details"]["errno"], "ENOENT")

    def test_b139_forms_are_not_mixed(self):
        """args, wait and timeout_secs belong to the other form; unknown words are named."""
        for name, value in (("args", ["x"]), ("wait", False), ("timeout_secs", 5)):
            error = self.error("invalid_input", "run_command", argv=["true"], **{name: value})
            self.assertEqual(error["details"]["field"], name)
            self.assertIn("argv", error["message"])
        self.error("invalid_input", "run_command", argv=["true"], command="true")
        self.error("invalid_input", "run_command", mode="shell", argv=["true"])
        self.assertIn("nonsense", self.error("invalid_input", "run_command", argv=["true"], nonsense=1)["message"])
        self.assertEqual(self.ok("run_command", argv=["printf", "x"], args=None, wait=None)["stdout"], "x")

    def test_b148_shells(self):
        """The chosen one runs the line; an unknown one is named."""
        self.assertEqual(self.run_sh("echo ${BASH_VERSION:+bash}", shell="bash")["stdout"], "bash\n")
        self.assertEqual(self.run_sh("echo $0", shell_id="sh")["status"], "completed")
        self.error("invalid_input", "run_command", mode="shell", command="true", shell="no-such-shell")
        self.error("invalid_input", "run_command", mode="shell", command="true", shell="sh", shell_id="sh")

    def test_b148_stdin_cwd_env(self):
        """As given; without stdin there is end of file at once."""
        (self.place.work / "sub").mkdir()
        done = self.run_sh('cat; pwd; echo "$A"', stdin="in\n", cwd=str(self.place.work / "sub"), env={"A": "1"})
        self.assertEqual(done["stdout"], f"in\n{self.place.work}/sub\n1\n")
        self.assertEqual(self.run_sh("cat")["stdout"], "")

    def test_b148_capture(self):
        """A stream that is not wanted is null; merged streams are one, in the order of writing."""
        done = self.run_sh("echo o; echo e >&2", capture={"stdout": False})
        self.assertEqual((done["stdout"], done["stderr"], done["stdout_bytes"]), (None, "e\n", 2))
        done = self.run_sh("echo 1; echo 2 >&2; echo 3", capture={"merge_stderr": True})
        self.assertEqual((done["stdout"], done["stderr"]), ("1\n2\n3\n", ""))

    def test_b032_inline_limit_and_digest(self):
        """2000 bytes with a cap of 8: 8 are shown; counts and hash are of everything."""
        done = self.run_sh("yes 012345678 | head -c 2000", capture={"max_inline_bytes": 8})
        self.assertEqual((done["stdout"], done["stdout_truncated"], done["stdout_bytes"]), ("01234567", True, 2000))
        wanted = (b"012345678\n" * 200)[:2000]
        self.assertEqual((done["byte_count"], done["line_count"]), (2000, 200))
        self.assertEqual(done["output_sha256"], "sha256:" + hashlib.sha256(wanted).hexdigest())
        done = self.run_sh(r"printf 'a\nb'")
        self.assertEqual((done["line_count"], done["byte_count"]), (2, 3))
        done = self.run_sh("true")
        self.assertEqual((done["line_count"], done["byte_count"]), (0, 0))

    def test_b032_cut_before_a_character_that_does_not_fit(self):
        """Of text, and of bytes that become longer as text."""
        done = self.run_sh("printf '\u20ac\u20ac\u20ac'", capture={"max_inline_bytes": 8})
        self.assertEqual((done["stdout"], done["stdout_bytes"]), ("\u20ac\u20ac", 9))
        done = self.run_sh(r"printf '\377\377\377\377\377\377\377\377'", capture={"max_inline_bytes": 8})
        self.assertEqual((done["stdout"], done["stdout_truncated"], done["stdout_utf8_valid"]), ("\ufffd\ufffd", True, False))

    def test_b032_a_cap_cannot_be_raised(self):
        """More than the operator's 50 000 is not shown, whatever is asked for."""
        done = self.run_sh("head -c 60000 /dev/zero | tr '\\0' x", capture={"max_inline_bytes": 10**9})
        self.assertEqual((len(done["stdout"]), done["stdout_bytes"]), (50000, 60000))

    def test_b032_the_beginning_is_shown_of_what_has_left_the_ring(self):
        """The disk has it."""
        done = self.run_sh("echo first; head -c 3000000 /dev/zero | tr '\\0' x", capture={"max_inline_bytes": 10})
        self.assertEqual((done["stdout"], done["stdout_bytes"]), ("first\nxxxx", 3000006))

    def test_b034_output_is_kept_in_files(self):
        """One of each stream and one of all, named in the result."""
        done = self.run_sh(r"printf 'a\nb'; printf c >&2")
        paths = {name: Path(done[name]) for name in ("output_path", "stdout_path", "stderr_path")}
        procs.wait_until(lambda: len(paths["output_path"].read_bytes()) == 4, "all is on disk")
        self.assertEqual((paths["stdout_path"].read_bytes(), paths["stderr_path"].read_bytes()), (b"a\nb", b"c"))

    def test_b100_b101_policy_gives_the_envelope(self):
        """All fields and the decisions; nothing was started; also of a line that is long."""
        self.ok("list_processes")
        for mode, status in (("enforce", "blocked"), ("dry_run", "dry_run"), ("explain_only", "explain_only")):
            policy = {"denied_commands": ["touch"]} if mode == "enforce" else {"mode": mode}
            self.call("agent_add", agent=mode, workspace=[str(self.place.work)], policy=policy)
            self.env["COOP_TOKEN"] = self.call("token_new", agent=mode)["token"]
            for command in ("touch mark", "touch mark; : " + "'\u20ac' " * 2000):
                with self.subTest(mode=mode, size=len(command)):
                    done = self.run_sh(command, 1, env={"A": "hunter2"}, policy_context={"ticket": 7})
                    self.assertEqual((done["status"], done["exit_code"], done["pid"]), (status, -1, None))
                    self.assertEqual((done["error"], done["policy_context"]), ("permission_denied", {"ticket": 7}))
                    self.assertEqual(done["request"]["env"], {"A": "<redacted>"})
                    decision = done["command_policy"]["decisions"][0]
                    for name in ("action", "reason", "source", "risk_labels", "confidence", "display"):
                        self.assertIn(name, decision)
                    self.assertTrue(done["stderr"])
                    self.assertNotIn("hunter", json.dumps(done))
            del self.env["COOP_TOKEN"]
        self.assertFalse((self.place.work / "mark").exists())

    def test_b021_what_is_left_running_is_told(self):
        """In words, with the call that ends it."""
        done = self.run_sh("sleep 300 >/dev/null 2>&1 & echo x", lease="awaited")
        self.assertEqual(done["status"], "completed")
        self.assertIn("process.kill", done["hint"])
        self.assertTrue(self.ok("process.kill", handle_id=done["handle_id"])["success"])


class LeaseTest(HarnCase):
    def lease(self, handle):
        return self.call("status", id=handle)["process"]["lease"]

    def test_b149_background_answers_at_once(self):
        """running and a handle; it belongs to the session."""
        for word in ("background", "long_running"):
            result = self.whole(self.ok("run_command", argv=["sleep", "60"], **{word: True}))
            self.assertEqual((result["status"], result["exit_code"], result["ended_at"]), ("running", None, None))
            self.assertIn(result["handle_id"], result["hint"])
            self.assertEqual(self.lease(result["handle_id"]), "awaited")
        self.assertEqual(self.lease(self.background("sleep 60", lease="persistent")), "persistent")

    def test_b074_background_after(self):
        """In the foreground that long, then the same process in the background, awaited; no byte is lost."""
        result = self.run_sh(f"printf a; cat {self.gate()}; printf b", background_after_ms=moment(1000))
        self.assertEqual((result["status"], result["stdout"], result["exit_code"]), ("running", "a", None))
        handle = result["handle_id"]
        self.assertEqual(self.lease(handle), "awaited")
        self.open_gate()
        done = self.whole(self.ok("wait_command", handle_id=handle, timeout_ms=60000))
        self.assertEqual((done["status"], done["stdout"], done["pid"]), ("completed", "ab", result["pid"]))
        self.assertEqual(done["output_sha256"], "sha256:" + hashlib.sha256(b"ab").hexdigest())

    def test_b074_what_ends_in_time_stays_in_the_foreground(self):
        """The normal result, and no completion besides."""
        self.assertEqual(self.run_sh("printf x", background_after_ms=60000)["status"], "completed")
        self.assertEqual(self.ok("next_completions")["completions"], [])

    def test_b122_foreground_ends_with_its_caller(self):
        """Who gives up ends it; with another lease it goes on."""
        for lease, lives in ((None, False), ("awaited", True)):
            with self.subTest(lease=lease):
                args = {"lease": lease} if lease else {}
                call = self.start_tool("run_command", mode="shell", command=f"echo x >mark-{lease}; sleep 300", **args)
                procs.wait_until((self.place.work / f"mark-{lease}").exists, "it runs")
                handle = self.call("list")["processes"][-1]["id"]
                call.kill()
                if lives:
                    call.wait()
                    self.assertEqual(self.call("wait", id=handle, timeout_ms=200)["running"], True)
                else:
                    self.assertEqual(self.call("wait", id=handle, timeout_ms=60000)["running"], False)

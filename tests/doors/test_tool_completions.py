"""Commands in the background: next_completions, list_handles, cancel_handle, wait_command (B-040, B-053, B-127, B-128, B-129, B-149)."""

from lib import procs
from lib.harn import HarnCase
from lib.place import moment


class CompletionTest(HarnCase):
    def next(self, **args):
        result = self.ok("next_completions", **args)
        for completion in result["completions"]:
            self.assertEqual(completion["kind"], "tool_result")
            self.whole(completion)
        return result["completions"]

    def test_b127_one_completion_with_the_fields_of_the_result(self):
        """The same as the foreground gives, once."""
        handle = self.background(f"cat {self.gate()}; echo o; echo e >&2; exit 7")
        self.assertEqual(self.next(), [])
        self.open_gate()
        [done] = self.next(timeout_ms=60000)
        self.assertEqual(
            [done[name] for name in ("handle_id", "status", "exit_code", "stdout", "stderr", "timed_out")],
            [handle, "completed", 7, "o\n", "e\n", False],
        )
        self.assertEqual((done["line_count"], done["byte_count"]), (2, 4))
        self.assertEqual(self.next(), [])
        waited = self.ok("wait_command", handle_id=handle)
        self.assertEqual({name: done[name] for name in waited}, waited)

    def test_b127_a_wait_is_answered_by_the_end(self):
        """next_completions that waits gets it when it comes."""
        handle = self.background(f"cat {self.gate()}")
        call = self.start_tool("next_completions", timeout_ms=60000)
        self.open_gate()
        code, result = self.end_tool(call)
        self.assertEqual((code, [done["handle_id"] for done in result["completions"]]), (0, [handle]))

    def test_b127_order_and_limit(self):
        """Oldest first, as many as asked for; more says that there are others."""
        handles = []
        for n in range(3):
            handles.append(self.background(f"exit {n}"))
            self.call("wait", id=handles[-1])
        first = self.ok("next_completions", limit=2)
        self.assertEqual(([done["handle_id"] for done in first["completions"]], first["more"]), (handles[:2], True))
        rest = self.ok("next_completions", limit=2)
        self.assertEqual(([done["handle_id"] for done in rest["completions"]], rest["more"]), (handles[2:], False))

    def test_b127_together_they_keep_to_one_result(self):
        """Ten completions share the budget of one."""
        for _ in range(10):
            self.call("wait", id=self.background("head -c 60000 /dev/zero | tr '\\0' x"))
        done = self.next(limit=100)
        self.assertEqual(len(done), 10)
        self.assertEqual({len(one["stdout"]) for one in done}, {5000})
        self.assertIn("read_command_output", done[0]["hint"])

    def test_b127_what_went_to_the_background_later(self):
        """background_after_ms: its end comes as a completion."""
        result = self.run_sh(f"printf a; cat {self.gate()}; printf b", background_after_ms=moment(500))
        self.assertEqual(result["status"], "running")
        self.assertEqual([row["handle_id"] for row in self.ok("list_handles")["handles"]], [result["handle_id"]])
        self.open_gate()
        [done] = self.next(timeout_ms=60000)
        self.assertEqual((done["handle_id"], done["stdout"]), (result["handle_id"], "ab"))

    def test_b127_only_the_background(self):
        """Neither foreground runs nor process.spawn put anything there."""
        self.run_sh("true")
        self.ok("process.wait", handle_id=self.spawn("true"))
        self.assertEqual(self.next(), [])

    def test_b127_an_answer_that_comes_to_nothing_in_time(self):
        """An empty one, and what to look at."""
        result = self.ok("next_completions", timeout_ms=100)
        self.assertEqual((result["completions"], result["notes"], result["more"]), ([], [], False))
        self.assertIn("list_handles", result["hint"])

    def test_b127_each_session_has_its_own(self):
        """What ends in one is not told in another, nor listed there."""
        self.ok("list_processes")
        session = self.call("session_new")["session"]["id"]
        code, result = self.tool("run_command", options=("--session", session), argv=["sleep", "60"], background=True)
        self.assertEqual(code, 0, result)
        own = self.background("sleep 60")
        self.assertEqual([row["handle_id"] for row in self.ok("list_handles")["handles"]], [own])
        code, listed = self.tool("list_handles", options=("--session", session))
        self.assertEqual([(row["handle_id"], row["session_id"]) for row in listed["handles"]], [(result["handle_id"], session)])
        self.ok("process.kill", handle_id=result["handle_id"])
        self.assertEqual(self.next(), [])
        code, answer = self.tool("next_completions", options=("--session", session))
        self.assertEqual([done["status"] for done in answer["completions"]], ["killed"])

    def test_b149_list_handles(self):
        """Live background ones only, with what a model needs to know them."""
        self.assertEqual(self.ok("list_handles")["handles"], [])
        handle = self.background("sleep 61")
        self.spawn("sleep 62")
        ended = self.background("true")
        self.call("wait", id=ended)
        [row] = self.ok("list_handles")["handles"]
        self.assertEqual((row["handle_id"], row["lease"], row["session_id"]), (handle, "awaited", "default"))
        self.assertIn("sleep 61", row["command_or_op_descriptor"])
        self.assertIn("started_at", row)
        self.background("sleep 63; : " + "x" * 1000)
        self.assertLess(len(self.ok("list_handles")["handles"][1]["command_or_op_descriptor"]), 400)

    def test_b128_cancel(self):
        """true once, then false; no completion; the end says cancelled."""
        handle = self.background("sleep 60")
        self.assertEqual(self.ok("cancel_handle", handle_id=handle), {"handle_id": handle, "cancelled": True})
        self.assertEqual(self.ok("cancel_handle", handle_id=handle)["cancelled"], False)
        self.assertEqual(self.ok("cancel_handle", handle_id="psh-1-99999")["cancelled"], False)
        self.assertEqual(self.next(), [])
        done = self.ok("wait_command", handle_id=handle)
        self.assertEqual((done["status"], done["end_cause"]), ("killed", "cancelled"))

    def test_b129_notes(self):
        """While it runs: new bytes and silence; none after the end."""
        handle = self.background(f"printf abc; cat {self.gate()}", progress_interval_ms=100)
        found = []

        def look():
            found.extend(self.ok("next_completions", timeout_ms=1000)["notes"])
            return len(found) >= 2

        procs.wait_until(look, "two notes")
        for note in found:
            self.assertEqual((note["kind"], note["handle_id"], note["bytes"]["stdout"]), ("progress", handle, 3))
        self.assertEqual([note["new_bytes"] for note in found][:2], [3, 0])
        self.assertGreaterEqual(found[1]["silence_ms"], found[0]["silence_ms"])
        self.open_gate()
        self.call("wait", id=handle)
        last = self.ok("next_completions")
        self.assertEqual((len(last["completions"]), last["notes"]), (1, []))

    def test_b040_wait_command(self):
        """At once by default, with the state; at its end with the result."""
        handle = self.background(f"printf a; cat {self.gate()}")
        self.until_output(handle, 1)
        for args in ({}, {"timeout_ms": 50}):
            now = self.whole(self.ok("wait_command", handle_id=handle, **args))
            self.assertEqual((now["status"], now["running"], now["timed_out"], now["stdout"]), ("running", True, True, "a"))
        self.error("invalid_input", "wait_command", handle_id=handle, timeout_ms=-1)
        self.open_gate()
        done = self.ok("wait_command", handle_id=handle, timeout_ms=60000)
        self.assertEqual((done["status"], done["running"], done["timed_out"]), ("completed", False, False))
        self.error("no_such_process", "wait_command", handle_id="psh-1-99999")

"""Several steps in a shell by one call."""

from lib.shell_tools import ShellCase


class BatchTest(ShellCase):
    def batch(self, session, *steps, **args):
        return self.tool("shell_batch", session_id=session, steps=list(steps), **args)

    def test_b067_steps_run_in_order(self):
        session = self.open()
        code, result = self.batch(
            session,
            {"type": "send", "input": "printf '%s? ' na''me; read x; echo he''llo $x\n"},
            {"type": "expect_cases", "cases": [{"pattern": "never", "tag": "fail"},
                                               {"pattern": r"(na)me\? ", "tag": "ok", "respond": "bob\n", "label": "asked"}]},
            {"type": "expect", "pattern": r"hello (\w+)\n"},
        )
        self.assertEqual((code, result["completed"], result["total"]), (0, 3, 3))
        send, cases, expect = result["steps"]
        self.assertEqual(send, {"index": 0, "step_type": "send", "success": True})
        self.assertEqual((cases["index"], cases["step_type"], cases["success"]), (1, "expect_cases", True))
        self.assertEqual((cases["matched_case"], cases["tag"], cases["label"], cases["captures"]), (1, "ok", "asked", ["name? ", "na"]))
        self.assertEqual((expect["captures"], expect["success"]), (["hello bob\n", "bob"], True))
        self.assertTrue(expect["output"].endswith("hello bob\n"))

    def test_b144_the_first_failure_ends_it(self):
        session = self.open()
        code, result = self.batch(
            session,
            {"type": "send", "input": "echo on''e\n"},
            {"type": "expect", "pattern": "never shown", "timeout_secs": 0},
            {"type": "send", "input": "echo thr''ee\n"},
        )
        self.assertEqual((code, result["completed"], result["total"]), (1, 1, 3))
        self.assertEqual([step["success"] for step in result["steps"]], [True, False])
        self.assertIn("timeout", result["steps"][1]["error"])
        self.assertTrue(result["hint"])
        self.settle(session)
        self.assertNotIn("three", self.output(session).decode())

    def test_b067_a_case_with_tag_fail_ends_it(self):
        session = self.open()
        code, result = self.batch(
            session,
            {"type": "send", "input": "echo er''ror\n"},
            {"type": "expect_cases", "cases": [{"pattern": "error\n", "tag": "fail", "label": "broken"}]},
            {"type": "send", "input": "x"},
        )
        self.assertEqual((code, result["completed"]), (1, 1))
        self.assertEqual((result["steps"][1]["label"], result["steps"][1]["success"]), ("broken", False))

    def test_b067_all_steps_are_checked_first(self):
        session = self.open()
        good = {"type": "send", "input": "echo ty''ped\n"}
        for bad in (
            {"type": "send"}, {"type": "expect"}, {"type": "expect_cases"}, {"type": "expect_cases", "cases": []},
            {"type": "dance"}, {"input": "x"}, {"type": "expect", "pattern": "("}, {"type": "send", "input": "x", "pattern": "y"},
            {"type": "signal", "signal": "SIGNONE"}, {"type": "expect", "pattern": "x", "timeout_secs": 301},
            {"type": "expect_cases", "cases": [{"pattern": "x", "tag": "maybe"}]}, {"type": "send", "input": "x", "sleep": 1},
        ):
            code, error = self.batch(session, good, bad)
            self.assertEqual((code, error["code"]), (2, "invalid_input"), bad)
            self.assertIn("steps[1]", error["message"])
        self.error("invalid_input", "shell_batch", session_id=session, steps=[])
        self.settle(session)
        self.assertNotIn("typed", self.output(session).decode())

    def test_b067_a_signal_step_works_like_shell_signal(self):
        session = self.open()
        code, result = self.batch(
            session,
            {"type": "send", "input": "sh -c 'echo sta''rt; exec sleep 100'\n"},
            {"type": "expect", "pattern": "start\n"},
            {"type": "signal"},
            {"type": "send", "input": "echo co''de $?\n"},
            {"type": "expect", "pattern": r"code (\d+)"},
        )
        self.assertEqual((code, result["completed"]), (0, 5), result)
        self.assertEqual(result["steps"][2], {"index": 2, "step_type": "signal", "success": True})
        self.assertEqual(result["steps"][4]["captures"][1], "130")

    def test_b067_an_ended_shell_fails_the_step(self):
        session = self.open()
        code, result = self.batch(
            session,
            {"type": "send", "input": "exit\n"},
            {"type": "expect", "pattern": "never", "timeout_secs": 300},
            {"type": "send", "input": "x"},
        )
        self.assertEqual((code, result["completed"]), (1, 1))
        self.assertIn("exited", result["steps"][1]["error"])
        code, result = self.batch(session, {"type": "send", "input": "x"})
        self.assertEqual((code, result["completed"], result["total"]), (1, 0, 1))

    def test_a_person_who_must_act_is_waited_for(self):
        session = self.open()
        code, result = self.batch(
            session,
            {"type": "send", "input": "printf 'pass''word: '; cat\n"},
            {"type": "expect_cases", "cases": [{"pattern": "password: ", "tag": "needs_user"}]},
            {"type": "send", "input": "guess\n"},
        )
        self.assertEqual((code, result["completed"], result["total"]), (0, 2, 3))
        self.assertIn("user", result["hint"])
        self.assertNotIn("guess", self.output(session).decode())

"""Waiting for what a shell says, and answering its questions."""

from lib import procs
from lib.shell_tools import ShellCase


class ExpectTest(ShellCase):
    def test_b142_captures_of_a_match(self):
        session = self.open()
        self.type(session, "echo v1.2\n")
        result = self.expect(session, r"v(\d+)\.(\d+)")
        self.assertEqual(result["captures"], ["v1.2", "1", "2"])
        self.assertEqual((result["pattern"], result["reason"]), (r"v(\d+)\.(\d+)", None))

    def test_b142_an_absent_pattern_fails_at_once_without_time(self):
        session = self.open()
        result = self.failure("shell_expect", session_id=session, pattern="never shown", timeout_secs=0)
        self.assertEqual((result["matched"], result["reason"], result["captures"]), (False, "timeout", []))
        self.assertIn("call again", result["hint"])

    def test_b062_output_is_all_up_to_the_end_of_the_match(self):
        session = self.open()
        self.settle(session)
        self.type(session, "echo be''fore; echo mi''d-match; echo be''hind; cat\n")
        self.read_until(session, "behind")
        result = self.expect(session, "mid-(ma|xx)(tch)(zz)?")
        self.assertTrue(result["output"].endswith("before\nmid-match"), result["output"])
        self.assertEqual(result["captures"], ["mid-match", "ma", "tch", None])

    def test_b062_a_match_moves_the_place_to_its_end(self):
        session = self.open()
        self.settle(session)
        self.type(session, "printf 'x%s1 x%s2 x%s3\\n' '' '' ''; cat\n")
        self.assertEqual([self.expect(session, r"x(\d)")["captures"][1] for _ in range(3)], ["1", "2", "3"])
        self.assertEqual(self.expect(session, "^\n", timeout_secs=0)["output"], "\n")

    def test_b062_escape_sequences_do_not_hide_a_match(self):
        session = self.open()
        self.type(session, "printf 'Pass\\033[1mwo\\033[0mrd\\033[K: '; cat\n")
        self.assertTrue(self.expect(session, "Password: $")["output"].endswith("Password: "))
        self.type(session, "printf 'un''fin\\033[3'; cat\n")

    def test_b062_a_prompt_without_newline_matches_what_is_present(self):
        session = self.open()
        self.type(session, "printf 'an''swer: '; read x; echo g''ot $x\n")
        self.expect(session, r"answer: *$")
        self.type(session, "yes\n")
        self.expect(session, r"got \w+$|got \w+\n")

    def test_b062_places_are_kept_by_the_keeper(self):
        """Every call here is a program of its own: what is remembered is remembered by the keeper, for each agent by itself."""
        session = self.open()
        self.settle(session)
        position = self.call("reader", id=session, reader="expect", stream="pty")
        self.assertGreater(position["cursor"], 0)
        self.assertEqual(position, self.call("reader", id=session, reader="shell", stream="pty") | {"reader": "expect"})

    def test_b063_a_miss_leaves_the_place(self):
        session = self.open()
        self.settle(session)
        self.type(session, "echo ne''edle; cat\n")
        self.read_until(session, "needle")
        before = self.call("reader", id=session, reader="expect", stream="pty")
        result = self.failure("shell_expect", session_id=session, pattern="haystack", timeout_secs=1)
        self.assertEqual((result["matched"], result["reason"]), (False, "timeout"))
        self.assertIn("needle\n", result["output"])
        self.assertEqual(self.call("reader", id=session, reader="expect", stream="pty"), before)
        self.expect(session, "needle", timeout_secs=0)

    def test_b063_the_end_of_the_shell_is_a_reason(self):
        session = self.open()
        self.type(session, "echo go''ne; exit\n")
        result = self.failure("shell_expect", session_id=session, pattern="never", timeout_secs=300)
        self.assertEqual(result["reason"], "exited")
        self.assertIn("close_shell", result["hint"])
        self.assertIn("gone\n", result["output"])
        self.expect(session, "gone", timeout_secs=0)  # also afterwards
        self.assertEqual(self.failure("shell_expect", session_id=session, pattern="never")["reason"], "exited")

    def test_b063_too_long_and_invalid_patterns_are_refused(self):
        session = self.open()
        self.error("invalid_input", "shell_expect", session_id=session, pattern="x", timeout_secs=301)
        self.error("invalid_input", "shell_expect", session_id=session, pattern="x", timeout_secs=-1)
        for pattern in ("(", "a(?=b)", r"(a)\1", "[z-a]"):
            error = self.error("invalid_input", "shell_expect", session_id=session, pattern=pattern)
            self.assertEqual(error["details"]["field"], "pattern")
            self.assertIn("position", error["message"])

    def test_b063_what_comes_later_matches(self):
        session = self.open()
        self.settle(session)
        call = self.start_tool("shell_expect", session_id=session, pattern=r"la(t)er\n", timeout_secs=300)
        self.type(session, "echo la''te; echo la''ter\n")
        code, result = self.end_tool(call)
        self.assertEqual((code, result["captures"]), (0, ["later\n", "t"]))

    def test_progress_bars_are_searched_whole_and_shown_collapsed(self):
        session = self.open()
        self.settle(session)
        self.type(session, "stty -echo; for i in 10 50 100; do printf '\\rLoading %s%%\\033[K' $i; done; printf '\\r\\033[Kloa''ded\\n'; cat\n")
        procs.wait_until(lambda: b"loaded" in self.output(session), "the end of the bar")
        result = self.expect(session, "Loading 50%")
        self.assertTrue(result["output"].endswith("\nLoading 50%"), result["output"])
        self.assertNotIn("10%", result["output"])
        result = self.expect(session, "loaded\n")
        self.assertEqual(result["output"], "loaded\n")

    def test_what_erases_the_match_is_not_part_of_it(self):
        session = self.open()
        self.settle(session)
        self.type(session, "printf 'fl''eeting\\033[2K\\rgo''ne\\n'; cat\n")
        procs.wait_until(lambda: b"gone" in self.output(session), "all of it")
        self.assertTrue(self.expect(session, "fleeting")["output"].endswith("\nfleeting"))
        self.assertEqual(self.ok("shell_read", session_id=session)["output"], "gone\n")

    def test_much_output_before_the_match_is_cut_exactly(self):
        session = self.open()
        self.settle(session)
        self.type(session, "stty -echo; i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done; echo fin''ished\n")
        result = self.expect(session, "finished", timeout_secs=300)
        text, omitted = result["output"], result["omitted"]
        self.assertLessEqual(len(text.encode()), 50000)
        self.assertIn("line 0\n", text)
        self.assertTrue(text.endswith("line 29999\nfinished"))
        missing = self.output(session, cursor=omitted["from"], max=omitted["to"] - omitted["from"]).decode()
        first = int(next(line[5:] for line in missing.split("\r\n") if line.startswith("line ")))
        cut = text.index(f"line {first - 1}\n") + len(f"line {first - 1}\n")
        whole = text[:cut] + missing.replace("\r\n", "\n") + text[cut:]
        self.assertIn("".join(f"line {i}\n" for i in range(30000)) + "finished", whole)

    def test_more_output_than_is_kept_has_its_beginning_and_its_end(self):
        session = self.open()
        self.type(session, "stty -echo; echo be''gin; sleep 1; seq 1 700000; echo fin''ished\n")
        result = self.expect(session, "finished", timeout_secs=300)
        self.assertLessEqual(len(result["output"].encode()), 50000)
        self.assertIn("begin\n", result["output"][:1000])
        self.assertTrue(result["output"].endswith("699999\n700000\nfinished"))
        omitted = result["omitted"]
        self.assertGreater(omitted["to"] - omitted["from"], 4000000)
        self.assertEqual(self.failure("shell_expect", session_id=session, pattern="finished", timeout_secs=0)["captures"], [])

    def test_lost_output_is_jumped_over(self):
        self.ok("list_processes")
        record = self.call("spawn", argv=["sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x; echo en''d; sleep 100"], kind="pty",
                           ring_bytes=4096, sandbox={"workspace": str(self.place.work)})["process"]
        procs.wait_until(lambda: self.call("status", id=record["id"])["process"]["streams"]["pty"]["end"] >= 300000, "all output")
        result = self.expect(record["id"], "x(end)")
        self.assertEqual(result["captures"], ["xend", "end"])
        self.assertEqual(result["omitted"]["from"], 0)
        self.assertEqual(result["omitted"]["to"] + len(result["output"]), 300003)


class CasesTest(ShellCase):
    def cases(self, session, *cases, **args):
        return self.tool("shell_expect_cases", session_id=session, cases=list(cases), **args)

    def say(self, session, words):
        """Lets the shell say words, all of which are there when this returns."""
        self.settle(session)
        self.type(session, "echo " + " ".join(f"{word[0]}''{word[1:]}" for word in words.split()) + "; cat\n")
        procs.wait_until(lambda: (words + "\r\n").encode() in self.output(session), "the words")

    def test_b064_the_first_case_that_matches_the_present_text_wins(self):
        session = self.open()
        self.say(session, "early middle late")
        code, result = self.cases(session, {"pattern": "nothing", "tag": "fail"}, {"pattern": "la(t)e", "tag": "ok", "label": "L"},
                                  {"pattern": "(e)arly middle", "tag": "fail", "label": "E"})
        self.assertEqual(code, 0)
        self.assertEqual((result["matched"], result["matched_case"], result["tag"], result["label"]), (True, 1, "ok", "L"))
        self.assertEqual(result["captures"], ["late", "t"])
        self.assertTrue(result["output"].endswith("early middle late"))

    def test_b064_also_in_much_text(self):
        session = self.open()
        self.type(session, "stty -echo; echo ea''rly; head -c 700000 /dev/zero | tr '\\0' x; echo la''te; cat\n")
        procs.wait_until(lambda: b"late" in self.output(session, tail=100), "all text")
        code, result = self.cases(session, {"pattern": "late", "tag": "ok"}, {"pattern": "early", "tag": "fail"})
        self.assertEqual((code, result["matched_case"]), (0, 0))

    def test_b065_fail_is_a_failure_that_consumes(self):
        session = self.open()
        self.say(session, "error: it broke")
        code, result = self.cases(session, {"pattern": "error: (.*)\n", "tag": "fail", "label": "broken"})
        self.assertEqual((code, result["matched"], result["tag"], result["label"]), (1, True, "fail", "broken"))
        self.assertEqual(result["captures"][1], "it broke")
        self.failure("shell_expect", session_id=session, pattern="error", timeout_secs=0)

    def test_b065_next_does_not_consume(self):
        session = self.open()
        self.say(session, "word here")
        for _ in range(2):
            code, result = self.cases(session, {"pattern": "word", "tag": "next"}, timeout_secs=0)
            self.assertEqual((code, result["tag"]), (0, "next"))
        self.expect(session, "word here", timeout_secs=0)

    def test_b065_continue_consumes_responds_and_goes_on(self):
        session = self.open()
        self.settle(session)
        self.type(session, "for i in 1 2 3; do printf \"%s $i? \" na''me; read x; echo go''t \"$x\"; done; echo fi''nished\n")
        code, result = self.cases(session, {"pattern": r"name (\d)\? $", "tag": "continue", "respond": "answer-$1\n"},
                                  {"pattern": "finished", "tag": "ok"})
        self.assertEqual((code, result["matched_case"]), (0, 1))
        for i in "123":
            self.assertIn(f"got answer-{i}\n", result["output"])
        self.assertEqual(result["output"].count("name 1? "), 1)
        self.assertNotIn("omitted", result)

    def test_b065_continue_has_one_deadline(self):
        session = self.open()
        self.settle(session)
        self.type(session, "while :; do echo ag''ain; sleep 0.1; done\n")
        code, result = self.cases(session, {"pattern": "again\n", "tag": "continue"}, timeout_secs=1)
        self.assertEqual((code, result["matched"], result["reason"], result["tag"]), (1, False, "timeout", None))
        self.assertIn("again\nagain\n", result["output"])

    def test_b065_needs_user_succeeds_and_says_so(self):
        session = self.open()
        self.say(session, "one-time code:")
        code, result = self.cases(session, {"pattern": "code:", "tag": "needs_user"})
        self.assertEqual((code, result["tag"]), (0, "needs_user"))
        self.assertIn("user", result["hint"])

    def test_b066_captures_in_responses(self):
        session = self.open()
        groups = "".join(f"({c})" for c in "abcdefghijkl")
        self.settle(session)
        self.type(session, "stty -echo; printf 'abcdef''ghijkl$1? '; IFS= read -r x; echo \"<$x>\"\n")
        code, result = self.cases(session, {"pattern": groups + r"(zz)?(\$1)\? $", "tag": "continue",
                                            "respond": "$10,$1,${2}0,$120,[$13],[$50],$14,$$1,$,$x,${x},${1,<$0>\n"},
                                  {"pattern": "\n?<(.*)>\n", "tag": "ok"})
        self.assertEqual(code, 0, result)
        self.assertEqual(result["captures"][1], "j,a,b0,l0,[],[],$1,$1,$,$x,${x},${1,<abcdefghijkl$1? >")

    def test_b066_a_response_that_grows_too_long_is_refused(self):
        """By its captures, or by its own text around them: 1 MiB is what a write may have. Nothing is sent of it."""
        session = self.open()
        self.settle(session)
        self.type(session, "stty -echo; printf '%02000d' 0; printf '? '; cat\n")
        pattern = r"(0{2000})\? $"
        for respond in ("$1" * 600, "$1" * 524 + "x" * 600, "$1" * 524 + "$$" * 600):
            case = {"pattern": pattern, "tag": "next", "respond": respond + "\n"}
            error = self.error("too_large", "shell_expect_cases", session_id=session, cases=[case])
            self.assertIn("1 MiB", error["message"])
        self.type(session, "last\n")
        self.assertTrue(self.expect(session, "last\n")["output"].endswith("? last\n"))

    def test_b143_no_cases_and_unknown_tags_are_refused(self):
        session = self.open()
        for cases in ([], [{"pattern": "x", "tag": "maybe"}], [{"pattern": "x"}], [{"tag": "ok"}], ["x"], [{"pattern": "(", "tag": "ok"}],
                      [{"pattern": "x", "tag": "ok", "reply": "y"}]):
            error = self.error("invalid_input", "shell_expect_cases", session_id=session, cases=cases)
            self.assertTrue(error["details"]["field"].startswith("cases"), error)
        self.error("invalid_input", "shell_expect_cases", session_id=session, cases=[{"pattern": "x", "tag": "ok"}], timeout_secs=301)

    def test_b143_a_response_is_sent_once(self):
        session = self.open()
        self.settle(session)
        self.type(session, "stty -echo; printf 'Pro''ceed? '; cat\n")
        code, _ = self.cases(session, {"pattern": r"Proceed\? ", "tag": "ok", "respond": "yes\n"})
        self.assertEqual(code, 0)
        self.type(session, "last\n")
        self.assertEqual(self.expect(session, "last\n")["output"].count("yes"), 1)

    def test_b143_a_response_to_an_ended_shell_is_closed(self):
        session = self.open()
        self.type(session, "echo qu''estion; exit\n")
        self.call("wait", id=session, timeout_ms=30000)
        self.error("closed", "shell_expect_cases", session_id=session, cases=[{"pattern": "question", "tag": "ok", "respond": "x\n"}])

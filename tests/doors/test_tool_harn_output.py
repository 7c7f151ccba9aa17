"""read_command_output and wait_command_output (B-031, B-035, B-036, B-042, B-043)."""

import os

from lib.harn import HarnCase
from lib.place import moment


class ReadTest(HarnCase):
    def test_b035_read_by_position(self):
        """2000 bytes read at 1990 for 20 give 10 and eof; by handle, command and path alike."""
        done = self.run_sh("yes 012345678 | head -c 2000")
        for target in ({"handle_id": done["handle_id"]}, {"command_id": done["command_id"]}, {"path": done["output_path"]}):
            with self.subTest(target=target):
                read = self.ok("read_command_output", offset=1990, length=20, **target)
                self.assertEqual(
                    [read[name] for name in ("handle_id", "path", "offset", "bytes_read", "total_bytes", "eof", "content", "next_offset")],
                    [done["handle_id"], done["output_path"], 1990, 10, 2000, True, "012345678\n", 2000],
                )
        read = self.ok("read_command_output", handle_id=done["handle_id"])
        self.assertEqual((read["offset"], read["bytes_read"], read["eof"]), (0, 2000, True))
        read = self.ok("read_command_output", handle_id=done["handle_id"], length=1000)
        self.assertEqual((read["bytes_read"], read["eof"]), (1000, False))
        past = self.ok("read_command_output", handle_id=done["handle_id"], offset=10**6)
        self.assertEqual((past["bytes_read"], past["content"], past["eof"]), (0, "", True))

    def test_b035_order_of_arrival(self):
        """By id it is all output in order; by a stream's path that stream."""
        handle = self.background(f"echo 1; cat {self.gate('a')}; echo 2 >&2; cat {self.gate('b')}; echo 3")
        self.open_gate("a")
        self.open_gate("b")
        done = self.ok("wait_command", handle_id=handle, timeout_ms=60000)
        self.assertEqual(self.ok("read_command_output", handle_id=handle)["content"], "1\n2\n3\n")
        self.assertEqual(self.ok("read_command_output", handle_id=handle, offset=2, length=2)["content"], "2\n")
        self.assertEqual(self.ok("read_command_output", path=done["stdout_path"])["content"], "1\n3\n")
        read = self.ok("read_command_output", handle_id=handle, source="stderr")
        self.assertEqual((read["content"], read["path"]), ("2\n", done["stderr_path"]))

    def test_b035_all_of_it_in_pages(self):
        """Far more than a ring holds, in pages of 1 MiB: nothing is lost, nothing comes twice."""
        done = self.run_sh("seq 1 500000; echo end >&2")
        content, at = "", 0
        while True:
            read = self.ok("read_command_output", handle_id=done["handle_id"], offset=at, length=1 << 20)
            self.assertEqual((read["offset"], read["bytes_dropped"]), (at, 0))
            content += read["content"]
            at = read["next_offset"]
            if read["eof"]:
                break
            self.assertEqual(read["bytes_read"], 1 << 20)
        self.assertEqual(content.replace("end\n", ""), "".join(f"{n}\n" for n in range(1, 500001)))

    def test_b035_other_paths_are_escapes(self):
        """System files, links to an artifact, its folder, other spellings, files of nobody: the same words for all."""
        done = self.run_sh("echo x")
        link = self.place.work / "link"
        os.symlink(done["output_path"], link)
        folder = os.path.dirname(done["output_path"])
        spelling = f"{folder}/../{os.path.basename(folder)}/{os.path.basename(done['output_path'])}"
        messages = set()
        for path in ("/etc/passwd", "/no/such/file", str(link), folder, spelling, "", "relative"):
            with self.subTest(path=path):
                messages.add(self.error("boundary_escape", "read_command_output", path=path)["message"])
        self.assertEqual(len(messages), 1)
        self.ok("process.release", handle_id=done["handle_id"])
        self.error("boundary_escape", "read_command_output", path=done["output_path"])

    def test_b035_paths_of_other_agents_are_escapes(self):
        """Knowing a path gives nothing."""
        done = self.run_sh("echo x")
        self.add_agent("other")
        self.env["COOP_TOKEN"] = self.call("token_new", agent="other")["token"]
        self.error("boundary_escape", "read_command_output", path=done["output_path"])
        self.error("no_such_process", "read_command_output", handle_id=done["handle_id"])

    def test_b035_arguments(self):
        """Exactly one of the three; lengths within bounds."""
        for args in ({}, {"handle_id": "a", "path": "/b"}, {"handle_id": "a", "command_id": "b"}, {"path": "/b", "source": "stdout"}):
            self.error("invalid_input", "read_command_output", **args)
        for args in ({"length": 0}, {"length": (1 << 20) + 1}, {"offset": -1}):
            self.error("invalid_input", "read_command_output", handle_id="psh-1-1", **args)
        self.error("no_such_process", "read_command_output", handle_id="psh-1-99999")

    def test_b031_characters_are_not_split(self):
        """A page ends before a character that does not fit, yet always gets on; what is none becomes U+FFFD."""
        done = self.run_sh(r"printf 'a\342\202\254b\377'")
        handle, content, at = done["handle_id"], "", 0
        for wanted in ("a", "\u20ac", "b", "\ufffd"):
            read = self.ok("read_command_output", handle_id=handle, offset=at, length=2 if wanted == "a" else 1)
            self.assertEqual(read["content"], wanted)
            content, at = content + read["content"], read["next_offset"]
        self.assertEqual((at, read["eof"], read["utf8_valid"]), (6, True, False))

    def test_b036_no_eof_while_it_runs(self):
        """All has been read and it goes on: eof is false, also of half a character, which is held back."""
        handle = self.background(rf"printf 'a\342'; cat {self.gate()}; printf '\202\254'")
        self.until_output(handle, 2)
        read = self.ok("read_command_output", handle_id=handle)
        self.assertEqual((read["content"], read["bytes_read"], read["total_bytes"], read["eof"]), ("a", 1, 2, False))
        self.open_gate()
        self.ok("wait_command", handle_id=handle, timeout_ms=60000)
        read = self.ok("read_command_output", handle_id=handle, offset=1)
        self.assertEqual((read["content"], read["eof"]), ("\u20ac", True))


class WaitTest(HarnCase):
    def wait(self, handle, pattern, wanted=0, **args):
        code, result = self.tool("wait_command_output", handle_id=handle, pattern=pattern, **args)
        self.assertEqual(code, wanted, result)
        return result

    def test_b042_b043_in_pieces(self):
        """rea, then dy: found with absolute offsets while it runs; there is no result yet."""
        handle = self.background(f"printf 'x rea'; cat {self.gate()}; printf 'dy y'; sleep 60")
        self.until_output(handle, 5)
        call = self.start_tool("wait_command_output", handle_id=handle, pattern="ready")
        self.open_gate()
        code, result = self.end_tool(call)
        self.assertEqual(code, 0, result)
        self.assertEqual(
            [result[name] for name in ("status", "match", "match_start", "match_end", "next_offset", "result", "bytes_dropped")],
            ["matched", "ready", 2, 7, 7, None, 0],
        )

    def test_b043_earlier_output_and_that_of_a_finished_process(self):
        """From the start, and from an offset; regular expressions and texts."""
        handle = self.run_sh(r"printf 'v1 a.b v22\n'")["handle_id"]
        found = self.wait(handle, r"v(\d+)", regex=True)
        self.assertEqual((found["match"], found["match_start"], found["match_end"]), ("v1", 0, 2))
        self.assertEqual((found["result"]["status"], found["result"]["exit_code"]), ("completed", 0))
        found = self.wait(handle, r"v\d+", regex=True, from_offset=found["next_offset"])
        self.assertEqual((found["match"], found["match_start"], found["match_end"]), ("v22", 7, 10))
        self.assertEqual(self.wait(handle, "a.b")["match_start"], 3)
        self.assertEqual(self.wait(handle, "a.b", 1, from_offset=4)["status"], "exited")
        self.assertEqual(self.wait(handle, r"v\d+\n$", regex=True)["match_start"], 7)

    def test_b042_sources(self):
        """One stream's offsets, or those of all in order of arrival."""
        handle = self.background(f"printf 12345; cat {self.gate('a')}; printf 'err' >&2; cat {self.gate('b')}; printf out")
        self.open_gate("a")
        self.open_gate("b")
        self.ok("wait_command", handle_id=handle, timeout_ms=60000)
        for args, start in (({"pattern": "err"}, 5), ({"pattern": "err", "source": "stderr"}, 0), ({"pattern": "out"}, 8),
                            ({"pattern": "out", "source": "stdout"}, 5), ({"pattern": "5err"}, 4)):
            with self.subTest(args=args):
                self.assertEqual(self.wait(handle, **args)["match_start"], start)
        self.assertEqual(self.wait(handle, "err", 1, source="stdout")["status"], "exited")
        self.error("invalid_input", "wait_command_output", handle_id=handle, pattern="x", source="pty")

    def test_b043_a_match_at_the_end_of_what_has_come(self):
        """Behind it the command waits: what more output could make longer is taken as it is."""
        handle = self.background("printf 'v12'; sleep 1000")
        found = self.wait(handle, r"v\d+", regex=True, timeout_ms=50000)
        self.assertEqual((found["match"], found["match_end"]), ("v12", 3))
        self.assertEqual(self.wait(handle, r"12$", regex=True)["match_start"], 1)

    def test_b042_output_without_end_does_not_hold_the_limit_up(self):
        """It writes and writes, never what is waited for."""
        handle = self.background("yes", timeout_ms=60000)
        for source in ("combined", "stdout"):
            late = self.wait(handle, "never", 1, source=source, timeout_ms=200)
            self.assertEqual((late["status"], late["result"]), ("timed_out", None))
            self.assertGreater(late["next_offset"], 0)

    def test_b042_exited(self):
        """It ends without it: a failure with the whole result."""
        handle = self.background(f"cat {self.gate()}; printf done; exit 3")
        call = self.start_tool("wait_command_output", handle_id=handle, pattern="ready")
        self.open_gate()
        code, result = self.end_tool(call)
        self.assertEqual((code, result["status"], result["match"], result["match_start"]), (1, "exited", None, None))
        self.assertEqual((result["next_offset"], self.whole(result["result"])["exit_code"]), (4, 3))
        self.assertEqual(result["result"]["stdout"], "done")

    def test_b042_timed_out_goes_on_where_it_was(self):
        """Nothing is lost between two calls: what began to come is looked at again."""
        handle = self.background(f"printf 'x rea'; cat {self.gate()}; printf dy; sleep 60")
        self.until_output(handle, 5)
        late = self.wait(handle, "ready", 1, timeout_ms=0)
        self.assertEqual((late["status"], late["match"], late["result"]), ("timed_out", None, None))
        self.assertLessEqual(late["next_offset"], 2)
        self.assertIn(str(late["next_offset"]), late["hint"])
        self.assertEqual(self.wait(handle, "x r", timeout_ms=0)["status"], "matched")
        late = self.wait(handle, "ready", 1, timeout_ms=moment(200), from_offset=late["next_offset"])
        self.open_gate()
        self.assertEqual(self.wait(handle, "ready", from_offset=late["next_offset"])["match_start"], 2)

    def test_b043_dropped_bytes_are_reported(self):
        """What no ring and no disk holds any more is counted, and offsets behind it stay exact."""
        handle = self.detached("sh", "-c", "head -c 3000000 /dev/zero; printf needle", options=("--ring", "4K"))
        self.call("wait", id=handle)
        for source in ("combined", "stdout"):
            found = self.wait(handle, "needle", source=source)
            self.assertEqual((found["match_start"], found["match_end"]), (3000000, 3000006), source)
            self.assertGreater(found["bytes_dropped"], 2900000)

    def test_b043_all_that_is_on_disk_is_searched(self):
        """The beginning of far more than a ring."""
        handle = self.run_sh("printf needle; head -c 3000000 /dev/zero; printf last")["handle_id"]
        found = self.wait(handle, "needle")
        self.assertEqual((found["match_start"], found["bytes_dropped"]), (0, 0))
        self.assertEqual(self.wait(handle, "last", source="stdout")["match_start"], 3000006)

    def test_b042_bad_patterns(self):
        """Refused with the reason, before anything is waited for."""
        handle = self.background("sleep 60")
        for pattern in ("", "(", r"(a)\1", "(?=a)", "x" * 5000):
            with self.subTest(pattern=pattern[:20]):
                code, error = self.tool("wait_command_output", handle_id=handle, pattern=pattern, regex=True)
                self.assertEqual(code, 2, error)
                self.assertIn(error["code"], ("invalid_input", "too_large"))
        self.error("no_such_process", "wait_command_output", handle_id="psh-1-99999", pattern="x")

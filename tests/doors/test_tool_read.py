"""read_process_output: ranges, readers, both ends, and lines that match."""

import base64

from lib import procs
from lib.tools import ToolCase

COUNT = "i=0; while [ $i -lt {} ]; do echo line $i; i=$((i+1)); done"
LINES = "".join(f"line {i}\n" for i in range(9000))


class ReadCase(ToolCase):
    def ended(self, command):
        """The id of a command that has ended."""
        return self.tool("run_command", command=f": ;{command}", timeout_secs=120)[1]["id"]

    def printed(self, data):
        """The id of a command that has printed these bytes."""
        (self.place.work / "data").write_bytes(data)
        return self.ended("cat data")

    def read(self, id, **args):
        return self.ok("read_process_output", pid=id, **args)

    def read_all(self, id, **args):
        """Reads on until the end; gives all parts."""
        parts, offset = [], 0
        while True:
            result = self.read(id, offset=offset, **args)
            self.assertEqual(result["offset"], offset)
            parts.append(result["content"])
            if result["eof"]:
                return parts
            self.assertGreater(result["next_offset"], offset, "a read gets on")
            offset = result["next_offset"]


class RangeTest(ReadCase):
    def test_b136_from_the_start_up_to_65536_bytes(self):
        id = self.ended(COUNT.format(9000))
        result = self.read(id)
        self.assertEqual((result["stream"], result["offset"], result["total_bytes"], result["bytes_dropped"], result["eof"]), ("stdout", 0, len(LINES), 0, False))
        self.assertEqual(result["content"], LINES[: result["next_offset"]])
        self.assertEqual(result["next_offset"], 65536)
        rest = self.read(id, offset=65536)
        self.assertEqual((rest["content"], rest["next_offset"], rest["eof"]), (LINES[65536:], len(LINES), True))

    def test_b136_any_range(self):
        id = self.ended(COUNT.format(9000))
        for offset, length in ((0, 1), (5, 7), (40000, 1 << 20), (len(LINES) - 3, 10)):
            result = self.read(id, offset=offset, length=length)
            self.assertEqual(result["content"], LINES[offset : offset + length])
            self.assertEqual(result["next_offset"], offset + len(result["content"]))

    def test_b136_behind_the_end(self):
        id = self.ended("echo x")
        for offset in (2, 3, 1000000):
            result = self.read(id, offset=offset)
            self.assertEqual((result["content"], result["next_offset"], result["total_bytes"], result["eof"]), ("", 2, 2, True))

    def test_b136_while_it_runs(self):
        id = self.ok("run_command", command="echo one; while [ ! -e go ]; do sleep 0.02; done; echo two", wait=False)["id"]
        self.ok("wait_any", conditions=[{"pid": id, "output": "one\n"}])
        first = self.read(id)
        self.assertEqual((first["content"], first["eof"]), ("one\n", False))
        nothing = self.read(id, offset=first["next_offset"])
        self.assertEqual((nothing["content"], nothing["next_offset"], nothing["eof"]), ("", 4, False))
        (self.place.work / "go").touch()
        self.ok("wait_for_process", pid=id)
        last = self.read(id, offset=first["next_offset"])
        self.assertEqual((last["content"], last["eof"]), ("two\n", True))

    def test_b136_stderr(self):
        id = self.ended("echo out; echo err >&2")
        result = self.read(id, stream="stderr")
        self.assertEqual((result["content"], result["stream"]), ("err\n", "stderr"))

    def test_b136_a_merged_record_has_no_stderr(self):
        self.ok("list_processes")
        id = self.call("spawn", argv=["sh", "-c", "echo out; echo err >&2"], stderr="merged", lease="awaited")["process"]["id"]
        self.ok("wait_for_process", pid=id)
        result = self.failure("read_process_output", pid=id, stream="stderr")
        self.assertIn("stdout", result["message"])
        self.assertEqual(self.read(id)["content"], "out\nerr\n")

    def test_b136_a_terminal(self):
        shell = self.ok("open_shell")["session_id"]
        self.ok("shell_write", session_id=shell, input="echo a''b; exit\n")
        self.ok("wait_for_process", pid=shell)
        result = self.read(shell)
        self.assertEqual(result["stream"], "pty")
        self.assertIn("\nab\n", result["content"])
        for stream in ("stdout", "stderr"):
            self.assertIn("pty", self.failure("read_process_output", pid=shell, stream=stream)["message"])

    def test_a_pipe_has_no_terminal(self):
        id = self.ended("echo x")
        self.assertIn("stdout", self.failure("read_process_output", pid=id, stream="pty")["message"])

    def test_bytes_that_are_lost_are_counted(self):
        self.ok("list_processes")
        id = self.call("spawn", argv=["sh", "-c", COUNT.format(9000)], ring_bytes=4096, lease="awaited")["process"]["id"]
        self.ok("wait_for_process", pid=id)
        result = self.read(id)
        self.assertEqual(result["offset"], result["bytes_dropped"])
        self.assertEqual(result["content"], LINES[result["offset"] :])
        self.assertLessEqual(len(result["content"]), 4096)
        ends = self.read(id, head_tail=True)
        self.assertTrue(ends["content"].endswith("line 8999\n"))
        self.assertIn("are lost", ends["content"].split("\n")[0])
        found = self.read(id, grep="^line 8999$", context=0)
        self.assertEqual(found["content"], "line 8999\n")
        self.assertGreater(found["bytes_dropped"], 0)

    def test_mistakes_are_explained(self):
        id = self.ended("echo x")
        for args, word in (
            ({"offset": -1}, "offset"), ({"length": 0}, "length"), ({"length": (1 << 20) + 1}, "length"), ({"stream": "stdlog"}, "stream"), ({"encoding": "utf8"}, "encoding"),
            ({"reader": "me", "offset": 5}, "offset"), ({"head_tail": True, "offset": 5}, "head_tail"), ({"head_tail": True, "grep": "x"}, "head_tail"),
            ({"head_tail": True, "reader": "me"}, "head_tail"), ({"grep": "x", "reader": "me"}, "grep"), ({"reader": ""}, "reader"), ({"reader": "x" * 65}, "reader"),
            ({"grep": "("}, "grep"), ({"grep": "(?=x)"}, "grep"), ({"context": 51}, "context"), ({"start": 0}, "offset"), ({"grep": "x", "encoding": "base64"}, "encoding"),
            ({"head_tail": True, "encoding": "base64"}, "encoding"),
        ):
            code, error = self.tool("read_process_output", pid=id, **args)
            self.assertEqual(code, 2, (args, error))
            self.assertIn(error["code"], ("invalid_input", "too_large"))
            self.assertIn(word, error["message"], args)
        self.error("no_such_process", "read_process_output", pid="psh-0-0")


class TextTest(ReadCase):
    def test_characters_are_never_split(self):
        """Whatever the length of the parts, together they are the text."""
        text = "aä€😀\n" * 40
        id = self.printed(text.encode())
        for length in (1, 2, 3, 5, 7, 64):
            parts = self.read_all(id, length=length)
            self.assertEqual("".join(parts), text, length)

    def test_escapes_are_taken_out_wherever_a_part_ends(self):
        data = b"\033[1;31mred\033[0m \033]0;title\007plain\r\n" * 8
        id = self.printed(data)
        for length in (3, 7, 11, 1000):
            self.assertEqual("".join(self.read_all(id, length=length)), "red plain\n" * 8, length)

    def test_progress_is_collapsed(self):
        id = self.printed(b"  1%\r 50%\r100%\ndone\n")
        self.assertEqual(self.read(id)["content"], "100%\ndone\n")

    def test_raw_has_everything(self):
        text = "\033[31mred\033[0m 1%\r2%\r\nä\n"
        id = self.printed(text.encode())
        self.assertEqual(self.read(id, encoding="raw")["content"], text)
        self.assertEqual("".join(self.read_all(id, encoding="raw", length=1)), text)

    def test_base64_is_exact(self):
        data = bytes(range(256)) * 3
        id = self.printed(data)
        result = self.read(id, encoding="base64")
        self.assertEqual((base64.b64decode(result["content_base64"]), result["content"]), (data, ""))
        self.assertEqual((result["next_offset"], result["eof"]), (768, True))
        part = self.read(id, encoding="base64", offset=250, length=10)
        self.assertEqual(base64.b64decode(part["content_base64"]), data[250:260])

    def test_bytes_that_are_no_text_are_told(self):
        id = self.printed(b"a\xff\xc3(b\n")
        result = self.read(id)
        self.assertEqual((result["content"], result["utf8_valid"]), ("a\ufffd\ufffd(b\n", False))
        self.assertIn("base64", result["hint"])
        self.assertNotIn("utf8_valid", self.read(self.printed("ä\n".encode())))
        ends = self.read(id, head_tail=True)
        self.assertEqual((ends["utf8_valid"], "base64" in ends["hint"], "stdout_utf8_valid" in ends), (False, True, False))

    def test_a_long_command_string_is_passed(self):
        """No length is so short that a read does not get on."""
        data = b"\033]0;" + b"t" * 3000 + b"\007plain\n\033P" + b"q" * 9000 + b"\033\\more\n\033]8;;" + b"u" * 100
        id = self.printed(data)
        for length in (100, 5000, 65536):
            text = "".join(self.read_all(id, length=length))
            self.assertEqual((text.count("plain\n"), text.count("more\n")), (1, 1), length)

    def test_bytes_on_the_other_stream_are_told(self):
        id = self.ended("echo boom >&2; exit 3")
        for args in ({}, {"head_tail": True}, {"grep": "x"}):
            self.assertEqual(self.read(id, **args)["stderr_bytes"], 5)
        self.assertNotIn("stderr_bytes", self.read(id, stream="stderr"))
        self.assertNotIn("stderr_bytes", self.read(self.ended("echo x")))

    def test_half_a_character_waits_for_the_rest(self):
        (self.place.work / "half").write_bytes(b"x\xc3")
        (self.place.work / "rest").write_bytes(b"\xa4y\n")
        id = self.ok("run_command", command="cat half; while [ ! -e go ]; do sleep 0.02; done; cat rest", wait=False)["id"]
        self.ok("wait_any", conditions=[{"pid": id, "bytes": 2}])
        first = self.read(id)
        self.assertEqual((first["content"], first["next_offset"], first["total_bytes"]), ("x", 1, 2))
        (self.place.work / "go").touch()
        self.ok("wait_for_process", pid=id)
        self.assertEqual(self.read(id, offset=1)["content"], "äy\n")

    def test_half_a_character_at_the_end(self):
        result = self.read(self.printed(b"x\xc3"))
        self.assertEqual((result["content"], result["next_offset"], result["eof"]), ("x\ufffd", 2, True))


class ReaderTest(ReadCase):
    def test_p09_only_what_is_new(self):
        """Every call is a program of its own: the keeper remembers."""
        id = self.ok("run_command", command="echo one; while [ ! -e go ]; do sleep 0.02; done; echo two", wait=False)["id"]
        self.ok("wait_any", conditions=[{"pid": id, "output": "one\n"}])
        self.assertEqual(self.read(id, reader="me")["content"], "one\n")
        self.assertEqual(self.read(id, reader="me")["content"], "")
        (self.place.work / "go").touch()
        self.ok("wait_for_process", pid=id)
        last = self.read(id, reader="me")
        self.assertEqual((last["content"], last["offset"], last["eof"]), ("two\n", 4, True))
        self.assertEqual(self.read(id, reader="other")["content"], "one\ntwo\n")

    def test_p09_in_parts(self):
        text = "ä€😀\n" * 20
        id = self.printed(text.encode())
        seen = ""
        for _ in range(200):
            result = self.read(id, reader="slow", length=5)
            seen += result["content"]
            if result["eof"]:
                break
        self.assertEqual(seen, text)

    def test_p09_each_stream_has_its_own(self):
        id = self.ended("echo out; echo err >&2")
        self.assertEqual(self.read(id, reader="me")["content"], "out\n")
        self.assertEqual(self.read(id, reader="me", stream="stderr")["content"], "err\n")


class EndsTest(ReadCase):
    def test_p08_head_and_tail_with_the_range_between(self):
        id = self.ended(COUNT.format(9000))
        for length in (100, 3000, 50000):
            result = self.read(id, head_tail=True, length=length)
            omitted = result["omitted"]
            note = f"[… {omitted['to'] - omitted['from']} bytes left out: offset {omitted['from']} to {omitted['to']} …]\n"
            self.assertIn(note, result["content"])
            head, tail = LINES[: omitted["from"]], LINES[omitted["to"] :]
            self.assertTrue(result["content"].startswith(head) and result["content"].endswith(tail))
            self.assertLessEqual(len(head) + len(tail), length)
            middle = self.read(id, offset=omitted["from"], length=omitted["to"] - omitted["from"])
            self.assertEqual(head + middle["content"] + tail, LINES)
            self.assertEqual((result["next_offset"], result["total_bytes"], result["eof"]), (len(LINES), len(LINES), True))

    def test_p08_what_fits_is_whole(self):
        id = self.ended("echo a; echo b >&2")
        result = self.read(id, head_tail=True)
        self.assertEqual((result["content"], "omitted" in result, result["next_offset"]), ("a\n", False, 2))
        self.assertEqual(self.read(id, head_tail=True, stream="stderr")["content"], "b\n")
        self.assertEqual(self.read(self.ended("true"), head_tail=True)["content"], "")

    def test_p08_lines_without_end(self):
        id = self.ended("head -c 300000 /dev/zero | tr '\\0' x")
        result = self.read(id, head_tail=True, length=1000)
        self.assertLess(len(result["content"]), 1200)
        self.assertEqual(result["omitted"]["to"] - result["omitted"]["from"] + result["content"].count("x"), 300000)


class GrepTest(ReadCase):
    def test_lines_that_match_with_those_around(self):
        id = self.ended(COUNT.format(1000))
        result = self.read(id, grep="line 5[0-9]7")
        groups = ["".join(f"line {i}\n" for i in range(n - 2, n + 3)) for n in range(507, 600, 10)]
        self.assertEqual(result["content"], "--\n".join(groups))
        self.assertEqual((result["matches"], result["eof"]), (10, True))

    def test_without_context(self):
        id = self.ended(COUNT.format(1000))
        result = self.read(id, grep="^line 99[0-3]$", context=0)
        self.assertEqual(result["content"], "line 990\nline 991\nline 992\nline 993\n")

    def test_overlapping_context_is_shown_once(self):
        id = self.ended(COUNT.format(20))
        result = self.read(id, grep="line (5|7|8)$", context=1)
        self.assertEqual(result["content"], "".join(f"line {i}\n" for i in range(4, 10)))

    def test_context_at_the_edges(self):
        id = self.ended(COUNT.format(5))
        self.assertEqual(self.read(id, grep="line [04]", context=1)["content"], "line 0\nline 1\n--\nline 3\nline 4\n")

    def test_offsets_point_at_the_lines(self):
        data = "".join(f"\033[3{i % 8}mline ä {i}\033[0m\r\n" for i in range(2000)).encode()
        id = self.printed(data)
        result = self.read(id, grep="ä (7|1234|1999)$", context=0)
        self.assertEqual(result["content"], "line ä 7\nline ä 1234\nline ä 1999\n")
        for offset, line in zip(result["match_offsets"], result["content"].splitlines()):
            self.assertTrue(self.read(id, offset=offset)["content"].startswith(line), (offset, line))

    def test_nothing_matches(self):
        result = self.read(self.ended(COUNT.format(100)), grep="nothing")
        self.assertEqual((result["content"], result["matches"], result["match_offsets"], result["eof"]), ("", 0, [], True))

    def test_a_last_line_without_end(self):
        self.assertEqual(self.read(self.ended("printf 'a\\nfound'"), grep="found", context=0)["content"], "found\n")

    def test_a_line_that_is_not_whole_yet_is_found_later(self):
        id = self.ok("run_command", command="echo first; printf 'ERR'; while [ ! -e go ]; do sleep 0.02; done; echo 'OR: bad'", wait=False)["id"]
        self.ok("wait_any", conditions=[{"pid": id, "bytes": 9}])
        result = self.read(id, grep="ERROR", context=0)
        self.assertEqual((result["matches"], result["next_offset"]), (0, 6))
        (self.place.work / "go").touch()
        self.ok("wait_for_process", pid=id)
        self.assertEqual(self.read(id, grep="ERROR", context=0, offset=result["next_offset"])["content"], "ERROR: bad\n")

    def test_a_prompt_is_found_at_once(self):
        id = self.ok("run_command", command="printf 'Go on? '; sleep 300", wait=False)["id"]
        self.ok("wait_any", conditions=[{"pid": id, "bytes": 7}])
        self.assertEqual(self.read(id, grep="on\\?", context=0)["content"], "Go on? \n")

    def test_a_budget_and_where_to_go_on(self):
        """Parts of any size give every line once."""
        id = self.ended(COUNT.format(9000))
        wanted = [f"line {i}" for i in range(9000) if "7" in str(i)]
        seen, offset = [], 0
        for _ in range(200):
            result = self.read(id, grep="7", context=0, length=2000, offset=offset)
            self.assertLessEqual(len(result["content"]), 2100)
            seen += result["content"].splitlines()
            if "hint" not in result:
                break
            self.assertIn("next_offset", result["hint"])
            self.assertIs(result["eof"], False)
            offset = result["next_offset"]
        self.assertEqual(seen, wanted)

    def test_patterns_that_match_many_lines(self):
        id = self.ended(COUNT.format(9000))
        for pattern in ("line", "^line", ".", "line 1", "5$", "$", "^"):
            for context in (0, 2):
                result = self.read(id, grep=pattern, context=context)
                self.assertGreater(result["matches"], 500, (pattern, context))
                self.assertLessEqual(len(result["content"]) + 8 * result["matches"], 66000)

    def test_the_whole_answer_is_within_the_budget(self):
        """Lines of one letter each: their offsets are part of it."""
        id = self.ended("yes | head -n 100000")
        result = self.read(id, grep="y", context=0)
        self.assertLess(len(str(result)), 100000)
        self.assertIn("hint", result)

    def test_the_first_line_is_within_the_budget_too(self):
        id = self.ended("i=0; while [ $i -lt 200 ]; do head -c 3000 /dev/zero | tr '\\0' x; echo $i; i=$((i+1)); done")
        result = self.read(id, grep="x150$", context=50, length=1000)
        self.assertLess(len(result["content"]), 5000)
        self.assertEqual(result["matches"], 1)

    def test_from_an_offset(self):
        id = self.ended(COUNT.format(100))
        result = self.read(id, grep="line 5$", offset=LINES.index("line 6\n"))
        self.assertEqual((result["matches"], result["offset"]), (0, LINES.index("line 6\n")))

    def test_long_lines_are_cut(self):
        id = self.ended("head -c 20000 /dev/zero | tr '\\0' x; echo ' found'; echo after")
        result = self.read(id, grep="found", context=1)
        self.assertLess(len(result["content"]), 5000)
        self.assertRegex(result["content"], "^…x+ found\nafter\n$")
        self.assertTrue(self.read(id, grep="x+", context=0)["content"].endswith("x…\n"))
        wide = self.printed("ä€".encode() * 5000 + b" found\n")
        self.assertNotIn("\ufffd", self.read(wide, grep="found", length=999)["content"])
        self.assertIn("found", self.read(wide, grep="found", length=999)["content"])

    def test_anchors_and_flags_are_those_of_a_line(self):
        id = self.ended("printf 'alpha\\nbeta\\nGamma\\n\\ndelta x\\n'")
        for pattern, lines in (
            ("^beta$", ["beta"]), ("a$", ["alpha", "beta", "Gamma"]), ("(?i)^g", ["Gamma"]), ("^$", [""]), ("\\bx\\b", ["delta x"]), ("^a|^d", ["alpha", "delta x"]),
            ("(alpha|beta)$", ["alpha", "beta"]), ("l[^z]*$", ["alpha", "delta x"]), ("l[^z]*+$", ["alpha", "delta x"]), ("\\s", ["delta x"]), ("a\\z", ["alpha", "beta", "Gamma"]),
            ("\\Ab", ["beta"]), ("a\\nb", []), ("(?s)alpha.beta", []), ("p(?-m)ha$", ["alpha"]),
        ):
            code, result = self.tool("read_process_output", pid=id, grep=pattern, context=0)
            if code == 2:  # refused is fine; a wrong answer is not
                self.assertEqual(result["code"], "invalid_input", pattern)
                continue
            self.assertEqual(result["content"], "".join(f"{line}\n" for line in lines), pattern)

    def test_a_pattern_that_reaches_over_lines_finds_the_same(self):
        id = self.ended("i=0; while [ $i -lt 3000 ]; do echo \"open $i\"; i=$((i+1)); done; echo 'open )'; echo ')'")
        self.assertEqual(self.read(id, grep="open[^)]*\\)", context=0)["content"], "open )\n")
        self.assertEqual(self.read(id, grep="open\\s", context=0, length=20)["matches"], 1)
        self.assertEqual(self.read(id, grep="\\)\\s+\\)|^open 29\\d9$", context=0)["content"], "".join(f"open 29{i}9\n" for i in range(10)))

    def test_bad_patterns_are_explained(self):
        id = self.ended("echo x")
        self.assertIn("position", self.error("invalid_input", "read_process_output", pid=id, grep="a(b")["message"])

    def test_a_pattern_that_costs_too_much_ends(self):
        id = self.ended("head -c 60000 /dev/zero | tr '\\0' a; echo")
        code, result = self.tool("read_process_output", pid=id, grep="(a|aa)+(a|aaa)+(a?){30}b$")
        self.assertIn(code, (0, 2), result)
        if code == 2:
            self.assertEqual(result["code"], "invalid_input")

    def test_stderr_and_terminals(self):
        id = self.ended("echo out; echo err >&2")
        self.assertEqual(self.read(id, grep=".", stream="stderr")["content"], "err\n")
        shell = self.ok("open_shell")["session_id"]
        self.ok("shell_write", session_id=shell, input="echo fo''und\n")
        procs.wait_until(lambda: self.read(shell, grep="found$", context=0)["content"].endswith("found\n"), "it is shown", interval=0.05)

    def test_output_of_many_pieces(self):
        """Lines that lie across two reads of the keeper's are whole."""
        id = self.ended("i=0; while [ $i -lt 60000 ]; do echo some longer line $i of text; i=$((i+1)); done")
        result = self.read(id, grep="line [0-9]*999 of", context=0)
        self.assertEqual(result["content"], "".join(f"some longer line {i} of text\n" for i in range(999, 60000, 1000)))

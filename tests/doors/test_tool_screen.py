"""Screens of terminals: read_screen, and `coop screen` for people."""

import json

from lib import procs
from lib.shell_tools import ShellCase


class ScreenCase(ShellCase):
    def screen(self, session):
        return self.ok("read_screen", pid=session)

    def until_shown(self, session, wanted):
        """Looks until a line is wanted(line); gives the screen."""
        seen = {}

        def look():
            seen.update(self.screen(session))
            return any(wanted(line) for line in seen["lines"])

        try:
            procs.wait_until(look, "it is shown", interval=0.05)
        except AssertionError:
            self.fail(f"never shown; the screen is {seen}")
        return seen

    def command(self, argv, cols=80, rows=24):
        """A program in a terminal that no shell is in."""
        self.ok("list_processes")
        sandbox = {"workspace": str(self.place.work)}
        return self.call("spawn", argv=argv, kind="pty", cols=cols, rows=rows, lease="awaited", cwd=str(self.place.work), sandbox=sandbox)["process"]["id"]

    def printed(self, text, **size):
        """A terminal on which a program has printed this and then waits."""
        (self.place.work / "shown").write_text(text)
        return self.command(["sh", "-c", "stty raw -echo; cat shown; exec sleep 300"], **size)


class ScreenTest(ScreenCase):
    def test_what_a_person_would_see(self):
        session = self.printed("one\r\ntwo\r\n\033[5;10Hthere\033[1;1HO")
        screen = self.until_shown(session, lambda line: line == "One")
        self.assertEqual(screen["lines"][:6], ["One", "two", "", "", "         there", ""])
        self.assertEqual((len(screen["lines"]), screen["cols"], screen["rows"]), (24, 80, 24))
        self.assertEqual((screen["cursor_col"], screen["cursor_row"], screen["cursor_visible"]), (1, 0, True))
        self.assertEqual((screen["state"], screen["full_screen"], screen["id"]), ("running", False, session))

    def test_wide_characters_and_marks(self):
        session = self.printed("日本e\u0301ß|\r\nx")
        screen = self.until_shown(session, lambda line: line == "x")
        self.assertEqual(screen["lines"][0], "日本e\u0301ß|")

    def test_a_hidden_cursor_and_a_title(self):
        session = self.printed("\033]0;my title\007\033[?25l\033[?1049hfull")
        screen = self.until_shown(session, lambda line: line == "full")
        self.assertEqual((screen["cursor_visible"], screen["title"], screen["full_screen"]), (False, "my title", True))

    def test_a_pager(self):
        (self.place.work / "text").write_text("".join(f"row {i}\n" for i in range(200)))
        session = self.command(["less", "text"], cols=40, rows=10)
        screen = self.until_shown(session, lambda line: line == "row 8")
        self.assertEqual(screen["lines"][:9], [f"row {i}" for i in range(9)])
        self.ok("write_stdin", pid=session, input="G")
        screen = self.until_shown(session, lambda line: line == "row 199")
        self.assertNotIn("row 0", screen["lines"])
        self.ok("write_stdin", pid=session, input="q")
        self.assertEqual(self.ok("wait_for_process", pid=session)["exit_code"], 0)
        self.assertEqual(self.screen(session)["state"], "exited")

    def test_b067_another_size(self):
        (self.place.work / "text").write_text("".join(f"row {i}\n" for i in range(200)))
        session = self.command(["less", "text"])
        self.until_shown(session, lambda line: line == "row 22")
        self.call("resize", id=session, cols=30, rows=6)
        screen = self.until_shown(session, lambda line: line == "row 4")
        self.assertEqual((screen["cols"], screen["rows"], len(screen["lines"])), (30, 6, 6))
        self.assertEqual(screen["lines"][:5], [f"row {i}" for i in range(5)])

    def test_a_shell(self):
        session = self.open(cols=60, rows=5)
        self.settle(session)
        self.type(session, "for i in 1 2 3 4 5 6 7; do echo number $i; done\n")
        screen = self.until_shown(session, lambda line: line == "number 7")
        self.assertNotIn("number 1", screen["lines"])

    def test_after_much_output_the_last_is_shown(self):
        session = self.command(["sh", "-c", "yes | head -n 1500000; echo the end; exec sleep 300"])
        self.ok("wait_any", conditions=[{"pid": session, "output": "the end"}], timeout_ms=120000)
        self.until_shown(session, lambda line: line == "the end")

    def test_a_program_that_never_stops_drawing(self):
        session = self.command(["sh", "-c", "while :; do printf '\\033[2J\\033[Hdrawn\\r\\n'; done"])
        self.ok("wait_any", conditions=[{"pid": session, "bytes": 1000}])
        self.screen(session)

    def test_no_terminal(self):
        id = self.detached("sleep", "300")
        result = self.failure("read_screen", pid=id)
        self.assertEqual(result["code"], "invalid_input")
        self.assertIn("read_process_output", result["message"])
        self.error("no_such_process", "read_screen", pid="psh-0-0")


class VerbTest(ScreenCase):
    def test_the_lines_and_nothing_else(self):
        session = self.printed("one\r\n\r\n  three\r\n")
        self.until_shown(session, lambda line: line == "  three")
        self.assertEqual(self.coop("screen", session), (b"one\n\n  three\n", b""))

    def test_as_json(self):
        session = self.printed("one", cols=20, rows=3)
        self.until_shown(session, lambda line: line == "one")
        screen = self.json("screen", session)
        self.assertEqual((screen["lines"], screen["cols"], screen["cursor_col"]), (["one", "", ""], 20, 3))

    def test_exit_codes(self):
        self.ok("list_processes")
        id = self.detached("sleep", "300")
        self.assertIn("no such process", self.refusal("screen", "psh-0-0", code=1))
        self.assertIn("terminal", self.refusal("screen", id, code=1))
        self.refusal("screen", code=2)
        self.refusal("screen", id, id, code=2)
        out, err = self.coop("screen", "--json", "psh-0-0", code=1)
        self.assertEqual(json.loads(out or err)["code"], "no_such_process")

    def test_by_pid(self):
        session = self.printed("one")
        self.until_shown(session, lambda line: line == "one")
        pid = self.call("status", id=session)["process"]["pid"]
        self.assertEqual(self.out("screen", str(pid)), b"one\n")

    def test_help(self):
        self.assertIn(b"screen", self.out("help", "screen"))

"""write_stdin and close_stdin."""

from lib import procs
from lib.tools import ToolCase


class StdinCase(ToolCase):
    def reading(self, command="cat", **args):
        """The id of a program whose stdin is open."""
        return self.ok("run_command", command=command, wait=False, open_stdin=True, **args)["id"]

    def output(self, id):
        self.ok("wait_for_process", pid=id)
        return self.ok("read_process_output", pid=id, encoding="raw")["content"]


class WriteTest(StdinCase):
    def test_b056_text_goes_unchanged_and_is_counted(self):
        id = self.reading()
        result = self.ok("write_stdin", pid=id, input="ä $1\t\\n'\n")
        self.assertEqual((result["id"], result["bytes"]), (id, 10))
        self.assertIsInstance(result["pid"], int)
        self.ok("write_stdin", pid=result["pid"], input="no line end")
        self.ok("write_stdin", pid=id, input="")
        self.ok("close_stdin", pid=id)
        self.assertEqual(self.output(id), "ä $1\t\\n'\nno line end")

    def test_b056_one_mebibyte_and_no_more(self):
        id = self.reading("wc", args=["-c"])
        self.assertEqual(self.ok("write_stdin", pid=id, input="x" * (1 << 20))["bytes"], 1 << 20)
        error = self.error("too_large", "write_stdin", pid=id, input="x" * ((1 << 20) + 1))
        self.assertIn("1048576", error["message"])
        self.ok("close_stdin", pid=id)
        self.assertEqual(self.output(id).strip(), str(1 << 20))

    def test_b058_a_closed_stdin(self):
        id = self.reading("cat; exec sleep 300")
        self.assertEqual(self.ok("close_stdin", pid=id)["closed"], True)
        self.ok("close_stdin", pid=id)
        error = self.error("closed", "write_stdin", pid=id, input="x")
        self.assertIn("open_stdin", error["advice"])

    def test_b058_one_that_has_ended(self):
        id = self.reading("true")
        self.ok("wait_for_process", pid=id)
        self.error("closed", "write_stdin", pid=id, input="x")

    def test_one_that_never_had_any(self):
        """It says what to do instead."""
        id = self.ok("run_command", command="sleep", args=["300"], wait=False)["id"]
        error = self.error("closed", "write_stdin", pid=id, input="x")
        self.assertIn("open_stdin", error["message"] + error["advice"])
        self.ok("close_stdin", pid=id)

    def test_b057_several_writers(self):
        id = self.reading()
        calls = [self.start_tool("write_stdin", pid=id, input=f"{i}" * 3000 + "\n") for i in range(5)]
        for call in calls:
            self.assertEqual(self.end_tool(call)[0], 0)
        self.ok("close_stdin", pid=id)
        self.assertEqual(sorted(self.output(id).splitlines()), [f"{i}" * 3000 for i in range(5)])

    def test_mistakes_are_explained(self):
        id = self.reading()
        for args, word in (({}, "input"), ({"input": 7}, "input"), ({"input": "x", "text": "x"}, "text"), ({"input": "x", "secret": "yes"}, "secret"), ({"input": "a\0b"}, "NUL")):
            self.assertIn(word, self.error("invalid_input", "write_stdin", pid=id, **args)["message"])
        self.error("no_such_process", "write_stdin", pid="psh-0-0", input="x")
        self.error("no_such_process", "close_stdin", pid="psh-0-0")


class TerminalTest(StdinCase):
    def test_b058_a_terminal_gets_its_end_of_file(self):
        self.ok("list_processes")
        id = self.call("spawn", argv=["sh", "-c", "echo ready; cat; echo over"], kind="pty", lease="awaited")["process"]["id"]
        self.ok("wait_any", conditions=[{"pid": id, "output": "ready"}])
        self.ok("write_stdin", pid=id, input="typed\n")
        self.ok("wait_any", conditions=[{"pid": id, "output": "typed\ntyped"}])
        self.ok("close_stdin", pid=id)
        self.assertIn("over", self.output(id))

    def test_p04_a_secret_leaves_no_trace(self):
        secret = "hunter2-and-more"
        self.ok("list_processes")
        script = "stty -echo; printf 'Password: '; read -r word; stty echo; echo; test \"$word\" = hunter2-and-''more && echo right"
        id = self.call("spawn", argv=["sh", "-c", script], kind="pty", lease="awaited")["process"]["id"]
        self.ok("wait_any", conditions=[{"pid": id, "output": "Password: "}])
        procs.wait_until(lambda: self.call("status", id=id)["process"]["echo_off"], "echo is off")
        result = self.ok("write_stdin", pid=id, input=f"{secret}\n", secret=True)
        self.assertEqual(result["bytes"], len(secret) + 1)
        self.assertIn("right", self.output(id))
        for path in self.place.dir.rglob("*"):
            if path.is_file():
                self.assertNotIn(secret.encode(), path.read_bytes(), path)
        self.assertNotIn(secret, str(self.call("status", id=id)))


class SlowTest(StdinCase):
    def test_b056_one_that_does_not_read(self):
        """The call ends after its patience, and tells how much was taken."""
        id = self.reading("sleep", args=["300"])
        result = self.failure("write_stdin", pid=id, input="x" * 1000000)
        self.assertLess(result["bytes"], 1000000)
        self.assertIn("does not read", result["hint"])

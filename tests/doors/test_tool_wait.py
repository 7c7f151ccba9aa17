"""Waiting: for an end, and for the first of several conditions."""

from lib import procs
from lib.tools import ToolCase

LISTEN = """
import socket, sys, time
family = socket.AF_INET6 if len(sys.argv) > 2 else socket.AF_INET
server = socket.socket(family)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("::1" if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1])))
server.listen()
print("listening", flush=True)
time.sleep(300)
"""


class WaitCase(ToolCase):
    def background(self, command, **args):
        """A shell line that is not waited for; its id."""
        return self.ok("run_command", command=f": ;{command}", wait=False, **args)["id"]

    def go(self, name="go"):
        """What a command that waits for this file waits for."""
        (self.place.work / name).touch()

    def begin(self, *conditions, **args):
        """A wait_any that is not waited for."""
        return self.start_tool("wait_any", conditions=list(conditions), **args)

    def held(self, *conditions, **args):
        return self.ok("wait_any", conditions=list(conditions), **args)

    def not_held(self, *conditions, **args):
        args.setdefault("timeout_ms", 0)
        result = self.failure("wait_any", conditions=list(conditions), **args)
        self.assertIsNone(result["index"])
        return result

    def dead(self, *conditions):
        """None of them can hold any more; that is told at once."""
        result = self.not_held(*conditions, timeout_ms=600000)
        self.assertIs(result["timed_out"], False)
        self.assertIn("None can hold", result["hint"])
        return result

    def printed(self, id, stream="stdout"):
        return self.call("status", id=id)["process"]["streams"][stream]["end"]

    def until_printed(self, id, size, stream="stdout"):
        procs.wait_until(lambda: self.printed(id, stream) >= size, f"{size} bytes of output")


WAIT = "while [ ! -e {} ]; do sleep 0.02; done"


class EndTest(WaitCase):
    def test_b135_less_than_100_ms_is_refused(self):
        id = self.background("sleep 300")
        for value in (99, 0, -1, 100.5, "100"):
            self.assertIn("timeout_ms", self.error("invalid_input", "wait_for_process", pid=id, timeout_ms=value)["message"])

    def test_b135_a_timeout_leaves_it_alone(self):
        id = self.background(WAIT.format("go"))
        result = self.failure("wait_for_process", pid=id, timeout_ms=100)
        self.assertEqual((result["timed_out"], result["status"], result["exit_code"], result["signal"], result["end_cause"]), (True, "running", None, None, None))
        self.assertIn("Call again", result["hint"])
        self.go()
        result = self.ok("wait_for_process", pid=id)
        self.assertEqual((result["timed_out"], result["status"], result["exit_code"], result["end_cause"]), (False, "exited(0)", 0, "self_exit"))
        self.assertNotIn("hint", result)

    def test_b135_signals(self):
        id = self.background("exec sleep 300")
        self.ok("kill_process", pid=id)
        result = self.ok("wait_for_process", pid=id)
        self.assertEqual((result["status"], result["exit_code"], result["signal"]), ("signaled(15)", None, "SIGTERM"))

    def test_b135_an_exit_code_is_no_failure_of_the_wait(self):
        id = self.background("exit 7")
        for _ in range(2):
            result = self.ok("wait_for_process", pid=id)
            self.assertEqual((result["status"], result["exit_code"]), ("exited(7)", 7))

    def test_b038_many_may_wait(self):
        id = self.background(WAIT.format("go"))
        calls = [self.start_tool("wait_for_process", pid=id) for _ in range(3)]
        calls[0].kill()
        self.go()
        for call in calls[1:]:
            self.assertEqual(self.end_tool(call)[1]["exit_code"], 0)

    def test_p03_one_that_waits_for_input_is_told(self):
        id = self.ok("run_command", command="cat", wait=False, open_stdin=True)["id"]
        procs.wait_until(lambda: self.call("status", id=id)["process"]["blocked_on_stdin"], "it reads")
        self.assertIn("write_stdin", self.failure("wait_for_process", pid=id, timeout_ms=100)["hint"])

    def test_one_that_is_stopped_is_told(self):
        id = self.background("exec sleep 300")
        self.ok("kill_process", pid=id, signal="SIGSTOP")
        procs.wait_until(lambda: self.call("status", id=id)["process"]["state"] == "stopped", "it is stopped")
        result = self.failure("wait_for_process", pid=id, timeout_ms=100)
        self.assertEqual(result["status"], "stopped")
        self.assertIn("SIGCONT", result["hint"])

    def test_unknown(self):
        self.error("no_such_process", "wait_for_process", pid="psh-0-0")


class ExitTest(WaitCase):
    def test_b044_the_end(self):
        id = self.background(f"{WAIT.format('go')}; echo bye; exit 3")
        call = self.begin({"pid": id, "exit": True})
        self.go()
        code, result = self.end_tool(call)
        self.assertEqual((code, result["index"], result["id"], result["condition"], result["status"]), (0, 0, id, "exit", "exited(3)"))
        self.assertEqual((result["state"], result["timed_out"], result["next_offset"]), ("exited", False, 4))

    def test_b044_one_that_has_ended(self):
        id = self.background("exit 3")
        self.ok("wait_for_process", pid=id)
        for timeout in (0, 30000):
            self.assertEqual(self.held({"pid": id, "exit": True}, timeout_ms=timeout)["status"], "exited(3)")

    def test_b044_which_of_several(self):
        ids = [self.background(WAIT.format(name)) for name in "abc"]
        call = self.begin(*({"pid": id, "exit": True} for id in ids))
        self.go("b")
        result = self.end_tool(call)[1]
        self.assertEqual((result["index"], result["id"]), (1, ids[1]))
        self.assertEqual(len(self.ok("list_processes")["processes"]), 2)

    def test_b044_the_first_in_order_where_several_hold(self):
        id = self.background("echo x")
        self.ok("wait_for_process", pid=id)
        result = self.held({"pid": id, "output": "never"}, {"pid": id, "bytes": 1}, {"pid": id, "exit": True}, timeout_ms=0)
        self.assertEqual((result["index"], result["condition"]), (1, "bytes"))

    def test_b044_by_pid(self):
        pid = self.ok("run_command", command="true", wait=False)["pid"]
        self.assertEqual(self.held({"pid": pid, "exit": True})["pid"], pid)


class OutputTest(WaitCase):
    def test_b044_text_that_comes_later(self):
        id = self.background(f"echo before; {WAIT.format('go')}; echo server ready on 80; sleep 300")
        call = self.begin({"pid": id, "output": "ready"})
        self.go()
        code, result = self.end_tool(call)
        self.assertEqual((code, result["condition"], result["state"], result["match"]), (0, "output", "running", "ready"))
        self.assertEqual((result["match_start"], result["next_offset"]), (14, 19))
        rest = self.ok("read_process_output", pid=id, offset=result["next_offset"])
        self.assertEqual(rest["content"], " on 80\n")

    def test_b043_text_in_pieces(self):
        id = self.background(f"printf rea; {WAIT.format('a')}; printf d; {WAIT.format('b')}; printf 'y.'; sleep 300")
        call = self.begin({"pid": id, "output": "ready"})
        regex = self.begin({"pid": id, "output": "r[a-e]+y", "regex": True})
        for name, size in (("a", 3), ("b", 4)):
            self.until_printed(id, size)
            self.not_held({"pid": id, "output": "ready"})
            self.go(name)
        for one in (call, regex):
            result = self.end_tool(one)[1]
            self.assertEqual((result["match"], result["match_start"], result["next_offset"]), ("ready", 0, 5))

    def test_b043_earlier_output_counts(self):
        id = self.background("echo early; sleep 300")
        self.until_printed(id, 6)
        for timeout in (0, 30000):
            self.assertEqual(self.held({"pid": id, "output": "early"}, timeout_ms=timeout)["next_offset"], 5)

    def test_b043_much_earlier_output_with_no_time(self):
        """What is there is searched to its end even if nothing is waited for."""
        id = self.background("i=0; while [ $i -lt 200000 ]; do echo line $i; i=$((i+1)); done; echo the end; sleep 300")
        self.held({"pid": id, "output": "the end"}, timeout_ms=120000)
        self.assertEqual(self.held({"pid": id, "output": "the end"}, timeout_ms=0)["match"], "the end")
        self.assertIs(self.not_held({"pid": id, "output": "no such text"})["timed_out"], True)

    def test_b043_from_offset(self):
        id = self.background(f"echo tick; {WAIT.format('go')}; echo tick; sleep 300")
        first = self.held({"pid": id, "output": "tick"})
        self.not_held({"pid": id, "output": "tick", "from_offset": first["next_offset"]})
        call = self.begin({"pid": id, "output": "tick", "from_offset": first["next_offset"]})
        self.go()
        result = self.end_tool(call)[1]
        self.assertEqual((result["match_start"], result["next_offset"]), (5, 9))

    def test_b043_from_an_offset_that_is_not_there_yet(self):
        id = self.background(f"printf aaaa; {WAIT.format('go')}; printf aaaaaa; sleep 300")
        self.until_printed(id, 4)
        call = self.begin({"pid": id, "output": "aa", "from_offset": 7})
        self.go()
        result = self.end_tool(call)[1]
        self.assertEqual((result["match_start"], result["next_offset"]), (7, 9))

    def test_b043_of_a_finished_process(self):
        id = self.background("echo one; echo two >&2")
        self.ok("wait_for_process", pid=id)
        for timeout in (0, 30000):
            self.assertEqual(self.held({"pid": id, "output": "one"}, timeout_ms=timeout)["next_offset"], 3)
        self.assertEqual(self.held({"pid": id, "output": "two", "stream": "stderr"})["next_offset"], 3)
        self.dead({"pid": id, "output": "two"})

    def test_b043_its_end_is_one_for_a_pattern(self):
        id = self.background("printf '100%%'")
        self.assertEqual(self.held({"pid": id, "output": "[0-9]+%$", "regex": True})["match"], "100%")

    def test_a_prompt_without_a_line_end(self):
        """Nothing follows it, so that a pattern that could match more must not wait for more."""
        id = self.background("printf 'Name? '; sleep 300")
        for pattern in ("Name\\? *", "[A-Z]\\w+.*", "\\? $"):
            self.held({"pid": id, "output": pattern, "regex": True})

    def test_b042_a_terminal(self):
        shell = self.ok("open_shell")["session_id"]
        self.ok("shell_write", session_id=shell, input="echo fo''und\n")
        self.assertEqual(self.held({"pid": shell, "output": "found"})["match"], "found")

    def test_a_text_is_no_pattern(self):
        id = self.background("echo axb; echo a.b; sleep 300")
        self.assertEqual(self.held({"pid": id, "output": "a.b"})["match_start"], 4)
        self.assertEqual(self.held({"pid": id, "output": "a.b", "regex": True})["match_start"], 0)

    def test_p07_colours_do_not_hide_a_text(self):
        """Searched is what is read; offsets are those of the bytes."""
        id = self.background("printf '\\033[32mready\\033[0m in 3 ms\\n'; sleep 300")
        for args in ({"output": "ready in"}, {"output": "ready +in", "regex": True}):
            result = self.held({"pid": id, **args})
            self.assertEqual((result["match"], result["next_offset"]), ("ready in", 17))
            self.assertIn(result["match_start"], (0, 5))
        rest = self.ok("read_process_output", pid=id, offset=17)
        self.assertEqual(rest["content"], " 3 ms\n")

    def test_a_long_match_is_cut(self):
        id = self.background("head -c 10000 /dev/zero | tr '\\0' x; echo; sleep 300")
        result = self.held({"pid": id, "output": "x+\\n", "regex": True})
        self.assertEqual((len(result["match"]), result["next_offset"]), (2000, 10001))

    def test_bad_patterns(self):
        id = self.background("sleep 300")
        for pattern in ("(", "[z-a]", "(?=x)", "\\1", ""):
            error = self.error("invalid_input", "wait_any", conditions=[{"pid": id, "output": pattern, "regex": True}])
            self.assertIn("output", error["message"])

    def test_a_pattern_that_costs_too_much(self):
        id = self.background("i=0; while [ $i -lt 3000 ]; do printf aaaaaaaaaaaaaaaaaaaa; i=$((i+1)); done; sleep 300")
        self.until_printed(id, 60000)
        code, result = self.tool("wait_any", conditions=[{"pid": id, "output": "(a|aa)+(a|aaa)+(a?){30}b$", "regex": True}], timeout_ms=1000)
        self.assertIn(code, (1, 2), result)

    def test_a_stream_that_it_has_not(self):
        id = self.background("sleep 300")
        error = self.error("invalid_input", "wait_any", conditions=[{"pid": id, "output": "x", "stream": "pty"}])
        self.assertIn("pty", error["message"])


class OtherTest(WaitCase):
    def test_b044_bytes(self):
        id = self.background(f"printf 12345; {WAIT.format('go')}; printf 67; {WAIT.format('more')}; printf 890; sleep 300")
        self.assertEqual(self.held({"pid": id, "bytes": 5})["next_offset"], 5)
        call = self.begin({"pid": id, "bytes": 8})
        self.go()
        self.until_printed(id, 7)
        self.not_held({"pid": id, "bytes": 8})
        self.go("more")
        code, result = self.end_tool(call)
        self.assertEqual((code, result["condition"], result["next_offset"]), (0, "bytes", 10))

    def test_b044_bytes_of_a_finished_process(self):
        id = self.background("printf 12345; printf 1 >&2")
        self.ok("wait_for_process", pid=id)
        self.held({"pid": id, "bytes": 5}, timeout_ms=0)
        self.held({"pid": id, "bytes": 1, "stream": "stderr"}, timeout_ms=0)
        self.dead({"pid": id, "bytes": 6})
        self.dead({"pid": id, "bytes": 2, "stream": "stderr"})

    def test_b044_silence(self):
        id = self.background("echo x; sleep 300")
        result = self.held({"pid": id, "silent_ms": 300})
        self.assertEqual((result["condition"], result["state"]), ("silent_ms", "running"))

    def test_b044_silence_counts_from_the_call(self):
        """What was before is not what was caused by the last input."""
        id = self.background("echo x; sleep 300")
        self.held({"pid": id, "silent_ms": 300})
        self.not_held({"pid": id, "silent_ms": 300}, timeout_ms=0)
        self.held({"pid": id, "silent_ms": 300})

    def test_b044_output_breaks_silence(self):
        id = self.background("while [ ! -e go ]; do echo x; sleep 0.05; done; echo ended; sleep 300")
        self.not_held({"pid": id, "silent_ms": 20000}, timeout_ms=1000)
        self.go()
        self.held({"pid": id, "output": "ended"})
        self.held({"pid": id, "silent_ms": 200})

    def test_b044_silence_of_one_that_has_ended(self):
        """An end is no silence."""
        id = self.background("echo x")
        self.ok("wait_for_process", pid=id)
        self.dead({"pid": id, "silent_ms": 1})
        call = self.begin({"pid": self.background(WAIT.format("go")), "silent_ms": 600000}, timeout_ms=600000)
        self.go()
        self.assertIs(self.end_tool(call)[1]["timed_out"], False)

    def test_b044_none_can_hold_any_more(self):
        id = self.background(f"{WAIT.format('go')}; echo x")
        call = self.begin({"pid": id, "output": "never"}, {"pid": id, "port": 8080}, {"pid": id, "bytes": 3}, timeout_ms=600000)
        self.go()
        code, result = self.end_tool(call)
        self.assertEqual((code, result["index"], result["timed_out"]), (1, None, False))
        self.assertIn("read_process_output", result["hint"])

    def test_output_on_the_other_stream_is_hinted_at(self):
        id = self.background(f"echo ready >&2; {WAIT.format('go')}")
        self.until_printed(id, 6, "stderr")
        self.assertIn("stderr", self.not_held({"pid": id, "output": "ready"})["hint"])
        self.assertNotIn("stderr", self.not_held({"pid": id, "output": "x", "stream": "stderr"})["hint"])
        self.go()
        self.assertIn("stderr", self.dead({"pid": id, "output": "ready"})["hint"])

    def test_b044_a_timeout_leaves_all_alone(self):
        id = self.background("sleep 300")
        for timeout in (0, 50):
            result = self.not_held({"pid": id, "exit": True}, {"pid": id, "output": "x"}, {"pid": id, "port": 8080}, timeout_ms=timeout)
            self.assertIs(result["timed_out"], True)
            self.assertIn("Call again", result["hint"])
            self.assertEqual((result["id"], result["state"], result["next_offset"]), (id, "running", 0))
        self.assertEqual(self.ok("process_stats", pid=id)["status"], "running")

    def test_b045_how_all_of_them_are(self):
        """One process: its own fields; several: a list."""
        ended, running = self.background("printf 12345"), self.background("printf 123 >&2; sleep 300")
        self.ok("wait_for_process", pid=ended)
        self.until_printed(running, 3, "stderr")
        result = self.dead({"pid": ended, "output": "x"})
        self.assertEqual((result["id"], result["state"], result["next_offset"]), (ended, "exited", 5))
        result = self.not_held({"pid": running, "output": "x", "stream": "stderr"}, {"pid": ended, "output": "x"}, {"pid": running, "port": 1})
        rows = [(row["id"], row["state"], row["next_offset"]) for row in result["processes"]]
        self.assertEqual(rows, [(running, "running", 3), (ended, "exited", 5)])
        self.assertNotIn("id", result)

    def test_p05_many_processes_and_mixed_conditions(self):
        ids = [self.background(f"{WAIT.format(f'go{i}')}; echo out {i}; sleep 300") for i in range(4)]
        conditions = [{"pid": id, kind: value} for id in ids for kind, value in (("exit", True), ("output", "out"), ("silent_ms", 600000), ("port", 4000 + ids.index(id)))]
        call = self.begin(*conditions)
        self.go("go2")
        result = self.end_tool(call)[1]
        self.assertEqual((result["index"], result["id"], result["condition"]), (9, ids[2], "output"))

    def test_mistakes_are_explained(self):
        id = self.background("sleep 300")
        for conditions, words in (
            ([], ("conditions",)), ([{"pid": id}], ("conditions[0]", "exactly one")), ([{"pid": id, "exit": True}, {"pid": id, "exit": True, "port": 1}], ("conditions[1]", "exactly one")),
            ([{"pid": id, "exit": False}], ("exactly one",)), ([{"exit": True}], ("pid",)), ([{"pid": id, "port": 0}], ("port",)), ([{"pid": id, "port": 65536}], ("65535",)),
            ([{"pid": id, "bytes": 0}], ("bytes",)), ([{"pid": id, "silent_ms": 0}], ("silent_ms",)), ([{"pid": id, "exit": "yes"}], ("exit",)), ([7], ("object",)),
            ([{"pid": id, "ports": 1}], ("ports",)), ([{"pid": id, "output": "x", "stream": "stdlog"}], ("stream",)), ([{"pid": id, "exit": True}] * 33, ("32",)),
            ({"pid": id, "exit": True}, ("conditions",)),
        ):
            error = self.error("invalid_input", "wait_any", conditions=conditions)
            for word in words:
                self.assertIn(word, error["message"], conditions)
        self.error("invalid_input", "wait_any", conditions=[{"pid": id, "exit": True}], timeout_ms=-1)
        self.error("invalid_input", "wait_any")
        self.error("no_such_process", "wait_any", conditions=[{"pid": id, "bytes": 1}, {"pid": "psh-0-0", "exit": True}])

    def test_false_means_left_out(self):
        id = self.background("echo x; sleep 300")
        self.held({"pid": id, "exit": False, "output": "x", "regex": False, "port": None})


class PortTest(WaitCase):
    def free_port(self):
        import socket

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def server(self, port, *more, before=""):
        script = self.place.work / "listen.py"
        script.write_text(LISTEN)
        return self.background(f"{before}python3 listen.py {port} {' '.join(more)}; :")

    def test_p06_a_server_of_its_tree(self):
        """Also one that listens in a child, and before the question."""
        port = self.free_port()
        id = self.server(port, before=f"{WAIT.format('go')}; ")
        call = self.begin({"pid": id, "port": port})
        self.not_held({"pid": id, "port": port})
        self.go()
        code, result = self.end_tool(call)
        self.assertEqual((code, result["condition"], result["state"]), (0, "port", "running"), result)
        self.held({"pid": id, "port": port}, timeout_ms=0)

    def test_p06_version_6(self):
        port = self.free_port()
        self.held({"pid": self.server(port, "6"), "port": port})

    def test_p06_the_server_of_another_tree_does_not_count(self):
        port = self.free_port()
        owner = self.server(port)
        other = self.background("sleep 300")
        self.held({"pid": owner, "port": port})
        self.not_held({"pid": other, "port": port})
        result = self.held({"pid": other, "port": port}, {"pid": owner, "port": port})
        self.assertEqual(result["index"], 1)

    def test_p06_one_that_ends_first(self):
        port = self.free_port()
        id = self.background("exit 1")
        self.dead({"pid": id, "port": port})


class FloodTest(WaitCase):
    def test_r064_a_match_in_a_flood_is_not_missed(self):
        """One word between two floods of 48 MiB each, which no ring holds: who waits for it finds it."""
        flood = "head -c 50331648 /dev/zero | tr '\\0' x"
        for attempt in range(3):
            name = f"go{attempt}"
            id = self.background(f"until test -e {name}; do sleep 0.01; done; {flood}; echo; echo NEEDLE; {flood}")
            waiting = self.begin({"pid": id, "output": "NEEDLE"}, timeout_ms=600000)
            self.until_followed(id)
            self.go(name)
            self.assertEqual(self.end_tool(waiting)[1]["index"], 0)
            self.call("kill", id=id)

    def until_followed(self, id):
        procs.wait_until(lambda: self.call("info")["subscribers"] > 0, "somebody follows")

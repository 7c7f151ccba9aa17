"""Output over MCP: binary, large, in pieces; waits with a bound, progress, secrets; on both transports (M-033 to M-036, M-050)."""

import hashlib
import re
import time

from lib import procs
from lib.mcp import INVALID_PARAMS, LATEST_LEGACY, PROGRESS
from lib.mcp_case import INLINE, HttpCase, StdioCase
from lib.place import patience

MIB = 1 << 20


class OutputOver:
    """Output of every kind and size."""

    def test_m033_binary_output_is_exact(self):
        """All byte values through base64; text is valid UTF-8 and says that it is not all."""
        data = bytes(range(256)) * 40
        (self.work / "data").write_bytes(data)
        for peer in self.eras():
            process = self.background("cat data", peer)
            self.ok("wait_for_process", peer, pid=process)
            page = self.ok("read_process_output", peer, pid=process, encoding="base64")
            self.assertEqual(self.exact(page, "content"), data)
            page = self.ok("read_process_output", peer, pid=process)
            page["content"].encode("utf-8")
            self.assertIs(page["utf8_valid"], False)
            self.assertIn("base64", page.text)
            result = self.run_sh("cat data", peer)
            result["stdout"].encode("utf-8")
            self.assertEqual(result["stdout_bytes"], len(data))

    def test_m033_characters_are_not_split(self):
        """Pages of any size of a text with long characters join to the text."""
        text = "aé漢😀\n" * 300
        (self.work / "text").write_text(text)
        process = self.background("cat text")
        self.ok("wait_for_process", pid=process)
        for length in (5, 7, 100, 4096):
            pieces, offset = [], 0
            while offset < len(text.encode()):
                page = self.ok("read_process_output", pid=process, offset=offset, length=length)
                self.assertGreater(page["next_offset"], offset)
                self.assertNotIn("\ufffd", page["content"])
                pieces.append(page["content"])
                offset = page["next_offset"]
            self.assertEqual("".join(pieces), text)

    def test_m034_100_mib_of_output(self):
        """The result is within its limit; what it leaves out is named exactly, and what is retained of that can be fetched."""
        count = 100 * MIB // 10
        base = 100_000_000  # lines of ten bytes each, which tell their place
        result = self.run_sh(f"exec seq {base} {base + count - 1}", timeout_secs=80)
        self.assertFalse(result.is_error, result)
        self.assertLess(result.cost, INLINE + 3000)
        self.assertLessEqual(len(result["stdout"].encode()), INLINE)
        self.assertGreater(len(result["stdout"].encode()), INLINE // 2)
        self.assertEqual((result["stdout_bytes"], result["stdout_truncated"]), (100 * MIB // 10 * 10, True))
        omitted = result["stdout_omitted"]
        numbers = [int(line) - base for line in re.findall(r"^\d{9}$", result["stdout"], re.MULTILINE)]
        self.assertEqual(numbers[-1], count - 1)
        after = [number for number in numbers if number * 10 >= omitted["to"]]
        before = [number for number in numbers if number * 10 < omitted["from"]]
        self.assertEqual(len(before) + len(after), len(numbers))
        self.assertEqual(after, list(range(after[0], count)))
        self.assertEqual(before, list(range(before[0], before[0] + len(before))) if before else [])
        self.assertEqual(after[0], -(-omitted["to"] // 10))
        page = self.ok("read_process_output", pid=result["id"], offset=omitted["from"], length=MIB)
        first = omitted["from"] + page["bytes_dropped"]
        self.assertEqual(page["total_bytes"], result["stdout_bytes"])
        digest = hashlib.sha256()
        size, offset = 0, first
        while offset < omitted["to"]:
            page = self.ok("read_process_output", pid=result["id"], offset=offset, length=MIB)
            self.assertEqual((page["offset"], page["bytes_dropped"]), (offset, 0))
            self.assertGreater(page["next_offset"], offset)
            piece = page["content"].encode()[: omitted["to"] - offset]
            digest.update(piece)
            size += len(piece)
            offset = page["next_offset"]
        self.assertEqual(size, omitted["to"] - first)
        whole = b"".join(b"%d\n" % (base + number) for number in range(first // 10, omitted["to"] // 10 + 1))
        self.assertEqual(digest.hexdigest(), hashlib.sha256(whole[first % 10 : first % 10 + size]).hexdigest())

    def test_reads_of_any_length_are_bounded(self):
        process = self.background("head -c 3000000 /dev/zero | tr '\\0' x")
        self.ok("wait_for_process", pid=process)
        self.assertLess(self.ok("read_process_output", pid=process).cost, 65536 + 2000)
        self.assertLess(self.ok("read_process_output", pid=process, length=MIB).cost, MIB + 2000)
        self.bad("read_process_output", "invalid_input", pid=process, length=MIB + 1)

    def test_escape_sequences_and_progress_bars_cost_nothing(self):
        """P-07: text is what a person would have seen in the end; the bytes stay to be had."""
        script = "printf '\\033[1;31mred\\033[0m\\n'; i=0; " \
                 "while [ $i -lt 500 ]; do printf '\\rprogress %d%%' $i; i=$((i+1)); done; printf '\\ndone\\n'"
        result = self.run_sh(script)
        self.assertEqual(result["stdout"], "red\nprogress 499%\ndone\n")
        page = self.ok("read_process_output", pid=result["id"], encoding="base64")
        self.assertIn(b"\033[1;31m", self.exact(page, "content"))
        self.assertIn(b"progress 250%", self.exact(page, "content"))

    def test_what_is_new_for_me(self):
        """P-09: a reader's place is kept by the keeper: another connection goes on there."""
        process = self.background("echo one; until [ -e go ]; do sleep 0.05; done; echo two; exec sleep 300")
        self.ok("wait_any", conditions=[{"pid": process, "output": "one"}])
        self.assertEqual(self.ok("read_process_output", pid=process, reader="me")["content"], "one\n")
        self.assertEqual(self.ok("read_process_output", pid=process, reader="me")["content"], "")
        (self.work / "go").touch()
        self.ok("wait_any", conditions=[{"pid": process, "output": "two"}])
        again = self.connect()
        self.assertEqual(self.ok("read_process_output", again, pid=process, reader="me")["content"], "two\n")
        self.assertEqual(self.ok("read_process_output", again, pid=process, reader="other")["content"], "one\ntwo\n")


class ProgressOver:
    def until_file(self, name):
        return f"until [ -e {name} ]; do echo tick; sleep 0.02; done; echo end"

    def test_m036_progress(self):
        """Comes with a token alone, rises, keeps the token's type, at most two a second, none after the result."""
        for number, token in enumerate((7, "seven", 0, "")):
            name = f"go{number}"
            pending = self.peer.submit_tool("run_command", {"command": "sh", "args": ["-c", self.until_file(name)], "timeout_secs": 80}, token=token)
            begin = time.monotonic()
            wanted = 2 if number < 2 else 1
            for _ in range(wanted):
                note = pending.note(PROGRESS)
                self.assertIs(type(note["params"]["progressToken"]), type(token))
            (self.work / name).touch()
            result = pending.result()
            seconds = time.monotonic() - begin
            self.assertTrue(result["stdout"].endswith("end\n"))
            self.assertLessEqual(len(pending.notes) + wanted, 2 * seconds + 1)
            self.peer.call("tools/list")

    def test_m036_legacy_progress(self):
        peer = self.connect(LATEST_LEGACY)
        pending = peer.submit_tool("run_command", {"command": "sh", "args": ["-c", self.until_file("go")], "timeout_secs": 80}, token="legacy")
        pending.note(PROGRESS)
        (self.work / "go").touch()
        pending.result()
        self.ok("list_processes", peer)

    def test_m036_none_without_a_token(self):
        """The client checks that nothing comes for which nobody asked."""
        pending = self.peer.submit_tool("run_command", {"command": "sh", "args": ["-c", "for i in 1 2 3; do echo $i; sleep 0.5; done"]})
        self.assertEqual(pending.result()["stdout"], "1\n2\n3\n")
        self.assertEqual(len(pending.notes), 0)

    def test_m036_waits_tell_progress_too(self):
        process = self.background(self.until_file("go"))
        pending = self.peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 45000}, token=1)
        note = pending.note(PROGRESS)
        self.assertTrue(note["params"].get("message"))
        (self.work / "go").touch()
        self.assertEqual(pending.result()["status"], "exited(0)")

    def test_progress_tokens_of_wrong_types(self):
        """Are refused or ignored; the call is not lost."""
        for token in (1.5, True, [1], {"a": 1}):
            pending = self.peer.submit("tools/call", {"name": "list_processes", "_meta": {"progressToken": token}})
            try:
                self.assertIn("content", pending.finish())
            except Exception as error:
                self.assertEqual(getattr(error, "code", None), INVALID_PARAMS, error)


class SecretsOver:
    def test_m050_secrets_leave_no_trace(self):
        """Given as environment, input and secret writes, in calls that go right and wrong: in no result, error or log."""
        secret = "s3cr3t-Hunter2-xyzzy"
        peer = self.connect()
        seen = []

        def call(tool, **arguments):
            result = peer.tool(tool, **arguments)
            seen.append(result.text)
            return result

        reader = ["-c", "read line; test -n \"$line\" && echo taken; exec sleep 300"]
        call("run_command", command="true", env={"API_TOKEN": secret})
        call("run_command", command="/no/such", args=[], env={"API_TOKEN": secret})
        call("run_command", command="true", env={"API_TOKEN": secret}, nonsense=1)
        call("run_command", command="cat", args=["/dev/null"], stdin=secret)
        call("run_command", command="true", env={"BAD=NAME": secret})
        call("run_command", command="true", env={"API_TOKEN": [secret]})
        process = call("run_command", command="sh", args=reader, wait=False, open_stdin=True)["id"]
        call("write_stdin", pid=process, input=secret + "\n", secret=True)
        call("wait_any", conditions=[{"pid": process, "output": "taken"}], timeout_ms=30000)
        call("write_stdin", pid="psh-0-0", input=secret, secret=True)
        call("write_stdin", pid=process, input=[secret], secret=True)
        call("write_stdin", pid=process, input=secret, secret="yes")
        call("process_stats", pid=process)
        call("list_processes", include_finished=True)
        shell = call("open_shell")["session_id"]
        call("shell_write", session_id=shell, input="stty -echo; printf 'pass''word: '; read line; stty echo; echo got it\n")
        call("shell_expect", session_id=shell, pattern="password: ", timeout_secs=30)
        call("write_stdin", pid=shell, input=secret + "\n", secret=True)
        call("shell_expect", session_id=shell, pattern="got it", timeout_secs=30)
        call("shell_read", session_id=shell)
        for uri in (f"coop://process/{process}", f"coop://process/{process}/output"):
            seen.append(str(peer.call("resources/read", {"uri": uri})))
        call("stop_process", pid=process, grace_ms=0)
        call("close_shell", session_id=shell)
        for text in seen:
            self.assertNotIn(secret, text)
            self.assertNotIn(secret[::-1], text)
        self.assertNotIn(secret.encode(), self.logs())
        self.assertNotIn(secret, str(self.operator.call("list", include_finished=True)))


class MaxWaitTest(StdioCase):
    """Calls answer before the client loses patience (M-035). The bound is made small, so that nobody has to wait for it."""

    OPTIONS = ("--max-wait", "1s")

    def test_m035_a_wait_longer_than_the_cap(self):
        """Returns in time with state and cursor; repeated with the cursor nothing is lost and nothing comes twice."""
        peer = self.connect(options=self.OPTIONS)
        process = self.background("i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; echo the end", peer)
        offset, text, rounds = 0, "", 0
        while True:
            result = self.any("wait_any", peer, conditions=[{"pid": process, "output": "the end", "from_offset": offset}], timeout_ms=60000)
            self.assertEqual(result["id"], process)
            self.assertGreaterEqual(result["next_offset"], 0)
            page = self.ok("read_process_output", peer, pid=process, offset=offset)
            text, offset, rounds = text + page["content"], page["next_offset"], rounds + 1
            if not result["timed_out"]:
                break
            self.assertIn(result["state"], ("running", "exited"))
        self.assertGreater(rounds, 1)
        self.ok("wait_for_process", peer, pid=process, timeout_ms=600)
        text += self.ok("read_process_output", peer, pid=process, offset=offset)["content"]
        self.assertEqual(text, "".join(f"line {number}\n" for number in range(40)) + "the end\n")

    def every_wait(self, peer, process, shell):
        """A call of each tool that may take long, under way."""
        return [
            peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 3600000}),
            peer.submit_tool("wait_any", {"conditions": [{"pid": process, "exit": True}], "timeout_ms": 3600000}),
            peer.submit_tool("shell_expect", {"session_id": shell, "pattern": "never", "timeout_secs": 300}),
            peer.submit_tool("shell_expect_cases", {"session_id": shell, "cases": [{"pattern": "never", "tag": "ok"}], "timeout_secs": 300}),
            peer.submit_tool("run_command", {"command": "sleep", "args": ["300"], "timeout_secs": 3600}),
            peer.submit_tool("process.wait", {"handle_id": process}),
            peer.submit_tool("wait_command", {"handle_id": process, "timeout_ms": 3600000}),
            peer.submit_tool("wait_command_output", {"handle_id": process, "pattern": "never", "timeout_ms": 3600000}),
            peer.submit_tool("shell_batch", {"session_id": shell, "steps": [{"type": "expect", "pattern": "never"}], "timeout_secs": 300}),
            peer.submit_tool("run_command", {"argv": ["sleep", "300"]}),
            peer.submit_tool("process.exec", {"mode": "argv", "argv": ["sleep", "300"]}),
        ]

    def test_m035_every_waiting_tool_answers(self):
        """Whatever timeout it was given."""
        peer = self.connect(options=(*self.OPTIONS, "--tools", "all"))
        process = self.background("exec sleep 300", peer)
        shell = self.ok("open_shell", peer)["session_id"]
        for pending in self.every_wait(peer, process, shell):
            with self.subTest(tool=pending.tool_name):
                self.assertNotIn("code", pending.result(timeout=30).value)

    def test_m037_every_waiting_tool_can_be_cancelled(self):
        """Others are answered then, what was waited for lives, and what the calls themselves had started is gone."""
        peer = self.connect(options=("--tools", "all"))
        process = self.background("echo up; exec sleep 300", peer)
        shell = self.ok("open_shell", peer)["session_id"]
        pendings = self.every_wait(peer, process, shell)
        procs.wait_until(lambda: len(self.listed(peer)) == 5, "all of them have begun")
        for pending in pendings:
            pending.cancel()
            with self.subTest(tool=pending.tool_name):
                self.assertIn(process, self.listed(peer))
        procs.wait_until(lambda: set(self.listed(peer)) == {process, shell}, "what they had started is gone")
        self.assertEqual([pending.tool_name for pending in pendings if pending.answer], [])

    def test_b137_the_clients_limit_comes_first(self):
        """The not-waiting form with the output so far; the command goes on, and its own limit stays in force."""
        peer = self.connect(options=self.OPTIONS)
        script = "echo begun; until [ -e go ]; do sleep 0.05; done; echo done"
        result = self.ok("run_command", peer, command="sh", args=["-c", script], timeout_secs=100)
        self.assertEqual((result["status"], result["stdout"], bool(result["hint"])), ("running", "begun\n", True))
        record = self.record(result["id"])
        self.assertEqual((record["state"], record["limits"]["timeout_ms"], record["lease"]), ("running", 100000, "awaited"))
        (self.work / "go").touch()
        self.assertEqual(self.ok("wait_for_process", peer, pid=result["id"], timeout_ms=60000)["exit_code"], 0)
        rest = self.ok("read_process_output", peer, pid=result["id"], offset=result["stdout_bytes"])
        self.assertEqual(result["stdout"] + rest["content"], "begun\ndone\n")


class StdioOutputTest(OutputOver, StdioCase):
    pass


class HttpOutputTest(OutputOver, HttpCase):
    def test_m035_a_wait_of_an_hour_answers_within_a_minute(self):
        """The gateway's bound is the usual one: 50 s, as many clients give up at 60."""
        process = self.background("echo up; exec sleep 300")
        begin = time.monotonic()
        waits = [self.peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 3600000}),
                 self.peer.submit_tool("wait_any", {"conditions": [{"pid": process, "output": "never"}], "timeout_ms": 3600000})]
        for pending in waits:
            self.assertEqual(pending.result(timeout=80)["timed_out"], True)
        self.assertLess(time.monotonic() - begin, patience(60))
        self.assertEqual(self.record(process)["state"], "running")


class StdioProgressTest(ProgressOver, StdioCase):
    pass


class HttpProgressTest(ProgressOver, HttpCase):
    pass


class StdioSecretsTest(SecretsOver, StdioCase):
    pass


class HttpSecretsTest(SecretsOver, HttpCase):
    own = True

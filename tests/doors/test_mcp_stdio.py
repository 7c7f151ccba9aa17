"""`coop mcp` over its pipes: lines however they come, ends of every kind, waits beside each other, clients that do not read
(M-010, M-012 to M-016, M-037, M-039, M-049)."""

import fcntl
import json
import os
import signal
import struct
import termios
import time

from lib import procs
from lib.mcp import INVALID_REQUEST, LATEST_LEGACY, PARSE, McpError, Pending, meta
from lib.mcp_case import StdioCase
from lib.place import patience, sanitized

MIB = 1 << 20
BUSY = -32000


class LinesTest(StdioCase):
    def line(self, number, method="tools/call", name="list_processes"):
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                           "params": {"name": name, "arguments": {}, "_meta": meta()}}).encode()

    def announce(self, peer, *ids):
        """Raw lines with these ids will follow."""
        for number in ids:
            pending = peer_pending(peer, number)
            pending.tool_name = "list_processes"

    def test_m010_split_at_every_byte(self):
        """Each byte in a write of its own, taken before the next one goes."""
        peer = self.peer
        peer.call("tools/list")
        for number, end in ((1001, b"\n"), (1002, b"\r\n")):
            self.announce(peer, number)
            pending = peer.open[number]
            for byte in self.line(number) + end:
                peer.write_raw(bytes([byte]))
                procs.wait_until(lambda: pipe_is_empty(peer), "the server reads", interval=0)
            self.assertIn("processes", pending.result().value)

    def test_m010_joined_and_cut_anywhere(self):
        """Many lines in one write, and the same lines cut into pieces of every small size."""
        peer = self.peer
        for size in (None, 1, 2, 3, 7, 64, 1000, 4096):
            ids = list(range(2000, 2030))
            self.announce(peer, *ids)
            pendings = [peer.open[number] for number in ids]
            text = b"".join(self.line(number) + (b"\r\n" if number % 2 else b"\n") for number in ids)
            step = size or len(text)
            for at in range(0, len(text), step):
                peer.write_raw(text[at : at + step])
            for pending in pendings:
                self.assertIn("processes", pending.result().value)

    def test_m010_a_line_of_20_mib(self):
        """More than the limit is -32700, and the next line works; memory does not keep it."""
        peer = self.peer
        peer.call("tools/list")
        before = peer.memory()
        line = self.line(5)[:-1] + b', "x": "' + b"x" * (20 * MIB) + b'"}\n'
        peer.write_raw(line)
        self.assertEqual(peer.stray()["code"], PARSE)
        self.assertIn("processes", self.ok("list_processes").value)
        self.assertEqual(len(peer.strays), 0)
        if not sanitized():
            self.assertLess(peer.memory() - before, 24 * MIB)

    def test_m010_a_line_at_the_limit(self):
        """--max-line: a line of that size is taken, one byte more is not; a cut one does not leak into the next."""
        peer = self.connect(options=("--max-line", 4096))
        line = self.line(1)
        padded = line + b" " * (4096 - len(line))
        self.announce(peer, 1)
        pending = peer.open[1]
        peer.write_raw(padded + b"\n")
        self.assertIn("processes", pending.result().value)
        peer.write_raw(padded + b" \n")
        self.assertEqual(peer.stray()["code"], PARSE)
        peer.write_raw(b"x" * 100000 + self.line(3) + b"\n")
        self.assertEqual(peer.stray()["code"], PARSE)
        self.assertTrue(self.ok("list_processes", peer))
        self.assertEqual(len(peer.strays), 0)

    def refused(self, line):
        """The error that a line gets: with its id, where that can be made out of it, so that nobody waits for an answer."""
        peer = self.peer
        self.announce(peer, 1)
        pending = peer.open[1]
        peer.write_raw(line + b"\n")
        deadline = time.monotonic() + patience(30)
        while pending.answer is None and not peer.strays:
            peer.pump(pending, deadline)
        peer.open.pop(1, None)
        return pending.answer["error"] if pending.answer else peer.stray()

    def test_a_refused_line_is_answered_with_its_id(self):
        """What the parser does not take (a NUL in a name, a number beyond all bounds, a name twice) is still a request of somebody who waits."""
        for fault in (b'{"a\\u0000b": 1}', b"9223372036854775808", b"1e999", b'"\\ud800"', b'{"a": 1, "a": 2}'):
            with self.subTest(fault=fault):
                self.announce(self.peer, 1)
                pending = self.peer.open[1]
                self.peer.write_raw(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ' + fault + b"}\n")
                deadline = time.monotonic() + patience(30)
                while pending.answer is None:
                    self.peer.pump(pending, deadline)
                self.assertEqual(pending.answer["error"]["code"], PARSE)
                self.peer.open.pop(1, None)

    def test_m010_bad_utf8_and_bad_json(self):
        """-32700 each, then works. Control characters, halves, and two values in a line are no JSON."""
        good = self.line(1)
        for line in (b"\xff\xfe", good.replace(b"list_processes", b"list\xffprocesses"), b"{", b"}", good[:-1], good + good, good + b" x",
                     b"{'a': 1}", b'{"a": 1,}', b'"' + b"\0" + b'"', b"nul", b"[1, 2", good.replace(b"list_", b"list\x01"),
                     b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', b"NaN", b"\xef\xbb\xbf" + good):
            with self.subTest(line=line[:60]):
                self.assertIn(self.refused(line)["code"], (PARSE, INVALID_REQUEST))
                self.assertIn("processes", self.ok("list_processes").value)

    def test_m010_a_name_twice_is_no_way_to_two_meanings(self):
        """Whichever is taken, or neither: one answer, and the server goes on."""
        peer = self.peer
        self.announce(peer, 1)
        pending = peer.open[1]
        peer.write_raw(self.line(1)[:-1] + b', "method": "tools/call"}\n')
        deadline = time.monotonic() + patience(30)
        while pending.answer is None and not peer.strays:
            peer.pump(pending, deadline)
        peer.open.pop(1, None)
        peer.strays.clear()
        self.assertIn("processes", self.ok("list_processes").value)

    def test_m010_empty_lines_do_no_harm(self):
        peer = self.peer
        peer.write_raw(b"\n\r\n   \n")
        self.assertIn("processes", self.ok("list_processes").value)

    def test_m049_deep_json_is_refused(self):
        """Nesting of 60 is fine, 100 000 levels are refused, in memory that does not grow."""
        peer = self.peer
        peer.call("tools/list")
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            deep = opening * 100000 + b"1" + closing * 100000
            line = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": ' + deep + b"}}"
            self.assertIn(self.refused(line)["code"], (PARSE, INVALID_REQUEST))
            peer.write_raw(opening * 3_000_000 + b"\n")
            self.assertIn(peer.stray()["code"], (PARSE, INVALID_REQUEST))
        result = self.bad("list_processes", "invalid_input", x=nested(40))
        self.assertIn("x", result["message"])
        if not sanitized():
            self.assertLess(peer.memory(), 64 * MIB)

    def test_m049_10_000_open_requests(self):
        """Those beyond the bound are refused cleanly, each by its id; the others are answered when their time comes."""
        peer = self.peer
        process = self.background("exec sleep 300")
        pendings = [peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000}) for _ in range(10000)]
        procs.wait_until(lambda: pipe_is_empty(peer), "all is read")
        if not sanitized():
            self.assertLess(peer.memory(), 96 * MIB)
        self.operator.call("kill", id=process)
        refused = answered = 0
        for pending in pendings:
            try:
                self.assertEqual(pending.result()["status"], "signaled(9)")
                answered += 1
            except McpError as error:
                self.assertEqual(error.code, BUSY, error)
                refused += 1
        self.assertEqual(refused + answered, 10000)
        self.assertGreater(answered, 50)
        self.assertGreater(refused, 0)
        self.assertIn("processes", self.ok("list_processes").value)

    def test_m049_10_000_modern_notifications_and_unknown_methods(self):
        """None of them costs anything that stays."""
        peer = self.peer
        peer.call("tools/list")
        for _ in range(10000):
            peer.write({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": meta()}})
        pendings = [peer.submit("no/such") for _ in range(2000)]
        for pending in pendings:
            with self.assertRaises(McpError):
                pending.finish()
        if not sanitized():
            self.assertLess(peer.memory(), 32 * MIB)


class EndsTest(StdioCase):
    def start_all(self, peer):
        """One process of each lease: {lease: id}. The ephemeral one is a foreground run that is still waited for."""
        found = {"awaited": self.background("exec sleep 300", peer)}
        kept = self.ok("run_command", peer, argv=["sleep", "300"], background=True, lease="persistent")
        found["persistent"] = kept["handle_id"]
        peer.submit_tool("run_command", {"command": "sleep", "args": ["301"], "timeout_secs": 300})
        row = procs.wait_until(lambda: [row for row in self.operator.call("list")["processes"] if row["argv"] == ["sleep", "301"] and row["pid"]], "it runs")[0]
        found["ephemeral"] = row["id"]
        self.assertEqual(row["lease"], "ephemeral")
        return found

    def check_leases(self, ids):
        end = self.wait_record(ids["ephemeral"], lambda record: record["end_cause"], "the foreground run ends")
        self.assertIn(end["end_cause"], ("session_end", "cancelled"))
        for lease in ("awaited", "persistent"):
            record = self.record(ids[lease])
            self.assertEqual((record["state"], record["lease"]), ("running", lease))

    def test_m012_end_of_input(self):
        """Exit 0 soon; what was started follows its lease."""
        peer = self.connect(options=("--tools", "all"))
        peer.tool("list_processes")
        ids = self.start_all(peer)
        self.assertEqual(peer.leave(timeout=20), 0)
        self.check_leases(ids)
        self.assertEqual(set(self.listed(self.connect())), {ids["awaited"], ids["persistent"]})

    def test_m012_exits_within_a_second(self):
        """Also while calls are open, in the middle of a line, and before anything was said. The best of three: others use the machine, too."""
        for before in (b"", b'{"jsonrpc": "2.0", "id"', None):
            seconds = []
            for _ in range(3):
                peer = self.start_peer()
                peer.tool("list_processes")
                if before is None:
                    process = self.background("exec sleep 300", peer)
                    peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000})
                else:
                    peer.write_raw(before)
                begin = time.monotonic()
                self.assertEqual(peer.leave(timeout=20), 0)
                seconds.append(time.monotonic() - begin)
            self.assertLess(min(seconds), patience(1))

    def test_m012_what_was_asked_before_the_end_is_answered(self):
        """Requests and the end of input in one go, as a shell script does it."""
        peer = self.start_peer()
        pendings = [peer.submit("tools/list") for _ in range(20)]
        self.assertEqual(peer.leave(timeout=30), 0)
        for pending in pendings:
            self.assertTrue(pending.finish()["tools"])

    def test_m012_nothing_said_at_all(self):
        peer = self.start_peer()
        self.assertEqual(peer.leave(timeout=30), 0)
        self.assertEqual(peer.bytes_in, 0)

    def test_m012_private_takes_all_with_it(self):
        """--private: a keeper that ends with the client, and with it whatever its lease was."""
        peer = self.connect(options=("--private",))
        self.ok("run_command", peer, command="sleep", args=["300"], wait=False)
        below = procs.descendants(os.getpid())
        self.assertEqual(peer.leave(timeout=60), 0)
        procs.wait_until(lambda: not any(procs.alive(pid) for pid in below), "all is gone")

    def test_m013_sigkill(self):
        """The same as the end of input; a new server lists the survivors and reads what they wrote."""
        peer = self.connect(options=("--tools", "all"))
        peer.tool("list_processes")
        ids = self.start_all(peer)
        talking = self.background("echo before; exec sleep 300", peer)
        self.wait_record(talking, lambda record: record["streams"]["stdout"]["end"], "it has spoken")
        peer.process.send_signal(signal.SIGKILL)
        peer.process.wait()
        self.check_leases(ids)
        again = self.connect()
        self.assertEqual(set(self.listed(again)), {ids["awaited"], ids["persistent"], talking})
        self.assertEqual(self.ok("read_process_output", again, pid=talking)["content"], "before\n")
        self.ok("stop_process", again, pid=ids["awaited"], grace_ms=0)

    def test_m013_the_parent_dies_and_the_pipe_breaks(self):
        """A client that goes without a word, with answers unread."""
        peer = self.start_peer()
        for _ in range(200):
            peer.submit("tools/list")
        peer.process.stdout.close()
        peer.close_stdin()
        self.assertIsNotNone(peer.process.wait(patience(20)))
        self.assertNotEqual(peer.process.returncode, -signal.SIGSEGV)

    def test_m014_two_copies_at_once(self):
        """Each sees what the other started; the end of one is nothing to the other."""
        first, second = self.connect(), self.connect(LATEST_LEGACY)
        process = self.background("exec sleep 300", first)
        self.assertEqual(self.listed(second), [process])
        waiting = second.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000})
        self.assertEqual(first.leave(), 0)
        self.assertEqual(self.listed(second), [process])
        self.ok("stop_process", second, pid=process, grace_ms=0)
        self.assertIn("signaled", waiting.result()["status"])

    def test_m014_a_copy_that_ends_in_its_probe(self):
        """Killed or left at any moment of its start: no effect on the other, nothing left behind."""
        peer = self.connect()
        process = self.background("exec sleep 300", peer)
        before = sorted(str(path) for path in self.place.dir.rglob("*"))
        for way in range(12):
            copy = self.start_peer()
            if way % 3:
                copy.write(copy.message("server/discover"))
            if way % 3 == 2:
                peer_pending(copy, copy.last_id, "server/discover").finish()
            if way % 2:
                copy.process.kill()
                copy.process.wait()
            else:
                copy.open.clear()
                copy.close_stdin()
                copy.process.wait(patience(30))
            self.assertEqual(self.listed(peer), [process])
        after = sorted(str(path) for path in self.place.dir.rglob("*"))
        self.assertEqual(before, after)
        self.assertEqual(self.record(process)["state"], "running")

    def test_m014_a_first_copy_that_is_killed_while_it_starts_the_keeper(self):
        """Whatever there is of a keeper then, the next copy works."""
        self.addCleanup(self.shut_down_all)
        for _ in range(5):
            copy = self.start_peer()
            copy.write(copy.message("tools/call", {"name": "list_processes", "arguments": {}}))
            copy.process.kill()
            copy.process.wait()
        self.assertEqual(self.listed(self.connect()), [])

    def shut_down_all(self):
        """Copies that died may have begun several keepers, of which the others wait for the first to go."""

        def gone():
            self.shut_down()
            procs.reap_orphans()
            return not procs.descendants(os.getpid())

        procs.wait_until(gone, "no keeper is left", interval=0.05)

    def test_the_keeper_ends_and_comes_again(self):
        """The server outlives its keeper: calls fail with advice at most, and then a new keeper serves them."""
        peer = self.peer
        self.background("exec sleep 300")
        self.shut_down()
        self._operator = None

        def works():
            result = peer.tool("list_processes")
            if result.is_error:
                self.assertTrue(result["advice"], result)
            return not result.is_error

        procs.wait_until(works, "a new keeper is there", interval=0.05)
        self.assertEqual(self.listed(), [])


class BesideTest(StdioCase):
    def test_m015_a_wait_delays_nobody(self):
        """A wait of 20 s and 100 lists together: all lists are answered before it."""
        for peer in (self.connect(), self.connect(LATEST_LEGACY)):
            process = self.background("exec sleep 300", peer)
            waiting = peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 20000})
            lists = [peer.submit_tool("list_processes", {}) for _ in range(100)]
            for pending in lists:
                self.assertIn(process, [row["id"] for row in pending.result()["processes"]])
            self.assertIsNone(waiting.answer)
            self.ok("stop_process", peer, pid=process, grace_ms=0)
            self.assertIn("signaled", waiting.result()["status"])

    def test_m015_many_kinds_of_waits_at_once(self):
        """Waits, expects, wait_any and foreground runs, all open while others are answered."""
        peer = self.peer
        process = self.background("exec sleep 300")
        shell = self.ok("open_shell")["session_id"]
        waits = [peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000}) for _ in range(20)]
        waits += [peer.submit_tool("shell_expect", {"session_id": shell, "pattern": "never said", "timeout_secs": 40})]
        waits += [peer.submit_tool("wait_any", {"conditions": [{"pid": process, "exit": True}], "timeout_ms": 40000})]
        waits += [peer.submit_tool("run_command", {"command": "sleep", "args": ["300"], "timeout_secs": 40})]
        for number in range(20):
            self.assertEqual(self.run_sh(f"echo {number}")["stdout"], f"{number}\n")
        self.assertEqual([pending.answer for pending in waits], [None] * len(waits))
        self.ok("stop_process", pid=process, grace_ms=0)
        for pending in waits[:20]:
            self.assertIn("signaled", pending.result()["status"])

    def test_m016_a_client_that_does_not_read(self):
        """Memory stays bounded however much is asked; when it reads again, everything is answered, or refused as too much at once."""
        peer = self.peer
        process = self.background("head -c 900000 /dev/zero | tr '\\0' x; exec sleep 300")
        self.wait_record(process, lambda record: record["streams"]["stdout"]["end"] == 900000, "all is written")
        peer.tool("list_processes")
        before = peer.memory()
        pendings, unsent, most, answered = [], b"", 0, 0
        for _ in range(3000):
            message = peer.message("tools/call", {"name": "read_process_output", "arguments": {"pid": process}})
            unsent += json.dumps(message).encode() + b"\n"
            pendings.append(peer_pending(peer, message["id"]))
        quiet_since = time.monotonic()
        while unsent and time.monotonic() - quiet_since < 1:
            taken = peer.write_some(memoryview(unsent))
            unsent = unsent[taken:]
            most = max(most, peer.memory())
            if taken:
                quiet_since = time.monotonic()
            else:
                time.sleep(0.01)
        self.assertTrue(unsent, "it has read all requests of a client that reads no answers")
        if not sanitized():
            self.assertLess(most - before, 48 * MIB)
        peer.write_raw(unsent)
        for pending in pendings:
            pending.tool_name = "read_process_output"
            try:
                self.assertEqual(pending.result()["total_bytes"], 900000)
                pending.answer = {}
                answered += 1
            except McpError as error:
                self.assertEqual(error.code, BUSY)
        self.assertGreater(answered, 50)
        self.assertEqual(self.listed(), [process])

    def test_m016_one_that_does_not_read_delays_no_other(self):
        stuck, other = self.connect(), self.connect()
        line = json.dumps(stuck.message("tools/list")).encode() + b"\n"
        while stuck.write_some(memoryview(line)) or not pipe_is_empty(stuck):
            if not stuck.write_some(memoryview(b"\n")):
                break
        for number in range(20):
            self.assertEqual(self.run_sh(f"echo {number}", other)["stdout"], f"{number}\n")


class CancelTest(StdioCase):
    def test_m037_a_cancelled_wait(self):
        """Nothing more for its id; the process that was waited for lives."""
        for peer in (self.connect(), self.connect(LATEST_LEGACY)):
            process = self.background("exec sleep 300", peer)
            waiting = peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000})
            self.assertIn(process, self.listed(peer))
            waiting.cancel()
            self.ok("stop_process", peer, pid=process, grace_ms=0)
            self.assertIn("processes", self.ok("list_processes", peer).value)
            self.assertTrue(waiting.closed and waiting.answer is None)

    def test_m037_a_cancelled_run_is_ended(self):
        """A foreground run is the call's own: it ends with cause cancelled. Its output stays to be read."""
        peer = self.peer
        running = peer.submit_tool("run_command", {"command": "sh", "args": ["-c", "echo begun; sleep 301; echo never"], "timeout_secs": 300})
        process = procs.wait_until(lambda: self.listed(), "it runs")[0]
        self.wait_record(process, lambda record: record["streams"]["stdout"]["end"], "it has spoken")
        running.cancel()
        record = self.wait_record(process, lambda record: record["end_cause"], "it ends")
        self.assertEqual(record["end_cause"], "cancelled")
        self.assertEqual(self.ok("read_process_output", pid=process)["content"], "begun\n")

    def test_m037_background_work_is_not_the_calls_own(self):
        """Cancelling a call that looks at it, or writes to it, leaves it alone."""
        peer = self.peer
        process = self.background("echo up; exec sleep 300")
        shell = self.ok("open_shell")["session_id"]
        open_calls = [peer.submit_tool("wait_any", {"conditions": [{"pid": process, "output": "never"}], "timeout_ms": 40000}),
                      peer.submit_tool("shell_expect", {"session_id": shell, "pattern": "never", "timeout_secs": 40})]
        self.listed()
        for pending in open_calls:
            pending.cancel()
        self.assertEqual(set(self.listed()), {process, shell})

    def test_m037_cancelled_calls_are_freed(self):
        """More than may be open at a time, one after the other, all at once, and again: there is always room afterwards."""
        peer = self.peer
        process = self.background("exec sleep 300")
        for _ in range(1500):
            peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000}).cancel()
        self.assertEqual(self.listed(), [process])
        before = peer.memory()
        for _ in range(5):
            pendings = [peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000}) for _ in range(200)]
            self.listed()
            for pending in pendings:
                pending.cancel()
            self.assertEqual(self.listed(), [process])
        if not sanitized():
            self.assertLess(peer.memory() - before, 16 * MIB)
        self.assertEqual(len(peer.strays), 0)

    def test_m039_cancels_that_mean_nothing(self):
        """Of unknown and finished ids, with wrong types, without an id: ignored without a word."""
        peer = self.connect(LATEST_LEGACY)
        number = peer.submit("tools/list")
        number.finish()
        for params in ({"requestId": number.id}, {"requestId": 123456}, {"requestId": "no"}, {"requestId": None}, {"requestId": [1]}, {}, None,
                       {"requestId": {"a": 1}, "reason": 7}):
            peer.write({"jsonrpc": "2.0", "method": "notifications/cancelled"} | ({} if params is None else {"params": params}))
        self.assertTrue(peer.call("tools/list")["tools"])
        self.assertEqual(len(peer.strays), 0)

    def test_m039_an_id_of_another_type_is_another_request(self):
        """Cancelling "5" does not cancel 5."""
        peer = self.peer
        process = self.background("exec sleep 300")
        waiting = peer.submit_tool("wait_for_process", {"pid": process, "timeout_ms": 40000}, number=555)
        peer.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "555"}})
        self.ok("stop_process", pid=process, grace_ms=0)
        self.assertIn("signaled", waiting.result()["status"])

    def test_m039_initialize_cannot_be_cancelled(self):
        peer = self.start_peer()
        message = peer.message("initialize", peer.opening(), modern=False)
        pending = peer_pending(peer, message["id"], "initialize", False)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
        peer.write_raw(json.dumps(message).encode() + b"\n" + json.dumps(cancel).encode() + b"\n")
        self.assertEqual(pending.finish()["protocolVersion"], LATEST_LEGACY)


def peer_pending(peer, number, method="tools/call", modern=True):
    """Room for the answer to a request that is written raw."""
    pending = Pending(peer, number, method, modern)
    peer.open[number] = pending
    return pending


def pipe_is_empty(peer):
    """Whether the server has read all that was written."""
    return struct.unpack("i", fcntl.ioctl(peer.process.stdin.fileno(), termios.FIONREAD, b"\0" * 4))[0] == 0


def nested(depth):
    return [] if depth == 0 else [nested(depth - 1)]


class StuckKeeperTest(StdioCase):
    def test_b045_a_keeper_that_does_not_answer_is_told(self):
        """Every call answers before the bound, also if the keeper says nothing; it goes on when that does."""
        peer = self.connect(options=("--max-wait", "2s"))
        self.ok("list_processes", peer)
        keeper = self.operator.call("info")["pid"]
        os.kill(keeper, signal.SIGSTOP)
        try:
            for name, arguments in (("list_processes", {}), ("run_command", {"command": "true"})):
                result = peer.submit_tool(name, arguments).result()
                self.assertEqual((result.is_error, result["code"]), (True, "unavailable"))
        finally:
            os.kill(keeper, signal.SIGCONT)
        self.ok("list_processes", peer)

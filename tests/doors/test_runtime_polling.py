"""Status, list and output polling of /runtime/v1: every number must be right."""

import base64

from lib.gateway import GatewayCase
from lib.runtime import check_record, decode, whole
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import OldRust, Rust

PROCESS = "/runtime/v1/process"
COUNTS = ("next_cursor", "total_bytes_observed", "total_bytes", "returned_bytes", "retained_bytes", "omitted_bytes")


class ParseTest(SdkCase):
    def test_r048_status_output_and_stop_parse(self):
        def check(sandbox):
            handle = sandbox.commands.run("echo out; echo err >&2; exec sleep 300", background=True)
            self.attach(handle.pid).until(b"err\n").until(b"out\n").drop()
            status = sandbox.commands.process(handle.pid)
            self.assertEqual((status["pid"], status["status"], status["exit_code"]), (handle.pid, "running", None))
            self.assertEqual(status["command"], "/bin/bash")
            output = sandbox.commands.read_output(handle.pid)
            self.assertEqual(sorted(event[1:] for event in output["events"]), [("stderr", b"err\n"), ("stdout", b"out\n")])
            self.assertEqual(output["next_cursor"], 2)
            self.assertEqual(sandbox.commands.read_output(handle.pid, output["next_cursor"], 100)["events"], [])
            stopped = sandbox.commands.stop(handle.pid, signal="KILL")
            self.assertEqual((stopped["status"], stopped["exit_code"]), ("killed", -9))

        self.each(check)

    def test_r048_rust_clients_too(self):
        for kind in (OldRust, Rust):
            client = kind(self.gateway.url, self.gateway.token)
            self.addCleanup(client.close)
            handle = client.start("/bin/bash", ["-c", "echo out; exec sleep 300"])
            self.attach(handle.pid).until(b"out\n").drop()
            self.assertEqual(client.process(handle.pid)["status"], "running")
            if kind is Rust:
                for query in ({}, {"mode": "tail", "limit_bytes": 2}, {"mode": "head_tail", "head_bytes": 1, "tail_bytes": 1}):
                    self.assertEqual(client.output(handle.pid, **query)["total_bytes"], 4)
                self.assertEqual(client.stop(handle.pid, signal="TERM", kill_group="true", grace_ms=5000)["exit_code"], -15)
            else:
                client.kill(handle.pid)


class OutputCase(GatewayCase):
    def output(self, pid, **query):
        """O, with what must hold for every one of them."""
        words = "&".join(f"{name}={value}" for name, value in query.items())
        answer = self.get(f"{PROCESS}/{pid}/output?{words}")
        self.assertEqual(answer["pid"], pid)
        for name in COUNTS:
            self.assertTrue(whole(answer[name]) and answer[name] >= 0, name)
        data = [decode(event["data"]) for event in answer["events"]]
        self.assertEqual(answer["returned_bytes"], sum(len(piece) for piece in data))
        self.assertEqual(answer["retained_bytes"], answer["returned_bytes"])
        self.assertEqual(answer["total_bytes"], answer["total_bytes_observed"])
        self.assertEqual(answer["truncated"], answer["omitted_bytes"] > 0)
        self.assertEqual(sum(answer["stream_totals"].values()), answer["total_bytes"])
        self.assertEqual(set(answer["stream_totals"]), {"stdout", "stderr", "pty"})
        self.assertEqual((answer["exit_code"] is None, answer["finished_at"] is None), (answer["status"] == "running",) * 2)
        cursors = [event["cursor"] for event in answer["events"]]
        self.assertEqual(cursors, sorted(set(cursors)))
        answer["bytes"] = b"".join(data)
        answer["cursors"] = cursors
        return answer

    def letters(self):
        """A finished process of 26 events of one letter each, and one more for the exit."""
        socket = self.in_pieces([bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"])
        self.assertEqual(socket.exit["cursor"], 26)
        return socket


class ForwardTest(OutputCase):
    def test_r049_limit_1_makes_progress_each_time(self):
        """Whole events, at least one, until the end; then nothing more, and the cursor stays."""
        socket = self.in_pieces([b"line %d" % i for i in range(5)])
        cursor, seen = 0, b""
        while (answer := self.output(socket.pid, since=cursor, limit_bytes=1))["events"]:
            self.assertGreater(answer["next_cursor"], cursor)
            self.assertEqual(len(answer["events"]), 1)
            cursor, seen = answer["next_cursor"], seen + answer["bytes"]
        self.assertEqual(seen, socket.output())
        self.assertEqual((cursor, answer["next_cursor"]), (socket.exit["cursor"] + 1,) * 2)

    def test_r049_forward_in_numbers(self):
        socket = self.letters()
        answer = self.output(socket.pid, limit_bytes=10)
        self.assertEqual((answer["bytes"], answer["next_cursor"], answer["omitted_bytes"]), (b"abcdefghij", 10, 16))
        answer = self.output(socket.pid, since=20)
        self.assertEqual((answer["bytes"], answer["next_cursor"], answer["omitted_bytes"]), (b"uvwxyz", 27, 0))
        answer = self.output(socket.pid, limit_bytes=0)
        self.assertEqual((answer["bytes"], answer["next_cursor"], answer["omitted_bytes"]), (b"", 0, 26))
        answer = self.output(socket.pid, since=27)
        self.assertEqual((answer["bytes"], answer["next_cursor"], answer["omitted_bytes"]), (b"", 27, 0))
        self.assertEqual((answer["first_retained_cursor"], answer["last_retained_cursor"]), (0, 25))
        self.assertFalse(answer["truncated_before_cursor"] or answer["truncated_by_retention"])

    def test_running_process_has_no_exit_in_its_cursor(self):
        socket = self.sh("echo x; sleep 300")
        socket.until(b"x\n")
        answer = self.output(socket.pid)
        self.assertEqual((answer["status"], answer["next_cursor"], answer["bytes"]), ("running", 1, b"x\n"))
        self.kill(socket.pid)

    def test_process_without_output(self):
        socket = self.sh("exit 3")
        socket.until_exit()
        answer = self.output(socket.pid)
        self.assertEqual((answer["events"], answer["next_cursor"], answer["exit_code"]), ([], 1, 3))
        self.assertEqual((answer["first_retained_cursor"], answer["last_retained_cursor"]), (None, None))

    def test_streams_are_told_apart(self):
        socket = self.sh("echo out; echo error >&2")
        socket.until_exit()
        self.assertEqual(self.output(socket.pid)["stream_totals"], {"stdout": 4, "stderr": 6, "pty": 0})

    def test_most_that_is_answered_is_1_mib(self):
        socket = self.sh("head -c 900000 /dev/zero; head -c 900000 /dev/zero >&2")
        socket.until_exit()
        answer = self.output(socket.pid, limit_bytes=1 << 30)
        self.assertLessEqual(answer["returned_bytes"], 1 << 20)
        self.assertEqual(answer["omitted_bytes"], 1800000 - answer["returned_bytes"])

    def test_bad_queries_are_400(self):
        socket = self.sh("true")
        socket.until_exit()
        for query in ("since=-1", "since=x", "since=1.5", "limit_bytes=-1", "limit_bytes=x", "mode=backward", "mode=",
                      *(f"mode=head_tail&{part}" for part in ("head_bytes=x", "tail_bytes=-1", "head_ratio_num=x", "head_ratio_den=-1"))):
            with self.subTest(query=query):
                self.assert_refused(self.request("GET", f"{PROCESS}/{socket.pid}/output?{query}"), 400, "invalid_argument")
        self.assertEqual(self.request("GET", f"{PROCESS}/{socket.pid}/output?unknown=x").status, 200)


class ModeTest(OutputCase):
    def test_r050_tail(self):
        socket = self.letters()
        answer = self.output(socket.pid, mode="tail", limit_bytes=5)
        self.assertEqual((answer["bytes"], answer["cursors"]), (b"vwxyz", [21, 22, 23, 24, 25]))
        self.assertEqual((answer["omitted_bytes"], answer["next_cursor"]), (21, 27))
        answer = self.output(socket.pid, mode="tail", limit_bytes=100, since=24)
        self.assertEqual((answer["bytes"], answer["omitted_bytes"]), (b"yz", 0))

    def test_r050_event_on_the_cut_is_trimmed_and_keeps_its_cursor(self):
        socket = self.in_pieces([b"0123456789", b"abcdefghij"])
        self.assertEqual(socket.exit["cursor"], 2)
        answer = self.output(socket.pid, mode="tail", limit_bytes=13)
        self.assertEqual((answer["bytes"], answer["cursors"], answer["omitted_bytes"]), (b"789abcdefghij", [0, 1], 7))
        answer = self.output(socket.pid, mode="head_tail", head_bytes=3, tail_bytes=4)
        self.assertEqual((answer["bytes"], answer["cursors"], answer["omitted_bytes"]), (b"012ghij", [0, 1], 13))

    def test_r050_head_and_tail_of_one_event(self):
        """It is one event of the answer for each end, or one that has both: the bytes are what counts."""
        socket = self.sh("printf 0123456789")
        socket.until_exit()
        words = f"{PROCESS}/{socket.pid}/output?mode=head_tail&head_bytes=2&tail_bytes=3"
        answer = self.get(words)
        self.assertEqual(b"".join(base64.b64decode(event["data"]) for event in answer["events"]), b"01789")
        self.assertEqual({event["cursor"] for event in answer["events"]}, {0})
        self.assertEqual(answer["omitted_bytes"], 5)

    def test_r050_budgets_and_ratios(self):
        socket = self.letters()
        for query, wanted in (
            ({"head_bytes": 3}, b"abc"),
            ({"tail_bytes": 3}, b"xyz"),
            ({"head_bytes": 3, "tail_bytes": 2}, b"abcyz"),
            ({"limit_bytes": 10}, b"abctuvwxyz"),
            ({"limit_bytes": 10, "head_ratio_num": 1, "head_ratio_den": 2}, b"abcdevwxyz"),
            ({"limit_bytes": 25}, b"abcdefgijklmnopqrstuvwxyz"),
            ({"limit_bytes": 10, "head_ratio_num": 5}, b"abcdevwxyz"),
            ({"limit_bytes": 12, "head_ratio_den": 4}, b"abcdefghixyz"),
            ({"limit_bytes": 10, "head_ratio_num": 1, "head_ratio_den": 0}, b"abcdefghij"),
            ({"limit_bytes": 10, "head_ratio_num": 5, "head_ratio_den": 2}, b"abcdefghij"),
            ({"limit_bytes": 10, "head_ratio_num": 0, "head_ratio_den": 2}, b"qrstuvwxyz"),
            ({"limit_bytes": 10, "since": 20}, b"uvwxyz"),
            ({"limit_bytes": 4, "since": 20, "head_ratio_num": 1, "head_ratio_den": 2}, b"uvyz"),
        ):
            with self.subTest(query=query):
                answer = self.output(socket.pid, mode="head_tail", **query)
                self.assertEqual(answer["bytes"], wanted)
                self.assertEqual(answer["omitted_bytes"], 26 - query.get("since", 0) - len(wanted))
                self.assertEqual(answer["next_cursor"], 27)

    def test_r050_ends_that_meet_give_everything_once(self):
        socket = self.letters()
        for query in ({"head_bytes": 13, "tail_bytes": 13}, {"head_bytes": 20, "tail_bytes": 20}, {"limit_bytes": 26}, {}):
            with self.subTest(query=query):
                answer = self.output(socket.pid, mode="head_tail", **query)
                self.assertEqual((answer["bytes"], answer["omitted_bytes"]), (b"abcdefghijklmnopqrstuvwxyz", 0))
                self.assertEqual(answer["cursors"], list(range(26)))


class EvictedTest(OutputCase):
    settings = {"max_events": 16}

    def test_r051_evicted_events_in_numbers(self):
        socket = self.letters()
        answer = self.output(socket.pid)
        first = answer["first_retained_cursor"]
        self.assertGreater(first, 0)
        self.assertTrue(answer["truncated_before_cursor"] and answer["truncated_by_retention"])
        self.assertEqual(answer["cursors"], list(range(first, 26)))
        self.assertEqual((answer["omitted_bytes"], answer["total_bytes"], answer["next_cursor"]), (first, 26, 27))
        self.assertEqual(answer["last_retained_cursor"], 25)

    def test_r051_from_what_is_still_there(self):
        socket = self.letters()
        first = self.output(socket.pid)["first_retained_cursor"]
        answer = self.output(socket.pid, since=first)
        self.assertEqual((answer["truncated_before_cursor"], answer["truncated_by_retention"]), (False, True))
        self.assertEqual(answer["omitted_bytes"], 0)

    def test_r051_by_bytes(self):
        """More than the rings keep, in large events: the same numbers from another bound."""
        socket = self.sh("head -c 3000000 /dev/zero; echo end >&2")
        socket.until_exit()
        answer = self.output(socket.pid, mode="tail")
        self.assertEqual((answer["total_bytes"], answer["truncated_by_retention"]), (3000004, True))
        self.assertEqual(answer["omitted_bytes"], 3000004 - answer["returned_bytes"])


class ListTest(OutputCase):
    own = True

    def ids(self, query=""):
        return [check_record(item)["id"] for item in self.get(f"{PROCESS}{query}")["processes"]]

    def test_r052_listed_from_started_to_exit(self):
        first = self.start("sleep", "300", id="first", environment={"SECRET_THING": "do-not-tell"})
        self.assertEqual(self.ids(), ["first"])
        second = self.start("sleep", "300", id="second")
        self.assertEqual(self.ids(), ["first", "second"])
        self.kill("first")
        first.until_exit()
        self.assertEqual(self.ids(), ["second"])
        self.assertEqual(self.ids("?all=true"), ["first", "second"])
        self.kill("second")
        second.until_exit()
        self.assertEqual(self.ids(), [])
        self.assertEqual(self.ids("?all=true"), ["first", "second"])
        self.assertNotIn(b"do-not-tell", self.request("GET", f"{PROCESS}?all=true").body)

    def test_r052_bad_all_is_400(self):
        self.assert_refused(self.request("GET", f"{PROCESS}?all=maybe"), 400, "invalid_argument")

    def test_list_of_many(self):
        """More than the keeper gives on one page, oldest first."""
        sockets = [self.start("sleep", "300", id=f"n{i:03}") for i in range(120)]
        self.assertEqual(self.ids(), [f"n{i:03}" for i in range(120)])
        for socket in sockets:
            socket.drop()

    def test_status_of_an_unknown_one(self):
        self.assert_refused(self.request("GET", f"{PROCESS}/no-such-process"), 404, "process_not_found")
        self.assert_refused(self.request("GET", f"{PROCESS}/no-such-process/output"), 404, "process_not_found")

"""Cursors of /runtime/v1: every reader gets every event once, in order, or is told exactly what it lost."""

import os
import random
import signal
import threading

from lib.cutting_proxy import CuttingProxy
from lib.gateway import GatewayCase
from lib.place import sanitized
from lib.procs import wait_until
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import OldRust, Rust
from lib.websocket import Refused

MIB = 1 << 20
FAR = 10**9


def events_of(socket):
    return [(event.cursor, event.type, event.data) for event in socket.events]


class NumberTest(GatewayCase):
    def test_r008_cursors_have_no_holes(self):
        """0, 1, 2… over both streams and the exit, which has the highest."""
        socket = self.sh("for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done")
        socket.until_exit()
        self.assertEqual(socket.cursors, list(range(len(socket.cursors))))
        self.assertEqual(socket.events[-1].type, "exit")
        self.assertEqual({event.type for event in socket.events}, {"stdout", "stderr", "exit"})

    def test_r009_replay_equals_what_was_live(self):
        live = self.sh("for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; sleep 0.01; done; exit 3")
        live.until_exit()
        again = self.attach(live.pid, 0)
        again.until_exit()
        self.assertEqual(events_of(again), events_of(live))
        self.assertEqual(again.exit, live.exit)
        self.assertEqual(events_of(self.replayed(live.pid, None)), events_of(live))

    def replayed(self, pid, since):
        socket = self.attach(pid, since)
        socket.until_exit()
        return socket

    def test_r010_attach_at_every_cursor(self):
        """Also far behind the end: there is always an exit, with the number that it has."""
        live = self.sh("for i in 1 2 3 4 5 6; do echo $i; sleep 0.01; done")
        live.until_exit()
        every = events_of(live)
        for since in range(len(every) + 5):
            with self.subTest(since=since):
                found = events_of(self.replayed(live.pid, since))
                self.assertEqual(found, every[min(since, len(every) - 1):])

    def test_r010_attach_behind_the_end_of_a_running_one_waits(self):
        live = self.sh("read line; echo $line", stdin=True)
        early = self.attach(live.pid, 1)
        self.assertTrue(early.quiet(0.3))
        live.stdin(b"go\n")
        live.until_exit()
        self.assertEqual([event.type for event in self.replayed(live.pid, 1).events], ["exit"])
        early.until_exit()
        self.assertEqual([event.type for event in early.events], ["exit"])

    def test_r011_bad_since_is_400_without_an_upgrade(self):
        live = self.sh("true")
        live.until_exit()
        for since in ("-1", "x", "1.5", "", "%20", "+1", "0x1", "18446744073709551616", "1e3"):
            with self.subTest(since=since):
                with self.assertRaises(Refused) as caught:
                    self.gateway.socket(f"/runtime/v1/process/{live.pid}/connect?since={since}")
                self.assert_refused(caught.exception.response, 400, "invalid_argument")

    def test_unknown_process_is_404_without_an_upgrade(self):
        with self.assertRaises(Refused) as caught:
            self.gateway.socket("/runtime/v1/process/no-such-process/connect?since=0")
        self.assert_refused(caught.exception.response, 404, "process_not_found")


class ManyReadersTest(GatewayCase):
    def read_all(self, sockets):
        """Each in a thread of its own; what goes wrong in one is raised here."""
        failures = []

        def read(socket):
            try:
                socket.until_exit()
            except Exception as error:  # raised below
                failures.append(error)

        threads = [threading.Thread(target=read, args=(socket,)) for socket in sockets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def test_r012_fifty_attachers_see_every_cursor_once(self):
        """They come while it prints, from different places. What it prints fits into what is kept: nothing may be missing."""
        live = self.sh("read go; seq 1 40000; seq 1 20000 >&2; seq 40001 90000", stdin=True)
        early = [self.attach(live.pid, 0) for _ in range(10)]
        live.stdin(b"go\n")
        live.until(b"\n2000\n")
        late = [self.attach(live.pid, (i % 4) or None) for i in range(40)]
        self.read_all([live, *early, *late])
        self.assertEqual(live.output("stdout"), b"".join(b"%d\n" % i for i in range(1, 90001)))
        self.assertEqual(live.output("stderr"), b"".join(b"%d\n" % i for i in range(1, 20001)))
        every = events_of(live)
        for socket in [*early, *late]:
            self.assertEqual(socket.gaps, [])
            self.assertEqual(events_of(socket), every[socket.cursors[0]:])

    def test_r012_much_more_than_is_kept(self):
        """30 MiB. A reader may lose something, but is told what: events and gaps together are all that there was."""
        size = 30 * MIB
        live = self.sh(f"read go; head -c {size} /dev/zero; echo end >&2", stdin=True)
        others = [self.attach(live.pid, 0) for _ in range(4)]
        live.stdin(b"go\n")
        self.read_all([live, *others])
        last = {socket.exit["cursor"] for socket in (live, *others)}
        self.assertEqual(len(last), 1)
        for socket in (live, *others):
            lost = sum(gap["bytes"] for gap in socket.gaps)
            self.assertEqual(len(socket.output()) + lost, size + 4)


class SlowReaderTest(GatewayCase):
    def stopped_reader(self, script):
        """A socket that is attached and does not read, whose process waits for a line; and that which started it and does."""
        reader = self.sh(f"read go; {script}", stdin=True)
        return self.attach(reader.pid, 0, receive_buffer=4096), reader

    def test_r014_stopped_reader_holds_nobody_up(self):
        """64 MiB instead of 60 s: far more than all buffers on the way to the reader that has stopped. The program ends, and another
        reader sees its end, while that one has not read a byte."""
        stopped, reader = self.stopped_reader(f"head -c {64 * MIB} /dev/zero; echo end >&2")
        reader.stdin(b"go\n")
        self.assertEqual(reader.until_exit()["exit_code"], 0)
        self.assertEqual(self.status(stopped.pid)["status"], "succeeded")
        self.assertEqual(len(reader.output()) + sum(gap["bytes"] for gap in reader.gaps), 64 * MIB + 4)

    def test_r015_stopped_reader_learns_what_it_lost(self):
        """It reads on when all is over: events and gaps together are exactly what there was, up to the same end."""
        stopped, reader = self.stopped_reader(f"head -c {32 * MIB} /dev/zero; echo end >&2")
        reader.stdin(b"go\n")
        reader.until_exit()
        total = self.get(f"/runtime/v1/process/{stopped.pid}/output?limit_bytes=1")["total_bytes"]
        self.assertEqual(total, 32 * MIB + 4)
        stopped.until_exit()
        self.assertTrue(stopped.gaps)
        self.assertEqual(len(stopped.output()) + sum(gap["bytes"] for gap in stopped.gaps), total)
        self.assertEqual(stopped.exit["cursor"], reader.exit["cursor"])
        stopped.expect_end(1000)

    def test_r015_no_gap_where_nothing_was_lost(self):
        """The same reader, but less output than is kept: all of it comes."""
        stopped, reader = self.stopped_reader("seq 1 100000")
        reader.stdin(b"go\n")
        reader.until_exit()
        stopped.until_exit()
        self.assertEqual((stopped.gaps, events_of(stopped)), ([], events_of(reader)))

    def test_r016_slow_old_client_is_never_disconnected(self):
        """100 MiB, read one frame at a time with pauses, while the program has long ended. The client cannot come back."""
        client = OldRust(self.gateway.url, self.gateway.token)
        self.addCleanup(client.close)
        handle = client.start("sh", ["-c", f"head -c {100 * MIB} /dev/zero"])
        pause = threading.Event()
        for _ in range(60):
            frame = handle.next_frame()
            self.assertIn(frame["type"], ("stdout", "gap"))
            pause.wait(0.02)
        while frame["type"] != "exit":
            frame = handle.next_frame()
        self.assertEqual(frame["exit_code"], 0)
        handle.disconnect()

    def test_gateway_memory_stays_bounded(self):
        """Ten readers that do not read, of a program that prints 32 MiB each: what waits for them is not kept in the gateway."""
        sockets = []
        for _ in range(10):
            starter = self.sh(f"read go; head -c {32 * MIB} /dev/zero", stdin=True)
            sockets.append(self.attach(starter.pid, 0, receive_buffer=4096))
            starter.stdin(b"go\n")
            starter.send_close()
        for socket in sockets:
            self.attach(socket.pid, FAR).until_exit()
        with open(f"/proc/{self.gateway.pid}/status", encoding="ascii") as file:
            resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        self.assertLess(resident, (512 if sanitized() else 128) << 10)


class EvictionTest(GatewayCase):
    settings = {"max_events": 64}

    def test_attach_to_evicted_events_begins_with_a_gap(self):
        """Right after `started`; its numbers are those that polling tells."""
        live = self.in_pieces([b"line %d" % i for i in range(150)])
        again = self.attach(live.pid, 0)
        again.until_exit()
        self.assertEqual(len(again.gaps), 1)
        gap = again.gaps[0]
        poll = self.get(f"/runtime/v1/process/{live.pid}/output")
        self.assertEqual((gap["from_cursor"], gap["to_cursor"]), (0, poll["first_retained_cursor"]))
        self.assertEqual(gap["bytes"] + len(again.output()), poll["total_bytes"])
        self.assertEqual(events_of(again), events_of(live)[-len(again.events):])

    def test_attach_in_the_middle_of_what_was_evicted(self):
        live = self.in_pieces([b"line %d" % i for i in range(150)])
        again = self.attach(live.pid, 10)
        again.until_exit()
        self.assertEqual(again.gaps[0]["from_cursor"], 10)
        before = sum(len(event.data) for event in live.events[10:again.gaps[0]["to_cursor"]])
        self.assertIn(again.gaps[0]["bytes"], (before, None))


class ReceiptTest(GatewayCase):
    settings = {"max_finished": 1}

    def test_receipt_still_knows_its_exit(self):
        """Of an old process only that is left: all its output is a gap, and the exit has the number that it had."""
        first = self.sh("echo one; echo two >&2; exit 3", id="first")
        first.until_exit()
        first.close()
        for _ in range(3):
            self.sh("echo other").until_exit()
        output = "/runtime/v1/process/first/output"
        # An answer during which it is shed has read the output before.
        wait_until(lambda: self.get(output)["truncated_by_retention"], "it is shed")
        poll = self.get(output)
        self.assertEqual((poll["events"], poll["exit_code"], poll["total_bytes"], poll["omitted_bytes"]), ([], 3, 8, 8))
        self.assertEqual(poll["next_cursor"], first.exit["cursor"] + 1)
        for since in range(first.exit["cursor"] + 3):
            with self.subTest(since=since):
                again = self.attach("first", since)
                lost = {0: "8 bytes", 1: "an unknown number of bytes"}.get(since)
                error = lost and f"{lost} of output were lost"
                self.assertEqual(again.until_exit(), first.exit | {"error": error})
                self.assertEqual(again.output(), b"")
                self.assertEqual(len(again.gaps), int(since < first.exit["cursor"]))


class CutTest(SdkCase):
    SCRIPT = "for i in $(seq 1 60); do for j in $(seq 1 60); do echo line $i $j; done; sleep 0.01; done | tee {}"

    def test_r013_cut_sockets_lose_and_double_nothing(self):
        """A proxy cuts at random points: the output equals a file that the child wrote."""
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        self.cut_each(lambda: [chance.randrange(1, 15000) for _ in range(7)], f"seed {seed}")

    def test_r013_cut_in_the_middle_of_the_upgrade(self):
        """In the answer's first line, in a header, after its last byte, in the first frame."""
        self.cut_each(lambda: [57, 2000, 1, 3000, 129, 400])

    def cut_each(self, cuts, message=None):
        def check(sandbox):
            name = f"written-{type(sandbox).__name__}"
            handle = sandbox.commands.run(self.SCRIPT.format(name), background=True)
            result = handle.wait()
            self.assertEqual(result["stdout"], (self.work / name).read_text(), message)
            self.assertGreater(handle.reconnects, 3, message)

        for index in range(2):
            # The first connection is the start itself, which nobody may repeat.
            with CuttingProxy(self.gateway.address, [2000, *cuts()]) as proxy:
                self.one(index, check, proxy.address)

    def one(self, index, check, via):
        for number, (name, sandbox) in enumerate(self.clients(via=via)):
            if number == index:
                with self.subTest(client=name):
                    check(sandbox)
                return

    def test_r013_rust_client_too(self):
        with CuttingProxy(self.gateway.address, [2000, 900, 57, 5000, 300, 1, 9000]) as proxy:
            client = Rust(self.gateway.url, self.gateway.token)
            client.address = proxy.address
            self.addCleanup(client.close)
            handle = client.start("/bin/bash", ["-c", self.SCRIPT.format("written-rust")])
            code, output, _, _ = client.wait_again(handle)
        self.assertEqual((code, output), (0, (self.work / "written-rust").read_bytes()))


class RestartTest(SdkCase):
    own = True

    def test_r059_killed_gateway_loses_nothing(self):
        """It is started again on the same listener; the clients attach again with the cursor they know."""
        script = "for i in $(seq 1 40); do echo line $i; echo err $i >&2; sleep 0.05; done"

        def check(sandbox):
            handle = sandbox.commands.run(script, background=True)
            for wanted in (5, 20):
                self.attach(handle.pid).until(b"line %d\n" % wanted).drop()
                self.gateway.kill_gateway()
            result = handle.wait()
            self.assertEqual(result["stdout"], "".join(f"line {i}\n" for i in range(1, 41)))
            self.assertEqual(result["stderr"], "".join(f"err {i}\n" for i in range(1, 41)))

        self.each(check)

    def test_gateway_that_is_told_to_go_says_1012(self):
        """Clients come back for that; what they read goes on where it was."""
        live = self.sh("echo one; read line; echo $line", stdin=True)
        live.until(b"one\n")
        os.kill(self.gateway.pid, signal.SIGTERM)
        self.assertEqual(live.wait_closed(), 1012)
        again = self.attach(live.pid, live.next)
        again.stdin(b"two\n")
        again.until_exit()
        self.assertEqual(again.output(), b"two\n")

    def test_reader_of_a_keeper_that_died_hears_of_an_end(self):
        """The processes went with it. A socket that ended without `exit` would be opened again and again."""
        live = self.sh("echo one; sleep 300")
        live.until(b"one\n")
        os.kill(self.gateway.keeper_pid, signal.SIGKILL)
        end = live.until_exit()
        self.assertEqual((end["status"], end["cursor"]), ("failed", 1))
        self.assertNotEqual(end["exit_code"], 0)
        self.assertEqual(self.sh("exit 3").until_exit()["exit_code"], 3)

    def test_r059_ids_and_cursors_survive(self):
        live = self.sh("echo one; echo two; exit 4", id="kept")
        live.until_exit()
        self.gateway.kill_gateway()
        again = self.attach("kept", 0)
        again.until_exit()
        self.assertEqual((events_of(again), again.exit), (events_of(live), live.exit))

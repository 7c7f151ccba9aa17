"""Standard input over /runtime/v1: one ack for each frame, in order, when the kernel has taken it."""

import hashlib
import os
import threading

from lib.gateway import GatewayCase
from lib.procs import wait_until
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import OldRust, Rust

NOTE = b"coop: input was not delivered: the process takes no input\n"


class CatTest(SdkCase):
    def test_r017_background_connect_stdin_and_its_end(self):
        def check(sandbox):
            handle = sandbox.commands.run("cat", background=True, stdin=True)
            other = sandbox.commands.connect(handle.pid)
            text = "".join(f"line {i} ü\n" for i in range(200))
            other.send_stdin(text)
            sandbox.commands.send_stdin(handle.pid, "more\n")
            handle.send_stdin(b"and more\n")
            # Without an ack the Python client does not know when its own was taken.
            self.attach(handle.pid).until(b"and more\n").drop()
            other.close_stdin()
            self.assertEqual(handle.wait()["stdout"], f"{text}more\nand more\n")
            self.assertEqual(other.wait()["stdout"], f"{text}more\nand more\n")

        self.each(check)

    def test_r017_rust_clients_too(self):
        for kind in (OldRust, Rust):
            client = kind(self.gateway.url, self.gateway.token)
            self.addCleanup(client.close)
            handle = client.start("cat", [], stdin=True)
            for i in range(20):
                handle.send_stdin(b"line %d\n" % i)
            handle.close_stdin()
            self.assertEqual(handle.wait()[:2], (0, b"".join(b"line %d\n" % i for i in range(20))))


class AckTest(GatewayCase):
    def test_r018_hundred_frames_get_hundred_acks_in_order(self):
        """None is waited for before the next is sent."""
        socket = self.start("cat", stdin=True)
        lines = [b"line %d " % i + os.urandom(20).hex().encode() + b"\n" for i in range(100)]
        for line in lines:
            socket.stdin(line)
        socket.send(type="close_stdin")
        kinds = []
        while len(kinds) < 101 or socket.exit is None:
            message = socket.frame_of()
            if message["type"].endswith("_ack"):
                kinds.append(message["type"])
        self.assertEqual(kinds, ["stdin_ack"] * 100 + ["close_stdin_ack"])
        self.assertEqual(socket.output(), b"".join(lines))

    def test_message_that_is_too_large_is_not_lost_silently(self):
        """Its client is sent away; those that come back, and all others, read why the program got nothing."""
        socket = self.sh("echo up; read line", stdin=True)
        socket.until(b"up\n")
        watcher = self.attach(socket.pid)
        socket.send_raw(b"\x81\xff" + (97 << 20).to_bytes(8, "big") + b"mask")
        self.assertEqual(socket.wait_closed(), 1009)
        watcher.until(b"coop: input was not delivered: a message of the client was too large\n")

    def test_input_that_was_left_behind_goes_on(self):
        """Its client has gone; the program takes more than 10 s for it, but never stands still for so long."""
        socket = self.sh("i=0; while [ $i -lt 64 ]; do head -c 65536; sleep 0.2; i=$((i+1)); done | wc -c", stdin=True)
        socket.stdin(b"x" * (4 << 20))
        socket.send_close()
        watcher = self.attach(socket.pid)
        self.assertEqual(watcher.until_exit()["exit_code"], 0)
        self.assertEqual(watcher.output("stdout").strip(), b"4194304")

    def test_input_that_was_left_behind_is_not_lost_silently(self):
        socket = self.sh("sleep 3600", stdin=True)
        socket.stdin(b"x" * (1 << 20))
        socket.send_close()
        self.attach(socket.pid).until(b"coop: input was not delivered: its client has gone, and the process does not read\n")

    def test_r018_frame_above_the_keepers_limit_is_acked_once(self):
        """5 MiB in one frame; every byte arrives."""
        data = os.urandom(5 << 20)
        socket = self.sh("sha256sum", stdin=True)
        socket.stdin(data)
        socket.send(type="close_stdin")
        socket.until_exit()
        self.assertEqual([message["type"] for message in socket.others], ["stdin_ack", "close_stdin_ack"])
        self.assertEqual(socket.output().split()[0].decode(), hashlib.sha256(data).hexdigest())

    def test_r019_what_is_sent_ahead_waits(self):
        """64 MiB without waiting for one acknowledgement, to a program that begins to read when all has been sent: clients that
        give up after a second without progress must get rid of it."""
        socket = self.waits_for("go")
        wanted = self.send_ahead(socket)
        (self.gateway.place.work / "go").touch()
        socket.until_exit()
        self.assertEqual([message["type"] for message in socket.others], ["stdin_ack"] * 64 + ["close_stdin_ack"])
        self.assertEqual(socket.output().split()[0].decode(), wanted)

    def waits_for(self, name):
        """A program that reads once the file is there."""
        return self.sh(f"until [ -e {name} ]; do sleep 0.05; done; sha256sum", stdin=True)

    @staticmethod
    def send_ahead(socket):
        """64 MiB, and their digest."""
        digest = hashlib.sha256()
        for _ in range(64):
            piece = os.urandom(1 << 20)
            digest.update(piece)
            socket.stdin(piece)
        socket.send(type="close_stdin")
        return digest.hexdigest()

    def test_r019_who_sends_ahead_on_many_sockets_waits(self):
        """What two have sent ahead is as much as the gateway takes for one agent; the third is held up, and nothing gets lost."""
        sockets = [self.waits_for("all") for _ in range(3)]
        wanted = [self.send_ahead(socket) for socket in sockets[:2]]
        third = threading.Thread(target=lambda: wanted.append(self.send_ahead(sockets[2])))
        third.start()
        try:
            third.join(1)
            self.assertTrue(third.is_alive())
        finally:
            (self.gateway.place.work / "all").touch()
            third.join()
        for socket, digest in zip(sockets, wanted, strict=True):
            socket.until_exit()
            self.assertEqual(socket.output().split()[0].decode(), digest)

    def test_r019_child_that_does_not_read(self):
        """Acks stop, output goes on, and it can be killed: what was sent ahead holds nothing up."""
        socket = self.sh("i=0; while :; do echo tick $i; i=$((i+1)); sleep 0.02; done", stdin=True)
        block = b"x" * (64 << 10)
        for _ in range(8):
            socket.stdin(block)
        socket.until(b"tick 10\n")
        acked = sum(message["type"] == "stdin_ack" for message in socket.others)
        self.assertLess(acked, 3)
        socket.until(b"tick 40\n")
        self.assertEqual(sum(message["type"] == "stdin_ack" for message in socket.others), acked)
        self.assertEqual(self.kill(socket.pid)["status"], "killed")
        self.assertEqual(socket.until_exit()["status"], "killed")

    def test_r019_signal_frame_works_while_input_waits(self):
        """By another socket: what the first has sent ahead waits in front of its own."""
        socket = self.sh("trap 'echo got; exit 5' TERM; echo up; while :; do sleep 0.02; done", stdin=True)
        socket.until(b"up\n")
        for _ in range(4):
            socket.stdin(b"x" * (64 << 10))
        self.attach(socket.pid).send(type="signal", signal="TERM")
        self.assertEqual(socket.until_exit()["exit_code"], 5)

    def test_r020_stdin_that_is_not_there(self):
        """The ack says that nothing was written, and a note says it in words, once, to all; the output goes on, and no `error` comes."""
        socket = self.sh("echo first; while ! test -e on; do sleep 0.01; done; echo second")
        other = self.attach(socket.pid)
        for _ in range(3):
            socket.stdin(b"nobody reads this")
        for _ in range(3):
            ack = socket.until_other("stdin_ack")
            self.assertEqual((ack["written"], ack["error"]), (0, "stdin_unavailable"))
        socket.until(NOTE, "stderr")
        (self.work / "on").touch()
        self.assertEqual(socket.until_exit()["exit_code"], 0)
        self.assertEqual((socket.output("stdout"), socket.output("stderr")), (b"first\nsecond\n", NOTE))
        self.assertEqual(socket.others, [])
        other.until_exit()
        self.assertEqual((other.others, other.events), ([], socket.events))
        poll = self.get(f"/runtime/v1/process/{socket.pid}/output")
        self.assertEqual([event["type"] for event in poll["events"]].count("stderr"), 1)
        self.assertEqual((poll["total_bytes"], poll["returned_bytes"], poll["stream_totals"]["stderr"], poll["omitted_bytes"]), (13, 13, 0, 0))
        self.assertEqual((poll["last_retained_cursor"], poll["next_cursor"]), (socket.exit["cursor"] - 1, socket.exit["cursor"] + 1))

    def test_r020_stdin_after_its_end(self):
        socket = self.sh("cat; sleep 300", stdin=True)
        socket.send(type="close_stdin")
        socket.until_other("close_stdin_ack")
        socket.stdin(b"late")
        ack = socket.until_other("stdin_ack")
        self.assertEqual((ack["written"], ack["error"]), (0, "stdin_unavailable"))
        socket.until(NOTE, "stderr")
        self.assertEqual(self.status(socket.pid)["status"], "running")
        self.kill(socket.pid)
        socket.until_exit()

    def test_r021_second_close_is_acked(self):
        socket = self.sh("cat; echo end; sleep 300", stdin=True)
        for _ in range(2):
            socket.send(type="close_stdin")
            socket.until_other("close_stdin_ack")
        socket.until(b"end\n")
        self.kill(socket.pid)

    def test_close_takes_effect_after_all_input(self):
        """From the same socket, all at once."""
        socket = self.start("cat", stdin=True)
        for i in range(50):
            socket.stdin(b"%d\n" % i)
        socket.send(type="close_stdin")
        self.assertEqual(socket.until_exit()["exit_code"], 0)
        self.assertEqual(socket.output(), b"".join(b"%d\n" % i for i in range(50)))

    def test_input_of_two_sockets_is_not_mixed(self):
        """Frames of 200 KiB, much more than a pipe holds: each arrives in one piece."""
        socket = self.sh("read go; cat >mixed", stdin=True)
        other = self.attach(socket.pid)
        socket.stdin(b"go\n")
        for i in range(6):
            socket.stdin(b"a" * 204800)
            other.stdin(b"b" * 204800)
        for each in (socket, other):
            for _ in range(6 + (each is socket)):
                each.until_other("stdin_ack")
        socket.send(type="close_stdin")
        socket.until_exit()
        found = (self.work / "mixed").read_bytes()
        self.assertEqual(len(found), 12 * 204800)
        for start in range(0, len(found), 204800):
            self.assertEqual(len(set(found[start:start + 204800])), 1)

    def test_reader_that_has_gone_is_acked(self):
        """What came of it arrives as exit, or not at all: the frame is acked all the same, and says how much was taken."""
        socket = self.sh("exec <&-; echo ready; sleep 300", stdin=True)
        socket.until(b"ready\n")
        socket.stdin(b"x" * 100000)
        ack = socket.until_other("stdin_ack")
        self.assertLess(ack["written"], 100000)
        self.assertNotIn("error", ack)
        self.kill(socket.pid)

    def test_how_much_was_taken_is_exact(self):
        """The program reads some and goes away: what it had read and what was in the pipe is told."""
        socket = self.start("head", "-c", "100000", stdin=True)
        size = 3 << 20
        socket.stdin(b"x" * size)
        ack = socket.until_other("stdin_ack")
        self.assertTrue(100000 <= ack["written"] < size, ack)
        self.assertEqual(socket.until_exit()["exit_code"], 0)

    def test_r020_input_after_the_end_is_not_taken(self):
        """The process has ended, and its exit is not told yet as a child holds the pipe: acked as not written, before the exit."""
        socket = self.sh("(trap '' TERM; while :; do echo x; sleep 0.02; done) & exec true", stdin=True)
        wait_until(lambda: socket.event() and socket.output().count(b"x") > 3, "it has ended")
        socket.stdin(b"late")
        ack = socket.until_other("stdin_ack")
        self.assertEqual(ack["written"], 0)
        socket.until_exit()
        self.kill(socket.pid)

    def test_r020_terminal_of_an_ended_process(self):
        """A socket that is attached after the end: exit comes, and input before it is acked as not written, or not at all."""
        done = self.sh("true")
        done.until_exit()
        again = self.socket(f"/runtime/v1/process/{done.pid}/connect")
        again.stdin(b"late")
        again.expect_started(0)
        again.until_exit()
        for message in again.others:
            self.assertEqual((message["type"], message["written"], message["error"]), ("stdin_ack", 0, "stdin_unavailable"))

    def test_bad_base64_is_no_input(self):
        """Neither is it lost in silence."""
        socket = self.start("cat", stdin=True)
        socket.send(type="stdin", data="not base64!")
        ack = socket.until_other("stdin_ack")
        self.assertEqual((ack["written"], ack["error"]), (0, "invalid_argument"))
        socket.until(b"coop: input was not delivered: its data is not base64\n", "stderr")
        self.kill(socket.pid)

    def test_message_that_is_none_is_noted(self):
        """A live stream gets no `error`: clients would give up what they read."""
        for data in ("no json", "[]", '{"no":"type"}'):
            socket = self.start("cat", stdin=True)
            socket.send_text(data)
            socket.until(b"coop: a message of the client could not be understood\n", "stderr")
            socket.stdin(b"still there\n")
            socket.until(b"still there\n", "stdout")
            self.assertEqual([message["type"] for message in socket.others], ["stdin_ack"])
            self.kill(socket.pid)

    def test_frames_before_a_close_frame_are_carried_out(self):
        socket = self.start("cat", stdin=True)
        reader = self.attach(socket.pid)
        socket.stdin(b"last words\n")
        socket.send(type="close_stdin")
        socket.send_close()
        socket.drop()
        self.assertEqual(reader.until_exit()["exit_code"], 0)
        self.assertEqual(reader.output(), b"last words\n")

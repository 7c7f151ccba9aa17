"""Output that nobody loses (R-064): the socket that started a process, or that asks for it, holds the process back."""

import threading
import unittest

from lib import procs
from lib.flood import FLOOD, MIB, SIZE, digest, expected
from lib.gateway import GatewayCase
from lib.http_client import Ended
from lib.place import moment
from lib.procs import wait_until
from lib.websocket import Closed, Refused

HOUR = 3600 * 1000
FAR = 10**9


def flood(size=SIZE):
    return "".join(f"{i}\n" for i in range(1, size // 7)).encode()[:size]


class LosslessCase(GatewayCase):
    settings = {"hold_idle_ms": HOUR}

    def total(self, pid):
        return self.get(f"/runtime/v1/process/{pid}/output?since={FAR}&limit_bytes=0")["total_bytes"]

    def stands_still(self, pid):
        """The process waits: more than is kept has come, and nothing further does. What all buffers on the way hold is bounded."""
        seen = [0]

        def same():
            total = self.total(pid)
            seen.append(total)
            return total >= MIB // 2 and seen[-30:] == [total] * 30

        wait_until(same, "the process waits for its reader", timeout=60)
        self.assertLess(seen[-1], SIZE // 2)

    def whole(self, socket, size=SIZE):
        """It has all of it, and nobody says otherwise."""
        socket.until_exit()
        self.assertEqual((socket.gaps, socket.exit["exit_code"], socket.exit["error"]), ([], 0, None))
        data = socket.output("stdout")
        self.assertEqual((len(data), digest(data)), (size, expected(size)))


class StartTest(LosslessCase):
    def test_r064_fast_reader_gets_all(self):
        self.whole(self.sh(FLOOD))

    def test_r064_slow_reader_gets_all(self):
        """With a small window, frame by frame, and a pause behind each for a while."""
        socket = self.start("sh", "-c", FLOOD, socket={"receive_buffer": 4096})
        pause = threading.Event()
        for _ in range(200):
            socket.event()
            pause.wait(0.005)
        self.whole(socket)

    def test_r064_stopped_reader_gets_all(self):
        """Nothing is read until the process waits; then everything."""
        socket = self.start("sh", "-c", FLOOD, socket={"receive_buffer": 4096})
        self.stands_still(socket.pid)
        self.assertEqual(self.get(f"/runtime/v1/process/{socket.pid}")["process"]["status"], "running")
        self.whole(socket)

    def test_r064_both_streams_in_order(self):
        """stdout and stderr in turn, more than both rings hold: nothing is missing in either."""
        script = "i=0; while [ $i -lt 3000 ]; do printf '%01023d\\n' $i; printf '%01023d\\n' $i >&2; i=$((i+1)); done"
        socket = self.start("sh", "-c", script, socket={"receive_buffer": 4096})
        self.stands_still(socket.pid)
        socket.until_exit()
        lines = b"".join(b"%01023d\n" % i for i in range(3000))
        self.assertEqual((socket.gaps, socket.output("stdout") == lines, socket.output("stderr") == lines), ([], True, True))

    def test_r064_small_writes(self):
        """More events than the index holds."""
        socket = self.start("sh", "-c", "i=0; while [ $i -lt 40000 ]; do echo $i; i=$((i+1)); done", socket={"receive_buffer": 4096})
        pause = threading.Event()
        # On a slow machine what was written in the pauses comes in few events.
        while len(socket.events) < 50 and socket.exit is None:
            socket.event()
            pause.wait(0.02)
        socket.until_exit()
        self.assertEqual((socket.gaps, socket.output() == b"".join(b"%d\n" % i for i in range(40000))), ([], True))

    def test_r064_terminal(self):
        socket = self.start("sh", "-c", "stty -opost; seq 1 100000000 | head -c 8388608", pty={"cols": 80, "rows": 24},
                            socket={"receive_buffer": 4096})
        self.stands_still(socket.pid)
        socket.until_exit()
        self.assertEqual((socket.gaps, len(socket.output()), digest(socket.output())), ([], 8 * MIB, expected(8 * MIB)))

    def test_r064_plain_socket_that_stalls_delays_nobody(self):
        """It is behind, and told so: by a gap, and by the error of its exit."""
        reader = self.sh(f"read go; {FLOOD}", stdin=True)
        stalled = self.attach(reader.pid, 0, receive_buffer=4096)
        reader.stdin(b"\n")
        self.whole(reader)
        stalled.until_exit()
        lost = sum(gap["bytes"] for gap in stalled.gaps)
        self.assertGreater(lost, 0)
        self.assertEqual(len(stalled.output()) + lost, SIZE)
        self.assertEqual((stalled.exit["exit_code"], stalled.exit["error"]), (0, f"{lost} bytes of output were lost"))

    def test_r064_socket_that_goes_holds_nothing(self):
        """The process runs on at once, although nobody else reads."""
        for end in ("drop", "close"):
            with self.subTest(end=end):
                socket = self.start("sh", "-c", FLOOD, socket={"receive_buffer": 4096})
                self.stands_still(socket.pid)
                if end == "drop":
                    socket.drop()
                else:
                    socket.send_close()
                watcher = self.attach(socket.pid, FAR)
                self.assertEqual(watcher.until_exit()["exit_code"], 0)

    def test_r064_kill_of_a_held_process(self):
        """The answer does not wait for the reader, and the reader gets what was written, then the end."""
        socket = self.start("sh", "-c", FLOOD, socket={"receive_buffer": 4096})
        self.stands_still(socket.pid)
        answer = self.request("DELETE", f"/runtime/v1/process/{socket.pid}?signal=SIGKILL&kill_group=true")
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(socket.until_exit()["status"], "killed")
        self.assertEqual(socket.gaps, [])
        self.assertEqual(len(socket.output("stdout")), self.total(socket.pid))

    def test_r064_timeout_of_a_held_process(self):
        socket = self.start("sh", "-c", FLOOD, timeout_ms=moment(1500), socket={"receive_buffer": 4096})
        self.stands_still(socket.pid)
        # Nothing is read before it is over: a fast reader would let the process end by itself.
        wait_until(lambda: not procs.alive(socket.record["os_pid"]), "it has been killed")
        self.assertEqual(socket.until_exit()["status"], "timed_out")
        self.assertEqual((socket.gaps, socket.exit["exit_code"]), ([], 124))
        self.assertEqual(len(socket.output("stdout")), self.total(socket.pid))


class AttachTest(LosslessCase):
    def lossless(self, pid, since=0, **options):
        socket = self.socket(f"/runtime/v1/process/{pid}/connect?since={since}&lossless=true", **options)
        socket.expect_started(since)
        return socket

    def test_r064_attached_socket_holds_if_it_asks(self):
        """The one that started it reads all that there is; the process waits for the other."""
        starter = self.sh(f"read go; {FLOOD}", stdin=True)
        attached = self.lossless(starter.pid, receive_buffer=4096)
        starter.stdin(b"\n")
        thread = threading.Thread(target=self.whole, args=(starter,))
        thread.start()
        try:
            self.stands_still(starter.pid)
            self.assertTrue(thread.is_alive())
            self.whole(attached)
        finally:
            attached.drop()
            thread.join()
        self.assertEqual(digest(starter.output("stdout")), expected())

    def test_r064_attached_in_the_middle(self):
        """From the first event that is still kept, and the starter goes: all from there on."""
        starter = self.start("sh", "-c", FLOOD, socket={"receive_buffer": 4096})
        self.stands_still(starter.pid)
        output = self.get(f"/runtime/v1/process/{starter.pid}/output?since={FAR}&limit_bytes=0")
        attached = self.lossless(starter.pid, since=output["first_retained_cursor"])
        starter.drop()
        attached.until_exit()
        self.assertEqual(attached.gaps, [])
        data = attached.output()
        self.assertGreater(len(data), SIZE // 2)
        self.assertEqual(digest(flood()[:-len(data)] + data), expected())

    def test_r064_of_a_finished_process(self):
        done = self.sh("echo a; echo b >&2")
        done.until_exit()
        for since in (0, 1, FAR):
            again = self.lossless(done.pid, since)
            again.until_exit()
            self.assertEqual(again.exit["error"], None)

    def test_r064_words_that_are_none(self):
        done = self.sh("true")
        for word in ("maybe", "1", "TRUE", ""):
            with self.assertRaises(Refused) as refused:
                self.socket(f"/runtime/v1/process/{done.pid}/connect?lossless={word}")
            self.assert_refused(refused.exception.response, 400, "invalid_argument")
        with self.assertRaises(Refused) as refused:
            self.socket("/runtime/v1/process/psh-1-1/connect?lossless=true")
        self.assert_refused(refused.exception.response, 404, "process_not_found")

    def test_r064_who_only_looks_does_not_hold(self):
        """An agent above sees the process of one below it, and may attach, but holds nothing back."""
        child = self.gateway.agent_token("main/child")
        socket = self.socket(token=child)
        socket.start("sleep", ["60"])
        self.attach(socket.pid, 0)
        with self.assertRaises(Refused) as refused:
            self.lossless(socket.pid)
        self.assert_refused(refused.exception.response, 403, "forbidden")

    def test_r064_a_hundred_of_them(self):
        """All hold the same process; each gets everything."""
        size = 3 * MIB // 2
        starter = self.sh(f"read go; seq 1 100000000 | head -c {size}", stdin=True)
        sockets = [self.lossless(starter.pid, receive_buffer=4096) for _ in range(100)]
        starter.stdin(b"\n")
        threads = [threading.Thread(target=socket.until_exit) for socket in (starter, *sockets)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for socket in (starter, *sockets):
            self.assertEqual((socket.gaps, digest(socket.output())), ([], expected(size)))


class ImpatientTest(LosslessCase):
    settings = {"hold_idle_ms": moment(1000)}

    def test_r064_reader_that_takes_nothing_loses_its_right(self):
        """The program ends although its starter does not read; when it does, the gap and the exit say what is missing."""
        socket = self.start("sh", "-c", f"{FLOOD}; exit 3", socket={"receive_buffer": 4096})
        self.assertEqual(self.attach(socket.pid, FAR).until_exit()["exit_code"], 3)
        socket.until_exit()
        lost = sum(gap["bytes"] for gap in socket.gaps)
        self.assertGreater(lost, 0)
        self.assertEqual(len(socket.output()) + lost, SIZE)
        self.assertEqual((socket.exit["exit_code"], socket.exit["error"]), (3, f"{lost} bytes of output were lost"))

    def test_r064_loss_is_told_beside_the_other_reason(self):
        socket = self.start("sh", "-c", f"{FLOOD}; kill -9 $$", socket={"receive_buffer": 4096})
        self.attach(socket.pid, FAR).until_exit()
        socket.until_exit()
        lost = sum(gap["bytes"] for gap in socket.gaps)
        self.assertEqual(socket.exit["error"], f"killed by SIGKILL; {lost} bytes of output were lost")

    def test_r064_reader_that_is_slow_keeps_it(self):
        """Each pause is shorter than the patience of the keeper, all together they are much longer."""
        socket = self.start("sh", "-c", f"seq 1 100000000 | head -c {16 * MIB}", socket={"receive_buffer": 65536})
        pause = threading.Event()
        for _ in range(60):
            for _ in range(4):
                socket.event()
            pause.wait(moment(50) / 1000)
        self.whole(socket, 16 * MIB)


class DeathTest(LosslessCase):
    own = True

    def test_r064_gateway_that_dies_holds_nothing(self):
        """Its holders go with its connections to the keeper: what they held runs on at once, and can be attached to."""
        socket = self.start("sh", "-c", FLOOD, socket={"receive_buffer": 4096})
        self.stands_still(socket.pid)
        self.gateway.kill_gateway()
        watcher = wait_until(lambda: self.come_back(socket.pid), "the next one serves")
        self.assertEqual(watcher.until_exit()["exit_code"], 0)
        self.assertEqual(self.total(socket.pid), SIZE)

    def come_back(self, pid):
        try:
            return self.attach(pid, FAR)
        except (OSError, Closed, Refused, Ended):
            return None


if __name__ == "__main__":
    unittest.main()

"""Input of a process (B-054 to B-058), and whether it waits for some."""

import hashlib
import random
import threading

from lib import procs
from lib.client import data_frames, json_frame
from lib.keeper import KeeperCase

MIB = 1 << 20
# Reads only when told by a file, so that a writer can be seen waiting.
LATE_READER = "while [ ! -e {gate} ]; do sleep 0.02; done; cat"


class StdinTest(KeeperCase):
    def test_b054_no_stdin_is_end_of_file(self):
        """Without a request for stdin `cat` exits 0 at once, and its descriptor is nobody's terminal or pipe."""
        record = self.ended(self.spawn("cat")["id"])
        self.assertEqual((record["state"], record["exit"]["code"]), ("exited", 0))
        process = self.spawn("readlink", "/proc/self/fd/0")["id"]
        self.ended(process)
        self.assertEqual(self.output(process), b"/dev/null\n")
        self.assertFalse(self.status(process)["stdin_open"])

    def test_b055_given_bytes_are_delivered_whole_and_closed(self):
        """4 MiB through cat comes back whole, without deadlock."""
        data = random.Random(3).randbytes(4 * MIB)
        process = self.spawn("cat", data=data, ring_bytes=8 * MIB)["id"]
        record = self.ended(process)
        self.assertEqual(record["exit"]["code"], 0)
        self.assertEqual(hashlib.sha256(self.output(process)).digest(), hashlib.sha256(data).digest())

    def test_b055_one_byte_more_is_too_large(self):
        """4 MiB and one byte: too_large, nothing starts, and the connection goes on."""
        marker = self.work / "marker"
        with self.refused("too_large"):
            self.spawn("touch", str(marker), data=bytes(4 * MIB + 1))
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])
        self.assertFalse(marker.exists())

    def test_b055_keep_stdin_open(self):
        """With keep_stdin_open more can be written after the given bytes."""
        process = self.spawn("cat", data=b"first ", keep_stdin_open=True)["id"]
        self.wait_output(process, b"first ")
        self.assertTrue(self.status(process)["stdin_open"])
        self.client.reply("write_stdin", {"id": process}, b"second")
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.assertEqual(self.output(process), b"first second")

    def test_b055_child_that_never_reads_delays_nothing(self):
        """4 MiB for a sleeper: spawn answers, other calls are answered, and it can be killed."""
        process = self.spawn("sleep", "300", data=bytes(4 * MIB))["id"]
        self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)
        self.assertEqual(self.status(process)["state"], "running")
        self.assertTrue(self.client.call("kill", id=process)["success"])

    def test_b055_empty_bytes(self):
        """Zero bytes of stdin are an end of file."""
        process = self.spawn("cat", data=b"")["id"]
        self.assertEqual(self.ended(process)["exit"]["code"], 0)

    def test_b056_write_bound(self):
        """1 MiB is taken; one byte more is too_large and nothing of it is written."""
        process = self.spawn("cat", stdin="pipe", ring_bytes=8 * MIB)["id"]
        with self.refused("too_large"):
            self.client.reply("write_stdin", {"id": process}, b"x" * (MIB + 1))
        answer = self.client.reply("write_stdin", {"id": process}, b"y" * MIB).result
        self.assertEqual(answer, {"success": True, "timed_out": False, "bytes_written": MIB})
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.assertEqual(self.output(process), b"y" * MIB)

    def test_b056_child_that_does_not_read(self):
        """At timeout_ms the write is a failure with the number of bytes the kernel took; 0 tries once."""
        for timeout in (200, 0):
            process = self.spawn("sleep", "300", stdin="pipe")["id"]
            answer = self.client.reply("write_stdin", {"id": process, "timeout_ms": timeout}, bytes(MIB)).result
            self.assertEqual((answer["success"], answer["timed_out"]), (False, True))
            self.assertGreater(answer["bytes_written"], 0)
            self.assertLess(answer["bytes_written"], MIB)

    def test_b056_unlimited_write_waits_and_can_be_cancelled(self):
        """-1 waits for the child; a cancel ends the waiting; what was written is whole up to there."""
        gate = self.work / "gate"
        process = self.sh(LATE_READER.format(gate=gate), stdin="pipe", ring_bytes=8 * MIB)["id"]
        client = self.connect()
        request = client.submit("write_stdin", {"id": process, "timeout_ms": -1}, bytes(MIB))
        self.assertTrue(client.quiet(request, 0.3))
        client.cancel(request)
        with self.refused("cancelled"):
            client.finish(request)
        request = client.submit("write_stdin", {"id": process, "timeout_ms": -1}, b"e" * 1000)
        gate.touch()
        self.assertTrue(client.finish(request).result["success"])
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.assertTrue(self.output(process).endswith(b"e" * 1000))

    def test_b056_process_without_stdin(self):
        """A process started without stdin refuses bytes clearly."""
        process = self.spawn("sleep", "300")["id"]
        with self.refused("closed"):
            self.client.reply("write_stdin", {"id": process}, b"x")

    def test_b057_writes_from_several_connections_stay_whole(self):
        """Four connections write 200 KiB each at once: four whole blocks, none torn."""
        gate = self.work / "gate"
        process = self.sh(LATE_READER.format(gate=gate), stdin="pipe", ring_bytes=8 * MIB)["id"]
        size = 200 * 1024
        clients = [self.connect() for _ in range(4)]
        requests = []
        for i, client in enumerate(clients):
            requests.append(client.submit("write_stdin", {"id": process, "timeout_ms": 60000}, bytes([65 + i]) * size))
            # A call behind the bytes is answered only once they have arrived, so the order is known.
            client.call("info")
        self.assertTrue(clients[0].quiet(requests[0], 0.2))
        gate.touch()
        for client, request in zip(clients, requests):
            self.assertEqual(client.finish(request).result["bytes_written"], size)
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.assertEqual(self.output(process), b"".join(bytes([65 + i]) * size for i in range(4)))

    def test_b057_unknown_id(self):
        """Writing to an id that is nobody's is no_such_process, and its bytes are swallowed."""
        with self.refused("no_such_process"):
            self.client.reply("write_stdin", {"id": "psh-1-9999"}, b"lost" * 1000)
        self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)

    def test_b057_bytes_in_small_frames(self):
        """A request's bytes may come in many frames."""
        process = self.spawn("cat", stdin="pipe")["id"]
        data = bytes(range(256)) * 20
        client = self.connect()
        request = client.submit_raw(
            lambda request: json_frame({"id": request, "op": "write_stdin", "args": {"id": process}, "data": len(data)})
            + data_frames(request, data, 7)
        )
        self.assertEqual(client.finish(request).result["bytes_written"], len(data))
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.assertEqual(self.output(process), data)

    def test_b058_close_gives_end_of_file(self):
        """close_stdin ends cat; it is idempotent; later writes are closed, also after the end of the child."""
        process = self.sh("cat; echo eof; exec sleep 300", stdin="pipe")["id"]
        self.client.reply("write_stdin", {"id": process}, b"text ")
        self.assertEqual(self.client.call("close_stdin", id=process), {"closed": True, "was_open": True})
        self.wait_output(process, b"text eof\n")
        self.assertEqual(self.client.call("close_stdin", id=process), {"closed": True, "was_open": False})
        with self.refused("closed"):
            self.client.reply("write_stdin", {"id": process}, b"more")
        ended = self.spawn("true", stdin="pipe")["id"]
        self.ended(ended)
        with self.refused("closed"):
            self.client.reply("write_stdin", {"id": ended}, b"more")
        self.assertTrue(self.client.call("close_stdin", id=ended)["closed"])

    def test_b058_close_waits_for_earlier_writes(self):
        """A close behind a large write does not cut it."""
        gate = self.work / "gate"
        process = self.sh(LATE_READER.format(gate=gate), stdin="pipe", ring_bytes=8 * MIB)["id"]
        client = self.connect()
        write = client.submit("write_stdin", {"id": process, "timeout_ms": 60000}, b"z" * MIB)
        close = client.submit("close_stdin", {"id": process})
        gate.touch()
        self.assertTrue(client.finish(write).result["success"])
        self.assertTrue(client.finish(close).result["closed"])
        self.ended(process)
        self.assertEqual(self.output(process), b"z" * MIB)

    def test_b058_child_that_closes_its_stdin(self):
        """A write to a child that has closed its end is `closed`, and the keeper lives on."""
        process = self.sh("exec 0<&-; echo shut; exec sleep 300", stdin="pipe")["id"]
        self.wait_output(process, b"shut")
        with self.refused("closed"):
            self.client.reply("write_stdin", {"id": process}, bytes(MIB))
        self.assertEqual(self.status(process)["state"], "running")


class BlockedTest(KeeperCase):
    def test_blocked_on_stdin_is_seen(self):
        """A process that reads its pipe is blocked_on_stdin, one that sleeps is not, also where a child is the reader."""
        reader = self.spawn("cat", stdin="pipe")["id"]
        nested = self.sh("cat; :", stdin="pipe")["id"]
        sleeper = self.spawn("sleep", "300", stdin="pipe")["id"]
        for process in (reader, nested):
            procs.wait_until(lambda: self.status(process)["blocked_on_stdin"] is True, "the reader is seen")
        self.assertFalse(self.status(sleeper)["blocked_on_stdin"])
        self.client.call("close_stdin", id=reader)
        self.assertFalse(self.ended(reader)["blocked_on_stdin"])

    def test_blocked_on_the_terminal_and_hidden_input(self):
        """A program that asks for a password on its terminal: blocked, and the echo is off."""
        script = "stty -echo; echo password; read x; stty echo; echo name; read y"
        process = self.sh(script, kind="pty")["id"]
        self.wait_output(process, b"password", "pty")
        procs.wait_until(lambda: self.status(process)["blocked_on_stdin"] is True, "it waits for the terminal")
        self.assertTrue(self.status(process)["echo_off"])
        self.client.reply("write_stdin", {"id": process, "secret": True}, b"hush\n")
        self.wait_output(process, b"name", "pty")
        procs.wait_until(lambda: self.status(process)["blocked_on_stdin"] is True, "it waits again")
        self.assertFalse(self.status(process)["echo_off"])
        self.assertNotIn(b"hush", self.output(process, "pty"))

    def test_blocked_threads_do_not_confuse_writers(self):
        """Several writers and a reader at once from threads: all answered."""
        process = self.spawn("cat", stdin="pipe")["id"]
        failures = []

        def write(text):
            try:
                with self.keeper.connect() as client:
                    for _ in range(20):
                        client.reply("write_stdin", {"id": process}, text)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(b"%d" % i * 10 + b"\n",)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.assertEqual(failures, [])
        lines = self.output(process).split()
        self.assertEqual(sorted(lines), sorted([b"%d" % i * 10 for i in range(3)] * 20))

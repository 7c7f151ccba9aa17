"""Letting go of records (B-114 to B-117)."""

from lib import procs
from lib.keeper import KeeperCase

MIB = 1 << 20


class ReleaseTest(KeeperCase):
    def test_b114_finished_record(self):
        """release removes the record and its output; later calls are no_such_process."""
        process = self.sh("echo x")["id"]
        self.ended(process)
        answer = self.client.call("release", id=process)
        self.assertTrue(answer["released"])
        for op, args in (("status", {}), ("wait", {}), ("read", {}), ("follow", {}), ("kill", {}), ("stop", {}),
                         ("signal", {"signal": "TERM"}), ("write_stdin", {}), ("close_stdin", {}),
                         ("resize", {"cols": 1, "rows": 1})):
            with self.subTest(op=op), self.refused("no_such_process"):
                self.client.reply(op, {"id": process, **args}, b"x" if op == "write_stdin" else None)
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])
        self.assertEqual(self.client.call("info")["processes"]["finished"], 0)

    def test_b114_read_in_progress_completes(self):
        """A read whose bytes do not fit into the socket at once is not cut by a release behind it."""
        process = self.sh(f"head -c {4 * MIB} /dev/zero", ring_bytes=8 * MIB)["id"]
        self.ended(process)
        request = self.client.submit("read", {"id": process, "max": 4 * MIB})
        release = self.client.submit("release", {"id": process})
        self.assertEqual(len(self.client.finish(request).bytes()), 4 * MIB)
        self.assertTrue(self.client.finish(release).result["released"])

    def test_b115_live_process_is_killed_with_proof(self):
        """release of a live process kills the tree and answers when it is gone, with the receipt."""
        process = self.sh("setsid sleep 300 & echo up; sleep 300")
        self.wait_output(process["id"], b"up")
        tree = [process["pid"], *procs.descendants(process["pid"])]
        answer = self.client.call("release", id=process["id"])
        self.assert_gone(tree)
        self.assertTrue(answer["released"])
        self.assertEqual((answer["kill"]["success"], answer["kill"]["survivors"]), (True, 0))
        self.assertLessEqual(set(tree), set(answer["kill"]["signalled"]))
        with self.refused("no_such_process"):
            self.status(process["id"])

    def test_b115_refuse(self):
        """With if_running refuse it is invalid_input and the process lives; of a finished one it works."""
        process = self.spawn("sleep", "300")["id"]
        with self.refused("invalid_input"):
            self.client.call("release", id=process, if_running="refuse")
        self.assertEqual(self.status(process)["state"], "running")
        self.client.call("kill", id=process)
        answer = self.client.call("release", id=process, if_running="refuse")
        self.assertTrue(answer["released"])

    def test_b115_waiters_hear_the_end(self):
        """Whoever waits on a process that is released gets its end."""
        process = self.spawn("sleep", "300")["id"]
        waiter = self.connect()
        request = waiter.submit("wait", {"id": process})
        waiter.call("info")
        self.client.call("release", id=process)
        record = waiter.finish(request).result["process"]
        self.assertEqual((record["exit"]["signal"], record["end_cause"]), (9, "killed_by_request"))

    def test_b116_unknown_ids_answer_alike(self):
        """Unknown, malformed and already released ids: released false, the very same answer."""
        process = self.spawn("true")["id"]
        self.ended(process)
        self.client.call("release", id=process)
        answers = [self.client.call("release", id=bad) for bad in (process, "psh-1-424242", "nonsense", "", "psh-")]
        for answer in answers:
            self.assertEqual(answer, answers[0])
        self.assertFalse(answers[0]["released"])

    def test_b117_gc_releases_the_finished(self):
        """gc removes finished records only and says how many."""
        done = [self.spawn("true")["id"] for _ in range(5)]
        for process in done:
            self.ended(process)
        live = self.spawn("sleep", "300")["id"]
        self.assertEqual(self.client.call("gc"), {"released": 5})
        self.assertEqual([r["id"] for r in self.client.call("list", include_finished=True)["processes"]], [live])
        self.assertEqual(self.client.call("gc"), {"released": 0})
        self.assertEqual(self.status(live)["state"], "running")


class CapTest(KeeperCase):
    settings = {"max_finished": 8, "max_receipts": 16}

    def test_b117_caps_hold_without_a_call(self):
        """Many short commands: no more full records and receipts than the caps, the rest is counted as dropped."""
        count, last = 200, []
        for begin in range(0, count, 20):
            requests = [self.client.submit("spawn", {"argv": ["echo", str(i)]}) for i in range(begin, begin + 20)]
            last = [self.client.finish(request).result["process"]["id"] for request in requests]
            for process in last:
                self.wait(process)
        info = self.client.call("info")["processes"]
        self.assertEqual((info["live"], info["finished"], info["receipts"]), (0, 8, 16))
        self.assertEqual(info["receipts_dropped"], count - 8 - 16)
        # What is in full or a receipt answers; a receipt says so.
        states = [self.status(process)["receipt"] for process in last]
        self.assertEqual(states.count(False), 8)
        self.assertEqual(states.count(True), 12)

    def test_b117_live_ones_are_never_evicted(self):
        """The caps touch finished records only."""
        live = [self.spawn("sleep", "300")["id"] for _ in range(12)]
        for _ in range(30):
            self.ended(self.spawn("true")["id"])
        self.assertEqual([record["id"] for record in self.client.call("list")["processes"]], live)

    def test_b117_memory_does_not_grow_with_the_number_of_commands(self):
        """The second thousand of outputs costs nothing that the first hundred had not."""

        def batch(count):
            for _ in range(count // 20):
                requests = [self.client.submit("spawn", {"argv": ["echo", "x" * 1000]}) for _ in range(20)]
                for request in requests:
                    self.wait(self.client.finish(request).result["process"]["id"])
            return self.client.call("info")

        first, second = batch(200), batch(600)
        self.assertLessEqual(second["memory"]["buffer_bytes"], first["memory"]["buffer_bytes"] + 65536)
        # Those of prepared sandboxes and of removed placeholders come and go.
        procs.wait_until(lambda: self.client.call("info")["fds"]["open"] <= first["fds"]["open"] + 16, f"descriptors: {first['fds']}, {second['fds']}")

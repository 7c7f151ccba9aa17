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


class StarterTest(KeeperCase):
    """What a connection has started stays until that one has heard of its end, whoever clears up beside it."""

    def started(self, word="out"):
        """(connection, id) of a process that has ended, and of which its starter has heard nothing but the start."""
        starter = self.connect()
        process = starter.call("spawn", argv=["echo", word])["process"]["id"]
        self.ended(process)
        return starter, process

    def test_b117_gc_beside_its_starter(self):
        """gc leaves it alone until the one who started it has followed it to its end; a second gc takes it."""
        starter, process = self.started()
        self.assertEqual(self.client.call("gc"), {"released": 0})
        self.assertEqual(starter.reply("follow", {"id": process}).bytes(), b"out\n")
        self.assertEqual(self.client.call("gc"), {"released": 1})
        with self.refused("no_such_process"):
            starter.call("status", id=process)

    def test_b117_gc_of_the_starter_itself(self):
        """Who started it may let it go unheard."""
        starter, process = self.started()
        self.assertEqual(starter.call("gc"), {"released": 1})

    def test_b117_gc_after_its_starter_has_gone(self):
        """A connection that is closed waits for nothing."""
        starter, process = self.started()
        starter.close()
        procs.wait_until(lambda: self.client.call("gc")["released"], "it is let go of")

    def test_b117_gc_beside_a_reader(self):
        """gc leaves alone what somebody holds for reading."""
        reader = self.connect()
        result = reader.call("spawn", argv=["echo", "x"], hold=True)
        process = result["process"]["id"]
        self.ended(process)
        self.assertFalse(reader.call("wait", id=process)["running"])
        self.assertEqual(self.client.call("gc"), {"released": 0})
        self.assertEqual(reader.reply("follow", {"id": process}).bytes(), b"x\n")
        reader.call("hold", id=process, hold=result["hold"]["number"], end=True)
        self.assertEqual(self.client.call("gc"), {"released": 1})

    def test_b117_gc_and_a_refused_command(self):
        """The record of a command that could not be started waits as well."""
        starter = self.connect()
        answer = starter.answer("spawn", {"argv": ["/nowhere/at/all"], "record_failure": True})
        process = answer["error"]["details"]["id"]
        self.assertEqual(self.client.call("gc"), {"released": 0})
        self.assertEqual(starter.call("status", id=process)["process"]["end_cause"], "spawn_failed")
        self.assertEqual(self.client.call("gc"), {"released": 1})


class ImpatientStarterTest(KeeperCase):
    settings = {"hold_idle_ms": 1}

    def test_b117_a_starter_that_never_asks(self):
        """It keeps its records from gc for the patience that holders have, no longer."""
        self.connect().call("spawn", argv=["true"])
        procs.wait_until(lambda: self.client.call("gc")["released"], "it is let go of")


class StarterCapTest(StarterTest):
    settings = {"max_finished": 1, "max_receipts": 0, "min_retention_ms": 1, "exit_retention_ms": 1}

    def test_b118_caps_leave_the_last_of_each_connection(self):
        """Neither the cap of finished records nor a short retention takes the output before its starter has asked."""
        all_started = [self.started(f"word {i}") for i in range(4)]
        for i, (starter, process) in enumerate(all_started):
            self.assertEqual(starter.reply("follow", {"id": process}).bytes(), f"word {i}\n".encode())


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

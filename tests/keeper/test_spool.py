"""Output that goes on in files (B-029, B-034)."""

import os
import stat
from pathlib import Path

from lib import procs
from lib.keeper import KeeperCase

KIB = 1 << 10


class SpoolTest(KeeperCase):
    settings = {"spool_stream_bytes": 256 * KIB, "spool_total_bytes": 1 << 20}

    def spool(self, script, **args):
        return self.sh(script, overflow="spool", **args)["id"]

    def test_b029_spooled_output_is_read_back_from_its_start(self):
        """More than the ring and less than the bound: everything is readable from offset 0."""
        process = self.spool("yes 0123456789abcde | head -c 200000", ring_bytes=4096)
        record = self.ended(process)
        expected = (b"0123456789abcde\n" * 12500)[:200000]
        self.assertEqual(self.output(process), expected)
        stream = record["streams"]["stdout"]
        self.assertEqual((stream["start"], stream["bytes_dropped"]), (0, 0))
        self.assertFalse(stream["spool"]["truncated"])
        # The disk is written behind the ring, by a helper: the last bytes may be on their way.
        procs.wait_until(lambda: self.status(process)["streams"]["stdout"]["spool"]["bytes"] == 200000, "all is on disk")

    def test_b029_bound_per_stream(self):
        """At the bound the spool stops: truncated, counting goes on, the end is told, the process is left alone."""
        process = self.spool("head -c 1000000 /dev/zero; exit 3", ring_bytes=4096)
        record = self.ended(process)
        stream = record["streams"]["stdout"]
        self.assertEqual((record["exit"]["code"], record["end_cause"]), (3, "self_exit"))
        self.assertEqual(stream["end"], 1000000)
        self.assertTrue(stream["spool"]["truncated"])
        self.assertLessEqual(stream["spool"]["bytes"], 256 * KIB)
        self.assertGreater(stream["bytes_dropped"], 0)

    def test_b029_bound_over_all(self):
        """The total bound holds over many processes."""
        first = self.ended(self.spool("head -c 200000 /dev/zero", ring_bytes=4096))
        self.assertFalse(first["streams"]["stdout"]["spool"]["truncated"])
        ids = [self.spool("head -c 200000 /dev/zero", ring_bytes=4096) for _ in range(7)]
        spools = [self.ended(process)["streams"]["stdout"]["spool"] for process in ids]
        self.assertTrue(any(spool["truncated"] for spool in spools))
        self.assertLessEqual(self.client.call("info")["memory"]["spool_bytes"], 1 << 20)
        self.assertEqual(self.ended(self.sh("echo fine")["id"])["exit"]["code"], 0)

    def spool_bytes(self):
        return self.client.call("info")["memory"]["spool_bytes"]

    def spooled(self, client, size):
        """A process that ended, with so much of its output on disk."""
        argv = ["head", "-c", str(size), "/dev/zero"]
        process = client.call("spawn", argv=argv, overflow="spool", ring_bytes=4096)["process"]["id"]
        client.call("wait", id=process)
        spool = client.call("status", id=process)["process"]["streams"]["stdout"]["spool"]
        self.assertFalse(spool["truncated"])
        return process

    def test_b029_room_comes_back(self):
        """What was released gives its room back to the last byte, so that as much fits again; what stays keeps its own."""
        kept = self.spooled(self.client, 100000)
        procs.wait_until(lambda: self.spool_bytes() >= 100000, "it is on disk")
        each = self.spool_bytes()
        for _ in range(3):
            ids = [self.spooled(self.client, 200000) for _ in range(2)]
            procs.wait_until(lambda: self.spool_bytes() == 5 * each, "all is on disk")
            for process in ids:
                self.client.call("release", id=process)
            procs.wait_until(lambda: self.spool_bytes() == each, "the room is back")
        self.assertEqual(len(self.output(kept)), 100000)
        self.client.call("release", id=kept)
        procs.wait_until(lambda: self.spool_bytes() == 0, "all of it is back")

    def test_b029_receipts_have_no_room(self):
        """Whose record is shed gives back its own room, and nobody else's goes for it."""
        who = self.keeper.agent("main/a", max_finished=1)
        kept = self.spooled(self.client, 100000)
        procs.wait_until(lambda: self.spool_bytes() >= 100000, "it is on disk")
        each = self.spool_bytes()
        ids = []
        for _ in range(6):
            ids.append(self.spooled(who, 200000))
            procs.wait_until(lambda: self.spool_bytes() == 3 * each, "the room of the one before is back")
        self.assertTrue(all(who.call("status", id=process)["process"]["receipt"] for process in ids[:-1]))
        self.assertEqual(len(self.output(ids[-1], client=who)), 200000)
        self.assertEqual(len(self.output(kept)), 100000)

    def test_b029_quota_kill_only_where_asked(self):
        """With on_output_quota kill the process ends with cause output_quota; what came before stays readable."""
        process = self.spool("echo first; while :; do head -c 65536 /dev/zero; done", on_output_quota="kill")
        record = self.ended(process)
        self.assertEqual(record["end_cause"], "output_quota")
        self.assertTrue(record["streams"]["stdout"]["spool"]["truncated"])
        reply = self.client.reply("read", {"id": process, "cursor": 0, "max": 6})
        self.assertEqual(reply.bytes(), b"first\n")

    def test_b034_paths_modes_and_contents(self):
        """The folder under spool/ is 0700 with a name nobody guesses; the three files hold the streams and all in order."""
        process = self.spool("echo o; read x; echo e >&2", stdin="pipe")
        self.wait_output(process, b"o\n")
        self.client.reply("write_stdin", {"id": process}, b"\n")
        record = self.ended(process)
        out, err, both = (Path(record[name]) for name in ("stdout_path", "stderr_path", "output_path"))
        folder = out.parent
        self.assertEqual(folder.parent, self.keeper.place.state / "spool")
        self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)
        self.assertGreaterEqual(len(folder.name), 16)
        procs.wait_until(lambda: both.read_bytes() == b"o\ne\n", "all is on disk")
        self.assertEqual((out.read_bytes(), err.read_bytes(), both.read_bytes()), (b"o\n", b"e\n", b"o\ne\n"))
        for path in (out, err, both):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0)
        plain = self.spawn("true")
        self.assertEqual([plain[name] for name in ("stdout_path", "stderr_path", "output_path")], [None] * 3)

    def test_b034_files_live_as_long_as_the_record(self):
        """release removes the files; so does an orderly stop."""
        process = self.spool("echo o")
        path = Path(self.ended(process)["stdout_path"])
        self.assertTrue(path.exists())
        self.client.call("release", id=process)
        procs.wait_until(lambda: not path.exists(), "the file goes with its record")
        other = Path(self.ended(self.spool("echo o"))["stdout_path"])
        self.assertTrue(other.exists())
        self.client.call("shutdown", grace_ms=0)
        self.expect_end(self.keeper, [0])
        spool = self.keeper.place.state / "spool"
        self.assertEqual(list(spool.iterdir()) if spool.exists() else [], [])

    def test_b034_names_differ_between_keepers(self):
        """Two keepers do not share a folder's name."""
        other = self.start_keeper(self.settings)
        first = Path(self.ended(self.spool("echo o"))["stdout_path"]).parent.name
        process = other.clients[0].call("spawn", argv=["true"], overflow="spool")["process"]
        second = Path(process["stdout_path"]).parent.name
        self.assertNotEqual(first, second)

    def test_b034_links_are_not_followed(self):
        """A symbolic link planted in place of a spool file gets nothing written through it and nothing read from it."""
        victim = self.keeper.place.dir / "victim"
        victim.write_text("precious")
        process = self.spool("read x; echo data", stdin="pipe")
        path = Path(self.status(process)["stdout_path"])
        path.unlink(missing_ok=True)
        path.symlink_to(victim)
        self.client.reply("write_stdin", {"id": process}, b"\n")
        self.ended(process)
        self.assertEqual(victim.read_text(), "precious")
        self.assertNotIn(b"precious", self.output(process))

    def test_b034_linked_spool_folder_is_not_used(self):
        """A state folder whose spool/ is a link elsewhere: nothing lands behind the link."""
        place = self.keeper.place
        self.client.call("shutdown", grace_ms=0)
        self.expect_end(self.keeper, [0])
        elsewhere = place.dir / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "keep").write_text("mine")
        spool = place.state / "spool"
        if spool.exists():
            spool.rmdir()
        place.state.mkdir(exist_ok=True)
        spool.symlink_to(elsewhere)
        keeper = self.start_keeper(self.settings, place=place, ready=False)
        try:
            client = keeper.wait_ready()
            client.call("spawn", argv=["echo", "x"], overflow="spool")
        except Exception:  # refusing to start, or to spawn, is as good
            pass
        if keeper.process.poll() is not None:
            keeper.ended = True
        self.assertEqual(os.listdir(elsewhere), ["keep"])

    def test_b034_leftovers_are_removed_at_start(self):
        """What a killed keeper left under spool/ is gone once the next one listens."""
        path = Path(self.ended(self.spool("echo o"))["stdout_path"])
        self.keeper.kill()
        self.expect_end(self.keeper)
        self.assertTrue(path.exists())
        self.start_keeper(self.settings, place=self.keeper.place)
        procs.wait_until(lambda: not path.exists() and not path.parent.exists(), "leftovers are removed")

    def test_b034_reader_in_progress_completes(self):
        """A read of spooled output that is under way when the record is released still gets its bytes."""
        process = self.spool("yes 0123456789abcde | head -c 200000", ring_bytes=4096)
        self.ended(process)
        # On one connection requests are taken in order, and the read has to ask the disk.
        request = self.client.submit("read", {"id": process, "cursor": 0, "max": 100000})
        release = self.client.submit("release", {"id": process})
        self.assertTrue(self.client.finish(release).result["released"])
        self.assertEqual(len(self.client.finish(request).bytes()), 100000)

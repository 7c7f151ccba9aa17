"""The chain of the audit: every changed, removed, moved or added line is found, also at its ends and over files (B-130)."""

import hashlib
import json

from lib.records import RecordsCase


class ChainTest(RecordsCase):
    def setUp(self):
        super().setUp()
        for number in range(4):
            self.ended(self.spawn("true", str(number))["id"])
        # An end is written after those who wait for it have been answered, and carried to the file
        # before the audit is read.
        self.assertEqual(len(self.audit_lines("end")), 4)
        self.path = self.audit_path()
        self.good = self.path.read_bytes()
        self.lines = self.good.splitlines(keepends=True)
        self.assertGreaterEqual(len(self.lines), 8)

    def verify(self):
        return self.client.call("audit_verify")

    def found(self, lines, what):
        """With these lines instead of the good ones verify names a fault; with the good ones back it does not."""
        with self.subTest(what=what):
            self.path.write_bytes(b"".join(lines))
            report = self.verify()
            self.assertFalse(report["good"], report)
            self.assertTrue(report["fault"], report)
            self.path.write_bytes(self.good)
            report = self.verify()
            self.assertTrue(report["good"], report)

    def test_b130_good(self):
        """Left alone it is good, with its numbers; the hash of a line is what the format says."""
        report = self.verify()
        self.assertEqual((report["good"], report["lines"], report["files"]), (True, len(self.lines), 1))
        self.assertEqual((report["first"], report["last"]), (1, len(self.lines)))
        previous = "0" * 64
        for line in self.lines:
            text, value = line.rstrip(b"\n"), json.loads(line)
            self.assertEqual(value["prev"], previous)
            self.assertEqual(value["hash"], hashlib.sha256(text[: text.rindex(b',"hash":')]).hexdigest())
            previous = value["hash"]

    def test_b130_changed(self):
        """One changed character in each line, in each part of it, is found and the line is named."""
        for number, line in enumerate(self.lines):
            for at in (1, len(line) // 3, len(line) // 2, len(line) - 4):
                changed = line[:at] + (b"0" if line[at : at + 1] != b"0" else b"1") + line[at + 1 :]
                lines = [*self.lines[:number], changed, *self.lines[number + 1 :]]
                self.found(lines, f"line {number + 1}, byte {at}")
        self.path.write_bytes(self.good.replace(b'"true"', b'"fals"', 1))
        report = self.verify()
        first = next(n for n, line in enumerate(self.lines, 1) if b'"true"' in line)
        self.assertEqual((report["file"], report["line"]), ("audit.log", first))

    def test_b130_removed(self):
        """Each line, the first and the last too, several of them, and all of them."""
        for number in range(len(self.lines)):
            self.found(self.lines[:number] + self.lines[number + 1 :], f"without line {number + 1}")
        self.found(self.lines[2:], "without the first two")
        self.found(self.lines[:-3], "without the last three")
        self.found([], "empty")

    def test_b130_swapped(self):
        """Two lines that changed places, neighbours and the two ends."""
        pairs = [(n, n + 1) for n in range(len(self.lines) - 1)] + [(0, len(self.lines) - 1)]
        for a, b in pairs:
            lines = list(self.lines)
            lines[a], lines[b] = lines[b], lines[a]
            self.found(lines, f"{a + 1} and {b + 1}")

    def test_b130_duplicated_and_inserted(self):
        """A line twice, and foreign lines, before, between and after."""
        foreign = b'{"seq":1,"at":"2026-01-01T00:00:00.000Z","kind":"spawn","prev":"","hash":""}\n'
        for number in range(len(self.lines)):
            self.found([*self.lines[: number + 1], *self.lines[number:]], f"line {number + 1} twice")
        for number in range(len(self.lines) + 1):
            for extra in (foreign, b"\n", b"garbage\n", b"\xff\0\n", b"[" * 5000 + b"\n"):
                self.found([*self.lines[:number], extra, *self.lines[number:]], f"{extra[:8]} before line {number + 1}")

    def test_b130_chain_made_anew(self):
        """Whoever changes a line and computes all hashes behind it again is found by what the keeper remembers."""

        def chained(lines):
            made, previous = [], "0" * 64
            for number, line in enumerate(lines, 1):
                value = {**line, "seq": number, "prev": previous}
                del value["hash"]
                text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)[:-1]
                previous = hashlib.sha256(text.encode()).hexdigest()
                made.append(f'{text},"hash":"{previous}"}}\n'.encode())
            return made

        lines = [json.loads(line) for line in self.lines]
        self.assertEqual(chained(lines), self.lines, "the control: unchanged, it is the same chain")
        self.found(chained(lines[:-2]), "shortened at the end")
        self.found(chained(lines[1:]), "shortened at the beginning")
        lines[0]["at"] = "2020-01-01T00:00:00.000Z"
        self.found(chained(lines), "changed at the beginning")

    def test_b130_line_with_a_hash_of_its_own(self):
        """A line in the middle that was rewritten with its own hash made anew is good in itself: the next one's prev shows it."""
        for number in range(len(self.lines) - 1):
            line = self.lines[number]
            text = line[: line.rindex(b',"hash":')].replace(b'"at":"2', b'"at":"1', 1)
            digest = hashlib.sha256(text).hexdigest()
            made = text + f',"hash":"{digest}"}}\n'.encode()
            self.assertNotEqual(made, line)
            lines = [*self.lines[:number], made, *self.lines[number + 1 :]]
            self.found(lines, f"line {number + 1}")
            self.path.write_bytes(b"".join(lines))
            self.assertIn(self.verify()["line"], (number + 1, number + 2))
        self.path.write_bytes(self.good)

    def test_b130_file_gone(self):
        """A file that is not there any more is found."""
        kept = self.path.with_suffix(".away")
        self.path.rename(kept)
        self.assertFalse(self.verify()["good"])
        kept.rename(self.path)
        self.assertTrue(self.verify()["good"])

    def test_b130_cut_while_the_keeper_was_away(self):
        """Lines that went at the end between two keepers are found by the next one."""
        self.shut_down()
        data = self.path.read_bytes().splitlines(keepends=True)
        self.path.write_bytes(b"".join(data[:-1]))
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.assertFalse(self.verify()["good"])
        # It stays known: further lines would otherwise cover it.
        self.ended(self.spawn("true")["id"])
        self.shut_down()
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.assertFalse(self.verify()["good"])

    def test_b130_a_fault_at_start_is_told_until_acknowledged(self):
        """Log and info tell it; acknowledging it leaves a line, and the chain is good from there on, also for the next keeper."""
        self.test_b130_cut_while_the_keeper_was_away()
        fault = self.client.call("info")["audit"]["fault"]
        self.assertIn("missing", fault)
        self.wait_log(fault)
        self.assertTrue(self.client.call("audit_verify", acknowledge=True)["good"])
        self.assertEqual((self.audit_lines()[-1]["kind"], self.audit_lines()[-1]["fault"]), ("acknowledged", fault))
        self.assertIsNone(self.client.call("info")["audit"]["fault"])
        self.shut_down()
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.assertTrue(self.verify()["good"])

    def test_b130_a_lost_database_is_told(self):
        """Without it nobody knows how long the audit was; agents and tokens are gone with it. That is no new beginning in silence."""
        self.ended(self.spawn("true")["id"])
        self.shut_down()
        for path in self.place.state.glob("records.db*"):
            path.unlink()
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.assertIn("records.db was missing", self.client.call("info")["audit"]["fault"])
        self.assertFalse(self.verify()["good"])

    def test_b130_refusal_at_the_end_is_missed_too(self):
        """A last line that belongs to no process is missed as well when it is gone."""
        with self.refused("invalid_input"):
            self.client.call("spawn", argv=[])
        self.test_b130_cut_while_the_keeper_was_away()

    def test_b130_torn_line(self):
        """A line that was cut in the middle, as by a loss of power, stops nothing: the keeper starts, goes on, and says so."""
        self.keeper.kill()
        self.expect_end(self.keeper)
        with open(self.path, "ab") as file:
            file.write(b'{"seq":99,"at":"2026-')
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.ended(self.spawn("true")["id"])
        self.assertIn("damage", [line["kind"] for line in self.audit_lines()])
        kept = b"".join(path.read_bytes() for path in self.place.state.glob("audit*.log"))
        self.assertIn(b'{"seq":99,"at":"2026-', kept)


class RotationTest(RecordsCase):
    settings = {"audit_max_bytes": 4096, "audit_files": 3}

    def files(self):
        return sorted(path.name for path in self.place.state.glob("audit-*.log"))

    def test_b130_rotation_keeps_the_chain(self):
        """Small files: full ones are put aside, the oldest go, the chain is whole over all that are left."""
        while self.client.call("info")["audit"]["last"] < 100:
            self.ended(self.spawn("true")["id"])
        self.assertEqual(len(self.files()), 3)
        for name in (*self.files(), "audit.log"):
            self.assertLessEqual((self.place.state / name).stat().st_size, 4096)
        report = self.client.call("audit_verify")
        self.assertTrue(report["good"], report)
        self.assertEqual(report["files"], 4)
        self.assertGreater(report["first"], 1)
        lines = self.audit_lines()
        self.assertEqual([line["seq"] for line in lines], list(range(report["first"], report["last"] + 1)))
        self.assertEqual(self.files()[0], f"audit-{report['first']:020d}.log")
        few = self.client.call("audit_tail", count=20)["lines"]
        self.assertEqual(few, lines[-20:])
        self.restart()
        self.assertTrue(self.client.call("audit_verify")["good"])

    def test_b130_bounds_change_while_it_runs(self):
        """A reload changes when files are full and how many stay; the chain is whole over it."""
        self.settings = {}
        self.restart()
        while self.client.call("info")["audit"]["last"] < 30:
            self.ended(self.spawn("true")["id"])
        self.assertEqual(self.files(), [])
        self.write_conf("[keeper]\naudit_max_bytes = 4K\naudit_files = 2\n")
        self.client.call("reload")
        while self.client.call("info")["audit"]["last"] < 100:
            self.ended(self.spawn("true")["id"])
        self.assertEqual(len(self.files()), 2)
        self.assertTrue(self.client.call("audit_verify")["good"])

    def test_b130_faults_in_old_files(self):
        """A changed line in a full file, one of them gone, and two that changed places are found."""
        while len(self.files()) < 3:
            self.ended(self.spawn("true")["id"])
        self.assertTrue(self.client.call("audit_verify")["good"])
        paths = [self.place.state / name for name in self.files()]
        kept = [path.read_bytes() for path in paths]
        for number, (path, data) in enumerate(zip(paths, kept)):
            path.write_bytes(data.replace(b'"true"', b'"fals"', 1))
            report = self.client.call("audit_verify")
            self.assertEqual((report["good"], report["file"]), (False, path.name))
            path.unlink()
            self.assertFalse(self.client.call("audit_verify")["good"], f"file {number} gone")
            path.write_bytes(data)
            self.assertTrue(self.client.call("audit_verify")["good"])
        paths[0].write_bytes(kept[1]), paths[1].write_bytes(kept[0])
        self.assertFalse(self.client.call("audit_verify")["good"])

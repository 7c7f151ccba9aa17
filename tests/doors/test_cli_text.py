"""Output as text: --text of coop logs and coop run, and utf8_valid of every line of --json."""

import json

from lib import procs
from lib.cli import CliCase
from lib.place import patience

# Octal for printf: the two halves of é, a euro sign, a byte that is never UTF-8.
E_HEAD, E_TAIL, EURO, NEVER = "\\303", "\\251", "\\342\\202\\254", "\\377"


def outputs(lines):
    return [line for line in lines if line["type"] == "output"]


class TextTest(CliCase):
    def check_text(self, lines, whole):
        """Each line is text with its validity, never base64; the offsets join without a hole and count original bytes."""
        position, text = 0, ""
        for line in outputs(lines):
            self.assertNotIn("base64", line)
            self.assertEqual(line["offset"], position, line)
            raw = whole[line["offset"]:line["next"]]
            self.assertEqual(line["text"], raw.decode(errors="replace"))
            self.assertIs(line["utf8_valid"], raw == line["text"].encode())
            position = line["next"]
            text += line["text"]
        self.assertEqual(position, len(whole))
        self.assertEqual(text, whole.decode(errors="replace"))

    def test_b031_invalid_bytes_become_replacement_characters(self):
        """Invalid bytes are U+FFFD with utf8_valid false, the read does not fail, and offsets count original bytes."""
        script = f"printf 'a{NEVER}b\\355\\240\\200c\\342\\202d{EURO}\\n'; sleep 0.2; printf 'good {EURO}\\n'; " \
                 f"sleep 0.2; printf 'end\\342\\202'"
        whole = b"a\xffb\xed\xa0\x80c\xe2\x82d\xe2\x82\xac\ngood \xe2\x82\xac\nend\xe2\x82"
        self.check_text(self.json_lines("run", "--text", "--", "sh", "-c", script), whole)
        process = self.detached("sh", "-c", script)
        self.coop("wait", process)
        self.check_text(self.json_lines("logs", "--text", process), whole)
        self.check_text(self.json_lines("logs", "--text", "-f", process), whole)
        valid = [line["utf8_valid"] for line in outputs(self.json_lines("run", "--text", "--", "printf", "fine é"))]
        self.assertEqual(valid, [True])

    def test_b031_half_a_character_at_a_live_end_is_held_back(self):
        """A read stops before it, `next` too; a read from there gives it whole, and at the stream's end it is U+FFFD."""
        script = f"printf 'x\\377y{E_HEAD}'; read a; printf '{E_TAIL}z{E_HEAD}'; read b"
        process = self.detached("sh", "-c", script, options=["-i"])
        end = lambda: self.json("status", process)["streams"]["stdout"]["end"]
        procs.wait_until(lambda: end() == 4, "the first half")
        first = outputs(self.json_lines("logs", "--text", "--stream", "stdout", process))
        self.assertEqual([(o["offset"], o["next"], o["text"], o["utf8_valid"]) for o in first], [(0, 3, "x\ufffdy", False)])
        again = ["logs", "--text", "--stream", "stdout", "--from", first[-1]["next"], process]
        self.assertEqual(outputs(self.json_lines(*again)), [])
        self.coop("stdin", process, data=b"\n")
        procs.wait_until(lambda: end() == 7, "the second half")
        second = outputs(self.json_lines(*again))
        self.assertEqual([(o["offset"], o["next"], o["text"], o["utf8_valid"]) for o in second], [(3, 6, "éz", True)])
        again[-2] = second[-1]["next"]
        self.assertEqual(outputs(self.json_lines(*again)), [])
        self.coop("stdin", "--close", process, data=b"\n")
        self.coop("wait", process)
        last = outputs(self.json_lines(*again))
        self.assertEqual([(o["offset"], o["next"], o["text"], o["utf8_valid"]) for o in last], [(6, 7, "\ufffd", False)])

    def test_b031_follower_gets_the_character_whole(self):
        """Whoever follows sees nothing of a half until its rest has come."""
        process = self.detached("sh", "-c", f"printf 'x{E_HEAD}'; read a; printf '{E_TAIL}{NEVER}'", options=["-i"])
        follower = self.start("logs", "--json", "--text", "-f", process)
        line = json.loads(follower.stdout.readline())
        self.assertEqual((line["offset"], line["next"], line["text"], line["utf8_valid"]), (0, 1, "x", True))
        self.coop("stdin", process, data=b"\n")
        rest, _ = follower.communicate(timeout=patience(20))
        lines = outputs(map(json.loads, rest.splitlines()))
        self.assertEqual([(o["offset"], o["next"]) for o in lines], [(1, 4)])
        self.assertEqual([(o["text"], o["utf8_valid"]) for o in lines], [("é\ufffd", False)])

    def test_bytes_without_text(self):
        """Without --text the lines keep every byte, and say which of them are text."""
        process = self.detached("printf", f"a{NEVER}")
        self.coop("wait", process)
        for lines in (self.json_lines("run", "--", "printf", f"a{NEVER}"), self.json_lines("logs", process)):
            found = [(o["offset"], o.get("text"), o.get("base64"), o["utf8_valid"]) for o in outputs(lines)]
            self.assertEqual(found, [(0, "a", None, True), (1, None, "/w==", False)])

    def test_text_needs_json(self):
        """--text is a form of the lines of --json; where there are none it is refused."""
        process = self.detached("true")
        self.assertIn("--json", self.refusal("logs", "--text", process, code=2))
        self.assertIn("--json", self.refusal("run", "--text", "true", code=125))
        out, _ = self.coop("run", "--json", "--text", "-d", "true", code=125)
        self.assertEqual(json.loads(out)["error"]["code"], "usage")
        self.assertIn("--text", self.out("help", "logs").decode())
        self.assertIn("--text", self.out("help", "run").decode())

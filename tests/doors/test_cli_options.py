"""Wrong command lines: each is refused in the words that were typed, also as JSON, and nothing is ignored in silence."""

import json

from lib.cli import CliCase


class RangeTest(CliCase):
    def test_ranges_in_the_words_of_the_option(self):
        """A value that the keeper refuses is named by its option, with the bound as one would type it."""
        process = self.detached("sleep", "300")
        cases = [
            (("run", "-d", "--idle-timeout", "0", "true"), 125, "--idle-timeout: at least 1ms"),
            (("run", "--lifetime", "0", "true"), 125, "--lifetime: at least 1ms"),
            (("run", "--timeout", "99999d", "true"), 125, "--timeout: at most 3650d"),
            (("run", "--timeout", "1s", "--timeout-grace", "31s", "true"), 125, "--timeout-grace: at most 30s"),
            (("run", "-t", "--cols", "0", "true"), 125, "--cols: at least 1"),
            (("run", "-t", "--rows", "65536", "true"), 125, "--rows: at most 65535"),
            (("stop", process, "--grace", "31s"), 1, "--grace: at most 30s"),
            (("shutdown", "--grace", "31s"), 1, "--grace: at most 30s"),
            (("wait", process, "--timeout", "99999d"), 125, "--timeout: at most 3650d"),
            (("ps", "--limit", "0"), 1, "--limit: at least 1"),
            (("run", "--use-shell", "nosuch", "true"), 125, "--use-shell: there is no such shell here (coop shells"),
        ]
        for args, code, wanted in cases:
            with self.subTest(args=args):
                text = self.refusal(*args, code=code)
                self.assertIn(f"coop: {wanted}", text)
                self.assertNotIn("_ms", text)
                self.assertIn(wanted, self.json(*args, code=code)["error"]["message"])

    def test_details_keep_the_field(self):
        """For programs, details of the JSON error still name the argument of the operation."""
        error = self.json("run", "-d", "--idle-timeout", "0", "true", code=125)["error"]
        self.assertEqual((error["code"], error["details"]["field"]), ("invalid_input", "idle_timeout_ms"))

    def test_arguments_of_an_operation_are_one_object(self):
        """What stands behind it does not become part of the request, whatever numbers are in it."""
        for text in ('{"limit": 1e999}, "data": 5, "x": {}', '{"limit": 99999999999999999999}, "op": "shutdown", "x": {}', '{} {}', '{"a": 1e999', "[1e999]"):
            _, err = self.coop("op", "history", text, code=1)
            self.assertIn(b"object", err, text)
        _, err = self.coop("op", "history", '{"limit": 1e999}', code=1)
        self.assertIn(b"limit", err)

    def test_op_speaks_of_fields(self):
        """op is given fields, so its errors name them."""
        out, err = self.coop("op", "stop", '{"id": "x", "grace_ms": 31000}', code=1)
        self.assertIn(b"grace_ms must be between 0 and 30000", err)
        self.assertIn(b"grace_ms", out)


class TogetherTest(CliCase):
    def test_options_that_do_nothing_are_refused(self):
        """An option without the one that gives it a meaning, or against another, is refused before anything is started."""
        cases = [
            (("--idle-timeout", "300ms"), ("-d", "follows the output")),
            (("--timeout-grace", "1s"), ("--timeout-grace goes with --timeout",)),
            (("--cols", "50"), ("--cols goes with -t",)),
            (("--rows", "50"), ("--rows goes with -t",)),
            (("-t", "--merge"), ("--merge goes without -t",)),
            (("--login",), ("--login goes with --shell",)),
            (("-i", "-n"), ("-i and -n",)),
            (("--on-output-quota", "kill"), ("--overflow spool",)),
        ]
        for options, words in cases:
            with self.subTest(options=options):
                text = self.refusal("run", *options, "--", "true", code=125)
                for word in words:
                    self.assertIn(word, text)
                out, _ = self.coop("run", "--json", *options, "--", "true", code=125)
                self.assertEqual(json.loads(out)["error"]["code"], "usage")
        self.assertFalse(self.place.socket.exists())

    def test_idle_timeout_is_explained(self):
        """help says what the refusal says; with -d it is taken, and ends a quiet command that nobody follows."""
        self.assertIn("while somebody follows its output", " ".join(self.out("help", "run").decode().split()))
        process = self.detached("sleep", "300", options=["--idle-timeout", "300ms"])
        record = self.json("wait", process, code=143)["process"]
        self.assertEqual(record["end_cause"], "idle")

    def test_ps_quiet_json(self):
        """ps -q --json is a list of ids; --full is for whole records, and refused where there are none."""
        process = self.detached("sleep", "300")
        self.assertEqual(self.json("ps", "-q"), [process])
        self.assertIn("env_names", self.json("ps", "--full")[0])
        for options in (["--full"], ["--full", "-q"], ["--full", "-q", "--json"]):
            self.coop("ps", *options, code=2)


class JsonErrorTest(CliCase):
    def test_json_anywhere_among_the_options(self):
        """Where --json stands, before or behind what is wrong, the error is JSON; behind the command it is the command's."""
        cases = [("ps", "--bogus", "--json"), ("ps", "--json", "--bogus"), ("ps", "-Z", "--json"), ("stop", "--json"),
                 ("logs", "x", "y", "--json"), ("stop", "x", "--grace", "soon", "--json"), ("wait", "--json", "x", "--timeout"),
                 ("ps", "--state=odd", "--json"), ("run", "--bogus", "--json", "--", "true"), ("run", "--timeout", "soon", "--json", "true"),
                 ("nosuchverb", "--json"), ("--nosuchoption", "--json"), ("keeper", "--json")]
        for args in cases:
            with self.subTest(args=args):
                out, err = self.coop(*args, code=125 if args[0] == "run" else 2)
                self.assertEqual(json.loads(out)["error"]["code"], "usage")
                self.assertEqual(err.count(b"\n"), 1)
        out, _ = self.coop("run", "--bogus", "--", "true", "--json", code=125)
        self.assertEqual(out, b"")
        self.assertFalse(self.place.socket.exists())

    def test_first_fault_is_told(self):
        """Of several faults the first is named."""
        text = self.refusal("ps", "--bogus", "--state=odd", "--worse", code=2)
        self.assertIn("--bogus", text)
        self.assertNotIn("--worse", text)

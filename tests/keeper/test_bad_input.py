"""Every operation with wrong arguments: a refusal that names the field, and the keeper goes on.

Operations and their arguments come from `describe`, so that a new one is tested without a line here.
"""

from lib.client import KeeperError
from lib.keeper import KeeperCase

REFUSALS = ("invalid_input", "too_large")
HUGE = "x" * (7 << 20)
LARGEST = (1 << 63) - 1
OPERATIONS = """spawn list status wait read follow write_stdin close_stdin resize signal kill stop release keep gc info metrics shutdown
list_shells describe login ceiling agent_add agent_list agent_show agent_set agent_remove token_new token_list token_revoke session_new session_end
session_list cancel history follow_events audit_tail audit_verify reload check doctor freeze thaw completions reader wait_port hold note""".split()
# Their ids are not those of processes.
OTHER_IDS = ("session_end", "token_revoke")


def types_of(schema):
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


ANY_LENGTH = "tag why task label state agent session id ids after before command token principal".split()
SAMPLES = {
    "string": "text",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
}


def wrong_values(schema):
    """Values that the schema forbids, each with a word for it."""
    allowed = set(types_of(schema))
    if "number" in allowed:
        allowed.add("integer")
    for kind, sample in SAMPLES.items():
        if kind not in allowed:
            yield f"{kind}", sample
    if "integer" in allowed:
        for bound, step in (("minimum", -1), ("maximum", 1)):
            if bound in schema and abs(schema[bound]) < 1 << 53:
                yield f"beyond {bound}", schema[bound] + step
        yield "not whole", 1.5
    if "enum" in schema:
        yield "no choice", "no-such-choice"
        yield "empty choice", ""
        yield "NUL", schema["enum"][0] + "\0"
    elif "string" in allowed and "integer" not in allowed:
        yield "NUL", "a\0b"
        if "maxLength" in schema:
            yield "too long", "x" * (schema["maxLength"] + 1)
    if "array" in allowed and "items" in schema:
        yield "wrong element", [7]
        yield "null element", [None]
        yield "NUL element", ["a\0b"]
        if "enum" in schema["items"]:
            yield "no choice", ["no-such-choice"]
    if "object" in allowed and isinstance(schema.get("additionalProperties"), dict):
        yield "wrong member", {"stdout": []}
        yield "null member", {"stdout": None}


class BadInputTest(KeeperCase):
    def setUp(self):
        super().setUp()
        self.canary = self.spawn("cat", stdin="pipe", tag="canary")["id"]
        self.client.call("agent_add", agent="main/tester")
        self.fed = b""
        described = self.client.call("describe")["operations"]
        self.operations = {operation["name"]: operation for operation in described}

    def assert_undisturbed(self):
        """The canary process and an own connection still work, and nothing else was started."""
        self.client.reply("write_stdin", {"id": self.canary}, b"tweet\n")
        self.fed += b"tweet\n"
        self.wait_output(self.canary, self.fed)
        listed = self.client.call("list", include_finished=True)["processes"]
        self.assertEqual([record["id"] for record in listed], [self.canary])
        self.assertEqual([agent["path"] for agent in self.client.call("agent_list")["agents"]], ["main", "main/tester"])
        self.assertEqual(self.client.call("token_list")["tokens"], [])
        self.assertEqual(self.client.call("session_list")["sessions"], [])

    def valid_args(self, name):
        """Arguments that are right, for one of them to be made wrong."""
        schema = self.operations[name]["args"]
        values = {"text": "x", "id": self.canary, "signal": "CONT", "cols": 80, "rows": 24, "argv": ["true"], "ids": [self.canary],
                  "agent": "main/tester", "token": "coop_1_x", "call_ids": ["none"], "reader": "me", "port": 80}
        args = {field: values[field] for field in schema.get("required", [])}
        if name == "token_revoke":
            args["id"] = 999999
        if name in ("spawn", "check"):
            args["argv"] = ["true"]
        if name == "status":
            args["id"] = self.canary
        return args

    def assert_refused(self, name, args, field, word):
        with self.subTest(op=name, field=field, wrong=word):
            with self.assertRaises(KeeperError) as caught:
                self.client.call(name, **args)
            error = caught.exception
            self.assertIn(error.code, REFUSALS, error)
            named = error.details.get("field", "")
            self.assertTrue(named == field or named.startswith((field + "[", field + ".")), f"{named!r} is not {field!r}")
            self.assertIn(field.split("[")[0][:50], error.message)
            self.assertLess(len(error.message), 1000)

    def test_describe_has_every_operation(self):
        """The table has all operations, each with schemas, and no other."""
        self.assertEqual(sorted(self.operations), sorted(OPERATIONS))
        for name, operation in self.operations.items():
            with self.subTest(op=name):
                for part in ("args", "result"):
                    self.assertEqual(operation[part]["type"], "object")
                    self.assertFalse(operation["args"].get("additionalProperties", True))
                self.assertTrue(operation["summary"])
                self.assertIsInstance(operation["data"], int)

    def test_wrong_types_ranges_and_choices(self):
        """Each argument of each operation with every kind of wrong value."""
        for name, operation in self.operations.items():
            for field, schema in operation["args"]["properties"].items():
                for word, value in wrong_values(schema):
                    args = self.valid_args(name) | {field: value}
                    if name == "status" and field == "ids":
                        del args["id"]
                    self.assert_refused(name, args, field, word)
        self.assert_undisturbed()

    def test_missing_required(self):
        """Each required argument left out, and given as null."""
        for name, operation in self.operations.items():
            for field in operation["args"].get("required", []):
                args = self.valid_args(name)
                del args[field]
                self.assert_refused(name, args, field, "missing")
                self.assert_refused(name, args | {field: None}, field, "null")
        self.assert_refused("spawn", {}, "argv", "missing")
        self.assert_undisturbed()

    def test_unknown_arguments(self):
        """An argument that does not exist, also one that differs in case or has a strange name."""
        for name in self.operations:
            for field in ("no_such_argument", "ID", "", "id ", "ä", "__proto__"):
                with self.subTest(op=name, field=field), self.assertRaises(KeeperError) as caught:
                    self.client.call(name, **(self.valid_args(name) | {field: 1}))
                self.assertEqual(caught.exception.code, "invalid_input")
                self.assertEqual(caught.exception.details.get("field"), field)
        self.assert_undisturbed()

    def test_huge_values(self):
        """Strings, lists and names of many megabytes are refused by name; no answer repeats them."""
        for name, operation in self.operations.items():
            for field, schema in operation["args"]["properties"].items():
                kinds = types_of(schema)
                # An id or a token that is only long is nobody's; a tag, why or task is cut, not refused.
                if "string" in kinds and field in ANY_LENGTH:
                    continue
                args = self.valid_args(name)
                if "string" in kinds:
                    self.assert_refused(name, args | {field: HUGE}, field, "huge string")
                elif "integer" in kinds:
                    for huge in (LARGEST, LARGEST + 1, -LARGEST - 2, 10**30):
                        self.assert_refused(name, args | {field: huge}, field, "huge number")
        self.assert_refused("spawn", {"argv": ["true", HUGE]}, "argv", "huge argument")
        self.assert_refused("spawn", {"argv": ["x"] * 1500000}, "argv", "huge list")
        self.assert_refused("spawn", {"argv": ["true"], "env": {"A": HUGE}}, "env", "huge value")
        self.assert_refused("spawn", {"argv": ["true"], "env": {f"N{i}": "" for i in range(5000)}}, "env", "many")
        self.assert_refused("spawn", {"argv": ["x" * 300000]}, "argv[0]", "huge program")
        self.assert_refused("spawn", {"argv": ["true", "x" * 131072]}, "argv[1]", "argument that the kernel refuses")
        self.assert_refused("spawn", {"argv": ["true"], "env": {"N" * 300000: "x"}}, "env", "huge name")
        with self.assertRaises(KeeperError) as caught:
            self.status(HUGE)
        self.assertIn(caught.exception.code, ("no_such_process", "too_large"))
        self.assert_undisturbed()

    def test_bad_environment(self):
        """Names that are no names and values with NUL."""
        for env in ({"": "x"}, {"1A": "x"}, {"A B": "x"}, {"A=B": "x"}, {"Ä": "x"}, {"A": "x\0y"}, {"A": 1}, {"A": None}):
            self.assert_refused("spawn", {"argv": ["true"], "env": env}, "env", str(env))
        self.assert_undisturbed()

    def test_ids_that_are_nobody(self):
        """Unknown and malformed ids are no_such_process with the same message on every operation."""
        messages = set()
        for name, operation in self.operations.items():
            if "id" not in operation["args"].get("required", []) or name in ("release", *OTHER_IDS):
                continue
            for bad in ("psh-0-0", "psh-" + "f" * 20 + "-" + "9" * 20, "../../etc/passwd", "%s%n", "'; --", " "):
                with self.subTest(op=name, id=bad), self.assertRaises(KeeperError) as caught:
                    self.client.reply(name, self.valid_args(name) | {"id": bad})
                self.assertEqual(caught.exception.code, "no_such_process")
                messages.add(caught.exception.message)
        self.assertEqual(len(messages), 1, messages)
        self.assert_undisturbed()

    def test_unknown_operations(self):
        """An operation that does not exist is invalid_input naming op."""
        for bad in ("nonsense", "", "SPAWN", "spawn ", "x" * 100000, "sp\0awn"):
            with self.subTest(op=bad[:20]), self.assertRaises(KeeperError) as caught:
                self.client.call(bad)
            self.assertEqual((caught.exception.code, caught.exception.details.get("field")), ("invalid_input", "op"))
        self.assert_undisturbed()

    def test_bytes_where_none_belong(self):
        """Bytes with an operation that takes none are refused, swallowed, and the connection goes on."""
        for name, operation in self.operations.items():
            if operation["data"] or name == "shutdown":
                continue
            with self.subTest(op=name), self.assertRaises(KeeperError) as caught:
                self.client.reply(name, self.valid_args(name), b"surprise")
            self.assertIn(caught.exception.code, REFUSALS)
            self.assertEqual(caught.exception.details.get("field"), "data")
        self.assert_undisturbed()

    def test_contradictions(self):
        """Arguments that are right alone and wrong together."""
        cases = [
            ("read", {"id": self.canary, "tail": 5, "cursor": 5}, None),
            ("read", {"id": self.canary, "stream": "pty"}, "stream"),
            ("follow", {"id": self.canary, "streams": ["pty"]}, "streams"),
            ("follow", {"id": self.canary, "mode": "bytes", "since": 3}, "since"),
            ("follow", {"id": self.canary, "mode": "events", "drain": True}, "drain"),
            ("follow", {"id": self.canary, "tail": 5, "from": {"stdout": 1}}, None),
        ]
        for name, args, field in cases:
            with self.subTest(op=name, args=args), self.assertRaises(KeeperError) as caught:
                self.client.reply(name, args, timeout=5)
            self.assertEqual(caught.exception.code, "invalid_input")
            if field:
                self.assertTrue(caught.exception.details["field"].startswith(field))
        self.assert_undisturbed()

"""What is written to a process as a secret is nowhere afterwards but with the process (P-04, B-131)."""

import base64
import hashlib
import json
import os

from lib import procs
from lib.records import RecordsCase

SECRET = b"correct-Horse-17-battery"
# In whatever way it might have been written down.
FORMS = {
    "plain": SECRET,
    "base64": base64.b64encode(SECRET).rstrip(b"="),
    "hex": SECRET.hex().encode(),
    "sha256": hashlib.sha256(SECRET).hexdigest().encode(),
    "sha256 of the line": hashlib.sha256(SECRET + b"\n").hexdigest().encode(),
    "array": json.dumps(list(SECRET)).encode()[1:-1],
}


class SecretTest(RecordsCase):
    def setUp(self):
        super().setUp()
        self.events = self.connect()
        self.subscription = self.events.submit("follow_events", {})

    def assert_nowhere(self, name, data):
        data = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
        for form, text in FORMS.items():
            self.assertFalse(text in data or text.upper() in data, f"{name} has it: {form}")

    def all_events(self, process):
        """Everything that a subscriber heard, up to the end of a process."""
        seen = []
        while True:
            seen.append(self.events.item(self.subscription))
            if seen[-1]["event"] == "exited" and seen[-1]["process"]["id"] == process:
                return seen

    def look_everywhere(self, process):
        """All that the keeper shows and all that it has on disk, while it runs."""
        answers = [(op, {}) for op in ("describe", "info", "metrics", "history", "session_list", "agent_list", "doctor")]
        answers += [("status", {"id": process}), ("list", {"include_finished": True}), ("audit_tail", {"count": 10000}),
                    ("completions", {"take": False}), ("wait", {"id": process, "timeout_ms": 0})]
        for op, args in answers:
            self.assert_nowhere(op, self.client.reply(op, args).result)
        self.settle()
        for path, data in self.state_files().items():
            self.assert_nowhere(path, data)
        self.assert_nowhere("the log", self.place.log.read_bytes())

    def files_of_the_place(self):
        """All of the keeper's own files; the workspace is the commands'."""
        for folder, folders, names in os.walk(self.place.dir):
            folders[:] = [name for name in folders if name != "workspace"]
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    yield path

    def finish(self, process):
        self.look_everywhere(process)
        self.client.call("close_stdin", id=process)
        self.ended(process)
        self.look_everywhere(process)
        for event in self.all_events(process):
            self.assert_nowhere("an event", event)
        self.shut_down()
        for path in self.files_of_the_place():
            with open(path, "rb") as file:
                self.assert_nowhere(path, file.read())

    def start(self, script, **args):
        wants = {"digest": True, "completion": True, "progress_interval_ms": 100, "overflow": "spool"}
        return self.sh(script, **wants, **args)["id"]

    def write(self, process, data=SECRET + b"\n", **args):
        return self.client.reply("write_stdin", {"id": process, "secret": True, **args}, data).result

    def test_p04_a_pipe(self):
        """Read by a program that uses it and says only that it has: in no record, event, audit, log or file."""
        expected = hashlib.sha256(SECRET).hexdigest()[:8]
        process = self.start('read -r word; printf "%s" "$word" | sha256sum | cut -c1-8; cat >/dev/null', stdin="pipe")
        self.assertEqual(self.write(process), {"success": True, "timed_out": False, "bytes_written": len(SECRET) + 1})
        self.wait_output(process, expected.encode() + b"\n")
        self.finish(process)

    def test_p04_a_terminal_without_echo(self):
        """A password typed where the program has switched echo off, as such programs do."""
        process = self.start("stty -echo; echo Password:; read -r word; stty echo; echo ${#word}; cat >/dev/null", kind="pty")
        self.wait_output(process, b"Password:", "pty")
        procs.wait_until(lambda: self.status(process)["echo_off"], "echo is off")
        self.assertTrue(self.write(process)["success"])
        self.wait_output(process, str(len(SECRET)).encode(), "pty")
        self.assert_nowhere("the terminal", self.output(process, "pty"))
        self.finish(process)

    def test_p04_writes_that_fail(self):
        """Refused, in vain, and to nobody: the refusal does not repeat it, and nothing else does."""
        process = self.start("exec sleep 300", stdin="pipe")
        full = self.write(process, SECRET * 20000, timeout_ms=0)
        self.assertEqual((full["success"], full["timed_out"]), (False, True))
        for args, data in (({"id": "psh-1-999"}, SECRET), ({"id": process, "nonsense": 1}, SECRET),
                           ({"id": process, "timeout_ms": "x"}, SECRET), ({"id": process}, SECRET * 50000)):
            answer = self.client.answer("write_stdin", {"secret": True, **args}, data)
            self.assertIn("error", answer)
            self.assert_nowhere("a refusal", answer)
        self.client.call("kill", id=process)
        self.assert_nowhere("a refusal", self.client.answer("write_stdin", {"id": process, "secret": True}, SECRET))
        self.finish(process)

"""The harn operations as tools: commands that wait for the test, and results that have all their fields."""

import errno
import json
import os

from . import json_schema, procs
from .tools import ERROR, ToolCase

FIELDS = (
    "command_id status pid process_group_id handle_id started_at ended_at duration_ms exit_code signal timed_out stdout stderr "
    "output_path stdout_path stderr_path line_count byte_count output_sha256 sandbox audit_id"
).split()


class HarnCase(ToolCase):
    """Commands say `cat NAME` to wait until the test says open_gate(NAME)."""

    schemas = None

    def tool_json(self, name, args, *, options=()):
        """Calls a tool; its result is what the list of tools says."""
        code, result = super().tool_json(name, args, options=options)
        if HarnCase.schemas is None:
            tools = json.loads(self.out("tool", "--list", "--json"))["tools"]
            HarnCase.schemas = {tool["name"]: tool["outputSchema"] for tool in tools}
        if code != ERROR and name != "run_command":
            self.assertEqual(json_schema.faults(result, HarnCase.schemas[name]), [], result)
        return code, result

    def gate(self, name="go"):
        os.mkfifo(self.place.work / name)
        return name

    def open_gate(self, name="go"):
        """Lets the command on; waits until it has come to the gate."""

        def attempt():
            try:
                os.close(os.open(self.place.work / name, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                if error.errno == errno.ENXIO:  # nobody reads it yet
                    return False
                raise
            return True

        procs.wait_until(attempt, f"the command comes to the gate {name}")

    def whole(self, result):
        """Checks that the result of a command has every field, whatever became of it."""
        self.assertEqual([name for name in FIELDS if name not in result], [], result)
        return result

    def run_sh(self, script, wanted=0, **args):
        """A shell's line in the foreground; its result, whole."""
        code, result = self.tool("run_command", mode="shell", command=script, **args)
        self.assertEqual(code, wanted, result)
        return self.whole(result)

    def background(self, script, **args):
        """A shell's line in the background; its handle."""
        result = self.whole(self.ok("run_command", mode="shell", command=script, background=True, **args))
        self.assertEqual((result["status"], result["running"], result["exit_code"]), ("running", True, None))
        return result["handle_id"]

    def spawn(self, script, **args):
        return self.ok("process.spawn", argv=["sh", "-c", script], **args)["handle_id"]

    def until_output(self, handle, wanted, stream="stdout"):
        """Waits, past the tools, until the process has written this much of a stream."""
        with self.client() as client:
            procs.wait_until(
                lambda: client.call("status", id=handle)["process"]["streams"][stream]["end"] >= wanted, f"{wanted} bytes of {stream}"
            )

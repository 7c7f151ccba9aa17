"""Tools for processes without memory: whichever allocation fails, the answer is an answer, and nothing is done by half."""

from lib.tool_faults import FaultSweep
from lib.tools import ToolCase


class FaultTest(FaultSweep, ToolCase):
    def output(self, command):
        return self.ok("run_command", command=command)["id"]


class RunFaultTest(FaultTest):
    def check(self, name, number, result):
        self.assertEqual((result["stdout"], result["stderr"]), ("two words A\n", f"{self.place.work}/below\n"), f"allocation {number}: {result}")

    def test_running(self):
        """Neither an argument nor the folder nor the environment is lost on the way."""
        self.ok("list_processes")
        (self.place.work / "below").mkdir()
        self.sweep("run_command", command="sh", args=["-c", 'echo "$@" $X; pwd >&2', "sh", "two", "words"], cwd="below", env={"X": "A"})


class ReadFaultTest(FaultTest):
    def test_reading(self):
        id = self.output("i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); done")
        self.sweep("read_process_output", pid=id, grep="line 2.7", length=500)
        self.sweep("read_process_output", pid=id, head_tail=True, length=500)


class WaitFaultTest(FaultTest):
    def test_waiting(self):
        id = self.output("echo ready; echo other >&2")
        self.sweep("wait_any", timeout_ms=60000, conditions=[
            {"pid": id, "output": "never"}, {"pid": id, "output": "no(ne)?", "regex": True, "stream": "stderr"}, {"pid": id, "silent_ms": 100}, {"pid": id, "exit": True},
        ])

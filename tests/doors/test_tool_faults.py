"""Shell tools without memory: whichever allocation fails, the answer is an answer."""

from lib.shell_tools import ShellCase
from lib.tool_faults import FaultSweep


class FaultTest(FaultSweep, ShellCase):
    stride = 3

    def test_reading(self):
        session = self.open()
        self.settle(session)
        self.sweep("shell_read", session_id=session)

    def test_batches(self):
        """What failed on the way may have been typed: the shell bears it."""
        session = self.open()
        self.sweep("shell_batch", session_id=session, timeout_secs=60, steps=[
            {"type": "send", "input": "\necho a''sk\n"},
            {"type": "expect_cases", "cases": [{"pattern": "never(x)?", "tag": "fail"}, {"pattern": "(a)sk", "tag": "ok", "respond": "echo $1''nswer\n"}]},
            {"type": "expect", "pattern": "answer(x)?"},
            {"type": "signal", "signal": "WINCH"},
        ])
        self.settle(session)

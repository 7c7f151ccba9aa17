"""The short form of `make chaos`: everything is killed some times under load, and nothing that was answered is forgotten."""

import subprocess
import sys
import unittest
from pathlib import Path

from lib.place import patience

CHAOS = Path(__file__).resolve().parents[1] / "chaos" / "run"
ROUNDS, SECONDS = 4, 120


class ChaosTest(unittest.TestCase):
    def test_nothing_is_forgotten_and_nothing_left(self):
        """Keeper, guard, both, launchers, first processes of sandboxes, `coop run`, the MCP server, the gateway and `coop serve`."""
        argv = [sys.executable, CHAOS, "--rounds", str(ROUNDS)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience(SECONDS), check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-3000:])

"""A keeper of an ordinary user in a container-like place: inside bubblewrap, and inside unshare."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from lib import procs
from lib.confined import ROOT, USER
from lib.expected import Expected
from lib.place import BUILD, REPOSITORY, RUN_MARK, patience

# Not the one that runs this: it may lie where the user cannot look.
PYTHON = "/usr/bin/python3"
NESTED = Path(__file__).resolve().parent / "nested.py"
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if ROOT else []


class NestedTest(unittest.TestCase):
    def setUp(self):
        procs.become_subreaper()
        # The user may not be able to look where this was built.
        self.copy = Path(tempfile.mkdtemp(prefix="coop-n-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.copy, ignore_errors=True)
        self.copy.chmod(0o755)
        for name in ("bin", "tests/escape"):
            (self.copy / "build" / name).mkdir(parents=True)
        for name in ("bin/coop", "bin/coop-keeper", "tests/escape/attack", "tests/escape/without"):
            shutil.copy(BUILD / name, self.copy / "build" / name)
        for name in ("lib", "escape"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(REPOSITORY / "tests" / name, self.copy / "tests" / name, ignore=ignore)
        home = self.copy / "home"
        home.mkdir()
        home.chmod(0o777)

    def inside(self, wrap, name):
        """Runs the attacks in a place that `wrap` makes; what was found there."""
        env = {"PATH": os.environ["PATH"], "COOP_BUILD": str(self.copy / "build"), "HOME": str(self.copy / "home")}
        env[RUN_MARK] = os.environ.get(RUN_MARK, "by-hand")
        argv = [*AS_USER, *wrap, PYTHON, "-B", str(self.copy / "tests" / "escape" / NESTED.name), name]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=patience(80), check=False, cwd="/")
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-6000:])
        found = json.loads(done.stdout)
        expected = Expected(name)
        if expected.refused:
            self.assertIsNotNone(found["refused"])
            self.assertEqual(found["refused"]["code"], "sandbox_unavailable")
            self.assertIn(found["refused"]["details"]["protection"], expected.refused)
        else:
            self.assertIsNone(found["refused"], found["refused"])
        for run in found["runs"]:
            self.assertGreater(run["lines"], 100)
            self.assertEqual(run["faults"], [], "\n".join(run["faults"]))
        return found

    def test_inside_bubblewrap(self):
        words = "bwrap --unshare-all --die-with-parent --bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run"
        self.inside(words.split(), "nested-bwrap")

    def test_inside_unshare(self):
        self.inside("unshare -Urmpf --mount-proc --kill-child".split(), "nested-unshare")

"""Limits that the kernel holds (B-113), their totals for agents (B-083), death by the memory limit (B-018), and the freezer.

Each limit is exceeded. Where the host cannot hold one, asking for it must be refused by name, and that is what is looked at
there; with COOP_TEST_CGROUP=2 (scripts/test-vm) all of them must be held by control groups of that version."""

import os
from pathlib import Path

from lib.client import KeeperError
from lib.keeper import KeeperCase

ROOT = os.geteuid() == 0
USER = 61234
MIB = 1 << 20
PYTHON = "/usr/bin/python3"
CGROUPS = Path("/sys/fs/cgroup")
DEMANDED = os.environ.get("COOP_TEST_CGROUP")
BY_CGROUP = {"memory_bytes": "memory", "cpu_quota": "cpu", "max_pids": "pids"}
USUAL = {"memory_bytes": 64 * MIB, "cpu_quota": 0.5, "max_pids": 50, "tmp_bytes": 64 * MIB}

# Touches some memory, says so, and stays if it is told to.
TOUCH = "import sys, time; x = b'x' * int(sys.argv[1]); print('touched', flush=True); time.sleep(float(sys.argv[2]))"
# Works for some time by the clock and tells how much of it was the processor's.
BURN = """
import sys, time
begin, used = time.monotonic(), time.process_time()
while time.monotonic() - begin < float(sys.argv[1]): pass
print(time.process_time() - used)
"""
# Forks until it is refused, or there are enough; tells how many there are, and why not more. They stay as long as it does.
FORKS = """
import errno, os, signal, sys, time
children, why = [], 'enough'
while len(children) < int(sys.argv[1]):
    try:
        pid = os.fork()
    except OSError as error:
        why = errno.errorcode[error.errno]
        break
    if pid == 0:
        signal.pause()
    children.append(pid)
print(len(children), why, flush=True)
time.sleep(float(sys.argv[2]))
for pid in children: os.kill(pid, 9)
sys.exit(int(sys.argv[3]))
"""


class LimitsCase(KeeperCase):
    def setUp(self):
        super().setUp()
        self.doctor = self.client.call("doctor")

    def held(self, name):
        """Whether the host holds a limit. Where it does not, a request for it is refused with the reason that `doctor` tells."""
        found = self.doctor["protections"][name]
        if DEMANDED and name in BY_CGROUP:
            self.assertEqual(found["state"], "enforced", found)
            self.assertEqual(self.doctor["cgroup"][BY_CGROUP[name]]["version"], int(DEMANDED))
        if found["state"] == "enforced":
            return True
        self.assertTrue(found["reason"], found)
        self.assert_refused_limit(self.client, name)
        return False

    def assert_refused_limit(self, client, name, **args):
        with self.assertRaises(KeeperError) as caught:
            client.call("spawn", argv=["true"], cwd="/", limits={name: USUAL[name]}, **args)
        error = caught.exception
        self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", name), error)
        self.assertTrue(error.details["reason"])
        self.assertIn(name, error.message)

    def python(self, script, *words, **args):
        return self.spawn(PYTHON, "-c", script, *map(str, words), **args)

    def run_python(self, script, *words, **args):
        """Runs a script to its end: (record, its words)."""
        process = self.python(script, *words, **args)["id"]
        record = self.ended(process)
        return record, self.output(process).decode().split()

    def assert_report(self, record, name, value):
        """The record says that the limit is in force, and by what."""
        self.assertEqual(record["limits"][name], value)
        held = record["sandbox"]["protections"][name]
        self.assertEqual(held["state"], "enforced", held)
        self.assertTrue(held["mechanism"], held)

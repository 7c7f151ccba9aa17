"""Runs the tests of one file and reports each as a line of JSON. Used by tests/run; also by hand:

    tests/lib/worker.py keeper/test_wait.py [PATTERN]
"""

import importlib.util
import json
import os
import re
import signal
import sys
import time
import traceback
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from lib import place, procs  # noqa: E402 (the path comes first)
from lib.expected import answered  # noqa: E402

TEST_SECONDS = 90


class Overdue(BaseException):
    """Not an Exception, so that no test swallows it."""


def on_alarm(*_):
    raise Overdue(f"the test took more than {place.patience(TEST_SECONDS):g} s")


def explain(error):
    """A traceback without the frames of the test framework."""
    text = traceback.TracebackException(*error)
    for part in (text, text.__cause__, text.__context__):
        if part:
            inner = [frame for frame in part.stack if "/unittest/" not in frame.filename]
            part.stack = traceback.StackSummary.from_list(inner)
    return "".join(text.format())


class Result(unittest.TestResult):
    """Writes what became of each test as soon as it is known."""

    def __init__(self, out, file, heard=None):
        super().__init__()
        self.out = out
        self.heard = heard
        self.file = file
        self.texts = []

    def startTest(self, test):
        super().startTest(test)
        self.texts, self.outcome, self.begin = [], "passed", time.monotonic()
        answered.clear()
        signal.alarm(int(place.patience(TEST_SECONDS)))

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)
        self.write(test.id().split(".", 1)[1], self.outcome, time.monotonic() - self.begin)

    def write(self, name, outcome, seconds):
        line = {"test": f"{self.file}::{name}", "outcome": outcome, "seconds": round(seconds, 3)}
        line["text"] = "\n".join(self.texts)
        if outcome == "passed" and answered:
            line["attacks"] = sorted(answered)
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()
        if self.heard is not None:
            os.read(self.heard, 1)

    def fail(self, test, error, name=""):
        self.outcome = "failed"
        self.texts.append(name + explain(error))
        notes = getattr(test, "failure_notes", None)
        if notes and (text := notes()):
            self.texts.append("--- keeper's log\n" + text)

    def addFailure(self, test, err):
        self.note_outside(test, err)

    addError = addFailure

    def note_outside(self, test, err):
        """setUpClass fails outside of any test and must not get lost."""
        if isinstance(test, unittest.TestCase):
            self.fail(test, err)
        else:
            self.texts, self.begin = [], time.monotonic()
            self.fail(test, err)
            self.write(str(test), "failed", 0)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.fail(test, err, f"{subtest._subDescription()}\n")

    def addSkip(self, test, reason):
        self.outcome = "skipped"
        self.texts.append(reason)
        if not isinstance(test, unittest.TestCase):
            self.write(str(test), "skipped", 0)


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def load(file, pattern):
    path = TESTS / file
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = tests_of(unittest.defaultTestLoader.loadTestsFromModule(module))
    chosen = [test for test in found if not pattern or re.search(pattern, f"{file}::{test.id().split('.', 1)[1]}")]
    return unittest.TestSuite(chosen)


def main():
    file, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    out = os.fdopen(int(os.environ["COOP_TEST_OUT"]), "w") if "COOP_TEST_OUT" in os.environ else sys.stdout
    if "COOP_TEST_OUT" in os.environ:
        os.set_inheritable(out.fileno(), False)
    # Whoever gives this wants to look around between one test and the next, and says when it has.
    heard = int(os.environ["COOP_TEST_HEARD"]) if "COOP_TEST_HEARD" in os.environ else None
    if heard is not None:
        os.set_inheritable(heard, False)
    if sys.argv[-1] == "--list":
        for test in load(file, ""):
            print(f"{file}::{test.id().split('.', 1)[1]}")
        return 0
    procs.become_subreaper()
    signal.signal(signal.SIGALRM, on_alarm)
    result = Result(out, file, heard)
    load(file, pattern).run(result)
    procs.assert_no_descendants()
    return 0


if __name__ == "__main__":
    sys.exit(main())

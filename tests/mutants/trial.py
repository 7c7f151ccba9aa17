"""One mutant at a time: change, compile, compare, run the nearest tests until one notices, put back."""

import hashlib
import json
import math
import os
import random
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

from . import tree as trees
from .coverage import TESTS_A_LINE, nearness, words
from .runner import Runner

# What a wrong program may take longer than a right one before it counts as hanging.
PATIENCE_FACTOR, PATIENCE_SECONDS = 4, 45
COMPILE_SECONDS = 600
GUESSES = 12
# A test that takes more than this share of the budget comes behind the others: one that runs most of a program has a good place in
# every order, and would be the only one that is run.
LARGE_SHARE = 8
# Lines around a place whose words say what it is about.
WINDOW = 3
# A line that is about missing memory, and tests that take it away.
OF_MEMORY, WITHOUT_MEMORY = re.compile(r"ENOMEM|no_memory"), re.compile(r"sparse_memory|[Ff]ault|NoMemory|no_memory")


class Bench:
    """The scratch copy with its two builds: one that is changed, and a plain one to ask whether a test is at fault."""

    def __init__(self, top, here):
        self.top, self.here = Path(top), Path(here)
        self.copy, self.build, self.plain = here / "tree", here / "build", here / "plain"
        self.runner, self.plain_runner = Runner(self.copy, self.build), Runner(self.copy, self.plain)
        self.fit = {}
        self.objects = {}

    def prepare(self, key):
        self.here.mkdir(exist_ok=True)
        stamp = self.here / "built"
        trees.sync(self.top, self.copy)
        # No debug information: what is compiled alike is alike then, whatever columns it came from.
        trees.build(self.copy, self.build, ["-Ddebug=false", "-Dc_args=-Wno-parentheses"])
        if not stamp.exists() or stamp.read_text() != key:
            shutil.rmtree(self.plain, ignore_errors=True)
            shutil.copytree(self.build, self.plain, symlinks=True)
            subprocess.run([self.copy / "scripts" / "stage", self.plain], check=True)
            stamp.write_text(key)
        for unit in json.loads((self.build / "compile_commands.json").read_text()):
            path = os.path.normpath(os.path.join(unit["directory"], unit["file"]))
            self.objects.setdefault(path, []).append(unit["output"])

    def digests(self, objects):
        return [hashlib.sha256((self.build / name).read_bytes()).digest() for name in objects]

    def ninja(self, targets):
        argv = ["ninja", "-C", self.build, "--quiet", *targets]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMPILE_SECONDS)
        return done.returncode == 0

    def try_one(self, place, plan):
        """A row of the results. The copy is as it was afterwards, whatever happens."""
        begin = time.monotonic()
        return {**self.changed(place, plan), "seconds": round(time.monotonic() - begin, 1)}

    def changed(self, place, plan):
        path = self.copy / place.file
        source = path.read_text()
        changed = place.apply(source)
        row = {"line": place.line, "file": place.file, "operator": place.operator}
        row["was"], row["is"] = (text.splitlines()[place.line - 1].strip() for text in (source, changed))
        try:
            # The objects of the unchanged source, as this build makes them now.
            objects = self.objects[str(path)]
            if not self.ninja(objects):
                raise RuntimeError(f"{place.file} does not compile as it is")
            before = self.digests(objects)
            path.write_text(changed)
            if not self.ninja(objects):
                return {**row, "fate": "uncompiled"}
            if self.digests(objects) == before:
                return {**row, "fate": "equivalent"}
            if not self.ninja([]):
                return {**row, "fate": "uncompiled"}
            subprocess.run([self.copy / "scripts" / "stage", self.build], check=True)
            return {**row, **self.judge(plan)}
        finally:
            path.write_text(source)

    def judge(self, plan):
        ran, unsteady = [], []
        for file, names, seconds in plan:
            run = self.runner.run(file, names, PATIENCE_FACTOR * seconds + PATIENCE_SECONDS)
            ran += names or [file]
            if run.ended_for:
                return {"fate": "timeout", "by": f"{file}: {run.ended_for}", "ran": ran}
            if not run.failed:
                continue
            test = run.failed[0]
            if not self.is_fit(file, test):
                continue
            if run.overdue:
                return {"fate": "timeout", "by": test, "ran": ran}
            if self.again(self.runner, file, test):
                return {"fate": "noticed", "by": test, "ran": ran, "unsteady": unsteady}
            unsteady.append(test)
        return {"fate": "survived", "ran": ran, "unsteady": unsteady}

    @staticmethod
    def again(runner, file, test):
        """Whether the test fails a second time, too: a flake notices nothing."""
        name = [test] if "::" in test and not file.startswith("unit/") and "(" not in test else []
        run = runner.run(file, name, 300)
        return bool(run.failed or run.ended_for)

    def is_fit(self, file, test):
        """Whether a test that failed passes with the unchanged programs."""
        if test not in self.fit:
            self.fit[test] = not self.again(self.plain_runner, file, test)
        return self.fit[test]


class Planner:
    """Chooses the tests for a place: those that run its line, the nearest first, up to a time."""

    def __init__(self, top, known, budget):
        self.top, self.known, self.budget = Path(top), known, budget
        self.files = trees.test_files(top)
        self.traced = {test.partition("::")[0] for test in known.seconds}
        self.common = Counter(word for test in known.seconds for word in words(test))
        self.contents = {}
        for file in self.files:
            path = Path(top) / "tests" / (file + ".c" if file.startswith("unit/") else file)
            self.contents[file] = words(path.read_text())

    def guess(self, file):
        """Test files by their names and words, for a line that no trace tells of."""
        own = words(Path(file).stem)
        score = {test: 3 * nearness(test, file) + len(own & self.contents[test]) for test in self.files}
        best = sorted(self.files, key=lambda test: -score[test])
        return [test for test in best[:GUESSES] if score[test] > 0]

    def seconds(self, test):
        return self.known.seconds.get(test, 10.0)

    def around(self, place, distance):
        """The line of a place, with so many before and behind it."""
        path = self.top / place.file
        lines = path.read_text().splitlines() if path.exists() else []
        return "\n".join(lines[max(0, place.line - 1 - distance) : place.line + distance])

    def about(self, place):
        """How much a test's name says that it is about a place: words that both have, those more that few tests have."""
        near = words(place.file) | words(self.around(place, WINDOW))
        weights = {word: math.log((1 + len(self.known.seconds)) / self.common[word]) for word in near if self.common[word]}
        return lambda test: sum(weights.get(word, 0) for word in words(test))

    def plan(self, place, budget=None):
        """Rows (file, names of tests or none for all, seconds they usually take)."""
        budget = self.budget if budget is None else budget
        tests = self.known.tests(place.file, place.line) or []
        guessed = [file for file in self.guess(place.file) if not tests or file not in self.traced]
        rows, spent = {}, 0.0
        sparse, about = OF_MEMORY.search(self.around(place, 0)) is not None, self.about(place)
        inside = self.known.inside(place.file, place.line)

        def order(test):
            large = self.seconds(test) > budget / LARGE_SHARE
            return sparse and not WITHOUT_MEMORY.search(test), test not in inside, large, -about(test)

        for test in sorted(tests, key=order):
            spent += self.seconds(test)
            if rows and spent > budget:
                break
            file = test.partition("::")[0]
            rows.setdefault(file, []).append(test)
        result = []
        for file, names in rows.items():
            unit = file.startswith("unit/")
            result.append((file, [] if unit else names, sum(map(self.seconds, names))))
        result.sort(key=lambda row: not row[0].startswith("unit/"))
        return result + [(file, [], self.whole(file)) for file in guessed]

    def whole(self, file):
        return sum((took for test, took in self.known.seconds.items() if test.partition("::")[0] == file), 1.0)

    def all(self, place, ran=()):
        """Every other test that runs the line, however long that takes: the rest cannot tell that it is another one. Where more
        tests run it than are known, it is every test there is."""
        tests = self.known.tests(place.file, place.line) or []
        if 0 < len(tests) < TESTS_A_LINE:
            met = set(ran) | {name.partition("::")[0] for name in ran}
            rows = [(file, [name for name in names if name not in met], took) for file, names, took in self.plan(place, float("inf"))]
            return [row for row in rows if row[1] or row[0] not in met]
        first = {row[0] for row in self.plan(place)}
        return [(file, [], self.whole(file)) for file in sorted(self.files, key=lambda file: file not in first)]


def order(places, seed):
    """The places as the seed draws them, without putting any back."""
    drawn = list(places)
    random.Random(seed).shuffle(drawn)
    return drawn

"""Which tests run which lines: one pass of the suite over a traced build (see trace.c).

The answer only says which tests to run first, so that it need not be of the very commit. What is known of a test file is kept
(zlib, JSON) until FRESH=1 asks for a new pass.
"""

import bisect
import functools
import heapq
import json
import os
import re
import struct
import subprocess
import time
import zlib
from collections import Counter
from pathlib import Path

from . import tree as trees
from .runner import Runner

FILE_SECONDS = 900
# A line keeps more tests than BUDGET has time for, so that the time bounds a trial: a smaller number left room for the quickest
# tests only, and the one that is about the line was not among them.
TESTS_A_LINE = 1000
# The block before the one that a line begins, if it is as near as that.
BLOCKS_BEFORE, LINES_BEFORE = 1, 4
# What running all of a file that any test runs counts for, beside a word of its name.
SHARE = 2
NONZERO = re.compile(rb"[^\0]")
CALL = re.compile(r"^\s*([0-9a-f]+):\s.*\bcall\S*\s.*<__sanitizer_cov_trace_pc>")
ADDRESS = re.compile(r"^\s*([0-9a-f]+):\s")


def build_traced(top, here):
    """A build with a call in every basic block; the launcher keeps its symbols there."""
    copy, build, folder = here / "traced-tree", here / "traced", here / "trace"
    folder.mkdir(exist_ok=True, parents=True)
    folder.chmod(0o777)
    trees.sync(top, copy)
    launcher = copy / "src" / "launcher" / "meson.build"
    launcher.write_text(launcher.read_text().replace("['-static', '-s']", "['-static']"))
    trace = here / "trace.o"
    source = Path(__file__).with_name("trace.c")
    subprocess.run(["cc", "-O2", "-fPIC", f'-DTRACE_FOLDER="{folder}"', "-c", source, "-o", trace], check=True)
    options = ["-Dwerror=false", "-Doptimization=0", "-Ddebug=true", "-Dc_args=-fsanitize-coverage=trace-pc"]
    trees.build(copy, build, options + [f"-Dc_link_args={trace}"])
    return copy, build, folder


class Trace:
    """The shared files that the programs note their blocks in."""

    def __init__(self, folder):
        self.folder = folder

    def take(self):
        """{program: offsets of the blocks that ran since the last time}."""
        result = {}
        for path in self.folder.iterdir():
            found = []
            with open(path, "r+b", buffering=0) as file:
                at = 0
                while (begin := self._seek(file, at, os.SEEK_DATA)) is not None:
                    at = self._seek(file, begin, os.SEEK_HOLE)
                    data = os.pread(file.fileno(), at - begin, begin)
                    here = [begin + match.start() for match in NONZERO.finditer(data)]
                    if here:
                        os.pwrite(file.fileno(), bytes(len(data)), begin)
                        found += here
            if found:
                result[path.name] = found
        return result

    @staticmethod
    def _seek(file, at, how):
        try:
            return os.lseek(file.fileno(), at, how)
        except OSError:
            return None


def load_base(program):
    """Where the first segment of an ELF file wants to be loaded: 0 unless its place is fixed."""
    with open(program, "rb") as file:
        head = file.read(64)
        (offset,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
        file.seek(offset)
        for _ in range(count):
            row = file.read(size)
            if struct.unpack_from("<I", row)[0] == 1:
                return struct.unpack_from("<Q", row, 16)[0]
    return 0


def sites(program, copy):
    """{offset: (file, line)} of all blocks of a program: the address after each call that trace.c answers."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True).stdout
    calls, after = [], False
    for line in text.splitlines():
        if after and (match := ADDRESS.match(line)):
            calls[-1] = (calls[-1][0], int(match[1], 16))
            after = False
        if match := CALL.match(line):
            calls.append((int(match[1], 16), None))
            after = True
    wanted = "\n".join(f"{call:x}" for call, _ in calls)
    answer = subprocess.run(["addr2line", "-e", program], input=wanted, check=True, capture_output=True, text=True).stdout
    base, root, result = load_base(program), str(copy) + os.sep, {}
    for (_, back), line in zip(calls, answer.splitlines()):
        path, _, number = line.split(" ")[0].rpartition(":")
        path = os.path.normpath(os.path.join(copy.parent / "traced", path))
        if back and path.startswith(root) and number.isdigit():
            result[back - base] = (path[len(root) :], int(number))
    return result


def programs(build):
    """{name: path} of what was linked."""
    found = {}
    for path in [*build.glob("src/**/coop*"), *(build / "tests" / "unit").glob("test_*")]:
        if path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:4] == b"\x7fELF" and ".so" not in path.name:
            found[path.name] = path
    return found


def program_of(name, known):
    """A program that runs from memory has a longer name: memfd_coop-launcher_(deleted)."""
    if name in known:
        return name
    inside = [program for program in known if program in name]
    return max(inside, key=len, default=None)


def trace_file(runner, trace, file):
    """{test: [seconds, {program: offsets}]} of one test file."""
    found, begin = {}, time.monotonic()

    def on_test(item):
        if item["outcome"] != "skipped":
            found[item["test"]] = [item["seconds"], trace.take()]

    trace.take()
    runner.run(file, [], FILE_SECONDS, on_test)
    rest = trace.take()
    if file.startswith("unit/"):
        found[file] = [time.monotonic() - begin, rest]
    elif found:
        # What programs do at their end, after the last word of their test.
        last = found[next(reversed(found))][1]
        for program, offsets in rest.items():
            last[program] = sorted({*last.get(program, ()), *offsets})
    return found


def kept_trace(here, file):
    """Where it stands what is known of a test file."""
    return here / "coverage" / (file.replace("/", "-") + ".z")


def missing(top, here):
    """The test files that are not traced yet."""
    (here / "coverage").mkdir(exist_ok=True)
    return [file for file in trees.test_files(top) if not kept_trace(here, file).exists()]


class Tracer:
    """Traces test files with a build of its own below scratch, and keeps what it saw below here."""

    def __init__(self, top, here, scratch):
        self.here = here
        copy, build, folder = build_traced(top, scratch)
        self.runner, self.trace = Runner(copy, build), Trace(folder)

    def __call__(self, file):
        found = trace_file(self.runner, self.trace, file)
        data = zlib.compress(json.dumps(found, separators=(",", ":")).encode(), 3)
        kept_trace(self.here, file).write_bytes(data)


class Map:
    """Answers which tests run a line, the nearest first."""

    def __init__(self, names, lines, seconds):
        self.names, self.lines, self.seconds = names, lines, seconds
        self.known = {file: sorted(int(line) for line in rows if line != "rank") for file, rows in lines.items()}
        self.ranks = {}

    @classmethod
    def load(cls, here, scratch):
        """From what is kept below here; the builds of all tracers are alike, and scratch holds one of them."""
        path = here / "coverage.json"
        kept = sorted((here / "coverage").glob("*.z"))
        if not path.exists() or any(one.stat().st_mtime > path.stat().st_mtime for one in kept):
            path.write_text(json.dumps(cls._join(scratch, kept), separators=(",", ":")))
        data = json.loads(path.read_text())
        return cls(data["names"], data["lines"], data["seconds"])

    @staticmethod
    def _join(scratch, kept):
        known = programs(scratch / "traced")
        places = {name: sites(path, scratch / "traced-tree") for name, path in known.items()}
        lines = {}
        for rows in places.values():
            for file, line in rows.values():
                if file.startswith("src/"):
                    lines.setdefault(file, {}).setdefault(line, set())
        seconds, names = {}, []
        for one in kept:
            for test, (took, ran) in json.loads(zlib.decompress(one.read_bytes())).items():
                seconds[test] = round(took, 2)
                number = len(names)
                names.append(test)
                for name, offsets in ran.items():
                    rows = places.get(program_of(name, known) or "", {})
                    for offset in offsets:
                        file, line = rows.get(offset, ("", 0))
                        if file.startswith("src/"):
                            lines[file][line].add(number)
        table = {}
        for file, rows in lines.items():
            best = Map._rank(file, rows, names, seconds)
            rank = {number: place for place, number in enumerate(best)}
            for line, numbers in rows.items():
                table.setdefault(file, {})[line] = heapq.nsmallest(TESTS_A_LINE, numbers, key=rank.get)
            table[file]["rank"] = best
        return {"names": names, "lines": table, "seconds": seconds}

    @staticmethod
    def _rank(file, rows, names, seconds):
        """Tests that run something of a file, those first that are about it: by their names, and by how much of it they run."""
        blocks = Counter(number for numbers in rows.values() for number in numbers)
        most = max(blocks.values(), default=1)
        return sorted(blocks, key=lambda number: (-nearness(names[number], file) - SHARE * blocks[number] / most, seconds[names[number]]))

    def blocks(self, file, line):
        """Where the block begins that a line is in (the last one that begins at it or before), and those right before it, the
        latest first: where a condition goes on in a line of its own, its first part is in the block before."""
        known = self.known.get(file) or []
        found = known[: bisect.bisect_right(known, line)][: -BLOCKS_BEFORE - 2 : -1]
        return [one for one in found if one >= found[0] - LINES_BEFORE]

    def tests(self, file, line):
        """Tests that ran the block that a line is in, or those before it. None if unknown."""
        found = self.blocks(file, line)
        if not found:
            return None
        numbers = set().union(*(self.lines[file][str(one)] for one in found))
        rank = self.ranks.setdefault(file, {number: place for place, number in enumerate(self.lines[file].get("rank", ()))})
        return [self.names[number] for number in sorted(numbers, key=lambda number: rank.get(number, number))]

    def inside(self, file, line):
        """Those of them that ran the very block."""
        return {self.names[number] for one in self.blocks(file, line)[:1] for number in self.lines[file][str(one)]}


@functools.cache
def words(name):
    return {word for word in re.split(r"[^a-z]+", name.lower()) if len(word) > 2 and word not in ("test", "src", "doors", "keeper", "the")}


@functools.cache
def nearness(test, file):
    """How much a test's name says that it is about a source file: its own unit test first."""
    own = words(file)
    shared = len({word.rstrip("s") for word in own} & {word.rstrip("s") for word in words(test)})
    return shared + 3 * (shared > 0 and test.startswith("unit/"))

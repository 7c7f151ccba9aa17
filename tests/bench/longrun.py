"""Very many short commands through one keeper: does it hold more than its caps, and does it grow?"""

import contextlib
import json
import pathlib
import sqlite3
import subprocess
import time

from crowd import add_agent, tree
from series import TRUE
from stage import COOP, BenchError, Keeper, program, run

WIDTH = 16
PARENTS, CHILDREN = 4, 1  # eight agents
TENTHS = 10
LOOK = 1  # seconds between looks while it runs
FLAT = 1.1  # memory after the first tenth, by the most there was in it
PRUNED_LATE = 2 * 4096  # rows that the database may have above its cap: it is pruned when so many more were written
QUEUE = 65536  # changes that may wait for the database
VERIFY = 900  # seconds that reading all of the audit may take
MIB = 1 << 20
COLUMNS = (
    ("commands", "{:>9}"),
    ("/s", "{:>6}"),
    ("cpu us", "{:>7}"),
    ("rss MiB", "{:>8}"),
    ("live", "{:>5}"),
    ("finished", "{:>9}"),
    ("receipts", "{:>9}"),
    ("rows", "{:>7}"),
    ("db MiB", "{:>7}"),
    ("audit MiB", "{:>10}"),
    ("files", "{:>6}"),
    ("pending", "{:>8}"),
    ("lost", "{:>5}"),
)


class Watch:
    """What a keeper holds, now and at most so far."""

    def __init__(self, keeper):
        self.keeper = keeper
        self.info = keeper.op("info")
        self.most = {}
        self.look()

    def look(self):
        self.info = self.keeper.op("info")
        now = {name: self.info["processes"][name] for name in ("live", "finished", "receipts")}
        now["rss"] = self.info["memory"]["rss_bytes"]
        now["pending"], now["lost"] = self.info["records"]["pending"], self.info["records"]["lost"]
        now["audit lost"] = self.info["audit"]["lost"]
        now |= folder(self.keeper.state)
        for name, value in now.items():
            self.most[name] = max(value, self.most.get(name, 0))
        return now


def folder(state):
    """Sizes of what is on disk."""
    sizes = {}
    for path in pathlib.Path(state).iterdir():
        with contextlib.suppress(FileNotFoundError):  # an audit file that has just been turned over
            sizes[path.name] = path.stat().st_size
    audit = [size for name, size in sizes.items() if name.startswith("audit")]
    return {
        "db": sum(size for name, size in sizes.items() if name.startswith("records.db")),
        "audit": sum(audit),
        "files": len(audit),
    }


def rows_of(state):
    with contextlib.closing(sqlite3.connect(f"file:{state}/records.db?mode=ro", uri=True, timeout=30)) as base:
        return base.execute("SELECT count(*) FROM processes").fetchone()[0]


def work(watch, env, count):
    """Has that many commands run, and looks at the keeper meanwhile. Nanoseconds."""
    argv = [program("spawn_coop"), str(WIDTH), str(count), "0", TRUE]
    with subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as child:
        while True:
            try:
                out = child.communicate(timeout=LOOK)[0]
                break
            except subprocess.TimeoutExpired:
                watch.look()
    if child.returncode:
        raise BenchError(f"{argv[0]}: exit code {child.returncode}")
    return int(out)


def tenth(watch, env, count, done):
    """One line of the table."""
    before = watch.keeper.cpu_ns()
    took = work(watch, env, count)
    cpu = (watch.keeper.cpu_ns() - before) / count
    now = watch.look()
    rows = rows_of(watch.keeper.state)
    watch.most["rows"] = max(rows, watch.most.get("rows", 0))
    point = now | {"commands": done + count, "/s": count * 1e9 / took, "cpu us": cpu / 1e3, "rows": rows}
    print(line(point), flush=True)
    return point


def line(point):
    shown = point | {"rss MiB": f"{point['rss'] / MIB:.1f}", "/s": f"{point['/s']:.0f}", "cpu us": f"{point['cpu us']:.0f}"}
    shown |= {"db MiB": f"{point['db'] / MIB:.1f}", "audit MiB": f"{point['audit'] / MIB:.1f}"}
    return "".join(form.format(shown[name]) for name, form in COLUMNS)


def caps(settings, agent_count):
    return {
        "live": WIDTH,
        "finished": agent_count * settings["max_finished"],
        "receipts": settings["max_receipts"],
        "rows": settings["max_history"] + PRUNED_LATE,
        "files": settings["audit_files"] + 1,
        "audit": (settings["audit_files"] + 1) * (settings["audit_max_bytes"] + MIB),
        "pending": QUEUE,
    }


def verdicts(watch, points, early, late):
    """What was found, as text, and whether it is as it should be."""
    agent_count = PARENTS * (1 + CHILDREN) + 1
    limits = caps(watch.info["settings"], agent_count)
    for name, cap in limits.items():
        yield f"{name}: at most {watch.most[name]}, cap {cap}", watch.most[name] <= cap
    memory = f"at most {early / MIB:.1f} MiB in the first tenth, {late / MIB:.1f} MiB after it"
    if points[0]["commands"] > limits["finished"] + limits["receipts"]:
        yield f"memory: {memory}", late <= FLAT * early
    else:
        yield f"memory: {memory}; not judged, as a tenth does not fill the caps", True
    yield f"records lost: {watch.most['lost']}, audit lines: {watch.most['audit lost']}", watch.most["lost"] == 0
    report = json.loads(run([COOP, "op", "audit_verify"], watch.keeper.env, patience=VERIFY))
    yield f"audit: {report['lines']} lines in {report['files']} files, {report['fault'] or 'whole'}", report["good"]


def million(where, commands):
    """Prints as it goes; gives the facts."""
    keeper = Keeper(where, "long")
    try:
        tokens = [add_agent(keeper, path) for path in tree(PARENTS, CHILDREN)]
        env = keeper.env | {"COOP_BENCH_TOKENS": " ".join(tokens)}
        watch = Watch(keeper)
        print(f"{commands} commands by {len(tokens)} agents, {WIDTH} in flight, records and audit on", flush=True)
        print("".join(form.format(name) for name, form in COLUMNS), flush=True)
        began = time.monotonic()
        points, early = [], 0
        for number in range(TENTHS):
            count = commands * (number + 1) // TENTHS - commands * number // TENTHS
            points.append(tenth(watch, env, count, commands * number // TENTHS))
            if number == 0:
                early, watch.most["rss"] = watch.most["rss"], 0
        found = []
        for text, good in verdicts(watch, points, early, watch.most["rss"]):
            found.append((text, good))
            print(f"{'ok' if good else 'MISSED':<8}{text}", flush=True)
        print(f"{time.monotonic() - began:.0f} s", flush=True)
    finally:
        keeper.stop()
    return {"points": points, "most": watch.most, "verdicts": found}

"""The measured series: each has parties that do the same work, and is played in rounds, one party after the other."""

import resource
import statistics

from stage import COOP, HERE, BenchError, Keeper, node, numbers, program, wall

TRUE = "/bin/true"
WIDTHS = (1, 16, 256)
CAPTURE_PIPE = str(1 << 20)
LARGE_PROCESSES = 136
LARGE_RING = 8 << 20
NODE = node()


class Series:
    """`parties` maps a name to a function that gives one sample, or a list of them. The first is the yardstick: if even its
    own samples differ by more than half, the run is not quiet."""

    def __init__(self, name, parties):
        self.name = name
        self.parties = parties
        self.samples = {party: [] for party in parties}
        self.keeper_cpu = {}  # of a party, where that is looked at: nanoseconds of the keeper for one of what is counted

    def play(self, number):
        names = list(self.parties)
        turn = number % len(names)
        for party in names[turn:] + names[:turn]:  # nobody is always first, or always behind the same one
            self.samples[party].append(self.parties[party]())

    def forget(self):
        for samples in [*self.keeper_cpu.values(), *self.samples.values()]:
            samples.clear()

    def spread(self):
        """Largest by smallest round of the yardstick."""
        rounds = [middle(sample) for sample in self.samples[next(iter(self.parties))]]
        return max(rounds) / min(rounds)


def middle(sample):
    return statistics.median(sample) if isinstance(sample, list) else sample


def percentile(sample, share):
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def spawns(keeper, quick):
    """Spawn, capture and reap of /bin/true; the time of one of them, in nanoseconds."""
    for width in WIDTHS:
        count = (300 if width == 1 else 600) // (3 if quick else 1)
        yield spawn_series(keeper, f"spawn {width}", width, count)


def spawn_series(keeper, name, width, count, peer=True):
    args = [str(width), str(count), "0", TRUE]

    def by_keeper():
        before = keeper.cpu_ns()
        took = keeper.time([program("spawn_coop"), *args])
        series.keeper_cpu.setdefault("coop", []).append((keeper.cpu_ns() - before) / count)
        return took / count

    parties = {"floor": lambda: numbers([program("spawn_floor"), *args])[0] / count, "coop": by_keeper}
    if NODE and peer:
        parties["node"] = lambda: numbers([NODE, str(HERE / "spawn.mjs"), *args])[0] / count
    series = Series(name, parties)
    return series


def verify(keeper):
    """That each party really captures: the output of a command that has some is counted by all of them."""
    args = ["4", "8", "6", "/bin/echo", "hello"]
    numbers([program("spawn_floor"), *args])
    keeper.run([program("spawn_coop"), *args])
    if NODE:
        numbers([NODE, str(HERE / "spawn.mjs"), *args])


def sizes(small, large, quick):
    """The same processes, kept by a small and by a large keeper."""
    count = 200 if quick else 600
    args = [program("spawn_coop"), "16", str(count), "0", TRUE]
    return Series("size", {"small": lambda: small.time(args) / count, "large": lambda: large.time(args) / count})


def enlarge(keeper, count=LARGE_PROCESSES, sleeper=None, **more):
    """Fills the rings of live processes until the keeper has 1 GiB of memory. More arguments are the spawn's."""
    line = f"head -c {LARGE_RING} /dev/zero; exec {sleeper or program('sleeper')}"
    for _ in range(count):
        keeper.op("spawn", argv=["/bin/sh", "-c", line], ring_bytes=LARGE_RING, cwd="/", **more)


def captures(keeper, quick):
    """2 GiB of output into a ring of 1 MiB; the time of all of it."""
    size = str((2 << 30) // (8 if quick else 1))
    writers = {"head": ["/usr/bin/head", "-c", size, "/dev/zero"], "64k": [program("writer"), size]}
    for name, argv in writers.items():
        parties = {
            "floor": lambda argv=argv: numbers([program("capture_floor"), CAPTURE_PIPE, size, *argv])[0],
            "coop": lambda argv=argv: keeper.time([program("capture_coop"), size, *argv]),
        }
        if NODE:
            parties["node"] = lambda argv=argv: numbers([NODE, str(HERE / "capture.mjs"), size, *argv])[0]
        yield Series(f"capture {name}", parties)


def exits(keeper, quick, name="exit"):
    """Last instruction of a child to the end being known: a list of latencies."""
    count = "60" if quick else "250"
    args = [count, program("stamper"), str(keeper.folder / "stamp")]
    return Series(
        name,
        {
            "floor": lambda: numbers([program("exit_latency"), "floor", *args]),
            "coop": lambda: numbers([program("exit_latency"), "coop", *args], keeper.env),
        },
    )


def commands(keeper, quick):
    """Whole commands, and the steps of ours: what starts up, what also talks to the keeper, what also runs something."""
    lines = {
        "bash": ["/bin/bash", "-c", "true"],
        "true": [TRUE],
        "coop run": [COOP, "run", "--profile", "full", "--", "true"],
        "coop --version": [COOP, "--version"],
        "coop op info": [COOP, "op", "info"],
        "coop run -d": [COOP, "run", "-d", "--profile", "full", "--", "true"],
    }
    count = 10 if quick else 40

    # One of each in turn within a round: their times are too short to be played in blocks.
    taken = {}

    def play_all():
        taken.clear()
        taken.update({name: [] for name in lines})
        for _ in range(count):
            for name, argv in lines.items():
                taken[name].append(wall(argv, keeper.env))

    def give(name):
        if not taken.get(name):
            play_all()
        return taken.pop(name)

    return Series("command", {name: lambda name=name: give(name) for name in lines})


def hold(keeper, count, width=32):
    """Starts that many idle processes more; how many there were, and why it ended."""
    started, refusal = keeper.run([program("hold"), str(width), str(count), program("sleeper")]).split()
    return int(started), refusal


def limit_files(limit):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def idle(folder, quick):
    """One keeper that fills up with idle processes. Gives plain facts, not series: they are exact, or nearly so."""
    facts = {}
    many, most = (1000, 2000) if quick else (2000, 5000)
    keeper = Keeper(folder, "idle")
    try:
        hold(keeper, many // 10)  # what the first ones cost once is no part of it
        before = keeper.op("info")
        facts["held"] = many // 10 + hold(keeper, many)[0]
        after = keeper.op("info")
        facts["bytes each"] = (after["memory"]["rss_bytes"] - before["memory"]["rss_bytes"]) / many
        facts["fds each"] = (after["fds"]["open"] - before["fds"]["open"]) / many
        crowded = list(crowded_series(keeper, quick))
        for number in range(1 if quick else 3):
            for series in crowded:
                series.play(number)
        hold(keeper, most - many - many // 10)
        facts["listed"], facts["list ns"] = most, [list_time(keeper, most) for _ in range(5)]
    finally:
        keeper.stop()
    return facts, crowded


def crowded_series(keeper, quick):
    """The same as with an empty keeper, while thousands sit idle in it."""
    yield exits(keeper, True, "crowded exit")
    yield spawn_series(keeper, "crowded spawn", 16, 100 if quick else 200, peer=False)


def list_time(keeper, count):
    before = keeper.cpu_ns()
    lines = keeper.run([COOP, "ps", "--limit", "100000"]).count("\n")
    if lines < count:
        raise BenchError(f"coop ps showed {lines} lines for {count} processes")
    return keeper.cpu_ns() - before


def file_limit(folder, limit):
    """How many processes a keeper holds that may have that many open files."""
    keeper = Keeper(folder, "limited", before_exec=limit_files(limit))
    try:
        return hold(keeper, limit, width=2)  # each that is being started has more open than when it sits
    finally:
        keeper.stop()

"""Sandboxed processes against posix_spawn, which confines nothing, and against bubblewrap, asked for the same.

Each series starts one process of each party in turn (race.c). `known` is when the exit status and all output are there, `gone` when
nothing of the process is left: for coop that is seen from outside, among the keeper's children. What is compared must be alike:
a record that does not say that its sandbox is enforced ends the series, and where processes were not started as the row says, there
is no figure.
"""

import collections
import json
import os
import pathlib
import shutil
import statistics
import time

from series import LARGE_PROCESSES, LARGE_RING, TRUE, Series, enlarge
from stage import BUILD, PROGRAMS, BenchError, Keeper, run

USER = 61234  # of nobody: the ordinary user
SLOTS = 8
PAUSES = (0, 1000, 10000)  # microseconds before each start
FLIGHT = 256
FLOOR, BWRAP, LAUNCHED, POOLED = "posix_spawn", "bwrap", "launched", "pooled"
BWRAP_PROGRAM = shutil.which("bwrap")
SHARED = ("race", "spawn_coop", "spawn_floor", "sleeper")
NO_SLOTS = "no slots"
STRAY = 0.05  # of the processes may be other than the row says
SPARE = 1 << 30  # of memory, beside what the large keepers fill


def gone(party):
    return f"{party}, gone"


class Side:
    """What one user measures: a workspace, an empty home, and keepers of the user with and without slots."""

    def __init__(self, folder, who, options):
        self.who, self.options = who, options
        self.user = USER if who == "user" and os.getuid() == 0 else None
        self.folder = pathlib.Path(folder) / who
        self.folder.mkdir(mode=0o711)
        self.workspace, self.home, self.programs = (self.folder / name for name in ("work", "home", "bin"))
        for path in (self.workspace, self.home, self.programs):
            path.mkdir(mode=0o755)
            if self.user is not None:
                os.chown(path, self.user, self.user)
        # The build may lie where only its owner may look.
        for path in [BUILD / "bin" / "coop", BUILD / "bin" / "coop-keeper", *[PROGRAMS / name for name in SHARED]]:
            shutil.copy(path, self.programs)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.keepers = {}

    def keeper(self, size, slots):
        """Of that size, started when it is first asked for."""
        name = f"{self.who}-{size}-{slots}"
        if name not in self.keepers:
            keeper = self.keepers[name] = self.new_keeper(name, slots)
            if size == "large":
                count = LARGE_PROCESSES // (16 if self.options.quick else 1)
                enlarge(keeper, count, self.programs / "sleeper", **self.asking(profile="full"))
        return self.keepers[name]

    def new_keeper(self, name, slots):
        return Keeper(
            self.folder,
            name,
            plant=self.options.plant,
            conf="" if self.options.unconfined else f"[sandbox]\nslots = {slots}\n",
            user=self.user,
            programs=self.programs,
            more_env={"HOME": str(self.home)},
        )

    def asking(self, **policy):
        """The member `sandbox` of a spawn's arguments."""
        return {} if self.options.unconfined else {"sandbox": policy}

    def work(self, keeper):
        """The workspace of what that keeper starts: its own, as what one keeper does in it on the way is nothing to another."""
        path = self.workspace.with_name(f"work-{keeper.folder.name}")
        if not path.exists():
            path.mkdir(mode=0o755)
            if self.user is not None:
                os.chown(path, self.user, self.user)
        return str(path)

    def spawn_args(self, keeper, **policy):
        work = self.work(keeper)
        return json.dumps({"argv": [TRUE], "cwd": work, **self.asking(workspace=work, **policy)})

    def bwrap(self, command=TRUE):
        """The same namespaces and the same view, as the same user. What coop does beyond that cannot be had with flags: system call
        filter, Landlock, protected paths, a home that can be written to, the record."""
        work = str(self.workspace)
        return [
            *[BWRAP_PROGRAM, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
            *["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"],
            *["--bind", work, work, "--chdir", work, "--", command],
        ]

    def run(self, argv, **more_env):
        """One of our programs, in the workspace."""
        return run([str(self.programs / argv[0]), *argv[1:]], self.env | more_env, user=self.user, cwd=self.workspace)

    def stop(self):
        for keeper in self.keepers.values():
            keeper.stop()


class Fragile(Series):
    """A series that may break, which the others then survive: it is not played further, and its rows say why."""

    def __init__(self, name, parties):
        super().__init__(name, parties)
        self.broken = None

    def play(self, number):
        if self.broken:
            return
        try:
            self.play_once(number)
        except BenchError as error:
            self.broken = str(error)

    def spread(self):
        return 1 if self.broken else super().spread()


class Race(Fragile):
    """`entries` maps a party's name to the words of race.c for it. Samples: of each party, by round, the times."""

    def __init__(self, name, side, entries, count, pause):
        super().__init__(name, {key: None for party in entries for key in (party, gone(party))})
        self.side, self.entries = side, entries
        self.count, self.pause = count, pause
        self.starts = collections.defaultdict(collections.Counter)
        self.unseen = collections.Counter()

    def play_once(self, number):
        names = list(self.entries)
        turn = number % len(names)
        words = [word for name in names[turn:] + names[:turn] for word in self.entries[name]]
        taken = collections.defaultdict(list)
        for line in self.side.run(["race", str(self.count), str(self.pause), *words]).splitlines():
            party, known, end, start = line.rsplit(" ", 3)
            self.starts[party][start] += 1
            taken[party].append(int(known))
            if int(end):
                taken[gone(party)].append(int(end))
            else:
                self.unseen[party] += 1
        for party in names:
            if not taken[gone(party)]:
                raise BenchError(f"{party}: no process was seen to be gone")
        for party, times in taken.items():
            self.samples[party].append(times)

    def forget(self):
        super().forget()
        self.starts.clear()
        self.unseen.clear()

    def others(self, party):
        """How many of the party's processes had another start than it is named for: some at a pool that was empty for a moment
        do not move a median, and are shown."""
        return self.starts[party].total() - self.starts[party][party] if party in (LAUNCHED, POOLED) else 0

    def fault(self, party):
        """Why the party's figures are none, or None."""
        if self.broken:
            return self.broken
        total = self.starts[party].total()
        if party == POOLED and self.others(party) == total:
            return NO_SLOTS
        if self.others(party) > STRAY * total:
            return f"{self.others(party)} of {total} not {party}"
        if self.unseen[party] > STRAY * total:
            return f"{self.unseen[party]} of {total} not seen to be gone"
        return None


def exec_entry(name, *words):
    return ["exec", name, *map(str, words), ";"]


def keeper_entry(name, side, keeper, **policy):
    check = "unchecked" if side.options.unconfined else "confined"
    return ["keeper", name, keeper.env["COOP_SOCKET"], check, side.spawn_args(keeper, **policy), ";"]


def floors(side):
    return {FLOOR: exec_entry(FLOOR, TRUE), BWRAP: exec_entry(BWRAP, *side.bwrap())}


def races(side):
    """All parties, for each size of keeper and each pause."""
    for size in ("small", "large"):
        entries = floors(side) | {
            LAUNCHED: keeper_entry(LAUNCHED, side, side.keeper(size, 0)),
            POOLED: keeper_entry(POOLED, side, side.keeper(size, SLOTS)),
        }
        for pause in PAUSES:
            count = (15 if pause > 1000 else 30) // (4 if side.options.quick else 1)
            yield Race(f"sandbox, {side.who}, {size}, {pause}", side, entries, count, pause)


def minimal_race(side):
    """The root that holds only what is allowed: dearer, and only reported."""
    entries = floors(side)
    for name, slots in ((LAUNCHED, 0), (POOLED, SLOTS)):
        entries[name] = keeper_entry(name, side, side.keeper("small", slots), root="minimal")
    return Race(f"sandbox minimal, {side.who}", side, entries, 10 if side.options.quick else 20, 1000)


class Commands(Race):
    """Whole commands: what somebody types. Their records are looked at afterwards."""

    def __init__(self, side):
        self.used = {LAUNCHED: side.keeper("small", 0), POOLED: side.keeper("small", SLOTS)}
        entries = {FLOOR: exec_entry(FLOOR, TRUE), BWRAP: exec_entry(BWRAP, *side.bwrap("true"))}
        for name, keeper in self.used.items():
            place = [f"{key}={keeper.env[key]}" for key in ("COOP_SOCKET", "COOP_STATE", "COOP_CONF")]
            place.append(f"PWD={side.work(keeper)}")
            entries[name] = exec_entry(name, *place, side.programs / "coop", "run", "--", "true")
        super().__init__(f"sandbox command, {side.who}", side, entries, 10 if side.options.quick else 30, 1000)

    def play_once(self, number):
        super().play_once(number)
        for name, keeper in self.used.items():
            records = keeper.op("list", include_finished=True, limit=100000)["processes"]
            mine = [record for record in records if record["argv"] == ["true"]][-self.count :]
            # What race.c could not see of a command: which start its process had.
            self.starts[name].pop("-", None)
            self.starts[name].update(record["start"] for record in mine)
            if not mine or not (self.side.options.unconfined or all(map(confined, mine))):
                raise BenchError(f"coop run -- true is not confined: {mine[-1]['sandbox'] if mine else 'no record'}")


def confined(record):
    sandbox = record["sandbox"]
    return sandbox["enforced"] and sandbox["kind"] == "namespaces" and sandbox["profile"] == "workspace-write"


class Flight(Fragile):
    """Very many at a time; samples are the time of one of them."""

    def __init__(self, side):
        self.side = side
        count = FLIGHT if side.options.quick else 2 * FLIGHT
        self.args = [str(FLIGHT), str(count), "0"]
        self.count = count
        super().__init__(
            f"sandbox flight, {side.who}",
            {
                BWRAP: lambda: side.run(["spawn_floor", *self.args, *side.bwrap()]),
                LAUNCHED: lambda: self.through(side.keeper("small", 0)),
                POOLED: lambda: self.through(side.keeper("small", SLOTS)),
            },
        )

    def through(self, keeper):
        env = {"COOP_SOCKET": keeper.env["COOP_SOCKET"], "COOP_BENCH_ARGS": self.side.spawn_args(keeper)}
        if not self.side.options.unconfined:
            env["COOP_BENCH_CONFINED"] = "1"
        return self.side.run(["spawn_coop", *self.args, TRUE], **env)

    def play_once(self, number):
        names = list(self.parties)
        turn = number % len(names)
        taken = {name: int(self.parties[name]()) / self.count for name in names[turn:] + names[:turn]}
        for name, time_of in taken.items():
            self.samples[name].append(time_of)


def all_series(side):
    yield from races(side)
    yield minimal_race(side)
    yield Commands(side)
    yield Flight(side)


def start_sides(folder, options, stack):
    """Both users, or the one that we are."""
    if not BWRAP_PROGRAM:
        raise BenchError("no bwrap: there is nothing to compare a sandbox with (package bubblewrap)")
    os.chmod(folder, 0o711)
    names = ("root", "user") if os.getuid() == 0 else ("user",)
    need = len(names) * 2 * LARGE_PROCESSES * LARGE_RING + SPARE
    if not options.quick and memory()["MemAvailable"] < need:
        raise BenchError(f"two large keepers for each user need {need >> 20} MiB of memory")
    sides = []
    for who in names:
        sides.append(Side(folder, who, options))
        stack.callback(sides[-1].stop)
    return sides


def memory():
    """/proc/meminfo, in bytes."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}


def pool_memory(side):
    """What idle slots take, as the keeper says, and as the machine shows when a keeper with slots and one without go, in turn: the
    one's difference by the other's."""
    left = {SLOTS: [], 0: []}
    try:
        for number in range(2 if side.options.quick else 5):
            for slots in left:
                keeper = side.new_keeper(f"pool-{slots}-{number}", slots)
                try:
                    told = fill_pool(keeper, side)
                    with_it = memory()
                    if slots:
                        facts = {"idle": told["idle"], "told": told["memory_bytes"]}
                finally:
                    keeper.stop()
                time.sleep(0.2)  # what the kernel takes down later
                left[slots].append(freed(with_it, memory()))
    except BenchError as error:
        return {"fault": str(error)}
    if not facts["idle"]:
        return {"fault": NO_SLOTS}
    for name in ("available", "kernel"):
        facts[name] = statistics.median(a[name] - b[name] for a, b in zip(left[SLOTS], left[0]))
    return facts


def freed(before, after):
    kernel = ("Slab", "KernelStack", "PageTables")
    return {
        "available": after["MemAvailable"] - before["MemAvailable"],
        "kernel": sum(before[name] - after[name] for name in kernel),
    }


def fill_pool(keeper, side):
    """Starts some processes, so that there is a reason for slots, and waits until they do not become more."""
    slots = keeper.op("doctor")["slots"]
    for _ in range(4):
        keeper.op("spawn", **json.loads(side.spawn_args(keeper)))
        time.sleep(0.02)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        time.sleep(0.3)
        now = keeper.op("doctor")["slots"]
        if now["idle"] == slots["idle"]:
            break
        slots = now
    return slots

"""The sandbox's figures beside their targets."""

import statistics

from sandbox import BWRAP, FLIGHT, FLOOR, LAUNCHED, NO_SLOTS, POOLED, Commands, Flight, Fragile, Race, gone
from table import QUIET, Absent, Row, micros, print_table

# What is compared with what, in which sense, and how much it may be.
TARGETS = (
    ("launched, gone", LAUNCHED, BWRAP, gone, 0.5),
    ("launched, gone", LAUNCHED, FLOOR, gone, 2.5),
    ("pooled, gone", POOLED, FLOOR, gone, 1.35),
    ("pooled, known", POOLED, FLOOR, str, 1.2),
)
COMMAND, RATE = 0.8, 2
PAUSE_NAMES = {0: "no pause", 1000: "1 ms", 10000: "10 ms"}


def medians(race, party):
    return [statistics.median(times) for times in race.samples[party]]


def ratio_row(what, race, party, other, sense, target):
    """Medians of each round, then their ratios."""
    fault = race.fault(party) or race.fault(other)
    if fault:
        return Absent(what, fault, target)
    ours, theirs = medians(race, sense(party)), medians(race, sense(other))
    ratios = [a / b for a, b in zip(ours, theirs)]
    strays = race.others(party)
    shown = micros(ours) + (f", {strays} of {race.starts[party].total()} not {party}" if strays else "")
    return Row(what, shown, f"{other} {micros(theirs)}", ratios, target, at_least=False, noisy=race.spread() > QUIET)


def is_plain(line):
    return isinstance(line, Race) and line.name.startswith("sandbox, ")


def place(race):
    _, who, size, pause = race.name.split(", ")
    return f"{who}, {size}, {PAUSE_NAMES[int(pause)]}"


def race_rows(races):
    for what, party, other, sense, target in TARGETS:
        rows = [ratio_row(f"{what}, {place(race)}", race, party, other, sense, target) for race in races]
        yield from rows
        yield over_all(f"{what}, over all", [row for row in rows if isinstance(row, Row)], other, target, len(rows))


def over_all(what, rows, other, target, expected):
    """One figure for the target: the median of the places' medians, with no place left out."""
    if len(rows) < expected:
        return Absent(what, f"{expected - len(rows)} of {expected} have no figure", target)
    return Row(what, "", other, [row.ratio for row in rows], target, at_least=False)


def command_rows(line):
    who = line.name.split(", ")[1]
    for party in (LAUNCHED, POOLED):
        yield ratio_row(f"coop run -- true, {party}, {who}", line, party, BWRAP, gone, COMMAND)


def flight_rows(line):
    who = line.name.split(", ")[1]
    for party, slots in ((LAUNCHED, "without slots"), (POOLED, "with slots")):
        what = f"{FLIGHT} in flight, {slots}, {who}"
        if line.broken:
            yield Absent(what, line.broken, RATE, at_least=True)
            continue
        ours, theirs = line.samples[party], line.samples[BWRAP]
        ratios = [b / a for a, b in zip(ours, theirs)]
        yield Row(what, rate(ours), f"{BWRAP} {rate(theirs)}", ratios, RATE, noisy=line.spread() > QUIET)


def minimal_rows(line):
    who = line.name.split(", ")[1]
    for party in (LAUNCHED, POOLED):
        for other in (BWRAP, FLOOR):
            yield ratio_row(f"allow-list root, {party}, {who}", line, party, other, gone, None)


def rate(samples):
    return f"{1e9 / statistics.median(samples):.0f}/s"


def rows(lines, facts):
    """Rows of the table; `lines` is by name."""
    yield from race_rows([line for line in lines.values() if is_plain(line)])
    for line in lines.values():
        if isinstance(line, Commands):
            yield from command_rows(line)
        elif isinstance(line, Flight):
            yield from flight_rows(line)
        elif line.name.startswith("sandbox minimal"):
            yield from minimal_rows(line)
    for who, pool in facts["pools"].items():
        if "fault" in pool:
            yield Absent(f"idle pool, {who}", pool["fault"], None, wanted=True)
    if "root" not in facts["pools"]:
        yield Absent("root keeper", "not measured: not run as root", None, wanted=True)


def print_times(lines):
    """Medians of all, in microseconds."""
    parties = [sense(party) for party in (FLOOR, BWRAP, LAUNCHED, POOLED) for sense in (str, gone)]
    cells = [["us, median of rounds", *[party.replace(", ", " ") for party in parties]]]
    for race in lines.values():
        if is_plain(race) and not race.broken:
            cells.append([place(race), *[f"{statistics.median(medians(race, party)) / 1e3:.0f}" for party in parties]])
    print_table(cells)


def print_pools(pools):
    for who, pool in pools.items():
        if "fault" in pool:
            print(f"idle pool, {who}: {pool['fault']}")
            continue
        each = [pool[name] / pool["idle"] / 1024 for name in ("told", "available", "kernel")]
        print(
            f"idle pool, {who}: {pool['idle']} slots, each by the keeper's word {each[0]:.0f} KiB, "
            f"by the machine's free memory {each[1]:.0f} KiB, of that slab, stacks and page tables {each[2]:.0f} KiB"
        )


def faults(lines):
    """Series that did not compare like with like, or did not get to the end: no run with such a one is good. That there are no slots
    is a missed target and no more."""
    for line in lines.values():
        if isinstance(line, Race):
            why = {line.fault(party) for party in line.entries} - {None, NO_SLOTS}
        else:
            why = {line.broken} - {None} if isinstance(line, Fragile) else ()
        yield from (f"{line.name}: {reason}" for reason in why)


def report(lines, facts, unconfined):
    print_times(lines)
    print_pools(facts["pools"])
    if unconfined:
        print("UNCONFINED: nothing was asked to be in a sandbox or seen to be in one; these figures compare unlike things")
    for fault in faults(lines):
        print(f"FAILED: {fault}")

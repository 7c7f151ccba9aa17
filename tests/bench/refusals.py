"""Whether the time of a refusal tells an id that is somebody else's from one that never was."""

import itertools
import json
import random
import statistics

from series import TRUE, percentile
from stage import program, run

OPS = {"status": {}, "read": {"max": 16}, "signal": {"signal": "TERM"}}
EACH = 8  # ids of a kind
# What the others are compared with, and the same once more with other ids: how far these two differ is noise.
UNKNOWN, AGAIN = "unknown id", "unknown id, others"
BLOCKS = 20  # stretches of the run within which kinds are compared, so that a slow second weighs on all of them alike
PATIENCE = 300  # seconds: tens of thousands of round trips, on a machine that may be busy
SIGMA = 1.4826  # of a normal distribution, in median absolute deviations


def measure(crowd, quick):
    """For each operation and kind of id: what a refusal takes, and how far that differs from an unknown id's."""
    asker, *others = reversed(list(crowd.tokens))  # a leaf; its parent and its siblings are among the others
    kinds = names(crowd, asker, others)
    questions = [(op, kind) for op in OPS for kind in kinds]
    lines = [
        f"{number} {op} {json.dumps({'id': name, **OPS[op]})}\n"
        for number, (op, kind) in enumerate(questions)
        for name in kinds[kind]
    ]
    seed = random.randrange(1, 1 << 32)
    argv = [program("refusals"), "20" if quick else "250", str(seed)]
    samples = [[] for _ in questions]
    env = crowd.keeper.env | {"COOP_TOKEN": crowd.tokens[asker]}
    for line in run(argv, env, "".join(lines), patience=PATIENCE).splitlines():
        number, took = line.split()
        samples[int(number)].append(int(took))
    taken = dict(zip(questions, samples))
    return {
        "seed": seed,
        "rows": [judge(op, kind, taken[op, kind], taken[op, UNKNOWN]) for op, kind in questions],
        "samples_ns": {f"{op}, {kind}": took for (op, kind), took in taken.items()},
    }


def names(crowd, asker, others):
    """Of each kind some, all of about the same length. The asker has records of its own, too."""
    sleeper = program("sleeper")
    lives = {
        spawn(crowd, path, [sleeper], f"kept-by-{number:02d}"): f"kept-by-{number:02d}"
        for number, path in enumerate(others[:: len(others) // EACH][:EACH])
    }
    released = [spawn(crowd, asker, [TRUE]) for _ in range(EACH)]
    for name in released:
        crowd.op(asker, "wait", id=name)
        crowd.op(asker, "release", id=name)
    records = crowd.keeper.op("list", include_finished=True, limit=100000, brief=True)["processes"]
    ended = [record for record in records if record["agent_path"] != f"main/{asker}" and record["exit"]]
    last = max(int(record["id"].split("-")[2]) for record in records)
    unknown = never(list(lives), last)
    return {
        UNKNOWN: unknown[::2],
        AGAIN: unknown[1::2],
        "foreign, running": list(lives),
        "foreign, ended": [record["id"] for record in ended if not record["receipt"]][-EACH:],
        "foreign, receipt": [record["id"] for record in ended if record["receipt"]][-EACH:],
        "released": released,
        "malformed": [name.replace("psh-", "psh+") for name in lives],
        "foreign tag": list(lives.values()),
        "unknown tag": [tag.replace("kept", "held") for tag in lives.values()],
    }


def never(like, last):
    """Twice as many ids as these, with pids like theirs and numbers that nobody will have before this is over."""
    top = 10 ** len(str(last + 1000)) - 1
    return [f"{like[i // 2].rsplit('-', 1)[0]}-{top - i}" for i in range(2 * EACH)]


def spawn(crowd, path, argv, tag=None):
    return crowd.op(path, "spawn", argv=argv, cwd="/", tag=tag)["process"]["id"]


def judge(op, kind, taken, unknown):
    """The difference is the median of those of the stretches; its error comes from how far they lie apart."""
    gaps = [statistics.median(a) - statistics.median(b) for a, b in zip(stretches(taken), stretches(unknown))]
    gap = statistics.median(gaps)
    error = SIGMA * statistics.median([abs(one - gap) for one in gaps]) / len(gaps) ** 0.5
    return {
        "op": op,
        "kind": kind,
        "n": len(taken),
        "median_ns": statistics.median(taken),
        "p10_ns": percentile(taken, 0.1),
        "gap_ns": gap,
        "error_ns": error,
        "guessed": guessed(taken, unknown),
    }


def stretches(samples):
    size = max(1, len(samples) // BLOCKS)
    return [samples[at : at + size] for at in range(0, len(samples) - size + 1, size)]


def guessed(first, second):
    """How often one who sees one time of each is right about which is which: by guessing alone, half of the time."""
    ordered = sorted([(took, 0) for took in first] + [(took, 1) for took in second])
    smaller = wins = 0
    for _, equal in itertools.groupby(ordered, key=lambda sample: sample[0]):
        whose = [owner for _, owner in equal]
        ours = whose.count(0)
        wins += whose.count(1) * (smaller + ours / 2)
        smaller += ours
    share = wins / (len(first) * len(second))
    return max(share, 1 - share)


def lines(facts):
    """The table."""
    rows = facts["rows"]
    count = rows[0]["n"]
    chance = 0.5 + 1.96 / (6 * count) ** 0.5
    yield f"refusals, {count} of each in random order (seed {facts['seed']}); unknown ids among themselves show the noise;"
    yield f"without any difference {100 * chance:.1f} % are guessed right at most, 19 times of 20"
    form = "{:<8}{:<22}{:>11}{:>11}{:>14}{:>12}{:>15}"
    yield form.format("op", "of", "p10", "median", "- unknown id", "+-", "guessed right")
    for row in rows:
        yield form.format(
            row["op"],
            row["kind"],
            f"{row['p10_ns'] / 1e3:.2f} us",
            f"{row['median_ns'] / 1e3:.2f} us",
            f"{row['gap_ns'] / 1e3:+.2f} us",
            f"{row['error_ns'] / 1e3:.2f} us",
            f"{100 * row['guessed']:.1f} %",
        )

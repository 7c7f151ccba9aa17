"""Base64 with JSON around it, against a loop of AVX2 that has nothing to choose and no end to look after."""

import statistics

from series import Series
from stage import BenchError, numbers, program
from table import QUIET, Absent, Row

SIZES = {1 << 10: "1 KiB", 16 << 10: "16 KiB", 64 << 10: "64 KiB"}
TARGET = 0.8


def all_series(quick):
    """One for each size of the chunks; none where the floor cannot be had."""
    total = str((1 << 30) // (8 if quick else 1))
    try:
        numbers([program("base64_frame"), "floor", "1024", "1024"])
    except BenchError:
        return
    for size in SIZES:
        parties = {
            party: lambda party=party, size=size: numbers([program("base64_frame"), party, str(size), total])[0]
            for party in ("floor", "coop", "plain")
        }
        yield Series(f"base64 {size}", parties)


def rows(lines, quick):
    total = (1 << 30) // (8 if quick else 1)
    found = False
    for size, name in SIZES.items():
        line = lines.get(f"base64 {size}")
        if not line:
            continue
        found = True
        for other, target in (("floor", TARGET), ("plain", None)):
            ours, theirs = line.samples["coop"], line.samples[other]
            ratios = [b / a for a, b in zip(ours, theirs)]
            what = {"floor": "AVX2 loop", "plain": "no vectors"}[other]
            yield Row(
                f"base64 frame, {name}",
                speed(ours, total),
                f"{what} {speed(theirs, total)}",
                ratios,
                target,
                noisy=line.spread() > QUIET,
            )
    if not found:
        yield Absent("base64 frame", "this processor has no AVX2", TARGET, at_least=True)


def speed(samples, total):
    return f"{total / statistics.median(samples):.2f} GB/s"

"""What became of the mutants: a table by area, and each survivor."""

import re
from collections import Counter
from pathlib import Path

from .operators import AREAS, area_of

ENOUGH = 85
COLUMNS = ("noticed", "timeout", "survived", "known", "equivalent", "uncompiled")
HEADS = ("by assertion", "by timeout", "survived", "reviewed", "same object", "uncompiled")


def squeeze(text):
    return re.sub(r"\s+", " ", text.strip())


def read_reviewed(path):
    """{(file, line's text, operator): reason}: survivors that were looked at and change nothing. Four columns, tabs between."""
    result = {}
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("\t")
        if len(parts) != 4 or not parts[3].strip():
            raise ValueError(f"{path}:{number}: wants file, text of the line, operator and reason, with tabs between")
        result[parts[0], squeeze(parts[1]), parts[2]] = parts[3].strip()
    return result


def by_nearest(row, reviewed):
    """The fate of a row by the nearest tests, with the reviewed ones told apart."""
    if row["fate"] == "survived" and (row["file"], squeeze(row["was"]), row["operator"]) in reviewed:
        return "known"
    return row["fate"]


def settle(row, reviewed):
    """Its fate by all tests that it met: what only one behind the nearest ones noticed is noticed."""
    fate = by_nearest(row, reviewed)
    return row.get("all", fate).split()[0] if fate == "survived" else fate


def share(counts):
    noticed = counts["noticed"] + counts["timeout"]
    counted = noticed + counts["survived"]
    return 100.0 * noticed / counted if counted else 100.0


def table(rows, reviewed, sizes):
    """Lines of text: one for each area, with its share of all places, and one for all."""
    counts = {area: Counter() for area in sizes}
    for row in rows:
        counts[area_of(row["file"])][settle(row, reviewed)] += 1
    total, everything = Counter(), sum(sizes.values())
    yield f"{'area':10}{'places':>9}{'share':>8}" + "".join(f"{head:>14}" for head in HEADS) + f"{'noticed':>10}"
    for area in AREAS:
        if area not in sizes:
            continue
        total.update(counts[area])
        yield line(area, sizes[area], everything, counts[area])
    yield line("all", everything, everything, total)


def line(name, size, everything, counts):
    cells = "".join(f"{counts[column]:>14}" for column in COLUMNS)
    return f"{name:10}{size:>9}{100 * size / max(1, everything):>7.1f}%{cells}{share(counts):>9.1f}%"


def survivors(rows, reviewed):
    for row in rows:
        fate = settle(row, reviewed)
        if fate not in ("survived", "known"):
            continue
        yield f"{row['file']}:{row['line']}: {row['operator']} {'survived' if fate == 'survived' else 'changes nothing'}"
        yield f"    - {row['was']}"
        yield f"    + {row['is']}"
        if fate == "known":
            yield f"    reviewed: {reviewed[row['file'], squeeze(row['was']), row['operator']]}"
            continue
        ran = row.get("ran", [])
        yield f"    {len(ran)} tests ran: {' '.join(ran[:6])}{' …' if len(ran) > 6 else ''}"
        if row.get("unsteady"):
            yield f"    failed once, passed the second time: {' '.join(row['unsteady'])}"
        if "all" in row:
            yield f"    all tests that run the line: {row['all']}"


def passed(rows, reviewed):
    counts = Counter(settle(row, reviewed) for row in rows)
    return share(counts) >= ENOUGH

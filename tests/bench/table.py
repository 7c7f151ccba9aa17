"""What was measured, line by line, each beside its target."""

import statistics

QUIET = 1.5  # the floor's own rounds may differ by that much
WHY_MAX = 60  # characters; all of it is among the raw samples
AGREED = 0.8  # else this share of the rounds must say the same


class Row:
    """One line of the table. `ratios` has one for each round; `at_least` says which side of the target is good."""

    def __init__(self, what, coop, other, ratios, target=None, at_least=True, noisy=False):
        self.what, self.coop, self.other = what, coop, other
        self.ratios, self.target, self.at_least, self.noisy = ratios, target, at_least, noisy
        self.ratio = statistics.median(ratios)

    def meets(self, ratio):
        return ratio >= self.target if self.at_least else ratio <= self.target

    @property
    def verdict(self):
        if self.target is None:
            return "-"
        good = self.meets(self.ratio)
        same = sum(self.meets(ratio) == good for ratio in self.ratios) / len(self.ratios)
        if self.noisy and same < AGREED:
            return "noisy"
        return "ok" if good else "MISSED"

    def cells(self):
        ratio = f"{self.ratio:.2f}"
        if len(self.ratios) > 1:
            ratio += f" ({min(self.ratios):.2f}-{max(self.ratios):.2f})"
        return [self.what, self.coop, self.other, ratio, goal_text(self.target, self.at_least), self.verdict]

    def as_json(self):
        keys = ("what", "coop", "other", "ratios", "ratio", "target", "at_least", "noisy", "verdict")
        return {key: getattr(self, key) for key in keys}


class Absent:
    """A line that has no figure, which is never a pass; without a target it is a miss only if it is `wanted`."""

    def __init__(self, what, why, target, at_least=False, wanted=False):
        self.what, self.why, self.target, self.at_least = what, why, target, at_least
        self.verdict = "-" if target is None and not wanted else "MISSED"

    def cells(self):
        return [self.what, self.why[:WHY_MAX], "-", "-", goal_text(self.target, self.at_least), self.verdict]

    def as_json(self):
        return {key: getattr(self, key) for key in ("what", "why", "target", "at_least", "verdict")}


def goal_text(target, at_least):
    return "reported" if target is None else f"{'>=' if at_least else '<='} {target:g}"


def micros(values):
    return f"{statistics.median(values) / 1e3:.0f} us"


def print_table(cells):
    """Lines of cells, the first of them the heading."""
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def print_rows(rows):
    if rows:
        heading = ["what", "coop", "floor or peer", "ratio (min-max)", "target", "verdict"]
        print_table([heading, *[row.cells() for row in rows]])

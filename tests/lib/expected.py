"""The lists of tests/escape/expected: what each attack must meet in a mode, what the record must say, what may be seen outside."""

import fnmatch
from pathlib import Path

# The attacks of the test that runs which met what the list `full` says. The worker tells the runner, and that knows so which were made.
answered = set()
FOLDER = Path(__file__).resolve().parents[1] / "escape" / "expected"


class Expected:
    """One list, with those that it includes. Later lines win."""

    def __init__(self, name, where=()):
        self.where = set(where)
        self.cases, self.report, self.effects, self.refused = {}, {}, set(), None
        self.read(name)

    def read(self, name):
        for line in (FOLDER / f"{name}.txt").read_text().splitlines():
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            head, _, tags = words[0].partition("@")
            if tags and not set(tags.split(",")) <= self.where:
                continue
            if head == "include":
                self.read(words[1])
            elif head == "report":
                self.report[words[1]] = words[2]
            elif head == "effects":
                self.effects = set(words[1:])
            elif head == "refused":
                self.refused = set(words[1:])
            else:
                self.cases[head] = set(words[1:])

    def of(self, case):
        """The outcomes that are right for a case; None if the list knows nothing of it."""
        while case and case not in self.cases:
            case = case.rpartition(".")[0]
        return self.cases.get(case)

    def allows(self, effect):
        return any(fnmatch.fnmatchcase(effect, pattern) for pattern in self.effects)

    def wrong(self, lines, wanted):
        """What the attacks met that they should not, in words; and the cases that were not made at all."""
        faults = [fault for line in lines if (fault := self.judge(line))]
        made = {line["case"] for line in lines}
        return faults + [f"{case}: was not made" for case in wanted if case not in made]

    def judge(self, line):
        found, right = told(line), self.of(line["case"])
        if right is None:
            return f"{line['case']}: {found}, and the list does not know it"
        if found in right or "*" in right:
            return None
        value = f" ({line['value']})" if line.get("value") else ""
        return f"{line['case']}: {found}{value} instead of {' '.join(sorted(right))}"


def told(line):
    """An outcome as the lists write it."""
    if line["outcome"] == "errno":
        return line["errno"]
    if line["outcome"] == "look":
        return "=" + line.get("value", "").replace(" ", "_")
    return line["value"] if line["outcome"] == "signal" else line["outcome"]

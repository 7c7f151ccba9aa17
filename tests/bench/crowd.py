"""A keeper with many agents and records, and what that costs a spawn."""

import json
import statistics

from series import TRUE, Series
from stage import COOP, PLAIN, BenchError, Keeper, program, run

PARENTS, CHILDREN = 8, 7  # 64 agents: eight, each with seven below it
RECORDS = 5000
WIDTH = 16
BARE = PLAIN + "[records]\nenabled = no\n[audit]\nenabled = no\n"


class Crowd:
    """A keeper with 64 agents in a tree, each with a token, and 5000 records of theirs."""

    def __init__(self, folder, plant=None):
        self.keeper = Keeper(folder, "crowd", plant=plant)
        self.tokens = {}
        try:
            for path in tree(PARENTS, CHILDREN):
                self.tokens[path] = add_agent(self.keeper, path)
            self._fill()
        except BaseException:
            self.keeper.stop()
            raise

    def _fill(self):
        """Finished records of each agent as far as those are kept, and receipts."""
        each = RECORDS // len(self.tokens) + 1
        for token in self.tokens.values():
            self.keeper.run([program("spawn_coop"), "8", str(each), "0", TRUE], COOP_TOKEN=token)
        counts = self.keeper.op("info")["processes"]
        if counts["finished"] + counts["receipts"] < RECORDS:
            raise BenchError(f"the keeper does not have {RECORDS} records: {counts}")

    def leaves(self):
        return [path for path in self.tokens if "/" in path]

    def op(self, path, name, **args):
        """One operation as that agent."""
        return json.loads(run([COOP, "op", name, json.dumps(args)], self.keeper.env | {"COOP_TOKEN": self.tokens[path]}))

    def stop(self):
        self.keeper.stop()


def tree(parents, children):
    for parent in range(parents):
        yield f"a{parent}"
        for child in range(children):
            yield f"a{parent}/b{child}"


def add_agent(keeper, path):
    """A token of the new agent, which may do without a sandbox as main may."""
    keeper.op("agent_add", agent=path, sandbox={"profile": "full"})
    return keeper.op("token_new", agent=path)["token"]


def agents(crowd, bare, quick):
    """The same processes from a keeper with agents, records and audit, and from one without any of these. Both are asked on as
    many connections. A round is many short turns: what is looked for is smaller than what the machine does from second to second."""
    count, turns = (100, 2) if quick else (200, 6)
    args = [program("spawn_coop"), str(WIDTH), str(count), "0", TRUE]
    leaves = crowd.leaves()
    chosen = leaves[:: len(leaves) // WIDTH][:WIDTH]
    parties = {
        "without": (bare, " ".join("-" * WIDTH)),
        "with": (crowd.keeper, " ".join(crowd.tokens[path] for path in chosen)),
    }
    taken = {}

    def turn(name):
        keeper, tokens = parties[name]
        if name == "without":
            keeper.op("gc")
        before = keeper.cpu_ns()
        took = keeper.time(args, COOP_BENCH_TOKENS=tokens)
        series.keeper_cpu.setdefault(name, []).append((keeper.cpu_ns() - before) / count)
        return took / count

    def play_all():
        taken.update({name: [] for name in parties})
        for number in range(turns):
            for name in list(parties)[:: 1 if number % 2 else -1]:
                taken[name].append(turn(name))

    def give(name):
        if not taken.get(name):
            play_all()
        return statistics.median(taken.pop(name))

    series = Series("agents", {name: lambda name=name: give(name) for name in parties})
    return series

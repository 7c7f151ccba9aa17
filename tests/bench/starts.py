"""From asking for /bin/true to knowing its end, through the gateway, without a sandbox around it.

What the gateway adds is told in units of a plain posix_spawn and wait: by how much its way is longer than the keeper's
own two operations on an open connection of libcoop, by that unit. The peers do the whole job themselves and keep no record of it: node with
child_process and ws, and websocketd, each with a fresh connection for each process, as coop's WebSocket has."""

import contextlib
import json
import statistics

import door
from series import TRUE, Series
from stage import program, run
from table import QUIET, Absent, Row, micros

UNIT, KEEPER, OPS, START, NODE, WEBSOCKETD = "posix_spawn", "keeper", "HTTP", "WebSocket", "node", "websocketd"
OVERHEAD = 0.5


class Starts(Series):
    """Samples: of each party, by round, the times."""

    def __init__(self, entries, count):
        super().__init__("gateway starts", entries)
        self.entries, self.count = entries, count

    def play(self, number):
        words = [word for name, entry in self.entries.items() for word in [entry[0], name, *entry[1:], ";"]]
        taken = {name: [] for name in self.entries}
        for line in run([program("door_race"), str(self.count), *words]).splitlines():
            name, took = line.rsplit(" ", 1)
            taken[name].append(int(took))
        for name, times in taken.items():
            self.samples[name].append(times)

    def middles(self, name):
        return [statistics.median(times) for times in self.samples[name]]


@contextlib.contextmanager
def peers():
    """Entries of what else runs here."""
    with contextlib.ExitStack() as stack:
        entries = {}
        folder = door.peer_folder()
        if folder:
            server = door.Server(door.peer_argv(folder, "door.mjs"))
            stack.callback(server.stop)
            entries[NODE] = ["start", server.port, "none", start_frame()]
        if door.WEBSOCKETD:
            server = door.Websocketd(TRUE)
            stack.callback(server.stop)
            entries[WEBSOCKETD] = ["closing", server.port]
        yield entries


def start_frame():
    return json.dumps({"type": "start", "cmd": TRUE, "args": []})


def series(keeper, gate, others, quick):
    spawn = json.dumps({"argv": [TRUE], "cwd": "/", "sandbox": {"profile": "full"}})
    entries = {
        UNIT: ["exec", TRUE],
        KEEPER: ["keeper", keeper.env["COOP_SOCKET"], spawn],
        OPS: ["ops", gate.port, gate.token, spawn],
        START: ["start", gate.port, gate.token, start_frame()],
        **others,
    }
    return Starts(entries, 20 if quick else 100)


def rows(line):
    noisy = line.spread() > QUIET
    unit, keeper = line.middles(UNIT), line.middles(KEEPER)
    for name, how in ((OPS, "open HTTP connection"), (START, "fresh WebSocket")):
        ours = line.middles(name)
        beyond = [(a - b) / u for a, b, u in zip(ours, keeper, unit)]
        what = f"start to end, {how}"
        theirs = f"keeper {micros(keeper)}, spawn {micros(unit)}"
        yield Row(f"{what}, beyond keeper by spawn", micros(ours), theirs, beyond, OVERHEAD, False, noisy)
        for other in (NODE, WEBSOCKETD):
            if other not in line.samples:
                yield Absent(f"{what}, by {other}", f"no {other} here", 1, at_least=True)
                continue
            theirs = line.middles(other)
            ratios = [b / a for a, b in zip(ours, theirs)]
            yield Row(what, micros(ours), f"{other} {micros(theirs)}", ratios, 1, noisy=noisy)

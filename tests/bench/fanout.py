"""One process's output to many WebSockets: coop's gateway against a bare server, and against node's package ws.

What is fair here. coop never makes a process wait for those who look at it: a process that writes faster than the
slowest subscriber takes costs that subscriber a gap. The bare server and node do the opposite: they stop reading, or pile
up. A writer without a brake would hence measure two different jobs. So the writer is held by its readers, in the same way for all:
it may be as much ahead of the slowest subscriber as fits into coop's buffers, and waits for a word from the reading
program (through a FIFO, which no server sees). Then nothing is lost, and all deliver the same bytes: numbers must be dense, sums
exact, and in the warm-up each byte is looked at. What coop delivers of a writer without a brake, and how much of it is
lost, is reported beside that.

All servers start the same program, send frames of the same form (the bare one encodes with coop's own base64), and are
read by the same program, which shares the processors with them. Starting and attaching is not timed.

100-byte writes come in two kinds. In a row, they pile up in the pipe, and every server reads large pieces: hardly a frame
has 100 bytes. "Apart" is what a process does that writes a line now and then: each write is read by itself (the
pipe is in packet mode), by the keeper, by the bare server and by node alike, so that what is measured is what a small event
costs. That is the one with the target."""

import os
import pathlib
import statistics

import door
from series import Series
from stage import BenchError, program, run
from table import QUIET, Row

COUNTS = (1, 64, 256)
LARGE, SMALL = 16 << 10, 100
PATIENCE = 120


class Shape:
    """What is written, to how many. `writes` of `size` bytes; the writer may be `window` times `unit` bytes ahead."""

    def __init__(self, size, count, writes, unit, window, apart=False, brake=True):
        self.size, self.count, self.apart, self.brake = size, count, apart, brake
        self.writes, self.unit, self.window = writes, unit, window
        if not brake:
            self.unit, self.window = size * writes, 1

    @property
    def name(self):
        kind = f"fan-out to {self.count}, " + ("16 KiB" if self.size == LARGE else "100 B")
        return kind + (" apart" if self.apart else "") + ("" if self.brake else ", no brake")


def shapes(quick):
    less = 8 if quick else 1
    for count in COUNTS:
        yield Shape(LARGE, count, (16384, 2048, 512)[COUNTS.index(count)] // less, 64 << 10, 8)
    for count in COUNTS:
        yield Shape(SMALL, count, (32768, 6144, 2048)[COUNTS.index(count)] // less, 64 * SMALL, 32, apart=True)
    yield Shape(SMALL, 64, 65536 // less, 64 * SMALL, 64)
    yield Shape(LARGE, 64, 2048 // less, 0, 0, brake=False)


class Fanout(Series):
    """Samples are the nanoseconds of a delivered byte of output; `seen` holds what else the reader told, by party."""

    def __init__(self, shape, folder, keeper, gate, peer):
        self.shape, self.folder, self.keeper, self.gate = shape, pathlib.Path(folder), keeper, gate
        self.fifo, self.output = self.folder / "fanout.fifo", self.folder / "fanout.out"
        self.seen, self.check, self.writes = {}, "verify", max(shape.writes // 8, 256)
        parties = {"floor": self.by_floor, "coop": self.by_coop}
        if peer and shape.brake:
            parties["node"] = lambda: self.by_node(peer)
        super().__init__(shape.name, parties)

    def forget(self):
        """Once everything has been looked at, in the warm-up, that need not be done again."""
        super().forget()
        self.seen.clear()
        self.check, self.writes = "quick", self.shape.writes

    def writer(self):
        shape = self.shape
        way = "apart" if shape.apart else "together"
        return [program("fanout_writer"), *map(str, (shape.size, self.writes, shape.unit, self.fifo)), way]

    def prepare(self):
        for path in (self.fifo, self.output):
            path.unlink(missing_ok=True)
            os.mkfifo(path)

    def read(self, party, port, target, token):
        shape = self.shape
        lossy = "lossless" if shape.brake or party != "coop" else "lossy"
        args = [port, target, token, shape.count, shape.size * self.writes, self.fifo, shape.unit, shape.window, lossy, self.check]
        text = run([program("fanout_read"), *map(str, args)], patience=PATIENCE)
        ns, frames, payload, wire, lost = map(int, text.split())
        facts = {"frames": frames, "payload": payload, "wire": wire, "lost": lost, "ns": ns}
        self.seen.setdefault(party, []).append(facts)
        return ns / payload

    def by_server(self, party, argv):
        self.prepare()
        server = door.Server(argv)
        try:
            took = self.read(party, server.port, "/", "none")
            self.seen[party][-1]["server ns"] = server.cpu_ns()
            if not server.left():
                raise BenchError(f"{party} did not end in order")
        finally:
            server.stop()
        return took

    def by_floor(self):
        return self.by_server("floor", [program("fanout_floor"), str(self.shape.count), *self.writer()])

    def by_node(self, peer):
        output = str(self.output) if self.shape.apart else "-"
        return self.by_server("node", door.peer_argv(peer, "fanout.mjs", output, str(self.shape.count), *self.writer()))

    def by_coop(self):
        self.prepare()
        started = self.keeper.op("spawn", argv=self.writer(), cwd="/")["process"]["id"]
        before = self.gate.cpu_ns(), self.keeper.cpu_ns()
        took = self.read("coop", self.gate.port, f"/runtime/v1/process/{started}/connect?since=0", self.gate.token)
        facts = self.seen["coop"][-1]
        facts["gateway ns"] = self.gate.cpu_ns() - before[0]
        facts["keeper ns"] = self.keeper.cpu_ns() - before[1]
        facts["server ns"] = facts["gateway ns"] + facts["keeper ns"]
        return took


def all_series(folder, keeper, gate, quick):
    peer = door.peer_folder()
    for shape in shapes(quick):
        yield Fanout(shape, folder, keeper, gate, peer)


def delivered(line, party):
    """What a user would call it: MB/s of output, or millions of frames where those are small."""
    seen = line.seen[party]
    if line.shape.apart:
        return f"{statistics.median(s['frames'] / s['ns'] * 1e3 for s in seen):.3f} M/s"
    return f"{statistics.median(s['payload'] / s['ns'] * 1e3 for s in seen):.0f} MB/s"


def targets(shape):
    """Against the bare server and against node."""
    if not shape.brake:
        return None, None
    if shape.size == LARGE:
        return 0.7, 1
    if shape.apart:
        return 0.5, 5
    return None, None


def rows(lines):
    for line in lines.values():
        if not isinstance(line, Fanout):
            continue
        for other, target in zip(("floor", "node"), targets(line.shape)):
            if other in line.samples:
                ratios = [b / a for a, b in zip(line.samples["coop"], line.samples[other])]
                theirs = f"{other} {delivered(line, other)}"
                yield Row(line.name, delivered(line, "coop"), theirs, ratios, target, noisy=line.spread() > QUIET)


def busy(total, key):
    """Time on a processor for a delivered frame: hardly moved by what else the machine does."""
    return f"{total[key] / total['frames'] / 1e3:.2f} us"


def report(lines):
    """What stands behind the rows: sizes of frames, loss, and what a frame cost the servers. Of coop these are two."""
    for line in lines.values():
        if not isinstance(line, Fanout):
            continue
        texts = []
        for party, seen in line.seen.items():
            total = {key: sum(s.get(key, 0) for s in seen) for key in seen[0]}
            each = total["payload"] / total["frames"]
            text = f"{party} {each:.0f} B a frame, {total['wire'] / total['frames']:.0f} sent, {busy(total, 'server ns')}"
            if total["lost"]:
                text += f", {100 * total['lost'] / (total['lost'] + total['payload']):.1f} % lost"
            if party == "coop":
                text += f" (gateway {busy(total, 'gateway ns')}, keeper {busy(total, 'keeper ns')})"
            texts.append(text)
        print(f"{line.name}: " + "; ".join(texts))

"""What subscribers cost that are attached and hear nothing: memory of the gateway, and of the keeper behind it."""

import pathlib
import resource
import subprocess

import door
from stage import BenchError, Keeper, program
from table import Absent, Row

COUNT = 5000
SPREADS = (1, 50)  # processes that they are attached to
TARGET = 16  # KiB in the gateway, each
FEW = 100  # attached before the first look: what is made once is not theirs
SPARE_FILES = 200


def rss(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise BenchError(f"process {pid} has no memory")


class Crowd:
    """So many attached subscribers."""

    def __init__(self, gate, count, ids):
        argv = [program("subscribers"), gate.port, gate.token, str(count), *ids]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            door.first_line(self.process, "subscribers")
        except BenchError:
            self.leave()
            raise

    def leave(self):
        self.process.stdin.close()
        door.end(self.process)


def hold(folder, count, spread):
    """Bytes for each, of the gateway and of the keeper, both fresh."""
    keeper = Keeper(folder, f"held-{spread}")
    gate, crowds = None, []
    try:
        gate = door.Door(keeper)
        ids = [keeper.op("spawn", argv=["/bin/sleep", "3600"], cwd="/")["process"]["id"] for _ in range(spread)]
        crowds.append(Crowd(gate, FEW, ids))
        before = rss(gate.pid), rss(keeper.pid)
        crowds.append(Crowd(gate, count, ids))
        after = rss(gate.pid), rss(keeper.pid)
    finally:
        for crowd in crowds:
            crowd.leave()
        if gate:
            gate.stop()
        keeper.stop()
    return [(b - a) / count for a, b in zip(before, after)]


def measure(folder, quick):
    """Facts by how many processes they are attached to."""
    count = COUNT // (10 if quick else 1)
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if count + FEW + SPARE_FILES > allowed:
        return {"fault": f"{count} need more than {allowed} files"}
    return {"count": count, "each": {spread: hold(folder, count, spread) for spread in SPREADS}}


def rows(facts):
    if "fault" in facts:
        yield Absent("idle subscribers, KiB each", facts["fault"], TARGET)
    for spread, (gateway, keeper) in facts.get("each", {}).items():
        what = f"{facts['count']} idle subscribers of {spread} process" + ("es" if spread > 1 else "")
        told = f"keeper {keeper / 1024:.2f} KiB"
        yield Row(f"{what}, KiB each", f"{gateway / 1024:.2f} KiB", told, [gateway / 1024], TARGET, False)

"""Output of many processes while the gateway is killed again and again, sockets are cut, and some readers are slow: every reader, which
comes back as SDKs do, ends with exactly the right bytes or with an exact account of what it missed.

COOP_SEED repeats the choices (not the timing)."""

import os
import random
import signal
import sys
import threading
import time

from lib import procs
from lib.chaos_reader import PRINTER, Reader, totals
from lib.raw_http_case import RawCase

SEED = int(os.environ.get("COOP_SEED") or random.SystemRandom().randrange(1 << 32))
PROCESSES = 50


class ChaosTest(RawCase):
    own = True

    def setUp(self):
        print(f"chaos: COOP_SEED={SEED}", file=sys.stderr, flush=True)
        super().setUp()
        self.choice = random.Random(SEED)
        self.kills = 0

    def failure_notes(self):
        return f"COOP_SEED={SEED}, killed {self.kills} times\n{super().failure_notes()}"

    def assert_unharmed(self):
        """The gateway was killed on purpose."""
        self.assert_served()

    def printer(self, name, seed, pieces, most, pause):
        """What a process is started with."""
        args = ["-c", PRINTER, *map(str, (seed, pieces, most, pause))]
        return {"type": "start", "cmd": "python3", "args": args, "id": name}

    def run_readers(self, readers, *kill):
        """All of them, each in a thread, while the gateway is killed at moments within the bounds given."""
        threads = [threading.Thread(target=reader.run, args=(begin,), daemon=True) for reader, begin, _ in readers]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if kill:
                self.pause(threads, self.choice.uniform(*kill))
                self.kill_gateway()
            else:
                self.pause(threads, 1)
        for reader, _, expected in readers:
            reader.check(expected)

    def pause(self, threads, seconds):
        """A while, or until the readers are done."""
        deadline = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))

    def kill_gateway(self):
        for pid in self.gateway.pids:
            # Its number is not given out again so soon.
            if procs.alive(pid):
                os.kill(pid, signal.SIGKILL)
                self.kills += 1

    def test_every_byte_or_an_exact_gap(self):
        """Fifty processes with both streams, a reader each, every fifth read slowly by one more."""
        readers = []
        for i in range(PROCESSES):
            name, seed = f"chaos-{i}", self.choice.randrange(100000)
            size = (120, 4000, 0.12)
            expected, begin = totals(seed, *size[:2]), self.printer(name, seed, *size)
            readers.append((Reader(self, name, seed, cuts=3), begin, expected))
            if i % 5 == 0:
                late = Reader(self, name, seed, cuts=1, nap=0.2, receive_buffer=4096)
                readers.append((late, begin, expected))
        self.run_readers(readers, 0.3, 2.5)
        self.assertGreater(self.kills, 2)
        self.assertGreater(sum(reader.reconnects for reader, _, _ in readers), PROCESSES)

    def test_more_than_is_kept(self):
        """Processes that print faster than anybody reads: what was thrown away meanwhile is told to the byte, kills or not."""
        readers = []
        for i in range(6):
            name, seed = f"flood-{i}", self.choice.randrange(100000)
            size = (600, 60000, 0.002)
            expected, begin = totals(seed, *size[:2]), self.printer(name, seed, *size)
            readers.append((Reader(self, name, seed, cuts=2, nap=0.3, receive_buffer=4096), begin, expected))
            readers.append((Reader(self, name, seed), begin, expected))
        self.run_readers(readers, 1, 4)
        self.assertGreater(sum(len(reader.gaps) for reader, _, _ in readers), 0, "nobody was too slow")

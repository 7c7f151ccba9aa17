"""Clients that do everything at random, side by side. COOP_SEED repeats their choices (not their timing), COOP_RANDOM_SECONDS makes it
longer."""

import os
import random
import sys
from collections import Counter

from lib.chaos_client import run_clients
from lib.procs import wait_until
from lib.raw_http_case import MIB, START, RawCase

SECONDS = float(os.environ.get("COOP_RANDOM_SECONDS") or 10)
SEED = int(os.environ.get("COOP_SEED") or random.SystemRandom().randrange(1 << 32))
CLIENTS = 4


class RandomTest(RawCase):
    own = True
    options = ("--control-plane",)

    def setUp(self):
        print(f"random clients: COOP_SEED={SEED}", file=sys.stderr, flush=True)
        super().setUp()
        self.counts = Counter()

    def failure_notes(self):
        return f"COOP_SEED={SEED} {dict(self.counts)}\n{super().failure_notes()}"

    def test_anything_at_any_time(self):
        """Nothing makes the gateway die, break the protocol, answer with a fault, or keep what it no longer needs."""
        self.ask("GET", "/runtime/v1/files?path=nothing", self.auth)
        descriptors = self.open_files()
        clients = run_clients(CLIENTS, SEED, SECONDS, self.address, self.gateway.host, self.gateway.token)
        for client in clients:
            self.counts += client.counts
        for client in clients:
            if client.fault is not None:
                raise AssertionError(f"client {client.seed}: {client.fault!r}") from client.fault
        self.assertGreater(self.counts[200], SECONDS)
        self.assertGreater(self.counts[101], SECONDS)
        self.end_all()
        wait_until(lambda: not self.server_ends(), "connections are let go", interval=0.2)
        wait_until(lambda: self.open_files() <= descriptors + 4, "descriptors are given back", interval=0.2)
        self.assert_bounded(0, 160 * MIB)

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def end_all(self):
        for process in self.ask("GET", START, self.auth).json["processes"]:
            self.end_process(process["id"].replace("/", "%2F"))

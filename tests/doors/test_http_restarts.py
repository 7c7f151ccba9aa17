"""Gateways that end under load: the listeners stay open, so nobody is refused, and the next one goes on."""

import contextlib
import os
import signal
import threading
import time

from lib.place import patience
from lib.procs import alive, wait_until
from lib.raw_http import Gone, Raw
from lib.raw_http_case import START, RawCase

RESTARTS = 6
CLIENTS = 4


class Load:
    """Clients that ask and ask, each request on a connection of its own."""

    def __init__(self, address, data):
        self.address, self.data = address, data
        self.served, self.cut, self.refused, self.wrong = 0, 0, [], []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.over.is_set():
            try:
                with Raw(self.address) as connection:
                    self.one(connection)
            except OSError as error:
                self.refused.append(repr(error))
                return

    def one(self, connection):
        """A request whose gateway dies may be cut; a refused connect is another matter."""
        try:
            connection.send(self.data)
            status = connection.answer().status
        except (Gone, ConnectionError):
            self.cut += 1
            return
        if status == 200:
            self.served += 1
        else:
            self.wrong.append(status)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


class RestartTest(RawCase):
    own = True

    def assert_unharmed(self):
        """The gateway was ended on purpose."""
        self.assert_served()

    def test_six_restarts_under_load(self):
        """Killed or told to end, in turn: no connection is refused, each next gateway serves, and at most what was under way is cut."""
        load = Load(self.address, self.head("GET", "/healthz", "Connection: close"))
        self.addCleanup(load.end)
        for i in range(RESTARTS):
            served, pid = load.served, self.gateway.pid
            os.kill(pid, signal.SIGTERM if i % 2 else signal.SIGKILL)
            wait_until(lambda pid=pid: not alive(pid), "the old one is gone")
            wait_until(lambda served=served: load.served > served + 50 or load.refused, "others are served", timeout=60)
        load.end()
        self.assertEqual(load.refused, [])
        self.assertEqual(load.wrong, [])
        self.assertLessEqual(load.cut, RESTARTS * CLIENTS * 4)

    def test_a_gateway_that_is_told_to_end_says_so(self):
        """Sockets are closed with 1012, which clients take for `come back`; the process goes on, and can be attached to again."""
        connection, process = self.begin("sleep", "300")
        self.addCleanup(self.end_process, process)
        idle = self.raw()
        idle.send(self.head("GET", "/healthz"))
        idle.answer()
        os.kill(self.gateway.pid, signal.SIGTERM)
        self.assertEqual(connection.closing().code, 1012)
        self.assertEqual(idle.rest(), b"")
        again = wait_until(lambda: self.attached(process), "it can be attached to", interval=0.2)
        self.assertEqual(again.event("started")["pid"], process)

    def attached(self, process):
        with contextlib.suppress(Gone, ConnectionError):
            return self.ws(f"{START}/{process}/connect")
        return None

    def test_a_gateway_that_is_told_to_end_finishes_what_it_does(self):
        """A request that waits for its answer gets it, or the drain's five seconds are over; a slow download goes on meanwhile."""
        size = 8 << 20
        (self.work / "large").write_bytes(b"0123456789abcdef" * (size >> 4))
        connection = self.raw(receive_buffer=65536)
        connection.send(self.head("GET", "/runtime/v1/files?path=large", self.auth))
        status, headers = connection.head()
        self.assertEqual(status, 200)
        os.kill(self.pid, signal.SIGTERM)
        self.assertEqual(len(connection.take(int(dict(headers)["content-length"]))), size)
        self.assertEqual(connection.rest(), b"")

    def test_a_client_that_does_not_end_does_not_hold_up_the_end(self):
        """A socket that answers no close, a stream that is not read, half a request: the gateway is gone after its drain."""
        silent = self.ws()
        stream = self.raw()
        stream.send(self.head("GET", "/v1/events", self.auth))
        half = self.raw()
        half.send(b"GET / HT")
        self.assert_served()
        began = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        wait_until(lambda: not alive(self.pid), "the old one is gone", timeout=30)
        self.assertLess(time.monotonic() - began, patience(20))
        self.assertEqual(silent.closing().code, 1012)

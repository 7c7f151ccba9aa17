"""A gateway without memory at one moment, or again and again: clients hear of it, the gateway lives on, and what it
starts next is as always."""

import base64

from lib.gateway_faults import GatewayFaultCase
from lib.http_client import Ended, HttpViolation
from lib.runtime import StartError
from lib.websocket import Closed, Refused

FAILURES = (Ended, HttpViolation, StartError, Closed, Refused, OSError)
READS = ("", "?all=true", "/x", "/x/output", "/x/output?mode=tail&limit_bytes=100", "/x/output?mode=head_tail")
SECONDS = 20


class FaultTest(GatewayFaultCase):
    def attempt(self, what, *args, **options):
        try:
            return what(*args, **options)
        except FAILURES:
            return None

    def talk(self, gateway):
        socket = self.attempt(gateway.socket, timeout=SECONDS)
        if socket:
            self.attempt(socket.start, "sh", ["-c", "echo a; cat; seq 3000"], stdin=True, id="x")
            other = self.attempt(gateway.socket, "/runtime/v1/process/x/connect?since=1", timeout=SECONDS)
            if other:
                self.attempt(other.expect_started, 1)
            self.attempt(socket.send, type="stdin", data=base64.b64encode(b"z" * 100000).decode())
            self.attempt(socket.send, type="close_stdin")
            # Input that was refused leaves it waiting: a kill ends it in any case.
            self.attempt(gateway.request, "DELETE", "/runtime/v1/process/x?grace_ms=2000&signal=CONT")
            for one in filter(None, (socket, other)):
                if one.pid:
                    self.attempt(one.until_exit)
                one.drop()
        for target in READS:
            answer = self.attempt(gateway.request, "GET", f"/runtime/v1/process{target}")
            self.assertIn(answer and answer.status, (None, 200, 400, 404, 500, 503))
        self.attempt(lambda: gateway.socket(timeout=SECONDS).start("/no/such/program"))

    def echo(self, gateway):
        with gateway.socket() as socket:
            socket.start("echo", ["well"])
            socket.until_exit()
            return socket.output()

    def test_one_allocation_fails(self):
        for number in range(47, 250, 11):
            with self.subTest(number=number):
                gateway = self.failing(f"alloc:{number}")
                self.survives(gateway)
                # The one that fails may come as late as here.
                self.assertIn(b"well\n", [self.attempt(self.echo, gateway) for _ in range(2)])

    def test_allocations_fail_again_and_again(self):
        for number in range(60, 120, 20):
            with self.subTest(number=number):
                gateway = self.failing(f"alloc:{number}:41")
                self.survives(gateway)
                self.survives(gateway)

"""The base class of tests with a gateway that lacks memory."""

from .gateway import GatewayCase
from .place import BUILD, Place


class GatewayFaultCase(GatewayCase):
    """`talk(gateway)` of the test does everything once; whatever fails in it must fail in one of the ways that clients know."""

    own = True

    def setUp(self):
        """Each run starts a gateway of its own; here is the program that it is started with."""
        place = Place()
        self.addCleanup(place.remove)
        self.program = place.dir / "gateway"

    def failing(self, fault):
        """A gateway (not its keeper, nor serve) whose allocations fail as `fault` says."""
        self.program.write_text(f'#!/bin/sh\nCOOP_FAULT={fault} exec {BUILD / "bin" / "coop-gateway"} "$@"\n')
        self.program.chmod(0o755)
        return self.start_gateway(env={"COOP_GATEWAY": str(self.program)})

    def survives(self, gateway):
        before = gateway.pids
        self.talk(gateway)
        self.assertEqual(gateway.pids, before, gateway.log_tail() + gateway.faults())
        self.assertEqual(gateway.faults(), "")

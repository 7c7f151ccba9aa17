"""The base class of tests that every imitated client must pass."""

import unittest

from .gateway import GatewayCase
from .sdk_node import NODE, Node, NodeSandbox
from .sdk_python import Sandbox


class SdkCase(GatewayCase):
    """A test goes through `each`, once for each client. Without node the rest of it is skipped, and the case has no test."""

    def clients(self, via=None):
        """(name, sandbox) one after the other."""
        yield "python", Sandbox(self.gateway.url, self.gateway.token, via=via)
        if not NODE:
            raise unittest.SkipTest("node is not installed: only the Python client was run")
        node = Node()
        try:
            yield "typescript", NodeSandbox.open(node, self.gateway.url, self.gateway.token, via=via)
        finally:
            node.close()

    def each(self, check, **options):
        for name, sandbox in self.clients(**options):
            with self.subTest(client=name):
                check(sandbox)

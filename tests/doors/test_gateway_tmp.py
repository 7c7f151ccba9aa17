"""A sandbox of the control plane is one machine: commands and file requests see one /tmp, and no other sandbox's."""

import urllib.parse

from lib.gateway import GatewayCase


class OneTmpTest(GatewayCase):
    options = ("--control-plane",)

    def create(self):
        """A new sandbox's token."""
        response = self.request("POST", "/v1/sandboxes", {})
        self.assertEqual(response.status, 201, response.body)
        return response.json()["session"]["token"]

    def file(self, method, path, token, body=None):
        return self.request(method, "/runtime/v1/files?" + urllib.parse.urlencode({"path": path}), body, token=token)

    def run_in(self, token, script, **fields):
        """Runs a script to its end: (exit code, stdout)."""
        found = self.sh(script, socket={"token": token}, **fields)
        return found.until_exit()["exit_code"], found.output("stdout")

    def test_commands_and_file_requests_share_it(self):
        one, two = self.create(), self.create()
        self.assertEqual(self.run_in(one, "mkdir -p /tmp/d && echo one > /tmp/d/x")[0], 0)
        read = self.file("GET", "/tmp/d/x", one)
        self.assertEqual((read.status, read.body), (200, b"one\n"))
        self.assertEqual(self.file("PUT", "/tmp/y", one, b"two\n").status, 200)
        self.assertEqual(self.run_in(one, "cat /tmp/y d/x", cwd="/tmp"), (0, b"two\none\n"))
        self.assert_refused(self.file("GET", "/tmp/d/x", two), 404, "file_not_found")
        self.assertNotEqual(self.run_in(two, "cat /tmp/d/x")[0], 0)

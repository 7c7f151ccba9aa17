"""The file routes of the gateway, wherever coop is installed: the program that does the work is executed from a descriptor, never by a
path that the sandbox would have to show."""

import os
import shutil
import tempfile
from pathlib import Path

from lib import procs
from lib.gateway import GatewayCase
from lib.place import BUILD, Place

PROGRAMS = ("coop", "coop-keeper", "coop-gateway")


class Anywhere(GatewayCase):
    own = True

    def setUp(self):
        self.addCleanup(procs.assert_no_descendants)

    def install(self, folder):
        """Only what a file route needs; nobody but the owner may look into the folder."""
        folder.mkdir(parents=True, mode=0o700)
        for name in PROGRAMS:
            shutil.copy(BUILD / "bin" / name, folder / name)
        return folder / "coop"

    def temporary(self, parent):
        folder = Path(tempfile.mkdtemp(prefix="coop-t-", dir=parent))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def check_files(self, gateway):
        """Every route that the helper serves."""

        def ask(method, target, body=None, status=(200, 201, 204)):
            response = gateway.request(method, target, body)
            self.assertIn(response.status, status, response.body)
            return response

        path = gateway.place.work.resolve() / "made" / "file"
        ask("POST", "/runtime/v1/files/write_files", {"files": [{"path": str(path), "data_base64": "dGV4dA=="}]})
        self.assertEqual(path.read_text(), "text")
        self.assertEqual(ask("GET", f"/runtime/v1/files?path={path}").body, b"text")
        ask("GET", f"/runtime/v1/directories?path={path.parent}")
        return gateway

    def helper(self, gateway):
        """The pid of the helper."""
        return next(pid for pid in procs.descendants(gateway.process.pid) if procs.cmdline(pid).split(" ")[0] == "coop-files")

    def test_below_tmp(self):
        coop = self.install(self.temporary("/tmp") / "bin")
        self.check_files(self.start_gateway(coop=coop))

    def test_in_a_hidden_home(self):
        place = Place()
        home = place.dir / "home"
        coop = self.install(home / ".local" / "bin")
        self.check_files(self.start_gateway(coop=coop, place=place, sandbox={"home": "hidden"}, env={"HOME": str(home)}))

    def test_outside_of_a_minimal_root(self):
        coop = self.install(self.temporary("/var/tmp") / "bin")
        self.check_files(self.start_gateway(coop=coop, sandbox={"root": "minimal"}))

    def test_nothing_on_disk_is_needed(self):
        """Installed, started, and taken away."""
        folder = self.temporary("/tmp") / "bin"
        gateway = self.start_gateway(coop=self.install(folder))
        shutil.rmtree(folder)
        self.check_files(gateway)

    def test_what_runs_cannot_be_changed(self):
        """Nor does it find anything open but what it was given."""
        gateway = self.check_files(self.start_gateway(coop=self.install(self.temporary("/tmp") / "bin")))
        pid = self.helper(gateway)
        self.assertIn("memfd:coop-files", os.readlink(f"/proc/{pid}/exe"))
        with self.assertRaises(OSError):
            os.open(f"/proc/{pid}/exe", os.O_WRONLY)
        opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        self.assertEqual([name for name in opened if "memfd" in name], [])
        self.assertEqual(Path(f"/proc/{pid}/comm").read_text(), "coop-files\n")

    def test_who_names_a_helper_names_nothing_else(self):
        gateway = self.start_gateway()
        for more in ({"argv": ["sh"]}, {"mode": "shell", "command": "true"}, {"command": "true"}):
            response = gateway.request("POST", "/v1/ops/spawn", {"helper": "files", **more})
            self.assertEqual((response.status, response.json()["error"]), (400, "invalid_input"), response.body)
        for name in ("", "launcher", "/bin/sh", "coop-files"):
            response = gateway.request("POST", "/v1/ops/spawn", {"helper": name})
            self.assertEqual((response.status, response.json()["details"]["field"]), (400, "helper"), response.body)
        record = gateway.request("POST", "/v1/ops/spawn", {"helper": "files"}).json()["process"]
        self.assertEqual((record["argv"], record["sandbox"]["profile"]), (["coop-files"], "workspace-write"))
        waited = gateway.request("POST", "/v1/ops/wait", {"id": record["id"]}).json()["process"]
        self.assertEqual(waited["end_cause"], "self_exit")

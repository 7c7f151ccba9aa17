"""Tests that are made twice: with a keeper of root, whose commands are somebody else, and with one of an ordinary user."""

import os
import shutil
import tempfile
from pathlib import Path

from .client import KeeperError
from .confined import ROOT, USER, place_program, without
from .keeper import KeeperCase, plain_limits
from .place import Place

__all__ = ["ROOT", "USER", "BothKeepersCase"]


class BothKeepersCase(KeeperCase):
    """`user` None: the keeper is of whoever runs the tests. A user's has a home of its own, and no entry in /etc/passwd. `lacks`: calls
    that the host does not have for it, as rules of tests/escape/without."""

    user = None
    lacks = ()
    conf = ""

    def setUp(self):
        if self.user and not ROOT:
            self.skipTest("only root can become somebody else")
        self.base = Path(tempfile.mkdtemp(prefix="coop-v-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)
        self.base.chmod(0o755)
        self.ws, self.home = self.folder("ws"), self.folder("home")
        super().setUp()

    def start_keeper(self, settings=None, ready=True, **options):
        place = options.setdefault("place", Place(owner=self.user) if self.user else Place())
        place.conf.write_text(self.conf)
        wrap = []
        if self.user:
            wrap = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
            options["env"] = {"HOME": str(self.home), **(options.get("env") or {})}
        if self.lacks:
            program, *words = without(*self.lacks)
            wrap += [place_program(place, program), *words]
        options["wrap"] = [*self.keeper_wrap(place), *wrap]
        return super().start_keeper(settings, ready, before_exec=plain_limits, **options)

    def keeper_wrap(self, place):
        """What the keeper is started with, as root: words before its own."""
        return []

    def folder(self, name):
        path = self.base / name
        path.mkdir(parents=True)
        return self.give(path)

    def give(self, path):
        """To the keeper's user."""
        if self.user:
            os.chown(path, self.user, self.user)
        return path

    def inside(self, script, sandbox=None, client=None, **args):
        """Runs a script in the workspace: (record, stdout, stderr)."""
        client = client or self.client
        sandbox = {"workspace": str(self.ws)} if sandbox is None else sandbox
        args = {"argv": ["sh", "-c", script], "cwd": str(self.ws), "sandbox": sandbox} | args
        process = client.call("spawn", **args)["process"]["id"]
        record = client.call("wait", id=process, tidy=True)["process"]
        return record, self.output(process, client=client).decode(), self.output(process, "stderr", client=client).decode()

    def says(self, script, sandbox=None, **args):
        return self.inside(script, sandbox, **args)[1].strip()

    def refusal(self, client=None, **args):
        args = {"argv": ["touch", str(self.ws / "ran")], "cwd": str(self.ws)} | args
        with self.assertRaises(KeeperError) as caught:
            (client or self.client).call("spawn", **args)
        self.assertFalse((self.ws / "ran").exists(), "something ran")
        return caught.exception

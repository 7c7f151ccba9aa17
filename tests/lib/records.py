"""What the tests of policy, records, audit and events share: a keeper with a coop.conf, agents on it, restarts, small disks."""

import contextlib
import json
import os
import stat

from . import procs
from .client import Client, Closed
from .keeper import KeeperCase
from .place import Place

ROOT = os.geteuid() == 0
# Of linux/fs.h: a file system stands still, and goes on.
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
LABELS = (
    "destructive write_intent curl_pipe_shell credential_file_read network_exfil sudo package_install "
    "git_force_push process_kill outside_workspace deny_pattern"
).split()
SECRET = "hunter2-Tr0ub4dor"


class RecordsCase(KeeperCase):
    """A keeper with a configuration of the class's own, which may be stopped and started again in the same place."""

    conf = ""

    def setUp(self):
        self.place = Place()
        self.conf_path = self.place.conf
        self.write_conf(self.conf)
        super().setUp()

    def write_conf(self, text, path=None):
        """Replaced whole, so that nobody reads half of it."""
        path = path or self.conf_path
        new = path.with_suffix(".new")
        new.write_bytes(text if isinstance(text, bytes) else text.encode())
        new.chmod(0o600)
        new.rename(path)

    def start_keeper(self, settings=None, ready=True, **options):
        options.setdefault("place", self.place)
        options["env"] = {**self.keeper_env, **(options.get("env") or {})}
        return super().start_keeper(settings, ready, **options)

    def shut_down(self):
        with contextlib.suppress(Closed):
            self.client.call("shutdown", grace_ms=0)
        self.expect_end(self.keeper, [0])

    def restart(self, kill=False, **options):
        """Ends the keeper, in order or by SIGKILL, and starts the next one in its place."""
        if kill:
            self.keeper.kill()
            self.expect_end(self.keeper)
        else:
            self.shut_down()
        self.keeper = self.start_keeper(self.settings, **options)
        self.client = self.keeper.clients[0]

    def settle(self, client=None):
        """Waits until all that is known is in the database."""
        look = client or self.client
        procs.wait_until(lambda: look.call("info")["records"]["pending"] == 0, "all is written")

    def refuses_to_start(self, *words, **options):
        """The keeper says in one line why it does not serve, and ends. Gives that line."""
        before = self.place.log.stat().st_size
        keeper = self.start_keeper(self.settings, ready=False, **options)
        procs.wait_until(lambda: keeper.process.poll() is not None or self.serves(), "it ends")
        if keeper.process.poll() is None:
            keeper.stop()
            keeper.ended = True
            self.fail(f"it serves:\n{self.place.log_tail()}")
        code = self.expect_end(keeper)
        with open(self.place.log, "rb") as log:
            log.seek(before)
            text = log.read().decode(errors="replace")
        self.assertEqual(code, 1, text)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("coop-keeper: "), text)
        for word in words:
            self.assertIn(word, text)
        return text

    def serves(self):
        try:
            Client(self.place.socket, timeout=10).close()
        except (OSError, Closed):
            return False
        return True

    # Agents.

    def agent(self, path, by=None, **settings):
        """Adds an agent and gives a connection that acts as it. One directly below main may work in the class's folder."""
        if not by and path.count("/") == (0 if "principal" in settings else 1):
            settings.setdefault("workspace", [str(self.work.resolve())])
        (by or self.client).call("agent_add", agent=path, **settings)
        whose = {name: settings[name] for name in ("principal",) if name in settings}
        return self.login(self.token(path, by, **whose))

    def token(self, path, by=None, **args):
        return (by or self.client).call("token_new", agent=path, **args)["token"]

    def login(self, token):
        client = self.connect()
        client.call("login", token=token)
        return client

    # Programs that leave a mark.

    def marker(self, name, directory="bin"):
        """A program that leaves a mark when it runs: (its path, the mark's path)."""
        folder = self.place.work / directory
        folder.mkdir(exist_ok=True)
        mark = self.place.work / f"mark-{directory}-{name}"
        program = folder / name
        program.write_text(f"#!/bin/sh\n: >{mark}\n")
        program.chmod(0o755)
        return program, mark

    def search_path(self, only=False):
        """An environment in which the programs of marker() are found, before all others or alone."""
        folder = str(self.place.work / "bin")
        return {"PATH": folder if only else f"{folder}:/usr/bin:/bin"}

    # The audit.

    def audit_path(self):
        return self.place.state / "audit.log"

    def audit_lines(self, kind=None, client=None):
        """What the keeper shows of it, oldest first."""
        lines = (client or self.client).call("audit_tail", count=10000)["lines"]
        return [line for line in lines if kind in (None, line["kind"])]

    def state_files(self):
        """Every file of the state folder, with its bytes, but who holds it and the count of ids, which may skip some."""
        found = {}
        for folder, _, names in os.walk(self.place.state):
            for name in names:
                path = os.path.join(folder, name)
                if stat.S_ISREG(os.lstat(path).st_mode) and name not in ("lock", "pid", "next-id"):
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, self.place.state)] = file.read()
        return found


def labels_of(envelope):
    """All risk labels that the decisions of an envelope name."""
    return {label for decision in envelope["command_policy"]["decisions"] for label in decision["risk_labels"]}


def small_disk(path, size):
    """Words before a keeper's own that give it a disk of some size at a path, which nobody else sees."""
    script = f'mount -t tmpfs -o size={size},mode=0700 coop-test {path} && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh"]


def read_only(path):
    """The same, for a folder that cannot be written."""
    script = f'mount --bind {path} {path} && mount -o remount,ro,bind {path} && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh"]


def seen_by(keeper, path):
    """A path as that keeper sees it, in its mount namespace."""
    return f"/proc/{keeper.pid}/root{path}"


def fill(path):
    """Takes all the room that a disk has left."""
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass


def dumps(value):
    return json.dumps(value, ensure_ascii=False)

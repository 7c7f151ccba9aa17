"""Where the programs are, and a private place (socket, state, logs) for one keeper."""

import functools
import os
import re
import shutil
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("COOP_BUILD") or REPOSITORY / "build").resolve()
COOP = BUILD / "bin" / "coop"
KEEPER = BUILD / "bin" / "coop-keeper"

# Names every process that the suite starts itself; the runner looks for it in /proc when all is over.
RUN_MARK = "COOP_TEST_RUN"

REPORT = re.compile(rb"(ERROR: \w+Sanitizer|runtime error: |SUMMARY: \w+Sanitizer|DEADLYSIGNAL)")


@functools.cache
def sanitized():
    """Whether the keeper was built with a sanitizer: memory and time need more room then."""
    return b"__asan_init" in KEEPER.read_bytes()


def patience(seconds):
    """A deadline that only a hang can miss, also on a loaded machine."""
    return seconds * (4 if sanitized() else 1) * float(os.environ.get("COOP_TEST_PATIENCE", 1))


def moment(ms):
    """A time limit that a program gets to its first words within, also on a slow machine."""
    return int(patience(ms / 1000) * 1000)


class Place:
    """A temporary folder with the environment that sends programs there instead of to the user's own keeper."""

    def __init__(self, owner=None, folder=None):
        self.dir = Path(tempfile.mkdtemp(prefix="coop-t-", dir=folder))
        self.socket = self.dir / "keeper.sock"
        self.state = self.dir / "state"
        self.log = self.dir / "keeper.log"
        self.conf = self.dir / "coop.conf"
        self.conf.touch(mode=0o600)
        # For what commands are to see and to change: the rest of the place is the keeper's own, and hidden from them.
        self.work = self.dir / "workspace"
        self.work.mkdir()
        self.reports = self.dir / "reports"
        self.reports.mkdir(mode=0o777)
        self.reports.chmod(0o777)
        self.keeper = KEEPER
        self.owner = owner
        if owner is not None:
            self._hand_over()

    def _hand_over(self):
        """To another user, with a keeper program of its own: the build may lie where only its owner may look."""
        self.keeper = Path(shutil.copy(KEEPER, self.dir / "coop-keeper"))
        self.log.touch()
        for path in (self.dir, self.work, self.log, self.conf):
            os.chown(path, self.owner, self.owner)

    def become_owner(self):
        """Before a program is executed."""
        os.setgroups([])
        os.setgid(self.owner)
        os.setuid(self.owner)

    def env(self, extra=None):
        keep = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "COOP_BUILD", RUN_MARK)
        env = {name: os.environ[name] for name in keep if name in os.environ}
        env.update(COOP_SOCKET=str(self.socket), COOP_STATE=str(self.state), COOP_CONF=str(self.conf), COOP_DATA=str(self.dir / "data"), TERM="xterm")
        # A daemon's stderr goes nowhere, so sanitizer reports go to files.
        for name, more in (("ASAN_OPTIONS", "detect_leaks=1:"), ("UBSAN_OPTIONS", "print_stacktrace=1:")):
            env[name] = f"{os.environ.get(name, '')}:{more}log_path={self.reports}/report".lstrip(":")
        env.update(extra or {})
        return env

    def faults(self):
        """Sanitizer reports and the like that the programs of this place have left."""
        if not self.dir.exists():
            return ""
        found = [path.read_text(errors="replace") for path in sorted(self.reports.iterdir())]
        if self.log.exists() and REPORT.search(self.log.read_bytes()):
            found.append(self.log_tail())
        return "\n".join(found)

    def log_tail(self, size=6000):
        if not self.log.exists():
            return ""
        return self.log.read_bytes()[-size:].decode(errors="replace")

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

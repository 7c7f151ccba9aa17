"""Runs one test program of the suite under limits: a mutant may hang, fork, fill the memory or the disk.

All that a test starts is below this process, or falls to it (it is a subreaper), so that whatever is left is found and ended by
its id. Nothing else may run below this process meanwhile.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from lib import procs

MEMORY_KB = 4 << 20
DISK_KB = 2 << 20
PROCESSES = 4000
WATCH_SECONDS = 0.5
TAP = re.compile(r"^(ok|not ok) \d+ - (.*?)(?: # SKIP ?(.*))?$", re.MULTILINE)


@dataclass
class Run:
    """What became of one run: the tests that failed, and why it was ended if it was (None, "time", "memory", …)."""

    failed: list = field(default_factory=list)
    overdue: bool = False
    ended_for: str = ""
    status: int = 0
    text: str = ""
    seconds: float = 0.0


def end_all():
    """Ends everything below this process, and what that starts meanwhile."""
    for _ in range(500):
        procs.kill_all(procs.descendants(os.getpid()))
        procs.reap_orphans()
        if not procs.descendants(os.getpid(), zombies=True):
            return
        time.sleep(0.01)


def resident_kb(pids):
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            pass
    return pages * (os.sysconf("SC_PAGE_SIZE") // 1024)


def disk_kb(folder):
    """Tests nest folders deeper than a path may be long, or a call may recurse: what cannot be reached is not counted."""
    used, stack = 0, [folder]
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    used += entry.stat(follow_symlinks=False).st_blocks // 2
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
        except OSError:
            pass
    return used


def excess(scratch):
    """What a run has too much of, if anything."""
    below = procs.descendants(os.getpid())
    if len(below) > PROCESSES:
        return "processes"
    if resident_kb(below) > MEMORY_KB:
        return "memory"
    if disk_kb(scratch) > DISK_KB:
        return "disk"
    return ""


def remove(folder):
    """The scratch folder with what a test left there, which may be modes that forbid it and mounts of dead keepers."""
    subprocess.run(["chmod", "-R", "u+rwx", folder], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False, stderr=subprocess.DEVNULL)


class Runner:
    def __init__(self, tree, build):
        self.tree, self.build = Path(tree), Path(build)

    def environment(self, scratch):
        env = {**os.environ, "COOP_BUILD": str(self.build), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": scratch}
        env["CMOCKA_MESSAGE_OUTPUT"] = "TAP"
        return env

    def run(self, file, names, seconds, on_test=None):
        """The tests of one file (all, if names is empty); ends at the first that fails. With on_test it does not, and that gets each
        as it ends, before the next one begins."""
        if file.startswith("unit/"):
            return self._run([str(self.build / "tests" / file)], seconds, None, unit=file)
        pattern = "^(" + "|".join(re.escape(name) for name in names) + ")$" if names else ""
        argv = [sys.executable, str(self.tree / "tests" / "lib" / "worker.py"), file, pattern]
        return self._run(argv, seconds, on_test)

    def _run(self, argv, seconds, on_test, unit=""):
        # Sockets have short names: the folder lies where temporary ones do.
        scratch = tempfile.mkdtemp(prefix="coop-m-")
        os.chmod(scratch, 0o755)
        log = tempfile.TemporaryFile()
        reader, writer = os.pipe()
        heard, hear = os.pipe()
        begin, run = time.monotonic(), Run()
        try:
            env, theirs, tell = {**self.environment(scratch), "COOP_TEST_OUT": str(writer)}, [writer], None
            if on_test:
                env["COOP_TEST_HEARD"] = str(heard)
                theirs.append(heard)

                def tell(item):
                    on_test(item)
                    os.write(hear, b"x")

            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, pass_fds=theirs, start_new_session=True
            )
            os.close(writer)
            writer = -1
            self._follow(process, reader, scratch, begin + seconds, run, tell)
            if run.ended_for or run.failed:
                self._end_group(process)
            run.status = process.wait()
        finally:
            end_all()
            for fd in (reader, heard, hear):
                os.close(fd)
            if writer >= 0:
                os.close(writer)
            remove(scratch)
            run.seconds = round(time.monotonic() - begin, 2)
        log.seek(0)
        run.text = log.read(1 << 20).decode(errors="replace")
        if unit:
            self._judge_unit(run, unit)
        elif run.status != 0 and not run.failed and not run.ended_for:
            run.failed.append(f"{argv[2]} (whole file)")
        return run

    @staticmethod
    def _end_group(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    @staticmethod
    def _follow(process, reader, scratch, deadline, run, on_test):
        """Until the process has ended, a test has failed or it has had too much of something."""
        rest, open_pipe = b"", True
        pid_fd = os.pidfd_open(process.pid)
        watch = time.monotonic() + WATCH_SECONDS
        try:
            while True:
                now = time.monotonic()
                if now > deadline:
                    run.ended_for = "time"
                    return
                if now > watch:
                    run.ended_for = excess(scratch)
                    if run.ended_for:
                        return
                    watch = time.monotonic() + WATCH_SECONDS
                ready, _, _ = select.select([pid_fd] + [reader] * open_pipe, [], [], min(deadline, watch) - now + 0.001)
                if reader in ready:
                    data = os.read(reader, 65536)
                    open_pipe = bool(data)
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        item = json.loads(line)
                        if on_test:
                            on_test(item)
                        if item["outcome"] == "failed":
                            run.failed.append(item["test"])
                            run.overdue = "Overdue: the test took more than" in item["text"]
                            if not on_test:
                                return
                elif pid_fd in ready:
                    return
        finally:
            os.close(pid_fd)

    @staticmethod
    def _judge_unit(run, unit):
        found = TAP.findall(run.text)
        run.failed = [f"{unit}::{name}" for verdict, name, _ in found if verdict == "not ok"]
        if not run.ended_for and not run.failed and (run.status != 0 or not found):
            run.failed = [f"{unit} (whole program)"]

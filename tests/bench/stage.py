"""Where a benchmark plays: a keeper of its own, the programs it is compared with, and what machine that was on."""

import json
import os
import pathlib
import platform
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("COOP_BUILD", HERE.parent.parent / "build")).resolve()
COOP = str(BUILD / "bin" / "coop")
PROGRAMS = BUILD / "tests" / "bench"
PATIENCE = 60


class BenchError(Exception):
    """A benchmark could not be carried out, which is not the same as a missed target."""


def program(name):
    return str(PROGRAMS / name)


def run(argv, env=None, text="", patience=PATIENCE):
    """Standard output of a command that must succeed; `text` is its standard input."""
    try:
        done = subprocess.run(argv, env=env, input=text, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired as late:
        raise BenchError(f"{' '.join(argv)}: not done after {patience} s") from late
    if done.returncode:
        raise BenchError(f"{' '.join(argv)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def numbers(argv, env=None):
    return [int(line) for line in run(argv, env).split()]


def wall(argv, env=None):
    """Nanoseconds from the start to the end of a command."""
    null = os.open("/dev/null", os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in range(3)]
    try:
        began = time.perf_counter_ns()
        pid = os.posix_spawn(argv[0], argv, env or os.environ, file_actions=actions)
        status = os.waitpid(pid, 0)[1]
        took = time.perf_counter_ns() - began
    finally:
        os.close(null)
    if status:
        raise BenchError(f"{' '.join(argv)}: status {status}")
    return took


class Keeper:
    """`coop-keeper --foreground` in a folder of its own, with a configuration of its own."""

    def __init__(self, folder, name, settings=None, plant=None, before_exec=None, conf=""):
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir(mode=0o700)
        self.state = self.folder / "state"
        (self.folder / "coop.conf").write_text(conf)
        (self.folder / "coop.conf").chmod(0o600)
        self.env = {name: value for name, value in os.environ.items() if name not in ("COOP_TOKEN", "COOP_SET")}
        self.env |= {
            "COOP_SOCKET": str(self.folder / "keeper.sock"),
            "COOP_STATE": str(self.state),
            "COOP_CONF": str(self.folder / "coop.conf"),
        }
        argv = [str(BUILD / "bin" / "coop-keeper"), "--foreground"]
        for key, value in {"max_running": 6000, "idle_exit_ms": 0, **(settings or {})}.items():
            argv += ["--set", f"{key}={value}"]
        env = dict(self.env, LD_PRELOAD=program("plant.so")) if plant == "pipe" else self.env
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=before_exec
            )
        self._wait_ready()

    def _wait_ready(self):
        deadline = time.monotonic() + PATIENCE
        while not (self.folder / "keeper.sock").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise BenchError("the keeper does not come up: " + (self.folder / "log").read_text()[-500:])
            time.sleep(0.01)
        self.pid = self.op("info")["pid"]

    def op(self, name, **args):
        return json.loads(run([COOP, "op", name, json.dumps(args)], self.env))

    def run(self, argv, **more_env):
        return run(argv, self.env | more_env)

    def time(self, argv, **more_env):
        """What one of our programs says it took, in nanoseconds."""
        return numbers(argv, self.env | more_env)[0]

    def cpu_ns(self):
        """Time that the keeper has had on a processor, all threads."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total

    def stop(self):
        if self.process.poll() is None:
            subprocess.run(
                [COOP, "op", "shutdown", '{"grace_ms":0}'], env=self.env, stdin=subprocess.DEVNULL, capture_output=True
            )
        try:
            self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.process.kill()


def _first_line(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def _governor():
    try:
        return pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
    except OSError:
        return None


def machine():
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "governor": _governor(),
        "uid": os.getuid(),
        "coop": _first_line([COOP, "--version"]),
        "node": _first_line([node() or "node", "--version"]),
        "bash": _first_line(["bash", "--version"]),
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
    }


def node():
    return shutil.which("node")

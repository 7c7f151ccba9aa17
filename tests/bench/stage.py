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
# What most benchmarks are about is not the sandbox: their processes are started without one.
PLAIN = "[sandbox]\nprofile = full\n"


class BenchError(Exception):
    """A benchmark could not be carried out, which is not the same as a missed target."""


def program(name):
    return str(PROGRAMS / name)


def run(argv, env=None, text="", patience=PATIENCE, user=None, cwd=None):
    """Standard output of a command that must succeed; `text` is its standard input, `user` the uid that it runs as."""
    try:
        done = subprocess.run(
            argv, env=env, input=text, capture_output=True, text=True, timeout=patience, cwd=cwd, **as_user(user)
        )
    except subprocess.TimeoutExpired as late:
        raise BenchError(f"{_shown(argv)}: not done after {patience} s") from late
    if done.returncode:
        raise BenchError(f"{_shown(argv)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _shown(argv):
    """The command, of a long one only the program."""
    text = " ".join([pathlib.Path(argv[0]).name, *argv[1:]])
    return text if len(text) < 100 else pathlib.Path(argv[0]).name


def as_user(user):
    """Arguments of subprocess's functions."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


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
    """`coop-keeper --foreground` in a folder of its own, with a configuration of its own. A `user` is a uid that it runs as, with
    programs from the folder `programs`, which that user can reach."""

    def __init__(
        self,
        folder,
        name,
        settings=None,
        plant=None,
        before_exec=None,
        conf=PLAIN,
        user=None,
        programs=BUILD / "bin",
        more_env=None,
    ):
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir(mode=0o700)
        self.state = self.folder / "state"
        (self.folder / "coop.conf").write_text(conf)
        (self.folder / "coop.conf").chmod(0o600)
        self.user, self.coop = user, str(programs / "coop")
        if user is not None:
            for path in (self.folder, self.folder / "coop.conf"):
                os.chown(path, user, user)
        self.env = {name: value for name, value in os.environ.items() if name not in ("COOP_TOKEN", "COOP_SET")}
        self.env |= {
            "COOP_SOCKET": str(self.folder / "keeper.sock"),
            "COOP_STATE": str(self.state),
            "COOP_CONF": str(self.folder / "coop.conf"),
            **(more_env or {}),
        }
        argv = [str(programs / "coop-keeper"), "--foreground"]
        for key, value in {"max_running": 6000, "idle_exit_ms": 0, **(settings or {})}.items():
            argv += ["--set", f"{key}={value}"]
        env = self.env
        if plant:
            shutil.copy(program("plant.so"), self.folder)
            env = dict(env, LD_PRELOAD=str(self.folder / "plant.so"), COOP_PLANT=plant)
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=before_exec, **as_user(user)
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
        return json.loads(run([self.coop, "op", name, json.dumps(args)], self.env, user=self.user))

    def run(self, argv, **more_env):
        return run(argv, self.env | more_env, user=self.user)

    def time(self, argv, **more_env):
        """What one of our programs says it took, in nanoseconds."""
        return int(self.run(argv, **more_env).split()[0])

    def cpu_ns(self):
        """Time that the keeper has had on a processor, all threads."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total

    def stop(self):
        if self.process.poll() is None:
            subprocess.run(
                [self.coop, "op", "shutdown", '{"grace_ms":0}'],
                env=self.env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                **as_user(self.user),
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
        "bwrap": _first_line(["bwrap", "--version"]),
        "bash": _first_line(["bash", "--version"]),
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
    }


def node():
    return shutil.which("node")

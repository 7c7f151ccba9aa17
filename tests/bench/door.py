"""`coop serve` on a keeper of a benchmark, and the servers that the gateway is compared with."""

import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import time

from stage import BUILD, COOP, HERE, PATIENCE, BenchError, node

WS = "ws@8"
WEBSOCKETD = shutil.which("websocketd")


class Door:
    """`coop serve` for that keeper, without a sandbox around what it starts."""

    def __init__(self, keeper, more_env=None):
        self.keeper = keeper
        argv = [COOP, "serve", "--json", "--listen", "127.0.0.1:0", "--profile", "full", "--no-workspace"]
        with open(keeper.folder / "serve.log", "wb") as log:
            self.process = subprocess.Popen(
                argv, env=keeper.env | (more_env or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd="/"
            )
        try:
            ready = json.loads(first_line(self.process, "coop serve"))
        except (BenchError, ValueError) as error:
            self.stop()
            raise BenchError(f"{error}: {(keeper.folder / 'serve.log').read_text()[-500:]}") from None
        self.pid = ready["gateway_pids"][0]
        self.port = ready["url"].rpartition(":")[2].strip("/")
        self.token = pathlib.Path(ready["token_file"]).read_text().strip()

    def cpu_ns(self):
        """Time that the gateway has had on a processor."""
        return int(pathlib.Path(f"/proc/{self.pid}/schedstat").read_text().split()[0])

    def stop(self):
        end(self.process)


class Server:
    """A program that prints its port first."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            self.port = first_line(self.process, argv[0]).strip()
        except BenchError:
            self.stop()
            raise

    def cpu_ns(self):
        """Time that it has had on a processor, all threads; it may have ended, but has not been waited for."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")

    def left(self):
        """Whether it has ended in order, as it does when all have been served."""
        try:
            return self.process.wait(PATIENCE) == 0
        except subprocess.TimeoutExpired:
            return False

    def stop(self):
        end(self.process)


class Websocketd:
    """Starts a program for each WebSocket. It must be told a port, so it is given one that was free just now."""

    def __init__(self, command):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        argv = [WEBSOCKETD, f"--port={self.port}", "--address=127.0.0.1", "--loglevel=fatal", command]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise BenchError("websocketd does not come up")
            time.sleep(0.01)

    def _answers(self):
        try:
            socket.create_connection(("127.0.0.1", int(self.port))).close()
        except OSError:
            return False
        return True

    def stop(self):
        end(self.process)


def first_line(process, name):
    deadline = time.monotonic() + PATIENCE
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
            raise BenchError(f"{name} does not come up")
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            raise BenchError(f"{name} ended at once")
        line += piece
    return line.decode()


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def peer_folder():
    """A folder that node finds the package ws from, fetched once into the build. None: there is none to be had; says why."""
    folder = BUILD / "bench-node"
    if (folder / "node_modules" / "ws" / "package.json").exists():
        return folder
    npm = shutil.which("npm")
    if not node() or not npm:
        print("no node or no npm here: nothing is compared with node's ws")
        return None
    folder.mkdir(exist_ok=True)
    argv = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", WS]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        why = done.stderr.strip()[-300:]
    except subprocess.TimeoutExpired:
        why = f"not done after {PATIENCE} s"
    if (folder / "node_modules" / "ws" / "package.json").exists():
        return folder
    print(f"npm cannot fetch {WS}, so nothing is compared with node's ws: {why}")
    return None


def peer_argv(folder, script, *args):
    return [node(), str(HERE / script), str(folder), *args]

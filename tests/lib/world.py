"""What lies around a sandbox in an attack: a workspace and, outside of it, all that must stay out of reach, watched from outside."""

import contextlib
import ctypes
import os
import pty
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

from . import procs
from .place import BUILD

ATTACK = BUILD / "tests" / "escape" / "attack"
WITHOUT = BUILD / "tests" / "escape" / "without"
CREDENTIALS = (".ssh/id", ".netrc", ".aws/credentials")
IPC_RMID, IPC_CREAT = 0, 0o1000
PIDS_INSIDE = 1500  # more than the attacks use


class World:
    """`owner` has the workspace, the home and the rest; the attack program and its parameters lie in the workspace."""

    def __init__(self, owner=None, folder="/var/tmp", hard_links=False):
        self.owner = os.geteuid() if owner is None else owner
        self.marker = "secret-" + secrets.token_hex(8)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.base = Path(tempfile.mkdtemp(prefix="coop-e-", dir=folder))
        self.name = self.base.name
        self.params, self.listeners, self.extra = {}, {}, []
        self.workspace, self.home, self.out = self.base / "ws", self.base / "home", self.base / "out"
        self.shared = self.base / "shared"
        self.make_files(hard_links)
        self.make_sockets()
        self.make_memory()
        self.make_victim()
        self.make_terminal()
        self.give_away()
        self.note_runner()
        self.write_params()
        self.before = self.snapshot()

    # Making it.

    def put(self, path, text="", mode=0o644):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def make_files(self, hard_links):
        ws, secret = self.workspace, self.marker + "\n"
        self.base.chmod(0o755)
        self.put(self.base / "secret", secret)
        self.put(self.out / "file", "outside\n")
        self.out.chmod(0o777)
        for name in CREDENTIALS:
            self.put(self.home / name, secret, 0o600)
        self.put(self.home / ".bashrc", "# mine\n")
        self.put(self.home / "notes", "mine\n")
        for name in ("hooks/sample", "HEAD"):
            self.put(ws / ".git" / name)
        config = self.put(ws / ".git" / "config", "[core]\n")
        self.put(ws / "file", "inside\n")
        self.put(ws / "frozen" / "file", "frozen\n")
        (ws / "private").mkdir()
        (ws / "link-out").symlink_to(self.out / "via-link")
        denied = self.put(self.shared / "denied" / "secret.txt", secret)
        self.put(self.shared / "folder" / "in-it", secret)
        self.put(self.shared / "globs" / "a.key", secret)
        (self.shared / "alias").mkdir()
        self.put(self.shared / "alias" / "secret.txt")
        (ws / "denied-link").symlink_to(denied)
        if hard_links:
            os.link(denied, ws / "denied-hard")
            os.link(config, ws / "config-hard")
        shutil.copy(ATTACK, ws / "attack")
        shutil.copy(ATTACK, ws / "setuid-copy")
        self.params.update(
            MARKER=self.marker, WORKSPACE=ws, OUTSIDE=self.out, HOME=self.home, SECRET=self.base / "secret",
            DENIED=denied, DENIED_LINK=ws / "denied-link", DENIED_ALIAS=self.shared / "alias" / "secret.txt",
            DENIED_FOLDER=self.shared / "folder", DENIED_GLOB_MATCH=self.shared / "globs" / "a.key",
            DENIED_MISSING=ws / "private" / "later.txt", DENIED_HARD_LINK=ws / "denied-hard",
            PROTECTED_HARD_LINK=ws / "config-hard", DENY_WRITE=ws / "frozen" / "file",
            DENY_WRITE_MISSING=ws / "private" / "never.txt", ROOTS_FILE=roots_file(),
            TMP_BYTES_MAX=1 << 29, TMP_FILES_MAX=300000, MEMORY_MAX=1 << 29, FILE_BYTES_MAX=1 << 26,
        )  # fmt: skip

    def listen(self, name, family, address):
        """A listener that nobody may reach: what has connected waits in its queue and is found there."""
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.bind(address)
        sock.listen(16)
        sock.setblocking(False)
        self.listeners[name] = sock
        if isinstance(address, str) and not address.startswith("\0"):
            os.chmod(address, 0o777)
            self.extra.append(address)
            if os.geteuid() == 0:
                os.chown(address, self.owner, self.owner)
        return sock

    def make_sockets(self):
        run = Path("/run") if os.access("/run", os.W_OK) else self.base / "run"
        run.mkdir(exist_ok=True)
        self.listen("abstract", socket.AF_UNIX, "\0" + self.name)
        for param, path in (("RUN", run / f"{self.name}.sock"), ("HOME", self.home / "h.sock"), ("VAR", self.base / "v.sock")):
            self.listen(f"unix-{param.lower()}", socket.AF_UNIX, str(path))
            self.params[f"HOST_SOCKET_{param}"] = path
        tcp = self.listen("tcp", socket.AF_INET, ("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        self.listeners["udp"] = udp
        self.params.update(
            HOST_ABSTRACT=self.name, HOST_PORT=tcp.getsockname()[1], HOST_UDP_PORT=udp.getsockname()[1],
            HOST_SOCKET_FRESH=self.base / "f.sock",
        )  # fmt: skip

    def make_memory(self):
        shm = self.put(Path("/dev/shm") / self.name, self.marker)
        self.extra.append(str(shm))
        key = secrets.randbelow(1 << 30) + 1
        self.segment = self.libc.shmget(key, 4096, IPC_CREAT | 0o666)
        assert self.segment >= 0, os.strerror(ctypes.get_errno())
        self.params.update(HOST_SHM=shm, SYSV_KEY=key)

    def make_victim(self):
        """Its pid is higher than any that the attacks get inside, so that it is never one of theirs."""

        def block():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            if os.geteuid() == 0 and self.owner:
                os.setgroups([])
                os.setgid(self.owner)
                os.setuid(self.owner)

        if os.getpid() < PIDS_INSIDE:
            subprocess.run(["sh", "-c", f"i=0; while [ $i -lt {PIDS_INSIDE} ]; do (exit 0); i=$((i+1)); done"], check=True)
        env = {"VICTIMS_SECRET": self.marker, "PATH": os.environ["PATH"]}
        victim = subprocess.Popen(["sleep", "1000"], env=env, preexec_fn=block, start_new_session=True)
        self.victim = victim
        self.params["HOST_PID"] = victim.pid

    def make_terminal(self):
        self.master, self.slave = pty.openpty()
        self.params["HOST_TERMINAL"] = os.ttyname(self.slave)
        if os.geteuid() == 0:
            os.fchown(self.slave, self.owner, self.owner)

    def give_away(self):
        if os.geteuid() == 0:
            for folder, folders, names in os.walk(self.base):
                for name in (*folders, *names):
                    os.lchown(os.path.join(folder, name), self.owner, self.owner)
            os.chown(self.base, self.owner, self.owner)
            # The copy that is to make somebody of whoever runs it belongs to root.
            os.chown(self.workspace / "setuid-copy", 0, 0)
        os.chmod(self.workspace / "setuid-copy", 0o6755)
        (self.workspace / "attack").chmod(0o755)

    def note_runner(self):
        for kind in ("pid", "mnt", "user"):
            self.params[f"RUNNER_NS_{kind}"] = os.readlink(f"/proc/self/ns/{kind}")

    def write_params(self, **more):
        self.params.update(more)
        text = "".join(f"{name}={value}\n" for name, value in self.params.items())
        self.put(self.workspace / "params", text)

    def open_fresh(self):
        """A socket that nobody knew of when the keeper began."""
        if "unix-fresh" in self.listeners:
            self.listeners.pop("unix-fresh").close()
            os.unlink(self.base / "f.sock")
        self.listen("unix-fresh", socket.AF_UNIX, str(self.base / "f.sock"))

    def with_keeper(self, keeper):
        place = keeper.place
        self.write_params(KEEPER_SOCKET=place.socket, KEEPER_STATE=place.state, KEEPER_PROGRAM=place.keeper)

    # Using it.

    def sandbox(self, root="host", network="none", **more):
        ws = self.workspace
        policy = {
            "profile": "workspace-write",
            "workspace": str(ws),
            "network": network,
            "root": root,
            "deny_read": [
                str(self.shared / "denied" / "secret.txt"), str(self.shared / "folder"), str(self.shared / "globs" / "*.key"),
                str(ws / "private" / "later.txt"),
            ],
            "deny_write": [str(ws / "frozen"), str(ws / "private" / "never.txt")],
        }  # fmt: skip
        if root == "minimal":
            policy["allow_read"] = [str(self.shared)]
        return policy | more

    def argv(self, case, *words, direct=False):
        ws = self.workspace
        return [str(ws / "attack"), case, "--params", str(ws / "params"), *(["--direct"] if direct else []), *map(str, words)]

    def passwd(self, uid):
        """A list of users in which root and one more live in the home of this world."""
        path = self.base / "passwd"
        if not path.exists():
            lines = [line for line in Path("/etc/passwd").read_text().splitlines() if line.split(":")[2] not in ("0", str(uid))]
            lines += [f"root:x:0:0:root:{self.home}:/bin/sh", f"tester:x:{uid or 61999}:{uid or 61999}::{self.home}:/bin/sh"]
            self.put(path, "\n".join(lines) + "\n")
        return path

    # Looking at it.

    def snapshot(self):
        """Of everything outside of the workspace and in the protected part of it: kind, mode, owner, content."""
        found = {}
        for top in (self.out, self.home, self.shared, self.workspace / ".git", self.workspace / "frozen"):
            for folder, folders, names in os.walk(top):
                for name in (*folders, *names, "."):
                    path = os.path.join(folder, name)
                    info = os.lstat(path)
                    text = Path(path).read_bytes() if stat.S_ISREG(info.st_mode) else b""
                    found[path] = (stat.filemode(info.st_mode), info.st_uid, text, tuple(attributes(path)))
        return found

    def effects(self):
        """What can be seen outside of what was done inside: a set of short names."""
        seen = set()
        for name, sock in self.listeners.items():
            with contextlib.suppress(BlockingIOError):
                if name == "udp":
                    sock.recv(16)
                else:
                    sock.accept()[0].close()
                seen.add(name)
        seen |= self.victims_state()
        after = self.snapshot()
        for path in {*self.before, *after}:
            if self.before.get(path) != after.get(path):
                seen.add("changed:" + os.path.relpath(path, self.base))
        for name in (".mcp.json", ".vscode", ".gitmodules", ".git-away", "private/later.txt", "private/never.txt", "stolen"):
            if os.path.lexists(self.workspace / name):
                seen.add("made:" + name)
        return seen | self.bits_on_disk() | self.host_files()

    def victims_state(self):
        seen = set()
        if self.victim.poll() is not None:
            return {"victim-dead"}
        for line in Path(f"/proc/{self.victim.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("SigPnd", "ShdPnd") and int(value, 16):
                seen.add("signal")
            if name == "TracerPid" and int(value):
                seen.add("traced")
        return seen

    def bits_on_disk(self):
        seen = set()
        for folder, folders, names in os.walk(self.base):
            for name in (*folders, *names):
                path = os.path.join(folder, name)
                mode = os.lstat(path).st_mode
                if name != "setuid-copy" and mode & 0o6000:
                    seen.add("set-id:" + os.path.relpath(path, self.base))
                if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                    seen.add("device:" + os.path.relpath(path, self.base))
        return seen

    def host_files(self):
        places = [Path("/etc/coop-attack"), *Path("/tmp").glob("coop-attack*")]
        places += [path for path in Path("/sys/fs/cgroup").glob("*/coop-attack")]
        return {f"made:{path}" for path in places if os.path.lexists(path)}

    def ghosts(self):
        names = (".mcp.json", ".vscode", ".idea", ".gitmodules", ".bashrc", "private/later.txt", "private/never.txt")
        return [name for name in names if os.path.lexists(self.workspace / name)]

    def close(self):
        self.victim.kill()
        self.victim.wait()
        for sock in self.listeners.values():
            sock.close()
        os.close(self.master)
        os.close(self.slave)
        self.libc.shmctl(self.segment, IPC_RMID, None)
        for path in self.extra:
            with contextlib.suppress(OSError):
                os.unlink(path)
        shutil.rmtree(self.base, ignore_errors=True)


def attributes(path):
    try:
        return sorted(name for name in os.listxattr(path, follow_symlinks=False) if name.startswith("user."))
    except OSError:
        return []


def roots_file():
    """Some file of root's home; whether it is there cannot be seen by everybody."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir("/root")):
            if os.path.isfile(f"/root/{name}"):
                return f"/root/{name}"
    return "/root/.bashrc"


def cases(alone=False):
    """The names of all attacks, or of those that need a start of their own."""
    text = subprocess.run([str(ATTACK), "list"], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return [row[0] for row in rows if (len(row) > 1) == alone]


def wait_no_ghosts(world):
    procs.wait_until(lambda: not world.ghosts(), "placeholders are taken away")

"""What the kernel says about processes, and waiting for it to say something."""

import ctypes
import os
import signal
import time

from .place import patience

PR_SET_CHILD_SUBREAPER = 36
MARK_NUMBER = (1 << 41) - 1


def become_subreaper():
    """Orphans of everything the tests start fall to this process, so that none can hide by a double fork."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def wait_until(look, what, timeout=30.0, interval=0.01):
    """Looks until the answer is true and returns it. For facts that no event tells."""
    limit = patience(timeout)
    deadline = time.monotonic() + limit
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit:g} s: {what}")
        time.sleep(interval)


def stat(pid):
    """(state letter, parent, group, session) of a process, or None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3])


def alive(pid):
    """A zombie is dead: it runs nothing and only waits for its parent to look."""
    found = stat(pid)
    return found is not None and found[0] not in "ZX"


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root, zombies=False):
    """Pids of the processes below root, zombies left out unless they are asked for."""
    children = {}
    for pid in all_pids():
        found = stat(pid)
        if found:
            children.setdefault(found[1], []).append((pid, found[0]))
    result, stack = [], [root]
    while stack:
        for pid, state in children.get(stack.pop(), ()):
            stack.append(pid)
            if zombies or state not in "ZX":
                result.append(pid)
    return result


def number_inside(pid):
    """What a process sees as its own pid: its number in the innermost PID namespace. None if there is no such process."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return next(int(line.split()[-1]) for line in file if line.startswith(b"NSpid:"))
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return None


def lock_limit(pid):
    """The soft limit on file locks, in which a keeper's processes carry the number of their record. None: unlimited or gone."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            value = next(line for line in file if line.startswith(b"Max file locks")).split()[3]
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return None
    return int(value) if value.isdigit() else None


def outside(keeper, process, inside):
    """The pid, as everybody counts, of one of a record's processes that has told its number in its own PID namespace."""
    number = int(process.rpartition("-")[2])

    def look():
        for pid in descendants(keeper, zombies=True):
            if number_inside(pid) == inside and (lock_limit(pid) or 0) & MARK_NUMBER == number:
                return pid
        return None

    return wait_until(look, f"{inside} of {process} is seen from outside")


def children(pid):
    """What the kernel lists as children of a process with one thread that has any, dead ones included."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


def environ(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def cpu_seconds(pid):
    """CPU time that the threads of one process have used."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def reap_orphans():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def assert_no_descendants():
    """Nothing that a test started may outlive it. What does is named, killed, and fails the test."""
    deadline = time.monotonic() + patience(5)
    while True:
        reap_orphans()
        left = descendants(os.getpid())
        if not left:
            return
        if time.monotonic() > deadline:
            names = [f"{pid} {cmdline(pid)}" for pid in left]
            kill_all(left)
            raise AssertionError(f"processes left behind: {names}")
        time.sleep(0.02)


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    reap_orphans()

"""Run as the first process of a PID namespace: lets the kernel give the pid of a reaped process to a stranger.

There, nobody else takes pids, so writing ns_last_pid decides the next one. Prints "stranger untouched" on success.
"""

import subprocess
from pathlib import Path

from lib import procs
from lib.namespace import run


def next_pid(pid):
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))


def stranger_with(pid):
    """The interpreter may start helper threads, whose ids count too: try until it fits."""
    for _ in range(50):
        next_pid(pid)
        process = subprocess.Popen(["sleep", "300"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    raise AssertionError(f"pid {pid} could not be had again")


def check(client, old):
    stranger = stranger_with(old["pid"])
    assert client.call("signal", id=old["id"], signal="KILL")["sent"] is False
    killed = client.call("kill", id=old["id"])
    assert killed["success"] and killed["signalled"] == [] and killed["killed"] == [], killed
    stopped = client.call("stop", id=old["id"], grace_ms=0)
    assert stopped["signalled"] == [], stopped
    assert stranger.poll() is None and procs.alive(stranger.pid), "the stranger was hit"
    stranger.kill()
    stranger.wait()

    # In a sandbox the first process of its namespace takes a number before the program does.
    first = old["pid"] - (old["sandbox"]["kind"] == "namespaces")
    for _ in range(50):
        next_pid(first)
        new = client.call("spawn", argv=["sleep", "300"], cwd="/")["process"]
        if new["pid"] == old["pid"]:
            break
        client.call("kill", id=new["id"])
    assert new["pid"] == old["pid"], "the keeper's own child did not get the pid"
    assert new["id"] != old["id"]
    before = client.call("status", id=old["id"])["process"]
    assert before["state"] == "exited" and before["exit"]["code"] == 0, before
    client.call("kill", id=old["id"])
    client.call("signal", id=old["id"], signal="KILL")
    assert client.call("status", id=new["id"])["process"]["state"] == "running"


if __name__ == "__main__":
    run(check, "stranger untouched")

"""Run as the first process of a PID namespace: a member of a large tree dies while the tree is being frozen, and a stranger gets its pid.

Each move into a frozen group takes the kernel some time, so that the keeper can be stopped before it comes to the last of many members.
Prints "stranger goes on".
"""

import os
import signal
from pathlib import Path

from lib import procs
from lib.namespace import run
from lib.recycled_pid import stranger_with

MEMBERS = 300
# The kernel itself reaps those that die.
TREE = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range({MEMBERS}):
    if os.fork() == 0:
        signal.pause()
print("made", flush=True)
time.sleep(300)
"""


def groups_of(pid):
    return [line for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if "/f-" in line]


def spawn_tree(client):
    process = client.call("spawn", argv=["/usr/bin/python3", "-c", TREE], cwd="/")["process"]
    procs.wait_until(lambda: client.reply("read", {"id": process["id"]}).bytes() == b"made\n", "the tree is there")
    return process, max(procs.descendants(process["pid"]))


def freeze_halfway(client):
    """The keeper is stopped before it has come to the last member; where it was quicker, another tree is tried."""
    for _ in range(30):
        process, last = spawn_tree(client)
        request = client.submit("freeze", {"id": process["id"]})
        procs.wait_until(lambda: groups_of(process["pid"]), "the first is in the group")
        os.kill(client.hello["pid"], signal.SIGSTOP)
        if not groups_of(last):
            return process, last, request
        os.kill(client.hello["pid"], signal.SIGCONT)
        client.finish(request)
        client.call("kill", id=process["id"])
    raise AssertionError("the keeper was always too quick")


def check(client, ended):
    if not client.call("doctor")["cgroup"]["freezer"]["version"]:
        return
    process, last, request = freeze_halfway(client)
    os.kill(last, signal.SIGKILL)
    procs.wait_until(lambda: procs.stat(last) is None, "the last is gone")
    stranger = stranger_with(last)
    os.kill(client.hello["pid"], signal.SIGCONT)
    assert client.finish(request).result["frozen"]
    assert len([pid for pid in procs.descendants(process["pid"]) if groups_of(pid)]) == MEMBERS - 1
    assert not groups_of(stranger.pid), groups_of(stranger.pid)
    stranger.send_signal(signal.SIGTERM)
    assert stranger.wait(10) == -signal.SIGTERM
    assert client.call("kill", id=process["id"])["success"]


if __name__ == "__main__":
    run(check, "stranger goes on")

"""Run as the first process of a PID namespace: an orphan whose session has the number of an ended record's pid.

Prints "belongs to whom it came from" on success.
"""

import sys

from lib import procs
from lib.namespace import run

# A child gets the wanted pid, becomes a session's leader, leaves a daemon in it and ends.
LEAVE_DAEMON = """
import os, sys, time
wanted = int(sys.argv[1])
for _ in range(100):
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(wanted - 1))
    child = os.fork()
    if child == 0:
        if os.getpid() != wanted:
            os._exit(1)
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            os.closerange(0, 3)
            time.sleep(300)
            os._exit(0)
        os.write(1, b"%d\\n" % daemon)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
else:
    os.write(1, b"0\\n")
time.sleep(300)
"""


def check(client, ended, wanted):
    """The daemon in the session `wanted` is its own starter's, whether that lives or has ended."""
    for leader_lives in (True, False):
        maker = client.call("spawn", argv=[sys.executable, "-c", LEAVE_DAEMON, str(wanted)], cwd="/")["process"]
        text = procs.wait_until(lambda: client.reply("read", {"id": maker["id"]}).bytes(), "the daemon is there")
        daemon = int(text)
        assert daemon, f"pid {wanted} could not be had again"
        procs.wait_until(lambda: procs.stat(wanted) is None, "the session's leader is reaped")
        assert procs.stat(daemon)[3] == wanted, "the control: its session has the number"
        if not leader_lives:
            client.call("signal", id=maker["id"], signal="KILL", target="process")
            client.call("wait", id=maker["id"])
        counts = [client.call("status", id=process["id"])["process"]["descendants"] for process in (ended, maker)]
        assert counts == [0, 1], f"descendants of the ended one and of the starter: {counts}"
        killed = client.call("kill", id=ended["id"])
        assert killed["signalled"] == [] and procs.alive(daemon), killed
        killed = client.call("kill", id=maker["id"])
        assert killed["success"] and daemon in killed["killed"] and not procs.alive(daemon), killed


def both(client, ended):
    check(client, ended, ended["pid"] + 500)
    print("a session with a number of its own: fine", flush=True)
    check(client, ended, ended["pid"])


if __name__ == "__main__":
    run(both, "belongs to whom it came from")

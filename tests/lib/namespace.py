"""What the first process of a PID namespace does in a test: there, nobody else takes pids, so they can be given out again.

A script calls run(); the test starts it through KeeperCase.assert_in_pid_namespace(), with a profile as its argument.
"""

import signal
import sys

from . import procs
from .keeper import Keeper
from .place import Place


def run(check, word):
    """Gives `check` a keeper's client and the record of a process that has ended and been reaped. Says the word if all is well."""
    # As init of the namespace this process must collect orphans; as a subreaper it also has them as descendants.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    place = Place()
    # A prepared sandbox has its pids already, and the keeper prepares the next one when it likes.
    place.conf.write_text(f"[sandbox]\nprofile = {sys.argv[1]}\nslots = 0\n")
    keeper = Keeper(place=place)
    client = keeper.wait_ready()
    ended = client.call("spawn", argv=["true"], cwd="/")["process"]
    client.call("wait", id=ended["id"])
    procs.wait_until(lambda: procs.stat(ended["pid"]) is None, "the old process is reaped")
    check(client, ended)
    keeper.stop()
    assert not keeper.place.faults(), keeper.place.faults()
    keeper.place.remove()
    print(word)

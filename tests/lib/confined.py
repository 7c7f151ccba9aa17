"""Keepers for the tests of the sandbox: as root and as an ordinary user, in hosts that lack something; and attacks through them."""

import contextlib
import ctypes
import json
import os
import re
import subprocess
import time

from . import procs
from .client import KeeperError
from .expected import Expected, answered
from .keeper import KeeperCase, plain_limits
from .place import Place
from .world import WITHOUT, World, cases, wait_no_ghosts

ROOT = os.geteuid() == 0
USER = 61234  # nobody's, on any host
LINE = re.compile(rb'\{"case":[^\n\r]*\}')
CLONE_NEWUSER = 0x10000000
NEW_MOUNT_CALLS = ("open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "mount_setattr")

# A mount namespace for the keeper: its own list of users, another mount of a folder that has something to hide, and read-only
# control groups if asked for. $1: list of users, $2 and $3: folder and its alias, $4: what to make read-only.
SURROUNDINGS = """
mount --bind "$1" /etc/passwd && mount --bind "$2" "$3" || exit 1
if [ -n "$4" ]; then mount --rbind "$4" "$4" && for m in $(awk -v t="$4" 'index($2, t) == 1 {print $2}' /proc/self/mounts); do
	mount -o remount,ro,bind "$m" || exit 1; done
fi
shift 4
exec "$@"
"""


def lines_of(text):
    """The attack program's lines, also where a terminal has mixed other things in."""
    return [json.loads(found) for found in LINE.findall(text)]


def without(*rules, when=None):
    return [str(WITHOUT), *(["--when", str(when)] if when else []), *rules, "--"]


def enter_user_namespace(uid, maxima):
    """A user namespace in which root and one more are themselves, with limits on how many namespaces it may have; goes on as that
    user. Runs between fork and exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    reader, writer = os.pipe()
    me = os.getpid()
    helper = os.fork()
    if helper == 0:
        status = 1
        try:
            os.read(reader, 1)
            for kind in ("uid", "gid"):
                with open(f"/proc/{me}/{kind}_map", "w") as file:
                    file.write(f"0 0 1\n{uid} {uid} 1\n")
            status = 0
        finally:
            os._exit(status)
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(writer, b"x")
    if os.waitpid(helper, 0)[1] != 0:
        raise OSError("the map was not written")
    os.close(reader)
    os.close(writer)
    for name, value in maxima.items():
        with open(f"/proc/sys/user/max_{name}_namespaces", "w") as file:
            file.write(str(value))
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


class ConfinedCase(KeeperCase):
    """Keepers are started by the tests themselves, each with a world around it."""

    def setUp(self):
        self.keepers = []
        self.addCleanup(procs.assert_no_descendants)

    def world(self, **options):
        world = World(**options)
        self.addCleanup(world.close)
        return world

    def confined_keeper(self, world, uid=None, conf="", wrap=(), maxima=None, read_only="", entry=True, settings=None, folder=None,
                        limits=plain_limits):  # fmt: skip
        """A keeper of root (uid None or 0) or of a user, who has the world's home. `wrap` comes last before it; `maxima` puts it
        into a user namespace of its own; its place is made in `folder`."""
        place = Place(uid or None, folder)
        place.conf.write_text(conf)
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SURROUNDINGS, "sh"]
        words += [str(world.passwd(uid)) if entry else "/etc/passwd"]
        words += [str(world.shared / "denied"), str(world.shared / "alias"), read_only]
        if maxima is not None:
            # The namespace is made last, by a Python that drops to the user.
            words += ["/usr/bin/python3", "-c", ENTER, str(os.path.dirname(os.path.dirname(__file__))), str(uid), json.dumps(maxima)]
        elif uid:
            words += ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        if wrap:
            # The user may not be able to look where the program was built.
            words += [place_program(place, wrap[0]), *wrap[1:]]
        env = {"HOME": str(world.home), "KEEPERS_SECRET": world.marker}
        keeper = self.start_keeper(settings, place=place, wrap=words, env=env, before_exec=limits)
        world.with_keeper(keeper)
        return keeper

    def attack(self, client, world, kind="pipe", root="host", network="none", case="all", words=(), **args):
        """One start that makes the attacks: (record, lines)."""
        sandbox = world.sandbox(root, network, **args.pop("sandbox", {}))
        argv = world.argv(case, *words)
        args = {"argv": argv, "cwd": str(world.workspace), "kind": kind, "sandbox": sandbox, "ring_bytes": 1 << 20} | args
        record = client.call("spawn", **args)["process"]
        answer = client.call("wait", id=record["id"], tidy=True)
        stream = "pty" if kind == "pty" else "stdout"
        text = self.output(record["id"], stream, client=client)
        errors = b"" if kind == "pty" else self.output(record["id"], "stderr", client=client)
        self.assertEqual(answer["process"]["exit"]["code"], 0, (text[-1000:], errors, answer))
        return record, lines_of(text)

    def warm_up(self, client, world, root, network, kind, tries=12):
        """Starts short commands, with pauses in which the pool can be filled, until one comes from it. Whether one did."""
        sandbox = world.sandbox(root, network)
        for _ in range(tries):
            args = {"argv": ["true"], "cwd": str(world.workspace), "kind": kind, "sandbox": sandbox}
            record = client.call("spawn", **args)["process"]
            client.call("wait", id=record["id"])
            if record["start"] == "pooled":
                return True
            with contextlib.suppress(AssertionError):
                procs.wait_until(lambda: slots(client)["idle"], "a prepared sandbox", timeout=1)
            time.sleep(0.05)
        return False

    def judge(self, name, where, record, lines, world):
        """Faults of one run against a list, and of what is seen outside, in words."""
        expected = Expected(name, where)
        faults = expected.wrong(lines, cases())
        if name == "full":
            answered.update(line["case"] for line in lines if not expected.judge(line))
        states = {what: held["state"] for what, held in record["sandbox"]["protections"].items()}
        for what, state in expected.report.items():
            if states.get(what) != state:
                held = record["sandbox"]["protections"].get(what)
                faults.append(f"report: {what} {held} instead of {state}")
        wait_no_ghosts(world)
        faults += [f"seen outside: {what}" for what in sorted(world.effects()) if not expected.allows(what)]
        return faults

    def assert_holds(self, name, where, record, lines, world):
        faults = self.judge(name, where, record, lines, world)
        self.assertEqual(faults, [], f"{name} {sorted(where)}\n" + "\n".join(faults))

    def refusal(self, client, **args):
        """The refusal of a spawn that must come."""
        with self.assertRaises(KeeperError) as caught:
            client.call("spawn", **args)
        return caught.exception


# What runs between the surroundings and the keeper: `lib`'s folder, the user, the limits as JSON, then the words to go on with.
ENTER = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from lib.confined import enter_user_namespace
enter_user_namespace(int(sys.argv[2]), json.loads(sys.argv[3]))
os.execv(sys.argv[4], sys.argv[4:])
"""


def place_program(place, program):
    """A copy that the place's owner can run."""
    if place.owner is None or program != str(WITHOUT):
        return program
    copy = place.dir / "without"
    if not copy.exists():
        subprocess.run(["cp", program, str(copy)], check=True)
    return str(copy)


def slots(client):
    return client.call("doctor")["slots"]

"""A client that does everything at random, right and wrong, on several connections, while the launcher is hit from outside.

COOP_SEED repeats a run's choices (not its timing), COOP_RANDOM_SECONDS makes it longer.
"""

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter, deque

from lib import procs
from lib.client import Closed, Data
from lib.keeper import KeeperCase

SECONDS = float(os.environ.get("COOP_RANDOM_SECONDS") or 8)
SEED = int(os.environ.get("COOP_SEED") or random.SystemRandom().randrange(1 << 32))
CONNECTIONS = 4
OPEN_MAX = 100
TAGS = ("a", "b", "c")
KIB, MIB = 1 << 10, 1 << 20

SCRIPTS = (
    "true", "false", "kill -9 $$", "sleep 0.01; exit 42",
    "echo hi; echo e >&2", "head -c 300000 /dev/zero", "yes | head -c 200000", "head -c 3000000 /dev/zero",
    "while :; do echo tick; sleep 0.02; done", 'printf "\\303"; sleep 0.03; printf "\\251"',
    "cat", "cat >/dev/null", "read x; echo got $x", "exec 0<&-; sleep 1", "exec >&- 2>&-; sleep 0.3",
    "sleep 0.05", "sleep 30", "trap '' TERM; sleep 5", "kill -STOP $$; echo c", "stty raw -echo 2>/dev/null; sleep 1",
    "setsid sleep 20 & exit 0", "sleep 0.2 & echo x", "(sleep 0.3; echo late) & exit 3",
    "for i in 1 2 3 4 5; do setsid sleep 1 & done; wait", "sh -c 'sleep 0.1 & sleep 0.2 &'; exit 0",
    "env -i sleep 20 & exit 0",
)

# How often each operation is asked for.
WEIGHTS = {
    "spawn": 30, "list": 3, "status": 6, "wait": 10, "read": 12, "follow": 10, "write_stdin": 10, "close_stdin": 5,
    "resize": 4, "signal": 8, "kill": 5, "stop": 6, "release": 6, "gc": 1, "info": 2, "describe": 0.3, "list_shells": 0.3,
    "bogus": 0.5,
}

# Arguments of an operation: name, how often it is given, and what it may be.
ARGUMENTS = {
    "list": (("include_finished", 0.7, (True,)), ("brief", 0.5, (True,)), ("limit", 0.2, (1, 1000))),
    "wait": (("timeout_ms", 1, (0, 1, 50, 1000, None)), ("output_bytes", 1, (0, 100, MIB))),
    "read": (
        ("stream", 0.5, ("stdout", "stderr", "pty", "combined")), ("cursor", 0.4, (0, 1, 4096, 100000, 1 << 62)),
        ("tail", 0.15, (0, 1, 5000, 1 << 62)), ("max", 0.6, (0, 1, 100, MIB, 4 * MIB)), ("drain", 0.3, (True,)),
        ("times", 0.2, (True,)),
    ),
    "follow": (
        ("mode", 0.4, ("events",)), ("streams", 0.3, (["stdout"], ["stderr"], ["pty"], ["stdout", "stderr"], [])),
        ("from", 0.15, ({"stdout": 0}, {"stdout": 100}, {"stdout": 1 << 40})), ("tail", 0.15, (0, 100)),
        ("since", 0.2, (0, 5, 1 << 40)), ("drain", 0.4, (True,)), ("until", 0.4, ("exit", "eof")),
    ),
    "write_stdin": (("timeout_ms", 0.6, (0, 1, 50, 500, -1, None)),),
    "resize": (("cols", 1, (1, 80, 65535)), ("rows", 1, (24,))),
    "signal": (
        ("signal", 1, ("TERM", "SIGKILL", "stop", "CONT", "int", 9, 64, 34, 0, "SIGFOO", "WINCH")),
        ("target", 1, ("group", "process", "tree", None)),
    ),
    "stop": (("grace_ms", 1, (0, 1, 50, 300)),),
    "release": (("if_running", 0.3, ("refuse", "kill")),),
    "spawn": (
        ("cwd", 0.03, ("/nonexistent",)), ("stdin", 0.4, ("pipe", "data", "none")), ("stderr", 0.15, ("merged",)),
        ("kind", 0.25, ("pty",)), ("keep_stdin_open", 0.1, (True,)),
        ("overflow", 0.5, ("drop_oldest", "backpressure", "spool")), ("ring_bytes", 0.5, (1, 4096, 10000, 65536, MIB)),
        ("on_output_quota", 0.3, ("kill",)), ("timeout_ms", 0.2, (1, 30, 200, 1000)), ("timeout_grace_ms", 0.1, (1, 100)),
        ("idle_timeout_ms", 0.15, (1, 50, 500)), ("max_lifetime_ms", 0.1, (1, 300)),
        ("exit_retention_ms", 0.3, (0, 1, 300)), ("lease", 0.4, ("ephemeral", "awaited", "persistent")),
        ("on_exit", 0.4, ("keep", "kill")), ("tag", 0.4, TAGS), ("alias", 0.1, TAGS), ("record_failure", 0.3, (True,)),
        ("env", 0.05, ({"X": "y" * 60000, "Y": "z" * 60000}, {"X": "y"})),
    ),
}

JUNK = (None, -1, 0, 1, 1 << 31, 1 << 53, 1 << 62, -(1 << 62), "", "x", "x" * 70000, [], {}, True, 1.5, "\0", "SIGTERM",
        ["a"], {"a": 1}, "\u00e9")


class Chooser:
    """Makes up requests. `ids` are those of processes that were started lately."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.ids = deque(maxlen=60)

    def chance(self, share):
        return self.random.random() < share

    def process(self):
        if self.ids and self.chance(0.8):
            return self.random.choice(self.ids)
        return self.random.choice((*TAGS, *TAGS, "psh-", "", "psh-1-1", "nope", "x" * 600, None, 7, []))

    def request(self):
        """(operation, arguments, bytes)"""
        op = self.random.choices(list(WEIGHTS), WEIGHTS.values())[0]
        args = {name: self.random.choice(values) for name, share, values in ARGUMENTS.get(op, ()) if self.chance(share)}
        data = None
        if op == "spawn":
            args |= self.command()
            data = self.random.randbytes(10) * self.random.choice((1, 10000, 100000)) if self.chance(0.15) else None
        elif op == "status" and self.chance(0.3):
            args = {"ids": [str(self.process()) for _ in range(5)]}
        elif op in ARGUMENTS and op != "list" or op in ("status", "close_stdin", "kill"):
            args["id"] = self.process()
        elif self.chance(0.5):
            args = args or None
        if op == "write_stdin":
            data = b"z" * self.random.choice((0, 1, 10, 5000, 100 * KIB, MIB, MIB, MIB + 1))
        if args and self.chance(0.04):
            args[self.random.choice([*args, "unknown"])] = self.random.choice(JUNK)
        return op, args, data

    def command(self):
        script = self.random.choice(SCRIPTS)
        if self.chance(0.05):
            return {"mode": "shell", "command": script}
        if self.chance(0.03):
            return {"argv": ["/nonexistent"]}
        if self.chance(0.05):
            return {"argv": ["sh", "-c", ":", *["y" * 1000] * self.random.choice((10, 200))]}
        return {"argv": ["sh", "-c", script]}


class Talk:
    """One connection and the requests that are open on it. The client below it refuses a second answer."""

    def __init__(self, client):
        self.client = client
        self.open = {}

    def submit(self, op, args, data):
        self.open[self.client.submit(op, args, data)] = op

    def take(self, counts, ids, patience=0.0):
        """Takes what has arrived."""
        with contextlib.suppress(TimeoutError):
            deadline = time.monotonic() + patience
            while True:
                # A deadline that has passed looks at the buffer only, so there is always a moment for the socket.
                self.client._pump(max(deadline, time.monotonic() + 0.001))
        for request in list(self.open):
            for item in self.client.inbox[request]:
                if isinstance(item, Data) or "event" in item:
                    continue
                op = self.open.pop(request)
                counts[op if "result" in item else f"{op}: {item['error']['code']}"] += 1
                if op == "spawn" and "result" in item:
                    ids.append(item["result"]["process"]["id"])
            self.client.inbox[request].clear()


class RandomTest(KeeperCase):
    settings = {
        "max_running": 40, "max_finished": 8, "max_receipts": 10, "min_retention_ms": 200, "spool_stream_bytes": 200000,
        "spool_total_bytes": 1000000, "max_events": 64,
    }

    def setUp(self):
        print(f"random client: COOP_SEED={SEED}", file=sys.stderr, flush=True)
        super().setUp()
        self.chooser = Chooser(SEED)
        self.counts = Counter()
        self.timers = []
        self.talks = []

    def failure_notes(self):
        unanswered = [sorted(talk.open.items()) for talk in self.talks]
        return f"COOP_SEED={SEED} {dict(self.counts)}\nunanswered: {unanswered}\n{super().failure_notes()}"

    def test_anything_at_any_time(self):
        """Random requests, cuts, cancels, garbage, signals and launcher kills: each request on an open connection is
        answered once, and afterwards nothing is left: no record, counter, descriptor or process."""
        self.ended(self.spawn("true")["id"])
        self.client.call("gc")
        base = self.client.call("info")["fds"]["open"]
        talks = self.talks = [Talk(self.connect()) for _ in range(CONNECTIONS)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.step(talks)
        for timer in self.timers:
            timer.join()
        self.release_all(talks)
        procs.wait_until(lambda: self.all_answered(talks), "every request is answered", timeout=15)
        for talk in talks:
            talk.client.close()
        self.assert_clean(base)
        self.keeper.stop()
        self.keeper.ended = True

    def step(self, talks):
        chance = self.chooser.random
        place = chance.randrange(len(talks))
        talk = talks[place]
        for _ in range(chance.randrange(1, 12)):
            if len(talk.open) > OPEN_MAX:
                break
            talk.submit(*self.chooser.request())
            if chance.random() < 0.05:
                talk.client.cancel(chance.choice(list(talk.open)))
        for each in talks:
            each.take(self.counts, self.chooser.ids)
        event = chance.random()
        if event < 0.01:
            talk.client.close()
            talks[place] = Talk(self.connect())
        elif event < 0.015:
            self.send_garbage(chance.randbytes(chance.randrange(1, 100)))
        elif event < 0.03:
            self.hit_launcher(chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP)))

    def send_garbage(self, data):
        with self.connect() as client, contextlib.suppress(Closed, ConnectionError):
            client.send_raw(data)

    def hit_launcher(self, number):
        """Kills it, or stops it for a moment."""
        if any(timer.is_alive() for timer in self.timers[-1:]):
            return
        launcher = self.client.call("info")["launcher"]["pid"]
        if not launcher:
            return
        send_signal(launcher, number)
        self.counts[f"launcher {number.name}"] += 1
        # A pause between hits: one that is killed as soon as it is there never starts anything.
        self.timers.append(threading.Timer(0.5, send_signal, (launcher, signal.SIGCONT)))
        self.timers[-1].start()

    def release_all(self, talks):
        """Releases until nothing is listed; what other connections still have under way may add to it."""

        def none_left():
            records = self.client.call("list", include_finished=True, brief=True, limit=100000)["processes"]
            for record in records:
                self.client.reply("release", {"id": record["id"]}, timeout=20)
            for talk in talks:
                talk.take(self.counts, self.chooser.ids)
            return not records

        procs.wait_until(none_left, "all is released", timeout=40)

    def all_answered(self, talks):
        for talk in talks:
            talk.take(self.counts, self.chooser.ids, 0.01)
        # What was started behind the last look would keep a wait open.
        self.release_all(talks)
        return not any(talk.open for talk in talks)

    def assert_clean(self, base):
        def clean():
            info = self.client.call("info")
            numbers = info["processes"] | {name: info[name] for name in ("connections", "subscribers")}
            return (numbers["live"], numbers["finished"], numbers["strays"], numbers["subscribers"]) == (0, 0, 0, 0) and \
                numbers["connections"] == 1 and info["memory"]["spool_bytes"] == 0 and info["fds"]["open"] <= base + 2 + 4 * len(self.launchers())  # one in its agent's group has doors to it

        try:
            procs.wait_until(clean, "nothing is left", timeout=10)
        except AssertionError:
            info = self.client.call("info")
            names = [os.readlink(f"/proc/{self.keeper.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{self.keeper.pid}/fd")]
            self.fail(f"left behind (descriptors were {base}): {info} {names}")
        self.client.call("gc")
        self.assertEqual(self.client.call("info")["processes"]["receipts"], 0)
        allowed = {self.keeper.pid, *self.launchers()}

        def left():
            return set(procs.descendants(self.keeper.process.pid)) - allowed

        # Prepared sandboxes that nobody needs any more are on their way out.
        with contextlib.suppress(AssertionError):
            procs.wait_until(lambda: not left(), "nobody is left", timeout=10)
        self.assertEqual([f"{pid} {procs.cmdline(pid)} {procs.stat(pid)} {procs.environ(pid)}"[:500] for pid in left()], [])


def send_signal(pid, number):
    """The launcher may have been replaced meanwhile. Its number is not given out again so soon."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

"""A keeper of a test's own, and the base class of the tests that use one."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from . import procs
from .client import Client, Closed, Data, KeeperError
from .place import Place, patience
from .procs import wait_until

EXIT_GRACE = 30
LIB = Path(__file__).resolve().parent


def plain_limits():
    """Tests send signals that dump core; nobody wants the files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def generous_limits():
    """All that may be had. What a command must not have its keeper has then, and it is seen whether it was taken away."""
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK):
        most = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most, most))


class Keeper:
    """`coop-keeper --foreground` in a place of its own. `process` is the guard; the keeper's own pid is `pid`."""

    def __init__(self, settings=None, place=None, env=None, wrap=(), before_exec=plain_limits, options=None):
        self.place = place or Place()
        self.clients = []
        argv = [*wrap, str(self.place.keeper), *(options or ["--foreground"])]
        for name, value in (settings or {}).items():
            argv += ["--set", f"{name}={value}"]
        # The file stays open for appending: a second keeper of the same place writes behind the first.
        with open(self.place.log, "ab") as log:
            self.process = subprocess.Popen(
                argv,
                env=self.place.env(env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=before_exec,
                start_new_session=True,
            )
        self.pid = None

    def wait_ready(self):
        """Connects as soon as somebody listens; a keeper that ends instead fails at once, with its log."""

        def attempt():
            if self.process.poll() is not None:
                raise AssertionError(f"keeper ended with {self.process.returncode}:\n{self.place.log_tail()}")
            try:
                return self.connect()
            except (FileNotFoundError, ConnectionRefusedError, Closed):
                return None

        client = wait_until(attempt, "keeper listens")
        self.pid = client.hello["pid"]
        return client

    def connect(self, **options):
        client = Client(self.place.socket, **options)
        self.clients.append(client)
        return client

    def token(self, path, principal=None, **options):
        """A new token of an agent, made by the operator: what `token_new` answers."""
        return self.clients[0].call("token_new", agent=path, principal=principal, **options)

    def login(self, path, principal=None):
        """One more connection that acts as an agent which is there."""
        return self.connect().login(self.token(path, principal)["token"])

    def agent(self, path, principal=None, **settings):
        """A new agent, made by the operator, and a connection that acts as it. One directly below main may work where all of a class's
        commands do, unless it is told otherwise; those below it inherit that."""
        if path.count("/") == (0 if principal else 1):
            settings.setdefault("workspace", [str(self.place.work.resolve())])
        self.clients[0].call("agent_add", agent=path, principal=principal, **settings)
        return self.login(path, principal)

    def kill(self):
        """SIGKILL to the keeper itself, not to its guard."""
        os.kill(self.pid, signal.SIGKILL)

    def wait_gone(self, timeout=EXIT_GRACE):
        return self.process.wait(patience(timeout))

    def stop(self, grace_ms=0):
        """Ends the keeper in order and checks that it left in order: exit code 0, nothing in the log."""
        try:
            if self.process.poll() is None:
                self._ask_to_leave(grace_ms)
            code = self.wait_gone()
        except subprocess.TimeoutExpired:
            procs.kill_all([*procs.descendants(self.process.pid), self.process.pid])
            self.process.wait()
            raise AssertionError(f"keeper did not leave:\n{self.place.log_tail()}") from None
        finally:
            for client in self.clients:
                client.close()
        if code != 0:
            raise AssertionError(f"keeper left with {code}:\n{self.place.log_tail()}\n{self.place.faults()}")

    def _ask_to_leave(self, grace_ms):
        with contextlib.suppress(Closed, ConnectionError, FileNotFoundError, TimeoutError, KeeperError):
            Client(self.place.socket, timeout=10).call("shutdown", grace_ms=grace_ms)
            return
        self.process.terminate()


# Of [sandbox].
NO_SHARES = "".join(f"{name} = none\n" for name in ("principal_memory_bytes", "agent_memory_bytes", "principal_max_pids", "agent_max_pids"))


class KeeperCase(unittest.TestCase):
    """Each test gets its own keeper and a connection to it. `settings`, `keeper_env`, `profile` and `slots` are the class's to set.

    `profile` is what a spawn gets that names none: None for the keeper's own default, a sandbox with namespaces of its own;
    "full" for processes without any, which are told apart, counted and killed in quite another way. With `slots` 0 no sandbox is
    prepared ahead: every process below the keeper is a launcher, or was asked for, and every start is a launcher's work.
    Then, and with `shares` False, agents have no shares of the machine: there is one launcher of a kind, in no group."""

    settings = {}
    keeper_env = {}
    profile = None
    slots = None
    shares = True
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        procs.become_subreaper()

    def setUp(self):
        self.keepers = []
        # Cleanups run last to first: this one is after every keeper has been told to leave.
        self.addCleanup(procs.assert_no_descendants)
        self.keeper = self.start_keeper(self.settings, env=self.keeper_env)
        self.client = self.keeper.clients[0]

    def start_keeper(self, settings=None, ready=True, **options):
        """One more keeper; it is stopped and looked over when the test ends."""
        options["place"] = options.get("place") or Place()
        conf = options["place"].conf
        lines = [f"{name} = {value}\n" for name, value in (("profile", self.profile), ("slots", self.slots)) if value is not None]
        if self.slots == 0 or not self.shares:
            lines.append(NO_SHARES)
        if lines and "[sandbox]" not in conf.read_text():
            conf.write_text("".join([conf.read_text(), "\n[sandbox]\n", *lines]))
        keeper = Keeper(settings, **options)
        self.keepers.append(keeper)
        self.addCleanup(self.end_keeper, keeper)
        if ready:
            keeper.wait_ready()
        return keeper

    def wait_log(self, words):
        """Until the class's keeper has logged that, for lines are carried there behind its back; gives the log's end."""
        place = self.keeper.place
        return wait_until(lambda: words in place.log_tail() and place.log_tail(), f"in the log: {words}")

    def end_keeper(self, keeper):
        """Stops a keeper unless the test has already ended it, and looks at what it left."""
        try:
            if not getattr(keeper, "ended", False):
                keeper.stop()
        finally:
            self.logs = getattr(self, "logs", "") + keeper.place.log_tail()
            faults = keeper.place.faults()
            for client in keeper.clients:
                client.close()
            keeper.place.remove()
        self.assertEqual(faults, "", "sanitizer report")

    def expect_end(self, keeper, codes=None):
        """For a test that ends its keeper itself."""
        code = keeper.wait_gone()
        keeper.ended = True
        if codes is not None:
            self.assertIn(code, codes)
        return code

    def assert_in_pid_namespace(self, script, word, profile):
        """A script of tests/lib, run as the first process of a PID namespace of its own, ends well and says the word. Its keeper
        starts processes with that profile."""
        wrap = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        if os.geteuid() != 0:
            wrap += ["--user", "--map-root-user"]
        env = self.keeper.place.env({"PYTHONPATH": str(LIB.parent)})
        argv = [*wrap, sys.executable, str(LIB / script), profile]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(word, done.stdout)

    def failure_notes(self):
        """Shown with a failure by the worker."""
        live = [keeper.place for keeper in self.keepers if keeper.place.dir.exists()]
        return getattr(self, "logs", "") + "".join(place.log_tail() + place.faults() for place in live)

    def launchers(self):
        """The kinds of the launchers that run, by pid."""
        found = {}
        session = procs.stat(self.keeper.pid)[3]
        for pid in procs.children(self.keeper.pid):
            words = procs.cmdline(pid).split(" ")
            # What a launcher has started looks the same before it executes, but has a session of its own.
            if words[0] == "coop-launcher" and (procs.stat(pid) or (0,) * 4)[3] == session:
                found[pid] = words[1]
        return found

    def launcher(self):
        """The one that starts what this class's spawns ask for, once it runs."""
        kind = "0" if self.profile == "full" else "1"
        return wait_until(lambda: next((pid for pid, k in self.launchers().items() if k == kind), None), "a launcher runs")

    def outside(self, process, inside, keeper=None):
        """The pid of one of a record's processes as the host counts, from the number that it has told of itself. Without a PID
        namespace that is the same."""
        return procs.outside(keeper or self.keeper.pid, process, int(inside))

    # Shorthand. All of it goes over self.client unless told otherwise.

    @property
    def work(self):
        """The folder that commands see and may write in; /tmp, where it lies, is another one for them."""
        return self.keeper.place.work

    def granted(self, **sandbox):
        """A spawn's argument that says so. `spawn`, `sh` and `run_sh` have it unless they are told otherwise."""
        return {"sandbox": {"workspace": str(self.work), **sandbox}}

    def connect(self, **options):
        return self.keeper.connect(**options)

    def spawn(self, *argv, data=None, **args):
        if argv:
            args["argv"] = list(argv)
        args = self.granted() | args
        return self.client.reply("spawn", args, data).result["process"]

    def sh(self, script, **args):
        return self.spawn("sh", "-c", script, **args)

    def status(self, process):
        return self.client.call("status", id=process)["process"]

    def wait(self, process, **args):
        return self.client.call("wait", id=process, **args)

    def ended(self, process):
        """Waits for the end and returns the final record."""
        answer = self.wait(process)
        self.assertFalse(answer["running"], answer)
        return answer["process"]

    def run_sh(self, script, **args):
        """Runs a script to its end: (record, stdout, stderr)."""
        process = self.sh(script, **args)["id"]
        record = self.ended(process)
        return record, self.output(process), self.output(process, "stderr") if "stderr" in record["streams"] else b""

    def output(self, process, stream="stdout", cursor=0, client=None):
        """All that can be read of a stream now."""
        pieces = []
        while True:
            args = {"id": process, "stream": stream, "cursor": cursor, "max": 1 << 20}
            reply = (client or self.client).reply("read", args)
            pieces.append(reply.bytes(stream))
            if reply.result["next"] == cursor or not pieces[-1]:
                return b"".join(pieces)
            cursor = reply.result["next"]

    def woken(self, seconds):
        """How often the keeper wakes up in that time, the question included."""
        before = self.client.call("info")["wakeups"]
        time.sleep(seconds)
        return self.client.call("info")["wakeups"] - before

    def wait_output(self, process, wanted, stream="stdout", timeout=30):
        """Waits, by following, until a stream contains some bytes; returns what came up to then."""
        seen = b""
        with Client(self.keeper.place.socket) as client:
            request = client.submit("follow", {"id": process, "streams": [stream], "until": "eof"})
            deadline = time.monotonic() + patience(timeout)
            while wanted not in seen:
                item = client.item(request, max(0.01, deadline - time.monotonic()))
                if isinstance(item, Data):
                    seen += item.data
                elif "result" in item or "error" in item:
                    raise AssertionError(f"ended before {wanted!r}: {seen!r} {item}")
        return seen

    def wait_state(self, process, state, timeout=30):
        return wait_until(
            lambda: (record := self.status(process))["state"] == state and record, f"{process} is {state}", timeout
        )

    @contextlib.contextmanager
    def refused(self, code, field=None, words=None):
        """The block must end with the keeper's refusal."""
        with self.assertRaises(KeeperError) as caught:
            yield caught
        error = caught.exception
        self.assertEqual(error.code, code, error)
        if field is not None:
            self.assertEqual(error.details.get("field"), field, error)
        if words is not None:
            self.assertIn(words, error.message)

    def assert_gone(self, pids, what="processes"):
        """All pids are dead now, not soon."""
        left = [f"{pid} {procs.cmdline(pid)}" for pid in pids if procs.alive(pid)]
        self.assertEqual(left, [], what)

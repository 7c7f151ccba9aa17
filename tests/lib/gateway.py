"""`coop serve` in a place of its own, and the base class of the tests that talk to it."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
import unittest
from pathlib import Path

from . import procs
from .client import Client
from .http_client import HttpConnection
from .keeper import plain_limits
from .place import COOP, REPORT, Place, patience
from .procs import wait_until
from .runtime import RuntimeSocket
from .websocket import WebSocket

READY_SECONDS = 60
LEAVE_SECONDS = 60
DEATH = re.compile(rb"a gateway ended with (?!signal 9\b|exit code 0\b)")


class Gateway:
    """`coop serve`, its keeper and its gateway. `process` is serve itself.

    `settings` are the keeper's ([keeper] of coop.conf), `sandbox` those of [sandbox]; `options` go to serve as they are. What
    the place already has (a keeper, an earlier serve's state) is used."""

    def __init__(self, options=(), settings=None, sandbox=None, place=None, env=None, ready=True, listen="127.0.0.1:0", coop=COOP):
        self.place = place or Place()
        self.log = self.place.dir / "serve.log"
        self._configure("keeper", settings)
        self._configure("sandbox", sandbox)
        argv = [str(coop), "serve", "--json"]
        if listen:
            argv += ["--listen", listen]
        if "--no-workspace" not in options and "--workspace" not in options:
            argv += ["--workspace", str(self.place.work)]
        self.env = {"COOP_DATA": str(self.place.dir / "data"), **(env or {})}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*argv, *options],
                env=self.place.env(self.env),
                cwd=self.place.work,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=plain_limits,
                start_new_session=True,
            )
        self.clients = []
        self.ready = {}
        self.ended = False
        if ready:
            try:
                self.wait_ready()
            except BaseException:
                self.kill_everything()
                raise

    def _configure(self, section, values):
        if values:
            lines = "".join(f"{name} = {value}\n" for name, value in values.items())
            self.place.conf.write_text(f"{self.place.conf.read_text()}\n[{section}]\n{lines}")

    def wait_ready(self):
        """Reads the ready line. A serve that ends instead fails at once, with its log."""
        deadline = time.monotonic() + patience(READY_SECONDS)
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"coop serve is not ready: {line!r}\n{self.log_tail()}")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                code = self.process.wait(patience(LEAVE_SECONDS))
                raise AssertionError(f"coop serve ended with {code}: {line!r}\n{self.log_tail()}")
            line += piece
        self.ready = json.loads(line)
        return self.ready

    # What it said.

    @property
    def url(self):
        return self.ready["url"]

    @property
    def host(self):
        """What clients put into Host."""
        return self.url.partition("://")[2]

    @property
    def address(self):
        """(host, port), to connect to."""
        host, _, port = self.host.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def port(self):
        return self.address[1]

    @property
    def token(self):
        return Path(self.ready["token_file"]).read_text(encoding="ascii").strip()

    @property
    def keeper_pid(self):
        return self.ready["keeper_pid"]

    @property
    def pids(self):
        """The gateways that run now: those that it told of may have been replaced."""
        found = []
        for pid in procs.children(self.process.pid):
            if os.path.basename(procs.cmdline(pid).split(" ")[0]) == "coop-gateway" and procs.alive(pid):
                found.append(pid)
        return found

    @property
    def pid(self):
        return wait_until(lambda: self.pids, "a gateway runs")[0]

    # Talking to it.

    def headers(self, token=None, more=None):
        """The header that every request needs. `token` False: none at all."""
        given = {} if token is False else {"Authorization": f"Bearer {token or self.token}"}
        return given | (more or {})

    def connect(self, **options):
        return HttpConnection(self.address, self.host, **options)

    def request(self, method, target, body=None, token=None, headers=None, chunks=None):
        """One request on a connection of its own. A body that is no bytes is sent as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json"} | (headers or {})
        with self.connect() as connection:
            return connection.request(method, target, self.headers(token, headers), body, chunks)

    def websocket(self, target="/runtime/v1/process", token=None, headers=None, **options):
        return WebSocket(self.address, target, self.headers(token, headers), self.host, **options)

    def socket(self, target="/runtime/v1/process", token=None, headers=None, **options):
        """A socket of /runtime/v1, every frame of which is looked at."""
        return RuntimeSocket(self.address, target, self.headers(token, headers), self.host, **options)

    def keeper(self):
        """A connection of the operator to the keeper behind it."""
        client = Client(self.place.socket)
        self.clients.append(client)
        return client

    def agent_token(self, path, **settings):
        """A token of a new agent, such as `main/tester`, that may work where the others do."""
        settings.setdefault("workspace", [str(self.place.work.resolve())])
        with Client(self.place.socket) as client:
            client.call("agent_add", agent=path, **settings)
            return client.call("token_new", agent=path)["token"]

    # Its end.

    def kill_gateway(self):
        """SIGKILL to the gateway, not to serve; returns the pid of the one that takes its place."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        return wait_until(lambda: [new for new in self.pids if new != pid], "the gateway is started again")[0]

    def stop(self, sig=signal.SIGTERM):
        """Ends serve in order and checks that it left in order."""
        self.ended = True
        try:
            if self.process.poll() is None:
                self.process.send_signal(sig)
            code = self.process.wait(patience(LEAVE_SECONDS))
        except subprocess.TimeoutExpired:
            tail = self.log_tail()
            self.kill_everything()
            raise AssertionError(f"coop serve did not leave:\n{tail}") from None
        finally:
            self.process.stdout.close()
            for client in self.clients:
                client.close()
        if code != 0:
            raise AssertionError(f"coop serve left with {code}:\n{self.log_tail()}")

    def kill_everything(self):
        self.ended = True
        procs.kill_all([*procs.descendants(self.process.pid), self.process.pid])
        self.process.wait()
        self.process.stdout.close()

    def log_tail(self, size=6000):
        texts = [f"--- {path.name}\n" + path.read_bytes()[-size:].decode(errors="replace")
                 for path in (self.log, self.place.log) if path.exists() and path.stat().st_size]
        return "\n".join(texts)

    def faults(self):
        """Sanitizer reports, and deaths of a gateway that no test has asked for. A gateway can write nowhere but to serve's stderr."""
        text = self.log.read_bytes() if self.log.exists() else b""
        found = [self.place.faults()]
        if REPORT.search(text) or DEATH.search(text):
            found.append(self.log_tail(20000))
        return "\n".join(item for item in found if item)


class GatewayCase(unittest.TestCase):
    """One gateway for all tests of a class, or with `own` one for each test. The class sets what it is started with."""

    own = False
    options = ()
    settings = {}
    sandbox = {}
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        procs.become_subreaper()
        cls.shared = None
        if not cls.own:
            cls.shared = cls._start()

    @classmethod
    def _start(cls, **options):
        return Gateway(**({"options": cls.options, "settings": cls.settings, "sandbox": cls.sandbox} | options))

    @classmethod
    def tearDownClass(cls):
        if cls.shared:
            cls._end(cls.shared)
            procs.assert_no_descendants()

    @classmethod
    def _end(cls, gateway):
        try:
            if not gateway.ended:
                gateway.stop()
        finally:
            faults = gateway.faults()
            gateway.place.remove()
        if faults:
            raise AssertionError(f"sanitizer report\n{faults}")

    def setUp(self):
        self.gateway = self.shared
        if self.own:
            self.addCleanup(procs.assert_no_descendants)
            self.gateway = self.start_gateway()

    def start_gateway(self, **options):
        """One more gateway; it is stopped and looked over when the test ends."""
        gateway = self._start(**options)
        self.addCleanup(self._end, gateway)
        return gateway

    def failure_notes(self):
        """Shown with a failure by the worker."""
        gateway = getattr(self, "gateway", None)
        return gateway.log_tail() + gateway.faults() if gateway and gateway.place.dir.exists() else ""

    # Shorthand.

    @property
    def work(self):
        """The folder that commands start in, may see and may change."""
        return self.gateway.place.work

    def request(self, method, target, body=None, **options):
        return self.gateway.request(method, target, body, **options)

    def get(self, target, status=200, **options):
        """The JSON of a GET."""
        response = self.request("GET", target, **options)
        self.assertEqual(response.status, status, response.body)
        return response.json()

    def assert_refused(self, response, status, code=None):
        self.assertEqual(response.status, status, response.body)
        if code:
            self.assertEqual(response.error, code)
        else:
            self.assertTrue(response.error)

    def socket(self, target="/runtime/v1/process", **options):
        """A socket that the test's end drops."""
        found = self.gateway.socket(target, **options)
        self.addCleanup(found.drop)
        return found

    def start(self, cmd, *args, socket=None, **fields):
        """Starts a command; the socket has its `started`."""
        found = self.socket(**(socket or {}))
        found.start(cmd, list(args), **fields)
        return found

    def sh(self, script, **fields):
        return self.start("sh", "-c", script, **fields)

    def in_pieces(self, pieces):
        """A finished process whose every piece of output, without line ends, is an event of its own: each is asked for after the one
        before has come."""
        socket = self.sh('while IFS= read -r piece; do printf %s "$piece"; done', stdin=True)
        for piece in pieces:
            seen = len(socket.output())
            socket.stdin(piece + b"\n")
            while len(socket.output()) < seen + len(piece):
                socket.event()
        socket.send(type="close_stdin")
        socket.until_exit()
        return socket

    def attach(self, pid, since=None, **options):
        """Attaches; the socket has its `started`."""
        query = "" if since is None else f"?since={since}"
        found = self.socket(f"/runtime/v1/process/{pid}/connect{query}", **options)
        found.expect_started(since or 0)
        return found

    def status(self, pid):
        return self.get(f"/runtime/v1/process/{pid}")["process"]

    def kill(self, pid):
        """Ends a process with all that belongs to it."""
        response = self.request("DELETE", f"/runtime/v1/process/{pid}?signal=SIGKILL&kill_group=true")
        self.assertEqual(response.status, 200, response.body)
        return response.json()["process"]

    @contextlib.contextmanager
    def cleanup_kill(self, *pids):
        """What the block started is ended with it."""
        try:
            yield
        finally:
            for pid in pids:
                self.request("DELETE", f"/runtime/v1/process/{pid}?signal=SIGKILL&kill_group=true")

"""coop serve itself: where it listens, what it says, whom it starts, starts again and ends."""

import contextlib
import json
import os
import select
import signal
import socket
import ssl
import stat
import subprocess
import time
import unittest
from pathlib import Path

from lib import procs
from lib.cli import CliCase
from lib.client import Client, Closed
from lib.gateway import Gateway, GatewayCase
from lib.http_client import HttpConnection
from lib.keeper import Keeper
from lib.place import BUILD, COOP, Place, patience
from lib.procs import wait_until
from lib.tls import EC, certificate


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def healthy(gateway, address=None):
    """Whether a request is answered at this address of it, or at its first one."""
    address = address or gateway.address
    host = f"localhost:{address[1]}" if isinstance(address, tuple) else gateway.host if gateway.url else "localhost"
    with HttpConnection(address, host) as connection:
        return connection.request("GET", "/healthz", {}).status == 200


def answered(gateway, token=None):
    """The status of a request that needs token and keeper."""
    return gateway.request("POST", "/v1/ops/list", {}, token=token).status


class ReadyTest(GatewayCase):
    """What it says once it serves."""

    own = True

    def test_line_for_people(self):
        """Without --json: one line with the URL and the token's file, once the gateway answers."""
        self.gateway.stop()
        place = self.gateway.place
        process = subprocess.Popen([str(COOP), "serve", "--listen", "127.0.0.1:0", "--workspace", str(place.work)],
                                   env=place.env(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        try:
            self.assertTrue(select.select([process.stdout], [], [], patience(60))[0])
            line = os.read(process.stdout.fileno(), 4096).decode()
            token = place.state / "gateway.token"
            self.assertRegex(line, rf"^coop serves http://127\.0\.0\.1:\d+ \(token in {token}\)\n$")
            port = int(line.split()[2].rpartition(":")[2])
            self.assertTrue(healthy(None, ("127.0.0.1", port)))
        finally:
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(patience(30)), 0)

    def test_json_line(self):
        """With --json: one object, with the pids of all that runs."""
        ready = self.gateway.ready
        self.assertEqual(sorted(ready), ["confined", "gateway_pids", "keeper_pid", "pid", "token_file", "unix", "url", "urls"])
        self.assertEqual(ready["pid"], self.gateway.process.pid)
        self.assertEqual(ready["gateway_pids"], self.gateway.pids)
        self.assertEqual(ready["urls"], [ready["url"]])
        self.assertIsNone(ready["unix"])
        self.assertEqual(ready["keeper_pid"], self.gateway.keeper().hello["pid"])
        self.assertTrue(ready["confined"])

    def test_gateway_is_given_nothing(self):
        """Its environment has PATH and LANG alone, its folder is /, and it has no descriptor that it was not meant to get."""
        self.gateway.stop()
        gateway = self.start_gateway(env={"SECRET_OF_THE_USER": "x", "LANG": "C.UTF-8", "COOP_TOKEN": "nonsense"})
        names = {entry.decode().partition("=")[0] for entry in procs.environ(gateway.pid)}
        self.assertLessEqual(names, {"", "PATH", "LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS"})
        self.assertNotIn("SECRET", procs.cmdline(gateway.pid))
        self.assertEqual(os.readlink(f"/proc/{gateway.pid}/cwd"), "/")
        self.assertNotIn(str(gateway.place.dir), " ".join(
            os.readlink(f"/proc/{gateway.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{gateway.pid}/fd") if fd != "2"))


class TokenTest(GatewayCase):
    """The file with the token."""

    own = True

    def tokens(self, gateway):
        with Client(gateway.place.socket) as client:
            return [token for token in client.call("token_list")["tokens"] if token["label"] == "serve"]

    def again(self):
        """Another serve in the same place."""
        self.gateway.stop()
        return self.start_gateway(place=self.gateway.place)

    def test_only_the_user_reads_it(self):
        path = Path(self.gateway.ready["token_file"])
        self.assertEqual(path, self.gateway.place.state / "gateway.token")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_it_is_used_again(self):
        """As long as the keeper takes it."""
        token = self.gateway.token
        gateway = self.again()
        self.assertEqual(gateway.token, token)
        self.assertEqual(len(self.tokens(gateway)), 1)

    def test_a_revoked_one_is_replaced(self):
        token = self.gateway.token
        with Client(self.gateway.place.socket) as client:
            client.call("token_revoke", id=self.tokens(self.gateway)[0]["id"])
        gateway = self.again()
        self.assertNotEqual(gateway.token, token)
        self.assertEqual(answered(gateway), 200)

    def test_one_that_others_could_see_is_replaced_and_revoked(self):
        token = self.gateway.token
        Path(self.gateway.ready["token_file"]).chmod(0o644)
        gateway = self.again()
        self.assertNotEqual(gateway.token, token)
        self.assertEqual(stat.S_IMODE(Path(gateway.ready["token_file"]).stat().st_mode), 0o600)
        self.assertEqual(len(self.tokens(gateway)), 1)
        self.assertEqual(answered(gateway, token), 401)

    def test_one_of_another_agent_is_not_taken(self):
        """The file could have been changed: what clients act as is always main."""
        other = self.gateway.agent_token("main/tester")
        Path(self.gateway.ready["token_file"]).write_text(other + "\n", encoding="ascii")
        self.assertNotEqual(self.again().token, other)


class ListenTest(GatewayCase):
    own = True

    def test_several_addresses(self):
        """IPv4, IPv6 and localhost, each with a port of its own."""
        gateway = self.start_gateway(listen="localhost:0", options=["--listen", "[::1]:0"])
        first, second = gateway.ready["urls"]
        self.assertRegex(first, r"^http://127\.0\.0\.1:\d+$")
        self.assertRegex(second, r"^http://\[::1\]:\d+$")
        self.assertTrue(healthy(gateway))
        self.assertTrue(healthy(gateway, ("::1", int(second.rpartition(":")[2]))))

    def test_unix_socket(self):
        """For this user alone, beside TCP or instead of it, and gone at the end."""
        path = self.gateway.place.dir / "http.sock"
        gateway = self.start_gateway(listen=None, options=["--unix", str(path)])
        self.assertEqual(gateway.ready["unix"], str(path))
        self.assertEqual(gateway.ready["urls"], [])
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertTrue(healthy(gateway, str(path)))
        gateway.stop()
        self.assertFalse(path.exists())

    def test_unix_socket_left_behind(self):
        """One that nobody answers on is replaced; one that somebody serves on, or no socket at all, is not."""
        path = self.gateway.place.dir / "http.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        gateway = self.start_gateway(options=["--unix", str(path)])
        self.assertTrue(healthy(gateway, str(path)))
        self.assertIn("serves there already", self.refusal(gateway, "--unix", str(path)))
        self.assertTrue(healthy(gateway, str(path)))
        plain = self.gateway.place.dir / "plain"
        plain.write_text("x", encoding="ascii")
        self.assertIn("no socket", self.refusal(gateway, "--unix", str(plain)))
        self.assertEqual(plain.read_text(encoding="ascii"), "x")

    def refusal(self, gateway, *options):
        done = subprocess.run([str(COOP), "serve", *options], env=gateway.place.env(), capture_output=True, text=True,
                              timeout=patience(60), check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        return done.stderr

    def test_port_in_use(self):
        text = self.refusal(self.gateway, "--listen", f"127.0.0.1:{self.gateway.port}")
        self.assertIn("--listen", text)
        self.assertIn("in use", text)

    def test_sockets_of_systemd(self):
        """Those of LISTEN_FDS come instead of --listen, if they are meant for this process; its children do not see the variables."""
        place = self.start_gateway().place
        with socket.create_server(("127.0.0.1", 0)) as listener:
            script = f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&{listener.fileno()}'
            argv = [str(COOP), "serve", "--json", "--listen", "127.0.0.1:0", "--workspace", str(place.work)]
            process = subprocess.Popen(["bash", "-c", script, "bash", *argv], env=place.env(), stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, pass_fds=[listener.fileno()])
            self.addCleanup(process.stdout.close)
            try:
                ready = json.loads(process.stdout.readline())
                port = listener.getsockname()[1]
                self.assertEqual(ready["urls"], [f"http://127.0.0.1:{port}"])
                listener.close()
                self.assertTrue(healthy(None, ("127.0.0.1", port)))
            finally:
                process.terminate()
                self.assertEqual(process.wait(patience(30)), 0)

    def test_sockets_of_somebody_else(self):
        """LISTEN_FDS of another process says nothing."""
        gateway = self.start_gateway(env={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
        self.assertTrue(healthy(gateway))


class RefusalTest(CliCase):
    """Command lines that it does not serve with: one line that names the option, and nothing is started."""

    def test_refusals(self):
        bad = [
            (("--listen", "0.0.0.0:0"), 1, "--insecure-listen"),
            (("--listen", "[::]:0"), 1, "--insecure-listen"),
            (("--listen", "192.0.2.1:0"), 1, "--tls-cert"),
            (("--listen", "nonsense"), 2, "--listen nonsense"),
            (("--listen", "example.org:80"), 2, "--listen example.org:80"),
            (("--listen", "127.0.0.1:65536"), 2, "--listen"),
            (("--listen", "::1:80"), 2, "--listen"),
            (("--tls-cert", "x.pem"), 2, "--tls-key"),
            (("--tls-key", "x.pem"), 2, "--tls-cert"),
            (("--tls-cert", "missing.pem", "--tls-key", "x"), 1, "--tls-cert missing.pem"),
            (("--workers", "0"), 2, "--workers"),
            (("--workers", "17"), 2, "--workers"),
            (("--workspace", "missing"), 1, "--workspace missing"),
            (("--workspace", ".", "--no-workspace"), 2, "--no-workspace"),
            (("--unix", "missing/x"), 1, "--unix"),
            (("--unix", "x" * 120), 1, "--unix"),
            (("--name", "http://x"), 2, "--name"),
            (("--origin", "x"), 2, "--origin"),
            (("--token-file", "x"), 2, "--token-file"),
            (("more",), 2, "usage"),
        ]
        for options, code, words in bad:
            with self.subTest(options=options):
                self.assertIn(words, self.refusal("serve", *options, code=code))
        self.assertFalse(self.place.socket.exists())

    def test_refusal_as_json(self):
        out, _ = self.coop("serve", "--json", "--listen", "0.0.0.0:0", code=1)
        self.assertEqual(json.loads(out)["error"]["code"], "invalid_input")

    def test_what_the_keeper_does_not_know(self):
        """A profile that there is none of is told at the start, not with the first process."""
        _, err = self.coop("serve", "--listen", "127.0.0.1:0", "--profile", "nonsense", code=1)
        self.assertIn(b"--profile", err.splitlines()[-1])
        self.assertFalse(self.place.socket.exists())

    def test_listening_for_others_in_the_clear(self):
        """--insecure-listen allows it."""
        gateway = Gateway(place=self.place, listen="0.0.0.0:0", options=["--insecure-listen"])
        try:
            self.assertTrue(healthy(gateway, ("127.0.0.1", gateway.port)))
            self.assertEqual(gateway.ready["url"], f"http://127.0.0.1:{gateway.port}", "what it says can be used")
        finally:
            gateway.stop()


class LifeTest(GatewayCase):
    """Who is started again, and who ends with whom."""

    own = True

    def test_gateway_is_started_again(self):
        """After SIGKILL, with the same address and the same token; a client that connects meanwhile is not refused."""
        before = self.gateway.pid
        os.kill(before, signal.SIGKILL)
        self.assertTrue(healthy(self.gateway))
        after = self.gateway.pid
        self.assertNotEqual(after, before)
        self.assertEqual(answered(self.gateway), 200)

    def test_many_deaths_in_a_row(self):
        """It is started again however often it dies, and nobody is refused."""
        for _ in range(5):
            self.gateway.kill_gateway()
            self.assertTrue(healthy(self.gateway))

    def test_gateway_that_stands_still(self):
        """One that was stopped (SIGSTOP) and does not go on is ended, and another serves; log and metrics tell of it."""
        before = self.gateway.pid
        os.kill(before, signal.SIGSTOP)
        wait_until(lambda: not procs.alive(before), "it is ended", timeout=60)
        self.assertTrue(healthy(self.gateway))
        self.assertNotEqual(self.gateway.pid, before)
        self.assertIn(f"a gateway stands still since 10 s: it is ended pid={before}", self.gateway.log_tail())
        self.assertIn(b"coop_gateway_restarts_total 1\n", self.gateway.request("GET", "/metrics").body)

    def test_gateway_that_goes_on_again(self):
        """One that was stopped for a while stays, however long ago its first stop was."""
        pid = self.gateway.pid
        with subprocess.Popen(["sleep", "13"]) as clock:
            # It is stopped all the time but for moments; a stop is given up after 10 s.
            while clock.poll() is None:
                os.kill(pid, signal.SIGSTOP)
                wait_until(lambda: procs.stat(pid)[0] == "T", "it stands")
                time.sleep(1)
                os.kill(pid, signal.SIGCONT)
                wait_until(lambda: procs.stat(pid)[0] != "T", "it goes on")
                self.assertTrue(healthy(self.gateway))
        self.assertEqual(self.gateway.pids, [pid])
        self.assertNotIn("stands still", self.gateway.log_tail())

    def test_processes_outlive_the_gateway(self):
        with Client(self.gateway.place.socket) as client:
            process = client.call("spawn", argv=["sleep", "300"])["process"]["id"]
            self.gateway.kill_gateway()
            self.assertEqual(client.call("status", id=process)["process"]["state"], "running")

    def served_by(self, keeper):
        """Whether requests get through to another keeper than this one."""
        with contextlib.suppress(OSError, Closed):
            with Client(self.gateway.place.socket) as client:
                return client.hello["pid"] != keeper and answered(self.gateway) == 200

    def test_keeper_is_started_again(self):
        """After SIGKILL; the token is still good."""
        keeper = self.gateway.keeper_pid
        token, pid = self.gateway.token, self.gateway.pid
        os.kill(keeper, signal.SIGKILL)
        wait_until(lambda: self.served_by(keeper), "there is a keeper again")
        self.assertEqual(self.gateway.token, token)
        self.assertEqual(self.gateway.pid, pid)

    def test_keeper_that_was_shut_down(self):
        """The same if somebody ends it in order."""
        keeper = self.gateway.keeper_pid
        with contextlib.suppress(Closed), Client(self.gateway.place.socket) as client:
            client.call("shutdown", grace_ms=0)
        wait_until(lambda: self.served_by(keeper), "there is a keeper again")

    def test_everything_that_it_started_ends(self):
        """TERM: gateway, keeper and what the keeper kept are gone when it is; nothing is left in /run but locks."""
        place, keeper, pid = self.gateway.place, self.gateway.keeper_pid, self.gateway.pid
        with Client(place.socket) as client:
            client.call("spawn", argv=["sleep", "300"])
        below = procs.descendants(self.gateway.process.pid)
        self.assertIn(keeper, below)
        self.assertIn(pid, below)
        self.gateway.stop()
        self.assertEqual([pid for pid in below if procs.alive(pid)], [])
        self.assertFalse(place.socket.exists())

    def test_everything_ends_also_if_it_is_killed(self):
        """SIGKILL to serve leaves neither gateway nor keeper behind."""
        below = procs.descendants(self.gateway.process.pid)
        self.gateway.process.kill()
        self.gateway.process.wait()
        wait_until(lambda: not [pid for pid in below if procs.alive(pid)], "all have ended")
        self.gateway.process.stdout.close()
        self.gateway.ended = True

    def test_gateways_of_several_processes(self):
        """--workers: so many, and any of them may die."""
        gateway = self.start_gateway(options=["--workers", "3"])
        self.assertEqual(sorted(gateway.pids), sorted(gateway.ready["gateway_pids"]))
        self.assertEqual(len(gateway.pids), 3)
        for pid in gateway.pids:
            os.kill(pid, signal.SIGKILL)
        self.assertTrue(healthy(gateway))
        wait_until(lambda: len(gateway.pids) == 3, "all three are back")

    def test_one_serve_does_not_disturb_another(self):
        """A second one uses the keeper of the first, and leaves it there."""
        second = self.start_gateway(place=self.second_place())
        self.assertEqual(second.keeper_pid, self.gateway.keeper_pid)
        self.assertEqual(second.token, self.gateway.token)
        second.stop()
        self.assertTrue(procs.alive(self.gateway.keeper_pid))
        self.assertEqual(answered(self.gateway), 200)

    def second_place(self):
        """The same keeper, a folder and a log of its own."""
        place = Place()
        place.socket, place.state, place.conf = self.gateway.place.socket, self.gateway.place.state, self.gateway.place.conf
        return place


class OrphanTest(unittest.TestCase):
    def test_gateway_whose_parent_has_left_already(self):
        """Before it was ready: it just ends."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.close()
        with theirs, socket.create_server(("127.0.0.1", 0)) as listener:
            argv = [BUILD / "bin" / "coop-gateway", "--broker", str(theirs.fileno()), "--listen", str(listener.fileno())]
            done = subprocess.run(argv, pass_fds=[theirs.fileno(), listener.fileno()], capture_output=True, text=True, check=False,
                                  timeout=patience(30))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class FoundKeeperTest(GatewayCase):
    """A keeper that was there."""

    own = True

    def test_it_stays(self):
        """It is used, is not ended with serve, and what it keeps goes on."""
        place = Place()
        keeper = Keeper(place=place)
        try:
            client = keeper.wait_ready()
            process = client.call("spawn", argv=["sleep", "300"])["process"]["id"]
            gateway = Gateway(place=place)
            try:
                self.assertEqual(gateway.keeper_pid, keeper.pid)
                self.assertEqual(answered(gateway), 200)
            finally:
                gateway.stop()
            self.assertEqual(client.call("status", id=process)["process"]["state"], "running")
        finally:
            keeper.stop()
            place.remove()

    def test_one_that_was_started_on_demand_does_not_leave(self):
        """It leaves when it is idle for a moment; while serve runs it is not."""
        place = Place()
        env = place.env({"COOP_SET": "idle_exit_ms=100"})
        subprocess.run([str(COOP), "run", "--", "true"], env=env, cwd=place.work, check=True, timeout=patience(60))
        gateway = self.start_gateway(place=place)
        self.addCleanup(subprocess.run, [str(COOP), "shutdown"], env=env, check=False, capture_output=True)
        found = gateway.keeper_pid
        subprocess.run(["sleep", "1"], check=True)
        self.assertEqual(answered(gateway), 200)
        with Client(place.socket) as client:
            self.assertEqual(client.hello["pid"], found)
            for process in client.call("list", include_finished=True)["processes"]:
                client.call("release", id=process["id"])
        gateway.stop()
        wait_until(lambda: not procs.alive(found), "it leaves when serve has gone")


class TlsTest(GatewayCase):
    own = True

    def certificate(self, kind=EC):
        return certificate(self.gateway.place.dir, kind)

    def secure(self, gateway, cert):
        context = ssl.create_default_context(cafile=str(cert))
        plain = socket.create_connection(gateway.address, timeout=patience(30))
        return HttpConnection(context.wrap_socket(plain, server_hostname="localhost"), f"localhost:{gateway.port}")

    def test_requests_over_tls(self):
        """With a certificate that the client checks; also after the gateway was started again: the files are not needed then."""
        cert, key = self.certificate()
        gateway = self.start_gateway(options=["--tls-cert", str(cert), "--tls-key", str(key), "--workers", "2"])
        self.assertTrue(gateway.url.startswith("https://127.0.0.1:"), gateway.url)
        self.assertNotIn(key.read_text(encoding="ascii").splitlines()[1], procs.cmdline(gateway.pid))
        key.unlink()
        for _ in range(2):
            with self.secure(gateway, cert) as connection:
                self.assertEqual(connection.request("GET", "/healthz", {}).status, 200)
            for pid in gateway.pids:
                os.kill(pid, signal.SIGKILL)

    def handshake(self, gateway, cert, **options):
        """(version, suite) that the two agree on; None where the gateway refuses."""
        context = ssl.create_default_context(cafile=str(cert))
        if version := options.get("version"):
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = version
        context.set_ciphers(options.get("ciphers", "ALL:@SECLEVEL=0"))
        with socket.create_connection(gateway.address, timeout=patience(30)) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="localhost") as secure:
                    return secure.version(), secure.cipher()[0]
            except (ssl.SSLError, ConnectionResetError):
                return None

    def test_only_with_forward_secrecy(self):
        """TLS 1.3, and 1.2 with ECDHE and authenticated encryption; keys of RSA and of elliptic curves alike."""
        for kind in (["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], ["rsa:2048"]):
            cert, key = self.certificate(kind)
            gateway = self.start_gateway(options=["--tls-cert", str(cert), "--tls-key", str(key)])
            sign = "ECDSA" if kind[0] == "ec" else "RSA"
            self.assertEqual(self.handshake(gateway, cert)[0], "TLSv1.3")
            version = ssl.TLSVersion.TLSv1_2
            for suite in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"):
                name = f"ECDHE-{sign}-{suite}"
                with self.subTest(taken=name):
                    self.assertEqual(self.handshake(gateway, cert, version=version, ciphers=f"{name}:@SECLEVEL=0"), ("TLSv1.2", name))
            for suites in ("kRSA", "AES128-GCM-SHA256:AES256-GCM-SHA384", "AES128-SHA:AES256-SHA256", "DHE+AESGCM", "SHA1:SHA256:SHA384",
                           f"ECDHE-{sign}-AES128-SHA:ECDHE-{sign}-AES256-SHA384:ECDHE-{sign}-AES128-SHA256"):
                with self.subTest(refused=suites):
                    self.assertIsNone(self.handshake(gateway, cert, version=version, ciphers=f"{suites}:@SECLEVEL=0"))
            for old in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
                with self.subTest(refused=old):
                    self.assertIsNone(self.handshake(gateway, cert, version=old))
            self.assert_openssl(gateway, sign)
            gateway.stop()

    def assert_openssl(self, gateway, sign):
        """The same with another client; and no compression, no renegotiation."""

        def connect(*options, text="Q\n"):
            done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{gateway.port}", *options], input=text,
                                  capture_output=True, text=True, timeout=patience(60), check=False)
            return done.stdout + done.stderr

        taken = connect("-tls1_2")
        self.assertRegex(taken, rf"Cipher is ECDHE-{sign}-(AES\d+-GCM|CHACHA20)")
        self.assertIn("Compression: NONE", taken)
        for options in (["-tls1_2", "-cipher", "kRSA:@SECLEVEL=0"], ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
                        ["-tls1_2", "-cipher", "ECDHE+SHA:@SECLEVEL=0"]):
            with self.subTest(options=options):
                self.assertIn("Cipher is (NONE)", connect(*options))
        self.assertIn("no renegotiation", connect("-tls1_2", text="R\nQ\n").lower())

    def test_key_of_another_certificate(self):
        """It does not begin to serve."""
        cert, _ = self.certificate()
        first = cert.read_bytes()
        cert, key = self.certificate()
        cert.write_bytes(first)
        done = subprocess.run([str(COOP), "serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key],
                              env=self.gateway.place.env(), capture_output=True, text=True, timeout=patience(60), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertIn("coop: the gateway could not start", done.stderr)
        self.assertIn("the key does not belong to the certificate", done.stderr)

    def test_other_machines_may_reach_tls(self):
        cert, key = self.certificate()
        gateway = self.start_gateway(listen="0.0.0.0:0", options=["--tls-cert", str(cert), "--tls-key", str(key)])
        self.assertTrue(gateway.url.startswith("https://127.0.0.1:"))


class WorkspaceTest(GatewayCase):
    """What processes of main may change."""

    own = True

    def plan(self, gateway):
        """The options that the gateway was started with, by name."""
        words = Path(f"/proc/{gateway.pid}/cmdline").read_bytes().decode().split("\0")
        return dict(zip(words, words[1:]))

    def test_it_is_the_folder_that_was_named(self):
        self.assertEqual(self.plan(self.gateway)["--workspace"], str(self.work.resolve()))

    def test_none(self):
        self.assertNotIn("--workspace", self.plan(self.start_gateway(options=["--no-workspace"])))

    def test_profile(self):
        self.assertEqual(self.plan(self.start_gateway(options=["--profile", "read-only"]))["--profile"], "read-only")

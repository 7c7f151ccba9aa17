"""Who shows no token at the gateway's port: whatever he sends and however often he comes, those who have one are served, over TLS as without."""

import contextlib
import os
import resource
import socket
import ssl
import subprocess
from unittest import mock

from lib.gateway import GatewayCase
from lib.http_client import HttpConnection
from lib.keeper import plain_limits
from lib.place import Place, patience
from lib.procs import wait_until
from lib.raw_http import request
from lib.raw_http_case import RawCase
from lib.tls import certificate, client_hello, secured

FILES = 400  # that the gateway may have open


def few_files():
    """In the child that becomes `coop serve`."""
    plain_limits()
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


class CrowdTest(RawCase):
    """More strangers than there is room for."""

    own = True

    def setUp(self):
        with mock.patch("lib.gateway.plain_limits", few_files):
            super().setUp()

    def crowd(self, *sent):
        """Twice as many as have room, each of which says the same and stays."""
        held = []
        for _ in range(2 * FILES):
            one = socket.create_connection(self.address, timeout=patience(30))
            self.addCleanup(one.close)
            held.append(one)
            with contextlib.suppress(OSError):
                one.sendall(b"".join(sent))
        return held

    def assert_owner_served(self):
        """On new connections."""
        for _ in range(10):
            self.assertEqual(self.ask("POST", "/v1/ops/list", self.auth, body=b"{}").status, 200)

    def test_whatever_they_say_or_do_not(self):
        early = self.raw()
        early.send(self.head("GET", "/runtime/v1/process", self.auth))
        self.assertEqual(early.answer().status, 200)
        for sent in (b"", b"GET /healthz HTTP/1.1\r\nHost: ", self.head("GET", "/healthz"), self.head("GET", "/runtime/v1/process"),
                     self.head("POST", "/v1/ops/list", "Content-Length: 100000")):  # fmt: skip
            with self.subTest(sent=sent[:40]):
                held = self.crowd(sent)
                self.assert_owner_served()
                early.send(self.head("GET", "/runtime/v1/process", self.auth))
                self.assertEqual(early.answer().status, 200)
                for one in held:
                    one.close()
        wait_until(lambda: len(os.listdir(f"/proc/{self.pid}/fd")) < 100, "all are let go", interval=0.1)

    def test_tokens_do_not_go_for_strangers(self):
        """Idle connections with a token stay, however many come without."""
        kept = [self.raw() for _ in range(50)]
        for one in kept:
            one.send(self.head("GET", "/runtime/v1/process", self.auth))
            self.assertEqual(one.answer().status, 200)
        self.crowd()
        self.assert_owner_served()
        for one in kept:
            one.send(self.head("GET", "/runtime/v1/process", self.auth))
            self.assertEqual(one.answer().status, 200)


class TlsCase(GatewayCase):
    """A gateway with a certificate for each class."""

    own = True
    few = False

    @classmethod
    def _start(cls, **options):
        place = Place()
        cls.cert, key = certificate(place.dir)
        with mock.patch("lib.gateway.plain_limits", few_files if cls.few else plain_limits):
            return super()._start(place=place, options=["--tls-cert", str(cls.cert), "--tls-key", str(key)], **options)

    def assert_owner_served(self):
        with HttpConnection(secured(self.gateway.address, self.cert), self.gateway.host) as connection:
            self.assertEqual(connection.request("GET", "/runtime/v1/process", self.gateway.headers()).status, 200)

    def send(self, *parts):
        one = socket.create_connection(self.gateway.address, timeout=patience(60))
        self.addCleanup(one.close)
        with contextlib.suppress(OSError):
            one.sendall(b"".join(parts))
        return one

    def said(self, one):
        """All that comes until the gateway ends it."""
        found = b""
        with contextlib.suppress(ConnectionError):
            while piece := one.recv(65536):
                found += piece
        return found


class TlsCrowdTest(TlsCase):
    few = True

    def test_half_a_handshake(self):
        """Those who begin one and stay, or have one behind them and say nothing."""
        for sent in (b"", b"\x16\x03\x01", client_hello()):
            with self.subTest(sent=sent[:8]):
                held = [self.send(sent) for _ in range(2 * FILES)]
                for _ in range(5):
                    self.assert_owner_served()
                for one in held:
                    one.close()
        held = []
        for _ in range(FILES):
            with contextlib.suppress(OSError):
                held.append(secured(self.gateway.address, self.cert))
        for _ in range(5):
            self.assert_owner_served()
        for one in held:
            one.close()


class TlsTest(TlsCase):
    def test_what_is_no_handshake(self):
        """It gets no answer but an alert, and nothing of HTTP."""
        pid = self.gateway.pid
        for sent in (
            request("GET", "/healthz", f"Host: {self.gateway.host}"), b"\x16\x03\x01\xff\xff" + b"A" * 70000,
            b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc" + bytes(0x3FFC), b"\x80\x2e\x01\x00\x02" + b"x" * 60, b"\x15\x03\x03\x00\x02\x01\x00" * 2000,
            b"\x14\x03\x03\x00\x01\x01" * 2000, b"\x17\x03\x03\x00\x00" * 5000, b"\x16\x03\x01\x00\x00" * 5000,
        ):  # fmt: skip
            with self.subTest(sent=sent[:10]):
                found = self.said(self.send(sent))
                self.assertIn(found[:1], (b"", b"\x15"), found[:100])
                self.assertNotIn(b"HTTP", found)
        self.assert_owner_served()
        self.assertEqual(self.gateway.pids, [pid])

    def test_names_and_protocols_without_end(self):
        """Any name and any protocol may be asked for; what is served is the same, and no protocol is agreed on that is not spoken."""
        pid = self.gateway.pid
        for options in (["-servername", "a" * 250], ["-servername", "evil.example"], ["-servername", "../../etc"], ["-alpn", "h2"],
                        ["-alpn", ",".join(f"p{n}" for n in range(2000))]):  # fmt: skip
            with self.subTest(options=[option[:40] for option in options]):
                self.assertIn("No ALPN negotiated", self.openssl(*options))
        self.assert_owner_served()
        self.assertEqual(self.gateway.pids, [pid])

    def test_a_session_is_not_taken_up_again(self):
        """A ticket of TLS 1.2 carries the secret of its session, under a key that lives as long as the gateway: whoever gets that one reads
        all that was recorded. So there are none, nor data before the handshake is over."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.subTest(version=version), secured(self.gateway.address, self.cert, version) as one:
                one.sendall(request("GET", "/healthz", f"Host: {self.gateway.host}"))
                self.assertIn(b" 200 ", one.recv(4096))
                self.assertFalse(one.session.has_ticket)
        for version in ("-tls1_2", "-tls1_3"):
            with self.subTest(version=version):
                said = self.openssl(version, text=f"GET /healthz HTTP/1.1\r\nHost: {self.gateway.host}\r\nConnection: close\r\n\r\n", more=("-ign_eof",))
                self.assertIn("200 OK", said)
                self.assertNotIn("session ticket", said.lower())

    def openssl(self, *options, text="Q\n", more=()):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{self.gateway.port}", *options, *more], input=text,
                              capture_output=True, text=True, timeout=patience(60), check=False)  # fmt: skip
        return done.stdout + done.stderr

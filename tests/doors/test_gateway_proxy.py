"""The gateway behind a proxy: which names it is called by, whose word it takes for that, and how silent sockets stay."""

import base64
import subprocess

from lib.control import ControlCase
from lib.gateway import GatewayCase
from lib.http_client import HttpConnection
from lib.place import COOP, patience
from lib.raw_http import CLOSE, PING, TEXT, close_frame, text_frame
from lib.raw_http_case import START, RawCase
from lib.reverse_proxy import ReverseProxy
from lib.sdk_node import NODE, Node, NodeSandbox
from lib.sdk_python import Sandbox
from lib.websocket import Closed, WebSocket

PUBLIC = "https://coop.example.org"
PROCESS = "/runtime/v1/process"
BOTH = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "coop.example.org"}


class ProxyCase(ControlCase):
    def given(self, headers=None):
        """The URL that a new sandbox is told to be reached by."""
        response = self.request("POST", "/v1/sandboxes", {}, headers=headers)
        self.assertEqual(response.status, 201, response.body)
        self.remove(response.json()["sandbox"])
        return response.json()["session"]["data_plane_url"]

    def status(self, headers, **options):
        return self.request("GET", PROCESS, headers=headers, **options).status


class PublicUrlTest(ProxyCase):
    options = ("--control-plane", "--public-url", f"{PUBLIC}/")

    def test_it_is_what_sandboxes_are_reached_by(self):
        self.assertEqual(self.given(), PUBLIC)
        self.assertEqual(self.given({"Host": "coop.example.org"}), PUBLIC)
        self.assertEqual(self.given({"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http"}), PUBLIC)
        sandbox, _ = self.create()
        resumed = self.request("POST", f"/v1/sandboxes/{sandbox['id']}/resume", {}).json()
        self.assertEqual(resumed["session"]["data_plane_url"], PUBLIC)
        self.remove(sandbox)

    def test_its_name_is_one_of_ours(self):
        """For Host and, with its scheme, for Origin; other names are what they were."""
        for host in ("coop.example.org", "COOP.example.org:443", "coop.example.org:9", "coop.example.org:90", "coop.example.org:65535", f"127.0.0.1:{self.gateway.port}"):
            self.assertEqual(self.status({"Host": host}), 200, host)
            self.assertEqual(self.status({"Host": host, "Origin": PUBLIC}), 200, host)
        for headers in ({"Host": "example.org"}, {"Host": "coop.example.org.evil.example"}, {"Host": "xcoop.example.org"},
                        {"Origin": "https://evil.example"}, {"Origin": "https://coop.example.org.evil.example"}):
            self.assertEqual(self.status(headers), 403, headers)
        socket = self.socket(headers={"Host": "coop.example.org", "Origin": PUBLIC})
        socket.start("true")
        self.assertEqual(socket.until_exit()["exit_code"], 0)


class UntrustedTest(ProxyCase):
    """Nobody is trusted here but a network that nobody comes from."""

    options = ("--control-plane", "--trust-proxy", "192.0.2.0/24", "--trust-proxy", "2001:db8::7")

    def test_words_of_others_are_not_even_looked_at(self):
        for headers in (BOTH, {"Forwarded": 'for=1.2.3.4;proto=https;host="coop.example.org"'}, {"X-Forwarded-Host": "not a host"},
                        {"X-Forwarded-Proto": "gopher"}, {"Forwarded": "=;;\"", **BOTH}, {"X-Forwarded-For": "192.0.2.1", **BOTH}):
            self.assertEqual(self.given(headers), self.gateway.url, headers)
        self.assertEqual(self.status({"Origin": PUBLIC, **BOTH}), 403)

    def test_a_client_cannot_say_that_it_is_another(self):
        """Its wrong tokens are counted by where it comes from, whatever it says."""
        seen = {self.request("GET", PROCESS, token="coop_77_x", headers={"X-Forwarded-For": f"198.51.100.{n}"}).status for n in range(60)}
        self.assertEqual(seen, {401, 429})


class TrustTest(ProxyCase):
    options = ("--control-plane", "--trust-proxy", "127.0.0.0/8", "--trust-proxy", "10.1.2.3", "--trust-proxy", "2001:db8::7")

    def test_what_the_proxy_says_is_the_url(self):
        for headers, url in (
            (BOTH, PUBLIC),
            ({}, self.gateway.url),
            ({"X-Forwarded-For": "1.2.3.4"}, self.gateway.url),
            ({"X-Forwarded-Proto": "HTTPS"}, f"https://{self.gateway.host}"),
            ({"X-Forwarded-Host": "coop.example.org:8443"}, "http://coop.example.org:8443"),
            ({"X-Forwarded-Proto": "wss", "X-Forwarded-Host": "[2001:db8::1]:8443"}, "https://[2001:db8::1]:8443"),
            ({"X-Forwarded-Proto": "http,https", "X-Forwarded-Host": "evil.example, coop.example.org"}, PUBLIC),
            ({"Forwarded": "proto=https;host=coop.example.org"}, PUBLIC),
            ({"Forwarded": 'For="[2001:db8::1]:4711" ; PROTO=https; host="coop.example.org:443";by=_x'}, f"{PUBLIC}:443"),
            ({"Forwarded": "for=8.8.8.8;host=evil.example, for=1.2.3.4;proto=https;host=coop.example.org"}, PUBLIC),
            ({"Forwarded": "for=9.9.9.9;proto=https;host=coop.example.org, for=10.1.2.3;proto=http;host=inner"}, PUBLIC),
            ({"Forwarded": "for=unknown;proto=https;host=coop.example.org"}, PUBLIC),
            # The chain goes on as far as it is trusted.
            ({"X-Forwarded-For": "6.6.6.6, 9.9.9.9, 10.1.2.3", "X-Forwarded-Proto": "http, https, http",
              "X-Forwarded-Host": "evil.example, coop.example.org, inner"}, PUBLIC),
            ({"Forwarded": 'for=9.9.9.9;proto=https;host=coop.example.org, for="[2001:db8::7]:80";proto=http;host=inner'}, PUBLIC),
            ({"X-Forwarded-For": "9.9.9.9, [2001:db8::7]", "X-Forwarded-Host": "coop.example.org, inner", "X-Forwarded-Proto": "https, http"}, PUBLIC),
            ({"X-Forwarded-For": "9.9.9.9, 10.1.2.3", **BOTH}, PUBLIC),
            ({"X-Forwarded-For": '"quoted, 1.2.3.4:80', **BOTH}, PUBLIC),
        ):
            with self.subTest(headers=headers):
                self.assertEqual(self.given(headers), url)

    def test_what_is_no_scheme_and_no_host_is_refused_by_name(self):
        for name, values in (
            ("X-Forwarded-Proto", ("gopher", "https://", "httpss", "http s", "'https'")),
            ("X-Forwarded-Host", ("a/b", "a b", "user@host", "a:", "a:0", "a:65536", "a:x", "[::1", "[1.2.3.4]", "::1", "a..b", ".a", "a" * 64, "é", "a?x",
                                  "x.example\\", "%41", ("a" * 60 + ".") * 5, "a\tb", "<script>", "a;b", '"a"')),
            ("Forwarded", ("proto", "proto=", "=x", "proto=gopher", "host=a/b", "for=1.2.3.4;for=1.2.3.5", "proto=http;proto=https", 'host="a', 'host=a"b',
                           'host="a\\', "host=a b", 'host="a";host=b', "x", "proto=https, host")),
        ):
            for value in values:
                with self.subTest(name=name, value=value):
                    response = self.request("POST", "/v1/sandboxes", {}, headers={name: value})
                    self.assert_refused(response, 400, "invalid_argument")
                    self.assertIn(name, response.json()["message"])
        self.assert_refused(self.request("GET", PROCESS, headers={"Forwarded": "proto=https", "X-Forwarded-For": "1.2.3.4"}), 400, "invalid_argument")
        self.assertEqual(self.ids(), [])

    def test_the_origin_of_the_public_name_is_ours(self):
        self.assertEqual(self.status({"Origin": PUBLIC, **BOTH}), 200)
        for headers in ({"Origin": PUBLIC}, {**BOTH, "Origin": "http://coop.example.org"}, {**BOTH, "Origin": "https://evil.example"},
                        {**BOTH, "Origin": "https://coop.example.org.evil.example"}, {**BOTH, "Origin": f"{PUBLIC}:444"}):
            self.assertEqual(self.status(headers), 403, headers)

    def test_the_host_is_still_one_of_ours(self):
        self.assertEqual(self.status({"Host": "evil.example", **BOTH}), 403)

    def test_wrong_tokens_are_counted_by_the_client_behind_the_proxy(self):
        """Who guesses is slowed down, also if it adds addresses of its own to the list; its neighbours at the same proxy are not."""
        guess = [self.request("GET", PROCESS, token="coop_88_x", headers={"X-Forwarded-For": f"203.0.113.{n}, 198.51.100.9"}).status for n in range(60)]
        self.assertEqual(set(guess), {401, 429})
        for n in range(1, 6):
            headers = {"X-Forwarded-For": f"198.51.100.9, 198.51.100.{100 + n}"}
            self.assertEqual(self.request("GET", PROCESS, token="coop_88_x", headers=headers).status, 401)


class UnixTest(GatewayCase):
    def test_who_comes_over_a_unix_socket_can_be_trusted(self):
        for trust, url in (((), None), (("--trust-proxy", "unix"), PUBLIC)):
            place = self.shared.place
            path = str(place.dir / f"serve-{len(trust)}.sock")
            gateway = self.start_gateway(options=("--control-plane", "--unix", path, *trust))
            with HttpConnection(path, "localhost") as connection:
                response = connection.request("POST", "/v1/sandboxes", gateway.headers(more={"Content-Type": "application/json", **BOTH}), b"{}")
            self.assertEqual(response.json()["session"]["data_plane_url"], url or gateway.url)


class ThroughTest(ProxyCase):
    """Create, run and files through a proxy that cuts what is silent, by the URL that it is told."""

    own = True
    SILENT = 'echo begin; sleep 4; echo end'

    def through(self, ping, idle, headers):
        proxy = ReverseProxy(idle=idle)
        self.addCleanup(proxy.close)
        proxy.headers = headers(proxy)
        gateway = self.start_gateway(options=("--control-plane", "--trust-proxy", "127.0.0.1", "--ping-interval", ping))
        proxy.target = gateway.address
        return gateway, proxy

    def test_sdks_stay_through_it(self):
        gateway, proxy = self.through("200ms", 2 * patience(1), lambda proxy: {
            "Host": None, "X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "http", "X-Forwarded-Host": proxy.host})
        proxy.headers["Host"] = gateway.host
        sandbox = Sandbox.create(f"{proxy.url}/v1", gateway.token)
        self.assertEqual(sandbox.commands.run(self.SILENT)["stdout"], "begin\nend\n")
        sandbox.files.write("a/b.txt", b"text")
        self.assertEqual(sandbox.files.read("a/b.txt"), b"text")
        sandbox.kill()
        self.assertTrue(NODE, "node is not installed")
        node = Node()
        self.addCleanup(node.close)
        sandbox = NodeSandbox.create(node, f"{proxy.url}/v1", gateway.token)
        self.assertEqual(sandbox.commands.run(self.SILENT)["stdout"], "begin\nend\n")
        sandbox.kill()
        self.assertEqual(proxy.cut, 0)


class PingTest(RawCase):
    options = ("--ping-interval", "100ms")

    def test_silent_sockets_get_pings_and_need_not_answer(self):
        """Not a single one; the process goes on, and so does its output."""
        connection, process = self.begin("cat", stdin=True)
        self.addCleanup(self.end_process, process)
        for _ in range(8):
            self.assertEqual(connection.next(PING).payload, b"")
        connection.send(text_frame({"type": "stdin", "data": base64.b64encode(b"still").decode()}))
        self.assertEqual(base64.b64decode(connection.event("stdout")["data"]), b"still")

    def test_one_that_has_not_begun_and_one_that_watches_get_them_too(self):
        (self.work / "watched").mkdir()
        for target in (START, "/runtime/v1/files/watch?path=watched"):
            connection = self.raw()
            connection.send(self.upgrade(target))
            connection.upgraded()
            for _ in range(3):
                connection.next(PING)

    def test_they_do_not_come_between_the_bytes_of_a_message(self):
        """Every frame is whole, and what is silent afterwards gets pings again."""
        connection, process = self.begin("sh", "-c", "for i in 1 2 3 4 5 6; do head -c 90000 /dev/zero; sleep 0.1; done; sleep 300")
        self.addCleanup(self.end_process, process)
        seen = 0
        while seen < 6 * 90000:
            message = connection.frame()
            if message.opcode == TEXT and message.json["type"] == "stdout":
                seen += len(base64.b64decode(message.json["data"]))
        connection.next(PING)

    def test_a_socket_that_is_being_closed_gets_none(self):
        connection = self.ws()
        connection.send(close_frame(1000))
        found = list(connection.frames())
        self.assertEqual(found[-1].opcode, CLOSE)
        self.assertEqual(connection.rest(), b"")


class NoPingTest(RawCase):
    options = ("--ping-interval", "0")

    def test_without_pings_the_proxy_cuts(self):
        """What pings are there against."""
        proxy = ReverseProxy(self.address, idle=1)
        self.addCleanup(proxy.close)
        socket = WebSocket(proxy.address, START, self.gateway.headers(), self.gateway.host)
        self.addCleanup(socket.drop)
        with self.assertRaises(Closed) as caught:
            socket.message()
        self.assertIsNone(caught.exception.code)
        self.assertEqual(proxy.cut, 1)


class OptionTest(GatewayCase):
    def test_wrong_ones_are_refused_by_name(self):
        for option, values in (
            ("--public-url", ("coop.example.org", "ftp://x", "https://", "https://x/path", "https://x/?q", "https://u:p@x", "https://a b", "https://x:0", "",
                              "https://x//", "https://[::1")),
            ("--trust-proxy", ("", "x", "localhost", "1.2.3", "1.2.3.4/33", "10.1.2.3/8", "::1/129", "1.2.3.4/", "1.2.3.4/x", "/8", "[::1]", "1.2.3.4:80")),
            ("--ping-interval", ("x", "-1", "50ms", "2h")),
        ):
            for value in values:
                with self.subTest(option=option, value=value):
                    done = subprocess.run([COOP, "serve", f"{option}={value}"], env=self.gateway.place.env({}), capture_output=True, text=True, check=False,
                                          timeout=patience(60))
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(option, done.stderr)

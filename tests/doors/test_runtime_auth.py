"""Who may ask what of /runtime/v1: tokens, Host, Origin, other people's processes, routes that are not there."""

from lib.client import Client
from lib.gateway import GatewayCase
from lib.procs import wait_until
from lib.websocket import Refused

PROCESS = "/runtime/v1/process"
FILES = "/runtime/v1/files"
ROUTES = [
    ("GET", PROCESS), ("GET", f"{PROCESS}/{{}}"), ("GET", f"{PROCESS}/{{}}/output"), ("DELETE", f"{PROCESS}/{{}}"),
    ("POST", f"{PROCESS}/{{}}/signal"), ("GET", f"{FILES}?path=x"), ("PUT", f"{FILES}?path=x"), ("DELETE", f"{FILES}?path=x"),
    ("GET", f"{FILES}/stat?path=x"), ("POST", f"{FILES}/write_files"), ("POST", f"{FILES}/move"),
    ("POST", f"{FILES}/apply_diff"), ("GET", "/runtime/v1/directories?path=x"), ("POST", "/runtime/v1/directories?path=x"),
    ("POST", "/runtime/v1/git/clone"), ("POST", "/runtime/v1/code/run"), ("GET", "/runtime/v1/nothing"),
]
UPGRADES = [PROCESS, f"{PROCESS}/{{}}/connect", f"{FILES}/watch?path=x"]
GIT = ("clone dangerously_authenticate configure_user init status branches create_branch delete_branch add commit reset restore pull "
       "push checkout remote_add remote_get set_config get_config").split()


class TokenTest(GatewayCase):
    def refused_upgrade(self, target, **options):
        with self.assertRaises(Refused) as caught:
            self.gateway.socket(target, **options)
        return caught.exception.response

    def test_r001_no_token_on_any_route_is_401(self):
        """On ids that are there and ids that are not alike, so that nobody can find out which are."""
        live = self.start("sleep", "300")
        with self.cleanup_kill(live.pid):
            for method, target in ROUTES:
                for pid in (live.pid, "no-such-process"):
                    with self.subTest(method=method, target=target, pid=pid):
                        response = self.request(method, target.format(pid), token=False)
                        self.assert_refused(response, 401, "unauthorized")
            self.assertEqual(self.status(live.pid)["status"], "running")

    def test_r001_no_token_on_any_upgrade_is_401(self):
        for target in UPGRADES:
            with self.subTest(target=target):
                self.assert_refused(self.refused_upgrade(target.format("no-such-process"), token=False), 401, "unauthorized")

    def test_r001_wrong_tokens_are_401(self):
        """Another one, one that is cut off, one of another scheme, an empty one, one in the query, one that is too long."""
        good = self.gateway.token
        for value in (f"Bearer {good[:-1]}", f"Bearer {good}x", f"Basic {good}", good, "Bearer", "Bearer ", f"Bearer {'x' * 4000}"):
            with self.subTest(value=value[:40]):
                response = self.request("GET", f"{PROCESS}/no-such-process", token=False, headers={"Authorization": value})
                self.assert_refused(response, 401, "unauthorized")
        response = self.request("GET", f"{PROCESS}?token={good}&access_token={good}", token=False)
        self.assert_refused(response, 401, "unauthorized")

    def test_the_scheme_is_read_in_any_case(self):
        response = self.request("GET", PROCESS, token=False, headers={"Authorization": f"bearer {self.gateway.token}"})
        self.assertEqual(response.status, 200)

    def test_revoked_token_is_401_at_once(self):
        token = self.gateway.agent_token("main/revoked")
        self.assertEqual(self.request("GET", PROCESS, token=token).status, 200)
        keeper = self.gateway.keeper()
        number = next(item["id"] for item in keeper.call("token_list", agent="main/revoked")["tokens"])
        keeper.call("token_revoke", id=number)
        self.assert_refused(self.request("GET", PROCESS, token=token), 401, "unauthorized")

    def test_r061_other_agents_processes_do_not_exist(self):
        """Every answer about them equals that about an unknown id."""
        mine, other = self.gateway.agent_token("main/a"), self.gateway.agent_token("main/b")
        live = self.start("sleep", "300", socket={"token": mine}, id="their-own")
        try:
            for method, target in ROUTES[1:5]:
                with self.subTest(method=method, target=target):
                    body = {"signal": "SIGKILL"} if method == "POST" else None
                    found = [self.request(method, target.format(pid), body, token=other) for pid in (live.pid, "unknown--")]
                    self.assertEqual(found[0].status, 404)
                    self.assertEqual(found[0].error, "process_not_found")
                    self.assertEqual(found[0].body.replace(live.pid.encode(), b"unknown--"), found[1].body)
            refused = [self.refused_upgrade(f"{PROCESS}/{pid}/connect", token=other) for pid in (live.pid, "unknown--")]
            self.assertEqual([item.status for item in refused], [404, 404])
            self.assertEqual(refused[0].error, "process_not_found")
            self.assertEqual(self.get(PROCESS, token=other)["processes"], [])
            self.assertEqual(self.get(f"{PROCESS}/{live.pid}", token=mine)["process"]["status"], "running")
        finally:
            self.request("DELETE", f"{PROCESS}/{live.pid}?signal=KILL", token=mine)

    def test_same_id_for_two_agents_is_two_processes(self):
        """An id is an agent's own: another one may use it too, and neither reaches the other's."""
        tokens = [self.gateway.agent_token(f"main/same-{name}") for name in "ab"]
        sockets = [self.start("sleep", "300", socket={"token": token}, id="same") for token in tokens]
        self.assertNotEqual(sockets[0].record["os_pid"], sockets[1].record["os_pid"])
        self.request("DELETE", f"{PROCESS}/same?signal=KILL", token=tokens[0])
        self.assertEqual(sockets[0].until_exit()["status"], "killed")
        self.assertEqual(self.get(f"{PROCESS}/same", token=tokens[1])["process"]["status"], "running")
        self.request("DELETE", f"{PROCESS}/same?signal=KILL", token=tokens[1])


class OriginTest(GatewayCase):
    def test_r002_foreign_host_is_403(self):
        port = self.gateway.port
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1:1", f"127.0.0.1.evil.example:{port}", f"127.0.0.1:{port}.evil",
                     f"localhost.evil:{port}", f"127.0.0.1@evil:{port}"):
            with self.subTest(host=host):
                self.assert_refused(self.request("GET", PROCESS, headers={"Host": host}), 403, "forbidden")

    def test_r002_loopback_names_with_our_port_are_accepted(self):
        for host in (f"127.0.0.1:{self.gateway.port}", f"localhost:{self.gateway.port}", f"LocalHost:{self.gateway.port}"):
            with self.subTest(host=host):
                self.assertEqual(self.request("GET", PROCESS, headers={"Host": host}).status, 200)

    def test_r002_foreign_origin_is_403(self):
        for origin in ("http://evil.example", "null", "https://127.0.0.1", f"http://127.0.0.1:{self.gateway.port}.evil",
                       "http://127.0.0.1", f"http://127.0.0.1:{self.gateway.port}/x"):
            with self.subTest(origin=origin):
                self.assert_refused(self.request("GET", PROCESS, headers={"Origin": origin}), 403, "forbidden")
                with self.assertRaises(Refused) as caught:
                    self.gateway.socket(headers={"Origin": origin})
                self.assert_refused(caught.exception.response, 403, "forbidden")

    def test_r002_own_origin_on_an_upgrade_is_accepted(self):
        socket = self.socket(headers={"Origin": self.gateway.url})
        socket.start("true")
        self.assertEqual(socket.until_exit()["exit_code"], 0)


class ConfiguredNameTest(GatewayCase):
    options = ("--name", "sandbox.example", "--origin", "https://page.example")

    def test_r002_configured_name_and_origin_are_accepted(self):
        for host in ("sandbox.example", f"sandbox.example:{self.gateway.port}"):
            self.assertEqual(self.request("GET", PROCESS, headers={"Host": host}).status, 200, host)
        self.assertEqual(self.request("GET", PROCESS, headers={"Origin": "https://page.example"}).status, 200)
        self.assert_refused(self.request("GET", PROCESS, headers={"Host": "other.example"}), 403, "forbidden")


class MissingRouteTest(GatewayCase):
    def test_r058_git_routes_are_not_implemented(self):
        for name in GIT:
            with self.subTest(name=name):
                response = self.request("POST", f"/runtime/v1/git/{name}", {})
                self.assert_refused(response, 501, "not_implemented")
                self.assertIn("not provided by coop", response.json()["message"])

    def test_r058_code_and_diff_are_not_implemented(self):
        for target in ("/runtime/v1/code/execute", f"{FILES}/apply_diff"):
            with self.subTest(target=target):
                self.assert_refused(self.request("POST", target, {}), 501, "not_implemented")

    def test_unknown_paths_are_not_found(self):
        for target in ("/runtime/v1/nothing", "/runtime/v1/", f"{PROCESS}/a/b/c", f"{PROCESS}/a/nothing"):
            with self.subTest(target=target):
                self.assert_refused(self.request("GET", target), 404, "not_found")

    def test_wrong_method_names_the_right_ones(self):
        response = self.request("PATCH", PROCESS)
        self.assert_refused(response, 405, "method_not_allowed")
        self.assertIn("GET", response.headers["allow"])

    def test_connect_without_an_upgrade_is_400(self):
        self.assert_refused(self.request("GET", f"{PROCESS}/any/connect"), 400, "invalid_argument")


class ShareTest(GatewayCase):
    """The connections to the keeper that an agent's tokens may have are used up, elsewhere or through the gateway."""

    own = True
    settings = {"agent_max_connections": 2}

    def test_shares_of_the_machine_are_held_behind_a_gateway(self):
        """The keeper that serve starts has other descriptors than one that was started by hand: its launchers live."""
        token = self.gateway.agent_token("main/worker")
        client = self.gateway.keeper().login(token)
        record = client.call("spawn", argv=["true"])["process"]
        groups = self.gateway.keeper().call("doctor")["cgroup"]
        for name, controller in (("memory_bytes", "memory"), ("max_pids", "pids")):
            held = record["sandbox"]["agent_limits"][name]
            self.assertEqual(held["state"], "enforced" if groups[controller]["version"] else "none")
        self.assertEqual(self.gateway.keeper().call("info")["launcher"]["restarts"], 0)

    def test_a_share_that_is_used_up_is_429(self):
        """And not 401, nor 503 for want of a keeper; others are served, and so is the agent when there is room."""
        greedy, other = self.gateway.agent_token("main/greedy"), self.gateway.agent_token("main/other")
        gate = self.gateway.keeper().call("info")["gate"]
        clients = [Client(gate).login(greedy) for _ in range(2)]
        for client in clients:
            self.addCleanup(client.close)
        response = self.request("GET", PROCESS, token=greedy)
        self.assert_refused(response, 429, "quota_exceeded")
        self.assertEqual(response.headers["retry-after"], "1")
        self.assertEqual(self.request("GET", PROCESS, token=other).status, 200)
        self.assertEqual(self.request("GET", PROCESS).status, 200)
        clients[0].close()
        wait_until(lambda: self.request("GET", PROCESS, token=greedy).status == 200, "there is room again")

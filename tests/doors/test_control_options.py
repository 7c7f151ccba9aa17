"""The control plane says what it does with every option and every query: it honours it, tells how else it does, or refuses it by name."""

import urllib.parse

from lib.control import ControlCase

WORDING = "is not provided by coop"
# What the SDKs send when nothing is asked for.
USUAL = {"timeout": 300, "metadata": {}, "envs": {}, "secure": True, "allow_internet_access": True, "template": "base"}


class CreateTest(ControlCase):
    def assert_not_provided(self, body, name):
        response = self.request("POST", "/v1/sandboxes", body)
        self.assert_refused(response, 501, "not_implemented")
        message = response.json()["message"]
        self.assertTrue(message.endswith(WORDING), message)
        self.assertIn(name, message)

    def test_what_cannot_be_honoured_is_refused_by_name(self):
        for name, value in (("template", "python-3"), ("template", ""), ("template_version_id", 7), ("mcp", {"server": {}}), ("mcp", {}),
                            ("volume_mounts", [{"name": "cache", "path": "/cache"}]), ("volumes", ["cache"]), ("volumes", {"/a": "b"}),
                            ("auto_pause", True), ("snapshot_id", "x"), ("snapshot", "x"), ("checkpoint_id", 3), ("team", "us"), ("rules", {"a": []}),
                            ("allow_out", ["10.0.0.0/8"]), ("deny_out", ["0.0.0.0/0"]), ("egress_profile", "x"), ("egress_profiles", ["x"]),
                            ("network_class", "x"), ("mask_request_host", "x"), ("exposed_ports", [{"port": 80}])):
            with self.subTest(name=name, value=value):
                self.assert_not_provided({**USUAL, name: value}, name)
        for lifecycle in ({"on_timeout": "pause"}, {"on_timeout": "pause", "auto_resume": True}, {"auto_resume": True}):
            with self.subTest(lifecycle=lifecycle):
                self.assert_not_provided({**USUAL, "lifecycle": lifecycle}, "lifecycle")
        self.assertEqual(self.ids(), [])

    def test_a_name_from_outside_is_shortened_and_quoted(self):
        response = self.request("POST", "/v1/sandboxes", {"template": 'x"\n' + "y" * 5000})
        self.assert_refused(response, 501, "not_implemented")
        self.assertLess(len(response.body), 600)

    def test_what_asks_for_nothing_is_taken(self):
        """As SDKs send it: explicit nulls, empty lists, what coop does anyway."""
        for more in ({}, {"template": None}, {"volume_mounts": []}, {"volumes": {}}, {"volume_mounts": None}, {"mcp": None}, {"auto_pause": False},
                     {"lifecycle": None}, {"lifecycle": {"on_timeout": "kill", "auto_resume": False}}, {"lifecycle": {"on_timeout": None}},
                     {"team": None}, {"allow_out": []}, {"rules": {}}, {"exposed_ports": []}, {"secure": None}):
            with self.subTest(more=more):
                sandbox, _ = self.create({**USUAL, **more})
                self.remove(sandbox)

    def test_wrong_kinds_are_named(self):
        for name, value in (("template", 1), ("lifecycle", "kill"), ("lifecycle", {"on_timeout": "explode"}), ("lifecycle", {"on_timeout": 1}),
                            ("lifecycle", {"auto_resume": "no"}), ("lifecycle", {"other": 1}), ("auto_pause", "no"), ("volume_mounts", "x"),
                            ("allow_internet_access", "yes"), ("cpu_count", "2"), ("cpu_count", 0), ("memory_mb", -1), ("memory_mb", True),
                            ("secure", "x"), ("nothing", 1), ("timout", 60), ("allow_out", 5)):
            with self.subTest(name=name, value=value):
                response = self.request("POST", "/v1/sandboxes", {name: value})
                self.assert_refused(response, 400, "invalid_argument")
                self.assertIn(name, response.json()["message"])
        self.assertEqual(self.ids(), [])

    def test_what_is_honoured_differently_is_told(self):
        body = {**USUAL, "cpu_count": 2, "memory_mb": 512, "allow_public_traffic": True, "allow_package_registry_access": True, "secure": False}
        response = self.request("POST", "/v1/sandboxes", body)
        self.assertEqual(response.status, 201, response.body)
        warnings = response.json()["warnings"]
        told = {text.partition(":")[0] for text in warnings}
        self.assertEqual(told, {"allow_internet_access", "cpu_count", "memory_mb", "allow_public_traffic", "allow_package_registry_access", "secure"})
        self.assertTrue(all(isinstance(text, str) and len(text) > 30 for text in warnings), warnings)
        self.remove(response.json()["sandbox"])
        response = self.request("POST", "/v1/sandboxes", {})
        self.assertEqual(response.json()["warnings"], [])
        self.remove(response.json()["sandbox"])

    def test_resume_and_timeout_take_nothing_else(self):
        sandbox, _ = self.create()
        for path in ("resume", "timeout"):
            response = self.request("POST", f"/v1/sandboxes/{sandbox['id']}/{path}", {"timeout": 60, "auto_pause": True})
            self.assert_refused(response, 400, "invalid_argument")
            self.assertIn("auto_pause", response.json()["message"])
        self.remove(sandbox)

    def test_its_end_stands_under_all_three_names(self):
        sandbox, _ = self.create({"timeout": 100})
        shown = self.get(f"/v1/sandboxes/{sandbox['id']}")["sandbox"]
        listed = self.get("/v1/sandboxes")["sandboxes"][0]
        for found in (sandbox, shown, listed):
            self.assertEqual(len({found["expires_at"], found["end_at"], found["deadline_at"]}), 1)
            self.assertRegex(found["end_at"], r"^20\d\d-\d\d-\d\dT.*Z$")
        self.remove(sandbox)


class NetworkTest(ControlCase):
    """Commands would have the host's network here, where that is allowed."""

    sandbox = {"network": "host"}

    def test_without_internet_there_is_the_loopback_alone(self):
        sandbox, session = self.create({"allow_internet_access": False})
        self.assertEqual(self.agent(sandbox)["settings"]["sandbox"], {"network": "loopback"})
        self.assertEqual(self.text(session, "tail -n +3 /proc/net/dev | cut -d: -f1").split(), ["lo"])
        self.remove(sandbox)

    def test_an_agent_that_has_less_still_makes_them(self):
        token = self.gateway.agent_token("main/cut", sandbox={"network": "none"})
        response = self.request("POST", "/v1/sandboxes", {"allow_internet_access": False}, token=token)
        sandbox = response.json()["sandbox"]
        self.assertIn("allow_internet_access: commands reach at most their own loopback", response.json()["warnings"])
        self.assertEqual(self.agent({"id": f"cut/{sandbox['id']}"})["settings"]["sandbox"], None)
        self.assertEqual(self.request("DELETE", f"/v1/sandboxes/{sandbox['id']}", token=token).status, 200)


class RestTest(ControlCase):
    def test_lists_of_what_there_is_none_are_empty(self):
        self.assertEqual(self.get("/v1/volumes"), {"volumes": []})
        for target in ("/v1/sandbox_snapshots", "/v1/sandbox_snapshots?sandbox_id=x&limit=5"):
            self.assertEqual(self.get(target), {"snapshots": [], "next_token": None})
        sandbox, _ = self.create()
        self.assertEqual(self.get(f"/v1/sandboxes/{sandbox['id']}/snapshots"), {"snapshots": [], "next_token": None})
        self.assertEqual(self.get(f"/v1/sandboxes/{sandbox['id']}/checkpoints"), {"sandbox_checkpoints": []})
        self.remove(sandbox)
        for name in ("snapshots", "checkpoints"):
            self.assert_refused(self.request("GET", f"/v1/sandboxes/{sandbox['id']}/{name}"), 404, "sandbox_not_found")

    def test_the_template_base_exists(self):
        base = self.get("/v1/templates/aliases/base")["template"]
        self.assertEqual((base["id"], base["slug"], base["name"]), ("base", "base", "base"))
        self.assertEqual(self.get("/v1/templates"), {"templates": [base]})
        self.assertEqual(self.get("/v1/sandbox_templates"), {"sandbox_templates": [base]})
        self.assertEqual(self.get("/v1/templates/base/tags"), [])

    def test_the_rest_is_refused_in_the_same_words(self):
        sandbox, _ = self.create()
        one = f"/v1/sandboxes/{sandbox['id']}"
        for method, path in (
            ("POST", f"{one}/pause"), ("POST", f"{one}/snapshots"), ("POST", f"{one}/restore"), ("GET", f"{one}/metrics"), ("PUT", f"{one}/network"),
            ("GET", f"{one}/ports/80"), ("POST", f"{one}/files/upload_url"), ("POST", f"{one}/files/download_url"), ("PATCH", one),
            ("POST", "/v1/volumes"), ("GET", "/v1/volumes/x"), ("DELETE", "/v1/volumes/x"), ("GET", "/v1/volumes/x/path?path=/"),
            ("DELETE", "/v1/sandbox_snapshots/x"), ("POST", "/v1/templates"), ("GET", "/v1/templates/aliases/other"), ("POST", "/v1/templates/tags"),
            ("DELETE", "/v1/templates/tags"), ("GET", "/v1/templates/other/tags"), ("GET", "/v1/templates/base/builds/x/status"),
            ("POST", "/v1/sandbox_templates"), ("GET", "/v1/sandbox_templates/base/versions"), ("POST", "/runtime/v1/git/clone"),
            ("POST", "/runtime/v1/code/contexts"), ("POST", "/runtime/v1/files/apply_diff"),
        ):
            with self.subTest(method=method, path=path):
                response = self.request(method, path, {} if method in ("POST", "PUT", "PATCH") else None)
                self.assert_refused(response, 501, "not_implemented")
                self.assertTrue(response.json()["message"].endswith(WORDING), response.json())
                self.assert_refused(self.request(method, path, token=False), 401)
        self.remove(sandbox)


class QueryTest(ControlCase):
    own = True

    def listed(self, *pairs, **options):
        query = urllib.parse.urlencode(pairs)
        return [sandbox["id"] for sandbox in self.get(f"/v1/sandboxes?{query}", **options)["sandboxes"]]

    def refused(self, query):
        response = self.request("GET", f"/v1/sandboxes?{query}")
        self.assert_refused(response, 400, "invalid_argument")
        return response.json()["message"]

    def test_metadata_selects(self):
        kinds = ({"task": "a", "n": "1"}, {"task": "a", "n": "2"}, {"task": "b"}, {"t[a][b]": "x y&=é%"}, {})
        ids = [self.create({"metadata": kind})[0]["id"] for kind in kinds]
        self.assertEqual(self.listed(("query[metadata][task]", "a")), ids[:2])
        self.assertEqual(self.listed(("query[metadata][task]", "a"), ("query[metadata][n]", "2")), ids[1:2])
        self.assertEqual(self.listed(("query[metadata][n]", "2"), ("query[metadata][n]", "1")), [])
        self.assertEqual(self.listed(("query[metadata][n]", "2"), ("query[metadata][n]", "2")), ids[1:2])
        self.assertEqual(self.listed(("query[metadata][t[a][b]]", "x y&=é%")), ids[3:4])
        for name, value in (("task", "c"), ("task", ""), ("task", "A"), ("other", "a"), ("tas", "a"), ("task", "a\u0301")):
            self.assertEqual(self.listed((f"query[metadata][{name}]", value)), [], (name, value))
        self.assertEqual(self.listed(), ids)

    def test_states_select(self):
        sandbox, _ = self.create()
        for states, found in ((("running",), True), (("ready",), True), (("paused",), False), (("paused", "running"), True), (("creating", "stopping"), False)):
            with self.subTest(states=states):
                self.assertEqual(self.listed(*(("query[state][]", state) for state in states)), [sandbox["id"]] if found else [])
        self.assertIn("query[state][]", self.refused("query[state][]=sleepy"))

    def test_pages_of_a_selection(self):
        ids = [self.create({"metadata": {"kind": "odd" if number % 2 else "even"}})[0]["id"] for number in range(8)]
        seen, token = [], ""
        for _ in range(4):
            page = self.get(f"/v1/sandboxes?limit=1&query%5Bmetadata%5D%5Bkind%5D=odd{token}")
            seen += [sandbox["id"] for sandbox in page["sandboxes"]]
            token = f"&next_token={page['next_token']}"
        self.assertEqual(seen, ids[1::2])
        self.assertIsNone(page["next_token"])

    def test_what_is_not_known_is_refused_by_name(self):
        for query in ("team=us", "status=running", "query[state]=running", "query[metadata]=x", "query[metadata][]=x", "query[metadata][a=x", "query=x",
                      "query[name]=x", "metadata[a]=b", "limit=2&offset=1", "Limit=1", "=x"):
            with self.subTest(query=query):
                self.assertIn(query.rpartition("&")[2].partition("=")[0], self.refused(query))
        for query in ("limit=1&limit=2", "limit=%zz", "query[metadata][a]=%00", "query[metadata][%ff]=x", "limit=", "next_token=", "limit=1&next_token=1&next_token=2"):
            with self.subTest(query=query):
                self.refused(query)
        self.assertEqual(self.get("/v1/sandboxes?&&limit=5&"), {"sandboxes": [], "next_token": None})

    def test_other_lists_know_their_parameters_too(self):
        for target in ("/v1/volumes?x=1", "/v1/sandbox_snapshots?state=x", "/v1/templates?x=1", "/v1/sandbox_snapshots?limit=x"):
            self.assert_refused(self.request("GET", target), 400, "invalid_argument")

    def test_a_long_query_is_bounded(self):
        message = self.refused("&".join(f"query[metadata][k{n}]=v" for n in range(65)))
        self.assertIn("64", message)

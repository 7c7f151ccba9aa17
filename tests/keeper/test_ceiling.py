"""`ceiling`: what a connection was bounded to holds for all that it asks for."""

from lib.keeper import KeeperCase


class CeilingTest(KeeperCase):
    def bound(self, login=None, **ceiling):
        client = self.connect()
        if login:
            client.call("login", agent=login)
        client.call("ceiling", **ceiling)
        return client

    def refusal(self, client, **args):
        return self.refused(client, "permission_denied", **args)

    def refused(self, client, code, op="spawn", **args):
        answer = client.answer(op, args)
        self.assertEqual(answer.get("error", {}).get("code"), code, answer)
        return answer["error"]

    def test_it_is_taken_once_and_first(self):
        client = self.bound(sandbox={"profile": "read-only"})
        self.refused(client, "invalid_input", "ceiling", sandbox={"profile": "full"})
        self.refused(client, "invalid_input", "login", agent="main")
        self.refused(client, "permission_denied", "reload")
        late = self.connect()
        late.call("spawn", argv=["true"])
        self.refused(late, "invalid_input", "ceiling", sandbox={"profile": "read-only"})

    def test_what_is_wrong_is_named_and_bounds_nothing(self):
        client = self.connect()
        for args, field in (({"sandbox": {"profile": "none"}}, "sandbox.profile"), ({"sandbox": {"workspace": "x"}}, "sandbox.workspace"),
                            ({"limits": {"max_pids": -1}}, "limits.max_pids"), ({"sandbox": {"what": 1}}, "sandbox.what")):  # fmt: skip
            self.assertEqual(self.refused(client, "invalid_input", "ceiling", **args)["details"]["field"], field)
        self.assertEqual(client.call("spawn", argv=["true"], sandbox={"profile": "full"})["process"]["sandbox"]["profile"], "full")

    def test_every_part_is_a_bound(self):
        work = str(self.keeper.place.work)
        client = self.bound(sandbox={"workspace": work, "network": "none", "home": "hidden", "root": "minimal"}, limits={"max_open_files": 100})
        for field, args in (
            ("sandbox.profile", {"sandbox": {"profile": "full"}}),
            ("sandbox.profile", {"sandbox_profile": "unrestricted"}),
            ("sandbox.network", {"sandbox": {"network": "loopback"}}),
            ("sandbox.network", {"sandbox": {"network": "host"}}),
            ("sandbox.home", {"sandbox": {"home": "cow"}}),
            ("sandbox.root", {"sandbox": {"root": "host"}}),
            ("sandbox.workspace", {"sandbox": {"workspace": "/srv"}}),
            ("sandbox.allow_write", {"sandbox": {"allow_write": ["/srv"]}}),
            ("sandbox.allow_read", {"sandbox": {"allow_read": ["/srv"]}}),
            ("limits.max_open_files", {"limits": {"max_open_files": 101}}),
        ):
            self.assertEqual(self.refusal(client, argv=["true"], **args)["details"]["field"], field)
            self.assertEqual(self.refusal(client, op="check", argv=["true"], **args)["details"]["field"], field)
        record = client.call("spawn", argv=["true"])["process"]
        has = {name: record["sandbox"][name] for name in ("profile", "network", "home", "root", "workspace")}
        self.assertEqual(has, {"profile": "workspace-write", "network": "none", "home": "hidden", "root": "minimal", "workspace": work})

    def test_settings_of_an_agent_speak_for_it(self):
        """Where the operator gave an agent a network, the ceiling that says nothing of it does not take it away."""
        self.client.call("agent_add", agent="main/net", sandbox={"network": "host", "require": ["files"]})
        self.client.call("agent_add", agent="main/silent")
        for name, allowed in (("net", True), ("silent", False)):
            client = self.bound(f"main/{name}", sandbox={"profile": "workspace-write"})
            answer = client.answer("spawn", {"argv": ["true"], "sandbox": {"network": "host"}})
            self.assertEqual("result" in answer, allowed, answer)
            self.refusal(client, argv=["true"], sandbox={"profile": "full"})

    def test_a_network_that_was_configured_is_had(self):
        client = self.bound(sandbox={"network": "host"})
        for sandbox in ({"network": "host"}, {}, {"network": "none"}):
            record = client.call("spawn", argv=["true"], sandbox=sandbox)["process"]
            self.assertEqual(record["sandbox"]["network"], sandbox.get("network", "loopback"))

    def test_full_is_bound_to_no_folder(self):
        client = self.bound(sandbox={"profile": "full", "workspace": str(self.keeper.place.work)})
        self.assertEqual(client.call("spawn", argv=["true"], sandbox={"profile": "full"})["process"]["sandbox"]["profile"], "full")

    def test_agents_that_were_given_more_are_left_alone(self):
        """Neither a token nor variables: their commands would do outside of the ceiling what the door may not."""
        work = str(self.keeper.place.work)
        for name, sandbox in (("wide", {"profile": "full"}), ("net", {"network": "host"}), ("same", {"network": "none"})):
            self.client.call("agent_add", agent=f"main/{name}", workspace=[work], sandbox=sandbox)
        self.client.call("agent_add", agent="main/wide/below")
        client = self.bound(sandbox={"profile": "workspace-write", "workspace": work, "network": "loopback"})
        for name in ("wide", "net", "wide/below"):
            for op, args in (("token_new", {}), ("agent_set", {"env": {"LD_PRELOAD": "/x"}}), ("agent_set", {"sandbox": None})):
                error = self.refused(client, "permission_denied", op, agent=f"main/{name}", **args)
                self.assertEqual(error["details"]["field"], "agent", error)
            client.call("agent_set", agent=f"main/{name}", expires_in_ms=3600000, metadata={"a": "b"})
        client.call("agent_set", agent="main/same", env={"A": "b"})
        self.assertTrue(client.call("token_new", agent="main/same")["token"])

    def test_the_end_of_input_is_input(self):
        process = self.client.call("spawn", argv=["cat"], stdin="pipe", sandbox={"profile": "full"})["process"]["id"]
        client = self.bound(sandbox={"profile": "read-only"})
        self.assertEqual(self.refused(client, "permission_denied", "close_stdin", id=process)["details"]["field"], "id")
        self.client.call("close_stdin", id=process)
        self.assertEqual(self.ended(process)["exit"]["code"], 0)

"""What an agent may be given besides limits: variables for its processes, metadata, the moment of its end."""

import time

from lib.agents import OTHER, AgentCase
from lib.client import Closed
from lib.place import Place
from lib.procs import wait_until

SECRET = "s3cr3t-" + "x" * 20


class ExtrasCase(AgentCase):
    def show(self, path="main/a", client=None):
        return (client or self.client).call("agent_show", agent=path)["agent"]

    def add(self, path="main/a", **settings):
        return self.client.call("agent_add", agent=path, **settings)["agent"]

    def variables(self, client, names, **args):
        """What the shell of a process has."""
        script = "; ".join(f'printf "%s\\n" "{name}=${{{name}-unset}}"' for name in names.split())
        process = self.finish(client, script, **args)["id"]
        return self.output(process, client=client).decode().split()

    def restart(self, keeper):
        """Another keeper with the same state."""
        keeper.clients[0].call("shutdown", grace_ms=0)
        keeper.wait_gone()
        keeper.ended = True
        place = Place()
        place.state, place.socket = keeper.place.state, keeper.place.socket
        again = self.start_keeper(place=place, env={"COOP_DATA": str(keeper.place.dir / "data")})
        self.client = again.clients[0]
        self.keeper = again
        return again


class EnvTest(ExtrasCase):
    def test_they_are_over_the_base_and_under_the_processs_own(self):
        """Removals take them away; `replace` begins with nothing at all."""
        agent = self.keeper.agent("main/a", env={"ONE": "1", "TWO": "2", "LANG": "xx", "EMPTY": ""})
        self.assertEqual(self.variables(agent, "ONE TWO LANG EMPTY", base_env={"LANG": "base"}), ["ONE=1", "TWO=2", "LANG=xx", "EMPTY="])
        self.assertEqual(self.variables(agent, "ONE TWO", env={"TWO": "own"}), ["ONE=1", "TWO=own"])
        self.assertEqual(self.variables(agent, "ONE TWO", env_remove=["ONE"]), ["ONE=unset", "TWO=2"])
        self.assertEqual(self.variables(agent, "ONE", env={"PATH": "/usr/bin:/bin"}, env_mode="replace"), ["ONE=unset"])
        record = self.finish(agent)
        self.assertLessEqual({"ONE", "TWO", "EMPTY"}, set(record["env_names"]))

    def test_they_are_the_agents_own(self):
        """Neither of agents above nor of those below."""
        self.keeper.agent("main/a", env={"ONE": "1"})
        below = self.keeper.agent("main/a/x")
        self.assertEqual(self.variables(below, "ONE"), ["ONE=unset"])
        self.assertEqual(self.variables(self.client, "ONE"), ["ONE=unset"])

    def test_values_are_never_shown(self):
        """Names are. Neither answers, nor the log, nor audit and history hold a value; a removed agent's is forgotten."""
        agent = self.keeper.agent("main/a", env={"TOKEN_OF_MINE": SECRET}, metadata={"k": SECRET + "meta"})
        self.finish(agent)
        answers = [self.show(), self.client.call("agent_list"), self.client.call("agent_set", agent="a", max_running=3),
                   self.client.call("history"), self.client.call("audit_tail"), self.client.call("list", include_finished=True),
                   agent.call("check", argv=["true"]), agent.call("agent_show", agent="main/a")]
        for answer in answers:
            self.assertNotIn(SECRET, repr(answer).replace(SECRET + "meta", ""))
        self.assertEqual(self.show()["env_names"], ["TOKEN_OF_MINE"])
        self.assertNotIn("env", self.show()["settings"])
        self.client.call("agent_remove", agent="a")
        self.client.call("shutdown", grace_ms=0)
        self.expect_end(self.keeper, [0])
        for path in [self.keeper.place.log, *self.keeper.place.state.glob("audit*")]:
            self.assertNotIn(SECRET.encode(), path.read_bytes(), path)

    def test_they_are_kept(self):
        """Over a restart, and whatever else is set; null takes them away."""
        keeper = self.start_keeper(place=Place())
        self.client = keeper.clients[0]
        self.keeper = keeper
        self.add(env={"ONE": "1 \u00e4\n\"x"}, metadata={"a": "b"}, workspace=[str(keeper.place.work)])
        self.client.call("agent_set", agent="a", max_running=5)
        work = keeper.place.work
        self.restart(keeper)
        self.assertTrue(work.exists())
        self.assertEqual((self.show()["env_names"], self.show()["metadata"]), (["ONE"], {"a": "b"}))
        agent = self.keeper.login("main/a")
        process = self.finish(agent, 'printf %s "$ONE"')["id"]
        self.assertEqual(self.output(process, client=agent).decode(), "1 \u00e4\n\"x")
        self.client.call("agent_set", agent="a", env=None, metadata=None)
        self.assertEqual((self.show()["env_names"], self.show()["metadata"]), ([], {}))
        self.assertEqual(self.variables(agent, "ONE"), ["ONE=unset"])

    def test_the_rules_are_those_of_a_spawn(self):
        for env, code, field in (({"A-B": "x"}, "invalid_input", "env.A-B"), ({"": "x"}, "invalid_input", None), ({"A": 1}, "invalid_input", "env.A"),
                                 ({"A": "x" * 65537}, "invalid_input", "env.A"), ({f"A{n}": "" for n in range(257)}, None, "env"),
                                 ({f"A{n}": "x" * 60000 for n in range(3)}, "too_large", "env"), ("x", "invalid_input", "env"),
                                 ({"A": "x\0y"}, "invalid_input", "env.A")):
            error = self.refusal(self.client, "agent_add", agent="main/bad", env=env)
            self.assertIn(error.code, (code,) if code else ("invalid_input", "too_large"))
            if field:
                self.assertEqual(error.details["field"], field)
        self.assertEqual(self.agents(self.client), ["main"])

    def test_a_restricted_agent_gets_none_that_load_code(self):
        """Not from a restricted parent, and not any more where it is restricted later."""
        parent = self.keeper.agent("main/a", restricted=True)
        self.assertEqual(self.assert_refused(parent, "capability_denied", "agent_add", agent="x", env={"LD_PRELOAD": "/x"})["field"],
                         "env.LD_PRELOAD")
        self.assert_refused(self.client, "capability_denied", "agent_set", agent="a", env={"LD_PRELOAD": "/x"})
        free = self.keeper.agent("main/b", env={"BASH_ENV": "/x", "ONE": "1"})
        self.client.call("agent_set", agent="b", restricted=True)
        self.assertEqual(self.variables(free, "BASH_ENV ONE"), ["BASH_ENV=unset", "ONE=1"])


class MetadataTest(ExtrasCase):
    def test_it_is_shown_and_replaced_as_a_whole(self):
        self.assertEqual(self.add()["metadata"], {})
        given = {"user": "u-1", "": "empty", "ä": "ö\n", "long": "x" * 4000}
        self.assertEqual(self.client.call("agent_set", agent="a", metadata=given)["agent"]["metadata"], given)
        self.assertEqual(self.client.call("agent_set", agent="a", max_running=1)["agent"]["metadata"], given)
        self.assertEqual(self.client.call("agent_set", agent="a", metadata={"x": "y"})["agent"]["metadata"], {"x": "y"})
        self.assertEqual(self.client.call("agent_set", agent="a", metadata={})["agent"]["metadata"], {})

    def test_it_has_bounds(self):
        for metadata, codes in (({str(n): "" for n in range(65)}, ("invalid_input", "too_large")), ({"a": "x" * 16384}, ("too_large",)),
                                ({"a": None}, ("invalid_input",)), ({"a": {}}, ("invalid_input",)), ([], ("invalid_input",))):
            self.assertIn(self.refusal(self.client, "agent_add", agent="main/a", metadata=metadata).code, codes)
        self.add(metadata={str(n): "x" * 200 for n in range(64)})


class ExpiryTest(ExtrasCase):
    def gone(self, path="main/a"):
        wait_until(lambda: path not in self.agents(self.client), f"{path} is removed")

    def test_the_agent_goes_at_its_time(self):
        """As if it had been removed: tokens, connections, processes; agents below it too. Nothing else goes."""
        agent = self.keeper.agent("main/a", expires_in_ms=400)
        self.add("main/a/x")
        self.add("main/b")
        self.assertRegex(self.show()["expires_at"], r"^20..-")
        process = self.start(agent)["id"]
        record = self.wait(process)["process"]
        self.assertEqual(record["end_cause"], "owner_retired")
        self.assertEqual(record["end_evidence"]["limit"], "expires_at")
        with self.assertRaises(Closed):
            while True:
                agent.call("list")
        self.gone()
        self.assertEqual(self.agents(self.client), ["main", "main/b"])

    def test_it_can_be_moved_and_taken_away(self):
        self.assertIsNone(self.add()["expires_at"])
        self.client.call("agent_set", agent="a", expires_in_ms=3_600_000)
        later = self.show()["expires_at"]
        self.client.call("agent_set", agent="a", max_running=1)
        self.assertEqual(self.show()["expires_at"], later)
        self.client.call("agent_set", agent="a", expires_in_ms=None)
        self.assertIsNone(self.show()["expires_at"])
        self.client.call("agent_set", agent="a", expires_in_ms=1)
        self.gone()

    def test_a_later_end_does_not_hide_an_earlier_one(self):
        for name, lifetime in (("late", 3_600_000), ("soon", 300), ("later", 7_200_000)):
            self.add(f"main/{name}", expires_in_ms=lifetime)
        self.gone("main/soon")
        self.assertEqual(self.agents(self.client), ["main", "main/late", "main/later"])

    def test_many_at_once(self):
        for number in range(60):
            self.add(f"main/a{number}", expires_in_ms=1 + number % 3)
        wait_until(lambda: self.agents(self.client) == ["main"], "all are removed")

    def test_another_principals_goes_too(self):
        self.client.call("agent_add", agent="main", principal=OTHER, expires_in_ms=50)
        wait_until(lambda: self.client.answer("agent_list", {"principal": OTHER}).get("error"), "it is removed")

    def test_it_holds_over_a_restart(self):
        """What ran out meanwhile goes when a keeper starts."""
        keeper = self.start_keeper(place=Place())
        self.client = keeper.clients[0]
        self.add("main/a", expires_in_ms=3_600_000)
        self.add("main/b", expires_in_ms=400)
        ends = time.time() + 0.4
        at = self.show()["expires_at"]
        client = self.client
        client.call("shutdown", grace_ms=0)
        keeper.wait_gone()
        wait_until(lambda: time.time() > ends, "its time is over")
        keeper.ended = True
        place = Place()
        place.state, place.socket = keeper.place.state, keeper.place.socket
        self.client = self.start_keeper(place=place).clients[0]
        self.assertEqual(self.show()["expires_at"], at)
        self.gone("main/b")

    def test_bad_times_are_refused(self):
        for value in (0, -1, 1.5, "1", True):
            self.assertEqual(self.assert_refused(self.client, "invalid_input", "agent_add", agent="main/a", expires_in_ms=value)["field"],
                             "expires_in_ms")

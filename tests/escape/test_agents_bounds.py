"""What binds an agent is not the agent's to loosen: requirements on a host that lacks something, and profiles that protect less (B-105)."""

import unittest

from lib.both_keepers import USER, BothKeepersCase
from lib.confined import ROOT, ConfinedCase, without

NO_SLOTS = "[sandbox]\nslots = 0\n"
ALL = ["files", "network", "identity", "privileges", "seccomp", "kill", "ipc"]
NO_FILTER = ("seccomp:0=1=EINVAL", "prctl:0=22=EINVAL")
# All the ways to ask for less.
LESS = (
    {"sandbox": {"tolerate": ALL}},
    {"sandbox": {"require": []}},
    {"sandbox": {"require": [], "network": "none"}},
    {"sandbox": {"require": ["privileges"]}},
    {"sandbox_profile": "worktree"},
)


@unittest.skipUnless(ROOT, "needs root to make namespaces with limits for another user")
class RequirementsTest(ConfinedCase):
    def begin(self, **options):
        """A keeper of a user on a poor host, and an agent that is bound to the workspace."""
        self.around = self.world(owner=USER)
        self.ws, self.out = self.around.workspace, self.around.out
        self.keeper = self.confined_keeper(self.around, USER, NO_SLOTS, **options)
        self.operator = self.keeper.clients[0]
        return self.keeper.agent("main/t", workspace=[str(self.ws)])

    def args(self, ask):
        return {"argv": ["sh", "-c", f"echo x >{self.out}/made; echo ran"], "cwd": str(self.ws)} | ask

    def assert_bound(self, agent, less=LESS):
        for ask in less:
            with self.subTest(ask=ask):
                error = self.refusal(agent, **self.args(ask))
                self.assertIn(error.code, ("sandbox_unavailable", "permission_denied"), error)
        self.assertEqual(agent.call("list", include_finished=True)["processes"], [])
        self.assertEqual([path.name for path in self.out.iterdir()], ["file"])

    def runs(self, client, ask):
        record = client.call("spawn", **self.args(ask))["process"]
        client.call("wait", id=record["id"])
        self.assertEqual(self.output(record["id"], client=client), b"ran\n")
        return record

    def test_b105_an_agent_does_not_tolerate(self):
        """Without namespaces, with and without Landlock: nothing of the agent's runs, whatever it says; the operator's does."""
        for options in ({"maxima": {"user": 0}}, {"wrap": without("unshare=EPERM", "landlock_create_ruleset=ENOSYS")}):
            with self.subTest(options=options):
                agent = self.begin(**options)
                self.assert_bound(agent)
                record = self.runs(self.operator, {"sandbox": {"workspace": str(self.ws), "tolerate": ALL}})
                self.assertFalse(record["sandbox"]["enforced"])
                (self.out / "made").unlink(missing_ok=True)

    def test_b105_an_agent_does_not_tolerate_for_others(self):
        """What it gives to one below it counts no more than what it has."""
        agent = self.begin(maxima={"user": 0})
        agent.call("agent_add", agent="main/t/x", sandbox={"require": []})
        self.assert_bound(self.keeper.login("main/t/x"))

    def test_b105_the_operator_may_let_it(self):
        """By `require` of the agent's settings; what stands in it stays required. Taken back, it is as before."""
        agent = self.begin(wrap=without(*NO_FILTER))
        asks = ({"sandbox": {"tolerate": ["seccomp"]}}, {"sandbox": {"require": []}})
        self.assert_bound(agent, asks)
        self.operator.call("agent_set", agent="main/t", sandbox={"require": ["files", "network", "identity", "privileges", "kill"]})
        for ask in asks:
            record = self.runs(agent, ask)
            held = record["sandbox"]["protections"]
            self.assertEqual([name for name in ALL if held[name]["state"] != "enforced"], ["seccomp"])
        # Not by itself: the agent still has to say that it does not mind.
        self.assertEqual(self.refusal(agent, **self.args({})).details["protection"], "seccomp")
        self.operator.call("agent_set", agent="main/t", sandbox={"require": ["seccomp"]})
        for ask in asks:
            error = self.refusal(agent, **self.args(ask))
            self.assertIn(error.code, ("sandbox_unavailable", "permission_denied"), error)
        self.operator.call("agent_set", agent="main/t", sandbox=None)
        error = self.refusal(agent, **self.args(asks[0]))
        self.assertIn(error.code, ("sandbox_unavailable", "permission_denied"), error)
        self.assertEqual([path.name for path in self.out.iterdir()], ["file"])


class ProfilesTest(BothKeepersCase):
    conf = "[profile fresh]\nbase = workspace-write\nprotect_only = .bashrc\n"
    script = "echo '#x' >>.git/config 2>/dev/null && echo written || echo refused"

    def setUp(self):
        super().setUp()
        (self.ws / ".git").mkdir()
        self.config = self.ws / ".git" / "config"
        self.config.write_text("[core]\n")
        for path in (self.ws / ".git", self.config):
            self.give(path)

    def writes(self, client, **sandbox):
        """What came of it, which must be what is on disk."""
        self.config.write_text("[core]\n")
        said = self.says(self.script, {"workspace": str(self.ws), **sandbox}, client=client)
        self.assertEqual("#x" in self.config.read_text(), said == "written", said)
        return said

    def test_b105_the_operators_profile_that_protects_less(self):
        """It is for the operator, and for agents to whom it was given; others that name it have what is protected always."""
        ws = [str(self.ws)]
        agent = self.keeper.agent("main/t", workspace=ws)
        self.assertEqual(self.writes(self.client), "refused")
        self.assertEqual(self.writes(self.client, profile="fresh"), "written")
        self.assertEqual(self.writes(agent, profile="fresh"), "refused")
        self.client.call("agent_set", agent="main/t", sandbox={"profile": "workspace-write"})
        self.assertEqual(self.writes(agent, profile="fresh"), "refused")
        self.client.call("agent_set", agent="main/t", sandbox={"profile": "fresh"})
        self.assertEqual(self.writes(agent, profile="fresh"), "written")
        below = self.keeper.agent("main/t/x")
        self.assertEqual(self.writes(below, profile="fresh"), "refused", "nobody gave it to this one")
        self.client.call("agent_set", agent="main/t", sandbox=None)
        self.assertEqual(self.writes(agent, profile="fresh"), "refused")


class ProfilesOfAUserTest(ProfilesTest):
    user = USER

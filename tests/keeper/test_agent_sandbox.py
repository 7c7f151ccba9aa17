"""An agent's settings `sandbox` and `limits`: ceilings that are shown as given, outlive the keeper, and only narrow (B-083, B-105)."""

import os
import pwd

from lib.agents import AgentCase
from lib.records import RecordsCase

SANDBOX = {"profile": "workspace-write", "network": "loopback", "home": "read-only", "deny_read": ["~/private", "/srv/*/key"],
           "protect": [".ci"], "require": ["files", "kill"]}
LIMITS = {"memory_bytes": 64 << 20, "cpu_quota": 1.5, "max_pids": 50}


class AgentSandboxTest(RecordsCase, AgentCase):
    conf = "[profile build]\nnetwork = host\nallow_write = /var/cache\nmemory_bytes = 1G\ntolerate = ipc\n"

    def given(self, path):
        settings = self.client.call("agent_show", agent=path)["agent"]["settings"]
        return settings["sandbox"], settings["limits"]

    def test_b105_given_shown_kept_and_taken_away(self):
        self.client.call("agent_add", agent="main/plain")
        self.assertEqual(self.given("main/plain"), (None, None))
        self.client.call("agent_add", agent="main/a", sandbox=SANDBOX, limits=LIMITS)
        self.assertEqual(self.given("main/a"), (SANDBOX, LIMITS))
        self.restart()
        self.assertEqual(self.given("main/a"), (SANDBOX, LIMITS))
        self.assertEqual(self.given("main/plain"), (None, None))
        self.client.call("agent_set", agent="main/a", max_running=5)
        self.assertEqual(self.given("main/a"), (SANDBOX, LIMITS))
        self.client.call("agent_set", agent="main/a", limits={"max_pids": 7})
        self.assertEqual(self.given("main/a"), (SANDBOX, {"max_pids": 7}))
        self.client.call("agent_set", agent="main/a", sandbox={"network": "none"})
        self.assertEqual(self.given("main/a"), ({"network": "none"}, {"max_pids": 7}))
        self.client.call("agent_set", agent="main/a", sandbox=None)
        self.assertEqual(self.given("main/a"), (None, {"max_pids": 7}))
        self.client.call("agent_set", agent="main/a", limits=None)
        self.assertEqual(self.given("main/a"), (None, None))

    def test_b105_an_own_profile_is_what_it_was_then(self):
        """It is resolved when it is set: a file without it changes nothing, nor keeps the keeper from starting."""
        self.client.call("agent_add", agent="main/a", sandbox={"profile": "build"})
        expected = {"profile": "workspace-write", "network": "host", "allow_write": [os.path.realpath("/var/cache")]}
        self.assertEqual(self.given("main/a"), (expected, None))
        self.write_conf("")
        self.restart()
        self.assertEqual(self.given("main/a"), (expected, None))
        self.assertEqual(self.assert_refused(self.client, "invalid_input", "agent_set", agent="main/a", sandbox={"profile": "build"}),
                         {"field": "sandbox.profile"})

    def test_b105_paths_are_as_they_resolve(self):
        folder = self.place.dir / "folder"
        folder.mkdir()
        (self.place.dir / "link").symlink_to(folder)
        link = str(self.place.dir / "link")
        self.client.call("agent_add", agent="main/a", sandbox={"workspace": link, "allow_write": [link, "/not/there", "~/x"]})
        real = os.path.realpath(folder)
        home = pwd.getpwuid(os.getuid()).pw_dir
        self.assertEqual(self.given("main/a")[0], {"workspace": real, "allow_write": [real, "/not/there", f"{home}/x"]})

    def test_b083_a_child_has_no_more_than_those_above(self):
        self.client.call("agent_add", agent="main/a", sandbox={**SANDBOX, "workspace": "/usr"}, limits=LIMITS)
        self.client.call("agent_add", agent="main/a/x")
        wider = [
            ("sandbox", "profile", "full"),
            ("sandbox", "network", "host"),
            ("sandbox", "home", "cow"),
            ("sandbox", "workspace", "/etc"),
            ("sandbox", "allow_write", ["/usr/lib", "/usrx"]),
            ("limits", "memory_bytes", (64 << 20) + 1),
            ("limits", "cpu_quota", 1.501),
            ("limits", "max_pids", 51),
        ]
        for group, name, value in wider:
            for op, agent in (("agent_add", "main/a/y"), ("agent_set", "main/a/x"), ("agent_add", "main/a/x/z")):
                with self.subTest(op=op, name=name):
                    details = self.assert_refused(self.client, "invalid_input", op, agent=agent, **{group: {name: value}})
                    self.assertEqual(details["field"], f"{group}.{name}")
        self.client.call("agent_set", agent="main/a/x", sandbox={"network": "none", "allow_write": ["/usr/lib"]}, limits=LIMITS)
        # What was given before does no harm, also where it is wider now.
        self.client.call("agent_set", agent="main/a", limits={"max_pids": 5})
        self.client.call("agent_set", agent="main/a/x", sandbox={"network": "none"})
        self.assertEqual(self.given("main/a/x"), ({"network": "none"}, LIMITS))

    def test_b105_full_only_from_above(self):
        """Main has no ceiling; an agent that got none has the usual one, and cannot give more."""
        self.client.call("agent_add", agent="main/a")
        self.client.call("agent_add", agent="main/wide", sandbox={"profile": "full"})
        self.assert_refused(self.client, "invalid_input", "agent_add", agent="main/a/x", sandbox={"profile": "full"})
        self.client.call("agent_add", agent="main/wide/x", sandbox={"profile": "full"})
        self.client.call("agent_add", agent="main/a/x", sandbox={"profile": "workspace-write"})

    def test_b105_refused(self):
        wrong = [
            ("sandbox", {"nothing": 1}, "sandbox.nothing"),
            ("sandbox", [], "sandbox"),
            ("sandbox", {"tolerate": ["files"]}, "sandbox.tolerate"),
            ("sandbox", {"protect": [".."]}, "sandbox.protect[0]"),
            ("limits", {"cpu_quota": 0}, "limits.cpu_quota"),
        ]
        for group, value, field in wrong:
            details = self.assert_refused(self.client, "invalid_input", "agent_add", agent="main/a", **{group: value})
            self.assertEqual(details["field"], field)
        self.assertEqual(self.agents(self.client), ["main"])

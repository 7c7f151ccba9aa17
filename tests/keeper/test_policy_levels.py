"""Policy over a tree of agents: a level only ever narrows, and some commands are blocked whatever the levels say (B-095, B-104)."""

from lib.client import KeeperError
from lib.records import LABELS, RecordsCase

OPEN = "[policy]\n" + "".join(f"risk.{label} = allow\n" for label in LABELS)
NARROW = {"denied_commands": ["forbidden"], "risk": {"sudo": "deny"}, "deny_patterns": ["DROP TABLE"]}


class NarrowingTest(RecordsCase):
    def setUp(self):
        super().setUp()
        _, self.mark = self.marker("forbidden")
        self.boss = self.agent("main/boss", policy=NARROW)

    def is_blocked(self, client, argv=("forbidden",), status="blocked", **args):
        """Blocked when looked at, and when tried."""
        args = {"argv": list(argv), "env": self.search_path(), **self.granted(), **args}
        self.assertEqual(client.call("check", **args)["status"], status)
        with self.assertRaises(KeeperError) as caught:
            client.call("spawn", **args)
        self.assertEqual((caught.exception.code, caught.exception.details["status"]), ("permission_denied", status))
        self.assertFalse(self.mark.exists())
        return caught.exception.details

    def test_b104_child_has_what_its_parent_has(self):
        """A child without rules of its own, and a grandchild, are held by those above, which are named as the source."""
        kid = self.agent("kid", by=self.boss)
        baby = self.agent("baby", by=kid, policy={"mode": "enforce"})
        for client in (kid, baby):
            for argv in (["forbidden"], ["sudo", "-n", "true"], ["echo", "DROP TABLE x"]):
                details = self.is_blocked(client, argv)
                self.assertEqual(details["command_policy"]["decisions"][0]["source"], "agent main/boss")

    def test_b104_child_cannot_be_wider(self):
        """Allowing in a child what is denied above changes nothing, at its birth and later."""
        wide = {"allowed_commands": ["forbidden", "sudo", "echo"], "risk": {label: "allow" for label in LABELS},
                "mode": "enforce", "denied_commands": [], "deny_patterns": []}
        kid = self.agent("kid", by=self.boss, policy=wide)
        self.is_blocked(kid)
        self.is_blocked(kid, ["sudo", "-n", "true"])
        for policy in (wide, {}, None):
            self.boss.call("agent_set", agent="kid", policy=policy)
            self.is_blocked(kid)
            self.is_blocked(kid, ["echo", "DROP TABLE x"])

    def test_b104_allow_lists_intersect(self):
        """Only what every level allows is allowed."""
        folder = self.agent("main/outer", policy={"allowed_commands": ["true", "echo"]})
        inner = self.agent("inner", by=folder, policy={"allowed_commands": ["echo", "cat"]})
        verdicts = {name: inner.call("check", argv=[name])["status"] for name in ("true", "echo", "cat", "ls")}
        self.assertEqual(verdicts, {"true": "blocked", "echo": "allowed", "cat": "blocked", "ls": "blocked"})

    def test_b104_mode_of_a_parent_holds(self):
        """A parent that only explains has no child that runs; the stricter mode of two wins."""
        outer = self.agent("main/outer", policy={"mode": "explain_only"})
        self.is_blocked(self.agent("plain", by=outer, policy={"mode": "enforce"}), status="explain_only")
        self.is_blocked(self.agent("dry", by=outer, policy={"mode": "dry_run"}), status="dry_run")

    def test_b104_no_call_of_the_agent_helps(self):
        """An agent cannot change its own policy or one above it, log in as another, or ask as somebody else."""
        for args in ({"agent": "main/boss"}, {"agent": "main"}, {"agent": "main/boss", "principal": "uid:0"}):
            with self.subTest(args=args), self.assertRaises(KeeperError) as caught:
                self.boss.call("agent_set", policy={}, **args)
            self.assertIn(caught.exception.code, ("invalid_input", "permission_denied"))
        for op, args in (
            ("token_new", {"agent": "main"}),
            ("agent_add", {"agent": "main/free"}),
            ("agent_remove", {"agent": "main/boss"}),
            ("agent_add", {"agent": "main", "principal": "somebody"}),
            ("check", {"agent": "main", "argv": ["true"]}),
        ):
            with self.subTest(op=op, args=args), self.assertRaises(KeeperError) as caught:
                self.boss.call(op, **args)
            self.assertIn(caught.exception.code, ("invalid_input", "permission_denied"))
        for op in ("reload", "shutdown", "audit_tail", "audit_verify"):
            with self.subTest(op=op), self.refused("permission_denied"):
                self.boss.call(op)
        with self.refused("invalid_input"):
            self.boss.call("login", token=self.token("main"))
        with self.refused("invalid_input"):
            self.boss.call("spawn", argv=["forbidden"], agent="main", env=self.search_path(), **self.granted())
        self.is_blocked(self.boss)

    def test_b104_change_above_holds_at_once(self):
        """What is narrowed above holds for the next spawn of connections that are already there; what runs goes on."""
        kid = self.agent("kid", by=self.boss)
        running = kid.call("spawn", argv=["sleep", "300"])["process"]["id"]
        self.client.call("agent_set", agent="main/boss", policy={"denied_commands": ["sleep", "forbidden"]})
        self.is_blocked(kid, ["sleep", "1"])
        self.assertEqual(kid.call("status", id=running)["process"]["state"], "running")
        shown = self.client.call("agent_show", agent="main/boss")["agent"]["settings"]["policy"]
        self.assertEqual(sorted(shown["denied_commands"]), ["forbidden", "sleep"])

    def test_b104_wrong_policies_are_refused(self):
        """Unknown members, labels, actions and wrong types are invalid_input that names the place; nothing is added."""
        bad = [
            {"unknown": []},
            {"denied_commands": "rm"},
            {"denied_commands": [7]},
            {"denied_commands": [""]},
            {"allowed_commands": {}},
            {"risk": {"nonsense": "deny"}},
            {"risk": {"sudo": "maybe"}},
            {"risk": ["sudo"]},
            {"mode": "off"},
            {"deny_patterns": ["x" * 2000]},
            {"deny_patterns": ["x"] * 2000},
            [],
            "deny",
        ]
        for policy in bad:
            with self.subTest(policy=str(policy)[:60]):
                with self.assertRaises(KeeperError) as caught:
                    self.client.call("agent_add", agent="main/new", policy=policy)
                self.assertIn(caught.exception.code, ("invalid_input", "too_large"))
                self.assertTrue(caught.exception.details["field"].startswith("policy"), caught.exception.details)
        paths = [agent["path"] for agent in self.client.call("agent_list")["agents"]]
        self.assertEqual(paths, ["main", "main/boss"])


class CatastropheTest(RecordsCase):
    """Nothing here could do harm if it were started: the programs are found in a folder of the test's alone, or only looked at."""

    conf = OPEN

    LINES = [
        "rm -rf /",
        "rm -fr /",
        "rm -r -f /",
        "rm -rf /*",
        "rm --recursive --force --no-preserve-root /",
        "rm -rf //",
        "rm -rf /tmp/..",
        "sudo rm -rf /",
        "true; rm -rf /",
        "mkfs.ext4 /dev/sda",
        "dd if=/dev/zero of=/dev/sda",
        ":(){ :|:& };:",
    ]

    def test_b104_blocked_with_everything_allowed(self):
        """With every label allowed they are blocked by the built-in list."""
        for line in self.LINES:
            with self.subTest(line=line):
                answer = self.client.call("check", mode="shell", command=line)
                self.assertEqual(answer["status"], "blocked", answer)
                self.assertEqual(answer["command_policy"]["decisions"][0]["source"], "built-in")
                self.assertEqual(answer["command_policy"]["decisions"][0]["action"], "deny")
        self.assertEqual(self.client.call("check", mode="shell", command="rm -rf /tmp/x")["status"], "allowed")

    def test_b104_blocked_when_tried(self):
        """Also for the operator, by argv, in shells and terminals, and for an agent with everything allowed."""
        _, mark = self.marker("rm")
        agent = self.agent("main/a", policy={"risk": {label: "allow" for label in LABELS}, "mode": "enforce"})
        search = {"env": self.search_path(only=True), "env_mode": "replace", **self.granted()}
        shell = {"mode": "shell", "command": "rm -rf /", "shell": "sh"}
        ways = ({"argv": ["rm", "-rf", "/"]}, shell, {**shell, "kind": "pty"}, {"argv": ["rm", "-rf", "/"], "kind": "pty"})
        for client in (self.client, agent):
            for args in ways:
                with self.subTest(args=args), self.refused("permission_denied"):
                    client.call("spawn", **search, **args)
        self.assertFalse(mark.exists())
        # The control: the same program with other words does run.
        process = self.client.call("spawn", argv=["rm", "-rf", "x"], **search)["process"]["id"]
        self.client.call("wait", id=process)
        self.assertTrue(mark.exists())

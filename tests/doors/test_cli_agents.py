"""Agents, tokens and sessions from the command line: as somebody types it, and as programs read it."""

import json
import re

from lib import procs
from lib.cli import CliCase


class AgentCase(CliCase):
    def token(self, agent, *options):
        """A new token of an agent."""
        return self.out("token", "new", agent, *options).decode().strip()

    def as_agent(self, agent):
        """The environment in which coop acts as an agent."""
        return {**self.env, "COOP_TOKEN": self.token(agent)}


class AgentTest(AgentCase):
    def test_add_show_set_rm(self):
        """An agent is added with settings, shown, changed, and removed with what it runs."""
        agent = self.json("agent", "add", "tester", "--max-running", "3", "--max-buffer", "64M", "--workspace", self.place.dir)
        self.assertEqual((agent["path"], agent["settings"]["max_running"]), ("main/tester", 3))
        self.assertEqual(agent["settings"]["max_buffer_bytes"], 64 << 20)
        self.assertEqual(agent["effective"]["workspace"], [str(self.place.dir)])
        self.assertRegex(self.out("agent", "show", "tester").decode(), r"(?s)^main/tester\n.*\n  running +0 of 3\n")

        agent = self.json("agent", "set", "main/tester", "--max-running", "2", "--unset", "workspace", "--unset", "max-buffer")
        self.assertEqual(agent["settings"]["max_running"], 2)
        self.assertIsNone(agent["settings"]["workspace"])
        self.assertIsNone(agent["settings"]["max_buffer_bytes"])

        self.coop("agent", "set", "tester", "--workspace", self.place.work)
        env = self.as_agent("tester")
        process = self.out("run", "-d", "--", "sleep", "300", env=env).decode().strip()
        pid = self.json("status", process)["pid"]
        self.assertEqual(self.out("agent", "rm", "tester"), b"1 agent removed, 1 process ended\n")
        self.assertFalse(procs.alive(pid))
        self.assertIn("tester", self.refusal("agent", "show", "tester", code=1))

    def test_what_is_given_besides_limits(self):
        """Variables, metadata, an end, a folder of its own: given, shown without values, taken away again."""
        self.env["COOP_DATA"] = str(self.place.dir / "data")
        agent = self.json("agent", "add", "a", "--env", "ONE=1=2", "--env", "TWO=hidden", "--metadata", "user=me", "--expires", "1h", "--folder")
        self.assertEqual((agent["env_names"], agent["metadata"]), (["ONE", "TWO"], {"user": "me"}))
        self.assertTrue(agent["expires_at"])
        self.assertEqual(agent["settings"]["workspace"], [agent["folder"]])
        shown = self.out("agent", "show", "a").decode()
        for line in ("expires +20", f"own folder +{agent['folder']}", "variables +ONE\n +TWO", "metadata +user=me"):
            self.assertRegex(shown, rf"(?m)^  {line}")
        self.assertNotIn("hidden", shown)
        env = self.as_agent("a")
        self.assertEqual(self.out("run", "--", "sh", "-c", "pwd; echo $ONE", env=env, cwd=agent["folder"]).decode(), f"{agent['folder']}\n1=2\n")
        agent = self.json("agent", "set", "a", "--unset", "env", "--unset", "metadata", "--unset", "expires")
        self.assertEqual((agent["env_names"], agent["metadata"], agent["expires_at"]), ([], {}, None))
        self.assertIn("--folder", self.refusal("agent", "set", "a", "--folder", code=2))
        self.coop("agent", "rm", "a")

    def test_workspace_is_absolute(self):
        """A relative folder is meant from where it was typed."""
        (self.place.dir / "here").mkdir()
        agent = self.json("agent", "add", "a", "--workspace", "here", cwd=self.place.dir)
        self.assertEqual(agent["settings"]["workspace"], [str(self.place.dir / "here")])

    def test_policy_is_changed_in_parts(self):
        """A list that is named replaces its own, a risk its own label, and the rest of the policy stays."""
        self.coop("agent", "add", "a", "--deny-command", "rm", "--deny-command", "dd", "--risk", "sudo=deny")

        def policy(*options):
            policy = self.json("agent", "set", "a", *options)["settings"]["policy"]
            return {name: value for name, value in policy.items() if value and value != "enforce"}

        self.assertEqual(policy("--risk", "write_intent=deny"),
                         {"denied_commands": ["rm", "dd"], "risk": {"sudo": "deny", "write_intent": "deny"}})
        self.assertEqual(policy("--deny-command", "shred")["denied_commands"], ["shred"])
        self.assertEqual(policy("--unset", "deny-command", "--mode", "dry_run"),
                         {"risk": {"sudo": "deny", "write_intent": "deny"}, "mode": "dry_run"})
        self.assertIn("policy", self.out("agent", "ls").decode())
        self.assertIsNone(self.json("agent", "set", "a", "--unset", "risk", "--unset", "mode")["settings"]["policy"])
        self.coop("agent", "set", "a", "--allow-command", "")
        self.assertRegex(self.out("agent", "show", "a").decode(), r"\n  allow only +\(nothing\)\n")
        self.assertIsNone(self.json("agent", "set", "a", "--unset", "policy")["settings"]["policy"])
        self.assertNotIn("policy", self.out("agent", "ls").decode())

    def test_tree(self):
        """ls shows the tree, parents first, with use and limits."""
        for args in (("a",), ("b", "--parent", "a", "--persistent"), ("c", "--parent", "main/a/b"), ("z",)):
            if "--persistent" in args:
                self.coop("agent", "set", "a", "--persistent")
            self.add_agent(*args)
        self.coop("run", "-d", "--", "sleep", "300", env=self.as_agent("a/b"))
        lines = self.out("agent", "ls").decode().splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["PATH", "main", "a", "b", "c", "z"])
        self.assertEqual([len(line) - len(line.lstrip()) for line in lines], [0, 0, 2, 4, 6, 2])
        running = {line.split()[0]: line.split()[1] for line in lines[1:]}
        self.assertEqual({name: text.split("/")[0] for name, text in running.items()},
                         {"main": "1", "a": "1", "b": "1", "c": "0", "z": "0"})
        self.assertIn("persistent", lines[3])
        self.assertEqual([agent["path"] for agent in self.json("agent", "ls")],
                         ["main", "main/a", "main/a/b", "main/a/b/c", "main/z"])

    def test_refusals(self):
        """What cannot be is refused in one line, in the words that were typed."""
        self.coop("agent", "add", "a", "--max-running", "2")
        cases = [
            (("agent", "add", "a"), 1, "coop: a: "),
            (("agent", "add", "bad name"), 1, "bad name"),
            (("agent", "add", "x", "--parent", "nobody"), 1, "nobody/x: there is no such agent"),
            (("agent", "add", "x", "--parent", "a", "--max-running", "3"), 1, "--max-running: "),
            (("agent", "add", "x", "--workspace", "/nowhere"), 1, "--workspace /nowhere: "),
            (("agent", "add", "x", "--risk", "nonsense=deny"), 1, "--risk"),
            (("agent", "add", "x", "--risk", "sudo=perhaps"), 1, "--risk"),
            (("agent", "add", "x", "--risk", "sudo"), 2, "expected LABEL=ACTION"),
            (("agent", "add", "x", "--mode", "off"), 2, "enforce|dry_run|explain_only"),
            (("agent", "set", "a"), 2, "say what is to change"),
            (("agent", "set", "a", "--unset", "speed"), 2, "there is no such setting"),
            (("agent", "set", "a", "--unset", "mode", "--mode", "enforce"), 2, "--unset mode: it is set too"),
            (("agent", "set", "nobody", "--persistent"), 1, "nobody: there is no such agent"),
            (("agent", "rm", "main"), 1, "main"),
            (("agent", "rm", "a", "--grace", "31s"), 1, "--grace: at most 30s"),
            (("agent", "frob"), 2, "there is no frob; it is add, ls, show, set or rm"),
            (("agent",), 2, "say what: add, ls, show, set or rm"),
            (("token", "new", "nobody"), 1, "nobody: there is no such agent"),
            (("token", "new", "a", "--expires", "0"), 1, "--expires: at least 1ms"),
            (("token", "revoke", "x"), 1, "x is not the number of a token"),
            (("token", "revoke", "9999"), 1, "there is no token 9999"),
            (("session", "end", "ses-99"), 1, "ses-99: "),
            (("session", "new", "--lifetime", "0"), 1, "--lifetime: at least 1ms"),
            (("run", "--session", "ses-99", "--", "true"), 125, "--session: "),
            (("history", "--since", "yesterday"), 2, "an age such as 2h"),
            (("history", "--limit", "0"), 2, "--limit: at least 1"),
            (("policy", "check"), 2, "which command?"),
            (("policy", "check", "--agent", "nobody", "--", "true"), 1, "--agent nobody: there is no such agent"),
            (("audit", "tail", "-n", "0"), 1, "--count: at least 1"),
        ]
        for args, code, wanted in cases:
            with self.subTest(args=args):
                self.assertIn(wanted, self.refusal(*args, code=code))


class TokenTest(AgentCase):
    def test_acting_as_an_agent(self):
        """COOP_TOKEN and --token-file make coop act as the agent; the file wins; the command gets no token."""
        self.add_agent("a")
        self.add_agent("b")
        env = self.as_agent("a")
        path = self.place.dir / "token"
        path.touch(mode=0o600)
        path.write_text(self.token("b") + "\n")

        def who(*options, **more):
            return self.json("info", *options, **more)["you"]["agent"]

        self.assertEqual(who(), "main")
        self.assertEqual(who(env=env), "main/a")
        self.assertEqual(who("--token-file", path, env=env), "main/b")
        self.assertEqual(who(env={**self.env, "COOP_TOKEN": ""}), "main")
        seen = self.out("run", "--token-file", path, "--", "env", env=env)
        self.assertNotIn(b"COOP_TOKEN", seen)
        self.assertIn("main/b", {row["agent_path"] for row in self.json("ps", "-a")})

    def test_token_is_printed_alone(self):
        """On stdout the token and nothing else; what to do with it on stderr; never again in a list."""
        out, err = self.coop("token", "new", "--label", "for tests", "--expires", "1h")
        self.assertRegex(out, rb"^coop_\d+_\S+\n$")
        self.assertNotIn(out.strip(), err)
        self.assertIn(b"--token-file", err)
        listed = self.out("token", "ls").decode()
        self.assertNotIn(out.decode().strip(), listed)
        self.assertIn("for tests", listed)
        (token,) = self.json("token", "ls")
        self.assertEqual((token["agent"], token["label"]), ("main", "for tests"))

    def test_bad_tokens(self):
        """A token that is wrong, malformed, too long or revoked is an error of its own, for every verb; none acts as main."""
        good = self.token("main")
        number = re.match(r"coop_(\d+)_", good).group(1)
        self.assertEqual(self.out("token", "revoke", number), f"token {number} is revoked\n".encode())
        bad = {
            "nonsense": "permission_denied", good: "permission_denied", good[:-1] + "~": "permission_denied",
            "a\tb": "invalid_input", "x" * 257: "invalid_input", "x" * 100000: "invalid_input",
        }
        for token, code in bad.items():
            env = {**self.env, "COOP_TOKEN": token}
            for args, failure in ((("ps",), 1), (("run", "--", "true"), 125), (("agent", "ls"), 1), (("info",), 1)):
                with self.subTest(token=token[:20], args=args):
                    text = self.refusal(*args, code=failure, env=env)
                    self.assertIn("COOP_TOKEN: ", text)
                    self.assertNotIn(token, text)
                    out, _ = self.coop(args[0], "--json", *args[1:], code=failure, env=env)
                    self.assertEqual(json.loads(out)["error"]["code"], code)

    def test_token_files(self):
        """A file that others can read, that is empty or not there is refused, and named."""
        path = self.place.dir / "token"
        self.assertIn("No such file", self.refusal("ps", "--token-file", path, code=1))
        path.touch(mode=0o600)
        self.assertIn("empty", self.refusal("ps", "--token-file", path, code=1))
        path.write_text("secret-of-mine\n")
        path.chmod(0o644)
        text = self.refusal("ps", "--token-file", path, code=1)
        self.assertIn("others can read it", text)
        self.assertNotIn("secret", text)
        path.chmod(0o600)
        self.coop("run", "true")
        text = self.refusal("ps", "--token-file", path, code=1)
        self.assertIn(f"--token-file {path}: no such token", text)
        self.assertNotIn("secret", text)

    def test_what_an_agent_sees(self):
        """An agent sees the keeper's numbers no more; ps of the one above shows whose a process is."""
        self.add_agent("a")
        env = self.as_agent("a")
        self.coop("run", "-d", "--tag", "own", "--", "sleep", "300")
        self.assertNotIn(b"AGENT", self.out("ps"))
        self.coop("run", "-d", "--tag", "theirs", "--", "sleep", "300", env=env)
        text = self.out("ps").decode()
        self.assertRegex(text, r"(?m)^ID +AGENT ")
        self.assertRegex(text, r"(?m)^psh-\S+ +self .*own")
        self.assertRegex(text, r"(?m)^psh-\S+ +main/a .*theirs")
        self.assertEqual(self.out("ps", "-q", "--agent", "a"), self.out("ps", "-q", "--tag", "theirs"))
        self.assertNotIn(b"AGENT", self.out("ps", env=env))
        self.assertEqual(len(self.json("ps", env=env)), 1)
        self.assertIn("belongs to an agent below", self.refusal("kill", "theirs", code=1))
        info = self.out("info", env=env).decode()
        self.assertIn("main/a of uid:", info)
        self.assertNotIn("socket", info)
        self.coop("top", env=env)
        self.coop("doctor", env=env)
        for verb in (("audit", "tail"), ("audit", "verify"), ("reload",), ("shutdown",)):
            self.refusal(*verb, code=1, env=env)

    def test_watching_below(self):
        """The output of an agent below can be followed, also where it waits for a reader; it is not taken away."""
        self.add_agent("a")
        env = self.as_agent("a")
        self.coop("run", "-d", "--tag", "t", "--overflow", "backpressure", "--", "sh", "-c", "echo one; sleep 0.2; echo two", env=env)
        for _ in range(2):
            self.assertEqual(self.out("logs", "-f", "t"), b"one\ntwo\n")
        self.assertEqual(self.out("wait", "t"), self.out("wait", "t", env=env))
        self.refusal("stdin", "t", code=1, data=b"x")

    def test_limit_in_words(self):
        """A command over a limit says whose limit, and what helps."""
        self.add_agent("a", "--max-running", "1")
        env = self.as_agent("a")
        self.assertIn("--persistent grants it", self.refusal("run", "-d", "--lease", "persistent", "true", code=125, env=env))
        self.coop("run", "-d", "--", "sleep", "300", env=env)
        self.assertIn("coop ps", self.refusal("run", "--", "true", code=125, env=env))
        self.coop("agent", "add", "b", "--parent", "a")
        self.assertIn("an agent above", self.refusal("run", "--", "true", code=125, env=self.as_agent("a/b")))


class SessionTest(AgentCase):
    def test_session(self):
        """new prints the id, run --session starts in it, ls counts, end ends it with its processes."""
        session = self.out("session", "new", "--label", "tests").decode().strip()
        process = self.detached("sleep", "300", options=("--session", session))
        other = self.detached("sleep", "300")
        self.assertEqual(self.out("ps", "-q", "--session", session).decode().split(), [process])
        self.assertEqual(self.out("ps", "-q", "--session", "default").decode().split(), [other])
        self.assertIn(session, self.out("status", process).decode())
        self.assertRegex(self.out("session", "ls").decode(), rf"(?m)^{session} +main .* 1 +tests$")
        self.assertEqual(self.out("session", "end", session), f"{session} has ended, with 1 process\n".encode())
        self.assertEqual(self.json("status", process)["end_cause"], "session_end")
        self.assertEqual(self.json("status", other)["state"], "running")
        self.assertNotIn(session, {row["id"] for row in self.json("session", "ls")})

    def test_looking_starts_no_keeper(self):
        """session ls and cancel find nothing without a keeper, and start none."""
        self.assertEqual(self.json("session", "ls"), [])
        self.assertEqual(self.json("cancel", "x"), {"cancelled": [], "survivors": 0})
        self.assertFalse(self.place.socket.exists())

    def test_cancel(self):
        """All that carries the call id is ended; that nothing does is no failure."""
        ids = {self.detached("sleep", "300", options=("--call-id", "call-7")) for _ in range(2)}
        other = self.detached("sleep", "300", options=("--call-id", "call-8"))
        self.assertIn("call-7", self.out("status", min(ids)).decode())
        self.assertEqual(set(self.json("cancel", "call-7")["cancelled"]), ids)
        self.assertEqual({self.json("status", process)["end_cause"] for process in ids}, {"cancelled"})
        self.assertEqual(self.json("status", other)["state"], "running")
        self.assertIn(b"nothing of yours", self.out("cancel", "call-7"))

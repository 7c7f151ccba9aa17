"""Acting as an agent by the command line: COOP_TOKEN and --token-file, good and bad, and several agents at once."""

import json
import os
import threading
import time

from lib.cli import ONE_LINE, CliCase


class TokensCase(CliCase):
    def token(self, agent="main", *options):
        """A new token's text."""
        return self.out("token", "new", agent, *options).decode().strip()

    def token_file(self, token, name="token", mode=0o600):
        path = self.place.dir / name
        path.write_bytes(token if isinstance(token, bytes) else token.encode() + b"\n")
        path.chmod(mode)
        return path

    def as_agent(self, token):
        """The environment of a program that acts by a token."""
        return {**self.env, "COOP_TOKEN": token}


class AgentVerbsTest(TokensCase):
    def test_every_option_arrives(self):
        """Every option of agent add and set is in the agent's settings as the socket shows them."""
        folder = self.place.dir / "work"
        folder.mkdir()
        self.coop("agent", "add", "tester", "--max-running", "5", "--max-buffer", "8M", "--max-finished", "7", "--persistent",
                  "--restricted", "--workspace", "work", "--deny-command", "cat", "--deny-command", "ls", "--allow-command", "true",
                  "--allow-command", "sleep", "--deny-pattern", "*x*", "--risk", "sudo=deny", "--mode", "enforce", cwd=self.place.dir)
        client = self.client()
        settings = client.call("agent_show", agent="main/tester")["agent"]["settings"]
        wanted = {"max_running": 5, "max_buffer_bytes": 8 << 20, "max_finished": 7, "persistent": True, "restricted": True,
                  "workspace": [os.path.realpath(folder)]}
        self.assertEqual({name: settings[name] for name in wanted}, wanted)
        policy = settings["policy"]
        self.assertEqual((policy["denied_commands"], policy["allowed_commands"]), (["cat", "ls"], ["true", "sleep"]))
        self.assertEqual((policy["deny_patterns"], policy["risk"]), (["*x*"], {"sudo": "deny"}))
        self.coop("agent", "add", "kid", "--parent", "tester", "--allow-command", "")
        self.coop("agent", "set", "tester", "--max-running", "6", "--risk", "process_kill=deny", "--unset", "deny-command")
        settings = client.call("agent_show", agent="main/tester")["agent"]["settings"]
        self.assertEqual((settings["max_running"], settings["policy"]["risk"]), (6, {"sudo": "deny", "process_kill": "deny"}))
        self.assertFalse(settings["policy"].get("denied_commands"))
        self.assertEqual(settings["max_finished"], 7, "what is not named stays")
        kid = client.call("agent_show", agent="main/tester/kid")["agent"]["settings"]["policy"]
        self.assertEqual(kid["allowed_commands"], [], "the empty list is not the absent one")

    def test_removal_ends_its_trees_only(self):
        """rm ends what the agent and those below it run, and nothing else."""
        self.add_agent("a"), self.coop("agent", "add", "b", "--parent", "a")
        mine = self.detached("sleep", "300")
        envs = [self.as_agent(self.token(name)) for name in ("a", "a/b")]
        for env in envs:
            self.out("run", "-d", "--", "sleep", "300", env=env)
        self.assertRegex(self.out("agent", "rm", "a").decode(), "2 agents removed, 2 processes ended")
        self.assertEqual(self.json("ps", "-q"), [mine])
        for env in envs:
            self.refusal("ps", code=1, env=env)

    def test_wrong_words(self):
        """Wrong names, unknown agents, missing words: one line, nothing made; control characters do not come back."""
        self.coop("agent", "add", "a")
        cases = [("agent", "add", "a"), ("agent", "add", "x\ny"), ("agent", "add", "\x1b[31m"), ("agent", "add", ""),
                 ("agent", "add", "a" * 65), ("agent", "add", "a/" * 300 + "a"), ("agent", "add", "b", "--parent", "nobody"),
                 ("agent", "show", "nobody"), ("agent", "rm", "main"), ("agent", "set", "main", "--max-running", "1"),
                 ("agent", "add", "b", "--max-running", "100000000"), ("agent", "add", "b", "--workspace", "/nonexistent"),
                 ("agent", "add", "b", "--risk", "nonsense=deny"), ("token", "new", "nobody"), ("token", "revoke", "999"),
                 ("session", "end", "ses-999")]
        for args in cases:
            with self.subTest(args=str(args)[:60]):
                out, err = self.coop(*args, code=None)
                self.assertIn(self.code, (1, 2), err)
                self.assertRegex(err.decode(), ONE_LINE)
                self.assertNotIn(b"\x1b", err)
                self.assertEqual(out, b"")
        for args in (("agent",), ("agent", "frobnicate"), ("token",), ("token", "new", "a", "b"), ("agent", "add"), ("session", "new", "x"),
                     ("agent", "set", "a"), ("agent", "set", "a", "--unset", "nothing"), ("token", "revoke"), ("policy",), ("audit",)):
            with self.subTest(args=args):
                self.coop(*args, code=2)
        paths = [agent["path"] for agent in self.client().call("agent_list")["agents"]]
        self.assertEqual(paths, ["main", "main/a"])


class TokenTest(TokensCase):
    def test_option_goes_over_the_variable(self):
        """Every verb acts as the token's agent; --token-file wins over COOP_TOKEN; who may see may not always touch."""
        self.add_agent("a"), self.add_agent("b")
        env = self.as_agent(self.token("a"))
        mine = self.out("run", "-d", "--", "sleep", "300", env=env).decode().strip()
        self.assertEqual(self.json("ps", "-q", env=env), [mine])
        file = self.token_file(self.token("b"))
        self.assertEqual(self.json("ps", "-q", "--token-file", file, env=env), [])
        self.assertEqual(self.json("info", "--token-file", file)["you"]["agent"], "main/b")
        self.coop("status", mine, "--token-file", file, code=1)
        self.assertEqual(self.json("status", mine)["agent"], "a")
        self.coop("kill", mine, code=1)
        self.coop("kill", mine, env=env)
        out, _ = self.coop("run", "--token-file", file, "--", "sh", "-c", "echo hi; exit 3", code=3)
        self.assertEqual(out, b"hi\n")

    def test_revoked_while_in_use(self):
        """A revoked token ends what acts by it, and is refused afterwards; its text is nowhere to be seen again."""
        token = self.token("main", "--label", "mine", "--expires", "1h")
        self.assertRegex(token, r"^coop_[0-9]+_\S+$")
        listed = self.out("token", "ls").decode() + self.out("token", "ls", "--json").decode()
        self.assertIn("mine", listed)
        self.assertNotIn(token.rsplit("_", 1)[1], listed)
        env = self.as_agent(token)
        watching = self.start("events", "--json", env=env)
        self.coop("run", "--", "true", env=env)
        watching.stdout.readline()
        number = token.split("_")[1]
        self.coop("token", "revoke", number)
        self.assertNotEqual(watching.wait(30), 0)
        self.refusal("ps", code=1, env=env)
        self.refusal("token", "revoke", number, code=1)

    def test_many_agents_at_once(self):
        """Four programs at once as four agents, on one new keeper: each sees its own."""
        for number in range(4):
            self.add_agent(f"a{number}")
        envs = [self.as_agent(self.token(f"a{number}")) for number in range(4)]
        ids, seen = [None] * 4, [None] * 4

        def drive(number):
            ids[number] = self.out("run", "-d", "--", "sleep", "300", env=envs[number]).decode().strip()
            seen[number] = self.json("ps", "-q", env=envs[number])

        threads = [threading.Thread(target=drive, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, [[process] for process in ids])
        self.assertEqual(sorted(self.json("ps", "-q")), sorted(ids))

    def test_bad_tokens(self):
        """Wrong, long and strange tokens, by variable and by file: one line, no secret in it, nothing started as anybody."""
        good = self.token()
        wrong = [b"x", b"coop_1_", good.encode() + b"0", b"a b", b"\x1b[31m", b"\xff\xfe", b"y" * 100000]
        for token in wrong:
            with self.subTest(token=token[:12]):
                env = {**self.env, "COOP_TOKEN": token}
                for text in (self.refusal("ps", code=1, env=env), self.refusal("ps", "--token-file", self.token_file(token), code=1)):
                    self.assertLess(len(text), 400)
                    self.assertNotIn(good.rsplit("_", 1)[1], text)
                    self.assertNotIn("\x1b", text)
                self.refusal("run", "--", "touch", self.place.dir / "started", code=125, env=env)
        self.assertFalse((self.place.dir / "started").exists())
        self.coop("ps", env=self.as_agent(good))

    def test_bad_token_files(self):
        """Missing, empty, a folder, 10 MB, with NUL, readable by others: refused with the file's name."""
        good = self.token()
        files = {
            "missing": self.place.dir / "missing",
            "folder": self.place.dir,
            "empty": self.token_file(b"", "empty"),
            "blank": self.token_file(b"\n" + good.encode() + b"\n", "blank"),
            "long": self.token_file(b"x" * 10_000_000, "long"),
            "long line": self.token_file(good.encode() + b"x" * 10_000_000 + b"\n", "long-line"),
            "nul": self.token_file(good.encode() + b"\0\n", "nul"),
            "open": self.token_file(good, "open", mode=0o644),
        }
        for name, path in files.items():
            with self.subTest(file=name):
                text = self.refusal("ps", "--token-file", path, code=1)
                self.assertIn(str(path), text)
                self.assertNotIn(good.rsplit("_", 1)[1], text)
        for name, data in {"no newline": good.encode(), "crlf": good.encode() + b"\r\n", "more lines": good.encode() + b"\nnote\n"}.items():
            with self.subTest(file=name):
                self.coop("ps", "--token-file", self.token_file(data, "good"))

    def test_token_by_a_pipe(self):
        """A pipe that somebody writes to is read; a FIFO without a writer is refused soon."""
        fifo = self.place.dir / "fifo"
        os.mkfifo(fifo, 0o600)
        self.assertIn(str(fifo), self.refusal("ps", "--token-file", fifo, code=1))
        token = self.token()
        read, write = os.pipe()
        os.write(write, token.encode() + b"\n")
        os.close(write)
        self.coop("ps", "--token-file", f"/dev/fd/{read}", pass_fds=[read])
        os.close(read)
        looking = self.start("ps", "--token-file", fifo)
        with open(fifo, "w") as file:
            time.sleep(0.2)
            file.write(token)
        self.assertEqual(looking.wait(30), 0)

    def foreground(self, *options):
        """coop run as an agent whose only token has the number 1; waits until the command runs."""
        self.add_agent("a")
        env = self.as_agent(self.token("a"))
        process = self.start("run", *options, "--", "sh", "-c", "echo up; exec sleep 300", env=env)
        self.assertEqual(process.stdout.readline(), b"up\n")
        return process

    def words_of(self, process):
        self.assertNotEqual(process.wait(30), 0)
        text = process.stderr.read().decode()
        self.assertRegex(text, ONE_LINE)
        return text

    def test_agent_removed_in_the_middle(self):
        """coop run says that its agent was removed, and the command with it."""
        process = self.foreground()
        self.coop("agent", "rm", "a")
        self.assertRegex(self.words_of(process), r"agent has been removed: psh-\S+ was ended with it")

    def test_token_revoked_in_the_middle(self):
        """coop run says that its token is not valid any more, and whether the command goes on."""
        for lease, fate in (("ephemeral", "ends with this coop run"), ("awaited", "goes on")):
            with self.subTest(lease=lease):
                process = self.foreground("--lease", lease)
                self.coop("token", "revoke", self.json_of_tokens()[0]["id"])
                self.assertRegex(self.words_of(process), rf"not valid any more: psh-\S+ {fate}")
                self.coop("agent", "rm", "a")

    def json_of_tokens(self):
        return json.loads(self.out("token", "ls", "--json"))

    def test_refusals_in_plain_words(self):
        """Nobody is told of --cwd who did not type it, of a variable twice, or of a limit without what was needed."""
        self.coop("agent", "add", "a", "--workspace", self.place.work, "--restricted")
        env = self.as_agent(self.token("a"))
        hidden = self.place.dir / "hidden"
        hidden.mkdir()
        text = self.refusal("run", "--", "true", code=125, env=env, cwd=hidden)
        self.assertIn(f"coop: the current folder {hidden} cannot be entered by the command", text)
        self.assertIn(f"coop: --cwd: {hidden} cannot be entered", self.refusal("run", "--cwd", hidden, "--", "true", code=125, env=env))
        self.assertEqual(self.out("run", "--", "pwd", env=env, cwd="/"), b"/\n")
        text = self.refusal("run", "-e", "LD_PRELOAD=x", "--", "true", code=125, env=env)
        self.assertEqual(text.count("LD_PRELOAD"), 1, text)
        self.coop("agent", "set", "a", "--max-buffer", "1M")
        text = self.refusal("run", "--", "true", code=125, env=env)
        self.assertRegex(text, r"2\.0M are needed; coop run --ring SIZE asks for less")
        mine = self.out("run", "-d", "--ring", "64K", "--", "sleep", "300", env=env).decode().strip()
        text = self.refusal("kill", mine, code=1)
        self.assertNotIn("(", text)
        self.assertIn("--principal nobody: ", self.refusal("token", "new", "--principal", "nobody", code=1))
        self.assertIn("--env A: given twice", self.refusal("run", "-e", "A=1", "-e", "A=2", "--", "true", code=125))

    def test_empty_variable_is_nobody_else(self):
        """COOP_TOKEN set to nothing is as if it were not set."""
        self.add_agent("a")
        self.assertEqual(self.json("info", env={**self.env, "COOP_TOKEN": ""})["you"], self.json("info")["you"])

    def test_token_does_not_reach_commands(self):
        """A command that an agent starts does not get the token in its environment."""
        out = self.out("run", "--", "env", env=self.as_agent(self.token()))
        self.assertNotIn(b"COOP_TOKEN", out)

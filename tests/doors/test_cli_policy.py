"""Policy by the command line: the same verdict as over the socket, explained, and nothing started (B-087, B-095, B-100, B-101)."""

import json
import os

from lib.cli import CliCase

SECRET = "hunter2-Tr0ub4dor"


class PolicyCase(CliCase):
    def setUp(self):
        super().setUp()
        self.mark = self.place.work / "mark"
        folder = self.place.work / "bin"
        folder.mkdir()
        (folder / "forbidden").write_text(f"#!/bin/sh\n: >{self.mark}\n")
        (folder / "forbidden").chmod(0o755)
        self.env["PATH"] = f"{folder}:{self.env.get('PATH', '/usr/bin:/bin')}"

    def agent(self, name="a", *options):
        """Adds an agent; the environment of a program that acts as it."""
        self.add_agent(name, *options)
        return {**self.env, "COOP_TOKEN": self.out("token", "new", name).decode().strip()}

    def check(self, *args, **options):
        return json.loads(self.out("policy", "check", "--json", *args, **options))


class RunTest(PolicyCase):
    def test_b095_run_is_judged_in_every_form(self):
        """coop run with pipes, detached, in a terminal and with a shell: blocked, one line that says why, nothing started."""
        env = self.agent("a", "--deny-command", "forbidden")
        forms = [
            ("run", "--", "forbidden"),
            ("run", "-d", "--", "forbidden"),
            ("run", "--", str(self.place.work / "bin" / "forbidden")),
            ("run", "--shell", "--", "true; forbidden"),
            ("run", "-d", "--shell", "--", "forbidden"),
            ("run", "--", "sh", "-c", "forbidden"),
        ]
        for form in forms:
            with self.subTest(form=form):
                text = self.refusal(*form, code=126, env=env)
                self.assertIn("forbidden", text)
        self.assertFalse(self.mark.exists())
        self.assertEqual(self.json("ps", "-q", "--all", env=env), [])
        self.coop("run", "--", "forbidden")
        self.assertTrue(self.mark.exists(), "the control: without the rule it runs")

    def test_b095_run_in_a_terminal(self):
        """The same with -t."""
        env, self.env = self.env, self.agent("a", "--deny-command", "forbidden")
        terminal = self.terminal("run", "-t", "--", "forbidden")
        self.assertEqual(terminal.wait(), 126)
        self.assertFalse(self.mark.exists())
        self.env = env

    def test_b100_envelope_as_json(self):
        """With --json the refusal is the whole envelope, without values."""
        env = self.agent("a", "--deny-command", "forbidden")
        out, _ = self.coop("run", "--json", "-e", f"KEY={SECRET}", "--", "forbidden", code=126, env=env)
        error = json.loads(out.splitlines()[-1])["error"]
        self.assertEqual((error["code"], error["details"]["status"]), ("permission_denied", "blocked"))
        self.assertEqual(error["details"]["request"]["env"]["KEY"], "<redacted>")
        self.assertNotIn(SECRET.encode(), out)

    def test_b095_op_is_judged_too(self):
        """op is no way around it."""
        env = self.agent("a", "--deny-command", "forbidden")
        out, _ = self.coop("op", "spawn", json.dumps({"argv": ["forbidden"], "env": {"PATH": self.env["PATH"]}}), code=1, env=env)
        self.assertIn(b"permission_denied", out)
        self.assertFalse(self.mark.exists())


class CheckTest(PolicyCase):
    def test_b101_check_explains(self):
        """check says allowed or blocked and which rule says so; the exit code tells; nothing is started."""
        self.place.conf.write_text("[policy]\ndenied_commands = other\n# x\ndeny_patterns = *never*\n")
        env = self.agent("a", "--deny-command", "forbidden")
        out, _ = self.coop("policy", "check", "--", "forbidden", "x")
        self.assertIn(b"allowed", out)
        out, _ = self.coop("policy", "check", "--", "forbidden", "x", code=1, env=env)
        self.assertIn(b"blocked", out)
        self.assertIn(b"agent main/a", out)
        out, _ = self.coop("policy", "check", "--agent", "a", "--", "forbidden", code=1)
        self.assertIn(b"agent main/a", out)
        out, _ = self.coop("policy", "check", "--", "echo", "never", code=1)
        self.assertIn(b"coop.conf:4", out)
        self.assertFalse(self.mark.exists())
        self.assertEqual(self.json("ps", "-q", "--all"), [])

    def test_b101_check_as_json(self):
        """The envelope, as the socket gives it."""
        self.agent("a", "--deny-command", "forbidden")
        self.assertEqual(self.check("--", "true")["status"], "allowed")
        answer = self.check("--agent", "a", "--", "forbidden", code=1)
        self.assertEqual((answer["status"], answer["exit_code"]), ("blocked", -1))
        decision = answer["command_policy"]["decisions"][0]
        self.assertEqual((decision["action"], decision["source"]), ("deny", "agent main/a"))

    def test_b101_dry_run_agent(self):
        """An agent in dry_run starts nothing and is told what would have been."""
        env = self.agent("a", "--mode", "dry_run")
        out, err = self.coop("run", "--", "forbidden", code=126, env=env)
        self.assertIn(b"dry_run", out + err)
        self.assertFalse(self.mark.exists())

    def test_b104_catastrophe(self):
        """Blocked for everybody, whatever coop.conf says. Only looked at."""
        labels = "destructive write_intent sudo process_kill".split()
        self.place.conf.write_text("[policy]\n" + "".join(f"risk.{label} = allow\n" for label in labels))
        out, _ = self.coop("policy", "check", "--", "rm", "-rf", "/", code=1)
        self.assertIn(b"built-in", out)

    def test_wrong_words(self):
        """No command, an unknown agent."""
        self.coop("policy", "check", code=2)
        self.coop("policy", "check", "--agent", "nobody", "--", "true", code=None)
        self.assertNotEqual(self.code, 0)


class InheritTest(PolicyCase):
    def test_b087_run_passes_on_what_the_operator_names(self):
        """coop run sends along the names of inherit, and only those; secrets stay behind; -e gives them on purpose."""
        self.place.conf.write_text("[environment]\ninherit = CI_*\ndeny = CI_HIDDEN\n")
        env = {**self.env, "CI_JOB": "7", "CI_X_TOKEN": SECRET, "CI_HIDDEN": SECRET, "OTHER": "x", "LD_X": "y"}
        out = self.out("run", "-e", "MY_TOKEN=given", "--", "env", env=env).decode()
        lines = out.splitlines()
        self.assertIn("CI_JOB=7", lines)
        self.assertIn("MY_TOKEN=given", lines)
        self.assertNotIn(SECRET, out)
        names = {line.split("=")[0] for line in lines}
        self.assertEqual(names & {"OTHER", "LD_X", "CI_HIDDEN", "CI_X_TOKEN"}, set())
        self.assertIn(f"HOME={os.environ['HOME']}", lines)

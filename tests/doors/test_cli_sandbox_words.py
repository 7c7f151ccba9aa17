"""What the command line says of refusals of the sandbox: each in the words that were typed, with what it is about (B-093, B-105, B-107,
B-110)."""

import os
import re

from lib.cli import CliCase


class RefusalTest(CliCase):
    def setUp(self):
        super().setUp()
        self.work = self.place.dir / "work"
        self.work.mkdir()

    def test_b105_sizes_as_they_were_typed(self):
        """What is refused of a limit is told in the units of the option."""
        self.coop("agent", "add", "a", "--tmp-size", "128M", "--workspace", self.work)
        env = {**self.env, "COOP_TOKEN": self.out("token", "new", "a").decode().strip()}
        refused = self.refusal("run", "--tmp-size", "1G", "--", "true", code=126, env=env, cwd=self.work)
        self.assertEqual(refused, "coop: --tmp-size: 1G is more than is allowed here: 128M\n")
        self.assertEqual(self.refusal("run", "--mem", "512", "--", "true", code=125, cwd=self.work), "coop: --mem: at least 1M\n")

    def test_b110_no_allowlist(self):
        """Refused by the keeper as what cannot be had, in its words, for commands and for agents."""
        text = "sandbox: network cannot be enforced: there are no allow-lists of domains yet (network none, loopback or host)\n"
        self.assertEqual(self.refusal("run", "--net", "allowlist", "--", "true", code=125, cwd=self.work), "coop: " + text)
        self.assertEqual(self.refusal("agent", "add", "a", "--net", "allowlist", code=1), "coop: a: " + text)

    def test_s124_the_workspace_is_blamed(self):
        """For an agent that named a folder outside of its own, and stands where it may."""
        inside, outside = self.work / "inside", self.work / "outside"
        inside.mkdir()
        outside.mkdir()
        self.coop("agent", "add", "a", "--workspace", inside)
        env = {**self.env, "COOP_TOKEN": self.out("token", "new", "a").decode().strip()}
        refused = self.refusal("run", "--workspace", outside, "--", "true", code=125, env=env, cwd=inside)
        self.assertRegex(refused, rf"^coop: --workspace: {re.escape(str(outside))} lies outside the workspace of this agent\b")

    def test_b093_refused_files_are_named(self):
        """Which one of them, and why; a path that is not there must lie where the command can write."""
        (self.work / "f").write_text("x")
        refused = self.refusal("run", "--inject", "B=f", "--inject", "/etc/coop-test-key=f", "--", "true", code=125, cwd=self.work)
        self.assertRegex(refused, "^coop: --inject /etc/coop-test-key=f: is not there, and its folder ")
        refused = self.refusal("run", "-e", "A=1", "--inject", "A=f", "--", "true", code=125, cwd=self.work)
        self.assertEqual(refused, "coop: --inject A=f: A is set by env, too\n")
        refused = self.refusal("run", "--profile", "full", "--inject", "/run/x=f", "--", "true", code=125, cwd=self.work)
        self.assertEqual(refused, "coop: sandbox: files: a file at a fixed path needs a confined profile, and this is full\n")

    def test_b105_read_needs_the_minimal_root(self):
        self.assertEqual(self.refusal("run", "--read", "/usr", "--", "true", code=125, cwd=self.work), "coop: --read: needs --root minimal\n")

    def test_the_program_that_cannot_be_executed_is_named(self):
        """Without its arguments."""
        refused = self.refusal("run", "--", "coop-no-such-program", "ps", code=127, cwd=self.work)
        self.assertEqual(refused, "coop: cannot execute coop-no-such-program: No such file or directory\n")

    def test_b107_home_that_was_not_given(self):
        """status says so: root's home is hidden, whatever was asked for."""
        process = self.out("run", "-d", "--home", "cow", "--", "sleep", "300", cwd=self.work).decode().strip()
        self.assertEqual(", home hidden (asked: cow)" in self.out("status", process).decode(), os.geteuid() == 0)

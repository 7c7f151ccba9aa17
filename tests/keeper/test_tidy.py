"""Who asks for it is told of an end when the workspace is as the command left it: without the sandbox's placeholders (B-109)."""

import os

from lib.both_keepers import USER, BothKeepersCase

ROUNDS = 40


class TidyTest(BothKeepersCase):
    conf = "[sandbox]\nslots = 4\n"

    def begin(self, script):
        args = {"argv": ["sh", "-c", script], "cwd": str(self.ws), "sandbox": {"workspace": str(self.ws)}}
        return self.client.call("spawn", **args)["process"]["id"]

    def ask(self, op, process):
        """The answer, and what is in the workspace when it is here."""
        answer = self.client.call(op, id=process, tidy=True)
        return answer, os.listdir(self.ws)

    def test_b109_nothing_stands_when_the_end_is_told(self):
        """With wait and with follow, asked before the end and after it."""
        for i in range(ROUNDS):
            op = ("wait", "follow")[i % 2]
            process = self.begin("true" if i % 3 else "exit 7")
            if i % 4 == 3:
                self.client.call("wait", id=process)
            answer, names = self.ask(op, process)
            self.assertEqual((answer["process"]["exit"]["code"], names), (0 if i % 3 else 7, []), f"round {i}, {op}")

    def test_b109_what_lives_on_is_not_waited_for(self):
        """A descendant goes on, and so do the placeholders; the end is told all the same."""
        process = self.begin("sleep 300 >/dev/null 2>&1 & exit 3")
        for op in ("wait", "follow"):
            answer, names = self.ask(op, process)
            self.assertEqual(answer["process"]["exit"]["code"], 3)
            self.assertIn(".bashrc", names, op)
        self.client.call("kill", id=process)
        self.assertEqual(self.ask("wait", process)[1], [])

    def test_b109_another_command_holds_them(self):
        """They are shared: they stay for the other one, who is not waited for."""
        other = self.begin("sleep 300")
        answer, names = self.ask("wait", self.begin("true"))
        self.assertEqual(answer["process"]["exit"]["code"], 0)
        self.assertIn(".bashrc", names)
        self.client.call("kill", id=other)
        self.assertEqual(self.ask("wait", other)[1], [])


class UserTidyTest(TidyTest):
    user = USER

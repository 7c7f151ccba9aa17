"""What a name means: one's own first. An agent below may call its processes as it likes, and catches no name of another's."""

from lib.agents import AgentCase

# Every operation that names one process, with what else it needs.
LOOKS = {"status": {}, "wait": {"timeout_ms": 0}, "read": {}, "reader": {"reader": "r"}}
USES = {"signal": {"signal": "CONT"}, "close_stdin": {}, "resize": {"cols": 80, "rows": 24}, "keep": {}, "stop": {"grace_ms": 0}}


class LookupTest(AgentCase):
    def setUp(self):
        super().setUp()
        self.below = self.keeper.agent("main/a")
        self.deep = self.keeper.agent("main/a/x")

    def means(self, client, name):
        return client.call("status", id=name)["process"]["id"]

    def pty(self, client, **args):
        return client.call("spawn", argv=["sleep", "300"], kind="pty", **args)["process"]

    def test_a_tag_of_ones_own_comes_first(self):
        """Live or ended, before and after it: those of agents below neither catch it nor make it ambiguous."""
        first = self.start(self.below, tag="web")["id"]
        mine = self.start(self.client, tag="web")["id"]
        second = self.start(self.deep, tag="web")["id"]
        self.assertEqual(self.means(self.client, "web"), mine)
        self.assertEqual(self.means(self.below, "web"), first)
        self.assertEqual(self.means(self.deep, "web"), second)
        self.client.call("kill", id="web")
        self.assertEqual(self.means(self.client, "web"), mine, "the latest of one's own, though it has ended")
        self.assert_alive(self.client, first, second)
        self.client.answer("signal", {"id": "web", "signal": "TERM"})
        self.assert_alive(self.client, first, second)
        self.client.call("release", id="web")
        details = self.assert_refused(self.client, "invalid_input", "status", id="web")
        self.assertEqual(sorted(details["candidates"]), sorted([first, second]), "nothing of one's own is left")
        self.below.call("kill", id="web")
        self.assertEqual(self.means(self.client, "web"), second, "the one below that lives")

    def test_two_of_ones_own(self):
        mine = [self.start(self.client, tag="two")["id"] for _ in range(2)]
        self.start(self.below, tag="two")
        details = self.assert_refused(self.client, "invalid_input", "status", id="two")
        self.assertEqual(sorted(details["candidates"]), sorted(mine))

    def test_in_every_operation(self):
        """None of them reaches another agent's where the name is one of one's own."""
        trap = self.pty(self.below, tag="job")["id"]
        for op, args in {**LOOKS, **USES}.items():
            with self.subTest(op=op):
                mine = self.pty(self.client, tag="job", lease="ephemeral" if op == "keep" else None)["id"]
                try:
                    answer = self.client.reply(op, {"id": "job", **args}).result
                    self.assertIn(answer.get("process", {}).get("id", mine), (mine,))
                except Exception as error:
                    self.assertNotIn(getattr(error, "code", None), ("not_owner", "no_such_process"), error)
                self.client.call("kill", id=mine)
                self.client.call("release", id=mine)
                self.assert_alive(self.below, trap)
        mine = self.pty(self.client, tag="job")["id"]
        self.assertEqual(self.client.call("cancel", ids=["job"])["cancelled"], [mine])
        self.assert_alive(self.below, trap)

    def test_beginnings_of_ids(self):
        """One's own comes first here, too, and a tag of another agent's does not stand for it."""
        mine = self.start(self.client)["id"]
        others = [self.start(self.below)["id"] for _ in range(30)]
        for end in range(5, len(mine)):
            self.assertEqual(self.means(self.client, mine[:end]), mine, mine[:end])
        self.start(self.below, tag=mine[:-1])
        self.start(self.below, tag=mine[:7])
        self.assertEqual(self.means(self.client, mine[:-1]), mine)
        self.assertEqual(self.means(self.client, mine[:7]), mine)
        self.start(self.below, tag=mine)
        self.assertEqual(self.means(self.client, mine), mine)
        self.assertEqual(self.means(self.client, others[3]), others[3])

    def test_aliases(self):
        self.start(self.below, alias="one")
        mine = self.start(self.client, alias="one")["id"]
        self.start(self.deep, alias="one")
        self.assertEqual(self.means(self.client, "alias:one"), mine)
        self.client.call("kill", id=mine)
        self.assertEqual(self.means(self.client, "alias:one"), mine)

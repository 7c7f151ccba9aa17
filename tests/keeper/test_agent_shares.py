"""What all agents of a keeper share is not for one of them alone."""

from lib.agents import AgentCase


class ShareTest(AgentCase):
    settings = {"max_agents": 160, "max_tokens": 160}

    def fill(self, client, op, name=None):
        """Asks until it is refused; how many it got."""
        for count in range(1000):
            args = {name: f"x{count}"} if name else {}
            try:
                client.call(op, **args)
            except Exception as error:
                self.assertEqual((error.code, error.details["limit"]), ("quota", 17), error)
                return count
        return None

    def test_tokens_of_one_agent(self):
        """An agent and all below it have an eighth of what is not the operator's own; others go on."""
        first, second = self.keeper.agent("main/a"), self.keeper.agent("main/b")
        self.assertEqual(self.fill(first, "token_new"), 16)  # it has logged in with one
        first.call("agent_add", agent="below")
        error = self.refusal(first, "token_new", agent="below")
        self.assertEqual((error.code, error.details["scope"]), ("quota", "tokens"))
        second.call("token_new")

    def test_agents_below_one_agent(self):
        first, second = self.keeper.agent("main/a"), self.keeper.agent("main/b")
        self.assertEqual(self.fill(first, "agent_add", "agent"), 16)  # it counts itself
        second.call("agent_add", agent="other")
        self.client.call("agent_add", agent="main/a/by-the-operator")

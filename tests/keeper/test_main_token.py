"""A token of the user's own `main`: as the user made it, it may name any folder as the user's own connection may."""

from lib.agents import AgentCase


class MainTokenTest(AgentCase):
    def main(self):
        return self.keeper.login("main")

    def test_it_may_name_a_workspace(self):
        """And write there, by either socket; what is nobody's workspace is not its either."""
        gate = type(self.client)(self.client.call("info")["gate"]).login(self.keeper.token("main")["token"])
        self.keeper.clients.append(gate)
        for number, client in enumerate((self.main(), gate)):
            record = self.finish(client, f"echo hi > made-{number}", sandbox={"workspace": str(self.work)})
            self.assertEqual((record["exit"]["code"], record["sandbox"]["workspace"]), (0, str(self.work.resolve())))
            self.assertEqual((self.work / f"made-{number}").read_text(), "hi\n")
            self.assertEqual(self.assert_refused(client, "invalid_input", "spawn", argv=["true"], sandbox={"workspace": "/"})["field"],
                             "sandbox.workspace")

    def test_it_gives_others_a_workspace(self):
        client = self.main()
        client.call("agent_add", agent="child", workspace=[str(self.work)])
        child = self.connect().login(client.call("token_new", agent="child")["token"])
        self.assertEqual(self.finish(child, "echo hi > child")["exit"]["code"], 0)

    def test_other_agents_and_other_principals_may_not(self):
        self.client.call("agent_add", agent="main/a")
        self.client.call("agent_add", agent="main", principal="alice")
        for client in (self.keeper.login("main/a"), self.keeper.login("main", "alice")):
            self.assert_refused(client, "boundary_escape", "spawn", argv=["true"], sandbox={"workspace": str(self.work)})

    def test_it_is_still_no_operator(self):
        client = self.main()
        for op, args in (("shutdown", {}), ("reload", {}), ("audit_tail", {}), ("agent_add", {"agent": "main", "principal": "bob"})):
            self.assertIn(self.refusal(client, op, **args).code, ("permission_denied", "invalid_input", "exists"))
        self.assertIsNone(client.call("info")["state_dir"])

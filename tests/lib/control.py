"""The base class of tests of the control plane (/v1/sandboxes)."""

from .gateway import GatewayCase


class ControlCase(GatewayCase):
    options = ("--control-plane",)

    def create(self, body=None, token=None):
        """A new sandbox: (S, N)."""
        response = self.request("POST", "/v1/sandboxes", {} if body is None else body, token=token)
        self.assertEqual(response.status, 201, response.body)
        answer = response.json()
        self.assertEqual(set(answer), {"sandbox", "session", "warnings"})
        return answer["sandbox"], answer["session"]

    def remove(self, sandbox):
        response = self.request("DELETE", f"/v1/sandboxes/{sandbox['id']}")
        self.assertEqual((response.status, response.json()), (200, {}))

    def agent(self, sandbox):
        """The agent that it is, as the operator sees it."""
        return self.gateway.keeper().call("agent_show", agent=sandbox["id"])["agent"]

    def run_in(self, session, script, **fields):
        """Runs a script in a sandbox to its end: (exit code, stdout)."""
        found = self.sh(script, socket={"token": session["token"]}, **fields)
        end = found.until_exit()
        return end["exit_code"], found.output("stdout")

    def text(self, session, script, **fields):
        code, out = self.run_in(session, script, **fields)
        self.assertEqual(code, 0, out)
        return out.decode()

    def ids(self, **options):
        return [sandbox["id"] for sandbox in self.get("/v1/sandboxes?limit=1000", **options)["sandboxes"]]

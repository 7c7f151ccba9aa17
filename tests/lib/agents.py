"""Tests with several agents: who they are, and short ways to act as one of them."""

import os

from .client import KeeperError
from .keeper import KeeperCase
from .procs import wait_until

OWN = f"uid:{os.getuid()}"
OTHER = "alice"


class AgentCase(KeeperCase):
    """Helpers take the connection that is to act; `self.client` is the operator's."""

    def family(self):
        """The operator's own tree, and another principal: connections by name.

        main (the operator) - a - x, main - b, and alice's main - a.
        """
        return {
            "a": self.keeper.agent("main/a"),
            "x": self.keeper.agent("main/a/x"),
            "b": self.keeper.agent("main/b"),
            "alice": self.keeper.agent("main", OTHER),
            "alice/a": self.keeper.agent("main/a", OTHER),
        }

    def start(self, client, script="exec sleep 300", **args):
        """Starts a script as somebody; its record."""
        return client.call("spawn", argv=["sh", "-c", script], **args)["process"]

    def finish(self, client, script="exit 0", **args):
        """Starts a script as somebody and waits for its end; the final record."""
        return client.call("wait", id=self.start(client, script, **args)["id"])["process"]

    def ids(self, client, **args):
        return [record["id"] for record in client.call("list", **args)["processes"]]

    def line(self, client, process, stream="stdout"):
        """The first line that a process has written, once it is there."""

        def look():
            text = client.reply("read", {"id": process, "stream": stream}).bytes(stream)
            return text.partition(b"\n")[0].decode() if b"\n" in text else None

        return wait_until(look, f"a line of {process}")

    def refusal(self, client, op, data=None, **args):
        """The refusal that must come."""
        with self.assertRaises(KeeperError, msg=f"{op} {args}") as caught:
            client.reply(op, args, data)
        return caught.exception

    def assert_refused(self, client, code, op, **args):
        """Like `refusal`, with its code; returns the details."""
        error = self.refusal(client, op, **args)
        self.assertEqual(error.code, code, error)
        return error.details

    def assert_same(self, answers):
        """All answers, by what was asked, are one and the same."""
        kinds = {}
        for asked, answer in answers.items():
            kinds.setdefault(repr(sorted_deep(answer)), []).append(asked)
        self.assertEqual(len(kinds), 1, "\n".join(f"{asked}: {answer}" for answer, asked in kinds.items()))

    def assert_alive(self, client, *ids):
        states = [client.call("status", id=process)["process"]["state"] for process in ids]
        self.assertEqual(states, ["running"] * len(ids))

    def agents(self, client, **args):
        return [agent["path"] for agent in client.call("agent_list", **args)["agents"]]


def sorted_deep(value):
    """The order of members says nothing."""
    if isinstance(value, dict):
        return {name: sorted_deep(value[name]) for name in sorted(value)}
    return [sorted_deep(item) for item in value] if isinstance(value, list) else value

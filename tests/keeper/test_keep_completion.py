"""keep with completion: a process that goes on in the background tells its end there (B-074, B-127)."""

from lib.keeper import KeeperCase


class KeepCompletionTest(KeeperCase):
    def queue(self, **args):
        return [record["id"] for record in self.client.call("completions", **args)["processes"]]

    def test_b127_kept_while_it_runs(self):
        """The record says so, and its end comes once, although it is kept twice."""
        process = self.sh("read x", stdin="pipe", lease="ephemeral")
        self.assertIs(process["completion"], False)
        self.assertIs(self.client.call("keep", id=process["id"])["process"]["completion"], False, "who does not ask for it gets none")
        for _ in range(2):
            kept = self.client.call("keep", id=process["id"], completion=True)["process"]
            self.assertEqual((kept["completion"], kept["lease"]), (True, "awaited"))
        self.assertIs(self.client.call("list", brief=True)["processes"][0]["completion"], True)
        self.client.call("keep", id=process["id"], completion=False)
        self.client.call("close_stdin", id=process["id"])
        self.assertEqual(self.queue(timeout_ms=60000), [process["id"]])
        self.assertEqual(self.queue(), [])

    def test_b127_kept_after_its_end(self):
        """It is there at once, once, and wakes who waits."""
        process = self.sh("true", lease="ephemeral")["id"]
        self.ended(process)
        waiting = self.client.submit("completions", {"timeout_ms": 60000})
        for _ in range(2):
            self.client.call("keep", id=process, completion=True)
        self.assertEqual([record["id"] for record in self.client.finish(waiting).result["processes"]], [process])
        self.assertEqual(self.queue(), [])

    def test_b128_kept_after_it_was_cancelled(self):
        """What was cancelled gives none."""
        process = self.sh("sleep 60", call_id="c")["id"]
        self.client.call("cancel", call_ids=["c"])
        self.client.call("keep", id=process, completion=True)
        self.assertEqual(self.queue(), [])

"""`pid:NUMBER` wherever an id is asked for."""

import os

from lib.agents import AgentCase


class PidNameTest(AgentCase):
    def name(self, record):
        return f"pid:{record['pid']}"

    def test_it_names_live_and_ended_processes(self):
        live, ended = self.start(self.client), self.finish(self.client)
        for record in (live, ended):
            self.assertEqual(self.status(self.name(record))["id"], record["id"])
        self.client.call("kill", id=self.name(live))
        self.assertEqual(self.status(self.name(live))["end_cause"], "killed_by_request")
        self.assertTrue(self.client.call("release", id=self.name(ended))["released"])
        self.assert_refused(self.client, "no_such_process", "status", id=self.name(ended))

    def test_those_of_agents_below_too(self):
        below, other = self.keeper.agent("main/a"), self.keeper.agent("main/b")
        record = self.start(below)
        self.assertEqual(self.status(self.name(record))["id"], record["id"])
        self.assert_refused(other, "no_such_process", "status", id=self.name(record))
        self.assert_refused(self.client, "not_owner", "kill", id=self.name(record))

    def test_what_is_unknown_is_no_process(self):
        """In the same words as an unknown id; no process of the system's own is meant, and what looks like a number is no tag."""
        record = self.start(self.client, tag="pid:7x")
        asked = ["psh-1-999", "pid:", "pid:0", "pid:x", "pid:-1", "pid:7x", "pid: 7", "pid:99999999999999999999", "pid:4294967297",
                 f"pid:0{record['pid']}", f"pid:{os.getpid()}", f"PID:{record['pid']}", str(record["pid"])]
        self.assert_same({text: self.client.answer("status", {"id": text}) for text in asked})

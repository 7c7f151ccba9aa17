"""When a process last printed something, and the control group that it is in."""

import datetime
import os
import unittest

from lib import procs
from lib.agents import AgentCase
from lib.limits import LimitsCase

MIB = 1 << 20


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class LastOutputTest(AgentCase):
    slots = 0

    def test_it_is_null_until_the_first_byte_and_moves_with_the_latest(self):
        for kind in ("pipe", "pty"):
            process = self.spawn("sh", "-c", "stty -echo 2>/dev/null; read a; echo one; read b; echo two >&2; read c", kind=kind,
                                 stdin="pipe")["id"]
            self.assertIsNone(self.status(process)["last_output_at"])
            record = self.status(process)
            self.client.reply("write_stdin", {"id": process}, b"\n")
            self.wait_output(process, b"one", "pty" if kind == "pty" else "stdout")
            first = self.status(process)["last_output_at"]
            self.assertGreaterEqual(moment(first), moment(record["started_at"]))
            self.assertEqual(self.status(process)["last_output_at"], first, "to look changes nothing")
            self.client.reply("write_stdin", {"id": process}, b"\n")
            self.wait_output(process, b"two", "pty" if kind == "pty" else "stderr")
            second = self.status(process)["last_output_at"]
            self.assertGreaterEqual(moment(second), moment(first))
            self.client.reply("write_stdin", {"id": process}, b"\n")
            end = self.ended(process)
            self.assertEqual(end["last_output_at"], second)
            self.assertLessEqual(moment(second), moment(end["ended_at"]))

    def test_a_brief_list_has_it(self):
        silent, loud = self.finish(self.client, "exit 0")["id"], self.finish(self.client, "echo x")["id"]
        listed = {record["id"]: record for record in self.client.call("list", include_finished=True, brief=True)["processes"]}
        self.assertIsNone(listed[silent]["last_output_at"])
        self.assertIsNotNone(listed[loud]["last_output_at"])


class GroupPathTest(LimitsCase):
    # With shares for each agent a process may be in its agent's group.
    shares = False

    def test_a_process_with_a_limit_says_where_its_group_is(self):
        if not self.held("memory_bytes"):
            self.skipTest("no control groups for memory here")
        record = self.sh("echo ready; exec sleep 300", limits={"memory_bytes": 64 * MIB})
        self.wait_output(record["id"], b"ready")
        stats = self.status(record["id"])["stats"]
        self.assertNotIn("cgroup_path", stats["reasons"])
        with open(os.path.join(stats["cgroup_path"], "cgroup.procs"), encoding="ascii") as members:
            self.assertIn(record["pid"], [int(line) for line in members])
        self.client.call("kill", id=record["id"])

        def left():
            now = self.status(record["id"])["stats"]
            return now["cgroup_path"] is None and now["reasons"]["cgroup_path"]

        self.assertEqual(procs.wait_until(left, "its group goes"), "the process has ended")

    def test_one_without_says_why(self):
        stats = self.sh("exec sleep 300")["stats"]
        self.assertIsNone(stats["cgroup_path"])
        self.assertIn("control group", stats["reasons"]["cgroup_path"])


if __name__ == "__main__":
    unittest.main()

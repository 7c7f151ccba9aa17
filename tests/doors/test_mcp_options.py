"""What `coop mcp` is started with."""

import os
import signal

from lib.mcp_case import StdioCase
from lib.place import patience


class OptionsTest(StdioCase):
    def test_tools_chooses_what_is_listed(self):
        """default, harn and all; a name that is none is misuse."""
        names = {}
        for choice in ("default", "harn", "all"):
            peer = self.connect(options=("--tools", choice))
            names[choice] = {tool["name"] for tool in peer.call("tools/list")["tools"]}
        self.assertEqual(names["default"], {tool["name"] for tool in self.peer.call("tools/list")["tools"]})
        self.assertEqual(names["all"], names["default"] | names["harn"])
        self.assertIn("process.spawn", names["harn"])
        self.assertNotIn("process.spawn", names["default"])
        self.assertEqual(self.start_peer("--tools", "most").process.wait(patience(30)), 2)

    def test_a_workspace_of_its_own(self):
        """Commands start in --workspace, and may write there; with --no-workspace nothing stays."""
        folder = self.work / "other"
        folder.mkdir()
        peer = self.connect(options=("--workspace", folder))
        self.assertEqual(self.run_sh("pwd; echo hi > made", peer)["stdout"], f"{folder.resolve()}\n")
        self.assertTrue((folder / "made").exists())
        peer = self.connect(options=("--no-workspace",))
        self.assertTrue(self.run_sh(f"echo hi > {self.work}/made", peer).is_error)
        self.assertFalse((self.work / "made").exists())

    def test_a_profile_for_all(self):
        peer = self.connect(options=("--profile", "read-only"))
        self.assertTrue(self.run_sh(f"echo hi > {self.work}/made", peer).is_error)
        process = self.background("exec sleep 300", peer)
        self.assertEqual(self.record(process)["sandbox"]["profile"], "read-only")

    def test_a_session_for_all(self):
        """What is started is the session's, and ends with it."""
        self.peer.tool("list_processes")
        session = self.operator.call("session_new")["session"]
        session = session["id"] if isinstance(session, dict) else session
        peer = self.connect(options=("--session", session))
        process = self.background("exec sleep 300", peer)
        self.assertEqual(self.record(process)["session"], session)
        self.operator.call("session_end", id=session)
        self.assertEqual(self.record(process)["end_cause"], "session_end")

    def test_an_agent_for_all(self):
        """--agent: the server acts as that agent, and sees what it sees."""
        own = self.background("exec sleep 300")
        peer = self.other_agent()
        self.assertEqual(self.listed(peer), [])
        process = self.background("exec sleep 300", peer)
        self.assertTrue(self.record(process)["agent_path"].startswith("main/other"))
        self.bad("stop_process", "no_such_process", peer, pid=own)
        self.bad("stop_process", "not_owner", pid=process)

    def test_misuse_is_told_on_stderr_alone(self):
        for options in (("--no-such",), ("--max-wait", "x"), ("--workspace",), ("extra",), ("--max-line", "0")):
            peer = self.start_peer(*options)
            self.assertEqual(peer.process.wait(patience(30)), 2, options)
            self.assertEqual(os.read(peer.process.stdout.fileno(), 100), b"")
        self.assertIn(b"coop", (self.place.dir / "mcp.stderr").read_bytes())

    def test_an_agent_that_is_not_there_is_made(self):
        """With the workspace as its own; what it starts is its own, and commands write there."""
        peer = self.start_peer("--agent", "main/fresh")
        self.assertEqual(self.run_sh("echo hi > made; pwd", peer)["stdout"], f"{self.work.resolve()}\n")
        self.assertTrue((self.work / "made").exists())
        process = self.background("exec sleep 300", peer)
        self.assertEqual(self.record(process)["agent_path"], "main/fresh")

    def test_an_agent_that_cannot_be(self):
        """Is told on stderr, and nothing is served as somebody else."""
        for name in ("main/no/such/parent", "main/../x", ""):
            peer = self.start_peer("--agent", name)
            self.assertNotIn(peer.process.wait(patience(30)), (0, -signal.SIGSEGV, -signal.SIGABRT), name)
            self.assertEqual(os.read(peer.process.stdout.fileno(), 100), b"")

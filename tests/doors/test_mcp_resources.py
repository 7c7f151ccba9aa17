"""Processes as resources, on both transports: listed, read as record and as output, and refused alike where they are not ours
(M-043, M-044)."""

import base64
import json

from lib.mcp import INVALID_PARAMS, LATEST_LEGACY, NO_RESOURCE
from lib.mcp_case import HttpCase, StdioCase

RECORD, OUTPUT = "coop://process/{id}", "coop://process/{id}/output"


class Resources:
    def read(self, process, output=False, peer=None):
        """The one content of a process's resource."""
        uri = (OUTPUT if output else RECORD).format(id=process)
        peer = peer or self.peer
        result = peer.call("resources/read", {"uri": uri})
        self.assertEqual(len(result["contents"]), 1)
        content = result["contents"][0]
        self.assertEqual(content["uri"], uri)
        self.assertLessEqual(set(content), {"uri", "mimeType", "text", "blob", "_meta"})
        self.assertNotEqual("text" in content, "blob" in content)
        if peer.modern:
            self.assertEqual(result["cacheScope"], "private")
        return result, content

    def uris(self, peer=None):
        """All pages of resources/list."""
        found, cursor = [], None
        while True:
            page = (peer or self.peer).call("resources/list", {"cursor": cursor} if cursor else None)
            found += [resource["uri"] for resource in page["resources"]]
            for resource in page["resources"]:
                self.assertTrue(resource["name"])
            cursor = page.get("nextCursor")
            if not cursor:
                return found

    def test_listed_and_read(self):
        """A process is two resources; the record is JSON, the output is text."""
        for peer in self.eras():
            process = self.background("echo hällo; echo err >&2; exec sleep 300", peer)
            self.ok("wait_any", peer, conditions=[{"pid": process, "output": "err", "stream": "stderr"}])
            self.assertLessEqual({RECORD.format(id=process), OUTPUT.format(id=process)}, set(self.uris(peer)))
            result, content = self.read(process, False, peer)
            record = json.loads(content["text"])
            self.assertEqual((record["id"], record["state"]), (process, "running"))
            self.assertEqual(content["mimeType"], "application/json")
            if peer.modern:
                self.assertEqual(result["ttlMs"], 0)
            _, content = self.read(process, True, peer)
            self.assertIn("hällo\n", content["text"])
            self.assertTrue(content["mimeType"].startswith("text/plain"))
            self.ok("stop_process", peer, pid=process, grace_ms=0)
            record = json.loads(self.read(process, False, peer)[1]["text"])
            self.assertEqual((record["state"], record["end_cause"]), ("signaled", "killed_by_request"))

    def test_other_bytes_are_a_blob(self):
        (self.work / "data").write_bytes(bytes(range(256)))
        process = self.background("cat data")
        self.ok("wait_for_process", pid=process)
        _, content = self.read(process, True)
        self.assertEqual(base64.b64decode(content["blob"], validate=True), bytes(range(256)))

    def test_templates(self):
        for peer in self.eras():
            found = peer.call("resources/templates/list")["resourceTemplates"]
            self.assertEqual({template["uriTemplate"] for template in found}, {RECORD, OUTPUT})
            for template in found:
                self.assertTrue(template["name"])

    def test_pages(self):
        """Many processes are listed page by page, each once; cursors that nobody gave are refused."""
        processes = {self.background("exec sleep 300") for _ in range(60)}
        found = self.uris()
        self.assertEqual(len(found), len(set(found)))
        self.assertLessEqual({RECORD.format(id=process) for process in processes}, set(found))
        for cursor in ("x", "AAAA", "!", 7):
            self.refused(INVALID_PARAMS, None, "resources/list", {"cursor": cursor})

    def test_m043_missing_and_foreign_look_the_same(self):
        """The same error but for the address that was asked for; -32602 in the modern era, -32002 before."""
        mine = self.background("exec sleep 300")
        head, _, number = mine.rpartition("-")
        missing = f"{head}-{int(number) + 100000}"
        for code in (INVALID_PARAMS, NO_RESOURCE):
            other = self.other_agent()
            if code == NO_RESOURCE:
                other.initialize()
            for template in (RECORD, OUTPUT):
                errors = []
                for process in (mine, missing):
                    error = self.refused(code, None, "resources/read", {"uri": template.format(id=process)}, other)
                    errors.append((error.status, str(error).replace(process, "ID")))
                self.assertEqual(errors[0], errors[1])
            self.assertNotIn(mine, str(self.uris(other)))

    def test_m043_addresses_that_are_none(self):
        for peer in self.eras():
            code = INVALID_PARAMS if peer.modern else NO_RESOURCE
            process = self.background("exec sleep 300", peer)
            for uri in ("coop://process/", "coop://process", "coop://process/x/y/z", f"coop://process/{process}/", f"coop://process/{process}/outputs",
                        "file:///etc/passwd", "http://127.0.0.1/", f"coop://process/../process/{process}", f"COOP://process/{process}",
                        f"coop://process/{process}?x", "x" * 5000, f"coop://process/{process}%00", "coop://process/%2e%2e"):
                with self.subTest(uri=uri[:60]):
                    self.refused(code, None, "resources/read", {"uri": uri}, peer)

    def test_uris_of_wrong_types(self):
        peer = self.connect(LATEST_LEGACY)
        for params in ({}, {"uri": 7}, {"uri": None}, {"uri": ["x"]}):
            self.refused(INVALID_PARAMS, None, "resources/read", params, peer)

    def test_output_is_bounded(self):
        """What is too large comes as far as it may; it is never all of it."""
        process = self.background("head -c 6000000 /dev/zero | tr '\\0' x")
        self.ok("wait_for_process", pid=process)
        _, content = self.read(process, True)
        self.assertLess(len(content["text"]), 2 << 20)
        self.assertGreater(len(content["text"]), 1000)

    def test_m044_another_agents_processes(self):
        """Whoever has another token cannot list, read, wait on, signal, write to or subscribe to them."""
        mine = self.background("read x; exec sleep 300")
        shell = self.ok("open_shell")["session_id"]
        other = self.other_agent()
        self.assertEqual(self.listed(other, include_finished=True), [])
        self.assertEqual(self.uris(other), [])
        pid = self.record(mine)["pid"]
        for name in (mine, pid):
            for tool, more in (("read_process_output", {}), ("wait_for_process", {}), ("kill_process", {"signal": "SIGKILL"}), ("process_stats", {}),
                               ("stop_process", {}), ("write_stdin", {"input": "x\n"}), ("close_stdin", {}), ("read_screen", {}),
                               ("wait_any", None)):
                arguments = {"conditions": [{"pid": name, "exit": True}]} if more is None else {"pid": name} | more
                self.bad(tool, "no_such_process", other, **arguments)
            result = self.any("release_process", other, pid=name)
            self.assertTrue(result.is_error or result["released"] is False, result)
        for tool, more in (("shell_read", {}), ("shell_write", {"input": "exit\n"}), ("close_shell", {}), ("shell_signal", {"signal": "SIGKILL"})):
            self.bad(tool, "no_such_process", other, session_id=shell, **more)
        for template in (RECORD, OUTPUT):
            self.refused(INVALID_PARAMS, None, "resources/read", {"uri": template.format(id=mine)}, other)
        self.assertEqual({row: self.record(row)["state"] for row in (mine, shell)}, {mine: "running", shell: "running"})

    def test_m044_subscriptions_to_foreign_ones(self):
        """Are not accepted, and tell nothing."""
        mine = self.background("exec sleep 300")
        other = self.other_agent()
        uri = RECORD.format(id=mine)
        try:
            pending, accepted = other.listen(resourceSubscriptions=[uri])
            self.assertNotIn(uri, accepted.get("resourceSubscriptions", []))
            self.ok("stop_process", pid=mine, grace_ms=0)
            self.listed(other)
            self.assertTrue(pending.quiet(0.3))
        except Exception as error:
            self.assertEqual(getattr(error, "code", None), INVALID_PARAMS, error)


class StdioResourcesTest(Resources, StdioCase):
    pass


class HttpResourcesTest(Resources, HttpCase):
    pass

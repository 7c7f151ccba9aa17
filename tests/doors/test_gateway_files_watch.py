"""/runtime/v1/files/watch: a socket that is told what happens in a directory."""

import os
import signal
import urllib.parse

from lib import procs
from lib.gateway import GatewayCase
from lib.websocket import Closed, Refused


class WatchTest(GatewayCase):
    own = True

    def watch(self, path=".", **query):
        """A socket that watches from now on; it has said that it is ready."""
        target = "/runtime/v1/files/watch?" + urllib.parse.urlencode({"path": str(path), **query})
        found = self.gateway.websocket(target)
        self.addCleanup(found.drop)
        self.assertEqual(found.message(), {"type": "ready"})
        return found

    def put(self, path, data):
        target = "/runtime/v1/files?" + urllib.parse.urlencode({"path": path})
        self.assertEqual(self.request("PUT", target, data).status, 200)

    def events_until(self, socket, kind, name):
        """(type, name) of what is told, up to the wanted one."""
        seen = []
        while (kind, name) not in seen:
            message = socket.message()
            self.assertEqual(message["type"], "events")
            seen += [(event["type"], os.path.relpath(event["path"], self.work)) for event in message["events"]]
        return seen

    def test_r056_create_write_remove(self):
        """What commands and uploads do is told, beginning with the first change after the upgrade."""
        socket = self.watch()
        self.put("f", b"1")
        seen = self.events_until(socket, "write", "f")
        self.assertEqual(seen, [("create", "f"), ("write", "f")])
        (self.work / "g").write_bytes(b"x")
        self.events_until(socket, "write", "g")
        (self.work / "g").unlink()
        self.events_until(socket, "remove", "g")
        self.request("DELETE", "/runtime/v1/files?path=f")
        self.events_until(socket, "remove", "f")

    def test_r056_nothing_lost_after_the_upgrade(self):
        """Again and again, the very first change after the upgrade is told."""
        for i in range(20):
            socket = self.watch(recursive="true")
            (self.work / f"n{i}").touch()
            self.assertEqual(self.events_until(socket, "create", f"n{i}"), [("create", f"n{i}")])
            socket.drop()

    def test_recursive_and_entries(self):
        """With recursive what happens below is told, with include_entry each event has the entry that still is there."""
        (self.work / "a" / "b").mkdir(parents=True)
        socket = self.watch(recursive="true", include_entry="true")
        (self.work / "a" / "b" / "x").touch()
        event, = socket.message()["events"]
        self.assertEqual((event["type"], event["path"]), ("create", f"{self.work}/a/b/x"))
        self.assertEqual((event["file"]["path"], event["file"]["type"]), (event["path"], "file"))
        self.assertNotIn("name", event)

    def test_refused_before_the_upgrade(self):
        """A missing path is 404, what is no directory 400; nothing is upgraded."""
        (self.work / "f").touch()
        for query, status, code in (("path=gone", 404, "file_not_found"), ("path=f", 400, "invalid_argument"),
                                    ("", 400, "invalid_argument"), ("path=.&recursive=1", 400, "invalid_argument")):
            with self.assertRaises(Refused) as caught:
                self.gateway.websocket(f"/runtime/v1/files/watch?{query}")
            self.assert_refused(caught.exception.response, status, code)

    def test_directory_goes(self):
        """When the directory goes that is told, and the socket is closed in order."""
        (self.work / "d").mkdir()
        socket = self.watch("d")
        (self.work / "d").rmdir()
        self.assertEqual(self.events_until(socket, "remove", "d"), [("remove", "d")])
        with self.assertRaises(Closed) as caught:
            socket.message()
        self.assertEqual(caught.exception.code, 1000)

    def test_helper_dies(self):
        """When the helper dies the socket is closed with a reason, and another can be opened."""
        socket = self.watch()
        pid, = [pid for pid in procs.descendants(self.gateway.process.pid)
                if procs.cmdline(pid).split(" ")[0].endswith("coop-files")]
        os.kill(pid, signal.SIGKILL)
        with self.assertRaises(Closed) as caught:
            socket.message()
        self.assertEqual(caught.exception.code, 1011)
        again = self.watch()
        (self.work / "f").touch()
        self.events_until(again, "create", "f")

    def test_says_something(self):
        """What a client says is passed over, and its going is noticed."""
        socket = self.watch()
        socket.send_text("hello")
        (self.work / "f").touch()
        self.events_until(socket, "create", "f")
        self.assertEqual(socket.close(), 1000)

    def test_slow_client(self):
        """A client that does not read is told that it missed something; others are not held up."""
        target = "/runtime/v1/files/watch?path=.&include_entry=true"
        slow = self.gateway.websocket(target, receive_buffer=4096)
        self.addCleanup(slow.drop)
        self.assertEqual(slow.message(), {"type": "ready"})
        other = self.watch()
        for i in range(12000):
            path = self.work / ("x" * 150 + str(i))
            path.touch()
            path.unlink()
            if i % 200 == 199:
                self.read_up_to(other, i)
        kinds = set()
        while "overflow" not in kinds:
            kinds.add(slow.message()["type"])
        (self.work / "end").touch()
        while not any(event["path"].endswith("/end") for event in self.events(slow)):
            pass

    def events(self, socket):
        return socket.message().get("events", [])

    def read_up_to(self, socket, number):
        """Reads on until that file is gone."""
        wanted = str(self.work / ("x" * 150 + str(number)))
        while not any(event["path"] == wanted and event["type"] == "remove" for event in self.events(socket)):
            pass

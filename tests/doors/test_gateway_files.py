"""/runtime/v1/files and /runtime/v1/directories: file work in the sandbox of whoever asks."""

import base64
import gzip
import os
import select
import signal
import socket
import urllib.parse

from lib import procs
from lib.gateway import GatewayCase
from lib.http_client import Ended
from lib.keeper import Keeper
from lib.place import Place, sanitized
from lib.records import small_disk


def helpers(gateway):
    """pids of the file helpers that run."""
    return [pid for pid in procs.descendants(gateway.process.pid) if procs.cmdline(pid).split(" ")[0].endswith("coop-files")]


class FilesCase(GatewayCase):
    def names(self):
        """What is in the working directory, without the sandbox's placeholders."""
        return sorted(path.name for path in self.work.iterdir() if (not path.name.startswith(".") and not path.is_socket()) or ".coop" in path.name)

    def target(self, path, route="files", **query):
        return f"/runtime/v1/{route}?" + urllib.parse.urlencode({"path": str(path), **query})

    def read(self, path, **options):
        response = self.request("GET", self.target(path), **options)
        self.assertEqual(response.status, 200, response.body)
        self.assertEqual(int(response.headers["content-length"]), len(response.body))
        return response.body

    def write(self, path, data, headers=None, token=None, **query):
        response = self.request("PUT", self.target(path, **query), data, headers=headers, token=token)
        self.assertEqual(response.status, 200, response.body)
        return response.json()["file"]

    def refuse(self, status, code, method, target, body=None, **options):
        response = self.request(method, target, body, **options)
        self.assert_refused(response, status, code)
        return response.json()["message"]

    def stat(self, path):
        return self.get(self.target(path, "files/stat"))["file"]

    def list(self, path, **query):
        return self.get(self.target(path, "directories", **query))["entries"]


class FilesTest(FilesCase):
    own = True

    def test_r053_write_read_stat(self):
        """What is written is read back; parents are made; relative paths begin in the working directory."""
        entry = self.write("a/b/c d+é.txt", b"hello")
        path = f"{self.work}/a/b/c d+é.txt"
        self.assertEqual((entry["path"], entry["size"], entry["bytes"], entry["type"]), (path, 5, 5, "file"))
        self.assertEqual(self.read("a/b/c d+é.txt"), b"hello")
        self.assertEqual(self.read(path), b"hello")
        self.assertEqual(self.stat(path), entry)
        self.assertEqual((self.work / "a/b/c d+é.txt").read_bytes(), b"hello")
        self.assertEqual(len(helpers(self.gateway)), 1)

    def test_r053_list_make_move_remove(self):
        """Directories are made and listed, things are moved and removed, what is missing is file_not_found."""
        response = self.request("POST", self.target("d/e", "directories"))
        self.assertEqual((response.status, response.json()), (200, {}))
        self.request("POST", self.target("d/e", "directories"), {})
        self.write("d/f", b"1")
        self.assertEqual([entry["name"] for entry in self.list("d")], ["e", "f"])
        self.assertEqual([entry["name"] for entry in self.list(".", depth=2)], ["d", "e", "f"])
        moved = self.request("POST", "/runtime/v1/files/move", {"from_path": "d/f", "to_path": "g"}).json()["file"]
        self.assertEqual(moved["path"], f"{self.work}/g")
        response = self.request("DELETE", self.target("d"))
        self.assertEqual((response.status, response.json()), (200, {}))
        self.assertEqual([entry["name"] for entry in self.list(".")], ["g"])
        for method, route in (("GET", "files"), ("GET", "files/stat"), ("DELETE", "files"), ("GET", "directories")):
            self.refuse(404, "file_not_found", method, self.target("d", route))
        self.refuse(404, "file_not_found", "POST", "/runtime/v1/files/move", {"from_path": "d", "to_path": "e"})

    def test_r053_batch(self):
        """Several files in one request, answered in their order; the first that fails is named, and those after it are not written."""
        files = [{"path": name, "data_base64": base64.b64encode(data).decode()} for name, data in
                 (("x/1", b"one"), ("2", b""), ("3", os.urandom(700_000)))]
        files[0] |= {"data_base64": base64.b64encode(gzip.compress(b"one")).decode(), "gzip": True}
        found = self.request("POST", "/runtime/v1/files/write_files", {"files": files}).json()["files"]
        self.assertEqual([(entry["name"], entry["size"]) for entry in found], [("1", 3), ("2", 0), ("3", 700_000)])
        self.assertEqual(self.read("3"), base64.b64decode(files[2]["data_base64"]))
        self.assertEqual(self.request("POST", "/runtime/v1/files/write_files", {"files": []}).json(), {"files": []})
        bad = [{"path": "4", "data_base64": "eA=="}, {"path": "x", "data_base64": "eA=="}, {"path": "5", "data_base64": "eA=="}]
        message = self.refuse(400, "invalid_argument", "POST", "/runtime/v1/files/write_files", {"files": bad})
        self.assertIn("files[1]", message)
        self.assertEqual(self.read("4"), b"x")
        self.refuse(404, "file_not_found", "GET", self.target("5", "files/stat"))
        for wrong in ({}, {"files": 1}, {"files": [1]}, {"files": [{"path": "a"}]}, {"files": [{"path": "a", "data_base64": "x"}]},
                      {"files": [{"path": "", "data_base64": ""}]}, {"files": [{"path": "a", "data_base64": "", "gzip": 1}]}):
            self.refuse(400, "invalid_argument", "POST", "/runtime/v1/files/write_files", wrong)

    def test_large(self):
        """Large files go both ways byte for byte, with and without a length."""
        data = os.urandom(1 << 20) * 5 + b"end"
        self.assertEqual(self.write("big", data)["size"], len(data))
        self.assertEqual(self.read("big"), data)
        chunks = [data[at:at + 100_000] for at in range(0, len(data), 100_000)]
        response = self.request("PUT", self.target("chunked"), chunks=chunks)
        self.assertEqual(response.json()["file"]["size"], len(data))
        self.assertEqual((self.work / "chunked").read_bytes(), data)
        self.request("PUT", self.target("drops"), chunks=[b"x"] * 5000)
        self.assertEqual((self.work / "drops").read_bytes(), b"x" * 5000)
        self.assertEqual(self.write("empty", b"")["size"], 0)
        self.assertEqual(self.read("empty"), b"")
        many = [f"n{i:04}" for i in range(2000)]
        (self.work / "many").mkdir()
        for name in many:
            (self.work / "many" / name).touch()
        self.assertEqual([entry["name"] for entry in self.list("many")], many)

    def test_refusals(self):
        """What is wrong with a request is said by its status and code."""
        (self.work / "f").touch()
        (self.work / "d").mkdir()
        for method, target, body in (
                ("GET", self.target("d"), None),
                ("GET", self.target("f", "directories"), None),
                ("PUT", self.target("d"), b"x"),
                ("PUT", self.target("f/x"), b"x"),
                ("GET", "/runtime/v1/files", None),
                ("GET", "/runtime/v1/files?path=", None),
                ("GET", "/runtime/v1/files?path=%ff", None),
                ("GET", "/runtime/v1/files?path=%00", None),
                ("GET", self.target("d", "directories", depth=0), None),
                ("GET", self.target("d", "directories", depth="x"), None),
                ("PUT", self.target("x", gzip="yes"), b"x"),
                ("GET", self.target("x" * 300), None),
                ("POST", "/runtime/v1/files/move", {"from_path": "f"}),
                ("POST", "/runtime/v1/files/move", {"to_path": "f", "from_path": 1}),
                ("POST", "/runtime/v1/files/move", {"from_path": "d", "to_path": "f"}),
                ("GET", self.target("d", "files/watch"), None)):
            with self.subTest(method=method, target=target):
                self.refuse(400, "invalid_argument", method, target, body)
        self.refuse(409, "conflict", "POST", self.target("f", "directories"))
        self.refuse(403, "forbidden", "PUT", self.target("/etc/coop-test"), b"x")
        self.refuse(403, "forbidden", "DELETE", self.target("/usr"))
        self.refuse(400, "invalid_argument", "PUT", self.target("x"), b"x", headers={"Content-Encoding": "br"})
        self.refuse(501, "not_implemented", "POST", "/runtime/v1/files/apply_diff", {"diff": ""})
        self.refuse(405, "method_not_allowed", "POST", self.target("f"))
        self.refuse(401, "unauthorized", "GET", self.target("f"), token="wrong")
        self.assertEqual(self.names(), ["d", "f"])

    def test_head(self):
        """HEAD tells the length alone, and the connection goes on."""
        self.write("f", b"x" * 300_000)
        with self.gateway.connect() as connection:
            response = connection.request("HEAD", self.target("f"), self.gateway.headers())
            self.assertEqual((response.status, response.headers["content-length"]), (200, "300000"))
            self.assertEqual(connection.request("GET", self.target("f"), self.gateway.headers()).body, b"x" * 300_000)


class GzipTest(FilesCase):
    def test_r054_gzip(self):
        """Packed by header, by query, or by both: it is unpacked once."""
        data = os.urandom(100_000) + b"y" * 1_000_000
        for name, headers, query in (("1", {"Content-Encoding": "gzip"}, {}), ("2", None, {"gzip": "true"}),
                                     ("3", {"Content-Encoding": "gzip"}, {"gzip": "true"})):
            entry = self.write(name, gzip.compress(data), headers, **query)
            self.assertEqual(entry["size"], len(data))
            self.assertEqual(self.read(name, headers={"Accept-Encoding": "gzip"}), data)
        twice = gzip.compress(gzip.compress(b"x"))
        self.write("twice", twice, {"Content-Encoding": "gzip"}, gzip="true")
        self.assertEqual(self.read("twice"), gzip.compress(b"x"))
        self.write("plain", gzip.compress(b"x"), gzip="false")
        self.assertEqual(gzip.decompress(self.read("plain")), b"x")

    def test_broken(self):
        """What is no gzip is 400, and leaves nothing."""
        for data in (b"plain text", gzip.compress(b"x" * 1000)[:-3], b""):
            self.refuse(400, "invalid_argument", "PUT", self.target("broken", gzip="true"), data)
        self.refuse(404, "file_not_found", "GET", self.target("broken", "files/stat"))

    def test_bomb(self):
        """A small body that unpacks to more than a file may have is 413, and leaves nothing."""
        member = gzip.compress(b"\0" * (64 << 20))
        response = self.request("PUT", self.target("bomb", gzip="true"), member * 17)
        self.assert_refused(response, 413, "too_large")
        self.assertEqual([path.name for path in self.work.iterdir() if "bomb" in path.name or "upload" in path.name], [])


class RootTest(FilesCase):
    own = True

    def test_r055_nothing_leaves_the_sandbox(self):
        """By .., by absolute paths and by planted links nothing is read or written that a command there could not."""
        secret = self.gateway.place.dir / "secret"
        secret.write_text("secret")
        for name, target in (("file", secret), ("state", self.gateway.place.state), ("etc", "/etc"), ("root", "/proc/1/root")):
            (self.work / name).symlink_to(target)
        for path in ("../secret", str(secret), "file", "state/../../secret", "../" * 20 + str(secret).lstrip("/")):
            with self.subTest(path=path):
                # The folder of the place is the keeper's own: the sandbox hides it, or does not let it be changed.
                response = self.request("GET", self.target(path))
                self.assertNotIn(b"secret", response.body if response.status == 200 else b"")
                self.assertNotEqual(self.request("PUT", self.target(path), b"changed").status, 500)
                self.assertEqual(secret.read_text(), "secret")
        self.refuse(403, "forbidden", "PUT", self.target("etc/coop-test"), b"x")
        self.refuse(403, "forbidden", "PUT", self.target("../../../../../../etc/coop-test"), b"x")
        self.assertFalse(os.path.exists("/etc/coop-test"))
        self.assertNotEqual(self.request("GET", self.target(f"root{secret}")).status, 200)
        token = next(self.gateway.place.state.glob("gateway.token"))
        self.assertNotEqual(self.request("GET", self.target(token)).status, 200)
        self.assertNotEqual(self.request("DELETE", self.target("state")).status, 500)
        self.assertTrue(token.exists())

    def test_same_view_as_commands(self):
        """A file helper sees what a command of the same agent sees: /etc is read, other agents' roots are not changed."""
        with open(os.__file__, "rb") as file:
            self.assertEqual(self.read(os.__file__), file.read())
        other = self.gateway.place.dir / "other"
        other.mkdir()
        token = self.gateway.agent_token("main/tester", workspace=[str(other)])
        self.assertEqual(self.write("mine", b"1", token=token)["path"], f"{other}/mine")
        # What it writes elsewhere in /tmp is its own.
        self.request("PUT", self.target(self.work / "theirs"), b"x", token=token)
        self.assertFalse((self.work / "theirs").exists())
        self.assertEqual(len(helpers(self.gateway)), 2)


class DiskTest(FilesCase):
    shared = None

    @classmethod
    def setUpClass(cls):
        """Its gateway has a keeper that is there before."""
        procs.become_subreaper()

    def test_r057_disk_full(self):
        """A full disk is 507 not_enough_space, nothing is left of the file, and what fits is still written."""
        place = Place()
        (place.work / "small").mkdir()
        keeper = Keeper(place=place, wrap=small_disk(place.work / "small", "512k,mode=0777"))
        self.addCleanup(keeper.stop)
        keeper.wait_ready()
        self.gateway = self.start_gateway(place=place)
        data = os.urandom(2_000_000)
        response = self.request("PUT", self.target("small/f"), data)
        self.assert_refused(response, 507, "not_enough_space")
        self.assertEqual(self.list("small"), [])
        batch = {"files": [{"path": "small/g", "data_base64": base64.b64encode(data).decode()}]}
        self.refuse(507, "not_enough_space", "POST", "/runtime/v1/files/write_files", batch)
        self.assertEqual(self.write("small/f", data[:200_000])["size"], 200_000)


class HelperTest(FilesCase):
    own = True

    def test_not_listed(self):
        """The helper is no process of the client: it is not listed, and cannot be addressed."""
        self.write("f", b"x")
        self.assertEqual(self.get("/runtime/v1/process?all=true")["processes"], [])
        for address in (f"{name}" for name in self.aliases()):
            self.refuse(404, "process_not_found", "GET", "/runtime/v1/process/" + urllib.parse.quote(address, safe=""))

    def aliases(self):
        found = [process["alias"] for process in self.gateway.keeper().call("list")["processes"]]
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("#files"))
        return found

    def test_dies(self):
        """When the helper dies the next request has another; a download that was under way is cut, not made up."""
        self.write("f", b"x" * (8 << 20))
        pid, = helpers(self.gateway)
        with self.gateway.connect(receive_buffer=4096) as connection:
            connection.send_request("GET", self.target("f"), self.gateway.headers())
            status, headers = connection.read_head()
            self.assertEqual((status, headers["content-length"]), (200, str(8 << 20)))
            os.kill(pid, signal.SIGKILL)
            with self.assertRaises(Ended):
                connection.take(8 << 20)
        self.assertEqual(len(self.read("f")), 8 << 20)
        self.assertNotIn(pid, helpers(self.gateway))

    def test_gateway_dies(self):
        """The helper goes with its gateway, and the next gateway has one of its own."""
        self.write("f", b"1")
        pid, = helpers(self.gateway)
        self.gateway.kill_gateway()
        procs.wait_until(lambda: not procs.alive(pid), "the helper is gone")
        self.assertEqual(self.read("f"), b"1")

    def test_client_goes(self):
        """An upload that breaks off leaves nothing, and the file that was there stays."""
        self.write("f", b"old")
        connection = self.gateway.connect()
        headers = self.gateway.headers(more={"Content-Length": "1000000"})
        connection.send_request("PUT", self.target("f"), headers, None)
        connection.send(b"x" * 500_000)
        procs.wait_until(lambda: len(self.names()) == 2, "the upload has begun")
        connection.reset()
        procs.wait_until(lambda: self.names() == ["f"], "nothing is left of it")
        self.assertEqual(self.read("f"), b"old")

    def test_shrinks(self):
        """A file that becomes shorter while it is read ends the connection before the promised length."""
        self.write("f", b"x" * (32 << 20))
        with self.gateway.connect(receive_buffer=4096) as connection:
            connection.send_request("GET", self.target("f"), self.gateway.headers())
            connection.read_head()
            os.truncate(self.work / "f", 1 << 20)
            with self.assertRaises(Ended):
                connection.take(32 << 20)

    def test_slow_reader(self):
        """A client that does not read holds up neither the others nor fills the gateway's memory."""
        self.write("f", b"x" * (64 << 20))
        with self.gateway.connect(receive_buffer=4096) as connection:
            connection.send_request("GET", self.target("f"), self.gateway.headers())
            connection.read_head()
            for _ in range(3):
                self.assertEqual(len(self.read("f")), 64 << 20)
            self.check_memory()
            connection.socket.shutdown(socket.SHUT_RDWR)

    def check_memory(self):
        with open(f"/proc/{self.gateway.pid}/status") as file:
            peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
        if not sanitized():
            self.assertLess(peak, 48 << 10)

    def test_slow_helper(self):
        """A client whose upload is not taken is held up, and goes on where it was; the gateway does not hold its file."""
        self.write("f", b"")
        pid, = helpers(self.gateway)
        data = os.urandom(1 << 20) * 64
        with self.gateway.connect() as connection:
            os.kill(pid, signal.SIGSTOP)
            connection.send_request("PUT", self.target("f"), self.gateway.headers(more={"Content-Length": str(len(data))}))
            sent = 0
            while sent < len(data) and select.select([], [connection.socket], [], 2)[1]:
                sent += connection.socket.send(data[sent:sent + 65536])
            self.assertLess(sent, len(data) // 2)
            self.check_memory()
            os.kill(pid, signal.SIGCONT)
            connection.send(data[sent:])
            self.assertEqual(connection.read_response().json()["file"]["size"], len(data))
        self.assertEqual((self.work / "f").read_bytes(), data)

    def test_silent_helper(self):
        """Who waits for one that stands still is told so after some time, and the next request has another."""
        self.write("f", b"x")
        pid, = helpers(self.gateway)
        os.kill(pid, signal.SIGSTOP)
        with self.gateway.connect(timeout=120) as connection, self.gateway.connect(timeout=120) as other:
            for one in (connection, other):
                one.send_request("GET", self.target("f"), self.gateway.headers())
            for one in (connection, other):
                self.assert_refused(one.read_response(), 504, "timeout")
        self.assertEqual(self.read("f"), b"x")
        self.assertNotIn(pid, helpers(self.gateway))
        procs.wait_until(lambda: not procs.alive(pid), "it is ended")

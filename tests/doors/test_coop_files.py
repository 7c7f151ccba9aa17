"""coop-files on its own: requests on stdin, answers on stdout."""

import gzip
import os
import resource
import signal
import struct
import subprocess
import unittest

from lib import procs
from lib.files import PROGRAM, Files, Refused
from lib.place import Place, patience, sanitized


class FilesCase(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.work = self.place.work
        self.files = self.start()

    def start(self, env=None, **options):
        files = Files(self.work, self.place.env(env), **options)
        self.addCleanup(files.close)
        return files

    def tearDown(self):
        self.assertEqual(self.files.close(), 0)
        self.assertEqual(self.place.faults(), "")

    def refused(self, error, op, **members):
        with self.assertRaises(Refused) as caught:
            self.files.call(op, **members)
        self.assertEqual(caught.exception.error, error)
        return str(caught.exception)

    def drafts(self):
        return [name for _, _, names in os.walk(self.work) for name in names if name.startswith(".coop-upload-")]


class EntryTest(FilesCase):
    def test_file(self):
        """An entry tells all of a file, with numbers as numbers."""
        path = self.work / "a.txt"
        path.write_bytes(b"hello")
        path.chmod(0o640)
        os.utime(path, ns=(0, 1767323045678 * 10**6))
        entry = self.files.call("stat", path=str(path))[0]["file"]
        found = path.stat()
        self.assertEqual(entry, {
            "name": "a.txt", "path": str(path), "type": "file", "size": 5, "bytes": 5, "mode": 0o640,
            "permissions": "-rw-r-----", "owner": entry["owner"], "group": entry["group"],
            "modified_time": "2026-01-02T03:04:05.678Z", "symlink_target": None, "uid": found.st_uid, "gid": found.st_gid,
            "metadata": {}})
        if os.getuid() == 0:
            self.assertEqual((entry["owner"], entry["group"]), ("root", "root"))

    def test_kinds(self):
        """A link is told as itself, with its target; a directory as one; the root has a name."""
        (self.work / "d").mkdir(mode=0o755)
        (self.work / "l").symlink_to("no where")
        self.assertEqual(self.files.call("stat", path="d")[0]["file"]["type"], "dir")
        link = self.files.call("stat", path="l")[0]["file"]
        self.assertEqual((link["type"], link["symlink_target"]), ("symlink", "no where"))
        root = self.files.call("stat", path="/")[0]["file"]
        self.assertEqual((root["name"], root["path"], root["type"]), ("/", "/", "dir"))

    def test_odd_times_and_names(self):
        """Times of long ago or far ahead and names that are no UTF-8 are still JSON."""
        path = os.fsencode(self.work) + b"/\xff\"\n"
        with open(path, "w"):
            pass
        os.utime(path, (0, -5))
        entry, = self.files.list(self.work)
        self.assertEqual(entry["name"], "\ufffd\"\n")
        self.assertEqual(entry["modified_time"][:19], "1970-01-01T00:00:00")

    def test_missing(self):
        """What is not there, also below a file, is ENOENT and named."""
        (self.work / "f").touch()
        self.assertIn("gone", self.refused("ENOENT", "stat", path="gone"))
        self.refused("ENOENT", "stat", path="f/x")
        self.refused("ENOENT", "open_read", path="f/x")
        self.refused("ENOENT", "list", path="f/x")
        self.refused("ENOENT", "remove", path="f/x")
        self.refused("ENOENT", "stat", path="gone/../f")
        for op in ("stat", "list", "remove"):
            self.refused("EINVAL", op, path="")
            self.refused("EINVAL", op)
            self.refused("ENAMETOOLONG", op, path="x" * 300)
            self.assertEqual(len(self.files.list(".")), 1, "each was answered once, and nothing has gone")
        self.refused("ENAMETOOLONG", "stat", path="x/" * 3000)


class PathTest(FilesCase):
    def test_relative(self):
        """Relative paths begin where it was started; dots and doubled slashes are cleaned away."""
        (self.work / "a" / "b").mkdir(parents=True)
        (self.work / "a" / "f").write_text("x")
        for path in ("a/f", "./a//f", "a/b/../f", f"{self.work}/a/./b/.././f", f"{self.work}/a/f"):
            self.assertEqual(self.files.call("stat", path=path)[0]["file"]["path"], f"{self.work}/a/f", path)
        self.assertEqual(self.files.call("stat", path="/../../..")[0]["file"]["path"], "/")

    def test_up_from_a_link(self):
        """.. after a link is the parent of what it leads to, as for the kernel."""
        (self.work / "real" / "deep").mkdir(parents=True)
        (self.work / "real" / "f").write_text("1")
        (self.work / "l").symlink_to("real/deep")
        self.assertEqual(self.files.call("stat", path="l/../f")[0]["file"]["path"], f"{self.work}/real/f")

    def test_links_in_a_circle(self):
        (self.work / "a").symlink_to("b")
        (self.work / "b").symlink_to("a")
        self.refused("ELOOP", "open_read", path="a")
        self.assertEqual(self.files.call("stat", path="a")[0]["file"]["type"], "symlink")


class ReadTest(FilesCase):
    def test_whole(self):
        """Small, empty and large files come byte for byte; links are followed."""
        for size in (0, 1, 262144, 262145, 3_000_001):
            data = os.urandom(size)
            (self.work / "f").write_bytes(data)
            self.assertEqual(self.files.read("f"), data)
        (self.work / "l").symlink_to("f")
        self.assertEqual(self.files.read("l"), data)

    def test_no_files(self):
        """A directory is EISDIR; a pipe or a device is refused without waiting for anybody."""
        os.mkfifo(self.work / "p")
        self.refused("EISDIR", "open_read", path=".")
        self.refused("EINVAL", "open_read", path="p")
        self.refused("EINVAL", "open_read", path="/dev/null")

    def test_without_a_size(self):
        """Files of /proc, which tell no size, come whole."""
        self.assertEqual(self.files.read("/proc/self/comm"), b"coop-files\n")

    def test_shrinks(self):
        """A file that gets shorter while it is read ends early; what it had is not made up."""
        (self.work / "f").write_bytes(b"x" * 600000)
        talk = self.files.send("open_read", path="f")
        head, data = self.files.answer(talk)
        self.assertEqual((head["size"], len(data)), (600000, 262144))
        os.truncate(self.work / "f", 300000)
        _, more = self.files.call("read", talk=talk, offset=262144, max=1 << 18)
        self.assertEqual(len(more), 300000 - 262144)
        self.assertEqual(self.files.call("read", talk=talk, offset=300000, max=1 << 18), ({}, b""))

    def test_side_by_side(self):
        """Talks do not disturb each other."""
        for i in range(20):
            (self.work / str(i)).write_bytes(bytes([i]) * 300000)
        talks = [self.files.send("open_read", path=str(i)) for i in range(20)]
        for talk in talks:
            self.files.send("read", talk=talk, offset=262144, max=1 << 18)
        for i, talk in enumerate(talks):
            self.assertEqual(self.files.answer(talk)[1] + self.files.answer(talk)[1], bytes([i]) * 300000)


class ListTest(FilesCase):
    def test_depth(self):
        """Entries are sorted by path, to the depth asked for, without the directory itself; links are not followed."""
        (self.work / "b" / "c" / "d").mkdir(parents=True)
        (self.work / "a").touch()
        (self.work / "b" / "x").touch()
        (self.work / "z").symlink_to("b")

        def names(**members):
            return [entry["path"][len(str(self.work)) + 1:] for entry in self.files.list(".", **members)]

        self.assertEqual(names(), ["a", "b", "z"])
        self.assertEqual(names(depth=2), ["a", "b", "b/c", "b/x", "z"])
        self.assertEqual(names(depth=9), ["a", "b", "b/c", "b/c/d", "b/x", "z"])
        self.assertEqual([entry["name"] for entry in self.files.list("z")], ["c", "x"])
        self.assertEqual(self.files.list("b/c/d"), [])
        self.refused("ENOTDIR", "list", path="a")
        self.assertEqual(len(names(depth=1024)), 6)
        for depth in (0, -1, 1025):
            self.refused("EINVAL", "list", path=".", depth=depth)

    def test_many(self):
        """Thousands of names come in pieces; others are answered meanwhile."""
        for i in range(5000):
            (self.work / f"{i:05}").touch()
        talk = self.files.send("list", path=".")
        self.assertEqual(self.files.call("stat", path="00007")[0]["file"]["name"], "00007")
        self.assertFalse(self.files.answers.get(talk), "the listing kept a short request waiting")
        self.files.answer(talk)
        self.assertEqual([entry["name"] for entry in self.files.list(".")], [f"{i:05}" for i in range(5000)])


class WriteTest(FilesCase):
    def test_new_and_replaced(self):
        """Parents are made, the file appears whole; one that is replaced keeps its permissions."""
        entry = self.files.write("a/b/f", b"one")
        self.assertEqual((entry["path"], entry["size"]), (f"{self.work}/a/b/f", 3))
        self.assertEqual((self.work / "a/b/f").read_bytes(), b"one")
        umask = os.umask(0o022)
        os.umask(umask)
        self.assertEqual(entry["mode"], 0o666 & ~umask)
        (self.work / "a/b/f").chmod(0o750)
        data = os.urandom(1_500_000)
        self.assertEqual(self.files.write("a/b/f", data)["mode"], 0o750)
        self.assertEqual((self.work / "a/b/f").read_bytes(), data)
        self.assertEqual(self.drafts(), [])

    def test_not_before_the_end(self):
        """The old content is there until the commit; an upload that is closed, or cut off by the end, leaves nothing."""
        (self.work / "f").write_bytes(b"old")
        talk = self.files.send("open_write", path="f")
        self.files.call("write", b"new", talk)
        self.files.answer(talk)
        self.assertEqual((self.work / "f").read_bytes(), b"old")
        self.assertEqual(len(self.drafts()), 1)
        self.files.send("close", talk=talk)
        self.files.call("stat", path="f")
        self.assertEqual(self.drafts(), [])
        self.files.call("write", b"late", self.files.send("open_write", path="new"))
        self.assertEqual(len(self.drafts()), 1)
        self.assertEqual(self.files.close(), 0)
        self.assertEqual([path.name for path in self.work.iterdir()], ["f"])

    def test_told_to_end(self):
        """SIGTERM ends it, unfinished uploads included."""
        self.files.call("write", b"late", self.files.send("open_write", path="new"))
        self.files.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.files.process.wait(timeout=patience(30)), 0)
        self.assertEqual(list(self.work.iterdir()), [])

    def test_links(self):
        """A link is written through; one that leads nowhere is replaced."""
        (self.work / "d").mkdir()
        (self.work / "l").symlink_to("d/f")
        self.files.write("l", b"1")
        self.assertFalse((self.work / "l").is_symlink())
        (self.work / "d/f").write_bytes(b"2")
        (self.work / "m").symlink_to("d/f")
        self.files.write("m", b"3")
        self.assertTrue((self.work / "m").is_symlink())
        self.assertEqual((self.work / "d/f").read_bytes(), b"3")
        (self.work / "e").symlink_to("d")
        self.files.write("e/g", b"4")
        self.assertEqual((self.work / "d/g").read_bytes(), b"4")

    def test_wrong_kinds(self):
        """A directory in place of a file, a file in place of a directory, a pipe: refused, nothing left."""
        (self.work / "d").mkdir()
        (self.work / "f").touch()
        os.mkfifo(self.work / "p")
        self.refused("EISDIR", "open_write", path="d")
        self.refused("EISDIR", "open_write", path="/")
        self.refused("ENOTDIR", "open_write", path="f/x")
        self.refused("ENOTDIR", "open_write", path="f/x/y")
        self.refused("EINVAL", "open_write", path="p")
        with self.assertRaisesRegex(Refused, "EINVAL|ELOOP"):
            self.files.call("open_write", path="/dev/stdout")
        self.assertEqual(self.drafts(), [])

    def test_limit(self):
        """More than the limit is EFBIG, and nothing is left."""
        self.assertEqual(self.files.write("f", b"x" * 10, limit=10)["size"], 10)
        with self.assertRaises(Refused) as caught:
            self.files.write("g", b"x" * 11, limit=10)
        self.assertEqual(caught.exception.error, "EFBIG")
        self.files.call("stat", path="f")
        self.assertEqual([path.name for path in self.work.iterdir()], ["f"])

    def test_no_space(self):
        """A full disk is ENOSPC, and what was written is given back."""
        (self.work / "small").mkdir()
        script = f'mount -t tmpfs -o size=256k coop-test {self.work}/small && exec "$@"'
        files = self.start(wrap=["unshare", "-m", "sh", "-c", script, "sh"])
        with self.assertRaises(Refused) as caught:
            files.write("small/f", b"x" * 1_000_000)
        self.assertEqual(caught.exception.error, "ENOSPC")
        self.assertEqual(files.list("small"), [])
        self.assertEqual(files.write("small/f", b"x" * 200_000)["size"], 200_000)

    def test_late_requests(self):
        """What comes for a talk that has failed is passed over."""
        talk = self.files.send("open_write", path="/")
        self.files.send("write", b"x", talk)
        self.files.send("commit", talk=talk)
        with self.assertRaises(Refused):
            self.files.answer(talk)
        self.files.send("close", talk=talk)
        self.files.call("stat", path=".")
        self.assertEqual(self.files.answers[talk], [])


class GzipTest(FilesCase):
    def refuse(self, data, error, **members):
        with self.assertRaises(Refused) as caught:
            self.files.write("f", data, gzip=True, **members)
        self.assertEqual(caught.exception.error, error)
        self.files.call("stat", path=".")
        self.assertEqual(list(self.work.iterdir()), [])

    def test_unpacked(self):
        """What comes packed is unpacked once, also in several members and in odd pieces."""
        data = os.urandom(300_000) + b"x" * 2_000_000
        self.assertEqual(self.files.write("f", gzip.compress(data), gzip=True)["size"], len(data))
        self.assertEqual((self.work / "f").read_bytes(), data)
        self.files.write("f", gzip.compress(b"one ") + gzip.compress(b"two"), gzip=True)
        self.assertEqual((self.work / "f").read_bytes(), b"one two")
        talk = self.files.send("open_write", path="f", gzip=True)
        packed = gzip.compress(b"bit by bit")
        for i in range(len(packed)):
            self.files.send("write", packed[i:i + 1], talk)
        self.files.send("commit", talk=talk)
        for _ in range(len(packed) + 1):
            self.files.answer(talk)
        self.assertEqual(self.files.answer(talk)[0]["file"]["size"], 10)
        self.files.write("f", gzip.compress(b""), gzip=True)
        self.assertEqual((self.work / "f").read_bytes(), b"")
        (self.work / "f").unlink()

    def test_broken(self):
        """What is no gzip, cut short, damaged or followed by something else is EBADMSG."""
        whole = gzip.compress(b"hello" * 100)
        for data in (b"plain", b"", whole[:-1], whole[:-8] + b"\0" * 8, whole + b"tail"):
            self.refuse(data, "EBADMSG")

    def test_bomb(self):
        """The limit is of what comes out, and others are served while it is reached."""
        bomb = gzip.compress(b"\0" * 200_000_000)
        self.assertLess(len(bomb), 1 << 18)
        self.refuse(bomb, "EFBIG", limit=1_000_000)
        talk = self.files.send("open_write", path="f", gzip=True, limit=1 << 30)
        self.files.send("write", bomb, talk)
        self.files.answer(talk)
        self.files.call("stat", path=".")
        self.assertFalse(self.files.answers.get(talk), "unpacking kept a short request waiting")
        self.files.send("close", talk=talk)
        self.files.call("stat", path=".")
        self.assertEqual(self.drafts(), [])


class ChangeTest(FilesCase):
    def test_mkdir(self):
        """Directories are made with those above them; one that is there is fine, a file is not."""
        self.files.call("mkdir", path="a/b/c")
        self.assertTrue((self.work / "a/b/c").is_dir())
        self.files.call("mkdir", path="a/b/c/")
        self.files.call("mkdir", path="/")
        (self.work / "f").touch()
        self.refused("EEXIST", "mkdir", path="f")
        self.refused("ENOTDIR", "mkdir", path="f/x")
        self.refused("ENOTDIR", "mkdir", path="f/x/y")

    def test_move(self):
        """rename(2): a file replaces a file, an empty directory gives way; the rest is refused."""
        (self.work / "a").write_text("a")
        (self.work / "b").write_text("b")
        (self.work / "d" / "e").mkdir(parents=True)
        self.assertEqual(self.files.call("move", **{"from": "a"}, to="b")[0]["file"]["path"], f"{self.work}/b")
        self.assertEqual((self.work / "b").read_text(), "a")
        self.refused("ENOENT", "move", **{"from": "a"}, to="c")
        self.refused("ENOENT", "move", **{"from": "b"}, to="no/c")
        self.refused("EISDIR", "move", **{"from": "b"}, to="d")
        self.refused("ENOTDIR", "move", **{"from": "d"}, to="b")
        self.refused("EINVAL", "move", **{"from": "d"}, to="d/e/f")
        (self.work / "x").mkdir()
        self.refused("ENOTEMPTY", "move", **{"from": "x"}, to="d")
        self.refused("EBUSY", "move", **{"from": "/"}, to="d")
        (self.work / "l").symlink_to("b")
        self.files.call("move", **{"from": "l"}, to="m")
        self.assertTrue((self.work / "m").is_symlink() and (self.work / "b").exists())

    def test_remove(self):
        """Files, links and trees go; what links lead to stays."""
        (self.work / "keep" / "x").mkdir(parents=True)
        for i in range(3):
            (self.work / "d" / str(i) / "e").mkdir(parents=True)
            for j in range(300):
                (self.work / "d" / str(i) / f"f{j}").touch()
        (self.work / "d" / "out").symlink_to(self.work / "keep")
        (self.work / "l").symlink_to("keep")
        self.files.call("remove", path="l")
        self.files.call("remove", path="d")
        self.assertEqual([path.name for path in self.work.iterdir()], ["keep"])
        self.assertTrue((self.work / "keep" / "x").is_dir())
        self.refused("ENOENT", "remove", path="d")
        self.refused("EBUSY", "remove", path="/")

    def test_remove_any_depth(self):
        """A tree deeper than there may be open files, and than a path can name, is removed."""
        fd = os.open(self.work, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d", dir_fd=fd)
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
            below = os.open("d", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.close(fd)
        few = self.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        few.call("remove", path="d")
        self.assertEqual([path.name for path in self.work.iterdir()], ["file"])


class ConversationTest(FilesCase):
    def test_no_frames(self):
        """What is no frame ends it, with a word why."""
        for data in (struct.pack("<III", 11, 1, 0), struct.pack("<III", (1 << 20) + 1, 1, 0), struct.pack("<III", 20, 1, 9)):
            files = self.start(stderr=subprocess.PIPE)
            files.send_raw(data + b"x" * 64)
            self.assertEqual(files.process.wait(timeout=patience(30)), 1)
            self.assertIn(b"Protocol error", files.process.stderr.read())
            files.process.stderr.close()

    def test_unknown(self):
        """Unknown operations and JSON that is none are answered; requests that fit no talk are not."""
        self.refused("EINVAL", "open")
        text = b"{"
        self.files.send_raw(struct.pack("<III", 12 + len(text), 77, len(text)) + text)
        with self.assertRaises(Refused):
            self.files.answer(77)
        (self.work / "large").write_bytes(b"x" * 300000)
        talk = self.files.send("open_read", path="large")
        self.files.answer(talk)
        self.files.send("write", b"x", talk)
        with self.assertRaises(Refused):
            self.files.answer(talk)
        self.files.send("read", talk=4711)
        self.files.call("stat", path=".")
        self.assertNotIn(4711, self.files.answers)

    def test_too_many(self):
        """One talk more than may be open is EMFILE; the others go on."""
        talks = [self.files.send("open_write", path="f") for _ in range(256)]
        self.refused("EMFILE", "stat", path=".")
        for talk in talks:
            self.files.answer(talk)
        self.files.send("close", talk=talks[0])
        self.files.call("stat", path=".")

    def blocked(self):
        """Whether it sleeps although requests wait (its stdin is never empty here)."""
        return procs.stat(self.files.process.pid)[0] == "S"

    def resident(self):
        for line in open(f"/proc/{self.files.process.pid}/status"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def test_nobody_reads(self):
        """Answers that nobody takes stop it from reading on; nothing is lost, and its memory has a bound."""
        (self.work / "f").write_bytes(b"x" * 262144)
        talks = [self.files.send("open_read", path="f") for _ in range(200)]
        procs.wait_until(self.blocked, "it waits for somebody to read")
        self.assertLess(self.resident(), (256 if sanitized() else 24) << 20)
        for talk in talks:
            self.assertEqual(len(self.files.answer(talk)[1]), 262144)

    def test_usage(self):
        done = subprocess.run([PROGRAM, "x"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"usage", done.stderr)

    def test_memory_failures(self):
        """Whatever allocation fails, it answers or ends; it does not crash."""
        for n in range(1, 60):
            files = self.start(env={"COOP_FAULT": f"alloc:{n}"}, stderr=subprocess.DEVNULL)
            try:
                for action in (lambda: files.write("a/f", gzip.compress(b"x"), gzip=True), lambda: files.list(".", depth=2),
                               lambda: files.watch(".", recursive=True), lambda: files.call("remove", path="a")):
                    try:
                        action()
                    except Refused as error:
                        self.assertIn(error.error, ("ENOMEM", "ENOENT"), n)
            except (EOFError, BrokenPipeError):
                pass
            self.assertIn(files.close(), (0, 1), n)

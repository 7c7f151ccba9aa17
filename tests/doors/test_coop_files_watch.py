"""coop-files tells what happens in directories."""

import itertools
import os
import shutil
import unittest

from lib.files import Files, Refused
from lib.place import Place


class WatchCase(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.work = self.place.work
        self.files = Files(self.work, self.place.env())
        self.addCleanup(self.files.close)

    def tearDown(self):
        self.assertEqual(self.files.close(), 0)
        self.assertEqual(self.place.faults(), "")

    def path(self, name):
        return str(self.work / name)

    def told(self, talk, last="end"):
        """What has been told up to now, made certain by a file of its own."""
        (self.work / last).touch()
        seen = self.files.events_until(talk, ("create", self.path(last)))
        return [(kind, path[len(str(self.work)) + 1:]) for kind, path in seen if not path.endswith("/" + last)]


class WatchTest(WatchCase):
    def test_kinds_of_events(self):
        """Each change is told by its kind, in its order."""
        talk = self.files.watch(".")
        path = self.work / "f"
        path.touch()
        path.write_text("x")
        path.chmod(0o600)
        path.rename(self.work / "g")
        (self.work / "g").unlink()
        # Opening it anew may be a write of its own.
        told = [event for event, _ in itertools.groupby(self.told(talk))]
        self.assertEqual(told, [("create", "f"), ("write", "f"), ("chmod", "f"), ("rename", "f"), ("create", "g"),
                                ("remove", "g")])

    def test_not_below(self):
        """Without recursive, what happens in directories below is not told."""
        (self.work / "d").mkdir()
        talk = self.files.watch(".")
        (self.work / "d" / "x").touch()
        (self.work / "e").mkdir()
        (self.work / "e" / "y").touch()
        self.assertEqual(self.told(talk), [("create", "e")])

    def test_uploads(self):
        """An upload is told once it is whole: as created and written, or as written where it replaces a file."""
        talk = self.files.watch(".")
        self.files.write("f", b"1")
        self.files.write("f", b"2")
        self.assertEqual(self.told(talk), [("create", "f"), ("write", "f"), ("write", "f")])

    def test_entries(self):
        """With include_entry each event has the entry, where that still exists."""
        talk = self.files.watch(".", include_entry=True)
        (self.work / "d").mkdir()
        found, _ = self.files.answer(talk)
        event, = found["events"]
        self.assertEqual(event["file"]["path"], self.path("d"))
        self.assertEqual(event["file"]["type"], "dir")
        (self.work / "d").rmdir()
        found, _ = self.files.answer(talk)
        self.assertEqual(found["events"], [{"type": "remove", "path": self.path("d")}])

    def test_refused(self):
        """What is not there, or is no directory, is said before anything is watched."""
        (self.work / "f").touch()
        for path, error in (("gone", "ENOENT"), ("f", "ENOTDIR"), ("f/x", "ENOENT")):
            with self.assertRaises(Refused) as caught:
                self.files.watch(path)
            self.assertEqual(caught.exception.error, error)

    def test_gone(self):
        """When the directory goes that is told, and then that it is over; also where it is moved away."""
        for leave in (lambda path: path.rmdir(), lambda path: path.rename(self.work / "elsewhere")):
            (self.work / "d").mkdir()
            talk = self.files.watch("d", recursive=True)
            leave(self.work / "d")
            found, _ = self.files.answer(talk)
            self.assertEqual(found, {"events": [{"type": "remove", "path": self.path("d")}]})
            self.assertEqual(self.files.answer(talk), ({"over": True}, b""))

    def test_closed(self):
        """After the close nothing is told; the others that watch the same directory go on."""
        first, second = self.files.watch("."), self.files.watch(".")
        self.files.send("close", talk=first)
        self.assertEqual(self.told(second), [])
        self.assertFalse(self.files.answers.get(first))
        third = self.files.watch(".")
        (self.work / "f").touch()
        self.assertEqual(self.told(third, "end3"), [("create", "f")])

    def test_through_a_link(self):
        """A link to a directory is followed, and events are told under the name that was asked for."""
        (self.work / "real").mkdir()
        (self.work / "l").symlink_to("real")
        talk = self.files.watch("l")
        (self.work / "real" / "f").touch()
        self.assertEqual(self.files.events_until(talk, ("create", self.path("l/f"))), [("create", self.path("l/f"))])


class RecursiveTest(WatchCase):
    def test_below(self):
        """Directories that were there, and those that are made, are watched with all below."""
        (self.work / "a" / "b").mkdir(parents=True)
        talk = self.files.watch(".", recursive=True)
        (self.work / "a" / "b" / "x").touch()
        self.files.events_until(talk, ("create", self.path("a/b/x")))
        (self.work / "n").mkdir()
        self.files.events_until(talk, ("create", self.path("n")))
        (self.work / "n" / "m").mkdir()
        self.files.events_until(talk, ("create", self.path("n/m")))
        (self.work / "n" / "m" / "y").touch()
        self.files.events_until(talk, ("create", self.path("n/m/y")))

    def test_made_at_once(self):
        """What is in a new directory before it is watched is told, too: nothing is missed."""
        talk = self.files.watch(".", recursive=True)
        wanted = set()
        for i in range(40):
            os.makedirs(self.work / f"t{i}" / "u" / "v")
            (self.work / f"t{i}" / "u" / "v" / "f").touch()
            wanted |= {f"t{i}", f"t{i}/u", f"t{i}/u/v", f"t{i}/u/v/f"}
        (self.work / "t39" / "u" / "v" / "last").touch()
        seen = set()
        while not wanted <= seen or "t39/u/v/last" not in seen:
            found, _ = self.files.answer(talk)
            seen |= {event["path"][len(str(self.work)) + 1:] for event in found["events"] if event["type"] == "create"}

    def test_moved(self):
        """A directory that is renamed is told under its new name from then on; one that is moved away is not told any more."""
        outside = self.place.dir / "outside"
        (self.work / "a" / "b").mkdir(parents=True)
        talk = self.files.watch(".", recursive=True)
        (self.work / "a").rename(self.work / "c")
        self.files.events_until(talk, ("create", self.path("c/b")))
        (self.work / "c" / "b" / "x").touch()
        self.files.events_until(talk, ("create", self.path("c/b/x")))
        (self.work / "c").rename(outside)
        self.files.events_until(talk, ("rename", self.path("c")))
        (outside / "b" / "y").touch()
        self.assertEqual(self.told(talk), [])
        outside.rename(self.work / "back")
        self.files.events_until(talk, ("create", self.path("back/b/y")))

    def test_removed(self):
        """A tree that is removed is told name by name."""
        (self.work / "a" / "b").mkdir(parents=True)
        (self.work / "a" / "f").touch()
        talk = self.files.watch(".", recursive=True)
        shutil.rmtree(self.work / "a")
        self.assertEqual(set(self.told(talk)), {("remove", "a/f"), ("remove", "a/b"), ("remove", "a")})

    def test_links_are_not_followed(self):
        """A link below is a name, not a way: no circles, nothing outside."""
        outside = self.place.dir / "outside"
        outside.mkdir()
        (self.work / "d").mkdir()
        (self.work / "d" / "up").symlink_to("..")
        (self.work / "out").symlink_to(outside)
        talk = self.files.watch(".", recursive=True)
        (outside / "x").touch()
        (self.work / "out2").symlink_to(outside)
        (outside / "y").touch()
        self.assertEqual(self.told(talk), [("create", "out2")])

    def test_too_many(self):
        """A watch of more directories than one may have is refused, and others go on."""
        other = self.files.watch(".")
        top = self.work / "many"
        for i in range(100):
            for j in range(90):
                os.makedirs(top / str(i) / str(j))
        with self.assertRaises(Refused) as caught:
            self.files.watch("many", recursive=True)
        self.assertEqual(caught.exception.error, "EMFILE")
        self.assertIn(("create", "many"), self.told(other))


class OverflowTest(WatchCase):
    def test_overflow(self):
        """When nobody reads, the kernel's queue overflows: that is told, and what happens then is told again."""
        talk = self.files.watch(".", recursive=True)
        with open("/proc/sys/fs/inotify/max_queued_events") as file:
            most = int(file.read())
        name = "x" * 200
        self.stall()
        for i in range(most // 2 + 1000):
            path = self.work / f"{i}{name}"
            path.touch()
            path.unlink()
        os.makedirs(self.work / "made" / "meanwhile")
        found = {}
        while "overflow" not in found:
            found, _ = self.files.answer(talk)
        # By then the directories that came meanwhile are watched.
        (self.work / "made" / "meanwhile" / "f").touch()
        self.files.events_until(talk, ("create", self.path("made/meanwhile/f")))

    def stall(self):
        """Fills its way out: from then on it looks at nothing."""
        (self.work / "big").write_bytes(b"x" * 262144)
        for _ in range(40):
            self.files.send("open_read", path="big")

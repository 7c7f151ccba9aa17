"""Links that an earlier command left in a project: what is typed is not led out of the folder one stands in by them (S-003, S-124)."""

import os
import threading

from lib.cli import CliCase

SECRET = "secret-of-the-user"


class LinksTest(CliCase):
    """A project with folders and links, beside another one; credentials in the home."""

    def setUp(self):
        super().setUp()
        self.home = self.place.dir / "home"
        self.project, self.other = self.home / "project", self.home / "other"
        for folder in (self.project / "src", self.project / "deep" / "er", self.other / "sub", self.home / ".ssh", self.home / ".config" / "gh"):
            folder.mkdir(parents=True)
        (self.home / ".ssh" / "id").write_text(SECRET)
        (self.other / "file").write_text(SECRET)
        (self.project / "fine").write_text("fine")
        for name, target in {"build": self.home / ".ssh", "away": "../other", "up": "..", "all": "/", "deep/out": "../../other/sub", "chain": "away/sub",
                             "file": self.other / "file", "within": "deep/er", "round": f"{self.project}/src", "back": "../project/src"}.items():  # fmt: skip
            (self.project / name).symlink_to(target)
        (self.home / "link").symlink_to(self.project)
        self.env = {**self.env, "HOME": str(self.home)}

    def asks(self, name):
        """Every option that takes a folder."""
        yield "-C", ("run", "-C", name, "--", "true")
        yield "--cwd", ("run", "--profile", "read-only", "-C", name, "--", "true")
        yield "--workspace", ("run", "--workspace", name, "--", "true")
        yield "--write", ("run", "--write", name, "--", "true")
        yield "--read", ("run", "--root", "minimal", "--read", name, "--", "true")
        yield "--workspace", ("agent", "add", "x", "--workspace", name)
        yield "--workspace", ("serve", "--workspace", name, "--listen", "127.0.0.1:0")
        yield "--workspace", ("mcp", "--workspace", name)

    def refused(self, words, cwd):
        out, err = self.coop(*words, code=None, cwd=cwd)
        self.assertNotIn(self.code, (0, 127), (words, out, err))
        return err.decode()

    def test_s124_links_that_lead_out(self):
        """Refused by every option, naming the link, where it leads, and the way out."""
        for name, link, leads in (("build", "build", ".ssh"), ("away", "away", "other"), ("away/sub", "away", "other"), ("./away//sub/", "away", "other"),
                                  ("deep/out", "deep/out", "other/sub"), ("chain", "away", "other"), ("src/../build", "build", ".ssh"),
                                  (f"{self.project}/build", "build", ".ssh"), (f"{self.home}/link/away", "away", "other"),
                                  ("all/etc", "all", "/"), ("up", "up", "")):  # fmt: skip
            for option, words in self.asks(name):
                with self.subTest(words=words):
                    said = self.refused(words, self.project)
                    self.assertIn(f"{self.project}/{link}", said)
                    self.assertIn(str(self.home / leads) if leads != "/" else "/", said)
                    self.assertIn("type ", said)
        self.assertEqual(b"x" in self.out("agent", "ls"), False)

    def where(self, *words, cwd=None):
        return self.coop("run", *words, "--", "pwd", "-P", cwd=cwd or self.project)[0].decode().strip()

    def test_s124_what_stays_inside_is_fine(self):
        for name, ends in (("src", "src"), ("within", "deep/er"), ("round", "src"), ("./src/", "src"), ("src/../within", "deep/er"), ("deep/er/..", "deep"),
                           (f"{self.home}/link/src", "src")):  # fmt: skip
            self.assertEqual(self.where("-C", name), f"{self.project}/{ends}")
            self.assertEqual(self.where("--workspace", name, "-C", name), f"{self.project}/{ends}")
        self.assertEqual(self.where("--write", "src"), str(self.project))

    def test_s124_dots_are_taken_without_links(self):
        """`..` as typed leads up; on the way down again no link is followed."""
        self.assertEqual(self.where("-C", "../other"), str(self.other))
        self.assertEqual(self.where("-C", "..", cwd=self.project / "src"), str(self.project))
        self.assertEqual(self.where("-C", "../other/sub", "--workspace", "../other"), str(self.other / "sub"))
        (self.home / "linked").symlink_to("other")
        for name in ("../linked", "../linked/sub", "../project/build", "../project/away", "../other/../linked"):
            said = self.refused(("run", "-C", name, "--", "true"), self.project)
            self.assertRegex(said, "link", name)

    def test_s124_credentials_by_their_own_name_alone(self):
        """Neither by a link, nor as a relative name, nor by standing there; by what it is called they are meant."""
        (self.home / "elsewhere").symlink_to(self.home / ".ssh")
        (self.place.dir / "far").symlink_to(self.home)
        for words, cwd in ((("--workspace", ".ssh"), self.home), (("-C", ".ssh"), self.home), ((), self.home / ".ssh"), (("--workspace", "project", "--write", ".ssh"), self.home),
                           (("--workspace", "project/build"), self.home), (("--workspace", f"{self.home}/elsewhere"), self.project),
                           (("--workspace", f"{self.project}/build"), "/"), (("--root", "minimal", "--read", ".ssh"), self.home),
                           (("--workspace", ".config/gh"), self.home)):  # fmt: skip
            with self.subTest(words=words):
                said = self.refused(("run", *words, "--", "sh", "-c", "cat id; touch made"), cwd)
                self.assertRegex(said, "credentials|cannot be entered", words)
        for words in (("mcp", "--workspace", ".ssh"), ("mcp", "--workspace", "project/build"), ("serve", "--workspace", ".ssh", "--listen", "127.0.0.1:0"),
                      ("agent", "add", "x", "--workspace", f"{self.project}/build"), ("agent", "add", "x", "--workspace", "project/build")):  # fmt: skip
            self.assertIn("credentials", self.refused(words, self.home), words)
        self.assertFalse((self.home / ".ssh" / "made").exists())
        out = self.coop("run", "--workspace", f"{self.home}/.ssh", "--", "sh", "-c", "ls id", cwd=self.project)[0]
        self.assertEqual(out.split(), [b"id"])

    def test_s003_files_that_are_given(self):
        """What is read here for a command is not what a link in the project leads to."""
        for name in ("file", "away/file", "build/id", f"{self.project}/file"):
            said = self.refused(("run", "--inject", f"KEY={name}", "--", "sh", "-c", "cat $KEY"), self.project)
            self.assertIn("leads", said)
        for name in ("fine", f"{self.other}/file", "../other/file"):
            self.coop("run", "--inject", f"KEY={name}", "--", "sh", "-c", "test -s $KEY", cwd=self.project)

    def test_s096_what_was_looked_at_is_what_is_given(self):
        """While a folder and a link that leads out change places, a command gets the folder, or none."""
        real, link, turning = self.project / "real", self.project / "turn", self.project / "turning"
        turning.mkdir()
        link.symlink_to(self.other)
        ending = threading.Event()

        def turn():
            while not ending.is_set():
                os.rename(turning, real)
                os.rename(link, turning)
                os.rename(turning, link)
                os.rename(real, turning)

        thread = threading.Thread(target=turn)
        thread.start()
        try:
            for _ in range(40):
                self.coop("run", "--workspace", "turning", "--", "touch", "made", code=None, cwd=self.project)
        finally:
            ending.set()
            thread.join()
        self.assertFalse((self.other / "made").exists())

"""A keeper of root runs commands as somebody else: folders that only root may enter are no obstacle to what lies in them and is given, be it
the workspace, the home, the keeper's state, or several of them."""

import shutil
import tempfile
from pathlib import Path

from lib.cli import CliCase

OPTIONS = ((), ("--root", "minimal"), ("--home", "hidden"), ("--home", "read-only"), ("--write", "MORE"))


class ClosedTest(CliCase):
    def setUp(self):
        super().setUp()
        self.closed = Path(tempfile.mkdtemp(prefix="coop-t-", dir="/var/tmp"))
        self.closed.chmod(0o700)
        self.addCleanup(shutil.rmtree, self.closed, ignore_errors=True)

    def folder(self, *parts):
        path = self.closed.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def check(self, work, **env):
        env = {name: str(path) for name, path in env.items()}
        more = self.folder("more")
        for options in OPTIONS:
            with self.subTest(work=work, env=env, options=options):
                words = [word.replace("MORE", str(more)) for word in options]
                out, err = self.coop("run", *words, "--", "sh", "-c", "echo x > made && cat made", cwd=work, env=env, code=None)
                self.assertEqual((self.code, out), (0, b"x\n"), err)
                (work / "made").unlink()
        self.coop("shutdown", env=env)

    def test_workspace_and_home_side_by_side(self):
        self.check(self.folder("work"), HOME=self.folder("home"))

    def test_workspace_and_home_at_different_depths(self):
        self.check(self.folder("a", "b", "work"), HOME=self.folder("a", "home"))

    def test_workspace_in_the_home(self):
        self.check(self.folder("home", "project"), HOME=self.folder("home"))

    def test_all_that_coop_has(self):
        self.check(self.folder("work"), HOME=self.folder("home"), COOP_STATE=self.closed / "state", COOP_DATA=self.closed / "data")

    def test_state_in_the_home(self):
        self.check(self.folder("home", "project"), HOME=self.folder("home"), COOP_STATE=self.closed / "home" / "state")

    def test_what_cannot_be_is_told_with_the_folder(self):
        """A name that is not there, in a folder that the command cannot enter, can be kept from nobody: that is said, not something else."""
        out, err = self.coop("run", "--deny-read", str(self.closed / "none"), "--", "true", cwd=self.place.work, code=None)
        if self.code:
            self.assertIn(str(self.closed / "none").encode(), err)
            self.assertIn(b"EACCES", err)
            self.assertNotIn(b"EINVAL", err)

"""Protected paths that git and links lead to (B-109): nothing that a command leaves is run by git outside."""

import os
import subprocess

from lib import procs
from lib.both_keepers import USER, BothKeepersCase

GIT = ["git", "-c", "safe.directory=*", "-c", "user.email=a@b", "-c", "user.name=n", "-c", "protocol.file.allow=always"]
EVIL = "[core]\n\tfsmonitor = touch {}/pwned; false\n"


class GitTest(BothKeepersCase):
    def git(self, *words, at=None):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run([*GIT, *words], cwd=at or self.ws, env=env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout

    def give_all(self):
        for folder, folders, files in os.walk(self.ws):
            for name in [folder, *(os.path.join(folder, f) for f in folders + files)]:
                if self.user:
                    os.lchown(name, self.user, self.user)

    def repository(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "first")
        self.give_all()

    def cleaned(self, *wanted):
        procs.wait_until(lambda: sorted(os.listdir(self.ws)) == sorted(wanted), "placeholders are taken away")

    def test_b109_commondir(self):
        """Neither `commondir` nor the work tree's own settings take git elsewhere; git works inside and outside meanwhile."""
        self.repository()
        (self.base / "evil").write_text(EVIL.format(self.base))
        script = f"""
            mkdir evil && cp -r .git/objects .git/refs evil/ && cat .git/config {self.base}/evil >evil/config
            echo ../evil 2>/dev/null >.git/commondir && echo wrote
            rm -f .git/commondir 2>/dev/null && echo removed
            mv evil/config .git/commondir 2>/dev/null && echo moved
            cat {self.base}/evil 2>/dev/null >.git/config.worktree && echo worktree
            {" ".join(GIT[:3])} status --short
            rm -r evil; echo end"""
        _, out, err = self.inside(script)
        self.assertEqual((out, err), ("?? evil/\nend\n", ""))
        # What goes while git looks at it makes git say so.
        self.cleaned(".git")
        self.assertEqual(self.git("status", "--short"), "")
        self.assertFalse((self.base / "pwned").exists())
        procs.wait_until(lambda: not (self.ws / ".git/commondir").exists(), "no commondir")
        self.assertFalse((self.ws / ".git/config.worktree").exists())

    def planted(self, count, settings="", parts=("objects", "refs")):
        """A repository with so many modules, as a command could leave it."""
        for i in range(count):
            module = self.ws / f".git/modules/m{i}"
            module.mkdir(parents=True)
            (module / "HEAD").touch()
            (module / "config").write_text(settings)
            for part in parts:
                (module / part).mkdir()
        self.give_all()

    def test_b109_more_modules_than_can_be_worked_in(self):
        """All of them are read-only then, but for what their settings include nothing is held for each: nobody else waits for what was
        planted."""
        (self.ws / "real").mkdir()
        self.planted(200, "[include]\n\tpath = ../../../real/x\n")
        process = self.client.call("spawn", argv=["sleep", "300"], cwd=str(self.ws), sandbox={"workspace": str(self.ws)})["process"]["id"]
        self.assertLess(self.client.call("info")["sandbox"]["ghosts"], 40)
        script = """
            for f in modules/m7/config modules/m7/commondir modules/m7/hooks modules/new; do
                echo x 2>/dev/null >.git/$f && echo wrote $f; done
            mv .git/modules .git/m 2>/dev/null && echo moved; rm -rf .git/modules/m9 2>/dev/null && echo removed
            echo x 2>/dev/null >real/x && echo wrote real/x; echo x >.git/index && echo end"""
        self.assertEqual(self.says(script), "end")
        self.client.call("kill", id=process)

    def test_b109_modules_that_were_only_begun(self):
        """Nobody can complete them, and nothing is held in them."""
        self.planted(20, parts=())
        process = self.client.call("spawn", argv=["sleep", "300"], cwd=str(self.ws), sandbox={"workspace": str(self.ws)})["process"]["id"]
        self.assertLess(self.client.call("info")["sandbox"]["ghosts"], 40)
        self.assertEqual(self.says("mkdir .git/modules/m7/objects 2>/dev/null && echo made; mkdir .git/modules/new && echo end"), "end")
        self.client.call("kill", id=process)

    def test_b109_more_modules_than_can_be_looked_at(self):
        """They are refused as soon as they are too many: nobody else waits while all that was planted is looked through."""
        self.planted(2100, parts=())
        error = self.refusal(sandbox={"workspace": str(self.ws)})
        self.assertEqual(error.code, "too_large")
        self.assertIn("more than 2048 repositories are kept in ", error.message)

    def test_b109_more_includes_than_can_be_looked_through(self):
        """The bound is for all modules together."""
        (self.ws / "real").mkdir()
        for i in range(64):
            (self.ws / f"real/x{i}").touch()
        self.planted(10, "".join(f"[include]\n\tpath = ../../../real/x{i}\n" for i in range(60)))
        error = self.refusal(sandbox={"workspace": str(self.ws)})
        self.assertEqual(error.code, "sandbox_unavailable", error)
        self.assertIn("too many files are included", error.message)

    def test_b109_git_works_while_placeholders_stand(self):
        """Outside and inside: status, commit, branches. Nothing of the placeholders is added."""
        self.repository()
        process = self.client.call("spawn", argv=["sleep", "300"], cwd=str(self.ws), sandbox={"workspace": str(self.ws)})["process"]["id"]
        self.assertEqual((self.ws / ".git/commondir").read_text(), ".\n")
        git = " ".join(GIT)
        script = f"echo a >a && {git} add -A && {git} commit -q -m a && {git} branch b && {git} show --stat --format=%s && wc -c <.bashrc && {git} gc -q"
        _, out, err = self.inside(script)
        self.assertEqual((out.split(), err), (["a", "a", "|", "1", "+", "1", "file", "changed,", "1", "insertion(+)", "0"], ""))
        self.assertEqual(self.says("echo x >.bashrc || echo no; stat -c %F .bashrc"), "no\nregular empty file")
        self.assertEqual(self.git("log", "--format=%s").split(), ["a", "first"])
        self.client.call("kill", id=process)
        self.cleaned(".git", "a")

    def test_b109_modules_and_linked_work_trees(self):
        """Those of the repository that exist."""
        self.git("init", "-q", "part", at=self.home)
        self.git("commit", "-q", "--allow-empty", "-m", "p", at=self.home / "part")
        self.git("init", "-q")
        subprocess.run([*GIT, "submodule", "-q", "add", str(self.home / "part"), "lib/part"], cwd=self.ws, check=True)
        self.git("commit", "-q", "-m", "first")
        subprocess.run([*GIT, "worktree", "add", "-q", str(self.base / "tree")], cwd=self.ws, check=True)
        self.give_all()
        script = """
            for f in modules/lib/part/config modules/lib/part/commondir modules/lib/part/hooks/x worktrees/tree/commondir \
                worktrees/tree/config.worktree; do echo x 2>/dev/null >.git/$f && echo wrote $f; done
            mv .git/modules .git/m 2>/dev/null && echo moved; rm -rf .git/worktrees/tree/commondir 2>/dev/null && echo gone
            cd lib/part && echo y >y && %s add y && %s commit -q -m y && echo end""" % (" ".join(GIT), " ".join(GIT))  # fmt: skip
        _, out, err = self.inside(script)
        self.assertEqual((out, err), ("end\n", ""))
        self.cleaned(".git", ".gitmodules", "lib")
        self.assertEqual(self.git("status", "--short"), " M lib/part\n")

    def test_b109_chain_of_links(self):
        """The link in the middle is held as well."""
        (self.ws / "real/vscode").mkdir(parents=True)
        (self.ws / "conf").symlink_to("real")
        (self.ws / ".vscode").symlink_to("conf/vscode")
        self.give_all()
        script = "rm conf || echo a; mv real r || echo b; rm .vscode || echo c; echo evil >conf/vscode/tasks.json || echo d"
        self.assertEqual(self.says(script).split(), ["a", "b", "c", "d"])

    def test_b109_closed_workspace(self):
        """Its owner could open it: where nothing can be held, nothing is started."""
        self.ws.chmod(0o555)
        if self.user or os.geteuid() != 0:
            error = self.refusal(sandbox={"workspace": str(self.ws)})
            self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "files"))
        self.ws.chmod(0o755)
        self.says("chmod 0 .")
        mode = self.ws.stat().st_mode & 0o777
        self.assertEqual(mode, 0)
        procs.wait_until(lambda: self.names_as_root() == [], "placeholders are taken away")

    def names_as_root(self):
        return os.listdir(self.ws) if os.geteuid() == 0 else []


class GitOfAUserTest(GitTest):
    user = USER

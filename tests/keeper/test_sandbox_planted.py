"""What a command leaves in a workspace is not run by git, a shell, an editor or an agent outside: planted repositories, and files that run
by themselves (B-109)."""

import os
import subprocess

from lib import procs
from lib.both_keepers import USER, BothKeepersCase

GIT = ["git", "-c", "safe.directory=*", "-c", "user.email=a@b", "-c", "user.name=n"]
INSIDE = "git -c safe.directory='*' -c user.email=a@b -c user.name=n"

# Each leaves a repository for this folder if it can. $EVIL is a file of settings that leave a mark.
BARE = "mkdir -p objects refs/heads; echo ref: refs/heads/main >HEAD; cat $EVIL >config"
PLANTS = {
    "bare": BARE,
    "of git's own": "git init -q --bare . ; cat $EVIL >config",
    "moved here": "git init -q --bare sub; cat $EVIL >sub/config; mv sub/* . ; cp -r sub/. .",
    "hash as HEAD": "mkdir -p objects refs; echo 0123456789012345678901234567890123456789 >HEAD; cat $EVIL >config",
    "by commondir": "git init -q --bare sub; cat $EVIL >sub/config; echo sub >commondir; cp sub/HEAD HEAD",
    "by a linked commondir": "git init -q --bare sub; cat $EVIL >sub/config; echo sub >c; ln -s c commondir; cp sub/HEAD HEAD",
    "by links": "git init -q --bare sub; cat $EVIL >sub/config; ln -s sub/objects sub/refs sub/config . ; cp sub/HEAD .",
    "by hard links": "git init -q --bare sub; cat $EVIL >sub/config; ln -s sub/objects . ; mkdir refs; ln sub/HEAD sub/config .",
    "swapped": "git init -q --bare sub; cat $EVIL >sub/config; cp -r sub/objects sub/HEAD sub/config .; mkdir refs; "
    "python3 -c 'import ctypes; print(ctypes.CDLL(None).renameat2(-100, b\"sub/refs\", -100, b\"refs\", 2))'",
    "in the dark": "chmod 0 refs commondir; rm -rf refs commondir; mv refs r; mv commondir c; " + BARE,
    "gitfile": "git init -q --bare sub; cat $EVIL >sub/config; rm -rf .git; echo gitdir: sub >.git",
    "link": "git init -q --bare sub; cat $EVIL >sub/config; rm -rf .git; ln -s sub .git",
    "folder": "rm -rf .git; mkdir -p .git/objects .git/refs; echo ref: refs/heads/main >.git/HEAD; cat $EVIL >.git/config",
}
BREAKS = {
    "HEAD removed": "rm -f .git/HEAD",
    "HEAD of nonsense": "echo nonsense >.git/HEAD",
    "HEAD a folder": "rm -f .git/HEAD; mkdir .git/HEAD",
    "refs removed": "rm -rf .git/refs",
    "objects removed": "rm -rf .git/objects",
    "objects closed": "chmod 0 .git/objects",
    "closed": "chmod 0 .git",
    "moved": "mv .git away",
    "removed": "rm -rf .git",
}
# Names that must not come to be, where they are missing.
SHELLS = (".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshenv", ".zshrc", ".zprofile", ".zlogin")
AGENTS = (".mcp.json", ".claude", ".cursor", ".gemini", ".opencode")
EDITORS = (".vscode", ".idea")
OTHERS = (".gitmodules", ".gitconfig", ".hg", ".jj", ".envrc", "commondir", "refs")
MISSING = SHELLS + AGENTS + EDITORS + OTHERS
# What is kept where it is there.
KEPT = (
    ".claude/settings.json", ".claude/settings.local.json", ".claude/commands/c.md", ".claude/agents/a.md", ".cursor/mcp.json",
    ".gemini/settings.json", ".zed/tasks.json", ".vscode/tasks.json", ".hg/hgrc", ".hg/requires", ".jj/repo/config.toml",
    ".sl/config", ".envrc", ".kiro/hooks/h", ".windsurf/hooks.json", ".helix/languages.toml", ".nvim.lua",
    ".dir-locals.el", "opencode.json", "mise.toml", ".mise.toml", ".aider.conf.yml", ".devcontainer/devcontainer.json",
)  # fmt: skip


class PlantedTest(BothKeepersCase):
    def setUp(self):
        super().setUp()
        self.mark = self.base / "pwned"
        self.evil = self.base / "evil"
        self.evil.write_text(
            f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {self.ws}\n\tfsmonitor = touch {self.mark}; false\n"
            f"[diff]\n\texternal = touch {self.mark}\n[planted]\n\there = yes\n"
        )

    def give_all(self):
        for folder, folders, files in os.walk(self.ws):
            for name in [folder, *(os.path.join(folder, f) for f in folders + files)]:
                if self.user:
                    os.lchown(name, self.user, self.user)

    def outside(self, *words, at=None, check=False):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run([*GIT, *words], cwd=at or self.ws, env=env, capture_output=True, text=True)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def repository(self):
        self.outside("init", "-q", check=True)
        (self.ws / "file").write_text("one\n")
        self.outside("add", "file", check=True)
        self.outside("commit", "-q", "-m", "first", check=True)
        self.give_all()

    def empty(self):
        subprocess.run(["chmod", "-R", "u+rwx", str(self.ws)], check=False)
        subprocess.run(["find", str(self.ws), "-mindepth", "1", "-delete"], check=True)
        self.mark.unlink(missing_ok=True)

    def look(self, what):
        """As a person or a prompt does."""
        for words in (["status"], ["status", "--porcelain"], ["diff"], ["log", "-1"], ["rev-parse", "--show-toplevel"]):
            self.outside(*words)
        self.assertFalse(self.mark.exists(), what)
        self.assertFalse(self.taken(), what)

    def taken(self):
        """Whether git takes the settings that were planted for those of this folder: pagers, helpers, hooks and more would be run."""
        return self.outside("config", "--get", "planted.here").stdout == "yes\n"

    def plant(self, script, what, **args):
        """Also while the command still stands there."""
        self.inside(f"export HOME=/tmp EVIL={self.evil}; {script}", **args)
        self.look(what)

    def test_the_plants_bear_fruit(self):
        """Without protection each of them is a repository whose settings are taken: else the tests below would show nothing."""
        for name, script in PLANTS.items():
            with self.subTest(name):
                self.empty()
                env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "EVIL": str(self.evil)}
                subprocess.run(["sh", "-c", script], cwd=self.ws, env=env, capture_output=True)
                self.outside("status")
                self.assertTrue(self.taken())
                self.assertEqual(self.mark.exists(), "commondir" not in name)

    def test_b109_planted_in_a_plain_folder(self):
        for name, script in PLANTS.items():
            with self.subTest(name):
                self.empty()
                self.plant(script, name)

    def test_b109_planted_beside_a_repository(self):
        """The one that is there is broken first, in every way."""
        for broken, first in BREAKS.items():
            for name in ("bare", "by commondir", "gitfile", "link", "folder"):
                with self.subTest(broken=broken, plant=name):
                    self.empty()
                    self.repository()
                    self.plant(f"{first}; {PLANTS[name]}", (broken, name))

    def test_b109_planted_around_folders_of_the_project(self):
        """The project has folders of those names itself."""
        for there in (["refs"], ["objects"], ["refs", "objects"], ["refs", "objects", "hooks"], ["HEAD"], ["HEAD", "refs"]):
            for name in ("bare", "by commondir", "by links"):
                with self.subTest(there=there, plant=name):
                    self.empty()
                    for folder in there:
                        if folder == "HEAD":
                            (self.ws / folder).write_text("ref: refs/heads/main\n")
                        else:
                            (self.ws / folder).mkdir()
                    self.give_all()
                    self.plant(PLANTS[name], (there, name))

    def test_b109_bare_repository_as_a_workspace(self):
        """Its settings and hooks stay; it can be worked with."""
        self.outside("init", "-q", "--bare", ".", check=True)
        self.give_all()
        before = (self.ws / "config").read_text()
        script = f"""
            for f in config commondir config.worktree hooks/post-update; do cat $EVIL 2>/dev/null >$f && echo wrote $f; done
            mv config c 2>/dev/null && echo moved; mv hooks h 2>/dev/null && echo moved
            rm HEAD && echo ref: refs/heads/other >HEAD && echo head
            t=$({INSIDE} mktree </dev/null) && c=$({INSIDE} commit-tree -m x $t) && {INSIDE} update-ref refs/heads/main $c && echo end"""
        record, out, err = self.inside(f"EVIL={self.evil}; {script}")
        self.assertEqual(out, "head\nend\n", err)
        self.look("bare")
        self.assertEqual((self.ws / "config").read_text(), before)
        self.assertFalse((self.ws / "commondir").exists())

    def test_b109_settings_that_settings_include(self):
        """A file that .git/config names is part of it."""
        self.repository()
        (self.ws / "dev").mkdir()
        (self.ws / "dev/shared").write_text("[user]\n\tname = x\n")
        for key, value in (("include.path", "../dev/shared"), ("includeIf.gitdir:/.path", "../later/settings"), ("include.path", "info/own")):
            self.outside("config", "--add", key, value, check=True)
        self.give_all()
        self.plant("cat $EVIL >dev/shared; mv dev d; mkdir later; cat $EVIL >later/settings; cat $EVIL >.git/info/own", "include")
        self.assertEqual((self.ws / "dev/shared").read_text(), "[user]\n\tname = x\n")

    def test_b109_git_goes_on_while_placeholders_stand(self):
        """HEAD is a word of git's, which no placeholder may make ambiguous; nothing of ours is added or shown."""
        self.repository()
        process = self.client.call("spawn", argv=["sleep", "300"], cwd=str(self.ws), sandbox={"workspace": str(self.ws)})["process"]["id"]
        for words in (["diff", "HEAD"], ["log", "--format=%s", "HEAD"], ["log", "--format=%s", "refs/heads/" + self.branch()]):
            done = self.outside(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        self.assertEqual(self.outside("status", "--short", "--ignored").stdout, "")
        script = f"""
            {INSIDE} status --short; {INSIDE} diff HEAD && {INSIDE} log --format=%s HEAD refs/heads/{self.branch()} && {INSIDE} reset -q --hard HEAD
            {INSIDE} checkout -q -b other && echo two >file && {INSIDE} commit -q -a -m second && {INSIDE} branch -q third &&
            {INSIDE} fetch -q . other:fourth && {INSIDE} stash list && {INSIDE} gc -q && {INSIDE} log --format=%s | head -1"""
        _, out, err = self.inside(script)
        self.assertEqual((out, err), ("first\nsecond\n", ""))
        self.client.call("kill", id=process)
        self.only_left(".git", "file")

    def branch(self):
        return self.outside("symbolic-ref", "--short", "HEAD").stdout.strip()

    def only_left(self, *names):
        procs.wait_until(lambda: sorted(os.listdir(self.ws)) == sorted(names), f"{names} only: {os.listdir(self.ws)}")

    def test_b109_init_outside_afterwards(self):
        """An empty folder is empty again, and a person's to make a repository of; below it a command may make its own."""
        self.says("true")
        self.assertEqual(os.listdir(self.ws), [])
        out = self.says(f"{INSIDE} init -q sub && cd sub && echo x >x && {INSIDE} add x && {INSIDE} commit -q -m x && {INSIDE} log --format=%s")
        self.assertEqual(out, "x")
        self.only_left("sub")
        self.outside("init", "-q", check=True)
        self.assertEqual(self.outside("status", "--short").stdout, "?? sub/\n")

    def test_b109_files_that_run_by_themselves_missing(self):
        """They can be made in no way, and nothing is left of the attempt."""
        (self.ws / "own").write_text("evil\n")
        (self.ws / "box").mkdir()
        self.give_all()
        script = """for f in "$@"; do
            { echo x >$f || mkdir $f || ln -s own $f || ln own $f || mv own $f || mv box $f || mkfifo $f; } 2>/dev/null && echo made $f
            { rm -rf $f || rmdir $f || mv $f away || mv -T $f away; } 2>/dev/null && echo removed $f
            mkdir -p $f/in 2>/dev/null && echo filled $f
        done; echo end"""
        _, out, err = self.inside("", argv=["sh", "-c", script, "sh", *MISSING])
        self.assertEqual((out, err), ("end\n", ""))
        self.only_left("own", "box")

    def test_b109_files_that_run_by_themselves_existing(self):
        for name in KEPT:
            (self.ws / name).parent.mkdir(parents=True, exist_ok=True)
            (self.ws / name).write_text("mine\n")
        self.give_all()
        script = """for f in "$@"; do
            { echo x >$f || echo x >>$f || chmod 777 $f || rm $f || mv $f away; } 2>/dev/null && echo changed $f
            top=${f%%/*}
            { rm -rf $top || mv $top away; } 2>/dev/null && echo removed $top
        done; echo end"""
        _, out, err = self.inside("", argv=["sh", "-c", script, "sh", *KEPT])
        self.assertEqual((out, err), ("end\n", ""))
        for name in KEPT:
            self.assertEqual((self.ws / name).read_text(), "mine\n", name)

    def test_b109_repositories_of_others_are_worked_in(self):
        """Mercurial and Jujutsu write beside their settings; what is missing of those does not come to be."""
        for name in (".hg/store", ".jj/repo/store", ".jj/working_copy"):
            (self.ws / name).mkdir(parents=True)
        (self.ws / ".hg/requires").write_text("store\n")
        self.give_all()
        script = """
            for f in .hg/hgrc .hg/hgrc-not-shared .jj/repo/config.toml .jj/workspace-config.toml; do
                { echo x >$f || ln -s /tmp/x $f; } 2>/dev/null && echo made $f; done
            mv .hg h 2>/dev/null && echo moved; mv .jj/repo .jj/r 2>/dev/null && echo moved; echo shared 2>/dev/null >.hg/requires && echo shared
            echo x >.hg/dirstate && echo x >.hg/store/00changelog.i && echo x >.jj/working_copy/tree_state && wc -c <.hg/hgrc"""
        _, out, err = self.inside(script)
        self.assertEqual((out, err), ("0\n", ""))
        self.only_left(".hg", ".jj")
        self.assertEqual(sorted(os.listdir(self.ws / ".hg")), ["dirstate", "requires", "store"])
        self.assertEqual(sorted(os.listdir(self.ws / ".jj/repo")), ["store"])


class PlantedOfAUserTest(PlantedTest):
    user = USER

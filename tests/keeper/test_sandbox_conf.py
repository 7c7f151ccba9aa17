"""coop.conf is sealed against commands, wherever it lies or is linked from: what a command may do is not for it to say (B-109)."""

import os
import subprocess

from lib import procs
from lib.both_keepers import USER, BothKeepersCase
from lib.confined import NEW_MOUNT_CALLS
from lib.place import Place

# Everything that would put another file in its place. $1: the file, $2: a folder above it, or nothing.
ATTEMPT = """
    { echo evil >"$1" || echo evil >>"$1" || rm "$1" || mv "$1" "$1.old" || ln -sf evil "$1" || ln evil "$1" || mv -f evil "$1"; } 2>/dev/null && echo changed
    if [ -n "$2" ]; then
        { mv "$2" "$2.old" || rm -r "$2"; } 2>/dev/null </dev/null && echo moved
        mkdir -p "$2" 2>/dev/null
    fi
    echo evil 2>/dev/null >"$1" && echo made
    truncate -s 0 "$1" 2>/dev/null && echo cut; chmod 777 "$1" 2>/dev/null && echo opened; echo end"""


class ConfTest(BothKeepersCase):
    odd = ""  # what may be said besides
    text = "[sandbox]\nat_most_network = loopback\n"

    def keeper_with(self, path=None, cwd=None, **env):
        """Another one, which takes its settings from there."""
        place = Place(owner=self.user) if self.user else Place()
        self.conf = self.text if path and os.path.exists(path) else ""
        keeper, was = None, os.getcwd()
        try:
            if cwd:
                os.chdir(cwd)
            keeper = self.start_keeper(place=place, env={"COOP_CONF": str(path) if path else "", **env})
        finally:
            os.chdir(was)
        return keeper.connect()

    def write(self, path, text=None):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text if text is None else text)
        path.chmod(0o600)
        for each in (path, path.parent):
            self.give(each)
        return path

    def attempt(self, client, path, folder="", **sandbox):
        (self.ws / "evil").write_text("[sandbox]\nat_most_network = host\n")
        self.give(self.ws / "evil")
        args = {"argv": ["sh", "-c", ATTEMPT, "sh", str(path), str(folder)], "client": client}
        _, out, err = self.inside("", {"workspace": str(self.ws), **sandbox}, **args)
        self.assertEqual((out.replace(self.odd, ""), err), ("end\n", ""))
        if self.odd and os.path.isfile(path):
            os.chmod(path, 0o600)

    def test_b109_in_the_workspace(self):
        conf = self.write(self.ws / "etc/coop.conf")
        client = self.keeper_with(conf)
        self.attempt(client, conf, self.ws / "etc")
        self.assertEqual(conf.read_text(), self.text)
        self.assertEqual(self.says(f"cat {conf}", client=client), self.text.strip())

    def test_b109_in_a_further_folder_and_below_an_agents_root(self):
        more = self.folder("more")
        conf = self.write(more / "coop.conf")
        client = self.keeper_with(conf)
        self.attempt(client, conf, "", allow_write=[str(more)])
        self.assertEqual(conf.read_text(), self.text)

    def test_b109_by_links(self):
        """From outside into the workspace, from there out, through the workspace, and by a folder that is a link."""
        real = self.write(self.ws / "dots/coop/coop.conf")
        outside = self.write(self.base / "settings/coop.conf")
        (self.base / "to-inside").symlink_to(real)
        (self.ws / "to-outside").symlink_to(outside)
        (self.base / "through").symlink_to(self.ws / "to-outside")
        (self.base / "folder").symlink_to(self.ws / "dots")
        (self.ws / "up").symlink_to("dots")
        for name, attacked, folder in (
            (self.base / "to-inside", real, self.ws / "dots"),
            (self.ws / "to-outside", self.ws / "to-outside", ""),
            (self.base / "through", self.ws / "to-outside", ""),
            (self.base / "folder/coop/coop.conf", real, self.ws / "dots"),
            (self.ws / "up/coop/coop.conf", real, self.ws / "up"),
        ):
            with self.subTest(str(name.relative_to(self.base))):
                client = self.keeper_with(name)
                self.attempt(client, attacked, folder)
                self.assertEqual(name.read_text(), self.text)
                self.assertEqual((self.ws / "to-outside").readlink(), outside)

    def test_b109_by_a_relative_name(self):
        conf = self.write(self.ws / "coop.conf")
        client = self.keeper_with("coop.conf", cwd=self.ws)
        self.attempt(client, conf, "")
        self.assertEqual(conf.read_text(), self.text)

    def test_b109_by_a_hard_link(self):
        conf = self.write(self.base / "settings/coop.conf")
        os.link(conf, self.ws / "twin")
        os.link(conf, self.ws / "coop.conf")
        client = self.keeper_with(self.ws / "coop.conf")
        self.assertEqual(self.says("echo evil 2>/dev/null >twin || echo no", client=client), "no")
        self.assertEqual(conf.read_text(), self.text)

    def test_b109_missing(self):
        """It does not come to be; nothing of the attempt stays, and a file of a person's own may come later."""
        if not self.user:
            self.removed_after_the_start()
            return
        for there in ("", "config", "config/coop"):
            with self.subTest(there):
                subprocess.run(["find", str(self.ws), "-mindepth", "1", "-delete"], check=True)
                for parent in ("config", "config/coop")[: there.count("/") + bool(there)]:
                    (self.ws / parent).mkdir()
                    self.give(self.ws / parent)
                client = self.keeper_with(XDG_CONFIG_HOME=str(self.ws / "config"))
                self.attempt(client, self.ws / "config/coop/coop.conf", self.ws / "config/coop")
                kept = ["evil"] + ([there.split("/")[0]] if there else [])
                procs.wait_until(lambda: sorted(os.listdir(self.ws)) == sorted(kept), "placeholders go")  # noqa: B023
                self.assertFalse((self.ws / "config/coop/coop.conf").exists())

    def removed_after_the_start(self):
        """Root's own lies in /etc, which is no workspace; one that COOP_CONF names must be there at the start, and may go later."""
        conf = self.write(self.ws / "coop.conf")
        client = self.keeper_with(conf)
        conf.unlink()
        self.attempt(client, conf, "")
        procs.wait_until(lambda: os.listdir(self.ws) == ["evil"], "placeholders go")

    def test_b109_also_with_a_list_of_ones_own(self):
        """`protect_only` is about the project, not about the keeper."""
        conf = self.write(self.ws / "coop.conf", "[profile fresh]\nbase = workspace-write\nprotect_only =\n")
        client = self.keeper_with(conf)
        self.attempt(client, conf, "", profile="fresh")
        self.assertIn("protect_only", conf.read_text())


class ConfOfAUserTest(ConfTest):
    user = USER


class ConfWithoutMountsTest(ConfTest):
    """With Landlock alone it is held as well: nothing can be made beside it, then. Modes are not Landlock's."""

    user = USER
    lacks = tuple(f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS)
    odd = "opened\n"

    def inside(self, script, sandbox=None, client=None, **args):
        sandbox = {"workspace": str(self.ws)} if sandbox is None else sandbox
        return super().inside(script, {**sandbox, "tolerate": ["files"]}, client, **args)

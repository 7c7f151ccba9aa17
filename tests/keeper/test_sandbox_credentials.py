"""What holds secrets in a home is not seen by commands: every row of the table is planted and looked for (B-109, S-132)."""

import os
import re
import subprocess

from lib.both_keepers import USER, BothKeepersCase
from lib.client import KeeperError
from lib.place import REPOSITORY

SOURCE = REPOSITORY / "src/sandbox/policy/credentials.c"
ROWS = re.findall(r'^\t"([^"]+)",$', SOURCE.read_text(), re.MULTILINE)
SECRET = "a secret word"
# As they were found in use; the table has more.
NAMED = """
    .ssh .aws .azure .gnupg .netrc .docker .kube .git-credentials .pypirc .npmrc .config/gcloud .config/gh .password-store .mozilla
    .local/share/fish/fish_history .sqlite_history .node_repl_history .rediscli_history .local/share/atuin .mylogin.cnf .authinfo
    .authinfo.gpg .subversion/auth .vnc .Xauthority .claude.json .gemini/oauth_creds.json .local/share/opencode/auth.json .codex/auth.json
    .config/github-copilot .cache/huggingface/token .kaggle .config/containers/auth.json .terraformrc .terraform.d/credentials.tfrc.json
    .pulumi/credentials.json .oci .fly .cloudflared .minikube .config/doctl .config/hcloud .config/heroku .config/netlify .config/stripe
    .config/sops .config/helm .config/argocd .local/share/com.vercel.cli .databrickscfg .snowflake .step .config/glab-cli
    .m2/settings.xml .gradle/gradle.properties .config/pip/pip.conf .config/composer/auth.json .bundle/config .yarnrc.yml
    .nuget/NuGet/NuGet.Config .config/pypoetry/auth.toml .config/Code .config/Slack .local/share/kwalletd .local/share/python_keyring
    .local/share/keyrings .electrum .bitcoin .ethereum .config/solana .python_history .mysql_history .psql_history .pgpass .my.cnf
""".split()
# Tells which of the names on its input can be seen to be there, or hold the word.
LOOK = r"""
import os, sys
for name in sys.stdin.read().split("\n"):
    path = os.path.join(sys.argv[1], name)
    files = [path] + [os.path.join(f, n) for f, _, names in os.walk(path) for n in names]
    for file in files:
        try:
            if "secret" in open(file).read(): print("read", file)
        except OSError: pass
    if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)) and not (os.path.isfile(path) and not os.path.getsize(path)):
        print("there", path)
"""


class CredentialsTest(BothKeepersCase):
    def plant(self, rows, home=None):
        """Every second one a folder with a file in it, where the name does not say."""
        home = home or self.home
        for number, name in enumerate(rows):
            path = home / name
            if number % 2 and "." not in name.rsplit("/", 1)[-1][1:]:
                path = path / "file"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(SECRET + "\n")
        if self.user:
            subprocess.run(["chown", "-R", f"{self.user}:{self.user}", str(home)], check=True)

    def seen(self, kind, before=None, home=None, **sandbox):
        """What a command sees of the rows, with a home of that kind; `before` it looks."""
        home = home or self.home
        args = {"argv": ["python3", "-c", LOOK, str(home)], "env": {"HOME": str(home)}, "stdin": "pipe"}
        policy = {"workspace": str(self.ws), "home": kind, **sandbox}
        process = self.client.call("spawn", cwd=str(self.ws), sandbox=policy, **args)["process"]["id"]
        if before:
            before()
        self.client.reply("write_stdin", {"id": process}, "\n".join(ROWS).encode())
        self.client.call("close_stdin", id=process)
        self.client.call("wait", id=process, tidy=True)
        self.assertEqual(self.output(process, "stderr"), b"")
        return self.output(process).decode().splitlines()

    def test_the_table(self):
        """Sorted name by name, each once, none in another; all that is known to be in use is there."""
        self.assertEqual(ROWS, sorted(set(ROWS), key=lambda name: [part.encode() for part in name.split("/")]))
        self.assertEqual([(a, b) for a, b in zip(ROWS, ROWS[1:], strict=False) if b.startswith(a + "/")], [])
        self.assertEqual(sorted(set(NAMED) - set(ROWS)), [])
        self.assertGreater(len(ROWS), 200)

    def test_s132_every_row(self):
        """In every kind of home; the program that looks finds all of them where nothing is confined."""
        self.plant(ROWS)
        for kind in ("cow", "read-only", "hidden"):
            with self.subTest(kind):
                self.assertEqual(self.seen(kind), [])
        done = subprocess.run(["python3", "-c", LOOK, str(self.home)], input="\n".join(ROWS), text=True, capture_output=True, check=True)
        self.assertEqual(sum(line.startswith("there") for line in done.stdout.splitlines()), len(ROWS))

    def test_s132_that_comes_to_be_later(self):
        """In a home that has nothing of it, and in one that has the folders around them."""
        for folders in (False, True):
            with self.subTest(folders=folders):
                home = self.folder(f"later-{folders}")
                for name in ROWS if folders else ():
                    (home / name).parent.mkdir(parents=True, exist_ok=True)
                if self.user:
                    subprocess.run(["chown", "-R", f"{self.user}:{self.user}", str(home)], check=True)
                for kind in ("cow", "hidden"):
                    self.assertEqual(self.seen(kind, lambda: self.plant(ROWS, home), home), [])  # noqa: B023
                    subprocess.run(["find", str(home), "-type", "f", "-delete"], check=True)

    def test_s132_what_comes_between_two_starts(self):
        """The keeper remembers what it found in a home: every change of it counts at once, in folders that are new and in old ones."""
        rows = [name for name in NAMED if "/" in name][:10] + [name for name in NAMED if "/" not in name][:10]
        for number, name in enumerate(rows):
            self.plant([name])
            # The first of these looks anew, the second remembers, as by then nothing has changed for a while.
            for _ in range(2):
                self.assertEqual(self.seen("read-only"), [], name)
            if number % 3 == 0:
                subprocess.run(["rm", "-rf", str(self.home / name)], check=True)

    def test_s132_what_hides_is_made_again(self):
        """What hides names for all sandboxes lies beside the socket: whoever tidies there uncovers nothing that is started later."""
        self.plant(NAMED)
        self.assertEqual(self.seen("cow"), [])
        beside = self.keeper.place.socket.parent / (self.keeper.place.socket.name + ".files")
        made = sorted(beside.glob("masks-*"))
        self.assertEqual(len(made), 1 if self.user else 0)
        for one in made:
            (one / ".ssh").unlink()
        self.assertEqual(self.seen("cow"), [])
        for one in beside.glob("masks-*"):
            subprocess.run(["rm", "-r", str(one)], check=True)
        self.assertEqual(self.seen("cow"), [])

    def test_s132_home_around_the_socket(self):
        """What hides names for all sandboxes cannot lie in the home itself: then each sandbox does it."""
        home = self.keeper.place.socket.parent
        self.plant([".ssh", ".config/gh", ".netrc"], home)
        self.assertEqual([line for line in self.seen("cow", home=home) if not line.startswith("there")], [])
        self.assertEqual(list(home.glob("*.files/masks-*")), [])

    def test_s132_by_links(self):
        """A name in the home that leads elsewhere in it, or out of it: neither the link nor what it leads to is seen."""
        elsewhere = self.folder("elsewhere")
        for number, name in enumerate(ROWS):
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            real = (self.home / "dots" if number % 2 else elsewhere) / f"r{number}"
            real.parent.mkdir(exist_ok=True)
            real.write_text(SECRET)
            (self.home / name).symlink_to(real)
        subprocess.run(["chmod", "-R", "a+rX", str(self.base)], check=True)
        if self.user:
            subprocess.run(["chown", "-R", f"{self.user}:{self.user}", str(self.home), str(elsewhere)], check=True)
        for kind in ("cow", "read-only", "hidden"):
            with self.subTest(kind):
                out = self.says(f"cat {elsewhere}/* {self.home}/dots/* 2>/dev/null | wc -c", {"workspace": str(self.ws), "home": kind}, env={"HOME": str(self.home)})
                self.assertEqual(out, "0")
                self.assertEqual([line for line in self.seen(kind) if line.startswith("read")], [])

    def test_s132_a_home_that_can_be_searched_and_not_read(self):
        self.plant(ROWS)
        self.home.chmod(0o311)
        try:
            self.assertEqual([line for line in self.seen("cow") if line.startswith("read")], [])
        finally:
            self.home.chmod(0o755)

    def test_s132_what_stands_beside_is_seen(self):
        """The folders around them are not taken away with them."""
        self.plant(ROWS)
        for name in (".config/git/config", ".claude/settings.json", ".local/share/fish/functions", ".cargo/config.toml", ".m2/repository"):
            (self.home / name).write_text("plain")
            self.give(self.home / name)
        if not self.user:
            # A keeper of root's hides all of the home.
            self.assertEqual(self.says("ls -A ~", env={"HOME": str(self.home)}), "")
            return
        out = self.says("cd ~ && cat .config/git/config .claude/settings.json .local/share/fish/functions .cargo/config.toml .m2/repository && "
                        "echo x >.config/new && mkdir .ssh && echo own >.ssh/id && ls .ssh", env={"HOME": str(self.home)})  # fmt: skip
        self.assertEqual(out, "plain" * 5 + "id")
        self.assertFalse((self.home / ".config/new").exists())

    def test_s100_hard_links(self):
        """Another name in a folder that the command has is hidden with it; one elsewhere is told, and refuses nothing."""
        self.plant([".netrc", ".ssh"])
        (self.home / ".aws").mkdir()
        (self.home / ".aws/credentials").write_text(SECRET)
        os.link(self.home / ".netrc", self.ws / "one")
        os.link(self.home / ".aws/credentials", self.ws / "two")
        os.chmod(self.ws, 0o777)
        sandbox = {"workspace": str(self.ws)}
        record, out, _ = self.inside("cat one two; ls", sandbox, env={"HOME": str(self.home)})
        self.assertNotIn(SECRET, out)
        self.assertNotIn("hard_links", record["sandbox"])
        os.link(self.home / ".netrc", self.base / "away")
        record, out, _ = self.inside("echo runs", sandbox, env={"HOME": str(self.home)})
        self.assertEqual(out, "runs\n")
        self.assertIn(".netrc may show it elsewhere", record["sandbox"]["hard_links"])

    def listed(self, client=None):
        return {entry.pop("path"): entry for entry in (client or self.client).call("doctor", credentials=True)["credentials"]}

    def test_doctor_lists_them(self):
        """All that are there and nothing else, hidden; those with another name are told. Only the user himself may ask."""
        if not self.user:
            # The home is that of whoever runs the tests: what is in it is not the test's to plant.
            self.assertEqual([path for path, entry in self.listed().items() if not entry["hidden"]], [])
        else:
            self.assertEqual(self.listed(), {})
            self.plant(ROWS)
            os.link(self.home / ".netrc", self.home / "twin")
            found = self.listed()
            self.assertEqual(sorted(found), sorted(str(self.home / name) for name in ROWS))
            self.assertEqual([path for path, entry in found.items() if not entry["hidden"]], [])
            self.assertEqual({entry["reason"] for entry in found.values()}, {"taken out of the home's layer"})
            self.assertEqual([path for path, entry in found.items() if entry["hard_links"]], [str(self.home / ".netrc")])
        self.client.call("agent_add", agent="other")
        with self.assertRaises(KeeperError) as caught:
            self.keeper.login("main/other").call("doctor", credentials=True)
        self.assertEqual((caught.exception.code, caught.exception.details["field"]), ("permission_denied", "credentials"))

    def test_doctor_says_why_not(self):
        """Where commands are not confined by default, they see all."""
        self.conf = "[sandbox]\nprofile = full\n"
        client = self.start_keeper().connect()
        if self.user:
            self.plant([".netrc"])
            self.assertEqual(self.listed(client), {str(self.home / ".netrc"): {
                "hidden": False, "hard_links": 0, "reason": "commands are not confined by default: [sandbox] profile = full"}})  # fmt: skip


class CredentialsOfAUserTest(CredentialsTest):
    user = USER

    def test_folders_around_them_look_as_they_are(self):
        """Those on the way to a name that is hidden have the modes that they have outside, however deep they lie."""
        self.plant([".config/gh", ".local/share/fish/fish_history", ".local/share/keyrings"])
        modes = {".config": 0o751, ".local": 0o711, ".local/share": 0o755, ".local/share/fish": 0o771}
        for name, mode in modes.items():
            (self.home / name).chmod(mode)
        for kind in ("cow", "read-only"):
            with self.subTest(kind):
                policy = {"workspace": str(self.ws), "home": kind}
                names = " ".join(f"{self.home}/{name}" for name in modes)
                args = {"argv": ["sh", "-c", f"stat -c %a {names}"], "env": {"HOME": str(self.home)}}
                process = self.client.call("spawn", cwd=str(self.ws), sandbox=policy, **args)["process"]["id"]
                self.client.call("wait", id=process)
                self.assertEqual(self.output(process).decode().split(), [f"{mode:o}" for mode in modes.values()])

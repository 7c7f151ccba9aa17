"""What somebody with a token may name to be read, and may not: every path that is hidden, by every field that shows one (S-117, S-123)."""

import os
import socket

from lib.both_keepers import USER, BothKeepersCase
from lib.client import KeeperError
from lib.confined import NEW_MOUNT_CALLS
from lib.place import Place

SECRET = "secret-of-the-host"
FIND = 'for at; do grep -rs "$SECRET" "$at" 2>/dev/null; done; echo end'
REFUSED = ("boundary_escape", "permission_denied", "invalid_input", "sandbox_unavailable")
KERNELS = ("/proc", "/proc/1", "/proc/self", "/sys", "/sys/kernel", "/dev", "/dev/pts", "/run", "/var/run")


def put(path, text=SECRET, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    path.chmod(mode)
    return path


class ReadsCase(BothKeepersCase):
    """A keeper whose place, home and data folder lie side by side, with a secret in each."""

    conf = "[profile shown]\nbase = workspace-write\nroot = minimal\nallow_read = {base}/shared\nallow_read = {base}/home\n"

    def setUp(self):
        super().setUp()
        self.place = self.keeper.place
        self.data, self.outside, self.shared = self.base / "data", self.folder("outside"), self.folder("shared")
        self.other = self.client.call("agent_add", agent="main/other", folder=True)["agent"]["folder"]
        for path in (self.place.state / "planted", self.home / ".ssh" / "id", self.home / ".netrc", self.home / ".config" / "gh" / "hosts.yml",
                     self.outside / "file", self.base / "other-home" / ".ssh" / "id", self.data / "planted"):  # fmt: skip
            put(path)
        put(self.home / "tool" / "file", "fine")
        put(self.shared / "file", "fine")
        put(self.ws / "file", "fine")
        with open(os.path.join(self.other, "made"), "w", encoding="utf-8") as file:
            file.write(SECRET)
        for folder, folders, names in os.walk(self.base):
            for name in (*folders, *names):
                self.give(os.path.join(folder, name))
        for name, target in self.hidden().items():
            (self.ws / f"to-{name}").symlink_to(target)
        (self.ws / "to-all").symlink_to("/")

    def start_keeper(self, settings=None, ready=True, **options):
        place = Place(self.user, self.base)
        place.dir.chmod(0o755)
        self.settle(place)
        data = self.base / "data"
        data.mkdir(exist_ok=True)
        self.give(data)
        self.conf = type(self).conf.format(base=self.base)
        options["env"] = {"COOP_DATA": str(data), "HOME": str(self.home), **(options.get("env") or {})}
        return super().start_keeper(settings, ready, place=place, **options)

    def settle(self, place):
        """Before its keeper starts."""

    def hidden(self):
        """What nobody's command is to read, by a short name."""
        state = self.place.state
        return {
            "state": state, "planted": state / "planted", "place": self.place.dir, "ssh": self.home / ".ssh", "id": self.home / ".ssh" / "id",
            "netrc": self.home / ".netrc", "gh": self.home / ".config" / "gh", "data": self.data, "work": self.other,
            "whole": os.path.dirname(self.other), "proc": "/proc", "dev": "/dev", "run": "/run",
        }  # fmt: skip

    def hostile(self):
        """All ways to say it: as it is, by a link, with dots, and from further up."""
        plain = [*self.hidden().values(), *KERNELS, self.home, self.base, self.outside, self.outside / "file", self.place.socket, self.place.conf,
                 self.base / "other-home", "/root", "/var/lib", "/home", "/tmp", "/var/tmp", "/"]  # fmt: skip
        links = [self.ws / f"to-{name}" for name in (*self.hidden(), "all")]
        dots = [f"{self.ws}/../outside", f"{self.ws}/to-all/proc", f"{self.ws}/to-all{self.place.state}", "/usr/../proc", "~/.ssh", "~/", "~/../outside"]
        return [str(path) for path in (*plain, *links, *dots)]

    def asks(self, path):
        """Every field that a path is shown by."""
        return (
            {"sandbox": {"root": "minimal", "allow_read": [path]}},
            {"sandbox": {"root": "minimal", "profile": "read-only", "allow_read": [path]}},
            {"sandbox": {"root": "minimal", "allow_read": ["/usr", path, "/etc"]}},
            {"sandbox": {"root": "minimal", "profile": "read-only", "workspace": path}},
            {"sandbox": {"root": "minimal", "profile": "read-only"}, "cwd": path},
            {"sandbox": {"profile": "read-only"}, "cwd": path},
        )

    def places(self):
        return [str(path) for path in (self.base, self.home, self.place.state, self.data, self.other, self.ws)]

    def look(self, client, path, ask):
        """What a command reads of the secrets: its output, or None where it was refused, as it should be."""
        argv = ["sh", "-c", FIND.replace("$SECRET", SECRET), "sh", *self.places()]
        try:
            record = client.call("spawn", **({"argv": argv, "cwd": "/"} | ask))["process"]
        except KeeperError as error:
            self.assertIn(error.code, REFUSED, (path, ask, error))
            return None
        client.call("wait", id=record["id"])
        out = self.output(record["id"], client=client).decode()
        self.assertTrue(out.endswith("end\n"), (path, ask, out))
        return out[:-4]

    def assert_hidden(self, client, path, ask, own=(), refused=None):
        """Of the secrets a command sees at most those of its own; with the host's root those that nobody hides. Whatever names a path to
        be read is refused, unless said otherwise."""
        refused = "allow_read" in ask["sandbox"] if refused is None else refused
        if ask["sandbox"].get("root") != "minimal":
            own = (*own, str(self.outside), str(self.base / "other-home"))
        with self.subTest(path=path, ask=ask):
            seen = self.look(client, path, ask)
            self.assertEqual([line for line in (seen or "").splitlines() if not line.startswith(own)], [], "it was shown")
            self.assertTrue(seen is None or not refused, "it was not refused")

    def assert_named(self, client, path):
        """A refusal of allow_read names its field, wherever in the list it stands."""
        for ask, field in zip(self.asks(path), ("sandbox.allow_read[0]", "sandbox.allow_read[0]", "sandbox.allow_read[1]")):
            error = self.refusal(client, cwd="/", **ask)
            self.assertEqual(error.details["field"], field, (path, error))


class ReadsTest(ReadsCase):
    def test_s123_agent_without_a_workspace(self):
        """It reads what the system consists of, and nothing else by naming it."""
        client = self.keeper.agent("main/a", workspace=None)
        for path in self.hostile():
            for ask in self.asks(path):
                self.assert_hidden(client, path, ask)
        for path in (self.place.state, self.home / ".ssh", self.outside, "/proc", self.ws / "to-state"):
            self.assert_named(client, str(path))
        self.assertEqual(self.says("ls /usr/bin/env", {"root": "minimal", "allow_read": ["/usr/share", "/etc"]}, client=client, cwd="/"), "/usr/bin/env")
        self.assert_named(client, str(self.ws))

    def test_s123_agent_with_a_workspace(self):
        client = self.keeper.agent("main/a", workspace=[str(self.ws)])
        for path in self.hostile():
            for ask in self.asks(path):
                self.assert_hidden(client, path, ask)
        sandbox = {"root": "minimal", "profile": "read-only", "allow_read": [str(self.ws)]}
        self.assertEqual(self.says("cat file", sandbox, client=client), "fine")

    def test_s123_agent_whose_roots_hold_it_all(self):
        """What is hidden is so in an agent's own roots, too: within it nothing can be named, to be read or to be written to."""
        client = self.keeper.agent("main/a", workspace=[str(self.base)])
        own = (str(self.outside), str(self.base / "other-home"))
        for path in self.hostile():
            for ask in self.asks(path):
                self.assert_hidden(client, path, ask, own, refused=False)
        for path in (self.home / ".ssh", self.other, self.data, self.place.state, os.path.dirname(self.other)):
            for sandbox in ({"workspace": str(path)}, {"allow_write": [str(path)]}):
                error = self.refusal(client, sandbox=sandbox, cwd=str(self.ws))
                self.assertIn(error.code, REFUSED, error)
        self.assertEqual(self.says(f"cat {self.home}/tool/file", {"root": "minimal", "profile": "read-only", "allow_read": [f"{self.home}/tool"]}, client=client, cwd="/"), "fine")

    def test_s123_agent_with_a_folder(self):
        """That of its own it reads; neither another's nor what holds them."""
        folder = self.client.call("agent_add", agent="main/a", folder=True)["agent"]["folder"]
        client = self.keeper.login("main/a")
        self.says("echo mine > made", {}, client=client, cwd=None)
        for path in self.hostile():
            for ask in self.asks(path):
                self.assert_hidden(client, path, ask)
        for sandbox in ({"root": "minimal", "profile": "read-only", "allow_read": [folder]}, {"root": "minimal", "profile": "read-only"}):
            self.assertEqual(self.says("cat made", sandbox, client=client, cwd=folder), "mine")

    def test_s123_agent_that_was_given_more_to_read(self):
        """Its ceiling's list can be read, what is hidden in it stays so, and an agent below gets none of what its giver has not."""
        client = self.keeper.agent("main/a", workspace=None, sandbox={"allow_read": [str(self.shared), f"{self.home}/.config", str(self.home / "tool")]})
        sandbox = {"root": "minimal", "allow_read": [str(self.shared), f"{self.home}/.config"]}
        script = f"cat {self.shared}/file; cd {self.home}/.config && grep -r {SECRET} ."
        self.assertEqual(self.says(script, sandbox, client=client, cwd="/").split(), ["fine"])
        for path in self.hostile():
            for ask in self.asks(path):
                self.assert_hidden(client, path, ask)
        client.call("agent_add", agent="main/a/x", sandbox={"allow_read": [str(self.shared)]})
        below = self.keeper.login("main/a/x")
        self.assertEqual(self.says("cat file", {"root": "minimal", "allow_read": [str(self.shared)]}, client=below, cwd=str(self.shared)), "fine")

    def test_s123_settings_are_no_way_around(self):
        """Who cannot read something gives it to nobody: neither when an agent is made, nor later, nor by a workspace in the settings."""
        client = self.keeper.agent("main/a", workspace=None)
        client.call("agent_add", agent="main/a/x")
        for path in (self.outside, self.home, self.place.state, self.home / ".ssh", "/proc", self.ws):
            for op in ("agent_add", "agent_set"):
                with self.assertRaises(KeeperError) as caught:
                    client.call(op, agent="main/a/y" if op == "agent_add" else "main/a/x", sandbox={"allow_read": [str(path)]})
                self.assertEqual((caught.exception.code, caught.exception.details["field"]), ("boundary_escape", "sandbox.allow_read"), caught.exception)
            client.call("agent_set", agent="main/a/x", sandbox={"workspace": str(path), "root": "minimal"})
            below = self.keeper.login("main/a/x")
            for profile in ("read-only", "workspace-write"):
                self.assertEqual(self.look(below, str(path), {"sandbox": {"profile": profile}}), "", path)
        # What stands in the settings all the same, given by somebody else, is not more than those above may read.
        self.client.call("agent_set", agent="main/a/x", sandbox={"allow_read": [str(self.outside)]})
        self.assertIsNone(self.look(self.keeper.login("main/a/x"), "", {"sandbox": {"root": "minimal", "allow_read": [str(self.outside)]}}))

    def test_s123_operators_profile(self):
        """What the operator lists is read by whoever has the profile, less what is hidden in it."""
        for client in (self.client, self.keeper.agent("main/a", workspace=None)):
            out = self.says(f"cat {self.shared}/file {self.home}/tool/file", {"profile": "shown"}, client=client, cwd="/")
            self.assertEqual(out.split(), ["fine", "fine"])
            self.assertEqual(self.look(client, "", {"sandbox": {"profile": "shown"}}), "")

    def test_s117_main(self):
        """The user reads what he names, less what is hidden in it; the kernel's own and the keeper's own are not to be named at all."""
        meant = [str(path) for path in (self.home / ".ssh", self.home / ".netrc", self.home / ".config" / "gh", os.path.dirname(self.other))]
        open_to_him = (str(self.outside), str(self.base / "other-home"))
        for path in self.hostile():
            real = os.path.realpath(str(self.home) + path[1:] if path.startswith("~") else path)
            # By its own name it is meant, by a link it is not.
            own = open_to_him + tuple(name for name in meant if f"{real}/".startswith(name + "/") and not path.startswith(str(self.ws)))
            for ask in self.asks(path):
                self.assert_hidden(self.client, path, ask, own, refused=False)
        for path in (*KERNELS, self.place.state, self.place.state / "planted", self.ws / "to-proc", self.ws / "to-state", self.ws / "to-all"):
            self.assert_named(self.client, str(path))

    def test_s117_sockets_in_what_is_read(self):
        """A socket of the host in a readable tree is out of reach."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.shared / "s"))
        listener.listen()
        self.give(self.shared / "s")
        client = self.keeper.agent("main/a", workspace=None, sandbox={"allow_read": [str(self.shared)]})
        script = f"import socket; s = socket.socket(socket.AF_UNIX); print(s.connect_ex('{self.shared}/s'))"
        sandbox = {"root": "minimal", "allow_read": [str(self.shared)]}
        process = client.call("spawn", argv=["/usr/bin/python3", "-c", script], cwd="/", sandbox=sandbox)["process"]["id"]
        client.call("wait", id=process)
        self.assertNotIn(self.output(process, client=client).strip(), (b"0", b""))


class ReadsOfAUserTest(ReadsTest):
    user = USER


class LinkedPlaceTest(ReadsCase):
    """The keeper's place is reached through a link: what is hidden is what it leads to."""

    user = USER

    def settle(self, place):
        (self.base / "link").symlink_to(self.base)
        place.state, place.socket = self.base / "link" / place.dir.name / "state", self.base / "link" / place.dir.name / "keeper.sock"

    def test_s117_state_behind_a_link(self):
        client = self.keeper.agent("main/a", workspace=[str(self.base)])
        for who in (client, self.client):
            for ask in ({"sandbox": {"profile": "read-only"}}, {"sandbox": {"workspace": str(self.ws)}, "cwd": str(self.ws)}):
                self.assertNotIn(str(self.place.dir), self.look(who, "", ask))
            for path in (self.place.dir / "state", self.place.dir / "state" / "planted", self.place.state, self.place.dir / "keeper.sock"):
                error = self.refusal(who, cwd="/", sandbox={"root": "minimal", "profile": "read-only", "allow_read": [str(path)]})
                self.assertEqual(error.details["field"], "sandbox.allow_read[0]", (path, error))


class OtherMountTest(ReadsCase):
    """The keeper's place is mounted a second time, in what an agent may read."""

    user = USER

    def settle(self, place):
        self.folder("shown/mount")

    def keeper_wrap(self, place):
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", str(place.dir), str(self.base / "shown" / "mount")]

    def test_s117_state_under_another_mount(self):
        client = self.keeper.agent("main/a", workspace=None, sandbox={"allow_read": [str(self.base / "shown")]})
        for who in (client, self.client):
            out = self.says(f"ls {self.base}/shown/mount; grep -rs {SECRET} {self.base}/shown; echo end", {"root": "minimal", "profile": "read-only", "allow_read": [str(self.base / "shown")]},
                            client=who, cwd="/")  # fmt: skip
            self.assertIn("coop.conf", out, "the mount is there")
            self.assertNotIn(SECRET, out)


class ReadsWithoutMountsTest(ReadsCase):
    """With Landlock alone nothing of it is shown by naming it either."""

    user = USER
    lacks = tuple(f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS)

    def test_s123_agent(self):
        loose = {"tolerate": ["files", "network", "identity", "ipc", "kill"]}
        client = self.keeper.agent("main/a", workspace=None, sandbox={"require": ["seccomp"]})
        for path in self.hostile():
            for ask in self.asks(path):
                ask = ask | {"sandbox": ask["sandbox"] | loose}
                self.assert_hidden(client, path, ask, (str(self.outside), str(self.base / "other-home")))


class OwnersWordTest(BothKeepersCase):
    """What the operator hides by a name of his own is hidden from an agent that may not look where that name lies."""

    conf = "[sandbox]\ndeny_read = {closed}/first\n[profile guarded]\nbase = workspace-write\ndeny_read = {closed}/second\n[profile plain]\nbase = workspace-write\n"

    def start_keeper(self, settings=None, ready=True, **options):
        place = Place(self.user, self.base)
        place.dir.chmod(0o755)
        closed = self.base / "closed"
        closed.mkdir(mode=0o700, exist_ok=True)
        for name in ("first", "second"):
            put(self.base / f"{name}-folder" / "file")
            (closed / name).symlink_to(self.base / f"{name}-folder")
        self.give(closed)
        self.conf = type(self).conf.format(closed=closed)
        return super().start_keeper(settings, ready, place=place, **options)

    def read(self, client, profile):
        """Which of the two secrets a command reads."""
        argv = ["sh", "-c", f"cd {self.base}; for name in first second; do grep -qs {SECRET} $name-folder/file && echo $name; done; true"]
        record = client.call("spawn", argv=argv, sandbox={"profile": profile, "workspace": str(self.ws)}, cwd=str(self.ws))["process"]
        client.call("wait", id=record["id"])
        return self.output(record["id"], client=client).decode().split()

    def test_s123_links_in_what_the_operator_hides(self):
        client = self.keeper.agent("main/a", workspace=[str(self.ws)])
        self.assertEqual(self.read(client, "guarded"), [])
        self.assertEqual(self.read(client, "plain"), ["second"], "the control: it can be read where nobody hides it")


class OwnersWordOfAUserTest(OwnersWordTest):
    user = USER

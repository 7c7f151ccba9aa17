"""File systems that do not answer, as a dead network mount or a FUSE mount whose server hangs: who names a path there is told so,
and nobody else notices."""

import os
import signal
import socket
import sys

from lib import procs
from lib.client import KeeperError
from lib.keeper import LIB, KeeperCase
from lib.place import Place

THREADS = 4  # that look up such paths


class SilentMountCase(KeeperCase):
    """The keeper has a FUSE mount in its own mount namespace. `valid`: for how long the kernel may believe what was told."""

    valid = 0

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("a mount that the test can make silent needs root")
        if not os.path.exists("/dev/fuse"):
            self.skipTest("there is no /dev/fuse")
        self.keepers = []
        self.addCleanup(procs.assert_no_descendants)
        place = Place()
        self.prepare(place)
        control = place.dir / "control"
        wrap = ["unshare", "-m", sys.executable, str(LIB / "silent_mount.py"), str(control), str(self.valid), str(self.mount), "--"]
        self.keeper = self.start_keeper(self.settings, place=place, wrap=wrap)
        self.client = self.keeper.clients[0]
        self.control = socket.socket(socket.AF_UNIX)
        # Before the keeper is asked to leave: the kernel fails then whatever waits.
        self.addCleanup(self.control.close)
        self.control.connect(str(control))

    def prepare(self, place):
        place.dir.chmod(0o755)  # commands are not root's
        self.mount = place.work / "mount"
        self.mount.mkdir()
        self.silent = str(self.mount / "work")
        self.ordinary = place.work / "ordinary"
        self.ordinary.mkdir()
        self.link = place.work / "link"
        self.link.symlink_to("mount/work")

    def granted(self, **sandbox):
        return {"sandbox": {"workspace": str(self.ordinary), **sandbox}}

    def tell(self, word):
        self.control.send(word)
        self.assertEqual(self.control.recv(1), word)

    def requests(self):
        """(operation, field that is to blame, arguments)."""
        command = {"argv": ["true"]}
        silent, ordinary = self.silent, {"workspace": str(self.ordinary)}
        return [
            ("spawn", "sandbox.workspace", command | {"sandbox": {"workspace": silent}}),
            ("spawn", "cwd", command | {"cwd": silent, "sandbox": {"profile": "full"}}),
            ("spawn", "cwd", command | {"cwd": silent}),
            ("spawn", "sandbox.deny_read[0]", command | {"sandbox": ordinary | {"deny_read": [silent]}}),
            ("spawn", "sandbox.deny_read[0]", command | {"sandbox": ordinary | {"deny_read": [f"{silent}/**/x"]}}),
            ("spawn", "sandbox.deny_write[0]", command | {"sandbox": ordinary | {"deny_write": [silent]}}),
            ("spawn", "sandbox.allow_read[0]", command | {"sandbox": ordinary | {"root": "minimal", "allow_read": [silent]}}),
            ("spawn", "sandbox.allow_write[1]", command | {"sandbox": ordinary | {"allow_write": [str(self.ordinary), silent]}}),
            ("spawn", "sandbox.protect[0]", command | {"sandbox": ordinary | {"protect": [silent]}}),
            ("spawn", "env.HOME", command | {"sandbox": ordinary, "env": {"HOME": silent}}),
            # By a link, by one of the kernel's own, and where it is only on the way, or lies in what is searched.
            ("spawn", "cwd", command | {"cwd": str(self.link)}),
            ("spawn", "sandbox.workspace", command | {"sandbox": {"workspace": f"/proc/self/root{silent}"}}),
            ("spawn", "cwd", command | {"cwd": f"{silent}/../../ordinary"}),
            ("spawn", "sandbox.workspace", command | {"sandbox": {"workspace": str(self.work)}}),
            ("check", "cwd", command | {"cwd": silent}),
            ("agent_add", "workspace[0]", {"agent": "main/new", "workspace": [silent]}),
            ("agent_add", "sandbox.allow_read[0]", {"agent": "main/new", "sandbox": {"allow_read": [silent]}}),
            ("ceiling", "sandbox.workspace", {"sandbox": {"workspace": silent}}),
        ]

    def assert_others_go_on(self):
        """Each kind of call, of another client."""
        self.client.call("info")
        record, out, _ = self.run_sh("echo hello; exit 3")
        self.assertEqual((record["exit"]["code"], out), (3, b"hello\n"))
        process = self.spawn("sleep", "300")["id"]
        self.client.call("kill", id=process)
        self.assertEqual(self.ended(process)["exit"]["signal_name"], "SIGKILL")
        self.client.call("check", argv=["true"])
        self.client.call("agent_list")

    def stuck(self, count=THREADS):
        """So many requests for paths there are under way, each of its own connection."""
        clients = [self.connect() for _ in range(count)]
        return [(client, client.submit("spawn", {"argv": ["true"], "cwd": self.silent})) for client in clients]

    def assert_unavailable(self, client, request, field):
        with self.refused("unavailable", field) as caught:
            client.finish(request)
        self.assertIn("does not answer", caught.exception.message)

    def starts_there(self):
        sandbox = {"profile": "read-only", "workspace": self.silent}
        return self.client.call("spawn", argv=["true"], cwd=self.silent, sandbox=sandbox)["process"]["id"]


class SilentMountTest(SilentMountCase):
    def test_who_names_it_is_told_so(self):
        """While nobody else waits. Nothing has changed afterwards, and all goes on once it answers."""
        requests = self.requests()
        for at in range(0, len(requests), THREADS):
            self.tell(b"s")
            asked = []
            for op, field, args in requests[at : at + THREADS]:
                client = self.connect()
                asked.append((client, client.submit(op, args), field))
            self.assert_others_go_on()
            for client, request, field in asked:
                with self.subTest(field=field, request=requests[at + request - 1]):
                    self.assert_unavailable(client, request, field)
            self.assert_others_go_on()
            self.tell(b"a")
            self.ended(procs.wait_until(self.try_there, "threads are free again"))
        self.assertEqual([agent["path"] for agent in self.client.call("agent_list")["agents"]], ["main"])

    def test_so_many_at_a_time(self):
        """Where each of the threads waits for a mount, one more is not even begun; ordinary ones go on. When it answers again,
        all is as it was."""
        self.tell(b"s")
        for client, request in self.stuck():
            self.assert_unavailable(client, request, "cwd")
        for op, field, args in self.requests():
            with self.refused("unavailable", field, "all"):
                self.client.reply(op, args)
        self.assert_others_go_on()
        self.tell(b"a")
        process = procs.wait_until(self.try_there, "threads are free again")
        self.ended(process)

    def try_there(self):
        try:
            return self.starts_there()
        except KeeperError as error:
            self.assertEqual(error.code, "unavailable")
            return None

    def test_one_that_answers_in_time(self):
        """It took its time: the request goes on where it was."""
        for _ in range(10):
            if self.answers_in_time():
                return
        self.fail("no request was answered though the mount answered within the limit")

    def answers_in_time(self):
        """False: this machine took so long that the limit was over."""
        self.tell(b"s")
        asked = self.stuck(THREADS + 2)
        self.client.call("info")
        self.tell(b"a")
        answers = [client.outcome(request) for client, request in asked]
        for answer in answers:
            if "error" in answer:
                self.assertEqual(answer["error"]["code"], "unavailable", answer)
                continue
            process = answer["result"]["process"]
            self.assertEqual(process["cwd"], self.silent)
            self.ended(process["id"])
        return all("result" in answer for answer in answers)

    def test_given_up(self):
        """Who asked cancels, or goes: others are served, and the keeper leaves in order."""
        self.tell(b"s")
        asked = self.stuck(THREADS + 2)
        for client, request in asked[::2]:
            client.cancel(request)
            with self.refused("cancelled"):
                client.finish(request)
        for client, _ in asked[1::2]:
            client.close()
        self.assert_others_go_on()
        self.tell(b"a")
        self.ended(procs.wait_until(self.try_there, "threads are free again"))

    def test_leaves_in_order(self):
        """With threads that wait for ever, and requests that do."""
        self.tell(b"s")
        for client, request in self.stuck(2):
            self.assert_unavailable(client, request, "cwd")
        waiting = self.stuck(4)
        self.client.call("shutdown", grace_ms=0)
        for client, request in waiting:
            with self.refused("unavailable", words="stopping"):
                client.finish(request)
        self.expect_end(self.keeper, [0])

    def test_is_gone(self):
        """Its server has died: the kernel says so, and so does the keeper."""
        self.tell(b"s")
        ((client, request),) = self.stuck(1)
        self.assert_others_go_on()
        self.control.close()
        with self.refused("invalid_input", "cwd"):
            client.finish(request)
        self.assert_others_go_on()


class KnownMountTest(SilentMountCase):
    valid = 3600

    def test_silent_after_use(self):
        """What the kernel remembers of it does not mean that it answers."""
        self.ended(self.starts_there())
        self.tell(b"s")
        asked = self.connect()
        request = asked.submit("spawn", {"argv": ["true"], "sandbox": {"workspace": self.silent}})
        self.assert_others_go_on()
        self.assert_unavailable(asked, request, "sandbox.workspace")


class PlaceholdersTest(SilentMountCase):
    """What stands there for a command must go when that has ended."""

    def begin(self):
        """One that has placeholders there."""
        args = {"argv": ["sleep", "300"], "sandbox": {"workspace": self.silent}}
        process = self.client.call("spawn", **args)["process"]["id"]
        self.assertTrue(self.client.call("info")["sandbox"]["ghosts"])
        return process

    def test_ends_meanwhile(self):
        """It ends as any other; its placeholders go as soon as that can be done."""
        process = self.begin()
        self.tell(b"s")
        self.client.call("kill", id=process)
        self.assertEqual(self.ended(process)["exit"]["signal_name"], "SIGKILL")
        self.client.call("release", id=process)
        self.assert_others_go_on()
        self.tell(b"a")
        procs.wait_until(lambda: not self.client.call("info")["sandbox"]["ghosts"], "no placeholder is left")

    def test_shutdown_meanwhile(self):
        """The keeper leaves all the same."""
        self.begin()
        self.tell(b"s")
        self.keeper.stop()
        self.keeper.ended = True

    def test_shutdown(self):
        """Where it answers nothing is left behind."""
        self.begin()
        self.keeper.stop()
        self.keeper.ended = True
        self.assertIn((self.keeper.place.state / "ghosts").read_bytes()[:1], (b"", b"\0"))


class NotNamedTest(SilentMountCase):
    """The request does not say a word of it: others have named it for all that comes."""

    def prepare(self, place):
        super().prepare(place)
        place.conf.write_text(f"[profile there]\nbase = workspace-write\ndeny_read = {self.silent}\n")

    def test_what_others_named(self):
        """An agent's workspace, a door's ceiling, a profile of the operator's."""
        agent = self.keeper.agent("main/there", workspace=[self.silent])
        door = self.connect()
        door.call("ceiling", sandbox={"workspace": self.silent})
        profile = self.connect()
        self.tell(b"s")
        ordinary = {"workspace": str(self.ordinary)}
        asked = [
            (agent, agent.submit("spawn", {"argv": ["true"]}), "cwd"),
            (door, door.submit("spawn", {"argv": ["true"], "cwd": "/"}), "sandbox.workspace"),
            (profile, profile.submit("spawn", {"argv": ["true"], "sandbox": ordinary | {"profile": "there"}}), "sandbox.deny_read"),
        ]
        self.assert_others_go_on()
        self.client.call("doctor")
        self.client.call("reload")
        for client, request, field in asked:
            with self.subTest(field=field):
                self.assert_unavailable(client, request, field)


class SilentConfTest(SilentMountCase):
    """coop.conf is reached by way of the mount."""

    def setUp(self):
        super().setUp()
        place = self.keeper.place
        self.rules = place.dir / "rules.conf"
        self.write(100)
        place.conf.unlink()
        place.conf.symlink_to(f"{self.silent}/../../../{self.rules.name}")
        self.client.call("reload")

    def write(self, value):
        self.rules.write_text(f"[keeper]\nmax_events = {value}\n")

    def in_force(self):
        return self.client.call("info")["settings"]["max_events"]

    def test_signal(self):
        """It is read when the mount answers; until then what was read before holds, and nobody waits. A start whose
        command must not change it is refused."""
        self.assertEqual(self.in_force(), 100, "the control: it can be read by that way")
        self.tell(b"s")
        self.write(200)
        for _ in range(3):
            os.kill(self.keeper.pid, signal.SIGHUP)
            self.client.call("info")
        start = self.connect()
        request = start.submit("spawn", {"argv": ["true"], **self.granted()})
        self.ended(self.client.call("spawn", argv=["true"], sandbox={"profile": "full"})["process"]["id"])
        self.assertEqual(self.in_force(), 100)
        with self.refused("unavailable", "configuration"):
            self.client.call("reload")
        self.assert_unavailable(start, request, "configuration")
        self.tell(b"a")
        procs.wait_until(lambda: self.in_force() == 200, "the new file is in force")
        self.assert_others_go_on()
        self.write(300)
        os.kill(self.keeper.pid, signal.SIGHUP)
        procs.wait_until(lambda: self.in_force() == 300, "so is the next one")

    def test_leaves_meanwhile(self):
        self.tell(b"s")
        os.kill(self.keeper.pid, signal.SIGHUP)
        self.client.call("info")
        self.keeper.stop()
        self.keeper.ended = True


class SilentProgramTest(SilentMountCase):
    """The operator has a list of programs, by which each is looked for as the command would find it."""

    def prepare(self, place):
        super().prepare(place)
        place.conf.write_text("[policy]\ndenied_commands = somebody\n")

    def asked(self):
        """(field, arguments)."""
        sandbox = {"workspace": str(self.ordinary)}
        return [
            ("argv", {"argv": ["true"], "env": {"PATH": f"{self.silent}:/usr/bin:/bin"}, "sandbox": sandbox}),
            ("command", {"mode": "shell", "command": f". {self.silent}/x; exit 3", "sandbox": sandbox}),
            ("argv", {"argv": ["env", f"{self.silent}/program"], "sandbox": sandbox}),
        ]

    def test_programs_that_lists_look_for(self):
        """Along PATH, or by a path in a shell's line."""
        self.tell(b"s")
        asked = []
        for field, args in self.asked():
            client = self.connect()
            asked.append((client, client.submit("spawn", args), field))
        self.assert_others_go_on()
        for client, request, field in asked:
            with self.subTest(request=self.asked()[asked.index((client, request, field))]):
                self.assert_unavailable(client, request, field)
        self.tell(b"a")
        codes = [self.ended(self.client.call("spawn", **args)["process"]["id"])["exit"]["code"] for _, args in self.asked()]
        self.assertEqual(codes[0], 0)


class SilentSocketTest(SilentMountCase):
    """A server of the host listens by a name that lies there now."""

    def prepare(self, place):
        super().prepare(place)
        self.server = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.server.close)
        self.server.bind(str(self.mount / "sock"))
        self.server.listen()

    def seen(self):
        args = {"workspace": str(self.ordinary), "root": "minimal", "allow_read": [str(self.mount)]}
        out = self.run_sh(f"test -S {self.mount}/sock && echo seen", sandbox=args)[1]
        return out.decode()

    def test_starts_go_on(self):
        """While it answers the socket is hidden; when it does not, nobody waits for it, and nobody could connect to it either."""
        self.assertEqual(self.seen(), "")
        self.tell(b"s")
        self.assert_others_go_on()
        self.assert_others_go_on()
        self.tell(b"a")
        procs.wait_until(lambda: self.seen() == "", "hidden again")

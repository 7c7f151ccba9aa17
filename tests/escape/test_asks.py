"""Attacks by asking: what the keeper is told to do, who asks, by which entry, and what changes while it does (S-096, S-105, S-108,
S-117, S-119, S-122 to S-124, S-134)."""

import ctypes
import json
import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from lib import procs
from lib.cli import CliCase
from lib.client import KeeperError
from lib.confined import ROOT, USER, ConfinedCase, lines_of
from lib.expected import Expected
from lib.place import COOP
from lib.world import World

RENAME_EXCHANGE = 2
TRIES = 100
LOOKS = ("S-001", "S-003", "S-029", "S-044", "S-045", "S-067", "S-127", "S-127.bounding", "S-128", "S-082")


class AsksCase(ConfinedCase):
    uid = None

    def setUp(self):
        super().setUp()
        self.around = self.world(owner=self.uid)
        self.keeper = self.confined_keeper(self.around, self.uid)
        self.client = self.keeper.clients[0]
        self.ws = str(self.around.workspace)


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user")
class GrantTest(AsksCase):
    def test_s124_workspaces_that_are_none(self):
        """/, the home itself, what holds the keeper's state or socket: refused, and the refusal names the way out."""
        place = self.keeper.place.dir
        for workspace in ("/", str(self.around.home), str(place), str(self.keeper.place.state), "/tmp"):
            with self.subTest(workspace=workspace):
                error = self.refusal(self.client, argv=["true"], cwd="/", sandbox={"workspace": workspace})
                self.assertIn(error.code, ("invalid_input", "permission_denied", "boundary_escape"), error)
                self.assertIn("workspace", error.details.get("field", "") + error.message, error)
        for workspace in ("relative", "", "/nowhere/at/all", f"{self.ws}/file"):
            with self.subTest(workspace=workspace):
                error = self.refusal(self.client, argv=["true"], cwd="/", sandbox={"workspace": workspace})
                self.assertEqual(error.code, "invalid_input", error)

    def test_s124_cwd_gives_no_rights(self):
        """Wherever the command could go it may begin, and can write there no more than if it had gone there itself."""
        script = "echo x >made 2>/dev/null && echo written; pwd"
        args = {"argv": ["sh", "-c", script], "cwd": str(self.around.out)}
        agent = self.keeper.agent("main/a", workspace=[self.ws])
        for client, sandbox in ((self.client, {"workspace": self.ws}), (self.client, {"profile": "read-only"}), (agent, {})):
            process = client.call("spawn", **args, sandbox=sandbox)["process"]["id"]
            client.call("wait", id=process)
            self.assertEqual(self.output(process, client=client).decode().split(), [str(self.around.out)])
            self.assertEqual(os.listdir(self.around.out), ["file"])

    def test_s123_b111_never_wider_than_the_asker(self):
        """With a connection of its own an agent asks for `full`, a wider workspace, the host's network, another's process."""
        agent = self.keeper.agent("main/a", workspace=[self.ws], sandbox={"network": "none"})
        other = self.keeper.agent("main/b", workspace=None)
        theirs = other.call("spawn", argv=["sleep", "300"], cwd="/")["process"]["id"]
        asks = (
            {"sandbox": {"profile": "full"}},
            {"sandbox_profile": "unrestricted"},
            {"sandbox": {"profile": "privileged"}},
            {"sandbox": {"network": "host"}},
            {"sandbox": {"network": "loopback"}},
            {"sandbox": {"workspace": str(self.around.base)}},
            {"sandbox": {"workspace": str(self.around.out)}},
            {"sandbox": {"allow_write": [str(self.around.out)]}},
        )
        for ask in asks:
            with self.subTest(ask=ask):
                error = self.refusal(agent, argv=["true"], cwd=self.ws, **ask)
                self.assertIn(error.code, ("permission_denied", "boundary_escape", "capability_denied"), error)
        for op in ("status", "kill", "read", "signal"):
            args = {"id": theirs, **({"signal": "KILL"} if op == "signal" else {})}
            self.assertEqual(agent.answer(op, args)["error"]["code"], "no_such_process")
        self.assertEqual(other.call("status", id=theirs)["process"]["state"], "running")
        with self.assertRaises(KeeperError):
            agent.call("agent_add", agent="main/a/x", sandbox={"profile": "full"})
        child = agent.call("spawn", argv=["true"], cwd=self.ws)["process"]
        self.assertEqual((child["sandbox"]["network"], child["sandbox"]["workspace"]), ("none", self.ws))

    def test_s119_values_are_values(self):
        """Leading dashes, spaces, newlines in paths and words are data; what cannot be a word or a name is refused."""
        odd = self.around.workspace / "--privileged -x\n$(touch x)"
        odd.mkdir()
        os.chown(odd, self.uid or 0, self.uid or 0)
        words = ["-c", "--", "--profile=full", "; touch x", "$(touch x)", "\x1b]0;t\x07"]
        args = {"argv": ["/usr/bin/printf", "%s\\n", *words], "cwd": str(odd)}
        record = self.client.call("spawn", **args, sandbox={"workspace": str(odd)})["process"]
        self.client.call("wait", id=record["id"])
        self.assertEqual(self.output(record["id"]), "".join(word + "\n" for word in words).encode())
        self.assertEqual(record["sandbox"]["profile"], "workspace-write")
        procs.wait_until(lambda: not list(odd.iterdir()), "nothing to be left")
        for bad in ({"argv": ["true", "a\0b"]}, {"env": {"A=B": "x"}}, {"env": {"A": "x\0y"}}, {"env": {"": "x"}},
                    {"sandbox": {"deny_read": ["/etc/a\0b"]}}, {"sandbox": {"deny_read": ["-rf"]}},
                    {"sandbox": {"profil": "full"}}, {"sandbox": {"profile": "Full "}}, {"sandbox": "full"}):  # fmt: skip
            with self.subTest(bad=bad):
                self.assertEqual(self.refusal(self.client, **{"argv": ["true"], "cwd": self.ws, **bad}).code, "invalid_input")

    def test_s119_preload_is_the_commands_only(self):
        """A variable that makes programs load other code reaches the command, and nothing that sets it up."""
        mark = self.around.workspace / "loaded"
        env = {"LD_PRELOAD": str(self.around.workspace / "none.so"), "LD_AUDIT": "/none.so"}
        args = {"argv": ["sh", "-c", "echo $LD_PRELOAD; tr '\\0' '\\n' </proc/1/environ"], "cwd": self.ws, "env": env}
        record = self.client.call("spawn", **args, sandbox=self.around.sandbox())["process"]
        self.client.call("wait", id=record["id"])
        self.assertEqual(self.output(record["id"]).decode().strip(), env["LD_PRELOAD"])
        self.assertFalse(mark.exists())

    def test_s105_endless_output_without_a_reader(self):
        """The keeper's memory stays where it was; the loss is counted."""
        args = {"argv": ["yes"], "cwd": self.ws, "sandbox": self.around.sandbox()}
        record = self.client.call("spawn", **args)["process"]
        look = lambda: self.client.call("status", id=record["id"])["process"]["streams"]["stdout"]
        procs.wait_until(lambda: look()["bytes_dropped"] > 8 << 20, "the ring has gone round")
        before = resident(self.keeper.pid)
        dropped = look()["bytes_dropped"]
        procs.wait_until(lambda: look()["bytes_dropped"] > dropped + (64 << 20), "much more has come")
        self.assertLess(resident(self.keeper.pid) - before, 8 << 20)
        self.assertTrue(self.client.call("kill", id=record["id"])["success"])


class UserGrantTest(GrantTest):
    uid = USER


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user")
class SwapTest(AsksCase):
    def test_s096_workspace_swapped_for_a_link(self):
        """While a folder of the grant and a link to another place change places, spawns fail or get the folder, never the other."""
        grant, evil = self.around.base / "grant", self.around.base / "evil"
        right = grant / "ws"
        for folder in (grant, right, evil):
            folder.mkdir()
            os.chown(folder, self.uid or 0, self.uid or 0)
        (right / "right").touch()
        (grant / "link").symlink_to(evil)
        agent = self.keeper.agent("main/a", workspace=[str(grant)])
        self.swap_during(grant, lambda: self.try_spawn(agent, right))
        self.assertEqual(os.listdir(evil), [], "the other folder was written")

    def try_spawn(self, agent, right):
        args = {"argv": ["sh", "-c", "ls; echo x >made"], "sandbox": {"workspace": str(right)}}
        try:
            record = agent.call("spawn", **args)["process"]
        except KeeperError as error:
            self.assertIn(error.code, ("invalid_input", "boundary_escape", "spawn_failed", "sandbox_unavailable"), error)
            return False
        agent.call("wait", id=record["id"])
        said = self.output(record["id"], client=agent), self.output(record["id"], "stderr", client=agent)
        self.assertIn(b"right", said[0], said)
        return True

    def swap_during(self, grant, act):
        """Acts until a spawn has met the folder in its place and one has not, and many have come between many swaps. Where none
        ever runs, or none meets a swap, the test's own time limit ends it."""
        libc, stop, swaps = ctypes.CDLL(None), threading.Event(), [0]
        names = [os.fsencode(grant / name) for name in ("ws", "link")]

        def swap():
            while not stop.is_set():
                libc.renameat2(-100, names[0], -100, names[1], RENAME_EXCHANGE)
                swaps[0] += 1

        thread = threading.Thread(target=swap)
        thread.start()
        refused = ran = 0
        try:
            while min(refused, ran) == 0 or refused + ran < TRIES or swaps[0] < 5 * TRIES:
                if act():
                    ran += 1
                else:
                    refused += 1
        finally:
            stop.set()
            thread.join()


class UserSwapTest(SwapTest):
    uid = USER


@unittest.skipUnless(ROOT, "needs root to run keepers of root and of another user")
class LoopbackTest(AsksCase):
    def serve(self, client, **args):
        """A server inside: its record and its port."""
        argv = self.around.argv("serve", direct=True)
        record = client.call("spawn", argv=argv, cwd=self.ws, sandbox=self.around.sandbox(network="loopback"), **args)["process"]
        text = procs.wait_until(lambda: client.reply("read", {"id": record["id"]}).bytes(), "the server says its port")
        return record["id"], int(text)

    def reaches(self, client, port, network="loopback", **args):
        argv = self.around.argv("S-134", port)
        sandbox = self.around.sandbox(network=network)
        record = client.call("spawn", argv=argv, cwd=self.ws, sandbox=sandbox, **args)["process"]
        client.call("wait", id=record["id"])
        line = lines_of(self.output(record["id"], client=client))[0]
        self.assertEqual(record["sandbox"]["network"], network)
        return line.get("errno", line["outcome"])

    def test_s134_b110_loopback_is_a_sessions_own(self):
        """The same session is answered; another session, another agent, the host and its ports are not reached."""
        server, port = self.serve(self.client)
        self.assertEqual(self.reaches(self.client, port), "ok")
        other = self.client.call("session_new")["session"]["id"]
        self.assertEqual(self.reaches(self.client, port, session=other), "ECONNREFUSED")
        agent = self.keeper.agent("main/a", workspace=[self.ws])
        self.assertEqual(self.reaches(agent, port), "ECONNREFUSED")
        self.assertIn(self.reaches(self.client, port, "none"), ("ENETUNREACH", "ECONNREFUSED"))
        hosts = self.around.params["HOST_PORT"]
        self.assertEqual(self.reaches(self.client, hosts), "ECONNREFUSED")
        self.assertEqual(self.reaches(self.client, hosts, "host"), "ok", "the control: the host's network reaches it")
        self.around.listeners["tcp"].accept()[0].close()
        probe = subprocess.run(
            [sys.executable, "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"],
            capture_output=True, timeout=30, check=False,
        )  # fmt: skip
        self.assertNotEqual(probe.returncode, 0, "the host reaches into the session")
        self.client.call("kill", id=server)

    def test_b110_namespace_goes_with_the_sessions_last_process(self):
        server, _ = self.serve(self.client)
        self.assertGreaterEqual(self.client.call("info")["sandbox"]["net_namespaces"], 1)
        self.client.call("kill", id=server)
        procs.wait_until(lambda: self.client.call("info")["sandbox"]["net_namespaces"] == 0, "the namespace goes")


class UserLoopbackTest(LoopbackTest):
    uid = USER


@unittest.skipUnless(ROOT, "needs root to run a keeper with a list of users of its own")
class EntriesTest(AsksCase):
    def looks(self, client, **args):
        """The record and what some attacks met, by one entry."""
        script = "; ".join(" ".join(self.around.argv(case)) for case in LOOKS)
        sandbox = self.around.sandbox()
        if args.get("mode") == "shell":
            args["command"] = script
        else:
            args["argv"] = ["sh", "-c", script]
        record = client.call("spawn", cwd=self.ws, sandbox=sandbox, **args)["process"]
        client.call("wait", id=record["id"])
        stream = "pty" if record["kind"] == "pty" else "stdout"
        return record, lines_of(self.output(record["id"], stream, client=client))

    def test_s122_every_entry(self):
        """Pipe, terminal, shell, input, merged, spooled, leased, an agent's: the same report and the same outcomes."""
        agent = self.keeper.agent("main/a", workspace=[self.ws])
        entries = {
            "pipe": (self.client, {}),
            "pty": (self.client, {"kind": "pty"}),
            "shell": (self.client, {"mode": "shell"}),
            "login shell": (self.client, {"mode": "shell", "login": True}),
            "stdin": (self.client, {"stdin": "pipe"}),
            "merged": (self.client, {"stderr": "merged"}),
            "spooled": (self.client, {"overflow": "spool"}),
            "ephemeral": (self.client, {"lease": "ephemeral"}),
            "agent": (agent, {}),
        }
        reports = {}
        for name, (client, args) in entries.items():
            with self.subTest(entry=name):
                try:
                    record, lines = self.looks(client, **args)
                except KeeperError as error:
                    self.assertEqual(error.code, "never", error)
                kind = record["kind"]
                faults = Expected("full", {"root", kind, "host", "none"}).wrong(lines, LOOKS)
                self.assertEqual(faults, [])
                self.assertTrue(record["sandbox"]["enforced"])
                reports[name] = {what: held["state"] for what, held in record["sandbox"]["protections"].items()}
        for name, report in reports.items():
            self.assertEqual(report, reports["pipe"], name)

    def test_s122_command_line(self):
        """`coop run` in the foreground, detached, and by `coop op`: as the socket."""

        def coop(*words):
            argv = [str(COOP), *words]
            return subprocess.run(argv, env=self.keeper.place.env(), cwd=self.ws, capture_output=True, timeout=60, check=True).stdout

        command = self.around.argv("S-001")
        spawn = {"argv": command, "cwd": self.ws, "sandbox": {"workspace": self.ws, "network": "none"}}
        options = ["--workspace", self.ws, "--net", "none", "--"]
        started = (coop("run", "-d", *options, *command).split()[0].decode(), json.loads(coop("op", "spawn", json.dumps(spawn)))["process"]["id"])
        texts = [coop("run", *options, *command)]
        for process in started:
            coop("wait", process)
            texts.append(coop("logs", process))
        for text in texts:
            self.assertEqual(Expected("full", {"root", "pipe", "host", "none"}).wrong(lines_of(text), ["S-001"]), [], text)
        self.assertEqual(os.listdir(self.around.out), ["file"])


@unittest.skipUnless(ROOT, "needs root to make the world around it")
class PrintingTest(CliCase):
    def test_s108_escapes_are_not_interpreted(self):
        """Terminal escapes in words, labels, file names and refusals: coop's own lines never hold one."""
        world = World()
        self.addCleanup(world.close)
        odd = world.workspace / "\x1b]0;title\x07"
        odd.mkdir()
        evil = "\x1b[2J\x1b]0;owned\x07\x9b31m"
        process = self.out("run", "-d", "--tag", evil, "--workspace", str(odd), "--", "sleep", "300", evil, cwd=str(odd))
        process = process.decode().strip()
        shown = [self.coop(*words)[0] for words in (("ps",), ("status", process), ("ps", "-a"))]
        for words in (("run", "--workspace", f"{odd}/{evil}", "--", "true"), ("run", "--profile", evil, "--", "true"),
                      ("status", evil)):  # fmt: skip
            out, err = self.coop(*words, code=None)
            self.assertNotEqual(self.code, 0, words)
            shown += [out, err]
        for text in shown:
            self.assertNotIn(b"\x1b", text)
            self.assertNotIn(b"\x07", text)
        self.coop("kill", process)

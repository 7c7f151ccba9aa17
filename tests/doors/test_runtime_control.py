"""The clients of /runtime/v1 from end to end: with nothing but a URL and a key, and through all that their own smoke tests try."""

import unittest

from lib import procs
from lib.gateway import GatewayCase
from lib.procs import wait_until
from lib.sdk_case import SdkCase
from lib.sdk_node import NODE, Node, NodeSandbox
from lib.sdk_python import ExitError, Sandbox, SdkError


class ControlCase(GatewayCase):
    """Sandboxes are made through the control plane, as the clients do when only their two variables are set."""

    options = ("--control-plane",)

    @property
    def api_url(self):
        return f"{self.gateway.url}/v1"

    def each_created(self, check, **options):
        with self.subTest(client="python"):
            check(Sandbox.create(self.api_url, self.gateway.token, **options))
        if not NODE:
            raise unittest.SkipTest("node is not installed: only the Python client was run")
        node = Node()
        self.addCleanup(node.close)
        with self.subTest(client="typescript"):
            check(NodeSandbox.create(node, self.api_url, self.gateway.token, **options))


class CreateTest(ControlCase):
    def test_r003_create_run_kill(self):
        def check(sandbox):
            self.assertEqual(sandbox.info()["id"], sandbox.id)
            self.assertEqual(sandbox.info()["state"], "ready")
            result = sandbox.commands.run("echo hi")
            self.assertEqual((result["stdout"], result["exit_code"]), ("hi\n", 0))
            sandbox.kill()
            with self.assertRaises(SdkError):
                sandbox.info()
            with self.assertRaises(SdkError):
                sandbox.commands.run("echo hi")

        self.each_created(check)

    def test_r003_kill_ends_its_processes(self):
        """Nobody of them is left, and whoever reads is told so by `exit`: with nothing but the end of the socket it would try again."""
        sandbox = Sandbox.create(self.api_url, self.gateway.token)
        socket = self.sh("sleep 304 & echo up; sleep 304", socket={"token": sandbox.http.token})
        socket.until(b"up\n")
        sandbox.kill()
        ended = socket.until_exit()
        self.assertEqual((ended["exit_code"], ended["status"]), (-9, "killed"))
        wait_until(lambda: "sleep 304" not in map(procs.cmdline, procs.descendants(self.gateway.keeper_pid)), "all have ended")

    def test_envs_of_the_sandbox_are_defaults(self):
        def check(sandbox):
            self.assertEqual(sandbox.commands.run("echo $OWN")["stdout"], "given\n")
            self.assertEqual(sandbox.commands.run("echo $OWN", envs={"OWN": "other"})["stdout"], "other\n")
            sandbox.kill()

        self.each_created(check, envs={"OWN": "given"})

    def test_r061_session_of_one_sandbox_does_not_reach_another(self):
        first, second = (Sandbox.create(self.api_url, self.gateway.token) for _ in range(2))
        handle = first.commands.run("exec sleep 300", background=True, process_id="mine")
        for sandbox, pid in ((second, "mine"), (second, "unknown")):
            for call in (sandbox.commands.process, sandbox.commands.kill, sandbox.commands.read_output, sandbox.commands.connect):
                with self.assertRaises(SdkError) as caught:
                    call(pid)
                self.assertEqual(caught.exception.status, 404)
        self.assertEqual(second.commands.list(), [])
        self.assertEqual(first.commands.process("mine")["status"], "running")
        handle.disconnect()
        for sandbox in (first, second):
            sandbox.kill()

    def test_wrong_key_is_an_authentication_error(self):
        with self.assertRaises(SdkError) as caught:
            Sandbox.create(self.api_url, "coop_1_wrong")
        self.assertEqual(caught.exception.kind, "Authentication")


class SmokeTest(ControlCase):
    """The steps of the clients' own smoke tests: files, commands, terminal."""

    def test_r060_files(self):
        def check(sandbox):
            self.files(sandbox)
            sandbox.kill()

        self.each_created(check)

    def files(self, sandbox):
        files = sandbox.files
        files.make_dir("smoke/deep")
        watch = files.watch("smoke")
        self.assertIs(files.exists("smoke/missing.txt"), False)
        files.write("smoke/hello.txt", "file-ok")
        files.write("smoke/bytes.bin", bytes([4, 5, 6]))
        files.write_files([("smoke/a.txt", b"a"), ("smoke/b.txt", b"b")])
        self.assertEqual((files.read("smoke/hello.txt"), files.read("smoke/bytes.bin")), (b"file-ok", bytes([4, 5, 6])))
        self.assertEqual((files.info("smoke/hello.txt")["type"], files.info("smoke/hello.txt")["size"]), ("file", 7))
        self.assertEqual({entry["name"] for entry in files.list("smoke")}, {"hello.txt", "bytes.bin", "a.txt", "b.txt", "deep"})
        files.rename("smoke/hello.txt", "smoke/renamed.txt")
        self.assertEqual((files.exists("smoke/hello.txt"), files.exists("smoke/renamed.txt")), (False, True))
        files.remove("smoke/renamed.txt")
        self.assertIs(files.exists("smoke/renamed.txt"), False)
        watch.until({("create", "hello.txt"), ("remove", "renamed.txt")})
        watch.stop()
        # Commands see the same files.
        self.assertEqual(sandbox.commands.run("cat smoke/a.txt smoke/b.txt; printf c >smoke/c.txt")["stdout"], "ab")
        self.assertEqual(files.read("smoke/c.txt"), b"c")

    def test_r060_commands(self):
        def check(sandbox):
            self.commands(sandbox)
            sandbox.kill()

        self.each_created(check, envs={"SMOKE": "env-ok"})

    def commands(self, sandbox):
        commands = sandbox.commands
        result = commands.run('printf "%s" "$SMOKE"; printf err >&2')
        self.assertEqual((result["stdout"], result["stderr"]), ("env-ok", "err"))
        with self.assertRaises(ExitError) as caught:
            commands.run("printf partial; exit 7")
        self.assertEqual((caught.exception.exit_code, caught.exception.stdout), (7, "partial"))
        handle = commands.run("cat", background=True, stdin=True)
        self.assertIn(handle.pid, [item["pid"] for item in commands.list()])
        attached = commands.connect(handle.pid)
        attached.send_stdin("stdin-ok\n")
        attached.close_stdin()
        self.assertEqual(attached.wait()["stdout"], "stdin-ok\n")
        self.assertEqual(handle.wait()["stdout"], "stdin-ok\n")
        sleeper = commands.run("sleep 300", background=True)
        self.assertIs(sleeper.kill(), True)
        with self.assertRaises(ExitError):
            sleeper.wait()

    def test_r060_terminal(self):
        def check(sandbox):
            handle = sandbox.pty.create(80, 24)
            sandbox.pty.resize(handle.pid, 100, 30)
            sandbox.pty.send_stdin(handle.pid, "printf pty-%s ok; exit\n")
            pieces = []
            handle.wait(on_pty=pieces.append)
            self.assertIn(b"pty-ok", b"".join(pieces))
            other = sandbox.pty.create()
            self.assertIs(sandbox.pty.kill(other.pid), True)
            sandbox.kill()

        self.each_created(check)


class FileTest(SdkCase):
    def test_r053_files_through_the_clients(self):
        def check(sandbox):
            files = sandbox.files
            top = f"files-{type(sandbox).__name__}"
            written = files.write(f"{top}/made/on/the way+ü.txt", "text")
            self.assertEqual((written["name"], written["type"], written["size"], written["bytes"]), ("the way+ü.txt", "file", 4, 4))
            self.assertTrue(written["path"].startswith("/"))
            self.assertEqual(files.read(written["path"]), b"text")
            self.assertEqual([entry["name"] for entry in files.write_files([(f"{top}/1", b""), (f"{top}/2", b"22")])], ["1", "2"])
            self.assertEqual([entry["name"] for entry in files.list(top)], ["1", "2", "made"])
            self.assertEqual(files.rename(f"{top}/2", f"{top}/3")["name"], "3")
            self.assertIs(files.exists(f"{top}/2"), False)
            for call in (files.read, files.info, files.remove, files.list):
                with self.assertRaises(SdkError) as caught:
                    call(f"{top}/2")
                self.assertEqual((caught.exception.kind, caught.exception.status), ("FileNotFound", 404))
            files.remove(top)
            self.assertIs(files.exists(top), False)

        self.each(check)

    def test_r056_watch_through_the_clients(self):
        """Nothing that follows the upgrade is lost."""

        def check(sandbox):
            top = f"watched-{type(sandbox).__name__}"
            sandbox.files.make_dir(top)
            watch = sandbox.files.watch(top)
            for i in range(20):
                sandbox.files.write(f"{top}/{i}", "x")
            sandbox.commands.run(f"echo y >>{top}/0; rm {top}/1")
            watch.until({*(("create", str(i)) for i in range(20)), ("write", "0"), ("remove", "1")})
            watch.stop()

        self.each(check)

    def test_r056_watch_of_what_is_not_there(self):
        with self.assertRaises(SdkError) as caught:
            Sandbox(self.gateway.url, self.gateway.token).files.watch("no-such-folder")
        self.assertEqual(caught.exception.status, 404)

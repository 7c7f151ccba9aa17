"""The `start` frame of /runtime/v1: its fields, nulls, environment, and programs that cannot be started."""

from lib.gateway import GatewayCase
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import OldRust, Rust
from lib.sdk_python import ExitError

OPTIONAL = ("args", "environment", "envs", "stdin", "timeout_ms", "id", "cwd", "user", "tag", "pty")


class PrincipalTest(GatewayCase):
    def test_the_first_agent_of_another_principal_has_not_the_users_folder(self):
        """It is called main as well, and starts what it may, with files of its own."""
        folder = self.work.resolve() / "theirs"
        folder.mkdir()
        with self.gateway.keeper() as keeper:
            keeper.call("agent_add", agent="main", principal="other", workspace=[str(folder)])
            token = keeper.call("token_new", agent="main", principal="other")["token"]
        socket = self.sh("pwd", socket={"token": token})
        self.assertEqual(socket.until_exit()["exit_code"], 0)
        self.assertEqual(socket.output().decode(), f"{folder}\n")
        self.assertEqual(self.request("GET", "/runtime/v1/directories?path=.", token=token).status, 200)
        self.assertEqual(self.request("GET", "/metrics", token=token).status, 403)


class FailedStartTest(SdkCase):
    def test_r033_missing_program_is_127_and_named(self):
        def check(sandbox):
            handle = sandbox.commands.start("/no/such/program", [])
            with self.assertRaises(ExitError) as caught:
                handle.wait()
            self.assertEqual(caught.exception.exit_code, 127)
            self.assertIn("/no/such/program", caught.exception.error)
            self.assertEqual(caught.exception.stderr, f"coop: {caught.exception.error}\n")

        self.each(check)

    def test_r033_rust_clients_too(self):
        for kind in (OldRust, Rust):
            client = kind(self.gateway.url, self.gateway.token)
            self.addCleanup(client.close)
            code, _, _, error = client.start("no-such-program", []).wait()
            self.assertEqual(code, 127)
            self.assertIn("no-such-program", error)

    def test_r033_program_that_cannot_be_executed_is_126(self):
        (self.work / "text").write_text("no program")
        socket = self.start("./text")
        self.assertEqual((socket.until_exit()["exit_code"], socket.exit["status"]), (126, "failed"))
        self.assertTrue(socket.exit["error"])

    def test_r034_missing_cwd_is_126_with_a_text(self):
        socket = self.start("true", cwd="no-such-folder")
        end = socket.until_exit()
        self.assertEqual((end["exit_code"], end["status"], end["cursor"]), (126, "failed", 1))
        self.assertTrue(end["error"])

    def test_user_is_whom_id_names(self):
        """In the list and alone; who asks for that one by name or number gets it."""
        socket = self.sh("id -un; id -u")
        socket.until_exit()
        name, number = socket.output("stdout").decode().split()
        for user in (None, name, number):
            socket = self.sh("exec sleep 300", **({"user": user} if user else {}))
            self.assertEqual(self.status(socket.pid)["user"], name)
            self.assertIn(name, [row["user"] for row in self.get("/runtime/v1/process")["processes"] if row["id"] == socket.pid])
            self.kill(socket.pid)

    def test_unknown_user_is_126(self):
        end = self.start("true", user="no-such-user").until_exit()
        self.assertEqual((end["exit_code"], end["status"]), (126, "failed"))
        self.assertTrue(end["error"])

    def test_failed_start_is_kept_like_any_other(self):
        """It has a record, a place in the list of all, and can be attached to."""
        socket = self.start("/no/such/program", id="failed-start")
        socket.until_exit()
        record = self.status("failed-start")
        self.assertEqual((record["status"], record["exit_code"]), ("failed", 127))
        self.assertIn("failed-start", [item["id"] for item in self.get("/runtime/v1/process?all=true")["processes"]])
        again = self.attach("failed-start")
        self.assertEqual(again.until_exit(), socket.exit)
        self.assertEqual(again.events, socket.events)
        self.assertEqual([event.type for event in socket.events], ["stderr", "exit"])
        self.assertEqual(socket.output(), f"coop: {socket.exit['error']}\n".encode())
        poll = self.get("/runtime/v1/process/failed-start/output")
        self.assertEqual(([event["type"] for event in poll["events"]], poll["total_bytes"], poll["next_cursor"]), (["stderr"], 0, 2))


class QuotaTest(SdkCase):
    settings = {"max_running": 1}

    def test_start_at_a_full_quota_is_shown_as_a_process_that_ended(self):
        """Every client shows why; nothing is kept of it, and what runs goes on."""
        first = self.start("sleep", "300")

        def check(sandbox):
            handle = sandbox.commands.start("true", [], process_id="mine")
            with self.assertRaises(ExitError) as caught:
                handle.wait()
            self.assertEqual(caught.exception.exit_code, 126)
            self.assertTrue(caught.exception.error)
            self.assertEqual(caught.exception.stderr, f"coop: {caught.exception.error}\n")
            self.assertNotEqual(handle.pid, "mine")

        self.each(check)
        socket = self.socket()
        socket.send(type="start", cmd="true", id="mine")
        self.assertEqual(socket.expect_refused()["code"], "quota_exceeded")
        socket.expect_end()
        self.assertEqual([record["id"] for record in self.get("/runtime/v1/process?all=true")["processes"]], [first.pid])
        self.assertEqual(self.request("GET", "/runtime/v1/process/mine").status, 404)
        self.request("DELETE", f"/runtime/v1/process/{first.pid}?signal=KILL")
        first.until_exit()


class FieldTest(GatewayCase):
    def start_error(self, **start):
        socket = self.socket()
        socket.send(type="start", **start)
        end = socket.expect_refused()
        socket.expect_end()
        return end

    def test_r062_nulls_equal_absence(self):
        plain = self.start("env")
        nulls = self.start("env", **dict.fromkeys(OPTIONAL[1:]))
        for socket in (plain, nulls):
            self.assertEqual(socket.until_exit()["exit_code"], 0)
        self.assertEqual(sorted(plain.output().splitlines()), sorted(nulls.output().splitlines()))
        self.assertEqual(plain.record["cwd"], nulls.record["cwd"])
        self.assertNotEqual(plain.pid, nulls.pid)

    def test_r062_args_null(self):
        socket = self.socket()
        socket.send(type="start", cmd="true", **dict.fromkeys(OPTIONAL))
        socket.expect_started(0)
        self.assertEqual(socket.until_exit()["exit_code"], 0)

    def test_r063_values_of_the_environment(self):
        """A string as it is, numbers and booleans as their JSON text, null takes the variable away."""
        given = {"S": "two words", "I": 7, "F": 1.5, "T": True, "N": False, "HOME": None, "E": ""}
        socket = self.start("env", environment=given)
        socket.until_exit()
        lines = socket.output().decode().splitlines()
        for line in ("S=two words", "I=7", "F=1.5", "T=true", "N=false", "E="):
            self.assertIn(line, lines)
        self.assertFalse([line for line in lines if line.startswith("HOME=")])

    def test_r063_objects_and_lists_are_refused(self):
        for value in ({}, [], {"a": 1}):
            error = self.start_error(cmd="env", environment={"BAD": value})
            self.assertEqual(error["code"], "invalid_argument")
            self.assertIn("BAD", error["error"])

    def test_environment_wins_over_envs(self):
        for fields, wanted in (({"environment": {"A": "1"}, "envs": {"A": "2"}}, "A=1"), ({"envs": {"A": "2"}}, "A=2")):
            socket = self.start("env", **fields)
            socket.until_exit()
            self.assertIn(wanted, socket.output().decode().splitlines())

    def test_unknown_fields_are_ignored(self):
        self.assertEqual(self.start("true", surprise={"a": [1]}).until_exit()["exit_code"], 0)

    def test_fields_of_a_wrong_type_are_named(self):
        wrong = {"cmd": 7, "args": "x", "environment": [], "stdin": "yes", "timeout_ms": "5", "id": 7, "cwd": [], "user": 7, "tag": {},
                 "pty": 1}
        for name, value in wrong.items():
            with self.subTest(name=name):
                error = self.start_error(**({"cmd": "true"} | {name: value}))
                self.assertEqual(error["code"], "invalid_argument")
                self.assertIn(name, error["error"])

    def test_tag_and_cwd_are_in_the_record(self):
        (self.work / "below").mkdir(exist_ok=True)
        for cwd in ("below", str(self.work / "below")):
            socket = self.start("pwd", tag="build", cwd=cwd)
            socket.until_exit()
            self.assertEqual(socket.output().decode().strip(), str((self.work / "below").resolve()))
            self.assertEqual((socket.record["tag"], socket.record["cwd"]), ("build", str((self.work / "below").resolve())))

    def test_program_is_looked_for_in_the_childs_path(self):
        (self.work / "bin").mkdir(exist_ok=True)
        program = self.work / "bin" / "my-own-program"
        program.write_text("#!/bin/sh\necho found\n")
        program.chmod(0o755)
        socket = self.start("my-own-program", environment={"PATH": f"{program.parent}:/usr/bin:/bin"})
        self.assertEqual(socket.until_exit()["exit_code"], 0, socket.exit)
        self.assertEqual(socket.output(), b"found\n")

    def test_stdin_false_is_an_empty_one(self):
        socket = self.start("cat")
        self.assertEqual(socket.until_exit()["exit_code"], 0)
        self.assertEqual(socket.output(), b"")

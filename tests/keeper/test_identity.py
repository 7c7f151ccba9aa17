"""Ids, records, lists: what a process is called and what is told about it (B-001 to B-009)."""

import os
import re
import time
from datetime import datetime, timezone

from lib.client import KeeperError
from lib.keeper import KeeperCase

ID = re.compile(r"^psh-([0-9a-f]+)-([0-9]+)$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

RECORD_FIELDS = """id tag label alias why task call_id owner agent agent_path session argv command mode cwd kind lease state pid
process_group_id started_at ended_at duration_ms exit end_cause streams stdin_open blocked_on_stdin echo_off on_exit
descendants stats limits sandbox start audit_id""".split()


def number(process):
    return int(ID.match(process).group(2))


class IdentityTest(KeeperCase):
    def test_b001_id_has_pid_in_hex_and_growing_number(self):
        """Each spawn gives psh-<pid hex>-<n>; n only grows, also after release of the last one."""
        last = 0
        for _ in range(5):
            record = self.spawn("true")
            found = ID.match(record["id"])
            self.assertTrue(found, record["id"])
            self.assertEqual(int(found.group(1), 16), record["pid"])
            self.assertGreater(number(record["id"]), last)
            last = number(record["id"])
            self.ended(record["id"])
            self.client.call("release", id=record["id"])

    def test_b001_number_is_not_reused_after_restart(self):
        """A keeper that starts again on the same state goes on above the old numbers, after a stop and after kill -9."""
        numbers = [number(self.spawn("true")["id"]) for _ in range(3)]
        place = self.keeper.place
        for way in ("stop", "kill"):
            if way == "stop":
                self.client.call("shutdown", grace_ms=0)
            else:
                self.keeper.kill()
            self.expect_end(self.keeper)
            self.keeper = self.start_keeper(place=place)
            self.client = self.keeper.clients[0]
            fresh = [number(self.spawn("true")["id"]) for _ in range(3)]
            self.assertGreater(min(fresh), max(numbers), way)
            numbers += fresh
        self.assertEqual(len(set(numbers)), len(numbers))

    def test_b001_alias_is_unique_among_live_processes(self):
        """An alias is kept beside the id; a second live process with it is `exists`; after the end it is free again."""
        first = self.spawn("sleep", "300", alias="shop-1")
        self.assertEqual(first["alias"], "shop-1")
        self.assertTrue(ID.match(first["id"]))
        with self.refused("exists"):
            self.spawn("true", alias="shop-1")
        self.client.call("kill", id=first["id"])
        self.assertEqual(self.spawn("true", alias="shop-1")["alias"], "shop-1")

    def test_b003_recycled_pid_is_never_signalled(self):
        """In a PID namespace of its own a stranger gets the pid of a reaped process: signal, kill, stop leave it alone,
        and a new process with that pid does not touch the old record."""
        for profile in ("workspace-write", "full"):
            with self.subTest(profile=profile):
                self.assert_in_pid_namespace("recycled_pid.py", "stranger untouched", profile)

    def test_b004_record_has_all_fields(self):
        """A live and an ended record carry every field; times are RFC 3339 with milliseconds."""
        record = self.spawn("sleep", "300", tag="web", why="to see", task="t-1")
        self.assertEqual([name for name in RECORD_FIELDS if name not in record], [])
        self.assertEqual(record["state"], "running")
        self.assertIsNone(record["exit"])
        self.assertIsNone(record["ended_at"])
        self.assertIsNone(record["end_cause"])
        self.assertEqual(record["owner"]["agent"], "main")
        self.assertEqual(record["owner"]["principal"], f"uid:{os.getuid()}")
        self.assertEqual((record["agent"], record["agent_path"], record["call_id"]), ("self", "main", None))
        self.assertEqual((record["mode"], record["kind"]), ("argv", "pipe"))
        self.assertEqual((record["tag"], record["why"], record["task"]), ("web", "to see", "t-1"))
        self.assertEqual(record["process_group_id"], record["pid"])
        self.assertRegex(record["started_at"], TIME)
        self.assertEqual(set(record["streams"]), {"stdout", "stderr"})
        ended = self.client.call("kill", id=record["id"])["process"]
        self.assertEqual([name for name in RECORD_FIELDS if name not in ended], [])
        self.assertRegex(ended["ended_at"], TIME)
        self.assertEqual(ended["started_at"], record["started_at"])

    def test_b004_ended_at_is_when_it_ended(self):
        """Asking later does not move ended_at, and it lies between the start and the moment the end was known."""
        record = self.sh("exit 0")
        first = self.ended(record["id"])
        known = datetime.now(timezone.utc)
        ended_at = datetime.fromisoformat(first["ended_at"].replace("Z", "+00:00"))
        started_at = datetime.fromisoformat(first["started_at"].replace("Z", "+00:00"))
        self.assertLessEqual(started_at, ended_at)
        self.assertLessEqual((ended_at - known).total_seconds(), 0.01)
        time.sleep(0.05)
        for answer in (
            self.status(record["id"]),
            self.ended(record["id"]),
            self.client.call("kill", id=record["id"])["process"],
            self.client.call("list", include_finished=True)["processes"][0],
        ):
            self.assertEqual(answer["ended_at"], first["ended_at"])
            self.assertEqual(answer["duration_ms"], first["duration_ms"])

    def test_b005_argv_exact_and_command_readable(self):
        """argv comes back as given; the display quotes where needed, so that ["a b"] and ["a","b"] look different."""
        one = self.spawn("echo", "a b", "", "it's", "ä\n")
        self.assertEqual(one["argv"], ["echo", "a b", "", "it's", "ä\n"])
        joined, apart = self.spawn("echo", "a b")["command"], self.spawn("echo", "a", "b")["command"]
        self.assertNotEqual(joined, apart)
        self.assertEqual(apart, "echo a b")

    def test_b005_tag_loses_control_characters_and_is_cut(self):
        """A newline inside goes; 128 bytes at most, on a character's border; why and task alike; label is tag or program."""
        record = self.spawn("true", tag="a\nb", why="c\td\x7f", task="e\x1bf")
        self.assertEqual((record["tag"], record["why"], record["task"]), ("ab", "cd", "ef"))
        self.assertEqual(record["label"], "ab")
        wide = self.spawn("true", tag="é" * 100, why="x" * 127 + "é", task="y" * 500)
        self.assertEqual(wide["tag"], "é" * 64)
        self.assertEqual(wide["why"], "x" * 127)
        self.assertEqual(wide["task"], "y" * 128)
        plain = self.spawn("/bin/true")
        self.assertIsNone(plain["tag"])
        self.assertIn(plain["label"], ("true", "/bin/true"))

    def test_b005_tag_addresses_the_live_one_else_the_latest(self):
        """Tags may repeat: the live one is meant, else the latest; several live ones are refused with their ids."""
        old = self.spawn("true", tag="job")["id"]
        self.ended(old)
        new = self.spawn("true", tag="job")["id"]
        self.ended(new)
        self.assertEqual(self.status("job")["id"], new)
        live = self.spawn("sleep", "300", tag="job")["id"]
        later = self.spawn("true", tag="job")["id"]
        self.ended(later)
        self.assertEqual(self.status("job")["id"], live)
        other = self.spawn("sleep", "300", tag="job")["id"]
        with self.refused("invalid_input", "id") as caught:
            self.client.call("signal", id="job", signal="TERM")
        self.assertEqual(set(caught.exception.details["candidates"]), {live, other})
        self.assertEqual(self.status(live)["state"], "running")

    def test_b006_bad_argv_is_refused_with_its_field(self):
        """Missing, empty, non-string, empty name, NUL, unknown fields: invalid_input with the field, and nothing starts."""
        marker = self.work / "marker"
        bad = [
            ({}, "argv"),
            ({"argv": []}, "argv"),
            ({"argv": "touch"}, "argv"),
            ({"argv": ["touch", 7]}, "argv[1]"),
            ({"argv": ["touch", None]}, "argv[1]"),
            ({"argv": [""]}, "argv[0]"),
            ({"argv": ["touch", str(marker) + "\0x"]}, "argv[1]"),
            ({"argv": ["touch\0"]}, "argv[0]"),
            ({"argv": ["touch", str(marker)], "colour": "red"}, "colour"),
            ({"argv": ["touch", str(marker)], "Argv": []}, "Argv"),
        ]
        for args, field in bad:
            with self.subTest(args=args), self.refused("invalid_input", field):
                self.client.call("spawn", **args)
        self.assertFalse(marker.exists())
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])

    def test_b006_more_than_the_kernel_takes_is_too_large(self):
        """One argument above the kernel's bound, and all together above its total, are too_large; nothing is recorded."""
        with self.refused("too_large"):
            self.spawn("true", "x" * (1 << 18))
        with self.refused("too_large"):
            self.spawn("true", *["y" * 100000] * 60)
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])
        self.assertEqual(self.ended(self.spawn("true")["id"])["exit"]["code"], 0)


class ListTest(KeeperCase):
    def test_b007_list_gives_live_ones_in_start_order(self):
        """By default only live ones, stopped ones included, in start order."""
        ids = [self.spawn("sleep", "300", tag=f"n{i}")["id"] for i in range(3)]
        done = self.spawn("true", tag="done")["id"]
        self.ended(done)
        self.client.call("signal", id=ids[1], signal="STOP")
        self.wait_state(ids[1], "stopped")
        self.assertEqual([record["id"] for record in self.client.call("list")["processes"]], ids)
        everything = self.client.call("list", include_finished=True)["processes"]
        self.assertEqual([record["id"] for record in everything], [*ids, done])

    def test_b007_list_options_select(self):
        """state, tag (exact), label (part), agent, limit, after."""
        ids = [self.spawn("sleep", "300", tag=tag)["id"] for tag in ("web", "web-2", "db")]
        done = self.spawn("true", tag="web")["id"]
        self.ended(done)

        def listed(**args):
            return [record["id"] for record in self.client.call("list", **args)["processes"]]

        self.assertEqual(listed(tag="web"), ids[:1])
        self.assertEqual(listed(tag="web", include_finished=True), [ids[0], done])
        self.assertEqual(listed(label="web"), ids[:2])
        self.assertEqual(listed(agent="main"), ids)
        self.assertEqual(listed(agent="main/other"), [])
        self.assertEqual(listed(state="exited", include_finished=True), [done])
        self.assertEqual(listed(state="running"), ids)
        first = self.client.call("list", limit=2)
        self.assertEqual([record["id"] for record in first["processes"]], ids[:2])
        self.assertTrue(first["more"])
        rest = self.client.call("list", limit=2, after=ids[1])
        self.assertEqual([record["id"] for record in rest["processes"]], ids[2:])
        self.assertFalse(rest["more"])

    def test_b007_stopping_is_live_until_the_kernel_reports_the_end(self):
        """While a stop is under way the process is listed as stopping; after the end it is not listed."""
        process = self.sh("trap '' TERM; echo ready; while :; do sleep 1; done")["id"]
        self.wait_output(process, b"ready")
        other = self.connect()
        stop = other.submit("stop", {"id": process, "grace_ms": 1500})
        self.wait_state(process, "stopping")
        self.assertEqual([r["id"] for r in self.client.call("list")["processes"]], [process])
        self.assertEqual([r["id"] for r in self.client.call("list", state="stopping")["processes"]], [process])
        other.finish(stop)
        self.assertEqual(self.client.call("list")["processes"], [])

    def test_b007_brief_list(self):
        """A brief list has the same processes without the large parts."""
        self.spawn("sleep", "300")
        record = self.client.call("list", brief=True)["processes"][0]
        self.assertIn("state", record)
        for name in ("env_names", "streams", "limits", "sandbox"):
            self.assertNotIn(name, record)

    def test_b008_status_takes_one_or_many(self):
        """With many, unknown ids are absent; with one they are no_such_process; output is not consumed."""
        first, second = self.sh("echo one")["id"], self.sh("echo two")["id"]
        self.ended(first), self.ended(second)
        many = self.client.call("status", ids=[second, "psh-1-999999", first, "nonsense", ""])
        self.assertEqual({record["id"] for record in many["processes"]}, {first, second})
        for unknown in ("psh-1-999999", "nonsense", "psh-g", ""):
            with self.subTest(unknown=unknown), self.refused("no_such_process"):
                self.status(unknown)
        self.assertEqual(self.status(first)["id"], first)
        self.assertEqual(self.output(first), b"one\n")
        self.assertEqual(self.output(second), b"two\n")
        with self.refused("invalid_input"):
            self.client.call("status", id=first, ids=[second])
        with self.refused("invalid_input"):
            self.client.call("status")

    def test_b008_unambiguous_beginning_of_an_id(self):
        """A beginning that one id has addresses it; one that several share is refused with the candidates."""
        ids = [self.spawn("sleep", "300")["id"] for _ in range(40)]
        for process in ids[:5]:
            lengths = [n for n in range(6, len(process)) if sum(i.startswith(process[:n]) for i in ids) == 1]
            self.assertEqual(self.status(process[: lengths[0]])["id"], process)
        # Of forty pids some share their first digit.
        shared = next(i[:5] for i in ids if sum(j.startswith(i[:5]) for j in ids) > 1)
        with self.refused("invalid_input", "id") as caught:
            self.status(shared)
        self.assertLessEqual(set(caught.exception.details["candidates"]), {i for i in ids if i.startswith(shared)})
        self.assertGreater(len(caught.exception.details["candidates"]), 1)


class StartTest(KeeperCase):
    def test_b009_spawn_answers_once_executed(self):
        """The answer does not wait for output or end, and the program, not a copy of coop, is what runs."""
        record = self.spawn("sleep", "300")
        self.assertEqual(record["state"], "running")
        self.assertEqual(os.path.basename(os.readlink(f"/proc/{record['pid']}/exe")).split(".")[0], "sleep")

    def test_b009_cannot_be_executed(self):
        """A missing program or interpreter is ENOENT, a folder or plain file EACCES: spawn_failed, no record."""
        plain = self.work / "plain"
        plain.write_text("#!/nonexistent/interpreter\n")
        cases = [(["/nonexistent/program"], "ENOENT"), (["no-such-program-anywhere"], "ENOENT"), (["/tmp"], "EACCES"),
                 ([str(plain)], "EACCES")]
        for argv, errno_name in cases:
            with self.subTest(argv=argv), self.refused("spawn_failed") as caught:
                self.spawn(*argv)
            self.assertEqual(caught.exception.details["errno"], errno_name)
            self.assertEqual(caught.exception.details["step"], "exec")
        plain.chmod(0o755)
        with self.refused("spawn_failed") as caught:
            self.spawn(str(plain))
        self.assertEqual(caught.exception.details["errno"], "ENOENT")
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])
        self.assertEqual(self.client.call("info")["processes"]["live"], 0)

    def test_text_without_an_interpreter_is_run_by_the_shell(self):
        """As every shell does: with its own name and its words, found by path or along PATH, with a sandbox and without."""
        script = self.work / "plain-script"
        script.write_text("echo $0 $#: $*\n")
        script.chmod(0o755)
        for profile in ("full", "workspace-write"):
            for name in (str(script), script.name):
                with self.subTest(profile=profile, name=name):
                    where = {"cwd": str(self.work), "sandbox": {"profile": profile}, "env": {"PATH": f"{self.work}:/usr/bin:/bin"}}
                    id = self.spawn(name, "a", "b c", **where)["id"]
                    self.assertEqual(self.ended(id)["exit"]["code"], 0)
                    self.assertEqual(self.output(id), f"{script} 2: a b c\n".encode())

    def test_b009_record_failure_leaves_a_finished_record(self):
        """With record_failure a missing program is exited 127, an unexecutable one 126, cause spawn_failed."""
        for argv, code in ((["/nonexistent/program"], 127), (["/tmp"], 126)):
            with self.subTest(argv=argv):
                try:
                    record = self.spawn(*argv, record_failure=True, tag=f"f{code}")
                except KeeperError as error:
                    self.assertEqual(error.code, "spawn_failed")
                    record = self.status(f"f{code}")
                self.assertEqual((record["state"], record["exit"]["code"]), ("exited", code))
                self.assertEqual(record["end_cause"], "spawn_failed")
                self.assertEqual(self.ended(record["id"])["exit"]["code"], code)

    def test_b009_failed_spawn_uses_no_slot(self):
        """With room for one process, failures before it do not count."""
        keeper = self.start_keeper({"max_running": 1})
        client = keeper.clients[0]
        for _ in range(3):
            with self.refused("spawn_failed"):
                client.call("spawn", argv=["/nonexistent/program"])
        process = client.call("spawn", argv=["sleep", "300"])["process"]["id"]
        with self.refused("registry_full") as caught:
            client.call("spawn", argv=["sleep", "300"])
        self.assertEqual(caught.exception.details["limit"], 1)
        self.assertEqual(caught.exception.details["in_use"], 1)
        client.call("kill", id=process)
        # The receipt may come before the end is told, and it counts until then.
        client.call("wait", id=process)
        client.call("spawn", argv=["sleep", "300"])

    def test_b009_parallel_spawns_do_not_mix(self):
        """60 pipelined spawns over 3 connections: each has its own bytes and its own exit code."""
        clients = [self.connect() for _ in range(3)]
        requests = []
        for i in range(60):
            client = clients[i % 3]
            script = f"echo out-{i}; echo err-{i} >&2; exit {i % 50}"
            requests.append((i, client, client.submit("spawn", {"argv": ["sh", "-c", script]})))
        for i, client, request in requests:
            process = client.finish(request).result["process"]["id"]
            self.assertEqual(self.ended(process)["exit"]["code"], i % 50)
            self.assertEqual(self.output(process), f"out-{i}\n".encode())
            self.assertEqual(self.output(process, "stderr"), f"err-{i}\n".encode())

"""The sandbox by the command line: what the options ask of the keeper, what is said of its answers, and that it holds (B-093, B-105 to
B-113, S-108). What a host cannot do is played by a keeper of the test's own."""

import hashlib
import json
import os
import re
import shutil
import socket
import struct
import tempfile
import threading
from pathlib import Path

from lib.cli import CliCase

RECORD = {
    "id": "psh-1-1", "state": "running", "pid": 42, "agent": "self", "agent_path": "main", "kind": "pipes", "lease": "ephemeral", "command": "x",
    "cwd": "/w", "started_at": "2026-01-01T00:00:00.000Z", "duration_ms": 1000, "stats": {}, "streams": {}, "start": "pooled",
}
PROTECTIONS = ("files", "network", "identity", "ipc", "privileges", "seccomp", "kill")
ESCAPES = "\x1b]0;title\x07\x1b[31m\u009b31m\u202e\n"


def held(**others):
    """The protections of a record: all enforced but those that are named as (state, reason)."""
    states = {name: {"state": "enforced", "mechanism": "mounts", "reason": None} for name in PROTECTIONS}
    states.update({name: {"state": state, "mechanism": None, "reason": reason} for name, (state, reason) in others.items()})
    return states


class FakeKeeper:
    """Answers operations from a table of functions of their arguments, and keeps what it was asked."""

    def __init__(self, path, answers):
        self.answers, self.asked = answers, []
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        self.path.unlink()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                self.talk(connection)

    def talk(self, connection):
        self.send(connection, {"hello": {"protocol": 1, "version": "0.1.0", "pid": os.getpid()}})
        while head := connection.recv(8, socket.MSG_WAITALL):
            request = json.loads(connection.recv(struct.unpack("<I", head[:4])[0], socket.MSG_WAITALL))
            self.data = self.receive(connection, request.get("data", 0))
            self.asked.append((request["op"], request.get("args", {})))
            answer = self.answers.get(request["op"])
            answer = answer(request.get("args", {})) if answer else {"error": {"code": "invalid_input", "message": "no such operation"}}
            for event in answer.get("events", []):
                self.send(connection, {"id": request["id"], **event})
            self.send(connection, {"id": request["id"], **{name: value for name, value in answer.items() if name != "events"}})

    def receive(self, connection, size):
        """The bytes of a request."""
        data = b""
        while len(data) < size:
            head = connection.recv(32, socket.MSG_WAITALL)
            data += connection.recv(struct.unpack("<I", head[:4])[0] - 24, socket.MSG_WAITALL)
        return data

    def send(self, connection, value):
        text = json.dumps(value).encode()
        connection.sendall(struct.pack("<IBBH", len(text), ord("J"), 0, 0) + text)

    def args(self, op):
        """Those of the latest request for an operation."""
        return [args for name, args in self.asked if name == op][-1]


class FakeCase(CliCase):
    """Without a keeper of coop's: each operation is answered as the test wants it."""

    def setUp(self):
        super().setUp()
        self.record = dict(RECORD)
        self.answers = {
            "spawn": lambda args: {"result": {"process": self.record}},
            "status": lambda args: {"result": {"process": self.record}},
            "follow": lambda args: {"result": {"process": {**self.record, "state": "exited", "exit": {"code": 0}, "end_cause": "self_exit"}}},
            "check": lambda args: {"result": {"status": "allowed"}},
        }
        self.work = self.place.dir / "work"
        self.work.mkdir()
        (self.place.dir / "home").mkdir()
        (self.place.dir / "k").mkdir()
        self.socket = self.place.dir / "k" / "sock"
        self.env.update(HOME=str(self.place.dir / "home"), COOP_SOCKET=str(self.socket))
        self.fake = FakeKeeper(self.socket, self.answers)
        self.addCleanup(self.fake.close)

    def sent(self, *options, cwd=None, **more):
        """The sandbox and limits that a spawn asks for, and what is said on stderr."""
        _, err = self.coop("run", "-d", *options, "--", "true", cwd=cwd or self.work, **more)
        args = self.fake.args("spawn")
        return args.get("sandbox"), args.get("limits"), err.decode()

    def unavailable(self, **details):
        error = {"code": "sandbox_unavailable", "message": "sandbox: it cannot be (see coop doctor)", "details": details}
        return lambda args: {"error": error}


class RequestTest(FakeCase):
    def test_b105_options_become_the_request(self):
        """Every option is a member of sandbox or limits, in run in all its forms and in policy check."""
        (self.work / "more").mkdir()
        options = ["--profile", "workspace-write", "--net", "none", "--home", "hidden", "--root", "minimal", "--write", "more", "--read", ".",
                   "--deny-read", "*.pem", "--deny-read", "~/x", "--deny-write", "more/y", "--protect", ".env", "--require", "ipc",
                   "--tolerate", "kill", "--mem", "64M", "--cpus", "0.5", "--pids", "7", "--cpu-time", "1m", "--files", "32", "--fsize", "1K",
                   "--tmp-size", "2M"]
        here = str(self.work)
        sandbox = {"profile": "workspace-write", "workspace": here, "network": "none", "home": "hidden", "root": "minimal", "names": "resolved",
                   "allow_write": [here + "/more"], "allow_read": [here], "deny_read": [here + "/*.pem", "~/x"],
                   "deny_write": [here + "/more/y"], "protect": [".env"], "require": ["ipc"], "tolerate": ["kill"]}
        limits = {"memory_bytes": 64 << 20, "cpu_quota": 0.5, "max_pids": 7, "max_cpu_secs": 60, "max_open_files": 32, "max_file_bytes": 1024,
                  "tmp_bytes": 2 << 20}
        for form in (["run"], ["run", "-d"], ["run", "--shell"], ["run", "-t", "-n"], ["run", "--json"], ["policy", "check"]):
            with self.subTest(form=form):
                self.coop(*form, *options, "--", "true", cwd=self.work)
                args = self.fake.args("check" if form[0] == "policy" else "spawn")
                self.assertEqual(args["sandbox"], sandbox)
                self.assertEqual(args["limits"], limits)

    def test_b105_nothing_asked_is_the_folder_alone(self):
        """With no options only the workspace is sent: the folder that the command runs in, by its canonical name, and whether that was typed."""
        (self.place.dir / "link").symlink_to("work")
        for cwd, options in ((self.work, ()), (self.place.dir / "link", ()), ("/", ("-C", self.work)), ("/", ("--workspace", self.work)),
                             (self.place.dir, ("--workspace", "link")), (self.work, ("--profile", "own"))):
            with self.subTest(cwd=cwd, options=options):
                sandbox, limits, err = self.sent(*options, cwd=cwd)
                self.assertEqual(sandbox.pop("profile", None), "own" if "own" in options else None)
                names = "as_typed" if options[:1] == ("--workspace",) and cwd == "/" else "resolved"
                self.assertEqual((sandbox, limits, err), ({"workspace": str(self.work), "names": names}, None, ""))

    def test_b108_home_and_root_are_read_only(self):
        """In / and the home folder itself, and where the keeper's files are, a command is read-only, which one line says."""
        for cwd, word in (("/", "/ itself"), (self.place.dir / "home", "the home folder itself"), (self.place.dir, "the keeper's own files")):
            hidden = os.geteuid() == 0 and "home" in word
            for options in ((), ("--json",), ("-C", cwd)):
                with self.subTest(cwd=cwd, options=options):
                    sandbox, _, err = self.sent(*options, cwd=self.work if "-C" in options else cwd)
                    self.assertEqual(sandbox, {"profile": "read-only"})
                    hint = "shows one and makes it writable, --profile full .*" if hidden else "makes one writable"
                    self.assertRegex(err, rf"^coop: read-only here: .*{word}.* \(--workspace DIR {hint}\)\n$")
                    self.assertEqual("root's is hidden" in err, hidden)

    def test_s124_runs_in_the_workspace_that_was_named(self):
        """From outside of it, unless --cwd says where; from inside where one stands. Profiles that have none leave it be."""
        (self.work / "sub").mkdir()
        (self.place.dir / "work2").mkdir()
        (self.place.dir / "home" / "own").mkdir()
        (self.place.dir / "link").symlink_to("work")
        work, outside = str(self.work), str(self.place.dir)
        cases = [
            (outside, ("--workspace", "work"), work),
            (outside, ("--workspace", "link"), work),
            (work + "2", ("--workspace", work), work),
            ("/", ("--workspace=~/own",), outside + "/home/own"),
            (outside + "/home/own", ("--workspace=~/own",), outside + "/home/own"),
            (work + "/sub", ("--workspace", work), work + "/sub"),
            (outside + "/link/sub", ("--workspace", work), work + "/sub"),
            (outside, ("--workspace", "work", "--cwd", "work/sub"), work + "/sub"),
            (outside, ("--workspace", "work", "--cwd", "."), outside),
            (outside, ("--workspace", "work", "--profile", "full"), outside),
        ]
        for form, op in (("run", "spawn"), ("policy check", "check")):
            for cwd, options, wanted in cases:
                with self.subTest(form=form, cwd=cwd, options=options):
                    self.coop(*form.split(), *options, "--", "true", cwd=cwd)
                    self.assertEqual(self.fake.args(op)["cwd"], wanted)

    def test_b105_profiles_without_a_workspace(self):
        """read-only and full get none that was not named; a note is not needed."""
        for profile in ("read-only", "full", "restricted", "privileged"):
            for cwd in (self.work, "/"):
                self.assertEqual(self.sent("--profile", profile, cwd=cwd), ({"profile": profile}, None, ""))
        self.assertEqual(self.sent("--profile", "full", "--workspace", ".")[0], {"profile": "full", "workspace": str(self.work), "names": "resolved"})

    def test_b108_agents_bound_to_folders(self):
        """By a token no workspace is sent: an agent that has folders gets one of them, one that has none is told so."""
        roots = []
        self.answers.update(
            login=lambda args: {"result": {"agent": "main/a"}},
            info=lambda args: {"result": {"you": {"agent": "main/a"}}},
            agent_show=lambda args: {"result": {"agent": {"path": "main/a", "principal": "uid:0", "effective": {"workspace": roots}}}},
        )
        env = {**self.env, "COOP_TOKEN": "coop_1_x"}
        note = "coop: nothing is writable here: this agent has no workspace (coop agent set main/a --workspace DIR)\n"
        self.assertEqual(self.sent(env=env), (None, None, note))
        self.assertEqual(self.fake.args("agent_show"), {"agent": "main/a"})
        roots.append("/r")
        self.assertEqual(self.sent(env=env)[0], None)
        self.assertEqual(self.sent("--workspace", ".", env=env)[0], {"workspace": str(self.work), "names": "resolved"})
        self.coop("policy", "check", "--agent", "a", "--", "true", cwd=self.work)
        self.assertNotIn("sandbox", self.fake.args("check"))

    def test_b093_injections(self):
        """What is in the files are the request's bytes, in the order of the options; a pipe will do."""
        (self.work / "text").write_text("key=ü\n")
        (self.work / "bytes").write_bytes(b"\0\xff")
        self.coop("run", "-d", "--inject", "KEY=text", "--inject", "/etc/bytes=bytes", "--inject", "FED=/dev/stdin", "--", "true",
                  cwd=self.work, data=b"piped")
        self.assertEqual(self.fake.args("spawn")["file_injections"], [
            {"placement": "env", "name": "KEY", "content_bytes": 7},
            {"placement": "path", "path": "/etc/bytes", "content_bytes": 2},
            {"placement": "env", "name": "FED", "content_bytes": 5},
        ])
        self.assertEqual(self.fake.data, "key=ü\n".encode() + b"\0\xffpiped")

    def test_wrong_values(self):
        """Refused before anybody is asked, in the words that were typed."""
        (self.work / "big").write_bytes(b"x" * ((8 << 20) + 1))
        cases = [
            (("--net", "x"), "expected one of none|loopback|allowlist|host"), (("--home", "x"), "cow|read-only|hidden"),
            (("--root", "x"), "host|minimal"), (("--mem", "much"), "--mem much: expected a size"), (("--mem", "0"), "--mem 0: must be more than 0"),
            (("--mem", "99999999T"), "too large"), (("--cpus", "0"), "--cpus 0"), (("--cpus", "x"), "--cpus x: expected a number"),
            (("--pids", "1.5"), "--pids 1.5"), (("--cpu-time", "10ms"), "whole seconds"), (("--files", "0"), "--files 0"),
            (("--fsize", "0"), "--fsize 0"), (("--tmp-size", "0K"), "--tmp-size 0"), (("--workspace", "nowhere"), "--workspace nowhere: No such"),
            (("--write", "nowhere"), "--write nowhere: No such"),
        ]
        for options, wanted in cases:
            with self.subTest(options=options):
                self.assertIn(wanted, self.refusal("run", *options, "--", "true", code=125, cwd=self.work))
                code = 1 if "nowhere" in options else 2
                self.assertIn(wanted, self.refusal("policy", "check", *options, "--", "true", code=code, cwd=self.work))
        for options, wanted in ((("--inject", "x"), "expected NAME=FILE"), (("--inject", "A=nowhere"), "cannot read nowhere"),
                                (("--inject", "A=big"), "larger than 8 MiB")):
            self.assertIn(wanted, self.refusal("run", *options, "--", "true", code=125, cwd=self.work))
        self.assertEqual([op for op, _ in self.fake.asked if op in ("spawn", "check")], [])


class AnswerTest(FakeCase):
    def test_b106_unavailable(self):
        """What cannot be held is named with the reason and the way out; a limit with its option."""
        self.answers["spawn"] = self.unavailable(protection="files", reason="no mounts", cause="host", tolerable=True)
        self.assertEqual(self.refusal("run", "--", "true", code=125, cwd=self.work),
                         "coop: sandbox: files cannot be enforced: no mounts (coop doctor says what to change; --tolerate files runs without)\n")
        out, _ = self.coop("run", "--json", "--", "true", code=125, cwd=self.work)
        self.assertEqual(json.loads(out)["error"]["details"]["protection"], "files")
        self.answers["spawn"] = self.unavailable(protection="memory_bytes", reason="no cgroup", cause="host", tolerable=True)
        self.assertIn("memory_bytes (--mem) cannot be enforced: no cgroup", self.refusal("run", "-d", "--mem", "1M", "--", "true", code=125, cwd=self.work))
        self.answers["freeze"] = self.unavailable(protection="freezer", reason="no cgroup")
        text = self.refusal("freeze", "x", code=1)
        self.assertIn("no cgroup (coop doctor says what to change)", text)
        self.assertNotIn("--tolerate", text)

    def test_b106_no_advice_that_does_not_help(self):
        """--tolerate only where it helps, doctor only where it knows more, an option only if somebody typed it."""
        start = "coop: sandbox: files cannot be enforced: "
        above = "coop: sandbox: memory_bytes cannot be enforced: no cgroup (coop doctor says what to change; it is required from above)\n"
        cases = [
            (dict(protection="files", reason="Input/output error", step="mounts", errno="EIO"), start + "Input/output error, at mounts: EIO\n"),
            (dict(protection="files", reason="profile full", cause="profile", tolerable=True), start + "profile full (--tolerate files runs without)\n"),
            (dict(protection="files", reason="a confined profile is needed", cause="profile", tolerable=False), start + "a confined profile is needed\n"),
            (dict(protection="memory_bytes", reason="no cgroup", cause="host", tolerable=False), above),
        ]
        for details, wanted in cases:
            self.answers["spawn"] = self.unavailable(**details)
            for options in ((), ("--tolerate", "files")):
                with self.subTest(details=details, options=options):
                    self.assertEqual(self.refusal("run", *options, "--", "true", code=125, cwd=self.work), wanted)

    def test_b108_one_way_out_for_an_agent_without_folders(self):
        """The keeper's own, and no second one that does not help it."""
        said = "sandbox.workspace /w: this agent has no workspace (coop agent set main/a --workspace DIR gives it one)"
        self.answers["spawn"] = lambda args: {"error": {"code": "boundary_escape", "message": said,
                                                           "details": {"field": "sandbox.workspace", "advised": True}}}
        self.assertEqual(self.refusal("run", "--workspace", ".", "true", code=125, cwd=self.work), f"coop: --workspace: {said[18:]}\n")

    def test_b108_refused_workspace(self):
        """The way out is named; where none was typed the current folder is meant."""
        details = {"field": "sandbox.workspace"}
        self.answers["spawn"] = lambda args: {"error": {"code": "invalid_input", "message": "sandbox.workspace: is no workspace", "details": details}}
        way = r"\(--workspace DIR names another, --profile read-only needs none\)\n$"
        self.assertRegex(self.refusal("run", "true", code=125, cwd=self.work), r"^coop: the current folder as workspace: is no workspace " + way)
        self.assertRegex(self.refusal("run", "--workspace", ".", "true", code=125, cwd=self.work), r"^coop: --workspace: is no workspace " + way)

    def test_b107_status_line(self):
        """One line says what holds, and of what holds less the reason."""
        self.record["sandbox"] = {"profile": "workspace-write", "workspace": "/w", "network": "loopback",
                                  "protections": held(ipc=("partial", "no namespace"))}
        self.record["limits"] = {"timeout_ms": 5000, "memory_bytes": 64 << 20, "cpu_quota": 1.5, "max_pids": None}
        text = self.out("status", "x").decode()
        self.assertRegex(text, r"(?m)^  sandbox +workspace-write /w, network loopback: files, network, identity, privileges, seccomp, kill enforced; "
                               r"ipc partial \(no namespace\)$")
        self.assertRegex(text, r"(?m)^  limits +timeout 5s, memory 64M, cpus 1.5$")
        self.assertIn(", pooled\n", text)
        self.assertEqual(self.json("status", "x"), self.record)

    def test_b107_facts_of_a_bad_end(self):
        """coop run tells the kernel's facts, a line each, on stderr; status too."""
        end = {**self.record, "state": "signaled", "exit": {"code": None, "signal": 9, "signal_name": "SIGKILL"}, "end_cause": "oom",
               "facts": ["killed at the memory limit of 64 MiB", "network none"]}
        self.answers["follow"] = self.answers["status"] = lambda args: {"result": {"process": end}}
        _, err = self.coop("run", "--", "true", code=137, cwd=self.work)
        self.assertEqual(err, b"coop: killed at the memory limit of 64 MiB\ncoop: network none\n")
        text = self.out("status", "x").decode()
        self.assertIn("SIGKILL (oom)", text)
        self.assertRegex(text, r"(?m)^  facts +killed at the memory limit of 64 MiB\n +network none$")

    def test_freeze_and_thaw(self):
        """Each says how it is; a frozen process is told from one that runs."""
        for op, frozen, word in (("freeze", True, "frozen"), ("thaw", False, "goes on")):
            self.answers[op] = lambda args, frozen=frozen: {"result": {"id": "psh-1-1", "frozen": frozen}}
            self.assertEqual(self.out(op, "x").decode(), f"psh-1-1: {word}\n")
            self.assertEqual(self.json(op, "x"), {"id": "psh-1-1", "frozen": frozen})
        self.record["frozen"] = True
        self.assertIn("psh-1-1: running (frozen)\n", self.out("status", "x").decode())

    def doctor(self, **others):
        protections = {name: {**state, "fix": f"mend {name}" if state["reason"] else None} for name, state in held(**others).items()}
        answer = {"protections": protections, "identity": {"uid": 61000, "gid": 61000, "how": "a range"},
                  "cgroup": {"freezer": {"version": 0, "reason": "not mounted", "fix": "mount it"}}, "slots": {"enabled": True, "idle": 3, "memory_bytes": 1 << 20}}
        self.answers["doctor"] = lambda args: {"result": answer}
        return answer

    def test_b107_doctor(self):
        """A line for each protection, with why and what to change; what a plain run needs decides between a warning and a failure."""
        self.doctor()
        self.assertRegex(self.coop("doctor", code=None)[0].decode(), r"(?m)^ok +sandbox +every protection")
        self.doctor(memory_bytes=("none", "no cgroup"))
        text = self.coop("doctor", code=None)[0].decode()
        self.assertRegex(text, r"(?m)^warn +sandbox .*memory_bytes$")
        self.assertRegex(text, r"(?m)^ +files +enforced +mounts$")
        self.assertRegex(text, r"(?m)^ +memory_bytes +none +no cgroup\n +-> mend memory_bytes$")
        self.assertRegex(text, r"(?m)^ +freezer +none; not mounted\n +-> mount it$")
        self.assertNotIn("agent's pids", text)
        self.assertIn("uid 61000", text)
        # Of what counts the processes of several commands the limit of one says nothing.
        answer = self.doctor()
        answer["protections"]["max_pids"] = {"state": "enforced", "mechanism": "rlimit", "reason": None, "fix": None}
        answer["cgroup"]["pids"] = {"version": 0, "reason": "read-only", "fix": "let it write"}
        self.assertRegex(self.coop("doctor", code=None)[0].decode(), r"(?m)^ +agent's pids +none; read-only\n +-> let it write$")
        answer = self.doctor(files=("partial", "no mounts"))
        text = self.coop("doctor", code=1)[0].decode()
        self.assertRegex(text, r"(?m)^fail +sandbox +a plain coop run is refused.*: files$")
        value = json.loads(self.coop("doctor", "--json", code=1)[0])
        self.assertEqual((value["ok"], value["sandbox"]), (False, answer))

    def test_doctor_of_credentials(self):
        """One line for each, with the reason; a name that is seen is a failure, and other names of a file are told."""
        entries = [{"path": "/home/u/.ssh", "hidden": True, "reason": "taken out of the home's layer", "hard_links": 2}]
        asked = []
        self.answers["doctor"] = lambda args: asked.append(args) or {"result": {"credentials": entries}}
        text = self.coop("doctor", "--credentials")[0].decode()
        self.assertRegex(text, r"(?m)^hidden +/home/u/\.ssh +taken out of the home's layer\n +-> 2 other names")
        self.assertIn("1 in the home, 0 of them seen", text)
        entries.append({"path": "/home/u/.aws\x1b[2J", "hidden": False, "reason": "it can be seen", "hard_links": 0})
        text = self.coop("doctor", "--credentials", code=1)[0].decode()
        self.assertRegex(text, r"(?m)^SEEN +/home/u/\.aws.* +it can be seen$")
        self.assertNotIn("\x1b", text)
        value = json.loads(self.coop("doctor", "--credentials", "--json", code=1)[0])
        self.assertEqual((value["ok"], len(value["credentials"])), (False, 2))
        self.assertEqual(asked, [{"credentials": True}] * 3)

    def test_doctor_of_a_keeper_that_cannot_tell(self):
        """An older one has no such operation: a warning, and null."""
        self.assertRegex(self.coop("doctor", code=None)[0].decode(), r"(?m)^warn +sandbox +not looked at")
        self.assertIsNone(json.loads(self.coop("doctor", "--json", code=None)[0])["sandbox"])

    def test_s108_nothing_reaches_the_terminal_as_an_order(self):
        """Escapes in arguments, tags, folders, reasons and facts: never printed as they are, by no verb, neither in words nor as JSON."""
        bad = "x" + ESCAPES + "y"
        self.record.update(command=bad, cwd="/" + bad, tag=bad, why=bad, task=bad, label=bad, call_id=bad, session=bad, agent_path=bad,
                           facts=[bad], sandbox={"profile": bad, "workspace": "/" + bad, "network": bad, "protections": held(files=("none", bad))})
        self.doctor(files=("none", bad))
        lost = {"error": {"code": "invalid_input", "message": bad, "details": {}}}
        agent = {"path": bad, "principal": bad, "settings": {"sandbox": {"profile": bad}}, "effective": {"workspace": [bad]}, "use": {}}
        self.answers.update(
            list=lambda args: {"result": {"processes": [self.record]}}, history=lambda args: {"result": {"processes": [self.record]}},
            check=lambda args: {"result": {"status": bad, "stderr": bad, "command_policy": {"decisions": [{"reason": bad}]}}},
            kill=lambda args: lost, agent_show=lambda args: {"result": {"agent": agent}}, agent_list=lambda args: {"result": {"agents": [agent]}},
            follow=lambda args: {"result": {"process": {**self.record, "state": "exited", "exit": {"code": 1}, "end_cause": "self_exit"}}},
            follow_events=lambda args: {"events": [{"event": "started", "at": "", "process": self.record}], **lost},
        )
        verbs = [("ps",), ("ps", "-a"), ("status", "x"), ("top",), ("history",), ("run", "--", "true"), ("policy", "check", "--", "true"),
                 ("kill", "x"), ("agent", "show", "a"), ("agent", "ls"), ("doctor",), ("events",), ("kill", bad)]
        for verb in verbs:
            for form in ((), ("--json",)):
                with self.subTest(verb=verb, form=form):
                    out, err = self.coop(verb[0], *form, *verb[1:], code=None, cwd=self.work)
                    shown = (out + err).decode()
                    self.assertNotRegex(shown.replace("\n", ""), "[\x00-\x1f\x7f-\x9f\u202a-\u202e]")
                    if not form:
                        self.assertIn("x?]0;title??[31m?31m??y", shown)


class AgentTest(FakeCase):
    def setUp(self):
        super().setUp()
        self.agent = {"path": "main/a", "settings": {"sandbox": None, "limits": None, "policy": None}, "effective": {}, "use": {}}
        self.answers["agent_show"] = self.answers["agent_add"] = lambda args: {"result": {"agent": self.agent}}
        self.answers["agent_set"] = lambda args: {"result": {"agent": self.agent}}

    def test_b083_ceilings(self):
        """agent add sends them; agent set changes the parts that are named and leaves the others; show tells them."""
        self.coop("agent", "add", "a", "--profile", "read-only", "--net", "none", "--mem", "1G", "--cpus", "2", "--pids", "100",
                  "--deny-read", "/etc/x")
        args = self.fake.args("agent_add")
        self.assertEqual(args["sandbox"], {"profile": "read-only", "network": "none", "deny_read": ["/etc/x"]})
        self.assertEqual(args["limits"], {"memory_bytes": 1 << 30, "cpu_quota": 2, "max_pids": 100})
        self.agent["settings"].update(sandbox={**args["sandbox"], "home": None}, limits={**args["limits"], "tmp_bytes": None})

        def changed(*options):
            self.coop("agent", "set", "a", *options)
            args = self.fake.args("agent_set")
            return args.get("sandbox", "same"), args.get("limits", "same")

        self.assertEqual(changed("--mem", "2G"), ("same", {"memory_bytes": 2 << 30, "cpu_quota": 2, "max_pids": 100}))
        self.assertEqual(changed("--net", "host", "--unset", "deny-read"), ({"profile": "read-only", "network": "host"}, "same"))
        self.assertEqual(changed("--unset", "sandbox"), (None, "same"))
        self.assertEqual(changed("--unset", "limits", "--pids", "5"), ("same", {"max_pids": 5}))
        self.assertEqual(changed("--unset", "mem", "--unset", "cpus", "--unset", "pids"), ("same", None))
        text = self.out("agent", "show", "a").decode()
        self.assertRegex(text, r"(?m)^  sandbox +read-only, network none$")
        self.assertRegex(text, r"(?m)^  deny read +/etc/x$")
        self.assertRegex(text, r"(?m)^  limits +memory 1.0G, cpus 2, processes 100$")
        self.assertIn("--mem 0", self.refusal("agent", "set", "a", "--mem", "0", code=2))
        self.assertIn("--pids 0", self.refusal("agent", "add", "b", "--pids", "0", code=2))


class HoldsTest(CliCase):
    """With the keeper itself: that what was asked for is in force. What escapes try is tested elsewhere."""

    def setUp(self):
        super().setUp()
        self.work = self.place.dir / "work"
        self.work.mkdir()

    def run_in(self, script, *options, code=0, **more):
        return self.coop("run", *options, "--", "sh", "-c", script, cwd=self.work, code=code, **more)

    def test_b105_b108_workspace(self):
        """By default the folder is writable and what is beside it is not; with read-only neither is; with full both are."""
        outside = self.place.dir / "outside"
        outside.mkdir()
        self.run_in(f"echo 1 >inside; ! echo 1 >{outside}/x")
        self.assertTrue((self.work / "inside").exists())
        self.run_in("! echo 2 >more", "--profile", "read-only")
        self.run_in(f"echo 1 >{outside}/x", "--write", outside)
        self.run_in(f"echo 1 >{outside}/y", "--profile", "full")
        self.assertEqual(sorted(os.listdir(outside)), ["x", "y"])
        self.assertEqual(os.listdir(self.work), ["inside"])

    def test_b109_folder_is_as_the_command_left_it(self):
        """When coop run and coop wait return, no placeholder stands any more."""
        for i in range(10):
            self.run_in("touch made" if i % 2 else "rm -f made")
            self.assertEqual(os.listdir(self.work), ["made"] if i % 2 else [])
            process = self.out("run", "-d", "--", "sleep", "0.01", cwd=self.work).decode().strip()
            self.coop("wait", process)
            self.assertEqual(os.listdir(self.work), ["made"] if i % 2 else [])

    def test_s124_started_outside_of_the_workspace(self):
        """The command runs in the workspace that was named, where it may write."""
        self.assertEqual(self.out("run", "--workspace", self.work, "--", "sh", "-c", "pwd; touch made", cwd="/usr"), f"{self.work}\n".encode())
        self.assertTrue((self.work / "made").exists())

    def test_b108_first_run_in_the_home_folder(self):
        """coop run -- ls works there, read-only and with a note; root's home is hidden, and the note says so."""
        home = Path(tempfile.mkdtemp(prefix="coop-h-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, home)
        (home / "file").touch()
        (home / "sub").mkdir()
        (home / "sub" / "seen").touch()
        env = {**self.env, "HOME": str(home)}
        out, err = self.coop("run", "--", "ls", cwd=home, env=env)
        note = b"coop: read-only here: the home folder itself is no workspace%s\n"
        if os.geteuid() == 0:
            self.assertEqual(out, b"")
            note %= (b", and root's is hidden: it looks empty (--workspace DIR shows one and makes it writable, "
                     b"--profile full runs as root without protection)")
        else:
            self.assertEqual(out, b"file\nsub\n")
            note %= b": what the command writes in it vanishes with it (--workspace DIR makes one writable)"
        self.assertEqual(err, note)
        # What the note advises.
        self.assertEqual(self.coop("run", "--workspace", "sub", "--", "ls", "seen", cwd=home, env=env), (b"seen\n", b""))
        self.assertEqual(self.coop("run", "--profile", "full", "--", "ls", cwd=home, env=env), (b"file\nsub\n", b""))

    def test_b109_denied(self):
        """--deny-read, --deny-write and --protect hold, also for what is not there yet."""
        (self.work / "secret").write_text("s")
        (self.work / "a.hidden").write_text("s")
        (self.work / "kept").mkdir()
        self.run_in("! grep s secret && ! grep s a.hidden && ! touch kept/x && ! touch .later && touch free", "--deny-read", "secret",
                    "--deny-read", "*.hidden", "--deny-write", "kept", "--protect", ".later")
        self.assertEqual(os.listdir(self.work / "kept"), [])
        self.assertTrue((self.work / "free").exists())

    def test_b110_network_and_its_facts(self):
        """With none there is no network, and a command that fails after it has tried it is told so."""
        reach = "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 5)' 2>/dev/null; "
        _, err = self.run_in(reach + "exit 3", "--net", "none", code=3)
        self.assertRegex(err.decode(), r"^coop: network none: .*\n$")
        for script, code in ((reach + "exit 0", 0), ("exit 3", 3)):
            _, err = self.run_in(script, "--net", "none", code=code)
            self.assertEqual(err, b"")

    def test_b107_status(self):
        """Record and line agree."""
        process = self.out("run", "-d", "--", "sleep", "300", cwd=self.work).decode().strip()
        sandbox = self.json("status", process)["sandbox"]
        self.assertEqual((sandbox["profile"], sandbox["workspace"], sandbox["network"]), ("workspace-write", str(self.work), "loopback"))
        text = self.out("status", process).decode()
        self.assertRegex(text, rf"(?m)^  sandbox +workspace-write {re.escape(str(self.work))}, network loopback: files, .* enforced")

    def test_b093_injected_files(self):
        """By variable and by path; gone afterwards."""
        (self.place.dir / "key").write_bytes(b"\0secret")
        script = 'tail -c 6 "$KEY"; tail -c 6 /run/coop-test-key; ! echo x >"$KEY"; echo "$KEY" >&2'
        out, err = self.run_in(script, "--inject", f"KEY={self.place.dir}/key", "--inject", f"/run/coop-test-key={self.place.dir}/key")
        self.assertEqual(out, b"secretsecret")
        self.assertFalse(os.path.exists(err.decode().strip().splitlines()[-1]))
        self.assertFalse(os.path.exists("/run/coop-test-key"))

    def test_b093_largest_injected_files(self):
        """Two files of 8 MiB beside a stdin that is fed, and in the background; a byte more is refused here."""
        data = os.urandom(8 << 20)
        (self.place.dir / "large").write_bytes(data)
        options = ["--inject", f"KEY={self.place.dir}/large", "--inject", f"/run/coop-test-key={self.place.dir}/large"]
        script = 'sha256sum <"$KEY"; sha256sum </run/coop-test-key; cat'
        wanted = 2 * f"{hashlib.sha256(data).hexdigest()}  -\n".encode()
        self.assertEqual(self.run_in(script, *options, data=b"fed")[0], wanted + b"fed")
        process = self.out("run", "-d", *options, "--", "sh", "-c", script, cwd=self.work).decode().strip()
        self.coop("wait", process)
        self.assertEqual(self.out("logs", process), wanted)
        (self.place.dir / "small").write_bytes(b"x")
        refused = self.refusal("run", *options, "--inject", f"MORE={self.place.dir}/small", "--", "true", code=125, cwd=self.work)
        self.assertIn("16 MiB in all", refused)

    def test_b113_limits_without_a_cgroup(self):
        """Open files, file size, processor time and /tmp are held by means that every host has."""
        out, _ = self.run_in("ulimit -n", "--files", "64")
        self.assertEqual(out, b"64\n")
        self.run_in("head -c 4096 /dev/zero >big", "--fsize", "1K", code=None)
        self.assertLessEqual((self.work / "big").stat().st_size, 1024)
        self.run_in("while :; do :; done", "--cpu-time", "1s", code=None, timeout=60)
        self.assertIn(self.code, (128 + 24, 128 + 9))
        self.run_in("! head -c 4M /dev/zero >/tmp/x", "--tmp-size", "1M")

    def test_b105_wider_than_the_ceiling(self):
        """An agent cannot ask for more than it has: refused as by policy, in the words of the option."""
        self.coop("agent", "add", "a", "--profile", "read-only")
        env = {**self.env, "COOP_TOKEN": self.out("token", "new", "a").decode().strip()}
        # Somewhere that anybody may enter: to stand in a folder gives an agent no right to it.
        self.assertIn("--profile", self.refusal("run", "--profile", "full", "--", "true", code=126, env=env, cwd="/usr"))
        self.coop("run", "--", "sh", "-c", "! touch x", env=env, cwd="/usr")

    def test_doctor(self):
        """Without a keeper one is started for it; every protection is told."""
        value = json.loads(self.coop("doctor", "--json", code=None)[0])
        self.assertEqual(set(PROTECTIONS) - set(value["sandbox"]["protections"]), set())
        text = self.coop("doctor", code=None)[0].decode()
        for name in PROTECTIONS:
            self.assertRegex(text, rf"(?m)^ +{name} +(enforced|partial|none)\b")


class CompletionTest(CliCase):
    def test_words(self):
        """bash offers the options, their values, and the operator's own profiles."""
        self.place.conf.write_text("[profile build]\nbase = workspace-write\n")
        self.assertEqual(self.offered("run", "--work"), ["--workspace"])
        self.assertEqual(self.offered("run", "--net", ""), ["none", "loopback", "allowlist", "host"])
        self.assertEqual(self.offered("run", "--home", "r"), ["read-only"])
        self.assertEqual(self.offered("run", "--profile", ""), ["read-only", "workspace-write", "full", "build"])
        self.assertEqual(self.offered("run", "--tolerate", "max_p"), ["max_pids"])
        self.assertEqual(self.offered("agent", "set", "x", "--unset", "sand"), ["sandbox"])
        self.assertEqual(self.offered("fr"), ["freeze"])

"""An agent learns nothing of what lies outside by naming it: whatever is there, and whatever leads there, the answer is one (S-123)."""

import json
import os
import socket

from lib.both_keepers import USER, BothKeepersCase
from lib.client import KeeperError
from lib.place import Place

NAME = "<name>"
TOLD = 300  # bytes of a name, in a sentence
# Of an answer: what is another one with every start, and the caller's own words.
PASSING = ("asked", "created_at", "id", "n", "pid")


def strip(value, name):
    """The answer without what passes, and with one word for the name that was asked about."""
    if isinstance(value, dict):
        return {key: strip(item, name) for key, item in value.items() if key not in PASSING}
    if isinstance(value, list):
        return [strip(item, name) for item in value]
    return value.replace(name, NAME) if isinstance(value, str) else value


class OracleCase(BothKeepersCase):
    """A folder outside of the agent's root with one of each kind, closed to the commands of root's keeper."""

    def setUp(self):
        super().setUp()
        self.place = self.keeper.place
        self.inner = self.folder("ws/inner")
        self.outside = self.folder("outside")
        self.make_targets()
        for folder, folders, names in os.walk(self.base):
            for name in (*folders, *names):
                if self.user:
                    os.lchown(os.path.join(folder, name), self.user, self.user)
        (self.ws / "all").symlink_to("/")
        self.outside.chmod(0o700)
        (self.outside / "closed").chmod(0)
        self.client.call("agent_add", agent="main/other", folder=True)
        self.agent = self.keeper.agent("main/a", workspace=[str(self.ws)])
        self.agent.call("agent_add", agent="main/a/set")
        self.count = 0

    def start_keeper(self, settings=None, ready=True, **options):
        place = Place(self.user, self.base)
        place.dir.chmod(0o755)
        data = self.base / "data"
        data.mkdir(exist_ok=True)
        self.give(data)
        options["env"] = {"COOP_DATA": str(data), "HOME": str(self.home), **(options.get("env") or {})}
        return super().start_keeper(settings, ready, place=place, **options)

    def make_targets(self):
        outside = self.outside
        (outside / "file").write_text("x")
        for name in ("folder", "folder/sub", "closed", "closed/sub"):
            (outside / name).mkdir()
        (outside / "program").write_text("#!/bin/sh\n")
        (outside / "program").chmod(0o755)
        (outside / "dangling").symlink_to("nowhere")
        (outside / "loop").symlink_to("loop")
        (outside / "back").symlink_to(self.inner)
        os.mkfifo(outside / "fifo")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(outside / "socket"))
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "id").write_text("x")
        (self.home / ".netrc").write_text("x")

    def targets(self):
        """What the names lead to: absolute, and of each kind there are ones that are missing beside."""
        outside, state = self.outside, self.place.state
        there = [outside / name for name in ("file", "folder", "folder/sub", "closed", "closed/sub", "program", "dangling", "loop", "back", "fifo", "socket")]
        gone = [outside / name for name in ("missing", "missing/sub", "file/sub", "n" * 300)]
        hidden = [state, state / "records.db", state / "missing", self.home / ".ssh", self.home / ".ssh" / "id", self.home / ".netrc", self.home / ".aws",
                  self.place.socket, self.base / "data", self.base / "data" / "missing", self.place.dir / "missing", self.base / "missing"]  # fmt: skip
        kernels = ["/proc/1", "/proc/1/root", "/proc/self/fd", "/proc/missing", "/sys/kernel", "/sys/missing", "/dev/null", "/dev/missing", "/run/missing",
                   "/tmp/missing", "/root", "/root/missing", "/root/.bashrc", "/var/lib/missing", "/home/missing"]  # fmt: skip
        through = [f"{outside}/folder/../../ws/inner", f"{outside}/missing/../../ws/inner", f"{outside}/closed/../../ws/inner", f"{outside}/file/../../ws/inner",
                   f"{outside}/back", f"{outside}/back/../inner", f"{outside}/folder/../../ws/missing", f"{outside}/missing/../../ws/missing"]  # fmt: skip
        return [str(path) for path in (*there, *gone, *hidden, *kernels, *through)]

    def named(self, targets=None):
        """(typed, target): every way to say it."""
        for number, target in enumerate(targets or self.targets()):
            link = self.ws / f"to-{number}"
            link.unlink(missing_ok=True)
            link.symlink_to(target)
            yield str(link), target
            yield f"{link}/on", target
            if "/../" in target:
                continue  # by words alone it may be the agent's own
            yield target, target
            yield (f"{link}/", f"{self.ws}/all{target}", f"{self.ws}/../../../..{target}")[number % 3], target

    def answer(self, client, op, args, typed):
        """What somebody is told who calls it, all of it, with the name taken out."""
        plain = os.path.normpath(typed)
        try:
            result = client.call(op, **args)
            if op == "spawn":
                process = client.call("wait", id=result["process"]["id"], tidy=True)["process"]
                result = {key: process[key] for key in ("state", "exit", "end_cause", "sandbox", "limits")}
                result["output"] = [self.output(process["id"], stream, client=client).decode() for stream in ("stdout", "stderr")]
            if op == "agent_add":
                client.call("agent_remove", agent=args["agent"])
        except KeeperError as error:
            result = {"code": error.code, "message": str(error), "details": error.details}
        for name in (typed, plain, typed[:TOLD], plain[:TOLD]):
            result = strip(result, name)
        return json.dumps(result, sort_keys=True)

    def assert_one_answer(self, op, make, client=None, named=None, kind=lambda target: None):
        """One answer for all names, whatever is there; one of each kind, where the name itself makes a difference."""
        answers = {}
        for typed, target in named or self.named():
            told = self.answer(client or self.agent, op, make(typed), typed)
            answers.setdefault(kind(target), {}).setdefault(told, []).append((typed, target))
        self.assertTrue(answers)
        for which, told in answers.items():
            text = "\n".join(f"{len(names):4} {answer[:400]} … {answer[-400:]}\n       {names[:4]}" for answer, names in told.items())
            self.assertEqual(len(told), 1, f"{op}: {which}: {len(told)} answers\n{text}")

    def enterable(self, sandbox):
        """Of the names those that a command of the agent's own enters by itself: that they are there is no news to it."""
        names = [typed for typed, _ in self.named()]
        script = 'while read -r name; do (cd "$name") 2>/dev/null && echo "$name"; done < names; true'
        (self.ws / "names").write_text("\n".join(names))
        process = self.agent.call("spawn", argv=["sh", "-c", script], cwd=str(self.ws), sandbox=sandbox)["process"]["id"]
        self.agent.call("wait", id=process)
        return set(self.output(process, client=self.agent).decode().splitlines())

    def spawn(self, **args):
        return {"argv": ["true"], "cwd": str(self.ws)} | args

    def sandboxes(self, name):
        """Every member of `sandbox` that takes a path."""
        for member in ("allow_write", "allow_read"):
            yield member, {member: [name]}
            yield f"{member}, minimal", {member: [name], "root": "minimal"}
            yield f"{member}, read-only", {member: [name], "profile": "read-only"}
            yield f"{member}, second", {member: [str(self.inner), name]}
        for profile in ("workspace-write", "read-only"):
            yield f"workspace, {profile}", {"workspace": name, "profile": profile}
        for member in ("deny_read", "deny_write", "protect"):
            yield member, {member: [name]}
            yield f"{member}, read-only", {member: [name], "profile": "read-only"}
        yield "names", {"allow_write": [name], "names": "resolved"}
        yield "names, workspace", {"workspace": name, "names": "resolved"}
        yield "names, allow_read", {"allow_read": [name], "names": "typed"}


class OracleTest(OracleCase):
    def test_s123_cwd(self):
        for root in ("host", "minimal"):
            for profile in ("workspace-write", "read-only"):
                sandbox = {"root": root, "profile": profile}
                seen = self.enterable(sandbox)
                named = [(typed, target) for typed, target in self.named() if typed not in seen]
                # An ordinary user's commands see the folder outside, and what is in it.
                self.assertGreater(len(named), 100 if self.user is None or root == "minimal" else 50)
                for op, more in (("spawn", {}), ("spawn", {"record_failure": True}), ("check", {})):
                    with self.subTest(root=root, profile=profile, op=op, more=more):
                        self.assert_one_answer(op, lambda name: self.spawn(cwd=name, sandbox=sandbox, **more), named=named)

    def test_s123_sandbox(self):
        for what, _ in self.sandboxes("/x"):
            for op in ("spawn", "check") if "," not in what else ("check",):
                with self.subTest(what=what, op=op):
                    # What is denied is covered by its words; that is refused where those go back up.
                    kind = (lambda target: "/../" in target) if "deny_read" in what else (lambda target: None)
                    self.assert_one_answer(op, lambda name: self.spawn(sandbox=dict(self.sandboxes(name))[what]), kind=kind)

    def test_s123_patterns(self):
        """Of what a pattern denies outside nothing is counted, nor does a list that is full inside tell of one more."""
        targets = [str(self.outside / name) for name in ("file", "folder", "closed", "dangling", "loop", "missing", "file/sub")]
        targets += [str(self.home / ".ssh"), str(self.home / ".aws"), str(self.place.state), "/proc/missing", f"{self.outside}/folder/../../ws/inner"]
        (self.ws / "many").mkdir()
        for number in range(1024):
            (self.ws / "many" / str(number)).touch()
        for pattern in ("{}*", "{}/*", "{}/**", "{}[x]"):
            for more in ([], [f"{self.ws}/many/*"]):
                for op, agent in (("spawn", None), ("agent_add", "main/a/x")):
                    with self.subTest(pattern=pattern, more=len(more), op=op):
                        def make(name):
                            sandbox = {"deny_read": [*more, pattern.format(name.rstrip("/"))]}
                            return self.spawn(sandbox=sandbox) if op == "spawn" else {"agent": agent, "sandbox": sandbox}

                        named = [(typed, target) for typed, target in self.named(targets) if typed == target]
                        self.assert_one_answer(op, make, named=named)
                        # By a link the pattern begins in the agent's own root.
                        if pattern != "{}*":
                            named = [(typed, target) for typed, target in self.named(targets) if os.path.islink(typed) and typed.startswith(f"{self.ws}/to-")]
                            kind = (lambda target: None) if pattern != "{}[x]" else (lambda target: "/../" in target)
                            self.assert_one_answer(op, make, named=named, kind=kind)

    def kind_of_place(self, target):
        """Where a file that is given can be put depends on what the view has there, not on what is there."""
        for number, place in enumerate((self.home, self.base / "data", self.base, "/proc", "/sys", "/dev", "/run", "/tmp", "/root")):
            if target == str(place) or target.startswith(f"{place}/"):
                return number, target == str(place), "/../" in target
        return -1

    def test_s123_given_files(self):
        plain = [(typed, target) for typed, target in self.named() if typed == os.path.normpath(typed) and len(target) < TOLD and target not in ("/root", str(self.base / "data"))]
        for root in ("host", "minimal"):
            for links in (True, False):
                named = [(typed, target) for typed, target in plain if (typed != target) == links]
                with self.subTest(root=root, links=links):
                    self.assert_one_answer("spawn", named=named, kind=self.kind_of_place, make=lambda name: self.spawn(
                        file_injections=[{"placement": "path", "path": name, "content": "x"}], sandbox={"root": root}))  # fmt: skip

    def test_s123_variables(self):
        named = [(typed, target) for typed, target in self.named() if target not in ("/root", str(self.home))]
        for variable in ("HOME", "TMPDIR", "PATH"):
            for field in ("env", "base_env"):
                with self.subTest(variable=variable, field=field):
                    self.assert_one_answer("spawn", named=named, make=lambda name: self.spawn(
                        **{field: {variable: name}}, argv=["/usr/bin/env"], sandbox={"workspace": str(self.inner)}))  # fmt: skip

    def test_s123_agents(self):
        for op, agent in (("agent_add", "main/a/x"), ("agent_set", "main/a/set")):
            with self.subTest(op=op, what="roots"):
                self.assert_one_answer(op, lambda name: {"agent": agent, "workspace": [name]})
            with self.subTest(op=op, what="second root"):
                self.assert_one_answer(op, lambda name: {"agent": agent, "workspace": [str(self.inner), name]})
            for what, sandbox in self.sandboxes("/x"):
                if "names" in sandbox:
                    continue
                with self.subTest(op=op, what=what):
                    self.assert_one_answer(op, lambda name: {"agent": agent, "sandbox": dict(self.sandboxes(name))[what]})

    def test_s123_ceilings(self):
        token = self.keeper.token("main/a")["token"]
        for what, sandbox in self.sandboxes("/x"):
            if "names" in sandbox:
                continue
            with self.subTest(what=what):
                answers = {}
                for typed, target in self.named():
                    client = self.keeper.connect().login(token)
                    answers.setdefault(self.answer(client, "ceiling", {"sandbox": dict(self.sandboxes(typed))[what]}, typed), []).append((typed, target))
                    client.close()
                self.assertEqual(len(answers), 1, "\n".join(f"{answer[:500]} {names[:3]}" for answer, names in answers.items()))

    def test_s123_settings_that_were_given_before(self):
        """What an agent put into the settings of one below is no other way to ask."""
        for member in ("allow_write", "allow_read", "deny_read", "workspace"):
            answers = {}
            for typed, target in self.named():
                if typed == target or typed.endswith("/on") or "/../" in target and member == "deny_read":
                    continue
                name = typed.rstrip("/")
                try:
                    self.agent.call("agent_set", agent="main/a/set", sandbox={member: name if member == "workspace" else [name]})
                except KeeperError as error:
                    told = error.code
                else:
                    told = self.answer(self.keeper.login("main/a/set"), "spawn", self.spawn(), name)
                answers.setdefault(told, []).append((name, target))
            self.assertEqual(len(answers), 1, "\n".join(f"{member}: {answer[:300]} {names[:3]}" for answer, names in answers.items()))

    def test_s123_hidden_in_the_roots(self):
        """Of what is hidden in an agent's own roots it is not told either what is there."""
        self.client.call("agent_add", agent="main/all", workspace=[str(self.base)])
        client, state = self.keeper.login("main/all"), self.place.state
        hidden = [state, state / "records.db", state / "missing", self.home / ".ssh", self.home / ".ssh" / "id", self.home / ".ssh" / "missing", self.home / ".aws"]
        named = [(str(path), str(path)) for path in hidden]
        for member in ("allow_write", "allow_read"):
            sandbox = {"root": "minimal"}
            self.assert_one_answer("spawn", lambda name: self.spawn(sandbox=sandbox | {member: [name]}), client=client, named=named)
        self.assert_one_answer("agent_add", lambda name: {"agent": "main/all/x", "workspace": [name]}, client=client, named=named)

    def test_s123_what_is_ones_own_is_told(self):
        """Inside the roots, and to the user himself, a refusal says what is wrong."""
        (self.ws / "file").write_text("x")
        (self.ws / "loop").symlink_to("loop")
        own = {"missing": "No such file", "file": "Not a directory", "loop": "Too many levels"}
        for client, folder in ((self.agent, self.ws), (self.client, self.ws), (self.client, self.outside)):
            for name, why in own.items():
                path = str(folder / name)
                for args in ({"cwd": path}, {"sandbox": {"allow_write": [path]}}, {"sandbox": {"workspace": path}}):
                    self.assertIn(why, str(self.refusal(client, **args)), (path, args))
        for name, why in own.items():
            with self.assertRaises(KeeperError) as caught:
                self.agent.call("agent_add", agent="main/a/x", workspace=[str(self.ws / name)])
            self.assertIn(why, str(caught.exception))
        (self.ws / "good").symlink_to(self.inner)
        self.assertEqual(self.says("pwd -P", {}, client=self.agent, cwd=str(self.ws / "good")), str(self.inner))


class OracleOfAUserTest(OracleTest):
    user = USER

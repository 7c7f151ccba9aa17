"""With a token over HTTP nothing is learned of what lies outside: neither by a refusal of an operation, nor by the file routes, which know
no more than a command of the token's own (S-123)."""

import json
import os
import urllib.parse

from lib.gateway import GatewayCase

NAME = "<name>"
LOOK = """
import errno, json, os, sys
told = {}
for path in sys.stdin.read().splitlines():
    try:
        told[path] = "folder" if os.path.stat.S_ISDIR(os.stat(path).st_mode) else "file"
    except OSError as error:
        told[path] = errno.errorcode[error.errno]
print(json.dumps(told))
"""


class OracleTest(GatewayCase):
    options = ("--control-plane",)

    def setUp(self):
        super().setUp()
        place = self.gateway.place
        self.outside = place.dir / "outside"
        if not self.outside.exists():
            for name in ("folder", "barred"):
                (self.outside / name).mkdir(parents=True)
            (self.outside / "file").touch()
            (self.outside / "loop").symlink_to("loop")
            (self.outside / "barred").chmod(0)

    def targets(self):
        home, state = os.path.expanduser("~"), self.gateway.place.state
        names = [self.outside / name for name in ("folder", "barred", "file", "loop", "missing", "file/on", "missing/on")]
        return [str(path) for path in (*names, state, state / "records.db", state / "missing", "/proc/1/root", "/proc/missing", f"{home}/.bashrc", f"{home}/missing",
                                       f"{home}/.ssh", f"{self.outside}/folder/../../work", f"{self.outside}/missing/../../work")]  # fmt: skip

    def op(self, name, token, **args):
        return self.request("POST", f"/v1/ops/{name}", args, token=token)

    def plant(self, folder):
        """Links in the agent's own folder, as one of its commands could make them: (typed, target)."""
        named = [(os.path.join(folder, f"to-{number}"), target) for number, target in enumerate(self.targets())]
        for typed, target in named:
            if not os.path.islink(typed):
                os.symlink(target, typed)
        return named + [(f"{typed}/on", target) for typed, target in named]

    def look_inside(self, token, folder, names):
        """What a command of the agent's own finds there, by its error where it finds nothing."""
        for name, text in (("look.py", LOOK), ("names", "\n".join(names))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        response = self.op("spawn", token, mode="shell", command="python3 look.py < names > looks; chmod 644 looks", cwd=folder)
        self.assertEqual(response.status, 200, response.body)
        self.assertEqual(self.op("wait", token, id=response.json()["process"]["id"]).status, 200)
        with open(os.path.join(folder, "looks"), encoding="utf-8") as file:
            return json.load(file)

    def tokens(self):
        """A sandbox's, with a folder of its own, and that of an agent with a workspace."""
        created = self.request("POST", "/v1/sandboxes", {})
        self.assertEqual(created.status, 201, created.body)
        token = created.json()["session"]["token"]
        me = self.op("info", token).json()["you"]["agent"]
        folder = self.gateway.keeper().call("agent_show", agent=me)["agent"]["folder"]
        yield token, me, folder
        path = f"main/{self.id().rpartition('_')[2]}"
        yield self.gateway.agent_token(path), path, str(self.gateway.place.work.resolve())

    def told(self, response, typed):
        return response.status, json.dumps(response.json(), sort_keys=True).replace(typed, NAME)

    def test_s123_operations(self):
        for token, me, folder in self.tokens():
            named = self.plant(folder)
            asks = {
                "cwd": lambda name: ("spawn", {"argv": ["true"], "cwd": name}),
                "write": lambda name: ("spawn", {"argv": ["true"], "sandbox": {"allow_write": [name]}}),
                "workspace": lambda name: ("spawn", {"argv": ["true"], "sandbox": {"workspace": name}}),
                "read": lambda name: ("spawn", {"argv": ["true"], "sandbox": {"allow_read": [name], "root": "minimal"}}),
                "agent": lambda name: ("agent_add", {"agent": f"{me}/x", "workspace": [name]}),
                "gift": lambda name: ("agent_add", {"agent": f"{me}/x", "sandbox": {"allow_read": [name]}}),
            }
            for what, ask in asks.items():
                with self.subTest(agent=me, what=what):
                    answers = {}
                    for typed, target in named:
                        op, args = ask(typed)
                        answers.setdefault(self.told(self.op(op, token, **args), typed), []).append(target)
                    self.assertEqual(len(answers), 1, answers)
                    self.assertIn(next(iter(answers))[0], (400, 403))

    def test_s123_file_routes_see_what_a_command_sees(self):
        """Each route answers alike for all that looks alike from inside, whatever is there outside."""
        for token, me, folder in self.tokens():
            named = self.plant(folder)
            names = [typed for typed, _ in named] + [target for _, target in named[: len(named) // 2]]
            looks = self.look_inside(token, folder, names)
            for route in ("files", "files/stat", "directories"):
                answers = {}
                for name in names:
                    if route == "files/stat" and os.path.islink(name):
                        continue  # it tells of the link itself, which is the agent's own
                    target = f"/runtime/v1/{route}?" + urllib.parse.urlencode({"path": name})
                    response = self.request("GET", target, token=token)
                    found = {"files": ("file",), "files/stat": ("file", "folder"), "directories": ("folder",)}[route]
                    self.assertEqual(response.status == 200, looks[name] in found, (name, looks[name], response.body))
                    if response.status != 200:
                        answers.setdefault(looks[name], set()).add(self.told(response, name))
                for look, told in answers.items():
                    with self.subTest(agent=me, route=route, look=look):
                        self.assertEqual(len(told), 1, told)

"""The official inspector's command line: schemas by its strict rules, and load."""

import json

from lib.official import EVERYTHING, NODE, OfficialCase
from lib.place import BUILD

ERAS = ("legacy", "modern", "auto")
LOAD = ("--load", "--load-requests", "200", "--load-concurrency", "8")


class InspectorTest(OfficialCase):
    def result(self, target, *words):
        """What a call prints, as JSON."""
        code, out, err = self.inspect(target, "--method", "tools/call", *words, "--format", "json", "-q")
        self.assertEqual(code, 0, out + err)
        return json.loads(out)["result"]

    def strict(self, transport, era):
        code, out, err = self.inspect(self.targets()[transport], "--method", "tools/list", "--strict", "--protocol-era", era)
        self.assertEqual(code, 0, out[-2000:] + err[-2000:])
        self.assertIn("run_command", out)

    def test_m028_strict_list_on_stdio(self):
        for era in ERAS:
            with self.subTest(era):
                self.strict("stdio", era)

    def test_m028_strict_list_over_http(self):
        for era in ERAS:
            with self.subTest(era):
                self.strict("http", era)

    def test_a_tool_is_called(self):
        args = ("--tool-name", "run_command", "--tool-args-json", '{"command": "echo hello"}')
        for transport, era in (("stdio", "legacy"), ("stdio", "modern"), ("http", "legacy"), ("http", "modern")):
            with self.subTest(transport=transport, era=era):
                result = self.result(self.targets()[transport], *args, "--protocol-era", era)
                self.assertEqual(result["structuredContent"]["stdout"], "hello\n", result)

    def test_m048_load(self):
        """How long calls took, ours and the reference server's, is written down and not judged: the machine may be busy."""
        ours = {name: (target, "--tool-name", "list_processes") for name, target in self.targets().items()}
        reference = ([NODE, EVERYTHING, "stdio"], "--tool-name", "echo", "--tool-arg", "message=hello")
        figures = {}
        for name, (target, *words) in {**ours, "reference server, stdio": reference}.items():
            figures[name] = self.result(target, *words, *LOAD)
            self.assertEqual(figures[name]["requests"], 200, figures)
            self.assertEqual(figures[name]["ok"], 200, figures)
            self.assertEqual(figures[name]["errors"] + figures[name]["toolErrors"], 0, figures)
        (BUILD / "clients-load.json").write_text(json.dumps(figures, indent=1) + "\n")

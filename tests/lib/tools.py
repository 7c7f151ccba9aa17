"""The tools for models, as `coop tool NAME JSON` offers them: every call is a program of its own, so nothing is remembered between
two of them but by the keeper."""

import json

from .cli import CliCase
from .place import patience

OK, FAILURE, ERROR = 0, 1, 2


class ToolCase(CliCase):
    """A keeper that the first tool starts, and tools that are called from the place's workspace."""

    def tool(self, name, *, options=(), **args):
        """Calls a tool; gives (exit code, result)."""
        return self.tool_json(name, args, options=options)

    def tool_json(self, name, args, *, options=(), **how):
        """The same with arguments of any kind, and options for the program that is started (env)."""
        text = json.dumps(args)
        if len(text) < 100000:
            out, err = self.coop("tool", *options, name, text, code=None, **how)
        else:  # more than a word of a command line may have
            out, err = self.coop("tool", *options, name, "-", code=None, data=text.encode(), **how)
        try:
            result = json.loads(out)
        except ValueError:
            self.fail(f"{name} {args}"[:1000] + f": exit code {self.code}, {out[-2000:]!r} {err[-2000:]!r}")
        self.assertEqual(out.count(b"\n"), 1, f"one line of JSON: {out[-2000:]!r}")
        self.assertEqual(err, b"")
        if self.code == ERROR:
            for member in ("code", "message", "advice"):
                self.assertTrue(result.get(member), f"an error has {member}: {result}")
        return self.code, result

    def ok(self, name, **args):
        """The result of a tool that must succeed."""
        code, result = self.tool(name, **args)
        self.assertEqual(code, OK, f"{name} {args}"[:1000] + f": {result}")
        return result

    def failure(self, name, **args):
        """The result of a tool that must be carried out and say no."""
        code, result = self.tool(name, **args)
        self.assertEqual(code, FAILURE, f"{name} {args}"[:1000] + f": {result}")
        return result

    def error(self, wanted, name, **args):
        """The error of a tool that must be refused with this code."""
        code, result = self.tool(name, **args)
        self.assertEqual((code, result.get("code")), (ERROR, wanted), f"{name} {args}"[:1000] + f": {result}")
        return result

    def start_tool(self, name, **args):
        """A call that is not waited for; give it to end_tool()."""
        return self.start("tool", name, json.dumps(args))

    def end_tool(self, process):
        """(exit code, result) of a call that was begun."""
        out, err = process.communicate(timeout=patience(60))
        self.assertEqual(err, b"")
        return process.returncode, json.loads(out)

    def call(self, op, **args):
        """An operation of the keeper, past the tools."""
        with self.client() as client:
            return client.call(op, **args)

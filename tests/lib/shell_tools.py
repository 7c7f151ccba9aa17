"""A shell that is used by tools alone."""

from . import procs
from .tools import ToolCase


class ShellCase(ToolCase):
    """Tests of the shell tools. What is typed is echoed: patterns are made such that the echo does not match them."""

    def open(self, **args):
        """A new shell's session_id."""
        return self.ok("open_shell", **args)["session_id"]

    def type(self, session, text):
        return self.ok("shell_write", session_id=session, input=text)

    def expect(self, session, pattern, **args):
        """Waits for a match and gives the result."""
        result = self.ok("shell_expect", session_id=session, pattern=pattern, **args)
        self.assertIs(result["matched"], True)
        return result

    def settle(self, session, word="settled"):
        """Waits until the shell has done all that was typed before; the word is shown only by its own doing."""
        self.type(session, f"echo {word[:2]}''{word[2:]}\n")
        self.expect(session, word)

    def read_until(self, session, wanted):
        """What shell_read shows until this is part of it."""
        seen = []

        def look():
            result = self.ok("shell_read", session_id=session)
            seen.append(result["output"])
            self.assertFalse(result["eof"] and wanted not in "".join(seen), f"{wanted!r} never came: {seen!r}")
            return wanted in "".join(seen)

        procs.wait_until(look, f"{wanted!r} is shown", interval=0.05)
        return "".join(seen)

    def output(self, session, **args):
        """Bytes of the terminal, past the tools."""
        with self.client() as client:
            return client.reply("read", {"id": session, "stream": "pty", **args}).bytes("pty")

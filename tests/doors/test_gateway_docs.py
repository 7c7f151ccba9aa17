"""docs/API.md: its examples, run as they stand, one after the other in one shell, do what the page says."""

import re
import subprocess
import tempfile
import unittest

from lib.gateway import GatewayCase
from lib.place import REPOSITORY, patience

PAGE = REPOSITORY / "docs" / "API.md"
FENCE = re.compile(r"^```([a-z ]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "=== end of example {} ==="
SECONDS = 120


def examples():
    """(line, script, expected output or None) of each block that is run."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = [(found.group(1), found.group(2), text.count("\n", 0, found.start()) + 1) for found in FENCE.finditer(text)]
    for i, (kind, script, line) in enumerate(blocks):
        if kind == "sh run":
            follows = i + 1 < len(blocks) and blocks[i + 1][0] == "output"
            yield line, script, blocks[i + 1][1] if follows else None


class Docs(GatewayCase):
    options = ("--control-plane",)

    def test_the_examples_do_what_the_page_says(self):
        found = list(examples())
        self.assertGreater(len(found), 10)
        script = "".join(f"{text}echo '{MARK.format(i)}'\n" for i, (_, text, _) in enumerate(found))
        with tempfile.TemporaryDirectory(prefix="coop-docs-") as folder:
            env = self.gateway.place.env({"COOP_URL": self.gateway.url, "COOP_TOKEN": self.gateway.token})
            done = subprocess.run(
                ["bash"], input=script, env=env, cwd=folder, capture_output=True, text=True, timeout=patience(SECONDS)
            )
        rest = done.stdout
        for i, (line, text, expected) in enumerate(found):
            output, mark, rest = rest.partition(MARK.format(i) + "\n")
            with self.subTest(line=line):
                self.assertTrue(mark, f"it did not get here: {done.stderr}")
                if expected is not None:  # JSON answers end without a line end
                    self.assertEqual(output.rstrip("\n"), expected.rstrip("\n"), f"{text}\n{done.stderr}")


if __name__ == "__main__":
    unittest.main()

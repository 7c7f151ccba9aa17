"""docs/SECURITY.md is true to the code: every promise in it names tests, and each of them exists."""

import ast
import re
import unittest

from lib.place import REPOSITORY

PAGE = REPOSITORY / "docs" / "SECURITY.md"
NAMED = re.compile(r"(tests/[a-z_/]+\.py)::(test_\w+)")


def tests_of(path):
    """The names of the test methods in a file."""
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)}


class PageTest(unittest.TestCase):
    def test_every_test_that_is_named_exists(self):
        named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
        self.assertGreater(len(named), 20)
        for file, test in named:
            self.assertIn(test, tests_of(REPOSITORY / file), file)

    def test_every_promise_names_a_test(self):
        """Tables with a column of tests have one in each row."""
        rows = tables = 0
        inside = False
        for line in PAGE.read_text(encoding="utf-8").splitlines():
            if line.startswith("| promise |"):
                tables += 1
                inside = True
            elif not line.startswith("|"):
                inside = False
            elif inside and not line.startswith("|---"):
                rows += 1
                self.assertRegex(line, NAMED)
        self.assertGreater(tables, 3)
        self.assertGreater(rows, 25)

"""Small wrong changes of C sources: where they can be made, and what the text is then.

Each place is one token (or statement) and one operator. Left out are texts, declarations, tables, log calls, assertions and
what only gives memory back: nobody could notice a change there.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from .ctokens import functions, partners, tokens

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}
SUMS = {"+": "-", "-": "+", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
TRUTH = {"true": "false", "false": "true"}
QUIET = re.compile(
    r"^(coop_log\w*|assert\w*|static_assert|_Static_assert|free|\w+_free|json_decref|fclose|closedir|va_(start|end|copy)"
    r"|sqlite3_finalize|explicit_bzero|__builtin_\w+)$"
)
FAILERS = re.compile(r"^(coop_err_\w+|coop_\w+_(fail|refuse|no_memory)|refuse|refuse_\w+|invalid|wrong|bad|fail|failed|files_fail|fault)$")
RESULTS = ("r", "rc", "err", "error", "status", "ret", "result")
FLAG = re.compile(r"^[A-Z][A-Z0-9_]+$")
NUMBER = re.compile(r"^(0|[1-9][0-9]*)([uUlL]*)$")
KEYWORDS = frozenset("if while for switch return sizeof do else case goto break continue default".split())
TYPES = frozenset("int char long unsigned void bool double const struct enum".split())
NOTHING = "(void)0;"


@dataclass(frozen=True)
class Place:
    file: str
    line: int
    start: int
    end: int
    text: str
    operator: str

    @property
    def name(self):
        return f"{self.file}:{self.line}:{self.start}:{self.operator}"

    def apply(self, source):
        """The source with the change; it keeps its lines, so that no other line moves."""
        gone = source[self.start : self.end].count("\n")
        return source[: self.start] + self.text + "\n" * gone + source[self.end :]


class Reader:
    """Finds the places of one source file."""

    def __init__(self, file, source):
        self.file, self.source = file, source
        self.found = tokens(source)
        self.pair = partners(self.found)
        self.places = []

    def text(self, index):
        return self.found[index].text if 0 <= index < len(self.found) else ""

    def add(self, operator, first, last, text):
        begin, end = self.found[first], self.found[last]
        self.places.append(Place(self.file, begin.line, begin.start, end.end, text, operator))

    def read(self):
        for function in functions(self.found, self.pair):
            quiet, heads = self.quiet(function), self.heads(function)
            for index in range(function.begin + 1, function.end):
                if index not in quiet:
                    self.signs(index)
                    self.numbers(index)
                    self.conditions(index)
                    if index not in heads and self.starts_statement(index):
                        self.statements(index, function)
        return self.places

    def quiet(self, function):
        """Indexes of what nobody notices: inside of some calls, of static tables and of declared sizes."""
        result = set()
        for index in range(function.begin + 1, function.end):
            word = self.text(index)
            if QUIET.match(word) and self.text(index + 1) == "(":
                result.update(range(index, self.pair[index + 1] + 1))
            elif word == "static":
                result.update(range(index, self.statement_end(index) + 1))
            elif word == "[" and self.declares(index):
                result.update(range(index, self.pair[index] + 1))
        return result

    def heads(self, function):
        """Indexes between the brackets of loops: what stands after a semicolon there is no statement."""
        result = set()
        for index in range(function.begin + 1, function.end):
            if self.text(index) == "for":
                result.update(range(index + 1, self.pair[index + 1]))
        return result

    def declares(self, bracket):
        """Whether a bracket holds the size of an array that is declared there: char text[64]."""
        name, before = self.found[bracket - 1], self.found[bracket - 2]
        return name.kind == "name" and (before.kind == "name" and before.text not in KEYWORDS or before.text == "*")

    def statement_end(self, index):
        while index < len(self.found) and self.text(index) not in (";", "}"):
            index = self.pair[index] if self.text(index) in ("(", "[", "{") else index
            index += 1
        return index

    def is_binary(self, index):
        before = self.found[index - 1]
        return before.kind in ("number", "char") or before.text in (")", "]") or (before.kind == "name" and before.text not in KEYWORDS)

    def is_cast(self, index):
        """Whether a bracket that closes before a sign ends a cast: (int)-1."""
        if self.text(index) != ")":
            return False
        first = self.text(self.pair[index] + 1)
        return first in TYPES or first.endswith("_t")

    def signs(self, index):
        word = self.text(index)
        if self.found[index].kind == "name" and word in TRUTH:
            self.add("truth", index, index, TRUTH[word])
        if self.found[index].kind != "sign":
            return
        if word in COMPARISONS:
            self.add("comparison", index, index, COMPARISONS[word])
        elif word in LOGIC:
            self.add("logic", index, index, LOGIC[word])
        elif word in SUMS and (len(word) == 2 or (self.is_binary(index) and not self.is_cast(index - 1))):
            self.add("sum", index, index, SUMS[word])
        elif word == "|":
            self.flags(index)

    def flags(self, index):
        """A | B | C: each but the first goes with the sign before it, the first with the one after it."""
        before, after = self.found[index - 1], self.found[index + 1]
        if FLAG.match(after.text) and self.text(index + 2) != "(":
            self.add("flag", index, index + 1, "")
        if FLAG.match(before.text) and self.text(index - 2) in ("(", ",", "=", "return", "|="):
            self.add("flag", index - 1, index, "")

    def numbers(self, index):
        match = NUMBER.match(self.text(index)) if self.found[index].kind == "number" else None
        if not match:
            return
        if self.text(index - 1) == "{" and self.text(index + 1) == "}":
            return  # struct x = {0}
        value = int(match[1])
        # Both neighbours are wrong; which of them comes is told by the place, so that a seed finds it again.
        other = value - 1 if value and self.found[index].start % 2 else value + 1
        # "return 0" is the business of another operator, and so is -1 as the answer.
        if self.text(index - 1) != "return":
            self.add("constant", index, index, f"{other}{match[2]}")

    def conditions(self, index):
        if self.text(index) in ("if", "while") and self.text(index + 1) == "(" and self.found[index].kind == "name":
            begin, end = index + 1, self.pair[index + 1]
            inside = self.source[self.found[begin].end : self.found[end].start]
            if inside.strip() not in ("true", "1") and "\n" not in inside:
                self.add("negation", begin, end, f"(!({inside}))")

    def starts_statement(self, index):
        before = self.text(index - 1)
        if before == ")":
            head = self.pair[index - 1] - 1
            return self.text(head) in ("if", "while", "for", "switch") or FLAG.match(self.text(head) or "") is not None
        return before in (";", "{", "}", "else", "do", ":")

    def statements(self, index, function):
        word = self.text(index)
        end = self.statement_end(index)
        if self.text(end) != ";":
            return
        if word == "return":
            self.returns(index, end, function)
        elif word in ("continue", "break"):
            self.add("jump", index, end, NOTHING)
        elif self.is_call(index, end):
            self.add("call", index, end, NOTHING)
        elif self.is_assignment(index, end):
            self.add("assignment", index, end, NOTHING)

    def returns(self, index, end, function):
        words = [token.text for token in self.found[index + 1 : end]]
        conditional = self.text(index - 1) == ")"
        if not words or conditional:
            self.add("jump", index, end, NOTHING)
        if not words or not function.returns_number():
            return
        if words == ["0"]:
            self.add("return", index, end, "return -5;")
        elif words[0] == "-" and len(words) > 1 and re.match(r"^(E[A-Z0-9]+|errno)$", words[1]):
            self.add("return", index, end, "return 0;")
        elif words == ["-", "1"] or (len(words) == 1 and words[0] in RESULTS):
            self.add("return", index, end, "return 0;")
        elif FAILERS.match(words[0]) and words[1:2] == ["("] and self.pair[index + 2] == end - 1:
            call = self.source[self.found[index + 1].start : self.found[end].start]
            if "\n" not in call:
                self.add("return", index, end, f"return (void){call}, 0;")

    def is_call(self, index, end):
        """name(…); or (void)name(…);, or through a pointer, and nothing after it."""
        at = index + 3 if [self.text(index + step) for step in range(3)] == ["(", "void", ")"] else index
        name = at
        while self.found[at].kind == "name" and self.text(at + 1) in ("->", "."):
            at += 2
        calls = self.found[at].kind == "name" and self.text(at) not in KEYWORDS and self.text(at + 1) == "("
        return calls and self.pair[at + 1] == end - 1 and not QUIET.match(self.text(name))

    def is_assignment(self, index, end):
        """a->b = …; a[i] = …; *a = …; a = …; a++: something that was declared before gets a value."""
        at = index + 1 if self.text(index) == "*" else index
        if self.found[at].kind != "name" or self.text(at) in KEYWORDS:
            return False
        at += 1
        while at < end and self.text(at) in ("->", ".", "["):
            at = self.pair[at] + 1 if self.text(at) == "[" else at + 2
        return self.text(at) in ("=", "+=", "-=", "|=", "&=", "++", "--", "*=", "/=", "<<=", ">>=", "^=")


AREAS = {
    "keeper": "src/keeper",
    "sandbox": "src/sandbox",
    "policy": "src/policy",
    "records": "src/records",
    "http": "src/doors/http",
    "files": "src/doors/files",
    "tools": "src/doors/tools",
    "mcp": "src/doors/mcp",
    "cli": "src/doors/cli",
    "client": "src/client",
    "launcher": "src/launcher",
    "base": "src/base",
}
PROMISES = ("keeper", "sandbox", "policy", "records", "http", "files", "tools")


def area_of(file):
    return next(area for area, folder in AREAS.items() if file.startswith(folder + "/"))


def places(top, areas):
    """All places of some areas, in the order of files and lines."""
    result = []
    for area in areas:
        for path in sorted((Path(top) / AREAS[area]).rglob("*.c")):
            file = str(path.relative_to(top))
            result += Reader(file, path.read_text()).read()
    return result

"""A tokenizer for C as this project writes it, and what stands between the braces of functions."""

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<text>(?:u8|[LuU])?"(?:\\.|[^"\\\n])*")
  | (?P<char>[LuU]?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9a-zA-Z_.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%=<>!&|^~?:;,.(){}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.DOTALL)
PAIRS = {"(": ")", "[": "]", "{": "}"}


class Unreadable(Exception):
    """Text that is not C as it is written here."""


@dataclass
class Token:
    kind: str
    text: str
    start: int
    line: int

    @property
    def end(self):
        return self.start + len(self.text)


def tokens(source):
    """All tokens but white space, comments and preprocessor lines."""
    result, at, line, fresh = [], 0, 1, True
    while at < len(source):
        match = DIRECTIVE.match(source, at) if fresh else None
        kind = "directive" if match else ""
        if not match:
            match = TOKEN.match(source, at)
            if not match:
                raise Unreadable(f"line {line}: {source[at : at + 20]!r}")
            kind = match.lastgroup
        # Only white space and comments may stand before the # of a line.
        fresh = "\n" in match[0] or (fresh and kind in ("space", "comment"))
        if kind not in ("space", "comment", "directive"):
            result.append(Token(kind, match[0], at, line))
        line += match[0].count("\n")
        at = match.end()
    return result


def partners(found):
    """{index: index of the other} for all brackets."""
    result, stack = {}, []
    for index, token in enumerate(found):
        if token.kind != "sign":
            continue
        if token.text in PAIRS:
            stack.append(index)
        elif token.text in PAIRS.values():
            if not stack or PAIRS[found[stack[-1]].text] != token.text:
                raise Unreadable(f"line {token.line}: {token.text} closes nothing")
            begin = stack.pop()
            result[begin], result[index] = index, begin
    if stack:
        raise Unreadable(f"line {found[stack[-1]].line}: {found[stack[-1]].text} stays open")
    return result


@dataclass
class Function:
    """The body lies between the tokens begin and end, its braces; before come the words of its type."""

    name: str
    kind: list
    begin: int
    end: int

    def returns_number(self):
        """Whether a negative number can mean an error."""
        return "*" not in self.kind and any(word in ("int", "ssize_t", "int64_t", "long") for word in self.kind) and "unsigned" not in self.kind


def functions(found, pair):
    """The functions that are defined at the top level."""
    result, index, begin = [], 0, 0
    while index < len(found):
        token = found[index]
        if token.text == ";":
            begin = index + 1
        elif token.text == "{":
            close = pair[index]
            head = index - 1
            if head > 0 and found[head].text == ")":
                name = pair[head] - 1
                kind = [one.text for one in found[begin:name]]
                result.append(Function(found[name].text, kind, index, close))
                begin = close + 1
            index = close
        elif token.text in ("(", "["):
            index = pair[index]
        index += 1
    return result

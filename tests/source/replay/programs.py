"""Small random programs: statements, containers, classes and exceptions in every mixture, most of which run into errors."""

from __future__ import annotations

from random import Random

_TEXTS = ("''", "'a'", "'12.8'", "'9.0a'", "'x y z'", "'120f'", "'release 12.8, V'", "'é'")
_NUMBERS = ("0", "1", "2", "-3", "7", "12", "2.5", "True", "None")
_NAMES = ("a", "b", "c", "d")
_ERRORS = ("ValueError", "KeyError", "RuntimeError", "TypeError", "OSError", "Own", "IndexError", "Exception")
_METHODS = (
    ".split('.')", ".upper()", ".strip()", ".replace('1', 'x')", ".startswith('1')", ".isdigit()", ".append({e})",
    ".pop()", ".get({e})", ".keys()", ".items()", ".join(['p', 'q'])", ".add({e})", ".sort()", ".index({e})",
    ".rpartition('.')", ".extend({e})", ".count({e})", ".setdefault({e}, {e})", ".copy()", ".lower()", ".format({e})",
    ".zfill(4)", ".size", ".grow({e})", ".double", ".update({e})", ".isalpha()", ".encode()", ".real",
)  # fmt: skip
_CALLS = (
    "len({e})", "int({e})", "str({e})", "sorted({e})", "list({e})", "tuple({e})", "set({e})", "dict({e})", "sum({e})",
    "max({e}, {e})", "min({e})", "any({e})", "all({e})", "bool({e})", "repr({e})", "abs({e})", "isinstance({e}, (int, str))",
    "list(map(str, {e}))", "list(enumerate({e}))", "list(zip({e}, {e}))", "helper({e})", "Thing({e})", "Child({e})",
    "Point({e}, {e})", "recurse({e})", "hasattr({e}, 'size')", "getattr({e}, 'size', 5)", "sorted({e}, key=lambda v: str(v))",
    "next(iter({e}))", "list(filter(None, {e}))", "round({e})", "re.findall(r'\\d+', {e})", "float({e})", "list(reversed({e}))",
    "ord({e})", "chr({e})", "Kind({e})", "Kind.FIRST.value", "isinstance({e}, Thing)", "counted({e})", "type({e}).__name__",
    "os.path.join('x', {e})", "re.search(r'(\\d+)\\.(\\d+)', {e})", "json.dumps({e})", "Pair({e}, {e}).left", "bytes({e}, 'utf8')",
)  # fmt: skip
_OPERATORS = (
    "+",
    "-",
    "*",
    "//",
    "%",
    "/",
    "==",
    "!=",
    "<",
    ">=",
    "in",
    "not in",
    "and",
    "or",
    "is",
    "|",
    "&",
    "**",
    "<<",
)

PRELUDE = """
import contextlib
import dataclasses
import enum
import functools
import json
import logging
import os
import re
from typing import NamedTuple

logger = logging.getLogger("generated")
total = 0


class Own(RuntimeError):
    def __init__(self, message="own", code=3):
        super().__init__(message)
        self.code = code


class Thing:
    limit = 3

    def __init__(self, size):
        self.size = size

    @property
    def double(self):
        return self.size * 2

    def grow(self, by):
        self.size += by
        return self

    def __eq__(self, other):
        return isinstance(other, Thing) and self.size == other.size

    def __hash__(self):
        return hash(str(self.size))

    def __repr__(self):
        return f"{type(self).__name__}({self.size!r})"

    def __len__(self):
        return 2


class Child(Thing):
    def __init__(self, size):
        super().__init__(size)
        self.items = []

    def grow(self, by=1):
        if by == 2:
            raise Own(f"no {by}")
        self.items.append(by)
        return super().grow(by)

    def __lt__(self, other):
        return self.size < other.size


@dataclasses.dataclass
class Point:
    x: int
    y: int = 2
    tags: list = dataclasses.field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Kind(enum.Enum):
    FIRST = 1
    SECOND = "s"


def helper(value, *more, scale=2, **rest):
    global total
    total += 1
    if not value:
        raise ValueError(f"empty: {value!r}")
    return [value] * scale + list(more)


@functools.cache
def counted(value):
    return helper(value)


def recurse(value):
    if isinstance(value, int) and value > 0:
        return value + recurse(value - 1)
    return 0

"""


class Writer:
    """Writes one random function ``generated(a, b, c, d)``."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.loops = 0

    def program(self) -> str:
        body = "".join(self.survived(1) for _ in range(self.random.randint(3, 7)))
        return f"{PRELUDE}\n\ndef generated(a, b, c, d):\n{body}    return {self.expression(2)}\n"

    def call(self) -> str:
        return f"generated({', '.join(self.expression(1, names=False) for _ in range(4))})"

    def block(self, depth: int, most: int) -> str:
        return "".join(self.survived(depth) for _ in range(self.random.randint(1, most)))

    def survived(self, depth: int) -> str:
        """A statement whose exception is mostly caught and logged: otherwise few programs would come past their first."""
        if depth > 3 or self.random.random() < 0.1:
            return self.statement(depth)
        pad = "    " * depth
        noted = f'{pad}    logger.info("%s: %s", type(error).__name__, error)\n'
        return f"{pad}try:\n{self.statement(depth + 1)}{pad}except Exception as error:\n{noted}"

    def statement(self, depth: int) -> str:
        pad = "    " * depth
        kinds = ["assign"] * 5 + ["augment", "call", "unpack", "item", "log", "delete"]
        if depth < 4:
            kinds += ["if", "if", "for", "try", "try", "while", "with", "function", "raise", "return", "match-less"]
        kind = self.random.choice(kinds)
        name = self.random.choice(_NAMES)
        e = self.expression
        if kind == "augment":
            return f"{pad}{name} {self.random.choice(('+', '-', '*', '|'))}= {e(1)}\n"
        if kind == "call":
            return f"{pad}{self.called(2)}\n"
        if kind == "unpack":
            first, second = self.random.sample(_NAMES, 2)
            star = self.random.choice(("", "", "*"))
            return f"{pad}{first}, {star}{second} = {e(2)}\n"
        if kind == "item":
            return f"{pad}{name}[{e(1)}] = {e(1)}\n"
        if kind == "log":
            return f'{pad}logger.{self.random.choice(("warning", "info", "error"))}("%s of %r", {e(1)}, {e(1)})\n'
        if kind == "delete":
            return f"{pad}del {name}[{e(1)}]\n"
        if kind == "if":
            other = f"{pad}else:\n{self.block(depth + 1, 2)}" if self.random.random() < 0.5 else ""
            return f"{pad}if {e(2)}:\n{self.block(depth + 1, 2)}{other}"
        if kind == "for":
            jump = self.random.choice(("", "break", "continue"))
            tail = f"{pad}    if {e(1)}:\n{pad}        {jump}\n" if jump else ""
            other = f"{pad}else:\n{self.block(depth + 1, 1)}" if self.random.random() < 0.2 else ""
            return f"{pad}for {name} in {e(2)}:\n{tail}{self.block(depth + 1, 2)}{other}"
        if kind == "while":
            self.loops += 1
            count = f"n{self.loops}"
            return f"{pad}{count} = 0\n{pad}while {count} < 3 and {e(1)}:\n{pad}    {count} += 1\n{self.block(depth + 1, 2)}"
        if kind == "try":
            return self.try_statement(depth)
        if kind == "with":
            manager = f"contextlib.suppress({self.random.choice(_ERRORS)})"
            return f"{pad}with {manager}:\n{self.block(depth + 1, 2)}"
        if kind == "function":
            self.loops += 1
            inner = f"f{self.loops}"
            change = f"{pad}    nonlocal {name}\n{pad}    {name} = {e(1)}\n" if self.random.random() < 0.4 else ""
            return f"{pad}def {inner}(p, q={e(1)}):\n{change}{pad}    return [p, q, {name}]\n{pad}{name} = {inner}({e(1)})\n"
        if kind == "raise":
            error = self.random.choice(_ERRORS)
            return f"{pad}if {e(1)}:\n{pad}    raise {error}({e(1)})\n"
        if kind == "return":
            return f"{pad}if {e(1)}:\n{pad}    return {e(1)}\n"
        return f"{pad}{name} = {e(3)}\n"

    def try_statement(self, depth: int) -> str:
        pad = "    " * depth
        text = f"{pad}try:\n{self.block(depth + 1, 3)}"
        for _ in range(self.random.randint(1, 2)):
            error = self.random.choice((*_ERRORS, f"({self.random.choice(_ERRORS)}, {self.random.choice(_ERRORS)})"))
            name = self.random.choice(_NAMES)
            after = self.random.choice(
                (f"{name} = str(error)", "raise", f"raise {self.random.choice(_ERRORS)}(str(error)) from error", "pass")
            )
            text += f"{pad}except {error} as error:\n{pad}    {after}\n"
        if self.random.random() < 0.3:
            text += f"{pad}else:\n{self.block(depth + 1, 1)}"
        if self.random.random() < 0.3:
            text += f"{pad}finally:\n{self.block(depth + 1, 1)}"
        return text

    def called(self, depth: int) -> str:
        if self.random.random() < 0.5:
            template: str = self.random.choice(_CALLS)
        else:
            template = self.atom(True) + self.random.choice(_METHODS)
        while "{e}" in template:
            template = template.replace("{e}", self.expression(depth - 1), 1)
        return template

    def atom(self, names: bool) -> str:
        pool = _NAMES * 4 if names else ()
        return str(self.random.choice((*pool, *_TEXTS, *_NUMBERS)))

    def expression(self, depth: int, names: bool = True) -> str:

        def e() -> str:
            return self.expression(depth - 1, names)

        if depth <= 0:
            return self.atom(names)
        kind = self.random.randrange(14)
        if kind < 4:
            return self.atom(names)
        if kind == 4 and names:
            return f"({e()} {self.random.choice(_OPERATORS)} {e()})"
        if kind == 5:
            return f"[{e()}, {e()}]"
        if kind == 6:
            return f"{{{e()}: {e()}}}"
        if kind == 7:
            return f"({e()}, {e()})"
        if not names:
            return f"range({self.random.randrange(5)})"
        if kind == 8:
            return f"({e()} if {e()} else {e()})"
        if kind == 9:
            return f"{self.atom(True)}[{self.random.choice((e(), '1:', ':-1', '0', '::2'))}]"
        if kind == 10:
            bracket = self.random.choice(("[]", "{}", "()"))
            inner = f"(v, {e()}) for v in {e()} if {e()}"
            return f"{bracket[0]}{inner}{bracket[1]}" if bracket != "()" else f"list({inner})"
        if kind == 11:
            spec = self.random.choice(("", "!r", ":>4", "=", ":.2f", "!s:<3"))
            return f"f'v {{{self.random.choice(_NAMES)}{spec}}}'"
        if kind == 12:
            return f"'%s and %d' % {e()}"
        return self.called(depth)

"""The texts that a file writes, found without parsing the file: only the calls that write something are parsed.

A whole release is read in a second or two this way. What is found may include a call in a docstring; whoever needs to
be sure asks the facts of that one file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from gpuwhy.source.messages import LOG_LEVELS, Template, template

_LEVELS = tuple(level for level in LOG_LEVELS if level != "print")
_ENDINGS = ("", "_once", "_rank0", "_on_rank0")
_NEEDLES = (
    b"raise ", b"assert ", b"print(", b"warnings.warn(", b"__init__(", b"sys.exit(", b"_once(", b"rank0(", b"rank0_log(",
    b' = (\n    "', b" = (\n    '", b' = (\n    f"', b'MSG = "', b'MESSAGE = "', b'HINT = "', b'MSG = f"', b'MESSAGE = f"', b'HINT = f"',
    *(f".{level}{ending}(".encode() for level in _LEVELS for ending in _ENDINGS),
)  # fmt: skip
_CONSTANT = re.compile(rb"([A-Za-z_]\w{0,80}) = ")
_MODULE_NAME = re.compile(rb"^([A-Za-z_]\w{0,80})[ \t]{0,4}(?::[^=\n]{1,40})?=[ \t]{0,4}(?=[\"'(fr])", re.MULTILINE)
_RAISE = re.compile(rb"raise[ \t]{1,8}([A-Za-z_][\w.]{0,120})[ \t]{0,4}(\()?")
_CALLED = re.compile(rb"[A-Za-z_][\w.]{0,120}(?:\([^()\n]{0,80}\))?(?:\.[A-Za-z_]\w{0,40})?$")
_CALLED_SPAN = 240
_STRING = re.compile(rb"[\s(]{0,40}[rbfRBF]{0,2}[\"']")
_HELPER = re.compile(r"(?:print|log|warn|rank0|info|error|debug)\w{0,40}")
"""Functions of engines that log in their callers' place: ``log_info_on_rank0(logger, text)``."""
_LOGGER = re.compile(r"log|lgr")
_LEVEL_IN = re.compile(r"warn|error|debug|info")
_TOKEN = re.compile(rb"[()\[\]{}]|\"\"\"|'''|\"|'|#|\n")
_ENDS = {
    b'"': re.compile(rb'[^"\\\n]*(?:\\.[^"\\\n]*)*"', re.DOTALL),
    b"'": re.compile(rb"[^'\\\n]*(?:\\.[^'\\\n]*)*'", re.DOTALL),
    b'"""': re.compile(rb'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL),
    b"'''": re.compile(rb"(?:[^'\\]|\\.|'(?!''))*'''", re.DOTALL),
}
_OPENING, _CLOSING = (b"(", b"[", b"{"), (b")", b"]", b"}")
_MAX_CALL = 6000
"""Bytes of one call; a longer one is generated."""
_LOOKED_BACK = 8000
_MAX_CHOICES = 8
_MAX_UNCLOSED = 200
_MAX_LOOKED_UP = 3000
"""Of one file; a file that needs more is generated, or made to take long."""


class Text(msgspec.Struct, frozen=True, array_like=True):
    """A text that is written between the lines ``line`` and ``last`` of a file.

    ``kind`` is ``raise`` (with the exception's type as ``name``) or ``log`` (with the level: ``warning``, ``print``,
    ``warnings.warn``) or ``text`` (with its own name): a constant of the module, that others write. ``choices`` are the patterns it may have, one line of a text each: several where a text has
    several lines, or where it is chosen before. A text that is only a value has none.
    """

    kind: str
    name: str
    line: int
    last: int
    choices: tuple[Template, ...] = ()


class Scanner:
    """Finds the texts of files; one search automaton for all of them."""

    def __init__(self) -> None:
        import ahocorasick_rs

        self._search = ahocorasick_rs.BytesAhoCorasick(
            _NEEDLES,
            matchkind=ahocorasick_rs.MatchKind.LeftmostLongest,
            implementation=ahocorasick_rs.Implementation.DFA,
        )

    def texts_of(self, source: bytes) -> tuple[Text, ...]:
        """The texts of a file, in the order of their lines."""
        found: list[Text] = []
        names = _Names(source)
        line, counted, after, unclosed = 1, 0, 0, 0
        for _, start, end in self._search.find_matches_as_indexes(source):
            if start < after:
                continue
            site = _site(source, start, end)
            if site is None:
                continue
            line += source.count(b"\n", counted, start)
            counted = start
            closed = _closing(source, site.opened, site.is_statement) if site.opened >= 0 else end
            if closed < 0:
                unclosed += 1
                if unclosed > _MAX_UNCLOSED:
                    break
                continue
            after = closed
            last = line + source.count(b"\n", start, closed)
            found.append(Text(site.kind, site.name, line, last, tuple(_choices(names, start, closed, site))))
        return tuple(found)


class _Site(NamedTuple):
    """``opened`` is where the arguments begin, or what follows in a statement; -1 when there is nothing."""

    kind: str
    name: str
    opened: int
    is_statement: bool = False


def _site(source: bytes, start: int, end: int) -> _Site | None:
    """None for what only looks like a text being written."""
    needle = source[start:end]
    begin = source.rfind(b"\n", 0, start) + 1
    before = source[begin:start].lstrip()
    if before.startswith(b"#"):
        return None
    if needle in (b"raise ", b"assert "):
        if before and not before.rstrip().endswith((b":", b";", b"else")):
            return None
        if needle == b"assert ":
            return _Site("raise", "AssertionError", end, is_statement=True)
        raised = _RAISE.match(source, start)
        if raised is None:
            return None
        name = raised[1].decode("ascii", "replace").rpartition(".")[2]
        return _Site("raise", name, raised.end() - 1 if raised[2] else -1)
    if b" = " in needle:
        constant = _CONSTANT.match(source, begin)
        return _Site("text", constant[1].decode(), constant.end(), is_statement=True) if constant else None
    if needle == b"__init__(":
        is_message = before.endswith(b"super().") and _STRING.match(source, end) is not None
        return _Site("raise", "", end - 1) if is_message else None
    if needle == b"sys.exit(":
        return _Site("raise", "SystemExit", end - 1)
    level = _level(source[max(begin, end - 1 - _CALLED_SPAN) : end - 1])
    return None if level is None else _Site("log", level, end - 1)


def _level(before: bytes) -> str | None:
    """The level of the call whose name ends here; None when that logs nothing."""
    found = _CALLED.search(before)
    if found is None:
        return None
    receiver, _, name = found.group().decode("ascii", "replace").rpartition(".")
    if name == "print" or (receiver == "warnings" and name == "warn"):
        return "print" if name == "print" and not receiver else "warnings.warn" if receiver else None
    bare = name
    for ending in _ENDINGS[1:]:
        bare = bare[: -len(ending)] if bare.endswith(ending) else bare
    if not receiver:
        helper = _HELPER.fullmatch(name)
        level = _LEVEL_IN.search(name)
        return None if helper is None else "print" if level is None else LOG_LEVELS[level.group()]
    if bare not in _LEVELS:
        return None
    is_logger = _LOGGER.search(receiver.partition("(")[0].rpartition(".")[2].lower()) is not None
    return LOG_LEVELS[bare] if is_logger or bare in ("warning", "exception", "critical") else None


def _closing(source: bytes, opened: int, is_statement: bool = False) -> int:
    """Behind the bracket that closes the one at ``opened``; of a statement, its end. -1 when that is too far away."""
    depth = 0
    at = opened
    limit = opened + _MAX_CALL
    while True:
        token = _TOKEN.search(source, at, limit)
        if token is None:
            return len(source) if is_statement and depth <= 0 and limit >= len(source) else -1
        kind = token.group()
        at = token.end()
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
            if depth == 0 and not is_statement:
                return at
            if depth < 0:
                return token.start()
        elif kind == b"#":
            end = source.find(b"\n", at, limit)
            at = end if end >= 0 else limit
        elif kind == b"\n":
            if depth <= 0 and source[at - 2 : at - 1] != b"\\":
                return token.start()
        else:
            string = _ENDS[kind].match(source, at, limit)
            if string is None:
                return -1
            at = string.end()


class _Names:
    """What was assigned to names of a file, looked up when a message is one."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._looked_up = 0
        self._constants: dict[bytes, int] | None = None

    def assigned(self, name: str, start: int) -> Iterator[ast.expr]:
        """What the function assigned to the name before ``start``, or else what the module does."""
        self._looked_up += 1
        if self._looked_up > _MAX_LOOKED_UP:
            return
        region = max(0, start - _LOOKED_BACK)
        function = max(region, self.source.rfind(b"def ", region, start))
        assignment = re.compile(rb"^[ \t]+" + re.escape(name.encode()) + rb"[ \t]*(\+)?=[ \t]*(?==?[^=])", re.MULTILINE)
        found = [(each.end(), each[1] is not None) for each in assignment.finditer(self.source, function, start)]
        constant = self._constant(name.encode())
        if not found and constant is not None:
            found = [(constant, False)]
        is_added_to = any(is_added for _, is_added in found)
        for at, is_added in found[-_MAX_CHOICES:]:
            end = _closing(self.source, at, is_statement=True)
            value = _parsed(self.source[at:end].decode("utf-8", "replace").strip(), "eval") if end > 0 else None
            if isinstance(value, ast.Expression):
                begun = ast.BinOp(ast.Name("_"), ast.Add(), value.body) if is_added else value.body
                yield ast.BinOp(begun, ast.Add(), ast.Name("_")) if is_added_to else begun

    def _constant(self, name: bytes) -> int | None:
        if self._constants is None:
            self._constants = {each[1]: each.end() for each in _MODULE_NAME.finditer(self.source)}
        return self._constants.get(name)


def _choices(names: _Names, start: int, closed: int, site: _Site) -> Iterator[Template]:
    if site.opened < 0:
        return
    expression, fills = _text_argument(names.source[site.opened : closed].decode("utf-8", "replace"), site)
    if expression is None:
        return
    seen: dict[Template, None] = {}
    for each in _alternatives(expression, names, start):
        for pattern in by_line(template(each, None, is_log=fills)):
            if pattern.literal_size:
                seen.setdefault(pattern)
    yield from list(seen)[:_MAX_CHOICES]


def _text_argument(text: str, site: _Site) -> tuple[ast.expr | None, bool]:
    """The expression of the message, and whether ``%s`` in it is filled."""
    if site.kind == "text":
        value = _parsed(text.strip(), "eval")
        return (value.body if isinstance(value, ast.Expression) else None), False
    if site.is_statement:
        has_message = "," in text and ('"' in text or "'" in text)
        asserted = _parsed(f"assert {text}", "exec") if has_message else None
        statement = asserted.body[0] if isinstance(asserted, ast.Module) and asserted.body else None
        return (statement.msg if isinstance(statement, ast.Assert) else None), False
    call = _parsed(f"_{text}", "eval")
    if not isinstance(call, ast.Expression) or not isinstance(call.body, ast.Call):
        return None, False
    given = call.body.args
    # ``logger.log(level, message)`` and ``log_info_on_rank0(logger, message)``
    is_second = len(given) > 1 and site.kind == "log" and _is_no_message(given[0])
    chosen = given[1:] if is_second else given
    if not chosen:
        return None, False
    return chosen[0], _fills(site) and len(chosen) > 1


def _fills(site: _Site) -> bool:
    return site.kind == "log" and site.name not in ("print", "warnings.warn")


def _is_no_message(argument: ast.expr) -> bool:
    if isinstance(argument, ast.Name):
        return "log" in argument.id.lower() or "level" in argument.id.lower()
    return isinstance(argument, ast.Attribute) and (argument.attr.isupper() or "log" in argument.attr.lower())


def _parsed(text: str, mode: str) -> ast.AST | None:
    try:
        return ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _alternatives(expression: ast.expr, names: _Names, start: int) -> Iterator[ast.expr]:
    """The texts that the expression may be: both of a choice, all that were assigned to the name before."""
    if isinstance(expression, ast.IfExp):
        yield from (expression.body, expression.orelse)
    elif isinstance(expression, ast.BoolOp):
        yield from expression.values
    elif isinstance(expression, ast.Name):
        yield from names.assigned(expression.id, start)
    elif isinstance(expression, ast.BinOp) and isinstance(expression.left, ast.Name):
        lefts = list(names.assigned(expression.left.id, start)) or [expression.left]
        for left in lefts:
            yield ast.BinOp(left, expression.op, expression.right)
    else:
        yield expression


def by_line(pattern: Template) -> Iterator[Template]:
    """The lines of a text: a log shows them one by one."""
    lines: list[list[str]] = [[]]
    for piece in pattern.pieces:
        first, *rest = piece.split("\n")
        lines[-1].append(first)
        lines += [[each] for each in rest]
    for line in lines:
        yield Template(tuple(line) if len(line) > 1 else (line[0],))

"""Source text to a syntax tree, within bounds: newer syntax, broken, huge and hostile files end in a named gap.

CPython's parser guards its own stack; what it refuses is cut out block by block, so that the rest can still be traced.
"""

from __future__ import annotations

import ast
import re
import warnings
from itertools import pairwise

import msgspec

MAX_PARSED = 3 << 20
"""Bytes. A tree takes about 30 times its text, and this much 2 s."""
_MAX_CUTS = 25
_INDENT = re.compile(r"[ \t]*")
_KEPT_OF_LARGE = re.compile(
    r"(?:def|class|async def|import|from|if|try|except|else|finally|elif|@|with|[\])}])\b|[\])}@]"
)
_STARTS_BLOCK = re.compile(r"(?!(?:else|elif|except|finally)\b)[^\s#)\]}]")
_LONG_BLOCK = 200_000


class Parsed(msgspec.Struct, frozen=True):
    """``tree`` is None when nothing could be parsed. ``gaps`` are the lines that were left out, ``reason`` says why."""

    tree: ast.Module | None
    gaps: tuple[tuple[int, int], ...] = ()
    reason: str = ""


def decoded(source: bytes) -> str:
    """The text as Python reads it, near enough: a byte order mark and line ends of other systems are removed."""
    text = source.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "")


def parse(text: str) -> Parsed:
    """The tree of a text, of its readable part when the whole is refused."""
    if len(text) > MAX_PARSED:
        return _of_large(text)
    tree, error = _tried(text)
    return Parsed(tree) if tree is not None else _healed(text, error)


def _tried(text: str) -> tuple[ast.Module | None, SyntaxError | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text), None
    except SyntaxError as error:
        return None, error
    except (ValueError, RecursionError, MemoryError, OverflowError, SystemError) as error:
        return None, SyntaxError(f"{type(error).__name__}: {error}")


def _healed(text: str, error: SyntaxError | None) -> Parsed:
    """Without the blocks that the parser stumbles over, each replaced by ``pass``."""
    lines = text.split("\n")
    gaps: list[tuple[int, int]] = []
    reason = (error.msg if error else "") or "not understood"
    for _ in range(_MAX_CUTS):
        if error is None or not error.lineno:
            # too deep for the parser somewhere: it does not say where
            return _by_block(lines, gaps, reason)
        first, last = _block(lines, min(error.lineno, len(lines)) - 1, gaps)
        gaps.append((first + 1, last + 1))
        indent = _INDENT.match(lines[first])
        lines[first : last + 1] = [(indent.group() if indent else "") + "pass"] + [""] * (last - first)
        tree, error = _tried("\n".join(lines))
        if tree is not None:
            return Parsed(tree, _joined(gaps), reason)
    return Parsed(None, ((1, text.count("\n") + 1),), reason)


def _by_block(lines: list[str], gaps: list[tuple[int, int]], reason: str) -> Parsed:
    """Each block of the module is tried alone, and left out when it is refused."""
    starts = [number for number, line in enumerate(lines) if _STARTS_BLOCK.match(line)] + [len(lines)]
    starts = [each for at, each in enumerate(starts) if at == 0 or not lines[starts[at - 1]].startswith("@")]
    gaps = list(gaps)
    for first, end in pairwise(starts):
        if _tried("\n".join(lines[first:end]))[0] is None:
            gaps.append((first + 1, end))
            lines[first:end] = ["pass"] + [""] * (end - first - 1)
    tree = _tried("\n".join(lines))[0]
    return Parsed(tree, _joined(gaps) if tree is not None else ((1, len(lines)),), reason)


def _block(lines: list[str], at: int, gaps: list[tuple[int, int]]) -> tuple[int, int]:
    """The lines to leave out: the one that is refused with the block below it; where that was cut already, the block
    around."""
    while at > 0 and not lines[at].strip():
        at -= 1
    indent = _width(lines[at])
    if any(first - 1 <= at < last for first, last in gaps):
        while at > 0 and (not lines[at].strip() or _width(lines[at]) >= indent):
            at -= 1
        indent = _width(lines[at])
    last = at
    for number in range(at + 1, len(lines)):
        stripped = lines[number].strip()
        if stripped and _width(lines[number]) <= indent and stripped[0] not in ")]}":
            break
        if stripped:
            last = number
    return at, last


def _width(line: str) -> int:
    return len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())


def _joined(gaps: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(gaps):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def _of_large(text: str) -> Parsed:
    """Of a generated module only definitions, imports and what is short: its tables are data."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line and line[0] not in " \t#)]}"] + [len(lines)]
    gaps: list[tuple[int, int]] = []
    for first, end in pairwise(starts):
        size = sum(len(line) + 1 for line in lines[first:end])
        if size > _LONG_BLOCK or (size > 2000 and not _KEPT_OF_LARGE.match(lines[first])):
            lines[first:end] = ["pass"] + [""] * (end - first - 1)
            gaps.append((first + 1, end))
    rest = "\n".join(lines)
    reason = f"{len(text) >> 20} MB: its long tables were left out"
    if sum(len(line) for line in lines) > MAX_PARSED:
        return Parsed(None, ((1, len(lines)),), f"{len(text) >> 20} MB")
    tree, error = _tried(rest)
    if tree is not None:
        return Parsed(tree, _joined(gaps), reason)
    healed = _healed(rest, error)
    return Parsed(healed.tree, _joined([*gaps, *healed.gaps]), reason)

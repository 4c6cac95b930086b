"""How a name must be spelled in a file for the file to define, own, write or call it: looked for in the bytes, before any
parsing.

A word such as ``shape`` stands in half of the files of a package; ``def shape`` or ``.shape =`` in few. The patterns find
too many files rather than too few: what a file really has is then read from its facts.
"""

from __future__ import annotations

import re
from functools import cache

_MUTATORS = "add|append|extend|update|insert|discard|remove|clear|pop|setdefault|appendleft"
_END = "(?![A-Za-z0-9_])"
_LATER = r"[^\n]{0,400}[^=!<>\n]=(?!=)"
"""An assignment later on the line: what stands before it is a target."""


@cache
def owning(name: str) -> re.Pattern[bytes]:
    """A class may have a member ``name``, or a function write an attribute of that name."""
    n = re.escape(name)
    member = rf"(?<=[ \t]{n})[ \t]{{0,40}}(?::|=(?!=)|,{_LATER}|\n)|(?<=def {n})|(?<=class {n})"
    return _compiled(rf"{n}{_END}(?:{member}|{_written(n)})")


@cache
def writing(name: str) -> re.Pattern[bytes]:
    """An attribute of that name may be assigned, added to, or set with ``setattr``."""
    n = re.escape(name)
    return _compiled(rf"{n}{_END}(?:{_written(n)})")


@cache
def defining(name: str) -> re.Pattern[bytes]:
    """A function or method of that name may be defined."""
    n = re.escape(name)
    return _compiled(rf"{n}{_END}(?<=[ \t\\\n]{n})[\s\\]{{0,200}}[(\[]")


@cache
def calling(name: str) -> re.Pattern[bytes]:
    """A call of something of that name may stand there."""
    n = re.escape(name)
    return _compiled(rf"{n}{_END}(?<!def {n})[\s\\)]{{0,200}}[(\[]")


def _written(n: str) -> str:
    target = rf"=(?!=)|:(?!\n)|in\b|\\|[-+*/%@&|^<>]{{1,3}}=|[,)\]](?:[ \t]{{0,40}}(?:#[^\n]{{0,200}})?\n|{_LATER})|\[(?:{_LATER}|[^\]\n]{{0,400}}\n)"
    return rf"(?<=\.{n})[ \t]{{0,40}}(?:{target}|\.[ \t]{{0,40}}(?:{_MUTATORS}){_END})|(?<=[\"']{n})[\"']|(?<= as self\.{n})"


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("utf-8", "replace"))

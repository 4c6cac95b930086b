"""The lines of a Python file that a traceback can show."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from types import CodeType

from msgspec import Struct

from gpuwhy.knowledge.fingerprints import is_recorded


class Site(Struct, frozen=True):
    """A line (from 1), the name of the code that it stands in as tracebacks give it, and its text."""

    line: int
    scope: str
    text: str


def sites(source: bytes) -> list[Site] | None:
    """The lines that call, raise or import, in order; None when this Python cannot compile the file.

    The compiler says which lines have instructions, so text within strings is no site. It runs nothing. The second and
    further lines of a chain of method calls are added: from Python 3.12 on a call is reported on the line of its name.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = compile(source, "source", "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, RecursionError):
        return None
    lines = source.decode("utf-8", "replace").splitlines()
    scopes: dict[int, str] = {}
    for code in _codes(module):
        for _, _, line in code.co_lines():
            if line is not None:
                scopes[line] = code.co_name
    scope = "<module>"
    found = []
    for number, text in enumerate(lines, 1):
        if number in scopes:
            scope = scopes[number]
        elif not text.lstrip().startswith("."):
            continue
        if is_recorded(text):
            found.append(Site(number, scope, text))
    return found


def _codes(code: CodeType, around: str = "") -> Iterator[CodeType]:
    """A code object and all in it, outer ones first; comprehensions and lambdas carry the name of what is around them."""
    if code.co_name.startswith("<") and around:
        code = code.replace(co_name=around)
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant, code.co_name)

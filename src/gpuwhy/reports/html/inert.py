"""Makes text from logs and hosts harmless in a page: nothing in it reorders, hides, or takes the page's room.

Markup is escaped by the templates (autoescape); here it is about what escaping leaves: control characters, characters
that turn the direction of a line or cannot be seen, and sheer length.
"""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

from gpuwhy.reports.neutral import plain

LONGEST = 2_000
"""Characters of one printed string. A line of a log may have a million."""
LONGEST_COMMAND = 20_000
"""A command is shown whole or not at all: half of one is dangerous."""

_STACKED = re.compile("([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")  # fmt: skip
"""Marks that stand over and under a letter: a heap of them is drawn across the lines above and below."""


class Whole(str):
    """A string that is not shortened when it is printed."""

    __slots__ = ()


def inert(value: Any) -> Any:
    """What a template prints in place of ``value``: control characters written out, lines kept, bounded."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    kept = value if isinstance(value, Whole) else shortened(value, LONGEST)
    if kept.isascii() and kept.isprintable():
        return kept
    neutral = "\n".join(map(plain, kept.split("\n")))
    return neutral if isinstance(value, Whole) else _STACKED.sub(r"\1…", neutral)


def shortened(text: str, most: int) -> str:
    """``text``, or its first ``most`` characters and how many there are."""
    return text if len(text) <= most else f"{text[:most]} … (cut, {len(text):,} characters)"


def whole_command(text: str) -> Whole:
    """A command in full; of one that no page should hold, a comment that says so."""
    if len(text) > LONGEST_COMMAND:
        return Whole(f"# this command has {len(text):,} characters; --format text shows it")
    return Whole(text)

"""Bounds on what replayed code may cost: hostile source must not exhaust time or memory through one operation of Python."""

from __future__ import annotations

import re
from string import Formatter
from typing import Any

from gpuwhy.source.replay.stops import NotModelledError

MAX_TEXT = 200_000
"""Characters of a string."""
MAX_ITEMS = 100_000
"""Items of a container."""
MAX_WEIGHT = 400_000
"""Items and characters reachable from a value that is compared, hashed, sorted or printed, counted as a tree."""
MAX_WORK = 4_000_000
"""Characters and items that operations of Python go through, all together: a few seconds."""
MAX_BITS = 20_000
_MAX_WIDTH = 1000
_MAX_DEPTH = 100
_DIGITS = re.compile(r"\d{4,}")


def checked(value: Any) -> Any:
    """The value, if it is not too large to go on with."""
    if isinstance(value, (str, bytes)):
        if len(value) > MAX_TEXT:
            raise NotModelledError(f"a text of more than {MAX_TEXT} characters")
    elif isinstance(value, (list, tuple, dict, set, frozenset)):
        if len(value) > MAX_ITEMS:
            raise NotModelledError(f"a container of more than {MAX_ITEMS} items")
    elif isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise NotModelledError(f"a number of more than {MAX_BITS} bits")
    return value


def weighed(*values: Any) -> int:
    """The size of values as trees. Shared parts count each time, as comparing or printing them would visit them.

    Very deep values are refused too: Python hashes a nested tuple by recursion that nothing guards.
    """
    total = 0
    pending = [(value, 0) for value in values]
    while pending:
        value, depth = pending.pop()
        total += 1
        if isinstance(value, (str, bytes)):
            total += len(value)
        elif isinstance(value, (list, tuple, dict, set, frozenset)):
            total += len(value)
            if depth > _MAX_DEPTH:
                raise NotModelledError("a very deep value")
            if total <= MAX_WEIGHT:
                inside = (*value.keys(), *value.values()) if isinstance(value, dict) else value
                pending += [(each, depth + 1) for each in inside]
        if total > MAX_WEIGHT:
            raise NotModelledError("a value of more than a few hundred thousand parts")
    return total


def repeatable(left: Any, right: Any) -> None:
    """Whether ``left * right`` stays within the bounds."""
    for value, times in ((left, right), (right, left)):
        if isinstance(value, (str, bytes)) and isinstance(times, int) and len(value) * times > MAX_TEXT:
            raise NotModelledError(f"a text of more than {MAX_TEXT} characters")
        if isinstance(value, (list, tuple)) and isinstance(times, int) and len(value) * times > MAX_ITEMS:
            raise NotModelledError(f"a container of more than {MAX_ITEMS} items")
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > MAX_BITS:
        raise NotModelledError(f"a number of more than {MAX_BITS} bits")


def raisable(base: Any, exponent: Any) -> None:
    """Whether ``base ** exponent`` stays within the bounds."""
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * max(exponent, 1) > MAX_BITS:
        raise NotModelledError(f"a number of more than {MAX_BITS} bits")


def shiftable(value: Any, places: Any) -> None:
    """Whether ``value << places`` stays within the bounds."""
    if isinstance(value, int) and isinstance(places, int) and value.bit_length() + places > MAX_BITS:
        raise NotModelledError(f"a number of more than {MAX_BITS} bits")


def fillable(template: str, values: tuple[Any, ...], marks: int) -> None:
    """Whether a format with ``marks`` places stays within the bounds; widths of four digits and more do not."""
    if _DIGITS.search(template):
        raise NotModelledError("a format with a width of thousands")
    if "*" in template and any(isinstance(value, int) and abs(value) > _MAX_WIDTH for value in values):
        raise NotModelledError("a format with a width of thousands")
    largest = max((weighed(value) for value in values), default=0)
    if len(template) + marks * largest > MAX_WEIGHT * 4:
        raise NotModelledError("a very long formatted text")


def plain_format(template: str) -> None:
    """Whether ``str.format`` with this text only inserts values: what reads their attributes is not followed."""
    for _, name, spec, _ in Formatter().parse(template):
        if name and ("." in name or "[" in name):
            raise NotModelledError("str.format that reads attributes")
        if spec and "{" in spec:
            raise NotModelledError("str.format with a computed width")


def spec_within(spec: str) -> None:
    """Whether a format specification asks for a width below a thousand."""
    if _DIGITS.search(spec):
        raise NotModelledError("a format with a width of thousands")

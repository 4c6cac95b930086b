"""One statement read from a line, and dumps whose lines only mean something together."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec


class Strength(enum.IntEnum):
    """How far a statement can be trusted against another about the same thing."""

    TOLD = 0
    """Mentioned in a person's running text."""
    PROSE = 1
    """A person's words (an issue template), or what a path in a traceback gives away."""
    PRINTED = 2
    """A banner or an error message of the program itself."""
    REPORTED = 3
    """The output of a tool that was asked: collect_env, nvidia-smi, pip list."""


class Statement(msgspec.Struct, frozen=True):
    """``key`` is ``value``, in the vocabulary of ``--facts`` (docs/facts.md).

    A key that ends in ``[]`` is one item of a list; ``gpu@INDEX`` and ``cc@INDEX`` are one GPU of several.
    """

    key: str
    value: Any
    strength: Strength
    back: int = 0
    """In a dump of several lines: how many lines before the last one read it stands."""


class Block(Protocol):
    """A dump of several lines, opened by its first."""

    shares: bool
    """Whether lines from which the block reads nothing may be read by others as well."""

    def read(self, text: str) -> Iterable[Statement] | None:
        """The statements of the next line; None when the line is no part of the dump, which is then over."""
        ...


def size_of(text: str) -> int | None:
    """``64M``, ``8GB``, ``23Gi``, ``898Mi``, ``2gb``, ``512`` (bytes) in bytes; binary multiples throughout."""
    number = text.strip().rstrip("bB").rstrip("iI")
    factor = _FACTORS.get(number[-1:].upper())
    digits = number[:-1] if factor else number
    try:
        value = float(digits.replace(",", ""))
    except ValueError:
        return None
    return int(value * (factor or 1)) if 0 <= value < 1e18 else None


_FACTORS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}

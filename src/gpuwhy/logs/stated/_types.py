"""One statement read from a line."""

from __future__ import annotations

import enum
from typing import Any

import msgspec


class Strength(enum.IntEnum):
    """How far a statement can be trusted against another about the same thing."""

    PROSE = 1
    """A person's words (an issue template), or what a path in a traceback gives away."""
    PRINTED = 2
    """A banner or an error message of the program itself."""
    REPORTED = 3
    """The output of a tool that was asked: collect_env, nvidia-smi, pip list."""


class Statement(msgspec.Struct, frozen=True):
    """``key`` is ``value``, in the vocabulary of ``--facts`` (docs/facts.md)."""

    key: str
    value: Any
    strength: Strength

"""A remedy as steps of a page: what changes, what to type, how to see that it helped, and the way back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpuwhy.model.remedy import Remedy
from gpuwhy.reports.remedy_words import change_of, survival_of

_TYPED = frozenset({"env", "flag"})
"""Kinds whose change is itself something to type."""


class Block(msgspec.Struct, frozen=True):
    """Lines to type, in one piece. ``can_copy`` False: they are all remarks for a person."""

    title: str
    lines: tuple[str, ...]
    can_copy: bool


class Step(msgspec.Struct, frozen=True):
    """One remedy. ``is_typed``: ``change`` can be pasted as it is."""

    change: str
    is_typed: bool
    summary: str
    is_sure: bool
    cost: str
    risk: str
    survival: str
    limits: tuple[str, ...]
    blocks: tuple[Block, ...]


def step_of(remedy: Remedy) -> Step:
    """The remedy, ready to be shown."""
    change = change_of(remedy)
    blocks = (
        _block("Do", remedy.commands),
        _block("Check that it helped", remedy.check),
        _block("Undo", remedy.undo),
    )
    return Step(
        change=change,
        is_typed=remedy.kind in _TYPED and change != remedy.summary and " " not in remedy.value,
        summary=remedy.summary if remedy.summary != change else "",
        is_sure=remedy.is_sure,
        cost=remedy.cost,
        risk=remedy.risk,
        survival=survival_of(remedy.survives),
        limits=remedy.limits,
        blocks=tuple(block for block in blocks if block.lines),
    )


def _block(title: str, commands: Sequence[str]) -> Block:
    lines = tuple(commands)
    return Block(title, lines, any(not line.lstrip().startswith("#") for line in lines))

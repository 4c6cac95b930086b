"""The order of remedies."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.model.remedy import KINDS, Remedy


def order(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Smallest intervention first: by kind as in :data:`KINDS`; within a kind, what cures more (a smaller rank) first.

    A kind that is not known comes last. Remedies that are equal in both keep the order their cause gave them.
    """
    return tuple(sorted(remedies, key=lambda remedy: (_size(remedy.kind), remedy.rank)))


def _size(kind: str) -> int:
    return KINDS.index(kind) if kind in KINDS else len(KINDS)

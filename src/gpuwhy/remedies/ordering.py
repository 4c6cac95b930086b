"""The order of remedies."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.model.remedy import KINDS, Remedy

STEPS = (
    ("env", "flag", "config", "cache", "service", "container", "selection"),
    ("package", "files", "system-package", "toolkit"),
    ("driver", "kernel", "patch", "hardware"),
)
"""How far an intervention reaches: how the service is started; what is installed for it; the machine, or the code."""


def order(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Smallest intervention first: by kind as in :data:`KINDS`; within a kind, what cures more (a smaller rank) first.

    What helps in some such cases only (``is_sure`` false) may cost a try for nothing: it comes after the sure ones of
    its step in :data:`STEPS`, and before all of the next step. So a variable that may help is tried after a cache that
    does, and before anything is installed. A kind that is not known comes last. Remedies that are equal in all this
    keep the order their cause gave them.
    """
    return tuple(sorted(remedies, key=_place))


def _place(remedy: Remedy) -> tuple[int, bool, int, int]:
    return _step(remedy.kind), not remedy.is_sure, _size(remedy.kind), remedy.rank


def _step(kind: str) -> int:
    return next((number for number, kinds in enumerate(STEPS) if kind in kinds), len(STEPS))


def _size(kind: str) -> int:
    return KINDS.index(kind) if kind in KINDS else len(KINDS)

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
_HOW_IT_RUNS = 0
_INSTALLED = 1
"""The step of what is installed."""


def order(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Smallest intervention first: by kind as in :data:`KINDS`; within a kind, what cures more (a smaller rank) first.

    What helps in some such cases only (``is_sure`` false) may cost a try for nothing: it comes after the sure ones of
    its step in :data:`STEPS`, and before all of the next step. So a variable that may help is tried after a cache that
    does, and before anything is installed. Another image is an installation too, and a larger one than a package;
    starting the container anew or in another way is not. Loading a kernel module stands just before a reboot of the
    machine. A kind that is not known comes last. Remedies that are equal
    in all this keep the order their cause gave them.
    """
    return tuple(sorted(remedies, key=_place))


def _place(remedy: Remedy) -> tuple[int, bool, float, int]:
    return _step(remedy), not remedy.is_sure, _size(remedy), remedy.rank


def _is_another_image(remedy: Remedy) -> bool:
    return remedy.kind == "container" and remedy.name == "image"


def _is_load_of_module(remedy: Remedy) -> bool:
    """Loading a module changes nothing that lasts, and stops less than a reboot does."""
    return remedy.kind == "kernel" and remedy.value in ("load", "reload")


def _step(remedy: Remedy) -> int:
    if _is_another_image(remedy):
        return _INSTALLED
    if _is_load_of_module(remedy):
        return _HOW_IT_RUNS
    return next((number for number, kinds in enumerate(STEPS) if remedy.kind in kinds), len(STEPS))


def _size(remedy: Remedy) -> float:
    if _is_another_image(remedy):
        return KINDS.index("package") + 0.5
    if _is_load_of_module(remedy):
        return KINDS.index("service") - 0.5
    return KINDS.index(remedy.kind) if remedy.kind in KINDS else len(KINDS)

"""Whether a remedy applies to the service at hand: its releases, its hardware, what is in force already.

A cause proposes what helps against it. Here each proposal is held against the facts: it stays, is put right (an older
spelling, a newer toolkit), or is taken out with the reason. What the facts do not decide stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies.applicability.flashinfer_variables import of_flashinfer
from gpuwhy.remedies.applicability.in_force import in_force
from gpuwhy.remedies.applicability.releases import of_release
from gpuwhy.remedies.applicability.versions import of_versions
from gpuwhy.remedies.circumstances import Circumstances

Check = Callable[[Remedy, Circumstances], Remedy | NotARemedy]
"""Gives the remedy back, as it is or put right; or what it is not, and why."""

CHECKS: tuple[Check, ...] = (of_release, of_flashinfer, of_versions, in_force)


def applicable(remedies: Iterable[Remedy], known: Circumstances) -> tuple[tuple[Remedy, ...], tuple[NotARemedy, ...]]:
    """The remedies that apply, and those that do not with the reason of each."""
    kept: dict[tuple[str, str, str], Remedy] = {}
    dropped: dict[str, NotARemedy] = {}
    for remedy in remedies:
        checked = _checked(remedy, known)
        if isinstance(checked, NotARemedy):
            dropped.setdefault(checked.what, checked)
        else:
            # Two spellings of one intervention may have become the same.
            kept.setdefault((checked.kind, checked.name, checked.value), checked)
    return tuple(kept.values()), tuple(dropped.values())


def _checked(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    for check in CHECKS:
        result = check(remedy, known)
        if isinstance(result, NotARemedy):
            return result
        remedy = result
    return remedy

"""Each event and each cause in one role: what is found is not also named as something else.

A kill before this life of the service is either why it failed, by way of what it left behind, or it is not the cause;
a cause that was ruled out is no rival that is still possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from gpuwhy.model.finding import Excluded, Finding
from gpuwhy.model.incident import Incident


def of_an_earlier_life(findings: Sequence[Finding], incident: Incident) -> tuple[str, ...]:
    """The causes of findings that explain only what came before a life that failed, and from which none follows.

    A process that was killed before this one was started did not end it; what it left (half a cache, a lock) may have.
    """
    if not incident.is_failure:
        return ()
    before = set(incident.before)
    roots = {each.consequence_of for each in findings}
    return tuple(
        each.cause for each in findings if each.explains and set(each.explains) <= before and each.cause not in roots
    )


def without_excluded(findings: Iterable[Finding], excluded: Iterable[Excluded]) -> tuple[Finding, ...]:
    """The findings without rivals that were ruled out here."""
    out = {each.cause for each in excluded}
    return tuple(
        msgspec.structs.replace(each, rivals=tuple(rival for rival in each.rivals if rival not in out))
        if out.intersection(each.rivals)
        else each
        for each in findings
    )


def only_before(findings: Iterable[Finding], incident: Incident) -> tuple[int, ...]:
    """The events before this life that no finding explains: those that are not the cause."""
    explained = {event for each in findings for event in each.explains}
    return tuple(event for event in incident.before if event not in explained)

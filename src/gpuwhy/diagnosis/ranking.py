"""The order of findings: how sure, whether it accounts for the failure itself, how specific."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.model.incident import Incident

_CERTAINTY_POINTS = {Certainty.PROVEN: 200, Certainty.LIKELY: 100, Certainty.POSSIBLE: 0}
_EXPLAINS_PRIMARY_POINTS = 60
"""Less than a step of certainty: what is proven of a side event may still be the cause that an echo hides."""


def ranked(findings: Iterable[Finding], incident: Incident) -> tuple[Finding, ...]:
    """Best first. Ties keep the order of the log: the earlier event wins (the first abnormal thing is the lead)."""
    firsts = {event.id: event.span.first for event in incident.events}

    def key(finding: Finding) -> tuple[int, int]:
        earliest = min((firsts.get(event, 1 << 30) for event in finding.explains), default=1 << 30)
        return -points(finding, incident), earliest

    return tuple(sorted(findings, key=key))


def points(finding: Finding, incident: Incident) -> int:
    """What a finding weighs."""
    explains = _EXPLAINS_PRIMARY_POINTS if incident.primary in finding.explains else 0
    return _CERTAINTY_POINTS[finding.certainty] + explains + finding.strength

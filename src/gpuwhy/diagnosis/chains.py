"""Findings that explain each other: the root first, what follows from it behind, a second problem named as such.

A host that runs out of memory kills a rank, and the others report a collective that timed out; a compile that was killed
leaves half a cache, and the next start waits for its lock. Which cause makes which other appear is declared by the
causes (``leads_to``); whether it did so here is told by what came first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gpuwhy.causes import CauseEntry
from gpuwhy.model.event import Event
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.model.incident import Incident


def chained(findings: Sequence[Finding], incident: Incident, causes: Mapping[str, CauseEntry]) -> tuple[Finding, ...]:
    """``findings``, ranked already, with roots moved before what follows from them, and their relations marked."""
    events = {event.id: event for event in incident.events}
    ordered = list(findings)
    roots: dict[str, str] = {}
    for effect in findings:
        root = _root_of(effect, findings, events, causes)
        if root is None:
            continue
        roots[effect.cause] = root.cause
        if ordered.index(root) > ordered.index(effect):
            ordered.remove(root)
            ordered.insert(ordered.index(effect), root)
    if not ordered:
        return ()
    marked = [msgspec.structs.replace(each, consequence_of=roots.get(each.cause, "")) for each in ordered]
    return tuple(marked[:1] + [_beside(marked[0], each) for each in marked[1:]])


def _root_of(
    effect: Finding, findings: Sequence[Finding], events: Mapping[int, Event], causes: Mapping[str, CauseEntry]
) -> Finding | None:
    """The finding that ``effect`` follows from: one that leads to such, is at least as sure, and does not come later."""
    for root in findings:
        entry = causes.get(root.cause)
        if root is effect or entry is None or effect.cause not in entry.leads_to:
            continue
        is_sure = root.certainty.order <= effect.certainty.order and root.certainty is not Certainty.POSSIBLE
        if is_sure and not _is_later(root, effect, events):
            return root
    return None


def _is_later(root: Finding, effect: Finding, events: Mapping[int, Event]) -> bool:
    """Whether the root's first event comes after the effect's: by their times, within one log by their lines."""
    first = _first(root, events)
    other = _first(effect, events)
    if first is None or other is None:
        return False
    if first.time is not None and other.time is not None and first.time != other.time:
        return first.time > other.time
    return first.span.log == other.span.log and first.span.first > other.span.first


def _first(finding: Finding, events: Mapping[int, Event]) -> Event | None:
    own = [events[identity] for identity in finding.explains if identity in events and not events[identity].is_echo]
    timed = [event for event in own if event.time is not None]
    if timed:
        return min(timed, key=lambda event: event.time or 0.0)
    return min(own, key=lambda event: event.span.first, default=None)


def _beside(first: Finding, other: Finding) -> Finding:
    """Mark a problem of its own: something that is sure, of other events, and no rival of the first."""
    is_related = (
        other.consequence_of
        or other.cause in first.rivals
        or first.cause in other.rivals
        or set(first.explains) & set(other.explains)
    )
    is_own = not is_related and bool(other.explains) and other.certainty is not Certainty.POSSIBLE
    return msgspec.structs.replace(other, is_independent=is_own)

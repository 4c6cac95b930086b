"""Whose an event is: what the kernel or the service manager says of another service is no sign of this one's failure."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.model.event import Event
from gpuwhy.model.incident import Incident


def of_others(incident: Incident) -> frozenset[int]:
    """The ids of events about other units: their kills for lack of memory, their starts and exits.

    A kill without a unit of its own is that of the nearest one in the same log that has one (the kernel tells of one
    kill in many lines). A scope of a container engine says nothing: the service may run in it.
    """
    if not incident.unit:
        return frozenset()
    kills = [event for event in incident.events if event.kind == "kernel" and event.tool == "oom"]
    named = [event for event in kills if _unit_of(event)]
    found = {event.id for event in incident.events if event.kind == "unit" and _is_another(event.unit, incident.unit)}
    for event in kills:
        told = event if _unit_of(event) else _nearest(event, named)
        if told is not None and _is_another(_unit_of(told), incident.unit):
            found.add(event.id)
    return frozenset(found)


def _unit_of(event: Event) -> str:
    return event.unit or event.detail.get("unit", "")


def _is_another(unit: str, own: str) -> bool:
    """A path stands for a control group that is no unit's."""
    is_told = unit.endswith(".service") or unit.startswith("/")
    return is_told and unit.removesuffix(".service") != own.removesuffix(".service")


def _nearest(event: Event, named: Sequence[Event]) -> Event | None:
    near = [other for other in named if other.span.log == event.span.log]
    return min(near, key=lambda other: abs(other.span.first - event.span.first), default=None)

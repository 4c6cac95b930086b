"""The incident on a time axis, a lane for each process, for the kernel and for each unit.

Positions are percentages of the axis, so that the picture fits any window; the script of the page moves them when a
reader zooms. Where the log has no times, the axis is the order of its lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import msgspec

from gpuwhy.model.event import Event
from gpuwhy.model.incident import Incident
from gpuwhy.reports.html.inert import shortened
from gpuwhy.reports.html.log_lines import ShownLogs

MOST_EVENTS = 600
MOST_LANES = 24
_ROW, _TOP = 44, 8
"""Pixels of a lane, and above the first."""
_LONGEST_LABEL = 40
_REST = "other processes"
_EDGE = 2.0
"""Percent of the axis that stay free at both ends, so that no mark is cut."""


class Mark(msgspec.Struct, frozen=True):
    """An event. ``at`` is in seconds since the epoch (or a line number), ``x`` in percent of the axis, ``y`` in pixels;
    ``style`` names shape and colour, ``place`` and ``anchor`` say where it stands in the log."""

    id: int
    at: float
    x: float
    y: int
    style: str
    when: str
    lane: str
    kind: str
    text: str
    place: str
    anchor: str
    times: int


class Lane(msgspec.Struct, frozen=True):
    """A process, the kernel or a unit; ``label`` is its name in what room a phone has."""

    name: str
    label: str
    y: int


class Timeline(msgspec.Struct, frozen=True):
    """All of it. ``is_time`` False: the axis counts lines. ``begin`` and ``end`` are the ends of the axis."""

    marks: tuple[Mark, ...]
    lanes: tuple[Lane, ...]
    begin: float
    end: float
    is_time: bool
    height: int
    primary: int | None
    ticks: tuple[tuple[float, str], ...]
    date: str
    left_out: int


def timeline_of(incident: Incident, logs: ShownLogs) -> Timeline | None:
    """The time line; None where there are fewer than two events, which no picture explains better than a sentence."""
    events = _chosen(incident)
    is_time = sum(event.time is not None for event in events) * 2 > len(events)
    placed = sorted(_placed(events, is_time), key=lambda each: (each[0], each[1].id))
    if len(placed) < 2:
        return None
    begin, end = placed[0][0], placed[-1][0]
    names = _lanes(placed)
    rows = {name: _TOP + _ROW * number for number, name in enumerate(dict.fromkeys(names.values()))}
    marks = tuple(
        _mark(event, at, (begin, end), names[event.id], rows[names[event.id]], incident, logs) for at, event in placed
    )
    lanes = tuple(Lane(name, _label_of(name), y) for name, y in rows.items())
    date = time.strftime("%Y-%m-%d", time.gmtime(begin)) if is_time else ""
    return Timeline(
        marks, lanes, begin, end, is_time, _TOP + _ROW * len(lanes) + 28, incident.primary, _ticks(begin, end, is_time),
        date, len(incident.events) - len(events),
    )  # fmt: skip


def _chosen(incident: Incident) -> tuple[Event, ...]:
    """All events; of too many, warnings and echoes give way to what ended something."""
    if len(incident.events) <= MOST_EVENTS:
        return incident.events
    ranked = sorted(incident.events, key=lambda each: (each.id != incident.primary, not each.is_fatal, each.is_echo))
    kept = {event.id for event in ranked[:MOST_EVENTS]}
    return tuple(event for event in incident.events if event.id in kept)


def _placed(events: Sequence[Event], is_time: bool) -> Iterator[tuple[float, Event]]:
    """Where each event lies on the axis; one without a time lies where the one before it in the log does."""
    if not is_time:
        yield from ((float(event.place.line or 0), event) for event in events)
        return
    latest = next(event.time for event in events if event.time is not None)
    for event in events:
        latest = event.time if event.time is not None else latest
        yield latest, event


def _lanes(placed: Sequence[tuple[float, Event]]) -> dict[int, str]:
    """The lane of each event, by its id; the busiest lanes keep their own where there are too many."""
    names = {event.id: _lane_name(event) for _, event in placed}
    counts: dict[str, int] = {}
    for name in names.values():
        counts[name] = counts.get(name, 0) + 1
    kept = set(sorted(counts, key=lambda name: -counts[name])[: MOST_LANES if len(counts) <= MOST_LANES else MOST_LANES - 1])  # fmt: skip
    return {identity: name if name in kept else _REST for identity, name in names.items()}


def _lane_name(event: Event) -> str:
    if event.kind == "kernel":
        return "kernel"
    if event.kind == "unit":
        return event.unit or "service manager"
    process = event.process
    if process is None or not (process.name or process.pid is not None or process.rank is not None):
        return shortened(event.unit or event.place.path or "the log", 200)
    name = process.name or (f"rank {process.rank}" if process.rank is not None else "process")
    number = f" (pid {process.pid})" if process.pid is not None and str(process.pid) not in name else ""
    return shortened(f"{name}{number}", 200)


def _mark(
    event: Event, at: float, ends: tuple[float, float], lane: str, y: int, incident: Incident, logs: ShownLogs
) -> Mark:
    return Mark(
        id=event.id,
        at=at,
        x=_x(at, ends),
        y=y + 30,
        style=_style(event, incident),
        when=_when(event),
        lane=lane,
        kind=event.kind + (", an echo" if event.is_echo else ""),
        text=shortened(event.text.partition("\n")[0], 240),
        place=str(event.place),
        anchor=logs.anchor(event.place),
        times=len(event.repeats) + 1,
    )


def _style(event: Event, incident: Incident) -> str:
    if event.id == incident.primary:
        return "primary"
    if event.is_echo or event.id in incident.before:
        return "echo"
    if event.is_fatal:
        return "fatal"
    return {"warning": "warning", "start": "good", "ready": "good"}.get(event.kind, "plain")


def _label_of(name: str) -> str:
    """Beginning and end of a long name: paths differ at the end."""
    return name if len(name) <= _LONGEST_LABEL else f"{name[:12]}…{name[13 - _LONGEST_LABEL :]}"


def _x(at: float, ends: tuple[float, float]) -> float:
    begin, end = ends
    share = (at - begin) / (end - begin) if end > begin else 0.5
    return round(_EDGE + share * (100 - 2 * _EDGE), 3)


def _ticks(begin: float, end: float, is_time: bool) -> tuple[tuple[float, str], ...]:
    ends = (begin, end)
    at = [begin + (end - begin) * part / 4 for part in range(5)] if end > begin else [begin]
    return tuple((_x(each, ends), _label(each, is_time)) for each in at)


def _label(at: float, is_time: bool) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(at)) if is_time else f"line {at:.0f}"


def _when(event: Event) -> str:
    if event.time is None:
        return ""
    thousandths = int(event.time % 1 * 1000)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(event.time)) + (f".{thousandths:03d}" if thousandths else "")

"""Events -> the incident: the last life of the service that ended badly, and the event it began with.

The order of evidence: the earliest abnormal event in time wins over all sources; the kernel's word on this service's
own processes and GPUs outranks the program's; a message that points backwards is never the beginning.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from gpuwhy.logs import engines, ranks, several, survival
from gpuwhy.logs.beginnings import beginning
from gpuwhy.logs.events import fold, numbered, recognised
from gpuwhy.logs.working import Work
from gpuwhy.model.event import Event, Log, LogLine
from gpuwhy.model.incident import Incident

BEFORE_SECONDS = 30 * 60.0
"""How far before a life what happened to others belongs to its story: loading 600 GB of weights takes that long."""


def find_incidents(logs: Sequence[Log], unit: str = "") -> Incident:
    """One incident out of all sources: the last life that failed, or the last one when none did.

    ``unit`` names the service in question when the logs hold several; otherwise it is the one that failed last.
    """
    logs = several.joined(logs)
    work = Work(logs)
    timeline = survival.marked(_timeline(logs), work)
    unit = unit or _failing_unit(timeline)
    own = _own(timeline, unit)
    lives = _lives(own)
    failed = [life for life in lives if any(event.is_fatal for event in life)]
    ran = [life for life in failed if _has_run(life)]
    chosen = (ran or failed or lives or [[]])[-1]
    before = _before(timeline, own, chosen, unit)
    kept_before = fold(before)
    events = list(numbered([*kept_before, *fold(ranks.compared(chosen))]))
    life = events[len(kept_before) :]
    primary = beginning(life, logs, work)
    if primary is not None:
        events[primary.id] = primary
    times = [event.time for event in chosen if event.time is not None]
    return Incident(
        logs=_trimmed(logs, lives, chosen, before) if len(lives) > 1 else tuple(logs),
        events=tuple(events),
        primary=None if primary is None else primary.id,
        before=tuple(event.id for event in events[: len(kept_before)]),
        unit=unit,
        lives=max(1, len(lives)),
        started=min(times, default=None),
        ended=max(times, default=None),
        engine=engines.engine_of(logs, life),
        is_failure=primary is not None,
    )


def _timeline(logs: Sequence[Log]) -> list[Event]:
    """All events of all logs in time. What has no time of its own stands where its log has it."""
    placed: list[tuple[float, int, int, Event]] = []
    for order, log in enumerate(logs):
        clock = _Clock(log.lines)
        for at, event in enumerate(recognised(log)):
            time = event.time if event.time is not None else clock.at(event.span.first)
            placed.append((time if time is not None else 0.0, order, at, event))
    if len(logs) > 1 and any(time == 0.0 for time, *_ in placed):
        # a log without any time cannot be merged; kernel logs go first, the rest as given
        kernel_first = {order: log.kind != "kernel log" for order, log in enumerate(logs)}
        return [
            event
            for *_, event in sorted(
                placed, key=lambda item: (item[0] and 1, kernel_first[item[1]], item[0], item[1], item[2])
            )
        ]
    return [event for *_, event in sorted(placed, key=lambda item: item[:3])]


class _Clock:
    """The time at a line that has none: that of the nearest line above it that has one, else of the first below."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self._numbers = [line.number for line in lines if line.time is not None]
        self._times = [line.time for line in lines if line.time is not None]

    def at(self, number: int) -> float | None:
        if not self._numbers:
            return None
        return self._times[max(0, bisect.bisect_right(self._numbers, number) - 1)]


def _failing_unit(timeline: Sequence[Event]) -> str:
    """The unit that failed last; one with a failure of its own before one that only exited."""
    fatal = [event for event in timeline if event.unit and event.is_fatal and event.kind != "kernel"]
    for candidates in ([event for event in fatal if not event.is_echo], fatal):
        if candidates:
            return candidates[-1].unit
    units = Counter(event.unit for event in timeline if event.unit and event.kind != "kernel")
    return units.most_common(1)[0][0] if len(units) == 1 else ""


def _belongs(event: Event, unit: str) -> bool:
    return not unit or not event.unit or event.unit == unit


def _own(timeline: Sequence[Event], unit: str) -> list[Event]:
    """The events of the service; not what the kernel said before its unit was first heard of.

    An excerpt may begin in the middle of a life: then what the kernel said shortly before is of this life.
    """
    own = [event for event in timeline if _belongs(event, unit)]
    first = next((at for at, event in enumerate(own) if unit and event.unit == unit), 0)
    heard = own[first].time if own and not _starts_life(own[first]) else None

    def is_own(at: int, event: Event) -> bool:
        if at >= first or event.kind != "kernel" or event.time is None:
            return True
        return heard is not None and heard - event.time <= BEFORE_SECONDS

    return [event for at, event in enumerate(own) if is_own(at, event)]


def _starts_life(event: Event) -> bool:
    return event.kind == "start" or (
        event.kind == "unit" and event.detail.get("state") in ("started", "starting", "restarting")
    )


def _ends_life(event: Event) -> bool:
    return event.is_fatal and event.kind != "kernel"


def _lives(own: Sequence[Event]) -> list[list[Event]]:
    """``own`` cut where the service starts again after something fatal; what stands between belongs to the new life."""
    cuts: list[int] = []
    ended: int | None = None
    for at, event in enumerate(own):
        if _ends_life(event):
            ended = at
        elif ended is not None and _starts_life(event):
            cuts.append(ended + 1)
            ended = None
    edges = [0, *cuts, len(own)]
    return [list(own[begin:end]) for begin, end in pairwise(edges) if end > begin]


def _has_run(life: Sequence[Event]) -> bool:
    """Whether a process ran at all: a start that the manager refused ("repeated too quickly") tells nothing."""
    own = [event for event in life if event.kind != "kernel"]  # the kernel speaks of all there is on the host
    return any(event.kind != "unit" or event.detail.get("state") in ("started", "exited") for event in own)


def _before(timeline: Sequence[Event], own: Sequence[Event], chosen: Sequence[Event], unit: str) -> list[Event]:
    """What happened to others, or to the host, in the time before the chosen life and that may belong to its story."""
    if not chosen:
        return []
    start = next((event.time for event in chosen if event.time is not None), None)
    inside = {id(event) for event in chosen}
    all_own = {id(event) for event in own}
    first = next(at for at, event in enumerate(timeline) if id(event) in inside)
    earlier = timeline[:first] if len(own) else []
    others = [event for event in timeline[first:] if id(event) not in all_own]
    story: list[Event] = []
    for event in [*earlier, *others]:
        is_kernel = event.kind == "kernel" and event.is_fatal and not event.is_echo
        if not (is_kernel or (event.is_fatal and not _belongs(event, unit))):
            continue
        if start is not None and event.time is not None and start - event.time > BEFORE_SECONDS:
            continue
        story.append(event)
    return story


def _trimmed(
    logs: Sequence[Log], lives: Sequence[Sequence[Event]], chosen: Sequence[Event], before: Iterable[Event]
) -> tuple[Log, ...]:
    """The logs without the lines of other lives, except those of events that belong to the story."""
    at = next(at for at, life in enumerate(lives) if life is chosen)
    kept = {(event.span.log, number) for event in before for number in range(event.span.first, event.span.last + 1)}
    result = []
    for log in logs:
        begin = (
            max((event.span.last for life in lives[:at] for event in life if event.span.log == log.name), default=0) + 1
        )
        end = min(
            (event.span.first for life in lives[at + 1 :] for event in life if event.span.log == log.name), default=None
        )
        lines = tuple(
            line
            for line in log.lines
            if (begin <= line.number and (end is None or line.number < end)) or (log.name, line.number) in kept
        )
        if len(lines) == len(log.lines):
            result.append(log)
            continue
        note = f"{len(log.lines) - len(lines)} lines of other lives of the service left out"
        result.append(Log(log.name, log.kind, lines, (*log.notes, note)))
    return tuple(result)

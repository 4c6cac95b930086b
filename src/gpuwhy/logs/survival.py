"""What looks fatal and was not: the process, or what looks after it, went on.

A request that cannot be served raises an exception, and the server answers the next one; an operator stops a server
that was serving; a pod waits for a GPU, and gets one. Marked so, these begin no failure, and no new life follows them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpuwhy.logs.working import Work
from gpuwhy.model.event import Event

_ENDS = frozenset({"death", "unit", "crash", "kernel"})
"""Kinds after which a process does not go on; an exception can have been caught."""
_STOPPED = frozenset({"stopped", "started", "starting", "restarting"})


def marked(timeline: Sequence[Event], work: Work) -> list[Event]:
    """``timeline``, events in time, with those that were survived no longer fatal."""
    survived = {*_caught(timeline, work), *_ordered(timeline), *_interrupted(timeline, work), *_scheduled(timeline)}
    return [
        msgspec.structs.replace(event, is_fatal=False) if at in survived else event for at, event in enumerate(timeline)
    ]


def _caught(timeline: Sequence[Event], work: Work) -> list[int]:
    """Exceptions after which the program went on working, before anything ended it."""
    survived = []
    ends: dict[str, Event] = {}
    nearest: Event | None = None
    for at in range(len(timeline) - 1, -1, -1):
        event = timeline[at]
        is_exception = event.kind == "exception" and not event.is_echo
        if event.is_fatal and event.kind not in ("kernel", "unit") and work.has_passed(event.span.log, event.span.last):
            survived.append(at)
        elif event.is_fatal and is_exception:
            ended_by = (ends.get(event.unit), ends.get("")) if event.unit else (nearest,)
            before = [end.span.first for end in ended_by if end is not None and end.span.log == event.span.log]
            if work.went_on(event.span.log, event.span.last, min(before, default=None)):
                survived.append(at)
        elif _begins(event) or (event.is_fatal and (event.kind in _ENDS or event.is_echo)):
            ends[event.unit] = nearest = event
    return survived


def _begins(event: Event) -> bool:
    """Whether another process starts here: what it does says nothing of the one before."""
    return event.kind == "start" or (event.kind == "unit" and event.detail.get("state") in ("started", "starting"))


def _ordered(timeline: Sequence[Event]) -> list[int]:
    """What a manager tells of a unit between ``Stopping`` and ``Stopped``: an ordered end, whatever its exit status."""
    survived = []
    stopping: set[str] = set()
    for at, event in enumerate(timeline):
        state = event.detail.get("state", "") if event.kind == "unit" else ""
        if state == "stopping":
            stopping.add(event.unit)
        elif state in _STOPPED:
            stopping.discard(event.unit)
        elif event.is_fatal and event.unit in stopping and state in ("exited", "failed"):
            survived.append(at)
    return survived


def _interrupted(timeline: Sequence[Event], work: Work) -> list[int]:
    """``KeyboardInterrupt`` of a program that had worked: somebody stopped it. Before that it may tell where it hung."""
    survived = []
    failed: set[str] = set()
    for at, event in enumerate(timeline):
        is_interrupt = event.kind == "exception" and event.exceptions[-1].type == "KeyboardInterrupt"
        if is_interrupt and event.unit not in failed and work.had_worked(event.span.log, event.span.first):
            survived.append(at)
        elif event.is_fatal:
            failed.add(event.unit)
    return survived


def _scheduled(timeline: Sequence[Event]) -> list[int]:
    """A pod that found no node at first, and one later."""
    placed = max((at for at, event in enumerate(timeline) if event.detail.get("state") == "scheduled"), default=-1)
    return [at for at in range(placed) if timeline[at].detail.get("result") == "FailedScheduling"]

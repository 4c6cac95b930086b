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


def marked(own: Sequence[Event], work: Work) -> list[Event]:
    """``own``, the events of a service in time, with those that it survived no longer fatal."""
    survived = {*_caught(own, work), *_ordered(own), *_interrupted(own, work), *_scheduled(own)}
    return [msgspec.structs.replace(event, is_fatal=False) if at in survived else event for at, event in enumerate(own)]


def _caught(own: Sequence[Event], work: Work) -> list[int]:
    """Exceptions after which the program went on working, before anything ended it."""
    survived = []
    end: Event | None = None
    for at in range(len(own) - 1, -1, -1):
        event = own[at]
        if _begins(event):
            end = event
        if not event.is_fatal:
            continue
        if event.kind not in ("kernel", "unit") and work.has_passed(event.span.log, event.span.last):
            survived.append(at)
        elif event.kind in _ENDS or event.is_echo:
            end = event
        elif event.kind == "exception":
            before = end.span.first if end is not None and end.span.log == event.span.log else None
            if work.went_on(event.span.log, event.span.last, before):
                survived.append(at)
    return survived


def _begins(event: Event) -> bool:
    """Whether another process starts here: what it does says nothing of the one before."""
    return event.kind == "start" or (event.kind == "unit" and event.detail.get("state") in ("started", "starting"))


def _ordered(own: Sequence[Event]) -> list[int]:
    """What a manager tells of a unit between ``Stopping`` and ``Stopped``: an ordered end, whatever its exit status."""
    survived = []
    stopping: set[str] = set()
    for at, event in enumerate(own):
        state = event.detail.get("state", "") if event.kind == "unit" else ""
        if state == "stopping":
            stopping.add(event.unit)
        elif state in _STOPPED:
            stopping.discard(event.unit)
        elif event.is_fatal and event.unit in stopping and state in ("exited", "failed"):
            survived.append(at)
    return survived


def _interrupted(own: Sequence[Event], work: Work) -> list[int]:
    """``KeyboardInterrupt`` of a program that had worked: somebody stopped it. Before that it may tell where it hung."""
    survived = []
    has_failed = False
    for at, event in enumerate(own):
        is_interrupt = event.kind == "exception" and event.exceptions[-1].type == "KeyboardInterrupt"
        if is_interrupt and not has_failed and work.had_worked(event.span.log, event.span.first):
            survived.append(at)
        elif event.is_fatal:
            has_failed = True
    return survived


def _scheduled(own: Sequence[Event]) -> list[int]:
    """A pod that found no node at first, and one later."""
    placed = max((at for at, event in enumerate(own) if event.detail.get("state") == "scheduled"), default=-1)
    return [at for at in range(placed) if own[at].detail.get("result") == "FailedScheduling"]

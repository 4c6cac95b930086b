"""The event that a life's failure began with: its primary.

What comes first and is fatal and no echo; the kernel's word before the program's; and before both the line that says
why (:mod:`gpuwhy.logs.explanations`). A life without any of these can still have failed: it hangs, or answers wrongly;
or somebody pasted no more than the warning that tells why. A log in which nothing fatal happened is no failure however
many warnings it has, above all when the program worked on after them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpuwhy.logs import echoes, ranks
from gpuwhy.logs.explanations import explained
from gpuwhy.logs.working import Work
from gpuwhy.model.event import Event, Log

AFTERMATH_SECONDS = 5.0
"""A kernel message that comes later than this after the program's own failure is a consequence of it."""
PASTED_LINES = 30
"""A text of so few lines may be what somebody chose to show: then a warning in it is meant. Of a longer log, its end."""
LAST_LINES = 5


def beginning(life: Sequence[Event], logs: Sequence[Log], work: Work) -> Event | None:
    """The event that the failure began with, or the line that says why that happened; None when nothing failed.

    Such a line takes the frames of the failure along: they tell which program and which of its parts failed.
    ``logs`` are those that ``life`` was read from, ``work`` where they show the program at its work.
    """
    first = _first_abnormal(life, _Complaints(logs, work))
    reason = None if first is None else explained(first, life) or ranks.odd_one(first, life)
    if first is None or reason is None:
        return first
    detail = {**reason.detail, "surfaced_as": first.text.partition("\n")[0][:300]}
    return msgspec.structs.replace(reason, detail=detail, exceptions=reason.exceptions or first.exceptions)


def _first_abnormal(life: Sequence[Event], complaints: _Complaints) -> Event | None:
    fatal = [event for event in life if event.is_fatal]
    first = _first_own(fatal)
    kernels = [event for event in fatal if event.kind == "kernel"]
    kernel = next((event for event in kernels if not event.is_echo), None)
    if kernel is not None and (first is None or not _is_aftermath(kernel, first)):
        return kernel
    if first is not None and not _is_cut_off(first):
        return _warned_by_nccl(first, life) or first
    if kernels:
        return kernels[0]
    return _last_resort(fatal, life, complaints)


def _warned_by_nccl(first: Event, life: Sequence[Event]) -> Event | None:
    """NCCL's exceptions repeat a status (``unhandled system error``); its warning before them says what happened."""
    if "nccl" not in first.text.lower():
        return None
    before = life[: life.index(first)]
    return next(
        (event for event in before if event.kind == "warning" and event.tool == "nccl" and not event.is_echo), None
    )


def _first_own(fatal: Sequence[Event]) -> Event | None:
    candidates = [event for event in fatal if not event.is_echo and event.kind != "kernel"]
    whole = [event for event in candidates if not _is_cut_off(event)] or candidates
    if not whole:
        return None
    first = whole[0]
    inner = next((event for event in whole[1:] if event.kind == "build" and _is_inside(event, first)), None)
    return inner or first


def _is_cut_off(event: Event) -> bool:
    return event.kind == "exception" and not event.exceptions[-1].type


def _is_inside(event: Event, outer: Event) -> bool:
    return (
        event.span.log == outer.span.log and outer.span.first <= event.span.first and event.span.last <= outer.span.last
    )


def _is_aftermath(kernel: Event, first: Event) -> bool:
    if kernel.time is None or first.time is None:
        return False
    return kernel.time > first.time + AFTERMATH_SECONDS


def _last_resort(fatal: Sequence[Event], life: Sequence[Event], complaints: _Complaints) -> Event | None:
    """Nothing but echoes and cut-off tracebacks, or nothing fatal at all.

    An exception that was swallowed, else the first complaint, else a failure that shows in no error (a hang, wrong
    answers), else the first of the echoes.
    """
    swallowed = next((event for event in life if event.kind == "exception" and not event.is_echo), None)
    if fatal and swallowed is not None and not _is_cut_off(swallowed):
        return swallowed
    last_ready = _last_ready(life)
    up = last_ready >= 0
    told = [(at, event) for at, event in enumerate(life) if event.kind in ("warning", "crash") and not event.is_echo]
    for at, event in told:
        is_late = at > last_ready and not complaints.was_survived(event)
        if _is_severe(event) and (fatal or is_late):  # what came before the service was up did not stop it
            return event
    if fatal or not up:
        for _, event in told:
            if "level" not in event.detail and (fatal or complaints.is_meant(event)):
                return event
    return (
        _symptom(life, complaints)
        or min(fatal, key=lambda event: event.is_echo, default=None)
        or _told_backwards(life, up)
    )


class _Complaints:
    """Which complaints of a log in which nothing fatal happened can be its failure all the same."""

    def __init__(self, logs: Sequence[Log], work: Work) -> None:
        self._logs = {log.name: log for log in logs}
        self._work = work

    def was_survived(self, event: Event) -> bool:
        """Whether the program worked on after it was said last."""
        last = max([event.span.last, *(place.line or 0 for place in event.repeats if place.path == event.span.log)])
        return self._work.last(event.span.log) > last

    def is_meant(self, event: Event) -> bool:
        """Whether a line without a level, that programs print in passing, was shown for what it says."""
        log = self._logs.get(event.span.log)
        if log is None or log.kind == "kernel log" or self.was_survived(event):
            return False
        if event.tool == "python":
            return echoes.is_telling(event.text)
        said = [line.number for line in log.lines if line.text.strip()]
        is_end = event.span.last >= said[-LAST_LINES:][0] and not _is_called_warning(event)
        return len(said) <= PASTED_LINES or is_end


def _is_called_warning(event: Event) -> bool:
    return "warning:" in event.text.partition("\n")[0].lower()


def _is_severe(event: Event) -> bool:
    return event.detail.get("level") in ("error", "critical") or event.tool == "nccl" or event.kind == "crash"


def _last_ready(life: Sequence[Event]) -> int:
    return max((at for at, event in enumerate(life) if event.kind == "ready"), default=-1)


def _told_backwards(life: Sequence[Event], up: bool) -> Event | None:
    """A message that points backwards, when what it points to was not logged: ``Capture cuda graph failed: ...``."""
    for event in life:
        is_told = event.kind == "warning" and event.detail.get("level", "error") in ("error", "critical")
        if is_told and not up and echoes.points_backwards(event.text.partition("\n")[0]):
            return event
    return None


def _symptom(life: Sequence[Event], complaints: _Complaints) -> Event | None:
    """What tells of a hang or of wrong answers; a program's own word on it only when it never came up again after it."""
    last_ready = _last_ready(life)
    for at, event in enumerate(life):
        if event.tool not in ("hang", "output"):
            continue
        if "level" not in event.detail:
            return event
        if (at > last_ready or event.repeats) and not complaints.was_survived(event):
            return event
    return None

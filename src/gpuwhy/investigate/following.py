"""Follows what grows, and says when an incident is complete: a failure was written, and then nothing more for a while.

A diagnosis is made only where new lines look like a failure, so that a busy log costs next to nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import msgspec

from gpuwhy.diagnosis import sign_literals
from gpuwhy.investigate.log import diagnose_logs
from gpuwhy.logs import UnreadableLog, read_bytes
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Log
from gpuwhy.model.fact import Facts
from gpuwhy.targets.growing import Growing

SETTLED = 2.0
"""Seconds of silence after which a failure counts as written in full: the ranks of a service die within one."""
LONGEST = 15.0
"""Seconds after which a failure is told although lines still come: of a service that restarts in a loop."""
APART = 30.0
"""Seconds of silence after which what fails is another incident, even where no start of a new life is seen."""
KEPT = 16 * 1024 * 1024
"""Bytes of the log that are kept: what a life said at its start explains its end."""

_FAILING = re.compile(
    rb"(?i)traceback|error|exception|fatal|abort|segfault|segmentation|terminat|killed|core dump|failed|failure|panic|exited|out of memory|assert|xid"
)


class Watch:
    """Tells when lines that look like a failure have been followed by silence."""

    def __init__(self, settled: float = SETTLED) -> None:
        self._settled = settled
        self._since: float | None = None
        self._last = 0.0

    def saw(self, data: bytes, now: float) -> None:
        """New lines came at ``now``."""
        self._last = now
        if self._since is None and _FAILING.search(data):
            self._since = now

    def is_due(self, now: float) -> bool:
        """Whether it is time to look."""
        if self._since is None:
            return False
        return now - self._last >= self._settled or now - self._since >= max(LONGEST, self._settled)

    @property
    def is_waiting(self) -> bool:
        """Whether something that looks like a failure has not been looked at yet."""
        return self._since is not None

    def looked(self) -> None:
        """A look was taken: only new lines make another one due."""
        self._since = None


class FollowedLog:
    """The text of a log that grows, and the failures in it that were not told yet."""

    def __init__(self, name: str, facts: Facts | None = None) -> None:
        self._name = name
        self._facts = facts
        self._text = b""
        self._rest = b""
        self._first_line = 0
        self._told: tuple[str, int] | None = None
        self._told_to = 0
        self._told_at: float | None = None
        self._last_came: float | None = None
        self._is_apart = False

    def add(self, data: bytes, now: float) -> bytes:
        """More of the text; gives back the lines that are complete by it."""
        if self._last_came is not None and self._told_to == len(self._text):
            self._is_apart = now - self._last_came >= APART
        self._last_came = now
        lines, newline, self._rest = (self._rest + data).rpartition(b"\n")
        self._text += lines + newline
        if len(self._text) > KEPT:
            cut = self._text.find(b"\n", len(self._text) - KEPT // 2) + 1
            self._first_line += self._text.count(b"\n", 0, cut)
            self._text = self._text[cut:]
            self._told_to = max(0, self._told_to - cut)
        return lines + newline

    def begin_again(self) -> None:
        """Another file took the place of this one; what was told of it stays told."""
        self.__init__(self._name, self._facts)  # type: ignore[misc]

    def finish(self) -> None:
        """A last line without its end counts."""
        self._text += self._rest
        self._rest = b""

    def new_failure(self) -> Diagnosis | None:
        """The failure since the last one that was told, or None. Raises UnreadableLog."""
        if not self._text[self._told_to :].strip():
            return None
        fresh = self._diagnosed(self._text[self._told_to :], self._text.count(b"\n", 0, self._told_to))
        if not _has_failed(fresh):
            return None
        if self._told_to and not self._is_apart and not _has_begun(fresh):
            # no new life: the rest of the failure that was told, or of the life that it was a part of
            whole = self._diagnosed(self._text, 0)
            if not _has_failed(whole) or _identity(whole) == self._told:
                return None
            fresh = whole
        self._told, self._told_to, self._is_apart = _identity(fresh), len(self._text), False
        return fresh

    def _diagnosed(self, text: bytes, before: int) -> Diagnosis:
        log = read_bytes(text, self._name, sign_literals())
        return diagnose_logs([_moved(log, self._first_line + before)], self._name, self._facts)


def _moved(log: Log, by: int) -> Log:
    """The log with the numbers that its lines have in the whole file."""
    if not by:
        return log
    return msgspec.structs.replace(log, lines=tuple(msgspec.structs.replace(line, number=line.number + by) for line in log.lines))  # fmt: skip


def _has_failed(diagnosis: Diagnosis) -> bool:
    return diagnosis.incident.is_failure and diagnosis.incident.primary is not None


def _has_begun(diagnosis: Diagnosis) -> bool:
    return any(event.kind == "start" for event in diagnosis.incident.events)


def _identity(diagnosis: Diagnosis) -> tuple[str, int] | None:
    primary = diagnosis.incident.primary_event
    return (primary.text, primary.place.line or 0) if primary is not None else None


def follow_log(source: Growing, name: str, facts: Facts | None = None, settled: float = SETTLED) -> Iterator[Diagnosis]:
    """Each failure of a log as soon as it is complete; a failure that is there at the beginning comes first.

    Ends where the source does. Raises UnreadableLog for what is no text, and TargetError.
    """
    log, watch, generation = FollowedLog(name, facts), Watch(settled), source.generation
    is_over = False
    while not is_over:
        data = source.read(settled / 4 if watch.is_waiting else 1.0)
        now = time.monotonic()
        if source.generation != generation:
            if watch.is_waiting:
                yield from _told(log)
            log.begin_again()
            watch.looked()
            generation = source.generation
        if data:
            watch.saw(log.add(data, now), now)
        elif data is None:
            log.finish()
            is_over = True
        if is_over or watch.is_due(now):
            watch.looked()
            yield from _told(log)


def _told(log: FollowedLog) -> Iterator[Diagnosis]:
    found = log.new_failure()
    if found is not None:
        yield found


def follow_unit(source: Growing, examine: Callable[[], Diagnosis], settled: float = SETTLED) -> Iterator[Diagnosis]:
    """Each failure of a unit as soon as it is complete: ``source`` is what its journal says, ``examine`` looks at its host.

    A failure that is there at the beginning comes first. Raises TargetError.
    """
    watch, told = Watch(settled), None
    is_first = True
    while True:
        data = b"" if is_first else source.read(settled / 4 if watch.is_waiting else 1.0)
        now = time.monotonic()
        if data:
            watch.saw(data, now)
        if is_first or watch.is_due(now) or (data is None and watch.is_waiting):
            is_first = False
            watch.looked()
            found = examine()
            life = (_identity(found), found.incident.started, found.incident.ended)
            if _has_failed(found) and life != told:
                told = life
                yield found
        if data is None:
            return


__all__ = ["SETTLED", "FollowedLog", "UnreadableLog", "Watch", "follow_log", "follow_unit"]

"""Several logs of one failure: whose each is, and their clocks made one.

``engine.log`` in local time, the journal in UTC, ``dmesg`` in seconds since the boot, ``nccl.rank3.txt`` of one rank:
before their events can be put on one time line, lines that two of them share say how far their clocks are apart.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence

import msgspec

from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import Log, LogLine, Process

SHORTEST_SHARED = 24
"""Characters of a line that can be taken for the same one in two logs."""
TELLING = 60
"""A line that long is believed alone; of shorter ones two must agree."""
TOLERANCE = 3.0
"""Seconds by which the clocks of two logs may differ and be called one: writers buffer."""
_BOOT_SECONDS = Pattern(r"(?:<\d{1,3}>)?\[ {0,8}(?P<seconds>\d{1,8}\.\d{6})\]")
_RANK_IN_NAME = re.compile(r"(?:^|[._\-/])(?:rank|r)[._\-]?(?P<rank>\d{1,5})(?=[._\-/]|$)|(?:^|[._\-/])(?P<name>(?:TP|DP|PP|EP)\d{1,4})(?=[._\-/]|$)")  # fmt: skip


def joined(logs: Sequence[Log]) -> tuple[Log, ...]:
    """The logs, each once, with the rank that a file's name tells and times by one clock; notes say what was moved."""
    by_name: dict[str, Log] = {}
    for log in logs:
        by_name.setdefault(log.name, log)
    if len(by_name) < 2:
        return tuple(by_name.values())
    named = [_with_rank(log) for log in by_name.values()]
    reference = _reference(named)
    if reference is None:
        return tuple(named)
    return tuple(log if log is reference else _by_the_clock_of(reference, log) for log in named)


def _with_rank(log: Log) -> Log:
    """Lines that do not say who wrote them are the rank's that the file is called after."""
    found = _RANK_IN_NAME.search(log.name.rpartition("/")[2])
    if found is None or all(line.process is not None for line in log.lines):
        return log
    owner = Process(name=found["name"] or "", rank=int(re.sub(r"\D", "", found["rank"] or found["name"])))
    lines = tuple(
        line if line.process is not None else msgspec.structs.replace(line, process=owner) for line in log.lines
    )
    return msgspec.structs.replace(log, lines=lines)


def _reference(logs: Sequence[Log]) -> Log | None:
    """The journal's clock is the host's own; else that of the log with the most times."""
    timed = {log.name: sum(line.time is not None for line in log.lines) for log in logs}
    return max(
        (log for log in logs if timed[log.name]),
        key=lambda log: (log.kind == "journal", timed[log.name]),
        default=None,
    )


def _by_the_clock_of(reference: Log, log: Log) -> Log:
    own = _once([(line.text, time) for line in log.lines if (time := _moment(line)) is not None])
    known = _once([(line.text, line.time) for line in reference.lines if line.time is not None])
    shared = [(known[text] - own[text], text) for text in own.keys() & known.keys()]
    if not shared:
        return log
    offset = statistics.median(offset for offset, _ in shared)
    agreeing = [text for each, text in shared if abs(each - offset) <= TOLERANCE]
    is_enough = len(agreeing) > 1 or any(len(text) >= TELLING for text in agreeing)
    has_times = any(line.time is not None for line in log.lines)
    if not is_enough or len(agreeing) * 2 < len(shared) or (has_times and abs(offset) <= TOLERANCE):
        return log
    moved = tuple(
        line if (time := _moment(line)) is None else msgspec.structs.replace(line, time=time + offset)
        for line in log.lines
    )
    count = f"{len(agreeing)} lines" if len(agreeing) > 1 else "one line"
    how = (
        f"its clock was moved by {_duration(offset)}"
        if has_times
        else "its seconds since the boot were turned into times"
    )
    return Log(log.name, log.kind, moved, (*log.notes, f"{how}: {count} of it also stand in {reference.name}"))


def _moment(line: LogLine) -> float | None:
    """The time of a line; of a kernel line without one its seconds since the boot."""
    if line.time is not None:
        return line.time
    found = _BOOT_SECONDS.match(line.raw[:40])
    return float(found["seconds"]) if found is not None else None


def _once(said: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The times of the texts that occur once: what is said again and again has no time of its own."""
    times: dict[str, float | None] = {}
    for text, time in said:
        text = text.strip()
        if len(text) >= SHORTEST_SHARED and " " in text:
            times[text] = None if text in times else time
    return {text: time for text, time in times.items() if time is not None}


def _duration(seconds: float) -> str:
    """``+8 h``, ``-5 h 30 min``, ``+42.5 s``."""
    sign = "+" if seconds >= 0 else "-"
    size = abs(seconds)
    hours, rest = divmod(round(size), 3600)
    minutes, left = divmod(rest, 60)
    if not hours and not minutes:
        return f"{sign}{size:.1f} s"
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else "", f"{left} s" if left else ""]
    return sign + " ".join(part for part in parts if part)

"""Messages of several lines whose further lines journalctl indents to where the message begins.

Nov 29 10:07:46 gpu-host agent[2200]: engine died
                                      Traceback (most recent call last):
                                        File "/opt/serve.py", line 21, in load
"""

from __future__ import annotations

from gpuwhy.logs import stamps
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes import peel
from gpuwhy.model.event import LogLine

_HEAD = Pattern(
    rf"(?:{stamps.SYSLOG}|(?:[A-Z][a-z]{{2}} )?{stamps.ISO}(?: [A-Z]{{2,5}})?|\[ *\d{{1,8}}\.\d{{6}}[^\]]{{0,30}}\]|\d{{9,11}}\.\d{{6}})"
    r" [\w.-]{1,255} [\w@.:/\\()-]{1,120}(?:\[\d{1,10}\])?: "
)
_SHORTEST = " " * 16
_SAMPLE = 400


def inherited(lines: list[LogLine], reference: float) -> list[LogLine]:
    """``lines`` where each further line of a message has the process, time, level and unit of its first."""
    if not any(line.process is not None and line.process.host for line in lines[:_SAMPLE]):
        return lines
    result = lines
    first: LogLine | None = None
    margin = ""
    for at, line in enumerate(lines):
        if not line.raw.startswith(_SHORTEST):
            first = line
            margin = ""
            continue
        if first is None:
            continue
        if not margin:
            head = _HEAD.match(first.raw[:600])
            if head is None:
                first = None
                continue
            margin = " " * head.end()
        if not line.raw.startswith(margin):
            first = None
            continue
        if result is lines:
            result = list(lines)
        text, process, time, level = peel(line.raw[len(margin) :], reference)
        result[at] = LogLine(
            line.number, text, line.raw, process or first.process, time or first.time, level or first.level, first.unit
        )
    return result

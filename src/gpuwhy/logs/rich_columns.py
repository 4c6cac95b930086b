"""Logs of Rich's handler: columns for time, level, message and place; the time only when it is another one.

[11/30/26 07:41:17] INFO     engine starts                                        serve.py:66
                    ERROR    engine died                                          serve.py:69
                             Traceback (most recent call last):
                               File "/opt/app/serve.py", line 68,
                             in <module>
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.logs import stamps
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes.levels import NAMES, WORDS
from gpuwhy.model.event import LogLine

_RECORD = Pattern(
    rf"(?:\[(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d\d) (?P<clock>\d\d:\d\d:\d\d)\] | {{20}})(?P<level>{WORDS}) {{1,8}}(?=\S)"
)
_PLACE = Pattern(r"[\w./-]{1,120}\.\w{1,4}:\d{1,7}$")
_MARGIN = " " * 29
_SAMPLE = 400


def is_rich(raws: Sequence[str]) -> bool:
    """Whether one of the first lines has the handler's time and level, and its message in the column for it."""
    return any(raw[:1] == "[" and raw[3:4] == "/" and _is_record(raw) for raw in raws[:_SAMPLE])


def _is_record(raw: str) -> bool:
    found = _RECORD.match(raw[:60])
    return found is not None and found.end() == len(_MARGIN)


def _without_place(message: str) -> tuple[str, str]:
    """A record's first line and, from its last column, the place in the program."""
    text, _, last = message.rpartition(" ")
    return (text.rstrip(), last) if text and _PLACE.match(last[:200]) is not None else (message, "")


def read(raws: Sequence[str]) -> list[LogLine]:
    """The messages without their columns; words that the console moved to the next line are moved back."""
    lines: list[LogLine] = []
    time: float | None = None
    level = ""
    width = last = 0
    inside = False
    for number, raw in enumerate(raws, 1):
        found = _RECORD.match(raw[:60])
        if found is not None and found.end() == len(_MARGIN):
            if found["clock"]:
                time = stamps.from_iso(f"20{found['year']}-{found['month']}-{found['day']} {found['clock']}")
            level = NAMES[found["level"]]
            text, place = _without_place(raw[len(_MARGIN) :].rstrip())
            width = len(raw.rstrip()) - len(place) - 1 - len(_MARGIN) if place else 0
            lines.append(LogLine(number, text, raw, None, time, level))
            last = len(text)
            inside = True
        elif inside and raw.startswith(_MARGIN):
            text = raw[len(_MARGIN) :].rstrip()
            before = lines[-1]
            is_moved = text[:1] not in ("", " ") and last + 1 + len(text.split(" ", 1)[0]) > width > 0
            last = len(text)
            if is_moved:
                lines[-1] = LogLine(before.number, f"{before.text} {text}", before.raw, None, time, level)
            else:
                lines.append(LogLine(number, text, raw, None, time, level))
        else:
            inside = False
            lines.append(LogLine(number, raw, raw))
    return lines

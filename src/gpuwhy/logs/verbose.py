"""``journalctl -o verbose``: an entry is a line with its time and cursor, and its fields indented below it.

Sun 2026-11-29 10:07:46.001000 UTC [s=3dd77a3d;i=2;b=3f0c1d2e;m=abc7d868;t=6616776fbc468;x=83c461b3]
    _PID=2101
    _SYSTEMD_UNIT=sglang.service
    MESSAGE=engine died
            Traceback (most recent call last):
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from gpuwhy.logs.journal import entry_lines
from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import LogLine

_HEAD = Pattern(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} .{1,40}? \[s=[0-9a-f]{1,32};(?:.{0,160};)?t=(?P<time>[0-9a-f]{1,16})[;\]]")  # fmt: skip
_FIELD = Pattern(r"    (?P<key>[A-Z_][A-Z0-9_]{0,63})=(?P<value>.*)$")
_INNER = " " * len("    MESSAGE=")
_SAMPLE = 40


def is_verbose(raws: Sequence[str]) -> bool:
    """Whether one of the first lines begins an entry and a field follows it."""
    return any(
        "[s=" in head and _HEAD.match(head[:400]) is not None and _FIELD.match(field) is not None
        for head, field in pairwise(raws[:_SAMPLE])
    )


def read(raws: Sequence[str], reference: float) -> list[LogLine]:
    """The message of every entry, under the number of the line that it stands on; other lines as they are."""
    lines: list[LogLine] = []
    entry: dict[str, str] = {}
    message: list[str] = []
    begins = 0
    key = ""

    def end_entry() -> None:
        for offset, part in enumerate(message):
            for line in entry_lines(begins + offset, entry, part, reference):
                lines.append(msgspec.structs.replace(line, raw=raws[begins + offset - 1]))
        entry.clear()
        message.clear()

    for number, raw in enumerate(raws, 1):
        head = _HEAD.match(raw[:400]) if "[s=" in raw else None
        if head is not None:
            end_entry()
            entry["__REALTIME_TIMESTAMP"] = str(int(head["time"], 16))
            key = ""
            continue
        field = _FIELD.match(raw) if entry else None
        if field is not None:
            key = field["key"]
            if key == "MESSAGE" and not message:
                begins = number
                message.append(field["value"])
            else:
                entry.setdefault(key, field["value"])
        elif entry and key == "MESSAGE" and raw.startswith(_INNER):
            message.append(raw[len(_INNER) :])
        elif entry and key and raw.startswith("        "):
            pass  # a further line of a field that is no message
        else:
            end_entry()
            key = ""
            lines.append(LogLine(number, raw, raw))
    end_entry()
    return lines

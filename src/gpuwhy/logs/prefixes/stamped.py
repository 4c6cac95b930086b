"""Prefixes that begin with a time.

2025-10-30T21:54:45.622419515Z stdout F ...       containerd, kubectl --timestamps, docker logs -t
2025-07-29 00:56:18,372 - flashinfer.jit - INFO - ...      Python logging
2024-01-01 12:00:00.123 | ERROR    | mod:fn:42 - ...       loguru
2020-06-29 22:20:24.223690: I tensorflow/stream_executor/x.cc:42] ...
2026-11-29T10:07:46+0000 gpu-host sglang[123]: ...         journalctl -o short-iso
18:03:03  kernel: NVRM: ...
0.17.512.848 E CUDA error: ...                             llama.cpp
"""

from __future__ import annotations

from gpuwhy.logs import stamps
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.levels import NAMES, WORDS
from gpuwhy.logs.prefixes.words import IDENT, ident_process

_STAMP = Pattern(
    rf"(?P<iso>{stamps.ISO})|\d\d:\d\d:\d\d(?:[.,]\d+)?(?= )|(?P<llama>\d+\.\d\d\.\d{{3}}\.\d{{3}}) (?P<letter>[IWEDF]) "
)
_AFTER = Pattern(
    r" (?:stdout|stderr) [FP] ?"
    rf"| - (?P<l1>{WORDS}) - (?:[\w.]+ - )?"
    rf"| - [\w./ :<>-]{{1,100}}? - (?P<l2>{WORDS}) - "
    rf"| *\| *(?P<l3>{WORDS}) *\| *(?:[^|\s]{{1,160}}:\d+ - )?"
    r"|: (?P<l4>[IWEF]) [\w./-]+:\d+\] ?"
    rf"| \[(?P<l5>{WORDS})\](?: \[[^\]]{{1,80}}\])? ?"
    rf"|[ ,]+(?P<l6>{WORDS})(?= +[\[\w(])(?= +\[|  ?\d{{2,7}} \[| +[\w.$]+:| )"
)
_SYSLOG = Pattern(rf" (?P<host>[\w.-]+) {IDENT}")
LONGEST = 300


def peel(text: str, _reference: float) -> Peeled | None:
    head = text[:LONGEST]
    found = _STAMP.match(head)
    if found is None:
        return None
    if found["llama"]:
        return text[found.end() :], None, None, NAMES[found["letter"]]
    end = found.end()
    time = stamps.from_iso(found["iso"]) if found["iso"] else None
    after = _AFTER.match(head, end)
    if after is not None:
        word = after.lastgroup
        if word == "l6":  # the level family knows what may follow its word
            return text[after.start("l6") :], None, time, ""
        return text[after.end() :], None, time, NAMES[after[word]] if word else ""
    syslog = _SYSLOG.match(head, end)
    if syslog is not None:
        return text[syslog.end() :], ident_process(syslog["ident"], syslog["pid"], syslog["host"]), time, ""
    rest = text[end:]
    if found["iso"] is None:
        return rest.lstrip(" "), None, None, ""
    if rest.startswith((" ", ":", "]", ",")):
        return rest[2:] if rest.startswith(": ") else rest[1:], None, time, ""
    return (rest, None, time, "") if not rest else None

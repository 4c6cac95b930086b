"""Prefixes that begin with a priority: syslog as it travels, and what `dmesg --raw` and services write.

<34>Nov 29 10:07:46 gpu-host sglang[2101]: ...                          RFC 3164
<165>1 2026-11-29T10:07:46.003Z gpu-host sglang 2101 ID47 [a@1 b="c"] ...   RFC 5424
<3>[ 2882.100153] NVRM: Xid ...                                         kernel
"""

from __future__ import annotations

from gpuwhy.logs import stamps
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.words import ident_process
from gpuwhy.model.event import Process

_PRIORITY = Pattern(r"<(?P<priority>\d{1,3})>(?=\S)")
_RFC5424 = Pattern(
    rf"1 (?P<stamp>{stamps.ISO}|-) (?P<host>[!-~]{{1,255}}) (?P<name>[!-~]{{1,48}}) (?P<pid>[!-~]{{1,128}}) [!-~]{{1,32}} "
    r'(?:-|(?:\[[!-~]{1,32}(?: [!-~]{1,32}="(?:[^"\\\]]|\\.){0,400}"){0,16}\]){1,8})(?: \ufeff?|$)'
)
LEVELS = ("critical", "critical", "critical", "error", "warning", "info", "info", "debug")
_MOST = 191
_LONGEST = 2000


def peel(text: str, _reference: float) -> Peeled | None:
    found = _PRIORITY.match(text[:6])
    if found is None or int(found["priority"]) > _MOST:
        return None
    level = LEVELS[int(found["priority"]) % 8]
    rest = text[found.end() :]
    record = _RFC5424.match(rest[:_LONGEST]) if rest.startswith("1 ") else None
    if record is None:
        return rest, None, None, level
    time = stamps.from_iso(record["stamp"]) if record["stamp"] != "-" else None
    return rest[record.end() :], _writer(record["name"], record["pid"], record["host"]), time, level


def _writer(name: str, pid: str, host: str) -> Process | None:
    """``-`` stands for what the sender does not know."""
    number = pid if pid.isascii() and pid.isdigit() and len(pid) < 11 else None
    named = "" if name == "-" else name
    at = "" if host == "-" else host
    return ident_process(named, number, at) if named or number or at else None

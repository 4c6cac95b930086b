"""Prefixes that begin with a time.

2025-10-30T21:54:45.622419515Z stdout F ...       containerd, kubectl --timestamps, docker logs -t
2025-07-29 00:56:18,372 - flashinfer.jit - INFO - ...      Python logging
2026-11-30 07:41:17,212 [10408] INFO vllm.engine: ...      with the process id, or with the thread's name
2026-11-30 07:41:31,721\tINFO worker.py:2038 -- ...        Ray
2026-11-30 07:41:16 [error    ] engine died   rank=3       structlog
2026-11-29T10:07:46.123Z\tERROR\tapp/main.go:12\t...       zap
2024-01-01 12:00:00.123 | ERROR    | mod:fn:42 - ...       loguru
2020-06-29 22:20:24.223690: I tensorflow/stream_executor/x.cc:42] ...
2026-11-29T10:07:46+0000 gpu-host sglang[123]: ...         journalctl -o short-iso
2026-11-29T10:07:46.123456+00:00 gpu-host sglang: ...      rsyslog
1795946866.001000 gpu-host sglang[123]: ...                journalctl -o short-unix
18:03:03  kernel: NVRM: ...
0.17.512.848 E CUDA error: ...                             llama.cpp
"""

from __future__ import annotations

from gpuwhy.logs import stamps
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.levels import NAMES, WORDS
from gpuwhy.logs.prefixes.words import HOST_IDENT, ident_process
from gpuwhy.model.event import Process

_STAMP = Pattern(
    rf"(?P<iso>{stamps.ISO})|\d\d:\d\d:\d\d(?:[.,]\d+)?(?= )|(?P<llama>\d+\.\d\d\.\d{{3}}\.\d{{3}}) (?P<letter>[IWEDF]) "
    r"|(?P<unix>\d{9,11}\.\d{6})(?= )"
)
_SEPARATORS = {" >> ": 4}
THREAD = r"MainThread|MainProcess|(?:Thread|Dummy|Process|ForkPoolWorker|asyncio)[-_]\d{1,7}(?: \([\w.<>]{1,60}\))?|\w{1,30}(?:Process|Executor)-[\d_:]{1,12}"
_AFTER = Pattern(
    r" (?:stdout|stderr) [FP](?::[\w-]{1,40})? ?"
    rf"| - (?P<l1>{WORDS}) - (?:[\w.]+ - )?"
    rf"| - [\w./ :<>-]{{1,100}}? - \[?(?P<l2>{WORDS})\]? - "
    rf"| *\| *(?P<l3>{WORDS}) *\| *(?:[^|\s]{{1,160}}:\d+ - |[\w.]{{1,80}} \| )?"
    r"|: (?P<l4>[IWEF]) [\w./-]+:\d+\] ?"
    rf"| \[(?P<l5>{WORDS})\](?: \[[^\]]{{1,80}}\])? ?"
    r"| \[(?P<l7>debug|info|warning|error|critical) {0,8}\] "
    r"|\t(?P<l8>(?i:debug|info|warn|error|dpanic|panic|fatal))\t(?:[\w./-]{1,160}\.go:\d{1,6}\t)?"
    rf"|,(?P<l9>{WORDS}),[\w.]{{1,80}},"
    rf"|[ ,\t]+(?P<l6>{WORDS})(?= +[\[\w(])(?= +\[|  ?\d{{2,7}} \[| +[\w.$]+:| )"
)
_WRITER = Pattern(
    rf" (?:\[?(?P<pid>\d{{1,8}})\]?|\[?(?:{THREAD})\]?) (?=\[?(?:{WORDS})[\]: ])"
    r"| [\w.]{1,60} (?P<django>\d{1,8}) \d{12,16} "
)
_RSYSLOG = Pattern(r" (?P<host>(?=[\w.-]*[\d.-])[\w.-]{1,255}) (?P<ident>[A-Za-z_][\w@./-]{0,47}): ")
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
        return text[after.end() :], None, time, NAMES[after[word].upper()] if word else ""
    syslog = HOST_IDENT.match(head, end)
    if syslog is not None:
        time = float(found["unix"]) if found["unix"] else time
        return text[syslog.end() :], ident_process(syslog["ident"], syslog["pid"], syslog["host"]), time, ""
    if found["unix"]:
        return None
    writer = _WRITER.match(head, end)
    if writer is not None:
        pid = writer["pid"] or writer["django"]
        return text[writer.end() :], Process(pid=int(pid)) if pid else None, time, ""
    if found["iso"] and found["iso"][-6] in "+-":  # rsyslog prints an offset, never a Z
        rsyslog = _RSYSLOG.match(head, end)
        if rsyslog is not None:
            return text[rsyslog.end() :], ident_process(rsyslog["ident"], None, rsyslog["host"]), time, ""
    rest = text[end:]
    if found["iso"] is None:
        return rest.lstrip(" "), None, None, ""
    if rest.startswith((" ", ":", "]", ",")):
        return rest[_SEPARATORS.get(rest[:4], 2 if rest.startswith(": ") else 1) :], None, time, ""
    return (rest, None, time, "") if not rest else None

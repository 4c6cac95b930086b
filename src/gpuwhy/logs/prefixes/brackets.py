"""Prefixes in square brackets.

[rank0]: Traceback ...            torchrun and torch.distributed; the name may be any role: [trainer3]:, [default0]:
[2026-11-29 10:07:46 TP0] ...     SGLang
[ 2882.100153] ...                kernel ring buffer; [Thu Aug 27 00:39:44 2026] with readable times
[E901 04:21:02 ProcessGroupNCCL.cpp:685] ...    c10
[11/10/2023-11:41:34] [TRT-LLM] [I] ...         TensorRT-LLM
[INFO] ... [TP0] ...
"""

from __future__ import annotations

import functools

from gpuwhy.logs import stamps
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.levels import NAMES, WORDS
from gpuwhy.logs.prefixes.parentheses import rank_in
from gpuwhy.model.event import Process

_PREFIX = Pattern(
    rf"\[(?P<iso>{stamps.ISO})(?P<ranks>(?: (?:[A-Z]{{2,4}}\d+|[a-z_]+\d*))*)\] ?"
    r"|\[(?P<role>[A-Za-z][A-Za-z_]*?-?)(?P<rank>\d{1,6})(?:\|\d+)?\]: ?"
    r"|\[(?P<parallel>(?:[DTEP]P\d+)(?: [DTEP]P\d+)*)\]:? ?"
    rf"|\[(?P<ctime>{stamps.CTIME})\] ?"
    r"|\[ *(?P<boot>\d{1,8}\.\d{6})\](?: ?\[ *[TC]\d+\])? ?(?:<\d>)?"
    r"|\[(?P<letter>[IWEF])(?P<day>\d{3,4}) (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)? [^\]]{1,120}\] ?"
    r"|\[(?P<bare>[IWEF]) [\w./-]{1,100}:\d+\] ?"
    r"|\[(?P<us>\d\d/\d\d/\d{4})-(?P<usclock>\d\d:\d\d:\d\d)\] ?"
    rf"|\[(?P<level>{WORDS})\](?: ?\[[\w./-]+:\d+\])?:? ?"
    r"|\[TRT-LLM\] \[(?P<trt>[IWEFDV])\] ?"
)
LONGEST = 200


def peel(text: str, reference: float) -> Peeled | None:
    found = _PREFIX.match(text[:LONGEST])
    if found is None:
        return None
    rest = text[found.end() :]
    kind = found.lastgroup
    if kind == "ranks":
        return rest, _ranks(found["ranks"].strip()), stamps.from_iso(found["iso"]), ""
    if kind == "rank":
        return rest, _role(found["role"], found["rank"]), None, ""
    if kind == "parallel":
        return rest, _ranks(found["parallel"]), None, ""
    if kind == "ctime":
        return rest, None, stamps.from_ctime(found["ctime"]), ""
    if kind == "boot":
        return rest, None, None, ""
    if kind == "clock":
        day = found["day"].zfill(4)
        time = stamps.from_month_day(f"{day[:2]}-{day[2:]} {found['clock']}", reference)
        return rest, None, time, NAMES[found["letter"]]
    if kind == "usclock":
        month, day, year = found["us"].split("/")
        return rest, None, stamps.from_iso(f"{year}-{month}-{day} {found['usclock']}"), ""
    letter = found["bare"] or found["trt"] or found["level"]
    return rest, None, None, NAMES.get(letter, "")


@functools.lru_cache(maxsize=1024)
def _ranks(names: str) -> Process | None:
    return Process(name=names, rank=rank_in(names)) if names else None


@functools.lru_cache(maxsize=1024)
def _role(role: str, rank: str) -> Process:
    return Process(name=f"{role}{rank}", rank=int(rank))

"""Prefixes that begin with a word.

Feb 24 09:28:18 node-1 systemd[1]: ...        syslog, journalctl
Sun 2026-11-29 10:07:46 UTC node-1 sglang[123]: ...   journalctl -o short-full, -o with-unit
vllm.engine - INFO - ...                      Python logging
nv-fabricmanager[3228]: ...                   the same, its time and host cut off
kernel: NVRM: ...
node23:12098:12141 [2] transport/nvls.cc:244 NCCL WARN ...
Worker_TP0 ERROR ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from gpuwhy.logs import stamps
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.levels import NAMES, WORDS
from gpuwhy.logs.prefixes.parentheses import rank_in
from gpuwhy.model.event import Process

TAG = r"(?!\w{0,48}(?:Error|Exception|Warning): )[A-Za-z_][\w@./-]{0,47}"
"""A program's name without its process id, as RFC 3164 has it."""
IDENT = r"(?P<ident>kernel|[A-Za-z_][\w@.:/\\-]{0,80}(?=\[\d+\]: ))(?:\[(?P<pid>\d{1,10})\])?: ?"
HOST_IDENT = Pattern(rf" (?P<host>[\w.-]+) {IDENT}")
_SYSLOG = Pattern(rf"(?P<stamp>{stamps.SYSLOG}) (?P<host>[\w.-]+) (?:{IDENT}|(?P<tag>{TAG}): ?)?")
_FULL = Pattern(rf"[A-Z][a-z]{{2}} (?P<stamp>{stamps.ISO})(?: [A-Z][A-Z0-9+-]{{1,5}})?(?= )")
_NAMED = Pattern(rf"[\w.]{{1,80}} - (?P<level>{WORDS}) - ")
_IDENT = Pattern(IDENT)
_NCCL = Pattern(
    r"(?P<host>[\w.-]{1,100}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) \[-?\d{1,4}\] (?=(?:[\w./-]+:\d+ )?NCCL |\S)"
)
_WORKER = Pattern(rf"(?P<name>(?:Vllm)?Worker[\w-]*|EngineCore\w*|APIServer\w*) (?=(?:{WORDS})[ :])")
_NOT_PROGRAMS = frozenset({"make", "gmake"})
"""``make[2]: ***`` counts its own depth."""
_ABOUT_PROCESS = ("segfault at", "general protection", "trap ")
"""What the kernel says about a process, whose name and id it puts where loggers put the writer's."""
LONGEST = 300


def peel(text: str, reference: float) -> Peeled | None:
    known = _BY_BEGINNING.get(text[:3])
    if known is not None:
        found = known(text, reference)
        if found is not None:
            return found
    space = text.find(" ", 0, 120)
    word = text[:space] if space > 0 else text[:120]
    if ":" in word:
        if word.endswith(":"):
            return _peel_ident(text) if word == "kernel:" or word.endswith("]:") else None
        return _peel_nccl(text) if word.count(":") == 2 else None
    if text.startswith("- ", space + 1):
        named = _NAMED.match(text[:LONGEST])
        return (text[named.end() :], None, None, NAMES[named["level"]]) if named is not None else None
    return None


def _peel_syslog(text: str, reference: float) -> Peeled | None:
    found = _SYSLOG.match(text[:LONGEST])
    if found is None:
        return None
    process = ident_process(found["ident"] or found["tag"] or "", found["pid"], found["host"])
    return text[found.end() :], process, stamps.from_syslog(found["stamp"], reference), ""


def _peel_worker(text: str, _reference: float) -> Peeled | None:
    found = _WORKER.match(text[:LONGEST])
    return (text[found.end() :], _named(found["name"]), None, "") if found is not None else None


def _peel_ident(text: str) -> Peeled | None:
    found = _IDENT.match(text[:LONGEST])
    if found is None or found["ident"] in _NOT_PROGRAMS or text.startswith(_ABOUT_PROCESS, found.end()):
        return None
    return text[found.end() :], ident_process(found["ident"], found["pid"], ""), None, ""


def _peel_nccl(text: str) -> Peeled | None:
    found = _NCCL.match(text[:LONGEST])
    if found is None:
        return None
    return text[found.end() :], _nccl(found["host"], found["pid"]), None, _nccl_level(text, found.end())


def _peel_full(text: str, _reference: float) -> Peeled | None:
    head = text[:LONGEST]
    found = _FULL.match(head)
    if found is None:
        return None
    writer = HOST_IDENT.match(head, found.end())
    if writer is None:
        return None
    process = ident_process(writer["ident"], writer["pid"], writer["host"])
    return text[writer.end() :], process, stamps.from_iso(found["stamp"]), ""


@functools.lru_cache(maxsize=1024)
def ident_process(ident: str, pid: str | None, host: str) -> Process:
    return Process(name=ident, pid=int(pid) if pid else None, host=host)


@functools.lru_cache(maxsize=1024)
def _nccl(host: str, pid: str) -> Process:
    return Process(pid=int(pid), host=host)


@functools.lru_cache(maxsize=1024)
def _named(name: str) -> Process:
    return Process(name=name, rank=rank_in(name))


def _nccl_level(text: str, at: int) -> str:
    start = text.find("NCCL ", at, at + 120)
    if start < 0:
        return ""
    return {"WARN": "warning", "INFO": "info", "ERRO": "error", "TRAC": "debug"}.get(text[start + 5 : start + 9], "")


_BY_BEGINNING: dict[str, Callable[[str, float], Peeled | None]] = {
    **dict.fromkeys(("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), _peel_syslog),
    **dict.fromkeys(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"), _peel_full),
    **dict.fromkeys(("Wor", "Eng", "API", "Vll"), _peel_worker),
}

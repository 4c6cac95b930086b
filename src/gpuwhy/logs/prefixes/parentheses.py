"""Process names in parentheses: vLLM, Ray, and engines that run inside either.

(EngineCore_DP0 pid=88) INFO ...
(Worker pid=1360049) (Worker_TP3 pid=1360049) ERROR ...
(VllmWorker rank=6 pid=1410773) ERROR ...
(ServeReplica:app:LLMDeployment pid=4288, ip=192.0.2.6) Traceback ...
(RayWorkerWrapper pid=556) ... [repeated 7x across cluster]
(raylet) ...
(MyActor(1) pid=88) ...
"""

from __future__ import annotations

import functools
import re

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.model.event import Process

LONGEST_NAME = 160
_NAME = Pattern(r"[A-Za-z_][\w.:/<>@()-]{0,160}$")
_FIELD = Pattern(r"(?:^|[ ,])(pid|rank|ip|local_rank|node_id)=([\w.:-]+)")
_WITHOUT_PID = Pattern(
    r"(?:raylet|autoscaler|EngineCore|Worker|VllmWorker|APIServer|ApiServer|Engine|Scheduler|StageEngineCore|DPCoordinator|LMCache)"
    r"(?:[A-Z_]\w*)?(?:[ ,+].*)?$|MainProcess$|MainThread$|(?:Thread|\w{0,30}Process)-\d{1,7}$|pid=\w{1,40}$"
)
_RANK = Pattern(r"(?:TP|rank|Worker-|tp|trainer|default)_?(\d+)")
_REPEATED = Pattern(r" \[repeated \d+x across cluster\](?: \(Ray deduplicates logs.{0,600})?$")


def peel(text: str, _reference: float) -> Peeled | None:
    end = text.find(")", 1, LONGEST_NAME)
    if end < 0:
        return None
    inside = text[1:end]
    if "(" in inside:
        end = text.find(")", end + 1, LONGEST_NAME)
        inside = text[1:end]
        if end < 0:
            return None
    process = _process(inside)
    if process is None:
        return None
    rest = text[end + 1 :]
    if rest[:1] == " ":
        rest = rest[1:]
    elif rest:
        return None
    if " across cluster]" in rest:
        rest = _REPEATED.sub("", rest)
    return rest, process, None, ""


@functools.lru_cache(maxsize=2048)
def _process(inside: str) -> Process | None:
    fields = dict(_FIELD.findall(inside))
    name = re.split(r"[ ,]", inside, maxsplit=1)[0].removeprefix("pid=")
    if not _NAME.match(name):
        return None
    if "pid" not in fields and "rank" not in fields and not _WITHOUT_PID.match(inside):
        return None
    rank = fields.get("rank", "")
    return Process(
        name=name,
        pid=_number(fields.get("pid", "")),
        rank=int(rank) if rank.isascii() and rank.isdigit() and len(rank) < 7 else rank_in(name),
        host=fields.get("ip", ""),
    )


def rank_in(name: str) -> int | None:
    """The rank that a process name carries: ``Worker_TP3``, ``TP3``, ``rank3``, ``VllmWorker-3``."""
    found = _RANK.search(name)
    return int(found.group(1)) if found and len(found.group(1)) < 7 else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


@functools.lru_cache(maxsize=4096)
def more_specific(outer: Process, inner: Process) -> Process:
    """Both prefixes name the writer; the inner one was put there by the program itself and knows better."""
    return Process(
        name=inner.name or outer.name,
        pid=inner.pid if inner.pid is not None else outer.pid,
        rank=inner.rank if inner.rank is not None else outer.rank,
        host=inner.host or outer.host,
    )

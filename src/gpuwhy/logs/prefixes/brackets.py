"""Prefixes in square brackets.

[rank0]: Traceback ...            torchrun and torch.distributed; the name may be any role: [trainer3]:, [default0]:
[2026-11-29 10:07:46 TP0] ...     SGLang
[ 2882.100153] ...                kernel ring buffer; [Thu Aug 27 00:39:44 2026] with readable times
[ 2882.100153] gpu-host sglang[2101]: ...       journalctl -o short-monotonic, -o short-delta
[pod/vllm-0/server] ...           kubectl logs --prefix
[1,3]<stderr>:...                 mpirun --tag-output; [gpu-host:4711] *** Process received signal *** of Open MPI
[2026-11-29 10:07:46,123 E 4711 4720] (raylet) node_manager.cc:3065: ...    Ray's C++ side
[2026-11-29 10:07:46,123: ERROR/ForkPoolWorker-1] ...                       Celery
[2026-11-29 10:07:46 +0000] [4711] [ERROR] ...                              Gunicorn
[2026-11-29 10:07:46,123][vllm.engine][ERROR] - ...                         Hydra
[2026-11-29T10:07:46Z ERROR router] ...                                     Rust's env_logger
[INFO|trainer.py:45] 2026-11-30 07:41:17,215 >> ...                         Transformers
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
from gpuwhy.logs.prefixes.words import HOST_IDENT, ident_process
from gpuwhy.model.event import Process

_TIME = Pattern(
    rf"\[(?P<iso>{stamps.ISO})(?P<ranks>(?: (?:[A-Z][A-Z_]{{1,15}}\d+|[a-z_]+(?:=?\d+)?))*)\] ?"
    r"|\[ *(?P<boot>\d{1,8}\.\d{6})(?: (?:<[ \d.]{1,16}>| {1,20}))?\](?: ?\[ *[TC]\d+\])? ?(?:<\d>)?"
    r"|\[(?P<us>\d\d/\d\d/\d{4})-(?P<usclock>\d\d:\d\d:\d\d)\] ?"
    r"|\[\d{1,6},(?P<mpi>\d{1,6})\]<std(?:out|err|diag)>:(?: (?! ))?"
)
_NAME = Pattern(
    r"\[(?P<role>[A-Za-z][A-Za-z_]*?-?)(?P<rank>\d{1,6})(?:\|\d+)?\]: ?"
    r"|\[(?P<parallel>(?:[DTEP]P\d+)(?: [DTEP]P\d+)*)\]:? ?"
    rf"|\[(?P<ctime>{stamps.CTIME})\] ?"
    r"|\[ *(?P<boot>\d{1,8}\.\d{6})(?: (?:<[ \d.]{1,16}>| {1,20}))?\](?: ?\[ *[TC]\d+\])? ?(?:<\d>)?"
    r"|\[(?P<letter>[IWEF])(?P<day>\d{3,4}) (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)? [^\]]{1,120}\] ?"
    r"|\[(?P<bare>[IWEF]) [\w./-]{1,100}:\d+\] ?"
    rf"|\[(?P<level>{WORDS})\](?: ?\[[\w./-]+:\d+\])?:? ?"
    r"|\[TRT-LLM\] (?:\[RANK (?P<trtrank>\d{1,6})\] )?\[(?P<trt>[IWEFDV])\] ?"
    r"|\[(?P<trtcore>[IWEFDV])\] \[TRT\] ?"
    r"|\[pod/(?P<pod>[a-z0-9.-]{1,253})/(?P<container>[a-z0-9-]{1,63})\] ?"
    r"|\[(?P<host>[\w.-]{1,80}):(?P<pid>\d{2,8})\] (?=\*\*\* |\[ ?\d{1,3}\] |Signal|Failing|Associated)"
    rf"|\[(?P<lined>{WORDS})\|[\w./-]{{1,100}}:\d{{1,7}}\] ?"
)
_STAMPED = Pattern(
    rf"\[(?P<iso>{stamps.ISO})(?:: (?P<celery>{WORDS})/(?P<name>[\w.-]{{1,60}})\] ?"
    rf"|,? (?P<letter>[DIWEFC]) (?P<pid>\d{{1,9}}) \d{{1,9}}\] ?(?:\((?P<part>[\w.-]{{1,40}})\) ?)?(?:[\w./-]{{1,100}}\.cc:\d{{1,7}}: )?"
    rf"| (?P<rust>{WORDS}) {{1,2}}[\w:]{{1,100}}\] ?)"
)
_BEHIND_STAMP = Pattern(
    rf"\[(?P<pid>\d{{1,8}})\] ?(?=\[(?:{WORDS})\])"
    rf"|\[[\w.<>-]{{1,80}}\] ?\[(?P<l1>{WORDS})\](?: - | ?)"
    rf"|\[(?P<l2>{WORDS})\] ?\[[\w./:<>-]{{1,120}}\] ?"
    rf"|(?P<l3>{WORDS}) in [\w.]{{1,80}}: "
)
LONGEST = 200


def peel(text: str, reference: float) -> Peeled | None:
    is_time = text[1:2].isdigit()
    found = (_TIME if is_time else _NAME).match(text[:LONGEST])
    if found is None:
        return _peel_stamped(text) if is_time else None
    rest = text[found.end() :]
    kind = found.lastgroup
    if kind == "ranks":
        ranks = found["ranks"]
        if not ranks and (rest[:1] == "[" or rest[:2].isupper()):
            return _behind_stamp(rest, stamps.from_iso(found["iso"]))
        return rest, _ranks(ranks.strip()), stamps.from_iso(found["iso"]), ""
    if kind == "rank":
        return rest, _role(found["role"], found["rank"]), None, ""
    if kind == "parallel":
        return rest, _ranks(found["parallel"]), None, ""
    if kind == "ctime":
        return rest, None, stamps.from_ctime(found["ctime"]), ""
    if kind == "boot":
        writer = HOST_IDENT.match(f" {rest[:LONGEST]}")
        if writer is None:
            return rest, None, None, ""
        return rest[writer.end() - 1 :], ident_process(writer["ident"], writer["pid"], writer["host"]), None, ""
    if kind == "clock":
        day = found["day"].zfill(4)
        time = stamps.from_month_day(f"{day[:2]}-{day[2:]} {found['clock']}", reference)
        return rest, None, time, NAMES[found["letter"]]
    if kind == "usclock":
        month, day, year = found["us"].split("/")
        return rest, None, stamps.from_iso(f"{year}-{month}-{day} {found['usclock']}"), ""
    if kind == "container":
        return rest, _container(found["container"], found["pod"]), None, ""
    if kind == "mpi":
        return rest, _role("task ", found["mpi"]), None, ""
    if kind == "pid":
        return rest, ident_process("", found["pid"], found["host"]), None, ""
    process = _role("rank", found["trtrank"]) if found["trtrank"] else None
    return rest, process, None, NAMES.get(found[kind or ""], "")


def _peel_stamped(text: str) -> Peeled | None:
    """The time and more between the same brackets."""
    found = _STAMPED.match(text[:LONGEST])
    if found is None:
        return None
    process = None
    if found["name"]:
        process = Process(name=found["name"])
    elif found["pid"]:
        process = Process(name=found["part"] or "", pid=int(found["pid"]))
    level = NAMES[found["celery"] or found["letter"] or found["rust"]]
    return text[found.end() :], process, stamps.from_iso(found["iso"]), level


def _behind_stamp(rest: str, time: float | None) -> Peeled:
    """What Python loggers put behind a time in brackets."""
    found = _BEHIND_STAMP.match(rest[:LONGEST])
    if found is None:
        return rest, None, time, ""
    if found["pid"]:
        return rest[found.end() :], Process(pid=int(found["pid"])), time, ""
    return rest[found.end() :], None, time, NAMES[found[found.lastgroup or ""]]


@functools.lru_cache(maxsize=1024)
def _ranks(names: str) -> Process | None:
    return Process(name=names, rank=rank_in(names)) if names else None


@functools.lru_cache(maxsize=1024)
def _container(name: str, pod: str) -> Process:
    return Process(name=name, host=pod)


@functools.lru_cache(maxsize=1024)
def _role(role: str, rank: str) -> Process:
    return Process(name=f"{role}{rank}", rank=int(rank))

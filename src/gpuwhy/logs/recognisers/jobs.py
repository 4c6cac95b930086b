"""Launchers and schedulers that tell how a process of theirs ended: Slurm, MPI, torchrun, Ray.

slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.0. Some of your processes may have been killed by the cgroup out-of-memory handler.
slurmstepd: error: *** JOB 4711 ON node1 CANCELLED AT 2025-08-12T10:00:00 DUE TO TIME LIMIT ***
mpirun noticed that process rank 3 with PID 0 on node node1 exited on signal 9 (Killed).
  exitcode  : -9 (pid: 4711)
(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: ...)
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "slurmstepd", "srun: ", "oom-kill event", "oom_kill event", "mpirun noticed", "mpiexec noticed", "exitcode  :", "killed due to memory pressure", "running low on memory", "exited on signal",
    "Out Of Memory", "DUE TO ",
)  # fmt: skip
_OOM = Pattern(
    r"Detected \d{1,9} oom[-_]kill events?|(?<!0 )Workers \(tasks / actors\) killed due to memory pressure|killed due to the node running low on memory|srun: error: .{1,120}: Out Of Memory"
)
_CANCELLED = Pattern(
    r"\*\*\* (?:JOB|STEP) (?P<job>[\d.]{1,30}) ON (?P<node>\S{1,100}) CANCELLED AT \S{1,40} DUE TO (?P<why>[\w ]{1,60}?) \*\*\*"
)
_SIGNAL = Pattern(r"exited on signal (?P<signal>\d{1,2})\b")
_RANK = Pattern(r"process rank (?P<rank>\d{1,6})")
_TORCHRUN = Pattern(r"^\s*exitcode\s{1,4}: (?P<code>-?\d{1,4}) \(pid: (?P<pid>\d{1,10})\)")
LONGEST = 2000


def recognise(text: str, level: str = "") -> Recognised | None:
    shown = text[:LONGEST]
    if level in ("info", "debug"):
        return None
    if _OOM.search(shown):
        return Recognised("death", "memory", {"signal": "9", "result": "oom-kill"}, is_fatal=True)
    found = _CANCELLED.search(shown)
    if found is not None:
        detail = {"job": found["job"], "node": found["node"], "result": found["why"].lower()}
        return Recognised("death", "slurm", detail, is_fatal=True)
    found = _SIGNAL.search(shown)
    if found is not None:
        rank = _RANK.search(shown)
        detail = {"signal": found["signal"]} | ({"rank": rank["rank"]} if rank is not None else {})
        return Recognised("death", "mpi", detail, is_echo=True, is_fatal=True)
    found = _TORCHRUN.match(shown)
    if found is None or found["code"] == "0":
        return None
    code = int(found["code"])
    detail = {"exit_code": str(code), "pid": found["pid"]} | ({"signal": str(-code)} if code < 0 else {})
    return Recognised("death", "torchrun", detail, is_echo=True, is_fatal=True)

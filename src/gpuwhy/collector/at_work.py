"""The processes that matter to a service on GPUs: engines and their workers, and compilers of kernels.

Both halves count: that no compiler runs tells a stale lock from a slow build.
"""

import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector.probing import Notes, Request
from gpuwhy.collector.process import ENGINE, all_processes, arguments, cgroup_members, status_of
from gpuwhy.collector.reading import try_text
from gpuwhy.collector.running import account_of, is_engine

COMPILERS = re.compile(r"^(?:nvcc|cicc|ptxas|cudafe\+\+|fatbinary|nvlink|cc1plus|cc1|clang(?:\+\+)?(?:-\d+)?|ninja|c\+\+|g\+\+|gcc|ld|hipcc|cmake|make)$")  # fmt: skip

OTHERS = re.compile(r"^(?:ray::|raylet|gcs_server|nvidia-persiste|nv-fabricmanage|nvidia-cuda-mps|dcgm|nv-hostengine|torchrun|mpirun|orted|srun)")  # fmt: skip

MOST = 200


def at_work(_request: Request, notes: Notes, unit: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """``processes``: number, parent, account, seconds since its start, seconds of CPU, state and command of each."""
    members = set(cgroup_members(str(((unit or {}).get("properties") or {}).get("ControlGroup", ""))))
    ticks = os.sysconf("SC_CLK_TCK")
    uptime = float((try_text("/proc/uptime", 100) or "0").split()[0])
    found: List[Dict[str, Any]] = []
    for pid in all_processes():
        command = arguments(pid)
        if pid == os.getpid() or not command:
            continue
        if (pid in members or matters(command)) and len(found) < MOST:
            found.append(_described(pid, command, ticks, uptime))
    notes.source("/proc/*/cmdline")
    return {"processes": found, "complete": len(found) < MOST}


def matters(command: List[str]) -> bool:
    """Whether a command line is that of an engine, of a part of one, or of a compiler."""
    name = os.path.basename(command[0])
    title = command[0][:200]
    is_part = bool(ENGINE.search(title.lower())) and "/" not in title
    return bool(COMPILERS.match(name) or OTHERS.match(name) or is_part) or is_engine(command)


def _described(pid: int, command: List[str], ticks: int, uptime: float) -> Dict[str, Any]:
    status = status_of(pid)
    fields = (try_text("/proc/%d/stat" % pid, 4096) or "").rpartition(")")[2].split()
    # state, parent ... 11: user time, 12: system time, 19: start, in ticks since boot
    has_times = len(fields) > 19 and fields[11].isdigit() and fields[12].isdigit() and fields[19].isdigit()
    return {
        "pid": pid,
        "parent": int(status["PPid"]) if status.get("PPid", "").isdigit() else None,
        "user": account_of(pid),
        "state": status.get("State", "")[:30],
        "elapsed": round(max(0.0, uptime - int(fields[19]) / ticks), 1) if has_times else None,
        "cpu": round((int(fields[11]) + int(fields[12])) / ticks, 1) if has_times else None,
        "command": [word[:200] for word in command[:12]],
    }

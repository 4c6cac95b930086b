"""Limits of the failing process: locked memory, open files, processes, stack."""

import re
from typing import Any, Dict, Optional

from gpuwhy.collector.probing import Absent, Notes, Request, first_of
from gpuwhy.collector.reading import try_text

NAMES = {
    "Max locked memory": "memlock",
    "Max open files": "nofile",
    "Max processes": "nproc",
    "Max stack size": "stack",
    "Max address space": "as",
    "Max core file size": "core",
    "Max pending signals": "sigpending",
}


def limits(
    request: Request, notes: Notes, unit: Optional[Dict[str, Any]], process: Optional[Dict[str, Any]]
) -> Dict[str, Any]:
    """Soft limits by the names of ``ulimit``; a number of bytes or of things, ``unlimited``."""
    text = first_of(process, "limits")
    if process is not None and text:
        notes.subject = "process:%d" % process["pid"]
        notes.source("/proc/%d/limits" % process["pid"])
        return of_process(text)
    if unit is not None:
        notes.subject = "unit:" + unit["name"]
        notes.source("systemctl show %s" % unit["name"])
        given = {name[5:]: value for name, value in unit["properties"].items() if name.startswith("Limit")}
        # `LimitMEMLOCK` is the hard limit; what a process feels is `LimitMEMLOCKSoft`.
        shown = {
            name.lower(): given.get(name + "Soft", value) for name, value in given.items() if not name.endswith("Soft")
        }
        return {name: "unlimited" if value == "infinity" else value for name, value in shown.items()}
    if request.get("unit"):
        raise Absent("the unit is not known")
    own = try_text("/proc/self/limits", 8192)
    if own is None:
        raise Absent("neither a process nor a unit to read the limits of")
    notes.source("/proc/self/limits")
    notes.remark("the limits of this login, not those of a service")
    return of_process(own)


def of_process(text: str) -> Dict[str, Any]:
    """``/proc/PID/limits``: ``Max locked memory   8388608   8388608   bytes``: the soft limit comes first."""
    found: Dict[str, Any] = {}
    for line in text.splitlines():
        match = re.match(r"^(Max [a-z ]+?) {2,}(\S+) +(\S+)", line)
        if match and match.group(1) in NAMES:
            found[NAMES[match.group(1)]] = match.group(2)
    return found

"""Host memory, and the limit of the control group that the service runs in."""

import os
import re
from typing import Any, Dict, Optional

from gpuwhy.collector.probing import Notes, Request, first_of
from gpuwhy.collector.reading import read_text, try_line, try_list, try_text

NO_LIMIT = 1 << 60
"""Control groups of version 1 print a huge number where there is no limit."""


def memory(
    _request: Request, notes: Notes, unit: Optional[Dict[str, Any]], process: Optional[Dict[str, Any]]
) -> Dict[str, Any]:
    """All sizes in bytes."""
    text = read_text("/proc/meminfo", 1 << 14)
    notes.source("/proc/meminfo")
    sizes = {name: int(value) << 10 for name, value in re.findall(r"^(\w+)(?:\([^)]*\))?: +(\d+) kB", text, re.M)}
    group = control_group(unit, process)
    return {
        "total": sizes.get("MemTotal"),
        "available": sizes.get("MemAvailable"),
        "free": sizes.get("MemFree"),
        "swap_total": sizes.get("SwapTotal"),
        "swap_free": sizes.get("SwapFree"),
        "shared": sizes.get("Shmem"),
        "huge_page_size": sizes.get("Hugepagesize"),
        "huge_pages_total": _count(text, "HugePages_Total"),
        "huge_pages_free": _count(text, "HugePages_Free"),
        "transparent_huge_pages": try_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "locked": sizes.get("Mlocked"),
        "unevictable": sizes.get("Unevictable"),
        "commit_limit": sizes.get("CommitLimit"),
        "committed": sizes.get("Committed_AS"),
        "overcommit": try_line("/proc/sys/vm/overcommit_memory"),
        "group": _limits(group, notes) if group else None,
        "numa_nodes": sum(1 for name in try_list("/sys/devices/system/node") if re.match(r"^node\d+$", name)) or None,
    }


def control_group(unit: Optional[Dict[str, Any]], process: Optional[Dict[str, Any]]) -> Optional[str]:
    """The folder of the service's control group; of our own where nothing else is examined (we are in its container)."""
    named = first_of(first_of(unit, "properties"), "ControlGroup")
    lines = first_of(process, "cgroup") or (None if named else try_text("/proc/self/cgroup"))
    if lines:
        paths = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in lines.splitlines() if line.count(":") >= 2}
        for controller, root in (("memory", "/sys/fs/cgroup/memory"), ("", "/sys/fs/cgroup")):
            if controller in paths:
                # Inside a container the path may be that of the host: its own group is then mounted at the root.
                for folder in (root + paths[controller].rstrip("/"), root):
                    if ".." not in folder and os.path.isdir(folder):
                        return folder
    for root in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
        if named and os.path.isdir(root + named):
            return root + str(named)
    return None


def _limits(folder: str, notes: Notes) -> Dict[str, Any]:
    notes.source(folder)
    limit = _number(folder, "memory.max", "memory.limit_in_bytes")
    events = try_text(folder + "/memory.events") or try_text(folder + "/memory.oom_control") or ""
    kills = re.search(r"^oom_kill (\d+)", events, re.M)
    return {
        "folder": folder,
        "limit": limit if limit is not None and limit < NO_LIMIT else None,
        "used": _number(folder, "memory.current", "memory.usage_in_bytes"),
        "peak": _number(folder, "memory.peak", "memory.max_usage_in_bytes"),
        "oom_kills": int(kills.group(1)) if kills else None,
    }


def _count(text: str, name: str) -> Optional[int]:
    """Lines of ``/proc/meminfo`` that count pages and have no unit."""
    found = re.search(r"^%s: +(\d+)$" % name, text, re.M)
    return int(found.group(1)) if found else None


def _number(folder: str, *names: str) -> Optional[int]:
    for name in names:
        line = try_line("%s/%s" % (folder, name))
        if line and line.isdigit():
            return int(line)
    return None

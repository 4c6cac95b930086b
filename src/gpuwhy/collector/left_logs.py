"""Logs that a service left behind which no manager knew: ``nohup.out``, screen's own, files in a home that name an engine.

A process that died is nowhere to be seen; its log is. Only names and ends of files are looked at, and only a file that ends in
words of a failure counts.
"""

import os
import pwd
import re
import time
from typing import Any, Dict, List, Set

from gpuwhy.collector.choosing import LOG
from gpuwhy.collector.probing import Denied, Notes, NoValue
from gpuwhy.collector.process import ENGINE, all_processes
from gpuwhy.collector.reading import read_bytes, try_list
from gpuwhy.collector.running import is_file, output_of

LEFT = re.compile(r"^(?:nohup\.out|screenlog\.\d{1,3})$")

NAMED = re.compile(r"\.(?:log|out|err|txt)$")

FAILS = re.compile(
    r"Traceback \(most recent call last\)|^\S{0,80}(?:Error|Exception)\b|CUDA error|out of memory|[Ss]egmentation fault|core dumped|"
    r"Killed\s*$|SIG(?:SEGV|ABRT|KILL|BUS|ILL)|fatal error|terminate called|Aborted|GGML_ASSERT|panicked at|exit(?:ed)?(?: with)? (?:code|status) [1-9]",
    re.M,
)

OLDEST = 14 * 86400.0
"""Seconds: an older log tells of no failure that somebody asks about today."""

MOST_FILES = 200

LOOKED_AT = 32 << 10


def left_logs(notes: Notes) -> List[Dict[str, Any]]:
    """Candidates: logs of engines that end in a failure, and that no process has open as its output."""
    is_open = _open_outputs()
    found: List[Dict[str, Any]] = []
    looked = 0
    for folder in _folders():
        for name in try_list(folder, 1000):
            path = os.path.join(folder, name)
            names_engine = bool(NAMED.search(name) and ENGINE.search(name.lower()))
            if not (LEFT.match(name) or names_engine) or looked >= MOST_FILES or path in is_open:
                continue
            looked += 1
            changed = _fails_since(path, names_engine, notes)
            if changed is not None:
                found.append(_candidate(path, changed))
    return found


def _folders() -> List[str]:
    """Homes of people: one's own, for root those of all; and the usual folders for logs in them."""
    homes: List[str] = []
    own = os.geteuid()
    for entry in pwd.getpwall():
        is_person = entry.pw_uid == 0 or 1000 <= entry.pw_uid < 60000
        if (own == entry.pw_uid or (own == 0 and is_person)) and entry.pw_dir.startswith("/") and entry.pw_dir != "/":
            homes.append(entry.pw_dir)
    return [place for home in dict.fromkeys(homes) for place in (home, home + "/logs", home + "/log")][:300]


def _open_outputs() -> Set[str]:
    """Files that are the output of a process: those belong to a service that runs."""
    found: Set[str] = set()
    for pid in all_processes():
        for descriptor in (1, 2):
            place = output_of(pid, descriptor)
            if place is not None and place.startswith("/"):
                found.add(place)
    return found


def _fails_since(path: str, names_engine: bool, notes: Notes) -> "float | None":
    try:
        status = os.stat(path)
        if not is_file(path) or not status.st_size or time.time() - status.st_mtime > OLDEST:
            return None
        tail = read_bytes(path, LOOKED_AT, max(0, status.st_size - LOOKED_AT)).decode("utf-8", "replace")
        head = read_bytes(path, LOOKED_AT).decode("utf-8", "replace")
    except Denied as why:
        notes.deny(why.reason)
        return None
    except (NoValue, OSError):
        return None
    is_engine = names_engine or bool(ENGINE.search(head.lower()) or ENGINE.search(tail.lower()))
    return status.st_mtime if is_engine and FAILS.search(tail) else None


def _candidate(path: str, changed: float) -> Dict[str, Any]:
    return {
        "kind": LOG,
        "name": path,
        "selector": path,
        "state": "ended",
        "result": "",
        "restarts": 0,
        "status": "",
        "command": "",
        "log": path,
        "is_engine": True,
        "when": round(changed, 3),
    }

"""Which weight files a process reads, and how far it is.

A file that is read has a position (``/proc/PID/fdinfo/N``: ``pos:	1073741824``); safetensors maps its files instead, and
they then stand in ``/proc/PID/maps``.
"""

import os
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gpuwhy.collector.reading import try_list, try_text

WEIGHTS = re.compile(r"\.(?:safetensors|gguf|ggml|pt|pth|bin|ckpt|npz|msgpack|engine|plan)$")

LEAST_SIZE = 1 << 20
"""A smaller file holds no weights worth waiting for."""

MOST_FILES = 64

MOST_OPEN_FILES = 4096

MOST_MAPS = 16 << 20


def weight_files(pids: Sequence[int]) -> List[Dict[str, Any]]:
    """Files of weights that are open or mapped: path, size, position, and where they stand in their folder's row."""
    found: Dict[Tuple[int, str], Dict[str, Any]] = {}
    for pid in pids[:64]:
        for path, position in _open(pid):
            if WEIGHTS.search(path):
                found.setdefault((pid, path), _file(pid, path, position))
        for path in _mapped(pid):
            found.setdefault((pid, path), _file(pid, path, None))
    large = [each for each in found.values() if each["size"] >= LEAST_SIZE]
    return large[:MOST_FILES]


def _open(pid: int) -> List[Tuple[str, Optional[int]]]:
    found: List[Tuple[str, Optional[int]]] = []
    base = "/proc/%d/fd" % pid
    for name in try_list(base, MOST_OPEN_FILES):
        try:
            path = os.readlink(os.path.join(base, name))
        except OSError:
            continue
        if path.startswith("/"):
            told = re.search(r"^pos:\s{1,8}(\d{1,20})$", try_text("/proc/%d/fdinfo/%s" % (pid, name), 4096) or "", re.M)
            found.append((path, int(told.group(1)) if told else None))
    return found


def _mapped(pid: int) -> List[str]:
    text = try_text("/proc/%d/maps" % pid, MOST_MAPS) or ""
    rows = (line.split(None, 5) for line in text.splitlines() if line.count("/"))
    return sorted({row[5] for row in rows if len(row) == 6 and WEIGHTS.search(row[5])})[:MOST_FILES]


def _file(pid: int, path: str, position: Optional[int]) -> Dict[str, Any]:
    seen = "/proc/%d/root%s" % (pid, path)
    place = seen if os.path.exists(seen) else path
    try:
        size = os.stat(place).st_size
    except OSError:
        size = 0
    found: Dict[str, Any] = {"pid": pid, "path": path[:500], "size": size}
    if position is not None:
        found["position"] = position
    row = _row(place)
    if len(row) > 1 and os.path.basename(path) in [name for name, _ in row]:
        at = [name for name, _ in row].index(os.path.basename(path))
        found.update(
            {
                "number": at + 1,
                "count": len(row),
                "before": sum(size for _, size in row[:at]),
                "total": sum(size for _, size in row),
            }
        )
    return found


def _row(path: str) -> List[Tuple[str, int]]:
    """The files of weights beside one, in the order of their names, which is that of loading."""
    folder, name = os.path.split(path)
    suffix = os.path.splitext(name)[1]
    found: List[Tuple[str, int]] = []
    for other in try_list(folder, 2000):
        if other.endswith(suffix):
            try:
                found.append((other, os.stat(os.path.join(folder, other)).st_size))
            except OSError:
                continue
    return found

"""Signs of a file system without space, and which kind of place a message speaks of: shared memory, a disk, or neither."""

# ruff: noqa: S108 - names of mounts in messages; nothing is written there

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import says
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact

FAMILY = "Memory, storage, limits"
GIB = 1 << 30
MIB = 1 << 20
_PATH = r"[/~][\w./@+=:~-]{2,300}|[A-Za-z]:\\[\w.\\ -]{2,200}"
NO_SPACE = says(
    "no-space",
    ("no space left", "errno 28]", "enospc", "os error 28", "not enough space on the disk", "os error 112", "disk quota exceeded", "errno 122]", "os error 122", "disk is full", "enough disk space", "enough free disk", "disk full", "insufficient disk", "enough free space in"),
    rf"(?:[Nn]o space left on (?:the )?device|\[Errno (?:28|122)\]|Disk quota exceeded|ENOSPC|os error (?:28|112|122)\b|not enough space on the disk|database or disk is full|[Dd]isk full|[Ii]nsufficient (?:free )?disk space|[Nn]ot enough (?:free )?disk space|have enough free space in).{{0,20}}?(?::? ?[<'\"](?P<path>{_PATH}))?(?=['\"> ]|$|\W)",
)  # fmt: skip
"""ENOSPC and its like in the words of C, Python, Rust, Go, Node, SQLite and Windows."""

_SHARED = lazy_pattern(
    r"/dev/shm\b|shm\.h|shmutils\.cc|\bshm\.cc\b|posix_fallocate|</torch_\d|/psm_|/nccl-|nccl-shm|shared[ -]memory|shm_open|\bshmget|plasma|/sem\.|sem_open|SemLock|vader_segment|shm_broadcast|\bshm\b", re.IGNORECASE
)  # fmt: skip
_SHARED_FRAMES = ("multiprocessing/shared_memory.py", "multiprocessing/heap.py", "multiprocessing/synchronize.py", "shm_broadcast.py", "shm_object_storage.py", "torch/multiprocessing/reductions.py", "python_backend/")  # fmt: skip
_SHARED_CODE = lazy_pattern(r"_posixshmem|SemLock|_new_shared|_share_filename|_share_memory|shm_open|shared_memory\.")
_OTHER = lazy_pattern(
    r"inotify|fsnotify|file watchers|watch(?:es|ing)\b|/sys/fs/cgroup|cgroup.{0,60}no space|semget|msgget|\bbpf\b|epoll_ctl|keyctl|ibv_\w{2,30}|no space left in (?:vector|buffer|context)|KV cache", re.IGNORECASE
)  # fmt: skip
"""ENOSPC of the kernel's tables: watches, control groups, semaphores, epoll. No disk is full."""
_WHERE = lazy_pattern(rf"(?<![\w.)]){_PATH}")
_SOURCE = lazy_pattern(r"\.(?:py|cc|cpp|cu|h|go|rs):\d{1,6}:?\Z")
_WRITES = lazy_pattern(r"(?:write|mkdir|open|create|copy|copying|extract\w{0,4}|creating|writing|saving|to|file|path|location)\b[^/\n~]{0,30}(?P<path>(?:/|~/)[\w.@+=:~-]{1,80}/[\w./@+=:~-]{1,300})")  # fmt: skip


class Space(Struct, frozen=True):
    """What ``df`` says of one path, in bytes. ``size`` and ``available`` are None where they are not known."""

    path: str
    size: int | None
    available: int | None
    evidence: Evidence


def is_shared(match: Match) -> bool:
    """Whether the message comes from shared memory, by its words or the frames of its traceback."""
    if _SHARED.search(match.text[:1600]):
        return True
    frames = match.frames
    if any(part in frame.path for frame in frames[-6:] for part in _SHARED_FRAMES):
        return True
    return any(_SHARED_CODE.search(frame.code) for frame in frames[-4:])


def is_of_other_tables(match: Match) -> bool:
    """Whether ENOSPC is that of a table of the kernel."""
    return _OTHER.search(match.text[:1600]) is not None


def path_of(match: Match) -> str:
    """The path that a message names, else one that is written to just above it; ``""`` when none is."""
    named = match.group("path") or ""
    if not named:
        text = match.text[:1600]
        # "file_download.py:651: UserWarning" is where the program says it, and no place that it writes to
        places = (each for each in _WHERE.finditer(text) if not _SOURCE.search(each[0]))
        found = _WRITES.search(text) or next(places, None)
        named = (found.groupdict().get("path") or found[0]) if found is not None else ""
    return named.rstrip(".:,")


def spaces(case: Case) -> tuple[Space, ...]:
    """All file systems whose size is known."""
    found = []
    for path, fact in case.facts.group("df").items():
        if isinstance(fact.value, dict):
            size, available = fact.value.get("size_bytes"), fact.value.get("avail_bytes")
            found.append(Space(path, _number(size), _number(available), fact.evidence))
    shm = case.fact("shm_bytes")
    if isinstance(shm, Fact) and shm.value is not None and not any(space.path == "/dev/shm" for space in found):
        found.append(Space("/dev/shm", _number(shm.value), None, shm.evidence))
    return tuple(found)


def space_of(case: Case, path: str) -> Space | None:
    """The file system that holds ``path``: the longest known mount that leads to it."""
    holding = [space for space in spaces(case) if path == space.path or path.startswith(space.path.rstrip("/") + "/")]
    return max(holding, key=lambda space: len(space.path), default=None)


def shared_memory(case: Case) -> Space | None:
    return next((space for space in spaces(case) if space.path.rstrip("/") == "/dev/shm"), None)


def shown(size: int) -> str:
    """``64 MiB``, ``1.5 GiB``."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) or (isinstance(value, str) and value.isdigit()) else None

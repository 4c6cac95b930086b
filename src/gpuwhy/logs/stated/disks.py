"""``df``: file systems with their sizes.

Filesystem      Size  Used Avail Use% Mounted on
tmpfs            64M     0   64M   0% /dev/shm
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength, size_of

OPENING = ("Filesystem", "Mounted on", "挂载点")
_HEADER = Pattern(r"^(?:Filesystem|文件系统)\s{1,60}(?P<type>Type\s{1,20}|类型\s{1,20})?(?P<size>Size|1K-blocks|1024-blocks|1M-blocks|1G-blocks|1B-blocks|容量)\s{1,20}(?:Used|已用)\s{1,20}(?:Avail\w{0,4}|可用)\s{1,20}(?:Use%|Capacity|已用%)\s{1,8}(?:Mounted on|挂载点)")  # fmt: skip
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the name of a mount
_UNITS = {"1K-blocks": 1 << 10, "1024-blocks": 1 << 10, "1M-blocks": 1 << 20, "1G-blocks": 1 << 30, "1B-blocks": 1}


def opened(text: str) -> Block | None:
    header = _HEADER.match(text[:300])
    if header is None:
        return None
    return _Table(_UNITS.get(header["size"], 0), header["type"] is not None)


class _Table:
    shares = False

    def __init__(self, unit: int, has_type: bool) -> None:
        self._unit = unit
        self._has_type = has_type

    def read(self, text: str) -> list[Statement] | None:
        words = text[:600].split()
        if len(words) == 1 and words[0].startswith(("/", "//")):
            return []  # a long device name; its figures stand on the next line
        figures = words[-5:]
        if len(words) < 5 or not figures[3].endswith("%") or not figures[4].startswith("/"):
            return None
        size, available, path = self._bytes(figures[0]), self._bytes(figures[2]), figures[4]
        if size is None or available is None:
            return []
        statements = [Statement(f"df.{path}", {"size_bytes": size, "avail_bytes": available}, Strength.REPORTED)]
        if path == _SHARED_MEMORY:
            statements.append(Statement("shm_bytes", size, Strength.REPORTED))
        if self._has_type and len(words) >= 7:
            statements.append(Statement(f"fs.{path}", words[-6], Strength.REPORTED))
        return statements

    def _bytes(self, word: str) -> int | None:
        if self._unit:
            return int(word) * self._unit if word.isdigit() else None
        return size_of(word)

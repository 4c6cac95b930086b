"""The dynamic linker's cache: which libraries the system's folders hold, by name.

/etc/ld.so.cache -> libcuda.so.1: /usr/lib/x86_64-linux-gnu/libcuda.so.1, /usr/local/cuda-12.9/compat/libcuda.so.1

Layout: glibc's sysdeps/generic/dl-cache.h. A cache of before glibc 2.32 has the new table behind the old one; musl and
Bionic have no such file.
"""

import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

from .reading import FileSource, Source, Unreadable

PATH = "/etc/ld.so.cache"

_OLD_MAGIC, _NEW_MAGIC = b"ld.so-1.7.0", b"glibc-ld.so.cache1.1"
_OLD_ENTRY, _NEW_HEADER, _NEW_ENTRY = 12, 48, 24
_MOST_BYTES = 32 << 20
_MOST_ENTRIES = 500000


class CacheEntry(NamedTuple):
    """One file of the cache. ``is_variant``: for processors with more features only, tried before the plain one."""

    path: str
    flags: int
    is_variant: bool


class LdCache(NamedTuple):
    """The cache by library name, each with its files in the order of the cache. ``problem`` says why it is empty."""

    entries: Dict[str, Tuple[CacheEntry, ...]]
    problem: str = ""

    def paths(self, name: str) -> List[str]:
        """Files of a name: what is for every processor first, since which features this one has is not read here."""
        found = self.entries.get(name, ())
        return [each.path for each in found if not each.is_variant] + [each.path for each in found if each.is_variant]


def read_ld_cache(path: str = PATH) -> LdCache:
    """The cache of this system; empty with a reason where there is none, or none that can be read."""
    try:
        with FileSource(path) as source:
            return parse_ld_cache(source)
    except Unreadable as error:
        return LdCache({}, str(error))


def parse_ld_cache(source: Source) -> LdCache:
    """The cache in a source. Damaged entries are left out."""
    data = source.read_at(0, min(source.size, _MOST_BYTES))
    start = _start_of_new(data)
    if start is None:
        return LdCache({}, "%s: not a cache that glibc 2.2 or later writes" % source.name)
    order = ">" if data[start + 28 : start + 29] == b"\x03" else "<"
    count = struct.unpack_from(order + "I", data, start + 20)[0]
    table = data[start + _NEW_HEADER : start + _NEW_HEADER + _NEW_ENTRY * min(count, _MOST_ENTRIES)]
    found: Dict[str, List[CacheEntry]] = {}
    rows = struct.iter_unpack(order + "iIIIQ", table[: len(table) // _NEW_ENTRY * _NEW_ENTRY])
    for flags, name_at, path_at, _, features in rows:
        name, path = _text(data, start + name_at), _text(data, start + path_at)
        if name and path.startswith("/"):
            found.setdefault(name, []).append(CacheEntry(path, flags, bool(features)))
    problem = "" if len(table) == _NEW_ENTRY * count else "%s: cut short" % source.name
    return LdCache({name: tuple(entries) for name, entries in found.items()}, problem)


def _start_of_new(data: bytes) -> Optional[int]:
    """Where the table with the new layout begins; names and paths count from there."""
    start = 0
    if data.startswith(_OLD_MAGIC) and len(data) >= 16:
        start = 16 + _OLD_ENTRY * int(struct.unpack_from("<I", data, 12)[0])
        start = start + 7 & ~7
    is_there = data[start : start + len(_NEW_MAGIC)] == _NEW_MAGIC and len(data) >= start + _NEW_HEADER
    return start if is_there else None


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + 4096)
    return data[at:end].decode("utf-8", "replace") if end >= 0 else ""

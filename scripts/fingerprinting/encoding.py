"""Pack the editions of the files of one package into a table (see gpuwhy.knowledge.fingerprints)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

import zstandard
from msgspec import Struct, msgpack

from gpuwhy.knowledge.fingerprints import (
    FILLER,
    FORMAT,
    MAX_GAP,
    FileHistory,
    StoredTable,
    path_hash,
    scope_tag,
    text_hash,
)
from scripts.fingerprinting.coverage import Package
from scripts.fingerprinting.sites import Site

Line = tuple[int, int, int]
"""Distance from the line before, tag of the scope, hash of the text."""


def encoded(
    package: Package,
    releases: Sequence[str],
    editions: Mapping[str, Mapping[int, str]],
    sites_of: Callable[[str], list[Site] | None],
) -> bytes:
    """The table. `editions` gives for each path and number of a release the key of the content that it has there.

    A file of which any edition cannot be compiled is left out altogether: half of a history would read as a contradiction.
    """
    changes, gaps, tags, hashes = bytearray(), bytearray(), bytearray(), bytearray()
    files: dict[str, FileHistory] = {}
    left_out = {path for path in editions if not package.records(path)}
    for path in sorted(set(editions) - left_out):
        contents: dict[str, list[Line]] = {}
        for key in editions[path].values():
            found = sites_of(key)
            if found is None:
                left_out.add(path)
                break
            contents[key] = list(_lines(found))
        else:
            starts = list(_starts(editions[path], contents, len(releases)))
            below = path.removeprefix(package.folder + "/")
            files[below] = FileHistory(len(gaps), len(tags), len(changes), tuple(start for start, _ in starts))
            before: list[Line] = []
            for _, now in starts:
                if now is None:
                    continue
                steps = list(_steps(before, now))
                changes += _packed([len(steps)])
                for step in steps:
                    changes += _packed([step.kept, step.dropped, 2 * len(step.added) + step.is_moved])
                    gaps += bytes(line[0] for line in step.added)
                    texts = step.added[: len(step.added) - step.is_moved]
                    tags += bytes(line[1] for line in texts)
                    hashes += b"".join(line[2].to_bytes(2, "big") for line in texts)
                before = now
    unrecorded = {path_hash(path.removeprefix(package.folder + "/")) for path in left_out}
    return msgpack.encode(
        StoredTable(
            format=FORMAT,
            package=package.name,
            folder=package.folder,
            releases=tuple(releases),
            files=_compressed(msgpack.encode(files)),
            changes=_compressed(changes),
            gaps=_compressed(gaps),
            tags=_compressed(tags),
            hashes=bytes(hashes),
            left_out=b"".join(sorted(unrecorded)),
        )
    )


def _lines(sites: Iterable[Site]) -> Iterator[Line]:
    before = 0
    for site in sites:
        while site.line - before > MAX_GAP:
            yield FILLER
            before += MAX_GAP
        yield site.line - before, scope_tag(site.scope), text_hash(site.text)
        before = site.line


def _starts(
    keys: Mapping[int, str], contents: Mapping[str, list[Line]], count: int
) -> Iterator[tuple[int, list[Line] | None]]:
    """Where the recorded lines of a file change: number of the release, and its lines; None where the file is gone."""
    before: list[Line] | None = None
    for number in range(count):
        now = contents[keys[number]] if number in keys else None
        if now is None and before is not None:
            yield -1 - number, None
        elif now is not None and now != before:
            yield number, now
        before = now


class _Step(Struct, frozen=True):
    """Keep so many lines, drop so many, add these; `is_moved`: the last one added is the last dropped, further up or down."""

    kept: int
    dropped: int
    added: list[Line]
    is_moved: bool


def _steps(before: list[Line], now: list[Line]) -> Iterator[_Step]:
    """How `before` becomes `now`; what is left at the end is kept."""
    same = 0
    while same < min(len(before), len(now)) and before[same] == now[same]:
        same += 1
    tail = 0
    while tail < min(len(before), len(now)) - same and before[-1 - tail] == now[-1 - tail]:
        tail += 1
    old, new = before[same : len(before) - tail], now[same : len(now) - tail]
    kept = same
    for kind, first, end, at, to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            kept += end - first
        else:
            is_moved = end > first and to > at and old[end - 1][1:] == new[to - 1][1:]
            yield _Step(kept, end - first, new[at:to], is_moved)
            kept = 0


def _packed(numbers: Iterable[int]) -> bytes:
    packed = bytearray()
    for number in numbers:
        while number >= 0x80:
            packed.append(number & 0x7F | 0x80)
            number >>= 7
        packed.append(number)
    return bytes(packed)


def _compressed(content: bytes | bytearray) -> bytes:
    return zstandard.ZstdCompressor(level=22).compress(bytes(content))

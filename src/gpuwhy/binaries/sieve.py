"""Keeps of a stream what the readers will ask for, so that a library inside a wheel is read without extracting it.

The library goes by once, front to back. Kept are its beginning, the segments with its dynamic tables, the section
table, and the header of every entry of every container; payloads, nearly all of it, are passed over. What remains is
a source like any other, so that wheel and disk give the same answer.
"""

import struct
from typing import List, Tuple

from .cubin import MAGIC as CUBIN_MAGIC
from .elf import CUDA, PT_DYNAMIC, PT_LOAD, Elf, NotElf, Segment
from .fatbin import MAGIC as FATBIN_MAGIC
from .reading import KeptSource, MemorySource, find_in
from .runtime import MARKER

_HEAD = 1 << 20
_TABLES = 48 << 20
"""Of segments that hold tables at most this much is kept; the symbol tables of libtorch_cpu are 30 MB."""
_BEFORE_SECTIONS = 1 << 18
"""The section names stand right before the section table."""
_MOST_KEPT = 96 << 20
_MOST_CUBIN = 8 << 20
_MOST_HEADER = 1 << 20
_OVERLAP = 63
"""An ELF header less one byte: what begins in the last bytes of a piece is judged with the next piece."""
_EXECUTABLE = 1


class Sieve:
    """Feed it the stream in pieces, then ask for :meth:`result`."""

    def __init__(self, name: str, size: int) -> None:
        self.problems: List[str] = []
        self._kept = KeptSource(name, size)
        self._kept.places = {FATBIN_MAGIC: [], CUBIN_MAGIC: [], MARKER: []}
        self._held = 0
        self._ranges: List[Tuple[int, int]] = [(0, _HEAD)]
        self._is_planned = False
        # where the next piece begins, what is left of the last one, and up to where nothing needs a look
        self._at, self._carry, self._skip_to = 0, b"", 0
        # where the container ends whose entries go by; 0 outside of containers
        self._container_end = 0

    def feed(self, piece: bytes) -> None:
        """The next bytes of the stream, of any length."""
        end = self._at + len(piece)
        covered = self._at
        for start, stop in sorted(self._ranges):
            first = max(start, covered)
            if first < min(stop, end):
                self._keep(first, piece[first - self._at : stop - self._at])
                covered = min(stop, end)
        data, base = self._carry + piece, self._at - len(self._carry)
        self._at = end
        if not self._is_planned and end >= _HEAD:
            self._plan(end)
        at = self._sift(data, base)
        self._carry, self._skip_to = data[at:], base + at

    def result(self) -> KeptSource:
        """What was kept, once the stream has ended."""
        return self._kept

    def _plan(self, seen: int) -> None:
        """Which ranges to keep, as the headers at the beginning announce them. What went by is kept up to ``seen``."""
        self._is_planned = True
        self._ranges = []
        try:
            elf = Elf(self._kept)
        except NotElf:
            return
        wanted = [
            (segment.offset, min(segment.file_size, _TABLES)) for segment in elf.segments() if _has_tables(segment)
        ]
        at, size = elf.section_table()
        if at:
            wanted.append((max(0, at - _BEFORE_SECTIONS), size + _BEFORE_SECTIONS))
        self._ranges = [(max(start, seen), start + size) for start, size in wanted if start + size > seen]

    def _keep(self, offset: int, data: bytes, is_small: bool = False) -> None:
        if self._held + len(data) > _MOST_KEPT:
            if not self.problems:
                self.problems.append("more tables than are kept of a stream: from 0x%x on some are missing" % offset)
            return
        self._held += len(data)
        self._kept.keep(offset, data, is_small)

    def _sift(self, data: bytes, base: int) -> int:
        """Keeps the headers in ``data``, which begins at ``base``; answers from where on it is still needed."""
        at = max(0, self._skip_to - base)
        while at < len(data):
            if self._container_end:
                following = self._entry(data, at, base)
                if following < 0:
                    return at
                at = following
                continue
            place = find_in(data, FATBIN_MAGIC, at, len(data))
            self._note_others(data, at, len(data) if place < 0 else place, base)
            if place < 0:
                return max(at, len(data) - _OVERLAP)
            if len(data) - place < 16:
                return place
            size = int.from_bytes(data[place + 8 : place + 16], "little")
            self._kept.places[FATBIN_MAGIC].append(base + place)
            self._keep(base + place, data[place : place + 16], True)
            at = place + 16
            self._container_end = base + at + size if size else 0
        return at

    def _entry(self, data: bytes, at: int, base: int) -> int:
        """Keeps the header of the entry at ``at``; answers where to go on, or -1 until all of it is here.

        A container whose sizes lie is left as the reader of containers leaves it, and the next one is looked for.
        """
        if len(data) - at < 64:
            return -1
        header, stored = struct.unpack_from("<IQ", data, at + 4)
        if not 64 <= header <= _MOST_HEADER or data.startswith(FATBIN_MAGIC, at):
            self._keep(base + at, data[at : at + 64], True)
            self._container_end = 0
            return at
        if len(data) - at < header:
            return -1
        self._keep(base + at, data[at : at + header], True)
        following = at + header + stored
        if base + following < self._container_end:
            return int(following)
        is_end = base + following == self._container_end
        self._container_end = 0
        return int(following) if is_end else at

    def _note_others(self, data: bytes, start: int, end: int, base: int) -> None:
        """Bare cubins, and the mark of an embedded CUDA runtime."""
        for pattern in (CUBIN_MAGIC, MARKER):
            places = self._kept.places[pattern]
            at = find_in(data, pattern, start, end)
            while at >= 0:
                if not places or base + at > places[-1]:  # the overlap of two pieces is seen twice
                    if pattern == MARKER:
                        places.append(base + at)
                    elif len(data) - at >= 64 and int.from_bytes(data[at + 18 : at + 20], "little") == CUDA:
                        places.append(base + at)
                        self._keep_cubin(data, at, base)
                at = find_in(data, pattern, at + 1, end)

    def _keep_cubin(self, data: bytes, at: int, base: int) -> None:
        end = at + min(Elf(MemorySource(data[at : at + 64])).end_by_headers(), _MOST_CUBIN)
        self._keep(base + at, data[at:end], True)
        if end > len(data):
            self._ranges.append((base + len(data), base + end))


def _has_tables(segment: Segment) -> bool:
    return segment.type == PT_DYNAMIC or (segment.type == PT_LOAD and not segment.flags & _EXECUTABLE)

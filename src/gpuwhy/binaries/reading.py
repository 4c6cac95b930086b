"""Where a reader's bytes come from: a file read at places, memory, a part of another source, or a stream's kept parts."""

import bisect
import os
import stat
from typing import Any, Dict, List

CHUNK = 1 << 20
"""How much is held at once when a long range is searched."""


class Unreadable(Exception):  # noqa: N818
    """The bytes cannot be had: no such file, no permission, not a regular file, an error of the disk."""


def find_in(data: bytes, pattern: bytes, start: int, end: int) -> int:
    """``data.find(pattern, start, end)``, by the pattern's first four bytes.

    bytes.find looks for a pattern's last byte, and ours end with zeros, of which binaries are full: three times slower.
    """
    first = pattern[:4]
    place = data.find(first, start, end)
    while place >= 0 and data[place : place + len(pattern)] != pattern:
        place = data.find(first, place + 1, end)
    return place if place + len(pattern) <= end else -1


class Source:
    """Bytes that are read at places. Reading past the end gives what is there, so a short answer means the end."""

    name = ""
    size = 0

    def read_at(self, offset: int, count: int) -> bytes:  # noqa: ARG002 - an interface
        """At most ``count`` bytes from ``offset``; fewer at the end. Raises Unreadable."""
        raise Unreadable(self.name)

    def find(self, pattern: bytes, offset: int, size: int, most: int = 10000) -> List[int]:
        """Where a pattern stands in a range: at most ``most`` places, without holding the range."""
        found: List[int] = []
        end = min(offset + size, self.size)
        overlap = len(pattern) - 1
        at, step = offset, 4096  # what is looked for is often near, so the first looks are small
        while at < end and len(found) < most:
            data = self.read_at(at, min(step + overlap, end - at))
            if not data:
                break
            place = find_in(data, pattern, 0, len(data))
            while place >= 0 and len(found) < most:
                found.append(at + place)
                place = find_in(data, pattern, place + 1, len(data))
            at += step
            step = min(4 * step, CHUNK)
        return found

    def close(self) -> None:
        """Gives back what was opened; a source of memory has nothing."""


class FileSource(Source):
    """A file, read with pread.

    Not mapped: with read-ahead a map pulls in nearly the whole file (787 of 852 MB were measured, against 2.2 MB), and
    its pages count as memory of the process. The kernel is told that reads are random for the same reason.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        except (OSError, ValueError) as error:
            raise Unreadable("%s: %s" % (path, getattr(error, "strerror", None) or error))
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise Unreadable("%s: not a regular file" % path)
        self.descriptor = descriptor
        self.size = status.st_size
        if hasattr(os, "posix_fadvise"):
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
            except OSError:  # a file system that takes no advice
                pass

    def read_at(self, offset: int, count: int) -> bytes:
        try:
            data = os.pread(self.descriptor, count, offset)
        except (OSError, ValueError, OverflowError) as error:
            if offset < 0 or count <= 0 or offset >= self.size:
                return b""
            raise Unreadable("%s: %s" % (self.name, error))
        return data if len(data) == count else self._more(data, offset, count)

    def _more(self, data: bytes, offset: int, count: int) -> bytes:
        """The rest of a short read, of which the end of the file is the usual reason, and a network one another."""
        while data and len(data) < min(count, self.size - offset):
            try:
                more = os.pread(self.descriptor, count - len(data), offset + len(data))
            except OSError as error:
                raise Unreadable("%s: %s" % (self.name, error.strerror))
            if not more:
                break
            data += more
        return data

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> "FileSource":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class MemorySource(Source):
    """Bytes that are already here."""

    def __init__(self, data: bytes, name: str = "") -> None:
        self.data = data
        self.size = len(data)
        self.name = name

    def read_at(self, offset: int, count: int) -> bytes:
        return self.data[offset : offset + count] if offset >= 0 and count > 0 else b""


class PartSource(Source):
    """A range of another source, such as a member of an archive."""

    def __init__(self, whole: Source, start: int, size: int, name: str = "") -> None:
        self.whole = whole
        self.start = start
        self.size = max(0, min(size, whole.size - start))
        self.name = name

    def read_at(self, offset: int, count: int) -> bytes:
        if offset < 0 or offset >= self.size:
            return b""
        return self.whole.read_at(self.start + offset, min(count, self.size - offset))


class KeptSource(Source):
    """The parts of a stream that were kept while it went by. What was not kept reads as nothing.

    ``places`` is where patterns stood in the stream, for those that were looked for.
    """

    def __init__(self, name: str = "", size: int = 0) -> None:
        self.name = name
        self.size = size
        self.places: Dict[bytes, List[int]] = {}
        self._layers = (_Layer(), _Layer())

    def find(self, pattern: bytes, offset: int, size: int, most: int = 10000) -> List[int]:
        places = self.places.get(pattern, [])
        first = bisect.bisect_left(places, offset)
        return places[first : min(bisect.bisect_left(places, offset + size), first + most)]

    def keep(self, offset: int, data: bytes, is_small: bool = False) -> None:
        """Parts come in the order of the stream. Ranges do not overlap each other, nor do small parts (headers), which
        may lie inside of ranges."""
        layer = self._layers[is_small]
        layer.starts.append(offset)
        layer.parts.append(data)

    def read_at(self, offset: int, count: int) -> bytes:
        pieces: List[bytes] = []
        while count > 0:
            piece = max((layer.at(offset, count) for layer in self._layers), key=len)
            if not piece:
                break
            pieces.append(piece)
            offset, count = offset + len(piece), count - len(piece)
        return b"".join(pieces) if len(pieces) != 1 else pieces[0]

    def kept_bytes(self) -> int:
        """How much is held."""
        return sum(len(part) for layer in self._layers for part in layer.parts)


class _Layer:
    """Parts by where they begin."""

    def __init__(self) -> None:
        self.starts: List[int] = []
        self.parts: List[bytes] = []

    def at(self, offset: int, count: int) -> bytes:
        place = bisect.bisect_right(self.starts, offset) - 1
        if place < 0:
            return b""
        within = offset - self.starts[place]
        return self.parts[place][within : within + count]

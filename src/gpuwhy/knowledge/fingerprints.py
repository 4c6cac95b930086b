"""Tables of the lines that a traceback can show, for every release of a package: the format and how one is read.

A line is kept as three numbers: its distance from the line before it in the table, a tag of the function that it stands in,
and a hash of its text. Only lines that call, raise or import are kept (:func:`is_recorded`), so a frame on any other line says
nothing. The editions of a file are kept as the changes from each to the next, and a file that never changed costs once.

`scripts/make_fingerprints.py` writes the tables from published wheels.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, msgpack

FOLDER = Path(__file__).parent / "data" / "frames"
FORMAT = 1
HASHED_CHARACTERS = 60
"""Text beyond this many characters, blanks not counted, is not compared: terminals and trackers cut long lines off."""
MAX_GAP = 255
FILLER = (MAX_GAP, 0, 0)
"""Stands between two lines that are further apart than a byte can say. No line is at its place."""
_STRIDE = 96
"""Gaps that are added up at once: the whole history of a file is walked for a frame, mostly far from its line."""

_BLANK = re.compile(r"\s+")
_RECORDED = re.compile(r"raise\b|import |from \S{1,200} import |(?!def |async def |class |@).{0,400}\(")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w{1,200})_at_\d{1,9}$")
_NESTED = re.compile(r"<(?!module>)\w{1,20}>$")


class FileHistory(Struct, frozen=True, array_like=True):
    """The editions of one file.

    `first_gap`, `first_text` and `first_change` are offsets into the gaps, the texts (tags and hashes) and the changes of the
    table. `starts` are the numbers of the releases from which an edition holds, in order; -1 - N says that release N no longer
    has the file.

    Changes are read in steps of three numbers: so many lines stay, so many go, and twice so many come; one more than twice
    when the last that comes is the last that went at another distance, so that its tag and hash are not kept again.
    """

    first_gap: int
    first_text: int
    first_change: int
    starts: tuple[int, ...]


class StoredTable(Struct, frozen=True):
    """A table as it lies on disk; all but `hashes` and `left_out`, which no compressor makes smaller, are zstd frames."""

    format: int
    package: str
    folder: str
    releases: tuple[str, ...]
    files: bytes
    changes: bytes
    gaps: bytes
    tags: bytes
    hashes: bytes
    left_out: bytes


class Edition(Struct, frozen=True):
    """One content of a file, and the releases that have it as a mask (bit N: release N)."""

    releases: int
    gaps: bytes
    tags: bytes
    hashes: bytes

    def at(self, line: int) -> tuple[int, int] | None:
        """Tag and hash of the line with this number; None when it is not recorded."""
        index = number = 0
        while number < line and index < len(self.gaps):
            step = sum(self.gaps[index : index + _STRIDE])
            if number + step >= line:
                break
            index, number = index + _STRIDE, number + step
        for at in range(index, min(index + _STRIDE, len(self.gaps))):
            number += self.gaps[at]
            if number >= line:
                is_found = number == line and self.tags[at] != 0
                return (self.tags[at], int.from_bytes(self.hashes[2 * at : 2 * at + 2], "big")) if is_found else None
        return None


class FrameTable:
    """The table of one package, unpacked as far as it is asked."""

    def __init__(self, stored: StoredTable) -> None:
        import zstandard  # a log without such frames does without it

        if stored.format != FORMAT:
            raise ValueError(f"the table of {stored.package} has format {stored.format}, not {FORMAT}")
        self.package = stored.package
        self.folder = stored.folder
        self.releases = stored.releases
        self._files = msgpack.decode(zstandard.decompress(stored.files), type=dict[str, FileHistory])
        self._changes = zstandard.decompress(stored.changes)
        self._gaps = zstandard.decompress(stored.gaps)
        self._tags = zstandard.decompress(stored.tags)
        self._hashes = stored.hashes
        packed = stored.left_out
        self._left_out = frozenset(packed[at : at + 4] for at in range(0, len(packed), 4))

    @functools.cached_property
    def folders(self) -> frozenset[str]:
        """The first folders of recorded files."""
        return frozenset(path.partition("/")[0] for path in self._files if "/" in path)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self._files)

    def has(self, path: str) -> bool:
        """Whether the lines of a file (path below the package's folder) are recorded for any release."""
        return path in self._files

    def leaves_out(self, path: str) -> bool:
        """Whether some release has a file of this path whose lines are not recorded."""
        return path_hash(path) in self._left_out

    def editions(self, path: str) -> Iterator[Edition]:
        """The editions of a recorded file, oldest first."""
        history = self._files[path]
        at_change, at_gap, at_text = history.first_change, history.first_gap, history.first_text
        gaps, tags, hashes = b"", b"", b""
        for number, start in enumerate(history.starts):
            if start < 0:
                continue
            steps, at_change = _number(self._changes, at_change)
            new_gaps, new_tags, new_hashes, at = [], [], [], 0
            for _ in range(steps):
                kept, at_change = _number(self._changes, at_change)
                dropped, at_change = _number(self._changes, at_change)
                doubled, at_change = _number(self._changes, at_change)
                added, is_moved = doubled >> 1, doubled & 1
                stays, goes, texts = at + kept, at + kept + dropped, at_text + added - is_moved
                new_gaps += [gaps[at:stays], self._gaps[at_gap : at_gap + added]]
                new_tags += [tags[at:stays], self._tags[at_text:texts], tags[goes - is_moved : goes]]
                new_hashes += [
                    hashes[2 * at : 2 * stays],
                    self._hashes[2 * at_text : 2 * texts],
                    hashes[2 * (goes - is_moved) : 2 * goes],
                ]
                at, at_gap, at_text = goes, at_gap + added, texts
            gaps = b"".join([*new_gaps, gaps[at:]])
            tags = b"".join([*new_tags, tags[at:]])
            hashes = b"".join([*new_hashes, hashes[2 * at :]])
            following = history.starts[number + 1] if number + 1 < len(history.starts) else len(self.releases)
            end_release = following if following >= 0 else -1 - following
            yield Edition((1 << end_release) - (1 << start), gaps, tags, hashes)


def _number(packed: bytes, at: int) -> tuple[int, int]:
    """The number that starts at `at`, seven bits a byte, low ones first, and where the next one starts."""
    value = shift = 0
    while True:
        byte = packed[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


@functools.cache
def table(package: str) -> FrameTable:
    """The table of a package, read at the first question. Raises OSError for a package that has none."""
    return FrameTable(msgpack.decode((FOLDER / f"{package}.frames").read_bytes(), type=StoredTable))


def is_recorded(text: str) -> bool:
    """Whether a source line is of the kind that tables hold: it calls, raises or imports, and defines nothing."""
    return _RECORDED.match(text.strip()) is not None


def text_hash(text: str) -> int:
    """16 bits of a source line. Blanks do not count: pastes lose and double them."""
    checksum = zlib.crc32(_BLANK.sub("", text)[:HASHED_CHARACTERS].encode("utf-8", "replace"))
    return (checksum ^ checksum >> 16) & 0xFFFF


def scope_tag(function: str) -> int:
    """8 bits (never 0) of the name of the function, class or module that a line stands in.

    0 for the names of comprehensions and lambdas, which stand for any scope: some Python releases show the function
    around them instead.
    """
    name = function.partition("(")[0].rpartition(".")[2].strip()
    resumed = _RESUMED.match(name)
    if resumed is not None:
        name = resumed[1]
    return 0 if _NESTED.match(name) else zlib.crc32(name.encode("utf-8", "replace")) % 255 + 1


def path_hash(path: str) -> bytes:
    """4 bytes of a path below the package's folder."""
    return zlib.crc32(path.encode("utf-8", "replace")).to_bytes(4, "big")

"""Wheels and other zip files: their binaries without extracting, and what they say they require.

sgl_kernel-0.3.21-cp310-abi3-manylinux2014_x86_64.whl -> sgl_kernel/flash_ops.abi3.so, ... , Requires-Dist: torch
"""

import re
import zipfile
import zlib
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

from .elf import MAGIC
from .examining import TEXT, UNKNOWN, Binary, examine
from .reading import CHUNK, MemorySource, Unreadable
from .sieve import Sieve

ZIP_MAGIC = b"PK\x03\x04"
IN_MEMORY = 24 << 20
"""Members up to this size are inflated whole; of larger ones the headers are kept while they go by."""
_STREAMED = (MAGIC, b"MZ", b"\xcf\xfa\xed\xfe")
_MOST_METADATA = 16 << 20
_MOST_INFLATED = 64 << 30
_BINARY_NAME = re.compile(
    r"\.(?:so(?:\.[\d.]{1,40})?|cubin|fatbin|ptx|a|o|pyd|dll|dylib|bin|exe)$|/bin/[^/]{1,100}$", re.I
)
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    MemoryError,
)
"""What reading a damaged, encrypted or oddly compressed member raises."""

Progress = Callable[[str, int, int], None]
"""Called with a member's name, the inflated bytes so far, and how many they will be."""


class WheelFacts(NamedTuple):
    """What the directory and the metadata say, without a look at any code."""

    name: str
    version: str
    requires: Tuple[str, ...]
    requires_python: str
    tags: Tuple[str, ...]
    binaries: Tuple[Tuple[str, int], ...]


class Wheel:
    """An open wheel. Raises Unreadable for what is no zip file; close it, or use it in a ``with``."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except _BROKEN as error:
            raise Unreadable("%s: %s" % (path, error))

    def __enter__(self) -> "Wheel":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def facts(self) -> WheelFacts:
        """Name, version, requirements, tags, and the members that look like binaries with their sizes."""
        metadata = _fields(self._text(".dist-info/METADATA"))
        tags = [value for key, value in _fields(self._text(".dist-info/WHEEL")) if key == "tag"]
        single = dict(metadata)
        return WheelFacts(
            single.get("name", ""),
            single.get("version", ""),
            tuple(value for key, value in metadata if key == "requires-dist"),
            single.get("requires-python", ""),
            tuple(tags),
            tuple((member.filename, member.file_size) for member in self._binaries()),
        )

    def binaries(self, on_progress: Optional[Progress] = None) -> Iterator[Binary]:
        """Each member that is a binary, by its beginning; of those whose name says nothing of it, too."""
        members = self._binaries()
        total, done = sum(member.file_size for member in members), 0
        for member in members:
            binary = self._read(member, _counted(on_progress, done, total))
            done += member.file_size
            if binary is not None:
                yield binary

    def _binaries(self) -> List[zipfile.ZipInfo]:
        return [each for each in self._zip.infolist() if _BINARY_NAME.search(each.filename) and not each.is_dir()]

    def _text(self, ending: str) -> str:
        depth = ending.count("/")
        name = next((name for name in self._zip.namelist() if name.endswith(ending) and name.count("/") == depth), None)
        if name is None:
            return ""
        try:
            with self._zip.open(name) as stream:
                return stream.read(_MOST_METADATA).decode("utf-8", "replace")
        except _BROKEN:
            return ""

    def _read(self, member: zipfile.ZipInfo, on_progress: Optional[Progress]) -> Optional[Binary]:
        name, size = member.filename, member.file_size
        if size > _MOST_INFLATED:
            return Binary(name, UNKNOWN, size=size, problems=("claims %d bytes: not read" % size,))
        problems: List[str] = []
        sieve, parts = Sieve(name, size), []
        try:
            with self._zip.open(member) as stream:
                seen = 0
                while True:
                    piece = stream.read(CHUNK)
                    if not piece:
                        break
                    if seen == 0 and size > IN_MEMORY and not piece.startswith(_STREAMED):
                        return None
                    seen += len(piece)
                    if size <= IN_MEMORY:
                        parts.append(piece)
                    else:
                        sieve.feed(piece)
                    if on_progress:
                        on_progress(name, seen, size)
        except _BROKEN as error:
            problems.append("the wheel is damaged here: %s" % error)
        binary = examine(MemorySource(b"".join(parts), name) if size <= IN_MEMORY else sieve.result())
        if binary.kind in (TEXT, UNKNOWN) and not binary.machine and not problems:
            return None
        return binary._replace(problems=tuple(problems + sieve.problems) + binary.problems)


def _counted(on_progress: Optional[Progress], done: int, total: int) -> Optional[Progress]:
    if on_progress is None:
        return None
    report = on_progress
    return lambda name, seen, _: report(name, done + seen, total)


def _fields(text: str) -> List[Tuple[str, str]]:
    """The header fields of METADATA or WHEEL, names in lower case; the description behind them is left out."""
    fields: List[Tuple[str, str]] = []
    for line in text.partition("\n\n")[0].splitlines():
        key, colon, value = line.partition(": ")
        if colon and not line.startswith((" ", "\t")):
            fields.append((key.lower(), value.strip()))
    return fields

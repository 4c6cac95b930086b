"""The Python files of a wheel, read without the rest of it; each distinct file is fetched and kept once."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

import zstandard

from scripts.fingerprinting.coverage import Package, Release
from scripts.fingerprinting.index import Index

_TAIL = 1 << 20
"""Bytes read from the end at first: the directory of the largest wheels takes less."""
_GAP = 1 << 17
"""Members closer together than this are read in one request: a request costs about as much."""

_HEADER = 4096
"""More than the header before a member's bytes takes."""


class SourceCache:
    """Python files on disk under the checksum and size that the wheel's directory gives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.zst"

    def __contains__(self, key: str) -> bool:
        return self._path(key).exists()

    def get(self, key: str) -> bytes:
        return zstandard.decompress(self._path(key).read_bytes())

    def put(self, key: str, source: bytes) -> None:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(zstandard.compress(source, 6))
        part.rename(path)


class RemoteFile(io.RawIOBase):
    """A file of the index as zipfile wants it: its end is read once, zipfile's reads of the directory are served from it."""

    def __init__(self, index: Index, release: Release) -> None:
        self._index = index
        self._release = release
        self._tail_start = max(release.size - _TAIL, 0)
        self._tail = index.read(release.wheel, self._tail_start, release.size - 1)
        self._at = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._release.size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        first = self._at
        end = self._release.size if size < 0 else min(first + size, self._release.size)
        self._at = max(end, first)
        if end <= first:
            return b""
        if first >= self._tail_start:
            return self._tail[first - self._tail_start : end - self._tail_start]
        return self._index.read(self._release.wheel, first, end - 1)


class Members:
    """The Python files of one wheel that are below the package's folder."""

    def __init__(self, index: Index, release: Release, package: Package) -> None:
        self._package = package
        self._file = RemoteFile(index, release)
        with zipfile.ZipFile(self._file) as archive:
            self._members = [info for info in archive.infolist() if package.has(info.filename)]
        self.described = f"{len(self._members)} files"

    def read_into(self, cache: SourceCache) -> dict[str, str]:
        """Fetch what the cache lacks of the recorded files. The key of every file's content, by its path."""
        keys = {info.filename: f"{info.CRC:08x}-{info.file_size}" for info in self._members}
        lacking = sorted(
            (
                info
                for info in self._members
                if self._package.records(info.filename) and keys[info.filename] not in cache
            ),
            key=lambda info: info.header_offset,
        )
        fetched = 0
        for group in _neighbours(lacking):
            first = group[0].header_offset
            # the local header repeats the name and may have an extra field of another length than the directory's
            end = group[-1].header_offset + _HEADER + group[-1].compress_size
            self._file.seek(first)
            block = self._file.read(end - first)
            fetched += len(block)
            for info in group:
                cache.put(keys[info.filename], _content(block, info.header_offset - first, info))
        self.described = f"{len(self._members)} files, {len(lacking)} new, {fetched / 1e6:.1f} MB read"
        return keys


def _neighbours(members: list[zipfile.ZipInfo]) -> list[list[zipfile.ZipInfo]]:
    groups: list[list[zipfile.ZipInfo]] = []
    end = -_GAP
    for info in members:
        if info.header_offset - end > _GAP or not groups:
            groups.append([])
        groups[-1].append(info)
        end = info.header_offset + info.compress_size
    return groups


def _content(block: bytes, at: int, info: zipfile.ZipInfo) -> bytes:
    name_length, extra_length = struct.unpack_from("<HH", block, at + 26)
    start = at + 30 + name_length + extra_length
    packed = block[start : start + info.compress_size]
    content = packed if info.compress_type == zipfile.ZIP_STORED else zlib.decompress(packed, -15)
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{info.filename} was not read right")
    return content

"""A stream of bytes without its compression and in UTF-8, block by block: what a log too large for memory needs."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

BLOCK = 1 << 20
ZSTD_PIECE = 4 << 10
"""Compressed bytes given to zstandard at once: it hands back all that they unpack to."""
MAX_NESTING = 3
"""A log that was compressed twice is plausible, one that was compressed four times is an attack."""


class NestedTooDeep(ValueError):  # noqa: N818 - named after what it says
    """Data that is compressed more often than any log is."""


def plain(blocks: Iterable[bytes], notes: list[str]) -> Iterator[bytes]:
    """``blocks`` unpacked (gzip, xz, bzip2, zstd, one inside the other) and in UTF-8. What was done goes into ``notes``.

    Damage ends the stream; what came before it stays. Raises NestedTooDeep.
    """
    stream: Iterator[bytes] = iter(blocks)
    for _ in range(MAX_NESTING):
        stream, first = _peeked(stream)
        kind = compression(first)
        if not kind:
            return _as_utf8(stream, notes)
        stream = _unpacked(stream, kind, notes)
    stream, first = _peeked(stream)
    if compression(first):
        raise NestedTooDeep(f"compressed more than {MAX_NESTING} times over")
    return _as_utf8(stream, notes)


def _peeked(stream: Iterator[bytes]) -> tuple[Iterator[bytes], bytes]:
    """The stream, whole, and its beginning: enough bytes to know it by."""
    taken: list[bytes] = []
    size = 0
    for block in stream:
        taken.append(block)
        size += len(block)
        if size >= 4096:
            break
    return chain(taken, stream), b"".join(taken)


def compression(first: bytes) -> str:
    """How data that begin with ``first`` are compressed; empty for what is not."""
    for magic, kind in (
        (b"\x1f\x8b", "gzip"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"BZh", "bzip2"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ):
        if first.startswith(magic):
            return kind
    return ""


def _unpacked(stream: Iterator[bytes], kind: str, notes: list[str]) -> Iterator[bytes]:
    """Member after member: rotated logs are often several, one after the other."""
    member = _Member(kind)
    for block in stream:
        data = block
        while data:
            try:
                yield from member.unpacked(data)
            except Exception:  # noqa: BLE001 - each library has errors of its own, and damage is an answer here
                notes.append(f"{kind} data is damaged; read as far as it goes")
                return
            if not member.is_done:
                break
            data = member.rest
            member = _Member(kind)
            if data and compression(data) != kind:
                return
    if member.is_begun:
        notes.append(f"{kind} data ends early")


class _Member:
    """One compressed member. ``rest`` is what follows it, once it is done."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._unpacker = _unpacker(kind)
        self.rest = b""
        self.is_begun = False

    @property
    def is_done(self) -> bool:
        return bool(self._unpacker.eof)

    def unpacked(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` unpacks to, in blocks: a small file can unpack to any size."""
        self.is_begun = True
        if self._kind == "zstd":
            yield from self._by_pieces(data)
        elif self._kind == "gzip":
            rest = data
            while rest and not self._unpacker.eof:
                yield self._unpacker.decompress(rest, BLOCK)
                rest = self._unpacker.unconsumed_tail
            self.rest = self._unpacker.unused_data
        else:
            piece = data
            while True:
                yield self._unpacker.decompress(piece, BLOCK)
                piece = b""
                if self._unpacker.eof or self._unpacker.needs_input:
                    break
            self.rest = self._unpacker.unused_data

    def _by_pieces(self, data: bytes) -> Iterator[bytes]:
        """zstandard has no limit for what it hands back, so it is given little at once."""
        for at in range(0, len(data), ZSTD_PIECE):
            yield self._unpacker.decompress(data[at : at + ZSTD_PIECE])
            if self._unpacker.eof:
                self.rest = self._unpacker.unused_data + data[at + ZSTD_PIECE :]
                return


def _unpacker(kind: str) -> Any:
    """A decompressor with ``decompress``, ``eof`` and ``unused_data``."""
    if kind == "gzip":
        import zlib

        return zlib.decompressobj(wbits=31)
    if kind == "xz":
        import lzma

        return lzma.LZMADecompressor(memlimit=512 << 20)
    if kind == "bzip2":
        import bz2

        return bz2.BZ2Decompressor()
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=128 << 20).decompressobj()


def _as_utf8(stream: Iterator[bytes], notes: list[str]) -> Iterator[bytes]:
    stream, first = _peeked(stream)
    encoding = _wide_encoding(first)
    if not encoding:
        return stream
    notes.append("decoded from UTF-16")
    return _transcoded(stream, encoding)


def _transcoded(stream: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in stream:
        yield decoder.decode(block).removeprefix("\ufeff").encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")


def _wide_encoding(first: bytes) -> str:
    """UTF-16, by its mark or by a NUL in every second byte."""
    if first.startswith(b"\xff\xfe"):
        return "utf-16-le"
    if first.startswith(b"\xfe\xff"):
        return "utf-16-be"
    sample = first[:4096]
    half = len(sample) // 2
    if half < 8:
        return ""
    if sample[1::2].count(0) > 0.8 * half and sample[0::2].count(0) < 0.1 * half:
        return "utf-16-le"
    if sample[0::2].count(0) > 0.8 * half and sample[1::2].count(0) < 0.1 * half:
        return "utf-16-be"
    return ""

"""Bytes of a log file -> text: compression, encoding, and the refusal of what is no text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from gpuwhy.logs import charsets

MAX_HEAD = 32 << 20
MAX_TAIL = 96 << 20
"""Bytes kept of the beginning and of the end of a text; what lies between in a larger one is left out and noted.

A log tells its start and its death at its ends, and a compressed file can unpack to any size."""
CHUNK = 1 << 20
MAX_NESTING = 3
"""A log that was compressed twice is plausible, one that was compressed four times is an attack."""

MAGIC = (
    (b"\x7fELF", "an ELF binary"),
    (b"MZ\x90", "a Windows program"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"%PDF-", "a PDF document"),
    (b"SQLite format 3", "an SQLite database"),
    (b"LPKSHHRH", "a binary journal; print it with `journalctl --file FILE -o export`"),
    (b"GGUF", "a GGUF model file"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O binary"),
    (b"\x50\xed\x55\xba", "a CUDA fat binary"),
)
BINARY_SHARE = 0.3
"""Share of bytes in a sample that no text has, above which the input is no log."""
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_TEXT_BYTES = bytes(set(range(0x20, 0x100)) | set(b"\t\n\r\x0c\x08\x1b\x1e"))


class UnreadableLog(Exception):  # noqa: N818 - named after what it says
    """The input is no text, is empty, or cannot be opened. The message is one line for people."""


def decode(data: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """The text of ``data`` and notes about what was done to it.

    Raises UnreadableLog when it is empty or no text at all.
    """
    notes: list[str] = []
    data = _unpacked(data, name, notes)
    if not data.strip(b"\x00 \t\r\n"):
        raise UnreadableLog(f"{name}: empty" if not data.strip() else f"{name}: nothing but NUL bytes")
    for magic, what in MAGIC:
        if data.startswith(magic):
            raise UnreadableLog(f"{name}: not a log but {what}")
    text = _decoded(data, notes)
    if text is None:
        raise UnreadableLog(f"{name}: not a log but binary data")
    return text, tuple(notes)


def _decoded(data: bytes, notes: list[str]) -> str | None:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            if encoding != "utf-8":
                notes.append(f"decoded from {encoding.upper()[:6]}")
                return charsets.from_wide(data[len(mark) :], encoding)
            data = data[len(mark) :]
            break
    wide = _wide_encoding(data)
    if wide:
        notes.append("decoded from UTF-16")
        return charsets.from_wide(data, wide)
    if b"\x00" in data:
        data = charsets.narrowed(data)
    if _binary_share(data) > BINARY_SHARE:
        return None
    zeros = data.count(0)
    if zeros:
        notes.append(f"{zeros} NUL bytes left out")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = charsets.from_foreign(data, notes)
    return charsets.repaired(text, notes)


def _wide_encoding(data: bytes) -> str:
    """UTF-16 without its mark shows as a NUL in every second byte."""
    sample = data[:4096]
    if not sample[:4].strip(_PRINTABLE):  # something else wrote the beginning
        return ""
    half = len(sample) // 2
    if half < 8:
        return ""
    if sample[1::2].count(0) > 0.8 * half and sample[0::2].count(0) < 0.1 * half:
        return "utf-16-le"
    if sample[0::2].count(0) > 0.8 * half and sample[1::2].count(0) < 0.1 * half:
        return "utf-16-be"
    return ""


def _binary_share(data: bytes) -> float:
    """The share of non-text bytes. NULs count only when not in runs: logs of crashed machines have pages of them."""
    step = max(1, len(data) // 16)
    sample = b"".join(data[at : at + 4096] for at in range(0, len(data), step))
    plain = sample.replace(b"\x00\x00\x00\x00", b"")
    if not plain:
        return 1.0
    return len(plain.translate(None, _TEXT_BYTES)) / len(plain)


def _unpacked(data: bytes, name: str, notes: list[str]) -> bytes:
    for _ in range(MAX_NESTING):
        if data.startswith(b"\x1f\x8b"):
            data = _bounded(_gzip(data, notes), notes)
        elif data.startswith(b"\xfd7zXZ\x00"):
            data = _bounded(_lzma(data, notes), notes)
        elif data.startswith(b"BZh"):
            data = _bounded(_bzip2(data, notes), notes)
        elif data.startswith(b"\x28\xb5\x2f\xfd"):
            data = _bounded(_zstd(data, notes), notes)
        else:
            return _bounded(iter((data,)), notes) if len(data) > MAX_HEAD + MAX_TAIL else data
    raise UnreadableLog(f"{name}: compressed more than {MAX_NESTING} times over")


def _bounded(chunks: Iterator[bytes], notes: list[str]) -> bytes:
    """Head and tail of a stream, cut at line ends; the lines left out stay as empty ones so that numbers hold."""
    head: list[bytes] = []
    size = 0
    tail: deque[bytes] = deque()
    tail_size = skipped = lines = 0
    for chunk in chunks:
        if size < MAX_HEAD:
            head.append(chunk[: MAX_HEAD - size])
            chunk = chunk[MAX_HEAD - size :] if size + len(chunk) > MAX_HEAD else b""
            size += len(head[-1])
        if chunk:
            tail.append(chunk)
            tail_size += len(chunk)
        while tail_size > MAX_TAIL:
            over = tail_size - MAX_TAIL
            first = tail.popleft()
            gone, kept = first[:over], first[over:]
            if kept:
                tail.appendleft(kept)
            tail_size -= len(gone)
            skipped += len(gone)
            lines += gone.count(b"\n")
    if skipped:
        notes.append(f"{skipped >> 20} MiB ({lines} lines) in the middle left out")
    return b"".join([*head, b"\n" * lines, *tail])


def _gzip(data: bytes, notes: list[str]) -> Iterator[bytes]:
    import zlib

    rest = data
    while rest.startswith(b"\x1f\x8b"):  # rotated logs are often several members one after the other
        unpacker = zlib.decompressobj(wbits=31)
        try:
            while not unpacker.eof:
                chunk = unpacker.decompress(rest, CHUNK)
                rest = unpacker.unconsumed_tail
                if chunk:
                    yield chunk
                if not rest and not unpacker.eof:
                    notes.append("gzip data ends early")
                    return
        except zlib.error:
            notes.append("gzip data is damaged; read as far as it goes")
            return
        rest = unpacker.unused_data


def _lzma(data: bytes, notes: list[str]) -> Iterator[bytes]:
    import lzma

    unpacker = lzma.LZMADecompressor(memlimit=512 << 20)
    return _stream(unpacker, data, (lzma.LZMAError, EOFError, MemoryError), "xz", notes)


def _bzip2(data: bytes, notes: list[str]) -> Iterator[bytes]:
    import bz2

    return _stream(bz2.BZ2Decompressor(), data, (OSError, EOFError, ValueError), "bzip2", notes)


def _stream(
    unpacker: object, data: bytes, errors: tuple[type[Exception], ...], kind: str, notes: list[str]
) -> Iterator[bytes]:
    piece = data
    while True:
        try:
            chunk = unpacker.decompress(piece, CHUNK)  # type: ignore[attr-defined]
        except errors:
            notes.append(f"{kind} data is damaged; read as far as it goes")
            return
        piece = b""
        if chunk:
            yield chunk
        if unpacker.eof:  # type: ignore[attr-defined]
            return
        if unpacker.needs_input and not chunk:  # type: ignore[attr-defined]
            notes.append(f"{kind} data ends early")
            return


def _zstd(data: bytes, notes: list[str]) -> Iterator[bytes]:
    import io

    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=128 << 20).stream_reader(
        io.BytesIO(data), read_across_frames=True
    )
    while True:
        try:
            chunk = reader.read(CHUNK)
        except (zstandard.ZstdError, MemoryError):
            notes.append("zstd data is damaged; read as far as it goes")
            return
        if not chunk:
            return
        yield chunk

"""Bytes of a log file -> text: encoding, and the refusal of what is no text."""

from __future__ import annotations

from gpuwhy.logs import charsets, environ_dumps

CHUNK = 1 << 20
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
FOREIGN_SHARE = 0.05
"""The same where the input is no UTF-8: code pages have no control characters, random bytes a tenth of them."""
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_TEXT_BYTES = bytes(set(range(0x20, 0x100)) | set(b"\t\n\r\x0c\x08\x1b\x1e"))


class UnreadableLog(Exception):  # noqa: N818 - named after what it says
    """The input is no text, is empty, or cannot be opened. The message is one line for people."""


def decode(data: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """The text of ``data`` and notes about what was done to it.

    Raises UnreadableLog when it is empty or no text at all.
    """
    notes: list[str] = []
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
    share = _binary_share(data)
    if share > BINARY_SHARE:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        if share > FOREIGN_SHARE:
            return None
        text = charsets.from_foreign(data, notes)
    text = environ_dumps.one_a_line(charsets.repaired(text, notes))
    zeros = text.count("\x00")
    if zeros:
        notes.insert(0, f"{zeros} NUL bytes left out")
    return text


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

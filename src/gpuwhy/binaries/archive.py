"""Static libraries: the members of an ar archive, GNU and BSD names, without extracting.

!<arch>  k.o/  ...    -> ("k.o", offset, size)
"""

from typing import Iterator, NamedTuple

from .reading import Source

MAGIC, THIN_MAGIC = b"!<arch>\n", b"!<thin>\n"
MOST_MEMBERS = 200000


class Member(NamedTuple):
    """A member: where its bytes begin, and how many they are. ``size`` is cut to what the archive holds."""

    name: str
    offset: int
    size: int
    is_whole: bool


def members(source: Source) -> Iterator[Member]:
    """Each member but the tables of names and symbols. Ends at the first header that is none."""
    names = b""
    at = len(MAGIC)
    for _ in range(MOST_MEMBERS):
        header = source.read_at(at, 60)
        if len(header) < 60 or header[58:60] != b"`\n":
            return
        digits = header[48:58].strip()
        if not digits.isdigit():
            return
        size, start = int(digits), at + 60
        raw = header[:16].rstrip()
        if raw == b"//":
            names = source.read_at(start, min(size, 1 << 24))
        elif raw.startswith(b"#1/") and raw[3:].isdigit():  # BSD: the name stands before the content
            length = min(int(raw[3:]), size, 4096)
            name = source.read_at(start, length).rstrip(b"\0")
            if not name.startswith(b"__.SYMDEF"):
                yield _member(source, name, start + length, size - length)
        elif raw not in (b"/", b"/SYM64/"):
            yield _member(source, _long_name(raw, names), start, size)
        at = start + size + (size & 1)


def _long_name(raw: bytes, names: bytes) -> bytes:
    if raw[:1] == b"/" and raw[1:].isdigit():
        at = int(raw[1:])
        return names[at : at + 4096].partition(b"\n")[0].rstrip(b"/")
    return raw.rstrip(b"/")


def _member(source: Source, name: bytes, offset: int, size: int) -> Member:
    there = max(0, min(size, source.size - offset))
    return Member(name.decode("utf-8", "backslashreplace"), offset, there, there == size)

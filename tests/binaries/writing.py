"""Writes fatbins and ELF files byte by byte, so that tests say what a reader must find, and lie where it must not trust."""

from __future__ import annotations

import struct
from typing import NamedTuple

CONTAINER = struct.Struct("<IHHQ")
ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
PTX, CUBIN, LTO = 1, 2, 8
EXACT, FAMILY, DEBUG, LZ4, ZSTD = 0x100000, 0x200000, 2, 0x2000, 0x8000


def entry(
    kind: int = CUBIN,
    arch: int = 80,
    flags: int = 0,
    version: tuple[int, int] = (1, 7),
    payload: bytes = bytes(64),
    header: int = 64,
    stored: int | None = None,
    packed: int = 0,
    size: int = 0,
    tail: bytes = b"",
) -> bytes:
    """One image: its header with ``tail`` behind it, then the payload. ``header`` and ``stored`` may lie."""
    header = header + len(tail)
    said = len(payload) if stored is None else stored
    major, minor = version
    fields = (kind, 0x0101, header, said, packed, 0, minor, major, arch, 0, 0, 0x11 | flags, 0, size)
    return ENTRY.pack(*fields) + tail + payload


def container(*entries: bytes, size: int | None = None) -> bytes:
    """A container of entries; ``size`` may lie."""
    body = b"".join(entries)
    return CONTAINER.pack(0xBA55ED50, 1, 16, len(body) if size is None else size) + body


class Part(NamedTuple):
    """A section: its bytes at an address of its own, in the order given."""

    name: str
    data: bytes
    kind: int = 1
    flags: int = 2
    link: int = 0
    entry_size: int = 0


def elf(
    *parts: Part,
    machine: int = 62,
    kind: int = 3,
    flags: int = 0,
    os_abi: int = 0,
    abi_version: int = 0,
    has_sections: bool = True,
    segments: tuple[tuple[int, str], ...] = (),
) -> bytes:
    """A little-endian 64-bit ELF file with these sections. Addresses are offsets; one segment loads all of it, and is
    executable like that of a program linked with ``-N``.

    ``segments`` are further program headers: type, and the section that each covers.
    """
    names = b"\0" + b"".join(part.name.encode() + b"\0" for part in parts) + b".shstrtab\0"
    headers = 64 + 56 * (1 + len(segments))
    body, places = bytearray(), {}
    for part in (*parts, Part(".shstrtab", names, 3, 0)):
        body += bytes(-(headers + len(body)) % 16)
        places[part.name] = (headers + len(body), len(part.data))
        body += part.data
    table = headers + len(body)
    rows = [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for part in (*parts, Part(".shstrtab", names, 3, 0)):
        offset, size = places[part.name]
        name = names.index(part.name.encode() + b"\0")
        rows.append(
            struct.pack(
                "<IIQQQQIIQQ", name, part.kind, part.flags, offset, offset, size, part.link, 0, 8, part.entry_size
            )
        )
    end = table + 64 * len(rows)
    program = [struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, end, end, 4096)]
    for segment, covered in segments:
        offset, size = places[covered]
        program.append(struct.pack("<IIQQQQQQ", segment, 4, offset, offset, offset, size, size, 8))
    ident = b"\x7fELF\x02\x01\x01" + bytes([os_abi, abi_version]) + bytes(7)
    shoff, shnum, shstr = (table, len(rows), len(rows) - 1) if has_sections else (0, 0, 0)
    head = struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, 0, 64, shoff, flags, 64, 56, len(program), 64 if shnum else 0, shnum, shstr
    )
    return ident + head + b"".join(program) + bytes(body) + (b"".join(rows) if has_sections else b"")


def library(
    needed: tuple[str, ...] = (),
    undefined: tuple[str, ...] = (),
    defined: tuple[str, ...] = (),
    runpath: str = "",
    soname: str = "",
    extra: tuple[Part, ...] = (),
    has_sections: bool = True,
) -> bytes:
    """A shared library with a dynamic section, and symbols without versions."""
    strings, places = bytearray(b"\0"), {"": 0}
    for text in (*needed, *undefined, *defined, runpath, soname):
        if text not in places:
            places[text] = len(strings)
            strings += text.encode() + b"\0"
    symbols = bytes(24)
    for name in undefined:
        symbols += struct.pack("<IBBHQQ", places[name], 0x12, 0, 0, 0, 0)
    for name in defined:
        symbols += struct.pack("<IBBHQQ", places[name], 0x12, 0, 1, 64, 8)
    rows = [(1, places[name]) for name in needed]
    rows += [(29, places[runpath])] if runpath else []
    rows += [(14, places[soname])] if soname else []
    parts = [
        Part(".dynstr", bytes(strings), 3),
        Part(".dynsym", symbols, 11, 2, 1, 24),
        Part(".hash", struct.pack("<II", 1, len(symbols) // 24) + bytes(8), 5),
    ]
    # the addresses are known once the file is laid out; they depend on sizes alone
    draft = elf(*parts, Part(".dynamic", bytes(16 * (len(rows) + 5)), 6), *extra, segments=((2, ".dynamic"),))
    at = dict(zip((".dynstr", ".dynsym", ".hash"), _offsets(draft), strict=False))
    rows += [(5, at[".dynstr"]), (10, len(strings)), (6, at[".dynsym"]), (4, at[".hash"]), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *row) for row in rows)
    return elf(*parts, Part(".dynamic", dynamic, 6), *extra, segments=((2, ".dynamic"),), has_sections=has_sections)


def _offsets(data: bytes) -> list[int]:
    table = struct.unpack_from("<Q", data, 40)[0]
    count = struct.unpack_from("<H", data, 60)[0]
    return [struct.unpack_from("<Q", data, table + 64 * number + 24)[0] for number in range(1, count)]


def archive(*members: tuple[str, bytes]) -> bytes:
    """An ar archive in the GNU manner; names are at most 15 characters long."""
    data = b"!<arch>\n"
    for name, content in members:
        data += f"{name + '/':16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}".encode() + b"`\n" + content
        data += b"\n" * (len(content) & 1)
    return data

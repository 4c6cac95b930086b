"""ELF: header, sections, segments, and what the dynamic linker reads. 32 and 64 bits, both byte orders.

    libtorch_cuda.so, 503 MB -> needs libcudart.so.13, GLIBC_2.17; undefined _ZN3c10...; sections .nv_fatbin ...

Every size in a file can lie, so each is cut to what the file holds before anything is read, and what did not fit is
told in ``problems``.
"""

import struct
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from .reading import CHUNK, Source

MAGIC = b"\x7fELF"
TYPES = {1: "object", 2: "executable", 3: "shared library", 4: "core dump"}
CUDA, AMDGPU, X86_64, AARCH64 = 190, 224, 62, 183
MACHINES = {3: "i386", 8: "MIPS", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 190: "NVIDIA GPU", 224: "AMD GPU", 205: "Intel GPU", 243: "riscv64", 258: "loongarch64"}  # fmt: skip

MOST_SECTIONS = 300000
MOST_SEGMENTS = 4096
MOST_SYMBOLS = 4000000
MOST_DYNAMIC = 65536
MOST_STRING = 65536
"""More than any real file has; a file that claims more is cut there, and said to be incomplete."""

_NOBITS, _DYNSYM = 8, 11
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
_VISIBLE = (1, 2, 10)
"""Bindings of symbols that others see: global, weak, unique."""
_BLOCK = 1 << 16


class NotElf(Exception):  # noqa: N818
    """The bytes are no ELF file, or their header is cut short."""


class Section(NamedTuple):
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int

    @property
    def has_bytes(self) -> bool:
        """Whether it takes room in the file (.bss does not)."""
        return self.type not in (0, _NOBITS) and self.size > 0

    @property
    def is_code(self) -> bool:
        return bool(self.flags & 4)


class Segment(NamedTuple):
    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int


class VersionNeed(NamedTuple):
    """``libc.so.6`` must offer ``GLIBC_2.34``."""

    library: str
    version: str
    is_weak: bool


class Symbol(NamedTuple):
    """A symbol of the dynamic table. ``library`` and ``version`` are of the version it is bound to, or ``""``."""

    name: str
    is_weak: bool
    version: str
    library: str


class Dynamic(NamedTuple):
    """What the dynamic linker is told. Lists keep the order of the file."""

    needed: Tuple[str, ...] = ()
    soname: str = ""
    rpath: Tuple[str, ...] = ()
    runpath: Tuple[str, ...] = ()
    version_needs: Tuple[VersionNeed, ...] = ()
    version_definitions: Tuple[str, ...] = ()
    flags: int = 0
    flags_1: int = 0


class Elf:
    """An ELF file. Raises NotElf when the header is not one; everything else that is wrong goes to ``problems``."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: List[str] = []
        head = source.read_at(0, 64)
        if head[:4] != MAGIC:
            raise NotElf("no ELF magic")
        if len(head) < 52 or head[4] not in (1, 2) or head[5] not in (1, 2) or (head[4] == 2 and len(head) < 64):
            raise NotElf("the ELF header is cut short or has no class")
        self.bits = 32 if head[4] == 1 else 64
        self.order = "<" if head[5] == 1 else ">"
        self.os_abi, self.abi_version = head[7], head[8]
        form = "HHIIIIIHHHHHH" if self.bits == 32 else "HHIQQQIHHHHHH"
        fields = struct.unpack_from(self.order + form, head, 16)
        (self.type, self.machine, _, _, self._phoff, self._shoff, self.flags, _) = fields[:8]
        self._phentsize, self._phnum, self._shentsize, self._shnum, self._shstrndx = fields[8:]
        self._sections: Optional[List[Section]] = None
        self._segments: Optional[List[Segment]] = None
        self._entries: Optional[List[Tuple[int, int]]] = None
        self._needs: Optional[Tuple[Dict[int, VersionNeed], Dict[int, str]]] = None

    @property
    def kind(self) -> str:
        """``shared library``, ``executable``, ``object``, ``core dump`` or ``ELF type N``.

        A position-independent executable is a shared library that names a program interpreter and has no SONAME.
        """
        if self.type == 3 and any(segment.type == PT_INTERP for segment in self.segments()):
            return "shared library" if self.dynamic().soname else "executable"
        return TYPES.get(self.type, "ELF type %d" % self.type)

    @property
    def machine_name(self) -> str:
        return MACHINES.get(self.machine, "machine %d" % self.machine)

    # sections and segments

    def sections(self) -> List[Section]:
        """The section table; empty when it was removed or lies outside of the file."""
        if self._sections is None:
            self._sections = self._read_sections()
        return self._sections

    def section_table(self) -> Tuple[int, int]:
        """Where the section table stands and how long it is, as the header claims."""
        return self._shoff, self._shentsize * self._shnum

    def section(self, name: str) -> Optional[Section]:
        return next((section for section in self.sections() if section.name == name), None)

    def _read_sections(self) -> List[Section]:
        if not self._shoff:
            return []
        form = struct.Struct(self.order + ("10I" if self.bits == 32 else "IIQQQQIIQQ"))
        if self._shentsize != form.size:
            self.problems.append("section table: entries of %d bytes" % self._shentsize)
            return []
        count, names = self._shnum, self._shstrndx
        first = self.source.read_at(self._shoff, form.size)
        if len(first) < form.size:
            self.problems.append("section table: lies outside of the file")
            return []
        fields = form.unpack(first)
        if count == 0:  # more than fits: the number stands in the first entry
            count = fields[5]
        if names == 0xFFFF:
            names = fields[6]
        if count > MOST_SECTIONS:
            self.problems.append("section table: claims %d entries" % count)
            count = MOST_SECTIONS
        table = self.source.read_at(self._shoff, form.size * count)
        rows = list(form.iter_unpack(table[: len(table) // form.size * form.size]))
        if len(rows) < count:
            self.problems.append("section table: %d of %d entries are in the file" % (len(rows), count))
        if not 0 < names < len(rows):
            if rows:
                self.problems.append("section table: no names")
            strings = b""
        else:
            strings = self.source.read_at(rows[names][4], min(rows[names][5], 1 << 24))
        sections = []
        size = self.source.size
        for name, kind, flags, address, offset, length, link, info, _, entry in rows:
            if kind not in (0, _NOBITS) and offset + length > size:
                self.problems.append("section %s: reaches beyond the end of the file" % (_text(strings, name) or "?"))
                length = max(0, size - offset)
            sections.append(Section(_text(strings, name), kind, flags, address, offset, length, link, info, entry))
        return sections

    def segments(self) -> List[Segment]:
        """The program headers."""
        if self._segments is None:
            self._segments = self._read_segments()
        return self._segments

    def _read_segments(self) -> List[Segment]:
        form = struct.Struct(self.order + ("8I" if self.bits == 32 else "IIQQQQQQ"))
        if not self._phoff or not self._phnum or self._phentsize != form.size:
            return []
        count = min(self._phnum, MOST_SEGMENTS)
        table = self.source.read_at(self._phoff, form.size * count)
        rows = list(form.iter_unpack(table[: len(table) // form.size * form.size]))
        if len(rows) < self._phnum:
            self.problems.append("program headers: %d of %d are in the file" % (len(rows), self._phnum))
        if self.bits == 32:
            return [
                Segment(kind, flags, offset, at, size, memory) for kind, offset, at, _, size, memory, flags, _ in rows
            ]
        return [Segment(kind, flags, offset, at, size, memory) for kind, flags, offset, at, _, size, memory, _ in rows]

    def end_by_headers(self) -> int:
        """Where the last thing ends that the headers announce: a file that is shorter was cut."""
        ends = [segment.offset + segment.file_size for segment in self.segments() if segment.type == PT_LOAD]
        ends += [self._shoff + self._shentsize * self._shnum] if self._shoff else []
        ends += [self._phoff + self._phentsize * self._phnum] if self._phoff else []
        return max(ends + [0])

    def offset_of(self, address: int) -> Optional[int]:
        """Where the byte that is loaded at an address stands in the file."""
        for segment in self.segments():
            if segment.type == PT_LOAD and segment.address <= address < segment.address + segment.file_size:
                return segment.offset + address - segment.address
        return None

    def interpreter(self) -> str:
        """The program interpreter, ``/lib64/ld-linux-x86-64.so.2``."""
        for segment in self.segments():
            if segment.type == PT_INTERP:
                return _text(self.source.read_at(segment.offset, min(segment.file_size, 4096)), 0)
        return ""

    def build_id(self) -> str:
        """The build id in hexadecimal, or ``""``."""
        for segment in self.segments():
            if segment.type == PT_NOTE:
                data = self.source.read_at(segment.offset, min(segment.file_size, 4096))
                for name, kind, content in notes(data, self.order):
                    if name == b"GNU" and kind == 3:
                        return content.hex()
        return ""

    # the dynamic section

    def _dynamic_entries(self) -> List[Tuple[int, int]]:
        if self._entries is not None:
            return self._entries
        place = next(((each.offset, each.file_size) for each in self.segments() if each.type == PT_DYNAMIC), None)
        if place is None:
            section = self.section(".dynamic")
            place = (section.offset, section.size) if section else (0, 0)
        form = struct.Struct(self.order + ("iI" if self.bits == 32 else "qQ"))
        data = self.source.read_at(place[0], min(place[1], MOST_DYNAMIC * form.size))
        if len(data) < place[1]:
            self.problems.append("dynamic section: %d of %d bytes are in the file" % (len(data), place[1]))
        entries = []
        for tag, value in form.iter_unpack(data[: len(data) // form.size * form.size]):
            if tag == 0:
                break
            entries.append((tag, value))
        self._entries = entries
        return entries

    def _entry(self, tag: int) -> Optional[int]:
        return next((value for each, value in self._dynamic_entries() if each == tag), None)

    def table_at(self, tag: int) -> Optional[int]:
        """Where in the file the table stands that an entry of the dynamic section names; None without such an entry."""
        address = self._entry(tag)
        return None if address is None else self.offset_of(address)

    def _strings(self) -> "Strings":
        at = self.table_at(5)
        if at is None:
            section = self.section(".dynstr")
            return Strings(self.source, section.offset, section.size) if section else Strings(self.source, 0, 0)
        return Strings(self.source, at, self._entry(10) or 0)

    def dynamic(self) -> Dynamic:
        """What the dynamic section and the version tables say; empty for a static file or an object."""
        entries = self._dynamic_entries()
        if not entries:
            return Dynamic()
        strings = self._strings()
        needs, definitions = self._versions()
        named = {tag: [strings.at(value) for each, value in entries if each == tag] for tag in (1, 14, 15, 29)}
        if not all(named[1]):
            self.problems.append("dynamic section: names of needed libraries are not readable")
        return Dynamic(
            tuple(name for name in named[1] if name),
            (named[14] or [""])[0],
            tuple(part for path in named[15] for part in path.split(":") if part),
            tuple(part for path in named[29] for part in path.split(":") if part),
            tuple(sorted(set(needs.values()))),
            tuple(definitions.values()),
            self._entry(30) or 0,
            self._entry(0x6FFFFFFB) or 0,
        )

    def _versions(self) -> Tuple[Dict[int, VersionNeed], Dict[int, str]]:
        """Versions by their number in the table of symbol versions: those needed, and those defined."""
        if self._needs is None:
            strings = self._strings()
            self._needs = (self._version_needs(strings), self._version_definitions(strings))
        return self._needs

    def _version_needs(self, strings: "Strings") -> Dict[int, VersionNeed]:
        found: Dict[int, VersionNeed] = {}
        at, count = self.table_at(0x6FFFFFFE), min(self._entry(0x6FFFFFFF) or 0, 4096)
        form, auxiliary = struct.Struct(self.order + "HHIII"), struct.Struct(self.order + "IHHII")
        while at is not None and count > 0 and len(found) < 65536:
            data = self.source.read_at(at, form.size)
            if len(data) < form.size:
                break
            _, versions, file, first, step = form.unpack(data)
            library, inner = strings.at(file), at + first
            for _ in range(min(versions, 4096)):
                data = self.source.read_at(inner, auxiliary.size)
                if len(data) < auxiliary.size:
                    break
                _, flags, number, name, inner_step = auxiliary.unpack(data)
                found[number & 0x7FFF] = VersionNeed(library, strings.at(name), bool(flags & 2))
                if not inner_step:
                    break
                inner += inner_step
            if not step:
                break
            at, count = at + step, count - 1
        return found

    def _version_definitions(self, strings: "Strings") -> Dict[int, str]:
        found: Dict[int, str] = {}
        at, count = self.table_at(0x6FFFFFFC), min(self._entry(0x6FFFFFFD) or 0, 65536)
        form = struct.Struct(self.order + "HHHHIII")
        while at is not None and count > 0:
            data = self.source.read_at(at, form.size)
            if len(data) < form.size:
                break
            _, flags, number, _, _, first, step = form.unpack(data)
            name = self.source.read_at(at + first, 4)
            if len(name) == 4 and not flags & 1:  # the base version names the file itself
                found[number & 0x7FFF] = strings.at(struct.unpack(self.order + "I", name)[0])
            if not step:
                break
            at, count = at + step, count - 1
        return found

    # dynamic symbols

    def undefined_symbols(self) -> Iterator[Symbol]:
        """Symbols that another library must define, in the order of the table."""
        for number, name, info in self._symbols(is_defined=False):
            version, library = self.version_of(number)
            yield Symbol(name, info >> 4 == 2, version, library)

    def undefined_names(self) -> Iterator[str]:
        """The names of the undefined symbols alone, which is much quicker than the symbols with their versions."""
        return (name for _, name, _ in self._symbols(is_defined=False))

    def defined_symbols(self) -> Iterator[Symbol]:
        """Symbols that other libraries can be bound to."""
        for number, name, info in self._symbols(is_defined=True):
            if info >> 4 in _VISIBLE:
                yield Symbol(name, info >> 4 == 2, self.version_of(number)[0], "")

    def symbol_table(self) -> Tuple[int, int]:
        """Where the dynamic symbols stand, and how many they are."""
        size = 16 if self.bits == 32 else 24
        section = next((each for each in self.sections() if each.type == _DYNSYM), None)
        if section is not None:
            return section.offset, section.size // size
        at = self.table_at(6)
        if at is None:
            return 0, 0
        old_hash = self.table_at(4)
        if old_hash is not None:
            data = self.source.read_at(old_hash, 8)
            if len(data) == 8:
                return at, struct.unpack(self.order + "II", data)[1]
        count = self._count_by_gnu_hash()
        if count is not None:
            return at, count
        strings = self.table_at(5)
        return at, (strings - at) // size if strings is not None and strings > at else 0

    def _gnu_hash(self) -> Optional[Tuple[int, int, int, int]]:
        at = self.table_at(0x6FFFFEF5)
        data = b"" if at is None else self.source.read_at(at, 16)
        if at is None or len(data) < 16:
            return None
        buckets, first, bloom, _ = struct.unpack(self.order + "4I", data)
        return at + 16 + bloom * (self.bits // 8), int(buckets), int(first), int(bloom)

    def _count_by_gnu_hash(self) -> Optional[int]:
        table = self._gnu_hash()
        if table is None:
            return None
        at, buckets, first, _ = table
        data = self.source.read_at(at, 4 * min(buckets, MOST_SYMBOLS))
        starts = struct.unpack(self.order + "%dI" % (len(data) // 4), data[: len(data) // 4 * 4])
        last = int(max(starts + (0,)))
        if last < first:
            return first
        at += 4 * buckets + 4 * (last - first)
        data = self.source.read_at(at, 4 * 65536)
        links = struct.unpack(self.order + "%dI" % (len(data) // 4), data[: len(data) // 4 * 4])
        # the chain of the last bucket ends with an odd hash
        return last + next((step + 1 for step, link in enumerate(links) if link & 1), 0)

    def _symbols(self, is_defined: bool) -> Iterator[Tuple[int, str, int]]:
        """Number, name and info of each named symbol that is defined here, or is not."""
        at, count = self.symbol_table()
        form = struct.Struct(self.order + ("I8xBxH" if self.bits == 32 else "IBxH16x"))
        if count > MOST_SYMBOLS or count * form.size > self.source.size:
            self.problems.append("dynamic symbols: claims %d" % count)
            count = min(MOST_SYMBOLS, self.source.size // form.size)
        strings = self._strings()
        step = CHUNK // form.size // 4
        for number in range(0, count, step):
            data = self.source.read_at(at + number * form.size, min(step, count - number) * form.size)
            rows = len(data) // form.size
            for row in range(rows) if is_defined else _undefined_rows(data[: rows * form.size], form.size):
                name, info, section = form.unpack_from(data, row * form.size)
                if name and (section != 0) == is_defined:
                    yield number + row, strings.at(name), info
            if len(data) < form.size:
                break

    def defined_name(self, number: int) -> str:
        """The name of a symbol that others can be bound to; ``""`` for one that is undefined or local."""
        form = struct.Struct(self.order + ("I8xBxH" if self.bits == 32 else "IBxH16x"))
        data = self.source.read_at(self.symbol_table()[0] + number * form.size, form.size)
        if len(data) < form.size:
            return ""
        name, info, section = form.unpack(data)
        if not hasattr(self, "_symbol_names"):
            self._symbol_names = self._strings()
        return self._symbol_names.at(name) if section and info >> 4 in _VISIBLE else ""

    def version_of(self, number: int) -> Tuple[str, str]:
        """Name and library of the version that a symbol is bound to; empty when it has none."""
        needs, definitions = self._versions()
        if not needs and not definitions:
            return "", ""
        if not hasattr(self, "_version_rows"):
            at = self.table_at(0x6FFFFFF0)
            self._version_rows = Strings(self.source, at or 0, self.source.size if at is not None else 0)
        data = self._version_rows.bytes_at(2 * number, 2)
        index = struct.unpack(self.order + "H", data)[0] & 0x7FFF if len(data) == 2 else 0
        need = needs.get(index)
        return (need.version, need.library) if need else (definitions.get(index, ""), "")


def _undefined_rows(table: bytes, size: int) -> Iterator[int]:
    """Rows of a symbol table whose section is 0. They are few among up to 200,000, so they are not found by unpacking."""
    at = 6 if size == 24 else 14
    low, high = table[at::size], table[at + 1 :: size]
    row = low.find(0)
    while row >= 0:
        if not high[row]:
            yield row
        row = low.find(0, row + 1)


class Strings:
    """A table of NUL-terminated strings, read in blocks: tables of 30 MB exist, and a reader needs a few names."""

    def __init__(self, source: Source, offset: int, size: int) -> None:
        self.source = source
        self.offset = offset
        self.size = min(size, max(0, source.size - offset))
        self._blocks: Dict[int, bytes] = {}

    def at(self, index: int) -> str:
        """The string at an index; ``""`` outside of the table."""
        number, within = divmod(index, _BLOCK)
        block = self._blocks.get(number) or self._block(number)
        end = block.find(b"\0", within)
        if end >= 0:
            return block[within:end].decode("ascii", "backslashreplace")
        data = block[within:] + self.bytes_at(index + len(block) - within, MOST_STRING)
        return data.partition(b"\0")[0].decode("ascii", "backslashreplace")

    def bytes_at(self, index: int, count: int) -> bytes:
        """Bytes of the table, fewer at its end."""
        number, within = divmod(index, _BLOCK)
        block = self._blocks.get(number) or self._block(number)
        data = block[within : within + count]
        if len(data) < count and len(block) == _BLOCK:
            data += self.bytes_at((number + 1) * _BLOCK, count - len(data))
        return data

    def _block(self, number: int) -> bytes:
        if len(self._blocks) >= 16:
            self._blocks.clear()
        at = number * _BLOCK
        block = self.source.read_at(self.offset + at, min(_BLOCK, self.size - at))
        self._blocks[number] = block
        return block


def notes(data: bytes, order: str = "<") -> Iterator[Tuple[bytes, int, bytes]]:
    """Name, type and content of each note in the bytes of a note section or segment."""
    at = 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from(order + "III", data, at)
        name = at + 12
        content = name + (name_size + 3 & ~3)
        if content + size > len(data):
            return
        yield data[name : name + name_size].rstrip(b"\0"), kind, data[content : content + size]
        at = content + (size + 3 & ~3)


def _text(strings: bytes, index: int) -> str:
    if index >= len(strings):
        return ""
    end = strings.find(b"\0", index, index + 4096)
    return strings[index : end if end >= 0 else index + 4096].decode("ascii", "backslashreplace")

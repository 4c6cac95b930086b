"""Fatbins: the containers in which nvcc puts the device code of one translation unit, read from headers only.

    container  50 ED 55 BA 01 00 10 00 <u64 size>
      entry    kind 2 (cubin), arch 120, flag 0x200000       -> sm_120f
      entry    kind 1 (PTX), arch 120, version 8.8, zstd     -> compute_120

The driver picks one image inside each container, so what belongs together stays together. No payload is read: kind,
architecture, suffix and PTX version stand in the 64 bytes before it. The format is undocumented; it was read off the
output of nvcc 9.2 to 13.5 and agrees with cuobjdump on 40,000 images of 66 libraries.
"""

import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

from .reading import Source, Unreadable

MAGIC = b"\x50\xed\x55\xba\x01\x00\x10\x00"
"""Magic, version 1, header size 16. The magic's four bytes alone are a constant in libcudart's code too."""
WRAPPER_SIZE = 24
"""Of one entry in ``.nvFatBinSegment``, which the host code registers: one for each container."""

PTX, CUBIN, OLD_CUBIN, LTO_IR, RELOCATABLE_PTX, TILE_IR, CONCATENATED = 1, 2, 4, 8, 0x40, 0x80, 0x100
KINDS = {PTX: "ptx", CUBIN: "cubin", OLD_CUBIN: "old cubin", LTO_IR: "lto-ir", RELOCATABLE_PTX: "relocatable ptx", TILE_IR: "tile-ir", CONCATENATED: "concatenated"}  # fmt: skip
_PREFIXES = {PTX: "compute_", CUBIN: "sm_", OLD_CUBIN: "sm_", LTO_IR: "lto_", RELOCATABLE_PTX: "compute_", TILE_IR: "tile_"}  # fmt: skip

_WIDE, _DEBUG, _LZ4, _OLD_COMPRESSION, _ZSTD, _EXACT, _FAMILY = 1, 2, 0x2000, 0x1000, 0x8000, 0x100000, 0x200000

MOST_CONTAINERS = 200000
MOST_IMAGES = 1000000
"""In one file; the largest library known has 3,015 containers with 5,969 images."""

_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_WALKED = struct.Struct("<HxxIQI4xHHI8xQ8xQ")
"""Of an entry's header what the walk needs: kind, header, payload and packed size, versions, arch, flags, size."""
_WINDOW = 320
"""Read at once: a container's header, an entry's, and the tails that entries have."""
_MOST_HEADER = 1 << 20
_MAGIC_AS_KIND = 0xED50
"""What the next container reads as, when the size of the one before is too large."""


class Code(NamedTuple):
    """What an image is, apart from where it stands; many images of a file share one.

    ``version`` is the PTX version ("8.8"), or that of the cubin format ("1.7", "1.8"). ``compression`` is ``""``,
    ``lz4``, ``zstd`` or ``old``.
    """

    kind: str
    arch: int
    suffix: str
    version: str
    compression: str
    is_debug: bool
    is_wide: bool

    @property
    def architecture(self) -> str:
        """``sm_120f``, ``compute_80``, ``lto_90a``, ``tile_100``; ``unknown_0x10_120`` for a kind nobody knows."""
        return _architecture(self.kind, self.arch) + self.suffix


class Image(NamedTuple):
    """One image: its entry header at ``offset``, then ``stored_size`` bytes of payload.

    ``packed_size`` is the exact compressed size, 0 when it is stored as it is; ``size`` the size once unpacked, 0
    likewise. Of an image that shares its payload with others, ``header_size`` reaches to that payload, the sizes are those
    of the shared payload, and ``inside`` is where the image begins in it once unpacked; otherwise that is -1.
    """

    code: Code
    offset: int
    header_size: int
    stored_size: int
    packed_size: int
    size: int
    inside: int


class Container(NamedTuple):
    """One translation unit's images. ``is_whole`` is false when it was cut or its sizes lie."""

    offset: int
    size: int
    images: Tuple[Image, ...]
    is_whole: bool


class Fatbins(NamedTuple):
    """The containers of a range, and what was wrong with it. ``gap_bytes`` lie between containers and are no padding."""

    containers: Tuple[Container, ...]
    problems: Tuple[str, ...]
    gap_bytes: int


def read_fatbins(source: Source, offset: int, size: int) -> Fatbins:
    """Every container from ``offset`` on. Never raises: what does not fit is told in ``problems``."""
    walk = _Walk(source, offset, offset + size)
    try:
        walk.run()
    except (Unreadable, struct.error, ValueError, OverflowError) as error:
        walk.problems.append("the walk ended: %s" % error)
    return Fatbins(tuple(walk.containers), tuple(walk.problems[:50]), walk.gap_bytes)


class _Walk:
    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end
        self.containers: List[Container] = []
        self.problems: List[str] = []
        self.gap_bytes = 0
        self.images = 0
        self.codes: Dict[Tuple[int, int, int, int, int], Code] = {}
        self.exact: Dict[bytes, bool] = {}

    def run(self) -> None:
        if self.end > self.source.size > 0:
            self.problems.append(
                "0x%x: the range ends at 0x%x, the file at 0x%x" % (self.start, self.end, self.source.size)
            )
            self.end = self.source.size
        at = self.start
        while at + 16 <= self.end:
            window = self.source.read_at(at, min(_WINDOW, self.end - at))
            if window[:8] != MAGIC:
                found = self._next_container(at, window)
                if found is None:
                    return
                at = found
                continue
            if len(self.containers) >= MOST_CONTAINERS or self.images >= MOST_IMAGES:
                self.problems.append("0x%x: more containers than any library has; the rest was not read" % at)
                return
            at = self._container(at, window)

    def _next_container(self, at: int, window: bytes) -> Optional[int]:
        if not window.strip(b"\0") and len(window) >= min(_WINDOW, self.end - at) and self.end - at <= _WINDOW:
            return None
        found = self.source.find(MAGIC, at, self.end - at, 1)
        gap = (found[0] if found else self.end) - at
        data = self.source.read_at(at, min(gap, 4096))
        if data.strip(b"\0") or gap > len(data):
            self.gap_bytes += gap
        return found[0] if found else None

    def _container(self, at: int, window: bytes) -> int:
        """Reads the container at a place; answers where to go on."""
        body = int.from_bytes(window[8:16], "little")
        end = at + 16 + body
        is_whole = end <= self.end
        if not is_whole:
            self.problems.append("0x%x: the container claims %d bytes, %d are there" % (at, body, self.end - at - 16))
            end = self.end
        images: List[Image] = []
        place, base = at + 16, at
        codes, unpack, read_at, new = self.codes, _WALKED.unpack_from, self.source.read_at, tuple.__new__
        while place < end:
            within = place - base
            if within + 64 > len(window):
                window, base, within = read_at(place, _WINDOW if end - place > _WINDOW else end - place), place, 0
                if len(window) < 64:
                    self.problems.append("0x%x: an entry's header is cut short" % place)
                    is_whole = False
                    break
            kind, header, stored, packed, minor, major, arch, flags, size = unpack(window, within)
            following = place + header + stored
            if header < 64 or following > end or kind == _MAGIC_AS_KIND:
                is_cut = 64 <= header < _MOST_HEADER and not is_whole and kind in KINDS
                self.problems.append("0x%x: an entry of %d + %d bytes does not fit" % (place, header, stored))
                is_whole = False
                if not is_cut:
                    break
                following = end = place + header  # the file may be cut inside this payload; its header is sound
            code = codes.get((kind, arch, flags, major, minor))
            if code is None:
                code = codes[kind, arch, flags, major, minor] = _code(kind, arch, flags, major, minor)
            if kind == CONCATENATED:
                images += self._concatenated(place, header, stored, packed, size, code)
            else:
                if kind == CUBIN and arch >= 100 and header > 72 and not code.suffix:
                    code = self._with_tail(code, place, window[within : within + header], header)
                # Image(...) takes three times as long, and this is done 6,000 times in a library
                images.append(new(Image, (code, place, header, stored, packed, size, -1)))
            place = following
        self.containers.append(Container(at, (end if is_whole else place) - at, tuple(images), is_whole))
        self.images += len(images)
        return end if is_whole else place

    def _with_tail(self, code: Code, place: int, data: bytes, header: int) -> Code:
        """A cubin's code, with the suffix that Tile cubins have in the tail of their entry header alone."""
        if len(data) < header:
            data = self.source.read_at(place, min(header, 4096))
        known = self.exact.get(data[64:])
        if known is None:
            # an options record (where the text begins, how long it is), an empty text, a copy of .nv.compat
            known = self.exact[data[64:]] = compatibility(data[73:]).get(9) == 1
        return code._replace(suffix="a") if known else code

    def _concatenated(self, place: int, header: int, stored: int, packed: int, size: int, outer: Code) -> List[Image]:
        """The images of an entry whose payloads are compressed together; their headers stand before it."""
        data = self.source.read_at(place, min(header, _MOST_HEADER))
        if len(data) < 72:
            self.problems.append("0x%x: a concatenated entry is cut short" % place)
            return []
        count, _ = struct.unpack_from("<II", data, 64)
        images: List[Image] = []
        at = 72
        while len(images) < count and at + 64 <= len(data):
            kind, _, inside, _, _, options, minor, major, arch, name_at, name_size, flags, _, _ = _ENTRY.unpack_from(
                data, at
            )
            code = _code(kind, arch, flags, major, minor)._replace(compression=outer.compression)
            images.append(Image(code, place + at, header - at, stored, packed, size, inside))
            ends = [64]
            if name_at:
                ends.append(name_at + name_size + 1)
            if options and at + options + 8 <= len(data):
                text_at, text_size = struct.unpack_from("<II", data, at + options)
                ends.append(text_at + text_size + 1)
            at += max(ends) + 7 & ~7
        if len(images) != count:
            self.problems.append("0x%x: %d of %d concatenated images are readable" % (place, len(images), count))
        return images


def options_of(source: Source, image: Image) -> str:
    """The options for ptxas that an entry carries: ``-maxrregcount 32``; ``""`` without."""
    header = source.read_at(image.offset, min(image.header_size, 1 << 16))
    if len(header) < 64:
        return ""
    at = struct.unpack_from("<I", header, 0x14)[0]
    if not at or at + 8 > len(header):
        return ""
    text_at, size = struct.unpack_from("<II", header, at)
    return header[text_at : text_at + size].decode("ascii", "backslashreplace").strip(" \0")


def source_name_of(source: Source, image: Image) -> str:
    """The source file that an entry names (with -G or -lineinfo); ``""`` without."""
    header = source.read_at(image.offset, min(image.header_size, 1 << 16))
    if len(header) < 64:
        return ""
    at, size = struct.unpack_from("<II", header, 0x20)
    return header[at : at + size].decode("utf-8", "backslashreplace").rstrip("\0") if at else ""


def compatibility(section: bytes) -> Dict[int, int]:
    """The attributes of a ``.nv.compat`` section, of which a cubin's entry header carries a copy.

    Triplets of format, attribute and value; format 4 is followed by as many bytes as the value says. 9: the cubin is
    for exactly its chip. Formats 2 and 3 pad or fill the same four bytes.
    """
    found: Dict[int, int] = {}
    at = 0
    while at + 4 <= len(section):
        form, attribute, value = struct.unpack_from("<BBH", section, at)
        if form == 0:
            break
        found.setdefault(attribute, value & 0xFF if form == 2 else value)
        at += 4 + (value if form == 4 else 0)
    return found


def _code(kind: int, arch: int, flags: int, major: int, minor: int) -> Code:
    suffix = "a" if flags & _EXACT else "f" if flags & _FAMILY else ""
    compression = "zstd" if flags & _ZSTD else "lz4" if flags & _LZ4 else "old" if flags & _OLD_COMPRESSION else ""
    if kind == TILE_IR and major > 255:  # 0x0D05 is 13.5
        minor, major = major & 0xFF, major >> 8
    name = KINDS.get(kind, "unknown 0x%x" % kind)
    return Code(name, arch, suffix, "%d.%d" % (major, minor), compression, bool(flags & _DEBUG), bool(flags & _WIDE))


def _architecture(kind: str, arch: int) -> str:
    number = next((each for each, name in KINDS.items() if name == kind), 0)
    return "%s%d" % (_PREFIXES.get(number, kind.replace(" ", "_") + "_"), arch)

"""Cubins: ELF files of device code, bare (``flashinfer-cubin`` has 16,000) or as the payload of a fatbin's entry.

e_flags 0x6007802, ABI 8, "-arch sm_120f" in .note.nv.tkinfo    -> sm_120f, made by CUDA 12.9
"""

from typing import List, NamedTuple, Tuple

from .elf import CUDA, Elf, NotElf, notes
from .fatbin import Code, compatibility
from .reading import PartSource, Source

MAGIC = b"\x7fELF\x02\x01\x01"
"""64 bits, little-endian: what every cubin begins with, and every program of this host too."""
_SM_BITS = 0xFF


class Cubin(NamedTuple):
    """A cubin. ``toolkit`` is the release that wrote it ("12.9"), ``""`` where it does not say.

    ``suffix_shown_by`` tells where the suffix stands: ``flags``, ``.nv.compat``, ``.note.nv.tkinfo``, ``file name``, or
    ``""`` when there is none; before sm_100 there is no ``f``.
    """

    code: Code
    offset: int
    size: int
    toolkit: str
    suffix_shown_by: str
    problems: Tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        return not self.problems


def read_cubin(source: Source, offset: int = 0) -> Cubin:
    """The cubin at a place of a source. Raises NotElf when there is none."""
    part = PartSource(source, offset, source.size - offset, source.name) if offset else source
    elf = Elf(part)
    if elf.machine != CUDA or elf.bits != 64 or elf.order != "<":
        raise NotElf("an ELF file, but no cubin")
    size = elf.end_by_headers()
    problems = list(elf.problems)
    if size > part.size:
        problems.append("0x%x: the cubin claims %d bytes, %d are there" % (offset, size, part.size))
    is_new = elf.abi_version >= 8
    arch = elf.flags >> 8 & _SM_BITS if is_new else elf.flags & _SM_BITS
    suffix, shown_by = ("a", "flags") if elf.flags & (8 if is_new else 0x800) else ("", "")
    toolkit, told = "", ""
    if is_new:
        sections = {section.name: section for section in elf.sections()}
        problems += [problem for problem in elf.problems if problem not in problems]
        if ".note.nv.tkinfo" in sections:
            note = sections[".note.nv.tkinfo"]
            toolkit, told = _from_note(part.read_at(note.offset, min(note.size, 1 << 16)))
            if told in ("sm_%da" % arch, "sm_%df" % arch) and not suffix:
                suffix, shown_by = told[-1:], ".note.nv.tkinfo"
        if not suffix and ".nv.compat" in sections:
            attributes = compatibility(part.read_at(sections[".nv.compat"].offset, 4096))
            if attributes.get(9) == 1:
                suffix, shown_by = "a", ".nv.compat"
        # NVIDIA's own assembler, unlike ptxas, notes no target: then nothing inside tells the family
        if not suffix and not told and arch >= 100 and _named_with_f(source.name, arch):
            suffix, shown_by = "f", "file name"
    is_debug = bool(elf.flags & 0x08000000) if is_new else any(each.name == ".debug_info" for each in elf.sections())
    code = Code("cubin", arch, suffix, "1.8" if is_new else "1.7", "", is_debug, True)
    return Cubin(code, offset, min(size or part.size, part.size), toolkit, shown_by, tuple(problems))


def bare_cubins(source: Source, offset: int, size: int, most: int = 20000) -> List[Cubin]:
    """Cubins that stand raw in a range, as a C array: ONNX Runtime has 114 of them in ``.rodata``."""
    found: List[Cubin] = []
    for place in source.find(MAGIC, offset, size, most):
        header = source.read_at(place, 20)
        if len(header) < 20 or int.from_bytes(header[18:20], "little") != CUDA:
            continue
        try:
            found.append(read_cubin(source, place))
        except NotElf:
            continue
    return found


def kernel_names(elf: Elf) -> List[str]:
    """The kernels (mangled) and device functions that a cubin has code for."""
    return [section.name[6:] for section in elf.sections() if section.name.startswith(".text.")]


def release_of(elf: Elf) -> str:
    """The CUDA release that wrote a cubin ("12.9"); cubins say so since ABI 8, others give ``""``."""
    note = elf.section(".note.nv.tkinfo")
    return _from_note(elf.source.read_at(note.offset, min(note.size, 1 << 16)))[0] if note else ""


def _from_note(data: bytes) -> Tuple[str, str]:
    """Release and target that ``.note.nv.tkinfo`` names: ("12.9", "sm_120f"); each ``""`` where it names none."""
    release, target = "", ""
    for _, _, content in notes(data):
        for text in content.split(b"\0"):
            if b", release " in text:
                release = text.partition(b", release ")[2].partition(b",")[0].decode("ascii", "replace")[:8]
            if b"-arch" in text:
                words = text.partition(b"-arch")[2].lstrip(b" =").split(b" ")
                target = words[0].decode("ascii", "replace")[:16]
    return release, target


def _named_with_f(name: str, arch: int) -> bool:
    stem = name.replace("\\", "/").rpartition("/")[2].lower()
    return "sm%df" % arch in stem or "sm_%df" % arch in stem

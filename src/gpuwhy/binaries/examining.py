"""One file, whatever it is: the whole answer of the readers.

examine(FileSource("flash_ops.abi3.so"))  -> shared library, 182 containers, needs libcudart.so.12, torch symbols
"""

import struct
from typing import Iterable, List, NamedTuple, Tuple

from . import archive
from .cubin import Cubin, read_cubin
from .device_code import SEARCHED_BYTES, STRAY, DeviceCode, Group, device_code_of
from .elf import AMDGPU, CUDA, MAGIC, Dynamic, Elf, NotElf
from .fatbin import MAGIC as FATBIN_MAGIC
from .fatbin import Container, Image, read_fatbins
from .ptx import looks_like_ptx, read_ptx
from .reading import PartSource, Source, Unreadable
from .runtime import NO_RUNTIME, NO_TORCH, CudaRuntime, TorchAbi, cuda_runtime_of, other_gpus_of, torch_abi_of

LIBRARY, EXECUTABLE, OBJECT = "shared library", "executable", "object"
ARCHIVE, CUBIN, FATBIN, PTX_TEXT = "archive", "cubin", "fatbin", "ptx"
FOREIGN, TEXT, UNKNOWN = "foreign program", "text", "unknown"

_SURPRISES = (struct.error, ValueError, OverflowError, IndexError, RecursionError, MemoryError)

_FOREIGN_PROGRAMS = ((b"MZ", "Windows program or library"), (b"\xcf\xfa\xed\xfe", "macOS program or library"))
_NOT_READ = (
    (b"\xca\xfe\xba\xbe", "macOS universal file or Java class"),
    (b"PK\x03\x04", "zip file"),
    (b"__CLANG_OFFLOAD_BUNDLE__", "clang offload bundle"),
    (b"CCOB", "compressed clang offload bundle"),
    (b"BC\xc0\xde", "LLVM bitcode"),
)


class Binary(NamedTuple):
    """What a file is and says. ``problems`` is empty when all of it could be read and fits together.

    ``other_gpus`` names code for those of other makers ("ROCm gfx90a").
    """

    name: str
    kind: str
    machine: str = ""
    size: int = 0
    device: DeviceCode = DeviceCode()
    dynamic: Dynamic = Dynamic()
    interpreter: str = ""
    build_id: str = ""
    runtime: CudaRuntime = NO_RUNTIME
    torch: TorchAbi = NO_TORCH
    other_gpus: Tuple[str, ...] = ()
    problems: Tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether what is reported is all there is."""
        return not self.problems and not self.device.problems


def examine(source: Source, name: str = "", searches: int = SEARCHED_BYTES) -> Binary:
    """Read a file. Raises Unreadable when its bytes cannot be had; whatever they are is told in the answer.

    ``searches`` is how many bytes of ordinary data are searched, for bare cubins and an embedded CUDA runtime; with 0
    only sections that are known for device code are read.
    """
    name = name or source.name
    try:
        return _examine(source, name, searches)
    except _SURPRISES as error:  # no file is known that does it; it would cost the answers of all others
        return Binary(name, UNKNOWN, size=source.size, problems=("not readable: %s" % error,))


def _examine(source: Source, name: str, searches: int) -> Binary:
    head = source.read_at(0, 24)
    if head[:4] == MAGIC:
        return _examine_elf(source, name, searches)
    if head[:8] == FATBIN_MAGIC:
        found = read_fatbins(source, 0, source.size)
        device = DeviceCode((Group("", "", STRAY, 0, found.containers),), problems=found.problems)
        return Binary(name, FATBIN, size=source.size, device=device)
    if head[:8] == archive.MAGIC:
        return _examine_archive(source, name, searches)
    if head[:8] == archive.THIN_MAGIC:
        return Binary(name, ARCHIVE, size=source.size, problems=("a thin archive: its members are other files",))
    return _examine_other(source, name, head)


def _examine_elf(source: Source, name: str, searches: int) -> Binary:
    try:
        elf = Elf(source)
    except NotElf as error:
        return Binary(name, UNKNOWN, size=source.size, problems=(str(error),))
    if elf.machine == CUDA:
        try:
            cubin = read_cubin(source)
        except NotElf as error:
            return Binary(name, CUBIN, elf.machine_name, source.size, problems=(str(error),))
        return Binary(name, CUBIN, elf.machine_name, source.size, DeviceCode((), (cubin,), problems=cubin.problems))
    if elf.machine == AMDGPU:
        return Binary(name, elf.kind, elf.machine_name, source.size, other_gpus=("AMD GPU code object",))
    dynamic = elf.dynamic()
    names = list(elf.undefined_names())
    runtime = cuda_runtime_of(elf, dynamic, names, bool(searches))
    has_code = any(each.name in (".nv_fatbin", "__nv_relfatbin", ".cask_resource") for each in elf.sections())
    # bare cubins are loaded through the driver or the runtime; what knows neither is not searched
    device = device_code_of(elf, searches if has_code or runtime.uses_cuda else 0, "__cudaRegisterFatBinary" in names)
    return Binary(
        name,
        elf.kind,
        elf.machine_name,
        source.size,
        device,
        dynamic,
        elf.interpreter(),
        elf.build_id(),
        runtime,
        torch_abi_of(names),
        other_gpus_of(elf, dynamic),
        tuple(elf.problems + _cut(elf, source))[:50],
    )


def _cut(elf: Elf, source: Source) -> List[str]:
    end = elf.end_by_headers()
    return ["the file ends at %d, its headers announce %d bytes" % (source.size, end)] if end > source.size else []


def _examine_archive(source: Source, name: str, searches: int) -> Binary:
    """The members together: their containers stay apart, as they do in what is linked from them."""
    groups: List[Group] = []
    cubins: List[Cubin] = []
    problems: List[str] = []
    others: List[str] = []
    wrappers, end, machine = 0, len(archive.MAGIC), ""
    for member in archive.members(source):
        end = member.offset + member.size
        if not member.is_whole:
            problems.append("%s: the archive ends inside this member" % member.name)
        part = PartSource(source, member.offset, member.size, member.name)
        if part.read_at(0, 4) != MAGIC:
            continue
        one = _examine_elf(part, member.name, searches)
        machine = machine or one.machine
        groups += [group._replace(member=member.name, base=member.offset) for group in one.device.groups]
        cubins += [cubin._replace(offset=cubin.offset + member.offset) for cubin in one.device.cubins]
        problems += ["%s: %s" % (member.name, each) for each in one.problems + one.device.problems]
        others += one.other_gpus
        wrappers += one.device.wrappers or 0
    if end + 60 < source.size:
        problems.append("0x%x: no member begins where one should" % end)
    device = DeviceCode(tuple(groups), tuple(cubins), wrappers or None)
    return Binary(
        name, ARCHIVE, machine, source.size, device, other_gpus=tuple(_once(others)), problems=tuple(problems[:50])
    )


def _examine_other(source: Source, name: str, head: bytes) -> Binary:
    for magic, kind in _FOREIGN_PROGRAMS:
        if head.startswith(magic):
            return _examine_foreign(source, name, kind)
    for magic, kind in _NOT_READ:
        if head.startswith(magic):
            others = ("clang offload bundle",) if "bundle" in kind else ()
            return Binary(name, UNKNOWN, kind, source.size, other_gpus=others, problems=("%s: not read" % kind,))
    text = source.read_at(0, 4096)
    if looks_like_ptx(text):
        return Binary(name, PTX_TEXT, size=source.size, device=_ptx_text(text, source.size))
    if text and all(32 <= byte < 127 or byte in b"\t\n\r" for byte in text[:512]):
        # such as the linker scripts that stand for libraries
        return Binary(name, TEXT, size=source.size, problems=("text, no binary",))
    problem = "empty" if not source.size else "neither ELF, fatbin, archive nor PTX"
    return Binary(name, UNKNOWN, size=source.size, problems=(problem,))


def _examine_foreign(source: Source, name: str, kind: str) -> Binary:
    """Programs whose sections are not read: their containers, wherever they stand, and nothing said of the rest."""
    found = read_fatbins(source, 0, source.size)
    device = DeviceCode(
        (Group("", "", STRAY, 0, found.containers),) if found.containers else (), problems=found.problems
    )
    problem = "%s: its sections are not read, containers were looked for in the whole file" % kind
    return Binary(name, FOREIGN, kind, source.size, device, problems=(problem,))


def _ptx_text(text: bytes, size: int) -> DeviceCode:
    code = read_ptx(text)
    if code is None:
        return DeviceCode(problems=("the PTX names no target",))
    image = Image(code, 0, 0, size, 0, 0, -1)
    return DeviceCode((Group("", "", STRAY, 0, (Container(0, size, (image,), True),)),))


def _once(values: Iterable[str]) -> List[str]:
    return list(dict.fromkeys(values))


__all__ = ["ARCHIVE", "CUBIN", "EXECUTABLE", "FATBIN", "FOREIGN", "LIBRARY", "OBJECT", "PTX_TEXT", "TEXT", "UNKNOWN", "Binary", "Unreadable", "examine"]  # fmt: skip

"""What a library expects beside itself: which CUDA runtime, which torch, whose GPUs.

flash_ops.abi3.so:  needs libcudart.so.12; 64 symbols of torch's C++ classes, new string ABI
libcublasLt.so.12:  the CUDA runtime 12.9 is linked in
"""

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from .elf import X86_64, Dynamic, Elf
from .reading import Source

MARKER = b"/cudart.shm."
"""A file name that the CUDA runtime uses, so it stands in the data of whatever has the runtime linked in."""
_RELEASE_MOVED = re.compile(rb"\xc7[\x00-\x07](..)\x00\x00", re.DOTALL)
"""``mov dword [register], 12080``: how cudaRuntimeGetVersion answers on x86-64."""
_PIECE, _MOST_TEXT = 4 << 20, 48 << 20
_TIED = ("N3c10", "K3c10", "N2at", "K2at", "N5torch", "N6caffe2")
_STABLE = ("aoti_torch_", "torch_")
_OTHERS = (
    ("libamdhip64", "ROCm"),
    ("libhsa-runtime64", "ROCm"),
    ("libhipblas", "ROCm"),
    ("librocblas", "ROCm"),
    ("librccl", "ROCm"),
    ("libMIOpen", "ROCm"),
    ("libsycl", "Intel GPU (SYCL)"),
    ("libze_loader", "Intel GPU (Level Zero)"),
    ("libmusart", "Moore Threads GPU (MUSA)"),
    ("libascendcl", "Ascend NPU"),
    ("libcnrt", "Cambricon MLU"),
)
_GFX = re.compile(rb"gfx[0-9a-f]{3,5}(?![0-9a-f])")


class CudaRuntime(NamedTuple):
    """``needed`` is the DT_NEEDED name of libcudart. ``is_embedded``: the runtime is linked in, of release ``release``
    ("12.9", ``""`` if it was not found). ``undefined`` counts the runtime's symbols that are undefined although
    no libcudart is needed: such a library loads only where another one has brought libcudart."""

    needed: str
    is_embedded: bool
    release: str
    undefined: int
    uses_cuda: bool

    @property
    def major(self) -> Optional[int]:
        """The CUDA major that the runtime is of: 12 for ``libcudart.so.12`` and ``libcudart-1a2b3c4d.so.12.8.90``."""
        text = self.needed.partition(".so.")[2] or self.release
        head = text.partition(".")[0]
        return int(head) if head.isdigit() and len(head) < 4 else None


class TorchAbi(NamedTuple):
    """Undefined symbols of torch. ``tied``: of its C++ classes, which change with each release; ``stable``: of its C
    interface, which does not. ``strings`` is ``cxx11`` or ``old`` by the std::string in the tied ones, or ``""``."""

    tied: int
    stable: int
    strings: str
    example: str

    @property
    def kind(self) -> str:
        """``release``: loads with one torch release; ``stable``: with any from the one that brought the interface."""
        return "release" if self.tied else "stable" if self.stable else ""


NO_RUNTIME = CudaRuntime("", False, "", 0, False)
NO_TORCH = TorchAbi(0, 0, "", "")


def cuda_runtime_of(elf: Elf, dynamic: Dynamic, names: List[str], searches: bool = True) -> CudaRuntime:
    """``names`` are the undefined symbols; ``searches``: whether data and code are searched for an embedded runtime."""
    needed = next((name for name in dynamic.needed if name.startswith("libcudart")), "")
    called = [name for name in names if name.startswith(("cuda", "__cudaRegister"))]
    has_code = elf.section(".nvFatBinSegment") is not None or elf.section(".nv_fatbin") is not None
    uses = bool(needed or called or has_code) or any(
        name.startswith(("libcuda.so", "libnvrtc", "libcublas", "libcudnn")) for name in dynamic.needed
    )
    if needed or called or not has_code or elf.type not in (2, 3):
        return CudaRuntime(needed, False, "", 0 if needed else len(called), uses)
    is_embedded = searches and _has_marker(elf)
    release = _embedded_release(elf) if is_embedded and elf.machine == X86_64 else ""
    return CudaRuntime("", is_embedded, release, 0, uses)


def _has_marker(elf: Elf) -> bool:
    """Libraries that were linked last stand last, so the end is looked at first: 4 of 48 MB in libcublasLt."""
    for section in elf.sections():
        if section.name.startswith(".rodata") and section.has_bytes:
            last = min(section.size, _PIECE)
            start = section.offset + section.size - last
            if elf.source.find(MARKER, start, last, 1) or elf.source.find(MARKER, section.offset, section.size, 1):
                return True
    return False


def _embedded_release(elf: Elf) -> str:
    """Searched from the end, where libraries stand that were linked last; the value stands twice in every sample."""
    text = elf.section(".text")
    if text is None:
        return ""
    seen: Dict[int, int] = {}
    at, least = text.offset + text.size, max(text.offset, text.offset + text.size - _MOST_TEXT)
    while at > least:
        start = max(least, at - _PIECE)
        for found in _RELEASE_MOVED.finditer(elf.source.read_at(start, at - start + 8)):
            value = int.from_bytes(found.group(1), "little")
            if 9000 <= value < 20000 and value % 10 == 0 and value % 1000 <= 120:
                seen[value] = seen.get(value, 0) + 1
                if seen[value] == 2:
                    return "%d.%d" % (value // 1000, value % 1000 // 10)
        at = start
    return ""


def torch_abi_of(names: List[str]) -> TorchAbi:
    """``names`` are the undefined symbols."""
    tied = [name for name in names if name.startswith("_Z") and any(part in name for part in _TIED)]
    stable = sum(name.startswith(_STABLE) for name in names)
    strings = ""
    if any("__cxx11" in name or "B5cxx11" in name for name in tied):
        strings = "cxx11"
    elif any("RKSs" in name or name.endswith("Ss") for name in tied):
        strings = "old"
    return TorchAbi(len(tied), stable, strings, tied[0] if tied else "")


def other_gpus_of(elf: Elf, dynamic: Dynamic) -> Tuple[str, ...]:
    """Makers of other GPUs whose code or libraries the file has, with AMD's targets where they stand open."""
    found: Dict[str, None] = {}
    for section in elf.sections():
        if section.name in (".hip_fatbin", ".hipFatBinSegment"):
            found[" ".join(["ROCm"] + _gfx_targets(elf.source, section.offset, section.size))] = None
        if section.name.startswith("__CLANG_OFFLOAD_BUNDLE__"):
            found["clang offload bundle" + section.name[24:60].replace("sycl", " (SYCL)")] = None
    for name in dynamic.needed:
        for start, maker in _OTHERS:
            if name.startswith(start) and not any(each.startswith(maker) for each in found):
                found[maker] = None
    longest = [name for name in found if not any(other != name and other.startswith(name) for other in found)]
    return tuple(longest)


def _gfx_targets(source: Source, offset: int, size: int) -> List[str]:
    """Targets in the table at the beginning of an uncompressed bundle."""
    names = _GFX.findall(source.read_at(offset, min(size, 1 << 16)))
    return sorted({name.decode("ascii") for name in names})[:40]

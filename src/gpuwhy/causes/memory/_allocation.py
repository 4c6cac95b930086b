"""A GPU allocation that failed: who says so, what it asked for, and who had the memory."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import says
from gpuwhy.causes.memory._unified import is_unified
from gpuwhy.knowledge.gpu_memory_sizes import memory_of
from gpuwhy.model.gpu_memory import size_of

GIB = 1 << 30
MIB = 1 << 20

SIGN = says(
    "gpu-out-of-memory",
    (
        "out of memory", "outofmemory", "out_of_memory", "memoryallocation", "alloc_failed", "allocation on device", "enough gpu memory", "insufficient gpu memory",
        "could not be allocated", "failed to allocate", "unable to allocate", "allocation_failed", "device memory allocation",
        "cudacachingallocator", "insufficient vram", "status_not_initialized", "error code 2", "failed to cuda ", "insufficient space in device",
    ),
    r"(?:torch\.(?:cuda\.)?)?\bOutOfMemoryError\b(?!: Task|: \d+ worker)|CUDA out of memory|CUDA (?:runtime |driver )?error:? .{0,120}?out of memory"
    r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|cudaMalloc(?:Async|Managed)?\w{0,12}\(?.{0,60}?(?:failed|error)\b.{0,20}out of memory|CU(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_\w{0,30}ALLOC\w{0,8}_FAILED"
    r"|Cuda failure (?:2 )?'out of memory'|Cuda [Rr]untime \(out of memory\)|\bAllocation on device\b|(?:failed|unable) to allocate (?:CUDA\d|backend buffer|compute|buffer for (?:the )?kv cache|\w{0,12} ?buffer)"
    r"|[Nn]o(?:t)? enough (?:free )?GPU memory|insufficient GPU memory|GPU memory \(\d{1,20} bytes\) could not be allocated|Failed: C[Uu][Dd][Aa] error .{0,120}out of memory"
    r"|RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)|CUDA memory allocation failed|cuMem(?:Create|Alloc)\w{0,6}.{0,60}out of memory|(?:RMM|rmm).{0,60}out_of_memory|\[TM\]\[(?:ERROR|FATAL)\].{0,120}out of memory"
    r"|CUDA error 2\b.{0,60}out of memory|device memory allocation .{0,60}failed|\(out of memory\)$|NVML_SUCCESS == .{0,200}CUDACachingAllocator|Insufficient VRAM|CUBLAS_STATUS_NOT_INITIALIZED when calling `?cublasCreate|CUDNN_STATUS_NOT_INITIALIZED\b|Insufficient space in device allocation|Failed to allocate memory for requested buffer|Failed to CUDA (?:calloc|malloc)(?: async)? \d{1,16} bytes|Error Code 2: OutOfMemory",
)  # fmt: skip
"""Every wording of a failed GPU allocation. It is shared by all causes of this kind, and proves none of them."""

_NOT_THIS = lazy_pattern(
    r"HIP (?:error|out of memory)|\bxpu\b|\bMPS backend\b|Killed process|oom-kill|oom_reaper|cc1plus|LLVM ERROR|ptxas|\bCPU\d? ?buffer\b|backend_cpu_buffer|_CPU\b|CUDA_Host|cudaMallocHost|cudaHost(?:Alloc|Register)"
    r"|pinned|host memory|RAM\b|raylet|node running low|\bOutOfResources\b|out of resource",
    re.IGNORECASE,
)
_ADVICE = lazy_pattern(
    r"\b(?:to (?:avoid|prevent)|may (?:run|cause|lead|result)|might (?:run|cause|lead)|can (?:cause|lead|run)|could (?:cause|lead|run)|in case of|if you (?:see|get|hit|encounter|run)|when you see|due to)\b.{0,60}(?:out of memory|OOM|OutOfMemory)"
    r"|except .{0,60}OutOfMemoryError|import OutOfMemoryError",
    re.IGNORECASE,
)
_SIZE = r"(\d{1,9}(?:\.\d{1,4})?) ?([KMGT]i?B|bytes)\b"
_ASKED = lazy_pattern(rf"(?:Tried to allocate|Requested ?:|allocating|Attempting to allocate|need(?:ed|s)?(?: to allocate)?) {{0,3}}{_SIZE}", re.IGNORECASE)  # fmt: skip
_BUFFER = lazy_pattern(r"buffer of size (\d{1,16})(?!\d)")
_TOTAL = lazy_pattern(rf"total capaci?ty (?:of )?{_SIZE}|{_SIZE} total capaci?ty|Device limit\s{{0,4}}: {_SIZE}|GiB\), total: {_SIZE}")  # fmt: skip
_FREE = lazy_pattern(rf"of which {_SIZE} is free|{_SIZE} free\b|Free \(according to CUDA\)\s{{0,4}}: {_SIZE}")
_ALLOCATED = lazy_pattern(rf"memory {_SIZE} is allocated by PyTorch|{_SIZE} already allocated|Currently allocated\s{{0,4}}: {_SIZE}")  # fmt: skip
_RESERVED = lazy_pattern(rf"{_SIZE} is reserved by PyTorch but unallocated")
_RESERVED_IN_TOTAL = lazy_pattern(rf"{_SIZE} reserved in total by PyTorch")
_OWN = lazy_pattern(rf"this process has {_SIZE} memory in use")
_OTHER = lazy_pattern(rf"\bProcess (\d{{1,10}}) has {_SIZE} memory in use")
_DEVICE = lazy_pattern(r"\bGPU (\d{1,2}) has a total|\(GPU (\d{1,2});|on device (\d{1,2})\b|current device: (\d{1,2})\b|Allocation on device (\d{1,2})\b")  # fmt: skip
LINES_OF_A_MESSAGE = 6
NEAR = 200
MOST_READ = 8
"""Failures that are read in full: each costs a pass over the log."""
CONTEXT = GIB
"""What a process holds beside torch's allocator as a rule: CUDA context, cuBLAS, small communicators."""
COMMUNICATORS = 3 * GIB
"""With communicators, graphs and work spaces of libraries: more than this is hardly the same process's (measured: 2.0 GiB on 8 x H200)."""


class Allocation(Struct, frozen=True):
    """A failed allocation. Sizes in bytes, None where the message does not say.

    ``own`` is what the process holds in all, ``reserved`` what its allocator holds, ``idle`` the part of that which no
    tensor uses; ``others`` the process ids that the driver lists, and what they hold (in a container the own one too).
    """

    match: Match
    text: str
    asked: int | None = None
    total: int | None = None
    free: int | None = None
    own: int | None = None
    reserved: int | None = None
    idle: int | None = None
    device: int | None = None
    others: tuple[tuple[int, int], ...] = ()

    @property
    def foreign(self) -> int | None:
        """Bytes of the card that neither this process's allocator nor its usual overhead explains."""
        if self.total is None or self.free is None:
            return None
        used = self.total - self.free
        if self.own is not None:
            return max(0, used - self.own)
        if self.reserved is not None:
            return max(0, used - self.reserved - COMMUNICATORS)
        return None

    @property
    def is_held_by_others(self) -> bool | None:
        """Whether another process holds a good part of the card (a tenth, and more than 1 GiB); None: the message does not tell."""
        foreign, total = self.foreign, self.total
        if foreign is None or total is None:
            return None
        return foreign > max(CONTEXT, total // 10)

    @property
    def is_fragmented(self) -> bool:
        """Whether the allocator holds more idle memory than was asked for, and not just the usual few hundred MiB."""
        return self.idle is not None and self.asked is not None and self.idle > max(2 * GIB, self.asked)

    @property
    def shortfall(self) -> int | None:
        """By how many bytes the request failed; at least one MiB."""
        if self.asked is None or self.free is None:
            return None
        return max(MIB, self.asked - self.free)


def failed_allocation(case: Case) -> Allocation | None:
    """The first failed GPU allocation of the log, the one with figures before one without."""
    matches = [match for match in case.all(SIGN.name) if _is_failure(match) and not is_pinned(case, match)]
    if not matches:
        return None
    first = _read(case, matches[0])
    if first.total is not None:
        return first
    # A wrapper or another rank often repeats the failure with the figures.
    near = [match for match in matches[1:] if abs(match.line.number - matches[0].line.number) < NEAR][:MOST_READ]
    return next((each for match in near if (each := _read(case, match)).total is not None), first)


_PINS = lazy_pattern(r"pin_memory ?=|\.pin_memory\(|pinned[-_ ]memory|cudaHostAlloc|cudaMallocHost|cudaHostRegister|cuMemHostAlloc|cuMemAllocHost|num_cpu_blocks, [\"']cpu|CachingHostAllocator", re.IGNORECASE)  # fmt: skip
INNERMOST = 4


def pinned_allocation(case: Case) -> Match | None:
    """CUDA's "out of memory" for memory of the host: it says the same where pages cannot be pinned."""
    return next((match for match in case.all(SIGN.name) if not match.is_code and is_pinned(case, match)), None)


def is_pinned(case: Case, match: Match) -> bool:
    """Whether the innermost frames, or the line itself, ask for pinned host memory. A message with a GPU's figures never does."""
    if "total capac" in match.text:
        return False
    if _PINS.search(match.text):
        return True
    frames = match.frames[-2:]
    if any(_PINS.search(frame.code) for frame in frames):
        return True
    # A call that is broken over several lines: the traceback quotes them above the message.
    above = case.lines_around(match, INNERMOST, 0) if frames else ()
    return any(
        _PINS.search(line.text[:300]) for line in above if line.number >= (match.event.span.first if match.event else 0)
    )


def _is_failure(match: Match) -> bool:
    text = match.text
    return not match.is_code and match.line.level not in ("info", "debug") and not _NOT_THIS.search(text) and not _ADVICE.search(text)  # fmt: skip


def _read(case: Case, match: Match) -> Allocation:
    text = message(case, match)
    # On unified memory the host's pages, those of the weights' files among them, are not another process's.
    is_told = not is_unified(case)
    asked = _first(_ASKED, text)
    if asked is None and (buffer := _BUFFER.search(text)):
        asked = int(buffer[1])
    allocated, unallocated, together = (_first(p, text) for p in (_ALLOCATED, _RESERVED, _RESERVED_IN_TOTAL))
    reserved = together if together is not None else None if allocated is None else allocated + (unallocated or 0)
    device = _DEVICE.search(text)
    return Allocation(
        match,
        text,
        asked=asked,
        total=_first(_TOTAL, text),
        free=_first(_FREE, text),
        own=_first(_OWN, text) if is_told else None,
        reserved=reserved if is_told else None,
        idle=unallocated,
        device=next((int(group) for group in device.groups() if group), None) if device else None,
        others=tuple((int(pid), size_of(number, unit)) for pid, number, unit in _OTHER.findall(text)),
    )


def message(case: Case, match: Match) -> str:
    """The line with those that continue it: pastes and exceptions break the message at its full stops."""
    following = sorted(case.lines_around(match, 0, LINES_OF_A_MESSAGE), key=lambda line: line.number)
    return "\n".join([match.text[:4000], *(line.text.strip()[:2000] for line in following)])


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    if found is None:
        return None
    groups = [group for group in found.groups() if group is not None]
    return size_of(groups[0], groups[1])


def gib(size: int | None) -> str:
    """``21.48 GiB``, ``286 MiB`` below one GiB; ``?`` for None."""
    if size is None:
        return "?"
    return f"{size / GIB:.2f} GiB" if abs(size) >= GIB else f"{size / MIB:.0f} MiB"


def total_of(case: Case, allocations: Iterable[Allocation | None]) -> int | None:
    """The memory of the card: from a message, else from what the driver lists."""
    stated = next((each.total for each in allocations if each is not None and each.total), None)
    if stated is not None:
        return stated
    listed = case.facts.value("gpus")
    sizes = [getattr(each, "memory", None) for each in listed] if isinstance(listed, list | tuple) else []
    known = [size for size in sizes if isinstance(size, int) and size > 0]
    return min(known) if known else _total_by_name(case)


def _total_by_name(case: Case) -> int | None:
    """What CUDA lets a process have of the GPU that is named; None where its memory comes in several sizes, or is not known."""
    named = str(case.facts.value("gpu") or "")[:200]
    memory = memory_of(named) if named else None
    return None if memory is None or memory.is_unified else int((memory.cuda_gib - memory.within) * GIB)

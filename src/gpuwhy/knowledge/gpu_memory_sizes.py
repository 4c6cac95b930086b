"""How much memory a GPU has: what nvidia-smi reports, and what CUDA lets a process have of it."""

from __future__ import annotations

import functools
import re

from msgspec import Struct

from gpuwhy.knowledge import gpus
from gpuwhy.knowledge.tables import read_table

_SIZE = re.compile(r"(?<![\w.])(\d{1,5}(?:\.\d{1,2})?)\s{0,2}(gib|gb|g|mib)\b", re.IGNORECASE | re.ASCII)
_LONGEST_NAME = 200
_USABLE_SHARE = 0.972
"""Of the nominal memory, what CUDA reports: 0.958 (GDDR6 with ECC) to 0.99 (HBM) on the listed ones."""


class GpuMemory(Struct, frozen=True):
    """Memory of one GPU. ``smi_mib`` is nvidia-smi's memory.total, which SGLang sizes its defaults by; ``cuda_gib``
    what cudaMemGetInfo reports as total, which both engines compute with, ``within`` so many GiB.
    """

    name: str
    smi_mib: int
    cuda_gib: float
    processors: int
    """Streaming multiprocessors."""
    is_linked: bool
    """NVLink between the GPUs of a host is usual: the buffers of NCCL are larger then."""
    is_unified: bool
    """The host shares this memory."""
    within: float
    provenance: str


class GpuMemoryTable(Struct, frozen=True):
    gpus: tuple[GpuMemory, ...]


@functools.cache
def _known() -> dict[str, GpuMemory]:
    return {row.name.lower(): row for row in read_table("gpu_memory_sizes", GpuMemoryTable).gpus}


def memory_of(name: str) -> GpuMemory | None:
    """The memory of a GPU by its name ("RTX PRO 6000 Blackwell", "8 x H100 80GB"), or by a size ("96 GB").

    A size in the name counts where the model comes in several ("A100 40GB"). None: not known, and no size given.
    """
    asked = re.sub(r"^\s{0,9}\d{1,3}\s{0,3}[x×]\s{0,3}", "", name[:_LONGEST_NAME], flags=re.IGNORECASE)
    exact = _known().get(asked.strip().lower())
    if exact:
        return exact
    size = _size_mib(asked)
    found = [row for candidate in _names(asked) if (row := _known().get(candidate.lower()))]
    if size:
        near = [row for row in found if abs(row.smi_mib - size) < 0.08 * size]
        return near[0] if near else _by_size(asked, size)
    return found[0] if found else None


def _names(asked: str) -> tuple[str, ...]:
    """Names of the table of GPUs, then those that are a part of what was asked, longest first."""
    known = tuple(gpu.name for gpu in gpus.candidates(asked))
    text = " ".join(re.findall(r"[a-z0-9]+", asked.lower()))
    contained = sorted((row.name for row in _known().values() if _is_part(row.name, text)), key=len, reverse=True)
    return (*known, *contained)


def _is_part(name: str, text: str) -> bool:
    words = " ".join(re.findall(r"[a-z0-9]+", name.lower().replace("nvidia ", "").replace("geforce ", "")))
    return f" {words} " in f" {text} "


def _size_mib(text: str) -> int | None:
    found = _SIZE.search(text)
    if not found:
        return None
    number = float(found[1])
    mib = number if found[2].lower() == "mib" else number * 1024
    return round(mib) if 256 <= mib <= 10**7 else None


def _by_size(name: str, mib: int) -> GpuMemory:
    known = gpus.by_name(name)
    return GpuMemory(
        name=name.strip(),
        smi_mib=mib,
        cuda_gib=round(mib / 1024 * _USABLE_SHARE, 2),
        processors=132,
        is_linked=known is not None and known.compute_capability in ("8.0", "9.0", "10.0", "10.3"),
        is_unified=False,
        within=round(mib / 1024 * 0.025, 2),
        provenance="inferred: from the size in the name; CUDA reports 2 to 4 % less",
    )

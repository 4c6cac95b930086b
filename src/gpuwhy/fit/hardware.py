"""The GPUs of an estimate, and what is gone from them before an engine loads anything."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.fit.amount import NOTHING, Amount
from gpuwhy.knowledge import gpus
from gpuwhy.knowledge.gpu_memory_sizes import GpuMemory

_OTHER_VENDORS = re.compile(r"\b(?:AMD|MI\d{3}[AX]?|Instinct|Radeon|Gaudi\d?|Ascend|XPU|TPU)\b", re.IGNORECASE)
_OF_AMD = re.compile(r"\b(?:AMD|MI\d{3}[AX]?|Instinct|Radeon)\b", re.IGNORECASE)


class Hardware(Struct, frozen=True, kw_only=True):
    """``gpus`` alike GPUs. ``taken_gib``: what other processes hold on the fullest of them. ``host_gib`` None: unknown."""

    gpu: GpuMemory
    gpus: int
    capability: float
    """9.0 for Hopper; 0.0 when the GPU is not known."""
    taken_gib: float = 0.0
    host_gib: float | None = None
    processors: int | None = None
    """CPU cores of the host; each may run a compiler."""

    @property
    def total(self) -> Amount:
        """What CUDA reports as total, in GiB."""
        return Amount(self.gpu.cuda_gib - self.gpu.within, self.gpu.cuda_gib, self.gpu.cuda_gib + self.gpu.within)

    @property
    def is_of_another_vendor(self) -> bool:
        """Not of NVIDIA: the kernels and work spaces of the engines are others there."""
        return _OTHER_VENDORS.search(self.gpu.name) is not None

    @property
    def is_of_amd(self) -> bool:
        return _OF_AMD.search(self.gpu.name) is not None

    @property
    def is_workstation_blackwell(self) -> bool:
        return self.capability >= 12


def hardware_of(gpu: GpuMemory, number: int, taken_gib: float = 0.0, host_gib: float | None = None) -> Hardware:
    """With the compute capability that the table of GPUs has for the name."""
    known = gpus.by_name(gpu.name)
    try:
        capability = float(known.compute_capability) if known else 0.0
    except ValueError:
        capability = 0.0
    return Hardware(gpu=gpu, gpus=number, capability=capability, taken_gib=taken_gib, host_gib=host_gib)


def cuda_context(hardware: Hardware) -> Amount:
    """Of one process on one GPU. measured: 0.51 GiB on H100; the others are less sure."""
    if hardware.capability >= 10:
        own = Amount(0.42, 0.55, 0.8)
    elif hardware.capability >= 9:
        own = Amount(0.45, 0.51, 0.62)
    else:
        own = Amount(0.25, 0.4, 0.55)
    if hardware.gpu.is_unified:
        # the operating system and the page cache live in the same memory: 102 of 121.7 GiB were free at best
        own = own + Amount(2.0, 8.0, 20.0)
    return own


def communication(hardware: Hardware, ranks: int, groups_of_sglang: bool) -> Amount:
    """Buffers of NCCL and of the custom all-reduce that exist before the weights.

    measured: 1.96 GiB at 8 ranks with NVLink (SGLang), 1.02 at 2 and 4 (vLLM); 0.26 at 2 over PCIe. Else inferred.
    """
    if ranks <= 1:
        return NOTHING
    if hardware.gpu.is_linked:
        expected = 1.0 + 0.12 * min(ranks, 16) if groups_of_sglang else 1.02
        return Amount.about(expected, 0.35, 0.35)
    expected = 0.1 + 0.1 * min(ranks, 16) if groups_of_sglang else 0.25
    return Amount.about(expected, 0.6, 0.7)

"""GPU names, PCI device ids, generations, and hardware limits by compute capability."""

from __future__ import annotations

import functools
import re

from msgspec import Struct

from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge.capability import Capability
from gpuwhy.knowledge.tables import read_table


class Gpu(Struct, frozen=True):
    """A GPU model. `first_open_driver` is the first open kernel module release whose README lists it."""

    name: str
    compute_capability: str
    pci_device_ids: tuple[str, ...]
    first_open_driver: str | None
    aliases: tuple[str, ...]
    provenance: str


class PciRange(Struct, frozen=True):
    """PCI device ids (hexadecimal, inclusive) of one chip family; the first range that contains an id counts."""

    first: str
    last: str
    compute_capability: str
    chip: str
    provenance: str


class Generation(Struct, frozen=True):
    compute_capability: str
    name: str
    is_tegra: bool
    provenance: str


class HardwareLimits(Struct, frozen=True):
    """Limits of one compute capability. `conflict` says where sources disagree."""

    compute_capability: str
    shared_per_sm_bytes: int
    shared_per_block_optin_bytes: int
    registers_per_sm: int
    max_threads_per_sm: int
    conflict: str | None
    provenance: str


class GpuTable(Struct, frozen=True):
    gpus: tuple[Gpu, ...]
    pci_ranges: tuple[PciRange, ...]
    generations: tuple[Generation, ...]
    limits: tuple[HardwareLimits, ...]


#: words that do not tell models of different capability apart
_NOISE = frozenset(
    [
        "nvidia",
        "geforce",
        "tesla",
        "corporation",
        "gpu",
        "gpus",
        "graphics",
        "card",
        "cards",
        "generation",
        "edition",
        "tensor",
        "core",
        "cores",
        "workstation",
        "server",
        "active",
        "embedded",
        "oem",
        "dgx",
        "hgx",
        "aws",
        "azure",
        "gcp",
        "mig",
        "each",
        "by",
        "with",
        "and",
        "founders",
        "desktop",
        "pcie",
        "pci",
        "e",
        "sxm",
        "sxm2",
        "sxm3",
        "sxm4",
        "sxm5",
        "sxm6",
        "nvl",
        "hbm",
        "hbm2",
        "hbm2e",
        "hbm3",
        "hbm3e",
        "gb",
        "vram",
        "memory",
        "ram",
        "x",
        "jetson",
        "agx",
        "design",
    ]
)
_MEMORY_OR_COUNT = re.compile(r"\d+(?:\.\d+)?(?:gb|gib|g)|\d+x|x\d+|pg\d+|nvl\d+", re.ASCII)
#: model words without a digit
_NAMED_MODELS = frozenset({"thor", "orin", "xavier", "titan", "titanx", "spark", "rubin"})
#: no GPU name is longer
_LONGEST_NAME = 200


@functools.cache
def _table() -> GpuTable:
    return read_table("gpus", GpuTable)


def _words(name: str) -> frozenset[str]:
    """The words of a name that identify the model: "NVIDIA GeForce RTX5090 32GB" -> {rtx, 5090}."""
    text = name.lower().replace("(pascal)", " pascal ")
    text = re.sub(r"\([^()]*\)|[®™©]", " ", text)
    text = re.sub(r"\btitan\s*x\b", "titanx", text)
    text = re.sub(r"\b(rtx|gtx|gt)(?=\d)", r"\1 ", text)
    text = re.sub(r"\b(\d{3,4})(ti|super|d)\b", r"\1 \2", text)
    words = (word for word in re.split(r"[^a-z0-9.]+", text) if word)
    return frozenset(
        word for word in words if word not in _NOISE and not _MEMORY_OR_COUNT.fullmatch(word) and len(word) < 20
    )


@functools.cache
def _models() -> tuple[tuple[frozenset[str], Gpu], ...]:
    return tuple((_words(name), gpu) for gpu in _table().gpus for name in (gpu.name, *gpu.aliases) if _words(name))


def candidates(name: str) -> tuple[Gpu, ...]:
    """Models that a name can mean, best kind of match first: same words, then fewer, then more than the model's."""
    if len(name) > _LONGEST_NAME:
        return ()
    literal = tuple(gpu for gpu in _table().gpus if name.strip() in (gpu.name, *gpu.aliases))
    wanted = _words(name)
    if literal or not _names_a_model(wanted):
        return literal
    same = [gpu for words, gpu in _models() if words == wanted]
    less_said = [gpu for words, gpu in _models() if wanted <= words]
    contained = [(words, gpu) for words, gpu in _models() if words <= wanted and _names_a_model(words)]
    longest = max((len(words) for words, _ in contained), default=0)
    found = same or less_said or [gpu for words, gpu in contained if len(words) == longest]
    return tuple(sorted(dict.fromkeys(found), key=lambda gpu: -_likeness(name, gpu)))


def _likeness(name: str, gpu: Gpu) -> int:
    """Shared words, the memory and board words included that do not count for identity; minus the model's others."""
    asked, known = (set(re.split(r"[^a-z0-9]+", text.lower())) for text in (name, gpu.name))
    return 2 * len(asked & known) - len(known)


def _names_a_model(words: frozenset[str]) -> bool:
    return any(any(c.isdigit() for c in word) or word in _NAMED_MODELS for word in words)


def by_name(name: str) -> Gpu | None:
    """The model a name means, as written by nvidia-smi or by a person; None if unknown or ambiguous.

    Vendor, brand, memory size and board form are ignored. Several models are no obstacle if all have the same
    compute capability: "RTX PRO 6000 Blackwell" has three editions, and the first is returned. A list of different
    models ("A10, T4") is ambiguous.
    """
    if len(name) > _LONGEST_NAME:
        return None
    found = candidates(name)
    if not found and re.search(r"[/,;]", name):
        parts = [part for part in re.split(r"[/,;]", re.sub(r"\([^()]*\)", " ", name)) if part.strip()]
        each = [by_name(part) for part in parts]
        if not all(each):
            return None
        found = tuple(gpu for gpu in each if gpu)
    return found[0] if len({gpu.compute_capability for gpu in found}) == 1 else None


def by_pci_device_id(device_id: str) -> Gpu | None:
    """The GPU of a PCI device id: "2BB1", "0x2bb1", "10de:2bb1" or nvidia-smi's "0x2BB110DE".

    An id that no table lists but that lies in the range of a chip gives a Gpu named after the chip.
    """
    found = re.fullmatch(r"\s*(?:10de:)?(?:0x)?([0-9a-f]{4})(?:10de)?\s*", device_id[:40], re.IGNORECASE | re.ASCII)
    if not found:
        return None
    wanted = found[1].upper()
    for gpu in _table().gpus:
        if wanted in gpu.pci_device_ids:
            return gpu
    for row in _table().pci_ranges:
        if int(row.first, 16) <= int(wanted, 16) <= int(row.last, 16):
            return Gpu(f"{row.chip} [{wanted}]", row.compute_capability, (wanted,), None, (), row.provenance)
    return None


def generation(capability: Capability) -> str | None:
    """("12.0") -> "Blackwell (workstation)"; None for a capability that no table names."""
    gpu = capabilities.parse(capability)
    if gpu is None:
        return None
    return next((row.name for row in _table().generations if row.compute_capability == gpu.plain.dotted), None)


def limits(capability: Capability) -> HardwareLimits | None:
    """Shared memory, register and thread limits of a compute capability; None if not known."""
    gpu = capabilities.parse(capability)
    return next((row for row in _table().limits if gpu and row.compute_capability == gpu.plain.dotted), None)


def capabilities_with_shared_limit(size_bytes: int) -> tuple[str, ...]:
    """Compute capabilities whose opt-in shared memory limit per block is this; dates a "Hardware limit" message."""
    return tuple(row.compute_capability for row in _table().limits if row.shared_per_block_optin_bytes == size_bytes)

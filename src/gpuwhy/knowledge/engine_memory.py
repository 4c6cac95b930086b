"""How SGLang and vLLM divide GPU memory, release by release: what is subtracted when, and their defaults.

derived: read in the releases' own files; "for changes" rows only to date a change, "from logs" from start-up logs of
that release. A release in between is taken to do as the older of its neighbours.
"""

from __future__ import annotations

import functools
import re
from typing import TypeVar

from msgspec import Struct
from packaging.version import InvalidVersion, Version

from gpuwhy.knowledge.tables import read_table

LONGEST_VERSION = 80
_RELEASE = re.compile(r"(?<![\d.])\d{1,3}\.\d{1,3}(?:\.\d{1,4})?(?:\.?(?:a|b|rc|post|dev)\d{1,6}){0,2}(?!\d)", re.ASCII)


class SglangMemory(Struct, frozen=True):
    """One release of SGLang. MiB as in its source; ``counts_draft``: draft weights are part of what the fraction holds."""

    version: str
    read: str
    counts_draft: bool
    speculative_reserve_mib: int
    has_prefill_graphs: bool
    speculation_stops_prefill_graphs: bool
    multimodal_prefill_graphs: tuple[str, ...]
    """Multimodal architectures that keep their prefill graphs; for the others they are turned off."""
    prefill_graph_tokens_mla: int
    multimodal_reserve_mib: int
    has_new_small_tiers: bool
    caps_graphs_by_requests: bool
    deepep_reserve_mib: int
    fraction_without_gpu: float
    splits_by_context: bool
    """The split buffers of Triton MLA grow with context and processors; before, eight splits."""
    loads_in_threads: bool
    names_minimum: bool
    """Its failure names the smallest fraction that would do."""
    provenance: str


class VllmMemory(Struct, frozen=True):
    """One release of vLLM. ``sampler_logits``: the sampler's peak in units of its float32 logits."""

    version: str
    read: str
    default_utilization: float
    snapshot_after_communication: bool
    subtracts_graphs: bool
    sampler_logits: float
    has_largest_tier: bool
    has_split_workspace: bool
    graph_cap_blackwell: int
    non_torch_alone_gib: float
    non_torch_linked_gib: float
    swap_gib: int
    names_device: bool
    misspells_models: bool
    is_first_engine: bool
    """The engine before V1: it counts a whole prompt in its profile, and says a context that is too long in tokens."""
    provenance: str


class EngineMemoryTable(Struct, frozen=True):
    sglang: tuple[SglangMemory, ...]
    vllm: tuple[VllmMemory, ...]


class Reading(Struct, frozen=True):
    """How well a release is known: ``sentence`` for people; not ``is_read``: taken from its neighbours."""

    is_read: bool
    sentence: str
    is_outside: bool = False
    """Older or newer than everything that was read, or no release at all: there is no neighbour on one side."""


@functools.cache
def _table() -> EngineMemoryTable:
    return read_table("engine_memory", EngineMemoryTable)


def sglang_memory(version: str) -> tuple[SglangMemory, Reading]:
    """The rules of that release, and where they come from. "" is the newest that was read."""
    return _chosen("SGLang", _table().sglang, version)


def vllm_memory(version: str) -> tuple[VllmMemory, Reading]:
    """As for SGLang."""
    return _chosen("vLLM", _table().vllm, version)


_UNCHECKED = "by general knowledge"
_HOW = {
    "in full": "its source was read", "for changes": "its source was read for what changed",
    "from logs": "known from start-up logs", _UNCHECKED: "known in general, its source was not read",
}  # fmt: skip
_SOURCE_WAS_READ = ("in full", "for changes")
_Row = TypeVar("_Row", SglangMemory, VllmMemory)


def _chosen(engine: str, rows: tuple[_Row, ...], version: str) -> tuple[_Row, Reading]:
    asked = release_of(version)
    if asked is None:
        newest = rows[-1]
        why = "no release is named" if not version else f"{version[:LONGEST_VERSION]!r} is no release"
        return newest, Reading(
            False, f"{why}: taken as {engine} {newest.version}, the newest whose source was read", True
        )
    for row in rows:
        # 0.5.13 and 0.5.13.post1 were read as one
        if Version(Version(row.version).base_version) == Version(asked.base_version) and not asked.is_prerelease:
            return row, Reading(row.read in _SOURCE_WAS_READ, f"{engine} {row.version}: {_HOW[row.read]}", row.read == _UNCHECKED)  # fmt: skip
    older = [row for row in rows if Version(row.version) <= asked]
    newer = [row for row in rows if Version(row.version) > asked]
    if not older:
        first = rows[0]
        return first, Reading(
            False, f"{engine} {asked} is older than every release that was read: taken as {first.version}", True
        )
    if not newer:
        last = rows[-1]
        return last, Reading(
            False, f"{engine} {asked} is newer than every release that was read: taken as {last.version}", True
        )
    if older[-1].read == _UNCHECKED and Version(newer[0].version).release[:2] == asked.release[:2]:
        return newer[0], Reading(False, f"the source of {engine} {asked} was not read: taken as {newer[0].version} of the same series; its older neighbour {older[-1].version} was not read either")  # fmt: skip
    return older[-1], Reading(False, f"the source of {engine} {asked} was not read: interpolated from its neighbours {older[-1].version} and {newer[0].version}, taken as the older", older[-1].read == _UNCHECKED)  # fmt: skip


def release_of(version: str) -> Version | None:
    """``0.5.23``, ``v0.19.0``, ``0.22.1rc1.dev26+g4721bb3aa``, ``nightly (0.11.1 line)``; None for what names none."""
    found = _RELEASE.search(version[:LONGEST_VERSION])
    try:
        return Version(found[0]) if found else None
    except InvalidVersion:
        return None

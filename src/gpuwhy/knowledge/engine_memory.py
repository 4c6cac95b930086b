"""How SGLang and vLLM divide GPU memory, release by release: what is subtracted when, and their defaults.

derived: read in the releases' own files, "in full", "for changes", or "for its budget": what sizes the cache, and not
how weights are kept or what kernels take. A row holds for the releases ``through`` the named
one: the functions that its fields come from were compared in each of them, and none of these fields changed.
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
    through: str
    read: str
    counts_draft: bool
    reserve_rule: str
    """How the default fraction comes about: by ranks, by tiers of the GPU's size, or by parts that are added up."""
    tier_under_35_gib: tuple[int, int, int]
    """Tokens of a chunk, largest graph on fewer than four ranks and on more; of GPUs between 20 and 35 GiB."""
    speculative_reserve_mib: int
    standalone_reserve_mib: int
    vision_rule: str
    """What a vision tower takes of the default fraction: nothing, a tenth, or by its size."""
    exempts_language_only: bool
    reserves_only_captured: bool
    """Without decode graphs nothing is reserved for them."""
    has_prefill_graphs: bool
    """They are captured unless something stops them; before, only where a flag asks for them."""
    prefill_graphs_stop: tuple[str, ...]
    prefill_graphs_never: tuple[str, ...]
    """Architectures that have none."""
    multimodal_prefill_graphs: tuple[str, ...]
    """Multimodal architectures that keep their prefill graphs; for the others they are turned off."""
    prefill_graph_reserve: str
    prefill_graph_tokens_mla: int
    sliding_pools: tuple[str, ...]
    """Architectures whose sliding layers have a pool of their own; of others they keep every token."""
    charges_draft_beside_sliding: bool
    """Tokens of a model with such a pool are charged with the draft's layers too, as full ones."""
    state_rule: str
    """States of hybrid models: as many as requests, or by a ratio; and how the tokens of a draft add to them."""
    multimodal_reserve_mib: int
    caps_graphs_by_requests: bool
    deepep_reserve_mib: int
    deepep_prefill_reserve_mib: int
    fraction_without_gpu: float
    splits_by_context: bool
    """The split buffers of Triton MLA grow with context and processors; before, eight splits."""
    loads_in_threads: bool
    failure: str
    """Wording of the failure: bare, with the source text of a value, with the value, with the smallest fraction that would do."""
    provenance: str


class VllmMemory(Struct, frozen=True):
    """One release of vLLM. ``sampler_logits``: the sampler's peak in units of its float32 logits."""

    version: str
    through: str
    read: str
    default_utilization: float
    is_first_engine: bool
    """The engine before V1: it counts a whole prompt in its profile, and says a context that is too long in tokens."""
    first_engine_for: tuple[str, ...]
    """What makes this release fall back to its first engine."""
    counts_all_in_use: bool
    """Whatever is in use on the GPU is subtracted, of other processes too, and nothing is checked before."""
    snapshot_after_communication: bool
    subtracts_graphs: bool
    sampler_logits: float
    warms_sampler: bool
    """The sampler runs once more after the graphs, on as many rows as requests."""
    large_cards: str
    """The GPUs on which more tokens and requests are the default."""
    has_largest_tier: bool
    small_gb10: bool
    requests_of_small_cards: int
    has_hybrid_cache: bool
    """Sliding layers keep their window alone beside full ones; before, every token."""
    keeps_chunked_whole: bool
    """Layers of chunked attention keep every token."""
    prints_blocks_of_a_group: bool
    """Its tokens of cache are the blocks, divided over the groups of layers; else requests of full length at a time."""
    largest_spread: float
    """Kinds of layers whose numbers differ by less than this factor are grouped by the larger number, else the smaller."""
    counts_states_of_drafts: bool
    """A request needs a state more for each token that is drafted."""
    counts_batches_in_flight: bool
    """What a sliding layer needs for a request goes by all steps that are under way, not by one."""
    graph_sizes: str
    graph_cap_blackwell: int
    has_split_workspace: bool
    non_torch_alone_gib: float
    non_torch_linked_gib: float
    fused_all_reduce_gib: float
    """Work space of FlashInfer's all-reduce on Hopper and its successor, on two ranks and more."""
    swap_gib: int
    """Of host memory per rank, which the first engine alone takes."""
    has_swap_flag: bool
    has_cache_bytes_flag: bool
    fits_context: bool
    """It can choose the longest context that fits."""
    checks_what_is_free: bool
    names_device: bool
    names_longest: bool
    counts_in_gb: bool
    misspells_models: bool
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
    is_budget_only: bool = False
    """Read is what sizes the cache, not how weights are kept."""


@functools.cache
def _table() -> EngineMemoryTable:
    return read_table("engine_memory", EngineMemoryTable)


def sglang_memory(version: str) -> tuple[SglangMemory, Reading]:
    """The rules of that release, and where they come from. "" is the newest that was read."""
    return _chosen("SGLang", _table().sglang, version)


def vllm_memory(version: str) -> tuple[VllmMemory, Reading]:
    """As for SGLang."""
    return _chosen("vLLM", _table().vllm, version)


_UNCHECKED, _BUDGET = "by general knowledge", "for its budget"
_HOW = {
    "in full": "its source was read", "for changes": "its source was read for what changed",
    _BUDGET: "its source was read for what sizes the cache",
    _UNCHECKED: "known in general, its source was not read",
}  # fmt: skip
_Row = TypeVar("_Row", SglangMemory, VllmMemory)


def _chosen(engine: str, rows: tuple[_Row, ...], version: str) -> tuple[_Row, Reading]:
    asked = release_of(version)
    if asked is None:
        newest = rows[-1]
        why = "no release is named" if not version else f"{version[:LONGEST_VERSION]!r} is no release"
        return newest, Reading(
            False, f"{why}: taken as {engine} {newest.version}, the newest whose source was read", True
        )
    older = [row for row in rows if Version(row.version) <= asked]
    newer = [row for row in rows if Version(row.version) > asked]
    if not older:
        first = rows[0]
        return first, Reading(
            False, f"{engine} {asked} is older than every release that was read: taken as {first.version}", True
        )
    row = older[-1]
    if asked <= Version(row.through):
        return row, _read(engine, row, asked)
    if not newer:
        return row, Reading(
            False, f"{engine} {asked} is newer than every release that was read: taken as {row.through}", True
        )
    return row, Reading(False, f"the source of {engine} {asked} was not read: interpolated from its neighbours {row.through} and {newer[0].version}, taken as the older", row.read == _UNCHECKED)  # fmt: skip


def _read(engine: str, row: _Row, asked: Version) -> Reading:
    if row.read == _UNCHECKED:
        return Reading(False, f"{engine} {asked}: {_HOW[row.read]}", True)
    if asked.is_prerelease:
        said = f"the source of {engine} {asked} was not read: the releases before and after it agree ({row.version} to {row.through})"
        return Reading(False, said, is_budget_only=row.read == _BUDGET)
    if asked == Version(row.version):
        return Reading(True, f"{engine} {asked}: {_HOW[row.read]}", is_budget_only=row.read == _BUDGET)
    said = f"{engine} {asked}: its source was read (compared with {row.version}: nothing of this changed)"
    return Reading(True, said, is_budget_only=row.read == _BUDGET)


def release_of(version: str) -> Version | None:
    """``0.5.23``, ``v0.19.0``, ``0.22.1rc1.dev26+g4721bb3aa``, ``nightly (0.11.1 line)``; None for what names none."""
    found = _RELEASE.search(version[:LONGEST_VERSION])
    try:
        return Version(found[0]) if found else None
    except InvalidVersion:
        return None

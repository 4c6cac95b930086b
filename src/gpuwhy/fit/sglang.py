"""How SGLang divides the memory of a GPU: its defaults, the budget of its pool, and what must fit beside it.

``pre`` is the memory that is free when loading begins. The fraction is a share of it: the CUDA context and NCCL are
outside, weights and pool inside. Everything allocated after the pool comes out of the rest.
"""

from __future__ import annotations

import math

from msgspec import Struct

from gpuwhy.fit.amount import GIB, MIB, NOTHING, Amount
from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.graphs import sglang_prefill_sizes
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.kv_cache import KvShape
from gpuwhy.fit.settings import Settings
from gpuwhy.fit.workspaces import backend
from gpuwhy.knowledge.config_defaults import has_sliding_pool_in_sglang
from gpuwhy.knowledge.engine_memory import SglangMemory

DEFAULT_SPECULATIVE_REQUESTS = 48
"""``--max-running-requests`` when speculating (speculative_hook.py)."""
_TRANSPORT_MIB = 0
_FEWEST_TOKENS, _WHOLE_PREFILL = 2048, 16384
"""That the default fraction reserves for; that are computed at a time without chunks, unless more are asked for."""
_SLOTS_PER_CONTEXT, _FEWEST_SLOTS, _MOST_SLOTS = 512, 2048, 4096
_STATES_PER_REQUEST = 3
"""Of a hybrid model whose prefixes are cached."""
AITER_LONG_CONTEXT, AITER_SHARE = 8192, 0.85
"""Under aiter a longer context lowers the fraction to that share (attention_hook.py)."""
_TIERS = ((20, 2048, 8, 8), (35, 2048, 24, 80), (60, 4096, 32, 160), (90, 8192, 256, 512), (160, 8192, 256, 512))
_NEW_SMALL_TIER = (35, 4096, 48, 160)
_LARGEST_TIER = (16384, 512, 512)


class Defaults(Struct, frozen=True):
    """What the settings leave to the engine, and what follows."""

    prefill_tokens: int
    graph_batch: int
    """That the fraction is computed with."""
    captured_batch: int
    """That graphs are captured for: no more than requests may run."""
    has_prefill_graphs: bool
    fraction: float
    reserve_mib: float
    source: str


def defaults(shape: Architecture, settings: Settings, hardware: Hardware, release: SglangMemory) -> Defaults:
    """The release's own choices for this GPU (server_args.py, arg_groups/memory_hook.py)."""
    tier_tokens, tier_batch = _tier(hardware.gpu.smi_mib, settings.tensor, release)
    chunk = _FEWEST_TOKENS if settings.is_unchunked else settings.prefill_tokens or tier_tokens
    tokens = settings.whole_prefill_tokens or _WHOLE_PREFILL if settings.is_unchunked else chunk
    batch = settings.graph_batch or tier_batch
    if release.caps_graphs_by_requests and settings.requests and not settings.graph_batch:
        batch = min(batch, settings.requests)
    captured = batch
    requests = settings.requests or (DEFAULT_SPECULATIVE_REQUESTS if _drafts(settings) else None)
    if requests:
        captured = min(batch, requests)
    prefill_graphs = _has_prefill_graphs(shape, settings, release)
    if not settings.has_graphs:
        captured = 0
    reserve = _reserve_mib(shape, settings, hardware, release, chunk, batch, prefill_graphs)
    fraction, source = _fraction(shape, settings, hardware, release, reserve)
    return Defaults(tokens, batch, captured, prefill_graphs, fraction, reserve, source)


def _drafts(settings: Settings) -> bool:
    return settings.speculation is not None


def _tier(mib: int, tensor: int, release: SglangMemory) -> tuple[int, int]:
    for limit, tokens, few, many in _TIERS:
        if mib < limit * 1024:
            if limit == _NEW_SMALL_TIER[0] and release.has_new_small_tiers:
                _, tokens, few, many = _NEW_SMALL_TIER
            return tokens, few if tensor < 4 else many
    tokens, few, many = _LARGEST_TIER
    return tokens, few if tensor < 4 else many


def _has_prefill_graphs(shape: Architecture, settings: Settings, release: SglangMemory) -> bool:
    if settings.has_prefill_graphs is False:
        return False
    if not release.has_prefill_graphs:
        return settings.has_prefill_graphs is True
    if settings.pipeline > 1 or settings.decode_context > 1:
        return False
    if settings.all_to_all not in ("", "none"):
        return False
    if release.speculation_stops_prefill_graphs and _drafts(settings):
        return False
    return not shape.is_multimodal or shape.name in release.multimodal_prefill_graphs


def _reserve_mib(
    shape: Architecture, settings: Settings, hardware: Hardware, release: SglangMemory, tokens: int, batch: int, prefill_graphs: bool
) -> float:  # fmt: skip
    """What the default fraction leaves free. It knows nothing of the weights."""
    reserve = 512 + 1.5 * max(tokens, _FEWEST_TOKENS) + settings.tensor * settings.pipeline / 8 * 1024
    if settings.has_graphs or not release.counts_draft:
        reserve += 2 * batch
    if settings.has_dp_attention:
        reserve += batch * settings.data * 3 + (1.5 * batch * settings.data if batch > 300 else 0)
    if prefill_graphs:
        reserve += 1536 if shape.mla else 8 * len(sglang_prefill_sizes(tokens))
    if hardware.gpu.smi_mib > 60 * 1024:
        reserve = max(reserve, 10 * 1024)
    if settings.all_to_all == "deepep":
        reserve += release.deepep_reserve_mib
    if settings.speculation and settings.speculation.needs_weights and release.speculative_reserve_mib:
        reserve += 6144 if settings.speculation.method == "STANDALONE" else release.speculative_reserve_mib
    return reserve


def _fraction(
    shape: Architecture, settings: Settings, hardware: Hardware, release: SglangMemory, reserve: float
) -> tuple[float, str]:
    if settings.fraction is not None:
        return settings.fraction, "as given"
    mib = hardware.gpu.smi_mib
    fraction = round(max(0.0, mib - reserve) / mib, 3)
    said = f"({mib} MiB of nvidia-smi - {reserve:.0f} MiB reserved) / {mib} MiB"
    vision = shape.vision
    exempt = settings.is_language_only and release.has_new_small_tiers
    if shape.is_multimodal and not exempt:
        ratio = vision.layers * vision.width**2 / (24 * 1024**2) if vision else 1.0
        fraction *= 0.95 * max(0.8, min(1.05, 1 - 0.1 * (ratio - 1)))
        said += ", lowered for the vision tower"
    if is_lowered_by_aiter(shape, settings, hardware):
        fraction *= AITER_SHARE
        said += f", times {AITER_SHARE} for long contexts under aiter"
    return fraction, "default: " + said


def is_lowered_by_aiter(shape: Architecture, settings: Settings, hardware: Hardware) -> bool:
    longest = settings.context or shape.context or 0
    return (
        backend(shape, hardware, settings.decode_backend or settings.attention_backend) == "aiter"
        and longest > AITER_LONG_CONTEXT
    )


def reserve_for_images(shape: Architecture, settings: Settings, release: SglangMemory) -> float:
    """GiB taken from the pool for image features, from 0.5.20 on."""
    if not shape.is_multimodal or settings.is_language_only:
        return 0.0
    return (release.multimodal_reserve_mib + _TRANSPORT_MIB) * MIB / GIB


def pool_budget(
    pre: Amount, weights: Amount, draft: Amount, fraction: float, images: float, release: SglangMemory
) -> Amount:
    """GiB for the pool: ``free after loading - pre * (1 - fraction)``. Below zero there is none.

    ``draft`` with the embedding that it drops later; it counts only where it is loaded before the pool is sized.
    """
    counted = weights + draft if release.counts_draft else weights
    return pre.scaled(fraction) - counted - Amount.exact(images)


def smallest_fraction(pre: Amount, weights: Amount, draft: Amount, release: SglangMemory) -> Amount:
    """``1 - available after loading / available before``: SGLang's own minimum."""
    counted = weights + draft if release.counts_draft else weights
    if pre.expected <= 0:
        return Amount.exact(1.0)
    spread = (
        max(counted.high - counted.expected, counted.expected - counted.low, pre.high - pre.expected) / pre.expected
    )
    middle = counted.expected / pre.expected
    return Amount(max(0.0, middle - spread), middle, middle + spread)


class Pool(Struct, frozen=True):
    """``tokens`` of one rank. ``static_gib`` is what the pool and the states really allocate."""

    tokens: Amount
    static_gib: Amount
    cell_bytes: float
    charged_bytes: float
    """``cell_bytes`` with the share of a draft."""
    states: int
    """Requests that have a state, on a hybrid model."""


def pool(shape: Architecture, settings: Settings, budget: Amount, kv: KvShape, draft_layers: int, draft_bytes: float, release: SglangMemory) -> Pool:  # fmt: skip
    """How many tokens a budget holds, and what is allocated for them."""
    cell = kv.full_layers * kv.full_bytes + kv.sliding_layers * kv.sliding_bytes
    if kv.sliding_layers and settings.has_sliding_pool and has_sliding_pool_in_sglang(shape.model_type):
        cell = kv.full_layers * kv.full_bytes + settings.sliding_ratio * kv.sliding_layers * kv.sliding_bytes
        if not kv.full_layers:
            cell = kv.sliding_layers * kv.sliding_bytes
    attending = max(1, kv.full_layers + kv.sliding_layers)
    charged = cell
    if release.counts_draft and draft_layers:
        # the draft's layers are taken to be as wide as the target's
        charged = float(int(cell * (1 + draft_layers / attending)))
    states, state_gib = 0, NOTHING
    if kv.state_layers:
        states, state_gib = _states(settings, budget, kv.state_layers * kv.state_bytes)
        budget = (
            (budget - state_gib).at_least(0) if state_gib.is_exact else budget.at_least(0).scaled(1 - _share(settings))
        )
    tokens = Amount(*(_tokens(each, charged, settings) for each in (budget.low, budget.expected, budget.high)))
    allocated = Amount(tokens.low * cell / GIB, tokens.expected * cell / GIB, tokens.high * cell / GIB)
    drafted = tokens.expected * draft_bytes / GIB
    return Pool(tokens, allocated + state_gib + Amount.exact(drafted), cell, charged, states)


def _share(settings: Settings) -> float:
    """Of the budget, what states take by the ratio."""
    return settings.state_ratio / (1 + settings.state_ratio)


def _states(settings: Settings, budget: Amount, each: float) -> tuple[int, Amount]:
    """How many states of ``each`` bytes are kept, and their GiB: by the ratio, or exactly as many as were asked for."""
    asked = settings.states or (settings.requests if not settings.has_prefix_cache else None)
    if asked and each:
        # by general knowledge: a number that is given stands in for the ratio
        states = max(1, asked // (settings.data if settings.has_dp_attention else 1))
        return states, Amount.exact(states * each / GIB)
    gib = budget.at_least(0).scaled(_share(settings))
    return int(gib.expected * GIB // each) if each else 0, gib


def request_slots(settings: Settings, tokens: float, context: int, states: int = 0) -> int:
    """Requests that the engine keeps a place for, on one rank (model_runner_kv_cache_mixin.py)."""
    asked = settings.requests or (DEFAULT_SPECULATIVE_REQUESTS if _drafts(settings) else None)
    slots = asked or min(max(int(tokens / max(1, context) * _SLOTS_PER_CONTEXT), _FEWEST_SLOTS), _MOST_SLOTS)
    groups = settings.data if settings.has_dp_attention else 1
    kept = min(slots // max(1, groups), tokens // 2)
    return int(min(kept, states // _STATES_PER_REQUEST) if states else kept)


def _tokens(gib: float, cell: float, settings: Settings) -> float:
    if gib <= 0 or cell <= 0:
        return 0.0
    page = max(1, settings.page or 1)
    tokens = math.floor(gib * GIB / cell / page) * page
    return float(min(tokens, settings.total_tokens)) if settings.total_tokens else float(tokens)


def no_pool_message(release: SglangMemory, fraction: float, available: float, pre: float) -> str:
    """What the release prints when weights leave nothing for the pool."""
    if not release.names_minimum:
        return f"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: self.server_args.mem_fraction_static={fraction:.4g}"  # fmt: skip
    minimum = 1 - available / pre if pre else 1.0
    return (
        f"ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static={fraction:.4g}. "
        f"Raise --mem-fraction-static above {minimum:.4f} (minimum viable = 1 - {available:.2f}/{pre:.2f} = {minimum:.4f}). "
        "If using speculative decoding, draft weights are now counted."
    )

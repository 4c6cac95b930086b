"""How SGLang divides the memory of a GPU: the budget of its pool, and what must fit beside it.

``pre`` is the memory that is free when loading begins. The fraction is a share of it: the CUDA context and NCCL are
outside, weights and pool inside. Everything allocated after the pool comes out of the rest.
"""

from __future__ import annotations

import math

from msgspec import Struct

from gpuwhy.fit.amount import GIB, MIB, NOTHING, Amount
from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.drafts import tokens_each
from gpuwhy.fit.kv_cache import KvShape
from gpuwhy.fit.settings import Settings
from gpuwhy.fit.sglang_defaults import DEFAULT_SPECULATIVE_REQUESTS
from gpuwhy.knowledge.config_defaults import has_sliding_pool_in_sglang
from gpuwhy.knowledge.engine_memory import SglangMemory

_TRANSPORT_MIB = 0
_SLOTS_PER_CONTEXT, _FEWEST_SLOTS, _MOST_SLOTS = 512, 2048, 4096
_STATES_PER_REQUEST = 3
"""Of a hybrid model whose prefixes are cached."""
_STATES_BY_DEFAULT = 512
"""Before a ratio decided."""


def reserve_for_images(shape: Architecture, settings: Settings, release: SglangMemory) -> float:
    """GiB taken from the pool for image features, from 0.5.18 on."""
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
    has_pool = bool(kv.sliding_layers) and settings.has_sliding_pool and _has_sliding_pool(shape, release)
    if has_pool:
        cell = kv.full_layers * kv.full_bytes + settings.sliding_ratio * kv.sliding_layers * kv.sliding_bytes
        if not kv.full_layers:
            cell = kv.sliding_layers * kv.sliding_bytes
    attending = max(1, kv.full_layers + kv.sliding_layers)
    charged = cell
    if has_pool and release.charges_draft_beside_sliding:
        charged = cell + draft_layers * kv.full_bytes
    elif release.counts_draft and draft_layers and not has_pool:
        # the draft's layers are taken to be as wide as the target's
        charged = float(int(cell * (1 + draft_layers / attending)))
    states, kept = 0, NOTHING
    if kv.state_layers:
        each = kv.state_layers * kv.state_bytes
        states = state_share(settings, budget.expected, each, release)[0]
        kept = Amount(
            *(state_share(settings, gib, each, release)[1] for gib in (budget.low, budget.expected, budget.high))
        )
        budget = Amount(*(max(0.0, of - by) for of, by in ((budget.low, kept.low), (budget.expected, kept.expected), (budget.high, kept.high))))  # fmt: skip
    tokens = Amount(*(_tokens(each, charged, settings) for each in (budget.low, budget.expected, budget.high)))
    allocated = Amount(tokens.low * cell / GIB, tokens.expected * cell / GIB, tokens.high * cell / GIB)
    drafted = tokens.expected * draft_bytes / GIB
    return Pool(tokens, allocated + kept + Amount.exact(drafted), cell, charged, states)


def _has_sliding_pool(shape: Architecture, release: SglangMemory) -> bool:
    """By the class of the model; by its type where config.json names no class."""
    if shape.name in release.sliding_pools:
        return True
    is_class = shape.name != shape.model_type and shape.name[:1].isupper()
    return not is_class and bool(release.sliding_pools) and has_sliding_pool_in_sglang(shape.model_type)


def state_share(settings: Settings, gib: float, each: float, release: SglangMemory) -> tuple[int, float]:
    """How many states of ``each`` bytes a budget keeps, and the GiB of all that is kept of states.

    By the ratio, or exactly as many as were asked for. When speculating, every request that runs keeps one for each of
    its drafted tokens too (handle_max_mamba_cache).
    """
    if not each:
        return 0, 0.0
    groups = max(1, settings.data) if settings.has_dp_attention else 1
    drafted = tokens_each(settings) if settings.speculation else 0
    running = (settings.requests or DEFAULT_SPECULATIVE_REQUESTS) // groups
    asked = settings.states or (settings.requests if not settings.has_prefix_cache else None)
    if not asked and release.state_rule == "by number":
        asked = settings.requests or _STATES_BY_DEFAULT
    if release.state_rule == "by ratio, for each token of a draft":
        each *= 1 + drafted
        drafted = 0
    if asked:
        states = max(1, asked // groups)
        return states, (states + min(running, states) * drafted) * each / GIB
    share = settings.state_ratio / (1 + settings.state_ratio)
    if not drafted:
        taken = max(0.0, gib) * share
        return int(taken * GIB // each), taken
    if release.state_rule == "by ratio, with those of a draft":
        states = int(max(0.0, gib) * share * GIB // (each * (1 + drafted / _STATES_PER_REQUEST)))
        return states, (states + min(running, states // _STATES_PER_REQUEST) * drafted) * each / GIB
    beside = running * drafted * each / GIB
    taken = max(0.0, gib - beside) * share
    return int(taken * GIB // each), taken + beside


def request_slots(settings: Settings, tokens: float, context: int, states: int = 0) -> int:
    """Requests that the engine keeps a place for, on one rank (model_runner_kv_cache_mixin.py)."""
    asked = settings.requests or (DEFAULT_SPECULATIVE_REQUESTS if settings.speculation else None)
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
    if release.failure != "minimum":
        value = {
            "source": f" Current value: self.server_args.mem_fraction_static={fraction:.4g}",
            "value": f" Current value: mem_fraction_static={fraction:.4g}",
        }.get(release.failure, "")
        return f"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.{value}"
    minimum = 1 - available / pre if pre else 1.0
    above = math.ceil(minimum * 1000) / 1000
    return (
        f"ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static={fraction:.4g}. "
        f"Raise --mem-fraction-static above {above:.3f} (minimum viable = 1 - available/pre = {minimum:.4f}). "
        "If using speculative decoding, draft weights are now counted."
    )

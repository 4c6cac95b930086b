"""How vLLM divides the memory of a GPU: what it asks for, what it subtracts, and what one request needs."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from gpuwhy.fit.amount import GIB, NOTHING, Amount, combined
from gpuwhy.fit.drafts import tokens_each
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.kv_cache import KvShape, block_bytes_of_all_groups, request_bytes_in_groups
from gpuwhy.fit.settings import Settings
from gpuwhy.knowledge.engine_memory import VllmMemory

_LARGE_CARD_GIB = 70
_LARGEST_CARD_GIB = 160
_CAPTURE_CAP = 512
DEFAULT_BLOCK = 16
_LONGEST_WHOLE_PROMPT = 32768
_UNALIGNED_ROWS_GIB = 0.21
_LOGITS_OF_OLD_SAMPLER = 5
"""Times the logits: releases whose sampler takes more were not measured with an unaligned vocabulary."""
_FUSING_GENERATIONS = (9, 10)
"""Of the compute capability."""
_PER_DOUBLING_GIB = 0.115
"""Of NCCL, from two ranks to four; more ranks are inferred from it."""


class Defaults(Struct, frozen=True):
    """What the settings leave to the engine (engine/arg_utils.py, for its server)."""

    prefill_tokens: int
    requests: int
    utilization: float
    capture_cap: int
    source: str


def defaults(settings: Settings, hardware: Hardware, context: int, release: VllmMemory) -> Defaults:
    tokens, requests = _tier(hardware, release)
    if release.is_first_engine:
        # prompts are not cut into chunks unless they may be very long
        tokens, requests = (context if 2048 < context <= _LONGEST_WHOLE_PROMPT else 2048), 256
    if settings.is_unchunked:
        tokens = max(tokens, context)
    cap = release.graph_cap_blackwell if 10 <= hardware.capability < 12 else _CAPTURE_CAP
    utilization = settings.fraction if settings.fraction is not None else release.default_utilization
    return Defaults(
        settings.prefill_tokens or tokens,
        settings.requests or requests,
        utilization,
        settings.graph_batch or cap,
        "as given" if settings.fraction is not None else f"default of vLLM {_named(release)}",
    )


def _named(release: VllmMemory) -> str:
    return release.version if release.through == release.version else f"{release.version} to {release.through}"


def _tier(hardware: Hardware, release: VllmMemory) -> tuple[int, int]:
    """Tokens and requests at a time, by the size or the name of the GPU (engine/arg_utils.py)."""
    total, name = hardware.gpu.cuda_gib, hardware.gpu.name.lower()
    if release.has_largest_tier and total >= _LARGEST_CARD_GIB:
        return 16384, 1024
    is_large = total >= _LARGE_CARD_GIB
    if release.large_cards == "H100 and H200":
        is_large = "h100" in name or "h200" in name
    elif "not A100" in release.large_cards and "a100" in name:
        is_large = False
    if release.small_gb10 and hardware.gpu.is_unified:
        is_large = False
    return (8192, 1024) if is_large else (2048, release.requests_of_small_cards)


def requested(total: Amount, utilization: float) -> Amount:
    """``ceil(total * gpu_memory_utilization)``, in GiB."""
    return Amount(*(math.ceil(each * GIB * utilization) / GIB for each in (total.low, total.expected, total.high)))


def kv_budget(asked: Amount, weights: Amount, activation: Amount, non_torch: Amount, graphs: Amount, release: VllmMemory) -> Amount:  # fmt: skip
    """GiB for the cache: what is asked for, less weights, activation peak and what is not PyTorch's; from 0.20.0 on
    less the estimated graphs too.
    """
    spent = [weights, activation, non_torch, *([graphs] if release.subtracts_graphs else [])]
    return combined((asked, *(each.negated() for each in spent)))


def non_torch(hardware: Hardware, ranks: int, vocabulary: int, release: VllmMemory, is_fused: bool = True) -> Amount:
    """What grows beside PyTorch's own memory while the profile runs, without the communicators.

    measured on H100, 0.19: 0.24 to 0.27 GiB alone, 2.07 to 2.10 on two ranks, 2.21 on four; on 0.11 0.13 and 0.55. The
    all-reduce that is fused by default from 0.17.0 on, on Hopper and its successor, makes the difference: inferred.
    0.21 more on every start whose vocabulary is no multiple of four (49155), and not on the same layers with one that is
    (49156): rows of logits are then not aligned to the 16 bytes that the usual kernels of the sampler read at once.
    """
    unaligned = _UNALIGNED_ROWS_GIB if release.sampler_logits < _LOGITS_OF_OLD_SAMPLER and vocabulary % 4 else 0.0
    alone = release.non_torch_alone_gib
    if ranks <= 1:
        return Amount(alone * 0.8, alone + unaligned, alone + max(0.25, 1.2 * unaligned))
    fused = release.fused_all_reduce_gib
    doubled = math.log2(ranks / 2) * _PER_DOUBLING_GIB if release.non_torch_linked_gib > 1 or fused else 0.0
    linked = release.non_torch_linked_gib + doubled + unaligned
    if hardware.gpu.is_linked and fused and not (is_fused and int(hardware.capability) in _FUSING_GENERATIONS):
        return Amount(linked * 0.85, linked, linked * 1.1 + doubled + fused)
    if hardware.gpu.is_linked:
        linked += fused
        return Amount(linked * 0.85, linked, linked * 1.1 + doubled)
    return Amount(alone * 0.8, min(linked, alone + 0.4 + unaligned), linked + fused)


class Pool(Struct, frozen=True):
    """``needed_gib``: what one request of the longest length reserves."""

    tokens: Amount
    longest: Amount
    concurrency: Amount
    needed_gib: float
    bytes_per_token: float


def batches_in_flight(settings: Settings, release: VllmMemory) -> int:
    """Steps that are under way at once: one that runs beside one that is prepared, and one per stage (config/vllm.py)."""
    if not release.counts_batches_in_flight:
        return 1
    stages = settings.pipeline
    return 2 if stages <= 1 else stages if release.warms_sampler else stages + 1


def kept(kv: KvShape, is_chunked: bool, settings: Settings, release: VllmMemory) -> KvShape:
    """What layers keep: chunked attention has no hybrid cache unless a variable asks for it."""
    is_hybrid = release.has_hybrid_cache and settings.has_sliding_pool
    return kv if is_hybrid and not (is_chunked and release.keeps_chunked_whole) else _kept_whole(kv)


def _kept_whole(kv: KvShape) -> KvShape:
    """With sliding layers that keep every token."""
    layers = kv.full_layers + kv.sliding_layers
    return KvShape(layers, kv.full_bytes or kv.sliding_bytes, 0, 0.0, 0, kv.state_layers, kv.state_bytes)


def pool(settings: Settings, budget: Amount, kv: KvShape, length: int, in_flight: int, extra_bytes: float, release: VllmMemory) -> Pool:  # fmt: skip
    """The tokens that a budget holds as vLLM prints them: requests of ``length`` at a time, times that length; up to
    0.20.0 the tokens that all groups of layers keep, which is fewer on a model whose layers differ.
    """
    block = max(1, settings.page or DEFAULT_BLOCK)
    spread, states = release.largest_spread, tokens_each(settings) if release.counts_states_of_drafts else 1

    def request(of: int) -> float:
        return request_bytes_in_groups(kv, of, in_flight, block, spread, states) + extra_bytes * of

    needed = request(length)
    ranks = max(1, settings.decode_context)
    concurrency = NOTHING
    if needed > 0:
        concurrency = budget.at_least(0).scaled(GIB / needed * ranks)
    holds = bool(kv.per_token or kv.state_layers)
    longest = Amount(*(_longest(each * GIB * ranks, request) if holds else 0.0 for each in (budget.low, budget.expected, budget.high)))  # fmt: skip
    tokens, each = concurrency.scaled(length), needed / max(1, length)
    printed = block_bytes_of_all_groups(kv, block, spread) + extra_bytes
    if release.prints_blocks_of_a_group and printed:
        tokens, each = budget.at_least(0).scaled(GIB / printed * ranks), printed
    return Pool(tokens, longest, concurrency, needed / ranks / GIB, each)


def _longest(available: float, request: Callable[[int], float]) -> float:
    """The longest request that fits, by halving: what a request needs grows with its length but not evenly."""
    if available <= 0:
        return 0.0
    low, high = 0, 1 << 28
    while low < high:
        middle = (low + high + 1) // 2
        if request(middle) <= available:
            low = middle
        else:
            high = middle - 1
    return float(low)


def not_free_message(release: VllmMemory, free: float, total: float, utilization: float) -> str:
    device = " cuda:0" if release.names_device else ""
    return (
        f"ValueError: Free memory on device{device} ({free:.2f}/{total:.2f} GiB) on startup is less than desired GPU memory "
        f"utilization ({utilization:g}, {total * utilization:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory "
        "used by other processes."
    )


def no_cache_message(release: VllmMemory) -> str:
    rest = "." if release.misspells_models else " (this flag also controls CPU memory reservation on the CPU backend, despite its name)."  # fmt: skip
    return f"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine{rest}"  # fmt: skip


def too_long_message(release: VllmMemory, length: int, needed: float, available: float, longest: float) -> str:
    if release.is_first_engine:
        return (
            f"ValueError: The model's max seq len ({length}) is larger than the maximum number of tokens that can be stored in KV "
            f"cache ({int(longest)}). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
        )
    models = "models's" if release.misspells_models else "model's"
    unit = "GB" if release.counts_in_gb else "GiB"
    rest = f" Based on the available memory, the estimated maximum model length is {int(longest)}." if release.names_longest else ""  # fmt: skip
    return (
        f"ValueError: To serve at least one request with the {models} max seq len ({length}), ({needed:.2f} {unit} KV cache is "
        f"needed, which is larger than the available KV cache memory ({available:.2f} {unit}).{rest}"
    )

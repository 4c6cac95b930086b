"""CUDA graphs: which batch sizes the engines capture, and what that takes."""

from __future__ import annotations

from gpuwhy.fit.amount import NOTHING, Amount
from gpuwhy.fit.architecture import Architecture

_DEFAULT_COUNT = 51
"""Batch sizes up to 512."""
_USUAL_CHUNK = 8192


def sglang_batches(largest: int, speculates: bool) -> tuple[int, ...]:
    """Decode batches (arg_groups/cuda_graph_hook.py)."""
    if speculates:
        sizes = [*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8), *range(272, largest + 1, 16)]
    else:
        sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16), *range(544, largest + 1, 32)]
    kept = tuple(size for size in sizes if size <= largest)
    return kept if largest in kept or not largest else (*kept, largest)


def sglang_prefill_sizes(largest: int) -> tuple[int, ...]:
    """Tokens of the prefill graphs (arg_groups/cuda_graph_hook.py)."""
    sizes = [*range(4, 33, 4), *range(48, 257, 16), *range(288, 513, 32), *range(576, 1025, 64), *range(1280, 4097, 256), *range(4608, min(largest, 10**6) + 1, 512)]  # fmt: skip
    return tuple(size for size in sizes if size <= largest)


def vllm_batches(requests: int, tokens_each: int, tokens: int, cap: int, rule: str) -> tuple[int, ...]:
    """Captured sizes by default (config/vllm.py); ``rule`` as the release has it, ``tokens`` of one step."""
    if rule == "to 512":
        sizes = [1, 2, 4, *range(8, cap + 1, 8)]
        return tuple(size for size in sizes if size <= tokens)
    rows = requests if rule == "twice the requests" else requests * tokens_each
    largest = min(2 * rows, cap, tokens)
    found = set(_up_to(largest))
    if rule not in ("twice the requests", "twice the rows") and tokens <= cap:
        found.add(tokens)
    if rule.startswith("by requests"):
        if tokens_each > 1:
            found |= {count * tokens_each for count in (*_up_to(min(requests, cap)), requests)}
        elif rule == "by requests, and the most":
            found.add(requests)
    return tuple(sorted(size for size in found if size <= largest))


def _up_to(largest: int) -> tuple[int, ...]:
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16)]
    return tuple(size for size in sizes if size <= largest)


def vllm_graphs(shape: Architecture, count: int) -> Amount:
    """measured: 0.5 to 1.8 GiB at 51 sizes on 26 to 80 layers; more with experts. 0.13 at 5 sizes.

    0.71 to 1.14 of what is expected on 24 starts, 0.8 to 1.29 with experts; the bounds are wider, as all were on H100.
    """
    if not count:
        return NOTHING
    each = 0.25 + 0.018 * len(shape.layers) + (0.4 if shape.experts else 0.0)
    expected = 0.08 + each * count / _DEFAULT_COUNT
    return Amount(expected * 0.5, expected, expected * (1.6 if shape.experts else 1.4))


def first_engine_graphs(count: int) -> Amount:
    """vLLM before 0.8 says of itself that they take 1 to 3 GiB; on a card of 22 GiB they did not fit into two. unchecked"""
    return Amount(0.3, 1.5, 3.2) if count else NOTHING


def sglang_decode_graphs(shape: Architecture, count: int, tokens_each: int) -> Amount:
    """inferred from 1 to 3 GiB on large models; SGLang itself reserves 2 MiB per request of the largest batch."""
    if not count:
        return NOTHING
    each = 0.4 + 0.018 * len(shape.layers) + (0.2 if shape.experts else 0.0)
    expected = 0.15 + each * min(2.0, count / _DEFAULT_COUNT) * min(2.0, 1 + 0.15 * (tokens_each - 1))
    return Amount(expected * 0.35, expected, expected * 2.0)


def sglang_prefill_graphs(is_captured: bool, tokens: int) -> Amount:
    """measured: 0.88 GiB on 0.5.13, 2.84 on 0.5.19, at chunks of 8192 tokens; inferred that smaller ones take less."""
    if not is_captured:
        return NOTHING
    share = min(1.0, tokens / _USUAL_CHUNK)
    return Amount(0.1 + 0.3 * share, 0.2 + 0.8 * share, 0.6 + 2.3 * share)

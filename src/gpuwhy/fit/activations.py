"""The memory of a forward pass and of sampling: it comes and goes, and must fit when it comes."""

from __future__ import annotations

from gpuwhy.fit.amount import GIB, Amount
from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.inventory import padded
from gpuwhy.fit.parallel import Parallel

_BYTES = 2
_ROUNDING_GIB = 0.07
_MLA_WORKSPACE_TOKENS = 65536


def logits_gib(shape: Architecture, rows: int) -> float:
    """float32, over the whole vocabulary."""
    return rows * padded(shape.vocabulary or 0) * 4 / GIB


def hidden_gib(shape: Architecture, tokens: int) -> float:
    """One hidden state of so many tokens."""
    return tokens * (shape.hidden or 0) * _BYTES / GIB


def experts_scratch_gib(shape: Architecture, parallel: Parallel, tokens: int) -> float:
    """Intermediate results of the fused experts (fused_marlin_moe.py, marlin_moe.py): every token meets every rank."""
    experts = shape.experts
    if not experts:
        return 0.0
    divided = parallel.expert_ranks if parallel.experts <= 1 else max(1, parallel.expert_ranks // parallel.experts)
    width = experts.width / max(1, divided)
    reached = tokens * min(experts.per_token, experts.count)
    return (reached * max(2 * width, shape.hidden or 0) + reached * width) * _BYTES / GIB


def forward_gib(shape: Architecture, parallel: Parallel, tokens: int) -> float:
    """The widest moment of a layer over ``tokens`` tokens."""
    dense = tokens * 3 * (shape.inner or 0) / max(1, parallel.tensor) * _BYTES / GIB
    if any(layer.feed == "dense" for layer in shape.layers) is False:
        dense = 0.0
    return 3 * hidden_gib(shape, tokens) + max(dense, experts_scratch_gib(shape, parallel, tokens))


def mla_prefill_gib(shape: Architecture, parallel: Parallel, requests: int, length: int, block: int) -> float:
    """vLLM's up-projection of cached tokens in chunks (mla_attention.py)."""
    if not shape.mla or not shape.heads:
        return 0.0
    tokens = min(max(8 * length, 4 * requests * block), _MLA_WORKSPACE_TOKENS)
    local = shape.heads / max(1, parallel.attention)
    return tokens * local * (shape.mla.nope + shape.mla.value) * _BYTES / GIB


def vllm_peak(
    shape: Architecture, parallel: Parallel, tokens: int, requests: int, length: int, block: int, logits_factor: float
) -> Amount:
    """What vLLM's profile run prints as peak activation: the forward pass or the sampler, whichever is more.

    measured: 3.5 times the float32 logits from 0.17 on, 9.5 times before, on models of 2 to 72 billion parameters.
    """
    scratch = experts_scratch_gib(shape, parallel, tokens)
    attention = mla_prefill_gib(shape, parallel, requests, length, block)
    forward = forward_gib(shape, parallel, tokens) + attention
    rows = min(requests, tokens)
    logits = logits_gib(shape, rows)
    sampling = logits_factor * logits + 2 * hidden_gib(shape, tokens)
    if scratch:
        sampling += scratch + 0.12
    expected = max(forward, sampling) + _ROUNDING_GIB
    below = 0.55 if logits_factor > 5 else 0.15
    above = (0.3 if scratch else 0.15) + (0.15 if shape.is_multimodal else 0.0)
    return Amount(expected * (1 - below), expected, expected * (1 + above) + 0.1)


def sglang_prefill(shape: Architecture, parallel: Parallel, tokens: int) -> Amount:
    """The first long prefill after the start. inferred: the shapes of its tensors, without the allocator's waste."""
    expected = forward_gib(shape, parallel, tokens) + 2 * hidden_gib(shape, tokens) + _ROUNDING_GIB
    return Amount(expected * 0.6, expected, expected * 1.8 + 0.3)

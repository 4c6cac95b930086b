"""The weights that one rank holds: each group divided as the engines divide it."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from gpuwhy.fit.amount import GIB, NOTHING, Amount, combined
from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.inventory import ROTARY, ROUTED, Inventory, Split, WeightGroup
from gpuwhy.fit.padding import MARLIN_ALIGNMENT, Alignment, has_padded_experts
from gpuwhy.fit.parallel import Parallel, stages
from gpuwhy.knowledge.config_defaults import has_computed_rotary_in_sglang

_NOT_ALIGNED = Alignment()
_PADDING = "padding of MXFP4 experts"


class WeightPart(Struct, frozen=True):
    """One group on one rank. ``whole_gib`` is what all ranks would hold if nothing were kept twice."""

    name: str
    gib: float
    whole_gib: float
    divided_by: float
    """1: the rank holds all of it."""


class RankWeights(Struct, frozen=True):
    """The heaviest rank."""

    gib: Amount
    parts: tuple[WeightPart, ...]
    stage: int = 0
    layers: tuple[int, int] = (0, 0)
    """First and one past the last of its layers."""


def rank_weights(shape: Architecture, inventory: Inventory, parallel: Parallel, is_sglang: bool, alignment: Alignment = _NOT_ALIGNED) -> RankWeights:  # fmt: skip
    """What the heaviest pipeline stage's ranks hold each. ``alignment`` is that of experts in MXFP4."""
    inventory = _with_rotary_of_sglang(inventory, shape) if is_sglang else inventory
    if parallel.pipeline <= 1:
        return _stage_weights(shape, inventory, parallel, alignment, 0, range(len(shape.layers)), 1)
    spans = stages(len(shape.layers), parallel.pipeline, is_sglang)
    each = [
        _stage_weights(shape, inventory, parallel, alignment, index, span, len(spans))
        for index, span in enumerate(spans)
    ]
    return max(each, key=lambda rank: rank.gib.expected)


def _with_rotary_of_sglang(inventory: Inventory, shape: Architecture) -> Inventory:
    """It keeps the cosines and sines in float32 (rotary_embedding/base.py), and computes those of Gemma 3 each time."""
    if shape.mla:
        # counted in float32 already
        return inventory
    times = 0.0 if has_computed_rotary_in_sglang(shape.model_type) else 4 / shape.quantization.dtype.bytes_each
    groups = [group if group.name != ROTARY else msgspec.structs.replace(group, total_bytes=group.total_bytes * times) for group in inventory.groups]  # fmt: skip
    return msgspec.structs.replace(inventory, groups=tuple(groups))


def _stage_weights(shape: Architecture, inventory: Inventory, parallel: Parallel, alignment: Alignment, stage: int, span: range, number: int) -> RankWeights:  # fmt: skip
    parts: dict[str, WeightPart] = {}
    for group in inventory.groups:
        whole = _in_stage(group, stage, span, number, len(shape.layers)) / GIB
        if not whole:
            continue
        divisor = _divisor(group, shape, parallel)
        parts[group.name] = WeightPart(group.name, whole / divisor, whole, divisor)
    stored = sum(part.gib for part in parts.values())
    padded = _padding(shape, parallel, alignment, parts.get(ROUTED))
    if padded.expected:
        parts[_PADDING] = WeightPart(_PADDING, padded.expected, padded.expected * parts[ROUTED].divided_by, parts[ROUTED].divided_by)  # fmt: skip
    expected = stored + padded.expected
    unsure = _unsure(inventory, parallel, parts) + Amount(padded.low - padded.expected, 0.0, padded.high - padded.expected)  # fmt: skip
    gib = combined((Amount(expected * inventory.spread.low, expected, expected * inventory.spread.high + 0.05), unsure))
    return RankWeights(gib, tuple(parts.values()), stage, (span.start, span.stop))


def _padding(shape: Architecture, parallel: Parallel, alignment: Alignment, experts: WeightPart | None) -> Amount:
    """Bounds: another kernel may be chosen, which wants less or more."""
    if experts is None or not has_padded_experts(shape):
        return NOTHING
    share, most = alignment.share(shape, parallel), MARLIN_ALIGNMENT.share(shape, parallel)
    return Amount(0.0, experts.gib * share, experts.gib * max(share, most))


def _in_stage(group: WeightGroup, stage: int, span: range, number: int, layers: int) -> float:
    if number == 1:
        return group.total_bytes
    if group.bytes_by_layer:
        return sum(group.bytes_by_layer[span.start : span.stop])
    if group.stage == "every":
        return group.total_bytes * (len(span) / layers if group.name == "all weights" and layers else 1)
    return group.total_bytes if stage == (0 if group.stage == "first" else number - 1) else 0.0


def _divisor(group: WeightGroup, shape: Architecture, parallel: Parallel) -> float:
    attention = max(1, parallel.attention)
    if group.split in (Split.ATTENTION, Split.ABSORBED):
        return attention
    if group.split is Split.KEYS:
        return min(attention, max(1, shape.kv_heads or 1))
    if group.split is Split.TENSOR:
        return max(1, parallel.tensor)
    if group.split is Split.EXPERTS:
        return max(1, parallel.expert_ranks)
    if group.split is Split.VOCABULARY:
        follows = group.name == "embedding" or parallel.is_head_replicated
        return attention if follows else max(1, parallel.tensor)
    if group.split is Split.VISION:
        return 1 if parallel.is_tower_replicated else attention
    return 1


def _unsure(inventory: Inventory, parallel: Parallel, parts: dict[str, WeightPart]) -> Amount:
    """Towers that may be replicated, heads that may follow the attention."""
    above = 0.0
    for group in inventory.groups:
        part = parts.get(group.name)
        if part is None:
            continue
        if group.split is Split.VISION:
            above += part.whole_gib - part.gib
        elif group.name == "output head" and parallel.attention != parallel.tensor and not parallel.is_head_replicated:
            above += part.whole_gib / max(1, parallel.attention) - part.gib
    return Amount(0.0, 0.0, above)

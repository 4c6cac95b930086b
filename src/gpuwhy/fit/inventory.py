"""The weights of a model as groups that the engines treat alike: how many bytes, of which layer, split how."""

from __future__ import annotations

from enum import Enum

import msgspec
from msgspec import Struct

from gpuwhy.fit.amount import Amount
from gpuwhy.fit.architecture import Architecture, Mla, PerLayer
from gpuwhy.fit.layers import Layer
from gpuwhy.fit.quantization import Format, Quantization, first_alike, of_layers
from gpuwhy.fit.towers import tower_parameters

VOCABULARY_PADDING = 64
"""Both engines pad the vocabulary to it (vocab_parallel_embedding.py)."""


ROTARY, ROUTED = "rotary tables", "routed experts"
_COPIES = "MLA copies w_kc and w_vc"
_MADE = (_COPIES,)
_AGREES_WITHIN = 0.005
_FEW_ROWS = 4
"""A compression up to which an indexer chooses the rows."""
_IS_FLOAT32_WITHIN = 0.05


_EXPERT_MODULES = ("mlp.experts", "block_sparse_moe.experts", "feed_forward.experts", "mixer.experts", "moe.experts")
_SHARED_MODULES = ("mlp.shared_experts", "mlp.shared_expert", "feed_forward.shared_expert", "mixer.shared_experts", "shared_mlp", "share_expert")  # fmt: skip


class Split(str, Enum):
    """Who holds what of a group of weights."""

    ATTENTION = "attention"  # over the attention's tensor parallel size
    KEYS = "keys and values"  # likewise, but no further than there are heads of keys and values
    TENSOR = "tensor"
    EXPERTS = "experts"
    VOCABULARY = "vocabulary"
    REPLICATED = "replicated"
    VISION = "vision"
    ABSORBED = "absorbed"  # copies made after loading, not in the checkpoint


class WeightGroup(Struct, frozen=True):
    """``bytes_by_layer`` is empty for what is in no layer; ``stage`` says where that is: first, last, every."""

    name: str
    split: Split
    total_bytes: float
    bytes_by_layer: tuple[float, ...] = ()
    stage: str = "every"
    is_stored: bool = True
    """In the checkpoint; not: made while or after loading."""


class Inventory(Struct, frozen=True):
    """``spread`` bounds the sum relative to the expected (0.98 to 1.05); ``source`` says where the sizes come from."""

    groups: tuple[WeightGroup, ...]
    spread: Amount
    source: str
    checkpoint_bytes: float
    """Without what is made after loading; 0 when nothing is known."""
    predicting_bytes: float = 0.0
    """Of the multi-token prediction layers, which are loaded only to speculate."""
    largest_file_bytes: float = 0.0
    missing: tuple[str, ...] = ()
    is_plain: bool = False
    """Nothing of it is quantised: what is stored in float32 is loaded in 16 bits."""
    is_stored_in_float32: bool = False
    """As config.json says."""
    has_unloaded: bool = False
    """The checkpoint holds parts that no engine loads: its size says too much."""

    @property
    def total_bytes(self) -> float:
        return sum(group.total_bytes for group in self.groups)


def computed_inventory(shape: Architecture) -> Inventory:
    """From the fields of config.json alone."""
    first = first_alike(shape.quantization, shape.layers)
    formats = of_layers(shape.quantization, first)
    by_first = {index: _groups_of(shape, index, formats[index]) for index in formats}
    collected: dict[tuple[str, Split], list[float]] = {}
    for index, alike in enumerate(first):
        for name, split, size in by_first[alike]:
            collected.setdefault((name, split), [0.0] * len(shape.layers))[index] += size
    groups = [
        WeightGroup(name, split, sum(sizes), tuple(sizes), is_stored=name not in _MADE)
        for (name, split), sizes in collected.items()
    ]
    groups += _outside_layers(shape)
    stored = sum(group.total_bytes for group in groups if group.is_stored)  # fmt: skip
    certain = shape.quantization.is_quantized is False and not shape.missing
    # measured: within 1 % on every start of the scored file whose config.json is complete
    spread = Amount(0.99, 1.0, 1.015) if certain else Amount(0.98, 1.0, 1.025)
    if shape.missing:
        spread = Amount(0.85, 1.0, 1.25)
    return Inventory(
        groups=tuple(groups),
        spread=spread,
        source="computed from the fields of config.json",
        checkpoint_bytes=stored,
        predicting_bytes=shape.predicting_layers * _predicting_layer(shape, by_first[first[-1]] if first else []),
        is_plain=not shape.quantization.is_quantized,
        is_stored_in_float32=shape.is_stored_in_float32,
        has_unloaded=shape.has_unloaded,
    )


def scaled_inventory(inventory: Inventory, checkpoint_bytes: float, largest_file_bytes: float) -> Inventory:
    """The same groups, so that what is stored adds up to the size that an index or the files say.

    What differs is put into the quantised part, or where there is none into all: that is where the fields say least.
    """
    stored = inventory.checkpoint_bytes
    if not stored or not inventory.groups:
        whole = WeightGroup("all weights", Split.TENSOR, checkpoint_bytes)
        return Inventory((whole,), Amount(0.95, 1.0, 1.25), "the size of the checkpoint alone", checkpoint_bytes, 0.0, largest_file_bytes, ("which weights are sharded is not known: all are taken as sharded",))  # fmt: skip
    wanted = _loaded_of(checkpoint_bytes, inventory)
    factor = wanted / stored
    if inventory.has_unloaded and factor > 1:
        return msgspec.structs.replace(
            inventory,
            source="computed from the fields of config.json: the checkpoint holds parts that are not loaded",
            checkpoint_bytes=checkpoint_bytes,
            largest_file_bytes=largest_file_bytes,
        )
    groups = tuple(_times(group, factor) if group.is_stored else group for group in inventory.groups)  # fmt: skip
    missing = () if 0.9 < factor < 1.12 else (f"the checkpoint is {factor:.2f} times what its config.json describes",)
    if missing:
        spread = Amount(0.9, 1.0, 1.1)
    elif abs(factor - 1) < _AGREES_WITHIN:
        # two sources that say the same: the groups are right as well
        spread = Amount(0.997, 1.0, 1.006)
    else:
        spread = Amount(0.99, 1.0, 1.015)
    return Inventory(groups, spread, "the size of the checkpoint, divided as config.json describes", checkpoint_bytes, inventory.predicting_bytes, largest_file_bytes, missing)  # fmt: skip


def _loaded_of(told: float, inventory: Inventory) -> float:
    """What is loaded of so many bytes: not the layers of prediction, and half of what is stored in float32."""
    stored, predicting = inventory.checkpoint_bytes, inventory.predicting_bytes
    as_told = (told, told - predicting)
    halved: tuple[float, ...] = (told / 2, told / 2 - predicting) if inventory.is_plain else ()
    nearest = min((*as_told, *halved), key=lambda size: abs(size - stored))
    if nearest in as_told or inventory.is_stored_in_float32 or abs(nearest / stored - 1) < _IS_FLOAT32_WITHIN:
        return nearest
    return min(as_told, key=lambda size: abs(size - stored))


def _times(group: WeightGroup, factor: float) -> WeightGroup:
    return WeightGroup(group.name, group.split, group.total_bytes * factor, tuple(size * factor for size in group.bytes_by_layer), group.stage)  # fmt: skip


_Group = tuple[str, Split, float]


def _groups_of(shape: Architecture, index: int, quantization: Quantization) -> list[_Group]:
    own = msgspec.structs.replace(shape, quantization=quantization)
    return _layer_groups(own, shape.layers[index], f"model.layers.{index}")


def _layer_groups(shape: Architecture, kind: Layer, module: str) -> list[_Group]:
    quantization, hidden = shape.quantization, shape.hidden or 0
    plain = quantization.dtype.bytes_each
    found: list[_Group] = [("norms", Split.REPLICATED, 2 * hidden * plain)]
    if (kind.mixer == "state" or kind.has_state) and shape.state:
        each = quantization.format_of(f"{module}.linear_attn.in_proj", f"{module}.mixer.in_proj", f"{module}.mamba.in_proj").bytes_each  # fmt: skip
        found.append(("state layers", Split.ATTENTION, shape.state.parameters * each))
    if kind.is_attending and kind.has_weights:
        found += _mla_groups(shape, shape.mla, module) if shape.mla else _attention_groups(shape, kind, module)
    if kind.feed == "dense" and kind.has_weights:
        each = quantization.format_of(f"{module}.mlp.up_proj", f"{module}.mixer.up_proj").bytes_each
        width = kind.inner or shape.inner or 0
        found.append(("dense MLP", Split.TENSOR, (3 if shape.is_gated else 2) * hidden * width * each))
    elif kind.feed == "experts" and shape.experts:
        found += _expert_groups(shape, module)
    if kind.has_state and shape.attention_width:
        joined = hidden * hidden + shape.adapter_rank * (hidden + 2 * (shape.inner or 0))
        found.append(("ways into the shared block", Split.REPLICATED, joined * plain))
    if shape.per_layer:
        found += _per_layer_groups(shape, shape.per_layer)
    return found


def _attention_groups(shape: Architecture, kind: Layer, module: str) -> list[_Group]:
    hidden, read = shape.hidden or 0, shape.attention_width or shape.hidden or 0
    heads, kv_heads = kind.heads or shape.heads or 0, kind.kv_heads or shape.kv_heads or 0
    head, value = shape.row_widths(kind)
    each = shape.quantization.format_of(f"{module}.self_attn.q_proj", f"{module}.mixer.q_proj").bytes_each
    queries = read * heads * head * (2 if shape.has_output_gate else 1)
    if shape.query_rank:
        queries = read * shape.query_rank + shape.query_rank * heads * head
    outputs = heads * value * hidden
    if shape.output_rank:
        outputs = shape.output_rank * (heads * value + shape.output_groups * hidden)
    keys = read * kv_heads * (head + (value if kind.has_values else 0))
    found = [
        ("attention", Split.ATTENTION, kind.attends * (queries + outputs) * each),
        ("attention keys and values", Split.KEYS, kind.attends * keys * each),
    ]
    if kind.compression:
        # two of each where the windows that are joined overlap, and an indexer to choose among many rows
        widths = head if kind.compression > _FEW_ROWS else 2 * head
        compressor = 2 * hidden * widths
        if kind.compression <= _FEW_ROWS and shape.indexer:
            index = shape.indexer
            compressor += (shape.query_rank or hidden) * index.heads * index.head_dim + hidden * (4 * index.head_dim + index.heads)  # fmt: skip
        found.append(("compressor of the cache", Split.REPLICATED, compressor * each))
    return found


def _per_layer_groups(shape: Architecture, each: PerLayer) -> list[_Group]:
    """Of Gemma 3n and 4: what joins a layer's own embedding, the parallel states and the learned residual."""
    hidden, plain = shape.hidden or 0, shape.quantization.dtype.bytes_each
    joined = 3 * hidden * each.width + (hidden * each.streams * 2 if each.streams > 1 else 0)
    return [
        ("per-layer embedding", Split.VOCABULARY, each.vocabulary * each.width * plain),
        ("per-layer inputs", Split.REPLICATED, (joined + 2 * hidden * each.rank) * plain),
    ]


def _mla_groups(shape: Architecture, mla: Mla, module: str) -> list[_Group]:
    hidden, heads, quantization = shape.hidden or 0, shape.heads or 0, shape.quantization
    each = quantization.format_of(f"{module}.self_attn.q_a_proj").bytes_each
    per_head = mla.nope + mla.rope
    expanded = mla.kv_rank * heads * (mla.nope + mla.value)
    reduced = hidden * (mla.kv_rank + mla.rope)
    if mla.query_rank:
        reduced += hidden * mla.query_rank
        queries = mla.query_rank * heads * per_head
    else:
        queries = hidden * heads * per_head
    found = [
        ("attention", Split.ATTENTION, (queries + expanded + heads * mla.value * hidden) * each),
        ("attention q_a and kv_a", Split.REPLICATED, reduced * each),
        # both engines take kv_b apart into two more copies after loading, in the dtype of the model
        (_COPIES, Split.ABSORBED, expanded * quantization.dtype.bytes_each),
    ]
    if shape.indexer:
        index = shape.indexer
        weights = (mla.query_rank or hidden) * index.heads * index.head_dim + hidden * (index.head_dim + index.heads)
        found.append(("sparse attention indexer", Split.REPLICATED, weights * each))
    return found


def _expert_groups(shape: Architecture, module: str) -> list[_Group]:
    hidden, experts, quantization = shape.hidden or 0, shape.experts, shape.quantization
    assert experts is not None  # noqa: S101 - asked by the caller
    matrices = 3 if shape.is_gated else 2
    routed = quantization.format_of(*(f"{module}.{name}.0.up_proj" for name in _EXPERT_MODULES))
    worked_on = experts.latent or hidden
    found: list[_Group] = [
        (ROUTED, Split.EXPERTS, experts.count * matrices * worked_on * experts.width * routed.bytes_each),
        ("router", Split.REPLICATED, experts.count * (hidden + 2) * quantization.dtype.bytes_each),
    ]
    if experts.latent:
        found.append(("latent projections", Split.REPLICATED, 2 * hidden * experts.latent * quantization.dtype.bytes_each))  # fmt: skip
    if experts.shared:
        shared = quantization.format_of(*(f"{module}.{name}.up_proj" for name in _SHARED_MODULES)).bytes_each
        found.append(("shared experts", Split.TENSOR, matrices * hidden * experts.shared * shared))
    return found


def _outside_layers(shape: Architecture) -> list[WeightGroup]:
    plain, hidden = shape.quantization.dtype.bytes_each, shape.hidden or 0
    rows = padded(shape.vocabulary or 0)
    groups = [WeightGroup("embedding", Split.VOCABULARY, rows * hidden * plain, stage="first")]
    if shape.positions:
        groups.append(WeightGroup("positions", Split.REPLICATED, shape.positions * hidden * plain, stage="first"))
    if shape.is_encoder:
        groups.append(WeightGroup("pooling", Split.REPLICATED, hidden * hidden * plain, stage="last"))
    if shape.per_layer:
        joined = (
            hidden * len(shape.layers) * shape.per_layer.width + 2 * (shape.per_layer.streams - 1) * hidden * hidden
        )
        groups.append(WeightGroup("per-layer projections", Split.TENSOR, joined * plain))
    if shape.has_head and not shape.is_tied:
        groups.append(WeightGroup("output head", Split.VOCABULARY, rows * hidden * _head_format(shape.quantization).bytes_each, stage="last"))  # fmt: skip
    for tower in shape.towers:
        sharded, replicated = tower_parameters(tower, hidden)
        # engines leave the towers as they are stored, which is seldom quantised
        groups.append(WeightGroup(f"{tower.kind} tower", Split.VISION, sharded * plain, stage="first"))
        groups.append(WeightGroup(f"{tower.kind} projector", Split.REPLICATED, replicated * plain, stage="first"))
    tables = min(shape.rotary_rows * shape.rotary_width * plain, 4 * 2**30)
    groups.append(WeightGroup(ROTARY, Split.REPLICATED, tables, is_stored=False))
    return [group for group in groups if group.total_bytes]


def _head_format(quantization: Quantization) -> Format:
    """The output head is quantised only where a rule names it: for the engines it is no linear layer."""
    named = next((rule.format for rule in quantization.rules if "lm_head" in rule.pattern), None)
    return named or quantization.dtype


def padded(vocabulary: int, to: int = VOCABULARY_PADDING) -> int:
    return -(-vocabulary // to) * to


def _predicting_layer(shape: Architecture, last: list[_Group]) -> float:
    """One more layer like the last one, and what joins the embedding to the hidden state."""
    if not last:
        return 0.0
    stored = sum(size for name, _, size in last if name not in _MADE)
    return stored + 2 * (shape.hidden or 0) ** 2 * shape.quantization.dtype.bytes_each

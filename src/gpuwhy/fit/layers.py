"""Which layer of a model does what, and where one is wider or narrower than the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gpuwhy.fit.fields import Fields, Sections

MOST_LAYERS = 2000
_COMPRESSIONS = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
WIDEST = 10**7
EXPERT_COUNTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", "num_moe_experts")
_MOST_EXPERTS = 10**5


class Layer(Struct, frozen=True, kw_only=True):
    """``mixer``: full, sliding, state or none; ``feed``: experts, dense or none.

    What is None is that of the model. Most layers of most models have nothing of their own.
    """

    mixer: str
    feed: str
    has_state: bool = False
    """A state beside its attention (Falcon H1)."""
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    value_dim: int | None = None
    inner: int | None = None
    """Of its dense MLP."""
    keeps_cache: bool = True
    """Not: it reads the cache of an earlier layer, or is part of an encoder, which needs none."""
    has_weights: bool = True
    """Not: it uses the attention and the MLP of an earlier layer again (Zamba 2)."""
    has_values: bool = True
    """Not: its keys are its values as well, in the weights; the cache holds both (Gemma 4)."""
    compression: int | None = None
    """The cache has one row for so many tokens, besides the window; 0: the window only. None: a row each."""
    attends: int = 1
    """2: over its own tokens, and over those of an encoder (Whisper)."""

    @property
    def is_attending(self) -> bool:
        return self.mixer in ("full", "sliding")


def read_layers(fields: Sections, number: int, is_encoder: bool) -> tuple[Layer, ...]:
    """One per layer. ``is_encoder``: the model keeps no cache at all (BERT)."""
    if not number:
        return ()
    pattern = fields.text("hybrid_override_pattern")
    blocks = fields.items("block_configs")
    if pattern:
        layers = _from_pattern(pattern, number)
    elif blocks:
        layers = _from_blocks(fields, blocks[:number])
    elif fields.count("zero_expert_num", zero=True) is not None and "expert_ffn_hidden_size" in fields:
        # LongCat: each of its layers has two attentions, two MLPs, and experts beside the second
        layers = [Layer(mixer="full", feed=feed) for _ in range(number) for feed in ("dense", "experts")]
    else:
        layers = [
            Layer(mixer=mixer, feed=feed)
            for mixer, feed in zip(_mixers(fields, number), _feeds(fields, number), strict=True)
        ]
    for change in (
        _layers_of_one_thing,
        _parallel_states,
        _compressed,
        _own_widths,
        _sliding_widths,
        _numbered,
        _shared_caches,
        _shared_blocks,
    ):
        layers = change(fields, layers)
    if is_encoder:
        layers = [msgspec.structs.replace(layer, keeps_cache=False) for layer in layers]
    if "decoder_layers" in fields and "encoder_layers" in fields:
        layers = [msgspec.structs.replace(layer, attends=2) for layer in layers]
    return tuple(layers)


def _from_pattern(pattern: str, number: int) -> list[Layer]:
    """``M-M*E``: of Nemotron-H, where each layer is one thing only."""
    kinds = {"M": Layer(mixer="state", feed="none"), "*": Layer(mixer="full", feed="none"), "-": Layer(mixer="none", feed="dense"), "E": Layer(mixer="none", feed="experts")}  # fmt: skip
    return [kinds.get(letter, Layer(mixer="full", feed="dense")) for letter in pattern[:number]]


def _from_blocks(fields: Sections, blocks: Sequence[Any]) -> list[Layer]:
    """What an architecture search left of each layer (Nemotron Super and Ultra): its heads, its width, or nothing."""
    hidden, heads = fields.count("hidden_size", largest=WIDEST) or 0, fields.count("num_attention_heads") or 0
    layers = []
    for block in blocks:
        attention, feed = Fields(block).section("attention"), Fields(block).section("ffn")
        if attention.flag("no_op") or attention.flag("replace_with_linear"):
            layer = Layer(mixer="none", feed="dense", inner=None)
        else:
            group = attention.count("n_heads_in_group", largest=WIDEST) or 1
            kept = attention.count("num_key_value_heads", largest=WIDEST) or max(1, heads // group)
            layer = Layer(mixer="full", feed="dense", kv_heads=kept)
        width = feed.count("intermediate_size", largest=WIDEST)
        multiple = feed.number("ffn_mult")
        if width is None and multiple:
            # rounded up to whole 256, as its class does
            width = -(-int(2 * min(multiple, 1000.0) * hidden / 3) // 256) * 256
        gone = feed.flag("no_op") or feed.flag("replace_with_linear")
        layers.append(msgspec.structs.replace(layer, feed="none" if gone else "dense", inner=width))
    return layers


_ALONE = {"mlp": ("none", "dense"), "moe": ("none", "experts")}
"""Layers that mix nothing. In a model that has them, the others have no MLP."""
_MIXERS = {"full_attention": "full", "attention": "full", "full": "full", "global": "full", "hybrid": "full", "sliding_attention": "sliding", "sliding": "sliding", "local": "sliding", "chunked_attention": "sliding", "linear_attention": "state", "mamba": "state", "mamba2": "state", "recurrent": "state", "conv": "state", "linear": "state", "kda": "state", "gdn": "state", "lightning": "state", "hybrid_sliding": "sliding", "window_attention": "sliding"}  # fmt: skip


def _mixers(fields: Sections, number: int) -> list[str]:
    named = fields.items("layer_types", "layers_block_type", "block_types", "_block_types")
    if named and number and all(isinstance(each, str) for each in named[:number]):
        # a list that is too short is a pattern that repeats
        return [_MIXERS.get(named[index % len(named)].lower(), "full") for index in range(number)]
    coded = fields.items("attn_type_list", "hybrid_layer_pattern")
    if len(coded) >= number > 0 and all(each in (0, 1) for each in coded[:number]):
        # MiniMax: 0 is its linear attention; MiMo: 1 is a sliding layer
        other = {0: "state", 1: "full"} if fields.items("attn_type_list") else {0: "full", 1: "sliding"}
        return [other[each] for each in coded[:number]]
    linear = fields.section("linear_attn_config")
    if linear.indices("kda_layers", "linear_layers"):
        # Kimi Linear counts from one
        states = linear.indices("kda_layers", "linear_layers")
        return ["state" if index + 1 in states else "full" for index in range(number)]
    attention = fields.indices("attn_layer_indices", "full_attn_idxs")
    if attention and ("mamba_d_state" in fields or "conv_L_cache" in fields):
        return ["full" if index in attention else "state" for index in range(number)]
    period = fields.count("attn_layer_period", largest=MOST_LAYERS)
    if period:
        offset = fields.count("attn_layer_offset", zero=True, largest=MOST_LAYERS) or 0
        return ["full" if index % period == offset else "state" for index in range(number)]
    interval = fields.count("full_attention_interval", largest=MOST_LAYERS)
    if interval and "linear_num_value_heads" in fields:
        return ["full" if (index + 1) % interval == 0 else "state" for index in range(number)]
    group = fields.count("layer_group_size", largest=MOST_LAYERS)
    if group and group > 1:
        # Ring and Ling with linear layers: the last of each group attends, and so do those of an unfinished group
        whole = number // group * group
        return ["full" if (index + 1) % group == 0 or index >= whole else "state" for index in range(number)]
    if not has_attention(fields):
        return ["state"] * number
    return _sliding_mixers(fields, number)


def has_attention(fields: Sections) -> bool:
    """A pure Mamba model names a state and no attention; Mamba 2 calls the parts of its state heads."""
    if fields.count("num_attention_heads", "n_head", "n_heads", "kv_lora_rank") is not None:
        return True
    return not any(name in fields for name in ("state_size", "ssm_state_size", "d_state"))


def _sliding_mixers(fields: Sections, number: int) -> list[str]:
    chunk = fields.count("attention_chunk_size", largest=10**9)
    rotary = fields.items("no_rope_layers")
    if chunk and len(rotary) >= number > 0:
        return ["sliding" if each == 1 else "full" for each in rotary[:number]]
    if chunk and "interleave_moe_layer_step" in fields:
        return ["full" if (index + 1) % 4 == 0 else "sliding" for index in range(number)]
    lettered = fields.text("sliding_window_pattern")
    if lettered and set(lettered) <= set("LG"):
        letters = {"L": "sliding", "G": "full"}
        return [letters[lettered[index % len(lettered)]] for index in range(number - 1)] + ["full"]
    every = None if lettered else fields.count("sliding_window_pattern", "_sliding_window_pattern", largest=MOST_LAYERS)
    if fields.count("sliding_window", largest=10**9) and every and every > 1:
        return ["full" if (index + 1) % every == 0 else "sliding" for index in range(number)]
    window, context = (fields.count(name, largest=10**9) for name in ("sliding_window", "max_position_embeddings"))
    is_used = fields.flag("use_sliding_window") is not False and not (context and window and window >= context)
    if window and is_used and not every:
        first = fields.count("max_window_layers", zero=True, largest=MOST_LAYERS) or 0
        return ["sliding" if index >= first else "full" for index in range(number)]
    return ["full"] * number


def expert_count(fields: Sections) -> int:
    """Of one layer; ERNIE's models of images have a list: experts of the text and of the images."""
    counts = [count for count in fields.each(*EXPERT_COUNTS) if count and count <= _MOST_EXPERTS]
    if counts and len(counts) <= 4:
        return sum(counts)
    return fields.count(*EXPERT_COUNTS, largest=_MOST_EXPERTS, zero=True) or 0


def _feeds(fields: Sections, number: int) -> list[str]:
    if not has_attention(fields):
        # Mamba's layers have no MLP, whatever intermediate_size says
        return ["none"] * number
    if expert_count(fields) < 2 or fields.flag("enable_moe_block") is False or fields.flag("is_moe") is False:
        return ["dense"] * number
    named = fields.items("mlp_layer_types")
    if len(named) >= number > 0:
        return ["dense" if each == "dense" else "experts" for each in named[:number]]
    frequencies = fields.items("moe_layer_freq")
    if len(frequencies) >= number > 0:
        return ["experts" if each else "dense" for each in frequencies[:number]]
    chosen = fields.indices("moe_layers", "moe_layers_enum")
    if chosen:
        return ["experts" if index in chosen else "dense" for index in range(number)]
    first = fields.count("first_k_dense_replace", "first_dense_layers", "num_dense_layers", zero=True, largest=MOST_LAYERS)  # fmt: skip
    first = first if first is not None else _lowest(fields, "moe_layer_start_index") or 0
    last = _lowest(fields, "moe_layer_end_index")
    step = fields.count("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period", "moe_layer_interval", "moe_layer_frequency", "route_every_n", largest=MOST_LAYERS) or 1  # fmt: skip
    offset = fields.count("expert_layer_offset", zero=True, largest=MOST_LAYERS)
    dense = fields.indices("mlp_only_layers")
    phase = offset if offset is not None else (0 if "moe_layer_freq" in fields else step - 1)
    return [
        "experts" if first <= index <= (last or number) and index % step == phase and index not in dense else "dense"
        for index in range(number)
    ]


def _lowest(fields: Sections, name: str) -> int | None:
    """A number, or the least of a list of them."""
    listed = [each for each in fields.each(name) if each is not None]
    return min(listed) if listed else fields.count(name, zero=True, largest=MOST_LAYERS)


def _layers_of_one_thing(fields: Sections, layers: list[Layer]) -> list[Layer]:
    """Nemotron-H as newer configurations spell it: attention, state, MLP and experts are layers of their own."""
    named = [str(each).lower() for each in fields.items("layers_block_type", "layer_types")]
    if not _ALONE.keys() & set(named) or len(named) < len(layers):
        return layers
    return [
        msgspec.structs.replace(layer, mixer=_ALONE[name][0], feed=_ALONE[name][1])
        if name in _ALONE
        else msgspec.structs.replace(layer, feed="none")
        for layer, name in zip(layers, named, strict=False)
    ]


def _compressed(fields: Sections, layers: list[Layer]) -> list[Layer]:
    """DeepSeek V4: besides a window, one row for so many tokens; 0 for none."""
    ratios = fields.each("compress_ratios")
    named = [_COMPRESSIONS.get(str(each), 0) for each in fields.items("layer_types")]
    found = [ratio or 0 for ratio in ratios] or (named if any(named) else [])
    if len(found) < len(layers):
        return layers
    return [msgspec.structs.replace(layer, mixer="full", compression=ratio) for layer, ratio in zip(layers, found, strict=False)]  # fmt: skip


def _parallel_states(fields: Sections, layers: list[Layer]) -> list[Layer]:
    """Layers that mix by attention and by a state at once: all of Falcon H1's, the hybrid ones of Zamba 2."""
    named = fields.items("layers_block_type", "layer_types")
    if "mamba_d_ssm" in fields:
        return [msgspec.structs.replace(layer, has_state=True) for layer in layers]
    if "hybrid" not in named:
        return layers
    hybrid = [msgspec.structs.replace(layer, has_state=True) if layer.mixer == "full" else layer for layer in layers]
    return [layer if layer.has_state else msgspec.structs.replace(layer, feed="none") for layer in hybrid]


def _own_widths(fields: Sections, layers: list[Layer]) -> list[Layer]:
    """Lists with one number per layer."""
    lists = {
        "heads": fields.each("num_query_heads", "num_attention_heads_per_layer", "num_attention_heads", "n_head"),
        "kv_heads": fields.each("num_key_value_heads_per_layer", "num_kv_heads", "num_key_value_heads"),
        "inner": fields.each("intermediate_size", "feed_forward_length"),
    }
    multiples = fields.items("ffn_multipliers")
    width, divisor = fields.count("model_dim", "hidden_size", largest=WIDEST) or 0, fields.count("ffn_dim_divisor") or 256  # fmt: skip
    if multiples and all(isinstance(each, int | float) and 0 < each < 1000 for each in multiples):
        lists["inner"] = tuple(-(-int(width * each) // divisor) * divisor for each in multiples)
    for name, values in lists.items():
        if len(values) >= len(layers) > 0 and any(values):
            layers = [
                msgspec.structs.replace(layer, **{name: value})
                if value and value <= WIDEST
                else _without(layer, name)
                if value == 0
                else layer
                for layer, value in zip(layers, values, strict=False)
            ]
    if any(width == 0 for width in lists["inner"]):
        # Nemotron-H in a file of llama.cpp: what has an MLP has nothing else
        layers = [msgspec.structs.replace(each, mixer="none") if (each.mixer, each.feed) == ("state", "dense") else each for each in layers]  # fmt: skip
    return layers


def _without(layer: Layer, name: str) -> Layer:
    """A zero in a list: no heads is a layer that does not attend (files of llama.cpp say hybrids that way)."""
    if name == "inner":
        return msgspec.structs.replace(layer, feed="none" if layer.feed == "dense" else layer.feed)
    return msgspec.structs.replace(layer, mixer="state") if name == "kv_heads" and layer.is_attending else layer


def _sliding_widths(fields: Sections, layers: list[Layer]) -> list[Layer]:
    """Heads that differ between sliding and full layers: MiMo V2, Step 3.5, Gemma 4."""
    other = fields.section("attention_other_setting")
    sliding = _given(
        heads=fields.count("swa_num_attention_heads", largest=WIDEST) or other.count("num_attention_heads", largest=WIDEST),
        kv_heads=fields.count("swa_num_key_value_heads", largest=WIDEST) or other.count("num_attention_groups", "num_key_value_heads", largest=WIDEST),
        head_dim=fields.count("swa_head_dim", largest=WIDEST) or other.count("head_dim", largest=WIDEST),
        value_dim=fields.count("swa_v_head_dim", largest=WIDEST),
    )  # fmt: skip
    is_shared = fields.flag("attention_k_eq_v") is True
    whole = _given(
        head_dim=fields.count("global_head_dim", largest=WIDEST),
        value_dim=fields.count("global_head_dim", largest=WIDEST),
        kv_heads=fields.count("num_global_key_value_heads", largest=WIDEST) if is_shared else None,
    )
    has_values = {"has_values": False} if is_shared else {}
    changes: dict[str, dict[str, Any]] = {"sliding": sliding, "full": {**whole, **has_values}}
    return [msgspec.structs.replace(layer, **changes.get(layer.mixer, {})) for layer in layers]


def _numbered(fields: Sections, layers: list[Layer]) -> list[Layer]:
    """Fields of single layers by their number, as newer configurations of transformers have them."""
    own = dict(fields.section("per_layer_config").sections())
    found = {int(name): section for name, section in own.items() if name.isdecimal() and len(name) < 6}
    return [_with_own(layer, found[index]) if index in found else layer for index, layer in enumerate(layers)]


def _with_own(layer: Layer, section: Fields) -> Layer:
    head = section.count("head_dim", largest=WIDEST)
    given = _given(
        heads=section.count("num_attention_heads", largest=WIDEST),
        kv_heads=section.count("num_key_value_heads", largest=WIDEST),
        head_dim=head,
        value_dim=section.count("v_head_dim", largest=WIDEST) or head,
        inner=section.count("intermediate_size", largest=WIDEST),
    )
    return msgspec.structs.replace(layer, **given)


def _given(**values: int | None) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _shared_caches(fields: Sections, layers: list[Layer]) -> list[Layer]:
    """The last layers of Gemma 3n and 4 read what earlier ones have cached; some are twice as wide for it."""
    shared = fields.count("num_kv_shared_layers", largest=MOST_LAYERS) or 0
    begin = len(layers) - shared
    if not shared or begin <= 0:
        return layers
    inner = fields.count("intermediate_size", largest=WIDEST)
    wide = {"inner": 2 * inner} if fields.flag("use_double_wide_mlp") and inner else {}
    later = [msgspec.structs.replace(layer, keeps_cache=False, **wide) for layer in layers[begin:]]
    return [*layers[:begin], *later]


def _shared_blocks(fields: Sections, layers: list[Layer]) -> list[Layer]:
    """Zamba 2 has one or two blocks of attention and MLP, which all its hybrid layers use in turn."""
    blocks = fields.count("num_mem_blocks", largest=100)
    if not blocks:
        return layers
    found, changed = 0, []
    for layer in layers:
        found += layer.mixer == "full"
        changed.append(msgspec.structs.replace(layer, has_weights=found <= blocks) if layer.mixer == "full" else layer)
    return changed

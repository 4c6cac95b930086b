"""What a config.json says of a model's shape: enough to count its weights and its cache.

Everything is derived from the fields. The model type is used only for what no field says: the values that its class
takes for fields that are left out (``knowledge/config_defaults.py``). Whatever is missing or unusable is named.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gpuwhy.fit.fields import Fields
from gpuwhy.fit.quantization import Quantization, plain_format, read_quantization
from gpuwhy.knowledge import config_defaults
from gpuwhy.knowledge.model_architectures import normalised

MOST_LAYERS = 2000
_WIDEST = 10**7
_TEXT_SECTIONS = ("text_config", "llm_config", "language_config", "thinker_config", "language_model_config", "text_model")  # fmt: skip


class Mla(Struct, frozen=True):
    """Multi-head latent attention: one compressed row per token instead of keys and values per head."""

    kv_rank: int
    rope: int
    nope: int
    value: int
    query_rank: int | None


class Indexer(Struct, frozen=True):
    """The selection of tokens of sparse attention (DeepSeek V3.2)."""

    heads: int
    head_dim: int


class State(Struct, frozen=True):
    """Mamba or linear attention: a state of fixed size per request, in elements per layer; its weights."""

    convolution: int
    recurrent: int
    parameters: int
    is_recurrent_in_float32: bool = False


class Experts(Struct, frozen=True):
    """``shared`` is the width of all shared experts together; 0 for none."""

    count: int
    per_token: int
    width: int
    shared: int


class Tower(Struct, frozen=True):
    """An encoder of images or sounds with what leads from it to the text."""

    kind: str
    layers: int
    width: int
    inner: int
    is_gated: bool
    is_moon: bool = False
    """Written with the vt_ fields of MoonViT: the engines shard its attention only."""


class Layer(Struct, frozen=True):
    """``mixer``: full, sliding, state or none; ``feed``: experts, dense or none."""

    mixer: str
    feed: str


class Architecture(Struct, frozen=True, kw_only=True):
    """The shape of a text model with its towers. Lengths and widths in elements; None: not said anywhere."""

    name: str
    model_type: str
    hidden: int | None
    vocabulary: int | None
    layers: tuple[Layer, ...]
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    value_dim: int | None
    inner: int | None
    is_gated: bool
    is_tied: bool
    context: int | None
    window: int | None
    is_chunked: bool
    """Its sliding layers attend within chunks (Llama 4), which vLLM keeps whole."""
    has_output_gate: bool
    mla: Mla | None
    indexer: Indexer | None
    state: State | None
    experts: Experts | None
    towers: tuple[Tower, ...]
    quantization: Quantization
    predicting_layers: int
    """Layers of multi-token prediction in the checkpoint."""
    rotary_rows: int
    """Rows of the tables of cosines and sines."""
    rotary_width: int
    """Their columns in all, over the tables that are kept."""
    draft_vocabulary: int | None
    target_hidden: int | None
    """Of an EAGLE draft: the width of the model that it drafts for."""
    missing: tuple[str, ...]
    """What is not known, each with what follows from it."""

    def layers_of(self, mixer: str) -> int:
        return sum(layer.mixer == mixer for layer in self.layers)

    @property
    def attention_layers(self) -> int:
        return sum(layer.mixer in ("full", "sliding") for layer in self.layers)

    @property
    def is_complete(self) -> bool:
        """Whether everything is known that weights and cache are computed from."""
        if not (self.hidden and self.vocabulary and self.layers):
            return False
        kinds = {layer.mixer for layer in self.layers} | {layer.feed for layer in self.layers}
        if kinds & {"full", "sliding"} and not (self.heads and (self.head_dim or self.mla)):
            return False
        return not ("experts" in kinds and not self.experts) and not ("state" in kinds and not self.state)

    @property
    def is_multimodal(self) -> bool:
        return bool(self.towers)

    @property
    def vision(self) -> Tower | None:
        return next((tower for tower in self.towers if tower.kind == "vision"), None)


def read_architecture(config: Any, quantization: Any = None) -> Architecture:
    """From the parsed config.json, and that of hf_quant_config.json when there is one. Never raises."""
    complaints: list[str] = []
    whole = Fields(config, complaints)
    text = _text_section(whole)
    model_type = normalised(text.text("model_type") or whole.text("model_type") or _class_of(whole))
    fields = _Sections((text, whole), config_defaults.defaults_of(model_type), complaints)
    missing: list[str] = []
    if whole.is_empty:
        missing.append("config.json holds no fields: neither weights nor cache can be computed from it")
    layers_number = _wanted(fields, missing, "the number of layers", ("num_hidden_layers", "n_layer", "num_layers", "n_layers"), MOST_LAYERS)  # fmt: skip
    hidden = _wanted(fields, missing, "the hidden size", ("hidden_size", "n_embd", "d_model", "dim", "hidden_dim"), _WIDEST)  # fmt: skip
    vocabulary = _wanted(fields, missing, "the vocabulary", ("vocab_size", "padded_vocab_size"), _WIDEST)
    heads = fields.count("num_attention_heads", "n_head", "n_heads", "num_heads", largest=_WIDEST)
    mla = _mla(fields)
    kinds = _layers(fields, layers_number or 0)
    kv_heads = fields.count("num_key_value_heads", "n_kv_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv", largest=_WIDEST)  # fmt: skip
    head_dim = fields.count("head_dim", "kv_channels", "attention_head_dim", "qk_head_dim", largest=_WIDEST)
    if heads is None and any(layer.mixer in ("full", "sliding") for layer in kinds):
        missing.append("the number of attention heads is not known: weights and cache of the attention are left out")
    if head_dim is None and hidden and heads:
        head_dim = max(1, hidden // heads)
    if heads and hidden and head_dim and heads * head_dim > 64 * hidden:
        missing.append(f"{heads} heads of {head_dim} do not go with a hidden size of {hidden}: one of them is wrong")
    experts = _experts(fields, missing)
    inner = fields.count("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "d_ff", "ffn_dim", largest=_WIDEST)  # fmt: skip
    if inner is None and any(layer.feed == "dense" for layer in kinds):
        inner = 4 * hidden if hidden else None
        missing.append("intermediate_size is not known" + (": four times the hidden size is taken" if hidden else ""))
    dtype = plain_format(fields.text("torch_dtype", "dtype")) or plain_format("bfloat16")
    assert dtype is not None  # noqa: S101 - bfloat16 is in the table
    holder = whole if "quantization_config" in whole or "compression_config" in whole else text
    quantized = read_quantization(holder, dtype)
    if not quantized.is_quantized and isinstance(quantization, dict):
        quantized = read_quantization(Fields({"quantization_config": _modelopt_file(quantization)}, complaints), dtype)
    if quantized.complaint:
        missing.append(quantized.complaint + ": its weights are counted as if they were not quantised")
    context = fields.count("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "model_max_length", "max_seq_len", largest=10**9)  # fmt: skip
    window = fields.count("sliding_window", "sliding_window_size", "attention_chunk_size", largest=10**9)
    rows, width = _rotary(fields, context, head_dim, mla, any(layer.mixer == "sliding" for layer in kinds))
    state = _state(fields, hidden)
    if state is None and any(layer.mixer == "state" for layer in kinds):
        missing.append("the size of the states of its linear layers is not known: they are left out")
    missing.extend(complaints)
    return Architecture(
        name=_class_of(whole),
        model_type=model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=kinds,
        heads=heads,
        kv_heads=kv_heads or heads,
        head_dim=head_dim,
        value_dim=fields.count("v_head_dim", "value_head_dim", largest=_WIDEST) or head_dim,
        inner=inner,
        is_gated=not config_defaults.has_plain_mlp(model_type)
        and fields.text("mlp_hidden_act", "hidden_act") not in ("relu2", "gelu_new"),
        is_tied=bool(fields.flag("tie_word_embeddings", "tie_embeddings", "tie_weights")),
        context=context,
        window=window if any(layer.mixer == "sliding" for layer in kinds) else None,
        is_chunked="attention_chunk_size" in fields,
        has_output_gate=bool(fields.flag("attn_output_gate")),
        mla=mla,
        indexer=_indexer(fields),
        state=state,
        experts=experts,
        towers=_towers(whole),
        quantization=quantized,
        predicting_layers=fields.count(
            "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers", "num_mtp_modules", largest=64
        )
        or 0,
        rotary_rows=rows,
        rotary_width=width,
        draft_vocabulary=fields.count("draft_vocab_size", largest=_WIDEST),
        target_hidden=fields.count("target_hidden_size", largest=_WIDEST),
        missing=tuple(dict.fromkeys(missing)),
    )


class _Sections:
    """The same questions to several sections, then to the defaults of the class; the first answer counts."""

    def __init__(self, sections: tuple[Fields, ...], defaults: dict[str, Any], complaints: list[str]) -> None:
        self._all = (*sections, Fields(defaults, complaints))

    def count(self, *names: str, largest: int = _WIDEST, zero: bool = False) -> int | None:
        return next(
            (n for each in self._all if (n := each.count(*names, largest=largest, zero=zero)) is not None), None
        )

    def number(self, *names: str) -> float | None:
        return next((n for each in self._all if (n := each.number(*names)) is not None), None)

    def text(self, *names: str) -> str:
        return next((text for each in self._all if (text := each.text(*names))), "")

    def flag(self, *names: str) -> bool | None:
        return next((flag for each in self._all if (flag := each.flag(*names)) is not None), None)

    def items(self, *names: str) -> tuple[Any, ...]:
        return next((items for each in self._all if (items := each.items(*names))), ())

    def indices(self, *names: str) -> frozenset[int]:
        return next((found for each in self._all if (found := each.indices(*names))), frozenset())

    def section(self, *names: str) -> Fields:
        return next((s for each in self._all if not (s := each.section(*names)).is_empty), Fields({}))

    def __contains__(self, name: str) -> bool:
        return any(name in each for each in self._all)


def _text_section(whole: Fields) -> Fields:
    """The part that describes the text model: two levels at most, as in Qwen's omni models."""
    found = whole.section(*_TEXT_SECTIONS)
    if found.is_empty:
        return whole
    inner = found.section(*_TEXT_SECTIONS)
    return inner if not inner.is_empty else found


def _class_of(whole: Fields) -> str:
    return next(iter(whole.texts("architectures")), "") or whole.text("model_type")


def _modelopt_file(content: dict[Any, Any]) -> dict[Any, Any]:
    inner = content.get("quantization")
    return {"quant_method": "modelopt", **(inner if isinstance(inner, dict) else content)}


def _wanted(fields: _Sections, missing: list[str], what: str, names: tuple[str, ...], largest: int) -> int | None:
    found = fields.count(*names, largest=largest)
    if found is None:
        missing.append(f"{what} ({names[0]}) is not known: what depends on it is left out")
    return found


def _mla(fields: _Sections) -> Mla | None:
    rank = fields.count("kv_lora_rank")
    if rank is None:
        return None
    return Mla(
        kv_rank=rank,
        rope=fields.count("qk_rope_head_dim", zero=True) or 64,
        nope=fields.count("qk_nope_head_dim") or 128,
        value=fields.count("v_head_dim") or 128,
        query_rank=fields.count("q_lora_rank"),
    )


def _indexer(fields: _Sections) -> Indexer | None:
    width = fields.count("index_head_dim")
    return Indexer(fields.count("index_n_heads") or 1, width) if width else None


def _experts(fields: _Sections, missing: list[str]) -> Experts | None:
    count = fields.count("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", "num_moe_experts", largest=10**5)  # fmt: skip
    if count is None or count < 2:
        return None
    width = fields.count(
        "moe_intermediate_size", "moe_ffn_hidden_size", "expert_intermediate_size", "intermediate_size"
    )
    if width is None:
        missing.append("moe_intermediate_size is not known: the experts are left out")
        return None
    shared_count = fields.count("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", largest=1000) or 0
    shared = fields.count("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size")  # fmt: skip
    total = (shared * max(1, shared_count) if shared else shared_count * width) or 0
    per_token = fields.count("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "num_selected_experts", largest=10**5)  # fmt: skip
    return Experts(count, per_token or 1, width, total)


def _layers(fields: _Sections, number: int) -> tuple[Layer, ...]:
    pattern = fields.text("hybrid_override_pattern")
    if pattern and number:
        return _from_pattern(pattern, number)
    mixers = _mixers(fields, number)
    feeds = _feeds(fields, number)
    return tuple(Layer(mixer, feed) for mixer, feed in zip(mixers, feeds, strict=True))


def _from_pattern(pattern: str, number: int) -> tuple[Layer, ...]:
    """``M-M*E``: of Nemotron-H, where each layer is one thing only."""
    kinds = {"M": Layer("state", "none"), "*": Layer("full", "none"), "-": Layer("none", "dense"), "E": Layer("none", "experts")}  # fmt: skip
    return tuple(kinds.get(letter, Layer("full", "dense")) for letter in pattern[:number])


_MIXERS = {"full_attention": "full", "attention": "full", "full": "full", "global": "full", "sliding_attention": "sliding", "sliding": "sliding", "local": "sliding", "chunked_attention": "sliding", "linear_attention": "state", "mamba": "state", "mamba2": "state", "recurrent": "state", "conv": "state", "linear": "state", "kda": "state", "gdn": "state", "lightning": "state"}  # fmt: skip


def _mixers(fields: _Sections, number: int) -> list[str]:
    named = fields.items("layer_types", "layers_block_type", "block_types", "attention_types")
    if len(named) >= number > 0 and all(isinstance(each, str) for each in named[:number]):
        return [_MIXERS.get(each.lower(), "full") for each in named[:number]]
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
    if attention and "mamba_d_state" in fields:
        return ["full" if index in attention else "state" for index in range(number)]
    period = fields.count("attn_layer_period", largest=MOST_LAYERS)
    if period:
        offset = fields.count("attn_layer_offset", zero=True, largest=MOST_LAYERS) or 0
        return ["full" if index % period == offset else "state" for index in range(number)]
    interval = fields.count("full_attention_interval", largest=MOST_LAYERS)
    if interval and "linear_num_value_heads" in fields:
        return ["full" if (index + 1) % interval == 0 else "state" for index in range(number)]
    if not _has_attention(fields):
        return ["state"] * number
    return _sliding_mixers(fields, number)


def _has_attention(fields: _Sections) -> bool:
    """A pure Mamba model names a state and no attention."""
    return fields.count("num_attention_heads", "n_head", "n_heads", "num_heads", "kv_lora_rank") is not None or not any(
        name in fields for name in ("state_size", "ssm_state_size", "d_state")
    )


def _sliding_mixers(fields: _Sections, number: int) -> list[str]:
    chunk = fields.count("attention_chunk_size", largest=10**9)
    rotary = fields.items("no_rope_layers")
    if chunk and len(rotary) >= number > 0:
        return ["sliding" if each == 1 else "full" for each in rotary[:number]]
    if chunk and "interleave_moe_layer_step" in fields:
        return ["full" if (index + 1) % 4 == 0 else "sliding" for index in range(number)]
    every = fields.count("sliding_window_pattern", "_sliding_window_pattern", largest=MOST_LAYERS)
    if fields.count("sliding_window", largest=10**9) and every and every > 1:
        return ["full" if (index + 1) % every == 0 else "sliding" for index in range(number)]
    window, context = (fields.count(name, largest=10**9) for name in ("sliding_window", "max_position_embeddings"))
    is_used = fields.flag("use_sliding_window") is not False and not (context and window and window >= context)
    if window and is_used and not every:
        first = fields.count("max_window_layers", zero=True, largest=MOST_LAYERS) or 0
        return ["sliding" if index >= first else "full" for index in range(number)]
    return ["full"] * number


def _feeds(fields: _Sections, number: int) -> list[str]:
    if (fields.count("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", "num_moe_experts", largest=10**5) or 0) < 2:  # fmt: skip
        return ["dense"] * number
    named = fields.items("mlp_layer_types")
    if len(named) >= number > 0:
        return ["experts" if each in ("sparse", "moe", "experts") else "dense" for each in named[:number]]
    frequencies = fields.items("moe_layer_freq")
    if len(frequencies) >= number > 0:
        return ["experts" if each else "dense" for each in frequencies[:number]]
    chosen = fields.indices("moe_layers", "moe_layers_enum")
    if chosen:
        return ["experts" if index in chosen else "dense" for index in range(number)]
    first = fields.count("first_k_dense_replace", "first_dense_layers", zero=True, largest=MOST_LAYERS) or 0
    step = fields.count("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period", "moe_layer_interval", largest=MOST_LAYERS) or 1  # fmt: skip
    offset = fields.count("expert_layer_offset", zero=True, largest=MOST_LAYERS)
    dense = fields.indices("mlp_only_layers")
    phase = offset if offset is not None else (0 if "moe_layer_freq" in fields else step - 1)
    return [
        "experts" if index >= first and index % step == phase and index not in dense else "dense"
        for index in range(number)
    ]


def _state(fields: _Sections, hidden: int | None) -> State | None:
    """Elements of the state per request and layer, and the weights of such a layer."""
    width = hidden or 0
    value_heads = fields.count("linear_num_value_heads", largest=10**5)
    if value_heads:
        key_heads = fields.count("linear_num_key_heads", largest=10**5) or value_heads
        key_dim = key_heads * (fields.count("linear_key_head_dim", largest=10**5) or 128)
        value_dim = value_heads * (fields.count("linear_value_head_dim", largest=10**5) or 128)
        kernel = fields.count("linear_conv_kernel_dim", largest=1000) or 4
        mixed = 2 * key_dim + value_dim
        weights = width * (2 * key_dim + 2 * value_dim + 2 * value_heads) + mixed * kernel + value_dim * width
        return State(mixed * (kernel - 1), value_dim * (key_dim // key_heads), weights, True)
    linear = fields.section("linear_attn_config")
    if not linear.is_empty:
        return _delta_state(linear, width)
    return _mamba_state(fields, width)


def _delta_state(linear: Fields, width: int) -> State | None:
    heads, size = linear.count("num_heads", largest=10**5), linear.count("head_dim", largest=10**5)
    if not heads or not size:
        return None
    inner, kernel = heads * size, linear.count("short_conv_kernel_size", largest=1000) or 4
    weights = 4 * width * inner + 2 * (width * size + size * inner) + width * heads + 3 * inner * kernel
    return State(3 * inner * (kernel - 1), inner * size, weights, True)


def _mamba_state(fields: _Sections, width: int) -> State | None:
    size = fields.count("ssm_state_size", "mamba_d_state", "state_size", "d_state", largest=10**5)
    if not size:
        return None
    kernel = fields.count("conv_kernel", "mamba_d_conv", "d_conv", largest=1000) or 4
    heads = fields.count("mamba_num_heads", "mamba_n_heads", largest=10**5)
    if heads:
        head = fields.count("mamba_head_dim", "mamba_d_head", largest=10**5) or 64
        inner, groups = heads * head, fields.count("n_groups", "mamba_n_groups", largest=10**5) or 1
        mixed = inner + 2 * groups * size
        return State(
            mixed * (kernel - 1), inner * size, width * (inner + mixed + heads) + mixed * kernel + inner * width
        )
    inner = width * (fields.count("expand", "mamba_expand", largest=1000) or 2)
    rank = fields.count("mamba_dt_rank", "time_step_rank", largest=_WIDEST) or max(1, width // 16)
    weights = width * 2 * inner + inner * (kernel + rank + 2 * size) + rank * inner + inner * size + inner * width
    return State(inner * (kernel - 1), inner * size, weights)


def _towers(whole: Fields) -> tuple[Tower, ...]:
    # omni models keep their towers one level down
    holders = (whole, whole.section("thinker_config"))
    found = []
    for kind, names in (("vision", ("vision_config", "visual", "vision_tower_config", "vit_config")), ("audio", ("audio_config", "audio_encoder_config"))):  # fmt: skip
        section = next((s for holder in holders if not (s := holder.section(*names)).is_empty), None)
        tower = _tower(kind, section) if section is not None else None
        if tower:
            found.append(tower)
    return tuple(found)


def _tower(kind: str, section: Fields) -> Tower | None:
    layers = section.count("vt_num_hidden_layers", "num_hidden_layers", "depth", "layers", "encoder_layers", "n_layers", "num_layers", largest=MOST_LAYERS)  # fmt: skip
    width = section.count("vt_hidden_size", "embed_dim", "hidden_size", "width", "d_model", largest=10**6)
    if "depth" in section and "embed_dim" not in section:
        width = section.count("hidden_size", largest=10**6) or width
    if layers is None or width is None:
        # the class defaults of CLIP-like towers are large ones
        return Tower(kind, layers or 27, width or 1152, 4304, is_gated=False)
    ratio = section.number("mlp_ratio")
    inner = section.count("vt_intermediate_size", "intermediate_size", "encoder_ffn_dim", largest=10**7)
    if inner is None:
        inner = round(width * min(ratio or 4.0, 64.0))
    gated = section.text("hidden_act", "hidden_activation") in ("silu", "swiglu") or "PixtralVision" in section.text("architectures")  # fmt: skip
    return Tower(kind, layers, width, inner, gated or section.text("model_type") == "pixtral", "vt_hidden_size" in section)  # fmt: skip


def _rotary(
    fields: _Sections, context: int | None, head_dim: int | None, mla: Mla | None, is_hybrid: bool
) -> tuple[int, int]:
    """Rows and columns of the tables of cosines and sines, which both engines keep in the dtype of the model.

    A linear scaling multiplies the rows: 0.5 GiB on Gemma 3, with its factor of 8 over 131,072 positions.
    """
    width = mla.rope if mla else head_dim or 0
    if not context or not width:
        return 0, 0
    scaling = fields.section("rope_scaling", "rope_parameters")
    nested = scaling.section("full_attention")
    scaling = nested if not nested.is_empty else scaling
    factor = scaling.number("factor") or 1.0
    kind = scaling.text("rope_type", "type")
    rows = context
    if kind in ("linear", "dynamic"):
        rows = round(context * min(factor, 1000.0))
    elif kind in ("yarn", "deepseek_yarn"):
        original = scaling.count("original_max_position_embeddings", largest=10**9)
        rows = round((original or context) * min(factor, 1000.0)) if original else context
    # a second table, unscaled, serves the sliding layers
    local = context / rows if is_hybrid and rows else 0.0
    return rows, round(width * (1 + local) * (2 if mla else 1))

"""What a config.json says of a model's shape: enough to count its weights and its cache.

Everything is derived from the fields. The model type is used only for what no field says: the values that its class
takes for fields that are left out (``knowledge/config_defaults.py``). Whatever is missing or unusable is named.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from gpuwhy.fit.fields import Fields, Sections
from gpuwhy.fit.layers import EXPERT_COUNTS, MOST_LAYERS, WIDEST, Layer, expert_count, read_layers
from gpuwhy.fit.quantization import HALF, Quantization, plain_format, read_quantization, with_narrow_experts
from gpuwhy.fit.states import State, read_state
from gpuwhy.fit.towers import Tower, read_towers
from gpuwhy.knowledge import config_defaults, nested_config_defaults
from gpuwhy.knowledge.model_architectures import normalised

_TEXT_SECTIONS = ("text_config", "llm_config", "language_config", "thinker_config", "language_model_config", "text_model", "llm_cfg")  # fmt: skip
_LOADED_BYTES = 2
_MOST_KINDS_OF_EXPERTS = 4
_PARTS = ("ffn_config", "attn_config", "moe")
"""Of DBRX and MPT, and of Mistral's own params.json."""
_UNLOADED = ("talker_config", "token2wav_config", "code2wav_config", "speech_lora", "vision_lora")
"""Parts of a checkpoint that the engines leave in the files: what speaks, and adapters."""
_WITH_HEAD = re.compile(r"(?:LMHead|Chat|ChatGLM|GLM|DoubleHeads)Model\Z")
_WITHOUT_HEAD = re.compile(r"(?:Model|For(?:SequenceClassification|TokenClassification|RewardModel|ProcessRewardModel|TextEncoding))\Z")  # fmt: skip


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


class Experts(Struct, frozen=True):
    """``shared`` is the width of all shared experts together; 0 for none."""

    count: int
    per_token: int
    width: int
    shared: int
    latent: int = 0
    """The width that they work on, where the hidden state is narrowed for them; 0: the hidden size."""


class PerLayer(Struct, frozen=True):
    """Gemma 3n and 4: an embedding of its own for each layer, and what joins it."""

    width: int
    vocabulary: int
    streams: int
    """Hidden states side by side (AltUp); 1 for one."""
    rank: int
    """Of the learned residual (Laurel); 0 for none."""


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
    has_head: bool
    """Not: an embedding or reward model, whose checkpoint ends with the last layer."""
    query_rank: int | None
    """Of queries that are made in two steps (Step 3, DeepSeek V4)."""
    output_rank: int | None
    """Of what leads out of the attention in two steps, in groups of heads (DeepSeek V4)."""
    output_groups: int
    attention_width: int | None
    """What the attention reads, where that is not the hidden size (Zamba 2)."""
    adapter_rank: int
    """Of what tells apart the uses of a shared MLP (Zamba 2); 0 for none."""
    positions: int
    """Learned positions; 0 for none."""
    is_encoder: bool
    per_layer: PerLayer | None
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
    is_stored_in_float32: bool
    """Its files are twice as large as what is loaded."""
    has_unloaded: bool
    """The checkpoint holds parts that no engine loads."""
    missing: tuple[str, ...]
    """What is not known, each with what follows from it."""

    def layers_of(self, mixer: str) -> int:
        return sum(layer.mixer == mixer for layer in self.layers)

    @property
    def attention_layers(self) -> int:
        return sum(layer.is_attending for layer in self.layers)

    def row_widths(self, layer: Layer) -> tuple[int, int]:
        """Of one head's key and value in a layer."""
        head = layer.head_dim or self.head_dim or 0
        if layer.value_dim:
            return head, layer.value_dim
        # what a layer says of its keys holds for its values, unless those of the model differ
        follows = layer.head_dim is not None and self.value_dim == self.head_dim
        return head, head if follows else self.value_dim or 0

    @property
    def is_complete(self) -> bool:
        """Whether everything is known that weights and cache are computed from."""
        if not (self.hidden and self.vocabulary and self.layers):
            return False
        if self.attention_layers and not (self.heads and (self.head_dim or self.mla)):
            return False
        has_states = any(layer.mixer == "state" or layer.has_state for layer in self.layers)
        has_experts = any(layer.feed == "experts" for layer in self.layers)
        return not (has_experts and not self.experts) and not (has_states and not self.state)

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
    whole_type = normalised(whole.text("model_type") or _class_of(whole))
    model_type, defaults = _type_and_defaults(whole, text, whole_type)
    fields = Sections((text, *(text.section(part) for part in _PARTS), whole), defaults, complaints)
    missing: list[str] = []
    if whole.is_empty:
        missing.append("config.json holds no fields: neither weights nor cache can be computed from it")
    listed = len(fields.items("layers_block_type")) if "num_hidden_layers" not in fields else 0
    layers_number = min(listed, MOST_LAYERS) or _wanted(fields, missing, "the number of layers", (*_decoders("layers", fields), "num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_transformer_layers"), MOST_LAYERS)  # fmt: skip
    hidden = _wanted(fields, missing, "the hidden size", ("hidden_size", "n_embd", "d_model", "dim", "n_embed", "model_dim", "hidden_dim"), WIDEST)  # fmt: skip
    vocabulary = _wanted(fields, missing, "the vocabulary", ("vocab_size", "padded_vocab_size"), WIDEST)
    is_encoder = config_defaults.is_encoder(model_type)
    kinds = read_layers(fields, layers_number or 0, is_encoder)
    if layers_number and kinds and len(kinds) not in (layers_number, 2 * layers_number):
        missing.append(f"{layers_number} layers are named, {len(kinds)} are described: those are counted")
    attends = any(layer.is_attending for layer in kinds)
    heads = _heads(fields, kinds) if attends else None
    head_dim = fields.count("head_dim", "kv_channels", "attention_head_dim", "qk_head_dim", largest=WIDEST)
    if heads is None and attends:
        missing.append("the number of attention heads is not known: weights and cache of the attention are left out")
    if head_dim is None and hidden and heads:
        head_dim = max(1, hidden // heads)
    if heads and hidden and head_dim and heads * head_dim > 64 * hidden:
        missing.append(f"{heads} heads of {head_dim} do not go with a hidden size of {hidden}: one of them is wrong")
    experts = _experts(fields, hidden, missing) if any(layer.feed == "experts" for layer in kinds) else None
    inner = _inner(fields, hidden, model_type)
    if inner is None and any(layer.feed == "dense" and not layer.inner for layer in kinds):
        inner = 4 * hidden if hidden else None
        missing.append("intermediate_size is not known" + (": four times the hidden size is taken" if hidden else ""))
    dtype = plain_format(fields.text("torch_dtype", "dtype")) or plain_format("bfloat16")
    assert dtype is not None  # noqa: S101 - bfloat16 is in the table
    is_wide = dtype.bytes_each > _LOADED_BYTES
    if is_wide:
        # both engines load what is stored in float32 in 16 bits, unless told otherwise
        dtype = HALF
    holder = whole if "quantization_config" in whole or "compression_config" in whole else text
    quantized = read_quantization(holder, dtype)
    if not quantized.is_quantized and isinstance(quantization, dict):
        quantized = read_quantization(Fields({"quantization_config": _modelopt_file(quantization)}, complaints), dtype)
    quantized = with_narrow_experts(quantized, fields.text("expert_dtype"))
    if quantized.complaint:
        missing.append(quantized.complaint + ": its weights are counted as if they were not quantised")
    mla = _mla(fields)
    context = fields.count("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "model_max_length", "max_seq_len", "max_target_positions", "max_context_length", largest=10**9)  # fmt: skip
    window = fields.count("sliding_window", "sliding_window_size", "attention_chunk_size", "window_size", largest=10**9)
    rows, width = _rotary(fields, context, head_dim, mla, any(layer.mixer == "sliding" for layer in kinds))
    has_positions = config_defaults.has_learned_positions(model_type)
    state = read_state(fields, hidden) if any(layer.mixer == "state" or layer.has_state for layer in kinds) else None
    if state is None and any(layer.mixer == "state" or layer.has_state for layer in kinds):
        missing.append("the size of the states of its linear layers is not known: they are left out")
    missing.extend(complaints)
    return Architecture(
        name=_class_of(whole),
        model_type=model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=kinds,
        heads=heads,
        kv_heads=_kv_heads(fields, kinds) or heads,
        head_dim=head_dim,
        value_dim=fields.count("v_head_dim", "value_head_dim", largest=WIDEST) or head_dim,
        inner=inner,
        is_gated=not config_defaults.has_plain_mlp(model_type)
        and (fields.text("mlp_hidden_act", "hidden_act") not in ("relu2", "gelu_new") or model_type == "bitnet"),
        is_tied=bool(fields.flag("tie_word_embeddings", "tie_embeddings", "tie_weights")),
        context=context,
        window=window if any(layer.mixer == "sliding" for layer in kinds) else None,
        is_chunked="attention_chunk_size" in fields,
        has_output_gate=bool(fields.flag("attn_output_gate")),
        has_head=text is not whole or (not is_encoder and _has_head(whole)),
        query_rank=fields.count("share_q_dim", *(() if mla else ("q_lora_rank",)), largest=WIDEST),
        output_rank=fields.count("o_lora_rank", largest=WIDEST),
        output_groups=fields.count("o_groups", largest=WIDEST) or 1,
        attention_width=fields.count("attention_hidden_size", largest=WIDEST),
        adapter_rank=(fields.count("adapter_rank", largest=WIDEST) or 0)
        if fields.flag("use_shared_mlp_adapter")
        else 0,
        positions=min(context or 0, 10**7) if has_positions else 0,
        is_encoder=is_encoder,
        per_layer=_per_layer(fields),
        mla=mla,
        indexer=_indexer(fields),
        state=state,
        experts=experts,
        towers=read_towers(whole, whole_type),
        quantization=quantized,
        predicting_layers=fields.count(
            "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers", "num_mtp_modules", largest=64
        )
        or 0,
        rotary_rows=0 if has_positions else rows,
        rotary_width=0 if has_positions else width,
        draft_vocabulary=fields.count("draft_vocab_size", largest=WIDEST),
        target_hidden=fields.count("target_hidden_size", largest=WIDEST),
        is_stored_in_float32=is_wide,
        has_unloaded=any(name in whole for name in _UNLOADED),
        missing=tuple(dict.fromkeys(missing)),
    )


def _type_and_defaults(whole: Fields, text: Fields, whole_type: str) -> tuple[str, dict[str, Any]]:
    """Of the text model, and what its class takes for fields that are left out."""
    if text is whole:
        return whole_type, config_defaults.defaults_of(whole_type)
    said = normalised(text.text("model_type"))
    model_type = said or nested_config_defaults.type_of(whole_type) or whole_type
    nested = {**config_defaults.nested_defaults_of(model_type), **nested_config_defaults.text_defaults_of(whole_type, said)}  # fmt: skip
    return model_type, nested


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


def _wanted(fields: Sections, missing: list[str], what: str, names: tuple[str, ...], largest: int) -> int | None:
    found = fields.count(*names, largest=largest)
    if found is None:
        missing.append(f"{what} ({names[0]}) is not known: what depends on it is left out")
    return found


def _mla(fields: Sections) -> Mla | None:
    rank = fields.count("kv_lora_rank")
    if rank is None:
        return None
    rope = fields.count("qk_rope_head_dim", zero=True)
    return Mla(
        kv_rank=rank,
        rope=64 if rope is None else rope,
        nope=fields.count("qk_nope_head_dim") or 128,
        value=fields.count("v_head_dim") or 128,
        query_rank=fields.count("q_lora_rank"),
    )


def _indexer(fields: Sections) -> Indexer | None:
    width = fields.count("index_head_dim")
    return Indexer(fields.count("index_n_heads") or 1, width) if width else None


def _decoders(what: str, fields: Sections) -> tuple[str, ...]:
    """Names of fields of a model that has an encoder and a decoder, of which the decoder is the text model."""
    return (f"decoder_{what}",) if "decoder_layers" in fields and "encoder_layers" in fields else ()


def _heads(fields: Sections, layers: tuple[Layer, ...]) -> int | None:
    names = (*_decoders("attention_heads", fields), "num_attention_heads", "n_head", "n_heads", "num_heads")
    return fields.count(*names, largest=WIDEST) or max((layer.heads or 0 for layer in layers), default=0) or None


def _kv_heads(fields: Sections, layers: tuple[Layer, ...]) -> int | None:
    own = fields.count("n_head_kv", "kv_n_heads", largest=WIDEST)
    if own is None and fields.flag("multi_query") and not fields.flag("new_decoder_architecture"):
        # Falcon 7B: one head, whatever num_kv_heads says
        return 1
    named = fields.count("num_key_value_heads", "n_kv_heads", "num_kv_heads", "multi_query_group_num", "num_attention_groups", largest=WIDEST)  # fmt: skip
    return own or named or max((layer.kv_heads or 0 for layer in layers), default=0) or None


def _inner(fields: Sections, hidden: int | None, model_type: str) -> int | None:
    """The width of the dense MLP."""
    narrow = fields.count("shared_intermediate_size", largest=WIDEST) if not expert_count(fields) else None
    names = (*_decoders("ffn_dim", fields), "intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "d_ff", "ffn_dim", "block_ff_dim")  # fmt: skip
    # of Mistral's params.json, where the hidden size is called dim
    found = narrow or fields.count(*names, *(("hidden_dim",) if "dim" in fields else ()), largest=WIDEST)
    if found and config_defaults.has_joint_width(model_type):
        return max(1, found // 2)
    if found and fields.flag("block_auto_adjust_ff_dim"):
        step = fields.count("block_multiple_of", largest=WIDEST) or 256
        return -(-int(2 * found / 3 * (fields.number("block_ffn_dim_multiplier") or 1.0)) // step) * step
    if found is None and hidden and config_defaults.has_plain_mlp(model_type):
        return round(hidden * min(fields.number("expansion_ratio") or 4.0, 64.0))
    return found


def _has_head(whole: Fields) -> bool:
    name = _class_of(whole)
    return bool(_WITH_HEAD.search(name)) or not _WITHOUT_HEAD.search(name)


def _per_layer(fields: Sections) -> PerLayer | None:
    width = fields.count("hidden_size_per_layer_input", largest=WIDEST, zero=True)
    vocabulary = fields.count("vocab_size_per_layer_input", largest=WIDEST)
    if not width or not vocabulary:
        return None
    return PerLayer(width, vocabulary, fields.count("altup_num_inputs", largest=64) or 1, fields.count("laurel_rank", largest=WIDEST) or 0)  # fmt: skip


def _experts(fields: Sections, hidden: int | None, missing: list[str]) -> Experts | None:
    count = expert_count(fields)
    named = ("moe_intermediate_size", "moe_ffn_hidden_size", "expert_intermediate_size", "expert_ffn_hidden_size", "expert_hidden_dim")  # fmt: skip
    counts, widths = fields.each(*EXPERT_COUNTS), fields.each("moe_intermediate_size")
    first = next((width for width in widths if width), None)
    if first and not counts and 1 < len(widths) <= _MOST_KINDS_OF_EXPERTS and len(set(widths)) > 1:
        counts, count = (count,) * len(widths), count * len(widths)
    if first and 1 < len(counts) == len(widths):
        # ERNIE's models of images: experts of two widths
        width: int | None = round(sum((number or 0) * (each or 0) for number, each in zip(counts, widths, strict=True)) / max(1, count))  # fmt: skip
    else:
        width = fields.count(*named, largest=WIDEST)
        width = width or fields.count("intermediate_size", "ffn_hidden_size", "hidden_dim", largest=WIDEST)
    if width is None:
        missing.append("moe_intermediate_size is not known: the experts are left out")
        return None
    per_token = fields.count("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k", "top_k_experts", "num_selected_experts", largest=10**5)  # fmt: skip
    return Experts(
        count=count,
        per_token=per_token or 1,
        width=width,
        shared=_shared_width(fields, first or width, hidden or 0),
        latent=fields.count("moe_latent_size", "moe_hidden_size", largest=WIDEST) or 0,
    )


def _shared_width(fields: Sections, width: int, hidden: int) -> int:
    """Of all that every token passes beside the experts chosen for it."""
    count = fields.count("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert", largest=1000) or 0  # fmt: skip
    each = fields.count("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size", largest=WIDEST)  # fmt: skip
    whole = fields.count("share_expert_dim", largest=WIDEST)
    if each:
        return each * max(1, count)
    if whole:
        return whole
    if "expert_ffn_hidden_size" in fields or fields.flag("residual_moe") or fields.flag("enable_moe_block"):
        # LongCat, Grok 2, Gemma 4: an MLP of the usual width
        return fields.count("ffn_hidden_size", "intermediate_size", largest=WIDEST) or 0
    if fields.flag("use_residual"):
        # Arctic: one of the hidden size
        return hidden
    return count * width


def _rotary(
    fields: Sections, context: int | None, head_dim: int | None, mla: Mla | None, is_hybrid: bool
) -> tuple[int, int]:
    """Rows and columns of the tables of cosines and sines, which both engines keep in the dtype of the model.

    A linear scaling multiplies the rows: 0.5 GiB on Gemma 3, with its factor of 8 over 131,072 positions.
    """
    part = min(fields.number("partial_rotary_factor", "rotary_pct", "rope_percent") or 1.0, 1.0)
    width = (
        mla.rope
        if mla
        else fields.count("qk_rope_head_dim", "rotary_dim", largest=WIDEST) or round((head_dim or 0) * part)
    )
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

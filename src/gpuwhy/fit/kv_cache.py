"""What the cache of keys and values takes: bytes per token, and per request for sliding layers and states."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.layers import Layer
from gpuwhy.fit.parallel import Parallel
from gpuwhy.knowledge.config_defaults import keeps_heads_in_vllm
from gpuwhy.knowledge.engine_memory import release_of

_ELEMENT = {"fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "fp8_inc": 1.0, "int8": 1.0, "fp4": 0.5 + 1 / 16, "fp4_e2m1": 0.5 + 1 / 16, "nvfp4": 0.5 + 1 / 16, "int4": 0.5, "bfloat16": 2.0, "bf16": 2.0, "float16": 2.0, "fp16": 2.0, "half": 2.0, "float32": 4.0}  # fmt: skip
_FOLLOWS_COMPRESSED_TENSORS = (0, 5, 20)
_AUTOMATIC = ("auto", "none", "default")
_PACKED_MLA = {"fp8_ds_mla": 656.0, "nvfp4_ds_mla": 352.0}
"""Bytes per token and layer of vLLM's own layouts for sparse MLA (v1/attention, mla_attention.py)."""


_COMPRESSED_ROPE, _COMPRESSED_SCALES, _INDEXED = 64, 8, 4

_SPREAD = 1.5
"""Of the newest releases."""


class KvShape(Struct, frozen=True):
    """Of one rank, in bytes: per token for the layers that keep everything, and for the sliding ones; per request for
    the states. ``window`` tokens is what a sliding layer keeps.
    """

    full_layers: int
    full_bytes: float
    """Per token and layer."""
    sliding_layers: int
    sliding_bytes: float
    window: int
    state_layers: int
    state_bytes: float
    """Per request and layer."""

    @property
    def per_token(self) -> float:
        """As if every layer kept every token."""
        return self.full_layers * self.full_bytes + self.sliding_layers * self.sliding_bytes


def default_dtype(kv_dtype: str, shape: Architecture, engine: str, version: str, capability: float) -> str:
    """What SGLang takes for ``auto``; else as given.

    read: with sparse attention it is fp8 on Blackwell (arg_groups/overrides.py); compressed-tensors that asks for an fp8
    cache gets it from 0.5.20 on (0.5.17 has not got it).
    """
    name = kv_dtype.rpartition(".")[2].lower() or "auto"
    if engine != "sglang" or name not in _AUTOMATIC:
        return kv_dtype
    if shape.mla and shape.indexer:
        return "fp8_e4m3" if capability >= 10 else "bfloat16"
    release = release_of(version)
    is_early = release is not None and release.release < _FOLLOWS_COMPRESSED_TENSORS
    return "bfloat16" if is_early and shape.quantization.method == "compressed_tensors" else kv_dtype


def element_bytes(kv_dtype: str, shape: Architecture) -> float | None:
    """Bytes of one element; ``auto`` is that of the model, or what its checkpoint asks for. None: an unknown dtype."""
    name = kv_dtype.rpartition(".")[2].lower() or "auto"
    if name in _AUTOMATIC:
        wanted = shape.quantization.kv_format
        return _ELEMENT.get(wanted, shape.quantization.dtype.bytes_each)
    if name in _PACKED_MLA:
        return 1.0
    return _ELEMENT.get(name)


def kv_shape(shape: Architecture, parallel: Parallel, kv_dtype: str, span: tuple[int, int] | None = None, engine: str = "") -> KvShape:  # fmt: skip
    """Of one rank that holds the layers of ``span`` (all without it). ``engine`` decides what a state is kept in."""
    layers = shape.layers[span[0] : span[1]] if span and span[1] else shape.layers
    element = element_bytes(kv_dtype, shape) or shape.quantization.dtype.bytes_each
    shape = _with_heads(shape) if engine == "vllm" and keeps_heads_in_vllm(shape.model_type) else shape
    rows = {layer: layer.attends * _row_bytes(shape, layer, parallel, kv_dtype, element) for layer in set(layers)}
    is_sliding = bool(shape.window)
    sliding = [rows[layer] for layer in layers if layer.keeps_cache and layer.mixer == "sliding" and is_sliding]
    full = [rows[layer] for layer in layers if layer.keeps_cache and layer.is_attending and not (layer.mixer == "sliding" and is_sliding)]  # fmt: skip
    return KvShape(
        full_layers=len(full),
        full_bytes=sum(full) / len(full) if full else 0.0,
        sliding_layers=len(sliding),
        sliding_bytes=sum(sliding) / len(sliding) if sliding else 0.0,
        window=shape.window or 0,
        state_layers=sum(layer.mixer == "state" or layer.has_state for layer in layers) if shape.state else 0,
        state_bytes=_state_bytes(shape, parallel, engine),
    )


def _with_heads(shape: Architecture) -> Architecture:
    """Latent attention that is unfolded before it is cached; values are padded to the width of the keys (minicpm3.py)."""
    if not shape.mla:
        return shape
    width = shape.mla.nope + shape.mla.rope
    return msgspec.structs.replace(shape, mla=None, head_dim=width, value_dim=width, kv_heads=shape.heads)


def _state_bytes(shape: Architecture, parallel: Parallel, engine: str) -> float:
    """SGLang keeps the recurrent part in float32 unless config.json says otherwise, vLLM in the dtype of the model.

    measured: vLLM's "attention block size" of 544 tokens for Qwen3-Next and "padding by 0.13 %" for Qwen3.6 27B.
    """
    state, plain = shape.state, shape.quantization.dtype.bytes_each
    if state is None:
        return 0.0
    recurrent = _ELEMENT.get(state.dtype) or (4.0 if engine == "sglang" or state.is_always_float32 else plain)
    return (state.convolution * plain + state.recurrent * recurrent) / max(1, parallel.attention)


def _row_bytes(shape: Architecture, layer: Layer, parallel: Parallel, kv_dtype: str, element: float) -> float:
    if shape.mla:
        packed = _PACKED_MLA.get(kv_dtype.lower())
        if shape.indexer and element == 1:
            # in fp8 sparse attention has rows of that layout in both engines
            packed = _PACKED_MLA["fp8_ds_mla"]
        if packed:
            return packed + _index_bytes(shape)
        row = (shape.mla.kv_rank + shape.mla.rope) * element
        return row + _index_bytes(shape)
    if layer.compression is not None:
        return _compressed_row(shape, layer, kv_dtype)
    kv_heads = layer.kv_heads or shape.kv_heads or 0
    local = max(1, kv_heads // max(1, parallel.attention)) if kv_heads else 0
    return local * sum(shape.row_widths(layer)) * element


def _index_bytes(shape: Architecture) -> float:
    """A key of the indexer in fp8 with its scales."""
    return shape.indexer.head_dim + shape.indexer.head_dim // 128 * 4 if shape.indexer else 0.0


def _compressed_row(shape: Architecture, layer: Layer, kv_dtype: str) -> float:
    """DeepSeek V4: a latent row in fp8 with 16-bit angles and scales, one for so many tokens; keys of an indexer too.

    Its window of uncompressed rows does not grow with the context (SGLang's pool_configurator.py).
    """
    head, rope = layer.head_dim or shape.head_dim or 0, _COMPRESSED_ROPE
    is_wide = _ELEMENT.get(kv_dtype.rpartition(".")[2].lower()) == _ELEMENT["bfloat16"]
    row = 2 * head if is_wide else max(0, head - rope) + 2 * rope + _COMPRESSED_SCALES
    if not layer.compression:
        return 0.0
    index = shape.indexer.head_dim * (1 + 4 / 128) if shape.indexer and layer.compression <= _INDEXED else 0.0
    return (row + index) / layer.compression


def request_bytes_in_groups(kv: KvShape, length: int, in_flight: int, block: int, spread: float = _SPREAD, states: int = 1) -> float:  # fmt: skip
    """What vLLM reserves for one request of ``length`` tokens on a model whose layers differ.

    It puts layers into groups of equal size, as many as the rarest kind has, fills up with padding layers, and gives
    each group blocks of one page size; a sliding group needs its window and the tokens in flight only, one of states so
    many ``states`` (kv_cache_interface.py, kv_cache_utils.py).
    """
    size = _group_size(kv, spread)
    if not size:
        return 0.0
    if kv.state_layers:
        return _with_states(kv, length, block, size, states)
    page = size * block * max(kv.full_bytes, kv.sliding_bytes)
    whole = -(-length // block)
    kept = -(-min(kv.window - 1 + in_flight, length) // block) + 1
    blocks = -(-kv.full_layers // size) * whole + (-(-kv.sliding_layers // size) * kept if kv.sliding_layers else 0)
    return blocks * page


def _group_size(kv: KvShape, spread: float) -> int:
    kinds = [count for count in (kv.full_layers, kv.sliding_layers, kv.state_layers) if count]
    if not kinds:
        return 0
    smallest, largest = min(kinds), max(kinds)
    return largest if largest < spread * smallest else smallest


def block_bytes_of_all_groups(kv: KvShape, block: int, spread: float) -> float:
    """Bytes of one token if every group of layers keeps it: what releases up to 0.20.0 count their tokens by."""
    size = _group_size(kv, spread)
    if not size:
        return 0.0
    groups = sum(-(-count // size) for count in (kv.full_layers, kv.sliding_layers, kv.state_layers))
    row = max(kv.full_bytes, kv.sliding_bytes)
    if not kv.state_layers or not row:
        return groups * size * row
    enlarged = _enlarged(kv, block, row)
    return groups * size * max(enlarged * row, kv.state_bytes) / enlarged


def _enlarged(kv: KvShape, block: int, row: float) -> int:
    return max(block, -(-int(kv.state_bytes / row) // block) * block)


def _with_states(kv: KvShape, length: int, block: int, size: int, states: int) -> float:
    """The block of the attention is enlarged until its page holds a state."""
    row = kv.full_bytes or kv.sliding_bytes
    if not row:
        return states * kv.state_layers * kv.state_bytes
    enlarged = _enlarged(kv, block, row)
    page = max(enlarged * row, kv.state_bytes) * size
    attention = -(-(kv.full_layers + kv.sliding_layers) // size) * -(-length // enlarged)
    return (attention + states * -(-kv.state_layers // size)) * page

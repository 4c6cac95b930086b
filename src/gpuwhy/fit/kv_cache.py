"""What the cache of keys and values takes: bytes per token, and per request for sliding layers and states."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.parallel import Parallel

_ELEMENT = {"fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "fp8_inc": 1.0, "int8": 1.0, "fp4": 0.5 + 1 / 16, "fp4_e2m1": 0.5 + 1 / 16, "nvfp4": 0.5 + 1 / 16, "int4": 0.5, "bfloat16": 2.0, "bf16": 2.0, "float16": 2.0, "fp16": 2.0, "half": 2.0, "float32": 4.0}  # fmt: skip
_PACKED_MLA = {"fp8_ds_mla": 656.0, "nvfp4_ds_mla": 352.0}
"""Bytes per token and layer of vLLM's own layouts for sparse MLA (v1/attention, mla_attention.py)."""


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


def element_bytes(kv_dtype: str, shape: Architecture) -> float | None:
    """Bytes of one element; ``auto`` is that of the model, or what its checkpoint asks for. None: an unknown dtype."""
    name = kv_dtype.rpartition(".")[2].lower() or "auto"
    if name in ("auto", "none", "default"):
        wanted = shape.quantization.kv_format
        return _ELEMENT.get(wanted, shape.quantization.dtype.bytes_each)
    if name in _PACKED_MLA:
        return 1.0
    return _ELEMENT.get(name)


def kv_shape(shape: Architecture, parallel: Parallel, kv_dtype: str, span: tuple[int, int] | None = None) -> KvShape:
    """Of one rank that holds the layers of ``span`` (all without it)."""
    layers = shape.layers[span[0] : span[1]] if span and span[1] else shape.layers
    mixers = [layer.mixer for layer in layers]
    element = element_bytes(kv_dtype, shape) or shape.quantization.dtype.bytes_each
    each = _row_bytes(shape, parallel, kv_dtype, element)
    state = shape.state
    state_bytes = 0.0
    if state:
        recurrent = 4.0 if state.is_recurrent_in_float32 else shape.quantization.dtype.bytes_each
        whole = state.convolution * shape.quantization.dtype.bytes_each + state.recurrent * recurrent
        state_bytes = whole / max(1, parallel.attention)
    sliding = mixers.count("sliding") if shape.window else 0
    return KvShape(
        full_layers=mixers.count("full") + (0 if shape.window else mixers.count("sliding")),
        full_bytes=each,
        sliding_layers=sliding,
        sliding_bytes=each,
        window=shape.window or 0,
        state_layers=mixers.count("state"),
        state_bytes=state_bytes,
    )


def _row_bytes(shape: Architecture, parallel: Parallel, kv_dtype: str, element: float) -> float:
    if shape.mla:
        packed = _PACKED_MLA.get(kv_dtype.lower())
        if packed:
            return packed
        row = (shape.mla.kv_rank + shape.mla.rope) * element
        if shape.indexer:
            row += shape.indexer.head_dim + shape.indexer.head_dim // 128 * 4
        return row
    kv_heads = shape.kv_heads or 0
    local = max(1, kv_heads // max(1, parallel.attention)) if kv_heads else 0
    return local * ((shape.head_dim or 0) + (shape.value_dim or 0)) * element


def request_bytes_in_groups(kv: KvShape, length: int, in_flight: int, block: int) -> float:
    """What vLLM reserves for one request of ``length`` tokens on a model whose layers differ.

    It puts layers into groups of equal size, as many as the rarest kind has, fills up with padding layers, and gives
    each group blocks of one page size; a sliding group needs its window and the tokens in flight only
    (kv_cache_interface.py, kv_cache_utils.py).
    """
    kinds = [count for count in (kv.full_layers, kv.sliding_layers, kv.state_layers) if count]
    if not kinds:
        return 0.0
    smallest, largest = min(kinds), max(kinds)
    size = largest if largest < 1.25 * smallest else smallest
    if kv.state_layers:
        return _with_states(kv, length, block, size)
    page = size * block * max(kv.full_bytes, kv.sliding_bytes)
    whole = -(-length // block)
    kept = -(-min(kv.window - 1 + in_flight, length) // block) + 1
    blocks = -(-kv.full_layers // size) * whole + (-(-kv.sliding_layers // size) * kept if kv.sliding_layers else 0)
    return blocks * page


def _with_states(kv: KvShape, length: int, block: int, size: int) -> float:
    """The block of the attention is enlarged until its page holds a state."""
    row = kv.full_bytes or kv.sliding_bytes
    if not row:
        return kv.state_layers * kv.state_bytes
    enlarged = max(block, -(-int(kv.state_bytes / row) // block) * block)
    page = max(enlarged * row, kv.state_bytes) * size
    attention = -(-(kv.full_layers + kv.sliding_layers) // size) * -(-length // enlarged)
    return (attention + -(-kv.state_layers // size)) * page

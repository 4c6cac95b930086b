"""Layers that keep a state of fixed size per request instead of a cache: Mamba, linear attention, convolutions."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.fit.fields import Fields, Sections
from gpuwhy.fit.layers import WIDEST, has_attention

_MOST_HEADS = 10**5


class State(Struct, frozen=True):
    """A state of fixed size per request, in elements per layer; the weights of such a layer."""

    convolution: int
    recurrent: int
    parameters: int
    dtype: str = ""
    """That the recurrent part is kept in, as config.json says; "" where the engine decides."""
    is_always_float32: bool = False


def read_state(fields: Sections, hidden: int | None) -> State | None:
    """None: no such layer is described."""
    width = hidden or 0
    wanted = fields.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "mamba_cache_dtype").rpartition(".")[2].lower()
    if fields.count("linear_num_value_heads", largest=_MOST_HEADS):
        return _gated_delta(fields, width, wanted)
    linear = fields.section("linear_attn_config")
    if not linear.is_empty:
        return _kimi_delta(linear, width)
    if fields.count("linear_num_heads", largest=_MOST_HEADS):
        return _kimi_delta(fields, width)
    if fields.items("attn_type_list") or fields.count("layer_group_size") or "linear_attn_alpha_factor" in fields:
        return _lightning(fields, width, wanted)
    kernel = fields.count("conv_L_cache", largest=1000)
    if kernel:
        # LFM 2: a gated convolution, three times its width in and once out
        return State(width * (kernel - 1), 0, 4 * width * width + width * kernel, wanted)
    return _mamba(fields, width, wanted)


def _gated_delta(fields: Sections, width: int, dtype: str) -> State:
    value_heads = fields.count("linear_num_value_heads", largest=_MOST_HEADS) or 1
    key_heads = fields.count("linear_num_key_heads", largest=_MOST_HEADS) or value_heads
    key_dim = key_heads * (fields.count("linear_key_head_dim", largest=10**5) or 128)
    value_dim = value_heads * (fields.count("linear_value_head_dim", largest=10**5) or 128)
    kernel = fields.count("linear_conv_kernel_dim", largest=1000) or 4
    mixed = 2 * key_dim + value_dim
    weights = width * (2 * key_dim + 2 * value_dim + 2 * value_heads) + mixed * kernel + value_dim * width
    return State(mixed * (kernel - 1), value_dim * (key_dim // key_heads), weights, dtype)


def _kimi_delta(linear: Fields | Sections, width: int) -> State | None:
    """Its fields are in a section of their own, or begin with the name of that."""
    heads = linear.count("linear_num_heads", "num_heads", largest=_MOST_HEADS)
    size = linear.count("linear_head_dim", "head_dim", largest=10**5)
    if not heads or not size:
        return None
    inner, kernel = heads * size, linear.count("short_conv_kernel_size", "linear_conv_kernel_dim", largest=1000) or 4
    weights = 4 * width * inner + 2 * (width * size + size * inner) + width * heads + 3 * inner * kernel
    return State(3 * inner * (kernel - 1), inner * size, weights, "float32", is_always_float32=True)


def _lightning(fields: Sections, width: int, dtype: str) -> State | None:
    """MiniMax, Ring and Ling: keys, values, queries, a gate and the way out, all as wide as the heads."""
    heads = fields.count("num_attention_heads", largest=_MOST_HEADS)
    size = fields.count("head_dim", largest=10**5) or (width // heads if heads else None)
    if not heads or not size:
        return None
    return State(0, heads * size * size, 5 * width * heads * size, dtype)


def _mamba(fields: Sections, width: int, dtype: str) -> State | None:
    size = fields.count("ssm_state_size", "mamba_d_state", "state_size", "d_state", largest=10**5)
    if not size:
        return None
    kernel = fields.count("conv_kernel", "mamba_d_conv", "d_conv", largest=1000) or 4
    names = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads")
    is_alone = not has_attention(fields)
    heads = fields.count(*names, *(("num_heads",) if is_alone else ()), largest=_MOST_HEADS)
    if heads:
        return _mamba_2(fields, width, size, kernel, heads, is_alone, dtype)
    # of a model without attention the width of the MLP is that of the state
    alone = fields.count("intermediate_size", "d_inner", largest=WIDEST) if is_alone else None
    inner = (
        alone
        or fields.count("mamba_d_inner", largest=WIDEST)
        or width * (fields.count("expand", "mamba_expand", largest=1000) or 2)
    )
    rank = fields.count("mamba_dt_rank", "time_step_rank", largest=WIDEST) or max(1, width // 16)
    weights = width * 2 * inner + inner * (kernel + rank + 2 * size) + rank * inner + inner * size + inner * width
    return State(inner * (kernel - 1), inner * size, weights, dtype)


def _mamba_2(fields: Sections, width: int, size: int, kernel: int, heads: int, is_alone: bool, dtype: str) -> State:
    inner = fields.count("mamba_d_ssm", "mamba_d_inner", largest=WIDEST)
    if not inner:
        names = ("mamba_head_dim", "mamba_d_head", "mamba_headdim", *(("head_dim",) if is_alone else ()))
        head = fields.count(*names, largest=_MOST_HEADS) or 64
        inner = heads * head
    groups = fields.count("n_groups", "mamba_n_groups", "mamba_ngroups", largest=_MOST_HEADS) or 1
    mixed = inner + 2 * groups * size
    weights = width * (inner + mixed + heads) + mixed * kernel + inner * width
    return State(mixed * (kernel - 1), inner * size, weights, dtype)

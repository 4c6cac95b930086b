"""Reads the metadata at the head of a GGUF file, as the fields of a config.json.

The layout is that of the GGUF specification, versions 2 and 3: a magic number, counts, then keys with typed values.
Lists of numbers, one per layer, are read; others (the vocabulary) are passed over. Nothing of the file's content is trusted: every length is bounded.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

_SIMPLE = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MOST_KEYS = 2000
_MOST_ITEMS = 2_000_000
_MOST_LAYERS = 4096
_LONGEST_TEXT = 1 << 20
_MOST_BYTES = 1 << 28
_NAMES = {
    "block_count": "num_hidden_layers", "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim", "attention.value_length": "v_head_dim", "context_length": "max_position_embeddings",
    "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok", "vocab_size": "vocab_size",
    "expert_feed_forward_length": "moe_intermediate_size", "attention.sliding_window": "sliding_window",
    "attention.kv_lora_rank": "kv_lora_rank", "attention.q_lora_rank": "q_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim", "leading_dense_block_count": "first_k_dense_replace",
    "expert_shared_count": "n_shared_experts", "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "nextn_predict_layers": "num_nextn_predict_layers", "attention.shared_kv_layers": "num_kv_shared_layers",
    "full_attention_interval": "full_attention_interval", "ssm.conv_kernel": "mamba_d_conv", "ssm.state_size": "mamba_d_state",
    "ssm.inner_size": "mamba_d_ssm", "ssm.group_count": "mamba_n_groups", "shortconv.l_cache": "conv_L_cache",
}  # fmt: skip


class GgufError(Exception):
    """The file is no GGUF file, or its head cannot be read."""


def read_gguf_config(path: Path) -> dict[str, Any]:
    """``{"model_type": "qwen3", "num_hidden_layers": 36, ...}``. Raises GgufError and OSError."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise GgufError(f"{path.name} is no GGUF file: it does not begin with GGUF")
        version, _, keys = struct.unpack("<IQQ", _exactly(file, 20))
        if version not in (2, 3) or keys > _MOST_KEYS:
            raise GgufError(f"{path.name}: GGUF version {version} with {keys} keys is not readable")
        found = dict(_pair(file) for _ in range(keys))
    kind = found.get("general.architecture")
    kind = kind if isinstance(kind, str) else ""
    config: dict[str, Any] = {"model_type": kind}
    for key, name in _NAMES.items():
        value = found.get(f"{kind}.{key}")
        if value is not None:
            config[name] = value
    _adapt(config, found, kind)
    if "vocab_size" not in config and isinstance(found.get("tokenizer.ggml.tokens"), int):
        config["vocab_size"] = found["tokenizer.ggml.tokens"]
    return config


def _adapt(config: dict[str, Any], found: dict[str, Any], kind: str) -> None:
    """Where a field of the file means something else than the one of config.json that it goes by."""
    if "kv_lora_rank" in config:
        # the cache's widths are under the plain names, those of the heads under names of their own
        key, value, rope = (found.get(f"{kind}.{name}") for name in ("attention.key_length_mla", "attention.value_length_mla", "rope.dimension_count"))  # fmt: skip
        key, value = key or found.get(f"{kind}.attention.key_length"), value or found.get(f"{kind}.attention.value_length")  # fmt: skip
        if isinstance(key, int) and isinstance(rope, int) and key > rope:
            config["qk_nope_head_dim"] = key - rope
        config["v_head_dim"] = value
    heads = found.get(f"{kind}.ssm.time_step_rank")
    if "full_attention_interval" in config and heads:
        # gated delta nets: heads of values, of keys, and the width of both
        config |= {"linear_num_value_heads": heads, "linear_num_key_heads": config.pop("mamba_n_groups", None), "linear_key_head_dim": config.get("mamba_d_state"), "linear_value_head_dim": config.pop("mamba_d_state", None)}  # fmt: skip
        config.pop("mamba_d_ssm", None)
    elif "mamba_n_groups" in config and heads:
        config["mamba_n_heads"] = heads
    elif heads:
        config["mamba_dt_rank"] = heads
    # in a file it says how wide the states are, in config.json that every layer has one beside its attention
    if kind != "falcon-h1" and "mamba_d_ssm" in config:
        config["mamba_d_inner"] = config.pop("mamba_d_ssm")


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size or file.tell() > _MOST_BYTES:
        raise GgufError("the head of the GGUF file ends early or is too long")
    return data


def _pair(file: BinaryIO) -> tuple[str, Any]:
    name = _text(file)
    (kind,) = struct.unpack("<I", _exactly(file, 4))
    return name, _value(file, kind)


def _text(file: BinaryIO) -> str:
    (size,) = struct.unpack("<Q", _exactly(file, 8))
    if size > _LONGEST_TEXT:
        raise GgufError("a text in the head of the GGUF file is too long")
    return _exactly(file, size).decode("utf-8", "replace")


def _value(file: BinaryIO, kind: int) -> Any:
    """A list of at most so many numbers as there may be layers; a longer one, or one of texts, as its length."""
    if kind == _STRING:
        return _text(file)
    if kind == _ARRAY:
        inner, number = struct.unpack("<IQ", _exactly(file, 12))
        if number > _MOST_ITEMS or inner == _ARRAY:
            raise GgufError("a list in the head of the GGUF file is too long or nested")
        if inner in _SIMPLE:
            size = struct.calcsize(_SIMPLE[inner])
            data = _exactly(file, number * size)
            if number <= _MOST_LAYERS:
                return [value for (value,) in struct.iter_unpack(_SIMPLE[inner], data)]
        else:
            for _ in range(number):
                _value(file, inner)
        return number
    if kind not in _SIMPLE:
        raise GgufError(f"the head of the GGUF file has a value of unknown type {kind}")
    (value,) = struct.unpack(_SIMPLE[kind], _exactly(file, struct.calcsize(_SIMPLE[kind])))
    return value

"""Reads the metadata at the head of a GGUF file, as the fields of a config.json.

The layout is that of the GGUF specification, versions 2 and 3: a magic number, counts, then keys with typed values.
Lists (the vocabulary) are passed over. Nothing of the file's content is trusted: every length is bounded.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

_SIMPLE = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MOST_KEYS = 2000
_MOST_ITEMS = 2_000_000
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
    "expert_shared_count": "n_shared_experts",
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
    if "vocab_size" not in config and isinstance(found.get("tokenizer.ggml.tokens"), int):
        config["vocab_size"] = found["tokenizer.ggml.tokens"]
    return config


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
    """A list is read as its length."""
    if kind == _STRING:
        return _text(file)
    if kind == _ARRAY:
        inner, number = struct.unpack("<IQ", _exactly(file, 12))
        if number > _MOST_ITEMS or inner == _ARRAY:
            raise GgufError("a list in the head of the GGUF file is too long or nested")
        if inner in _SIMPLE:
            _exactly(file, number * struct.calcsize(_SIMPLE[inner]))
        else:
            for _ in range(number):
                _value(file, inner)
        return number
    if kind not in _SIMPLE:
        raise GgufError(f"the head of the GGUF file has a value of unknown type {kind}")
    (value,) = struct.unpack(_SIMPLE[kind], _exactly(file, struct.calcsize(_SIMPLE[kind])))
    return value

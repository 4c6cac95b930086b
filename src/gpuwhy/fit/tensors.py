"""The tensors of a checkpoint by their names: what each is, and how engines divide it."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gpuwhy.fit.amount import Amount
from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.inventory import Inventory, Split, WeightGroup, computed_inventory

_LONGEST_HEADER = 100_000_000
"""As the safetensors format itself limits it."""
_LAYER = re.compile(r"(?:^|\.)(?:layers|layer|h|blocks|block)\.(\d{1,5})\.", re.ASCII)
_MOST_TENSORS = 2_000_000
_LARGEST = 1 << 50

#: the first part of a name that is found decides
_KINDS: tuple[tuple[re.Pattern[str], str, Split], ...] = (
    # before the towers: ERNIE has experts of its own for images
    (re.compile(r"_moe\.experts\b"), "routed experts", Split.EXPERTS),
    # Qwen's and GLM's are divided as the tower is
    (re.compile(r"\bvisual\.(?:deepstack_)?merger"), "vision tower", Split.VISION),
    (re.compile(r"projector|merger|multi_modal|mm_input|resampler|vision_language_adapter|img_projection|^mlp1\.|^mlp_AR|\baligner"), "vision projector", Split.REPLICATED),
    (re.compile(r"vision|visual|\bvit\b|\bvpm\b|image_encoder|patch_embed|sam_model"), "vision tower", Split.VISION),
    (re.compile(r"audio|whisper|\bapm\b"), "audio tower", Split.VISION),
    (re.compile(r"\bwpe\b|embed_positions|position_embeddings"), "positions", Split.REPLICATED),
    (re.compile(r"norm\w*(?:\.(?:weight|bias|scale))?$|\bln_\w{1,9}\.|rotary|inv_freq"), "norms", Split.REPLICATED),
    (re.compile(r"(?:pre|post)_expert_proj|fc[12]_latent_proj"), "latent projections", Split.REPLICATED),
    (re.compile(r"shared_expert_gate"), "router", Split.REPLICATED),
    (re.compile(r"shared_expert|share_expert|shared_mlp"), "shared experts", Split.TENSOR),
    (re.compile(r"\bexperts\b|\b(?:block_sparse_)?moe\.(?:(?:gate|up|down)_proj|(?:in|out)put_linear)"), "routed experts", Split.EXPERTS),
    (re.compile(r"(?:mlp|moe|block_sparse_moe|feed_forward|mixer|ffn)\.(?:gate|router)\b|\brouter\b|e_score_correction"), "router", Split.REPLICATED),
    (re.compile(r"embed_tokens_per_layer"), "per-layer embedding", Split.VOCABULARY),
    (re.compile(r"per_layer_model_projection"), "per-layer projections", Split.TENSOR),
    (re.compile(r"per_layer|laurel|altup"), "per-layer inputs", Split.REPLICATED),
    (re.compile(r"embed_tokens|\bwte\b|word_embeddings|tok_embeddings|embed_in|\bembeddings?\b"), "embedding", Split.VOCABULARY),
    (re.compile(r"lm_head|embed_out|^output\b|output_layer|^score\b|^classifier"), "output head", Split.VOCABULARY),
    (re.compile(r"pooler"), "pooling", Split.REPLICATED),
    (re.compile(r"indexer"), "sparse attention indexer", Split.REPLICATED),
    (re.compile(r"q_a_proj|kv_a_proj|q_a\b|kv_a\b"), "attention q_a and kv_a", Split.REPLICATED),
    (re.compile(r"linear_attn|mamba|\bssm|\bconv\.|\bmixer\.(?:in_proj|out_proj|x_proj|conv1d|A_log|D\b|dt_)"), "state layers", Split.ATTENTION),
    (re.compile(r"\b(?:[kv]_proj|w[kv])\b"), "attention keys and values", Split.KEYS),
    (re.compile(r"attn|attention|\bmixer\.[qo]_proj"), "attention", Split.ATTENTION),
    (re.compile(r"mlp|feed_forward|ffn|\bfc[12]\b|\bmixer\b|\.(?:intermediate|output)\.dense|(?:gate|up|down)_proj"), "dense MLP", Split.TENSOR),
)  # fmt: skip
_UNLOADED = re.compile(r"^(?:talker|token2wav|code2wav)\.|\blora_[AB]\b")
"""What speaks, and adapters: in the files, and left there by both engines."""
_PREDICTING = re.compile(r"^mtp\b|\bmtp\.|nextn|\beh_proj\b|\bmtp_layers\b")


class Tensor(Struct, frozen=True):
    """``stored``: bytes in the file; ``dtype`` as safetensors writes it (BF16)."""

    name: str
    dtype: str
    dimensions: int
    stored: int


class HeaderError(Exception):
    """A file is no safetensors file, or its header cannot be read."""


def read_header(path: Path) -> Iterator[Tensor]:
    """The tensors of one file, from its header alone. Raises HeaderError and OSError."""
    with path.open("rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise HeaderError(f"{path.name} is too short for a safetensors file")
        (size,) = struct.unpack("<Q", start)
        if size > _LONGEST_HEADER:
            raise HeaderError(f"{path.name} is no safetensors file: its header would have {size} bytes")
        text = file.read(size)
    try:
        header: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise HeaderError(f"{path.name} has a header that is no JSON") from error
    if not isinstance(header, dict):
        raise HeaderError(f"{path.name} has a header that is no object")
    for name, entry in header.items():
        tensor = _tensor(name, entry)
        if tensor:
            yield tensor


def _tensor(name: str, entry: Any) -> Tensor | None:
    if name == "__metadata__" or not isinstance(entry, dict):
        return None
    offsets, shape = entry.get("data_offsets"), entry.get("shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(each) is int for each in offsets):
        return None
    stored = offsets[1] - offsets[0]
    if not 0 <= stored < _LARGEST:
        return None
    return Tensor(name[:300], str(entry.get("dtype"))[:12], len(shape) if isinstance(shape, list) else 0, stored)


def inventory_of(tensors: Iterable[Tensor], shape: Architecture, largest_file_bytes: float) -> Inventory:
    """Groups of the tensors, as ``computed_inventory`` makes them from the fields."""
    number = len(shape.layers)
    sums: dict[tuple[str, Split], float] = {}
    by_layer: dict[tuple[str, Split], list[float]] = {}
    predicting = total = 0.0
    for count, tensor in enumerate(tensors):
        if count >= _MOST_TENSORS:
            break
        total += tensor.stored
        if _UNLOADED.search(tensor.name):
            continue
        found = _LAYER.search(tensor.name)
        layer = int(found[1]) if found else None
        kind = _kind(tensor.name)
        size = tensor.stored * _conversion(tensor, shape)
        if _PREDICTING.search(tensor.name) or (
            layer is not None and layer >= number > 0 and kind[1] is not Split.VISION
        ):
            predicting += size
            continue
        if kind[0] == "output head" and shape.is_tied and shape.has_head:
            continue
        sums[kind] = sums.get(kind, 0.0) + size
        if layer is not None and layer < number and kind[1] is not Split.VISION:
            by_layer.setdefault(kind, [0.0] * number)[layer] += size
    groups = [_group(kind, size, by_layer.get(kind)) for kind, size in sums.items()]
    made = computed_inventory(shape)
    groups += [group for group in made.groups if not group.is_stored]
    missing = () if sums else ("the headers of the weights name no tensors",)
    return Inventory(
        groups=tuple(groups),
        spread=Amount(0.996, 1.0, 1.006) if sums else Amount(0.9, 1.0, 1.1),
        source="the sizes of the tensors in the safetensors files",
        checkpoint_bytes=total,
        predicting_bytes=predicting,
        largest_file_bytes=largest_file_bytes,
        missing=missing,
    )


def _kind(name: str) -> tuple[str, Split]:
    for pattern, said, split in _KINDS:
        if pattern.search(name):
            return said, split
    return "other weights", Split.REPLICATED


def _conversion(tensor: Tensor, shape: Architecture) -> float:
    """Engines load float32 matrices in the dtype of the model; scales and small vectors stay as they are."""
    if tensor.dtype == "F32" and tensor.dimensions >= 2 and "scale" not in tensor.name:
        return shape.quantization.dtype.bytes_each / 4
    return 1.0


def _group(kind: tuple[str, Split], size: float, layers: list[float] | None) -> WeightGroup:
    name, split = kind
    if layers and sum(layers) >= 0.5 * size:
        return WeightGroup(name, split, size, tuple(layers))
    stage = "last" if name == "output head" else "first" if name in ("embedding", "positions", "vision tower", "vision projector", "audio tower") else "every"  # fmt: skip
    return WeightGroup(name, split, size, stage=stage)

"""A model from its folder: headers, index, pointers, pickled files, GGUF; nothing that is not there is made up."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.fit.models import config, write_kimi

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.inventory import Split, computed_inventory
from gpuwhy.fit.parallel import Parallel
from gpuwhy.fit.reading import ModelError, read_model
from gpuwhy.fit.weights import rank_weights

SHAPE: dict[str, Any] = {
    "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "vocab_size": 128, "max_position_embeddings": 1024, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "num_nextn_predict_layers": 1,
}  # fmt: skip


def tensors(layers: int = 3) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (128, 64), "lm_head.weight": (128, 64)}
    for layer in range(layers):
        at = f"model.layers.{layer}"
        found |= {
            f"{at}.self_attn.{name}.weight": (64, width)
            for name, width in (("q_proj", 64), ("k_proj", 32), ("v_proj", 32), ("o_proj", 64))
        }
        found |= {
            f"{at}.mlp.experts.{expert}.{name}.weight": (32, 64)
            for expert in range(4)
            for name in ("gate_proj", "up_proj", "down_proj")
        }
        found |= {f"{at}.mlp.gate.weight": (4, 64), f"{at}.input_layernorm.weight": (64,)}
    return found  # fmt: skip


def write_safetensors(path: Path, shapes: dict[str, tuple[int, ...]], dtype: str = "BF16", size: int = 2) -> int:
    header, at = {}, 0
    for name, shape in shapes.items():
        stored = size
        for side in shape:
            stored *= side
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + stored]}
        at += stored
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))
    return at


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(SHAPE))
    return tmp_path


def test_headers_say_what_every_tensor_takes(folder: Path) -> None:
    total = write_safetensors(folder / "model.safetensors", tensors())
    inventory = read_model(folder).inventory
    assert inventory.checkpoint_bytes == total
    by_name = {group.name: group for group in inventory.groups}
    assert by_name["routed experts"].total_bytes == 2 * 4 * 3 * 32 * 64 * 2
    assert by_name["routed experts"].split is Split.EXPERTS
    assert by_name["attention keys and values"].split is Split.KEYS
    assert by_name["router"].split is Split.REPLICATED
    # the third layer is the one that predicts
    assert inventory.predicting_bytes > 4 * 3 * 32 * 64 * 2


def test_a_rank_holds_its_share_of_each_group(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", tensors())
    made = read_model(folder)
    parts = {
        p.name: p
        for p in rank_weights(made.shape, made.inventory, Parallel(tensor=4, attention=4, expert_ranks=4), True).parts
    }
    assert parts["routed experts"].divided_by == 4
    # two heads of keys and values cannot be divided by four
    assert parts["attention keys and values"].divided_by == 2
    assert parts["router"].gib == parts["router"].whole_gib  # fmt: skip


def test_headers_and_fields_agree(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", tensors(layers=2))
    made = read_model(folder)
    assert made.inventory.total_bytes == pytest.approx(computed_inventory(made.shape).total_bytes, rel=0.02)


def test_float32_matrices_are_loaded_in_the_dtype_of_the_model(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", tensors(layers=2), "F32", 4)
    experts = next(group for group in read_model(folder).inventory.groups if group.name == "routed experts")
    assert experts.total_bytes == 2 * 4 * 3 * 32 * 64 * 2


def test_an_index_without_the_files_gives_the_total(tmp_path: Path) -> None:
    made = read_model(write_kimi(tmp_path / "Kimi-K2.6"))
    assert made.inventory.checkpoint_bytes == 595_140_000_000
    assert made.inventory.largest_file_bytes == pytest.approx(9.3e9, rel=0.01)
    assert made.missing == ()
    assert read_model(tmp_path / "Kimi-K2.6" / "model.safetensors.index.json").inventory == made.inventory
    assert read_model(tmp_path / "Kimi-K2.6" / "config.json").inventory == made.inventory


def test_pointers_of_git_lfs_name_the_sizes(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config("meta-llama/Llama-3.3-70B")))
    for number in (1, 2):
        (tmp_path / f"model-{number:05d}-of-00002.safetensors").write_text(
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize {70_550_000_000}\n"
        )
    assert read_model(tmp_path).inventory.checkpoint_bytes == 141_100_000_000


def test_a_download_that_is_not_complete_is_said(folder: Path) -> None:
    write_safetensors(folder / "model-00001-of-00002.safetensors", tensors(layers=1))
    files = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 10**6}, "weight_map": files})
    )
    made = read_model(folder)
    assert "not there" in " ".join(made.missing)
    assert made.inventory.checkpoint_bytes == 10**6


def test_pickled_files_are_read_whole_by_every_rank(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(bytes(2_000_000))
    assert read_model(folder).pickled_bytes == 2_000_000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234",
        b"\xff" * 8,
        struct.pack("<Q", 10) + b"not json..",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 2000) + b"[" * 2000,
    ],
)
def test_a_broken_file_is_said_and_the_fields_are_used(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    made = read_model(folder)
    assert "config.json" in " ".join(made.missing)
    assert made.inventory.total_bytes > 0  # fmt: skip


def gguf(values: dict[str, Any]) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    body = b""
    for key, value in values.items():
        body += text(key)
        if isinstance(value, str):
            body += struct.pack("<I", 8) + text(value)
        elif isinstance(value, list) and all(isinstance(each, int) for each in value):
            body += struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)
        elif isinstance(value, list):
            body += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(text(each) for each in value)
        else:
            body += struct.pack("<II", 4, value)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + body


LLAMA = {
    "general.architecture": "llama", "llama.block_count": 32, "llama.embedding_length": 4096,
    "llama.feed_forward_length": 14336, "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8,
    "llama.context_length": 8192, "tokenizer.ggml.tokens": ["a", "b", "c"], "llama.vocab_size": 128256,
}  # fmt: skip


def test_a_gguf_file_names_its_shape_and_is_its_size(tmp_path: Path) -> None:
    path = tmp_path / "llama-Q4_K_M.gguf"
    path.write_bytes(gguf(LLAMA) + bytes(5_000_000))
    made = read_model(path)
    assert (len(made.shape.layers), made.shape.kv_heads, made.shape.vocabulary) == (32, 8, 128256)
    assert made.inventory.checkpoint_bytes == path.stat().st_size
    (tmp_path / "llama-Q8_0.gguf").write_bytes(gguf(LLAMA))
    with pytest.raises(ModelError, match=r"name one of llama-Q4_K_M\.gguf, llama-Q8_0\.gguf"):
        read_model(tmp_path)


def test_a_gguf_file_may_say_each_layer_s_heads(tmp_path: Path) -> None:
    """A hybrid: where a layer has no heads of keys it keeps a state; where it has a width it is an MLP."""
    fields = {
        "general.architecture": "nemotron_h", "nemotron_h.block_count": 4, "nemotron_h.embedding_length": 4096,
        "nemotron_h.feed_forward_length": [0, 16384, 0, 16384], "nemotron_h.attention.head_count": 32, "nemotron_h.vocab_size": 131072,
        "nemotron_h.attention.head_count_kv": [0, 0, 8, 0], "nemotron_h.ssm.state_size": 128, "nemotron_h.ssm.conv_kernel": 4,
        "nemotron_h.ssm.inner_size": 8192, "nemotron_h.ssm.time_step_rank": 128, "nemotron_h.ssm.group_count": 8,
    }  # fmt: skip
    path = tmp_path / "hybrid.gguf"
    path.write_bytes(gguf(fields))
    shape = read_model(path).shape
    assert [(layer.mixer, layer.feed) for layer in shape.layers] == [("state", "none"), ("none", "dense"), ("full", "none"), ("none", "dense")]  # fmt: skip
    assert (shape.kv_heads, shape.state and shape.state.recurrent) == (8, 8192 * 128)


def test_a_gguf_file_says_the_widths_of_mla_under_other_names(tmp_path: Path) -> None:
    fields = {
        "general.architecture": "deepseek2", "deepseek2.block_count": 61, "deepseek2.embedding_length": 7168, "deepseek2.vocab_size": 129280,
        "deepseek2.feed_forward_length": 18432, "deepseek2.attention.head_count": 128, "deepseek2.attention.head_count_kv": 1,
        "deepseek2.attention.kv_lora_rank": 512, "deepseek2.attention.q_lora_rank": 1536, "deepseek2.rope.dimension_count": 64,
        "deepseek2.attention.key_length": 576, "deepseek2.attention.value_length": 512, "deepseek2.attention.key_length_mla": 192,
        "deepseek2.attention.value_length_mla": 128, "deepseek2.expert_count": 256, "deepseek2.expert_feed_forward_length": 2048,
        "deepseek2.expert_shared_count": 1, "deepseek2.leading_dense_block_count": 3, "deepseek2.expert_used_count": 8,
    }  # fmt: skip
    path = tmp_path / "deepseek.gguf"
    path.write_bytes(gguf(fields))
    shape = read_model(path).shape
    assert shape.mla
    assert (shape.mla.nope, shape.mla.rope, shape.mla.value) == (128, 64, 128)
    assert computed_inventory(shape).checkpoint_bytes / 2e9 == pytest.approx(671, rel=0.005)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("stored", [2, 4])
def test_what_is_stored_in_float32_is_loaded_in_16_bits(folder: Path, dtype: str, stored: int) -> None:
    """Whatever config.json says of the files: they are as large as they are."""
    content = {**SHAPE, "torch_dtype": dtype}
    (folder / "config.json").write_text(json.dumps(content))
    parameters = computed_inventory(read_architecture(content)).checkpoint_bytes / 2
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": stored * parameters}, "weight_map": {"a": "b"}}))  # fmt: skip
    made = read_model(folder).inventory
    assert sum(group.total_bytes for group in made.groups if group.is_stored) == pytest.approx(2 * parameters)
    assert made.checkpoint_bytes == pytest.approx(stored * parameters)


def test_params_json_of_mistral_stands_in_for_config_json(tmp_path: Path) -> None:
    params = {"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 32000, "moe": {"num_experts": 8, "num_experts_per_tok": 2}}  # fmt: skip
    (tmp_path / "params.json").write_text(json.dumps(params))
    made = read_model(tmp_path)
    assert made.inventory.total_bytes / 2e9 == pytest.approx(46.7, rel=0.005)
    assert made.shape.missing == ()


@pytest.mark.parametrize("cut", [0, 3, 10, 30, 100])
def test_a_broken_gguf_file_is_said(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(gguf(LLAMA)[:cut])
    with pytest.raises(ModelError):
        read_model(path)


def test_what_is_not_there_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="Nothing is downloaded"):
        read_model(tmp_path / "org" / "name")
    with pytest.raises(ModelError, match=r"no config\.json"):
        read_model(tmp_path)


def test_the_name_comes_from_the_cache_of_the_hub(tmp_path: Path) -> None:
    commit = tmp_path / "models--org--name" / "snapshots" / "0123abc"
    commit.mkdir(parents=True)
    (commit / "config.json").write_text(json.dumps(SHAPE))
    assert read_model(commit).name == "org/name"

"""Layers that keep a state per request: its size, against what vLLM prints of it, and beside an attention."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fit.test_zoo import MODELS

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.inventory import computed_inventory
from gpuwhy.fit.kv_cache import KvShape, kv_shape, request_bytes_in_groups
from gpuwhy.fit.parallel import Parallel

QWEN_NEXT: dict[str, Any] = {
    "model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2,
    "head_dim": 256, "intermediate_size": 5120, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 512,
    "num_experts_per_tok": 10, "vocab_size": 151936, "linear_num_value_heads": 32, "linear_num_key_heads": 16, "full_attention_interval": 4,
}  # fmt: skip


def kv_of(config: dict[str, Any], ranks: int = 1, engine: str = "vllm") -> KvShape:
    return kv_shape(read_architecture(config), Parallel(tensor=ranks, attention=ranks), "auto", engine=engine)


def attention_block(kv: KvShape) -> int:
    """As vLLM enlarges it: "Setting attention block size to N tokens to ensure that attention page size is >= mamba page size"."""
    return -(-int(kv.state_bytes / kv.full_bytes) // 16) * 16


@pytest.mark.parametrize(("ranks", "block"), [(1, 544), (2, 544), (4, 272)])
def test_the_state_of_qwen_next_is_as_large_as_vllm_says(ranks: int, block: int) -> None:
    assert attention_block(kv_of(QWEN_NEXT, ranks)) == block


def test_a_state_that_is_asked_for_in_float32_is_padded_as_vllm_says() -> None:
    """Qwen3.6 27B: "Padding mamba page size by 0.13%"."""
    config = json.loads(json.dumps(MODELS["Qwen3.5-27B"]["config"]))
    config["text_config"]["mamba_ssm_dtype"] = "float32"
    kv = kv_of(config)
    assert attention_block(kv) == 784
    assert 784 * kv.full_bytes / kv.state_bytes - 1 == pytest.approx(0.0013, abs=0.0001)


def test_sglang_keeps_states_in_float32_unless_told_otherwise() -> None:
    recurrent = 32 * 128 * 128
    assert kv_of(QWEN_NEXT, engine="sglang").state_bytes - kv_of(QWEN_NEXT).state_bytes == 2 * recurrent
    halved = {**QWEN_NEXT, "mamba_ssm_dtype": "bfloat16"}
    assert kv_of(halved, engine="sglang").state_bytes == kv_of(QWEN_NEXT).state_bytes


@pytest.mark.parametrize(
    ("name", "attending", "states"),
    [("Falcon-H1-34B", 72, 72), ("Zamba2-7B", 13, 81), ("MiniMax-Text-01", 10, 70), ("LFM2-1.2B", 6, 10), ("mamba-2.8b", 0, 64),
     ("Mamba-Codestral-7B", 0, 64), ("granite-4.0-h-tiny", 4, 36), ("Nemotron-3-Nano-30B-A3B", 6, 23)],
)  # fmt: skip
def test_layers_that_attend_and_layers_that_keep_a_state(name: str, attending: int, states: int) -> None:
    kv = kv_of(MODELS[name]["config"])
    assert (kv.full_layers, kv.state_layers) == (attending, states)
    assert kv.state_bytes > 0


def test_layers_that_read_the_cache_of_others_have_none() -> None:
    kv = kv_of(MODELS["gemma-3n-E4B"]["config"])
    assert (kv.full_layers, kv.sliding_layers) == (4, 16)


def test_sliding_layers_with_more_heads_of_their_own() -> None:
    kv = kv_of(MODELS["MiMo-V2-Flash"]["config"], ranks=4)
    assert (kv.full_layers, kv.full_bytes) == (9, 1 * (192 + 128) * 2)
    assert (kv.sliding_layers, kv.sliding_bytes) == (39, 2 * (192 + 128) * 2)
    # SGLang, of 300,288 tokens: "K size: 8.38 GB, V size: 5.59 GB"
    assert 300_288 * kv.sliding_layers * kv.sliding_bytes / 2**30 == pytest.approx(8.38 + 5.59, abs=0.02)


def test_heads_of_keys_are_kept_twice_where_there_are_fewer_than_ranks() -> None:
    kv = kv_of(MODELS["Nemotron-3-Nano-30B-A3B"]["config"], ranks=8)
    assert kv.full_bytes == 1 * 128 * 2 * 2


def test_an_architecture_search_leaves_layers_without_attention() -> None:
    def block(group: int | None, width: float | None) -> dict[str, Any]:
        return {
            "attention": {"n_heads_in_group": group, "no_op": group is None},
            "ffn": {"ffn_mult": width, "no_op": width is None},
        }

    blocks = [block(8, 5.25), block(None, 2.625), block(16, None)]
    config = {"model_type": "nemotron-nas", "hidden_size": 8192, "num_hidden_layers": 3, "num_attention_heads": 64, "vocab_size": 128256, "block_configs": blocks}  # fmt: skip
    shape = read_architecture(config)
    assert [layer.kv_heads for layer in shape.layers] == [8, None, 4]
    assert [layer.inner for layer in shape.layers] == [28672, 14336, None]
    assert kv_of(config).per_token == (8 + 4) * 128 * 4
    assert shape.missing == ()


def test_single_layers_that_are_named_by_number() -> None:
    """As newer configurations of transformers say that the full layers of Gemma 4 have wider heads."""
    config = {"model_type": "zorp", "hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
              "intermediate_size": 512, "vocab_size": 1000, "per_layer_config": {"1": {"head_dim": 128, "num_key_value_heads": 1}}}  # fmt: skip
    assert kv_of(config).per_token == (2 * 2 * 64 + 128) * 4


def test_deepseek_v4_keeps_a_row_for_some_tokens() -> None:
    config = {"model_type": "deepseek_v4", "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 64, "vocab_size": 129280, "q_lora_rank": 1024,
              "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 6, "compress_ratios": [0, 4, 128, 0], "expert_dtype": "fp4",
              "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}  # fmt: skip
    row = 448 + 2 * 64 + 8
    assert kv_of(config).per_token == pytest.approx((row + 132) / 4 + row / 128)
    experts = 4 * 256 * 3 * 4096 * 2048
    assert computed_inventory(read_architecture(config)).checkpoint_bytes == pytest.approx(experts * 0.53125 + 2.5e9, rel=0.08)  # fmt: skip


def test_vllm_unfolds_the_latent_rows_of_minicpm_3() -> None:
    config = {"model_type": "minicpm3", "hidden_size": 2560, "num_hidden_layers": 62, "num_attention_heads": 40, "num_key_value_heads": 40, "q_lora_rank": 768,
              "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "intermediate_size": 6400, "vocab_size": 73448}  # fmt: skip
    assert kv_of(config, engine="sglang").per_token == 62 * (256 + 32) * 2
    assert kv_of(config, engine="vllm").per_token == 62 * 40 * 2 * 96 * 2


def test_requests_of_a_hybrid_are_as_many_as_vllm_printed() -> None:
    """Kimi Linear on two ranks, 2.30 GiB of cache: "Maximum concurrency for 120,000 tokens per request: 2.48x"."""
    states = {"kda_layers": [layer for layer in range(1, 27) if layer % 4], "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}  # fmt: skip
    config = {"model_type": "kimi_linear", "hidden_size": 2304, "num_hidden_layers": 27, "num_attention_heads": 32, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
              "intermediate_size": 9216, "vocab_size": 163840, "linear_attn_config": states}  # fmt: skip
    needed = request_bytes_in_groups(kv_of(config, ranks=2), 120_000, 8192, 16)
    assert 2.30 * 2**30 / needed == pytest.approx(2.48, abs=0.01)

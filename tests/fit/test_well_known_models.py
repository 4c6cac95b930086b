"""Starts of well-known models: sizes that are public, caches computed by hand, and outcomes that anyone can repeat.

None of the figures comes from this program. Checkpoints are in GB of 10^9; ``cache`` is bytes per token on one rank.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.fit.models import estimated, model_of

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.inventory import computed_inventory
from gpuwhy.fit.kv_cache import kv_shape
from gpuwhy.fit.parallel import Parallel
from gpuwhy.fit.results import Verdict


def dense(kind: str, hidden: int, layers: int, heads: int, kv: int, inner: int, vocabulary: int, context: int, **more: Any) -> dict[str, Any]:  # fmt: skip
    return {
        "architectures": [f"{kind.title()}ForCausalLM"], "model_type": kind, "hidden_size": hidden, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": kv, "intermediate_size": inner, "vocab_size": vocabulary,
        "max_position_embeddings": context, "torch_dtype": "bfloat16", "tie_word_embeddings": False, **more,
    }  # fmt: skip


def mixture(kind: str, hidden: int, layers: int, heads: int, kv: int, width: int, count: int, vocabulary: int, context: int, **more: Any) -> dict[str, Any]:  # fmt: skip
    fields: dict[str, Any] = {"moe_intermediate_size": width, "num_experts": count, "num_experts_per_tok": 8}
    return dense(kind, hidden, layers, heads, kv, more.pop("inner", width), vocabulary, context, **{**fields, **more})


FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
AWQ = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}}
MXFP4 = {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}  # fmt: skip
GPT_OSS: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "num_experts_per_tok": 4, "vocab_size": 201088, "max_position_embeddings": 131072,
    "sliding_window": 128, "torch_dtype": "bfloat16", "tie_word_embeddings": False, "attention_bias": True, **MXFP4,
}  # fmt: skip
DEEPSEEK_V3: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "vocab_size": 129280, "max_position_embeddings": 163840, "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16", **FP8,
}  # fmt: skip
LLAMA_8B = dense("llama", 4096, 32, 32, 8, 14336, 128256, 131072)
LLAMA_70B = dense("llama", 8192, 80, 64, 8, 28672, 128256, 131072)
LLAMA_405B = dense("llama", 16384, 126, 128, 8, 53248, 128256, 131072)
MIXTRAL: dict[str, Any] = dense(
    "mixtral", 4096, 32, 32, 8, 14336, 32000, 32768, num_local_experts=8, num_experts_per_tok=2
)
QWEN3_30B = mixture("qwen3_moe", 2048, 48, 32, 4, 768, 128, 151936, 40960, head_dim=128, inner=6144)
QWEN3_235B = mixture("qwen3_moe", 4096, 94, 64, 4, 1536, 128, 151936, 40960, head_dim=128, inner=12288)
PHI_4 = dense("phi3", 5120, 40, 40, 10, 17920, 100352, 16384)

MODELS: dict[str, tuple[dict[str, Any], float | None, int, int]] = {
    # name: config, GB of the checkpoint, tensor parallel size, bytes of cache per token and rank
    "Llama-3.1-8B": (LLAMA_8B, 16.06, 1, 131072),
    "Llama-3.1-70B": (LLAMA_70B, 141.1, 4, 81920),
    "Llama-3.1-405B": (LLAMA_405B, 811.7, 8, 64512),
    "Llama-3.2-1B": (dense("llama", 2048, 16, 32, 8, 8192, 128256, 131072, head_dim=64, tie_word_embeddings=True), 2.47, 1, 32768),
    "Llama-3.2-3B": (dense("llama", 3072, 28, 24, 8, 8192, 128256, 131072, head_dim=128, tie_word_embeddings=True), 6.43, 1, 114688),
    "Qwen2.5-0.5B": (dense("qwen2", 896, 24, 14, 2, 4864, 151936, 32768, tie_word_embeddings=True), 0.988, 1, 12288),
    "Qwen2.5-7B": (dense("qwen2", 3584, 28, 28, 4, 18944, 152064, 32768), 15.23, 1, 57344),
    "Qwen2.5-32B": (dense("qwen2", 5120, 64, 40, 8, 27648, 152064, 32768), 65.5, 2, 131072),
    "Qwen2.5-72B": (dense("qwen2", 8192, 80, 64, 8, 29568, 152064, 32768), 145.4, 8, 40960),
    "Qwen2.5-72B-AWQ": (dense("qwen2", 8192, 80, 64, 8, 29568, 152064, 32768, **AWQ), 41.6, 2, 163840),
    "Qwen3-8B": (dense("qwen3", 4096, 36, 32, 8, 12288, 151936, 40960, head_dim=128), 16.38, 1, 147456),
    "Qwen3-32B": (dense("qwen3", 5120, 64, 64, 8, 25600, 151936, 40960, head_dim=128), 65.5, 4, 65536),
    "Qwen3-30B-A3B": (QWEN3_30B, 61.06, 1, 98304),
    "Qwen3-30B-A3B-FP8": ({**QWEN3_30B, **FP8}, 31.2, 2, 49152),
    "Qwen3-235B-A22B": (QWEN3_235B, 470.2, 8, 48128),
    "Mixtral-8x7B": (MIXTRAL, 93.4, 2, 65536),
    "Mixtral-8x22B": (dense("mixtral", 6144, 56, 48, 8, 16384, 32768, 65536, num_local_experts=8, num_experts_per_tok=2), 281.2, 8, 28672),
    "Mistral-7B-v0.3": (dense("mistral", 4096, 32, 32, 8, 14336, 32768, 32768), 14.5, 1, 131072),
    "Mistral-Nemo-12B": (dense("mistral", 5120, 40, 32, 8, 14336, 131072, 131072, head_dim=128), 24.5, 1, 163840),
    "Mistral-Small-24B": (dense("mistral", 5120, 40, 32, 8, 32768, 131072, 32768, head_dim=128), 47.15, 2, 81920),
    "Phi-4": (PHI_4, 29.32, 1, 204800),
    "Phi-3-mini": (dense("phi3", 3072, 32, 32, 32, 8192, 32064, 4096), 7.64, 1, 393216),
    "Gemma-2-9B": (dense("gemma2", 3584, 42, 16, 8, 14336, 256000, 8192, head_dim=256, sliding_window=4096, tie_word_embeddings=True), 18.48, 1, 344064),
    "gpt-oss-20b": ({**GPT_OSS, "num_hidden_layers": 24, "num_local_experts": 32}, 13.76, 1, 49152),
    "gpt-oss-120b": ({**GPT_OSS, "num_hidden_layers": 36, "num_local_experts": 128}, 65.25, 1, 73728),
    "DeepSeek-V3": (DEEPSEEK_V3, 688.6, 8, 70272),
    "GLM-4.5-Air": (mixture("glm4_moe", 4096, 46, 96, 8, 1408, 128, 151552, 131072, head_dim=128, inner=10944, n_shared_experts=1, n_routed_experts=128, first_k_dense_replace=1, num_nextn_predict_layers=1, attention_bias=True), 220.9, 4, 47104),
    "GLM-4.5": (mixture("glm4_moe", 5120, 92, 96, 8, 1536, 160, 151552, 131072, head_dim=128, inner=12288, n_shared_experts=1, n_routed_experts=160, first_k_dense_replace=3, num_nextn_predict_layers=1, attention_bias=True), 716.7, 8, 47104),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_checkpoint_has_its_public_size(name: str) -> None:
    config, gb, _, _ = MODELS[name]
    inventory = computed_inventory(read_architecture(config))
    # the layers of multi-token prediction are in the files, and are not loaded with the model
    assert (inventory.checkpoint_bytes + inventory.predicting_bytes) / 1e9 == pytest.approx(gb, rel=0.02)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_cache_takes_what_arithmetic_says(name: str) -> None:
    """2 x layers x heads of this rank x width x 2 bytes; (512 + 64) x 2 per layer of MLA on every rank."""
    config, _, ranks, cache = MODELS[name]
    found = kv_shape(read_architecture(config), Parallel(tensor=ranks, attention=ranks), "auto")
    assert found.per_token == pytest.approx(cache, rel=0.001)


STARTS, FAILS = Verdict.STARTS, Verdict.FAILS


@pytest.mark.parametrize(
    ("config", "flags", "gpu", "gpus", "verdict", "outcome"),
    [
        (LLAMA_8B, "--max-model-len 16384", "RTX 4090", 1, STARTS, ""),
        (LLAMA_8B, "", "RTX 4090", 1, FAILS, "oom-kv"),
        (LLAMA_70B, "", "H100", 1, FAILS, "oom-weights"),
        (LLAMA_70B, "-tp 2", "H100", 2, FAILS, "oom-kv"),
        (LLAMA_70B, "-tp 4", "H100", 4, STARTS, ""),
        (LLAMA_405B, "-tp 8", "H100", 8, FAILS, "oom-weights"),
        (LLAMA_405B, "-tp 8 -pp 2", "H100", 16, STARTS, ""),
        (MIXTRAL, "", "H100", 1, FAILS, "oom-weights"),
        (MIXTRAL, "-tp 2", "H100", 2, STARTS, ""),
        (QWEN3_30B, "", "H100", 1, STARTS, ""),
        (QWEN3_30B, "", "A100 40GB", 1, FAILS, "oom-weights"),
        (QWEN3_235B, "-tp 8", "H100", 8, STARTS, ""),
        (PHI_4, "", "RTX 4090", 1, FAILS, "oom-weights"),
        (PHI_4, "", "A100 80GB", 1, STARTS, ""),
        (DEEPSEEK_V3, "-tp 8", "H200", 8, STARTS, ""),
        (DEEPSEEK_V3, "-tp 8", "H100", 8, FAILS, "oom-weights"),
        (MODELS["gpt-oss-120b"][0], "--max-model-len 32768", "H100", 1, STARTS, ""),
        (MODELS["gpt-oss-20b"][0], "--max-model-len 32768", "RTX 4090", 1, STARTS, ""),
    ],
)  # fmt: skip
def test_what_everybody_knows_to_start_or_not(
    config: dict[str, Any], flags: str, gpu: str, gpus: int, verdict: Verdict, outcome: str
) -> None:
    found = estimated(model_of(config), "vllm 0.20.2", flags, gpu=gpu, gpus=gpus)
    assert (found.verdict, found.decisive.outcome if found.decisive and verdict is FAILS else "") == (
        verdict,
        outcome,
    ), found.reason


@pytest.mark.parametrize(
    ("engine", "gpu"), [("vllm 0.20.2", "AMD MI300X 192GB"), ("vllm 0.5.4", "H200"), ("vllm 0.6.3", "H100")]
)
def test_a_large_margin_is_a_start_where_little_was_read(engine: str, gpu: str) -> None:
    found = estimated(model_of(LLAMA_8B), engine, "--max-model-len 8192", gpu=gpu)
    assert found.verdict is Verdict.STARTS


@pytest.mark.parametrize(
    ("config", "engine", "flags", "gpu", "gpus"),
    [
        (LLAMA_70B, "vllm 0.6.3", "-tp 2 --max-model-len 8192", "H100", 2),
        (LLAMA_8B, "vllm 0.20.2", "--max-model-len 8192", "Gaudi3 128GB", 1),
        (LLAMA_70B, "vllm 0.20.2", "--max-model-len 110000", "AMD MI300X", 1),
    ],
)
def test_no_start_is_promised_where_little_was_read_and_little_is_left(
    config: dict[str, Any], engine: str, flags: str, gpu: str, gpus: int
) -> None:
    found = estimated(model_of(config), engine, flags, gpu=gpu, gpus=gpus)
    assert found.verdict is Verdict.CLOSE, found.reason

"""Starts that are remembered from public reports and guides: what fits is known, no figure of a log is at hand.

None of them was measured here and no constant was fitted to them; the shapes are those of the published config.json. A
start that is known to fail must never be told to start, one that is known to work never to fail.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.fit.models import estimated, model_of
from tests.fit.test_well_known_models import (
    AWQ,
    DEEPSEEK_V3,
    FP8,
    LLAMA_8B,
    LLAMA_70B,
    LLAMA_405B,
    MIXTRAL,
    MODELS,
    PHI_4,
    QWEN3_30B,
    QWEN3_235B,
    dense,
    mixture,
)

from gpuwhy.fit.results import Estimate, Verdict

LLAMA2_7B = dense("llama", 4096, 32, 32, 32, 11008, 32000, 4096)
LLAMA2_13B = dense("llama", 5120, 40, 40, 40, 13824, 32000, 4096)
LLAMA2_70B = dense("llama", 8192, 80, 64, 8, 28672, 32000, 4096)
LLAMA3_8B = {**LLAMA_8B, "max_position_embeddings": 8192}
CODELLAMA_34B = dense("llama", 8192, 48, 64, 8, 22016, 32000, 16384)
YI_34B_200K = dense("llama", 7168, 60, 56, 8, 20480, 64000, 200000)
MISTRAL_7B = MODELS["Mistral-7B-v0.3"][0]
MIXTRAL_22B = MODELS["Mixtral-8x22B"][0]
MISTRAL_LARGE = dense("mistral", 12288, 88, 96, 8, 28672, 32768, 131072, head_dim=128)
QWEN_7B, QWEN_32B, QWEN_72B = (MODELS[name][0] for name in ("Qwen2.5-7B", "Qwen2.5-32B", "Qwen2.5-72B"))
QWEN15_72B = dense("qwen2", 8192, 80, 64, 64, 24576, 152064, 32768)
QWEN_72B_AWQ = {**QWEN_72B, **AWQ, "intermediate_size": 29696}  # widened, for whole groups on several ranks
QWEN_14B = dense("qwen2", 5120, 48, 40, 8, 13824, 152064, 32768)
QWEN3_8B, QWEN3_32B = MODELS["Qwen3-8B"][0], MODELS["Qwen3-32B"][0]
QWEN3_14B = dense("qwen3", 5120, 40, 40, 8, 17408, 151936, 40960, head_dim=128)
QWEN3_480B_FP8 = {**mixture("qwen3_moe", 6144, 62, 96, 8, 2560, 160, 151936, 262144, head_dim=128, inner=8192), **FP8}
GEMMA2_27B = dense("gemma2", 4608, 46, 32, 16, 36864, 256000, 8192, head_dim=128, sliding_window=4096, tie_word_embeddings=True)  # fmt: skip
PHI3_MINI_128K = {**MODELS["Phi-3-mini"][0], "max_position_embeddings": 131072}
KIMI_K2: dict[str, Any] = {
    **DEEPSEEK_V3, "num_attention_heads": 64, "num_key_value_heads": 64, "n_routed_experts": 384, "first_k_dense_replace": 1,
    "vocab_size": 163840, "max_position_embeddings": 131072, "num_nextn_predict_layers": 0,
}  # fmt: skip
R1_BF16 = {key: value for key, value in DEEPSEEK_V3.items() if key != "quantization_config"}
GLM_AIR, GLM = MODELS["GLM-4.5-Air"][0], MODELS["GLM-4.5"][0]
OSS_20B, OSS_120B = MODELS["gpt-oss-20b"][0], MODELS["gpt-oss-120b"][0]

OLD, V10, V20, V33 = "vllm 0.6.3", "vllm 0.10.2", "vllm 0.20.2", "vllm 0.33.0"
S9, S15, S23 = "sglang 0.5.9", "sglang 0.5.15", "sglang 0.5.23"
STARTED, WEIGHTS, CACHE, REFUSED = "started", "oom-weights", "oom-kv", "refused"

KNOWN: tuple[tuple[str, dict[str, Any], str, str, str, int, str], ...] = (
    # vLLM on one small card
    ("Llama-2-7B, T4", LLAMA2_7B, OLD, "--dtype half", "T4", 1, CACHE),
    ("Llama-3-8B, T4", LLAMA3_8B, OLD, "--dtype half", "T4", 1, WEIGHTS),
    ("Llama-3-8B, L4", LLAMA3_8B, OLD, "", "L4", 1, STARTED),
    ("Llama-3.1-8B with its whole context, L4", LLAMA_8B, V10, "", "L4", 1, CACHE),
    ("Llama-3.1-8B with its whole context, A10", LLAMA_8B, V20, "", "A10", 1, CACHE),
    ("Llama-3.1-8B, 8k, 4090", LLAMA_8B, V33, "--max-model-len 8192", "RTX 4090", 1, STARTED),
    ("Llama-2-13B, A10", LLAMA2_13B, OLD, "", "A10", 1, WEIGHTS),
    ("Llama-2-13B, A100-40", LLAMA2_13B, OLD, "", "A100 40GB", 1, STARTED),
    ("Phi-3-mini-128k, T4", PHI3_MINI_128K, V10, "--dtype half", "T4", 1, CACHE),
    ("Phi-4, L40S", PHI_4, V10, "", "L40S", 1, STARTED),
    ("Mistral-7B, 8k, A10G", MISTRAL_7B, V10, "--max-model-len 8192", "A10G", 1, STARTED),
    ("Qwen2.5-7B, 4090", QWEN_7B, V20, "", "RTX 4090", 1, STARTED),
    ("Qwen2.5-14B, 4090", QWEN_14B, V10, "", "RTX 4090", 1, WEIGHTS),
    ("Qwen3-8B, 4060", QWEN3_8B, V20, "", "RTX 4060", 1, WEIGHTS),
    ("Qwen3-14B, 4090", QWEN3_14B, V20, "", "RTX 4090", 1, WEIGHTS),
    ("Qwen3-14B-AWQ, 4090", {**QWEN3_14B, **AWQ}, V20, "", "RTX 4090", 1, STARTED),
    ("Qwen3-32B-AWQ, 4090", {**QWEN3_32B, **AWQ}, V20, "", "RTX 4090", 1, CACHE),
    ("Qwen3-30B-A3B, 4090", QWEN3_30B, V20, "", "RTX 4090", 1, WEIGHTS),
    ("gpt-oss-20b, 4080 at the default", OSS_20B, V20, "", "RTX 4080", 1, CACHE),
    ("Gemma-2-27B, A6000", GEMMA2_27B, V10, "", "RTX A6000", 1, WEIGHTS),
    ("Gemma-2-27B, A100", GEMMA2_27B, V10, "", "A100 80GB", 1, STARTED),
    # vLLM on one large card
    ("Qwen2.5-32B, A100-40", QWEN_32B, V10, "", "A100 40GB", 1, WEIGHTS),
    ("Qwen2.5-32B, A100-80, 8k", QWEN_32B, V10, "--max-model-len 8192", "A100 80GB", 1, STARTED),
    ("CodeLlama-34B, A100-80", CODELLAMA_34B, OLD, "", "A100 80GB", 1, STARTED),
    ("Yi-34B-200K, A100-80", YI_34B_200K, OLD, "", "A100 80GB", 1, CACHE),
    ("Llama-3.1-70B, H200, 8k", LLAMA_70B, V20, "--max-model-len 8192", "H200", 1, CACHE),
    ("Llama-3.1-70B, MI300X, 8k", LLAMA_70B, V20, "--max-model-len 8192", "MI300X", 1, STARTED),
    ("gpt-oss-120b, H100", OSS_120B, V33, "", "H100", 1, STARTED),
    ("gpt-oss-120b, A100-40", OSS_120B, V20, "", "A100 40GB", 1, WEIGHTS),
    # vLLM on several
    ("Llama-2-70B, 2 A100-80", LLAMA2_70B, OLD, "-tp 2", "A100 80GB", 2, STARTED),
    ("Llama-2-70B, 4 A10G", LLAMA2_70B, OLD, "-tp 4", "A10G", 4, WEIGHTS),
    ("Mixtral-8x7B, 2 A100-40", MIXTRAL, OLD, "-tp 2", "A100 40GB", 2, WEIGHTS),
    ("Mixtral-8x7B, 2 A100-80", MIXTRAL, V10, "-tp 2", "A100 80GB", 2, STARTED),
    ("Mixtral-8x22B, 4 A100-40", MIXTRAL_22B, OLD, "-tp 4", "A100 40GB", 4, WEIGHTS),
    ("Mixtral-8x22B, 8 A100-80", MIXTRAL_22B, V10, "-tp 8", "A100 80GB", 8, STARTED),
    ("Qwen1.5-72B, 2 A100-80", QWEN15_72B, OLD, "-tp 2", "A100 80GB", 2, CACHE),
    ("Qwen1.5-72B, 4 A100-80", QWEN15_72B, V10, "-tp 4", "A100 80GB", 4, STARTED),
    ("Qwen2.5-72B, 4 A100-40", QWEN_72B, V10, "-tp 4", "A100 40GB", 4, CACHE),
    ("Qwen2.5-72B, 4 H100", QWEN_72B, V20, "-tp 4", "H100", 4, STARTED),
    ("Qwen2.5-72B-AWQ, 2 4090", QWEN_72B_AWQ, V10, "-tp 2", "RTX 4090", 2, CACHE),
    ("Qwen2.5-32B, 2 4090", QWEN_32B, V10, "-tp 2", "RTX 4090", 2, WEIGHTS),
    ("Qwen2.5-32B, 4 4090, 8k", QWEN_32B, V10, "-tp 4 --max-model-len 8192", "RTX 4090", 4, STARTED),
    ("Llama-3.3-70B, 8 4090, whole context", LLAMA_70B, V20, "-tp 8", "RTX 4090", 8, CACHE),
    ("Llama-3.3-70B, 8 4090, 8k", LLAMA_70B, V20, "-tp 8 --max-model-len 8192", "RTX 4090", 8, STARTED),
    ("Llama-3.3-70B, 4 L40S, whole context", LLAMA_70B, V20, "-tp 4", "L40S", 4, CACHE),
    ("Llama-3.1-405B-FP8, 8 H100", {**LLAMA_405B, "quantization_config": {"quant_method": "fbgemm_fp8"}}, V20, "-tp 8 --max-model-len 65536", "H100", 8, STARTED),
    ("Mistral-Large, 8 H100", MISTRAL_LARGE, V20, "-tp 8", "H100", 8, STARTED),
    ("Mistral-Large, 2 H100", MISTRAL_LARGE, V20, "-tp 2", "H100", 2, WEIGHTS),
    ("DeepSeek-R1, 8 A100-80", DEEPSEEK_V3, V10, "-tp 8", "A100 80GB", 8, WEIGHTS),
    ("DeepSeek-R1, 16 H100", DEEPSEEK_V3, V20, "-tp 8 -pp 2", "H100", 16, STARTED),
    ("DeepSeek-R1, 8 B200", DEEPSEEK_V3, V33, "-tp 8", "B200", 8, STARTED),
    ("DeepSeek-R1-bf16, 16 A100-80", R1_BF16, V10, "-tp 8 -pp 2", "A100 80GB", 16, WEIGHTS),
    ("DeepSeek-R1-AWQ, 8 A100-80", {**R1_BF16, **AWQ}, V10, "-tp 8 --max-model-len 32768", "A100 80GB", 8, STARTED),
    ("Kimi-K2, 8 H100", KIMI_K2, V20, "-tp 8", "H100", 8, WEIGHTS),
    ("GLM-4.5-Air, 4 H100", GLM_AIR, V20, "-tp 4", "H100", 4, STARTED),
    ("GLM-4.5, 8 H100", GLM, V20, "-tp 8", "H100", 8, WEIGHTS),
    ("GLM-4.5, 8 H200", GLM, V20, "-tp 8", "H200", 8, STARTED),
    ("Qwen3-235B, 8 A100-80", QWEN3_235B, V10, "-tp 8", "A100 80GB", 8, STARTED),
    ("Qwen3-235B, 4 H100", QWEN3_235B, V20, "-tp 4", "H100", 4, WEIGHTS),
    ("Qwen3-235B-FP8, tp 4", {**QWEN3_235B, **FP8}, V20, "-tp 4", "H100", 4, STARTED),
    ("Qwen3-235B-FP8, tp 8", {**QWEN3_235B, **FP8}, V20, "-tp 8", "H100", 8, REFUSED),
    ("Qwen3-235B-FP8, tp 8, expert parallel", {**QWEN3_235B, **FP8}, V20, "-tp 8 --enable-expert-parallel", "H100", 8, STARTED),
    ("Qwen3-Coder-480B-FP8, tp 8", QWEN3_480B_FP8, V20, "-tp 8", "H200", 8, REFUSED),
    ("Qwen2.5-7B, tp 8", QWEN_7B, V10, "-tp 8", "H100", 8, REFUSED),
    ("Phi-4, tp 3", PHI_4, V20, "-tp 3", "H100", 4, REFUSED),
    # SGLang: the context need not fit, the pool is what is left
    ("Llama-3.1-8B, 4090", LLAMA_8B, S9, "", "RTX 4090", 1, STARTED),
    ("Llama-3.1-8B, L4", LLAMA_8B, S15, "", "L4", 1, STARTED),
    ("Llama-3.1-8B, L4 at 0.82", LLAMA_8B, S23, "--mem-fraction-static 0.82", "L4", 1, STARTED),
    ("Llama-3.1-8B, T4", LLAMA_8B, S15, "", "T4", 1, WEIGHTS),
    ("Llama-3.1-70B, 4 H100", LLAMA_70B, S15, "--tp 4", "H100", 4, STARTED),
    ("Llama-3.1-70B, 1 H100", LLAMA_70B, S23, "", "H100", 1, WEIGHTS),
    ("Llama-3.1-70B, 2 H100 at 0.7", LLAMA_70B, S9, "--tp 2 --mem-fraction-static 0.7", "H100", 2, CACHE),
    ("Llama-3.1-405B, 8 H100", LLAMA_405B, S9, "--tp 8", "H100", 8, WEIGHTS),
    ("Llama-3.1-405B, 16 H100", LLAMA_405B, S9, "--tp 16 --nnodes 2", "H100", 16, STARTED),
    ("DeepSeek-V3, 8 H200", DEEPSEEK_V3, S9, "--tp 8", "H200", 8, STARTED),
    ("DeepSeek-V3, 8 H200, MTP", DEEPSEEK_V3, S23, "--tp 8 --speculative-algorithm EAGLE", "H200", 8, STARTED),
    ("DeepSeek-V3, 8 H100", DEEPSEEK_V3, S23, "--tp 8", "H100", 8, WEIGHTS),
    ("DeepSeek-V3, 16 H100", DEEPSEEK_V3, S15, "--tp 16 --nnodes 2", "H100", 16, STARTED),
    ("DeepSeek-V3, 8 MI300X", DEEPSEEK_V3, S15, "--tp 8", "MI300X", 8, STARTED),
    ("DeepSeek-V3, 8 B200", DEEPSEEK_V3, S23, "--tp 8", "B200", 8, STARTED),
    ("Kimi-K2, 16 H200", KIMI_K2, S15, "--tp 16 --nnodes 2", "H200", 16, STARTED),
    ("Kimi-K2, 8 H100", KIMI_K2, S15, "--tp 8", "H100", 8, WEIGHTS),
    ("Mixtral-8x7B, 2 H100", MIXTRAL, S9, "--tp 2", "H100", 2, STARTED),
    ("Mixtral-8x7B, 1 A100-80", MIXTRAL, S9, "", "A100 80GB", 1, WEIGHTS),
    ("Qwen3-235B, 8 H100", QWEN3_235B, S15, "--tp 8", "H100", 8, STARTED),
    ("Qwen3-235B-FP8, tp 8", {**QWEN3_235B, **FP8}, S15, "--tp 8", "H100", 8, REFUSED),
    ("Qwen3-235B-FP8, tp 8, ep 8", {**QWEN3_235B, **FP8}, S15, "--tp 8 --ep-size 8", "H100", 8, STARTED),
    ("Qwen3-30B-A3B, 1 H100", QWEN3_30B, S23, "", "H100", 1, STARTED),
    ("gpt-oss-120b, 2 H100", OSS_120B, S15, "--tp 2", "H100", 2, STARTED),
    ("gpt-oss-20b, 4090", OSS_20B, S23, "", "RTX 4090", 1, STARTED),
    ("Qwen2.5-32B, A100-80", QWEN_32B, S9, "", "A100 80GB", 1, STARTED),
    ("Qwen2.5-32B, A6000", QWEN_32B, S9, "", "RTX A6000", 1, WEIGHTS),
    ("GLM-4.5, 8 H100", GLM, S23, "--tp 8", "H100", 8, WEIGHTS),
    ("GLM-4.5-Air, 4 H100", GLM_AIR, S23, "--tp 4", "H100", 4, STARTED),
)  # fmt: skip


def outcome(found: Estimate) -> str:
    if found.constraints:
        return REFUSED
    if found.verdict is Verdict.STARTS:
        return STARTED
    if found.verdict is Verdict.CLOSE:
        return "close"
    return found.decisive.outcome if found.decisive else "host"


@pytest.mark.parametrize(
    ("config", "engine", "flags", "gpu", "gpus", "known"),
    [pytest.param(*each[1:], id=f"{each[2]}: {each[0]}") for each in KNOWN],
)
def test_no_known_outcome_is_contradicted(
    config: dict[str, Any], engine: str, flags: str, gpu: str, gpus: int, known: str
) -> None:
    """Memory runs out at the weights or at the cache: which of them is within the estimate's uncertainty."""
    found = estimated(model_of(config), engine, flags, gpu, gpus)
    alike = {WEIGHTS: {WEIGHTS, CACHE}, CACHE: {CACHE, WEIGHTS}}.get(known, {known})
    assert outcome(found) in {*alike, "close"}, found.reason


def test_most_are_told_exactly() -> None:
    told = [outcome(estimated(model_of(config), engine, flags, gpu, gpus)) == known for _, config, engine, flags, gpu, gpus, known in KNOWN]  # fmt: skip
    assert len(told) >= 90
    assert sum(told) >= 0.9 * len(told)

"""What an engine refuses before any memory counts, in its own words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fit.models import KIMI, SEED_GPU, estimated, model, model_of

from gpuwhy.fit.results import Verdict

QWEN_MOE = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 4096, "num_hidden_layers": 94,
    "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 12288,
    "moe_intermediate_size": 1536, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
    "max_position_embeddings": 40960, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip
BLOCKS = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
DENSE: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
    "max_position_embeddings": 32768, "torch_dtype": "bfloat16",
}  # fmt: skip

MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": 1536}


@pytest.mark.parametrize(
    ("config", "engine", "flags", "gpus", "message"),
    [
        (DENSE, "vllm 0.20.2", "-tp 8", 8, "Total number of attention heads (28) must be divisible by tensor parallel size (8)."),
        (QWEN_MOE | BLOCKS, "vllm 0.20.2", "-tp 8", 8, "The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128."),
        (QWEN_MOE | BLOCKS, "sglang 0.5.15", "--tp 8", 8, "The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128."),
        (DENSE, "vllm 0.20.2", "-tp 2 --enable-expert-parallel", 2, "Number of experts in the model must be greater than 0"),
        (DENSE, "vllm 0.20.2", "-tp 4 -dcp 3", 4, "tp_size=4 must be divisible by dcp_size=3"),
        (QWEN_MOE, "sglang 0.5.15", "--tp 4 --page-size 64 --chunked-prefill-size 1000", 4, "chunked_prefill_size must be divisible by page_size"),
        (QWEN_MOE | MLA, "sglang 0.5.15", "--attention-backend trtllm_mla", 1, "only supported on Blackwell GPUs (SM100/SM12x)"),
        (DENSE, "sglang 0.5.10.post1", "--attention-backend trtllm_mha", 1, ""),
        (DENSE, "sglang 0.5.23", "--attention-backend trtllm_mla", 1, "only supported on Blackwell"),
        (DENSE, "vllm 0.20.2", "--max-model-len 65536", 1, "User-specified max_model_len (65536) is greater than the derived max_model_len"),
        (DENSE, "sglang 0.5.23", "--context-length 65536", 1, "User-specified context_length (65536) is greater than the derived context_length"),
        (DENSE, "vllm 0.20.2", "--max-num-batched-tokens 512 --max-num-seqs 1024", 1, "max_num_batched_tokens (512) must be greater than or equal to max_num_seqs (1024)."),
        (DENSE, "vllm 0.20.2", "-tp 4 -dcp 2", 4, "exceeds the maximum supported value"),
        (QWEN_MOE | {"num_nextn_predict_layers": 2}, "vllm 0.20.2", "-sc '{\"method\": \"mtp\", \"num_speculative_tokens\": 3}'", 1, "must be divisible by n_predict=2"),
    ],
)  # fmt: skip
def test_it_fails_with_the_engine_s_own_words(
    config: dict[str, Any], engine: str, flags: str, gpus: int, message: str
) -> None:
    found = estimated(model_of(config), engine, flags, gpus=gpus)
    assert found.verdict is Verdict.FAILS
    assert any(message in each.message for each in found.constraints)


@pytest.mark.parametrize(
    ("config", "engine", "flags", "gpus"),
    [
        (DENSE, "vllm 0.20.2", "-tp 4", 4),
        (QWEN_MOE | BLOCKS, "vllm 0.20.2", "-tp 4", 4),
        (QWEN_MOE | BLOCKS, "vllm 0.20.2", "-tp 8 --enable-expert-parallel", 8),
        (QWEN_MOE | BLOCKS, "sglang 0.5.15", "--tp 8 --ep 8", 8),
        (QWEN_MOE, "sglang 0.5.15", "--tp 8", 8),
        (DENSE, "sglang 0.5.15", "--attention-backend trtllm_mha", 1),
        (DENSE, "sglang 0.5.10.post1", "--decode-attention-backend trtllm_mha", 1),
        (DENSE, "vllm 0.20.2", "--max-model-len 32768", 1),
        (DENSE, "vllm 0.10.2", '--max-model-len 65536 --rope-scaling \'{"rope_type": "yarn", "factor": 4.0}\'', 1),
        (DENSE, "vllm 0.20.2", "--max-model-len 65536 --hf-overrides '{\"max_position_embeddings\": 131072}'", 1),
        (
            DENSE | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
            "vllm 0.20.2",
            "--max-model-len 131072",
            1,
        ),
        (QWEN_MOE, "vllm 0.20.2", "-tp 8 -dcp 2", 8),
        ({}, "vllm 0.20.2", "-tp 7", 8),
    ],
)
def test_what_divides_is_not_refused(config: dict[str, Any], engine: str, flags: str, gpus: int) -> None:
    assert estimated(model_of(config), engine, flags, gpus=gpus).constraints == ()


def test_the_seed_breaks_nothing() -> None:
    """64 heads, 384 experts of 2048 columns in groups of 32, over eight ranks."""
    assert estimated(model(KIMI), "sglang 0.5.23", "--tp 8", SEED_GPU, 8).constraints == ()

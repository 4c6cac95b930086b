"""Checkpoints in the formats of the quantisers have the size that their pages on the hub show."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fit.test_well_known_models import LLAMA_8B, LLAMA_70B, MIXTRAL, dense, mixture

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.inventory import computed_inventory

QWEN_7B = dense("qwen2", 3584, 28, 28, 4, 18944, 152064, 32768)
QWEN_14B = dense("qwen2", 5120, 48, 40, 8, 13824, 152064, 32768)
QWEN_32B = dense("qwen2", 5120, 64, 40, 8, 27648, 152064, 32768)
QWEN_72B = dense("qwen2", 8192, 80, 64, 8, 29568, 152064, 32768)
CODER_480B = mixture("qwen3_moe", 6144, 62, 96, 8, 2560, 160, 151936, 262144, head_dim=128, inner=8192)
MINIMAX_M2 = mixture("minimax_m2", 3072, 62, 48, 8, 1536, 256, 200064, 196608, head_dim=128, num_mtp_modules=3)
QWEN_NEXT = mixture("qwen3_next", 2048, 48, 16, 2, 512, 512, 151936, 262144, head_dim=256, inner=5120, shared_expert_intermediate_size=512, linear_num_value_heads=32)  # fmt: skip
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}  # fmt: skip
FP8_BLOCKS = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


def compressed(bits: int, kind: str, group: int | None = None) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": kind, "group_size": group, "symmetric": True}
    return {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}  # fmt: skip


MODELOPT = {**compressed(4, "float", 16), "quant_method": "modelopt", "quant_algo": "NVFP4"}


@pytest.mark.parametrize(
    ("config", "quantization", "gigabytes"),
    [
        (QWEN_7B, AWQ, 5.57),
        (QWEN_7B, GPTQ, 5.58),
        (QWEN_7B, {**GPTQ, "bits": 8}, 8.87),
        (QWEN_14B, AWQ, 9.98),
        (QWEN_32B, AWQ, 19.34),
        (QWEN_72B, GPTQ, 41.6),
        (LLAMA_8B, AWQ, 5.73),
        (LLAMA_70B, AWQ, 39.77),
        (LLAMA_8B, compressed(4, "int", 128), 5.74),
        (LLAMA_8B, compressed(8, "int"), 9.09),
        (LLAMA_8B, compressed(8, "float"), 9.08),
        (LLAMA_70B, compressed(8, "float"), 72.7),
        (LLAMA_70B, compressed(4, "float", 16), 42.7),
        (LLAMA_70B, MODELOPT, 42.7),
        (MIXTRAL, AWQ, 24.65),
        (LLAMA_8B, BNB, 5.70),
        (LLAMA_70B, BNB, 39.5),
        (CODER_480B, FP8_BLOCKS, 482.2),
        (MINIMAX_M2, {**FP8_BLOCKS, "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"]}, 230.1),
        (QWEN_NEXT, {**FP8_BLOCKS, "modules_to_not_convert": ["lm_head", *(f"model.layers.{layer}.linear_attn.conv1d" for layer in range(48))]}, 82.1),
    ],
)  # fmt: skip
def test_the_files_have_their_public_size(config: dict[str, Any], quantization: dict[str, Any], gigabytes: float) -> None:  # fmt: skip
    inventory = computed_inventory(read_architecture({**config, "quantization_config": quantization}))
    sizes = (inventory.checkpoint_bytes / 1e9, (inventory.checkpoint_bytes + inventory.predicting_bytes) / 1e9)
    assert min(abs(size - gigabytes) for size in sizes) <= 0.01 * gigabytes, sizes

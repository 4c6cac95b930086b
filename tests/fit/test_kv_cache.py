"""What the cache is kept in when nobody says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fit.models import estimated, model_of
from tests.fit.test_well_known_models import LLAMA_8B
from tests.fit.test_zoo import MODELS

SPARSE = {**MODELS["DeepSeek-V3.2-Exp"]["config"], "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}  # fmt: skip
SCHEME = {"num_bits": 8, "type": "float", "dynamic": False}


def bytes_per_token(config: dict[str, Any], engine: str, flags: str = "", gpu: str = "H200") -> float:
    return estimated(model_of(config), engine, f"--tp 8 {flags}", gpu=gpu, gpus=8).cache.bytes_per_token


@pytest.mark.parametrize(
    ("engine", "flags", "gpu", "row"),
    [
        ("sglang 0.5.23", "", "H200", 576 * 2),
        ("sglang 0.5.23", "", "B200", 656),
        ("sglang 0.5.23", "--kv-cache-dtype bfloat16", "B200", 576 * 2),
        ("sglang 0.5.23", "--kv-cache-dtype fp8_e4m3", "H200", 656),
        ("vllm 0.33.0", "", "B200", 576 * 2),
        ("vllm 0.33.0", "--kv-cache-dtype fp8", "H200", 656),
    ],
)
def test_rows_of_sparse_attention(engine: str, flags: str, gpu: str, row: int) -> None:
    """With a key of the indexer and its scale beside them."""
    assert bytes_per_token(SPARSE, engine, flags, gpu) == 61 * (row + 132)


@pytest.mark.parametrize(
    ("method", "engine", "each"),
    [
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": SCHEME}, "vllm 0.33.0", 1),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": SCHEME}, "sglang 0.5.23", 1),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": SCHEME}, "sglang 0.5.15", 2),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "sglang 0.5.15", 1),
    ],
)
def test_a_checkpoint_may_ask_for_a_cache_in_fp8(method: dict[str, Any], engine: str, each: int) -> None:
    groups = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}}
    config = {**LLAMA_8B, "quantization_config": {"config_groups": groups, **method}}
    assert bytes_per_token(config, engine) == 2 * 32 * 128 * each

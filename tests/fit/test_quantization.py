"""Which weights a checkpoint keeps in which format."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.fit.test_well_known_models import LLAMA_8B

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.fields import Fields
from gpuwhy.fit.inventory import computed_inventory
from gpuwhy.fit.quantization import Format, Quantization, names, online, plain_format, read_quantization

EXPERT, ATTENTION = "model.layers.3.mlp.experts.0.up_proj", "model.layers.3.self_attn.q_proj"
SHARED, DENSE = "model.layers.3.mlp.shared_experts.up_proj", "model.layers.0.mlp.up_proj"


def read(section: dict[str, Any]) -> Quantization:
    dtype = plain_format("torch.bfloat16")
    assert dtype
    return read_quantization(Fields({"quantization_config": section}), dtype)


@pytest.mark.parametrize(
    ("section", "bytes_each"),
    [
        ({"quant_method": "fp8"}, 1.0),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 1 + 4 / 128**2),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 0.5 + 2 / 128 + 0.5 / 128),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, 0.5 + 2 / 128 + 0.5 / 128),
        ({"quant_method": "gptq", "bits": "8", "group_size": "32"}, 1 + 2 / 32 + 1 / 32),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 0.5 + 1 / 16),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 1.0),
    ],
)
def test_bytes_of_a_weight_hold_its_scales(section: dict[str, Any], bytes_each: float) -> None:
    assert read(section).format_of(ATTENTION).bytes_each == pytest.approx(bytes_each)


def compressed(**weights: Any) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"], "weights": weights}}}


@pytest.mark.parametrize(
    ("weights", "bytes_each"),
    [
        ({"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True}, 0.5625),
        ({"num_bits": 8, "type": "float", "strategy": "channel"}, 1.0),
        ({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}, 1 + 4 / 128**2),
        ({"num_bits": 4, "type": "float", "group_size": 16}, 0.5625),
        ({"num_bits": 4, "type": "float", "group_size": 32}, 0.53125),
        ({"num_bits": 8, "type": "int"}, 1.0),
    ],
)
def test_compressed_tensors_name_bits_and_type(weights: dict[str, Any], bytes_each: float) -> None:
    assert read(compressed(**weights)).format_of(EXPERT).bytes_each == pytest.approx(bytes_each)


def test_only_the_routed_experts_of_kimi_are_packed() -> None:
    ignored = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"]
    made = read({**compressed(num_bits=4, type="int", group_size=32, symmetric=True), "ignore": ignored})
    assert made.format_of(EXPERT).bytes_each == 0.5625
    assert {made.format_of(module).bytes_each for module in (ATTENTION, SHARED, DENSE)} == {2.0}


def test_mxfp4_is_of_the_experts_only() -> None:
    made = read({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]})
    assert (made.format_of(EXPERT).bytes_each, made.format_of(ATTENTION).bytes_each) == (0.53125, 2.0)


@pytest.mark.parametrize(
    ("pattern", "module", "is_meant"),
    [
        ("model.layers.3.self_attn.q_proj", ATTENTION, True),
        ("language_model.model.layers.3.self_attn", ATTENTION, True),
        ("model.layers.33.self_attn", ATTENTION, False),
        ("mlp.gate", "model.layers.3.mlp.gate_proj", False),
        ("*self_attn*", ATTENTION, True),
        ("model.layers.*.mlp.experts.*", EXPERT, True),
        ("re:.*experts.*up_proj", EXPERT, True),
        ("re:(broken", EXPERT, False),
    ],
)
def test_an_entry_of_a_list_means_a_module(pattern: str, module: str, is_meant: bool) -> None:
    assert names(pattern, module) is is_meant


def test_an_expression_that_could_take_for_ever_is_not_run() -> None:
    begun = time.process_time()
    for pattern in ("re:(a+)+$", "re:" + ".*" * 40 + "x", "re:" + "(x|xx)*" * 20, "*" * 300 + "x"):
        names(pattern, "x" * 250)
    assert time.process_time() - begun < 0.5


def test_an_unknown_method_is_said_and_its_bits_are_used() -> None:
    guessed = read({"quant_method": "brand_new", "bits": 3, "group_size": 64})
    assert not guessed.format_of(EXPERT).is_known
    assert guessed.format_of(EXPERT).bytes_each < 0.5
    assert "brand_new" in read({"quant_method": "brand_new"}).complaint


def test_the_engine_quantises_what_is_not_quantised_yet() -> None:
    plain = Quantization("", Format("bfloat16", 2.0))
    assert online("fp8", plain).format_of(EXPERT).bytes_each == 1.0
    assert online("fp8", read({"quant_method": "awq", "bits": 4})).format_of(EXPERT).bytes_each < 0.6


def test_the_cache_format_that_a_checkpoint_asks_for() -> None:
    assert read({**compressed(num_bits=8, type="float"), "kv_cache_scheme": {"num_bits": 8}}).kv_format == "fp8"


def stored(config: dict[str, Any]) -> float:
    return computed_inventory(read_architecture(config)).checkpoint_bytes


def test_layers_that_are_left_as_they_were_are_counted_one_by_one() -> None:
    """As Meta's FP8 checkpoints leave the first and the last layer."""
    every = {**LLAMA_8B, "quantization_config": {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]}}
    kept = ["lm_head", *(f"model.layers.{layer}.mlp.{name}_proj" for layer in (0, 31) for name in ("gate", "up", "down"))]  # fmt: skip
    some = {**LLAMA_8B, "quantization_config": {"quant_method": "fbgemm_fp8", "modules_to_not_convert": kept}}
    assert stored(some) - stored(every) == pytest.approx(2 * 3 * 4096 * 14336)


@pytest.mark.parametrize("entry", ["re:model[.]layers[.](0|31)[.]mlp.*", "*layers.0.mlp*"])
def test_expressions_that_mean_some_layers(entry: str) -> None:
    every = {**LLAMA_8B, "quantization_config": {"quant_method": "fp8", "ignored_layers": []}}
    some = {**LLAMA_8B, "quantization_config": {"quant_method": "fp8", "ignored_layers": [entry]}}
    layers = 2 if "31" in entry else 1
    assert stored(some) - stored(every) == pytest.approx(layers * 3 * 4096 * 14336)


def test_experts_that_are_listed_one_by_one() -> None:
    """Half a million entries of a mixed checkpoint: the first expert of a layer stands for all of them."""
    config = {
        "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "moe_intermediate_size": 768, "num_experts": 512, "vocab_size": 151936, "tie_word_embeddings": True,
    }  # fmt: skip
    listed = {
        f"model.layers.{layer}.mlp.experts.{expert}.up_proj": {"quant_algo": "NVFP4", "group_size": 16}
        for layer in range(60)
        for expert in range(512)
    }
    mixed = {**config, "quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": listed}}  # fmt: skip
    experts = 60 * 512 * 3 * 2048 * 768
    assert stored(config) - stored(mixed) == pytest.approx(experts * (2 - 0.5625), rel=0.001)

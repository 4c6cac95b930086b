"""Configurations that lie, lack fields or are hostile: an estimate that says so, never a crash, never a silent zero."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fit.models import config, estimated, model_of
from tests.fit.test_zoo import MODELS

from gpuwhy.fit.arguments import read_command, settings_of
from gpuwhy.fit.reading import ModelError, read_model
from gpuwhy.fit.results import Estimate, Verdict

FIELDS = sorted(
    {
        "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
        "intermediate_size", "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "v_head_dim", "num_experts",
        "n_routed_experts", "moe_intermediate_size", "n_shared_experts", "num_experts_per_tok", "first_k_dense_replace",
        "max_position_embeddings", "sliding_window", "sliding_window_pattern", "layer_types", "hybrid_override_pattern",
        "rope_scaling", "quantization_config", "text_config", "vision_config", "tie_word_embeddings", "torch_dtype",
        "model_type", "architectures", "linear_attn_config", "linear_num_value_heads", "mamba_d_state", "index_head_dim",
        "attn_layer_period", "full_attention_interval", "moe_layer_freq", "decoder_sparse_step", "mlp_only_layers",
        "num_nextn_predict_layers", "attention_chunk_size", "no_rope_layers", "mamba_n_heads", "attn_type_list",
        "block_configs", "layers_block_type", "num_kv_shared_layers", "hidden_size_per_layer_input", "vocab_size_per_layer_input",
        "swa_num_key_value_heads", "global_head_dim", "attention_k_eq_v", "attention_other_setting", "multi_query", "ffn_config",
        "attn_config", "moe", "ffn_multipliers", "model_dim", "num_kv_heads", "moe_layers_enum", "mamba_d_ssm", "zero_expert_num",
        "expert_ffn_hidden_size", "num_mem_blocks", "attention_hidden_size", "decoder_layers", "encoder_layers", "d_model",
        "layer_group_size", "conv_L_cache", "moe_latent_size", "use_residual", "enable_moe_block", "talker_config", "llm_config",
        "audio_config", "spatial_merge_size", "deepstack_visual_indexes", "block_ff_dim", "block_auto_adjust_ff_dim", "share_q_dim",
        "expansion_ratio", "n_embed", "intermediate_size_mlp", "mamba_ssm_dtype", "state_size", "expand", "num_heads",
    }
)  # fmt: skip
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 200), st.integers(-(2**63), 2**63), st.just(10**4000), st.floats(),
    st.text(max_size=20), st.sampled_from(["gemma3", "qwen3_next", "deepseek_v3", "fp8", "4096", "1e400", "MMMM*-E", "zamba2", "whisper", "bert", "gemma4", "mamba", "hybrid", "1,2,3", "LLLG"]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=8), inner, max_size=5)
    ),
    max_leaves=12,
)
QUANTIZED = st.dictionaries(
    st.sampled_from(
        ["quant_method", "bits", "group_size", "config_groups", "ignore", "weight_block_size", "quant_algo"]
    ),
    VALUES | st.sampled_from(["fp8", "awq", "gptq", "compressed-tensors", "modelopt", "mxfp4", ["re:(a+)+$"], [0, 0]]),
    max_size=5,
)


def is_whole(found: Estimate) -> bool:
    numbers = [found.cache.tokens.expected, found.cache.budget.low, found.cache.budget.high, found.fraction.value]
    numbers += [part.gib.expected for part in found.parts] + [check.margin.expected for check in found.checks]
    return all(math.isfinite(number) for number in numbers)


@settings(max_examples=250, deadline=None)
@given(
    content=st.dictionaries(st.sampled_from(FIELDS), VALUES | QUANTIZED, max_size=12),
    engine=st.sampled_from(["sglang 0.5.9", "sglang 0.5.23", "vllm 0.10.2", "vllm 0.33.0"]),
    flags=st.sampled_from(
        ["", "--tp 8", "--tp 4 --pp 3", "--speculative-algorithm EAGLE3", "--kv-cache-dtype strange"]
    ),
)
def test_any_configuration_gets_an_estimate(content: dict[str, Any], engine: str, flags: str) -> None:
    found = estimated(model_of(content), engine, flags, gpus=64)
    assert is_whole(found)
    if not found.gib_of("weights").expected:
        # nothing known is no zero: it is said, and no verdict rests on it
        assert found.missing
        assert found.verdict is not Verdict.STARTS


@settings(max_examples=150, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
def test_a_real_configuration_with_some_fields_spoilt(changes: dict[str, Any]) -> None:
    content = {**config("deepseek-ai/DeepSeek-R1"), **changes}
    assert is_whole(estimated(model_of(content), "vllm 0.33.0", "-tp 8", "B200", 8))


@settings(max_examples=200, deadline=None)
@given(
    line=st.text(max_size=200)
    | st.lists(
        st.sampled_from(
            [
                "--tp",
                "-pp",
                "8",
                "--max-model-len",
                "1e9",
                "-1",
                "--dtype",
                "--speculative-config",
                "{}",
                "[1",
                "--cuda-graph-bs",
                "x",
                "=",
                "--=",
            ]
        ),
        max_size=12,
    ).map(" ".join)
)
def test_any_command_line_is_read(line: str) -> None:
    for engine in ("sglang", "vllm"):
        read_command(engine, line[:40], line)  # fmt: skip


@given(st.dictionaries(st.text(max_size=12) | st.sampled_from(["tp", "max-model-len", "speculative-config"]), VALUES, max_size=5))  # fmt: skip
def test_any_flags_of_a_record_are_read(flags: dict[str, Any]) -> None:
    settings_of("vllm", "0.20.2", flags)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_size": "many"}, "hidden_size"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"vocab_size": -3}, "vocab_size"),
        ({"hidden_size": 10**5000}, "more than 20 digits"),
        ({"quantization_config": {"quant_method": "secret"}}, "secret"),
        ({"max_position_embeddings": None}, "context"),
    ],
)
def test_what_is_missing_is_named(changes: dict[str, Any], said: str) -> None:
    content = {**config("meta-llama/Llama-3.3-70B"), **changes}
    assert said in " ".join(estimated(model_of(content), "vllm 0.33.0", "-tp 8", gpus=8).missing)


@pytest.mark.parametrize("name", ["num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"])
def test_no_start_is_promised_without_what_it_rests_on(name: str) -> None:
    content = {field: value for field, value in config("meta-llama/Llama-3.3-70B").items() if field != name}
    assert estimated(model_of(content), "sglang 0.5.23", "--tp 8", gpus=8).verdict is not Verdict.STARTS


def test_numbers_written_as_text_are_numbers() -> None:
    content = config("meta-llama/Llama-3.3-70B")
    spelled = {name: str(value) if type(value) is int else value for name, value in content.items()}
    assert model_of(spelled).inventory.total_bytes == model_of(content).inventory.total_bytes


def test_an_architecture_that_nobody_knows_is_counted_by_its_fields() -> None:
    content = {**config("meta-llama/Llama-3.3-70B"), "model_type": "zorp", "architectures": ["ZorpForCausalLM"]}
    assert model_of(content).inventory.total_bytes == pytest.approx(141.1e9, rel=0.01)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(MODELS)), changes=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3))
def test_any_kind_of_model_with_some_fields_spoilt(name: str, changes: dict[str, Any]) -> None:
    whole = MODELS[name]["config"]
    part = next((section for section in ("text_config", "llm_config", "thinker_config") if section in whole), None)
    content = {**whole, **(changes if part is None else {part: {**whole[part], **changes}})}
    assert is_whole(estimated(model_of(content), "vllm 0.33.0", "-tp 2", "B200", 8))


def test_a_section_in_a_section_ten_thousand_times() -> None:
    content: dict[str, Any] = {}
    for _ in range(10_000):
        content = {"text_config": content, "thinker_config": content, "quantization_config": content, "block_configs": [content]}  # fmt: skip
    assert model_of(content).shape.missing


def test_a_large_file_is_read_and_a_larger_one_refused(tmp_path: Path) -> None:
    shape = json.dumps(config("meta-llama/Llama-3.3-70B"))
    (tmp_path / "config.json").write_text(shape[:-1] + ', "notes": "' + "x" * (50 << 20) + '"}')
    begun = time.perf_counter()
    assert read_model(tmp_path).shape.hidden == 8192
    assert time.perf_counter() - begun < 5
    (tmp_path / "config.json").write_bytes(b"[" + b" " * (64 << 20) + b"]")
    with pytest.raises(ModelError, match="larger than 64 MiB"):
        read_model(tmp_path)


def test_layers_that_all_differ_and_formats_that_say_nothing_of_them_take_no_time() -> None:
    left_out = [f"re:.*mlp{number}.*" for number in range(1000)] + [f"model.layers.{layer}.mlp.up_proj" for layer in range(1000)]  # fmt: skip
    content = {
        "num_hidden_layers": 2000, "hidden_size": 8192, "num_attention_heads": 64, "vocab_size": 1000, "intermediate_size": list(range(1, 2001)),
        "num_key_value_heads": [1 + layer % 60 for layer in range(2000)], "quantization_config": {"quant_method": "fp8", "ignored_layers": left_out},
    }  # fmt: skip
    begun = time.perf_counter()
    estimated(model_of(content), "vllm 0.33.0", "-tp 8", gpus=8)
    assert time.perf_counter() - begun < 2


def test_layers_that_are_not_all_described_are_said() -> None:
    content = {**config("meta-llama/Llama-3.3-70B"), "hybrid_override_pattern": "M*-"}
    assert "80 layers are named, 3 are described" in " ".join(model_of(content).shape.missing)


def test_a_deeply_nested_file_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"text_config":' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(ModelError, match="no JSON"):
        read_model(tmp_path)


def test_a_lying_index_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config("meta-llama/Llama-3.3-70B")))
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"metadata": {"total_size": 5e9}, "weight_map": {"a": "b"}}'
    )
    made = read_model(tmp_path)
    assert "times what its config.json describes" in " ".join(made.inventory.missing)


def test_long_lists_take_no_time() -> None:
    content = {"layer_types": ["sliding_attention"] * 200_000, "num_hidden_layers": 2000, "hidden_size": 8192,
               "quantization_config": {"quant_method": "modelopt", "ignore": ["re:" + "(x*)*" * 30] * 5000, "quant_algo": "FP8"}}  # fmt: skip
    begun = time.process_time()
    estimated(model_of(content), "sglang 0.5.23", "--tp 8", gpus=8)
    assert time.process_time() - begun < 2

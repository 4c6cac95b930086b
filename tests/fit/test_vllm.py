"""vLLM by release: what is asked for, what is subtracted, and what one request needs."""

from __future__ import annotations

import json
import statistics

import pytest
from scripts.score_fit import model_of as model_of_row
from scripts.score_fit import models_beside
from tests.fit.models import DATA, KIMI, SEED_GPU, estimated, model, model_of

from gpuwhy.fit.amount import GIB, Amount
from gpuwhy.fit.hardware import hardware_of
from gpuwhy.fit.kv_cache import KvShape, request_bytes_in_groups
from gpuwhy.fit.results import Verdict
from gpuwhy.fit.vllm import kv_budget, non_torch
from gpuwhy.knowledge.engine_memory import vllm_memory
from gpuwhy.knowledge.gpu_memory_sizes import memory_of

OSS: dict[str, object] = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4, "vocab_size": 201088,
    "max_position_embeddings": 131072, "sliding_window": 128, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]},
}  # fmt: skip
QWEN = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600,
    "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.mark.parametrize(("version", "expected"), [("0.10.2", 8.0), ("0.19.0", 8.0), ("0.20.2", 7.0), ("0.33.0", 7.0)])
def test_graphs_are_subtracted_from_0_20_on(version: str, expected: float) -> None:
    asked, weights, activation, other, graphs = (Amount.exact(each) for each in (70.0, 60.0, 1.5, 0.5, 1.0))
    budget = kv_budget(asked, weights, activation, other, graphs, vllm_memory(version)[0])
    assert budget.expected == pytest.approx(expected)


def test_the_default_utilization_changed() -> None:
    made = model_of(QWEN)
    assert estimated(made, "vllm 0.10.2", "--max-model-len 8192").fraction.value == 0.9
    assert estimated(made, "vllm 0.33.0", "--max-model-len 8192").fraction.value == 0.92


def test_sliding_layers_are_kept_in_groups() -> None:
    """Gemma 3 27B at 8192 tokens printed 4.46 requests in 19.53 GiB: 52 sliding layers in six groups of ten."""
    kv = KvShape(10, 8192.0, 52, 8192.0, 1024, 0, 0.0)
    needed = request_bytes_in_groups(kv, 8192, 8192, 16)
    assert 19.53 * GIB / needed == pytest.approx(4.46, abs=0.01)


def test_a_window_saves_once_the_context_is_longer() -> None:
    kv = KvShape(12, 2048.0, 12, 2048.0, 128, 0, 0.0)
    assert request_bytes_in_groups(kv, 131072, 2048, 16) < 0.55 * 131072 * kv.per_token


def test_one_request_that_is_too_long_fails_with_the_longest_that_fits() -> None:
    found = estimated(model_of(QWEN), "vllm 0.11.0", "--max-model-len 32000")
    assert found.verdict is Verdict.FAILS
    assert found.decisive is not None
    assert found.decisive.phase == "context"
    assert "(32000), (7.81 GiB KV cache is needed" in found.decisive.message
    assert 0 < found.cache.longest.expected < 32000


def test_nothing_left_for_the_cache_is_another_message() -> None:
    found = estimated(model_of(QWEN), "vllm 0.33.0", "--gpu-memory-utilization 0.7")
    assert found.decisive is not None
    assert "No available memory for the cache blocks" in found.decisive.message


def test_a_gpu_that_is_taken_is_refused_at_the_start() -> None:
    from gpuwhy.fit.arguments import read_command
    from gpuwhy.fit.estimate import estimate

    memory = memory_of("H100")
    assert memory
    settings = read_command("vllm", "0.19.0", "--gpu-memory-utilization 0.95 --max-model-len 8192")
    found = estimate(model_of(QWEN), hardware_of(memory, 1, taken_gib=18.0), settings)
    assert found.decisive is not None
    assert (found.verdict, found.decisive.outcome) == (Verdict.FAILS, "not-free")
    assert "on startup is less than desired GPU memory utilization (0.95, 75.23 GiB)" in found.decisive.message


def test_weights_that_do_not_fit_at_all() -> None:
    found = estimated(model("deepseek-ai/DeepSeek-R1"), "vllm 0.11.0")
    assert found.decisive is not None
    assert (found.verdict, found.decisive.outcome) == (Verdict.FAILS, "oom-weights")


def test_the_seed_deployment_needs_shorter_requests_or_a_shorter_context() -> None:
    usual = estimated(model(KIMI), "vllm 0.33.0", "-tp 8", SEED_GPU, 8)
    assert usual.verdict is Verdict.FAILS
    assert usual.cache.context == 262144
    splits = next(part.gib.expected for part in usual.parts if "split" in part.name)
    assert splits == pytest.approx(5.89, abs=0.02)
    less = estimated(model(KIMI), "vllm 0.33.0", "-tp 8 --max-num-seqs 128 --max-model-len 131072", SEED_GPU, 8)
    assert less.verdict is not Verdict.FAILS
    assert less.cache.tokens.expected > 150_000


def test_decode_context_parallel_multiplies_the_tokens() -> None:
    flags = "-tp 8 --max-num-seqs 64 --max-model-len 65536"
    one = estimated(model(KIMI), "vllm 0.33.0", flags, SEED_GPU, 8).cache.tokens.expected
    eight = estimated(model(KIMI), "vllm 0.33.0", flags + " --decode-context-parallel-size 8", SEED_GPU, 8)
    assert eight.cache.tokens.expected == pytest.approx(8 * one, rel=0.01)


def test_pipeline_stages_hold_their_own_layers() -> None:
    flags = "--max-model-len 8192 --pipeline-parallel-size"
    four = estimated(model_of(QWEN), "vllm 0.19.0", f"{flags} 4", "RTX 3090", 4)
    whole = estimated(model_of(QWEN), "vllm 0.19.0", "--max-model-len 8192")
    layers = whole.gib_of("weights").expected - 2 * 1.45
    assert four.gib_of("weights").expected == pytest.approx(layers / 4 + 1.45, rel=0.02)
    assert four.cache.bytes_per_token == pytest.approx(whole.cache.bytes_per_token / 4, rel=0.01)


def test_an_fp8_cache_halves_the_bytes() -> None:
    plain = estimated(model_of(QWEN), "vllm 0.33.0", "--max-model-len 8192").cache.bytes_per_token
    small = estimated(model_of(QWEN), "vllm 0.33.0", "--max-model-len 8192 --kv-cache-dtype fp8").cache.bytes_per_token
    assert small == plain / 2


Started = tuple[str, int, bool, float]


def measured_beside_pytorch() -> list[Started]:
    """Of each start of 0.19 that printed it: the model, its ranks, whether rows of logits are aligned, GiB."""
    rows = [json.loads(line) for line in (DATA / "points.jsonl").read_text(encoding="utf-8").splitlines()]
    models = models_beside(DATA / "points.jsonl", [])
    return [
        (row["model"], row["tp"], not (found.shape.vocabulary or 0) % 4, row["measured"]["non_torch_gib"])
        for row in rows
        if row["engine_version"] == "0.19.0" and row["measured"].get("non_torch_gib") and (found := model_of_row(row, models))
    ]  # fmt: skip


def test_what_is_not_pytorchs_is_told_for_a_model_that_was_left_out() -> None:
    """From the starts of all other models with as many ranks and rows that are as well aligned."""
    rows = measured_beside_pytorch()
    assert len(rows) >= 24
    misses = []
    for name, ranks, aligned, real in rows:
        others = [gib for other, *kind, gib in rows if other != name and kind == [ranks, aligned]]
        if abs(statistics.mean(others) - real) > 0.06:
            misses.append(name)
    assert misses == []


def test_what_is_not_pytorchs_is_as_measured() -> None:
    memory = memory_of("H100")
    assert memory
    release, _ = vllm_memory("0.19.0")
    for _, ranks, aligned, real in measured_beside_pytorch():
        vocabulary = 128256 if aligned else 49155
        found = non_torch(hardware_of(memory, ranks), ranks, vocabulary, release)
        assert found.expected == pytest.approx(real, abs=0.04)
        assert found.low <= real <= found.high


def test_little_room_beside_the_cache_is_no_sure_start_with_fp4_experts() -> None:
    """A start of gpt-oss-20b on 79.2 GiB died on the sampler's logits at 0.95, and worked at 0.90."""
    flags = "--max-model-len 8192 --gpu-memory-utilization"
    assert estimated(model_of(OSS), "vllm 0.19.0", f"{flags} 0.95").verdict is Verdict.CLOSE
    assert estimated(model_of(OSS), "vllm 0.19.0", f"{flags} 0.90").verdict is Verdict.STARTS


def test_what_is_not_counted_takes_a_narrow_start_back() -> None:
    made = model_of(QWEN)
    wide, narrow = "--max-model-len 2048 -tp 4", "--max-model-len 16384"
    assert estimated(made, "vllm 0.20.2", wide + " --enable-lora", gpus=4).verdict is Verdict.STARTS
    assert estimated(made, "vllm 0.20.2", narrow + " --gpu-memory-utilization 0.92").verdict is Verdict.STARTS
    found = estimated(made, "vllm 0.20.2", narrow + " --gpu-memory-utilization 0.92 --enable-lora")
    assert found.verdict is Verdict.CLOSE
    assert "adapters" in found.reason

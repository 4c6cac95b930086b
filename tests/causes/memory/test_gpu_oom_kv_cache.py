"""gpu-oom-kv-cache: budget messages of the engines, the values they allow, and the direction of the fraction."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "gpu-oom-kv-cache"


def remedies(found: Finding) -> dict[str, str]:
    return {remedy.name: remedy.value for remedy in found.remedies}


@pytest.mark.parametrize(
    ("line", "component"),
    [
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", "vllm"),
        ("INFO 08-12 10:01:33 [gpu_worker.py:242] Available KV cache memory: -1.87 GiB", "vllm"),
        ("INFO 02-26 09:54:05 executor_base.py:111] # cuda blocks: 0, # CPU blocks: 4681", "vllm"),
        ("ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (35984).", "vllm"),
        ("ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (412). Each decode request requires one Mamba cache block.", "vllm"),
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "sglang"),
        ("ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.75.", "sglang"),
        ("ValueError: SWA pool (128 tokens) cannot hold even one request, raise --mem-fraction-static", "sglang"),
        ("llama_kv_cache_init: failed to allocate buffer for kv cache", "llama.cpp"),
        ("RuntimeError: No enough gpu memory for runtime.", "lmdeploy"),
        ("The following component could not be created: KV cache", "tensorrt-llm"),
    ],
)  # fmt: skip
def test_every_engine_has_its_own_words(judge_report: Judge, line: str, component: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.component) == (CAUSE, component)
    assert first.certainty is Certainty.PROVEN


def test_the_largest_length_that_fits_is_taken_from_the_message(judge_report: Judge) -> None:
    text = (
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger "
        "than the available KV cache memory (10.53 GiB). Based on the available memory, the estimated maximum model length is 86240. "
        "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
    )
    first = judge_report(text).findings[0]
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--max-model-len", "86240")
    assert "16.00 GiB" in first.title
    assert "10.53 GiB" in first.title


def test_a_wrapped_message_is_quoted_with_its_figures(judge_report: Judge) -> None:
    text = (
        "ValueError: To serve at least one request with the model's max seq len (1048576),\n"
        "9.5 GiB KV cache is needed, which is larger than the available KV cache memory (7.39 GiB).\n"
    )
    assert "7.39 GiB" in judge_report(text).findings[0].evidence[0].quote


def test_sglang_s_smallest_fraction_is_computed_from_two_log_lines(judge_report: Judge) -> None:
    """f_min = 1 - free after loading / free before: 1 - 10.31/78.52 = 0.869; a bit of cache on top."""
    text = (
        "[2025-05-11 09:12:01 TP0] Load weight begin. avail mem=78.52 GB\n"
        "[2025-05-11 09:13:01 TP0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=10.31 GB, mem usage=68.21 GB.\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )
    first = judge_report(text).findings[0]
    assert remedies(first)["--mem-fraction-static"] == "0.90"
    assert "0.869" in first.notes[0]


def test_sglang_s_own_minimum_is_taken(judge_report: Judge) -> None:
    text = (
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.75. Raise --mem-fraction-static "
        "above 0.78 (minimum viable = 1 - available/pre = 0.772). If using speculative decoding, draft weights are now counted.\n"
    )
    assert remedies(judge_report(text).findings[0])["--mem-fraction-static"] == "0.81"


def test_vllm_s_fraction_is_computed_from_its_budget_line(judge_report: Judge) -> None:
    """5.20 + 0.03 + 1.42 GiB and half a GiB of cache on an 8 GiB card."""
    text = (
        "the current vLLM instance can use total_gpu_memory (8.00GiB) x gpu_memory_utilization (0.70) = 5.60GiB\n"
        "model weights take 5.20GiB; non_torch_memory takes 0.03GiB; PyTorch activation peak memory takes 1.42GiB; "
        "the rest of the memory reserved for KV Cache is -1.05GiB.\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    first = judge_report(text).findings[0]
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--gpu-memory-utilization", "0.90")


def test_no_fraction_is_proposed_where_the_card_is_too_small(judge_report: Judge) -> None:
    text = (
        "the current vLLM instance can use total_gpu_memory (8.00GiB) x gpu_memory_utilization (0.90) = 7.20GiB\n"
        "model weights take 7.60GiB; non_torch_memory takes 0.03GiB; PyTorch activation peak memory takes 1.42GiB; "
        "the rest of the memory reserved for KV Cache is -1.85GiB.\n"
    )
    found = judge_report(text).findings[0]
    assert "--gpu-memory-utilization" not in remedies(found)
    assert "checkpoint" in remedies(found)


def test_the_fraction_goes_up_and_a_lower_one_is_named_as_vain(judge_report: Judge) -> None:
    first = judge_report("ValueError: No available memory for the cache blocks.\n").findings[0]
    assert remedies(first)["--gpu-memory-utilization"] == "higher"
    assert any("lower --gpu-memory-utilization" in vain.what for vain in first.not_remedies)


def test_a_pool_that_was_sized_beyond_what_is_free_goes_down(judge_report: Judge) -> None:
    text = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 4920, in _allocate_kv_cache_tensors
    tensor = torch.zeros(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 44.42 GiB of which 203.31 MiB is free.
"""
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    # 0.9 - (309 MiB + a GiB for the rest of the pool + 256 MiB) / 44.42 GiB
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--gpu-memory-utilization", "0.86")


def test_a_pool_that_is_full_at_run_time_is_no_proof(judge_report: Judge) -> None:
    text = "RuntimeError: Prefill out of memory. Try to lower your batch size.\nTry to allocate 4096 tokens.\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert order(first.remedies)[0].name == "--max-running-requests"


def test_much_memory_outside_torch_is_rather_another_process_s(judge_report: Judge) -> None:
    text = (
        "the current vLLM instance can use total_gpu_memory (24.00GiB) x gpu_memory_utilization (0.90) = 21.60GiB\n"
        "model weights take 7.60GiB; non_torch_memory takes 13.20GiB; PyTorch activation peak memory takes 1.42GiB; "
        "the rest of the memory reserved for KV Cache is -0.62GiB.\n"
    )
    first = judge_report(text).findings[0]
    assert first.certainty is Certainty.LIKELY
    assert "gpu-memory-taken" in first.rivals


def test_near_miss_a_capture_that_fails_after_the_cache_was_made(judge_report: Judge) -> None:
    text = "GPU KV cache size: 98,304 tokens\nCapturing CUDA graph shapes:  12%|#    | 8/67\nRuntimeError: CUDA error: out of memory\n"
    assert CAUSE not in [finding.cause for finding in judge_report(text).findings]


def test_near_miss_a_healthy_start(judge_report: Judge) -> None:
    text = "Available KV cache memory: 12.50 GiB\n# GPU blocks: 34032, # CPU blocks: 2048\nGPU KV cache size: 98,304 tokens\n"
    assert CAUSE not in [finding.cause for finding in judge_report(text).findings]


def test_near_miss_weights_that_do_not_fit(judge_report: Judge) -> None:
    text = "load_tensors: offloading 64 repeating layers to GPU\nllama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
    assert CAUSE not in [finding.cause for finding in judge_report(text).findings]


def test_tensorrt_llm_behind_the_triton_server(judge_report: Judge) -> None:
    text = (
        "[TensorRT-LLM][ERROR] Cannot allocate memory for kv cache\n"
        "E0901 10:01:25.331 1 model_lifecycle.cc:641] \"failed to load 'tensorrt_llm' version 1: Internal: unexpected error when creating modelInstanceState\"\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == ("gpu-oom-kv-cache", "tensorrt-llm")


def test_the_file_of_the_block_manager_is_the_cache(judge_report: Judge) -> None:
    text = "lmdeploy serve api_server m\n[TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/turbomind/models/llama/BlockManager.cc:122\n"
    assert judge_report(text).findings[0].cause == "gpu-oom-kv-cache"

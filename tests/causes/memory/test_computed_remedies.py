"""Remedies of the memory causes carry values: from the figures of the log, and from the calculator where the model is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

CONFIGS = json.loads((Path(__file__).parents[2] / "data" / "fit" / "configs.json").read_text(encoding="utf-8"))["configs"]  # fmt: skip
KIMI = {f"model.{name}": value for name, value in CONFIGS["moonshotai/Kimi-K2.6"].items()}
SEED = {**KIMI, "model_bytes": 595_140_000_000, "packages.sglang": "0.5.23", "server_args.tp_size": 8}
REFUSED = (
    "[2026-11-29 10:04:09] server_args=ServerArgs(model_path='/models/Kimi-K2.6', tp_size=8)\n"
    "[2026-11-29 10:05:00 TP0] Load weight begin. avail mem=93.52 GB\n"
    "[2026-11-29 10:09:00 TP0] Load weight end. elapsed=240.00 s, type=KimiK25ForConditionalGeneration, avail mem=21.82 GB, mem usage=71.70 GB.\n"
    "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.7578. Raise --mem-fraction-static "
    "above 0.7667 (minimum viable = 1 - 21.82/93.52 = 0.7667). If using speculative decoding, draft weights are now counted.\n"
)


def remedies(found: Finding) -> dict[str, str]:
    return {remedy.name: remedy.value for remedy in found.remedies}


def vain(found: Finding) -> str:
    return "\n".join(f"{each.what}: {each.why}" for each in found.not_remedies)


def test_two_lines_of_the_log_are_enough_for_a_value(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(REFUSED), "gpu-oom-kv-cache")
    assert remedies(found)["--mem-fraction-static"] == "0.80"
    assert any("0.767" in note for note in found.notes)
    assert any("Raise --mem-fraction-static" in note and "0.80" in note for note in found.notes)


def test_with_the_model_the_upper_bound_and_the_tokens_are_said(judge_report: Judge, finding: Find) -> None:
    """The documented example: 0.86, between 0.767 and about 0.90."""
    found = finding(judge_report(REFUSED, SEED), "gpu-oom-kv-cache")
    assert remedies(found)["--mem-fraction-static"] == "0.86"
    said = next(note for note in found.notes if "Computed" in note)
    assert "0.767" in said
    assert "tokens" in said


def test_a_model_that_says_nothing_usable_changes_nothing(judge_report: Judge, finding: Find) -> None:
    for lie in ({"model.num_hidden_layers": "many"}, {"model.num_hidden_layers": 10**9, "model.hidden_size": -1}):
        found = finding(judge_report(REFUSED, lie), "gpu-oom-kv-cache")
        assert remedies(found)["--mem-fraction-static"] == "0.80"


def test_an_advice_that_cannot_help_is_answered(judge_report: Judge, finding: Find) -> None:
    text = (
        "the current vLLM instance can use total_gpu_memory (8.00GiB) x gpu_memory_utilization (0.90) = 7.20GiB\n"
        "model weights take 7.60GiB; non_torch_memory takes 0.03GiB; PyTorch activation peak memory takes 1.42GiB; "
        "the rest of the memory reserved for KV Cache is -1.85GiB.\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    found = finding(judge_report(text), "gpu-oom-kv-cache")
    assert "as the engine advises" in vain(found)
    assert "--gpu-memory-utilization" not in remedies(found)


def test_the_context_that_fits_is_computed_where_the_message_has_not_got_it(judge_report: Judge, finding: Find) -> None:
    text = (
        "ValueError: To serve at least one request with the model's max seq len (262144), (17.16 GiB KV cache is needed, which is larger "
        "than the available KV cache memory (8.58 GiB). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.\n"
    )
    assert remedies(finding(judge_report(text), "gpu-oom-kv-cache"))["--max-model-len"] == "131072"


CAPTURE = (
    "[2026-11-29 10:05:00 TP0] Load weight begin. avail mem=78.00 GB\n"
    "[2026-11-29 10:09:00 TP0] Load weight end. elapsed=240.00 s, type=LlamaForCausalLM, avail mem=19.50 GB, mem usage=58.50 GB.\n"
    "[2026-11-29 10:09:09 TP0] KV Cache is allocated. #tokens: 60000, K size: 7.00 GB, V size: 7.00 GB\n"
    "[2026-11-29 10:09:10 TP0] Memory pool end. avail mem=5.46 GB\n"
    "[2026-11-29 10:09:12 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=5.40 GB\n"
    "[2026-11-29 10:09:12 TP0] Capture cuda graph bs [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/cuda_graph_runner.py", line 370, in capture\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 79.11 GiB of which 0.20 GiB is free. "
    "Including non-PyTorch memory, this process has 78.90 GiB memory in use.\n"
    "Exception: Capture cuda graph failed: CUDA out of memory. Possible solutions:\n"
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
)


def test_the_fraction_in_use_is_read_from_what_the_pool_left(judge_report: Judge, finding: Find) -> None:
    """1 - 5.46/78 = 0.93; 1.55 GiB lacked and a reserve: 0.90, while the engine proposes 0.8 or 0.7, where 0.75 is needed."""
    found = finding(judge_report(CAPTURE), "gpu-oom-graph-or-activation")
    assert remedies(found)["--mem-fraction-static"] == "0.90"
    assert remedies(found)["--cuda-graph-max-bs"] == "256"
    assert "0.7, as the engine's own hint says" in vain(found)
    assert "0.750" in vain(found)


def test_what_the_cache_has_not_got_cannot_be_taken_from_it(judge_report: Judge, finding: Find) -> None:
    text = CAPTURE.replace("avail mem=19.50 GB", "avail mem=6.00 GB")
    found = finding(judge_report(text), "gpu-oom-graph-or-activation")
    assert remedies(found)["--mem-fraction-static"] == "lower"
    assert any("cannot be taken from the cache" in note for note in found.notes)


def test_half_of_the_requests_that_the_sampler_was_warmed_up_with(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization`\n"
    found = finding(judge_report(text), "gpu-oom-graph-or-activation")
    assert remedies(found)["--max-num-seqs"] == "512"


def test_the_hint_of_a_failed_load_is_named_as_vain(judge_report: Judge, finding: Find) -> None:
    text = (
        "Starting to load model /models/llama-70b...\n"
        "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights, increasing --tensor-parallel-size.\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 0.20 GiB is free.\n"
    )
    found = finding(judge_report(text), "gpu-oom-weights")
    assert "the engine's own hint" in vain(found)


SMALL: dict[str, Any] = {
    "model.architectures": ["LlamaForCausalLM"], "model.num_hidden_layers": 80, "model.hidden_size": 8192,
    "model.intermediate_size": 28672, "model.num_attention_heads": 64, "model.num_key_value_heads": 8,
    "model.vocab_size": 128256, "model.max_position_embeddings": 8192, "model.torch_dtype": "bfloat16",
    "server_args.tensor_parallel_size": 2, "packages.vllm": "0.20.2",
}  # fmt: skip


def test_a_fraction_of_what_is_free_must_hold_the_weights(judge_report: Judge, finding: Find) -> None:
    """70 GB of weights per GPU do not go into the 40 GiB that are free, whatever the message advises."""
    text = (
        "ValueError: Free memory on device (40.00/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.20 GiB). "
        "Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
    )
    plain = finding(judge_report(text), "gpu-memory-taken")
    assert remedies(plain)["--gpu-memory-utilization"] == "0.49"
    known = finding(judge_report(text, SMALL), "gpu-memory-taken")
    assert "--gpu-memory-utilization" not in remedies(known)
    assert "as the engine's own hint says" in vain(known)


def test_host_caches_are_given_a_size_per_rank(judge_report: Judge, finding: Find) -> None:
    text = (
        "python -m sglang.launch_server --model-path /models/K --tp 8 --enable-hierarchical-cache --hicache-size 100\n"
        "Out of memory: Killed process 4242 (sglang::schedul) total-vm:900000000kB, anon-rss:120000000kB, file-rss:0kB, shmem-rss:0kB\n"
    )
    facts = {"mem_total_bytes": 512_000_000_000, "server_args.tp_size": 8}
    found = finding(judge_report(text, facts), "host-oom-kill")
    assert remedies(found)["--hicache-size"] == "26"

"""Remedies of the memory causes carry values: from the figures of the log, and from the calculator where the model is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding
from gpuwhy.remedies.ordering import order

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


V1 = (
    "(APIServer pid=1) INFO 09-20 10:00:00 [utils.py:328] non-default args: {'model_tag': 'm', 'gpu_memory_utilization': 0.5, 'max_model_len': 32768}\n"
    "(EngineCore_DP0 pid=77) INFO 09-20 10:00:40 [gpu_model_runner.py:2392] Model loading took 15.2683 GiB and 20.1 seconds\n"
    "(EngineCore_DP0 pid=77) INFO 09-20 10:01:10 [gpu_worker.py:298] Available KV cache memory: 2.51 GiB\n"
    "(EngineCore_DP0 pid=77) ERROR 09-20 10:01:10 [core.py:718] ValueError: To serve at least one request with the models's max seq len (32768), "
    "(4.50 GiB KV cache is needed, which is larger than the available KV cache memory (2.51 GiB). Based on the available memory, the estimated maximum "
    "model length is 18272. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
)


def test_the_card_is_at_least_what_the_fraction_of_it_held(judge_report: Judge, finding: Find) -> None:
    """(15.27 + 2.51) / 0.5 = 35.6 GiB at least, 1.99 lacking: 0.5 + 1.99/35.6 = 0.556 is enough whatever the card."""
    found = finding(judge_report(V1), "gpu-oom-kv-cache")
    assert remedies(found)["--gpu-memory-utilization"] == "0.56"
    assert any("1.99 GiB" in note for note in found.notes)


def test_a_fraction_below_the_default_comes_before_a_shorter_context(judge_report: Judge, finding: Find) -> None:
    assert order(finding(judge_report(V1), "gpu-oom-kv-cache").remedies)[0].name == "--gpu-memory-utilization"
    usual = V1.replace("'gpu_memory_utilization': 0.5", "'gpu_memory_utilization': 0.9").replace("15.2683", "61.0347")
    found = finding(judge_report(usual), "gpu-oom-kv-cache")
    assert [order(found.remedies)[at].name for at in (0, 1)] == ["--max-model-len", "--gpu-memory-utilization"]
    assert remedies(found)["--gpu-memory-utilization"] == "0.93"


def test_without_figures_it_is_said_what_is_missing(judge_report: Judge, finding: Find) -> None:
    text = "Loading model weights took 14.9595 GB\nValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    found = finding(judge_report(text), "gpu-oom-kv-cache")
    assert remedies(found)["--gpu-memory-utilization"] == "higher"
    assert any("nvidia-smi" in note and "14.96 GiB" in note for note in found.notes)


def test_figures_of_the_first_profiler(judge_report: Judge, finding: Find) -> None:
    """39.39 GiB, 32.55 without the cache; 2.89 GiB hold 15,808 tokens, so 32,768 take 5.99: 0.978 of the card, which none has."""
    text = (
        "vLLM API server version 0.6.4.post1\n"
        "Memory profiling results: total_gpu_memory=39.39GiB initial_memory_usage=28.10GiB peak_torch_memory=32.00GiB "
        "memory_usage_post_profile=28.15GiB non_torch_memory=0.55GiB kv_cache_size=2.89GiB gpu_memory_utilization=0.90\n"
        "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (15808). "
        "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
    )
    found = finding(judge_report(text), "gpu-oom-kv-cache")
    assert remedies(found)["--max-model-len"] == "15808"
    assert "--gpu-memory-utilization" not in remedies(found)
    assert "0.98 of the card" in vain(found)


def test_nothing_shrinks_a_cache_that_is_not_there(judge_report: Judge, finding: Find) -> None:
    """SGLang's fraction is used up by the weights: context, requests and the cache's format change nothing."""
    found = finding(judge_report(REFUSED), "gpu-oom-kv-cache")
    assert not {"--context-length", "--max-running-requests", "--kv-cache-dtype"} & set(remedies(found))
    assert "there is no cache that could be smaller" in vain(found)


def test_weights_that_no_fraction_holds_need_more_gpus(judge_report: Judge, finding: Find) -> None:
    text = (
        "[2026-03-10 10:00:00] server_args=ServerArgs(model_path='m', mem_fraction_static=0.6, tp_size=2)\n"
        "[2026-03-10 10:00:25 TP0] Load weight begin. avail mem=78.52 GB\n"
        "[2026-03-10 10:06:25 TP0] Load weight end. elapsed=360.00 s, type=X, avail mem=3.10 GB, mem usage=75.42 GB.\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.6\n"
    )
    found = finding(judge_report(text), "gpu-oom-kv-cache")
    assert (order(found.remedies)[0].name, order(found.remedies)[0].value) == ("--tp-size", "4")
    assert "as the engine advises" in vain(found)


def test_a_draft_before_the_pool_counts_and_the_fullest_rank_decides(judge_report: Judge, finding: Find) -> None:
    text = (
        "[2026-06-10 10:00:25 TP0] Load weight begin. avail mem=93.52 GB\n"
        "[2026-06-10 10:00:25 TP1] Load weight begin. avail mem=93.00 GB\n"
        "[2026-06-10 10:06:25 TP0] Load weight end. elapsed=360.00 s, type=X, avail mem=21.82 GB, mem usage=71.70 GB.\n"
        "[2026-06-10 10:06:25 TP1] Load weight end. elapsed=360.00 s, type=X, avail mem=21.30 GB, mem usage=71.70 GB.\n"
        "[2026-06-10 10:06:27 TP0] Load weight begin. avail mem=21.80 GB\n"
        "[2026-06-10 10:06:29 TP0] Load weight end. elapsed=2.00 s, type=D, avail mem=21.05 GB, mem usage=0.75 GB.\n"
        "[2026-06-10 10:06:27 TP1] Load weight begin. avail mem=21.30 GB\n"
        "[2026-06-10 10:06:29 TP1] Load weight end. elapsed=2.00 s, type=D, avail mem=20.55 GB, mem usage=0.75 GB.\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )
    found = finding(judge_report(text), "gpu-oom-kv-cache")
    assert any(f"{1 - 20.55 / 93.00:.3f}" in note for note in found.notes)


def test_a_restart_in_the_same_log_is_another_start(judge_report: Judge, finding: Find) -> None:
    start = (
        "[2026-06-10 10:00:25 TP0] Load weight begin. avail mem=78.00 GB\n"
        "[2026-06-10 10:06:25 TP0] Load weight end. elapsed=360.00 s, type=X, avail mem={} GB, mem usage=58.50 GB.\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )
    found = finding(judge_report(start.format("19.50") + start.format("9.00")), "gpu-oom-kv-cache")
    assert any("0.750" in note for note in found.notes)


def test_the_values_of_a_hint_are_weighed(judge_report: Judge, finding: Find) -> None:
    """0.8 has the right direction, and takes 0.10 x 78 GiB more from the cache than 0.90."""
    found = finding(judge_report(CAPTURE), "gpu-oom-graph-or-activation")
    assert "7.80 GiB more from the cache" in vain(found)


DRAFT = (
    "[2026-01-10 10:00:25 TP0] Load weight begin. avail mem=93.52 GB\n"
    "[2026-01-10 10:06:25 TP0] Load weight end. elapsed=360.00 s, type=X, dtype=torch.bfloat16, avail mem=21.82 GB, mem usage=71.70 GB.\n"
    "[2026-01-10 10:06:26 TP0] KV Cache is allocated. #tokens: 312000, KV size: 20.42 GB\n"
    "[2026-01-10 10:06:26 TP0] Memory pool end. avail mem=1.30 GB\n"
    "[2026-01-10 10:06:28 TP0] Load weight begin. avail mem=0.40 GB\n"
    "Traceback (most recent call last):\n"
    '  File "/sgl/python/sglang/srt/model_executor/model_runner.py", line 1000, in load_model\n'
    '  File "/sgl/python/sglang/srt/models/kimi_k25_eagle3.py", line 200, in __init__\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 560.00 MiB. GPU 0 has a total capacity of 94.97 GiB of which 400.00 MiB is free. "
    "Including non-PyTorch memory, this process has 94.56 GiB memory in use. Of the allocated memory 92.00 GiB is allocated by PyTorch, and 30 MiB is "
    "reserved by PyTorch but unallocated.\n"
)


def test_a_draft_after_the_pool_is_given_room_before_it_is_given_up(judge_report: Judge, finding: Find) -> None:
    """1 - 1.30/93.52 = 0.986 was used; 0.16 GiB lacked, a GiB for the rest of the draft and a reserve: 0.97."""
    found = finding(judge_report(DRAFT), "gpu-oom-weights")
    assert [(each.name, each.value) for each in order(found.remedies)[:2]] == [("--mem-fraction-static", "0.97"), ("--speculative-algorithm", "remove")]  # fmt: skip


def test_more_gpus_are_twice_as_many_at_least(judge_report: Judge, finding: Find) -> None:
    text = (
        "[2026-01-10 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2)\n"
        "[2026-01-10 10:00:25 TP0] Load weight begin. avail mem=138.29 GB\n"
        '  File "/sgl/python/sglang/srt/model_loader/loader.py", line 600, in load_model\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 139.81 GiB of which 700.00 MiB is free.\n"
    )
    found = finding(judge_report(text), "gpu-oom-weights")
    assert remedies(found)["--tp-size"] == "4"
    known = finding(judge_report(text, {"model_bytes": 900_000_000_000}), "gpu-oom-weights")
    assert remedies(known)["--tp-size"] == "8"


LLAMA = (
    "$ llama-server -m /models/q.gguf -ngl 99 -c 131072\n"
    "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4090) - 23000 MiB free\n"
    "print_info: n_layer          = 64\n"
)


def test_layers_of_llama_that_go_into_what_is_free(judge_report: Judge, finding: Find) -> None:
    """32 GiB of 64 layers, 23,000 MiB free less a GiB: 42."""
    text = LLAMA + (
        "load_tensors: offloading 64 repeating layers to GPU\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 32768.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
    )
    assert remedies(finding(judge_report(text), "gpu-oom-weights"))["--n-gpu-layers"] == "42"


def test_context_of_llama_beside_its_layers(judge_report: Judge, finding: Find) -> None:
    text = LLAMA + (
        "load_tensors:        CUDA0 model buffer size = 14000.00 MiB\n"
        "llama_context: n_ctx         = 131072\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 20480.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache\n"
    )
    assert remedies(finding(judge_report(text), "gpu-oom-kv-cache"))["--ctx-size"] == "50944"


def test_work_space_of_llama_is_halved_first(judge_report: Judge, finding: Find) -> None:
    text = (
        "llama_context: n_ubatch      = 2048\n"
        "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2566914048\n"
        "llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers\n"
    )
    found = finding(judge_report(text), "gpu-oom-graph-or-activation")
    assert (order(found.remedies)[0].name, order(found.remedies)[0].value) == ("--ubatch-size", "1024")


def test_a_host_cache_that_was_refused_shares_what_is_free(judge_report: Judge, finding: Find) -> None:
    text = (
        "[2026-01-10 10:00:00] server_args=ServerArgs(model_path='m', tp_size=8, enable_hierarchical_cache=True, hicache_size=100)\n"
        "ValueError: Not enough host memory available. Requesting 100.00 GB but only have 61.20 GB free. Please reduce the size of the hierarchical cache.\n"
    )
    found = finding(judge_report(text), "host-oom-kill")
    assert remedies(found)["--hicache-size"] == "7"
    assert "swap" not in remedies(found)  # pinned pages are never swapped out


def test_a_fraction_that_is_not_printed_is_named_as_the_default(judge_report: Judge, finding: Find) -> None:
    text = (
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 3000, in execute_model\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 79.11 GiB of which 0.20 GiB is free.\n"
    )
    found = finding(judge_report(text, {"packages.vllm": "0.33.0"}), "gpu-oom-graph-or-activation")
    assert remedies(found)["--gpu-memory-utilization"] == "0.89"
    assert any("default 0.92" in note and "0.03 off" in note for note in found.notes)


def test_fewer_pictures_where_the_encoder_is_measured(judge_report: Judge, finding: Find) -> None:
    text = (
        "INFO 06-11 10:00:01 [cli_args.py:309] non-default args: {'model': 'm', 'limit_mm_per_prompt': {'image': 20}, 'gpu_memory_utilization': 0.95}\n"
        'ERROR 06-11 10:00:50 [core.py:515]   File "/usr/lib/python3/dist-packages/vllm/v1/worker/gpu_model_runner.py", line 2100, in profile_run\n'
        "ERROR 06-11 10:00:50 [core.py:515]     dummy_encoder_outputs = self.model.get_multimodal_embeddings(\n"
        "ERROR 06-11 10:00:50 [core.py:515] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 47.38 GiB "
        "of which 2.10 GiB is free.\n"
    )
    found = finding(judge_report(text), "gpu-oom-graph-or-activation")
    assert (order(found.remedies)[0].name, order(found.remedies)[0].value) == ("--limit-mm-per-prompt", '{"image": 10}')


def test_repacking_is_not_quantising(judge_report: Judge, finding: Find) -> None:
    text = (
        '  File "/opt/vllm/vllm/model_executor/layers/quantization/awq_marlin.py", line 400, in process_weights_after_loading\n'
        "    marlin_w13_qweight = ops.awq_marlin_moe_repack(\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 700.00 MiB. GPU 0 has a total capacity of 94.97 GiB of which 300.00 MiB is free.\n"
    )
    found = finding(judge_report(text), "gpu-oom-weights")
    assert any("twice" in note for note in found.notes)
    assert not any("unquantised" in note for note in found.notes)


def test_on_shared_memory_the_fraction_is_what_the_host_leaves(judge_report: Judge, finding: Find) -> None:
    text = (
        "INFO device NVIDIA GB10\n"
        "ValueError: Free memory on device cuda:0 (98.10/121.69 GiB) on startup is less than desired GPU memory utilization (0.92, 111.95 GiB).\n"
    )
    found = finding(judge_report(text), "gpu-memory-taken")
    assert (order(found.remedies)[0].name, order(found.remedies)[0].value) == ("--gpu-memory-utilization", "0.79")


def test_the_start_command_counts_where_the_log_echoes_no_arguments(judge_report: Judge, finding: Find) -> None:
    text = "\n".join(REFUSED.splitlines()[1:]) + "\n"
    facts = {key: value for key, value in SEED.items() if not key.startswith("server_args.")}
    found = finding(judge_report(text, {**facts, "command": "python -m sglang.launch_server --model-path /m/K --tp 8"}), "gpu-oom-kv-cache")  # fmt: skip
    assert any("Computed" in note for note in found.notes)

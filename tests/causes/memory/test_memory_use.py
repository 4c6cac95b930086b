"""Findings of memory carry where it went: as computed where the model is known, else by the figures that the log has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.causes.memory.test_computed_remedies import CAPTURE, REFUSED, SEED

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding
from gpuwhy.model.memory_use import MemoryUse

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

FULL_CARD = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 3 has a total capacity of 23.55 GiB of which "
    "120.50 MiB is free. Process 4711 has 3.00 GiB memory in use. Including non-PyTorch memory, this process has 20.40 GiB memory in "
    "use. Of the allocated memory 19.20 GiB is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but unallocated.\n"
)
PROFILED = (
    "the current vLLM instance can use total_gpu_memory (8.00GiB) x gpu_memory_utilization (0.90) = 7.20GiB\n"
    "model weights take 5.60GiB; non_torch_memory takes 0.03GiB; PyTorch activation peak memory takes 1.42GiB; "
    "the rest of the memory reserved for KV Cache is 0.15GiB.\n"
    "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (2400). "
    "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
)
REFUSED_BY_FREE = (
    "ValueError: Free memory on device cuda:0 (10.20/79.19 GiB) on startup is less than desired GPU memory utilization "
    "(0.9, 71.27 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
)
KILLED = (
    "server_args=ServerArgs(model_path='/models/Kimi-K2.6', tp_size=8)\n"
    "Loading safetensors checkpoint shards:  30% Completed\n"
    "Out of memory: Killed process 812 (sglang::schedul) total-vm:900kB, anon-rss:402653184kB, file-rss:0kB, shmem-rss:0kB\n"
)


def sizes(use: MemoryUse) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in use.parts:
        found[part.kind] = round(found.get(part.kind, 0.0) + part.expected, 2)
    return found


def test_the_estimate_has_the_figures_of_the_log_in_it(judge_report: Judge, finding: Find) -> None:
    (use,) = finding(judge_report(REFUSED, SEED), "gpu-oom-kv-cache").memory
    assert (use.place, use.basis, use.unit) == ("gpu", "computed", "GiB")
    assert sizes(use)["weights"] == pytest.approx(71.7, abs=0.02)
    assert {"context", "communication", "graphs", "kv-cache", "activation"} <= set(sizes(use))
    assert any(each.startswith("--mem-fraction-static 0.7578: between 0.767") for each in use.says)


def test_a_gpu_whose_size_is_not_stated_is_said_to_be_guessed(judge_report: Judge, finding: Find) -> None:
    (use,) = finding(judge_report(REFUSED, SEED), "gpu-oom-kv-cache").memory
    assert use.total == pytest.approx(94.52)
    assert any("size of the GPU" in each for each in use.missing)


def test_sglangs_own_lines_are_enough(judge_report: Judge, finding: Find) -> None:
    (use,) = finding(judge_report(REFUSED), "gpu-oom-kv-cache").memory
    assert use.basis == "log"
    assert use.total == pytest.approx(93.52)
    assert sizes(use) == {"weights": 71.7}
    assert "what was free" in use.title.lower()


def test_vllms_profile_is_enough(judge_report: Judge, finding: Find) -> None:
    (use,) = finding(judge_report(PROFILED), "gpu-oom-kv-cache").memory
    assert sizes(use) == {"weights": 5.6, "activation": 1.42, "own": 0.03, "kv-cache": 0.15, "reserve": 0.8}
    assert sum(sizes(use).values()) == pytest.approx(8.0)


def test_pytorchs_message_says_who_held_the_card(judge_report: Judge, finding: Find) -> None:
    use = finding(judge_report(FULL_CARD), "gpu-oom-graph-or-activation").memory[-1]
    assert use.title.startswith("GPU 3 when the allocation failed")
    assert sizes(use) == {"taken": 3.03, "torch": 19.2, "idle": 0.3, "own": 0.9}
    assert sum(part.expected for part in use.parts) == pytest.approx(23.55 - 120.5 / 1024, abs=0.01)


def test_a_capture_that_fails_shows_start_and_failure(judge_report: Judge, finding: Find) -> None:
    uses = finding(judge_report(CAPTURE), "gpu-oom-graph-or-activation").memory
    assert uses
    assert sizes(uses[0])["weights"] == pytest.approx(58.5)


def test_what_others_hold_at_the_start_is_a_bar(judge_report: Judge, finding: Find) -> None:
    (use,) = finding(judge_report(REFUSED_BY_FREE), "gpu-memory-taken").memory
    assert sizes(use) == {"taken": 68.99}
    (computed,) = finding(judge_report(REFUSED_BY_FREE, {**SEED, "packages.vllm": "0.20.2"}), "gpu-memory-taken").memory
    assert sizes(computed)["taken"] == 68.99
    assert sizes(computed)["weights"] > 60


def test_a_killed_load_shows_the_host(judge_report: Judge, finding: Find) -> None:
    (use,) = finding(judge_report(KILLED, {**SEED, "mem_total_bytes": 256 * 10**9}), "host-oom-kill").memory
    assert (use.place, use.unit) == ("host", "GB")
    assert use.total == pytest.approx(256)
    assert sizes(use)["page-cache"] == pytest.approx(595.14)
    assert any(each.startswith("256 GB:") for each in use.says)


def test_a_size_that_does_not_divide_shows_what_it_would_take(judge_report: Judge, finding: Find) -> None:
    log = (
        "vllm serve /models/Kimi-K2.6 -tp 6\nINFO vLLM API server version 0.20.2\n"
        "ValueError: Total number of attention heads (64) must be divisible by tensor parallel size (6).\n"
    )
    known = {
        **SEED,
        "server_args.tp_size": 6,
        "packages.vllm": "0.20.2",
        "gpus": "6 x NVIDIA H200",
        "gpu": "NVIDIA H200",
    }
    (use,) = finding(judge_report(log, known), "parallel-size-invalid").memory
    assert sizes(use)["weights"] > 80
    assert "64 attention heads do not divide by 6" in use.says[0]
    assert not any("it starts" in each for each in use.says)


@pytest.mark.parametrize(
    "lie", [{"model.num_hidden_layers": "many"}, {"model.num_hidden_layers": 10**9, "model.hidden_size": -1}]
)
def test_a_model_that_says_nothing_usable_leaves_the_log(judge_report: Judge, finding: Find, lie: dict[str, object]) -> None:  # fmt: skip
    (use,) = finding(judge_report(REFUSED, lie), "gpu-oom-kv-cache").memory
    assert use.basis == "log"


@pytest.mark.parametrize(
    "figures",
    ["of which 99.00 GiB is free. Of the allocated memory 1.00 GiB is allocated by PyTorch", "of which 1.00 GiB is free. Of the allocated memory 80.00 GiB is allocated by PyTorch"],
)  # fmt: skip
def test_figures_that_do_not_add_up_are_not_drawn(judge_report: Judge, finding: Find, figures: str) -> None:
    text = f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.55 GiB {figures}.\n"
    for found in judge_report(text).findings:
        assert found.memory == ()

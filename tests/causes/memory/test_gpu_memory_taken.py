"""gpu-memory-taken: figures and process lists that show another holder."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "gpu-memory-taken"
LESS = (
    "ValueError: Free memory on device cuda:0 ({free}/23.52 GiB) on startup is less than desired GPU memory utilization (0.9, 21.17 GiB). "
    "Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
)
BARE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def values(found: Finding) -> dict[str, str]:
    return {remedy.name: remedy.value for remedy in found.remedies}


def test_the_share_that_is_free_is_computed(judge_report: Judge) -> None:
    """9.41 of 23.52 GiB are 40 %: a hundredth is left."""
    first = judge_report(LESS.format(free="9.41")).findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, "other-process", Certainty.PROVEN)
    assert values(first)["--gpu-memory-utilization"] == "0.39"
    assert values(first)["other process"] == "stop"


def test_a_desktop_s_share_is_no_proof(judge_report: Judge) -> None:
    first = judge_report(LESS.format(free="21.02")).findings[0]
    assert first.certainty is Certainty.LIKELY
    assert "desktop" in first.notes[0]


@pytest.mark.parametrize(
    "line",
    [
        "AssertionError: Error in memory profiling. Initial free memory 82.94 GiB, current free memory 90.17 GiB. This happens when other processes sharing the same container release GPU memory",
        "AssertionError: Error in memory profiling. Initial free memory 25383206912, current free memory 25389498368. This happens when the GPU memory was not properly cleaned up before initializing the vLLM instance.",
    ],
)  # fmt: skip
def test_memory_that_moves(judge_report: Judge, line: str) -> None:
    text = "(EngineCore pid=1) ERROR EngineCore failed to start.\n" + line + "\n"
    first = judge_report(text).findings[0]
    assert first.cause == CAUSE
    assert first.evidence[0].quote == line
    assert "--gpu-memory-utilization" not in values(first)
    assert any("container" in vain.what for vain in first.not_remedies)


def test_sglang_s_unbalanced_gpus(judge_report: Judge) -> None:
    text = "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=40.1\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


def test_torch_lists_the_other_process(judge_report: Judge) -> None:
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 189.81 MiB is free. "
        "Process 1213 has 71.20 GiB memory in use. Including non-PyTorch memory, this process has 7.68 GiB memory in use.\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)
    assert "71.23 GiB of the card" in first.evidence[0].statement


def test_the_old_wording_of_torch_too(judge_report: Judge) -> None:
    text = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.65 GiB total capacity; 3.90 GiB already allocated; "
        "11.31 MiB free; 4.02 GiB reserved in total by PyTorch)\n"
    )
    assert judge_report(text).findings[0].cause == CAUSE


def test_the_first_touch_of_the_gpu(judge_report: Judge) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py", line 408, in set_device\n'
        "    torch._C._cuda_setDevice(device)\n"
        "RuntimeError: CUDA error: out of memory\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


def test_a_bare_message_asks_who_holds_the_memory(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(BARE), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"gpu_processes", "env.CUDA_VISIBLE_DEVICES"} <= {missing.key for missing in found.missing}


def test_the_process_list_decides(judge_report: Judge) -> None:
    first = judge_report(
        BARE, {"gpu_processes": ["GPU 0: process 88 (python -m other.server) holds 71234 MiB"]}
    ).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)
    stop = next(remedy for remedy in first.remedies if remedy.kind == "service")
    assert "other.server" in stop.summary


def test_an_empty_process_list_rules_it_out(judge_report: Judge) -> None:
    judgement = judge_report(BARE, {"gpu_processes": []})
    assert CAUSE not in [found.cause for found in judgement.findings]
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_a_desktop_in_the_process_list_is_no_reason(judge_report: Judge) -> None:
    judgement = judge_report(BARE, {"gpu_processes": ["GPU 0: process 900 (/usr/lib/xorg/Xorg) holds 310 MiB"]})
    assert judgement.findings[0].cause != CAUSE


def test_little_free_before_loading(judge_report: Judge) -> None:
    text = (
        "[TP0] Load weight begin. avail mem=31.02 GB\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 211.88 MiB is free.\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert "31.02 GiB of 79.11 GiB" in first.title


def test_busy_devices_are_only_possible(judge_report: Judge) -> None:
    first = judge_report("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.POSSIBLE)


def test_near_miss_the_own_process_in_a_container_is_listed_by_its_number(judge_report: Judge) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 10, in load_model\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 211.88 MiB is free. "
        "Process 233 has 78.89 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch, and 20.95 MiB is reserved by PyTorch but unallocated.\n"
    )
    judgement = judge_report(text)
    assert judgement.findings[0].cause == "gpu-oom-weights"
    assert CAUSE not in [found.cause for found in judgement.findings]


def test_near_miss_a_port_that_is_busy(judge_report: Judge) -> None:
    text = "OSError: [Errno 16] Device or resource busy\nOSError: [Errno 98] Address already in use\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_the_server_itself_in_the_process_list_is_no_proof(judge_report: Judge, finding: Find) -> None:
    text = "vllm serve m\nvllm.v1.engine: start\n" + BARE
    found = finding(
        judge_report(text, {"gpu_processes": ["GPU 0: process 88 (VLLM::EngineCore) holds 71234 MiB"]}), CAUSE
    )
    assert found.certainty is not Certainty.PROVEN


def test_left_over_workers_are_strangers(judge_report: Judge) -> None:
    text = "vllm serve m\nvllm.v1.engine: start\n" + BARE
    facts = {"gpu_processes": ["GPU 0: leftover VLLM::EngineCore of the previous start, 71234 MiB"]}
    assert judge_report(text, facts).findings[0].certainty is Certainty.PROVEN


def test_on_unified_memory_the_host_s_pages_are_no_other_process_s(judge_report: Judge) -> None:
    text = (
        "GPU 0: NVIDIA GB10\nTraceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 10, in load_model\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 119.64 GiB of which 1.10 GiB is free. "
        "Including non-PyTorch memory, this process has 60.20 GiB memory in use.\n"
    )
    judgement = judge_report(text)
    assert judgement.findings[0].cause == "gpu-oom-weights"
    assert Certainty.PROVEN not in [found.certainty for found in judgement.findings]


def test_nccl_finds_no_memory_and_somebody_has_it(judge_report: Judge) -> None:
    text = (
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, unhandled cuda error, NCCL version 2.19.3\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nFailed to CUDA calloc async 608 bytes\n"
    )
    alone = judge_report(text).findings
    assert all(found.certainty is Certainty.POSSIBLE for found in alone)
    held = {"gpu_processes": ["GPU 0: process 41 (python3) holds 78000 MiB"]}
    assert judge_report(text, held).findings[0].cause == "gpu-memory-taken"


def test_a_handle_that_cublas_cannot_make(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\n"
    found = finding(judge_report(text), "gpu-memory-taken")
    assert found.certainty.value == "possible"
    assert "gpu_processes" in [each.key for each in found.missing]


def test_little_in_use_asks_for_a_little_less(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: Free memory on device cuda:0 (21.40/23.99 GiB) on startup is less than desired GPU memory utilization (0.92, 22.08 GiB).\n"
    found = finding(judge_report(text), "gpu-memory-taken")
    assert (order(found.remedies)[0].name, order(found.remedies)[0].value) == ("--gpu-memory-utilization", "0.88")


def test_no_fraction_answers_a_comparison_of_gpus(judge_report: Judge, finding: Find) -> None:
    text = (
        "[2026-01-10 10:00:00] server_args=ServerArgs(model_path='m', mem_fraction_static=None, tp_size=2)\n"
        "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min_per_gpu_memory=40.12, "
        "local_gpu_memory=78.30, local_gpu_memory * 0.9=70.47\n"
    )
    found = finding(judge_report(text), "gpu-memory-taken")
    assert "40.12" in found.title
    assert "--mem-fraction-static" not in {each.name for each in found.remedies}
    assert any("whatever the fraction" in each.why for each in found.not_remedies)


def test_an_empty_cache_beside_a_card_that_others_hold_is_its_echo(judge_report: Judge) -> None:
    text = (
        "ERROR 02-10 16:01:03 engine.py:389] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 14.00 MiB is free. "
        "Process 31277 has 21.90 GiB memory in use. Including non-PyTorch memory, this process has 1.71 GiB memory in use.\n"
    )
    found = judge_report(text).findings
    assert found[0].cause == "gpu-memory-taken"
    assert all(each.certainty is not Certainty.PROVEN for each in found if each.cause == "gpu-oom-kv-cache")

"""The stage of a failed allocation: frames first, then the last progress line, and what the message's figures say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.causes import Case, catalogue
from gpuwhy.causes.memory import _allocation as allocations
from gpuwhy.causes.memory import _budget as budgets
from gpuwhy.causes.memory import _options as engine_options
from gpuwhy.causes.memory._allocation import Allocation
from gpuwhy.causes.memory._stage import Stage, StageRead, stage_of
from gpuwhy.diagnosis import Judgement
from gpuwhy.diagnosis.matching import SignFinder
from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.fact import Facts

GIB = 1 << 30
Judge = Callable[..., Judgement]
CAUSE = "gpu-oom-graph-or-activation"
BARE = "RuntimeError: CUDA error: out of memory\n"


def case_of(text: str) -> Case:
    incident = find_incidents([read_bytes(text.encode(), "log")])
    return Case(incident, Facts(), SignFinder([catalogue()[CAUSE]]).find(incident).get(CAUSE, {}))


def read_stage(text: str) -> StageRead:
    case = case_of(text)
    failed = allocations.failed_allocation(case)
    assert failed is not None
    return stage_of(case, failed.match)


def read_allocation(text: str) -> Allocation:
    failed = allocations.failed_allocation(case_of(text))
    assert failed is not None
    return failed


@pytest.mark.parametrize(
    ("progress", "stage"),
    [
        ("server_args=ServerArgs(model_path='/m')", Stage.START),
        ("Load weight begin. avail mem=78.52 GB", Stage.LOADING),
        ("Loading safetensors checkpoint shards:  50% Completed | 4/8", Stage.LOADING),
        ("Model loading took 14.2488 GiB and 5.33 seconds", Stage.PROFILING),
        ("Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=10.31 GB", Stage.PROFILING),
        ("KV Cache is allocated. #tokens: 1200, K size: 1.20 GB, V size: 1.20 GB", Stage.WARMUP),
        ("GPU KV cache size: 98,304 tokens", Stage.WARMUP),
        ("Capture cuda graph begin. This can take up to several minutes. avail mem=3.10 GB", Stage.CAPTURE),
        ("Graph capturing finished in 20 secs, took 0.50 GiB", Stage.WARMUP),
        ("INFO:     Application startup complete.", Stage.SERVING),
        ("The server is fired up and ready to roll!", Stage.SERVING),
        ("hello", Stage.UNKNOWN),
    ],
)
def test_the_last_progress_line_tells(progress: str, stage: Stage) -> None:
    assert read_stage(progress + "\n" + BARE).stage is stage


def test_the_nearest_progress_line_counts() -> None:
    text = (
        "Load weight begin. avail mem=78.52 GB\nLoad weight end. avail mem=10.31 GB\nCapturing CUDA graphs:   3%\n"
        + BARE
    )
    assert read_stage(text).stage is Stage.CAPTURE


def test_a_frame_outranks_progress() -> None:
    text = (
        "INFO:     Application startup complete.\nTraceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 10, in load_model\n' + BARE
    )
    found = read_stage(text)
    assert (found.stage, found.is_by_frame) == (Stage.LOADING, True)


def test_a_profile_run_is_one_although_it_executes_the_model() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 10, in determine_available_memory\n'
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 20, in execute_model\n'
        + BARE
    )
    assert read_stage(text).stage is Stage.PROFILING


def test_figures_of_a_message() -> None:
    found = read_allocation(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 79.11 GiB of which 512.00 MiB is free. "
        "Including non-PyTorch memory, this process has 70.00 GiB memory in use. Of the allocated memory 60.00 GiB is allocated by PyTorch, "
        "and 2.50 GiB is reserved by PyTorch but unallocated.\n"
    )
    assert (found.asked, found.free, found.device) == (7 * GIB // 4, GIB // 2, 3)
    assert found.own == 70 * GIB
    assert found.reserved == 125 * GIB // 2
    assert found.shortfall == 5 * GIB // 4
    assert found.is_fragmented
    assert found.is_held_by_others is True


def test_a_message_that_is_broken_over_lines() -> None:
    found = read_allocation(
        "torch.OutOfMemoryError: Tried to allocate 394.00 MiB.\nGPU 0 has a total capacty of 21.48 GiB of which 286.31 MiB is free.\n"
    )
    assert (found.asked, found.device) == (394 << 20, 0)
    assert found.total is not None
    assert found.is_held_by_others is None


def test_the_wording_before_torch_2() -> None:
    found = read_allocation(
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.65 GiB total capacity; 22.60 GiB already allocated; "
        "31.44 MiB free; 22.90 GiB reserved in total by PyTorch)\n"
    )
    assert found.is_held_by_others is False


def test_a_wrapper_without_figures_leads_to_the_line_with_them() -> None:
    found = read_allocation(
        BARE
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 GiB is free.\n"
    )
    assert found.total is not None


@pytest.mark.parametrize(
    "line",
    [
        "Out of memory: Killed process 12 (python3) total-vm:1kB",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "cc1plus: out of memory allocating 65536 bytes after a total of 3123 bytes",
        "A large batch may lead to CUDA out of memory errors",
        "INFO: retrying after CUDA out of memory",
    ],
)
def test_what_is_no_failed_allocation_of_the_gpu(line: str) -> None:
    assert allocations.failed_allocation(case_of(line + "\n")) is None


def test_sglang_s_smallest_fraction() -> None:
    text = "Load weight begin. avail mem=80.00 GB\nLoad weight end. type=X, dtype=y, avail mem=20.00 GB, mem usage=60.00 GB.\n"
    assert budgets.read_budget(case_of(text)).smallest_static_fraction == pytest.approx(0.75)


def test_figures_of_a_vllm_start() -> None:
    text = (
        "Free memory on device (78.60/79.11 GiB) on startup. Desired GPU memory utilization is (0.9, 71.20 GiB). Actual usage is 14.25 GiB for weight, "
        "5.10 GiB for peak activation, 0.30 GiB for non-torch memory, and 0.50 GiB for CUDAGraph memory.\n"
    )
    budget = budgets.read_budget(case_of(text))
    assert budget.used == round(14.25 * GIB) + round(5.10 * GIB) + round(0.30 * GIB)
    assert budget.total == round(79.11 * GIB)


@pytest.mark.parametrize(
    ("text", "fraction"),
    [
        ("vllm serve m --gpu-memory-utilization 0.95", 0.95),
        ("gpu_memory_utilization=0.8, max_model_len=4096", 0.8),
        ("x gpu_memory_utilization (0.70) = 5.60GiB", 0.7),
        ("python -m sglang.launch_server --mem-fraction-static=0.85", 0.85),
        ("vllm serve m", None),
    ],
)
def test_the_fraction_in_use(text: str, fraction: float | None) -> None:
    assert engine_options.fraction_in_use(case_of(text + "\n")) == fraction


def test_fractions_are_rounded_to_the_safe_side() -> None:
    assert engine_options.lowered(0.95, GIB, 80 * GIB) == "0.93"
    assert engine_options.lowered(None, GIB, 80 * GIB) == "lower"
    assert engine_options.lowered(0.9, 80 * GIB, 80 * GIB) == "lower"
    assert engine_options.raised(0.861) == "0.87"
    assert engine_options.raised(0.99) == "higher"
    assert engine_options.raised(None) == "higher"


def test_a_handle_that_is_made_late_tells_no_start(judge_report: Judge) -> None:
    text = (
        "INFO 11-20 09:22:14 model_runner.py:1400] Capturing the model for CUDA graphs.\n"
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"
    )
    assert judge_report(text).findings[0].cause == "gpu-oom-graph-or-activation"
    alone = text.partition("\n")[2]
    assert judge_report(alone).findings[0].cause != "gpu-oom-weights"


@pytest.mark.parametrize(
    "above",
    [
        "self.quant_method.create_weights(\n    weight = Parameter(torch.empty(sum(sizes)))\n",
        "  model.load_weights(self._get_all_weights(model_config, model))\n",
        "linear.py create_weights\n",
        "create_weights_fp8(layer)\n",
    ],
)
def test_a_call_pasted_without_its_frame_shows_loading(judge_report: Judge, above: str) -> None:
    read = read_stage(above + BARE)
    assert (read.stage, read.is_by_frame) == (Stage.LOADING, True)
    assert judge_report(above + BARE).findings[0].cause == "gpu-oom-weights"


def test_a_call_far_above_or_quoted_in_a_sentence_shows_nothing() -> None:
    far = "self.load_weights(model)\n" + "a line of something else\n" * 30
    assert read_stage(far + BARE).stage is Stage.UNKNOWN
    assert read_stage("load_weights took 3.1 s\n" + BARE).stage is Stage.UNKNOWN

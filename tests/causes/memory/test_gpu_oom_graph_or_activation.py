"""gpu-oom-graph-or-activation: after the cache was sized; the stage decides, and the fraction goes down."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "gpu-oom-graph-or-activation"
FRAME = '  File "/opt/venv/lib/python3.12/site-packages/{path}", line 10, in {function}\n'


def traceback(path: str, function: str, message: str) -> str:
    return "Traceback (most recent call last):\n" + FRAME.format(path=path, function=function) + message + "\n"


OWN = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.20 GiB is free. "
    "Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 74.00 GiB is allocated by PyTorch, "
    "and 1.50 GiB is reserved by PyTorch but unallocated."
)


@pytest.mark.parametrize(
    ("text", "component"),
    [
        ("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs`", "vllm"),
        ("Server error: Not enough memory to handle 4145 prefill tokens. You need to decrease `--max-batch-prefill-tokens`", "text-generation-inference"),
        ("llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers", "llama.cpp"),
        ("ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2415919104", "llama.cpp"),
        ("The following component could not be created: Model resources created during usage", "tensorrt-llm"),
    ],
)  # fmt: skip
def test_messages_that_name_the_step(judge_report: Judge, text: str, component: str) -> None:
    first = judge_report(text + "\n").findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, component, Certainty.PROVEN)


@pytest.mark.parametrize(
    ("path", "function"),
    [
        ("sglang/srt/model_executor/cuda_graph_runner.py", "capture"),
        ("vllm/v1/worker/gpu_model_runner.py", "capture_model"),
        ("vllm/v1/worker/gpu_model_runner.py", "_dummy_sampler_run"),
        ("vllm/v1/worker/gpu_model_runner.py", "profile_run"),
        ("vllm/v1/worker/gpu_model_runner.py", "execute_model"),
        ("sglang/srt/managers/scheduler.py", "event_loop_overlap"),
        ("vllm/v1/attention/backends/flashinfer.py", "_get_workspace_buffer"),
    ],
)
def test_frames_show_the_stage(judge_report: Judge, path: str, function: str) -> None:
    first = judge_report(traceback(path, function, OWN)).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)
    assert function in first.evidence[0].quote


def test_the_last_progress_line_shows_the_stage_without_frames(judge_report: Judge) -> None:
    text = "GPU KV cache size: 98,304 tokens\nCapturing CUDA graph shapes:  12%|#    | 8/67\nRuntimeError: CUDA error: out of memory\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert any("Capturing CUDA graph" in evidence.quote for evidence in first.evidence)


def test_a_bare_message_is_only_possible_and_asks(judge_report: Judge, finding: Find) -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.\n"
    judgement = judge_report(text)
    assert {found.certainty for found in judgement.findings} == {Certainty.POSSIBLE}
    found = finding(judgement, CAUSE)
    assert "gpu_processes" in [missing.key for missing in found.missing]
    assert {"gpu-oom-weights", "gpu-memory-taken"} <= set(found.rivals)


def test_the_fraction_goes_down_by_what_was_lacking(judge_report: Judge) -> None:
    """1.75 GiB asked for, 1.20 free: 0.55 GiB and 0.25 in reserve are 1.0 % of 79.11 GiB, from 0.95 to 0.93."""
    text = "vllm serve model --gpu-memory-utilization 0.95\n" + traceback(
        "vllm/v1/worker/gpu_model_runner.py", "execute_model", OWN
    )
    first = judge_report(text).findings[0]
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--gpu-memory-utilization", "0.93")
    assert any("higher --gpu-memory-utilization" in vain.what for vain in first.not_remedies)


def test_sglang_lowers_its_graphs_first(judge_report: Judge) -> None:
    text = (
        traceback("sglang/srt/model_executor/cuda_graph_runner.py", "capture", OWN)
        + "Exception: Capture cuda graph failed: CUDA out of memory.\nPossible solutions:\n1. set --mem-fraction-static to a smaller value\n"
    )
    first = judge_report(text).findings[0]
    assert [remedy.name for remedy in order(first.remedies)[:2]] == ["--cuda-graph-max-bs", "--mem-fraction-static"]


def test_a_profile_run_takes_fewer_tokens_and_no_other_fraction_first(judge_report: Judge) -> None:
    first = judge_report(traceback("vllm/v1/worker/gpu_model_runner.py", "profile_run", OWN)).findings[0]
    assert order(first.remedies)[0].name == "--max-num-batched-tokens"


def test_the_last_straw_is_named_as_such(judge_report: Judge) -> None:
    first = judge_report(traceback("vllm/v1/worker/gpu_model_runner.py", "execute_model", OWN)).findings[0]
    assert "1.75 GiB is the request that failed" in first.notes[0]


def test_some_hundred_idle_mib_are_no_fragmentation(judge_report: Judge) -> None:
    first = judge_report(traceback("vllm/v1/worker/gpu_model_runner.py", "execute_model", OWN)).findings[0]
    assert "PYTORCH_CUDA_ALLOC_CONF" not in [remedy.name for remedy in first.remedies]
    assert any("expandable_segments" in vain.what for vain in first.not_remedies)


def test_gigabytes_that_are_reserved_and_idle_are_fragmentation(judge_report: Judge) -> None:
    text = traceback(
        "vllm/v1/worker/gpu_model_runner.py", "execute_model", OWN.replace("1.50 GiB is reserved", "9.50 GiB is reserved")
    )  # fmt: skip
    first = judge_report(text).findings[0]
    assert order(first.remedies)[0].name == "PYTORCH_CUDA_ALLOC_CONF"
    assert "all-reduce" in order(first.remedies)[0].limits[0]


def test_near_miss_a_capture_that_fails_for_another_reason(judge_report: Judge) -> None:
    text = (
        "RuntimeError: Triton Error [CUDA]: device kernel image is invalid\n"
        "Exception: Capture cuda graph failed: Triton Error [CUDA]: device kernel image is invalid\n"
        "Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    )
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_near_miss_triton_s_shared_memory(judge_report: Judge) -> None:
    text = "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376.\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_near_miss_other_makers_gpus(judge_report: Judge) -> None:
    text = (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24 GiB.\n"
    )
    assert judge_report(text).findings == ()


def test_near_miss_memory_of_others(judge_report: Judge, finding: Find) -> None:
    """The process itself has 7.68 GiB of 79."""
    text = traceback(
        "vllm/v1/worker/gpu_model_runner.py",
        "execute_model",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 189.81 MiB is free. "
        "Process 1213 has 71.20 GiB memory in use. Including non-PyTorch memory, this process has 7.68 GiB memory in use.",
    )
    judgement = judge_report(text)
    assert judgement.findings[0].cause == "gpu-memory-taken"
    assert finding(judgement, CAUSE).certainty is Certainty.POSSIBLE


def test_advice_and_help_texts_are_no_failure(judge_report: Judge) -> None:
    text = "INFO: if you see CUDA out of memory, lower --mem-fraction-static\nA large batch may lead to CUDA out of memory errors\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_what_was_tried_and_helped_comes_first(judge_report: Judge) -> None:
    text = traceback("vllm/v1/worker/gpu_model_runner.py", "execute_model", OWN)
    first = judge_report(
        text, {"tests.--max-num-seqs 64": "works for a day", "tests.--enforce-eager": "still fails"}
    ).findings[0]
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--max-num-seqs", "64")
    assert "--enforce-eager" not in [remedy.name for remedy in first.remedies]


def test_a_request_that_ends_in_an_error_shows_that_the_server_was_up(judge_report: Judge) -> None:
    text = 'RuntimeError: CUDA out of memory. Tried to allocate 4.50 GiB\nINFO: 127.0.0.1 - "POST /generate HTTP/1.1" 500\n'
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


def test_an_option_that_the_message_names_comes_first(judge_report: Judge) -> None:
    text = "ERROR warmup: text_generation_client: Server error: Not enough memory to handle 4096 prefill tokens. You need to decrease `--max-batch-prefill-tokens`\n"
    first = judge_report(text).findings[0]
    assert order(first.remedies)[0].name == "--max-batch-prefill-tokens"

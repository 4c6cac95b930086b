"""kernel-illegal-address: where it surfaced is not where it happened."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "kernel-illegal-address"
ILLEGAL = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"


@pytest.mark.parametrize(
    ("line", "component"),
    [
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "torch"),
        ("[TM][ERROR] CUDA runtime error: an illegal memory access was encountered /opt/lmdeploy/src/turbomind/x.cc:900", "lmdeploy"),
        ("[TensorRT-LLM][ERROR] CUDA runtime error in cudaStreamSynchronize(stream): an illegal memory access was encountered", "tensorrt-llm"),
        ("ggml_cuda_compute_forward: CUDA error: an illegal memory access was encountered", "llama.cpp"),
        ("RuntimeError: CUDA error: misaligned address", "torch"),
        ("cudaErrorIllegalAddress (error 700) due to \"an illegal memory access was encountered\"", "torch"),
    ],
)  # fmt: skip
def test_wordings_are_likely_and_ask_for_an_experiment(judge_report: Judge, line: str, component: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, component, Certainty.LIKELY)
    assert {"env.CUDA_LAUNCH_BLOCKING", "tests"} <= {missing.key for missing in first.missing}


def test_the_sanitizer_proves_it_and_names_the_kernel_s_owner(judge_report: Judge) -> None:
    text = (
        "========= Invalid __global__ write of size 2 bytes\n"
        "=========     at void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits>(flash::Flash_fwd_params)+0x4a0\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty, first.component) == (CAUSE, Certainty.PROVEN, "flash-attn")


def test_frames_do_not_name_the_library_while_launches_are_asynchronous(judge_report: Judge) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 1400, in execute_model\n'
        '  File "/opt/venv/lib/python3.12/site-packages/flashinfer/sampling.py", line 60, in top_k\n'
    ) + ILLEGAL
    assert judge_report(text).findings[0].component == "vllm"


def test_frames_count_when_launches_were_synchronous(judge_report: Judge) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 1400, in execute_model\n'
        '  File "/opt/venv/lib/python3.12/site-packages/flashinfer/sampling.py", line 60, in top_k\n'
    ) + ILLEGAL
    first = judge_report(text, {"env.CUDA_LAUNCH_BLOCKING": "1"}).findings[0]
    assert (first.component, first.certainty) == ("flashinfer", Certainty.PROVEN)


def test_experiments_isolate_it(judge_report: Judge) -> None:
    facts = {
        "tests.vllm 0.24.0, same machine": "works",
        "tests.vllm 0.25.1, same machine": "illegal memory access",
        "tests.fuse_allreduce_rms pass disabled": "works",
    }
    first = judge_report(
        ILLEGAL + "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n", facts
    ).findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, "vllm", Certainty.PROVEN)
    chosen = [(remedy.kind, remedy.name, remedy.value) for remedy in order(first.remedies)[:2]]
    assert chosen == [("config", "fuse_allreduce_rms", "false"), ("package", "vllm", "==0.24.0")]


def test_a_variable_that_was_tried_becomes_the_remedy(judge_report: Judge) -> None:
    first = judge_report(ILLEGAL, {"tests.VLLM_USE_DEEP_GEMM=0": "no crash in 12 hours"}).findings[0]
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("VLLM_USE_DEEP_GEMM", "0")


def test_the_advice_of_torch_is_not_part_of_the_quote(judge_report: Judge) -> None:
    text = "RuntimeError('CUDA error: an illegal memory access was encountered\\nCUDA kernel errors might be asynchronously reported at some other API call')\n"
    assert "asynchronously" not in judge_report(text).findings[0].evidence[0].quote


def test_what_the_log_names_is_switched_off_first(judge_report: Judge) -> None:
    text = "vllm serve m --enable-prefix-caching\nINFO vllm.v1.engine: ready\n" + ILLEGAL
    first = judge_report(text).findings[0]
    assert order(first.remedies)[0].name == "--enable-prefix-caching"


@pytest.mark.parametrize(
    ("line", "rival"),
    [
        ("kernel: NVRM: Xid (PCI:0000:01:00): 48, pid=1, name=python3, DBE (double bit error)", "ecc"),
        ("kernel: nvidia 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x1]", "p2p-iommu"),
    ],
)
def test_hardware_beside_it_leaves_it_possible(judge_report: Judge, finding: Find, line: str, rival: str) -> None:
    found = finding(judge_report(line + "\n" + ILLEGAL), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert rival in found.rivals
    assert found.against


def test_near_miss_an_assertion_on_positions(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: CUDA error: device-side assert triggered\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "context-too-long" in found.rivals


def test_near_miss_an_illegal_instruction(judge_report: Judge) -> None:
    text = "RuntimeError: CUDA error: an illegal instruction was encountered\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_near_miss_a_segmentation_fault(judge_report: Judge) -> None:
    text = "Segmentation fault (core dumped)\npython3[4711]: segfault at 0 ip 00007f error 4 in libcuda.so\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_the_assertion_is_quoted_and_not_the_error_after_it(judge_report: Judge) -> None:
    text = (
        "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1255: indexSelectSmallIndex: block: [0,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        "RuntimeError: CUDA error: device-side assert triggered\n"
    )
    first = judge_report(text).findings[0]
    assert first.cause == CAUSE
    assert "srcIndex < srcSelectDimSize" in first.evidence[0].quote


def test_a_library_that_cures_by_being_chosen_is_not_at_fault(judge_report: Judge, finding: Find) -> None:
    tests = {
        "tests.--attention-backend flashinfer": "illegal memory access",
        "tests.--attention-backend triton": "works",
    }
    assert finding(judge_report("INFO vllm engine\n" + ILLEGAL, tests), CAUSE).component == "flashinfer"


def test_a_library_whose_kernel_did_not_end_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa, opb, m, n, k)`\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "cuda-major-mismatch" in found.rivals


def test_a_kernel_that_torch_compiled(judge_report: Judge, finding: Find) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/tmp/torchinductor_u/ab/cabc.py", line 312, in call\n'
        "    triton_poi_fused_add_0.run(buf0, arg1_1, 4096)\n"
        '  File "/opt/venv/lib/python3.12/site-packages/torch/_inductor/runtime/triton_heuristics.py", line 1011, in run\n'
        "    return launcher(*args)\nRuntimeError: Triton Error [CUDA]: misaligned address\n"
    )
    assert finding(judge_report(text), CAUSE).component == "torch"


def test_a_kernel_that_triton_launches_is_its_librarys(judge_report: Judge, finding: Find) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.10/site-packages/mamba_ssm/ops/triton/ssd_chunk_scan.py", line 1412, in _chunk_scan_fwd\n'
        "    _chunk_scan_fwd_kernel[grid](\nRuntimeError: Triton Error [CUDA]: an illegal memory access was encountered\n"
    )
    assert finding(judge_report(text), "kernel-illegal-address").component == "mamba-ssm"


def _named(judge_report: Judge, text: str) -> list[str]:
    return [remedy.name for remedy in order(judge_report(text).findings[0].remedies)]


def test_a_switch_that_nothing_points_to_is_not_the_first_thing_to_do(judge_report: Judge) -> None:
    text = "vllm serve m\nINFO 07-01 10:00:00 cuda.py:1] Using Flash Attention backend on V1 engine.\n" + ILLEGAL
    assert _named(judge_report, text) == ["vllm"]


def test_settings_printed_as_off_are_not_to_be_switched_off(judge_report: Judge) -> None:
    text = (
        "vllm serve m\nINFO 07-01 10:00:00 core.py:60] Initializing a V1 LLM engine (v0.9.1) with config: model='m', "
        "speculative_config=None, enable_prefix_caching=False\n" + ILLEGAL
    )
    assert _named(judge_report, text) == ["vllm"]


def test_an_attention_frame_makes_the_backend_worth_a_try(judge_report: Judge) -> None:
    text = (
        "INFO vllm.v1.engine: ready\nTraceback (most recent call last):\n"
        '  File "/v/site-packages/vllm/v1/attention/backends/flashinfer.py", line 5, in forward\n    prefill_wrapper.run(q)\n'
        + ILLEGAL
    )
    assert _named(judge_report, text) == ["--attention-backend", "vllm"]


def test_switches_of_llama_cpp_only_where_the_report_speaks_of_them(judge_report: Judge) -> None:
    failed = "ggml/src/ggml-cuda/ggml-cuda.cu:75: CUDA error\nCUDA error: an illegal memory access was encountered\n  current device: 0, in function ggml_cuda_mul_mat_id at ggml/src/ggml-cuda/ggml-cuda.cu:2001\n"
    assert _named(judge_report, "llama-server -m m.gguf -ngl 99\n" + failed) == ["llama.cpp"]
    assert _named(judge_report, "llama-server -m m.gguf -ngl 99 -fa\n" + failed)[0] == "--flash-attn"

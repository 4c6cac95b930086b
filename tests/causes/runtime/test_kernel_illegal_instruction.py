"""kernel-illegal-instruction: library and generation decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
CAUSE = "kernel-illegal-instruction"
LINE = "RuntimeError: CUDA error: an illegal instruction was encountered\n"


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        "torch.AcceleratorError: CUDA error: an illegal instruction was encountered\n",
        "CUDA driver error: CUDA_ERROR_ILLEGAL_INSTRUCTION\n",
        "[TensorRT-LLM][ERROR] CUDA runtime error: cudaErrorIllegalInstruction\n",
        "RuntimeError: CUDA error: invalid program counter\n",
    ],
)
def test_wordings_are_likely_and_ask_for_the_generation(judge_report: Judge, line: str) -> None:
    first = judge_report(line).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert "cc" in [missing.key for missing in first.missing]


def test_the_debugger_proves_it(judge_report: Judge) -> None:
    text = "Thread 1 received signal CUDA_EXCEPTION_4, Warp Illegal Instruction.\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)


def test_marlin_on_a_new_generation_is_a_known_fault(judge_report: Judge) -> None:
    first = judge_report(LINE, {"cc": "12.0", "packages.marlin": "stand-alone source build"}).findings[0]
    assert (first.cause, first.component) == (CAUSE, "marlin")
    assert ("package", "vllm", ">=0.4.2") in [(r.kind, r.name, r.value) for r in first.remedies]
    assert any("cache policy" in evidence.statement for evidence in first.evidence)


def test_marlin_on_ampere_is_not_that_fault(judge_report: Judge) -> None:
    first = judge_report(LINE, {"cc": "8.0", "packages.marlin": "stand-alone source build"}).findings[0]
    assert ">=0.4.2" not in [remedy.value for remedy in first.remedies]


def test_a_release_with_the_fix_has_not_that_fault(judge_report: Judge) -> None:
    text = "The model is serialized in Marlin format. Using Marlin kernel.\n" + LINE
    first = judge_report(text, {"cc": "9.0", "packages.vllm": "0.9.1"}).findings[0]
    assert ">=0.4.2" not in [remedy.value for remedy in first.remedies]
    assert "newer" in [remedy.value for remedy in first.remedies]


def test_another_format_is_the_last_resort(judge_report: Judge) -> None:
    first = judge_report(LINE).findings[0]
    assert [(r.kind, r.name) for r in order(first.remedies)][-1] == ("files", "checkpoint") or any(
        remedy.name == "checkpoint" for remedy in first.remedies
    )


@pytest.mark.parametrize(
    "line", ["Illegal instruction (core dumped)\n", "traps: python3[7] trap invalid opcode ip:7f\n"]
)
def test_near_miss_the_cpu_s(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [found.cause for found in judge_report(line).findings]


def test_near_miss_no_image_at_all(judge_report: Judge) -> None:
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


@pytest.mark.parametrize(
    ("kernel", "component"),
    [
        (
            "#0  0x00007f31db5d2b30 in void flash::flash_fwd_splitkv_kernel<Traits>(Params)<<<(1,1,1),(128,1,1)>>> ()",
            "flash-attn",
        ),
        ("The exception was triggered at PC 0x7f31db5d2b20  gptq_marlin::Marlin<__half>", "vllm"),
        ("#0  0x00007f31db5d2b30 in deep_gemm::sm90_fp8_gemm_1d2d_impl<<<(1,1,1),(128,1,1)>>> ()", "deepgemm"),
    ],
)
def test_the_debugger_names_the_kernel(judge_report: Judge, kernel: str, component: str) -> None:
    text = f"(cuda-gdb) target cudacore core_1\nOpening GPU coredump: core_1\nCUDA Exception: Warp Illegal Instruction\n{kernel}\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, component)


def test_a_kernel_that_flashinfer_took_from_tensorrt_llm_is_flashinfers(judge_report: Judge) -> None:
    text = (
        "RuntimeError: [TensorRT-LLM][ERROR] CUDA runtime error in cudaDeviceSynchronize(): an illegal instruction was encountered "
        "(/opt/venv/lib/python3.12/site-packages/flashinfer/data/csrc/nv_internal/cpp/kernels/fp4_gemm.cuh:112)\n"
    )
    assert judge_report(text).findings[0].component == "flashinfer"


def test_the_frame_counts_where_launches_were_synchronous(judge_report: Judge) -> None:
    text = """export CUDA_LAUNCH_BLOCKING=1
Traceback (most recent call last):
  File "/v/lib/python3.12/site-packages/sglang/srt/layers/quantization/fp8_utils.py", line 480, in apply_fp8_linear
    output = fp8_scaled_mm(
  File "/v/lib/python3.12/site-packages/sgl_kernel/gemm.py", line 31, in fp8_scaled_mm
    return torch.ops.sgl_kernel.fp8_scaled_mm.default(
torch.AcceleratorError: CUDA error: an illegal instruction was encountered
"""
    assert judge_report(text).findings[0].component == "sgl-kernel"
    assert judge_report(text.replace("export CUDA_LAUNCH_BLOCKING=1\n", "")).findings[0].component == "sglang"

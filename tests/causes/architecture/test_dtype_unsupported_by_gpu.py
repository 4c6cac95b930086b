"""dtype-unsupported-by-gpu: number formats the hardware lacks, in the words of several programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "dtype-unsupported-by-gpu"
E4M3 = (
    "ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\n"
)


@pytest.mark.parametrize(("line", "component", "minimum"), [
    ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Quadro RTX 8000 GPU has compute capability 7.5. You can use float16 instead", "vllm", "8.0"),
    (E4M3, "triton", "8.9"),
    ("AssertionError: fp8e4nv data type is not supported on CUDA arch < 89", "triton", "8.9"),
    ("RuntimeError: torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9, or ROCm MI300+", "torch", "8.9"),
    ("AssertionError: Device compute capability 8.9 or higher required for FP8 execution.", "transformer-engine", "8.9"),
    ("ptxas /tmp/x.ptx, line 88; error   : Feature '.bf16' requires .target sm_80 or higher", "triton", "8.0"),
    ("RuntimeError: Current CUDA Device does not support bfloat16. Please switch dtype to float16.", "torch", "8.0"),
])  # fmt: skip
def test_a_format_that_is_refused(judge_report: Judge, finding: Find, line: str, component: str, minimum: str) -> None:
    judgement = judge_report(line + "\n")
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert found.component == component
    assert f"needs compute capability {minimum}" in found.title
    assert ("hardware", "gpu", f"compute capability >= {minimum}") in [(r.kind, r.name, r.value) for r in found.remedies]  # fmt: skip


@pytest.mark.parametrize("capability", ["7.5", "8.0", "8.6"])
def test_the_gpu_proves_it(judge_report: Judge, finding: Find, capability: str) -> None:
    found = finding(judge_report(E4M3, {"cc": capability}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert not found.missing


def test_without_the_gpu_it_is_not_proven(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(E4M3), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert "cc" in {m.key for m in found.missing}


def test_words_that_nobody_raised_stay_possible(judge_report: Judge, finding: Find) -> None:
    log = "it seems that bf16 is not supported by my GPU, whatever I try\n"
    assert finding(judge_report(log), CAUSE).certainty is Certainty.POSSIBLE


@pytest.mark.parametrize("capability", ["8.9", "9.0", "12.0"])
def test_a_gpu_that_has_the_format_rules_it_out(judge_report: Judge, capability: str) -> None:
    judgement = judge_report(E4M3, {"cc": capability})
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_half_precision_is_the_smallest_change_for_bf16(judge_report: Judge, finding: Find) -> None:
    log = "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.\n"
    first = finding(judge_report(log), CAUSE).remedies[0]
    assert (first.kind, first.name, first.value) == ("flag", "--dtype", "half")


def test_another_checkpoint_helps_with_fp8(judge_report: Judge, finding: Find) -> None:
    assert ("files", "checkpoint") in [(r.kind, r.name) for r in finding(judge_report(E4M3), CAUSE).remedies]


@pytest.mark.parametrize("line", [
    "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 80. Current capability: 75.",
    "flashinfer.utils.BackendSupportedError: mm_fp4 does not support backend 'trtllm' with capability 120",
    "WARNING 04-19 17:25:10 config.py:767] Casting torch.bfloat16 to torch.float16.",
    "[2026-02-03 10:00:00] Compute capability below sm80. Use float16 due to lack of bfloat16 support.",
    "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
])  # fmt: skip
def test_what_is_not_a_number_formats_fault(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [f.cause for f in judge_report(line + "\n").findings]


def test_tensorrt_asks_for_hardware_with_the_format(judge_report: Judge) -> None:
    first = judge_report("[TRT] [E] 9: Networks with FP8 precision require hardware with FP8 support\n").findings[0]
    assert (first.cause, first.component) == (CAUSE, "tensorrt")


def test_the_trainer_of_transformers_has_options_of_its_own(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report("ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0\n  File \"/v/lib/python3.10/site-packages/transformers/training_args.py\", line 1531\n")  # fmt: skip
    found = finding(judgement, CAUSE)
    assert [remedy.name for remedy in found.remedies[:2]] == ["bf16", "--fp16"]
    assert not any("11.0" in remedy.value for other in judgement.findings for remedy in other.remedies)


def test_the_compute_type_of_ctranslate2(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: Requested float16 compute type, but the target device or backend do not support efficient float16 computation.\n"
    found = finding(judge_report(text, {"cc": "6.1"}), "dtype-unsupported-by-gpu")
    assert found.component == "ctranslate2"
    assert ("--compute_type", "int8") in [(each.name, each.value) for each in found.remedies]
    ruled_out = [each.cause for each in judge_report(text, {"cc": "8.6"}).ruled_out]
    assert "dtype-unsupported-by-gpu" in ruled_out


def test_cublas_without_bf16(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx( handle, opa, opb, m, n, k, &falpha, a, CUDA_R_16BF, lda, b, CUDA_R_16BF)`\n"
    assert finding(judge_report(text, {"cc": "7.0"}), "dtype-unsupported-by-gpu").certainty is Certainty.PROVEN
    assert "dtype-unsupported-by-gpu" in [each.cause for each in judge_report(text, {"cc": "9.0"}).ruled_out]


def test_a_feature_that_cannot_be_enabled_below_a_generation_is_a_limit_too() -> None:
    from gpuwhy.investigate import diagnose_log

    log = b"[TensorRT-LLM][ERROR] Assertion failed: FP8 context attention cannot be enabled on Pre-Hopper Arch except Ada. (/src/plugins/attention.cpp:450)\n"
    assert diagnose_log(log, "report").findings[0].cause == "dtype-unsupported-by-gpu"


def test_a_cache_that_the_command_asks_for_in_fp8_is_kept_in_the_model_s_format_first() -> None:
    from gpuwhy.investigate import diagnose_log

    command = "vllm serve Qwen/Qwen3-8B --kv-cache-dtype {dtype}\n"
    error = "triton.compiler.errors.CompilationError: at 115:17:\n  k_load = tl.load(K + off_k)\ntype fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\n"
    first = diagnose_log((command.format(dtype="fp8") + error).encode(), "report").findings[0]
    assert (first.remedies[0].name, first.remedies[0].value) == ("--kv-cache-dtype", "auto")
    other = diagnose_log((command.format(dtype="auto") + error).encode(), "report").findings[0]
    assert "--kv-cache-dtype" not in [remedy.name for remedy in other.remedies]

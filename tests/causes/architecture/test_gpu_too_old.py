"""gpu-too-old: generations that were dropped, and messages that say so wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "gpu-too-old"
TRITON = (
    "torch._inductor.exc.InductorError: GPUTooOldForTriton: Found Tesla P100-PCIE-16GB which is too old to be supported by the triton GPU compiler, "
    "which is used as the backend. Triton only supports devices of CUDA Capability >= 7.0, but your device is of CUDA capability 6.0\n"
)


@pytest.mark.parametrize(("line", "component"), [
    (TRITON, "triton"),
    ("RuntimeError: GPUs with compute capability below 7.0 are not supported.", "vllm"),
    ("RuntimeError: SGLang only supports sm75 and above.", "sglang"),
    ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "flash-attn"),
    ("[TRT] [E] IBuilder::buildSerializedNetwork: Error Code 9: API Usage Error (Target GPU SM 60 is not supported by this TensorRT release.)", "tensorrt"),
    ('time=2024-05-01T10:00:00Z level=INFO source=gpu.go:70 msg="CUDA GPU is too old. Compute Capability detected: 3.5"', "ollama"),
    ("NotImplementedError: VLLM_USE_V1=1 is not supported with Compute Capability < 8.0.", "vllm"),
])  # fmt: skip
def test_a_dropped_generation_names_who_dropped_it(
    judge_report: Judge, finding: Find, line: str, component: str
) -> None:
    judgement = judge_report(line.rstrip() + "\n")
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert found.component == component
    assert found.certainty is not Certainty.POSSIBLE


def test_triton_prints_both_numbers_and_eager_mode_goes_around_it(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TRITON), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "7.0" in found.title
    assert "6.0" in found.title
    assert ("env", "TORCHDYNAMO_DISABLE", "1") in [(r.kind, r.name, r.value) for r in found.remedies]


@pytest.mark.parametrize(
    ("facts", "certainty"),
    [({}, Certainty.POSSIBLE), ({"cc": "7.0"}, Certainty.LIKELY), ({"gpu": "Tesla P40"}, Certainty.LIKELY)],
)
def test_flashinfers_message_is_true_of_old_gpus_only(
    judge_report: Judge, finding: Find, facts: dict[str, Any], certainty: Certainty
) -> None:
    log = "RuntimeError: FlashInfer requires GPUs with sm75 or higher\n"
    assert finding(judge_report(log, facts), CAUSE).certainty is certainty
    judgement = judge_report(log, {"cc": "12.0", "cuda_toolkit": "12.8"})
    assert judgement.findings[0].cause == "toolkit-too-old-for-arch"
    assert any(x.cause == CAUSE for x in judgement.ruled_out)  # fmt: skip


def test_an_arch_list_with_an_old_entry_is_not_an_old_gpu(judge_report: Judge) -> None:
    log = "RuntimeError: FlashInfer requires sm75+\n"
    judgement = judge_report(log, {"cc": "8.0", "env.TORCH_CUDA_ARCH_LIST": "6.0;7.0;8.0+PTX"})
    assert judgement.findings[0].cause == "arch-list-override"
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_cuda_13_dropped_the_target_of_this_gpu(judge_report: Judge, finding: Find) -> None:
    log = "nvcc fatal   : Unsupported gpu architecture 'compute_70'\n"
    judgement = judge_report(log, {"cc": "7.0", "cuda_toolkit": "13.0"})
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert (found.remedies[0].kind, found.remedies[0].value) == ("toolkit", "<13.0")
    assert finding(judge_report(log), CAUSE).certainty is Certainty.POSSIBLE
    assert any(x.cause == CAUSE for x in judge_report(log, {"cc": "9.0", "cuda_toolkit": "13.0"}).ruled_out)


def test_a_gpu_that_is_new_enough_rules_it_out(judge_report: Judge) -> None:
    judgement = judge_report("RuntimeError: FlashAttention only supports Ampere GPUs or newer.\n", {"cc": "8.9"})
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_a_mixed_host_keeps_the_question_open(judge_report: Judge, finding: Find) -> None:
    host = {"gpus": ["0: NVIDIA A100 (8.0)", "1: Tesla T4 (7.5)"]}
    found = finding(judge_report("RuntimeError: FlashAttention only supports Ampere GPUs or newer.\n", host), CAUSE)
    assert found.certainty is Certainty.LIKELY


@pytest.mark.parametrize("line", [
    "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
    "requires device with capability > (9, 0) but your GPU has capability (8, 6) (too old)",
    "NVIDIA GeForce GTX 1080 with CUDA capability sm_61 is not compatible with the current PyTorch installation.",
    "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
])  # fmt: skip
def test_what_is_too_old_in_another_sense(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [f.cause for f in judge_report(line + "\n").findings]


def test_pascal_under_a_newer_triton_fails_in_llvm(judge_report: Judge, finding: Find) -> None:
    log = "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32\n"
    assert finding(judge_report(log), CAUSE).certainty is Certainty.POSSIBLE
    assert finding(judge_report(log, {"cc": "6.1"}), CAUSE).certainty is Certainty.LIKELY


def test_a_driver_that_names_the_legacy_branch_of_the_gpu(judge_report: Callable[..., Judgement]) -> None:
    log = (
        "[    5.1] NVRM: The NVIDIA Quadro K620 GPU installed in this system is\n"
        "[    5.1] NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please\n"
        "[    5.1] NVRM:  visit http://www.nvidia.com/object/unix.html for more\n"
    )
    first = judge_report(log).findings[0]
    assert (first.cause, first.component) == ("gpu-too-old", "driver")
    assert [(r.kind, r.name, r.value) for r in first.remedies] == [("driver", "nvidia", "470")]


def test_open_kernel_modules_need_turing(judge_report: Judge, finding: Find) -> None:
    text = (
        "[    6.120012] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b06)\n"
        "               NVRM: installed in this system is not supported by open\n"
        "               NVRM: nvidia.ko because it does not include the required GPU\n"
        "               NVRM: System Processor (GSP).\n"
    )
    found = finding(judge_report(text), CAUSE)
    assert found.component == "driver"
    assert found.remedies[0].value == "proprietary kernel modules"


@pytest.mark.parametrize(("line", "component"), [
    ("cuda compute cap 61 is not supported", "text-embeddings-inference"),
    ("ERROR: No supported GPU(s) detected to run this container", "container-image"),
])  # fmt: skip
def test_an_image_that_refuses_the_gpu(judge_report: Judge, finding: Find, line: str, component: str) -> None:
    judgement = judge_report(line + "\n")
    assert judgement.findings[0].cause == CAUSE
    assert judgement.findings[0].component == component


@pytest.mark.parametrize(("capability", "cause"), [("6.1", CAUSE), ("12.0", "arch-unsupported-by-library")])
def test_cudnn_refuses_old_gpus_and_features_on_new_ones(judge_report: Judge, capability: str, cause: str) -> None:
    text = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH\n"
    first = judge_report(text, {"cc": capability}).findings[0]
    assert (first.cause, first.component) == (cause, "cudnn")

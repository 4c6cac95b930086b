"""torch-lacks-arch: torch's warnings in all wordings, and the failed launch that only torch's own list explains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "torch-lacks-arch"
NO_IMAGE = """\
Traceback (most recent call last):
  File "/srv/tts/serve.py", line 31, in warm_up
    probe = torch.zeros(8, device="cuda")
RuntimeError: CUDA error: no kernel image is available for execution on the device
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
EXTENSION = """\
Traceback (most recent call last):
  File "/srv/llm/run.py", line 9, in <module>
    out = block(x)
  File "/srv/llm/env/lib/python3.11/site-packages/causal_conv1d/causal_conv1d_interface.py", line 60, in forward
    out = causal_conv1d_cuda.causal_conv1d_fwd(x, weight, bias)
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""


TOO_NEW = """\
/v/lib/python3.10/site-packages/torch/cuda/__init__.py:235: UserWarning:
NVIDIA RTX PRO 6000 Blackwell Workstation Edition with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
"""
OUT_OF_RANGE = """\
/v/lib/python3.12/site-packages/torch/cuda/__init__.py:283: UserWarning:
    Found GPU0 Tesla P40 which is of cuda capability 6.1.
    Minimum and Maximum cuda capability supported by this version of PyTorch is
    (7.5) - (12.0)
"""
WITH_A_LIST = """\
    Found GPU0 Quadro GV100 which is of compute capability (CC) 7.0.
    The following list shows the CCs this version of PyTorch was built for and the hardware CCs it supports:
    - 7.5 which supports hardware CC >=7.5,<8.0
    Your installed torch==2.14.0+cu130 does not include kernels for this GPU. Reinstall the same version against a CUDA build that does, e.g.:
"""


@pytest.mark.parametrize(("warning", "capability", "build"), [
    (TOO_NEW, "12.0", "cu128 build"),
    (OUT_OF_RANGE, "6.1", "cu126 build"),
    (WITH_A_LIST, "7.0", "cu126 build"),
])  # fmt: skip
def test_every_wording_of_the_warning_proves_it_and_names_the_build(
    judge_report: Judge, finding: Find, warning: str, capability: str, build: str
) -> None:
    judgement = judge_report(warning + NO_IMAGE)
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert found.certainty is Certainty.PROVEN
    assert found.component == "torch"
    assert capability in found.title
    assert ("package", "torch", build) in [(r.kind, r.name, r.value) for r in found.remedies]
    assert "no kernel image" not in found.evidence[0].quote
    assert "binary-lacks-arch" not in [f.cause for f in judgement.findings]


def test_a_gpu_a_minor_version_above_the_maximum_runs_the_code(judge_report: Judge) -> None:
    log = (
        "    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.\n"
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is\n    (8.0) - (12.0)\n"
        "ModuleNotFoundError: No module named 'soundfile'\n"
    )
    judgement = judge_report(log)
    assert CAUSE not in [f.cause for f in judgement.findings]
    assert any(x.cause == CAUSE and "minor version" in x.why for x in judgement.ruled_out)


def test_a_gpu_that_no_build_of_the_release_has_is_too_old(judge_report: Judge) -> None:
    log = (
        "    Found GPU0 Tesla K40c which is of cuda capability 3.5.\n"
        "    PyTorch no longer supports this GPU because it is too old.\n"
        "    The minimum cuda capability supported by this library is 3.7.\n"
    )
    judgement = judge_report(log)
    assert judgement.findings[0].cause == "gpu-too-old"
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_the_message_alone_stays_possible_and_asks_for_the_lists(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NO_IMAGE), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"cc", "torch_arch_list", "torch_cuda"} <= {m.key for m in found.missing}


@pytest.mark.parametrize("facts", [
    {"cc": "12.0", "torch": "2.6.0+cu124"},
    {"gpu": "NVIDIA B200", "torch": "2.7.1", "torch_cuda": "12.6"},
    {"cc": "6.1", "torch": "2.9.1+cu128"},
    {"cc": "7.0", "torch": "2.14.0", "torch_arch_list": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]},
])  # fmt: skip
def test_what_the_wheel_holds_makes_it_likely(judge_report: Judge, facts: dict[str, Any]) -> None:
    judgement = judge_report(NO_IMAGE, facts)
    assert (judgement.findings[0].cause, judgement.findings[0].certainty) == (CAUSE, Certainty.LIKELY)


@pytest.mark.parametrize("facts", [
    {"cc": "12.0", "torch": "2.8.0+cu128"},
    {"cc": "8.9", "torch": "2.5.1+cu121"},
    {"cc": "9.0"},
])  # fmt: skip
def test_a_torch_that_has_the_gpu_leaves_the_extension(judge_report: Judge, facts: dict[str, Any]) -> None:
    judgement = judge_report(EXTENSION, facts)
    assert judgement.findings[0].cause == "binary-lacks-arch"
    assert any(x.cause == CAUSE for x in judgement.ruled_out)


def test_a_kernel_from_a_jit_cache_is_not_torchs(judge_report: Judge) -> None:
    log = "/root/.cache/flashinfer/0.6.5/90a/generated/norm/norm.cu:77: RuntimeError: no kernel image is available for execution on the device\n"
    assert any(x.cause == CAUSE for x in judge_report(log, {"cc": "12.0"}).ruled_out)


def test_an_unrelated_failure_after_the_warning_leaves_it_likely(judge_report: Judge, finding: Find) -> None:
    log = (
        "NVIDIA GeForce GT 710 with CUDA capability sm_35 is not compatible with the current PyTorch installation.\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/app/load.py", line 3, in <module>\n'
        "    import sentencepiece\n"
        "ModuleNotFoundError: No module named 'sentencepiece'\n"
    )
    judgement = judge_report(log, {"torch": "2.0.1+cu118"})
    assert all(f.certainty is not Certainty.PROVEN for f in judgement.findings if f.cause == CAUSE)


def test_an_engine_built_against_torch_gets_its_image_too_and_tensorrt_llm_no_bare_torch(
    judge_report: Judge, finding: Find
) -> None:
    warning = (
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    )
    vllm = finding(judge_report("INFO vLLM API server version 0.8.4\n" + warning), CAUSE).remedies
    assert {("container", "image"), ("package", "torch")} <= {(r.kind, r.name) for r in vllm}
    trt = finding(judge_report("[TensorRT-LLM] TensorRT-LLM version: 0.18.0\n" + warning), CAUSE).remedies
    assert ("package", "torch") not in {(r.kind, r.name) for r in trt}
    assert ("package", "tensorrt-llm") in {(r.kind, r.name) for r in trt}


def test_a_failure_of_rocm_is_not_ours(judge_report: Judge) -> None:
    log = "RuntimeError: HIP error: invalid device function\nhipErrorNoBinaryForGpu: Unable to find code object for all current devices!\n"
    assert judge_report(log).findings == ()


def test_the_run_time_compiler_of_torch(judge_report: Judge) -> None:
    text = "RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)\n\nnvrtc compilation failed:\n\n#define POS_INFINITY __int_as_float(0x7f800000)\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "torch")


def test_near_miss_the_run_time_compiler_of_cupy(judge_report: Judge) -> None:
    text = '  File "/v/lib/python3.10/site-packages/cupy/cuda/compiler.py", line 684, in compile\ncupy.cuda.compiler.CompileException: nvrtc: error: invalid value for --gpu-architecture (-arch)\n'
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_a_kernel_of_torch_alone_in_a_line(judge_report: Judge) -> None:
    first = judge_report("invalid device function: at::native::vectorized_elementwise_kernel\n").findings[0]
    assert (first.cause, first.component) == (CAUSE, "torch")

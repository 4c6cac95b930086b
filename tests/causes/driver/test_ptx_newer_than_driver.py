"""ptx-newer-than-driver: PTX that the driver cannot compile, by every wording, and which CUDA wrote it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "ptx-newer-than-driver"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


PTX = "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"


@pytest.mark.parametrize("text", [
    PTX,
    "2025-01-01 [E:onnxruntime] CUDA failure 222: the provided PTX was compiled with an unsupported toolchain. ; GPU=0\n",
    "  what():  after reduction step 1: cudaErrorUnsupportedPtxVersion: the provided PTX was compiled with an unsupported toolchain.\n",
    "numba.cuda.cudadrv.driver.LinkerError: [222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION\n",
])  # fmt: skip
def test_every_wording_names_it(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert found.component == "driver"
    assert ("driver", "nvidia", "newer") in proposed(found)


def test_the_drivers_compiler_prints_both_versions(judge_report: Judge, finding: Find) -> None:
    text = "numba LinkerError: [222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION\nptxas application ptx input, line 9; fatal   : Unsupported .version 8.7; current version is '8.4'\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "CUDA 12.8" in found.title
    assert ("driver", "nvidia", ">=570") in proposed(found)


def test_an_assembler_on_disk_is_another_cause(judge_report: Judge) -> None:
    text = "ptxas /tmp/tmpx.ptx, line 5; fatal   : Unsupported .version 8.7; current version is '8.4'\nptxas fatal   : Ptx assembly aborted due to errors\n"
    assert CAUSE not in names(judge_report(text))


def test_an_own_build_can_be_repeated_with_an_older_toolkit(judge_report: Judge, finding: Find) -> None:
    text = "CUDA error: the provided PTX was compiled with an unsupported toolchain.\n  current device: 0, in function ggml_cuda_mul_mat_q at /build/llama.cpp/ggml/src/ggml-cuda/mmq.cu:128\n"
    found = finding(judge_report(text, {"driver_cuda": "12.4", "cuda_toolkit": "12.8"}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert ("toolkit", "cuda", "<=12.4") in proposed(found)
    assert ("package", "llama.cpp", "rebuild") in proposed(found)


def test_a_library_from_an_index_is_replaced_and_not_rebuilt(judge_report: Judge, finding: Find) -> None:
    text = "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to load PTX text as a module: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with an unsupported toolchain.\n"
    found = finding(judge_report(text), CAUSE)
    assert ("package", "jax", "build with CUDA <= driver's CUDA") in proposed(found)
    assert "rebuild" not in [value for _, _, value in proposed(found)]


def test_a_wheel_on_a_data_centre_gpu_is_bridged(judge_report: Judge, finding: Find) -> None:
    text = PTX + '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 1, in run\n'
    facts = {"gpu": "NVIDIA H100 PCIe", "driver": "550.144.03", "torch_cuda": "12.8"}
    found = finding(judge_report(text, facts), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert proposed(found)[0] == ("env", "LD_LIBRARY_PATH", "/usr/local/cuda/compat")
    consumer = finding(judge_report(text, {**facts, "gpu": "NVIDIA GeForce RTX 3090"}), CAUSE)
    assert "LD_LIBRARY_PATH" not in [name for _, name, _ in proposed(consumer)]


def test_a_driver_of_that_release_speaks_against_it(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(PTX, {"driver": "580.95.05", "torch_cuda": "12.8"}), CAUSE)
    assert found.certainty is not Certainty.PROVEN
    assert found.against


def test_an_unreadable_image_is_only_possible_until_the_versions_are_known(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: Triton Error [CUDA]: device kernel image is invalid\n"
    open_case = finding(judge_report(text), CAUSE)
    assert open_case.certainty is Certainty.POSSIBLE
    assert "driver" in {missing.key for missing in open_case.missing}
    assert (
        finding(judge_report(text, {"driver": "525.60.13", "torch_cuda": "12.8"}), CAUSE).certainty is Certainty.LIKELY
    )


@pytest.mark.parametrize("text", [
    "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).\n",
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))

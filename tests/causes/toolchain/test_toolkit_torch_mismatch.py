"""toolkit-torch-mismatch: both versions from every wording, and the matching toolkit that changes the answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "toolkit-torch-mismatch"
TUPLE = "RuntimeError: ('The detected CUDA version (%s) mismatches the version that was used to compilePyTorch (%s). Please make sure to use the same CUDA versions.', '12.4', '13.0')\n"
FORMATTED = """\
  Building wheel for gptqmodel (pyproject.toml): finished with status 'error'
      RuntimeError:
      The detected CUDA version (12.4) mismatches the version that was used to compile
      PyTorch (13.0). Please make sure to use the same CUDA versions.
  ERROR: Failed building wheel for gptqmodel
"""


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


@pytest.mark.parametrize("text", [
    TUPLE,
    FORMATTED,
    "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.4 does not match the version torch was compiled with 13.0, unable to compile cuda/cpp extensions without a matching cuda version.\n",
    "Cuda compilation tools, release 12.4, V12.4.131\nRuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match the version used to compile Pytorch binaries.  Pytorch binaries were compiled with Cuda 13.0.\n",
])  # fmt: skip
def test_both_versions_are_read_from_every_wording(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert "CUDA 12.4" in found.title
    assert "13.0" in found.title
    assert "match" in found.evidence[0].quote
    proposed = [(r.kind, r.name, r.value) for r in found.remedies]
    assert {
        ("env", "CUDA_HOME", "13.0 toolkit"),
        ("package", "torch", "CUDA 12.x build"),
        ("toolkit", "cuda", "13.0"),
    } <= set(proposed)


def test_the_component_is_what_is_built(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report(FORMATTED), CAUSE).component == "gptqmodel"


def test_a_matching_toolkit_on_the_host_makes_it_a_wrong_path(judge_report: Judge) -> None:
    judgement = judge_report(FORMATTED, {"cuda_toolkit": "12.4", "other_toolkits./usr/local/cuda-13.0": "13.0"})
    assert names(judgement)[0] == "toolkit-path-wrong"
    assert CAUSE in [x.cause for x in judgement.ruled_out]


def test_with_the_host_searched_it_is_proven(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(FORMATTED, {"cuda_toolkit": "12.4", "other_toolkits./usr/local/cuda-11.8": "11.8"})
    assert finding(judgement, CAUSE).certainty is Certainty.PROVEN


def test_until_then_another_toolkit_is_asked_for(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TUPLE), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert {"other_toolkits", "cuda_home"} == {m.key for m in found.missing}
    assert found.rivals == ("toolkit-path-wrong",)


def test_build_isolation_brings_a_torch_of_its_own(judge_report: Judge, finding: Find) -> None:
    text = (
        '  File "/tmp/pip-build-env-k2/overlay/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 414, in _check_cuda_version\n'
        + TUPLE
    )
    assert "--no-build-isolation" in [r.name for r in finding(judge_report(text), CAUSE).remedies]


@pytest.mark.parametrize("text", [
    "UserWarning: The detected CUDA version (12.4) has a minor version mismatch with the version that was used to compile PyTorch (12.1). Most likely this shouldn't be a problem.\n",
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n",
    "RuntimeError: Detected that PyTorch and torch_scatter were compiled with different CUDA versions.\n",
])  # fmt: skip
def test_a_minor_difference_and_a_finished_binary_are_not_it(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_a_version_that_is_not_printed_stays_open(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report(
            "RuntimeError: The detected CUDA version (12.4) mismatches the version that was used to compile\n"
        ),
        CAUSE,
    )
    assert ("toolkit", "cuda", "match:torch") in [(r.kind, r.name, r.value) for r in found.remedies]

"""Toolkits that the report itself lists decide between a missing one and one that is only not chosen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "toolkit-path-wrong"
LOOKED_IN_CONDA = "FileNotFoundError: [Errno 2] No such file or directory: '/home/u/miniconda3/envs/ds/bin/nvcc'\n"


@pytest.mark.parametrize(
    "listing",
    [
        "/usr/local/cuda  /usr/local/cuda-12  /usr/local/cuda-12.1",
        "/usr/local/cuda-11.8/ /usr/local/cuda-12.1/",
        "cuda  cuda-12  cuda-12.1",
        "lrwxrwxrwx 1 root root 20 May  1 10:00 cuda -> /usr/local/cuda-12.1",
        "/usr/local/cuda-12.1/bin/nvcc",
    ],
)
def test_a_listing_shows_where_the_toolkit_is(judge_report: Judge, listing: str) -> None:
    first = judge_report(f"$ ls -d /usr/local/cuda*\n{listing}\n{LOOKED_IN_CONDA}").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert (first.remedies[0].name, first.remedies[0].value) == ("CUDA_HOME", "/usr/local/cuda-12.1")


def test_the_folder_that_was_searched_is_no_other_toolkit(judge_report: Judge) -> None:
    text = "/usr/local/cuda-12.1\n/bin/sh: 1: /usr/local/cuda-12.1/bin/nvcc: not found\n"
    assert judge_report(text).findings[0].cause == "toolkit-missing"


def test_a_listed_toolkit_that_does_not_know_the_gpu_either(judge_report: Judge, finding: Find) -> None:
    text = "/usr/local/cuda-12.4  /usr/local/cuda-12.6\nnvcc fatal   : Unsupported gpu architecture 'compute_120'\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE


def test_cmake_takes_its_compiler_from_cudacxx(judge_report: Judge, finding: Find) -> None:
    text = "CMake Error at CMakeLists.txt:25 (enable_language):\n  No CMAKE_CUDA_COMPILER could be found.\n"
    judgement = judge_report(text)
    for cause in (CAUSE, "toolkit-missing"):
        assert finding(judgement, cause).remedies[0].name == "CUDACXX"


def test_two_toolkits_that_cmake_mixes(judge_report: Judge, finding: Find) -> None:
    text = (
        "    FindCUDA says CUDA version is 11.5 (usually determined by nvcc), but the CUDA\n"
        "    headers say the version is 12.1.  This often occurs when you set both\n"
        "    setting PATH to point to the correct nvcc.  Perhaps, try re-running this\n"
        "    command again with PATH=/usr/local/cuda-12.1/bin:$PATH.  See above log\n"
    )
    found = finding(judge_report(text), CAUSE)
    assert found.evidence[0].quote.startswith("FindCUDA says")
    assert "/usr/local/cuda-12.1" in [remedy.value for remedy in found.remedies]


@pytest.mark.parametrize(
    "told",
    [
        "torch 2.9.0+cu128, and /usr/local/cuda-12.8 is installed too",
        "CUDA 12.8 is also installed at `/usr/local/cuda-12.8`, next to 13.0.",
        "/usr/local/cuda-12.8 exists",
    ],
)
def test_a_suitable_toolkit_that_the_reporter_tells_of(told: str, judge_report: Judge) -> None:
    text = (
        f"{told}\n\nRuntimeError:\nThe detected CUDA version (13.0) mismatches the version that was used to compile\n"
        "PyTorch (12.8). Please make sure to use the same CUDA versions.\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert (first.remedies[0].name, first.remedies[0].value) == ("CUDA_HOME", "/usr/local/cuda-12.8")


@pytest.mark.parametrize(
    "told",
    [
        "/usr/local/cuda-12.8 is not installed",
        "/usr/local/cuda-12.8 is missing",
        "12.8 was not installed in /usr/local/cuda-12.8",
    ],
)
def test_a_toolkit_that_is_told_to_be_absent_is_none(told: str, judge_report: Judge) -> None:
    text = (
        f"{told}\n\nRuntimeError:\nThe detected CUDA version (13.0) mismatches the version that was used to compile\n"
        "PyTorch (12.8). Please make sure to use the same CUDA versions.\n"
    )
    assert judge_report(text).findings[0].cause == "toolkit-torch-mismatch"

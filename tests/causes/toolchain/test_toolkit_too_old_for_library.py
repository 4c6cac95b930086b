"""toolkit-too-old-for-library: options, minimum releases, headers, names and targets that nvcc does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "toolkit-too-old-for-library"
FLASHINFER_BUILD = """\
(EngineCore_DP0 pid=812) ERROR 10-02 08:11:40 [core.py:866] RuntimeError: Ninja build failed. Ninja output:
(EngineCore_DP0 pid=812) ERROR 10-02 08:11:40 [core.py:866] ninja: Entering directory `/srv/cache/flashinfer/0.6.18/90a/cached_ops/page'
FAILED: [code=1] /srv/cache/flashinfer/0.6.18/90a/cached_ops/page/page.cuda.o
/opt/cuda/bin/nvcc --generate-dependencies-with-compile -MF page.cuda.o.d -isystem /opt/cuda/include {option}
nvcc fatal   : Unknown option '{option}'
ninja: build stopped: subcommand failed.
"""


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def remedies(found: Finding) -> list[tuple[str, str, str]]:
    return [(r.kind, r.name, r.value) for r in found.remedies]


def test_an_unknown_option_names_the_first_release_and_the_library_s_own_way_out(
    judge_report: Judge, finding: Find
) -> None:
    found = finding(judge_report(FLASHINFER_BUILD.format(option="--compress-mode=size")), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert found.component == "flashinfer"
    assert found.evidence[0].quote == "nvcc fatal   : Unknown option '--compress-mode=size'"
    assert remedies(found) == [
        ("package", "flashinfer-jit-cache", "match:flashinfer-python"),
        ("package", "flashinfer-python", "<0.6.18"),
        ("toolkit", "cuda", ">=12.8"),
    ]
    assert {"cuda_toolkit", "other_toolkits"} == {m.key for m in found.missing}


def test_with_the_toolkit_known_to_lack_it_it_is_proven(judge_report: Judge, finding: Find) -> None:
    text = FLASHINFER_BUILD.format(option="--compress-mode=size")
    assert finding(judge_report(text, {"cuda_toolkit": "12.4"}), CAUSE).certainty is Certainty.PROVEN


@pytest.mark.parametrize(
    "facts", [{"cuda_toolkit": "12.9"}, {"cuda_toolkit": "12.4", "other_toolkits./opt/cuda-13": "13.0"}]
)
def test_a_toolkit_that_has_the_option_rules_it_out(judge_report: Judge, facts: dict[str, Any]) -> None:
    judgement = judge_report(FLASHINFER_BUILD.format(option="--compress-mode=size"), facts)
    assert CAUSE not in names(judgement)
    assert CAUSE in [x.cause for x in judgement.ruled_out]


def test_the_sampler_s_switch_is_only_offered_for_the_sampler(judge_report: Judge, finding: Find) -> None:
    page = FLASHINFER_BUILD.format(option="--compress-mode=size")
    sampling = page.replace("page", "sampling")
    assert "VLLM_USE_FLASHINFER_SAMPLER" not in [r.name for r in finding(judge_report(page), CAUSE).remedies]
    assert "VLLM_USE_FLASHINFER_SAMPLER" in [r.name for r in finding(judge_report(sampling), CAUSE).remedies]


def test_an_option_of_gcc_is_no_matter_of_age(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("nvcc fatal   : Unknown option '-fopenmp'\n"), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert any("-Xcompiler" in note for note in found.notes)


@pytest.mark.parametrize(("line", "since"), [
    ("nvcc fatal   : Value 'c++20' is not defined for option 'std'", ">=12.0"),
    ("RuntimeError: causal_conv1d is only supported on CUDA 11.6 and above.  Note: make sure nvcc has a supported version", ">=11.6"),
    ("ValueError: NVCC version should be at least 12.3 to compile this kernel", ">=12.3"),
    ("RuntimeError: CUDA 12.0 or higher is required to build the extension", ">=12.0"),
    ('  Could NOT find CUDA: Found unsuitable version "10.1", but required is at least "11.0" (found /usr)', ">=11.0"),
    ("/src/kernel.cu:8:10: fatal error: cuda_fp4.h: No such file or directory", ">=12.8"),
    ('/src/gemm.cu(41): error: identifier "CUtensorMap" is undefined', ">=12.0"),
    ("/src/abi.cpp:20:5: error: ‘CUDA_R_8F_E4M3’ was not declared in this scope", ">=11.8"),
    ("ptxas /tmp/t.ptx, line 9; error   : Feature '.multicast::cluster' requires PTX ISA .version 8.0 or later", ">=12.0"),
])  # fmt: skip
def test_every_way_of_asking_for_a_newer_toolkit(judge_report: Judge, finding: Find, line: str, since: str) -> None:
    text = (
        f'  File "/w/setup.py", line 20, in <module>\nTraceback (most recent call last):\n{line}\n'
        if "Error: " in line[:20]
        else line + "\n"
    )
    found = finding(judge_report(text), CAUSE)
    assert remedies(found)[-1] == ("toolkit", "cuda", since)
    assert found.evidence[0].quote in line


@pytest.mark.parametrize("line", [
    "RuntimeError: The NVIDIA driver on your system is too old; a driver that supports CUDA 12.8 or newer is required",
    "RuntimeError: SM 12.x requires CUDA >= 12.9",
    "RuntimeError: this kernel requires compute capability 9.0 and CUDA 12.3 or later is required",
    "Warning: please use at least NVCC 12.9 for the best performance",
    "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
    "INFO 03-03 10:00:00 [fp8.py:10] FP8 GEMM requires CUDA 12.0 or newer, using the fallback",
    "nvcc warning : The 'compute_50' architectures are deprecated",
])  # fmt: skip
def test_other_limits_are_not_taken_for_it(judge_report: Judge, line: str) -> None:
    assert CAUSE not in names(judge_report(line + "\n"))


TARGET = "nvcc fatal   : Unsupported gpu architecture 'compute_90'\n"


@pytest.mark.parametrize(("facts", "first"), [
    ({"cc": "8.6", "cuda_toolkit": "11.5"}, CAUSE),
    ({"cc": "9.0", "cuda_toolkit": "11.5"}, "toolkit-too-old-for-arch"),
    ({"cc": "8.6", "cuda_toolkit": "11.5", "env.TORCH_CUDA_ARCH_LIST": "8.6;9.0"}, "arch-list-override"),
    ({"cc": "8.6", "cuda_toolkit": "11.5", "other_toolkits./usr/local/cuda-12": "12.4"}, "toolkit-path-wrong"),
])  # fmt: skip
def test_a_refused_target_is_told_apart_by_the_gpu_the_variable_and_the_host(
    judge_report: Judge, facts: dict[str, Any], first: str
) -> None:
    assert names(judge_report(TARGET, facts))[0] == first


def test_a_refused_target_alone_stays_possible_and_asks_for_the_gpu(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TARGET), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"cc", "env.TORCH_CUDA_ARCH_LIST"} <= {m.key for m in found.missing}
    assert "toolkit-too-old-for-arch" in found.rivals


def test_a_list_of_many_targets_is_nobody_s_detected_gpu(judge_report: Judge, finding: Find) -> None:
    command = "nvcc -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_100,code=sm_100 -c k.cu\n"
    text = command + "nvcc fatal   : Unsupported gpu architecture 'compute_100'\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.LIKELY


def test_a_target_that_cuda_13_dropped(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(
        "nvcc fatal   : Unsupported gpu architecture 'compute_70'\n", {"cc": "8.9", "cuda_toolkit": "13.0"}
    )
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert remedies(found)[-1] == ("toolkit", "cuda", "<13")


def test_native_is_a_word_that_old_compilers_lack(judge_report: Judge) -> None:
    text = "nvcc fatal   : Value 'native' is not defined for option 'gpu-architecture'\nmake: *** [Makefile:245: ggml-cuda.o] Error 1\n"
    first = judge_report(text).findings[0]
    assert first.cause == "toolkit-too-old-for-library"
    assert ("toolkit", ">=11.6") in [(remedy.kind, remedy.value) for remedy in first.remedies]


def test_a_target_that_may_be_left_out(judge_report: Judge, finding: Find) -> None:
    text = (
        "AssertionError: sm100 compilation for Flash MLA requires NVCC 12.9 or higher. "
        "Please set FLASH_MLA_DISABLE_SM100=1 to disable sm100 compilation, or update your environment.\n"
    )
    judged = judge_report(text)
    found = finding(judged, "toolkit-too-old-for-library")
    assert judged.findings[0] is found
    assert found.component == "flashmla"
    assert (found.remedies[0].kind, found.remedies[0].name) == ("env", "FLASH_MLA_DISABLE_SM100")


def test_cmake_names_the_release_it_found_and_the_one_it_wants(judge_report: Judge, finding: Find) -> None:
    text = "CMake Error at CMakeLists.txt:141 (message):\n  CUDA_VERSION 12.2 must be at least 12.4\n-- Configuring incomplete, errors occurred!\n"
    assert ("toolkit", "cuda", ">=12.4") in [
        (r.kind, r.name, r.value) for r in finding(judge_report(text), CAUSE).remedies
    ]


@pytest.mark.parametrize(
    ("line", "since"),
    [
        ("AssertionError: NVCC /opt/cuda/bin/nvcc version 12.1 is lower than 12.3", "12.3"),
        ("RuntimeError: CUDA version (11.6) is older than the required version 11.8", "11.8"),
        ("RuntimeError: The CUDA toolkit version 12.0 is too old, at least 12.4 is needed to build this", "12.4"),
    ],
)
def test_a_check_that_compares_the_toolkit_with_what_it_asks_for_names_both(
    line: str, since: str, judge_report: Judge, finding: Find
) -> None:
    log = f'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.10/site-packages/deep_gemm/jit/compiler.py", line 56, in get_nvcc_compiler\n{line}\n'
    found = finding(judge_report(log), CAUSE)
    assert found.component == "deepgemm"
    assert ("toolkit", "cuda", f">={since}") in remedies(found)


def test_a_toolkit_that_is_not_too_old_in_words_of_a_comparison_is_none() -> None:
    from gpuwhy.investigate import diagnose_log

    said = b"INFO 10-02 CUDA version 12.8 is newer than 12.4, all features are on\n"
    assert CAUSE not in [each.cause for each in diagnose_log(said, "report").findings]

"""toolkit-missing: every program's words for 'no nvcc', and the host facts that make it another cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "toolkit-missing"
FLASHINFER = """\
(Worker pid=5) ERROR 01-14 10:02:11 [multiproc_executor.py:870]   File "/srv/env/lib/python3.12/site-packages/flashinfer/jit/cpp_ext.py", line 61, in get_cuda_path
(Worker pid=5) ERROR 01-14 10:02:11 [multiproc_executor.py:870] RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist
"""
NONE_PLUS_STR = """\
Traceback (most recent call last):
  File "/tmp/pip-req-build-7x/apex/setup.py", line 33, in get_cuda_bare_metal_version
    raw_output = subprocess.check_output([cuda_dir + "/bin/nvcc", "-V"], universal_newlines=True)
TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'
"""
TORCH = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.\n"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


@pytest.mark.parametrize(("text", "component"), [
    (FLASHINFER, "flashinfer"),
    ("RuntimeError: Could not find nvcc\n  File \"/x/site-packages/flashinfer/jit/cpp_ext.py\", line 20, in get_cuda_path\n", "flashinfer"),
    (TORCH, "torch"),
    (("  File \"/tmp/pip-install-a1/causal-conv1d_00112233445566778899aabbccddeeff/setup.py\", line 90\n"
     "UserWarning: causal_conv1d was requested, but nvcc was not found.  Are you sure your environment has nvcc available?\n"
     "NameError: name 'bare_metal_version' is not defined\n"), "causal-conv1d"),
    (("  File \"/x/site-packages/deepspeed/ops/op_builder/builder.py\", line 40, in installed_cuda_version\n"
     "deepspeed.ops.op_builder.builder.MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)\n"), "deepspeed"),
    ("CMake Error at llama.cpp/ggml/CMakeLists.txt:9 (enable_language):\n  No CMAKE_CUDA_COMPILER could be found.\n", "llama.cpp"),
    ("/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found\nninja: build stopped: subcommand failed.\n  /root/.cache/flashinfer/0.6.5/89/cached_ops\n", "flashinfer"),
    ("make: nvcc: No such file or directory\n", None),
    ("FileNotFoundError: nvcc not found at '/usr/local/cuda/bin/nvcc'. Ensure CUDA path '/usr/local/cuda' is correct.\n", None),
    (("Failed to get device capability: nvcc not found and PyTorch is not built with CUDA support. Could not determine CUDA version..\n"
     "RuntimeError: FlashInfer requires GPUs with sm75 or higher\n"), "flashinfer"),
    (("Traceback (most recent call last):\n  File \"/x/site-packages/deep_gemm/__init__.py\", line 60, in _find_cuda_home\n"
     "    assert cuda_home is not None\nAssertionError\n"), "deepgemm"),
    ("RuntimeError: Cannot find CUDA_HOME. CUDA must be available to build the package.\n", None),
    ("CMake Error at /usr/share/cmake/Modules/FindCUDA.cmake:859 (message):\n  Specify CUDA_TOOLKIT_ROOT_DIR\n", None),
    ("  Building wheel for transformer-engine (setup.py): started\n      RuntimeError: Could not find nvcc executable\n", "transformer-engine"),
    ("clang: error: cannot find CUDA installation; provide its path via '--cuda-path'\n", None),
    (NONE_PLUS_STR, "apex"),
])  # fmt: skip
def test_every_way_of_saying_that_there_is_no_nvcc(judge_report: Judge, text: str, component: str | None) -> None:
    judgement = judge_report(text)
    assert judgement.findings[0].cause == CAUSE
    assert judgement.findings[0].component == component
    assert judgement.findings[0].certainty is not Certainty.PROVEN


def test_a_search_that_covered_everything_is_likely_a_bare_name_possible(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report(FLASHINFER), CAUSE).certainty is Certainty.LIKELY
    bare = finding(judge_report("sh: 1: nvcc: not found\n"), CAUSE)
    assert bare.certainty is Certainty.POSSIBLE
    assert {"cuda_toolkit", "other_toolkits"} <= {m.key for m in bare.missing}
    assert bare.rivals == ("toolkit-path-wrong",)


def test_a_searched_host_without_any_toolkit_proves_it(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(FLASHINFER, {"toolkits": [], "cuda_toolkit": None}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert not found.missing


@pytest.mark.parametrize("text", [TORCH, FLASHINFER, "/bin/sh: 1: /usr/local/cuda-12.1/bin/nvcc: not found\n"])
def test_an_nvcc_elsewhere_makes_it_a_wrong_path(judge_report: Judge, text: str) -> None:
    judgement = judge_report(text, {"cuda_toolkit": None, "other_toolkits./opt/cuda-12.8": "12.8"})
    assert judgement.findings[0].cause == "toolkit-path-wrong"
    assert CAUSE in [x.cause for x in judgement.ruled_out]


def test_a_malformed_path_is_no_missing_toolkit(judge_report: Judge) -> None:
    judgement = judge_report("/bin/sh: 1: /opt/cuda/bin:/opt/cuda/bin/nvcc: not found\n")
    assert names(judgement) == ["toolkit-path-wrong"]
    assert CAUSE in [x.cause for x in judgement.ruled_out]


def test_a_cpu_build_of_torch_never_looks_for_a_toolkit(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TORCH, {"torch": "2.9.0+cpu"}), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert ("package", "torch", "CUDA build") in [(r.kind, r.name, r.value) for r in found.remedies]


def test_the_ways_around_are_those_of_the_engine(judge_report: Judge, finding: Find) -> None:
    vllm = [(r.kind, r.name, r.value) for r in finding(judge_report(FLASHINFER), CAUSE).remedies]
    assert vllm[:2] == [("env", "VLLM_USE_FLASHINFER_SAMPLER", "0"), ("flag", "--attention-backend", "TRITON_ATTN")]
    assert ("toolkit", "cuda", "match:torch") in vllm
    sglang = FLASHINFER.replace("flashinfer/jit", "sglang/srt") + "server_args=ServerArgs(model_path='/m')\n"
    assert "--sampling-backend" in [
        r.name
        for r in finding(
            judge_report(sglang.replace("multiproc_executor.py", "scheduler.py").replace("(Worker pid=5) ", "")), CAUSE
        ).remedies
    ]


def test_the_toolkit_to_install_is_torch_s(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TORCH, {"torch": "2.11.0+cu130"}), CAUSE)
    assert ("toolkit", "cuda", "13.0") in [(r.kind, r.name, r.value) for r in found.remedies]


GATE = "RuntimeError: FlashInfer requires GPUs with sm75 or higher\n"


@pytest.mark.parametrize(("facts", "is_listed"), [
    ({}, True),
    ({"cc": "12.0", "cuda_toolkit": None, "torch": "2.9.1+cu128"}, True),
    ({"cc": "12.0", "cuda_toolkit": "12.8"}, False),
    ({"cc": "8.9"}, False),
])  # fmt: skip
def test_behind_flashinfer_s_check_it_is_only_ever_second(
    judge_report: Judge, facts: dict[str, Any], is_listed: bool
) -> None:
    judgement = judge_report(GATE, facts)
    assert (CAUSE in names(judgement)) is is_listed
    if is_listed:
        assert judgement.findings[0].cause == "toolkit-too-old-for-arch"


@pytest.mark.parametrize(
    ("facts", "first"), [({"cuda_toolkit": None}, CAUSE), ({"cuda_toolkit": "12.4"}, "toolkit-incomplete")]
)
def test_a_core_header_is_absent_with_the_toolkit_or_without(
    judge_report: Judge, facts: dict[str, Any], first: str
) -> None:
    text = "src/device.c:14:10: fatal error: cuda_runtime.h: No such file or directory\n"
    assert judge_report(text, facts).findings[0].cause == first


def test_a_toolkit_that_runs_is_not_missing(judge_report: Judge) -> None:
    assert CAUSE not in names(judge_report("nvcc fatal   : Unsupported gpu architecture 'compute_120'\n"))
    assert CAUSE not in names(judge_report("x.cu:3:10: fatal error: curand.h: No such file or directory\n"))


def test_a_type_error_of_other_code_is_none_of_it(judge_report: Judge) -> None:
    text = NONE_PLUS_STR.replace('[cuda_dir + "/bin/nvcc", "-V"]', "[prefix + name]").replace("cuda_bare_metal", "some")
    assert CAUSE not in names(judge_report(text))


def test_the_setup_script_s_own_words_and_not_the_name_that_it_then_lacks(judge_report: Judge, finding: Find) -> None:
    said = "mamba_ssm was requested, but nvcc was not found.  Are you sure your environment has nvcc available?"
    found = finding(judge_report(f"{said}\nNameError: name 'bare_metal_version' is not defined\n"), "toolkit-missing")
    assert found.evidence[0].quote == said

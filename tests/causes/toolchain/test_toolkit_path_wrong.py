"""toolkit-path-wrong: malformed paths, and a good toolkit that something else hides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.causes.toolchain.toolkit_path_wrong import path_fault, preferred
from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.model.host import ToolkitInstall, Torch

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "toolkit-path-wrong"
GATE = """\
Failed to get device capability: SM 12.x requires CUDA >= 12.9.
RuntimeError: FlashInfer requires GPUs with sm75 or higher
"""


@pytest.mark.parametrize(("path", "is_faulty"), [
    (":/usr/local/cuda-12.8/bin/nvcc", True),
    ("/usr/local/cuda-12.1:/usr/local/cuda/bin/nvcc", True),
    ("/usr/local/cuda/bin/bin/nvcc", True),
    ("/usr/bin/nvcc/bin/nvcc", True),
    ("$CUDA_HOME/bin/nvcc", True),
    ("~/cuda/bin/nvcc", True),
    ("/usr/local/cuda/bin/nvcc", False),
    ("/opt/conda/envs/x/bin/nvcc", False),
])  # fmt: skip
def test_paths_that_cannot_be_right(path: str, is_faulty: bool) -> None:
    assert (path_fault(path) is not None) is is_faulty


@pytest.mark.parametrize("line", [
    "/bin/sh: 1: :/opt/cuda-12.6/bin/nvcc: not found",
    "FileNotFoundError: [Errno 2] No such file or directory: ':/opt/cuda-12.6/bin/nvcc'",
    "sh: /opt/cuda-12.6/bin/bin/nvcc: No such file or directory",
])  # fmt: skip
def test_a_malformed_path_is_proven_by_itself_and_repaired(judge_report: Judge, finding: Find, line: str) -> None:
    found = finding(judge_report(line + "\nninja: build stopped: subcommand failed.\n"), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.evidence[0].quote == line
    assert (found.remedies[0].kind, found.remedies[0].name, found.remedies[0].value) == (
        "env",
        "CUDA_HOME",
        "/opt/cuda-12.6",
    )


def test_a_good_toolkit_at_hand_wins_over_too_old(judge_report: Judge, finding: Find) -> None:
    host = {"cc": "12.0", "cuda_toolkit": "12.8", "other_toolkits./opt/cuda-12.9": "12.9"}
    judgement = judge_report(GATE, host)
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] is found
    assert found.certainty is Certainty.PROVEN
    assert [(r.name, r.value) for r in found.remedies[:1]] == [("CUDA_HOME", "/opt/cuda-12.9")]
    assert any(x.cause == "toolkit-too-old-for-arch" for x in judgement.ruled_out)


def test_without_a_better_toolkit_it_is_ruled_out(judge_report: Judge) -> None:
    judgement = judge_report(GATE, {"cc": "12.0", "cuda_toolkit": "12.8", "other_toolkits./opt/cuda-12.6": "12.6"})
    assert any(x.cause == CAUSE for x in judgement.ruled_out)
    assert judgement.findings[0].cause == "toolkit-too-old-for-arch"


def test_it_stays_possible_while_nobody_looked_at_the_host(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(GATE), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "other_toolkits" in {m.key for m in found.missing}


def test_a_refused_target_that_another_installed_toolkit_knows(judge_report: Judge) -> None:
    line = "nvcc fatal   : Unsupported gpu architecture 'compute_89'"
    host = {"cc": "8.9", "cuda_toolkit": "11.5", "other_toolkits./usr/local/cuda": "12.4"}
    assert judge_report(line, host).findings[0].cause == CAUSE
    without = {"cc": "8.9", "cuda_toolkit": "11.5", "other_toolkits./usr/local/cuda-11.2": "11.2"}
    assert judge_report(line, without).findings[0].cause == "toolkit-too-old-for-arch"


def test_torch_s_own_major_is_preferred(judge_report: Judge) -> None:
    installs = (ToolkitInstall("/usr/local/cuda-13.2", "13.2"), ToolkitInstall("/usr/local/cuda-12.9", "12.9"))
    assert preferred(installs, Torch("2.9.0+cu128", "12.8", None)).version == "12.9"
    assert preferred(installs, Torch("2.13.0+cu130", "13.0", None)).version == "13.2"


def test_another_major_than_torch_s_says_what_it_needs_at_load(judge_report: Judge, finding: Find) -> None:
    host = {"cc": "12.0", "cuda_toolkit": "12.8", "other_toolkits./usr/local/cuda-13.2": "13.2", "torch": "2.9.0+cu128"}
    assert any("libcudart.so.13" in note for note in finding(judge_report(GATE, host), CAUSE).notes)


def test_another_toolkit_that_lacks_the_option_too_is_no_better(judge_report: Judge) -> None:
    line = "nvcc fatal   : Unknown option '--compress-mode=size'"
    worse = judge_report(line, {"cuda_toolkit": "12.4", "other_toolkits./usr/local/cuda-12.6": "12.6"})
    assert worse.findings[0].cause != CAUSE
    better = judge_report(line, {"cuda_toolkit": "12.4", "other_toolkits./usr/local/cuda-12.8": "12.8"})
    assert better.findings[0].cause == CAUSE


def test_a_missing_nvcc_leaves_open_that_one_is_installed_elsewhere(judge_report: Judge, finding: Find) -> None:
    line = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root."
    found = finding(judge_report(line), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert judge_report(line, {"cuda_toolkit": None, "other_toolkits./opt/cuda": "12.8"}).findings[0].cause == CAUSE


def test_headers_of_another_toolkit(judge_report: Judge) -> None:
    line = 'error: static assertion failed with "CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths"'
    assert judge_report(line).findings[0].cause == CAUSE


def test_cuda_home_that_names_the_program(judge_report: Judge) -> None:
    text = "NotADirectoryError: [Errno 20] Not a directory: '/usr/local/cuda-12.8/bin/nvcc/bin/nvcc'\n  File \"/v/lib/python3.12/site-packages/flashinfer/jit/core.py\", line 201, in build\n"
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == ("toolkit-path-wrong", Certainty.PROVEN)
    assert (first.remedies[0].name, first.remedies[0].value) == ("CUDA_HOME", "/usr/local/cuda-12.8")


def test_the_root_of_nvshmem_is_not_found(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("AssertionError: Failed to find NVSHMEM\n"), "toolkit-path-wrong")
    assert found.component == "deepep"
    assert ("env", "NVSHMEM_DIR") in [(each.kind, each.name) for each in found.remedies]


def test_a_header_of_cutlass(judge_report: Judge, finding: Find) -> None:
    text = (
        "/opt/venv/lib/python3.12/site-packages/deep_gemm/include/deep_gemm/common/utils.cuh:4:10: fatal error: cute/arch/cluster_sm90.hpp: No such file or directory\n"
        "compilation terminated.\n"
    )
    found = finding(judge_report(text), "toolkit-path-wrong")
    assert found.component == "deepgemm"
    assert "submodule" in (found.remedies[0].value or "")

"""toolkit-incomplete: headers, libraries and programs of the toolkit, told apart from everything else that is missing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.causes.toolchain._toolkit_files import package_of_header, package_of_library
from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "toolkit-incomplete"
SAMPLING = """\
(EngineCore_DP0 pid=9) /usr/local/cuda/bin/nvcc --generate-dependencies-with-compile -c /srv/env/lib/python3.12/site-packages/flashinfer/data/csrc/sampling.cu
(EngineCore_DP0 pid=9) In file included from /srv/env/lib/python3.12/site-packages/flashinfer/data/include/flashinfer/sampling.cuh:20:
(EngineCore_DP0 pid=9) fatal error: curand_philox4x32_x.h: No such file or directory
(EngineCore_DP0 pid=9) compilation terminated.
(EngineCore_DP0 pid=9) ninja: build stopped: subcommand failed.
"""


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


@pytest.mark.parametrize(("header", "package"), [
    ("curand_kernel.h", "libcurand-dev"),
    ("cublasLt.h", "libcublas-dev"),
    ("cusolverDn.h", "libcusolver-dev"),
    ("cuda_profiler_api.h", "cuda-profiler-api"),
    ("nvtx3/nvToolsExt.h", "cuda-nvtx"),
    ("thrust/complex.h", "cuda-cccl"),
    ("cuda/std/optional", "cuda-cccl"),
    ("cuda_fp16.h", "cuda-cudart-dev"),
    ("crt/host_defines.h", "cuda-nvcc"),
    ("Python.h", None),
    ("BatchedGemmEnums.h", None),
    ("cutlass/cutlass.h", None),
    ("cuda/cuda_kernels.h", None),
    ("stdio.h", None),
])  # fmt: skip
def test_the_package_of_a_header(header: str, package: str | None) -> None:
    assert package_of_header(header) == package


def test_the_package_of_a_library() -> None:
    assert package_of_library("cublasLt_static") == "libcublas-dev"
    assert package_of_library("cuda") is None


def test_the_package_is_named_in_the_release_of_the_toolkit(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(SAMPLING, {"cuda_toolkit": "12.9"}), CAUSE)
    assert (found.component, found.certainty) == ("flashinfer", Certainty.LIKELY)
    assert "curand_philox4x32_x.h" in found.evidence[0].quote
    assert (found.remedies[0].kind, found.remedies[0].name) == ("system-package", "libcurand-dev-12-9")
    assert found.remedies[0].commands == ("apt-get install -y --no-install-recommends libcurand-dev-12-9",)
    unknown = finding(judge_report(SAMPLING), CAUSE)
    assert (unknown.remedies[0].name, unknown.remedies[0].value) == ("libcurand-dev", "match:cuda")


@pytest.mark.parametrize("text", [
    "/b/x.cc:3:10: fatal error: 'cusparse.h' file not found\n",
    "x.cu(2): catastrophic error: cannot open source file \"nvrtc.h\"\n",
    "x.cpp(9): fatal error C1083: Cannot open include file: 'cublas_v2.h': No such file or directory\n",
    "default_program(5): catastrophic error: could not open source file \"curand_kernel.h\" (no directories in search list)\n",
    "/usr/bin/ld: cannot find -lcublasLt: No such file or directory\ncollect2: error: ld returned 1 exit status\n",
    "ld.lld: error: unable to find library -lnvrtc\n",
    "CMake Error at CMakeLists.txt:40 (target_link_libraries):\n  Target \"x\" links to:\n\n    CUDA::curand\n\n  but the target was not found.\n",
    "sh: 1: cudafe++: not found\n",
    "RuntimeError: cuobjdump not found in PATH\n",
])  # fmt: skip
def test_compilers_linkers_and_build_systems(judge_report: Judge, text: str) -> None:
    assert names(judge_report(text))[0] == CAUSE


@pytest.mark.parametrize(("text", "first"), [
    ("/tmp/tmpq/main.c:5:10: fatal error: Python.h: No such file or directory\n", "python-headers-missing"),
    ("/usr/bin/ld: cannot find -lcuda: No such file or directory\n", "libcuda-not-linkable"),
])  # fmt: skip
def test_what_is_not_the_toolkit_s(judge_report: Judge, text: str, first: str) -> None:
    assert names(judge_report(text))[0] == first
    assert CAUSE not in names(judge_report(text))


def test_a_header_that_flashinfer_downloads_is_not_the_toolkit_s(judge_report: Judge) -> None:
    assert CAUSE not in names(judge_report("a.cu:3:10: fatal error: flashinferMetaInfo.h: No such file or directory\n"))


@pytest.mark.parametrize(("toolkit", "first"), [("11.7", "toolkit-too-old-for-library"), ("12.4", CAUSE)])
def test_a_header_that_came_later_is_a_matter_of_age(judge_report: Judge, toolkit: str, first: str) -> None:
    text = "nvcc -c fp8.cu\nfp8.cu:7:10: fatal error: cuda_fp8.h: No such file or directory\n"
    judgement = judge_report(text, {"cuda_toolkit": toolkit})
    assert names(judgement)[0] == first
    other = {CAUSE, "toolkit-too-old-for-library"} - {first}
    assert other <= {x.cause for x in judgement.ruled_out}


def test_a_file_that_is_there_under_another_root_rules_it_out(judge_report: Judge) -> None:
    judgement = judge_report(SAMPLING, {"files./opt/cuda-12.9/include/curand_philox4x32_x.h": "present"})
    assert CAUSE not in names(judgement)
    assert "curand_philox4x32_x.h" in next(x.why for x in judgement.ruled_out if x.cause == CAUSE)


def test_it_stays_possible_where_no_compiler_is_seen(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("gpu.c:1:10: fatal error: cuda.h: No such file or directory\n"), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "toolkit-missing" in found.rivals
    assert {"cuda_toolkit", "other_toolkits"} <= {m.key for m in found.missing}


def test_an_nvcc_that_may_not_be_executed(judge_report: Judge, finding: Find) -> None:
    text = "Failed to get device capability: [Errno 13] Permission denied: '/opt/cuda/bin/nvcc'.\nRuntimeError: FlashInfer requires GPUs with sm75 or higher\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("flashinfer", Certainty.LIKELY)
    assert found.remedies[0].kind == "files"


def test_a_hostile_name_never_reaches_a_command(judge_report: Judge) -> None:
    text = "x.cu:1:10: fatal error: curand$(reboot).h: No such file or directory\nPermission denied: '/a;reboot/nvcc'\n"
    for found in judge_report(text).findings:
        for command in [c for r in found.remedies for c in (*r.commands, *r.check)] + [
            m.command for m in found.missing
        ]:
            assert "reboot" not in command


def test_nvcc_without_its_own_library(judge_report: Judge, finding: Find) -> None:
    text = "pip install causal-conv1d\n/usr/local/cuda/bin/nvcc: error while loading shared libraries: libnvvm.so.4: cannot open shared object file\nerror: command '/usr/local/cuda/bin/nvcc' failed with exit code 127\n"
    judgement = judge_report(text)
    assert "libnvvm.so.4" in finding(judgement, CAUSE).title
    assert "library-missing" not in [found.cause for found in judgement.findings]


@pytest.mark.parametrize(("builder", "variable"), [("transformer-engine-torch", "CUDNN_PATH"), ("apex", "CPATH")])
def test_the_headers_of_cudnn_that_came_with_torch_are_tried_before_anything_is_installed(
    builder: str, variable: str, judge_report: Judge, finding: Find
) -> None:
    text = f"/tmp/pip-install/{builder}/csrc/cudnn_utils.h:10:10: fatal error: cudnn.h: No such file or directory\n"
    found = finding(judge_report(text), "toolkit-incomplete")
    assert [(r.kind, r.name) for r in found.remedies][:2] == [("env", variable), ("system-package", "libcudnn9-dev")]

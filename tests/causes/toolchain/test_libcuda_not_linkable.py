"""libcuda-not-linkable: a linker's words, as against the same library missing when a program starts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "libcuda-not-linkable"
IMAGE_BUILD = """\
#14 88.2 /usr/bin/ld: warning: libcuda.so.1, needed by bin/libggml-cuda.so, not found (try using -rpath or -rpath-link)
#14 88.2 /usr/bin/ld: bin/libggml-cuda.so: undefined reference to `cuDeviceGet'
#14 88.2 /usr/bin/ld: bin/libggml-cuda.so: undefined reference to `cuMemCreate'
#14 88.2 collect2: error: ld returned 1 exit status
#14 88.3 gmake[2]: *** [tools/server/CMakeFiles/llama-server.dir/build.make:200: bin/llama-server] Error 1
"""


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


@pytest.mark.parametrize("line", [
    "/usr/bin/ld: cannot find -lcuda",
    "/opt/conda/compiler_compat/ld: cannot find -lcuda: No such file or directory",
    "ld.lld: error: unable to find library -lcuda",
    "mold: fatal: library not found: cuda",
    "LINK : fatal error LNK1181: cannot open input file 'cuda.lib'",
])  # fmt: skip
def test_the_words_of_each_linker(judge_report: Judge, finding: Find, line: str) -> None:
    found = finding(judge_report(line + "\ncollect2: error: ld returned 1 exit status\n"), CAUSE)
    assert found.evidence[0].quote == line
    assert found.component == "triton"


def test_a_serving_engine_links_triton_s_helper(judge_report: Judge, finding: Find) -> None:
    text = (
        "(VllmWorkerProcess pid=7) INFO 02-01 10:00:00 weight_utils.py:254] Using model weights format ['*.safetensors']\n"
        "/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1 exit status\n"
    )
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("triton", Certainty.PROVEN)
    assert [r.name for r in found.remedies][:2] == ["TRITON_LIBCUDA_PATH", "LIBRARY_PATH"]


def test_an_image_build_without_a_driver(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(IMAGE_BUILD), CAUSE)
    assert found.component == "llama.cpp"
    assert "needed by" in found.evidence[0].quote
    assert {"LD_LIBRARY_PATH", "libcuda.so"} <= {r.name for r in found.remedies}
    assert "TRITON_LIBCUDA_PATH" not in {r.name for r in found.remedies}


def test_the_stubs_of_the_toolkit_that_the_log_names(judge_report: Judge, finding: Find) -> None:
    text = "g++ x.o -L/usr/local/cuda-12.6/lib64 -lcuda -o x.so\n/usr/bin/ld: cannot find -lcuda\n"
    assert "/usr/local/cuda-12.6/lib64/stubs" in [r.value for r in finding(judge_report(text), CAUSE).remedies]


def test_triton_lists_where_the_library_lies(judge_report: Judge, finding: Find) -> None:
    text = "AssertionError: libcuda.so cannot found!\nPossible files are located at ['/usr/lib64/libcuda.so.1'].Please create a symlink of libcuda.so to any of the files.\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.LIKELY


def test_it_stays_possible_while_there_may_be_no_libcuda_at_all(judge_report: Judge, finding: Find) -> None:
    text = 'AssertionError: libcuda.so cannot found!\nPlease make sure GPU is set up and then run "/sbin/ldconfig" (requires sudo) to refresh the linker cache.\n'
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "libcuda_path" in {m.key for m in found.missing}
    assert "container-gpu-not-passed" in found.rivals
    assert CAUSE not in names(judge_report(text, {"libcuda_path": None}))


@pytest.mark.parametrize("text", [
    "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory\n",
    "/usr/bin/ld: cannot find -lcudart: No such file or directory\n",
    "/usr/bin/ld: cannot find -lcuda_driver_helpers\n",
    "x.o: undefined reference to `cublasCreate_v2'\n",
])  # fmt: skip
def test_a_program_that_starts_or_another_library_is_not_it(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))

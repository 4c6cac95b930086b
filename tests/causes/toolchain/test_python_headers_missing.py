"""python-headers-missing: Python.h in every compiler's words, with the package of the right interpreter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "python-headers-missing"
TRITON = """\
/tmp/tmpu81x/__triton_launcher.c:7:10: fatal error: Python.h: No such file or directory
    7 | #include <Python.h>
compilation terminated.
subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpu81x/__triton_launcher.c', '-O3', '-shared', '-lcuda', '-I/usr/include/python3.12']' returned non-zero exit status 1.
"""


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def test_triton_s_helper(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TRITON), CAUSE)
    assert (found.component, found.certainty) == ("triton", Certainty.PROVEN)
    assert found.evidence[0].quote.endswith("fatal error: Python.h: No such file or directory")
    assert [r.name for r in found.remedies] == ["python3-dev", "python3.12-dev"]


@pytest.mark.parametrize("line", [
    "src/a.c:1:10: fatal error: 'Python.h' file not found",
    "src/a.cpp:1:10: fatal error: pyconfig.h: No such file or directory",
    "a.cpp(3): fatal error C1083: Cannot open include file: 'Python.h': No such file or directory",
    "/usr/bin/ld: cannot find -lpython3.11: No such file or directory",
    "  Could NOT find Python3 (missing: Python3_INCLUDE_DIRS Development.Module)",
    "RuntimeError: Python headers not found",
])  # fmt: skip
def test_compilers_linkers_and_cmake(judge_report: Judge, line: str) -> None:
    assert names(judge_report(line + "\n"))[0] == CAUSE


def test_what_pip_builds_is_the_component(judge_report: Judge, finding: Find) -> None:
    text = "  Building wheel for xformers (setup.py): started\n  ext.cpp:4:10: fatal error: Python.h: No such file or directory\n  ERROR: Failed building wheel for xformers\n"
    assert finding(judge_report(text), CAUSE).component == "xformers"


def test_a_header_that_is_installed_rules_it_out(judge_report: Judge) -> None:
    facts = {"files./usr/include/python3.12/Python.h": "present"}
    judgement = judge_report(TRITON, facts)
    assert CAUSE not in names(judgement)
    assert CAUSE in [x.cause for x in judgement.ruled_out]
    assert CAUSE in names(judge_report(TRITON, {"files./usr/include/python3.10/Python.h": "present"}))


def test_cmake_s_summary_alone_is_only_likely(judge_report: Judge, finding: Find) -> None:
    text = "-- Could NOT find Python (missing: Python_LIBRARIES Development)\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.LIKELY


@pytest.mark.parametrize("text", [
    "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.\n",
    "x.cu:3:10: fatal error: curand_kernel.h: No such file or directory\n",
    "a.c:3:10: fatal error: numpy/arrayobject.h: No such file or directory\n",
    "a.c:3:10: fatal error: longintrepr.h: No such file or directory\n",
    "-- Could NOT find Python (missing: Interpreter)\n",
])  # fmt: skip
def test_other_headers_and_a_missing_compiler_are_not_it(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_inductor_s_own_wrapper_is_torch_s(judge_report: Judge, finding: Find) -> None:
    text = "torch._inductor.exc.CppCompileError: C++ compile error\n/var/c/torchinductor_u/pi/h.h:1:10: fatal error: Python.h: No such file or directory\n"
    assert finding(judge_report(text), CAUSE).component == "torch"

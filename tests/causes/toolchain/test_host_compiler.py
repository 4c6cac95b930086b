"""host-compiler: absent, incomplete, too new for nvcc, too old for the code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "host-compiler"
REFUSED = "/usr/local/cuda/include/crt/host_config.h:139:2: error: #error -- unsupported GNU version! gcc versions later than 13 are not supported!\n"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def remedies(found: Finding) -> list[tuple[str, str, str]]:
    return [(r.kind, r.name, r.value) for r in found.remedies]


@pytest.mark.parametrize(("line", "remedy"), [
    ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.", ("system-package", "gcc")),
    ("torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')", ("system-package", "g++")),
    ("sh: 1: gcc: not found", ("system-package", "gcc")),
    ("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory", ("system-package", "gcc")),
    ("error: unable to execute 'g++': No such file or directory", ("system-package", "g++")),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", ("package", "ninja")),
    ("RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)", ("package", "ninja")),
    ("RuntimeError: CMake must be installed to build the following extensions: _core", ("package", "cmake")),
    ("gcc: fatal error: cannot execute ‘cc1plus’: execvp: No such file or directory", ("system-package", "g++")),
    ("collect2: fatal error: cannot find 'ld'", ("system-package", "binutils")),
    ("error: can't find Rust compiler", ("system-package", "rustc")),
    ("error: Microsoft Visual C++ 14.0 or greater is required. Get it with \"Microsoft C++ Build Tools\"", ("system-package", "visual-studio-build-tools")),
])  # fmt: skip
def test_every_way_of_having_none(judge_report: Judge, finding: Find, line: str, remedy: tuple[str, str]) -> None:
    found = finding(judge_report(line + "\n"), CAUSE)
    assert found.evidence[0].quote == line
    assert remedy in [(r.kind, r.name) for r in found.remedies]


def test_cmake_speaks_below_its_headline(judge_report: Judge, finding: Find) -> None:
    text = "CMake Error at CMakeLists.txt:2 (project):\n  No CMAKE_CXX_COMPILER could be found.\n\n  Tell CMake where to find the compiler\n"
    found = finding(judge_report(text), CAUSE)
    assert found.explains
    assert ("system-package", "g++") in [(r.kind, r.name) for r in found.remedies]


def test_triton_is_the_component_of_its_own_message(judge_report: Judge, finding: Find) -> None:
    text = '  File "/x/site-packages/sglang/srt/model_executor/model_runner.py", line 9, in f\nRuntimeError: Failed to find C compiler. Please specify via CC environment variable.\n'
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.certainty) == ("triton", Certainty.PROVEN)
    # a variable helps only where a compiler is known to be
    assert remedies(found)[0] == ("system-package", "gcc", "")
    assert ("env", "CC", "path of a C compiler") not in remedies(found)
    known = finding(judge_report(text, {"gcc": "13.2.0"}), CAUSE)
    assert remedies(known)[0] == ("env", "CC", "path of a C compiler")


def test_no_path_is_asked_for_where_none_can_exist(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("RuntimeError: Failed to find C compiler.\n", {"gcc": None}), CAUSE)
    assert "CC" not in [r.name for r in found.remedies]


def test_a_refused_compiler_gets_the_newest_accepted_one_and_the_first_toolkit(
    judge_report: Judge, finding: Find
) -> None:
    found = finding(judge_report(REFUSED, {"gcc": "14.2.0"}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "gcc 14.2.0" in found.title
    assert remedies(found)[:4] == [
        ("env", "CC", "/usr/bin/gcc-13"),
        ("system-package", "gcc-13", ""),
        ("system-package", "g++-13", ""),
        ("toolkit", "cuda", ">=12.8"),
    ]


@pytest.mark.parametrize("line", [
    "RuntimeError: The current installed version of g++ (14.1.0) is greater than the maximum required version by CUDA 12.4. Please make sure to use an adequate version of g++ (>=6.0.0, <14.0).",
    "/usr/include/c++/14/bits/std_function.h:435:145: error: parameter packs not expanded with '...':",
    "nvcc fatal   : No supported gcc/g++ host compiler found, but clang-14 is available",
    "/usr/local/cuda/include/crt/host_config.h:151:2: error: #error -- unsupported clang version! clang version must be less than 17 and greater than 3.2 .",
    "/usr/lib/gcc/x86_64-linux-gnu/14/include/amxtileintrin.h(42): error: identifier \"__builtin_ia32_ldtilecfg\" is undefined",
])  # fmt: skip
def test_nvcc_does_not_accept_what_it_finds(judge_report: Judge, finding: Find, line: str) -> None:
    found = finding(judge_report(line + "\n"), CAUSE)
    assert any(kind == "toolkit" for kind, _, _ in remedies(found))


def test_errors_in_headers_of_an_accepted_compiler_are_not_it(judge_report: Judge) -> None:
    line = '/usr/lib/gcc/x86_64-linux-gnu/12/include/x.h(42): error: identifier "foo" is undefined\n'
    judgement = judge_report(line, {"cuda_toolkit": "12.4", "gcc": "12.3.0"})
    assert CAUSE not in names(judgement)
    assert names(judge_report(line, {"cuda_toolkit": "11.8", "gcc": "12.3.0"})) == [CAUSE]


def test_a_guess_from_the_headers_stays_likely_and_asks(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report(
            "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...':\n"
        ),
        CAUSE,
    )
    assert found.certainty is Certainty.LIKELY
    assert "cuda_toolkit" in {m.key for m in found.missing}


@pytest.mark.parametrize("text", [
    "/tmp/tmpa/main.c:5:10: fatal error: Python.h: No such file or directory\ncompilation terminated.\n",
    "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found\n",
    "g++: fatal error: Killed signal terminated program cc1plus\n",
    "error: command '/usr/bin/gcc' failed with exit code 1\n",
    "ninja: build stopped: subcommand failed.\n",
])  # fmt: skip
def test_a_compiler_that_runs_is_not_missing(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_a_newer_c_library_asks_for_a_newer_toolkit_and_no_other_gcc(judge_report: Judge, finding: Find) -> None:
    line = '/usr/include/x86_64-linux-gnu/bits/mathcalls.h(79): error: exception specification is incompatible with that of previous function "cospi"\n'
    found = finding(judge_report(line), CAUSE)
    assert "glibc" in found.title
    assert remedies(found) == [("toolkit", "cuda", "newer")]


@pytest.mark.parametrize("line", [
    "subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.",
    "torch._inductor.exc.InductorError: RuntimeError: Compiler: cl is not found.",
    "UserWarning: Error checking compiler version for cl: [WinError 2] The system cannot find the file specified",
    "distutils.errors.DistutilsPlatformError: Unable to find vcvarsall.bat",
])  # fmt: skip
def test_windows_without_a_compiler(judge_report: Judge, finding: Find, line: str) -> None:
    found = finding(judge_report(line + "\n"), CAUSE)
    assert found.remedies[0].name == "visual-studio-build-tools"


def test_deepspeed_without_ninja(judge_report: Judge, finding: Find) -> None:
    text = '  File "/v/lib/python3.10/site-packages/deepspeed/ops/op_builder/builder.py", line 496, in jit_load\nRuntimeError: Unable to JIT load the cpu_adam op due to ninja not being installed.\n'
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.remedies[0].name) == ("deepspeed", "ninja")


def test_torch_looks_for_the_compiler_by_which(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("subprocess.CalledProcessError: Command '['which', 'c++']' returned non-zero exit status 1.\n"), CAUSE)  # fmt: skip
    assert found.remedies[0].name == "g++"

"""Real output of pip, uv, cmake, ninja, make, gcc, ld, nvcc and ptxas: what failed, and what only sums up."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import only, primary, sample


@pytest.mark.parametrize(
    ("name", "tool", "line", "text"),
    [
        ("pip-build.txt", "gcc", 19, "x.c:1:10: fatal error: Nope.h: No such file or directory"),
        ("uv-build.txt", "gcc", 16, "x.c:1:10: fatal error: Nope.h: No such file or directory"),
        ("pip-no-version.txt", "pip", 10, "Could not find a version that satisfies the requirement numpy<1"),
        ("uv-no-solution.txt", "uv", 2, "error: No solution found when resolving dependencies"),
        ("cmake-cuda.txt", "cmake", 8, "CMake Error at /usr/share/cmake-3.25/Modules"),
        ("ninja-gcc.txt", "gcc", 4, "/src/app/x.cpp:1:10: fatal error: y.h: No such file or directory"),
        ("make-gcc.txt", "gcc", 2, "/src/app/x.cpp:1:10: fatal error: y.h: No such file or directory"),
        ("ninja-ld.txt", "ld", 6, "x.cpp:(.text+0x5): undefined reference to `nope()'"),
        ("nvcc.txt", "gcc", 1, 'k.cu(1): error: identifier "undefined_fn" is undefined'),
        ("ptxas.txt", "ptxas", 1, "ptxas bad.ptx, line 4; error   : Unknown modifier '.f99'"),
    ],
)
def test_the_first_error_of_the_tool_that_failed(name: str, tool: str, line: int, text: str) -> None:
    event = sample(name).primary_event
    assert event is not None
    assert (event.kind, event.tool, event.place.line) == ("build", tool, line)
    assert event.text.startswith(text)


def test_cmake_says_what_is_missing_below_its_error() -> None:
    event = sample("cmake-cuda.txt").primary_event
    assert event is not None
    assert 'Could NOT find CUDAToolkit: Found unsuitable version "13.0.88"' in event.text


def test_what_sums_up_is_an_echo() -> None:
    for name in ("pip-build.txt", "uv-build.txt", "ninja-gcc.txt", "make-gcc.txt", "ninja-ld.txt"):
        found = sample(name)
        others = [event for event in found.events if event.id != found.primary and event.kind != "warning"]
        assert others
        assert all(event.is_echo for event in others), name


def test_place_of_an_error() -> None:
    assert only("csrc/x.cuh(40): error #20: identifier undefined").detail["site"] == "csrc/x.cuh:40"
    assert only("ptxas /tmp/x.ptx, line 14; error   : Feature '.bf16' requires .target sm_80").detail == {
        "site": "/tmp/x.ptx:14"
    }


def test_a_host_compiler_that_is_not_there_explains_nvcc() -> None:
    event = primary("nogcc: No such file or directory\nnvcc fatal   : Failed to preprocess host compiler properties.\n")
    assert event.text == "nogcc: No such file or directory"
    assert event.detail["surfaced_as"] == "nvcc fatal   : Failed to preprocess host compiler properties."


@pytest.mark.parametrize(
    "line",
    [
        "bash: novllm: command not found",
        "dash: 1: novllm: not found",
        "env: ‘novllm’: No such file or directory",
        "timeout: failed to run command ‘novllm’: No such file or directory",
        "env: ‘seed/bin/python’: Permission denied",
    ],
)
def test_shells_and_launchers(line: str) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.is_fatal) == ("build", "sh", True)


@pytest.mark.parametrize(
    ("line", "kind", "tool"),
    [
        ('loc("/x/kernels/attention.py":12:0): error: unsupported target: sm_121', "build", "triton"),
        ("/x/kernels/attention.py:12:4: error: operation scheduled before its operands", "build", "triton"),
        ("error[E0432]: unresolved import `pyo3`", "build", "rustc"),
        ("error: linker `cc` not found", "build", "rustc"),
        ("LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32", "crash", "llvm"),
    ],
)
def test_other_compilers(line: str, kind: str, tool: str) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.is_fatal, event.is_echo) == (kind, tool, True, False)

"""Compilers and build scripts that refuse a GPU target, or refuse code for a target that is too low for it.

Wordings: nvcc and ptxas 11.7 to 13.5 (measured), CMake's modules, torch's extension builder.
"""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import Sign, says

REJECTED = says(
    "target-rejected",
    ("unsupported gpu architecture", "is not defined for option", "unsupported cuda gpu architecture"),
    r"Unsupported gpu architecture\s+['\"`‘](?P<target>[^'\"`’]{1,60})"
    r"|Value '(?P<target2>[^']{1,60})' is not defined for option '(?:gpu-architecture|gpu-code|arch|code)'"
    r"|unsupported CUDA gpu architecture:? '?(?P<target3>\w{1,40})",
)
INCOMPATIBLE = says(
    "targets-incompatible",
    ("incompatible code generation requested", "generated for non family-specific"),
    r"Incompatible code generation requested: arch='(?P<target>[^']{1,60})', code='[^']{1,60}'"
    r"|same GPU code \(`(?P<target2>\w{1,40})`\) generated for non family-specific",
)
UNKNOWN_ARCH = says(
    "unknown-cuda-arch", "or gpu not supported", r"Unknown CUDA arch \((?P<value>[^)]{0,80})\) or GPU not supported"
)
CMAKE_INVALID = says(
    "cmake-invalid-list",
    ("cmake_cuda_architectures:", "must be non-empty if set", "must be valid if set", "cuda_architectures is empty", "unknown cuda architecture name", "invalid value for cmake_cuda_architectures"),
    r"CMAKE_CUDA_ARCHITECTURES\b[\s\S]{0,200}?must be (?:non-empty|valid) if set|must be (?:non-empty|valid) if set"
    r"|CMAKE_CUDA_ARCHITECTURES:\s*\S.{0,80}?is not one of the following"
    r"|CUDA_ARCHITECTURES is empty for target|Unknown CUDA Architecture Name (?P<value>\S{1,60}) in CUDA_SELECT_NVCC_ARCH_FLAGS",
)  # fmt: skip
TOO_LOW = says(
    "target-too-low",
    ("requires .target", "not supported on .target", "#error", "matches the argument list"),
    r"requires \.target (?P<need>sm_\d{2,3}[af]?) or higher|not supported on \.target '(?P<target>sm_\d{2,3}[af]?)'"
    r"|#error.{0,120}\b(?:sm_?|compute capability |__CUDA_ARCH__ ?>=? ?)(?P<need2>\d{1,2}\.?\d{1,2})"
    r"|no instance of overloaded function \"atomicAdd\" matches the argument list",
)
_TRITON = lazy_pattern(r"PTX codegen error|PTXASError|\btriton\b|torch/_inductor", re.IGNORECASE)


def target_of(match: Match) -> str:
    """The refused target as it was printed."""
    return match.group("target") or match.group("target2") or match.group("target3") or match.group("value") or ""


def is_tritons(case: Case, match: Match) -> bool:
    """Whether the assembler ran for Triton, which takes the target from the GPU and never from a list."""
    near = [match.text, *(frame.path for frame in match.frames)]
    near += [line.text[:400] for line in case.lines_around(match, 20, 8)]
    return any(_TRITON.search(text) for text in near)


SIGNS: tuple[Sign, ...] = (REJECTED, INCOMPATIBLE, UNKNOWN_ARCH, CMAKE_INVALID, TOO_LOW)

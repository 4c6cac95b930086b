"""Which file belongs to which part of a CUDA toolkit, since which release, and by which package it is installed.

Package names: the index of NVIDIA's Ubuntu and RHEL repositories (``libcurand-dev-13-0``, there is no
``cuda-curand-dev``). Releases: the release notes of the CUDA toolkit, and the headers of the pip wheels.
"""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import Sign, says

HEADER_MISSING: Sign = says(
    "header-missing",
    ("no such file or directory", "file not found", "open source file", "open include file"),
    r"(?:fatal error|error)(?: C1083)?:? ['\"<‘]?(?P<header>[\w./+-]{1,200})['\">’]?(?:: No such file or directory| file not found)"
    r"|(?:cannot|could not) open (?:source|include) file:? ['\"<‘]?(?P<header2>[\w./+-]{1,200})",
)
"""gcc, clang, nvcc's front end, NVRTC and MSVC on a header that is not there."""

CORE_HEADERS = frozenset(
    {"cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "driver_types.h", "vector_types.h", "device_launch_parameters.h", "cuda_fp16.h"}
)  # fmt: skip
"""Headers that any toolkit installation for developers has: where they are absent, there may be no toolkit."""

HEADER_SINCE = {
    "cuda_bf16.h": "11.0",
    "cuda_fp8.h": "11.8",
    "cuda_fp8.hpp": "11.8",
    "cuda_fp4.h": "12.8",
    "cuda_fp4.hpp": "12.8",
    "cuda_fp6.h": "12.8",
    "cuda_fp6.hpp": "12.8",
    "nvJitLink.h": "12.0",
}
"""Headers that came with a later CUDA release: an older toolkit is complete without them."""

_CUDART = "cuda-cudart-dev"
_PACKAGES: tuple[tuple[str, str], ...] = (
    (r"curand\w*\.h", "libcurand-dev"),
    (r"(?:cublas\w*|nvblas)\.h", "libcublas-dev"),
    (r"cusolver\w*\.h", "libcusolver-dev"),
    (r"cusparse\w*\.h", "libcusparse-dev"),
    (r"cufft\w*\.h", "libcufft-dev"),
    (r"cufile\.h", "libcufile-dev"),
    (r"npp\w*\.h", "libnpp-dev"),
    (r"nvjpeg\.h", "libnvjpeg-dev"),
    (r"nvJitLink\.h", "libnvjitlink-dev"),
    (r"nvrtc\.h", "cuda-nvrtc-dev"),
    (r"nvml\.h", "cuda-nvml-dev"),
    (r"cupti\w*\.h|generated_cuda\w*\.h|nvperf\w*\.h", "cuda-cupti-dev"),
    (r"nvToolsExt\w*\.h|nvtx3/\S+|nvtx3\.hpp", "cuda-nvtx"),
    (r"cuda_profiler_api\.h|cudaProfiler\.h", "cuda-profiler-api"),
    (r"(?:thrust|cub)/\S+|cuda/std/\S+|nv/(?:target|detail/\S+)", "cuda-cccl"),
    (
        r"cuda/(?:atomic|barrier|latch|pipeline|semaphore|ptx|annotated_ptr|functional|numeric|cmath|warp|bit|version|iterator|stream_ref|memory_resource|discard_memory|access_property)",
        "cuda-cccl",
    ),
    (r"crt/\S+|nvvm\.h|fatbinary_section\.h", "cuda-nvcc"),
    (r"cudnn\w*\.h", "libcudnn9-dev"),
    (r"nccl\w*\.h", "libnccl-dev"),
    (
        r"cuda(?:_runtime(?:_api)?|_fp\d\w*|_bf16|_device_runtime_api|_pipeline\w*|_awbarrier\w*|_occupancy)?\.hp?p?",
        _CUDART,
    ),
    (r"cuda(?:_(?:surface_types|texture_types|gl_interop|egl_interop)|Typedefs|EGL\w*|GL\w*)\.h", _CUDART),
    (
        r"mma\.h|cooperative_groups(?:\.h|/\S+)|driver_types\.h|vector_(?:types|functions)\.hp?p?|library_types\.h",
        _CUDART,
    ),
    (r"device_\w+\.h|host_defines\.h|cuComplex\.h|math_constants\.h|sm_\d\d_\w+\.hp?p?", _CUDART),
)
_HEADERS = tuple((lazy_pattern(pattern), package) for pattern, package in _PACKAGES)

LIBRARIES = {
    "cudart": _CUDART,
    "cudart_static": _CUDART,
    "cudadevrt": _CUDART,
    "culibos": _CUDART,
    "curand": "libcurand-dev",
    "cublas": "libcublas-dev",
    "cublasLt": "libcublas-dev",
    "cusolver": "libcusolver-dev",
    "cusolverMg": "libcusolver-dev",
    "cusparse": "libcusparse-dev",
    "cufft": "libcufft-dev",
    "cufftw": "libcufft-dev",
    "cufile": "libcufile-dev",
    "nvrtc": "cuda-nvrtc-dev",
    "nvJitLink": "libnvjitlink-dev",
    "nvToolsExt": "cuda-nvtx",
    "cupti": "cuda-cupti-dev",
    "nvidia-ml": "cuda-nvml-dev",
    "nppc": "libnpp-dev",
    "nvjpeg": "libnvjpeg-dev",
    "cudnn": "libcudnn9-dev",
    "nccl": "libnccl-dev",
}
"""Linker names of the toolkit's libraries."""

TOOLS = {
    "cicc": "cuda-nvvm",
    "cudafe++": "cuda-nvcc",
    "ptxas": "cuda-nvcc",
    "fatbinary": "cuda-nvcc",
    "nvlink": "cuda-nvcc",
    "bin2c": "cuda-nvcc",
    "libdevice": "cuda-nvvm",
    "cuobjdump": "cuda-cuobjdump",
    "nvdisasm": "cuda-nvdisasm",
}
"""Programs and data that nvcc and its users call, and the package of each."""


class MissingHeader(msgspec.Struct, frozen=True):
    """A header of the toolkit that a compiler did not find."""

    match: Match
    name: str
    package: str
    since: str | None
    """The CUDA release that brought the header, when it is younger than the toolkits in use."""


def missing_header(case: Case) -> MissingHeader | None:
    """The first header of a toolkit that was not found; None when the missing headers are of other origin."""
    for match in case.all(HEADER_MISSING.name):
        header = match.group("header") or match.group("header2") or ""
        package = package_of_header(header)
        if package is not None:
            name = header.removeprefix("./")
            return MissingHeader(match, name, package, HEADER_SINCE.get(name.rpartition("/")[2]))
    return None


def package_of_header(header: str) -> str | None:
    """``curand_kernel.h`` as ``libcurand-dev``; None for a header that is no toolkit's."""
    for pattern, package in _HEADERS:
        if pattern.fullmatch(header):
            return package
    return None


def package_of_library(library: str) -> str | None:
    """``-lcublasLt``'s name as ``libcublas-dev``; static variants go by the same package."""
    name = library.removesuffix("_static").removesuffix("_static_nocallback")
    return LIBRARIES.get(library) or LIBRARIES.get(name)


def release_suffix(release: str | None) -> str:
    """``13.0`` as ``-13-0``, as NVIDIA's packages carry it; empty when the release is not known."""
    found = re.match(r"(\d+)\.(\d+)", release or "")
    return f"-{found.group(1)}-{found.group(2)}" if found else ""

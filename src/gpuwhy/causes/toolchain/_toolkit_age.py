"""What a build asks for that shows how old the toolkit is: options, headers, names and PTX versions, by first release.

Releases: the release notes and headers of the CUDA toolkits; nvcc's options as far as measured are in
:mod:`gpuwhy.knowledge.toolkits`.
"""

from __future__ import annotations

import re

from gpuwhy.knowledge import toolkits

NAME_SINCE = {
    "__nv_fp8_e4m3": "11.8",
    "__nv_fp8_e5m2": "11.8",
    "__nv_fp8x2_e4m3": "11.8",
    "__nv_fp8x4_e4m3": "11.8",
    "__nv_fp4_e2m1": "12.8",
    "__nv_fp4x2_e2m1": "12.8",
    "__nv_fp4x4_e2m1": "12.8",
    "__nv_fp6_e3m2": "12.8",
    "__nv_fp8_e8m0": "12.8",
    "CUDA_R_8F_E4M3": "11.8",
    "CUDA_R_8F_E5M2": "11.8",
    "CUDA_R_8F_UE4M3": "12.8",
    "CUDA_R_4F_E2M1": "12.8",
    "CUtensorMap": "12.0",
    "cuTensorMapEncodeTiled": "12.0",
    "cudaLaunchKernelEx": "11.8",
    "cudaLaunchKernelExC": "11.8",
    "cudaLaunchConfig_t": "11.8",
    "cudaLaunchAttributeProgrammaticStreamSerialization": "11.8",
    "cudaLaunchAttributeClusterDimension": "11.8",
    "cudaGetDriverEntryPointByVersion": "12.5",
    "cudaStreamBeginCaptureToGraph": "12.3",
    "CU_MEM_HANDLE_TYPE_FABRIC": "12.3",
    "CU_MEM_LOCATION_TYPE_HOST_NUMA": "12.2",
    "cuMulticastCreate": "12.1",
    "cublasComputeType_t": "11.0",
}
"""Names of CUDA's headers, and the release that brought each."""
STANDARD_SINCE = {"c++17": "11.0", "c++20": "12.0", "gnu++17": "11.0", "gnu++20": "12.0"}
"""Language standards that nvcc's ``-std`` accepts, and since when."""
OPTION_OF_RELEASE = {
    ("flashinfer", "static-global-template-stub"): (">=0.2.14", "0.2.13 alone passes it to every nvcc"),
    ("flashinfer", "compress-mode"): ("<0.6.18", "0.6.18 and later pass it to every nvcc"),
}
"""Releases of a library that do not pass an option to an nvcc which may not know it. Read in the released sources and
the public report of the first."""


def option_name(option: str) -> str:
    """``--compress-mode=size`` as ``compress-mode``."""
    return option.lstrip("-").partition("=")[0]


def is_for_host_compiler(option: str) -> bool:
    """Options of gcc, which nvcc takes only behind ``-Xcompiler``: a fault of the build, whatever the release."""
    return bool(
        re.match(
            r"-{1,2}(?:f(?!atbin|mad|orce)[a-z]|W(?!error|no-deprecated-gpu)[a-z]|m(?!64$|32$|axrregcount)[a-z]|pthread|pipe$|O[s3]?fast)",
            option,
        )
    )


def first_release_with_option(option: str) -> str | None:
    """The first nvcc release that knows an option, None when that was not measured."""
    found = re.match(r"-{1,2}std=(\S+)", option)
    if found:
        return STANDARD_SINCE.get(found.group(1))
    return toolkits.first_release_with_option(option)


def first_release_reading_ptx(version: str) -> str | None:
    """The first release whose ptxas reads a PTX ISA version: ``8.3`` as ``12.3``."""
    for release in toolkits.measured_releases():
        known = toolkits.ptx_isa_max(release).value
        if known is not None and numbers(known) >= numbers(version):
            return release
    return None


def numbers(version: str) -> tuple[int, ...]:
    """``12.10`` as (12, 10), to compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])

"""Failures of accelerators that are not NVIDIA's, named by their platform.

RuntimeError: HIP error: invalid device function                                  rocm
RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)   xpu
RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB                        ascend
RuntimeError: MPS backend out of memory (MPS allocated: 5.00 GB)                   metal
RuntimeError: Bad StatusOr access: UNKNOWN: TPU initialization failed              tpu

``platform_of`` reads any message; ``recognise`` is for lines that are no exception.
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "HIP error", "hipError", "HSA_STATUS", "Memory access fault by GPU", "rocBLAS error", "hipBLASLt error", "MIOpen", "ROCm error", "hsa_", "rocdevice", "amdgpu", "HIPBLAS_STATUS",
    "RCCL", "UR_RESULT_ERROR", "PI_ERROR_", "level_zero", "Level Zero", "sycl::", "ZE_RESULT_ERROR", "[drm] GPU HANG", "xe 0000:", "i915", "Native API failed", "oneDNN", "XPU out of memory",
    "ERR0", "aclnn", "aclrt", "ACL_ERROR", "HCCL", "hccl", "NPU out of memory", "NPU function error", "NPU error", "EZ9999", "EI0", "E19999", "E39999", "ggml_metal", "MPS backend", "kIOGPUCommandBuffer",
    "MTLCommandBuffer", "MTLLibrary", "MTLDevice", "TPU init", "libtpu", "TPU platform", "/dev/accel", "on TPU",
)  # fmt: skip
_PLATFORMS: tuple[tuple[str, Pattern], ...] = (
    ("rocm", Pattern(
        r"\bHIP (?:error|kernel errors might)|\bhipError[A-Z]\w+|\bHSA_STATUS_ERROR\w*|Memory access fault by GPU node|\b(?:rocBLAS|hipBLASLt|ROCm|MIOpen) ?(?:\(HIP\))? ?[Ee]rror|\bHIPBLAS_STATUS_(?!SUCCESS)\w+"
        r"|\brocdevice\.cpp.{0,200}abort|\bamdgpu[ :].{0,160}(?:fault|[Ee]rror|GPU reset|ring [\w.]+ timeout|[Ff]ailed|hang)|\bNCCL WARN .{0,80}\bHIP failure|no ROCm-capable device"
    )),
    ("xpu", Pattern(
        r"\bUR_RESULT_ERROR_\w+|\bPI_ERROR_\w+|\blevel_zero backend failed|\bZE_RESULT_ERROR_\w+|\bsycl::_V1::\w*(?:exception|error)|\bXPU out of memory|\[drm\] .{0,40}GPU HANG|\bxe \S{1,20}: .{0,80}(?:Engine reset|GT\d: .{0,20}[Ff]ail|device wedged)"
    )),
    ("ascend", Pattern(
        r"\bNPU (?:out of memory|function error|error)|\bERR0\d{4}\b|\baclnn\w{2,60} failed|\bcall aclnn\w{2,60}|\baclrt\w{2,60}.{0,60}(?:fail|error)|\bACL_ERROR_\w+|\bHCCL\b.{0,80}(?:[Ee]rror|[Ff]ail|time ?out)"
        r"|\b(?:EZ|EI|EL|EE|EJ|EH)\d{4}: |\bE[13]9999: "
    )),
    ("metal", Pattern(
        r"\bMPS backend (?:out of memory|is supported)|kIOGPUCommandBufferCallbackError\w+|\bggml_metal_\w+: (?:error|.{0,80}failed)|\bMTL(?:Library|CommandBuffer|Device)\w*.{0,80}(?:[Ee]rror|[Ff]ail)"
    )),
    ("tpu", Pattern(
        r"\bTPU (?:initialization failed|platform|backend)\b.{0,120}|\blibtpu(?:\.so)?\b.{0,120}(?:[Ee]rror|[Ff]ail|in use|not found|version)|/dev/accel\d{1,2}\b|\b(?:RESOURCE_EXHAUSTED|INTERNAL|UNAVAILABLE): .{0,300}\bTPU\b"
    )),
)  # fmt: skip
_NAMES = Pattern(
    r"\b(hipError[A-Z]\w{2,60}|HSA_STATUS_ERROR\w{0,60}|HIPBLAS_STATUS_\w{2,60}|UR_RESULT_ERROR_\w{2,60}|PI_ERROR_\w{2,60}|ZE_RESULT_ERROR_\w{2,60}|ACL_ERROR_\w{2,60}|ERR0\d{4}|E[ZILEJH]\d{4}|kIOGPUCommandBufferCallbackError\w{2,40})"
)
_KERNEL = Pattern(r"^(?:\[drm\]|amdgpu |i915 |xe |nvidia )|\[drm\]")
_FATAL_LEVELS = frozenset({"", "error", "critical"})
LONGEST = 2000


def platform_of(text: str) -> str:
    """``rocm``, ``xpu``, ``ascend``, ``metal``, ``tpu``; empty for what is none of them."""
    shown = text[:LONGEST]
    return next((platform for platform, pattern in _PLATFORMS if pattern.search(shown)), "")


def details(text: str) -> dict[str, str]:
    """``name``: the constant or code of the error, as the platform writes it."""
    found = _NAMES.search(text[:LONGEST])
    return {} if found is None else {"name": found.group(1)}


def recognise(text: str, level: str = "") -> Recognised | None:
    platform = platform_of(text)
    if not platform or level in ("info", "debug"):
        return None
    kind = "kernel" if _KERNEL.search(text[:LONGEST]) else "crash"
    return Recognised(
        kind,
        platform,
        details(text),
        is_echo="kernel errors might be" in text,
        is_fatal=level in _FATAL_LEVELS,
        takes_more=kind == "crash",
    )

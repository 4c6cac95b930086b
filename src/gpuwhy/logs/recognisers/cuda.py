"""Errors that CUDA and its libraries return: which one, from which call, at which place.

CUDA error 35 at .../ggml-cuda.cu:4236: CUDA driver version is insufficient for CUDA runtime version
Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:164 'invalid argument'
RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`
  current device: 0, in function alloc at /build/ggml-cuda.cu:532

gives ``code`` (the number), ``name`` (the constant of the runtime or of the library), ``call`` and ``site``
(``file:line``) as far as the text has them. Numbers and names are those of cuda_runtime_api.h and driver_types.h; the
texts are those of cudaGetErrorString, cut where a log may cut them.
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "CUDA error", "Cuda error", "CUDA Error", "cuda error", "cuda runtime error", "CUDA runtime error", "CUDA failure", "Cuda failure", "CUDA driver error", "CUDNN_STATUS", "CUBLAS_STATUS",
    "CUSOLVER_STATUS", "CUSPARSE_STATUS", "CUFFT_STATUS", "CUFFT_", "CUDA_ERROR", "cudaError", "no kernel image", "PTX was compiled", "FATAL: ", "CUDA_CHECK", "CURAND_STATUS", "cudaGetDevice",
    "CUTLASS_CHECK", "Got cutlass error", "error code: ", "returned 802",
    "no device code compatible", "compiled with any CUDA arch",
)  # fmt: skip
_PATTERNS = (
    Pattern(r"(?:^|\W)C(?:UDA|uda) (?:(?:runtime|driver) )?(?:[Ee]rror|[Ff]ailure)\b|cuda runtime error|cuda(?:GetDevice\w*|Error[A-Z]\w+)|\bCUDA_ERROR_(?!NAME)\w+"),
    Pattern(r"\b(?:CUDNN|CUBLAS|CUSOLVER|CUSPARSE|CUFFT|NPP|CURAND|CUBLASLT)_STATUS_(?!SUCCESS)\w+|\bCUFFT_(?:INTERNAL_ERROR|EXEC_FAILED|ALLOC_FAILED|SETUP_FAILED)"),
    Pattern(r"no kernel image is available|the provided PTX was compiled with an unsupported toolchain"),
    Pattern(r"has no device code compatible with CUDA arch|was not compiled with any CUDA arch"),
    Pattern(r"^FATAL: kernel |Got cutlass error|CUTLASS_CHECK.{0,80}failed"),
)  # fmt: skip
ERRORS: dict[int, tuple[str, str]] = {
    1: ("cudaErrorInvalidValue", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    3: ("cudaErrorInitializationError", "initialization error"),
    4: ("cudaErrorCudartUnloading", "driver shutting down"),
    9: ("cudaErrorInvalidConfiguration", "invalid configuration argument"),
    13: ("cudaErrorInvalidSymbol", "invalid device symbol"),
    34: ("cudaErrorStubLibrary", "CUDA driver is a stub library"),
    35: ("cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"),
    46: ("cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"),
    98: ("cudaErrorInvalidDeviceFunction", "invalid device function"),
    100: ("cudaErrorNoDevice", "no CUDA-capable device is detected"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    200: ("cudaErrorInvalidKernelImage", "device kernel image is invalid"),
    209: ("cudaErrorNoKernelImageForDevice", "no kernel image is available"),
    214: ("cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"),
    217: ("cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"),
    218: ("cudaErrorInvalidPtx", "a PTX JIT compilation failed"),
    220: ("cudaErrorNvlinkUncorrectable", "uncorrectable NVLink error detected during the execution"),
    221: ("cudaErrorJitCompilerNotFound", "PTX JIT compiler library not found"),
    222: ("cudaErrorUnsupportedPtxVersion", "the provided PTX was compiled with an unsupported toolchain."),
    304: ("cudaErrorOperatingSystem", "OS call failed or operation not supported on this OS"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    500: ("cudaErrorSymbolNotFound", "named symbol not found"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    701: ("cudaErrorLaunchOutOfResources", "too many resources requested for launch"),
    702: ("cudaErrorLaunchTimeout", "the launch timed out and was terminated"),
    704: ("cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"),
    709: ("cudaErrorContextIsDestroyed", "context is destroyed"),
    710: ("cudaErrorAssert", "device-side assert triggered"),
    712: ("cudaErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"),
    714: ("cudaErrorHardwareStackError", "hardware stack error"),
    715: ("cudaErrorIllegalInstruction", "an illegal instruction was encountered"),
    716: ("cudaErrorMisalignedAddress", "misaligned address"),
    717: ("cudaErrorInvalidAddressSpace", "operation not supported on global/shared address space"),
    718: ("cudaErrorInvalidPc", "invalid program counter"),
    719: ("cudaErrorLaunchFailure", "unspecified launch failure"),
    720: ("cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"),
    800: ("cudaErrorNotPermitted", "operation not permitted"),
    801: ("cudaErrorNotSupported", "operation not supported"),
    802: ("cudaErrorSystemNotReady", "system not yet initialized"),
    803: ("cudaErrorSystemDriverMismatch", "system has unsupported display driver / cuda driver combination"),
    804: ("cudaErrorCompatNotSupportedOnDevice", "forward compatibility was attempted on non supported HW"),
    900: ("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"),
    901: ("cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"),
    904: ("cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"),
    906: ("cudaErrorStreamCaptureImplicit", "operation would make the legacy stream depend on a capturing blocking stream"),
    999: ("cudaErrorUnknown", "unknown error"),
}  # fmt: skip
"""The runtime's numbers with their constants and texts; those that services end with."""
_CODES = {name: code for code, (name, _) in ERRORS.items()}
_CODE = Pattern(
    r"(?:[Cc]ode[=: ] ?|[Ee]rror |[Ff]ailure |\()(\d{1,3})(?=\(|\)| at |:|,| |$)(?! ?(?:GiB|MiB|bytes|devices|GPUs))"
)
_NAME = Pattern(
    r"\b(cudaError[A-Z]\w{2,50}|CUDA_ERROR_\w{2,60}|(?:CUDNN|CUBLAS|CUSOLVER|CUSPARSE|CUFFT|NPP|CURAND|CUBLASLT)_STATUS_(?!SUCCESS)\w{2,60})"
)
_CALL = Pattern(
    r"when calling `?(?P<when>\w{2,60})|in function (?P<function>[\w:~]{1,80}) at |(?:^|[\s(`])(?P<api>(?:cuda|cu|cublas|cudnn|nccl)[A-Z]\w{2,50})\("
)
_SITE = Pattern(r"(?P<file>[\w./+@-]{1,200}\.(?:cuh?|cpp|cc|cxx|c|hpp|h|py|inl))(?::|\(|, line )(?P<line>\d{1,6})")
_WINDOW = 700
_FATAL_LEVELS = frozenset({"", "error", "critical"})
LONGEST = 2000


def recognise(text: str, level: str = "") -> Recognised | None:
    shown = text[:LONGEST]
    if level in ("info", "debug") or "GGML_ASSERT" in shown or not is_cuda_error(shown):
        return None
    return Recognised(
        "crash", "cuda", details(shown), is_echo=_is_echo(shown), is_fatal=level in _FATAL_LEVELS, takes_more=True
    )


def is_cuda_error(text: str) -> bool:
    """Whether a message (of an exception) carries an error of CUDA or of its libraries."""
    shown = text[:LONGEST]
    return any(pattern.search(shown) for pattern in _PATTERNS)


def details(text: str) -> dict[str, str]:
    """``code``, ``name``, ``call`` and ``site`` of the error in ``text``, those that can be told."""
    shown = text[:LONGEST]
    begin = next((found.start() for pattern in _PATTERNS if (found := pattern.search(shown))), 0)
    near = shown[max(0, begin - 120) : begin + _WINDOW]
    detail: dict[str, str] = {}
    name = _NAME.search(near)
    code = _CODE.search(shown[begin : begin + 200])
    if name is not None:
        detail["name"] = name.group(1)
        if name.group(1) in _CODES:
            detail["code"] = str(_CODES[name.group(1)])
    if code is not None and "code" not in detail:
        detail["code"] = code.group(1)
    if "name" not in detail:
        detail.update(_by_number_or_text(detail.get("code"), near))
    call = _CALL.search(near)
    if call is not None:
        detail["call"] = call["when"] or call["function"] or call["api"]
    site = _SITE.search(near)
    if site is not None:
        detail["site"] = f"{site['file']}:{site['line']}"
    return detail


def _by_number_or_text(code: str | None, near: str) -> dict[str, str]:
    if code is not None and int(code) in ERRORS:
        return {"name": ERRORS[int(code)][0]}
    if code is not None:
        return {}
    longest = max(((len(text), number) for number, (_, text) in ERRORS.items() if text in near), default=None)
    if longest is None:
        return {}
    return {"code": str(longest[1]), "name": ERRORS[longest[1]][0]}


def _is_echo(text: str) -> bool:
    """``ggml-cuda.cu:72: CUDA error``: which one stands in the lines that follow."""
    return "kernel errors might be" in text or text.rstrip().endswith(("CUDA error", "CUDA error:"))

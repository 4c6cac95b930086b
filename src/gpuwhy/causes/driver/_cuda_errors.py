"""Signs of the errors with which CUDA refuses to start; several causes of this family share each of them.

The texts are those of cudaGetErrorString, cuGetErrorString and cuGetErrorName; torch, ggml, Triton, CuPy, TensorFlow,
ONNX Runtime and others print them with their own words around.
"""

from __future__ import annotations

from gpuwhy.causes._signs import Sign, says


def _error(name: str, number: int, literals: tuple[str, ...], pattern: str) -> Sign:
    """The sign of a CUDA error: by its texts and names, and by its number where a message says what the number is of."""
    numbered = tuple(f"{word}{number}" for word in ("failure: ", "error: ", "error ", "failure ", "cuinit()=", "returned ", "context ", "error code ", "status ", "code="))  # fmt: skip
    spoken = (
        rf"(?:init(?:iali[sz]ation)? failure(?: with error)?|CUDA (?:error|failure|driver error)|(?<![\w-])Error|\bcu(?:da)?[A-Z]\w{{2,40}}(?:\(\w{{0,20}}\))?"
        rf"(?:=| returned| failed with(?: error| status| code)?)?|get device context|cuda error code|CUDA status|\bcode)[:=(]{{0,1}} ?{number}(?!\w|[.,]\d)"
    )
    return says(name, (*literals, *numbered), f"{pattern}|{spoken}")


INSUFFICIENT = _error(
    "insufficient-driver",
    35,
    ("driver version is insufficient", "cudaerrorinsufficientdriver", "driver is too old or missing", "driver version too old", "too old for the cuda runtime"),
    r"CUDA driver version is insufficient|cudaErrorInsufficientDriver|nvidia driver is too old or missing|CUDA driver version too old\b|too old for the CUDA runtime",
)  # fmt: skip
"""35: the driver supports less than the runtime asks for, or there is no libcuda at all (its version then counts as 0)."""

NO_DEVICE = _error(
    "no-cuda-device",
    100,
    ("no cuda-capable device", "cuda_error_no_device", "cudaerrornodevice", "no cuda gpus are available"),
    r"no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice|No CUDA GPUs are available",
)  # fmt: skip
"""100: the driver answers and shows the process no GPU. torch says "No CUDA GPUs are available"."""

UNKNOWN_ERROR = _error(
    "cuda-unknown-error",
    999,
    ("cuda unknown error", "cuda_error_unknown", "cudaerrorunknown", "unknown error (999)", "cuda error (999)", "initialize cuda: unknown error", "cuda error: unknown error", "cuda failure 'unknown error'"),
    r"CUDA unknown error|CUDA_ERROR_UNKNOWN|cudaErrorUnknown\b|UNKNOWN ERROR \(999\)|failed to initialize CUDA: unknown error|cuda error: unknown error|Cuda failure 'unknown error'|CUDA error \(999\)",
)  # fmt: skip
"""999: the driver failed inside; torch adds a guess about CUDA_VISIBLE_DEVICES that nothing stands behind."""

DRIVER_COMBINATION = _error(
    "driver-combination",
    803,
    ("unsupported display driver", "system_driver_mismatch", "systemdrivermismatch"),
    r"system has unsupported display driver ?/ ?cuda driver combination|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|cudaErrorSystemDriverMismatch",
)  # fmt: skip
"""803: libcuda and the kernel module are of releases that do not go together."""

FORWARD_COMPATIBILITY = _error(
    "forward-compatibility",
    804,
    ("forward compatibility was attempted", "compat_not_supported_on_device", "compatnotsupportedondevice"),
    r"forward compatibility was attempted on non[- ]?supported HW|COMPAT_NOT_SUPPORTED_ON_DEVICE|cudaErrorCompatNotSupportedOnDevice",
)  # fmt: skip
"""804: the libcuda that was loaded is newer than the kernel module, and this GPU may not do that."""

START_FAILS = says(
    "cuda-start-fails",
    ("cuda driver initialization failed", "error 304", "os call failed or operation not supported", "cuda_error_operating_system", "init failure: 304", "cuinit()=304"),
    r"CUDA driver initialization failed, you might not have a CUDA gpu|OS call failed or operation not supported on this OS|CUDA_ERROR_OPERATING_SYSTEM|\bError 304\b|init failure: ?304\b|cuInit\(\)=304\b",
)  # fmt: skip
"""3 and 304: libcuda cannot open the driver's devices (nvidia_uvm among them), and does not say why."""

SYMBOL_AT_START = says(
    "symbol-missing-at-start",
    ("error 500: named symbol", "cuinit()=500", "init failure: 500"),
    r"\bError 500: named symbol not found|cuInit\(\)=500\b|init failure: ?500\b",
)
"""500 from the very first call: the parts of a driver that a container mounts are of two releases (WSL mostly)."""

TOLD_BY_TORCH = says(
    "torch-told-which-error",
    "cuda initialization:",
    r"CUDA initialization: .{0,300}?(?:\bError (?:304|80[234]|999)\b|CUDA unknown error|driver on your system is too old)",
)
"""torch warns why CUDA did not start, and what it raises then (``No CUDA GPUs are available``) is the echo."""

NVML_MISMATCH = says(
    "nvml-mismatch",
    ("library version mismatch", "rm_version_mismatch", "librmversionmismatch", "nvml/rm version mismatch", "init failure: 18", "nvml_error_lib_rm"),
    r"driver/library version mismatch|RM_VERSION_MISMATCH|LibRmVersionMismatch|NVML/RM version mismatch|nvml\w* (?:vram )?init failure: ?18\b",
)  # fmt: skip
"""NVML's answer when the kernel module is of another version than libnvidia-ml."""

"""Signs of the errors with which CUDA refuses to start; several causes of this family share each of them.

The texts are those of cudaGetErrorString, cuGetErrorString and cuGetErrorName; torch, ggml, Triton, CuPy, TensorFlow,
ONNX Runtime and others print them with their own words around.
"""

from __future__ import annotations

from gpuwhy.causes._signs import says

INSUFFICIENT = says(
    "insufficient-driver",
    (
        "driver version is insufficient", "cudaerrorinsufficientdriver", "driver is too old or missing", "cudart init failure: 35", "cuda failure 35", "cuda error 35", "failure with error: 35", "driver version too old", "too old for the cuda runtime",
    ),
    r"CUDA driver version is insufficient|cudaErrorInsufficientDriver|nvidia driver is too old or missing|cudart init failure: ?35\b|CUDA (?:failure|error) 35\b|CUDA initialization failure with error: ?35\b|CUDA driver version too old\b|too old for the CUDA runtime",
)  # fmt: skip
"""35: the driver supports less than the runtime asks for, or there is no libcuda at all (its version then counts as 0)."""

NO_DEVICE = says(
    "no-cuda-device",
    (
        "no cuda-capable device", "cuda_error_no_device", "cudaerrornodevice", "no cuda gpus are available", "driver library init failure: 100", "nvcuda init failure: 100", "cuinit()=100", "cuinit returned 100", "cuda error 100", "failure with error: 100",
    ),
    r"no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice|No CUDA GPUs are available|(?:driver library|nvcuda) init failure: 100\b|cuInit(?:\(\)=| returned )100\b|CUDA error 100\b|failure with error: ?100\b",
)  # fmt: skip
"""100: the driver answers and shows the process no GPU. torch says "No CUDA GPUs are available"."""

UNKNOWN_ERROR = says(
    "cuda-unknown-error",
    (
        "cuda unknown error", "cuda_error_unknown", "cudaerrorunknown", "unknown error (999)", "init failure: 999", "cuinit()=999", "cuinit returned 999", "cuda error 999", "cuda failure 999", "initialize cuda: unknown error", "cuda error: unknown error", "cuda error (999)",
        "failed with error 999", "failure with error: 999", "cuda failure 'unknown error'", "-> cuda_error_unknown", "returned 999", "error 999", "cuda error: unknown error", "cuda failure 999", "cuda initialization: unexpected error",
    ),
    r"CUDA unknown error|CUDA_ERROR_UNKNOWN|cudaErrorUnknown\b|UNKNOWN ERROR \(999\)|init failure: ?999\b|cuInit(?:\(\)=| returned )999\b|CUDA (?:error|failure)(?: |: ?| \()999\b|failed to initialize CUDA: unknown error|nvidia-container-cli: .{0,60}cuda error: unknown error"
    r"|(?:failed|failure) with (?:error|status|code):? ?999\b|CUDA error: unknown error|Cuda failure 'unknown error'|cu\w{2,40}(?:\(\))? (?:returned|failed with|=) ?999\b|\bError 999: unknown error",
)  # fmt: skip
"""999: the driver failed inside; torch adds a guess about CUDA_VISIBLE_DEVICES that nothing stands behind."""

DRIVER_COMBINATION = says(
    "driver-combination",
    ("unsupported display driver", "system_driver_mismatch", "systemdrivermismatch", "error 803", "cuinit()=803", "init failure: 803", "cuda error 803", "cuda failure 803", "returned 803"),
    r"system has unsupported display driver ?/ ?cuda driver combination|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|cudaErrorSystemDriverMismatch|\bError 803\b|cuInit\(\)=803|init failure: ?803\b|CUDA (?:error|failure):? 803\b|returned 803\b",
)  # fmt: skip
"""803: libcuda and the kernel module are of releases that do not go together."""

FORWARD_COMPATIBILITY = says(
    "forward-compatibility",
    ("forward compatibility was attempted", "compat_not_supported_on_device", "compatnotsupportedondevice", "error 804", "cuinit()=804", "init failure: 804", "cuda error 804", "cuda failure 804", "returned 804"),
    r"forward compatibility was attempted on non[- ]?supported HW|COMPAT_NOT_SUPPORTED_ON_DEVICE|cudaErrorCompatNotSupportedOnDevice|\bError 804\b|cuInit\(\)=804|init failure: ?804\b|CUDA (?:error|failure):? 804\b|returned 804\b",
)  # fmt: skip
"""804: the libcuda that was loaded is newer than the kernel module, and this GPU may not do that."""

NVML_MISMATCH = says(
    "nvml-mismatch",
    ("library version mismatch", "rm_version_mismatch", "librmversionmismatch", "nvml/rm version mismatch", "init failure: 18", "nvml_error_lib_rm"),
    r"driver/library version mismatch|RM_VERSION_MISMATCH|LibRmVersionMismatch|NVML/RM version mismatch|nvml\w* (?:vram )?init failure: ?18\b",
)  # fmt: skip
"""NVML's answer when the kernel module is of another version than libnvidia-ml."""

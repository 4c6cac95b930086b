"""Calls cuInit. Run as a process of its own: on a wedged driver it never returns. Prints one JSON object; imports nothing of ours."""

import ctypes
import json
from typing import Any, Dict

LIBRARIES = (
    "libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
)

NAMES = {
    0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY", 46: "CUDA_ERROR_DEVICE_UNAVAILABLE", 100: "CUDA_ERROR_NO_DEVICE", 101: "CUDA_ERROR_INVALID_DEVICE",
    304: "CUDA_ERROR_OPERATING_SYSTEM", 500: "CUDA_ERROR_NOT_FOUND", 702: "CUDA_ERROR_LAUNCH_TIMEOUT", 802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", 805: "CUDA_ERROR_MPS_CONNECTION_FAILED",
    806: "CUDA_ERROR_MPS_RPC_FAILURE", 807: "CUDA_ERROR_MPS_SERVER_NOT_READY", 808: "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",
    809: "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", 999: "CUDA_ERROR_UNKNOWN",
}  # fmt: skip
"""CUresult in cuda.h, as far as cuInit gives them."""


def started() -> Dict[str, Any]:
    problem = "libcuda.so.1 is not on this host"
    for name in LIBRARIES:
        try:
            library: Any = ctypes.CDLL(name)
            function = library.cuInit
        except (OSError, AttributeError) as error:
            if "No such file" not in str(error):
                problem = str(error)[:300]
            continue
        function.restype = ctypes.c_int
        code = int(function(ctypes.c_uint(0)))
        count = ctypes.c_int(-1)
        if code == 0:
            library.cuDeviceGetCount(ctypes.byref(count))
        version = ctypes.c_int(0)
        library.cuDriverGetVersion(ctypes.byref(version))
        return {
            "library": name,
            "code": code,
            "name": NAMES.get(code, "CUDA error %d" % code),
            "devices": count.value if count.value >= 0 else None,
            "cuda": "%d.%d" % (version.value // 1000, version.value % 1000 // 10) if version.value else None,
        }
    return {"error": problem}


if __name__ == "__main__":
    print(json.dumps(started()))

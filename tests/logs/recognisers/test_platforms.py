"""Accelerators that are not NVIDIA's: named as what they are."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import only


@pytest.mark.parametrize(
    ("line", "platform", "name"),
    [
        ("RuntimeError: HIP error: invalid device function", "rocm", ""),
        ("hipErrorNoBinaryForGpu: Unable to find code object for all current devices!", "rocm", "hipErrorNoBinaryForGpu"),
        ("Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f. Reason: Page not present.", "rocm", ""),
        ("rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: No such file or directory", "rocm", ""),
        ("amdgpu 0000:03:00.0: amdgpu: [gfxhub0] page fault (src_id:0 ring:24 vmid:8 pasid:32773)", "rocm", ""),
        ("amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3", "rocm", ""),
        ("RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES)", "xpu", "PI_ERROR_OUT_OF_RESOURCES"),
        ("RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)", "xpu", "UR_RESULT_ERROR_DEVICE_LOST"),
        ("terminate called after throwing an instance of 'sycl::_V1::exception'", "xpu", ""),
        ("RuntimeError: call aclnnAddRmsNorm failed, detail:EZ1001: x.", "ascend", "EZ1001"),
        ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)", "ascend", ""),
        ("ggml_metal_graph_compute: command buffer 0 failed with status 5", "metal", ""),
        ("RuntimeError: MPS backend out of memory (MPS allocated: 5.00 GB)", "metal", ""),
        ("RuntimeError: Bad StatusOr access: UNKNOWN: TPU initialization failed: open(/dev/accel0): Operation not permitted", "tpu", ""),
    ],
)  # fmt: skip
def test_a_failure_has_the_name_of_its_platform(line: str, platform: str, name: str) -> None:
    event = only(line)
    assert (event.tool, event.is_fatal, event.is_echo) == (platform, True, False)
    assert event.detail.get("name", "") == name


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA error: out of memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 304.00 MiB.",
        "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
    ],
)
def test_nvidias_are_none_of_these(line: str) -> None:
    assert only(line).tool not in ("rocm", "xpu", "ascend", "metal", "tpu")

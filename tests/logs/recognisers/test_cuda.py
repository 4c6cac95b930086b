"""Errors of CUDA and its libraries: code, name, call and place."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import only

from gpuwhy.logs.recognisers import cuda


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (
            "CUDA error 35 at ggml-cuda.cu:4236: CUDA driver version is insufficient for CUDA runtime version",
            {"code": "35", "name": "cudaErrorInsufficientDriver", "site": "ggml-cuda.cu:4236"},
        ),
        (
            "CUDA error at bandwidthTest.cu:256 code=802(cudaErrorSystemNotReady)",
            {"code": "802", "name": "cudaErrorSystemNotReady", "site": "bandwidthTest.cu:256"},
        ),
        (
            "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:164 'invalid argument'",
            {"code": "1", "name": "cudaErrorInvalidValue", "site": "/workspace/csrc/custom_all_reduce.cuh:164"},
        ),
        ("CUDA error: device-side assert triggered", {"code": "710", "name": "cudaErrorAssert"}),
        ("CUDA driver error: unknown error", {"code": "999", "name": "cudaErrorUnknown"}),
        ("Cuda failure 2 'out of memory'", {"code": "2", "name": "cudaErrorMemoryAllocation"}),
    ],
)
def test_bare_lines(line: str, detail: dict[str, str]) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.is_fatal) == ("crash", "cuda", True)
    assert event.detail == detail


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            {"name": "CUBLAS_STATUS_NOT_INITIALIZED", "call": "cublasCreate"},
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", {"name": "CUDNN_STATUS_INTERNAL_ERROR"}),
        (
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            {"code": "700", "name": "cudaErrorIllegalAddress"},
        ),
        (
            "RuntimeError: CUDA driver error: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            {"name": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
        ),
    ],
)
def test_exceptions(line: str, detail: dict[str, str]) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.detail) == ("exception", "cuda", detail)


def test_amounts_are_no_codes() -> None:
    text = "CUDA error: out of memory. Tried to allocate (304 MiB)"
    assert cuda.details(text)["code"] == "2"


def test_an_exception_of_nobody_has_no_tool() -> None:
    assert only("ValueError: The model's max seq len is larger than the KV cache").tool == ""

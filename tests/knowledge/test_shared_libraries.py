"""Names of shared libraries: what brings them, and which CUDA major their number belongs to."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge.shared_libraries import (
    SharedLibrary,
    cuda_library,
    is_driver_library,
    is_torch_library,
    parse,
    system_package,
    wheel_for,
)


def read(name: str) -> SharedLibrary:
    library = parse(name)
    assert library is not None
    return library


@pytest.mark.parametrize(("name", "majors"), [
    ("libcudart.so.12", (12,)), ("libcudart.so.11.0", (11,)), ("libnvrtc.so.13", (13,)), ("libcufft.so.11", (12,)), ("libcusparse.so.12", (12, 13)),
    ("libcusolver.so.11", (11, 12)), ("libcurand.so.10", (11, 12, 13)), ("libcudnn.so.9", ()), ("libcudnn_ops_infer.so.8", ()), ("libnccl.so.2", ()),
    ("libnppicc.so.12", (12,)),
])  # fmt: skip
def test_the_number_of_a_library_of_cuda(name: str, majors: tuple[int, ...]) -> None:
    library = cuda_library(read(name))
    assert library is not None
    assert library.cuda_majors == majors


@pytest.mark.parametrize("name", ["libnuma.so.1", "libcuda.so.1", "libtorch_cuda.so", "libfoo.so.12"])
def test_others_are_none_of_cudas(name: str) -> None:
    assert cuda_library(read(name)) is None


def test_wheels_carry_the_major_up_to_cuda_12() -> None:
    library = cuda_library(read("libnvrtc.so.12"))
    assert library is not None
    assert (wheel_for(library, 12), wheel_for(library, 13)) == ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")


@pytest.mark.parametrize(("name", "package"), [
    ("libnuma.so.1", "libnuma1"), ("libGL.so.1", "libgl1"), ("libgomp.so.1", "libgomp1"), ("libibverbs.so.1", "libibverbs1"), ("libmpi.so.40", "libopenmpi-dev"),
    ("libpython3.10.so.1.0", "libpython3.10"), ("libavutil.so.59", "ffmpeg"),
])  # fmt: skip
def test_the_package_of_a_library_of_the_system(name: str, package: str) -> None:
    found = system_package(read(name).stem)
    assert found is not None
    assert found.debian == package


def test_what_the_driver_and_torch_bring_is_known() -> None:
    assert is_driver_library(read("libcuda.so.1"))
    assert is_torch_library(read("/opt/x/libc10_cuda.so"))
    assert not is_driver_library(read("libcudart.so.12"))


@pytest.mark.parametrize("text", ["", "numa", "lib.txt", "a" * 500])
def test_other_text_is_no_library(text: str) -> None:
    assert parse(text) is None

"""Which component a build log speaks of when it does not print the project's name."""

from __future__ import annotations

import pytest

from gpuwhy.causes._component import components_in


@pytest.mark.parametrize(
    ("line", "component"),
    [
        ("FAILED: CMakeFiles/_C.dir/csrc/attention/attention_kernels.cu.o", "vllm"),
        ("FAILED: [code=137] fused_moe_120/moe_gemm_kernels_bf16_fp4.cuda.o", "flashinfer"),
        ("[1/4] nvcc -c norm.cu -o norm/norm.cuda.o", "flashinfer"),
        ("c++ -MMD -MF pt_binding.o.d -DTORCH_EXTENSION_NAME=transformer_inference -c pt_binding.cpp", "deepspeed"),
        ("RuntimeError: Error building extension 'exllamav2_ext'", "exllamav2"),
        ("Loading extension module cpu_adam...", "deepspeed"),
        ("RuntimeError: Assertion error (csrc/jit/compiler.hpp:108): return_code == 0", "deepgemm"),
        (
            "FATAL: kernel `fmha_cutlassF_f16_aligned_64x64_rf_sm80` is for sm80-sm100, but was built for sm50",
            "xformers",
        ),
        ("/tmp/tmpm4cwzx/__triton_launcher.c:7:10: fatal error: Python.h: No such file or directory", "triton"),
        ("[06/02/2024-07:44:41] [TRT] [E] 9: Networks with FP8 precision", "tensorrt"),
    ],
)
def test_files_and_modules_that_belong_to_one_project(line: str, component: str) -> None:
    assert next(iter(components_in(line))) == component


def test_a_header_that_is_not_found_does_not_name_the_build() -> None:
    assert list(components_in("x.cuh:3:10: fatal error: nvshmem.h: No such file or directory", with_names=True)) == []


@pytest.mark.parametrize(
    "line",
    [
        "/tmp/pip-req-build-7kbt0t60/build/temp.linux-x86_64-3.10/csrc/x.o",
        "/tmp/pip-req-build-7kbt0t60/build_tools/utils.py",
        "/tmp/pip-req-build-7kbt0t60/setup.py",
    ],
)
def test_folders_of_a_checkout_are_not_projects(line: str) -> None:
    assert not {"build", "build-tools", "setup.py"} & set(components_in(line))

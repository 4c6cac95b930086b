"""libcuda-shadowed: compat, stub and copied libraries, told by the path of libcuda."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "libcuda-shadowed"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


ERROR_803 = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination\n"
ERROR_804 = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW\n"
CACHE = """\
root@4f3c2a1b0c9d:/# ldconfig -p | grep libcuda.so
	libcuda.so.1 (libc6,x86-64) => %s
	libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1
"""


@pytest.mark.parametrize("text", ["RuntimeError: Error 34: CUDA driver is a stub library\n", "ggml_cuda_init: failed to initialize CUDA: CUDA driver is a stub library\n"])  # fmt: skip
def test_the_stub_names_itself(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.component == "cuda-toolkit"
    assert proposed(found) == [("env", "LD_LIBRARY_PATH", "without stubs")]


@pytest.mark.parametrize(("path", "component"), [
    ("/usr/local/cuda/compat/libcuda.so.1", "cuda-compat"),
    ("/usr/local/cuda-12.4/lib64/stubs/libcuda.so.1", "cuda-toolkit"),
    ("/opt/conda/lib/libcuda.so.1", "python-env"),
])  # fmt: skip
def test_the_path_that_is_loaded_proves_it(judge_report: Judge, finding: Find, path: str, component: str) -> None:
    for judgement in (judge_report(ERROR_803 + CACHE % path), judge_report(ERROR_803, {"libcuda_path": path})):
        found = finding(judgement, CAUSE)
        assert names(judgement)[0] == CAUSE
        assert found.certainty is Certainty.PROVEN
        assert found.component == component
        assert path in found.title


def test_the_drivers_own_library_rules_it_out(judge_report: Judge) -> None:
    judgement = judge_report(ERROR_803, {"libcuda_path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1"})
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]
    assert CAUSE not in names(judge_report(ERROR_803 + CACHE % "/usr/lib/x86_64-linux-gnu/libcuda.so.1", {"libcuda_path": "/usr/lib64/libcuda.so.1"}))  # fmt: skip


def test_803_alone_asks_for_the_path(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(ERROR_803), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"libcuda_path", "driver"} <= {missing.key for missing in found.missing}


def test_in_a_container_the_drivers_folders_go_first(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(ERROR_803, {"driver": "580", "container.runtime": "nvidia (NVIDIA_VISIBLE_DEVICES)"}), CAUSE)  # fmt: skip
    assert found.certainty is Certainty.LIKELY
    assert proposed(found)[0] == ("env", "LD_LIBRARY_PATH", "/usr/local/nvidia/lib64:/usr/local/nvidia/lib")
    assert ("flag", "--gpus", "all") in proposed(found)


def test_804_with_a_driver_that_covers_the_program(judge_report: Judge) -> None:
    facts = {"driver": "570.86.10", "torch_cuda": "12.4", "gpu": "NVIDIA GeForce RTX 4090"}
    assert names(judge_report(ERROR_804, facts))[0] == CAUSE


def test_804_with_a_driver_that_does_not_is_the_driver(judge_report: Judge) -> None:
    facts = {"driver": "535.183.01", "torch_cuda": "12.8", "libcuda_path": "/usr/local/cuda/compat/libcuda.so.1"}
    assert names(judge_report(ERROR_804, facts))[0] == "driver-too-old"


def test_a_search_path_with_the_compat_folder_makes_it_likely(judge_report: Judge, finding: Find) -> None:
    facts = {"env.LD_LIBRARY_PATH": "/usr/local/cuda/compat:/usr/local/nvidia/lib"}
    assert finding(judge_report(ERROR_804, facts), CAUSE).certainty is Certainty.LIKELY


def test_a_linux_driver_inside_wsl_hides_that_of_windows(judge_report: Judge) -> None:
    facts = {"libcuda_path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "kernel_release": "5.15.153.1-microsoft-standard-WSL2"}  # fmt: skip
    text = "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected\n"
    assert names(judge_report(text, facts))[0] == CAUSE


@pytest.mark.parametrize("text", [
    "/usr/bin/ld: cannot find -lcuda\n",
    "RuntimeError: No CUDA GPUs are available\n",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).\n",
    "Failed to initialize NVML: Driver/library version mismatch\n",
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))

"""driver-library-mismatch: the two versions, whether a reboot helps, and when another copy of libcuda is to blame."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "driver-library-mismatch"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


NVML = "$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n"
KERNEL = """\
[ 1234.567890] NVRM: API mismatch: the client has the version 535.86.05, but
[ 1234.567891] NVRM: this kernel module has the version 535.54.03.  Please
[ 1234.567892] NVRM: make sure that this kernel module and all NVIDIA driver
"""
ERROR_803 = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination\n"
MODULE = "$ cat /proc/driver/nvidia/version\nNVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
NEWER_LIBRARY = "ii  libnvidia-compute-535:amd64   535.161.07-0ubuntu0.22.04.1  amd64  NVIDIA libcompute package\n"


@pytest.mark.parametrize("text", [
    NVML,
    KERNEL,
    "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.\n",
    "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown.\n",
    "E cuda_diagnostics.cc:313] kernel version 470.141.3 does not match DSO version 470.161.3 -- cannot find working devices\n",
    "error starting plugins: failed to initialize NVML: ERROR_LIB_RM_VERSION_MISMATCH\n",
])  # fmt: skip
def test_nvml_and_the_kernel_say_it_themselves(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.component == "driver"
    assert proposed(found)[0] == ("service", "host", "reboot")


def test_both_versions_of_the_kernels_message_are_read(judge_report: Judge, finding: Find) -> None:
    assert "(535.86.05 against 535.54.03)" in finding(judge_report(KERNEL), CAUSE).title


def test_a_reboot_is_no_remedy_where_the_module_on_disk_is_the_old_one(judge_report: Judge, finding: Find) -> None:
    facts = {"driver": "535.129.03", "driver_installed": "535.129.03", "driver_library": "535.161.07"}
    found = finding(judge_report(NVML, facts), CAUSE)
    assert proposed(found)[0] == ("system-package", "nvidia driver packages", "repair")
    assert "a reboot alone" in [remedy.what for remedy in found.not_remedies]
    ready = finding(judge_report(NVML, {**facts, "driver_installed": "535.161.07"}), CAUSE)
    assert proposed(ready)[0] == ("service", "host", "reboot")


def test_a_reboot_that_did_not_help_points_to_the_packages(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NVML + "It is the same after a reboot of the machine.\n"), CAUSE)
    assert ("service", "host", "reboot") not in proposed(found)


def test_803_with_two_versions_in_the_report_is_proven(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(ERROR_803 + MODULE + NEWER_LIBRARY), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "535.161.07 against 535.129.03" in found.title


def test_803_alone_asks_which_libcuda_is_loaded(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(ERROR_803), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.missing[0].key == "libcuda_path"
    assert found.rivals == ("libcuda-shadowed",)


@pytest.mark.parametrize("facts", [
    {"libcuda_path": "/usr/local/cuda/compat/libcuda.so.1"},
    {"nvidia_smi.host": "ok", "container.in_container": True},
    {"driver": "535.161.07", "driver_library": "535.161.07"},
])  # fmt: skip
def test_803_of_another_copy_is_ruled_out(judge_report: Judge, facts: dict[str, object]) -> None:
    judgement = judge_report(ERROR_803, facts)
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_a_host_that_works_leaves_the_container_to_blame(judge_report: Judge) -> None:
    judgement = judge_report("root@0123456789ab:/# nvidia-smi\n" + NVML, {"nvidia_smi.host": "ok"})
    assert names(judgement)[0] == "libcuda-shadowed"
    assert CAUSE not in names(judgement)


def test_a_driver_that_does_not_answer_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE


@pytest.mark.parametrize("text", [
    "Failed to initialize NVML: Unknown Error\n",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).\n",
    MODULE,
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))

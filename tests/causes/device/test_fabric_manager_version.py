"""fabric-manager-version: Fabric Manager refuses the driver's version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "fabric-manager-version"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


TORCH = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 802: system not yet initialized\n"
REFUSED = "nv-fabricmanager[1507]: fabric manager NVIDIA GPU driver interface version 550.54.14 don't match with driver version 550.54.15. Please update with matching NVIDIA driver package.\n"


@pytest.mark.parametrize("text", [
    REFUSED,
    TORCH + "Jun 11 07:31:02 gpu1 " + REFUSED + "Jun 11 07:31:02 gpu1 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.\n",
    "fabric manager NVIDIA GPU driver interface version 535.183.01 don't match with driver version\n",
    "kernel: nvidia-nvswitch0: Version mismatch, kernel version 525.85.12 user version 525.105.17\n",
])  # fmt: skip
def test_fabric_manager_says_it(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert found.component == "fabric-manager"
    assert "match" in found.evidence[0].quote
    assert "fabric-manager-state" not in names(judgement)


def test_both_versions_stand_in_the_title_and_the_command(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(REFUSED), CAUSE)
    assert "550.54.14" in found.title
    assert "550.54.15" in found.title
    assert proposed(found)[0] == ("system-package", "nvidia-fabricmanager", "match:driver")
    assert "nvidia-fabricmanager-550=550.54.15-1" in found.remedies[0].commands[0]


@pytest.mark.parametrize("package", ["nvidia-fabricmanager", "nvidia-fabricmanager-535", "fabricmanager", "cuda-drivers-fabricmanager-535"])  # fmt: skip
def test_versions_that_differ_decide_error_802(judge_report: Judge, finding: Find, package: str) -> None:
    facts = {"driver": "535.161.08", f"packages.{package}": "535.171.04-1", "unit_state.nvidia-fabricmanager": "failed"}
    judgement = judge_report(TORCH, facts)
    assert names(judgement)[0] == CAUSE
    assert finding(judgement, CAUSE).certainty is Certainty.PROVEN


def test_a_listing_of_packages_tells_the_version(judge_report: Judge) -> None:
    listing = "ii  nvidia-fabricmanager-535    535.183.06-1    amd64    Fabric Manager for NVSwitch based systems.\n"
    assert names(judge_report(listing + TORCH, {"driver": "535.183.01"}))[0] == CAUSE


def test_the_journal_given_as_a_fact_decides(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TORCH, {"journal": [REFUSED.strip()]}), CAUSE)
    assert found.certainty is Certainty.PROVEN


def test_error_802_alone_asks(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TORCH), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"unit_state.nvidia-fabricmanager", "packages.nvidia-fabricmanager", "driver"} <= {m.key for m in found.missing}  # fmt: skip
    assert found.rivals == ("fabric-manager-state",)


@pytest.mark.parametrize("facts", [
    {"driver": "550.90.07", "packages.nvidia-fabricmanager": "550.90.07-1"},
    {"unit_state.nvidia-fabricmanager": "active (running)"},
    {"unit_state.nvidia-fabricmanager": "not-found"},
    {"nvswitch": False},
])  # fmt: skip
def test_what_speaks_against_it(judge_report: Judge, facts: dict[str, object]) -> None:
    judgement = judge_report(TORCH, facts)
    assert CAUSE not in names(judgement)
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


@pytest.mark.parametrize("text", [
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination\n",
    "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment\n",
    "Failed to initialize NVML: Driver/library version mismatch\n",
    "nv-fabricmanager[812]: request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]\ntorch.OutOfMemoryError: CUDA out of memory.\n",
])  # fmt: skip
def test_errors_of_the_driver_are_not_the_fabrics(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_a_driver_whose_version_was_cut_off_is_the_one_that_is_loaded(judge_report: Judge, finding: Find) -> None:
    text = "fabric manager NVIDIA GPU driver interface version 535.183.01 don't match with driver version\n"
    assert finding(judge_report(text), CAUSE).title == "Fabric Manager 535.183.01 does not run with the driver that is loaded: the versions must be equal"  # fmt: skip
    assert "driver 550.54.15:" in finding(judge_report(REFUSED), CAUSE).title

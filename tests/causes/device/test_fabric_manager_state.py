"""fabric-manager-state: the NVSwitch fabric is not set up, or kept from before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "fabric-manager-state"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


TORCH = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\n"
NVLS = "node23:12098:12141 [2] transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'\nnode23:12098:12141 [2] NCCL INFO transport/nvls.cc:394 -> 1\n"


@pytest.mark.parametrize("text", [
    TORCH,
    "RuntimeError: cuda runtime error (802) : system not yet initialized at /opt/conda/x/THCGeneral.cpp:50\n",
    "RuntimeError: CUDA driver error: system not yet initialized\n",
    "failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized\n",
    "Failed to allocate device vector A (error code system not yet initialized)!\n",
    'msg="error looking up nvidia GPU memory" error="cuda driver library failed to get device context 802"\n',
    "Last error:\nCuda failure 802 'system not yet initialized'\n",
])  # fmt: skip
def test_every_wording_asks_for_the_unit(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.POSSIBLE
    assert found.component == "fabric-manager"
    assert {"unit_state.nvidia-fabricmanager", "nvswitch", "journal"} <= {missing.key for missing in found.missing}
    assert "fabric-manager-version" in found.rivals


@pytest.mark.parametrize(("state", "remedy"), [
    ("not-found", ("system-package", "nvidia-fabricmanager", "match:driver")),
    ("inactive (dead)", ("service", "nvidia-fabricmanager", "start")),
])  # fmt: skip
def test_the_state_of_the_unit_proves_it_and_chooses_the_remedy(judge_report: Judge, finding: Find, state: str, remedy: tuple[str, str, str]) -> None:  # fmt: skip
    found = finding(judge_report(TORCH, {"unit_state.nvidia-fabricmanager": state, "nvswitch": True}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert proposed(found)[0] == remedy


def test_a_unit_that_systemctl_does_not_know(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TORCH + "Unit nvidia-fabricmanager.service could not be found.\n"), CAUSE)
    assert found.certainty is Certainty.PROVEN


PREREQUISITE = """Jul 02 10:00:01 b200 nvidia-fabricmanager-start.sh[2101]: Detected NVL5+ system
Jul 02 10:00:01 b200 nvidia-fabricmanager-start.sh[2101]: ib_umad module not loaded
Jul 02 10:00:01 b200 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE
"""


def test_a_missing_prerequisite_is_named_and_mended(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(PREREQUISITE + TORCH), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "ib_umad" in found.evidence[0].quote
    assert ("kernel", "ib_umad", "load") in proposed(found)


def test_a_subnet_manager_that_is_missing_in_the_journal(judge_report: Judge, finding: Find) -> None:
    facts = {"unit_state.nvidia-fabricmanager": "failed", "journal": ["nvidia-fabricmanager-start.sh: NVLSM binary not found"]}  # fmt: skip
    found = finding(judge_report(TORCH, facts), CAUSE)
    assert ("system-package", "nvlsm", "install") in proposed(found)
    assert found.certainty is Certainty.PROVEN


def test_multicast_asks_whether_fabric_manager_was_restarted(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NVLS), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "nvls.cc:244" in found.evidence[0].quote
    assert proposed(found)[0] == ("driver", "gpu-reset", "between stop and start of Fabric Manager")
    assert found.rivals == ("nccl-version",)


def test_a_restart_without_a_reset_makes_it_likely(judge_report: Judge, finding: Find) -> None:
    facts = {"unit_state.nvidia-fabricmanager": "active (running)", "journal": ["systemd: Stopped NVIDIA fabric manager service."]}  # fmt: skip
    assert finding(judge_report(NVLS, facts), CAUSE).certainty is Certainty.LIKELY


def test_nccls_own_words_make_it_likely(judge_report: Judge, finding: Find) -> None:
    text = "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation cannot be performed in the present state'.\nThis is usually caused by a system or configuration error in the Fabric Manager or NVSwitches.\n"  # fmt: skip
    assert finding(judge_report(text), CAUSE).certainty is Certainty.LIKELY


def test_multicast_without_gpu_memory_is_not_the_fabrics(judge_report: Judge) -> None:
    assert CAUSE not in names(judge_report("transport/nvls.cc:219 NCCL WARN Cuda failure 2 'out of memory'\n"))


def test_a_fabric_that_runs_with_equal_versions_needs_a_reset(judge_report: Judge, finding: Find) -> None:
    facts = {"unit_state.nvidia-fabricmanager": "active (running)", "driver": "550.90.07", "packages.nvidia-fabricmanager": "550.90.07"}  # fmt: skip
    judgement = judge_report(TORCH, facts)
    assert names(judgement) == [CAUSE]
    assert ("service", "host", "reboot") in proposed(finding(judgement, CAUSE))


@pytest.mark.parametrize("facts", [
    {"nvswitch": False},
    {"driver": "535.161.08", "packages.nvidia-fabricmanager": "535.171.04", "unit_state.nvidia-fabricmanager": "failed"},
])  # fmt: skip
def test_what_speaks_against_it(judge_report: Judge, facts: dict[str, object]) -> None:
    judgement = judge_report(TORCH, facts)
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_noise_of_machines_without_switches(judge_report: Judge) -> None:
    text = "nv-fabricmanager[812]: request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]\ntorch.OutOfMemoryError: CUDA out of memory.\n"  # fmt: skip
    assert CAUSE not in names(judge_report(text))


def test_a_confidential_machine_is_told_of_its_own_step(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("guest: TDX confidential VM with H100\n" + TORCH), CAUSE)
    assert any("conf-compute" in note for note in found.notes)


def test_a_package_that_is_absent_is_the_prerequisite(judge_report: Judge, finding: Find) -> None:
    facts = {"unit_state.nvidia-fabricmanager": "failed", "packages.nvlsm": None, "nvswitch": True}
    found = finding(judge_report(TORCH, facts), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert ("system-package", "nvlsm", "install") in proposed(found)


def test_a_fabric_that_is_in_progress_makes_it_likely(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TORCH, {"gpu_errors": ["GPU 0: Fabric State: In Progress"]}), CAUSE)
    assert found.certainty is Certainty.LIKELY


def test_the_unit_in_the_prefix_says_who_needs_the_module(judge_report: Judge) -> None:
    text = "nvidia-fabricmanager-start.sh[1887]: NVL5+ system requires ib_umad kernel module to be loaded.\n"
    assert judge_report(text).findings[0].cause == "fabric-manager-state"


@pytest.mark.parametrize(("driver", "command"), [
    ("570.86.15", "apt-get install nvidia-fabricmanager-570=570.86.15-1"),
    (None, 'v=$(cat /sys/module/nvidia/version) && apt-get install "nvidia-fabricmanager-${v%%.*}=$v*"'),
])  # fmt: skip
def test_what_is_installed_is_of_the_loaded_driver_and_can_go_again(
    judge_report: Judge, finding: Find, driver: str | None, command: str
) -> None:
    facts = {"unit_state.nvidia-fabricmanager": "not-found", "nvswitch": True, **({"driver": driver} if driver else {})}
    first = finding(judge_report(TORCH, facts), CAUSE).remedies[0]
    assert first.commands[0] == command
    assert first.undo
    assert "systemctl is-active nvidia-fabricmanager" in first.check

"""driver-uvm-broken: error 999 with a working nvidia-smi, and whose fault it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "driver-uvm-broken"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


TORCH = "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.\n"


@pytest.mark.parametrize("text", [
    TORCH,
    "failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error\n",
    "ggml_cuda_init: failed to initialize CUDA: unknown error\n",
    "numba.cuda.cudadrv.error.CudaSupportError: Error at driver init: Call to cuInit results in UNKNOWN ERROR (999)\n",
    'msg="unable to load cuda driver library" error="cuda driver library init failure: 999"\n',
    "nvidia-container-cli: initialization error: cuda error: unknown error: unknown\n",
])  # fmt: skip
def test_every_wording_asks_whether_the_host_fails_too(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"cuinit.host", "nvidia_smi.host", "journal"} == {missing.key for missing in found.missing}
    assert "container-devices-lost" in found.rivals
    assert found.component == "driver"


def test_torchs_guess_is_not_quoted(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TORCH), CAUSE)
    assert "CUDA_VISIBLE_DEVICES" not in found.evidence[0].quote
    assert "CUDA_VISIBLE_DEVICES" in found.not_remedies[0].what


def test_the_more_is_known_of_the_host_the_surer(judge_report: Judge, finding: Find) -> None:
    fails = {"cuinit.host": "999", "nvidia_smi.host": "ok"}
    assert finding(judge_report(TORCH, fails), CAUSE).certainty is Certainty.LIKELY
    slept = {**fails, "journal": ["kernel: PM: suspend exit"]}
    found = finding(judge_report(TORCH, slept), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert ("kernel", "nvidia_uvm", "reload") in proposed(found)
    assert ("service", "host", "reboot") in proposed(found)


def test_a_machine_that_slept_makes_it_likely(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report(TORCH + "It works until the laptop sleeps.\n"), CAUSE).certainty is Certainty.LIKELY


def test_a_module_that_is_not_there_is_loaded(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("modprobe: FATAL: Module nvidia-uvm not found in directory /lib/modules/6.5.0-26-generic\n" + TORCH), CAUSE)  # fmt: skip
    assert found.certainty is Certainty.LIKELY
    assert "nvidia-uvm" in found.evidence[0].quote
    assert proposed(found) == [("kernel", "nvidia_uvm", "load")]


@pytest.mark.parametrize("facts", [
    {"cuinit.host": "0"},
    {"nvidia_smi.host": "ok", "nvidia_smi.container": "Failed to initialize NVML: Unknown Error"},
    {"nvidia_smi.host": "No devices were found"},
])  # fmt: skip
def test_facts_that_speak_for_something_else(judge_report: Judge, facts: dict[str, object]) -> None:
    judgement = judge_report(TORCH, facts)
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_nvml_that_fails_as_well_is_a_container_that_lost_its_devices(judge_report: Judge) -> None:
    judgement = judge_report("root@0123456789ab:/# nvidia-smi\nFailed to initialize NVML: Unknown Error\n" + TORCH)
    assert names(judgement)[0] == "container-devices-lost"
    assert CAUSE not in names(judgement)


def test_an_unknown_error_of_a_running_kernel_is_hardly_this(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report("RuntimeError: CUDA error: unknown error\n"), CAUSE).strength < 30


@pytest.mark.parametrize("text", [
    "RuntimeError: Error 802: system not yet initialized\n",
    "RuntimeError: No CUDA GPUs are available\n",
    "Unable to determine the device handle for GPU0000:3D:00.0: Unknown Error\n",
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))

"""gpu-lost: a GPU has fallen off the bus."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "gpu-lost"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


LOST = "kernel: NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n"


@pytest.mark.parametrize("text", [
    LOST,
    "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
    "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.\n",
    "NVRM: rpcRmApiAlloc_GSP: GspRmAlloc failed: hClient=0xc1d00001; status=0x0000000f (NV_ERR_GPU_IS_LOST)\n",
    "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU\n",
    "pynvml.NVMLError_GpuIsLost: GPU is lost\n",
])  # fmt: skip
def test_every_wording(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert found.component == "gpu-hardware"
    assert {("service", "host", "reboot"), ("hardware", "gpu", "replace")} <= set(proposed(found))


def test_errors_of_the_link_come_before_it_and_the_xid_is_quoted(judge_report: Judge, finding: Find) -> None:
    text = "kernel: pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:00:01.0\nkernel: pcieport 0000:00:01.0:    [ 5] SDES  Surprise Down\n" + LOST  # fmt: skip
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert "79" in found.evidence[0].quote
    assert any("AER" in evidence.quote for evidence in found.evidence)


def test_a_port_whose_link_went_down_may_be_anothers(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("kernel: pcieport 0000:00:03.1: pciehp: Slot(0): Link Down\nRuntimeError: CUDA error: unknown error\n"), CAUSE)  # fmt: skip
    assert found.certainty is Certainty.LIKELY


def test_a_kernel_log_given_as_a_fact_explains_the_cuda_error(judge_report: Judge, finding: Find) -> None:
    text = "CUDA error: unspecified launch failure\n  current device: 1, in function ggml_backend_cuda_synchronize at ggml-cuda.cu:2446\n"  # fmt: skip
    judgement = judge_report(text, {"kernel_log": [LOST.strip()]})
    assert names(judgement)[0] == CAUSE
    assert finding(judgement, CAUSE).explains


def test_what_the_report_says_of_power_and_risers_orders_the_remedies(judge_report: Judge, finding: Find) -> None:
    power = proposed(finding(judge_report(LOST + "It happens under load; the PSU has 850 W.\n"), CAUSE))
    assert ("config", "GPU power limit", "lower") in power
    idle = proposed(finding(judge_report(LOST + "Only when the card was idle for a while.\n"), CAUSE))
    assert ("kernel", "pcie_aspm", "off") in idle


@pytest.mark.parametrize("text", [
    "Unable to determine the device handle for GPU0: 0000:03:00.0: Unknown Error\nNo devices were found\n",
    "Unable to determine the device handle for GPU 0000:0B:00.0: Not Found\n",
])  # fmt: skip
def test_a_gpu_that_is_not_reached_asks_for_the_kernel_log(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert [missing.key for missing in found.missing] == ["kernel_log"]


def test_another_first_fault_in_the_kernel_log_takes_it_away(judge_report: Judge) -> None:
    text = "Unable to determine the device handle for GPU0: 0000:03:00.0: Unknown Error\n"
    judgement = judge_report(text, {"kernel_log": ["NVRM: Xid (PCI:0000:03:00): 62, pid=1"]})
    assert names(judgement)[0] == "gpu-xid-other"
    assert CAUSE not in names(judgement)


def test_an_ordinary_cuda_error_is_none(judge_report: Judge) -> None:
    for text in ("CUDA error: an illegal memory access was encountered\n", "RuntimeError: No CUDA GPUs are available\n", "Failed to initialize NVML: Unknown Error\n"):  # fmt: skip
        assert CAUSE not in names(judge_report(text))


def test_a_launch_failure_asks_for_the_kernel_log_and_a_clean_one_rules_it_out(judge_report: Judge, finding: Find) -> None:  # fmt: skip
    text = "RuntimeError: CUDA error: unspecified launch failure\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.strength < 20
    judgement = judge_report(text, {"kernel_log": ["kernel: usb 1-1: new device"]})
    assert {CAUSE, "gpu-xid-other"} <= {excluded.cause for excluded in judgement.ruled_out}


def test_the_hosts_nvidia_smi_tells_it(judge_report: Judge) -> None:
    text = "RuntimeError: CUDA error: unspecified launch failure\n"
    facts = {"nvidia_smi.host": "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.  Reboot the system to recover this GPU"}  # fmt: skip
    assert names(judge_report(text, facts))[0] == CAUSE

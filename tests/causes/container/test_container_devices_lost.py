"""container-devices-lost: NVML fails in the container and works on the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "container-devices-lost"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


NVML = "Failed to initialize NVML: Unknown Error\n"
INSIDE = "root@0123456789ab:/# nvidia-smi\n" + NVML
CUDA = "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment\n"


def test_a_host_that_still_has_them_proves_it(judge_report: Judge, finding: Find) -> None:
    text = "(container) $ nvidia-smi -L\n" + NVML + "(host) # nvidia-smi -L\nGPU 0: NVIDIA A10 (UUID: GPU-xxxxxxxx)\n"
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert found.evidence[0].quote == NVML.strip()
    assert found.component == "nvidia-container-toolkit"
    assert {
        ("container", "restart", "recreate the container"),
        ("config", "nvidia-container-runtime mode", "cdi"),
        ("flag", "--device", "/dev/nvidia0"),
    } <= set(proposed(found))


@pytest.mark.parametrize("text", [
    INSIDE,
    "After a few hours the container loses the GPU:\n" + INSIDE,
    "kubectl exec -it vllm-0 -- nvidia-smi\n" + NVML,
    "docker exec app python -c 'import pynvml'\npynvml.NVMLError_Unknown: Unknown Error\n",
])  # fmt: skip
def test_inside_a_container_it_is_likely(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert "nvidia_smi.host" in {missing.key for missing in found.missing}


def test_nobody_knows_where_it_was_printed(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NVML), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "driver-uvm-broken" in found.rivals


def test_a_reload_in_the_journal_is_quoted(judge_report: Judge, finding: Find) -> None:
    facts = {"nvidia_smi.host": "ok", "nvidia_smi.container": NVML.strip(), "journal": ["systemd[1]: Reloading."]}
    found = finding(judge_report(CUDA + NVML, facts), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "systemd[1]: Reloading." in [evidence.quote for evidence in found.evidence]


def test_cuda_alone_is_decided_by_the_host(judge_report: Judge, finding: Find) -> None:
    facts = {"container.in_container": True, "nvidia_smi.host": "ok", "nvidia_smi.container": NVML.strip()}
    assert names(judge_report(CUDA, facts))[0] == CAUSE
    assert finding(judge_report(CUDA), CAUSE).certainty is Certainty.POSSIBLE


@pytest.mark.parametrize("facts", [
    {"nvidia_smi.host": "Failed to initialize NVML: Unknown Error"},
    {"cuinit.host": "999", "nvidia_smi.host": "ok"},
    {"container.in_container": False},
])  # fmt: skip
def test_a_host_that_fails_too_rules_it_out(judge_report: Judge, facts: dict[str, object]) -> None:
    judgement = judge_report(CUDA + NVML, facts)
    assert CAUSE not in names(judgement)


def test_a_pod_is_recreated(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("kubectl exec vllm-0 -- nvidia-smi\n" + NVML), CAUSE)
    assert ("container", "restart", "recreate the pod") in proposed(found)
    assert "--device" not in [name for _, name, _ in proposed(found)]


@pytest.mark.parametrize("text", [
    "Unable to determine the device handle for GPU0000:3D:00.0: Unknown Error\n",
    "Failed to initialize NVML: Driver/library version mismatch\n",
    "RuntimeError: Found no NVIDIA driver on your system.\n",
    "RuntimeError: Error 802: system not yet initialized\n",
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))

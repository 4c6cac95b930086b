"""The lab's host is what it claims to be: the crash loop, the gate, the kill and the logins happen for real."""

from __future__ import annotations

import subprocess

import pytest
from tests.lab.gpu_host import GpuHost

pytestmark = pytest.mark.lab

WARNING = "Failed to get device capability: SM 12.x requires CUDA >= 12.9."
GATE = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"


@pytest.mark.parametrize("unit", ["sglang.service", "sglang-124.service"])
def test_flashinfer_s_gate_ends_each_of_three_starts(gpu_host: GpuHost, unit: str) -> None:
    journal = gpu_host.journal(unit)
    assert journal.count(GATE) == 3
    # jit/env.py and jit/core.py each make a CompilationContext.
    assert journal.count(WARNING) == 6
    assert "in check_cuda_arch" in journal


@pytest.mark.parametrize("unit", ["sglang.service", "sglang-124.service"])
def test_systemd_gives_up_after_three_starts(gpu_host: GpuHost, unit: str) -> None:
    state = gpu_host.show(unit, "ActiveState", "Result", "NRestarts", "ExecMainStatus", "DropInPaths")
    assert state == {
        "ActiveState": "failed",
        "Result": "exit-code",
        "NRestarts": "3",
        "ExecMainStatus": "1",
        "DropInPaths": "",
    }


def test_the_healthy_unit_serves(gpu_host: GpuHost) -> None:
    assert gpu_host.show("sglang-ok.service", "ActiveState", "NRestarts") == {"ActiveState": "active", "NRestarts": "0"}
    assert GATE not in gpu_host.journal("sglang-ok.service")


def test_the_kernel_killed_the_eagle_service_before(gpu_host: GpuHost) -> None:
    assert "(sglang::schedul) total-vm:" in gpu_host.kernel_log()
    assert gpu_host.show("sglang-eagle3.service", "Result", "ExecMainStatus") == {
        "Result": "signal",
        "ExecMainStatus": "9",
    }


def test_the_host_has_the_toolkits_it_should(gpu_host: GpuHost) -> None:
    for release in ("12.4", "12.8"):
        assert f"release {release}," in gpu_host.run(f"/usr/local/cuda-{release}/bin/nvcc --version").stdout
    assert gpu_host.run("which nvcc", check=False).returncode == 1


def test_nvidia_s_own_library_lists_the_pretended_gpus(gpu_host: GpuHost) -> None:
    program = "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetCount(), n.nvmlSystemGetDriverVersion())"
    assert gpu_host.run(f"/opt/sglang/bin/python -c '{program}'").stdout.split() == ["8", "580.95.05"]


def test_ssh_reaches_the_host_with_the_lab_s_configuration(gpu_host: GpuHost) -> None:
    before = gpu_host.logins()
    answer = subprocess.run(
        ["ssh", "-F", str(gpu_host.ssh_config), gpu_host.ssh_destination, "hostname; id -un"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert answer.stdout.split() == ["lab-gpu", "root"]
    assert gpu_host.logins() == before + 1


def test_the_journal_host_has_the_incident_in_its_past(journal_host: GpuHost) -> None:
    assert journal_host.journal("sglang.service").count(GATE) == 6
    kernel = journal_host.run("journalctl --no-pager --output cat _TRANSPORT=kernel SYSLOG_IDENTIFIER=kernel").stdout
    assert "Out of memory: Killed process 18231 (sglang::schedul)" in kernel

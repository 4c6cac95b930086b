"""The remedies are real: carried out by hand, to the letter, they end the crash, and undone it is back."""

from __future__ import annotations

import pytest
from tests.lab.examine import diagnose_over_ssh
from tests.lab.gpu_host import SERVING, GpuHost, wait_for

pytestmark = pytest.mark.lab

UNIT = "sglang.service"
GATE = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("env", "FLASHINFER_CUDA_ARCH_LIST", "12.0a"), ("flag", "--sampling-backend", "pytorch")],
)
def test_a_remedy_cures_and_its_undo_brings_the_failure_back(
    crashed_host: GpuHost, kind: str, name: str, value: str
) -> None:
    remedies = diagnose_over_ssh(crashed_host, "--unit", UNIT).first["remedies"]
    remedy = next(each for each in remedies if (each["kind"], each["name"], each["value"]) == (kind, name, value))
    commands = "\n".join(remedy["commands"])
    for step in ("sglang.service.d/", "daemon-reload", "reset-failed", "restart"):
        assert step in commands

    crashes, served = crashed_host.journal(UNIT).count(GATE), crashed_host.journal(UNIT).count(SERVING)
    crashed_host.run(f"set -e\n{commands}")
    wait_for(lambda: crashed_host.journal(UNIT).count(SERVING) > served, 120, "it serves")
    assert crashed_host.journal(UNIT).count(GATE) == crashes
    assert crashed_host.show(UNIT, "ActiveState")["ActiveState"] == "active"
    crashed_host.run("set -e\n" + "\n".join(remedy["check"]))

    crashed_host.run("set -e\n" + "\n".join(remedy["undo"]))
    wait_for(lambda: crashed_host.journal(UNIT).count(GATE) > crashes, 120, "the failure is back")
    assert crashed_host.show(UNIT, "DropInPaths")["DropInPaths"] == ""


OUTCOMES = [
    ("sglang", "12.0a", SERVING),
    ("sglang", "12.0", "RuntimeError: SM 12.x requires CUDA >= 12.9"),
    ("sglang", "12.0f", "nvcc fatal   : Unsupported gpu architecture 'compute_120f'"),
    ("sglang", "12.0a;9.0a", "ValueError: too many values to unpack (expected 2)"),
    ("sglang-124", "12.0a", "nvcc fatal   : Unknown option '--compress-mode=size'"),
]


def test_the_service_itself_shows_which_values_help(fresh_host: GpuHost) -> None:
    """The same service once for each value, all of them at once."""
    units = [f"{name}-{number}.service" for number, (name, _, _) in enumerate(OUTCOMES)]
    for unit, (name, value, _) in zip(units, OUTCOMES, strict=True):
        setting = f'[Service]\nEnvironment="FLASHINFER_CUDA_ARCH_LIST={value}"\nStateDirectory={unit}\nEnvironment=HOME=/var/lib/{unit}\nRestart=no\n'  # fmt: skip
        fresh_host.run(f"cp /etc/systemd/system/{name}.service /etc/systemd/system/{unit}")
        fresh_host.write(f"/etc/systemd/system/{unit}.d/lab.conf", setting)
    fresh_host.run(f"systemctl daemon-reload && systemctl start {' '.join(units)}")
    for unit, (_, _, outcome) in zip(units, OUTCOMES, strict=True):
        fresh_host.wait_for_message(unit, outcome)

"""What a diagnosis tells of the place in which its remedies are typed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.remedies import prescribe, setting_of
from gpuwhy.reports import render
from gpuwhy.snapshot.given import given

TRACEBACK = """\
Traceback (most recent call last):
  File "/opt/my-venv/lib/python3.12/site-packages/flashinfer/jit/core.py", line 108, in check_cuda_arch
    raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")
RuntimeError: FlashInfer requires GPUs with sm75 or higher
Failed to get device capability: SM 12.x requires CUDA >= 12.9.
"""


def diagnosis(where: str = "a.log", unit: str = "", **facts: Any) -> Diagnosis:
    made = diagnose_log(
        TRACEBACK.encode(), "a.log", given({key.replace("__", "."): v for key, v in facts.items()}).facts
    )
    incident = msgspec.structs.replace(made.incident, unit=unit)
    return msgspec.structs.replace(made, where=where, incident=incident)


def test_a_log_alone_is_a_shell_with_the_interpreter_of_its_frames() -> None:
    setting = setting_of(diagnosis())
    assert (setting.kind, setting.host, setting.python) == ("shell", "", "/opt/my-venv/bin/python")


@pytest.mark.parametrize(
    ("where", "host"), [("local", ""), ("root@gpu-host", "root@gpu-host"), ("/x/h.gpuwhy", ""), ("h.gpuwhy", "")]
)
def test_a_unit_on_a_host(where: str, host: str) -> None:
    setting = setting_of(diagnosis(where, "sglang"))
    assert (setting.kind, setting.unit, setting.host) == ("systemd", "sglang.service", host)


@pytest.mark.parametrize("unit", ["a b", "x;reboot", "$(x).service", "../etc", "a.service\n", "ssh.socket"])
def test_a_name_that_is_no_units_is_not_used(unit: str) -> None:
    assert setting_of(diagnosis("local", unit)).kind == "shell"


def test_containers_by_their_engine() -> None:
    setting = setting_of(diagnosis("podman:vllm-1"))
    assert (setting.kind, setting.engine, setting.container) == ("docker", "podman", "vllm-1")


def test_the_port_and_the_interpreter_come_from_the_command() -> None:
    setting = setting_of(diagnosis(command="/srv/v/bin/vllm serve m --port=9000"))
    assert (setting.port, setting.python) == (9000, "/srv/v/bin/python")


def test_remedies_are_prescribed_for_it_and_the_report_says_where_to_type_them() -> None:
    made = prescribe(diagnosis("root@gpu-host", "sglang", cc="12.0", cuda_toolkit="12.8"))
    first = made.findings[0].remedies[0]
    assert (first.kind, first.name, first.value) == ("env", "FLASHINFER_CUDA_ARCH_LIST", "12.0a")
    assert first.commands[0] == "install -d /etc/systemd/system/sglang.service.d"
    assert any("EnvironmentFile=" in limit for limit in first.limits)
    assert "What to do first (on root@gpu-host, as root)" in render(made, "text")

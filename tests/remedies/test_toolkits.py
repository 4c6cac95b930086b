"""Installing a toolkit is written for the system's own package manager, and only for a plain minimum."""

from __future__ import annotations

import pytest

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import written_for
from gpuwhy.remedies.setting import Setting


def written(value: str, **setting: str) -> Remedy:
    remedy = Remedy(kind="toolkit", name="cuda", value=value, summary="Install a toolkit")
    return written_for(remedy, Setting(kind="systemd", unit="llm.service", **setting))  # type: ignore[arg-type]


@pytest.mark.parametrize(("system", "command"), [
    ("Ubuntu 24.04.1 LTS", "apt-get install --yes cuda-toolkit-12-9"),
    ("Debian GNU/Linux 12 (bookworm)", "apt-get install --yes cuda-toolkit-12-9"),
    ("Rocky Linux 9.4", "dnf install -y cuda-toolkit-12-9"),
    ("openSUSE Leap 15.6", "zypper --non-interactive install cuda-toolkit-12-9"),
])  # fmt: skip
def test_the_package_and_the_folder_of_the_release(system: str, command: str) -> None:
    remedy = written(">=12.9", os=system)
    assert remedy.commands[0] == command
    assert any("CUDA_HOME=/usr/local/cuda-12.9" in line for line in remedy.commands)
    assert remedy.undo[-1].endswith("cuda-toolkit-12-9")
    assert "/usr/local/cuda-12.9/bin/nvcc --version" in remedy.check


@pytest.mark.parametrize("value", ["newer", "match:torch", ">=12.9; reboot", ">=12.9 "])
def test_anything_else_than_a_minimum_gives_no_command(value: str) -> None:
    assert written(value, os="Ubuntu 24.04").commands == ()


def test_an_unknown_system_gives_no_command() -> None:
    assert written(">=12.9", os="Plan 9").commands == ()

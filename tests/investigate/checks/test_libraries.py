"""The installed libraries as files: real binaries, asked through the collector's own answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.investigate.host_of_binaries import Host, coded

from gpuwhy.investigate.checks.binaries import installed_libraries
from gpuwhy.investigate.checks.forecasting import forecast
from gpuwhy.investigate.checks.plan import Plan
from gpuwhy.investigate.checks.results import Forecast
from gpuwhy.snapshot.given import given


def put(packages: Path, name: str, data: bytes) -> None:
    path = packages / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def checked(packages: Path, facts: dict[str, Any], plan: Plan | None = None) -> Forecast:
    host = Host(packages)
    return forecast("test", given(facts).facts, plan, installed_libraries(host.snapshot(), host))


def test_a_package_with_one_file_for_the_gpu_runs(tmp_path: Path) -> None:
    put(tmp_path, "sgl_kernel/sm90/common_ops.abi3.so", coded("sm_90a"))
    put(tmp_path, "sgl_kernel/sm100/common_ops.abi3.so", coded("sm_100a", "sm_120a"))
    found = checked(tmp_path, {"cc": "12.0"})
    assert found.problems == ()
    assert any("sgl-kernel run on compute capability 12.0" in each.what for each in found.passed)


def test_a_package_without_any_is_a_problem_for_that_gpu_only(tmp_path: Path) -> None:
    put(tmp_path, "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so", coded("sm_80", "sm_90"))
    found = checked(tmp_path, {"gpus": ["0: H100 (9.0)", "1: RTX 5090 (12.0)"]})
    (problem,) = found.problems
    assert (problem.cause, problem.component) == ("binary-lacks-arch", "flash-attn")
    assert "12.0" in problem.title
    assert "sm_80 sm_90" in problem.evidence[0].quote


@pytest.mark.parametrize(("driver", "causes"), [("580.65.06", []), ("520.61.05", ["ptx-newer-than-driver"])])
def test_ptx_needs_a_driver_that_compiles_it(tmp_path: Path, driver: str, causes: list[str]) -> None:
    put(tmp_path, "torch/lib/libtorch_cuda.so", coded("sm_80", "compute_90", ptx=(8, 4)))
    found = checked(tmp_path, {"cc": "10.0", "driver": driver})
    assert [each.cause for each in found.problems if each.cause != "driver-too-old"] == causes


def test_a_release_that_is_planned_is_not_judged_by_the_installed_one(tmp_path: Path) -> None:
    put(tmp_path, "flash_attn_2_cuda.so", coded("sm_80"))
    assert checked(tmp_path, {"cc": "12.0"}).problems
    assert not checked(tmp_path, {"cc": "12.0"}, Plan(packages=("flash-attn==2.9.0",))).problems


def test_a_file_that_cannot_be_read_is_no_pass(tmp_path: Path) -> None:
    put(tmp_path, "flash_attn_2_cuda.so", coded("sm_80")[:700])
    found = checked(tmp_path, {"cc": "12.0"})
    assert not any("flash-attn" in each.what for each in found.passed)

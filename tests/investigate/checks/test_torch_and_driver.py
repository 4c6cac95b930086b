"""torch, Triton and the driver against the GPUs."""

from __future__ import annotations

import pytest
from tests.investigate.checks.forecasts import causes, of, open_questions, problem

from gpuwhy.investigate.checks.plan import Plan
from gpuwhy.model.finding import Certainty


def plan(*gpus: str, packages: tuple[str, ...] = (), driver: str = "") -> Plan:
    return Plan(gpus=gpus, packages=packages, driver=driver)


def test_a_build_before_the_gpu() -> None:
    found = of(None, plan("RTX 5090", packages=("torch==2.6.0+cu124",)))
    first = problem(found, "torch-lacks-arch")
    assert first.certainty is Certainty.PROVEN
    assert first.remedies[0].value == "cu128 build"
    assert "ptxas-too-old-for-arch" in causes(found), "torch 2.6 brings Triton 3.2, whose assembler is of CUDA 12.4"


def test_a_build_after_the_gpu() -> None:
    found = of(None, plan("GTX 1080 Ti", packages=("torch==2.8.0+cu128",)))
    assert causes(found) == ["torch-lacks-arch"]
    assert found.problems[0].remedies[0].value == "cu126 build"


@pytest.mark.parametrize(
    ("torch", "expected"),
    [("2.8.0+cu128", []), ("2.9.0+cu130", ["driver-too-old"])],
)
def test_a_driver_of_the_same_major_is_enough_for_machine_code(torch: str, expected: list[str]) -> None:
    assert causes(of(None, plan("H100", packages=(f"torch=={torch}",), driver="550.90.07"))) == expected


def test_the_build_that_the_driver_runs_comes_before_another_driver() -> None:
    found = problem(of(None, plan("H100", packages=("torch==2.9.0+cu130",), driver="550.90.07")), "driver-too-old")
    assert {each.kind for each in found.remedies} == {"package", "driver"}
    assert any(each.value == ">=580" for each in found.remedies)


def test_a_driver_before_the_gpu() -> None:
    found = of(None, plan("RTX 5090", packages=("torch==2.8.0+cu128",), driver="550.90.07"))
    assert "driver-too-old" in causes(found)
    assert causes(of(None, plan("RTX 5090", packages=("torch==2.8.0+cu128",), driver="575.57.08"))) == []


def test_tritons_own_assembler() -> None:
    found = problem(of(None, plan("5090", packages=("triton==3.2.0",))), "ptxas-too-old-for-arch")
    assert found.component == "triton"


def test_an_installed_toolkit_lends_its_assembler_where_triton_agrees() -> None:
    installed = {"toolkits": [{"root": "/usr/local/cuda-12.9", "version": "12.9"}]}
    first = problem(of({"cc": "12.1", "packages.triton": "3.4.0", **installed}), "ptxas-too-old-for-arch").remedies[0]
    assert (first.name, first.value) == ("TRITON_PTXAS_PATH", "/usr/local/cuda-12.9/bin/ptxas")
    older = problem(of({"cc": "12.0", "packages.triton": "3.2.0", **installed}), "ptxas-too-old-for-arch")
    assert [each.kind for each in older.remedies] == ["package"], "Triton 3.2 refuses an assembler that new"


def test_an_assembler_that_a_variable_names_is_not_guessed() -> None:
    facts = {"cc": "12.0", "packages.triton": "3.2.0", "env.TRITON_PTXAS_PATH": "/opt/ptxas"}
    found = of(facts)
    assert causes(found) == []
    assert "/opt/ptxas" in open_questions(found)


def test_the_one_gpu_of_a_mixed_host_that_is_left_behind_is_named() -> None:
    found = of(None, plan("RTX 5090", "GTX 1080 Ti", packages=("torch==2.7.1+cu128",)))
    assert causes(found) == ["torch-lacks-arch"]
    assert "GPU 1, GeForce GTX 1080 Ti (6.1)" in found.problems[0].title
    assert found.problems[0].remedies[0].kind == "hardware", "no build has both"


def test_the_list_that_the_installed_torch_names_wins() -> None:
    facts = {"cc": "12.0", "torch": "2.6.0+cu124", "torch_arch_list": ["sm_90", "sm_120"]}
    assert causes(of(facts)) == []
    assert causes(of({**facts, "torch_arch_list": ["sm_80", "sm_90"]})) == ["torch-lacks-arch"]


def test_a_torch_without_cuda() -> None:
    assert causes(of({"cc": "9.0", "torch": "2.8.0+cpu"})) == ["no-device-visible"]


def test_ptx_that_the_driver_cannot_compile() -> None:
    facts = {"cc": "12.0", "torch": "2.9.1", "torch_cuda": "12.8", "torch_arch_list": ["sm_90", "compute_90"], "driver": "550.90.07"}  # fmt: skip
    assert "ptx-newer-than-driver" in causes(of(facts))


def test_no_driver_and_parts_of_two() -> None:
    assert causes(of({"driver": None})) == ["no-device-visible"]
    found = of({"driver": "570.86.15", "driver_library": "575.57.08"})
    assert causes(found) == ["driver-library-mismatch"]


def test_nothing_known_is_nothing_said() -> None:
    found = of()
    assert (causes(found), found.passed, found.is_examined) == ([], (), False)
    assert "torch has code for these GPUs" in open_questions(found)
    assert all(each.why for each in found.unchecked)


def test_wheels_for_arm_are_not_judged_by_those_for_x86() -> None:
    found = of({"gpu": "Jetson AGX Thor", "cc": "11.0", "torch": "2.10.0+cu130"})
    assert causes(found) == []
    assert "aarch64" in open_questions(found)

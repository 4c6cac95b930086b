"""What a plan replaces, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.investigate.checks.forecasts import SEED, causes, of, open_questions

from gpuwhy.investigate.checks.plan import Plan, PlanError, planned
from gpuwhy.model.evidence import Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.snapshot.given import given


def fact(facts: Facts, key: str) -> Fact:
    found = facts.get(key)
    assert isinstance(found, Fact), key
    return found


def test_what_is_planned_is_cited_as_given() -> None:
    facts = planned(given(SEED).facts, Plan(driver="550.90.07", cuda="12.9", env=("A=b",))).facts
    for key in ("driver", "cuda_toolkit", "env.A"):
        assert fact(facts, key).evidence.standing is Standing.GIVEN
    assert fact(facts, "driver").evidence.quote == "--driver 550.90.07"


def test_what_was_seen_of_the_old_part_is_gone() -> None:
    before = given({**SEED, "driver_cuda": "12.9", "driver_library": "575.57.08", "gpu_errors": ["GPU 0: lost"], "torch": "2.8.0", "torch_cuda": "12.8", "torch_arch_list": ["sm_90"]}).facts  # fmt: skip
    facts = planned(before, Plan(gpus=("H100",), driver="550.90.07", packages=("torch==2.9.1+cu130",))).facts
    assert not any(key in facts for key in ("driver_cuda", "driver_library", "gpu_errors", "torch_arch_list", "cc"))
    assert facts.value("torch_cuda") == "13.0"
    assert facts.value("packages.triton") == "3.5.1"


def test_an_engine_brings_what_it_pins() -> None:
    facts = planned(Facts(), Plan(packages=("vllm==0.11.0",))).facts
    assert facts.value("packages.torch") == "2.8.0"
    assert facts.value("torch_cuda") == "12.8"
    assert fact(facts, "packages.torch").evidence.standing is Standing.DERIVED
    other = planned(Facts(), Plan(packages=("vllm==0.11.0", "torch==2.7.1+cu128"))).facts
    assert other.value("packages.torch") == "2.7.1+cu128"


def test_gpus_by_name_number_and_capability() -> None:
    facts = planned(Facts(), Plan(gpus=("2 x H100", "12.0", "5090"))).facts
    assert [each.compute_capability for each in facts.value("gpus")] == ["9.0", "9.0", "12.0", "12.0"]
    assert [each.index for each in facts.value("gpus")] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "plan",
    [
        Plan(gpus=("Voodoo 2",)),
        Plan(gpus=("0 x B200",)),
        Plan(driver="new"),
        Plan(cuda="latest"),
        Plan(packages=("torch",)),
        Plan(packages=("torch>=2.8",)),
        Plan(packages=("torch==one",)),
        Plan(env=("HOME",)),
        Plan(requirements="/nowhere/requirements.txt"),
    ],
)
def test_what_cannot_be_used_is_said(plan: Plan) -> None:
    with pytest.raises(PlanError) as raised:
        planned(Facts(), plan)
    assert str(raised.value)


def requirements(folder: Path, text: str) -> Plan:
    path = folder / "requirements.txt"
    path.write_text(text)
    return Plan(requirements=str(path), gpus=("RTX 5090",), driver="575.57.08")


def test_requirements_for_a_gpu(tmp_path: Path) -> None:
    plan = requirements(tmp_path, "vllm==0.11.0\ntorch==2.8.0 \\\n    --hash=sha256:abc  # pinned\n")
    found = of(None, plan)
    assert causes(found) == []
    assert any("RTX 5090" in each.what and "torch 2.8.0" in each.what for each in found.passed)


def test_requirements_of_an_older_torch(tmp_path: Path) -> None:
    plan = requirements(tmp_path, "--extra-index-url https://download.pytorch.org/whl/cu126\nvllm==0.10.0\ntorch==2.7.1\n")  # fmt: skip
    found = of(None, plan)
    assert "torch-lacks-arch" in causes(found), "the index decides the build"
    assert any(each.place is not None and each.place.line == 1 for one in found.problems for each in one.evidence)


def test_what_a_file_leaves_to_pip_is_not_guessed(tmp_path: Path) -> None:
    plan = requirements(tmp_path, "torch>=2.5\n-r more.txt\nrequests\n==nonsense==\nonly-there==1.0; sys_platform == 'win32'\n")  # fmt: skip
    said = open_questions(of(None, plan))
    assert "torch>=2.5" in said
    assert "-r more.txt" in said
    assert "nonsense" in said
    assert "requests" not in said
    assert "only-there" not in said

"""A host as the collector saw it: the forecast from a snapshot, from an edited one, and from a report."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from tests.snapshot.test_snapshot import VALUES

from gpuwhy.investigate.checks.forecasting import check_target
from gpuwhy.investigate.checks.plan import Plan
from gpuwhy.investigate.checks.results import Forecast
from gpuwhy.reports.check import prescribed, render
from gpuwhy.snapshot import Probe, Snapshot, Subject, write
from gpuwhy.targets.file import PathTarget

JUNK: list[Any] = [None, 5, "x", [], {}, [1], {"a": 1}, "9" * 3000, True, -1, 1.5]


def checked(folder: Path, values: dict[str, Any], plan: Plan | None = None) -> Forecast:
    probes = tuple(Probe(name=name, status="ok", value=value) for name, value in values.items())
    path = folder / "host.gpuwhy"
    write(Snapshot(target=Subject("local", "here"), started=0.0, probes=probes), path)
    return check_target(PathTarget(str(path)), plan or Plan())


def test_what_was_seen_is_the_evidence(tmp_path: Path) -> None:
    found = checked(tmp_path, VALUES)
    first = found.problems[0]
    assert first.cause == "toolkit-too-old-for-arch"
    assert any("CUDA_HOME=/usr/local/cuda-12.8" in each.quote for each in first.evidence), "the order of search"
    assert {each.cause for each in found.problems[1:]} == {"toolkit-torch-mismatch", "toolkit-incomplete", "shm-too-small", "jit-cache-stale"}  # fmt: skip
    incomplete = next(each for each in found.problems if each.cause == "toolkit-incomplete")
    assert incomplete.remedies[0].name == "libcurand-dev-12-8"
    assert any("every GPU answers" in each.what for each in found.passed)
    assert any(each.key == "pci_acs" for each in found.unchecked)


def test_an_upgrade_is_judged_before_it_happens(tmp_path: Path) -> None:
    after = checked(tmp_path, VALUES, Plan(cuda="13.0"))
    assert {each.cause for each in after.problems} == {"shm-too-small", "jit-cache-stale"}
    older = checked(tmp_path, VALUES, Plan(driver="570.86.15"))
    assert "driver-too-old" in {each.cause for each in older.problems}
    bought = checked(tmp_path, VALUES, Plan(gpus=("4 x GTX 1080 Ti",)))
    assert {"torch-lacks-arch", "gpu-too-old"} <= {each.cause for each in bought.problems}


@pytest.mark.parametrize("seed", range(60))
def test_a_snapshot_of_any_shape_is_no_crash(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    values = copy.deepcopy(VALUES)
    for _ in range(4):
        values = mutated(values, chance, is_top=True)
    found = checked(tmp_path, values, Plan(gpus=("H100",)) if seed % 2 else None)
    assert render(prescribed(found), verbose=True)


def test_a_complete_toolkit_lacks_nothing(tmp_path: Path) -> None:
    values = copy.deepcopy(VALUES)
    values["toolkits"][0]["has_curand"] = True
    assert "toolkit-incomplete" not in {each.cause for each in checked(tmp_path, values).problems}


def mutated(value: Any, chance: random.Random, *, is_top: bool = False) -> Any:
    if isinstance(value, dict) and value and (is_top or chance.random() < 0.9):
        key = chance.choice(list(value))
        value[key] = mutated(value[key], chance)
        return value
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        value[place] = mutated(value[place], chance)
        return value
    return chance.choice(JUNK)


def test_what_a_report_states_of_its_host_counts(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text(
        "PyTorch version: 2.6.0+cu124\nCUDA used to build PyTorch: 12.4\n"
        "GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090\nNvidia driver version: 570.86.15\n"
    )
    found = check_target(PathTarget(str(path)), Plan())
    assert "torch-lacks-arch" in {each.cause for each in found.problems}

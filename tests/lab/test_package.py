"""The package remedy in the real environment of the seed incident: FlashInfer 0.6.18.post1 to 0.7.1, and back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.gpu_host import LAB

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting
from gpuwhy.remedies.applying.plan import Plan
from gpuwhy.remedies.applying.planning import plan_for
from gpuwhy.remedies.applying.site import Site
from gpuwhy.targets.local import LocalTarget

# minutes of fetching and unpacking: not for every change. .venv/bin/pytest tests/lab -m "lab and soak" -p no:cacheprovider
pytestmark = [pytest.mark.lab, pytest.mark.soak]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    """The seed's environment with a layer of its own on top, so that what is installed goes with the test."""
    for name in ("upper", "work", "environment"):
        (tmp_path / name).mkdir()
    layers = f"lowerdir={LAB}/seed,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    place = tmp_path / "environment"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def installed(environment: Path) -> dict[str, str]:
    listed = [
        str(environment / "bin" / "python"),
        "-m",
        "pip",
        "list",
        "--disable-pip-version-check",
        "--format=freeze",
    ]
    done = subprocess.run(listed, check=True, capture_output=True, text=True)
    return {name: version for name, _, version in (line.partition("==") for line in done.stdout.splitlines())}


def test_flashinfer_is_upgraded_with_what_it_needs_and_everything_comes_back(environment: Path, tmp_path: Path) -> None:
    before = installed(environment)
    setting = Setting(
        kind="shell", python=str(environment / "bin" / "python"), packages={"flashinfer-python": "0.6.18.post1"}
    )
    (tmp_path / "root").mkdir()
    with Site(LocalTarget(), root=str(tmp_path / "root")) as site:
        remedy = Remedy(kind="package", name="flashinfer-python", value="==0.7.1", summary="")
        plan = plan_for(remedy, setting, site)
        assert isinstance(plan, Plan), plan
        assert "the resolver's dry run: flashinfer-python 0.6.18.post1 → 0.7.1" in plan.notes
        assert installed(environment) == before
        assert site.apply(plan, {}).status == "applied"
        after = installed(environment)
        assert after["flashinfer-python"] == "0.7.1"
        assert {name: after.get(name) for name in before if name != "flashinfer-python"} == {
            name: version for name, version in before.items() if name != "flashinfer-python"
        }
        assert site.undo().status == "undone"
        assert installed(environment) == before

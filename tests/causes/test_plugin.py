"""The example package under ``examples/plugin``, installed as a user would install it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the plug-in is installed; the one that runs the tests is left as it is."""
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    shutil.copytree(ROOT / "examples" / "plugin", source)
    target = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(target), str(source)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(target)}


def run(environment: dict[str, str], *arguments: str, log: str = "") -> str:
    command = [sys.executable, "-m", "gpuwhy", *arguments]
    return subprocess.run(command, input=log, capture_output=True, text=True, env=environment, check=False).stdout


def test_its_cause_is_in_the_catalogue_and_documented(installed: dict[str, str]) -> None:
    listed = json.loads(run(installed, "causes", "--format", "json"))
    assert "Of this site" in [each["family"] for each in listed if each["id"] == "model-mount-missing"]
    assert "findmnt /mnt/models" in run(installed, "cause", "model-mount-missing")


def test_its_cause_is_found_and_what_it_leads_to_stands_behind(installed: dict[str, str]) -> None:
    report = "OSError: /mnt/models/qwen3-32b/config.json does not exist\n"
    found = json.loads(run(installed, "diagnose", "-", "--format", "json", log=report))
    assert found["findings"][0]["cause"] == "model-mount-missing"
    assert found["decides"]["command"] == "findmnt /mnt/models"


def test_its_own_tests_pass(installed: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ROOT / "examples" / "plugin" / "tests")]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, env=installed, check=False, cwd=installed["PYTHONPATH"])  # fmt: skip
    assert ended.returncode == 0, ended.stdout


def test_without_it_nobody_knows_the_cause() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    assert "model-mount-missing" not in run(environment, "causes")

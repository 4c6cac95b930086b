"""``gpuwhy check``: the forecast as a user sees it, its exit status, its JSON, and the examples of its page."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import jsonschema
import pytest
from scripts.make_schema import CHECK_SCHEMA_FILE, check_schema_text
from tests.cli.running import gpuwhy
from tests.patience import BUSY

from gpuwhy.causes import catalogue

PAGE = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
CHECKS = Path(__file__).parents[2] / "src" / "gpuwhy" / "investigate" / "checks"


@pytest.fixture
def seed(tmp_path: Path) -> str:
    """The file of facts that the page shows."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "seed.yaml"
    path.write_text(text)
    return str(path)


def examples() -> list[tuple[str, list[str]]]:
    (block,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    parts = [each.splitlines() for each in block.split("$ gpuwhy ") if each]
    return [(command, lines) for command, *lines in parts]


@pytest.mark.parametrize(("command", "lines"), examples())
def test_the_examples_of_the_page(command: str, lines: list[str], seed: str) -> None:
    import shlex

    done = gpuwhy(*[seed if word == "seed.yaml" else word for word in shlex.split(command)])
    assert done.err == ""
    assert [line for line in lines if line != "..." and line not in done.out.splitlines()] == []


def test_the_exit_status(seed: str, tmp_path: Path) -> None:
    assert gpuwhy("check", "--facts", seed).status == 1
    assert gpuwhy("check", "--facts", seed, "--cuda", "12.9").status == 0
    assert gpuwhy("check", "--gpu", "9.0").status == 3
    assert gpuwhy("check").status == 2
    assert gpuwhy("check", str(tmp_path / "none.gpuwhy"), "--gpu", "9.0").status == 2
    unknown = gpuwhy("check", "--gpu", "Voodoo 2")
    assert unknown.status == 2
    assert "give its compute capability" in unknown.err


def test_json_is_what_its_schema_describes(seed: str) -> None:
    assert CHECK_SCHEMA_FILE.read_text() == check_schema_text(), "run `make schema`"
    document = json.loads(gpuwhy("check", "--facts", seed, "--format", "json").out)
    jsonschema.Draft202012Validator(json.loads(CHECK_SCHEMA_FILE.read_text())).validate(document)
    (problem,) = document["problems"]
    assert problem["cause"] == "toolkit-too-old-for-arch"
    assert problem["remedies"][0]["value"] == "12.0a"
    assert problem["remedies"][0]["commands"], "written for the place"
    assert document["is_examined"] is True


def test_hostile_facts_reach_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "facts.yaml"
    path.write_text('cc: "12.0"\ntorch: "2.6.0\\e[2J"\ndriver: "\\u202e570"\n')
    out = gpuwhy("check", "--facts", str(path), "-v").out
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", out)


def test_a_snapshot_of_this_machine(tmp_path: Path) -> None:
    path = str(tmp_path / "here.gpuwhy")
    assert gpuwhy("collect", "local", "-o", path).status == 0
    done = gpuwhy("check", path, "--gpu", "RTX 5090", "--driver", "575.57.08", "-p", "torch==2.6.0+cu124")
    assert done.status == 1, done.err
    assert "torch-lacks-arch" in done.out
    assert "No NVIDIA driver" not in done.out


def test_this_machine_is_checked_in_seconds() -> None:
    begun = time.monotonic()
    done = gpuwhy("check", "local", "--format", "json")
    assert time.monotonic() - begun < 5 * BUSY
    assert done.status in (0, 1, 3)
    assert json.loads(done.out)["where"] == "local"


def test_every_problem_names_a_cause_of_the_catalogue() -> None:
    named = {name for path in CHECKS.glob("*.py") for name in re.findall(r'cause="([\w-]+)"', path.read_text())}
    assert len(named) > 15
    assert named <= set(catalogue())

"""``gpuwhy trace --replay``: a function decided with the facts of a host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuwhy.cli.trace import command

GATE = """\
import logging
import os

logger = logging.getLogger(__name__)


def targets():
    try:
        if os.environ["PLAN"] == "old":
            raise RuntimeError("the plan is too old")
    except RuntimeError as error:
        logger.warning("no target: %s", error)
        return set()
    return {os.environ["PLAN"]}


def check():
    if not targets():
        raise ValueError("nothing to build for")
    return len(targets())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "__init__.py").write_text(GATE)
    return tmp_path


def run(folder: Path, facts: str, *more: str) -> tuple[int, str]:
    path = folder / "facts.yaml"
    path.write_text(facts)
    result = CliRunner().invoke(command, ["--replay", "gate:check", "--source", str(folder), "--facts", str(path), *more], standalone_mode=False)  # fmt: skip
    return int(result.return_value or 0), result.output


def test_what_is_raised_and_what_was_swallowed(folder: Path) -> None:
    status, said = run(folder, "env: {PLAN: old}\n")
    assert status == 1
    assert said.startswith("gate:check: raises ValueError: nothing to build for  gate/__init__.py:19")
    assert "caught   RuntimeError: the plan is too old  raised gate/__init__.py:10" in said
    assert "warning  no target: the plan is too old" in said


def test_another_fact_another_end(folder: Path) -> None:
    assert run(folder, "env: {PLAN: new}\n")[0] == 0
    status, said = run(folder, "cc: '12.0'\n")
    assert status == 1
    assert "needs the fact env.PLAN, asked at gate/__init__.py:9" in said


def test_json(folder: Path) -> None:
    document = json.loads(run(folder, "env: {PLAN: new}\n", "--format", "json")[1])
    assert document["replay"]["outcome"] == {"kind": "returned", "value": "1"}

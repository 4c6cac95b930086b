"""A failure that no rule knows, on this machine, through the real collector; and again from the snapshot."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.investigate.test_failing_condition import ERROR, FRAMES, GATE, PROBING, WARNED

from gpuwhy.investigate import examine
from gpuwhy.logs import read_bytes
from gpuwhy.model.event import Log
from gpuwhy.reports import Detail, render
from gpuwhy.snapshot import encode
from gpuwhy.targets import Connection, PathTarget
from gpuwhy.targets.local import LocalTarget


class Quiet(LocalTarget):
    """This machine without its kernel log: what else failed here is not the subject."""

    def open(self, program: str) -> Connection:
        return _Quiet(super().open(program))


class _Quiet:
    def __init__(self, inner: Connection) -> None:
        self.ask, self.close = inner.ask, inner.close
        self._collect = inner.collect

    def collect(
        self, request: Mapping[str, Any], on_result: Callable[[dict[str, Any]], None], deadline: float
    ) -> dict[str, Any]:
        return self._collect({**request, "probes": ["system"]}, on_result, deadline)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    engine = tmp_path / "lib" / "python3.12" / "site-packages" / "engine"
    engine.mkdir(parents=True)
    for name, text in {"__init__": "", "gate": GATE, "probing": PROBING, "settings": "LEVELS = ()\n"}.items():
        (engine / f"{name}.py").write_text(text)
    number = 1 + next(at for at, line in enumerate(GATE.split("\n")) if FRAMES[0][1] in line)
    frame = f'  File "{engine / "gate.py"}", line {number}, in check\n    {FRAMES[0][1]}\n'
    text = f"{WARNED}Traceback (most recent call last):\n{frame}{ERROR}\n"
    return read_bytes(text.encode(), "crash.log")


def test_the_condition_comes_from_the_target_and_again_from_its_snapshot(log: Log, tmp_path: Path) -> None:
    examination = examine(Quiet(), logs=[log])
    source = examination.diagnosis.source
    assert source is not None
    assert [each.text for each in source.conditions] == ["not gate.levels"]
    assert source.shown_cause is not None
    assert str(source.shown_cause.raised_at.place if source.shown_cause.raised_at else "") == "engine/probing.py:5"
    assert "The failing condition" in render(examination.diagnosis, "text", Detail())
    assert examination.snapshot is not None
    kept = tmp_path / "host.gpuwhy"
    kept.write_bytes(encode(examination.snapshot))
    again = examine(PathTarget(str(kept)), logs=[log]).diagnosis.source
    assert again == source


def test_what_it_adds_to_a_diagnosis_is_in_the_record(log: Log) -> None:
    begun = time.monotonic()
    diagnosis = examine(Quiet(), logs=[log]).diagnosis
    (step,) = [each for each in diagnosis.investigation.steps if each.question.startswith("under which condition")]
    assert step.outcome == "ok"
    assert "engine/gate.py" in step.found
    assert step.duration is not None
    assert step.duration < min(3.2, time.monotonic() - begun)

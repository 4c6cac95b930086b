"""Limits of time are tested by name; everywhere else a busy machine must not decide what a search or a replay comes to."""

from __future__ import annotations

import pytest

from gpuwhy.investigate import failing_condition, replaying


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "CPU_SECONDS", 30.0)
    monkeypatch.setattr(replaying, "SECONDS", 60.0)
    monkeypatch.setattr(failing_condition.examined, "__defaults__", (30.0,))
    monkeypatch.setattr(replaying.with_replay, "__defaults__", (60.0,))
    monkeypatch.setattr(replaying.installed_source, "__defaults__", (60.0,))

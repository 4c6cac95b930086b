"""Limits of time are tested by name; everywhere else a busy machine must not decide what a replay comes to."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuwhy.investigate.replaying.CPU_SECONDS", 30.0)
    monkeypatch.setattr("gpuwhy.investigate.replaying.SECONDS", 60.0)

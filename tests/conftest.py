"""Randomised tests try the same examples every time, so that luck decides nothing; `make soak` tries others each time."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("searching", deadline=None, derandomize=False)


def pytest_configure(config: pytest.Config) -> None:
    is_soak = "soak" in config.option.markexpr.replace("not soak", "")
    settings.load_profile("searching" if is_soak else "steady")


def pytest_collection_finish() -> None:
    """What was imported and collected stays: to look through it again and again would count as time of some test."""
    gc.collect()
    gc.freeze()

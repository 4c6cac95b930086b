"""A forecast over facts as a ``--facts`` file writes them."""

from __future__ import annotations

from typing import Any

from gpuwhy.investigate.checks.forecasting import forecast
from gpuwhy.investigate.checks.plan import Plan
from gpuwhy.investigate.checks.results import Forecast, Problem
from gpuwhy.snapshot.given import given

SEED: dict[str, Any] = {
    "cc": "12.0",
    "gpu": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "cuda_toolkit": "12.8",
    "driver": "575.57.08",
    "packages.flashinfer-python": "0.6.12",
    "packages.sglang": "0.5.15",
    "environment_complete": True,
}
"""The host of the crash that started the project."""


def of(facts: dict[str, Any] | None = None, plan: Plan | None = None) -> Forecast:
    return forecast("test", given(facts or {}).facts, plan)


def causes(found: Forecast) -> list[str]:
    return [each.cause for each in found.problems]


def problem(found: Forecast, cause: str) -> Problem:
    return next(each for each in found.problems if each.cause == cause)


def open_questions(found: Forecast) -> str:
    return "\n".join(f"{each.what}: {each.why}" for each in found.unchecked)

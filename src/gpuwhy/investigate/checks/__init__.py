"""The causes as a forecast: will this environment run on these GPUs? One module for each subject, facts to results."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuwhy.investigate.checks.forecasting import check_plan, check_target, forecast
    from gpuwhy.investigate.checks.plan import Plan, PlanError

__all__ = ["Plan", "PlanError", "check_plan", "check_target", "forecast"]

_HOMES = {"Plan": "plan", "PlanError": "plan", "check_plan": "forecasting", "check_target": "forecasting", "forecast": "forecasting"}  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)

"""The loop: collect, judge, fetch what is missing, judge again, conclude; and the record of every question asked."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuwhy.investigate.log import diagnose_log, diagnose_logs
    from gpuwhy.investigate.target import Examination, examine, investigate

__all__ = ["Examination", "diagnose_log", "diagnose_logs", "examine", "investigate"]

_HOMES = {
    "diagnose_log": "log",
    "diagnose_logs": "log",
    "Examination": "target",
    "examine": "target",
    "investigate": "target",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)

"""Reports: the diagnosis for a person in a terminal, or as one JSON document for a program."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuwhy.reports.interface import Detail
    from gpuwhy.reports.neutral import plain
    from gpuwhy.reports.writing import FORMATS, render, write

__all__ = ["FORMATS", "Detail", "plain", "render", "write"]

_HOMES = {"FORMATS": "writing", "Detail": "interface", "plain": "neutral", "render": "writing", "write": "writing"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)

"""Reports: what gpuwhy found, for a person in a terminal, for a page, for an issue, for a pipeline; see :mod:`gpuwhy.reports.formats`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuwhy.reports.interface import Detail, UnknownFormatError
    from gpuwhy.reports.neutral import plain
    from gpuwhy.reports.writing import render, write

__all__ = ["Detail", "UnknownFormatError", "plain", "render", "write"]

_HOMES = {
    "Detail": "interface",
    "UnknownFormatError": "interface",
    "plain": "neutral",
    "render": "writing",
    "write": "writing",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)

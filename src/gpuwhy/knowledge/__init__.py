"""Measured compatibility data: which toolkit, driver, GPU and package works with which, each answer with provenance.

Nothing is read at import: a submodule reads its table at the first look-up and keeps it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = [
    "answers",
    "capability",
    "components",
    "drivers",
    "dtypes",
    "flashinfer",
    "gpus",
    "pins",
    "releases",
    "toolkits",
    "torch",
    "triton",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""gpuwhy finds out why a GPU inference service crashed or will not start, and what the smallest fix is.

The functions of :mod:`gpuwhy.api` are here too, imported when they are first used: see docs/api.md.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers read it; importing typing would take most of the time that gpuwhy takes
if TYPE_CHECKING:
    from typing import Any

    from gpuwhy.api import (
        Fleet,
        GpuwhyError,
        LogText,
        UnreachableError,
        UnusableError,
        check,
        collect,
        diagnose,
        inspect,
        outcome_of,
        trace,
    )

__version__ = "0.1.0"
__all__ = [
    "Fleet",
    "GpuwhyError",
    "LogText",
    "UnreachableError",
    "UnusableError",
    "__version__",
    "check",
    "collect",
    "diagnose",
    "inspect",
    "outcome_of",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpuwhy import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return __all__

"""The literals that a line of interest holds: what any event, traceback or stated fact can begin with."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from gpuwhy.logs import recognisers, stated
from gpuwhy.logs.events import EXCEPTION_LITERALS

SHORTEST = 3
"""A shorter literal (``=``) says nothing of the line it stands in; the dumps that have such lines are opened by others."""
SEVERE_FORMS = (
    *("warn", "error", "fatal", "critical", "panic", "killed", "abort"),
    *('"priority":"3"', '"priority":"2"', '"level":50', '"level":60', "priority=3\n", "priority=2\n"),
    *("\ne0", "\ne1", "\nf0", "\nf1"),
)
"""Levels as loggers write them; the last ones are glog's (``E0619 10:02:11.123``) at the beginning of a line."""


@functools.cache
def literals() -> frozenset[str]:
    """Of all readers of this package, in lower case."""
    found = {*EXCEPTION_LITERALS, *SEVERE_FORMS}
    for package in (recognisers, stated):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            found |= set(getattr(importlib.import_module(module.name), "LITERALS", ()))
    return frozenset(literal.lower() for literal in found if len(literal.strip(" ")) >= SHORTEST)

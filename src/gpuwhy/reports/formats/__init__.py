"""The formats of reports: each is one module here, found by its name; a new one needs no entry anywhere.

A format shows the kinds of answers that it has functions for (:data:`gpuwhy.reports.interface.KINDS`).
"""

from __future__ import annotations

import importlib
import importlib.resources
from types import ModuleType

from gpuwhy.reports.interface import KINDS, Show, UnknownFormatError


def names() -> tuple[str, ...]:
    """All formats, ``text`` first."""
    found = {each.name[:-3] for each in importlib.resources.files(__name__).iterdir() if each.name.endswith(".py")}
    return tuple(sorted(found - {"__init__"}, key=lambda name: (name != "text", name)))


def names_for(kind: str) -> tuple[str, ...]:
    """The formats that show answers of a kind: a value of :data:`~gpuwhy.reports.interface.KINDS`."""
    return tuple(name for name in names() if hasattr(_module(name), kind))


def show_of(form: str, kind: str) -> Show:
    """The function that shows answers of this kind. Raises UnknownFormatError."""
    module = _module(form) if form in names() else None
    show: Show | None = getattr(module, kind, None)
    if show is None:
        raise UnknownFormatError(
            f"{form}: no format for this; choose of {', '.join(names_for(kind) if kind else names())}"
        )
    return show


def kind_of(answer: object) -> str:
    """The kind of an answer by its type. Raises UnknownFormatError."""
    kind = KINDS.get(type(answer).__name__)
    if kind is None:
        raise UnknownFormatError(f"{type(answer).__name__}: nothing that formats show")
    return kind


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")

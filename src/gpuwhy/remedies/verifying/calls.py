"""Which call is the failing check: from the failing frames, as the installed source has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Frame, RaisedException

_PACKAGES = re.compile(r"/(?:site|dist)-packages/(?P<module>[A-Za-z_][\w/]{0,300})\.py")
_NAME = re.compile(r"[A-Za-z_]\w{0,200}")


class Call(msgspec.Struct, frozen=True):
    """``names`` from ``module`` on, called with literals; ``is_call`` False: the module is only imported."""

    module: str
    names: tuple[str, ...] = ()
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    is_call: bool = False

    def __str__(self) -> str:
        if not self.is_call:
            return f"import {self.module}"
        given = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.keywords.items())]
        return f"{self.module}.{'.'.join(self.names)}({', '.join(given)})"


def failing_call(diagnosis: Diagnosis) -> Call | None:
    """The call in which the primary exception is raised, and which can be made alone.

    Only what the installed source itself confirms is called: a log must not choose what is run. Where there is no such
    function, the import of the failing module is the check; None where there is neither.
    """
    source = diagnosis.source
    if source is None or source.place is None:
        return None
    replay = source.replay
    if replay is not None and replay.agreement in ("same", "partly"):
        called = call_of(replay.entry)
        if called is not None:
            return called
    raised = failing_exception(diagnosis)
    return None if raised is None else _failing_import(raised.frames)


def call_of(entry: str) -> Call | None:
    """``module:Class.method(1, key="x")`` as data; None for anything but literals in a plain call. ``module:`` imports.

    >>> str(call_of("flashinfer.jit.core:check_cuda_arch()"))
    'flashinfer.jit.core.check_cuda_arch()'
    """
    module, _, expression = entry.partition(":")
    if not all(_NAME.fullmatch(part) for part in module.split(".")):
        return None
    if not expression:
        return Call(module)
    try:
        node = ast.parse(expression, mode="eval").body
        if not isinstance(node, ast.Call):
            return None
        names = _names(node.func)
        arguments = tuple(ast.literal_eval(each) for each in node.args)
        keywords = {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg is not None}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not names or len(keywords) != len(node.keywords):
        return None
    return Call(module, names, arguments, keywords, is_call=True)


def failing_exception(diagnosis: Diagnosis) -> RaisedException | None:
    """The exception that is meant: that of the primary event, with frames."""
    # only where there is a diagnosis with a source: the module belongs to the investigation
    from gpuwhy.investigate.failing_condition import exception_of

    return exception_of(diagnosis.incident)


def _names(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        inner = _names(node.value)
        return (*inner, node.attr) if inner else ()
    return ()


def _failing_import(frames: Sequence[Frame]) -> Call | None:
    """The outermost module whose import fails; an exception that is raised later says nothing of imports."""
    for frame in frames:
        found = _PACKAGES.search(frame.path)
        if frame.function == "<module>" and found is not None:
            return Call(found["module"].removesuffix("/__init__").replace("/", "."))
    return None

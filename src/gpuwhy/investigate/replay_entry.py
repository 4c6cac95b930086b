"""Where a replay begins: the innermost function of a traceback that can be called without knowing any argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gpuwhy.investigate.replay_source import InstalledSource
from gpuwhy.model.event import Frame
from gpuwhy.source.trees import module_name

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_FRAMES = 40
_UNBOUND = {"staticmethod", "classmethod"}


def entry_of(frames: Sequence[Frame], source: InstalledSource) -> str:
    """``module:function`` of the frame that is nearest to the exception; empty when no frame can be an entry.

    A function that takes arguments is reached through the one that calls it, so that the arguments are the real ones.
    """
    for frame in reversed(frames[-_FRAMES:]):
        path = source.path_of(frame)
        module = source.find(module_name(path)) if path else None
        if module is None or frame.line is None:
            continue
        if frame.function == "<module>":
            return f"{module.name}:"
        called = _called(module.tree, frame)
        if called:
            return f"{module.name}:{called}"
    return ""


def _called(tree: ast.Module, frame: Frame) -> str:
    """The expression that runs the function of a frame with no argument; empty when there is none."""
    for function, owners in _functions(tree, ()):
        line = frame.line or 0
        is_there = function.name == frame.function and function.lineno <= line <= (function.end_lineno or line)
        if not is_there:
            continue
        unbound = {each.id for each in function.decorator_list if isinstance(each, ast.Name)} & _UNBOUND
        if not owners:
            return function.name if _required(function) == 0 else ""
        if unbound:
            needs = _required(function) - ("classmethod" in unbound)
            return ".".join((*owners, function.name)) if needs == 0 else ""
        if function.name == "__init__" and _required(function) == 1:
            return f"{'.'.join(owners)}()"
        return ""
    return ""


def _functions(node: ast.AST, owners: tuple[str, ...]) -> Iterator[tuple[_FunctionNode, tuple[str, ...]]]:
    """Functions that can be named from outside: of the module and of its classes, in conditions and ``try`` too."""
    pending = [(node, owners)]
    while pending:
        at, within = pending.pop()
        for child in ast.iter_child_nodes(at):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield child, within
            elif isinstance(child, ast.ClassDef):
                pending.append((child, (*within, child.name)))
            elif isinstance(child, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                pending.append((child, within))


def _required(function: _FunctionNode) -> int:
    arguments = function.args
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional + sum(default is None for default in arguments.kw_defaults)

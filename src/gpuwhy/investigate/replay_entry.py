"""Where a replay begins: the innermost function of a traceback whose arguments are known."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gpuwhy.investigate.replay_source import InstalledSource
from gpuwhy.model.event import Frame
from gpuwhy.source.replay import ModuleSource
from gpuwhy.source.trees import module_name

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_FRAMES = 40
_UNBOUND = {"staticmethod", "classmethod"}


def entry_of(frames: Sequence[Frame], source: InstalledSource) -> str:
    """What to replay: ``module:call`` of the frame that is nearest to the exception; empty when no frame can be one.

    A call is one whose arguments are known: a function without parameters, or one that the frame above calls with
    literals. Any other function is reached through the one that calls it, so that its arguments are the real ones.
    """
    shown = frames[-_FRAMES:]
    for at in range(len(shown) - 1, -1, -1):
        frame = shown[at]
        module = _module(frame, source)
        if module is None:
            continue
        if frame.function == "<module>":
            return f"{module.name}:"
        called = _called(module.tree, frame, shown[at - 1] if at else None, source)
        if called:
            return f"{module.name}:{called}"
    return ""


def _module(frame: Frame, source: InstalledSource) -> ModuleSource | None:
    path = source.path_of(frame)
    return source.find(module_name(path)) if path and frame.line is not None else None


def _called(tree: ast.Module, frame: Frame, above: Frame | None, source: InstalledSource) -> str:
    """The expression that calls the function of a frame as it was called; empty when that is not known."""
    line = frame.line or 0
    for function, owners in _functions(tree, ()):
        if function.name != frame.function or not function.lineno <= line <= (function.end_lineno or line):
            continue
        unbound = {each.id for each in function.decorator_list if isinstance(each, ast.Name)} & _UNBOUND
        is_made = function.name == "__init__" and bool(owners)
        if owners and not unbound and not is_made:
            return ""
        name = ".".join(owners if is_made else (*owners, function.name))
        parameters = _parameters(function) - (is_made or "classmethod" in unbound)
        arguments = "" if parameters == 0 else _literals(name.rpartition(".")[2], above, source)
        return "" if arguments is None else f"{name}({arguments})"
    return ""


def _literals(name: str, above: Frame | None, source: InstalledSource) -> str | None:
    """The arguments that the only call of that name at the line above gives; None where they are no literals."""
    module = _module(above, source) if above is not None else None
    if module is None or above is None:
        return None
    line = above.line or 0
    calls = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and node.lineno <= line <= (node.end_lineno or line)
        and _last_name(node.func) == name
    ]
    if len(calls) != 1:
        return None
    given = [*calls[0].args, *(each.value for each in calls[0].keywords if each.arg is not None)]
    is_literal = all(isinstance(each, ast.Constant) for each in given) and all(each.arg for each in calls[0].keywords)
    shown = [ast.unparse(each) for each in calls[0].args] + [
        f"{each.arg}={ast.unparse(each.value)}" for each in calls[0].keywords
    ]
    return ", ".join(shown) if is_literal else None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


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


def _parameters(function: _FunctionNode) -> int:
    """How many parameters it has. One with a default counts too: nothing says that the default was taken."""
    arguments = function.args
    return (
        len(arguments.posonlyargs)
        + len(arguments.args)
        + len(arguments.kwonlyargs)
        + bool(arguments.vararg)
        + bool(arguments.kwarg)
    )

"""From a question to a statement: a place, a symbol, or the frames of a traceback on the installed source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from gpuwhy.model.event import Frame
from gpuwhy.source.answers import MappedFrame, Spot
from gpuwhy.source.resolving import Resolver, last_name
from gpuwhy.source.roots import FedRoot
from gpuwhy.source.scopes import CALLABLES, Module, Scope, children, inner_scope, scope_of, statement_of, walk
from gpuwhy.source.trees import Tree, Trees

PLACE = re.compile(r"(?P<path>[^\s:]{1,800}\.py):(?P<line>\d{1,7})")
SYMBOL = re.compile(r"(?P<module>[A-Za-z_][\w.]{0,300}):(?P<name>[A-Za-z_][\w.]{0,300})")
SIGNAL = re.compile(r"SIG[A-Z0-9]{2,12}")
_INSTALLED = re.compile(r"^.{0,800}(?:site|dist)-packages/")


def below_packages(path: str) -> str:
    """The part of a path below ``site-packages``; the whole when there is none."""
    return _INSTALLED.sub("", path.replace("\\", "/"))


def file_of(trees: Trees, path: str) -> tuple[Tree, str] | None:
    """The file of an opened tree that a path means: the same below ``site-packages``, or the longest common end."""
    wanted = below_packages(path).lstrip("./")
    for tree in trees:
        if wanted in tree.paths:
            return tree, wanted
        if isinstance(tree.root, FedRoot) and wanted.partition("/")[0] == tree.package:
            tree.root.knows(wanted)
    parts = wanted.split("/")
    for start in range(len(parts) - 1):
        tail = "/".join(parts[start:])
        for tree in trees:
            found = [each for each in tree.known if each == tail or (start == 0 and each.endswith("/" + tail))]
            if len(found) == 1 and (not isinstance(tree.root, FedRoot) or tree.root.knows(found[0])):
                return tree, found[0]
    return None


def statement_at(module: Module, line: int) -> ast.stmt | None:
    """The innermost statement on a line; of a definition only its body."""
    unit = module.facts.function_at(line)
    scopes = list(module.functions(unit.qualname, unit.line)) if unit.qualname else []
    nodes = walk(*(scopes[0].body if scopes else module.tree.body))
    best: ast.stmt | None = None
    for node in nodes:
        if not isinstance(node, ast.stmt) or isinstance(node, (*CALLABLES, ast.ClassDef)):
            continue
        last = node.end_lineno or node.lineno
        if node.lineno <= line <= last and (best is None or last - node.lineno <= (best.end_lineno or 0) - best.lineno):
            best = node
    return best


def symbol(resolver: Resolver, module_name: str, qualname: str) -> tuple[Scope, str] | Scope | None:
    """The scope of a function or class; ``(scope, name)`` for a value of a module or class; None when there is none."""
    module = resolver.trees.module(module_name)
    if module is None:
        return None
    scope = module.scope
    parts = qualname.split(".")
    for number, part in enumerate(parts):
        values = [value for binding in scope.named(part) for value in resolver.bound(binding) if value.kind in ("function", "class", "property")]  # fmt: skip
        inner = next((value.scope for value in values if value.scope), None)
        if inner is None:
            is_last = number == len(parts) - 1
            is_there = bool(scope.named(part)) or (scope.kind == "class" and bool(resolver.own_writes(scope, part)))
            return (scope, part) if is_last and (is_there or part in resolver.table(scope.module)) else None
        scope = inner
    return scope


def statements_of(function: Scope, call: str = "") -> list[ast.stmt]:
    """The raises of a function, or the statements in it that call a name."""
    nodes = walk(*function.body)
    if call:
        found = [statement_of(node) for node in nodes if isinstance(node, ast.Call) and last_name(node.func) == call]
        return [node for node in dict.fromkeys(found) if isinstance(node, ast.stmt)]
    return [node for node in nodes if isinstance(node, ast.Raise)]


def map_frames(trees: Trees, frames: Sequence[Frame]) -> tuple[list[MappedFrame], list[ast.stmt]]:
    """The frames that are in the trees, and their statements, the innermost last."""
    mapped: list[MappedFrame] = []
    statements: list[ast.stmt] = []
    for frame in frames:
        found = file_of(trees, frame.path)
        module = found[0].module(found[1]) if found else None
        if module is None:
            continue
        statement, differs = _on_source(module, frame)
        line = statement.lineno if statement is not None and differs else frame.line or 0
        function = scope_of(statement).function().qualname if statement is not None else ""
        mapped.append(MappedFrame(Spot(module.path, line, function, module.line_text(line)[:200]), differs))
        statements += [statement] if statement is not None else []
    return mapped, statements


def calls_between(statements: Sequence[ast.stmt]) -> Iterator[tuple[Scope, ast.Call]]:
    """From the innermost frame outwards: the function of a frame, and the call in the frame above that ran it. A frame
    whose call is not found by its name (a decorator, a method of another name) is left out, and ends nothing."""
    for number in range(len(statements) - 1, 0, -1):
        function = scope_of(statements[number]).function()
        names = {function.name, *([function.above.name] if function.name == "__init__" and function.above else [])}
        calls = [node for node in _own_nodes(statements[number - 1]) if isinstance(node, ast.Call)]
        found = [call for call in calls if last_name(call.func) in names]
        if found:
            yield function, found[0]


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of the statements in it."""
    for child in children(statement):
        if isinstance(child, (ast.expr, ast.withitem)):
            yield from walk(child)


def _on_source(module: Module, frame: Frame) -> tuple[ast.stmt | None, str]:
    """The statement a frame means. Where the file is not the one that ran, the same line is looked for in the function
    of that name, and the difference is told."""
    line = frame.line or 0
    statement = statement_at(module, line) if line else None
    quoted = frame.code.strip()
    name = frame.function.rpartition(".")[2]
    here = module.line_text(line)
    function = scope_of(statement).function() if statement is not None else None
    is_there = statement is not None and (not quoted or quoted == here or here.startswith(quoted) or quoted in here)
    is_function = (
        name in ("", "<module>")
        or (function is not None and name in (function.name, "<lambda>"))
        or name.startswith("<")
    )
    if is_there and is_function:
        return statement, ""
    for unit in module.facts.functions[1:]:
        if unit.qualname.rpartition(".")[2] != name or not quoted:
            continue
        for number in range(unit.first, unit.last + 1):
            if module.line_text(number) == quoted:
                return statement_at(module, number), f"line {line} of the traceback is line {number} here: another release or a changed file"  # fmt: skip
    return statement, f"line {line} is {here[:80]!r} here, not {quoted[:80]!r}: another release or a changed file"


def value_scope(scope: Scope, name: str) -> Scope | None:
    """The class that a name of a scope is, if it is one."""
    for binding in scope.named(name):
        if binding.kind == "class":
            return inner_scope(binding.node)
    return None

"""Whether anything but the replayed code changes a value that modules share: then it holds what the replay found in it.

Where a name is only read is told from its syntax tree. What is not surely a read counts as a write: this can miss that a value
is left alone, and never that it is changed by code that spells its name.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from gpuwhy.source.replay.outcome import SharedValue
from gpuwhy.source.replay.values import Instance

_IMMUTABLE = (type(None), bool, int, float, complex, str, bytes, PurePosixPath)
_MAKERS = frozenset({"__init__", "__post_init__", "__new__"})
"""What runs when an object is made: that was replayed."""
_READERS = frozenset(
    {"len", "any", "all", "sorted", "set", "frozenset", "min", "max", "sum", "list", "tuple", "dict", "str", "repr", "bool", "enumerate", "print"}
)  # fmt: skip
_READING = frozenset(
    {"union", "intersection", "difference", "symmetric_difference", "copy", "issubset", "issuperset", "isdisjoint", "get", "keys", "values", "items", "index", "count"}
)  # fmt: skip
_SETTERS = frozenset({"setattr", "delattr", "__setattr__", "__delattr__"})
_DICT_WRITERS = frozenset({"update", "pop", "popitem", "clear", "setdefault"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

Parents = dict[ast.AST, ast.AST]


def shared_value(module: str, path: str, name: str, value: Any) -> SharedValue | None:
    """What would have to be left alone for the value to stay as it is; None where that cannot be told by names."""
    if not isinstance(value, Instance):
        return SharedValue(module, path, name, containers=(name,)) if _is_flat(value) else None
    if value.payload is not None or any(base.native is not None for base in value.cls.mro):
        return None
    if not all(_is_immutable(each) or _is_flat(each) for each in value.names.values()):
        return None
    containers = tuple(each for each, held in value.names.items() if not _is_immutable(held))
    owner = value.cls.module.source
    return SharedValue(module, path, name, owner.shown, value.cls.name, tuple(value.names), containers)


def _is_immutable(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_immutable, value))
    return isinstance(value, _IMMUTABLE)


def _is_flat(value: Any) -> bool:
    """A container whose elements cannot be changed in place."""
    if isinstance(value, dict):
        return all(_is_immutable(each) for pair in value.items() for each in pair)
    return isinstance(value, (list, set)) and all(map(_is_immutable, value))


def written_by(shared: SharedValue, texts: Mapping[str, str]) -> str:
    """The first place of the files (by path) that may change the value, or why that is not known; empty when none does."""
    for path, text in texts.items():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return f"{path}, which could not be parsed"
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if _may_write(node, shared, path, parents):
                return f"{path}:{getattr(node, 'lineno', 0)}"
    return ""


def _may_write(node: ast.AST, shared: SharedValue, path: str, parents: Parents) -> bool:
    names = {shared.name, *shared.attributes}
    if isinstance(node, ast.Constant):
        return node.value in names if isinstance(node.value, str) and _sets_by_text(node, parents) else False
    if isinstance(node, ast.Call):
        is_setter = _last_name(node.func) in _SETTERS
        return is_setter and not any(isinstance(each, ast.Constant) for each in node.args[:2])
    if isinstance(node, ast.alias):
        return node.name == shared.name in shared.containers and node.asname not in (None, node.name)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    if name == shared.name:
        return _changes_name(node, shared, path, parents)
    if name == "__dict__":
        held = parents.get(node)
        return isinstance(held, ast.Attribute) and held.attr in _DICT_WRITERS
    if isinstance(node, ast.Attribute) and name in shared.attributes:
        return not _is_in_maker(node, shared, path, parents) and _changes(node, name in shared.containers, parents)
    return False


def _changes_name(node: ast.AST, shared: SharedValue, path: str, parents: Parents) -> bool:
    """The statements of its own module that make it were replayed."""
    is_own = path == shared.path and isinstance(node, ast.Name) and _function(node, parents) is None
    return not is_own and _changes(node, shared.name in shared.containers, parents)


def _changes(node: ast.AST, is_container: bool, parents: Parents) -> bool:
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        return True
    return is_container and not _is_only_read(node, parents, may_name=True)


def _sets_by_text(node: ast.Constant, parents: Parents) -> bool:
    above = parents.get(node)
    if isinstance(above, ast.Call):
        return _last_name(above.func) in _SETTERS
    return isinstance(above, ast.Subscript) and not isinstance(above.ctx, ast.Load)


def _is_in_maker(node: ast.AST, shared: SharedValue, path: str, parents: Parents) -> bool:
    function = _function(node, parents)
    above = parents.get(function) if function is not None else None
    return (
        path == shared.owner_path
        and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and function.name in _MAKERS
        and isinstance(above, ast.ClassDef)
        and above.name == shared.owner
    )


def _function(node: ast.AST, parents: Parents) -> ast.AST | None:
    above = parents.get(node)
    while above is not None and not isinstance(above, _FUNCTIONS):
        above = parents.get(above)
    return above


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_only_read(node: ast.AST, parents: Parents, *, may_name: bool) -> bool:
    """Whether a container is looked at here, and neither changed nor handed on. ``may_name``: a local name for it is
    followed through its function."""
    above = parents.get(node)
    if isinstance(above, (ast.For, ast.AsyncFor, ast.comprehension)):
        return above.iter is node
    if isinstance(above, (ast.Compare, ast.BinOp, ast.UnaryOp, ast.FormattedValue, ast.Expr)):
        return True
    if isinstance(above, (ast.If, ast.While, ast.Assert)):
        return above.test is node
    if isinstance(above, ast.Subscript):
        return above.value is node and isinstance(above.ctx, ast.Load)
    if isinstance(above, ast.Attribute):
        call = parents.get(above)
        return above.attr in _READING and isinstance(call, ast.Call) and call.func is above
    if isinstance(above, ast.Call):
        return isinstance(above.func, ast.Name) and above.func.id in _READERS
    if isinstance(above, (ast.BoolOp, ast.IfExp)):
        return (isinstance(above, ast.IfExp) and above.test is node) or _is_only_read(above, parents, may_name=may_name)
    if isinstance(above, ast.Starred):
        return isinstance(parents.get(above), (ast.List, ast.Tuple, ast.Set))
    if isinstance(above, ast.Assign) and may_name:
        return _is_name_only_read(above, parents)
    return False


def _is_name_only_read(assigned: ast.Assign, parents: Parents) -> bool:
    function = _function(assigned, parents)
    (target, *others) = assigned.targets
    if function is None or others or not isinstance(target, ast.Name):
        return False
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and target.id in node.names:
            return False
        if isinstance(node, ast.Name) and node.id == target.id:
            above = parents.get(node)
            if isinstance(node.ctx, ast.Store) and not isinstance(above, ast.AugAssign):
                continue
            if not isinstance(node.ctx, ast.Load) or not _is_only_read(node, parents, may_name=False):
                return False
    return True

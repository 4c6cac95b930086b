"""Which names a function binds: Python decides that before it runs a line of it."""

from __future__ import annotations

import ast
from typing import TypeAlias

import msgspec

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Scope(msgspec.Struct, frozen=True):
    """``bound`` are its own names; ``of_module`` and ``of_outer`` those that it declares ``global`` and ``nonlocal``."""

    bound: frozenset[str] = frozenset()
    of_module: frozenset[str] = frozenset()
    of_outer: frozenset[str] = frozenset()
    is_generator: bool = False


def scope_of(node: FunctionNode) -> Scope:
    """The names of one function, without those of the functions and classes inside it."""
    arguments = node.args
    bound = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    bound.update(each.arg for each in (arguments.vararg, arguments.kwarg) if each)
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    return _scope(body, bound)


def body_scope(body: list[ast.stmt]) -> Scope:
    """The names that statements bind where they stand (of a class or module)."""
    return _scope(list(body), set())


def bound_by(statement: ast.stmt) -> frozenset[str]:
    """Names that a statement binds, with those it declares global."""
    scope = _scope([statement], set())
    return scope.bound | scope.of_module


def passed_on_by(statement: ast.stmt) -> frozenset[str]:
    """Names whose value a statement may change in place: it calls their methods or passes them on."""
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            names.add(_root(node.func) if isinstance(node.func, ast.Attribute) else "")
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                names.add(_root(argument))
    return frozenset(names - {""})


def stored_into_by(statement: ast.stmt) -> frozenset[str]:
    """Names into whose value a statement stores: ``x.a = …``, ``x[k] = …``, ``setattr(x, …)``."""
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            names.add(_root(node))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            names.add(_root(node.args[0]))
    return frozenset(names - {""})


def binds_unseen(statement: ast.stmt) -> bool:
    """Whether a statement may bind names of its module that it does not spell."""
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.Name) and node.id in ("globals", "vars", "locals", "exec", "eval", "setattr"):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("modules", "__dict__"):
            return True
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _scope(pending: list[ast.AST], bound: set[str]) -> Scope:
    of_module: set[str] = set()
    of_outer: set[str] = set()
    is_generator = False
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            bound.add(node.name)
            pending += [*node.decorator_list, *node.args.defaults, *(each for each in node.args.kw_defaults if each)]
            continue
        if isinstance(node, ast.ClassDef):
            bound.add(node.name)
            pending += [*node.decorator_list, *node.bases]
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.comprehension):
            # its target lives in the comprehension; an assignment expression in it does not
            pending += [node.iter, *node.ifs]
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                bound.add(node.id)
        elif isinstance(node, ast.Global):
            of_module.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            of_outer.update(node.names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update((alias.asname or alias.name.partition(".")[0]) for alias in node.names)
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
        ):
            bound.add(node.name)
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            is_generator = True
        pending += ast.iter_child_nodes(node)
    return Scope(frozenset(bound - of_module - of_outer), frozenset(of_module), frozenset(of_outer), is_generator)

"""What if a value is empty, None, False, True: a three-valued run of one function, in which unknown tests go both ways.

Only what is certain is told: with this value the line is always reached, or never.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from gpuwhy.source.answers import WhatIf
from gpuwhy.source.conditions import path_conditions
from gpuwhy.source.resolving import BUILTINS, Resolver
from gpuwhy.source.scopes import COMPREHENSIONS, FUNCTIONS, Scope, children, module_of, scope_of, walk

_MAX_STEPS = 6000
_MAX_STATES = 48
_MAX_SOURCES = 12


class _Unknown:
    def __repr__(self) -> str:
        return "?"


UNKNOWN = _Unknown()
_EMPTY: frozenset[Any] = frozenset()
_GUESSES: tuple[tuple[str, Any], ...] = (("empty", _EMPTY), ("None", None), ("False", False), ("True", True))
_COMPARING: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda one, other: one == other,
    ast.NotEq: lambda one, other: one != other,
    ast.Lt: lambda one, other: one < other,
    ast.LtE: lambda one, other: one <= other,
    ast.Gt: lambda one, other: one > other,
    ast.GtE: lambda one, other: one >= other,
    ast.Is: lambda one, other: one is other,
    ast.IsNot: lambda one, other: one is not other,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}
_PURE: dict[str, Callable[..., Any]] = {
    "int": int, "len": len, "bool": bool, "str": str, "any": any, "all": all, "set": frozenset, "list": tuple,
    "tuple": tuple, "sorted": sorted, "min": min, "max": max, "sum": sum,
}  # fmt: skip
_TEXT_METHODS = frozenset({"lower", "upper", "strip", "startswith", "endswith", "isdigit", "split", "lstrip", "rstrip"})


class _UndecidedError(Exception):
    """The run would take too long."""


def what_ifs(resolver: Resolver, node: ast.stmt) -> tuple[WhatIf, ...]:
    """For each source of the conditions of a statement, the values that decide whether it is reached."""
    function = scope_of(node).function()
    if function.kind != "function" or not isinstance(function.node, FUNCTIONS):
        return ()
    found: list[WhatIf] = []
    for source in list(sources(resolver, node))[:_MAX_SOURCES]:
        outcomes: dict[str, list[str]] = {}
        for label, value in _GUESSES:
            outcomes.setdefault(outcome(function, node, {source: value}), []).append(label)
        found += [WhatIf(source, tuple(outcomes[kind]), kind) for kind in ("always", "never") if kind in outcomes]
    return tuple(found)


def sources(resolver: Resolver, node: ast.AST) -> dict[str, None]:
    """The texts of what decides a line and is not made in its function: parameters, globals, attributes, calls."""
    pending = [test for condition in path_conditions(node) for test in condition.tests]
    seen: set[int] = set()
    found: dict[str, None] = {}
    while pending and len(seen) < 400:
        each = pending.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, ast.Name):
            pending += _of_name(resolver, each, found)
        elif isinstance(each, ast.Attribute) or (isinstance(each, ast.Call) and not _is_transparent(each)):
            found[module_of(each).text(each)] = None
        elif isinstance(each, ast.Call):
            receiver = [each.func.value] if isinstance(each.func, ast.Attribute) else []
            pending += [*receiver, *each.args]
        else:
            for child in children(each):
                pending += [child.iter, *child.ifs] if isinstance(child, ast.comprehension) else [child] if isinstance(child, ast.expr) else []  # fmt: skip
    return found


def _of_name(resolver: Resolver, node: ast.Name, found: dict[str, None]) -> list[ast.expr]:
    bindings, scope = resolver.lookup(node.id, scope_of(node))
    if scope is None or scope.kind not in ("function", "comprehension"):
        if node.id not in BUILTINS or scope is not None:
            found[node.id] = None
        return []
    pending: list[ast.expr] = []
    for binding in resolver.at_use(node, bindings, scope):
        if binding.kind == "param":
            found[node.id] = None
            continue
        pending += [binding.value] if binding.value is not None else []
        pending += [test for condition in path_conditions(binding.node) for test in condition.tests]
    return pending


def _is_transparent(node: ast.Call) -> bool:
    if isinstance(node.func, ast.Name):
        return node.func.id in _PURE
    return isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS


def outcome(function: Scope, node: ast.stmt, given: dict[str, Any]) -> str:
    """``always``, ``never`` or ``maybe``: whether a statement is reached with values for some expressions, by text."""
    parameters = [*function.node.args.args, *function.node.args.kwonlyargs]  # type: ignore[attr-defined]
    start = {each.arg: given.get(each.arg, UNKNOWN) for each in parameters}
    try:
        ends = _Run(given, node).block(function.body, start)
    except (_UndecidedError, RecursionError):
        return "maybe"
    if any(kind == "error" for kind, _ in ends):
        # iterating None and the like: another exception
        return "maybe"
    reached = [kind == "reached" for kind, _ in ends]
    return "always" if all(reached) and reached else "maybe" if any(reached) else "never"


class _Run:
    """Runs statements over states; each gives ends: fall, reached, raise, return, break, continue, error."""

    def __init__(self, given: dict[str, Any], target: ast.stmt) -> None:
        self.given = given
        self.target = target
        self.steps = 0

    def block(self, body: Iterable[ast.stmt], start: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        states, ends = [start], []
        for statement in body:
            following: list[dict[str, Any]] = []
            for state in states:
                for kind, after in self.statement(statement, state):
                    if kind == "fall":
                        following.append(after)
                    else:
                        ends.append((kind, after))
            self.steps += len(states)
            if self.steps > _MAX_STEPS or len(following) > _MAX_STATES:
                raise _UndecidedError
            states = following
            if not states:
                break
        return [*ends, *(("fall", state) for state in states)]

    def statement(self, node: ast.stmt, state: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        if node is self.target:
            return [("reached", state)]
        if isinstance(node, ast.Raise):
            return [("raise", state)]
        if isinstance(node, ast.Return):
            return [("return", state)]
        if isinstance(node, (ast.Break, ast.Continue)):
            return [(type(node).__name__.lower(), state)]
        if isinstance(node, ast.If):
            return self._if(node, state)
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self._for(node, state)
        if isinstance(node, ast.While):
            return self._while(node, state)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            self._forget(node, state, bodies=False)
            return self.block(node.body, state)
        if isinstance(node, ast.Try):
            return self._try(node, state)
        if isinstance(node, ast.Match):
            self._forget(node, state)
            branches = [self.block(case.body, dict(state)) for case in node.cases]
            return [*(end for branch in branches for end in branch), ("fall", state)]
        self._assign(node, state)
        return [("fall", state)]

    def _assign(self, node: ast.stmt, state: dict[str, Any]) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value, state)
            for target in node.targets:
                self._bind(target, value, state)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, self.value(node.value, state), state)
        else:
            self._forget(node, state)

    def _forget(self, node: ast.AST, state: dict[str, Any], bodies: bool = True) -> None:
        """Names that a statement may bind in a way that is not followed."""
        nodes = walk(node) if bodies else (each for item in getattr(node, "items", []) for each in walk(item))
        for each in nodes:
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                state[each.id] = UNKNOWN
            elif isinstance(each, (ast.MatchAs, ast.MatchStar)) and each.name:
                state[each.name] = UNKNOWN

    def _if(self, node: ast.If, state: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        test = self.value(node.test, state)
        taken = self.block(node.body, dict(state)) if test is UNKNOWN or test else []
        return taken + (self.block(node.orelse, dict(state)) if test is UNKNOWN or not test else [])

    def _for(self, node: ast.For | ast.AsyncFor, state: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        over = self.value(node.iter, state)
        if over is not UNKNOWN and not hasattr(over, "__iter__"):
            return [("error", state)]
        ends: list[tuple[str, dict[str, Any]]] = []
        states, after = [dict(state)], [dict(state)] if over is UNKNOWN else []
        if over is UNKNOWN:
            # any number of passes: what an earlier one set is not known in a later one
            for statement in node.body:
                self._forget(statement, states[0])
        for value in [UNKNOWN] if over is UNKNOWN else over:
            following: list[dict[str, Any]] = []
            for each in states:
                self._bind(node.target, value, each)
                for kind, end in self.block(node.body, each):
                    if kind in ("fall", "continue"):
                        following.append(end)
                    elif kind == "break":
                        after.append(end)
                    else:
                        ends.append((kind, end))
            states = following[:_MAX_STATES]
        finished = [end for each in states for end in self.block(node.orelse, each)]
        return [*ends, *finished, *(("fall", each) for each in after)]

    def _while(self, node: ast.While, state: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        test = self.value(node.test, state)
        if test is not UNKNOWN and not test:
            return self.block(node.orelse, state)
        self._forget(node, state)
        ends = self.block(node.body, dict(state))
        left = [(kind, end) for kind, end in ends if kind not in ("fall", "continue", "break")]
        return [*left, ("fall", state), *self.block(node.orelse, dict(state))]

    def _try(self, node: ast.Try, state: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        ends = self.block([*node.body, *node.orelse], dict(state))
        before = dict(state)
        for statement in node.body:
            self._forget(statement, before)
        caught = [end for handler in node.handlers for end in self.block(handler.body, dict(before))]
        kept = [(kind, end) for kind, end in ends if not (kind == "raise" and node.handlers)]
        finished: list[tuple[str, dict[str, Any]]] = []
        for kind, end in [*kept, *caught]:
            for last, after in self.block(node.finalbody, dict(end)):
                finished.append((kind, after) if last == "fall" else (last, after))
        return finished

    def _bind(self, target: ast.expr, value: Any, state: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            state[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            known = value is not UNKNOWN and isinstance(value, (tuple, list)) and len(value) == len(target.elts)
            for each, part in zip(target.elts, value if known else [UNKNOWN] * len(target.elts), strict=True):
                self._bind(each, part, state)

    def value(self, node: ast.expr, state: dict[str, Any]) -> Any:
        """The value of an expression, UNKNOWN when it is not certain."""
        text = module_of(node).text(node) if "_scope" in node.__dict__ else ""
        if text in self.given and not (isinstance(node, ast.Name) and node.id in state):
            return self.given[text]
        try:
            return self._evaluated(node, state)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError):
            return UNKNOWN

    def _evaluated(self, node: ast.expr, state: dict[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return state.get(node.id, UNKNOWN)
        if isinstance(node, ast.NamedExpr):
            found = self.value(node.value, state)
            state[node.target.id] = found
            return found
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = self.value(node.operand, state)
            return UNKNOWN if found is UNKNOWN else not found
        if isinstance(node, ast.BoolOp):
            return self._all_or_any(node, state)
        if isinstance(node, ast.Compare):
            return self._compared(node, state)
        if isinstance(node, ast.IfExp):
            test = self.value(node.test, state)
            return UNKNOWN if test is UNKNOWN else self.value(node.body if test else node.orelse, state)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            parts = [self.value(each, state) for each in node.elts]
            return UNKNOWN if any(part is UNKNOWN for part in parts) else frozenset(parts) if isinstance(node, ast.Set) else tuple(parts)  # fmt: skip
        if isinstance(node, ast.Call):
            return self._called(node, state)
        if isinstance(node, COMPREHENSIONS):
            return self._comprehended(node, state)
        return UNKNOWN

    def _all_or_any(self, node: ast.BoolOp, state: dict[str, Any]) -> Any:
        is_and, is_unknown, found = isinstance(node.op, ast.And), False, UNKNOWN
        for each in node.values:
            found = self.value(each, state)
            if found is UNKNOWN:
                is_unknown = True
            elif bool(found) is not is_and:
                # false and anything; true or anything: as a test it is decided, whatever the unknown ones are
                return found if not is_unknown or is_and else True
        return UNKNOWN if is_unknown else found

    def _compared(self, node: ast.Compare, state: dict[str, Any]) -> Any:
        left = self.value(node.left, state)
        for operator, side in zip(node.ops, node.comparators, strict=True):
            right = self.value(side, state)
            if left is UNKNOWN or right is UNKNOWN or _is_open(operator, left, right):
                return UNKNOWN
            if not _COMPARING[type(operator)](left, right):
                return False
            left = right
        return True

    def _called(self, node: ast.Call, state: dict[str, Any]) -> Any:
        given = [self.value(each, state) for each in node.args]
        if any(each is UNKNOWN for each in given) or node.keywords:
            return UNKNOWN
        if isinstance(node.func, ast.Name) and node.func.id in _PURE and node.func.id not in state:
            return _PURE[node.func.id](*given)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS:
            receiver = self.value(node.func.value, state)
            return getattr(receiver, node.func.attr)(*given) if isinstance(receiver, str) else UNKNOWN
        return UNKNOWN

    def _comprehended(self, node: ast.expr, state: dict[str, Any]) -> Any:
        generators: list[ast.comprehension] = getattr(node, "generators", [])
        over = self.value(generators[0].iter, state)
        # only that nothing comes of nothing
        return (frozenset() if isinstance(node, ast.SetComp) else ()) if over is not UNKNOWN and not over else UNKNOWN


def _is_open(operator: ast.cmpop, left: Any, right: Any) -> bool:
    """Whether "empty" leaves a comparison open: it stands for an empty text, list, set and mapping alike."""
    if isinstance(operator, (ast.Is, ast.IsNot)) or (isinstance(operator, (ast.In, ast.NotIn)) and left != _EMPTY):
        return False
    if left != _EMPTY and right != _EMPTY:
        return False
    other = right if left == _EMPTY else left
    return not isinstance(operator, (ast.Eq, ast.NotEq)) or (
        other is not None and not other and not isinstance(other, (bool, int))
    )

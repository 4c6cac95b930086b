"""Exceptions as flow: which raises can leave a block, by which calls, and which handler keeps them from being seen."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from gpuwhy.source.answers import LogText, Spot
from gpuwhy.source.messages import Template, log_level, log_text, template
from gpuwhy.source.resolving import Resolver, last_name
from gpuwhy.source.scopes import FUNCTIONS, Scope, children, module_of, scope_of, walk

DEPTH = 5
"""Calls between a try and a raise."""
_MAX_RAISES = 400
_QUIET = (
    "builtins",
    "os",
    "re",
    "logging",
    "functools",
    "typing",
    "sys",
    "math",
    "itertools",
    "collections",
    "dataclasses",
)


class Raise:
    """A raise that can leave a block. ``types`` are its class and the bases that are known, nearest first; ``via`` the
    functions and calls from the block to it. ``is_implied``: not a raise statement but a call that may fail."""

    __slots__ = ("is_implied", "message", "node", "types", "via")

    def __init__(
        self,
        types: tuple[str, ...],
        message: Template,
        node: ast.AST,
        via: tuple[tuple[Scope, ast.Call], ...] = (),
        is_implied: bool = False,
    ) -> None:
        self.types = types
        self.message = message
        self.node = node
        self.via = via
        self.is_implied = is_implied


class Exceptions:
    """Closures of raises, remembered by function."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._of_function: dict[tuple[int, int], list[Raise]] = {}
        self._named: dict[int, dict[str, ast.expr]] = {}

    def leaving(self, body: Iterable[ast.stmt], depth: int = DEPTH) -> list[Raise]:
        """The raises that can leave statements, each once, the nearest first."""
        found: list[Raise] = []
        for statement in body:
            self._statement(statement, found, depth)
        unique: dict[tuple[int, bool], Raise] = {}
        for each in sorted(found, key=lambda one: len(one.via)):
            unique.setdefault((id(each.node), each.is_implied), each)
        return list(unique.values())[:_MAX_RAISES]

    def leaving_expression(self, node: ast.AST, depth: int = DEPTH) -> list[Raise]:
        found: list[Raise] = []
        self._expression(node, found, depth)
        return found

    def caught_by(self, caught: tuple[str, ...], body: Iterable[ast.stmt]) -> list[Raise]:
        """The raises of a block that a handler of these types catches."""
        return [
            each
            for each in self.leaving(body)
            # what another package raises may be of any type
            if (each.is_implied and each.types == ("Exception",))
            or any(is_kind_of(each.types, name) for name in caught)
        ]

    def message(self, node: ast.expr | None, is_log: bool = False) -> Template:
        """The pattern of a message, with strings that local names stand for."""
        if node is None:
            return Template()
        function = scope_of(node).function()
        if id(function) not in self._named:
            body = function.body if function.kind == "function" else []
            self._named[id(function)] = {
                target.id: each.value
                for each in walk(*body, into_functions=False)
                if isinstance(each, ast.Assign)
                for target in each.targets
                if isinstance(target, ast.Name)
            }
        return template(node, self._named[id(function)], is_log)

    def made(self, node: ast.Raise) -> ast.expr:
        """The expression that makes what is raised, also where a name of the function stands for it."""
        raised = node.exc
        if not isinstance(raised, ast.Name):
            return raised if raised is not None else ast.Constant(None)
        bindings, scope = self._resolver.lookup(raised.id, scope_of(raised))
        given = [binding.value for binding in self._resolver.at_use(raised, bindings, scope)] if scope else []
        return given[0] if len(given) == 1 and isinstance(given[0], ast.Call) else raised

    def log_calls(self, handler: ast.ExceptHandler) -> Iterator[tuple[ast.Call, LogText]]:
        """What a handler prints."""
        for node in walk(*handler.body, into_functions=False):
            level = log_level(node) if isinstance(node, ast.Call) else None
            if level is not None and isinstance(node, ast.Call):
                message = self.message(log_text(node), is_log=len(node.args) > 1 and level not in ("print", "warnings.warn"))  # fmt: skip
                yield node, LogText(level, message, spot_of(node))

    def _function(self, scope: Scope, depth: int) -> list[Raise]:
        key = (id(scope), depth)
        if key not in self._of_function:
            self._of_function[key] = []
            self._of_function[key] = self.leaving(scope.body, depth)
        return self._of_function[key]

    def _statement(self, node: ast.stmt, found: list[Raise], depth: int) -> None:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return
        if isinstance(node, ast.Try):
            self._try(node, found, depth)
            return
        caught = suppressed(node)
        if caught:
            inside: list[Raise] = []
            for statement in getattr(node, "body", []):
                self._statement(statement, inside, depth)
            found += [each for each in inside if not any(is_kind_of(each.types, name) for name in caught)]
            return
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = self.made(node)
            call = raised if isinstance(raised, ast.Call) else None
            message = self.message(call.args[0]) if call and call.args else Template()
            found.append(Raise(self._types(call.func if call else raised), message, node))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            text = Template((module_of(node).text(node, 120),))
            found.append(Raise(("ImportError", "Exception"), text, node, is_implied=True))
        elif isinstance(node, ast.Assert):
            text = self.message(node.msg) if node.msg else Template((module_of(node).text(node, 120),))
            found.append(Raise(("AssertionError", "Exception"), text, node))
        for child in children(node):
            if isinstance(child, ast.stmt):
                self._statement(child, found, depth)
            elif isinstance(child, ast.match_case):
                for statement in child.body:
                    self._statement(statement, found, depth)
            elif not isinstance(child, ast.excepthandler):
                self._expression(child, found, depth)

    def _try(self, node: ast.Try, found: list[Raise], depth: int) -> None:
        swallowing = [handler for handler in node.handlers if not may_raise(handler)]
        caught = [name for handler in swallowing for name in handler_types(handler)]
        inside: list[Raise] = []
        for statement in node.body:
            self._statement(statement, inside, depth)
        found += [each for each in inside if not any(is_kind_of(each.types, name) for name in caught)]
        for statement in [*(each for handler in node.handlers for each in handler.body), *node.orelse, *node.finalbody]:
            self._statement(statement, found, depth)

    def _lookup(self, node: ast.AST, found: list[Raise]) -> None:
        """A key that may not be there, and an attribute of what may be None."""
        types: tuple[str, ...] = ()
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice):
            types = ("KeyError", "IndexError", "LookupError", "TypeError", "Exception")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
            types = ("AttributeError", "Exception") if self._may_be_none(node.value) else ()
        if types:
            found.append(Raise(types, Template((module_of(node).text(node, 90),)), node, is_implied=True))

    def _may_be_none(self, node: ast.Name) -> bool:
        """Whether a local name has what ``getattr(x, name, None)`` or ``x.get(name)`` gave."""
        bindings, scope = self._resolver.lookup(node.id, scope_of(node))
        for binding in self._resolver.at_use(node, bindings, scope) if scope and scope.kind == "function" else ():
            value = binding.value
            if isinstance(value, ast.Call) and binding.kind == "assign":
                default = (
                    value.args[-1] if last_name(value.func) in ("getattr", "get") and len(value.args) > 1 else None
                )
                is_get = isinstance(value.func, ast.Attribute) and value.func.attr == "get" and len(value.args) == 1
                if is_get or (isinstance(default, ast.Constant) and default.value is None):
                    return True
        return False

    def _expression(self, node: ast.AST, found: list[Raise], depth: int) -> None:
        for call in walk(node, into_functions=False):
            if "_scope" not in call.__dict__:
                continue
            if depth == DEPTH:
                self._lookup(call, found)
            if not isinstance(call, ast.Call):
                continue
            values = self._resolver.infer(call.func)
            if not values and depth == DEPTH and isinstance(call.func, ast.Name):
                # a function that came as a value: what it raises is not known
                text = Template((module_of(call).text(call, 90),))
                found.append(Raise(("Exception",), text, call, is_implied=True))
            for value in values:
                scope = value.scope
                if value.kind == "class" and scope:
                    scope = self._resolver.method(scope, "__init__")
                if value.kind in ("function", "bound", "class") and scope is not None:
                    if depth > 0 and len(found) < _MAX_RAISES:
                        step = (scope, call)
                        found += [
                            Raise(each.types, each.message, each.node, (step, *each.via), each.is_implied)
                            for each in self._function(scope, depth - 1)
                        ]
                elif value.kind == "external":
                    implied = _implied(value.dotted)
                    if implied:
                        text = Template((module_of(call).text(call, 90),))
                        found.append(Raise(implied, text, call, is_implied=True))

    def _types(self, node: ast.expr) -> tuple[str, ...]:
        """The names of an exception class and of its bases."""
        found = [last_name(node)]
        for value in self._resolver.infer(node):
            if value.kind in ("class", "instance") and value.scope:
                for each in self._resolver.mro(value.scope):
                    found.append(each.name)
                    found += [last_name(base) for base in getattr(each.node, "bases", [])]
        return tuple(dict.fromkeys(found))


def handler_types(handler: ast.ExceptHandler) -> tuple[str, ...]:
    """The last names of what a handler catches; ``*`` for a bare except."""
    if handler.type is None:
        return ("*",)
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return tuple(last_name(each) for each in types)


def suppressed(node: ast.AST) -> tuple[str, ...]:
    """The exceptions that a ``with contextlib.suppress(...)`` takes away."""
    for item in getattr(node, "items", []) if isinstance(node, (ast.With, ast.AsyncWith)) else ():
        call = item.context_expr
        if isinstance(call, ast.Call) and last_name(call) == "suppress":
            return tuple(last_name(each) for each in call.args)
    return ()


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Whether a handler never goes on to what follows it without raising."""
    return _always_raises(handler.body)


def _always_raises(body: list[ast.stmt]) -> bool:
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _always_raises(last.body) and _always_raises(last.orelse)
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return _always_raises(last.body)
    return isinstance(last, ast.Raise)


def may_raise(handler: ast.ExceptHandler) -> bool:
    """Whether an exception that a handler catches may come out of it."""
    return any(isinstance(node, ast.Raise) for node in walk(*handler.body, into_functions=False))


def is_kind_of(types: tuple[str, ...], caught: str) -> bool:
    """Whether an exception of these types is caught by a name; unknown types are by Exception."""
    if caught in ("BaseException", "*") or caught in types:
        return True
    given, wanted = [getattr(builtins, name, None) for name in types], getattr(builtins, caught, None)
    if any(isinstance(each, type) and isinstance(wanted, type) and issubclass(each, wanted) for each in given):
        return True
    return caught == "Exception" and not any(
        name in ("SystemExit", "KeyboardInterrupt", "GeneratorExit") for name in types
    )


def _implied(dotted: str) -> tuple[str, ...]:
    """What a call into another package is known to raise; nothing for what seldom does."""
    if "()" in dotted:
        return ()
    if dotted.startswith("subprocess."):
        checks = "check_" in dotted or dotted.endswith(".run")
        failing = ("CalledProcessError", "SubprocessError") if checks else ()
        return (*failing, "FileNotFoundError", "PermissionError", "OSError", "Exception")
    if dotted in ("builtins.int", "builtins.float"):
        return ("ValueError", "Exception")
    if dotted in ("importlib.import_module", "builtins.__import__"):
        return ("ImportError", "ModuleNotFoundError", "Exception")
    if dotted == "builtins.open":
        return ("FileNotFoundError", "PermissionError", "OSError", "Exception")
    return () if dotted.split(".")[0] in _QUIET else ("Exception",)


def spot_of(node: ast.AST, with_code: bool = True) -> Spot:
    """Where a node stands."""
    module = module_of(node)
    line = getattr(node, "lineno", 0)
    return Spot(
        module.path, line, scope_of(node).function().qualname, module.line_text(line)[:200] if with_code else ""
    )

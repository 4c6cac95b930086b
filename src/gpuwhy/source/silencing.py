"""Log lines that are not printed although they are written: a logger whose level was raised, here or by another package.

That a warning is not in the log says nothing when this is so.
"""

from __future__ import annotations

import ast

from gpuwhy.source.answers import Spot
from gpuwhy.source.exceptions import spot_of
from gpuwhy.source.resolving import Resolver, last_name
from gpuwhy.source.scopes import Binding, module_of, scope_of

_ROOT = "root"
_MAX_BINDINGS = 40
"""Names that stand for one another; real ones are two or three."""
_NUMBERS = {
    "debug": 10,
    "info": 20,
    "warn": 30,
    "warning": 30,
    "error": 40,
    "exception": 40,
    "critical": 50,
    "fatal": 50,
}


class Silencing:
    """Where the level of loggers is raised by a constant."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._raised: list[tuple[str, int, Spot]] | None = None

    def of(self, call: ast.Call) -> tuple[Spot, ...]:
        """Where the level of the logger of a log call, or of one above it, is set so that the call prints nothing."""
        level = _NUMBERS.get(last_name(call.func).removesuffix("_once"), 100)
        name = self.logger(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if not name:
            return ()
        found = [spot for other, above, spot in self.raised if above > level and _is_above(other, name)]
        return tuple(found[:6])

    @property
    def raised(self) -> list[tuple[str, int, Spot]]:
        """Names of loggers, and the level that each is set to, where."""
        if self._raised is None:
            self._raised = []
            for unit in self._resolver.trees.units("setLevel", calls="setLevel"):
                for call in unit.calls:
                    if last_name(call.func) != "setLevel" or not call.args or not isinstance(call.func, ast.Attribute):
                        continue
                    level, name = _level(call.args[0]), self.logger(call.func.value)
                    if level and name:
                        self._raised.append((name, level, spot_of(call)))
        return self._raised

    def logger(self, node: ast.expr) -> str:
        """The name of a logger: the constant it was made with; empty when that is not known."""
        return self._logger(node, set())

    def _logger(self, node: ast.expr, seen: set[int]) -> str:
        if isinstance(node, ast.Call):
            if not node.args:
                return _ROOT if last_name(node.func) == "getLogger" else ""
            given = node.args[0]
            if isinstance(given, ast.Name) and given.id == "__name__":
                return module_of(node).name
            names = self._resolver.strings(given)
            return next(iter(names)) if names and len(names) == 1 else ""
        if isinstance(node, ast.Name):
            return self._bound(self._resolver.lookup(node.id, scope_of(node))[0], seen)
        if isinstance(node, ast.Attribute):
            modules = [value.module for value in self._resolver.infer(node.value) if value.kind == "module"]
            return self._bound([each for module in modules if module for each in module.scope.named(node.attr)], seen)
        return ""

    def _bound(self, bindings: list[Binding], seen: set[int]) -> str:
        for binding in bindings:
            if id(binding) in seen or len(seen) > _MAX_BINDINGS:
                continue
            seen.add(id(binding))
            name = ""
            if binding.kind == "import" and binding.source and binding.source[1]:
                module = self._resolver.trees.module(binding.source[0])
                name = self._bound(module.scope.named(binding.source[1]), seen) if module else ""
            elif binding.value is not None:
                name = self._logger(binding.value, seen)
            if name:
                return name
        return ""


def _level(node: ast.expr) -> int:
    text = str(node.value) if isinstance(node, ast.Constant) else last_name(node)
    return _NUMBERS.get(text.lower(), int(text) if text.isdigit() and len(text) < 4 else 0)


def _is_above(one: str, other: str) -> bool:
    """Whether a logger is another one, or hands its level down to it."""
    return one in (_ROOT, other) or other.startswith(f"{one}.")

"""Attributes that no class declares: objects that are filled, or answer, by computed names.

``get_exec().kernel.backend`` of an object whose attributes are copied from the fields of configuration classes, each of
which declares the path it is copied to; ``platform().has_x`` of an object that looks the name up in a table of functions.
Only what the constants of the source say is linked; a name alone is not enough.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gpuwhy.source.resolving import Resolver, last_name, returns
from gpuwhy.source.scopes import Binding, Scope, module_of, parent, scope_of, walk

_MAX_PARTS = 6
_MAX_HOPS = 4
_COMPUTED = ("setattr", "__setattr__")


class Declared:
    """The class that declares the path of an object, and where it says so."""

    __slots__ = ("binding", "owner", "path")

    def __init__(self, path: str, owner: Scope, binding: Binding) -> None:
        self.path = path
        self.owner = owner
        self.binding = binding


class Dynamic:
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._filled: dict[int, bool] = {}

    def declared(self, node: ast.Attribute) -> Declared | None:
        """The one class that has the attribute and declares, as a constant, the path of the object that it is read of."""
        path = self._path(node.value)
        if not path:
            return None
        package = module_of(node).name.partition(".")[0]
        found: list[Declared] = []
        for tree, file, facts in self._resolver.trees.facts_with(node.attr, *path):
            if file.partition("/")[0].removesuffix(".py") != package or not any(node.attr in each.members for each in facts.classes):  # fmt: skip
                continue
            module = tree.module(file)
            for scope in module.classes() if module else ():
                if node.attr in scope.declared:
                    found += [Declared(".".join(path), scope, binding) for binding in _constants(scope, ".".join(path))]
        return found[0] if len(found) == 1 else None

    def _path(self, node: ast.expr) -> tuple[str, ...]:
        """The constant path by which an object was got: ``("exec", "kernel")`` of ``get_exec().kernel``."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Call) or len(parts) > _MAX_PARTS:
            return ()
        owners = [value.scope for value in self._resolver.infer(node) if value.kind == "instance" and value.scope]
        if len(owners) != 1 or not self._is_filled(owners[0]):
            return ()
        first = self._key(node, set())
        return (first, *reversed(parts)) if first else ()

    def _key(self, call: ast.Call, seen: set[int]) -> str:
        """The one constant that a call asks for, in it or in what the called function returns."""
        given = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if given:
            return given[0] if len(given) == 1 else ""
        found: set[str] = set()
        for value in self._resolver.infer(call.func):
            scope = value.scope if value.kind in ("function", "bound") else None
            if scope is None or id(scope) in seen or len(seen) > _MAX_HOPS:
                continue
            seen.add(id(scope))
            for each in returns(scope):
                if isinstance(each.value, ast.Call):
                    found.add(self._key(each.value, seen))
                elif isinstance(each.value, ast.Subscript) and isinstance(each.value.slice, ast.Constant):
                    found.add(str(each.value.slice.value))
        return found.pop() if len(found) == 1 else ""

    def _is_filled(self, owner: Scope) -> bool:
        """Whether objects of a class get attributes by computed names."""
        if id(owner) not in self._filled:
            self._filled[id(owner)] = any(
                isinstance(node, ast.Call) and last_name(node.func) in _COMPUTED and len(node.args) >= 3 and isinstance(node.args[-2], ast.Name)
                for method in owner.inner
                if method.kind == "function"
                for node in walk(*method.body, into_functions=False)
            )  # fmt: skip
        return self._filled[id(owner)]

    def looked_up(self, owner: Scope, name: str) -> list[Scope]:
        """The functions that ``__getattr__`` of a class calls for a name, by a table from names to functions or to the
        names of functions of a module."""
        method = self._resolver.method(owner, "__getattr__")
        found: list[Scope] = []
        for entry in self._entries(method, name) if method else ():
            if isinstance(entry, ast.Constant) and isinstance(entry.value, str) and method:
                found += self._named(method, entry.value)
            else:
                found += [value.scope for value in self._resolver.infer(entry) if value.kind == "function" and value.scope]  # fmt: skip
        return found

    def _entries(self, method: Scope, name: str) -> Iterator[ast.expr]:
        tables = {node.id for node in walk(*method.body) if isinstance(node, ast.Name)}
        for table in sorted(tables):
            for binding in method.module.scope.named(table):
                if isinstance(binding.value, ast.Dict):
                    for key, value in zip(binding.value.keys, binding.value.values, strict=True):
                        if isinstance(key, ast.Constant) and key.value == name:
                            yield value

    def _named(self, method: Scope, name: str) -> list[Scope]:
        """The function of this name in a module that ``getattr(module, computed)`` is asked of."""
        for node in walk(*method.body):
            if isinstance(node, ast.Call) and last_name(node.func) == "getattr" and len(node.args) >= 2:
                modules = [value.module for value in self._resolver.infer(node.args[0]) if value.kind == "module"]
                found = [value.scope for module in modules if module for value in self._resolver.member(module, name) if value.kind == "function" and value.scope]  # fmt: skip
                if found:
                    return found
        return []

    def collected_by(self, owner: Scope, by: Scope) -> ast.Name | None:
        """Where the code of a module puts a class of another one into a list with others."""
        facts = by.module.facts.functions[0]
        if owner.name not in facts.names:
            return None
        for node in walk(*by.module.tree.body):
            if not isinstance(node, ast.Name) or node.id != owner.name or scope_of(node).kind != "module":
                continue
            above = parent(node)
            if not isinstance(above, (ast.List, ast.Tuple, ast.Set)) or isinstance(parent(above), ast.Subscript):
                continue
            if any(value.scope is owner for value in self._resolver.infer(node)):
                return node
        return None


def _constants(scope: Scope, text: str) -> list[Binding]:
    """The attributes of a class that are a text."""
    return [
        binding
        for bindings in scope.declared.values()
        for binding in bindings
        if isinstance(binding.value, ast.Constant) and binding.value.value == text
    ]

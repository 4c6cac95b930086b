"""Which classes own an attribute, and who writes it: by assignment, by a key of that name, or through a file at its path."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gpuwhy.source import spelling
from gpuwhy.source.resolving import Resolver, last_name
from gpuwhy.source.scopes import AttributeWrite, Scope, parent, scope_of, walk
from gpuwhy.source.trees import Tree

_MAX_OWNERS = 12
_MAX_OWNING_FILES = 150
"""Files that may hold an owner of an attribute, by its spelling; names such as ``shape`` have more."""


class Ownership:
    """Answers for the trees of a resolver; the owners of a name are looked for once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._owned_by: dict[str, list[Scope] | None] = {}

    def owners(self, name: str) -> list[Scope] | None:
        """The classes that own an attribute; None when there are too many to mean one."""
        if name not in self._owned_by:
            self._owned_by[name] = self._found(name)
        return self._owned_by[name]

    def writes(self, owner: Scope, name: str) -> Iterator[tuple[AttributeWrite, bool]]:
        """The writes of an attribute in the trees, and whether the receiver is known to be of the class."""
        for unit in self._resolver.trees.units(name, writes=name):
            for scope in unit.all_inner() if unit.kind == "function" else _outside_functions(unit):
                for write in scope.writes:
                    if write.target.attr != name:
                        continue
                    values = self._resolver.infer(write.target.value)
                    own = [value.scope for value in values if value.kind in ("instance", "class") and value.scope]
                    if any(self._resolver.is_related(owner, each) for each in own):
                        yield write, True
                    elif not own and not any(value.kind in ("module", "external") for value in values) and self._may_own(write, owner):  # fmt: skip
                        yield write, False

    def _may_own(self, write: AttributeWrite, owner: Scope) -> bool:
        # a receiver that is not known is only matched within the package
        return write.scope.module.name.partition(".")[0] == owner.module.name.partition(".")[0]

    def keyed(self, name: str, owner: Scope) -> Iterator[tuple[ast.AST, ast.expr]]:
        """``{"name": value}`` and ``f(name=value)`` in the same package, for long names that mean one thing."""
        package = owner.module.name.partition(".")[0]
        if len(name) < 9 or "_" not in name:
            return
        for unit in self._resolver.trees.units(name, keys=name):
            if unit.module.name.partition(".")[0] != package:
                continue
            for node in walk(*unit.body) if unit.kind == "function" else _module_nodes(unit):
                if isinstance(node, ast.Dict) and len(node.keys) <= 12 and isinstance(parent(node), (ast.Return, ast.Call, ast.Assign)):  # fmt: skip
                    for key, value in zip(node.keys, node.values, strict=True):
                        if isinstance(key, ast.Constant) and key.value == name:
                            yield node, value
                elif isinstance(node, ast.Call):
                    for keyword in node.keywords:
                        if keyword.arg == name and self._sets(node, owner):
                            yield node, keyword.value

    def _sets(self, call: ast.Call, owner: Scope) -> bool:
        if last_name(call.func).startswith(("override", "update", "set", "replace", "declare")):
            return True
        return any(value.kind == "class" and value.scope is owner for value in self._resolver.infer(call.func))

    def _found(self, name: str) -> list[Scope] | None:
        found: list[Scope] = []
        candidates: list[tuple[Tree, str, str]] = []
        trees, spelled = self._resolver.trees, spelling.owning(name)
        if trees.holding(name, spelled=spelled, most=_MAX_OWNING_FILES) == _MAX_OWNING_FILES:
            return None
        for tree, path, facts in trees.facts_with(name, spelled=spelled):
            declared = {each.qualname for each in facts.classes if name in each.members}
            declared |= {unit.qualname.rpartition(".")[0] for unit in facts.functions if name in unit.writes and "." in unit.qualname}  # fmt: skip
            candidates += [(tree, path, qualname) for qualname in declared]
            if len(candidates) > _MAX_OWNERS:
                # what the other files hold changes nothing
                return None
        for tree, path, qualname in candidates:
            module = tree.module(path)
            for scope in module.classes() if module else ():
                if scope.qualname == qualname and (name in scope.declared or self._resolver.own_writes(scope, name)):
                    found.append(scope)
        return found


def writing_calls(unit: Scope, name: str) -> list[ast.Call]:
    """The calls of a function that write a file whose path is an attribute: ``x.NAME.write_text()``, ``open(x.NAME, "w")``,
    ``write_if_changed(x.NAME, text)``, also through a local name for it."""
    aliases = {
        target.id
        for node in walk(*unit.body, into_functions=False)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == name
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def is_path(node: ast.expr | None) -> bool:
        return (isinstance(node, ast.Attribute) and node.attr == name) or (isinstance(node, ast.Name) and node.id in aliases)  # fmt: skip

    found = []
    for call in unit.calls:
        called = last_name(call.func)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        modes = [each.value for each in (*call.args, *(kw.value for kw in call.keywords)) if isinstance(each, ast.Constant)]  # fmt: skip
        if called == "open":
            is_writing = any(isinstance(mode, str) and mode[:1] in ("w", "a", "x") for mode in modes)
        else:
            is_writing = called.startswith("write")
        if is_writing and (is_path(receiver) or any(is_path(each) for each in call.args[:1])):
            found.append(call)
    return found


def _outside_functions(unit: Scope) -> Iterator[Scope]:
    """The scopes of a module's own code: itself and its classes."""
    pending = [unit]
    while pending:
        scope = pending.pop()
        yield scope
        pending += [each for each in scope.inner if each.kind != "function"]


def _module_nodes(unit: Scope) -> Iterator[ast.AST]:
    """The nodes of a module's own code and of its classes, without the bodies of functions."""
    for node in walk(*unit.module.tree.body):
        if "_scope" in node.__dict__ and scope_of(node).unit().kind == "module":
            yield node

"""Who else reads or writes a value: the blast radius of changing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gpuwhy.source.answers import BlastRadius, Use
from gpuwhy.source.facts import MUTATORS
from gpuwhy.source.resolving import Resolver
from gpuwhy.source.scopes import Binding, Module, Scope, parent, scope_of, walk


def users_of_attribute(resolver: Resolver, owner: Scope, name: str) -> BlastRadius:
    """Every function that reads or writes an attribute of a class, and those that may because what they have is not
    known."""
    lines: dict[tuple[str, str, str], set[int]] = {}
    others = 0
    for node in _attributes(resolver, name):
        values = resolver.infer(node.value)
        own = [value.scope for value in values if value.kind in ("instance", "class") and value.scope]
        if any(resolver.is_related(owner, scope) for scope in own):
            _note(lines, "write" if _is_write(node) else "read", node)
        elif not own and not any(value.kind in ("module", "external") for value in values):
            _note(lines, "maybe", node)
        else:
            others += 1
    return BlastRadius(f"{owner.module.name}:{owner.qualname}.{name}", _uses(lines), others)


def users_of_global(resolver: Resolver, module: Module, name: str) -> BlastRadius:
    """Every function that uses a name of a module, there or through an import."""
    lines: dict[tuple[str, str, str], set[int]] = {}
    for unit in _units_naming(resolver, module, name):
        for node in walk(*(unit.body if unit.kind == "function" else unit.module.tree.body)):
            if "_scope" not in node.__dict__ or (unit.kind == "module" and scope_of(node).unit().kind != "module"):
                continue
            if isinstance(node, ast.Name) and node.id == name:
                if _is_global(resolver, node, module):
                    _note(lines, "read" if isinstance(node.ctx, ast.Load) else "write", node)
            elif isinstance(node, ast.Attribute) and node.attr == name:
                values = resolver.infer(node.value)
                if any(value.kind == "module" and value.module and home(resolver, value.module, name) is module for value in values):  # fmt: skip
                    _note(lines, "write" if _is_write(node) else "read", node)
    return BlastRadius(f"{module.name}:{name}", _uses(lines))


def _units_naming(resolver: Resolver, module: Module, name: str) -> Iterator[Scope]:
    """The functions that may mean the name of a module: it is imported under its name, or the module is spelled too."""
    spelled = {path for _, path in resolver.trees.with_words(name, module.name.rpartition(".")[2])}
    for tree, path, facts in resolver.trees.facts_with(name):
        if path != module.path and path not in spelled and not any(each.member == name for each in facts.imports):
            continue
        units = [unit for unit in facts.functions if name in unit.names or name in unit.reads or not unit.qualname]
        found = tree.module(path) if units else None
        for unit in units if found else ():
            yield from (
                ([found.scope] if not unit.qualname else found.functions(unit.qualname, unit.line)) if found else ()
            )


def _is_global(resolver: Resolver, node: ast.Name, module: Module) -> bool:
    bindings, scope = resolver.lookup(node.id, scope_of(node))
    if scope is module.scope:
        return True
    return any(_imported_from(resolver, binding) is module for binding in bindings if binding.kind == "import")


def _imported_from(resolver: Resolver, binding: Binding) -> Module | None:
    base, member = binding.source or ("", None)
    source = resolver.trees.module(base) if member else None
    return home(resolver, source, member) if source and member else None


def home(resolver: Resolver, module: Module, name: str, depth: int = 0) -> Module:
    """The module where a name is bound to something that is not imported."""
    for binding in module.scope.named(name) if depth < 8 else ():
        base, member = binding.source or ("", None)
        source = resolver.trees.module(base) if binding.kind == "import" and member else None
        if source and member:
            return home(resolver, source, member, depth + 1)
    return module


def _attributes(resolver: Resolver, name: str) -> Iterator[ast.Attribute]:
    for tree, path, facts in resolver.trees.facts_with(name):
        units = [unit for unit in facts.functions if name in unit.reads or name in unit.writes]
        module = tree.module(path) if units else None
        for unit in units if module else ():
            for scope in ([module.scope] if not unit.qualname else module.functions(unit.qualname, unit.line)) if module else ():  # fmt: skip
                for node in walk(*(scope.body if scope.kind == "function" else scope.module.tree.body)):
                    if isinstance(node, ast.Attribute) and node.attr == name and "_scope" in node.__dict__ and scope_of(node).unit() is scope:  # fmt: skip
                        yield node


def _is_write(node: ast.Attribute) -> bool:
    above = parent(node)
    if not isinstance(node.ctx, ast.Load):
        return True
    if isinstance(above, ast.Subscript) and above.value is node and not isinstance(above.ctx, ast.Load):
        return True
    return isinstance(above, ast.Attribute) and above.attr in MUTATORS and isinstance(parent(above), ast.Call)


def _note(lines: dict[tuple[str, str, str], set[int]], kind: str, node: ast.expr) -> None:
    scope = scope_of(node).function()
    lines.setdefault((kind, scope.module.path, scope.qualname), set()).add(node.lineno)


def _uses(lines: dict[tuple[str, str, str], set[int]]) -> tuple[Use, ...]:
    order = {"write": 0, "read": 1, "maybe": 2}
    ordered = sorted(lines.items(), key=lambda item: (order[item[0][0]], item[0][1], min(item[1])))
    return tuple(Use(kind, path, function, tuple(sorted(numbers))) for (kind, path, function), numbers in ordered)

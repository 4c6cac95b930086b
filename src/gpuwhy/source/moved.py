"""``cannot import name X from Y``: where X is in the installed release, under which condition, and where it once was."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping

from gpuwhy.source.answers import FoundSymbol, Moved, Requirement, Scope
from gpuwhy.source.cache import Cache
from gpuwhy.source.conditions import path_conditions
from gpuwhy.source.exceptions import spot_of
from gpuwhy.source.resolving import Resolver, is_for_types_only
from gpuwhy.source.roots import Root
from gpuwhy.source.scopes import Binding, Module, walk
from gpuwhy.source.tracing import read_package
from gpuwhy.source.trees import Trees, is_test, uncollected

_MAX_FOUND = 20
_MAX_NAMES = 20_000
_MOST_STARS = 20
"""Modules that hand a name on by ``import *``, one after the other."""
_MESSAGES = (
    re.compile(
        r"cannot import name '(?P<name>\w{1,200})' from (?:partially initialized module )?'(?P<module>[\w.]{1,300})'"
    ),
    re.compile(r"module '(?P<module>[\w.]{1,300})' has no attribute '(?P<name>\w{1,200})'"),
    re.compile(r"No module named '(?P<module>[\w.]{1,300})'"),
)


def missing_symbol(message: str) -> tuple[str, str] | None:
    """(module, name) of an ImportError's or AttributeError's message; the name is empty for a missing module."""
    for pattern in _MESSAGES:
        found = pattern.search(message[:2000])
        if found:
            return found["module"], found.groupdict().get("name") or ""
    return None


def where_is(
    roots: Mapping[str, Root],
    module: str,
    name: str,
    earlier: Mapping[str, Mapping[str, Root]] | None = None,
    cache: Cache | None = None,
) -> Moved:
    """Where a name is that ``module`` was expected to have. ``earlier`` gives the roots of other releases, newest
    first, by their version."""
    with uncollected():
        trees = _opened(roots, module, cache)
        resolver = Resolver(trees)
        wanted = name or module.rpartition(".")[2]
        home = trees.module(module)
        here = tuple(_importable(resolver, home, wanted)) if home and name else ()
        elsewhere = tuple(each for each in _everywhere(trees, wanted) if each not in here)[:_MAX_FOUND]
        return Moved(
            module=module,
            name=name,
            is_module_there=home is not None,
            here=here,
            elsewhere=tuple(sorted(elsewhere, key=lambda each: _distance(module, each.dotted))),
            nearest=tuple(_nearest(resolver, home, module, wanted)),
            earlier=tuple(_in_others(earlier or {}, module, name, cache)),
            open_ends=tuple(dict.fromkeys(_open_ends(resolver, home))) if home and name and not here else (),
            scope=Scope(tuple(read_package(tree) for tree in trees)),
        )


def _opened(roots: Mapping[str, Root], module: str, cache: Cache | None) -> Trees:
    package = module.partition(".")[0]
    trees = Trees(roots, lambda other: other == package, cache)
    trees.open(package)
    return trees


def _importable(
    resolver: Resolver, module: Module, name: str, seen: frozenset[str] = frozenset()
) -> Iterator[FoundSymbol]:
    """What ``from module import name`` finds: the module's own, a name that it makes when asked, a module below it, or
    what comes with ``from other import *``."""
    found = list(_in_module(module, name))
    dotted = f"{module.name}.{name}"
    lazy = None if found else resolver.table(module).get(name) or _named_by_getattr(module, name)
    below = resolver.trees.module(dotted) if module.is_package and not found and lazy is None else None
    if lazy is not None:
        found = [FoundSymbol(dotted, "made by __getattr__", spot_of(lazy))]
    elif below is not None:
        found = [FoundSymbol(dotted, "module", spot_of(below.tree))]
    if found or module.name in seen or len(seen) > _MOST_STARS:
        yield from found
        return
    for star in module.scope.declared.get("*", ()):
        source = resolver.trees.module(star.source[0]) if star.source else None
        if source is None or source is module or not _is_exported(source, name):
            continue
        conditions = _requirements(star)
        for each in _importable(resolver, source, name, seen | {module.name}):
            yield FoundSymbol(dotted, each.kind, each.spot, (*conditions, *each.requires))


def _named_by_getattr(module: Module, name: str) -> ast.expr | None:
    """The constant by which a module's ``__getattr__`` knows the name: in the function, or in a table that it uses."""
    for function in module.functions("__getattr__"):
        used = [node.id for node in walk(*function.body) if isinstance(node, ast.Name)]
        tables = [binding.value for each in used for binding in module.scope.named(each) if binding.value is not None]
        for node in walk(*function.body, *tables):
            if isinstance(node, ast.Constant) and node.value == name:
                return node
    return None


def _open_ends(resolver: Resolver, module: Module, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Where a module may have names from that no text of Python spells."""
    for star in module.scope.declared.get("*", ()):
        source = resolver.trees.module(star.source[0]) if star.source else None
        if source is None and star.source:
            yield f"{star.source[0]}, whose names {module.name} takes over by import *, was not searched"
        elif source is not None and source.name not in seen and len(seen) < _MOST_STARS:
            yield from _open_ends(resolver, source, seen | {module.name})
    if any(module.functions("__getattr__")):
        yield f"{module.name} has a __getattr__ that makes names when they are asked for"
    if any(_makes_names(node) for node in walk(module.tree, into_functions=False)):
        yield f"{module.name} makes names at run time by globals()"


def _makes_names(node: ast.AST) -> bool:
    held = node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else None
    is_globals = isinstance(held, ast.Call) and isinstance(held.func, ast.Name) and held.func.id == "globals"
    if isinstance(node, ast.Subscript):
        return is_globals and isinstance(node.ctx, ast.Store)
    return is_globals and isinstance(node, ast.Attribute) and node.attr == "update"


def _is_exported(module: Module, name: str) -> bool:
    """Whether ``import *`` takes a name along. A list that is put together counts as holding it."""
    listed = [binding.value for binding in module.scope.named("__all__") if binding.kind != "mutation"]
    if not listed:
        return not name.startswith("_")
    names = [_strings(value) for value in listed]
    return any(each is None or name in each for each in names) or len(listed) != len(module.scope.named("__all__"))


def _strings(value: ast.expr | None) -> list[object] | None:
    if not isinstance(value, (ast.List, ast.Tuple)):
        return None
    return [each.value for each in value.elts if isinstance(each, ast.Constant)]


def _in_module(module: Module, name: str) -> Iterator[FoundSymbol]:
    """The bindings of a name in a module, each with what it depends on."""
    for binding in module.scope.named(name):
        if binding.kind != "mutation" and not is_for_types_only(binding.node):
            yield FoundSymbol(f"{module.name}.{name}", _kind(binding), spot_of(binding.node), _requirements(binding))


def _requirements(binding: Binding) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.text, each.line, each.is_weak) for each in path_conditions(binding.node))


def _kind(binding: Binding) -> str:
    return {"def": "function", "class": "class", "import": "import"}.get(binding.kind, "value")


def _everywhere(trees: Trees, name: str) -> Iterator[FoundSymbol]:
    """The modules of the trees that define a name, and modules of that name."""
    for tree in trees:
        for path in tree.known:
            stem = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
            if stem == name and not is_test(path):
                module = tree.module(path)
                if module:
                    yield FoundSymbol(module.name, "module", spot_of(module.tree))
    for tree, path, facts in trees.facts_with(name):
        if name in facts.bound:
            module = tree.module(path)
            found = list(_in_module(module, name)) if module else []
            yield from (each for each in found if each.kind != "import")


def _nearest(resolver: Resolver, home: Module | None, module: str, name: str) -> list[str]:
    """Names like it: in its module, or in the package when the module is gone."""
    if home is not None:
        known = set(home.facts.bound) | set(resolver.table(home))
        for binding in home.scope.named("*"):
            starred = resolver.trees.module(binding.source[0]) if binding.source else None
            known |= set(starred.facts.bound) if starred else set()
        return difflib.get_close_matches(name, sorted(known - {name})[:_MAX_NAMES], 5, 0.7)
    tree = resolver.trees.open(module.partition(".")[0])
    modules = (
        [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in tree.known] if tree else []
    )
    return difflib.get_close_matches(module, modules[:_MAX_NAMES], 5, 0.7)


def _in_others(
    releases: Mapping[str, Mapping[str, Root]], module: str, name: str, cache: Cache | None
) -> Iterator[FoundSymbol]:
    """The newest of other releases that has the name there."""
    for version, roots in releases.items():
        trees = _opened(roots, module, cache)
        home = trees.module(module)
        if home is None:
            continue
        found = list(_importable(Resolver(trees), home, name)) if name else [FoundSymbol(module, "module", spot_of(home.tree))]  # fmt: skip
        for each in found:
            yield FoundSymbol(f"{version}:{each.dotted}", each.kind, each.spot, each.requires)
        if found:
            return


def _distance(module: str, dotted: str) -> tuple[int, str]:
    """Fewer common first parts are farther away."""
    one, other = module.split("."), dotted.split(".")
    common = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), min(len(one), len(other)))  # fmt: skip
    return -common, dotted

"""A parsed module as scopes and bindings. Bodies of functions are parsed when something in them is asked for.

What the tree does not know of itself is written on its nodes: the parent, and the scope a node is evaluated in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from gpuwhy.source.facts import MUTATORS, FileFacts, FunctionFacts, source_text
from gpuwhy.source.parsing import parse

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Callable: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CALLABLES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SIGNS = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
"""Shared by all trees of the process, and without a place."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


_LEAVES = frozenset({ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.alias})
_NOTED = frozenset({
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Import,
    ast.ImportFrom, ast.Global, ast.ExceptHandler, ast.Call, ast.MatchAs, ast.MatchStar,
})  # fmt: skip
"""What binds, writes or calls."""


def parent(node: ast.AST) -> ast.AST | None:
    found: ast.AST | None = node.__dict__.get("_parent")
    return found


def scope_of(node: ast.AST) -> Scope:
    """The scope in which a node is evaluated."""
    found: Scope = node.__dict__["_scope"]
    return found


def inner_scope(node: ast.AST) -> Scope:
    """The scope that a function, class, lambda or comprehension opens."""
    found: Scope = node.__dict__["_inner"]
    return found


def module_of(node: ast.AST) -> Module:
    return scope_of(node).module


def ancestors(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around, innermost first."""
    above = parent(node)
    while above is not None:
        yield above
        above = parent(above)


def children(node: ast.AST) -> Iterator[ast.AST]:
    for field in node._fields:
        value = getattr(node, field, None)
        if value.__class__ is list:
            for each in value:
                if isinstance(each, ast.AST):
                    yield each
        elif isinstance(value, ast.AST) and not isinstance(value, _SIGNS):
            yield value


def walk(*nodes: ast.AST, into_functions: bool = True) -> Iterator[ast.AST]:
    """The nodes and all below, in the order of the text. Without ``into_functions`` the bodies of functions, lambdas
    and classes met below are left out."""
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        yield node
        if into_functions or not isinstance(node, (*CALLABLES, ast.ClassDef)):
            stack.extend(reversed(list(children(node))))


def statement_of(node: ast.AST) -> ast.AST:
    """The statement that holds a node; the node itself when it is none's."""
    while not isinstance(node, ast.stmt):
        above = parent(node)
        if above is None:
            return node
        node = above
    return node


class Binding:
    """One place where a name gets its value. ``kind``: assign, annotated, augmented, for, with, import, def, class,
    param, except, mutation. ``index`` is the element of an unpacked value, or the position of a parameter (None for
    keyword-only ones). ``source`` is (module, member) of an import, ``how`` the method of a mutation."""

    __slots__ = ("annotation", "how", "index", "kind", "node", "scope", "source", "value")

    def __init__(
        self,
        kind: str,
        node: ast.AST,
        scope: Scope,
        value: ast.expr | None = None,
        annotation: ast.expr | None = None,
        index: int | None = None,
        source: tuple[str, str | None] | None = None,
        how: str = "",
    ) -> None:
        self.kind = kind
        self.node = node
        self.scope = scope
        self.value = value
        self.annotation = annotation
        self.index = index
        self.source = source
        self.how = how

    def of_element(self, index: int, value: ast.expr | None, scope: Scope) -> Binding:
        return Binding(self.kind, self.node, scope, value, None, index, self.source, self.how)


class AttributeWrite:
    """``target.attr = value`` and its kin. ``how`` is ``=``, ``op=``, ``[]=``, ``.add`` ... or ``setattr``."""

    __slots__ = ("how", "node", "scope", "target", "value")

    def __init__(self, target: ast.Attribute, value: ast.expr | None, node: ast.AST, how: str, scope: Scope) -> None:
        self.target = target
        self.value = value
        self.node = node
        self.how = how
        self.scope = scope


class Scope:
    """``kind``: module, class, function or comprehension. What is bound in a function that was not opened yet is read
    on first use."""

    def __init__(self, kind: str, node: ast.AST, above: Scope | None, module: Module, name: str) -> None:
        self.kind = kind
        self.node = node
        self.above = above
        self.module = module
        self.name = name
        self.facts: FunctionFacts | None = None
        """Of a function that is not inside another one."""
        self.is_closed = False
        self.globals: set[str] = set()
        self.declared: dict[str, list[Binding]] = {}
        self._writes: list[AttributeWrite] = []
        self._inner: list[Scope] = []
        self._calls: list[ast.Call] = []

    def __repr__(self) -> str:
        return f"<{self.kind} {self.module.name}:{self.qualname}>"

    def open(self) -> None:
        if self.is_closed:
            self.module.open(self)

    def named(self, name: str) -> list[Binding]:
        """The bindings of a name in this scope, mutations too."""
        self.open()
        if self.kind == "module":
            self.module.open_globals(name)
        return self.declared.get(name, [])

    def bind(self, name: str, binding: Binding) -> None:
        self.declared.setdefault(name, []).append(binding)

    @property
    def writes(self) -> list[AttributeWrite]:
        self.open()
        return self._writes

    @property
    def calls(self) -> list[ast.Call]:
        """Of a function that is not inside another one, or of the module's own code: the calls in it."""
        self.open()
        return self._calls

    @property
    def inner(self) -> list[Scope]:
        self.open()
        return self._inner

    @property
    def body(self) -> list[ast.stmt]:
        """The statements of a function; of a lambda none."""
        self.open()
        body = getattr(self.node, "body", [])
        return body if isinstance(body, list) else []

    @property
    def qualname(self) -> str:
        parts: list[str] = []
        scope: Scope | None = self
        while scope and scope.kind != "module":
            if scope.kind != "comprehension":
                parts.append(scope.name)
            scope = scope.above
        return ".".join(reversed(parts))

    def function(self) -> Scope:
        """This scope, or the one around a comprehension."""
        scope = self
        while scope.kind == "comprehension" and scope.above:
            scope = scope.above
        return scope

    def unit(self) -> Scope:
        """The outermost function around, or the module's scope."""
        found = scope = self
        while scope.above:
            if scope.kind == "function":
                found = scope
            scope = scope.above
        return found if found.kind == "function" else scope

    def enclosing_class(self) -> Scope | None:
        scope: Scope | None = self
        while scope and scope.kind != "class":
            scope = scope.above
        return scope

    def is_method(self) -> bool:
        return self.kind == "function" and self.above is not None and self.above.kind == "class"

    def all_inner(self) -> Iterator[Scope]:
        """This scope and those in it, opened."""
        pending = [self]
        while pending:
            scope = pending.pop()
            yield scope
            pending.extend(scope.inner)


class Module:
    """One file. ``name`` is the dotted import name, ``path`` relative to the root, ``lines`` its text."""

    def __init__(self, name: str, path: str, text: str, facts: FileFacts) -> None:
        self.name = name
        self.path = path
        self.facts = facts
        self.lines = text.split("\n")
        self.is_package = path.endswith("__init__.py")
        self._readable = _without(self.lines, facts.gaps)
        self._units = {(unit.line, unit.qualname.rpartition(".")[2]): unit for unit in facts.functions[1:]}
        self._by_unit: dict[str, list[Scope]] = {}
        self.tree = parse("\n".join(self._skeleton())).tree or ast.Module(body=[], type_ignores=[])
        self.scope = Scope("module", self.tree, None, self, name)
        self._pending_globals: dict[str, list[str]] = {}
        for unit in facts.functions[1:]:
            for each in unit.globals:
                self._pending_globals.setdefault(each, []).append(unit.qualname)
        self.tree.__dict__["_scope"] = self.scope
        self._walk([(statement, self.tree, self.scope) for statement in self.tree.body])

    def text(self, node: ast.AST | None, limit: int = 0) -> str:
        """The source of a node in one line."""
        return source_text(self.lines, node, limit) if node is not None else ""

    def line_text(self, line: int) -> str:
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def units(self, **having: str) -> Iterator[Scope]:
        """The functions that are not inside others, and the module's own code, whose facts hold every one of
        ``calls="f"``, ``reads="attribute"``, ``writes=``, ``names=``, ``keys=``."""
        for number, unit in enumerate(self.facts.functions):
            if all(value in getattr(unit, field) for field, value in having.items()):
                if number == 0:
                    yield self.scope
                else:
                    yield from self.functions(unit.qualname, unit.line)

    def functions(self, qualname: str, line: int = 0) -> Iterator[Scope]:
        """The scopes of a function by its qualified name: more than one when it is defined in branches."""
        for scope in self._by_unit.get(qualname, ()):
            if not line or getattr(scope.node, "lineno", 0) == line:
                yield scope

    def classes(self) -> Iterator[Scope]:
        """The classes that are not inside functions."""
        pending = list(self.scope.inner)
        while pending:
            scope = pending.pop(0)
            if scope.kind == "class":
                yield scope
                pending.extend(scope.inner)

    def open_globals(self, name: str) -> None:
        """Open the functions that declare ``global name``: they bind it here."""
        for qualname in self._pending_globals.pop(name, ()):
            for scope in self._by_unit.get(qualname, ()):
                scope.open()

    def open(self, scope: Scope) -> None:
        """Parse the body of a function and read its bindings."""
        scope.is_closed = False
        node, unit = scope.node, scope.facts
        if unit is None or not isinstance(node, FUNCTIONS):
            return
        segment = self._readable[unit.first - 1 : unit.last]
        indented = segment[0][:1] in (" ", "\t")
        padding = "\n" * (unit.first - 2) + "if 1:\n" if indented else "\n" * (unit.first - 1)
        tree = parse(padding + "\n".join(segment)).tree
        for found in walk(tree) if tree else ():
            if isinstance(found, FUNCTIONS) and found.lineno == node.lineno:
                node.body = found.body
                break
        self._walk([(statement, node, scope) for statement in node.body])

    def absolute(self, module: str, level: int) -> str:
        """The dotted name that a relative import means here."""
        if not level:
            return module
        parts = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        parts = parts[: len(parts) - (level - 1)]
        return ".".join([*parts, *([module] if module else [])])

    def _skeleton(self) -> list[str]:
        lines = list(self._readable)
        for unit in self.facts.functions[1:]:
            if unit.body and unit.last <= len(lines):
                first = lines[unit.body - 1]
                lines[unit.body - 1 : unit.last] = [first[: len(first) - len(first.lstrip())] + "..."] + [""] * (unit.last - unit.body)  # fmt: skip
        return lines

    def _walk(self, todo: list[tuple[ast.AST, ast.AST, Scope]]) -> None:
        """Note parents, scopes, bindings, writes and calls, in the order of the text."""
        stack = list(reversed(todo))
        while stack:
            node, above, scope = stack.pop()
            node._parent = above  # type: ignore[attr-defined]
            node._scope = scope  # type: ignore[attr-defined]
            kind = type(node)
            if kind in _LEAVES:
                continue
            if isinstance(node, CALLABLES):
                below = self._function(node, scope)
            elif isinstance(node, ast.ClassDef):
                below = self._class(node, scope)
            elif isinstance(node, COMPREHENSIONS):
                below = self._comprehension(node, scope)
            else:
                if kind in _NOTED:
                    self._note(node, scope)
                below = [(child, node, scope) for child in children(node)]
            below.reverse()
            stack.extend(below)

    def _function(self, node: Callable, scope: Scope) -> list[tuple[ast.AST, ast.AST, Scope]]:
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        inner = Scope("function", node, scope, self, name)
        node.__dict__["_inner"] = inner
        scope._inner.append(inner)
        below: list[tuple[ast.AST, ast.AST, Scope]] = []
        if not isinstance(node, ast.Lambda):
            scope.bind(node.name, Binding("def", node, scope))
            if scope.unit().kind == "module":
                inner.facts = self._units.get((node.lineno, node.name))
                inner.is_closed = bool(inner.facts and inner.facts.body)
                self._by_unit.setdefault(inner.qualname, []).append(inner)
            below += [(each, node, scope) for each in node.decorator_list]
            below += [(node.returns, node, scope)] if node.returns else []
        below += self._parameters(node, inner, scope)
        if isinstance(node, ast.Lambda):
            below.append((node.body, node, inner))
        elif not inner.is_closed:
            below += [(each, node, inner) for each in node.body]
        return below

    def _parameters(self, node: Callable, inner: Scope, scope: Scope) -> list[tuple[ast.AST, ast.AST, Scope]]:
        given = node.args
        positional = [*given.posonlyargs, *given.args]
        defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
        parameters = [*zip(positional, defaults, range(len(positional)), strict=True)]
        keywords = zip(given.kwonlyargs, given.kw_defaults, strict=True)
        below: list[tuple[ast.AST, ast.AST, Scope]] = []
        for parameter, default, index in [*parameters, *((each, value, None) for each, value in keywords)]:
            parameter.__dict__["_parent"], parameter.__dict__["_scope"] = node, inner
            inner.bind(parameter.arg, Binding("param", parameter, inner, default, parameter.annotation, index))
            below += [(each, node, scope) for each in (default, parameter.annotation) if each is not None]
        for rest in (given.vararg, given.kwarg):
            if rest:
                rest.__dict__["_parent"], rest.__dict__["_scope"] = node, inner
                inner.bind(rest.arg, Binding("param", rest, inner, how="*"))
                below += [(rest.annotation, node, scope)] if rest.annotation else []
        return below

    def _class(self, node: ast.ClassDef, scope: Scope) -> list[tuple[ast.AST, ast.AST, Scope]]:
        inner = Scope("class", node, scope, self, node.name)
        node.__dict__["_inner"] = inner
        scope._inner.append(inner)
        scope.bind(node.name, Binding("class", node, scope))
        outside = [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
        return [*((each, node, scope) for each in outside), *((each, node, inner) for each in node.body)]

    def _comprehension(self, node: ast.AST, scope: Scope) -> list[tuple[ast.AST, ast.AST, Scope]]:
        inner = Scope("comprehension", node, scope, self, "<comprehension>")
        node.__dict__["_inner"] = inner
        scope._inner.append(inner)
        below: list[tuple[ast.AST, ast.AST, Scope]] = []
        for number, generator in enumerate(getattr(node, "generators", [])):
            generator.__dict__["_parent"], generator.__dict__["_scope"] = node, inner
            below.append((generator.iter, generator, scope if number == 0 else inner))
            self._bind(generator.target, Binding("for", node, inner, generator.iter), inner)
            below.append((generator.target, generator, inner))
            below += [(each, generator, inner) for each in generator.ifs]
        below += [(getattr(node, field), node, inner) for field in ("elt", "key", "value") if hasattr(node, field)]
        return below

    def _note(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, Binding("assign", node, scope, node.value), scope)
        elif isinstance(node, ast.AnnAssign):
            self._bind(node.target, Binding("annotated", node, scope, node.value, node.annotation), scope)
        elif isinstance(node, ast.AugAssign):
            self._bind(node.target, Binding("augmented", node, scope, node.value), scope)
        elif isinstance(node, ast.NamedExpr):
            function = scope.function()
            self._bind(node.target, Binding("assign", node, function, node.value), function)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._bind(node.target, Binding("for", node, scope, node.iter), scope)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, Binding("with", node, scope, item.context_expr), scope)
        elif isinstance(node, ast.Import):
            for name in node.names:
                top = name.name if name.asname else name.name.split(".")[0]
                self._bound(name.asname or top, Binding("import", node, scope, source=(top, None)), scope)
        elif isinstance(node, ast.ImportFrom):
            base = self.absolute(node.module or "", node.level)
            for name in node.names:
                self._bound(name.asname or name.name, Binding("import", node, scope, source=(base, name.name)), scope)
        elif isinstance(node, ast.Global):
            scope.globals.update(node.names)
        elif isinstance(node, ast.ExceptHandler):
            if node.name:
                scope.bind(node.name, Binding("except", node, scope))
        elif isinstance(node, ast.Call):
            self._call(node, scope)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            scope.bind(node.name, Binding("match", node, scope))

    def _call(self, node: ast.Call, scope: Scope) -> None:
        scope.unit()._calls.append(node)
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in MUTATORS:
            value = node.args[-1] if node.args else None
            if isinstance(called.value, ast.Attribute):
                scope._writes.append(AttributeWrite(called.value, value, node, f".{called.attr}", scope))
            elif isinstance(called.value, ast.Name):
                scope.bind(called.value.id, Binding("mutation", node, scope, value, how=called.attr))
        elif isinstance(called, ast.Name) and called.id == "setattr" and len(node.args) == 3:
            name = node.args[1]
            if isinstance(name, ast.Constant):
                target = ast.copy_location(
                    ast.Attribute(value=node.args[0], attr=str(name.value), ctx=ast.Store()), node
                )
                target.__dict__["_parent"], target.__dict__["_scope"] = node, scope
                scope._writes.append(AttributeWrite(target, node.args[2], node, "setattr", scope))

    def _bound(self, name: str, binding: Binding, scope: Scope) -> None:
        (self.scope if name in scope.globals else scope).bind(name, binding)

    def _bind(self, target: ast.expr, binding: Binding, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            self._bound(target.id, binding, scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            given = binding.value
            is_matched = binding.kind == "assign" and isinstance(given, (ast.Tuple, ast.List)) and len(given.elts) == len(target.elts)  # fmt: skip
            for index, element in enumerate(target.elts):
                value = given.elts[index] if is_matched and isinstance(given, (ast.Tuple, ast.List)) else given
                part = binding.of_element(index, value, scope)
                if is_matched:
                    part.index = None
                self._bind(element, part, scope)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, binding, scope)
        elif isinstance(target, ast.Attribute):
            how = "op=" if binding.kind == "augmented" else "="
            scope._writes.append(AttributeWrite(target, binding.value, binding.node, how, scope))
        elif isinstance(target, ast.Subscript):
            if isinstance(target.value, ast.Attribute):
                scope._writes.append(AttributeWrite(target.value, binding.value, binding.node, "[]=", scope))
            elif isinstance(target.value, ast.Name):
                scope.bind(target.value.id, Binding("mutation", binding.node, scope, binding.value, how="[]="))


def _without(lines: list[str], gaps: tuple[tuple[int, int], ...]) -> list[str]:
    """The lines with ``pass`` in place of what the parser refused."""
    if not gaps:
        return lines
    kept = list(lines)
    for first, last in gaps:
        indent = kept[first - 1][: len(kept[first - 1]) - len(kept[first - 1].lstrip())]
        kept[first - 1 : last] = [indent + "pass"] + [""] * (last - first)
    return kept

"""What a name or an expression stands for: modules, classes, functions and instances across files, without running them.

Light inference, memoised: through re-exports, function-local imports, ``module.__getattr__`` tables, annotations where
the value says nothing, methods through the bases of a class, properties, factory functions.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from gpuwhy.source import spelling
from gpuwhy.source.reaching import reaching
from gpuwhy.source.scopes import (
    FUNCTIONS,
    AttributeWrite,
    Binding,
    Callable,
    Module,
    Scope,
    ancestors,
    inner_scope,
    module_of,
    scope_of,
    walk,
)
from gpuwhy.source.trees import Trees

BUILTINS = frozenset(dir(builtins))
FOREIGN = re.compile(
    r"rocm|(?:^|[._])hip(?:[._]|$)|aiter|xpu|npu|hpu|tpu|musa|ascend|(?:^|[._])mps(?:[._]|$)|\.amd\b|\.intel\b|platforms\.cpu"
)
"""Modules of other hardware: looked at last, never left out."""
_MAX_SUBCLASSES = 400
_MAX_DEPTH = 60
"""Expressions that are inferred from one another; real chains are below 20."""
_TRANSPARENT = ("Optional", "A", "Annotated", "Union", "ClassVar", "Final", "type", "Type")


class Value:
    """What an expression may be. ``kind``: module, external (a dotted name outside the trees), function, bound (a
    method of ``receiver``), class, instance (``made`` is the call that made it), property, field, table, unknown."""

    __slots__ = ("dotted", "kind", "made", "module", "name", "receiver", "scope")

    def __init__(
        self,
        kind: str,
        scope: Scope | None = None,
        *,
        module: Module | None = None,
        dotted: str = "",
        made: ast.expr | None = None,
        name: str = "",
        receiver: Value | None = None,
    ) -> None:
        self.kind = kind
        self.scope = scope
        self.module = module
        self.dotted = dotted
        self.made = made
        self.name = name
        self.receiver = receiver

    @property
    def key(self) -> tuple[str, int, str, str]:
        return self.kind, id(self.scope or self.module), self.dotted, self.name

    def __repr__(self) -> str:
        return f"<{self.kind} {self.scope or (self.module.name if self.module else self.dotted)} {self.name}>"


class Resolver:
    """Answers for the trees that are open, and opens others as imports lead there."""

    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        self._known: dict[int, tuple[ast.AST, list[Value]]] = {}
        self._pending: set[int] = set()
        self._tables: dict[int, dict[str, ast.expr]] = {}
        self._replaced: dict[tuple[int, int], list[Scope]] = {}
        self._mro: dict[int, list[Scope]] = {}
        self._below: dict[int, list[Scope]] = {}
        self._quoted: dict[int, ast.expr | None] = {}

    # what expressions stand for

    def infer(self, node: ast.expr) -> list[Value]:
        """The values an expression may have; empty when nothing is known."""
        key = id(node)
        if key in self._known:
            return self._known[key][1]
        if key in self._pending or len(self._pending) > _MAX_DEPTH or "_scope" not in node.__dict__:
            return []
        self._pending.add(key)
        try:
            found = list({value.key: value for value in self._inferred(node)}.values())
        finally:
            self._pending.discard(key)
        self._known[key] = (node, found)
        return found

    def _inferred(self, node: ast.expr) -> list[Value]:
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Attribute):
            return [found for value in self.infer(node.value) for found in self.attribute(value, node.attr)]
        if isinstance(node, ast.Call):
            return [found for value in self.infer(node.func) for found in self.called(value, node)]
        if isinstance(node, ast.BoolOp):
            return [found for value in node.values for found in self.infer(value)]
        if isinstance(node, ast.IfExp):
            return [*self.infer(node.body), *self.infer(node.orelse)]
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.infer(node.value)
        if isinstance(node, ast.Lambda):
            return [Value("function", inner_scope(node))]
        if isinstance(node, ast.Subscript):
            return [
                Value("instance", value.scope, made=node) if value.kind == "class" else Value("external", dotted=value.dotted + "[]")
                for value in self.infer(node.value)
                if value.kind in ("class", "external")
            ]  # fmt: skip
        return []

    def _name(self, node: ast.Name) -> list[Value]:
        bindings, scope = self.lookup(node.id, scope_of(node))
        if scope is None:
            found = self._starred(module_of(node), node.id, ())
            return found or ([Value("external", dotted=f"builtins.{node.id}")] if node.id in BUILTINS else [])
        return [value for binding in self.at_use(node, bindings, scope) for value in self.bound(binding)]

    def at_use(self, node: ast.Name, bindings: list[Binding], scope: Scope) -> list[Binding]:
        """The bindings that may reach a name, when it is a local of the function it stands in."""
        used_in = scope_of(node)
        is_local = scope.kind in ("function", "comprehension") and scope in (used_in, used_in.function())
        return reaching(node, bindings, scope) if is_local else bindings

    def lookup(self, name: str, scope: Scope | None) -> tuple[list[Binding], Scope | None]:
        """The bindings of a name as seen from a scope, without mutations, and the scope that has them."""
        is_first = True
        while scope:
            if scope.kind != "class" or is_first:
                if name in scope.globals:
                    scope = scope.module.scope
                bindings = [binding for binding in scope.named(name) if binding.kind != "mutation"]
                if bindings:
                    return bindings, scope
            is_first = False
            scope = scope.above
        return [], None

    # bindings and members of modules

    def bound(self, binding: Binding, seen: tuple[tuple[str, str], ...] = ()) -> list[Value]:
        """What a binding binds."""
        kind = binding.kind
        if kind == "import":
            return self._imported(binding, seen)
        if kind == "def":
            is_property = any(name in ("property", "cached_property") for name in decorators(binding.node))
            return [Value("property" if is_property else "function", inner_scope(binding.node))]
        if kind == "class":
            return [Value("class", inner_scope(binding.node))]
        if kind in ("assign", "annotated") and binding.value is not None:
            return self._assigned(binding)
        if kind == "annotated" and binding.index is None:
            return self.annotated(binding.annotation)
        if kind == "with" and binding.value is not None:
            return self.infer(binding.value)
        if kind == "param":
            return self._parameter(binding)
        return []

    def _imported(self, binding: Binding, seen: tuple[tuple[str, str], ...]) -> list[Value]:
        base, member = binding.source or ("", None)
        module = self.trees.module(base)
        if member is None:
            return [Value("module", module=module)] if module else [Value("external", dotted=base)]
        if member == "*":
            return []
        if module is None:
            return [Value("external", dotted=f"{base}.{member}")]
        found = self.member(module, member, seen)
        if found:
            return found
        below = self.trees.module(f"{base}.{member}")
        return [Value("module", module=below)] if below else [Value("unknown", dotted=f"{base}.{member}")]

    def _assigned(self, binding: Binding) -> list[Value]:
        if binding.index is not None or binding.value is None:
            return []
        found = self.infer(binding.value)
        if binding.kind == "annotated" and not any(value.kind in ("instance", "class", "function") for value in found):
            # Field(default_factory=...), None, a factory elsewhere: the annotation knows more
            found = self.annotated(binding.annotation) or found
        if len(found) == 1 and found[0].kind == "instance":
            node = binding.node
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            name = target.id if isinstance(target, ast.Name) else ""
            return [Value("instance", found[0].scope, made=found[0].made, name=name)]
        return found

    def _parameter(self, binding: Binding) -> list[Value]:
        if binding.how == "*":
            return []
        found = self.annotated(binding.annotation)
        function = binding.scope
        if (
            not found
            and binding.index == 0
            and function.is_method()
            and "staticmethod" not in decorators(function.node)
        ):
            is_class = "classmethod" in decorators(function.node) or function.name in ("__new__", "__init_subclass__")
            return [Value("class" if is_class else "instance", function.above)]
        return found

    def annotated(self, annotation: ast.expr | None) -> list[Value]:
        """Instances of the classes that an annotation names."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = self._unquoted(annotation)
        if isinstance(annotation, ast.BinOp):
            return [*self.annotated(annotation.left), *self.annotated(annotation.right)]
        if isinstance(annotation, ast.Subscript):
            head = last_name(annotation.value)
            if head not in _TRANSPARENT:
                return []
            inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
            found = [value for each in (inside[:1] if head in ("A", "Annotated") else inside) for value in self.annotated(each)]  # fmt: skip
            return [Value("class", value.scope) for value in found] if head in ("type", "Type") else found
        if isinstance(annotation, (ast.Name, ast.Attribute)):
            return [Value("instance", value.scope, made=annotation) for value in self.infer(annotation) if value.kind == "class"]  # fmt: skip
        return []

    def _unquoted(self, annotation: ast.Constant) -> ast.expr | None:
        if id(annotation) not in self._quoted:
            try:
                found: ast.expr | None = ast.parse(str(annotation.value)[:400], mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                found = None
            for node in walk(found) if found else ():
                node.__dict__["_scope"] = scope_of(annotation)
            self._quoted[id(annotation)] = found
        return self._quoted[id(annotation)]

    def member(self, module: Module, name: str, seen: tuple[tuple[str, str], ...] = ()) -> list[Value]:
        """What ``module.name`` is: its own, a re-export, an entry of a lazy table, or a module below."""
        if (module.name, name) in seen or len(seen) > 20:
            return []
        seen = (*seen, (module.name, name))
        table = self.table(module)
        if name in table:
            return [Value("table", module=module, name=name, made=table[name])]
        bindings = [binding for binding in module.scope.named(name) if binding.kind != "mutation"]
        if table:
            bindings = [binding for binding in bindings if not is_for_types_only(binding.node)]
        if bindings:
            return [value for binding in bindings for value in self.bound(binding, seen)]
        below = self.trees.module(f"{module.name}.{name}") if module.is_package else None
        return [Value("module", module=below)] if below else self._starred(module, name, seen)

    def _starred(self, module: Module, name: str, seen: tuple[tuple[str, str], ...]) -> list[Value]:
        for binding in module.scope.declared.get("*", ()):
            source = self.trees.module(binding.source[0]) if binding.source else None
            if source and source is not module:
                found = self.member(source, name, seen)
                if found:
                    return found
        return []

    def table(self, module: Module) -> dict[str, ast.expr]:
        """The entries of a module whose ``__getattr__`` returns ``TABLE[name]()``, as ``vllm.envs`` does."""
        if id(module) not in self._tables:
            self._tables[id(module)] = self._found_table(module)
        return self._tables[id(module)]

    def _found_table(self, module: Module) -> dict[str, ast.expr]:
        for function in module.functions("__getattr__"):
            for node in walk(*function.body, into_functions=False):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name)):  # fmt: skip
                    continue
                for binding in module.scope.named(node.func.value.id):
                    if isinstance(binding.value, ast.Dict):
                        pairs = zip(binding.value.keys, binding.value.values, strict=True)
                        return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
        return {}

    # calls, classes, attributes

    def called(self, value: Value, call: ast.Call | None) -> list[Value]:
        """What calling a value gives."""
        if value.kind == "class":
            return [Value("instance", value.scope, made=call)]
        if value.kind in ("function", "bound", "property") and value.scope:
            node = value.scope.node
            if isinstance(node, ast.Lambda):
                return self.infer(node.body)
            declared = self.annotated(getattr(node, "returns", None))
            return declared or [
                found for each in returns(value.scope) if each.value is not None for found in self.infer(each.value)
            ]
        if value.kind == "table" and value.made is not None:
            return [found for entry in self.infer(value.made) for found in self.called(entry, call)]
        if value.kind == "external":
            return self._external_call(value, call)
        return []

    def _external_call(self, value: Value, call: ast.Call | None) -> list[Value]:
        if value.dotted == "builtins.super" and call is not None:
            around = scope_of(call).enclosing_class()
            return [Value("instance", base) for base in self.bases(around)] if around else []
        if value.dotted.startswith("copy.") and call is not None and call.args:
            return self.infer(call.args[0])
        if value.dotted == "typing.cast" and call is not None and len(call.args) == 2:
            return self.annotated(call.args[0])
        return [Value("external", dotted=value.dotted + "()")] if len(value.dotted) < 200 else []

    def bases(self, scope: Scope) -> list[Scope]:
        node = scope.node
        found = [
            value.scope for base in getattr(node, "bases", []) for value in self.infer(base) if value.kind == "class"
        ]
        return [base for base in found if base]

    def mro(self, scope: Scope) -> list[Scope]:
        """A class and its bases that are in the trees, nearest first."""
        if id(scope) not in self._mro:
            found: dict[int, Scope] = {}
            pending = [scope]
            while pending and len(found) < 60:
                each = pending.pop(0)
                if id(each) not in found:
                    found[id(each)] = each
                    pending.extend(self.bases(each))
            self._mro[id(scope)] = list(found.values())
        return self._mro[id(scope)]

    def is_related(self, one: Scope, other: Scope) -> bool:
        return one in self.mro(other) or other in self.mro(one)

    def attribute(self, value: Value, name: str) -> list[Value]:
        """What ``value.name`` is."""
        if value.kind == "module" and value.module:
            return self.member(value.module, name) or [Value("unknown", dotted=f"{value.module.name}.{name}")]
        if value.kind == "external":
            return [Value("external", dotted=f"{value.dotted}.{name}")] if len(value.dotted) < 200 else []
        if value.kind not in ("instance", "class") or value.scope is None:
            return []
        for scope in self.mro(value.scope):
            bindings = [binding for binding in scope.named(name) if binding.kind != "mutation"]
            if bindings:
                return [each for binding in bindings for each in self._class_member(binding, value, name)] or [Value("field", scope, name=name)]  # fmt: skip
            writes = self.own_writes(scope, name)
            if writes:
                given = [each for write in writes if write.value is not None and write.how == "=" for each in self.infer(write.value)]  # fmt: skip
                return given or [Value("field", scope, name=name)]
        return []

    def _class_member(self, binding: Binding, receiver: Value, name: str) -> Iterator[Value]:
        for value in self.bound(binding):
            if value.kind == "property":
                yield from self.called(value, None)
            elif value.kind == "function":
                yield Value("bound", value.scope, receiver=receiver)
            elif value.kind == "instance":
                yield Value("instance", value.scope, made=value.made, name=value.name or name)
            else:
                yield value

    def own_writes(self, scope: Scope, name: str) -> list[AttributeWrite]:
        """``self.name = value`` in the methods of a class."""
        found: list[AttributeWrite] = []
        for method in scope.inner:
            if method.facts is not None and name not in method.facts.writes:
                continue
            for each in method.all_inner() if method.kind == "function" else ():
                found += [write for write in each.writes if write.target.attr == name and isinstance(write.target.value, ast.Name) and write.target.value.id in ("self", "cls")]  # fmt: skip
        return found

    def owner(self, scope: Scope, name: str) -> Scope | None:
        """The class that has an attribute, among a class and its bases."""
        return next((each for each in self.mro(scope) if each.named(name) or self.own_writes(each, name)), None)

    def method(self, scope: Scope, name: str) -> Scope | None:
        for each in self.mro(scope):
            for binding in each.named(name):
                if binding.kind == "def":
                    return inner_scope(binding.node)
        return None

    def subclasses(self, scope: Scope) -> list[Scope]:
        """A class and the classes of the trees that inherit from it."""
        if id(scope) not in self._below:
            self._below[id(scope)] = self._inheriting(scope)
        return self._below[id(scope)]

    def _inheriting(self, scope: Scope) -> list[Scope]:
        found, pending = [scope], [scope]
        while pending:
            base = pending.pop()
            for tree, path, facts in self.trees.facts_with(base.name):
                if not any(base.name in each for declared in facts.classes for each in declared.bases):
                    continue
                module = tree.module(path)
                for each in module.classes() if module else ():
                    if each not in found and len(found) < _MAX_SUBCLASSES and base in self.bases(each):
                        found.append(each)
                        pending.append(each)
        return found

    def overrides(self, method: Scope, receiver: Scope, most: int = 8) -> list[Scope]:
        """Methods of subclasses that may run in place of one, those of other hardware last."""
        key = (id(method), id(receiver))
        if key not in self._replaced:
            found: list[Scope] = []
            if method.above and method.above.kind == "class":
                defining = [
                    (tree, path)
                    for tree, path, facts in self.trees.facts_with(method.name, spelled=spelling.owning(method.name))
                    if any(method.name in declared.members for declared in facts.classes)
                ]
                for tree, path in defining if len(defining) <= 60 else ():
                    module = tree.module(path)
                    for each in module.classes() if module else ():
                        if each is not method.above and method.name in each.declared and (receiver in self.mro(each) or method.above in self.mro(each)):  # fmt: skip
                            found += [inner_scope(binding.node) for binding in each.named(method.name) if binding.kind == "def"]  # fmt: skip
            found.sort(key=lambda scope: FOREIGN.search(scope.module.name) is not None)
            self._replaced[key] = found[:most]
        return self._replaced[key]

    # constants

    def strings(self, node: ast.expr | None, depth: int = 0) -> frozenset[str] | None:
        """The constant strings an expression can be; None when that is not known."""
        if depth > 6 or node is None:
            return None
        if isinstance(node, ast.Constant):
            return frozenset((node.value,)) if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return self._joined([part.value if isinstance(part, ast.FormattedValue) else part for part in node.values], depth)  # fmt: skip
        if isinstance(node, ast.BinOp):
            return self._joined([node.left, node.right], depth) if isinstance(node.op, ast.Add) else None
        if isinstance(node, ast.IfExp):
            one, other = self.strings(node.body, depth + 1), self.strings(node.orelse, depth + 1)
            return one | other if one and other else None
        if isinstance(node, ast.Name):
            bindings, scope = self.lookup(node.id, scope_of(node))
            return self._of_bindings(self.at_use(node, bindings, scope) if scope else [], depth)
        if isinstance(node, ast.Attribute):
            return self._of_bindings(self._attribute_bindings(node), depth)
        return None

    def _joined(self, parts: list[ast.expr], depth: int) -> frozenset[str] | None:
        found = frozenset(("",))
        for part in parts:
            each = self.strings(part, depth + 1)
            if not each or len(found) * len(each) > 64:
                return None
            found = frozenset(one + other for one in found for other in each)
        return found

    def _attribute_bindings(self, node: ast.Attribute) -> list[Binding]:
        for value in self.infer(node.value):
            if value.kind == "module" and value.module:
                return value.module.scope.named(node.attr)
            if value.kind in ("class", "instance") and value.scope:
                own = next((each.named(node.attr) for each in self.mro(value.scope) if each.named(node.attr)), [])
                if not own or isinstance(value.made, ast.Call) or value.kind == "class":
                    return own
                # known by its annotation alone: it may be of a class that gives the attribute another value
                return [
                    *own,
                    *(each for other in self.subclasses(value.scope)[1:] for each in other.declared.get(node.attr, ())),
                ]
        return []

    def _of_bindings(self, bindings: list[Binding], depth: int) -> frozenset[str] | None:
        found: frozenset[str] = frozenset()
        for binding in bindings:
            each = self._of_binding(binding, depth)
            if not each:
                return None
            found |= each
        return found or None

    def _of_binding(self, binding: Binding, depth: int) -> frozenset[str] | None:
        if binding.kind in ("assign", "annotated") and binding.value is not None and binding.index is None:
            return self.strings(binding.value, depth + 1)
        if (
            binding.kind == "for"
            and binding.index is None
            and isinstance(binding.value, (ast.Tuple, ast.List, ast.Set))
        ):
            each = [self.strings(element, depth + 1) for element in binding.value.elts]
            return frozenset().union(*(one for one in each if one)) if all(each) else None
        if binding.kind == "import" and binding.source and binding.source[1]:
            module = self.trees.module(binding.source[0])
            return self._of_bindings(module.scope.named(binding.source[1]), depth + 1) if module else None
        return None

    def external(self, node: ast.expr) -> str | None:
        """The dotted name outside the trees that an expression is: ``os.environ`` through any alias."""
        return next((value.dotted for value in self.infer(node) if value.kind == "external"), None)


def last_name(node: ast.AST) -> str:
    """``c`` of ``a.b.c``, ``c()`` and ``c[...]``."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def decorators(node: ast.AST) -> list[str]:
    """The last names of the decorators."""
    return [last_name(each) for each in getattr(node, "decorator_list", ())]


def returns(scope: Scope) -> list[ast.Return]:
    """The return statements of a function, in the order of the text."""
    return [node for node in walk(*scope.body, into_functions=False) if isinstance(node, ast.Return)]


def is_for_types_only(node: ast.AST) -> bool:
    """Whether a node stands below ``if TYPE_CHECKING``."""
    return any(isinstance(above, ast.If) and last_name(above.test) == "TYPE_CHECKING" for above in ancestors(node))


def argument_for(function: Scope, call: ast.Call, name: str) -> tuple[ast.expr | None, bool]:
    """The expression that a call passes for a parameter; ``(None, True)`` when the default is used, ``(None, False)``
    when ``*`` or ``**`` hides it."""
    node: Callable = function.node  # type: ignore[assignment]
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value, False
    is_starred = any(isinstance(each, ast.Starred) for each in call.args) or any(kw.arg is None for kw in call.keywords)
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    if name in positional:
        is_bound = function.is_method() and isinstance(node, FUNCTIONS) and "staticmethod" not in decorators(node)
        at = positional.index(name) - is_bound
        if 0 <= at < len(call.args) and not any(isinstance(each, ast.Starred) for each in call.args[: at + 1]):
            return call.args[at], False
    return None, not is_starred

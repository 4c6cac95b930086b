"""Reads of environment variables: direct ones, through wrapper functions, through descriptors and lazy tables.

os.environ.get("CUDA_HOME")            direct, under any alias of os, environ or getenv
get_bool_env_var("SGLANG_X")           a wrapper: its parameter is the key
SGLANG_X = EnvBool(False)              a descriptor: the name of the attribute is the key
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gpuwhy.source.facts import FileFacts, FunctionFacts
from gpuwhy.source.resolving import Resolver, Value, argument_for
from gpuwhy.source.scopes import Scope, ancestors, module_of, parent, scope_of, walk
from gpuwhy.source.trees import Tree

READS = frozenset({"read", "test", "pop", "setdefault", "declared"})
_METHODS = {"get": "read", "pop": "pop", "setdefault": "setdefault", "__getitem__": "read", "__contains__": "test"}
_WHOLE = frozenset({"copy", "items", "keys", "values"})
_ENVIRON = ("os.environ", "os.environb")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,118}")
_MAX_WRAPPER_CALLS = 4000
ENVIRONMENT_WORDS = ("environ", "getenv", "environb")
"""A file that touches the environment by itself spells one of them."""


class Touch:
    """One touch of the environment. ``names`` are the possible keys, empty when they are not constant; ``kind`` as in
    :class:`facts.EnvTouch`, or declared. ``via`` is the wrapper or descriptor."""

    __slots__ = ("default", "key", "kind", "names", "node", "via")

    def __init__(
        self,
        kind: str,
        node: ast.AST,
        names: frozenset[str] = frozenset(),
        key: ast.expr | None = None,
        default: ast.expr | None = None,
        via: str = "",
    ) -> None:
        self.kind = kind
        self.node = node
        self.names = names
        self.key = key
        self.default = default
        self.via = via

    @property
    def is_read(self) -> bool:
        return self.kind in READS


class Environment:
    """Finds touches of the environment with a resolver."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._wrapped: dict[int, tuple[str, str, ast.expr | None] | None] = {}
        self._modes: dict[tuple[int, str], str] = {}

    # one node

    def direct(self, node: ast.AST) -> Touch | None:
        """The touch that a node is, through any alias of ``os.environ`` and ``os.getenv``."""
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript) and self._is_environ(node.value):
            kind = "write" if isinstance(node.ctx, ast.Store) else "delete" if isinstance(node.ctx, ast.Del) else "read"
            return self._keyed(kind, node, node.slice, None)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)) and self._is_environ(node.comparators[0]):  # fmt: skip
            return self._keyed("test", node, node.left, None)
        return None

    def _call(self, node: ast.Call) -> Touch | None:
        called = node.func
        if isinstance(called, ast.Attribute) and self._is_environ(called.value):
            if called.attr in _METHODS and node.args:
                return self._keyed(_METHODS[called.attr], node, node.args[0], _default_of(node))
            if called.attr in _WHOLE:
                return Touch("whole", node)
            if called.attr == "update":
                return Touch("write", node)
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if node.args and (name == "getenv" or isinstance(called, ast.Name)) and self._resolver.external(called) == "os.getenv":  # fmt: skip
            return self._keyed("read", node, node.args[0], _default_of(node))
        return None

    def _is_environ(self, node: ast.expr) -> bool:
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._resolver.external(node) in _ENVIRON
        return False

    def _keyed(self, kind: str, node: ast.AST, key: ast.expr, default: ast.expr | None) -> Touch:
        names = self._resolver.strings(key) or frozenset()
        return Touch(kind, node, names - {""}, key, default)

    # wrappers and descriptors

    def wrapper(self, scope: Scope) -> tuple[str, str, ast.expr | None] | None:
        """(parameter that is the key, kind, default) when a function reads the variable that it is given the name of;
        also through another wrapper."""
        if id(scope) not in self._wrapped:
            self._wrapped[id(scope)] = None
            self._wrapped[id(scope)] = self._found_wrapper(scope)
        return self._wrapped[id(scope)]

    def _found_wrapper(self, scope: Scope) -> tuple[str, str, ast.expr | None] | None:
        # functions inside too: a factory gives back one that reads the variable it was made for
        for call in walk(*scope.body):
            if not isinstance(call, (ast.Call, ast.Subscript, ast.Compare)) or "_scope" not in call.__dict__:
                continue
            touch = self.direct(call)
            if touch and touch.key is not None and touch.is_read:
                name = self._parameter(touch.key, scope)
                if name:
                    return name, touch.kind, touch.default
            elif touch is None and isinstance(call, ast.Call) and len(scope.body) < 40:
                for value in self._resolver.infer(call.func):
                    if value.kind in ("function", "bound") and value.scope and value.scope is not scope:
                        inner = self.wrapper(value.scope)
                        given = argument_for(value.scope, call, inner[0])[0] if inner else None
                        name = self._parameter(given, scope) if given is not None else ""
                        if inner and name:
                            return name, inner[1], inner[2]
        return None

    def _parameter(self, node: ast.expr, scope: Scope) -> str:
        """The parameter of a function that an expression is, or is an element of; empty when it is none."""
        owner, name = self._parameter_of(node)
        return name if owner is scope else ""

    def _owner_of_parameter(self, node: ast.expr) -> Scope | None:
        return self._parameter_of(node)[0]

    def _parameter_of(self, node: ast.expr, depth: int = 0) -> tuple[Scope | None, str]:
        """The function and its parameter that a name is: itself, or as each of several names that are passed."""
        if not isinstance(node, ast.Name) or depth > 2:
            return None, ""
        bindings, found = self._resolver.lookup(node.id, scope_of(node))
        kinds = {binding.kind for binding in bindings}
        if kinds == {"for"} and len(bindings) == 1 and bindings[0].index is None and bindings[0].value is not None:
            return self._parameter_of(bindings[0].value, depth + 1)
        if found is None or found.kind != "function" or kinds != {"param"}:
            return None, ""
        return (None, "") if found.is_method() and bindings[0].index == 0 else (found, node.id)

    def _passed(self, scope: Scope, call: ast.Call, name: str) -> tuple[list[ast.expr], frozenset[str]]:
        """What a call passes for the parameter of a wrapper that is the key: the expressions whose names are not known,
        and the names of the others."""
        arguments = getattr(scope.node, "args", None)
        if arguments is not None and arguments.vararg is not None and arguments.vararg.arg == name:
            given: list[ast.expr] = call.args[len([*arguments.posonlyargs, *arguments.args]) - scope.is_method() :]
        else:
            passed = argument_for(scope, call, name)[0]
            given = [] if passed is None else [passed]
        found = [(each, self._resolver.strings(each)) for one in given for each in self._elements(one)]
        return [each for each, names in found if not names], frozenset().union(*(names or () for _, names in found)) - {
            ""
        }

    def _elements(self, node: ast.expr) -> list[ast.expr]:
        """The expressions of a list that is written out, also where a local name stands for it; else the one itself."""
        inner = node.value if isinstance(node, ast.Starred) else node
        if isinstance(inner, ast.Name):
            bindings, scope = self._resolver.lookup(inner.id, scope_of(inner))
            values = [binding.value for binding in self._resolver.at_use(inner, bindings, scope)] if scope else []
            listed = values[0] if len(values) == 1 and isinstance(values[0], (ast.List, ast.Tuple, ast.Set)) else None
            inner = listed or inner
        return list(inner.elts) if isinstance(inner, (ast.List, ast.Tuple, ast.Set)) else [inner]

    def through(self, value: Value, call: ast.Call) -> Touch | None:
        """The touch that a call of a wrapper, or of a method of a descriptor, is."""
        scope = value.scope
        if scope is None or isinstance(scope.node, ast.Lambda):
            return None
        found = self.wrapper(scope)
        if found:
            key = argument_for(scope, call, found[0])[0]
            names = self._passed(scope, call, found[0])[1]
            if names:
                default = next((each for each in call.args if each is not key), None) if key is not None else None
                default = default or next((kw.value for kw in call.keywords if kw.arg in ("default", "default_value")), found[2])  # fmt: skip
                return Touch(found[1], call, names, key, default, scope.qualname)
            return None
        return self._through_descriptor(value, call)

    def _through_descriptor(self, value: Value, call: ast.Call) -> Touch | None:
        receiver = value.receiver
        if value.kind != "bound" or receiver is None or receiver.kind != "instance" or receiver.scope is None:
            return None
        field = self.descriptor_field(receiver.scope)
        if not field or not self._uses_field(value.scope, receiver.scope):
            return None
        made = receiver.made if isinstance(receiver.made, ast.Call) else None
        name = self._declared_name(receiver.scope, field, receiver.name, made)
        default = made.args[0] if made and made.args else None
        return Touch("read", call, name, None, default, receiver.scope.name) if name else None

    def _uses_field(self, method: Scope | None, scope: Scope, depth: int = 0) -> bool:
        """Whether a method reads the environment, itself or through others of the descriptor."""
        if method is None or depth > 3:
            return False
        for node in walk(*method.body, into_functions=False):
            if isinstance(node, (ast.Call, ast.Subscript, ast.Compare)):
                touch = self.direct(node)
                if touch and touch.is_read and _self_field(touch.key):
                    return True
                called = node.func if isinstance(node, ast.Call) else None
                for value in self._resolver.infer(called) if isinstance(called, ast.Attribute) else ():
                    if value.kind == "bound" and self._uses_field(value.scope, scope, depth + 1):
                        return True
        return False

    def descriptor_field(self, scope: Scope) -> str:
        """The attribute of a class that holds the name of the variable which its methods read."""
        for each in self._resolver.mro(scope):
            for method in each.inner:
                if method.kind != "function" or (method.facts and not method.facts.environment):
                    continue
                for node in walk(*method.body, into_functions=False):
                    touch = self.direct(node) if isinstance(node, (ast.Call, ast.Subscript, ast.Compare)) else None
                    if touch and touch.is_read and _self_field(touch.key):
                        return _self_field(touch.key)
        return ""

    def _mode(self, scope: Scope, field: str) -> str:
        """How a descriptor learns its name: ``set_name``, or a parameter of ``__init__``."""
        key = (id(scope), field)
        if key not in self._modes:
            self._modes[key] = ""
            for each in self._resolver.mro(scope):
                for name in ("__set_name__", "__init__"):
                    method = next((one for one in each.inner if one.name == name), None)
                    for write in method.writes if method else ():
                        if write.target.attr == field and isinstance(write.value, ast.Name) and not self._modes[key]:
                            self._modes[key] = "set_name" if name == "__set_name__" else write.value.id
        return self._modes[key]

    def _declared_name(self, scope: Scope, field: str, attribute: str, made: ast.Call | None) -> frozenset[str]:
        mode = self._mode(scope, field)
        if mode == "set_name":
            return frozenset((attribute,)) if attribute else frozenset()
        constructor = self._resolver.method(scope, "__init__")
        if mode and constructor and made:
            given, _ = argument_for(constructor, made, mode)
            return (self._resolver.strings(given) if given is not None else None) or frozenset()
        return frozenset()

    # a whole tree

    def catalogue(self, *, tests: bool = True) -> list[Touch]:
        """Every touch in the opened trees, with those through wrappers and descriptors."""
        found: list[Touch] = []
        wrappers: dict[int, Scope] = {}
        descriptors: dict[int, Scope] = {}
        for node in self._suspects(tests):
            touch = self.direct(node)
            if touch is None:
                continue
            found.append(touch)
            if touch.key is not None and not touch.names:
                self._indirect(touch, wrappers, descriptors)
        self._through_wrappers(wrappers, found, tests)
        self._through_descriptors(list(descriptors.values()), found, tests)
        return found

    def _indirect(self, touch: Touch, wrappers: dict[int, Scope], descriptors: dict[int, Scope]) -> None:
        around = scope_of(touch.node).function()
        if around.kind == "function" and touch.key is not None:
            if _self_field(touch.key) and around.enclosing_class():
                owner = around.enclosing_class()
                if owner:
                    descriptors[id(owner)] = owner
                    touch.kind += ".descriptor"
            else:
                function = self._owner_of_parameter(touch.key)
                if function and not isinstance(function.node, ast.Lambda):
                    wrappers[id(function)] = function
                    touch.kind += ".wrapper"

    def _suspects(self, tests: bool) -> Iterator[ast.AST]:
        seen: set[int] = set()
        for word in ENVIRONMENT_WORDS:
            for scope in self._resolver.trees.units(word, tests=tests):
                if id(scope) in seen or (scope.facts is not None and not _is_suspect(scope.facts, scope.module.facts)):
                    continue
                seen.add(id(scope))
                nodes = scope.module.tree.body if scope.kind == "module" else scope.body
                for node in walk(*nodes):
                    if isinstance(node, (ast.Call, ast.Subscript, ast.Compare)) and "_scope" in node.__dict__:
                        yield node

    def _through_wrappers(self, wrappers: dict[int, Scope], found: list[Touch], tests: bool) -> None:
        done: set[int] = set()
        while wrappers:
            key, scope = wrappers.popitem()
            if key in done:
                continue
            done.add(key)
            wrapped = self.wrapper(scope)
            for call in self._calls_of(scope, tests) if wrapped else ():
                unknown, names = self._passed(scope, call, wrapped[0]) if wrapped else ([], frozenset())
                if names and wrapped:
                    found.append(Touch(wrapped[1], call, names, None, None, scope.qualname))
                for given in unknown if wrapped else ():
                    touch = Touch(wrapped[1] if wrapped else "", call, frozenset(), given, None, scope.qualname)
                    found.append(touch)
                    around = self._owner_of_parameter(given)
                    if around and not isinstance(around.node, ast.Lambda) and self.wrapper(around):
                        wrappers[id(around)] = around
                        touch.kind += ".wrapper"

    def _calls_of(self, scope: Scope, tests: bool) -> Iterator[ast.Call]:
        """Calls of a function whose receiver is known: by name alone every ``x.get()`` would be a read."""
        for count, call in enumerate(calls_of(self._resolver, scope, tests=tests, by_name=False)):
            if count >= _MAX_WRAPPER_CALLS:
                return
            yield call

    def _through_descriptors(self, owners: list[Scope], found: list[Touch], tests: bool) -> None:
        for owner in owners:
            field = self.descriptor_field(owner)
            for scope in self._resolver.subclasses(owner) if field else ():
                found += self._declared(scope, field, tests)

    def _declared(self, scope: Scope, field: str, tests: bool) -> Iterator[Touch]:
        for unit in self._resolver.trees.units(scope.name, tests=tests, calls=scope.name):
            for call in unit.calls:
                called = call.func
                name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""  # fmt: skip
                if name != scope.name or not any(value.kind == "class" and value.scope is scope for value in self._resolver.infer(called)):  # fmt: skip
                    continue
                bound = parent(call)
                target = bound.targets[0] if isinstance(bound, ast.Assign) else getattr(bound, "target", None)
                attribute = target.id if isinstance(target, ast.Name) and scope_of(call).kind == "class" else ""
                names = self._declared_name(scope, field, attribute, call)
                if names:
                    yield Touch("declared", call, names, None, call.args[0] if call.args else None, scope.name)


def calls_of(resolver: Resolver, function: Scope, *, tests: bool = False, by_name: bool = True) -> Iterator[ast.Call]:
    """The calls of a function in the opened trees, through imports under other names and through overridden methods.

    ``by_name`` adds calls of a method on a receiver that is not known; such a call has ``_by_name`` set.
    """
    above = function.above
    is_constructor = function.name == "__init__" and above is not None
    name = above.name if is_constructor and above else function.name
    owner = above if above is not None and above.kind == "class" else None
    for tree, path, facts in resolver.trees.facts_with(name, tests=tests):
        names = {name, *(each.name for each in facts.imports if each.member == name)}
        for call in _calls_named(tree, path, facts, names):
            values = resolver.infer(call.func)
            is_hit = any(
                (value.kind in ("function", "bound") and value.scope is function)
                or (value.kind == "class" and is_constructor and value.scope is owner)
                for value in values
            )
            if not is_hit and owner is not None and not is_constructor:
                is_hit = any(value.kind == "bound" and value.scope and value.scope.above in resolver.mro(owner) for value in values)  # fmt: skip
            if not is_hit and by_name and owner is not None and not values and isinstance(call.func, ast.Attribute):
                call.__dict__["_by_name"] = is_hit = True
            if is_hit:
                yield call


def _calls_named(tree: Tree, path: str, facts: FileFacts, names: set[str]) -> Iterator[ast.Call]:
    units = [unit for unit in facts.functions if not names.isdisjoint(unit.calls)]
    module = tree.module(path) if units else None
    for unit in units if module else ():
        scopes = [module.scope] if module and not unit.qualname else module.functions(unit.qualname, unit.line) if module else []  # fmt: skip
        for scope in scopes:
            for call in scope.calls:
                called = call.func
                name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""  # fmt: skip
                if name in names:
                    yield call


def compared_with(node: ast.AST) -> tuple[str, ...]:
    """The literals that a value is compared with, through ``.lower()``, ``.strip()`` and ``int()`` around it."""
    below, above = node, parent(node)
    for _ in range(6):
        if isinstance(above, ast.Compare):
            literals = [each for side in (above.left, *above.comparators) for each in walk(side) if isinstance(each, ast.Constant)]  # fmt: skip
            inside = set(map(id, walk(below)))
            return tuple(dict.fromkeys(str(each.value) for each in literals if id(each) not in inside))
        if not isinstance(above, (ast.Attribute, ast.Call)):
            break
        below, above = above, parent(above)
    return ()


def _default_of(call: ast.Call) -> ast.expr | None:
    if len(call.args) > 1:
        return call.args[1]
    return next((keyword.value for keyword in call.keywords if keyword.arg == "default"), None)


def _self_field(node: ast.expr | None) -> str:
    is_field = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_field and isinstance(node, ast.Attribute) else ""


def _is_suspect(unit: FunctionFacts, facts: FileFacts) -> bool:
    """Whether a function may touch the environment: it names it, or an alias that the file gives it."""
    aliases = {each.name for each in facts.imports if each.member in ("environ", "getenv", "environb")}
    return bool(
        unit.environment
        or not {"environ", "getenv", "environb", "os.environ"}.isdisjoint((*unit.names, *unit.reads, *unit.calls, *unit.keys))
        or not aliases.isdisjoint((*unit.names, *unit.calls))
    )  # fmt: skip


def when_read(node: ast.AST) -> str:
    """``on import of MODULE`` or ``when FUNCTION runs``."""
    function = scope_of(node).function()
    if function.kind in ("module", "class"):
        return f"on import of {module_of(node).name}"
    is_lambda = any(isinstance(above, ast.Lambda) for above in ancestors(node))
    return "when it is asked for" if is_lambda else f"when {function.qualname}() runs"


def is_name(text: str) -> bool:
    """Whether a text can be the name of a variable."""
    return _NAME.fullmatch(text) is not None

"""Command-line options and configuration fields: argparse, click, and fields that an option is generated from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gpuwhy.source.dynamic import Dynamic
from gpuwhy.source.facts import Option
from gpuwhy.source.resolving import Resolver, last_name
from gpuwhy.source.scopes import Binding, Scope, module_of, scope_of, walk

_DECLARING = ("add_argument", "option")
_CONFIGURING = ("Args", "Config", "Settings", "Options", "Params")
_MAX_CHOICES = 40


class Flag:
    """An option: its longest name, the call or field that declares it, its default and choices as written or resolved."""

    __slots__ = ("choices", "default", "name", "node", "note")

    def __init__(self, name: str, node: ast.AST, default: str, choices: tuple[str, ...], note: str = "") -> None:
        self.name = name
        self.node = node
        self.default = default
        self.choices = choices
        self.note = note


class Options:
    """Finds the options that set a field."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._dynamic = Dynamic(resolver)
        self._flags: dict[str, list[Flag]] = {}

    def of_field(self, scope: Scope, name: str) -> list[Flag]:
        """The options whose destination is the field of a class, in the package of the class."""
        package = scope.module.name.partition(".")[0]
        is_configuration = any(word in scope.name for word in _CONFIGURING)
        declared = next(
            (binding.value for binding in scope.named(name) if isinstance(binding.value, ast.Constant)), None
        )
        return [
            Flag(flag.name, flag.node, str(declared.value), flag.choices, flag.note)
            if declared and "(" in flag.default
            else flag
            for flag in self.with_destination(name)
            if module_of(flag.node).name.partition(".")[0] == package
            and (is_configuration or module_of(flag.node) is scope.module or self._is_collected(scope, flag))
        ]

    def _is_collected(self, scope: Scope, flag: Flag) -> bool:
        """Whether the module that declares an option puts a class together with others, as its own configuration."""
        collected = self._dynamic.collected_by(scope, module_of(flag.node).scope)
        if collected is not None:
            flag.note = f"{scope.qualname} is collected at {module_of(flag.node).path}:{collected.lineno}"
        return collected is not None

    def with_destination(self, name: str) -> list[Flag]:
        """The options that are stored under a name, wherever they are declared."""
        if name not in self._flags:
            self._flags[name] = list(self._declared(name))
        return self._flags[name]

    def _declared(self, name: str) -> Iterator[Flag]:
        trees = self._resolver.trees
        seen: set[tuple[str, int]] = set()
        for declaring in _DECLARING:
            for words in {(name,), tuple(word for word in name.split("_") if word)}:
                for tree, path, facts in trees.facts_with(declaring, *words):
                    lines = {option.line: option for unit in facts.functions for option in unit.options if option.dest == name}  # fmt: skip
                    lines = {line: option for line, option in lines.items() if (path, line) not in seen}
                    seen |= {(path, line) for line in lines}
                    module = tree.module(path) if lines else None
                    for unit in module.units(calls=declaring) if module else ():
                        for call in unit.calls:
                            option = lines.pop(call.lineno, None) if last_name(call.func) == declaring else None
                            if option:
                                yield self._flag(call, option)

    def _flag(self, call: ast.Call, option: Option) -> Flag:
        given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        default = self._shown(given["default"]) if "default" in given else ""
        if not default and isinstance(given.get("action"), ast.Constant):
            default = "False" if given["action"].value == "store_true" else "True" if given["action"].value == "store_false" else ""  # type: ignore[attr-defined]  # fmt: skip
        choices = self._choices(given.get("choices") or given.get("type"))
        long = [name for name in option.names if name.startswith("--")]
        return Flag((long or list(option.names))[0].split("/")[0], call, default, choices)

    def from_field(self, binding: Binding, name: str) -> Flag | None:
        """The option that is generated from an annotated field: ``backend: A[str, Arg(choices=...)] = None``."""
        annotation = binding.annotation
        if not (isinstance(annotation, ast.Subscript) and last_name(annotation.value) in ("A", "Annotated")):
            return None
        option, choices = "--" + name.replace("_", "-"), ()  # type: tuple[str, tuple[str, ...]]
        for node in walk(annotation):
            if not (isinstance(node, ast.Call) and last_name(node.func) in ("Arg", "Option", "Argument")):
                continue
            for keyword in node.keywords:
                if keyword.arg == "no_cli" and getattr(keyword.value, "value", False):
                    return None
                if keyword.arg == "cli_name" and isinstance(keyword.value, ast.Constant):
                    option = str(keyword.value.value)
                if keyword.arg == "choices":
                    choices = self._choices(keyword.value)
        default = self._shown(binding.value) if binding.value is not None else ""
        return Flag(option, binding.node, default, choices, "made from the annotated field")

    def _shown(self, node: ast.expr) -> str:
        """A default as the source has it, or the constant behind it."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        for binding in self._behind(node):
            if isinstance(binding.value, ast.Constant):
                return str(binding.value.value)
        return module_of(node).text(node, 80)

    def _behind(self, node: ast.expr) -> list[Binding]:
        if isinstance(node, ast.Name):
            scope = self._resolver.lookup(node.id, scope_of(node))[1]
            local = scope_of(node).function()
            changed = [each for each in local.named(node.id) if each.kind == "mutation"] if local is not scope else []
            return [*(scope.named(node.id) if scope else []), *changed]
        if isinstance(node, ast.Attribute):
            for value in self._resolver.infer(node.value):
                if value.kind in ("class", "instance") and value.scope:
                    return value.scope.named(node.attr)
                if value.kind == "module" and value.module:
                    return value.module.scope.named(node.attr)
        return []

    def _choices(self, node: ast.expr | None, depth: int = 0) -> tuple[str, ...]:
        """The accepted values: literals, also behind a name, a sum of lists, an Enum or a Literal."""
        if node is None or depth > 6:
            return ()
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            found: list[str] = []
            for element in node.elts:
                inner = element.value if isinstance(element, ast.Starred) else element
                found += [str(inner.value)] if isinstance(inner, ast.Constant) else self._choices(inner, depth + 1)
            return tuple(dict.fromkeys(found))[:_MAX_CHOICES]
        if isinstance(node, ast.BinOp):
            return (*self._choices(node.left, depth + 1), *self._choices(node.right, depth + 1))[:_MAX_CHOICES]
        if isinstance(node, ast.Dict):
            return tuple(str(key.value) for key in node.keys if isinstance(key, ast.Constant))[:_MAX_CHOICES]
        if isinstance(node, ast.Call):
            called = (
                node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "copy") else None
            )
            listed = called or (node.args[0] if node.args else None)
            if last_name(node.func) in (
                "Choice",
                "list",
                "sorted",
                "tuple",
                "set",
                "frozenset",
                "keys",
                "copy",
                "get_args",
            ):
                return self._choices(listed, depth + 1)
            return ()
        if isinstance(node, ast.Subscript) and last_name(node.value) == "Literal":
            return self._choices(
                node.slice if isinstance(node.slice, ast.Tuple) else ast.Tuple(elts=[node.slice]), depth + 1
            )
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._choices_behind(node, depth)
        return ()

    def _choices_behind(self, node: ast.Name | ast.Attribute, depth: int) -> tuple[str, ...]:
        for value in self._resolver.infer(node):
            if value.kind == "class" and value.scope and "Enum" in " ".join(last_name(base) for base in getattr(value.scope.node, "bases", [])):  # fmt: skip
                members = [binding for bindings in value.scope.declared.values() for binding in bindings if binding.kind == "assign"]  # fmt: skip
                return tuple(str(each.value.value) for each in members if isinstance(each.value, ast.Constant))[:_MAX_CHOICES]  # fmt: skip
        found: list[str] = []
        for binding in self._followed(node):
            if binding.kind in ("assign", "annotated"):
                found += self._choices(binding.value, depth + 1)
            elif binding.kind == "mutation" and isinstance(binding.value, ast.Constant):
                found.append(str(binding.value.value))
        return tuple(dict.fromkeys(found))[:_MAX_CHOICES]

    def _followed(self, node: ast.Name | ast.Attribute) -> list[Binding]:
        """The bindings behind a name, through imports."""
        bindings = self._behind(node)
        for _ in range(6):
            sources = [binding.source for binding in bindings if binding.kind == "import" and binding.source]
            if not sources or sources[0][1] is None:
                break
            module = self._resolver.trees.module(sources[0][0])
            bindings = module.scope.named(sources[0][1]) if module else []
        return bindings


def is_configuration(scope: Scope) -> bool:
    """Whether a class is one that users set: its name says so."""
    return scope.name.endswith(("Args", "Config", "Settings", "Options"))

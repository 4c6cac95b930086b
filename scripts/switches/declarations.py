"""What one Python file declares: environment variables that it names, options that it adds to a command line."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence

from msgspec import Struct

_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9_.-]*")
_TOOL_LOOKUPS = ("env_nvidia_tool", "_path_to_binary")
"""Triton's functions that make TRITON_PTXAS_PATH of "ptxas"."""


class Option(Struct, frozen=True, order=True):
    """One argument of a command line: all its spellings, and whether it is a switch; None where the file does not tell.

    `field` is the field of a configuration class that says it, where the file refers to one.
    """

    names: tuple[str, ...]
    is_switch: bool | None = None
    field: str = ""


class Declarations(Struct, frozen=True):
    """Of one file. `booleans` and `others` are fields of classes by their type."""

    variables: frozenset[str] = frozenset()
    options: frozenset[Option] = frozenset()
    booleans: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


def declarations(source: bytes, prefixes: Sequence[str]) -> Declarations | None:
    """Read a file without running it; None when this Python cannot parse it.

    A variable counts when its name stands in a string of its own (a key, an argument) or is a field made by `Env...(...)`.
    A name in prose, in a comment, or in a list of names that have no effect any more does not.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    name = re.compile(rf"(?:{'|'.join(prefixes)})[A-Z0-9_]*[A-Z0-9]")
    booleans: set[str] = set()
    others: set[str] = set()
    for field in _fields(tree):
        (booleans if _is_boolean(field.annotation) else others).add(_target(field))
    return Declarations(
        frozenset(word for word in _variables(tree) if name.fullmatch(word)),
        frozenset(_options(tree)),
        frozenset(booleans),
        frozenset(others),
    )


def _variables(tree: ast.AST) -> Iterator[str]:
    without_effect = {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in _retired(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in without_effect:
            yield node.value
        elif (
            isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _called(node.value).startswith("Env")
        ):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Call) and _called(node) in _TOOL_LOOKUPS:
            yield from (f"TRITON_{tool.upper().replace('-', '_')}_PATH" for tool in _texts(node.args[:1]))


def _retired(table: ast.Dict) -> Iterator[ast.expr]:
    """Keys of SGLang's table of variables that do nothing but warn: those without another name that takes their value."""
    for key, value in zip(table.keys, table.values, strict=True):
        if key is not None and isinstance(value, ast.Call) and _called(value) == "_DeprecatedEnv":
            takes_over = value.args or any(keyword.arg == "replacement" for keyword in value.keywords)
            if not takes_over:
                yield key


def _options(tree: ast.AST) -> Iterator[Option]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "add_argument":
            names = tuple(text for text in _texts(node.args) if _OPTION.fullmatch(text))
            if names and not _stops(node):
                yield Option(names, _says_switch(node), _field_named(node))
        elif isinstance(node, ast.ClassDef):
            for field in (each for each in node.body if isinstance(each, ast.AnnAssign)):
                option = _of_field(field, node.name)
                if option is not None:
                    yield option


def _of_field(field: ast.AnnAssign, class_name: str) -> Option | None:
    """SGLang's `name: A[type, "help" or Arg(...)]`, and the fields of vLLM's FrontendArgs: `name: type`."""
    spelled = "--" + _target(field).replace("_", "-")
    annotation = field.annotation
    if class_name.endswith("FrontendArgs"):
        return Option((spelled,), _is_boolean(annotation))
    if not isinstance(annotation, ast.Subscript) or _name(annotation.value) not in ("A", "Annotated"):
        return None
    if not isinstance(annotation.slice, ast.Tuple):
        return None
    kind, *metadata = annotation.slice.elts
    for each in metadata:
        if not isinstance(each, ast.Call):
            if isinstance(each, (ast.Constant, ast.JoinedStr)):
                return Option((spelled,), _is_boolean(kind))
            continue
        if _called(each) != "Arg":
            continue
        given = {keyword.arg: keyword.value for keyword in each.keywords}
        if isinstance(given.get("no_cli"), ast.Constant):
            return None
        names = [*_texts([given[key] for key in ("cli_name",) if key in given]), *_listed(given.get("aliases"))]
        first = () if "cli_name" in given else (spelled,)
        is_switch = None if "action" in given or "type_parser" in given or "nargs" in given else _is_boolean(kind)
        return Option((*first, *names), is_switch)
    return None


def _stops(call: ast.Call) -> bool:
    """Whether the option is there only to say that it is gone: giving it ends the program."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    return _name(given.get("action")) == "DeprecatedAction" and "error_message" in given


def _says_switch(call: ast.Call) -> bool | None:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in given and "action" not in given:  # `**kwargs`
        return None
    action = given.get("action")
    if action is None:
        return None if "nargs" in given else False
    said = action.value if isinstance(action, ast.Constant) else _name(action)
    if said in ("store_true", "store_false", "store_const", "count", "help") or said in (
        "BooleanOptionalAction",
        "DeprecatedStoreTrueAction",
    ):
        return True
    return None


def _field_named(call: ast.Call) -> str:
    """`max_model_len` of `**model_kwargs["max_model_len"]`."""
    for keyword in call.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Subscript):
            return next(iter(_texts([keyword.value.slice])), "")
    return ""


def _fields(tree: ast.AST) -> Iterator[ast.AnnAssign]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (each for each in node.body if isinstance(each, ast.AnnAssign))


def _is_boolean(annotation: ast.expr) -> bool:
    """`bool`, also when it may be None: argparse makes both a switch with a `--no-` form."""
    return bool(re.fullmatch(r"(?:Optional\[)?bool\]?(?: \| None)?", ast.unparse(annotation)))


def _target(field: ast.AnnAssign) -> str:
    return field.target.id if isinstance(field.target, ast.Name) else ""


def _called(call: ast.Call) -> str:
    return _name(call.func)


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _texts(nodes: Sequence[ast.expr]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _listed(node: ast.expr | None) -> list[str]:
    return _texts(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else []

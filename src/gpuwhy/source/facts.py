"""Compact facts of one file: what each function calls, reads, writes, raises and says. Kept instead of its tree.

They answer "which functions write ``.TARGET_CUDA_ARCHS``" without parsing anything again; only the functions that an
answer needs are then parsed, each from its own lines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from gpuwhy.source.messages import Template, log_level, log_text, template
from gpuwhy.source.parsing import Parsed

FORMAT = 3
"""Changes with the meaning of these facts: older ones in the cache are then not used."""
MUTATORS = frozenset({
    "add", "append", "extend", "update", "insert", "discard", "remove", "clear", "pop", "setdefault", "appendleft",
})  # fmt: skip
_LEAVES = frozenset({ast.Constant, ast.Pass, ast.Break, ast.Continue})
_NOTED = frozenset({
    ast.Attribute, ast.Call, ast.Subscript, ast.Compare, ast.Dict, ast.Raise, ast.Assign, ast.Import, ast.ImportFrom, ast.Global,
})  # fmt: skip
"""Kinds of nodes that leave something in the facts."""
_SIGNS = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
_ENVIRON = ("environ", "environb")
_ENV_METHODS = {"get": "read", "pop": "pop", "setdefault": "setdefault", "copy": "whole", "items": "whole",
                "keys": "whole", "values": "whole", "update": "write", "__getitem__": "read"}  # fmt: skip


class Said(msgspec.Struct, frozen=True, array_like=True):
    """A text that the function writes. ``kind`` is ``raise`` with the exception's type as ``name``, or ``log`` with
    the level: ``warning``, ``print``, ``warnings.warn`` ... ``handler`` is the line of the ``except`` around it."""

    kind: str
    name: str
    line: int
    text: Template
    handler: int = 0


class EnvTouch(msgspec.Struct, frozen=True, array_like=True):
    """The environment is touched here: ``kind`` is read, pop, setdefault, test, write, delete or whole. ``name`` is
    empty when the key is not a literal; ``key`` is then its source text."""

    kind: str
    name: str
    line: int
    key: str = ""
    default: str = ""


class Option(msgspec.Struct, frozen=True, array_like=True):
    """A command-line option that is declared here, by argparse or click."""

    names: tuple[str, ...]
    dest: str
    line: int


class FunctionFacts(msgspec.Struct, frozen=True, array_like=True):
    """A function that is not inside another one, with all that stands in it; or, as ``""``, the code of the module and
    of its classes. ``first`` is the line of its first decorator; ``body`` that of its first statement, 0 when that
    stands beside the header. Names are last parts: ``calls`` of ``a.b(c())`` are ``b`` and ``c``."""

    qualname: str
    first: int
    line: int
    body: int
    last: int
    calls: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    """Attributes."""
    writes: tuple[str, ...] = ()
    """Attributes that are assigned, added to or set with ``setattr``."""
    names: tuple[str, ...] = ()
    """Names that are read."""
    keys: tuple[str, ...] = ()
    """Keywords of calls and literal keys."""
    globals: tuple[str, ...] = ()
    says: tuple[Said, ...] = ()
    environment: tuple[EnvTouch, ...] = ()
    options: tuple[Option, ...] = ()
    swallows: int = 0
    """How many handlers do not raise again."""


class ClassFacts(msgspec.Struct, frozen=True, array_like=True):
    """A class: its bases as written, and the names bound in its body."""

    qualname: str
    line: int
    last: int
    bases: tuple[str, ...]
    members: tuple[str, ...]


class Import(msgspec.Struct, frozen=True, array_like=True):
    """``name`` is bound to ``member`` of ``module``, or to the module when there is no member. ``level`` as in a
    relative import. ``function`` is where it stands; ``guarded`` tells one below ``if`` or ``try``."""

    name: str
    module: str
    member: str
    level: int
    line: int
    function: str = ""
    guarded: bool = False


class FileFacts(msgspec.Struct, frozen=True, array_like=True):
    """``functions[0]`` is the code outside functions. ``bound`` are the names that the module binds, ``gaps`` the lines
    that were not understood."""

    functions: tuple[FunctionFacts, ...]
    classes: tuple[ClassFacts, ...] = ()
    imports: tuple[Import, ...] = ()
    bound: tuple[str, ...] = ()
    gaps: tuple[tuple[int, int], ...] = ()
    reason: str = ""
    format: int = FORMAT

    def function_at(self, line: int) -> FunctionFacts:
        """The function whose lines hold ``line``; the module's own code when none does."""
        for function in self.functions[1:]:
            if function.first <= line <= function.last:
                return function
        return self.functions[0]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FileFacts)


def encoded(facts: FileFacts) -> bytes:
    return _encoder.encode(facts)


def read(content: bytes) -> FileFacts | None:
    """The facts, or None when they are of another format."""
    try:
        facts = _decoder.decode(content)
    except (msgspec.DecodeError, ValueError):
        return None
    return facts if facts.format == FORMAT else None


def facts_of(parsed: Parsed, lines: list[str]) -> FileFacts:
    """The facts of a parsed file."""
    if parsed.tree is None:
        nothing = FunctionFacts("", 1, 1, 0, len(lines))
        return FileFacts((nothing,), gaps=parsed.gaps, reason=parsed.reason)
    reading = _Reading(lines)
    reading.module(parsed.tree)
    return FileFacts(
        functions=tuple(unit.facts() for unit in reading.units),
        classes=tuple(reading.classes),
        imports=tuple(reading.imports),
        bound=tuple(sorted(reading.bound)),
        gaps=parsed.gaps,
        reason=parsed.reason,
    )


class _Unit:
    """Collects what stands in one function."""

    def __init__(self, qualname: str, first: int, line: int, body: int, last: int) -> None:
        self.place = (qualname, first, line, body, last)
        self.calls: set[str] = set()
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.names: set[str] = set()
        self.keys: set[str] = set()
        self.globals: set[str] = set()
        self.says: list[Said] = []
        self.environment: list[EnvTouch] = []
        self.options: list[Option] = []
        self.strings: dict[str, ast.expr] = {}
        self.swallows = 0

    def facts(self) -> FunctionFacts:
        return FunctionFacts(
            *self.place,
            calls=tuple(sorted(self.calls)),
            reads=tuple(sorted(self.reads)),
            writes=tuple(sorted(self.writes)),
            names=tuple(sorted(self.names)),
            keys=tuple(sorted(self.keys)),
            globals=tuple(sorted(self.globals)),
            says=tuple(sorted(self.says, key=lambda said: said.line)),
            environment=tuple(sorted(self.environment, key=lambda touch: touch.line)),
            options=tuple(sorted(self.options, key=lambda option: option.line)),
            swallows=self.swallows,
        )


class _Reading:
    """One pass over a tree. Iterative: the depth of a hostile tree does not matter."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.units: list[_Unit] = []
        self.classes: list[ClassFacts] = []
        self.imports: list[Import] = []
        self.bound: set[str] = set()

    def module(self, tree: ast.Module) -> None:
        self.units.append(_Unit("", 1, 1, 0, len(self.lines)))
        self._walk(list(tree.body), self.units[0], "", 0, False)

    def _walk(self, nodes: list[ast.AST], unit: _Unit, prefix: str, handler: int, guarded: bool) -> None:
        """``prefix`` is the qualified name around, ``handler`` the line of the except clause around."""
        stack: list[tuple[ast.AST, _Unit, str, int, bool]] = [(node, unit, prefix, handler, guarded) for node in nodes]
        stack.reverse()
        while stack:
            node, unit, prefix, handler, guarded = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                self._name(node, unit, prefix)  # type: ignore[arg-type]
                continue
            if kind in _LEAVES:
                continue
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                stack.extend(self._function(node, unit, prefix, guarded))
                continue
            if isinstance(node, ast.ClassDef):
                stack.extend(self._class(node, unit, prefix, guarded))
                continue
            if isinstance(node, ast.ExceptHandler):
                handler = node.lineno
                unit.swallows += not any(isinstance(inner, ast.Raise) for inner in _own(node.body))
            elif isinstance(node, (ast.If, ast.Try)):
                guarded = True
            elif kind in _NOTED:
                self._note(node, unit, prefix, handler, guarded)
            children = [(child, unit, prefix, handler, guarded) for child in _children(node)]
            children.reverse()
            stack += children

    def _name(self, node: ast.Name, unit: _Unit, prefix: str) -> None:
        if isinstance(node.ctx, ast.Load):
            unit.names.add(node.id)
        elif not prefix:
            self.bound.add(node.id)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, unit: _Unit, prefix: str, guarded: bool
    ) -> Iterator[tuple[ast.AST, _Unit, str, int, bool]]:
        qualname = f"{prefix}.{node.name}" if prefix else node.name
        if not prefix:
            self.bound.add(node.name)
        around = unit
        if not unit.place[0]:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            body = _first_line(node.body[0])
            starts_line = self.lines[body - 1][: node.body[0].col_offset].strip() in ("", "@")
            unit = _Unit(qualname, first, node.lineno, body if starts_line else 0, node.end_lineno or node.lineno)
            self.units.append(unit)
        for statement in reversed(node.body):
            yield statement, unit, qualname, 0, guarded
        # decorators, defaults and annotations are evaluated outside
        for inner in [*node.decorator_list, node.args, *([node.returns] if node.returns else [])]:
            yield inner, around, prefix, 0, guarded

    def _class(
        self, node: ast.ClassDef, unit: _Unit, prefix: str, guarded: bool
    ) -> Iterator[tuple[ast.AST, _Unit, str, int, bool]]:
        qualname = f"{prefix}.{node.name}" if prefix else node.name
        if not prefix:
            self.bound.add(node.name)
        if not unit.place[0]:
            bases = tuple(self._text(base) for base in node.bases)
            last = node.end_lineno or node.lineno
            self.classes.append(ClassFacts(qualname, node.lineno, last, bases, tuple(_members(node))))
        for statement in reversed(node.body):
            yield statement, unit, qualname, 0, guarded
        for inner in [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]:
            yield inner, unit, prefix, 0, guarded

    def _note(self, node: ast.AST, unit: _Unit, prefix: str, handler: int, guarded: bool) -> None:
        if isinstance(node, ast.Attribute):
            (unit.reads if isinstance(node.ctx, ast.Load) else unit.writes).add(node.attr)
            if node.attr in _ENVIRON and unit.environment == [] and isinstance(node.ctx, ast.Load):
                unit.keys.add("os.environ")
        elif isinstance(node, ast.Call):
            self._call(node, unit, handler)
        elif isinstance(node, ast.Subscript):
            self._subscript(node, unit)
        elif isinstance(node, ast.Compare):
            if isinstance(node.ops[0], (ast.In, ast.NotIn)) and _is_environ(node.comparators[0]):
                unit.environment.append(self._touch("test", node.left, None, node.lineno))
        elif isinstance(node, ast.Dict):
            unit.keys.update(key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier())  # fmt: skip
        elif isinstance(node, ast.Raise):
            self._raise(node, unit, handler)
        elif isinstance(node, ast.Assign):
            self._assigned(node, unit)
        elif isinstance(node, ast.Import):
            self._import(node, prefix, guarded)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                bound = name.asname or name.name
                self.imports.append(
                    Import(bound, node.module or "", name.name, node.level, node.lineno, prefix, guarded)
                )
                if not prefix:
                    self.bound.add(bound)
        elif isinstance(node, ast.Global):
            unit.globals.update(node.names)

    def _import(self, node: ast.Import, prefix: str, guarded: bool) -> None:
        for name in node.names:
            top = name.name if name.asname else name.name.split(".")[0]
            bound = name.asname or top
            self.imports.append(Import(bound, name.name, "", 0, node.lineno, prefix, guarded))
            if not prefix:
                self.bound.add(bound)

    def _assigned(self, node: ast.Assign, unit: _Unit) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name) and isinstance(
                node.value, (ast.Constant, ast.JoinedStr, ast.BinOp, ast.Call)
            ):
                unit.strings[target.id] = node.value

    def _call(self, node: ast.Call, unit: _Unit, handler: int) -> None:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if name:
            unit.calls.add(name)
        unit.keys.update(keyword.arg for keyword in node.keywords if keyword.arg)
        if isinstance(called, ast.Attribute):
            if name in MUTATORS:
                unit.writes.update(part.attr for part in [called.value] if isinstance(part, ast.Attribute))
            if _is_environ(called.value) and name in _ENV_METHODS:
                self._environ_call(node, _ENV_METHODS[name], unit)
                return
        if name == "getenv" and node.args:
            unit.environment.append(self._touch("read", node.args[0], node.args[1:2], node.lineno))
            return
        if name == "setattr" and len(node.args) == 3 and isinstance(node.args[1], ast.Constant):
            unit.writes.add(str(node.args[1].value))
        if name in ("add_argument", "option"):
            self._option(node, unit)
        level = log_level(node)
        if level is not None:
            text = template(
                log_text(node), unit.strings, is_log=len(node.args) > 1 and level not in ("print", "warnings.warn")
            )
            unit.says.append(Said("log", level, node.lineno, text, handler))

    def _environ_call(self, node: ast.Call, kind: str, unit: _Unit) -> None:
        if kind in ("whole", "write") or not node.args:
            unit.environment.append(
                EnvTouch("write" if kind == "write" else "whole", "", node.lineno, self._text(node))
            )
        else:
            unit.environment.append(self._touch(kind, node.args[0], node.args[1:2], node.lineno))

    def _subscript(self, node: ast.Subscript, unit: _Unit) -> None:
        if _is_environ(node.value):
            kind = "write" if isinstance(node.ctx, ast.Store) else "delete" if isinstance(node.ctx, ast.Del) else "read"
            unit.environment.append(self._touch(kind, node.slice, None, node.lineno))
        elif isinstance(node.ctx, (ast.Store, ast.Del)) and isinstance(node.value, ast.Attribute):
            unit.writes.add(node.value.attr)
        if (
            isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
            and node.slice.value.isidentifier()
        ):
            unit.keys.add(node.slice.value)

    def _touch(self, kind: str, key: ast.expr, default: list[ast.expr] | None, line: int) -> EnvTouch:
        shown = self._text(default[0]) if default else ""
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return EnvTouch(kind, key.value, line, "", shown)
        return EnvTouch(kind, "", line, self._text(key), shown)

    def _raise(self, node: ast.Raise, unit: _Unit, handler: int) -> None:
        raised = node.exc
        if raised is None:
            return
        call = raised if isinstance(raised, ast.Call) else None
        name = self._text(call.func if call else raised).split(".")[-1]
        text = template(call.args[0], unit.strings) if call and call.args else Template()
        unit.says.append(Said("raise", name, node.lineno, text, handler))

    def _option(self, node: ast.Call, unit: _Unit) -> None:
        names = tuple(arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
        given = [kw.value.value for kw in node.keywords if kw.arg == "dest" and isinstance(kw.value, ast.Constant)]
        bare = [name for name in names if name.isidentifier()]
        long = [name for name in names if name.startswith("--")]
        if not any(name.startswith("-") for name in names):
            return
        dest = str(given[0]) if given else bare[0] if bare else (long or list(names))[0].split("/")[0].lstrip("-")
        unit.options.append(Option(names, dest.replace("-", "_"), node.lineno))

    def _text(self, node: ast.AST) -> str:
        return source_text(self.lines, node, 120)


def source_text(lines: list[str], node: ast.AST, limit: int = 0) -> str:
    """The text of a node in one line, blanks of continued lines joined; cut after ``limit`` characters."""
    first = getattr(node, "lineno", 0)
    last = getattr(node, "end_lineno", first) or first
    if not first or last > len(lines):
        return ""
    start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
    if first == last:
        text = _columns(lines[first - 1], start, end)
    else:
        middle = [line.strip() for line in lines[first : min(last - 1, first + 40)]]
        parts = [_columns(lines[first - 1], start, None), *middle, _columns(lines[last - 1], 0, end).strip()]
        text = _uncommented(parts)
    return text if not limit or len(text) <= limit else text[: limit - 1] + "…"


def _uncommented(parts: list[str]) -> str:
    joined = ""
    for part in parts:
        if part.startswith("#"):
            continue
        bare = part.rstrip().rstrip("\\").rstrip()
        tight = not joined or joined[-1] in "([{" or bare[:1] in (")", "]", "}")
        if bare[:1] in (")", "]", "}") and joined.endswith(","):
            joined = joined[:-1]
        joined += bare if tight else " " + bare
    return joined


def _columns(line: str, start: int, end: int | None) -> str:
    """Columns of a tree count bytes."""
    if line.isascii():
        return line[start:end]
    return line.encode("utf-8", "replace")[start:end].decode("utf-8", "replace")


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr in _ENVIRON) or (
        isinstance(node, ast.Name) and node.id in _ENVIRON
    )


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            for each in value:
                if isinstance(each, ast.AST):
                    yield each
        elif isinstance(value, ast.AST) and not isinstance(value, _SIGNS):
            yield value


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, without those of functions defined among them."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(_children(node))


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _members(node: ast.ClassDef) -> list[str]:
    names: list[str] = []
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(statement.name)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.append(statement.target.id)
        elif isinstance(statement, ast.Assign):
            names += [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return names

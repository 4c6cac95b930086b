"""Executes real functions with made-up values and watches whether a raise is reached, beside what its guard says.

    python running.py < sites.json

It knows nothing of the tracer: a guard is a list of texts here. The function is taken out of its file and compiled
alone. Every name that it does not bind, every import and every parameter is a stand-in that answers the same question
always alike; where the guard compares something with a constant, it is also given values around that constant. Nothing
of the package, of torch or of the system can be reached from there.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import json
import random
import re
import signal
import sys
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

SAFE = (
    "abs", "all", "any", "bool", "callable", "dict", "divmod", "enumerate", "filter", "float", "frozenset", "id", "int",
    "iter", "list", "map", "max", "min", "next", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str",
    "sum", "tuple", "type", "zip", "property", "staticmethod", "classmethod", "object", "bytes", "ord", "chr", "hash",
    *(name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)),
)  # fmt: skip
_ROOT = re.compile(r"\w*")
PER_TRIAL = 0.05
"""Seconds of processor time."""
ENOUGH = 8
"""Trials of either outcome."""
MAX_SIZE = 3


class Reached(BaseException):
    """The raise was reached."""


class TooLong(BaseException):
    """A loop whose condition a stand-in answers may never end."""


def drawn(*parts: object) -> int:
    """A number that depends on nothing but its arguments."""
    return zlib.crc32("\0".join(map(str, parts)).encode())


def seed_of(name: str, given: dict[str, Any]) -> Any:
    """Of the stand-in, of the one that it comes from, or of the trial."""
    seeds = given["seeds of the trial"]
    return seeds.get(name) or seeds.get(_ROOT.match(name).group()) or given["seed of the trial"]  # type: ignore[union-attr]


class StandIn:
    """Has every attribute and item, may be called, compared and counted; what it answers depends only on its name."""

    def __init__(self, name: str, given: dict[str, Any]) -> None:
        self.__dict__.update(_name=name, _given=given, _made={})

    def _below(self, name: str) -> Any:
        full = f"{self._name}{name}"
        if full in self._given:
            return self._given[full]
        if full not in self._made:
            self._made[full] = StandIn(full, self._given)
        return self._made[full]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._below(f".{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._below(f"({', '.join(map(named, (*args, *kwargs.values())))})")

    def __getitem__(self, key: Any) -> Any:
        return self._below(f"[{named(key)}]")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._made[f"{self._name}[{named(key)}]"] = value

    def _answer(self, what: str, count: int) -> int:
        self._given["asked of the trial"].add(self._name)
        return drawn(self._name, what, seed_of(self._name, self._given)) % count

    def __ne__(self, other: object) -> bool:
        return not self.__eq__(other)

    def __bool__(self) -> bool:
        return bool(self._answer("bool", 2))

    def __len__(self) -> int:
        return self._answer("len", MAX_SIZE)

    def __iter__(self) -> Iterator[Any]:
        return iter([self._below(f"[{at}]") for at in range(len(self))])

    def __contains__(self, item: object) -> bool:
        return bool(self._answer(f"in {named(item)}", 2))

    def __int__(self) -> int:
        return self._answer("int", 9)

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __hash__(self) -> int:
        return drawn(self._name)

    def __str__(self) -> str:
        return str(self._name)

    __repr__ = __str__

    def __enter__(self) -> Any:
        return self._below(".entered")

    def __exit__(self, *_: object) -> None:
        return None

    def __delitem__(self, key: Any) -> None:
        return None

    def __format__(self, spec: str) -> str:
        return str(self._name)

    def keys(self) -> list[Any]:
        """Of what is passed on with ``**``."""
        return []


def named(value: object) -> str:
    return value.__dict__["_name"] if isinstance(value, StandIn) else f"{type(value).__name__} {value!r:.60}"


def _comparing(sign: str) -> Callable[[StandIn, object], bool]:
    def compare(self: StandIn, other: object) -> bool:
        if self is other:
            return sign in ("eq", "le", "ge")
        return bool(self._answer(f"{sign} {named(other)}", 2))

    return compare


def _combining(sign: str) -> Callable[[StandIn, object], Any]:
    def combine(self: StandIn, other: object) -> Any:
        return self._below(f" {sign} {named(other)}")

    return combine


for _sign in ("lt", "le", "gt", "ge", "eq"):
    setattr(StandIn, f"__{_sign}__", _comparing(_sign))
for _sign in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "matmul",
):
    setattr(StandIn, f"__{_sign}__", _combining(_sign))
    setattr(StandIn, f"__r{_sign}__", _combining(f"r{_sign}"))
for _sign in ("neg", "invert", "abs", "pos"):
    setattr(StandIn, f"__{_sign}__", lambda self, _sign=_sign: self._below(f" {_sign}"))


class Names(dict[str, Any]):
    """The globals of the function: what nobody bound is a stand-in."""

    def __missing__(self, name: str) -> Any:
        given = self["given of the trial"]
        if name in given:
            self[name] = given[name]
        elif name in SAFE:
            return getattr(builtins, name)
        else:
            self[name] = StandIn(name, given)
        return self[name]


def asking(given: dict[str, Any]) -> dict[str, Any]:
    """``isinstance``, ``hasattr`` and ``getattr`` where a value or a class may be a stand-in."""

    def is_instance(value: Any, kinds: Any) -> bool:
        if isinstance(kinds, tuple):
            return any(is_instance(value, each) for each in kinds)
        if isinstance(kinds, (type, types.UnionType)):
            return isinstance(value, kinds)
        given["asked of the trial"].add(named(value))
        return bool(drawn(named(value), "is a", named(kinds), seed_of(named(value), given)) % 2)

    def has_attribute(value: Any, name: str) -> bool:
        if not isinstance(value, StandIn):
            return hasattr(value, name)
        given["asked of the trial"].add(named(value))
        return bool(drawn(named(value), "has", name, seed_of(named(value), given)) % 2)

    def attribute(value: Any, name: str, *default: Any) -> Any:
        return default[0] if default and not has_attribute(value, name) else getattr(value, name)

    return {"isinstance": is_instance, "hasattr": has_attribute, "getattr": attribute, "len": len}


# the function, made ready


class Prepared(ast.NodeTransformer):
    """Watches the tests that the guard was made of, and marks the raise and every other way out."""

    def __init__(self, site: dict[str, Any]) -> None:
        self.line = site["line"]
        self.tests: dict[tuple[int, str], list[int]] = {}
        self.entered: dict[int, list[int]] = {}
        for number, told in enumerate(site["guard"]):
            for line, text in told["tests"]:
                self.tests.setdefault((line, text), []).append(number)
            if told["kind"] in ("entered", "no pass"):
                self.entered.setdefault(told["line"], []).append(number)
        self.within_try = 0
        self.is_found = False

    def visit(self, node: ast.AST) -> Any:
        numbers = self.tests.get((node.lineno, ast.unparse(node))) if isinstance(node, ast.expr) else None
        if numbers is None:
            return super().visit(node)
        text = ast.Constant(ast.unparse(node))
        return _copied(_call("watched", self.generic_visit(node), _numbers(numbers), text, _call("locals")), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def visit_Await(self, node: ast.Await) -> Any:
        return self.visit(node.value)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> Any:
        made = ast.For(node.target, node.iter, node.body, node.orelse, None)
        return self.visit(_copied(made, node))

    def visit_AsyncWith(self, node: ast.AsyncWith) -> Any:
        return self.visit(_copied(ast.With(node.items, node.body, None), node))

    def visit_For(self, node: Any) -> Any:
        node = self.generic_visit(node)
        size = _size(node.target)
        if size:
            node.iter = _copied(_call("rows", node.iter, ast.Constant(size)), node)
        if node.lineno in self.entered:
            mark = _statement(_call("entered", _numbers(self.entered[node.lineno])), node)
            node.body.insert(0, mark)
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        self.within_try += bool(node.handlers)
        node.body = self._all(node.body)
        self.within_try -= bool(node.handlers)
        node.handlers = self._all(node.handlers)
        node.orelse = self._all(node.orelse)
        node.finalbody = self._all(node.finalbody)
        return node

    def visit_With(self, node: Any) -> Any:
        is_quiet = "suppress" in ast.unparse(node.items[0].context_expr)
        self.within_try += is_quiet
        node = self.generic_visit(node)
        self.within_try -= is_quiet
        return node

    def visit_Assign(self, node: Any) -> Any:
        node = self.generic_visit(node)
        size = _size(node.targets[0])
        if size:
            node.value = _copied(_call("unpacked", node.value, ast.Constant(size)), node)
        return node

    def visit_Attribute(self, node: Any) -> Any:
        node = self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and node.attr.startswith("__"):
            return _copied(_call("special", node.value, ast.Constant(node.attr)), node)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        if node.type is not None:
            node.type = _copied(_call("caught", node.type), node)
        node.body = self._all(node.body)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom | ast.Import) -> Any:
        bound = [each.asname or each.name.partition(".")[0] for each in node.names if each.name != "*"]
        values = [_call("imported", ast.Constant(name)) for name in bound]
        return [_copied(ast.Assign([ast.Name(name, ast.Store())], value), node) for name, value in zip(bound, values, strict=True)] or ast.Pass()  # fmt: skip

    def visit_Import(self, node: ast.Import) -> Any:
        return self.visit_ImportFrom(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        if node.lineno == self.line:
            self.is_found = True
            return _statement(_call("reached"), node)
        return [self._leaving(node), self.generic_visit(node)]

    def visit_Return(self, node: ast.Return) -> Any:
        return [self._leaving(node), self.generic_visit(node)]

    def _leaving(self, node: ast.stmt) -> Any:
        return _statement(_call("leaves", ast.Constant(node.lineno), ast.Constant(bool(self.within_try))), node)

    def _all(self, nodes: list[Any]) -> list[Any]:
        made: list[Any] = []
        for node in nodes:
            changed = self.visit(node)
            made += changed if isinstance(changed, list) else [changed]
        return made


def _size(target: ast.expr) -> int:
    """How many values a target takes; 0 where that is one, or not said."""
    if isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(each, ast.Starred) for each in target.elts):
        return len(target.elts)
    return 0


def unpacked(value: Any, size: int) -> Any:
    return [value[at] for at in range(size)] if isinstance(value, StandIn) else value


def rows(values: Any, size: int) -> Any:
    return (unpacked(each, size) for each in values)


def special(value: Any, name: str) -> Any:
    return value._below(f".{name}") if isinstance(value, StandIn) else getattr(value, name)


class NeverError(Exception):
    """Nobody raises it."""


def caught(kinds: Any) -> Any:
    if isinstance(kinds, tuple):
        return tuple(map(caught, kinds))
    return kinds if isinstance(kinds, type) else NeverError


def _numbers(values: list[int]) -> ast.expr:
    return ast.Tuple([ast.Constant(each) for each in values], ast.Load())


def _call(name: str, *args: Any) -> ast.expr:
    return ast.Call(ast.Name(f"{name} of the trial", ast.Load()), list(args), [])


def _statement(value: ast.expr, like: ast.AST) -> Any:
    return _copied(ast.Expr(value), like)


def _copied(made: Any, like: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(made, like))


def prepared(site: dict[str, Any], trees: dict[str, ast.Module]) -> tuple[types.CodeType, list[str], str]:
    """The compiled function, its parameters, its name; a LookupError says why not."""
    file = site["file"]
    if file not in trees:
        with open(file, encoding="utf-8") as text:
            trees[file] = ast.parse(text.read())
    for node in ast.walk(trees[file]):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.lineno, node.name) == (site["function"], site["name"]):  # fmt: skip
            break
    else:
        raise LookupError("the function was not found")
    work = Prepared(site)
    body = work._all(copy.deepcopy(node.body))
    if not work.is_found:
        raise LookupError("the raise stands in a function inside this one")
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None]
    plain = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    made = ast.FunctionDef("made", plain, body, [], None)
    module = ast.Module([_copied(made, node)], [])
    return compile(ast.fix_missing_locations(module), "made", "exec"), names, "made"


# what the guard says


class Guard:
    """The texts of a guard, each evaluated where the code has just evaluated what it was made of."""

    def __init__(self, site: dict[str, Any], names: Names) -> None:
        self.told = site["guard"]
        self.names = names
        self.now: list[bool | None] = [True if each["kind"] == "opaque" else None for each in self.told]
        self.passes: dict[int, dict[str, bool]] = {}
        self.unknown: set[int] = set()
        self.asked: dict[int, set[str]] = {}
        self.left = ""
        self.is_in_try = False
        self.disagreed: list[str] = []
        for number, each in enumerate(self.told):
            if each["kind"] == "no pass":
                self.now[number] = True

    def watched(self, value: Any, numbers: tuple[int, ...], text: str, local: dict[str, Any]) -> Any:
        for number in numbers:
            told = self.told[number]
            if told["kind"] == "plain":
                self.now[number] = self._evaluated(number, local)
                if len(told["tests"]) == 1 and self.now[number] is not None:
                    is_same = told["text"] == text or told["text"].strip("()") == text
                    if is_same and self.now[number] != bool(value):
                        self.disagreed.append(f"{text} is {bool(value)}")
            elif told["kind"] == "no pass":
                seen = self.passes.setdefault(number, {})
                seen[text] = bool(value)
                inner = [each for _, each in told["tests"]]
                if all(seen.get(each) is True for each in inner[: len(inner) - 1]):
                    self.now[number] = False
        return value

    def entered(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            if self.told[number]["kind"] == "entered":
                self.now[number] = True
            else:
                self.passes[number] = {}

    def _evaluated(self, number: int, local: dict[str, Any]) -> bool | None:
        if any(isinstance(value, Iterator) and name in self.told[number]["text"] for name, value in local.items()):
            # what the code has just gone through is used up
            self.unknown.add(number)
            return None
        # one scope: the inside of a generator expression does not see the locals of eval
        scope = Names(self.names)
        scope.update(local)
        given = self.names["given of the trial"]
        given["asked of the trial"] = self.asked[number] = set()
        try:
            return bool(eval(self.told[number]["text"], scope))
        except Exception:  # noqa: BLE001 - a text may be anything
            # what the text is made of is not all there yet
            self.unknown.add(number)
            return None

    def leaves(self, line: int, is_in_try: bool) -> None:
        self.left = f"line {line}"
        self.is_in_try = self.is_in_try or is_in_try

    @property
    def holds(self) -> bool:
        return all(value is True for value in self.now)

    @property
    def is_certain(self) -> bool:
        """Whether the guard tells all: nothing of it is about exceptions or patterns, and no exit is inside a try."""
        return all(each["kind"] != "opaque" for each in self.told) and not self.is_in_try and not self.unknown


# values to try


def candidates(told: dict[str, Any]) -> dict[str, list[Any]]:
    """Values by the text of what a condition tests: around the constants that it is compared with."""
    found: dict[str, list[Any]] = {}
    try:
        tree = ast.parse(told["text"], mode="eval")
    except (SyntaxError, ValueError):
        return found
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if id(node) in called:
            continue
        if isinstance(node, ast.Compare):
            constants = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
            values = [value for each in constants for value in _around(each)]
            for part in ast.walk(node):
                if isinstance(part, ast.Call) and ast.unparse(part.func) == "len" and part.args:
                    sizes = [each for each in values if isinstance(each, int) and 0 <= each < 50]
                    found.setdefault(_spelled(part.args[0]), []).extend((1,) * each for each in sizes)
                elif isinstance(part, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) and id(part) not in called:
                    found.setdefault(_spelled(part), []).extend(values)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" and len(node.args) == 2:
            kinds = [each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)]
            values = [value for each in kinds for value in EXAMPLES.get(each, ())]
            found.setdefault(_spelled(node.args[0]), []).extend(values)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            found.setdefault(_spelled(node), [])
    return found


def _around(constant: Any) -> list[Any]:
    if isinstance(constant, bool) or constant is None:
        return [None, True, False]
    if isinstance(constant, (int, float)):
        return [constant, constant + 1, constant - 1, constant * 2, -constant]
    return [constant, ""] if isinstance(constant, str) else []


def _spelled(node: ast.expr) -> str:
    """As a stand-in names itself: ``x.shape[int -1]``."""
    if isinstance(node, ast.Attribute):
        return f"{_spelled(node.value)}.{node.attr}"
    if isinstance(node, ast.Subscript):
        try:
            return f"{_spelled(node.value)}[{named(ast.literal_eval(node.slice))}]"
        except ValueError:
            return ast.unparse(node)
    if isinstance(node, ast.Call) and not node.keywords:
        try:
            return f"{_spelled(node.func)}({', '.join(named(ast.literal_eval(each)) for each in node.args)})"
        except ValueError:
            return ast.unparse(node)
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


COMMON: tuple[Any, ...] = (None, True, False, 0, 1, 2, 16, "", "x", (), [1], 0.5)
EXAMPLES: dict[str, tuple[Any, ...]] = {
    "int": (3, 0), "bool": (True, False), "float": (0.5,), "str": ("x", ""), "list": ([], [1]), "tuple": ((), (1,)),
    "dict": ({}, {"x": 1}), "set": (set(),), "bytes": (b"x",),
}  # fmt: skip


class Search:
    """Values for what the guard tests: made at random, or those of the trial that came furthest, changed where it failed."""

    def __init__(self, guard: list[dict[str, Any]], chance: random.Random) -> None:
        self.chance = chance
        self.by_condition = [candidates(each) for each in guard]
        self.known: dict[str, list[Any]] = {}
        for each in self.by_condition:
            for text, values in each.items():
                self.known.setdefault(text, []).extend(values)
        self.best: dict[str, Any] | None = None
        self.furthest = -1
        self.failed: int | None = None
        self.asked: set[str] = set()

    def values(self) -> dict[str, Any]:
        if self.best is None or self.chance.random() < 0.3:
            return self._changed(
                {"seed of the trial": self.chance.random(), "seeds of the trial": {}, "asked of the trial": set()},
                self.known,
            )
        given = {**self.best, "seeds of the trial": dict(self.best["seeds of the trial"])}
        if self.failed is None:
            return self._changed({**given, "seed of the trial": self.chance.random()}, {})
        texts = dict(self.by_condition[self.failed])
        values = [each for known in texts.values() for each in known]
        texts.update({name: values for name in sorted(self.asked) if name not in texts})
        return self._changed(given, texts)

    def _changed(self, given: dict[str, Any], texts: dict[str, list[Any]]) -> dict[str, Any]:
        for text, values in texts.items():
            if given["seeds of the trial"] and self.chance.random() < 0.3:
                continue
            # what has attributes that are tested stays a stand-in
            is_holder = any(each != text and each.startswith((f"{text}.", f"{text}[", f"{text}(")) for each in self.known)  # fmt: skip
            choice = self.chance.random()
            given["seeds of the trial"][text] = self.chance.random()
            given.pop(text, None)
            if not is_holder and choice < 0.7 and values:
                given[text] = self.chance.choice(values)
            elif not is_holder and choice < 0.85:
                given[text] = self.chance.choice(COMMON)
        return given

    def learn(self, given: dict[str, Any], said: Guard, is_left: bool) -> None:
        """What the conditions said, innermost first."""
        now = said.now
        far = next((at for at, value in enumerate(reversed(now)) if value is not True), len(now))
        if far >= self.furthest and is_left:
            self.furthest, self.best = far, given
            self.failed = len(now) - 1 - far if far < len(now) else None
            self.asked = said.asked.get(self.failed, set()) if self.failed is not None else set()


# running


def run(site: dict[str, Any], trees: dict[str, ast.Module], trials: int) -> dict[str, Any]:
    """Counts: reached, not reached and undecided trials, and what disagreed."""
    counts = {"reached": 0, "left": 0, "undecided": 0, "one way": 0}
    wrong: list[str] = []
    try:
        code, parameters, _ = prepared(site, trees)
    except (LookupError, SyntaxError, ValueError, RecursionError) as error:
        return {**counts, "wrong": wrong, "why": f"{type(error).__name__}: {error}"}
    search = Search(site["guard"], random.Random(f"{site['name']} {site['line']}"))
    late = 0
    for number in itertools.count():
        if number >= trials or late > 3 or (counts["reached"] >= ENOUGH and counts["left"] >= ENOUGH and number > trials // 8):  # fmt: skip
            break
        given = search.values()
        try:
            said, outcome = trial(site, code, parameters, given)
        except TooLong:
            # it struck as the clock was being turned off; it strikes once
            counts["undecided"] += 1
            continue
        search.learn(given, said, outcome in ("left", "undecided"))
        late += outcome == "too long"
        wrong += [f"{each} ({outcome})" for each in said.disagreed[:1]]
        if outcome == "reached":
            counts["reached"] += 1
            if not all(value is True or at in said.unknown for at, value in enumerate(said.now)):
                wrong.append(f"reached, and the guard says {said.now}")
        elif outcome == "left":
            if said.holds and said.is_certain:
                wrong.append(f"left at {said.left or 'the end'}, and the guard holds")
            counts["left" if said.is_certain else "one way"] += 1
        else:
            counts["undecided"] += 1
    return {**counts, "wrong": wrong[:3], "why": ""}


def trial(
    site: dict[str, Any], code: types.CodeType, parameters: list[str], given: dict[str, Any]
) -> tuple[Guard, str]:
    names = Names({"given of the trial": given})
    guard = Guard(site, names)

    def reached() -> None:
        raise Reached

    hooks = {"watched": guard.watched, "entered": guard.entered, "leaves": guard.leaves, "reached": reached,
             "locals": lambda: sys._getframe(1).f_locals, "imported": names.__missing__, "unpacked": unpacked, "rows": rows, "special": special, "caught": caught}  # fmt: skip
    names.update({f"{name} of the trial": hook for name, hook in hooks.items()})
    names.update(asking(given))
    names["__builtins__"] = {"__build_class__": builtins.__build_class__, "AssertionError": AssertionError}
    exec(code, names)
    values = [given.get(name, StandIn(name, given)) for name in parameters]
    try:
        outcome = _ended(names["made"], values, guard)
    except TooLong:
        outcome = "too long"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return guard, outcome


def _ended(made: Callable[..., Any], values: list[Any], guard: Guard) -> str:
    """How the call ends. Whoever calls it turns the clock off: it may strike at any line of this."""
    signal.setitimer(signal.ITIMER_PROF, PER_TRIAL)
    try:
        result = made(*values)
        if isinstance(result, types.GeneratorType):
            for _ in itertools.islice(result, 50):
                pass
    except Reached:
        return "reached"
    except TooLong:
        raise
    except AssertionError:
        return "left"
    except BaseException as error:  # noqa: BLE001 - whatever a stand-in causes decides nothing
        # a raise of the function itself was marked; anything else is a stand-in that does not fit
        return "left" if _is_own(error) and guard.left else "undecided"
    return "left"


def _is_own(error: BaseException) -> bool:
    """Whether the exception came from a ``raise`` of the function: with a stand-in for its class it is a TypeError."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == "made"


def main() -> None:
    def late(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, late)
    sys.setrecursionlimit(400)
    asked = json.load(sys.stdin)
    trees: dict[str, ast.Module] = {}
    for site in asked["sites"]:
        print(json.dumps(run(site, trees, asked["trials"])), flush=True)


if __name__ == "__main__":
    main()

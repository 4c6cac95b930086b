"""Raise statements of real releases, sampled, each with the guard that the tracer extracts."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from tests.source.packages import FOLDERS, release

from gpuwhy.source.conditions import Condition, path_conditions
from gpuwhy.source.facts import facts_of
from gpuwhy.source.parsing import decoded, parse
from gpuwhy.source.scopes import Module, ancestors, walk
from gpuwhy.source.trees import is_test, module_name

RELEASES = (("flashinfer-python", "0.7.4"), ("sglang", "0.5.23"), ("vllm", "0.33.0"))
SEED = 6
_RAISE = re.compile(r"[ \t]+raise\b")
_PARSED_BYTES = 400_000


class Told(msgspec.Struct, frozen=True):
    """One condition of a guard. ``kind`` is ``plain`` (the text is an expression), ``entered`` (a loop), ``no pass`` (a
    loop that an earlier exit did not leave) or ``opaque``. ``tests`` are the expressions it was made of, by line."""

    text: str
    kind: str
    line: int
    tests: tuple[tuple[int, str], ...]


class Site(msgspec.Struct, frozen=True):
    """``function`` and ``line`` are lines of the file: of the enclosing function, and of the raise."""

    file: str
    line: int
    function: int
    name: str
    guard: tuple[Told, ...]


def sampled(count: int, seed: int = SEED) -> list[Site | str]:
    """Sites of all three packages in equal parts; a text says why there is no guard to be executed."""
    chosen: list[Site | str] = []
    for number, (name, version) in enumerate(RELEASES):
        folder = release(name, version)
        places = sorted(_places(folder / FOLDERS[name]))
        wanted = count // len(RELEASES) + (number < count % len(RELEASES))
        picked = random.Random(f"{seed} {name} {version}").sample(places, min(wanted, len(places)))
        by_file: dict[Path, list[int]] = {}
        for path, line in sorted(picked):
            by_file.setdefault(path, []).append(line)
        for path, lines in by_file.items():
            chosen += _sites(folder, path, lines)
    return chosen


def _places(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in folder.rglob("*.py"):
        if not is_test(path.as_posix()) and path.stat().st_size < _PARSED_BYTES:
            for number, line in enumerate(decoded(path.read_bytes()).split("\n"), 1):
                if _RAISE.match(line):
                    yield path, number


def _sites(folder: Path, path: Path, lines: list[int]) -> Iterator[Site | str]:
    text = decoded(path.read_bytes())
    parsed = parse(text)
    shown = path.relative_to(folder).as_posix()
    if parsed.tree is None or parsed.gaps:
        yield from (f"{shown}:{line}: not understood" for line in lines)
        return
    module = Module(module_name(shown), shown, text, facts_of(parsed, text.split("\n")))
    for line in lines:
        yield _site(module, path, line)


def _site(module: Module, path: Path, line: int) -> Site | str:
    for scope in module.units():
        for node in walk(*getattr(scope, "body", ())):
            if isinstance(node, ast.Raise) and node.lineno == line:
                around = next((each for each in ancestors(node) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))), None)  # fmt: skip
                if around is None:
                    return f"{path.name}:{line}: on import"
                guard = tuple(_told(each) for each in path_conditions(node))
                return Site(str(path), line, around.lineno, around.name, guard)
    return f"{path.name}:{line}: no statement, or in a function inside another that was not opened"


def _told(condition: Condition) -> Told:
    tests = tuple((each.lineno, ast.unparse(each)) for each in condition.tests)
    kind, text = "plain", condition.text
    if "…" in text and len(tests) == 1 and not text.startswith(("for ", "no pass")):
        # shown shortened: the test itself
        text = tests[0][1] if condition.holds else f"not ({tests[0][1]})"
    if condition.text.startswith("no pass had "):
        kind = "no pass"
    elif condition.text.startswith("for ") and condition.holds:
        kind = "entered"
    elif not tests or not _is_expression(text) or (len(tests) > 1 and ":=" in text):
        # evaluated as a whole, a walrus of one test would take back what the code did before the next
        kind = "opaque"
    return Told(text, kind, condition.line, tests)


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True

"""The conditions of a line: all of them hold whenever it runs, in programs made at random and in real functions."""

from __future__ import annotations

import ast
import random
import textwrap

import pytest
from tests.source.asking import opened

from gpuwhy.source.conditions import path_conditions, terminates
from gpuwhy.source.scopes import Module, walk


def conditions_of(code: str, mark: str = "MARK") -> list[str]:
    """The conditions of the first statement on a line that holds the mark, nearest first."""
    module = module_of(code)
    line = next(number for number, text in enumerate(module.lines, 1) if mark in text)
    for function in module.functions("f"):
        for node in walk(*function.body):
            if isinstance(node, ast.stmt) and node.lineno == line:
                return [condition.text for condition in path_conditions(node)]
    raise AssertionError(mark)


def module_of(code: str) -> Module:
    module = opened({"m.py": textwrap.dedent(code)}).module("pkg.m")
    assert module is not None
    return module


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(a, b):\n if a:\n  return\n if b:\n  raise X  # MARK", ["b", "not a"]),
        ("def f(a, b):\n if a:\n  pass\n elif b:\n  raise X  # MARK", ["b", "not a"]),
        ("def f(a, b):\n if a:\n  if b:\n   return\n raise X  # MARK", ["not (a and b)"]),
        ("def f(a):\n if a is None:\n  return\n else:\n  b = 1\n raise X  # MARK", ["a is not None"]),
        ("def f(a):\n if not a:\n  return\n raise X  # MARK", ["a"]),
        ("def f(a, b, c):\n if a:\n  if b or c:\n   return\n raise X  # MARK", ["not (a and (b or c))"]),
        ("def f(a, b):\n if a != (b is None):\n  return\n raise X  # MARK", ["a == (b is None)"]),
        ("def f(xs):\n for x in xs:\n  if x:\n   return x\n raise X  # MARK", ["no pass had for x in xs and x"]),
        ("def f(a):\n while a:\n  raise X  # MARK", ["a"]),
        ("def f(a):\n with a:\n  if a:\n   return\n raise X  # MARK", ["not a"]),
        ("def f(a, b):\n with suppress(E):\n  if a:\n   return\n raise X  # MARK", []),
        ("def f(a):\n try:\n  if a:\n   return\n except E:\n  pass\n raise X  # MARK", []),
        ("def f(a):\n try:\n  return a()\n except E:\n  pass\n raise X  # MARK", ["the try at line 2 ended in except E"]),
        ("def f(a):\n try:\n  a()\n except E:\n  raise X  # MARK", ["E was raised in the try at line 2"]),
        ("def f(a):\n match a:\n  case 1:\n   raise X  # MARK", ["a matches 1"]),
    ],
)  # fmt: skip
def test_conditions(code: str, expected: list[str]) -> None:
    assert conditions_of(code) == expected


def test_an_earlier_raise_is_weak() -> None:
    module = module_of("def f(a, b):\n    if a:\n        raise Y\n    if b:\n        raise X\n")
    raised = [node for scope in module.functions("f") for node in walk(*scope.body) if isinstance(node, ast.Raise)]
    assert [(each.text, each.is_weak) for each in path_conditions(raised[1])] == [("b", False), ("not a", True)]


class Programs:
    """Functions of six booleans that never change, built from every kind of statement, with one marked raise."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.budget = 30

    def function(self) -> str:
        body = self.block(1, False)
        return "def f(a, b, c, d, e, g):\n" + body + "    mark()\n"

    def block(self, depth: int, in_loop: bool) -> str:
        return "".join(self.statement(depth, in_loop) for _ in range(self.random.randint(1, 3)))

    def test(self) -> str:
        names = self.random.sample("abcdeg", 2)
        return self.random.choice([names[0], f"not {names[0]}", f"{names[0]} and {names[1]}", f"{names[0]} or {names[1]}", f"{names[0]} is {names[1]}", f"{names[0]} != {names[1]}"])  # fmt: skip

    def statement(self, depth: int, in_loop: bool) -> str:
        pad = "    " * depth
        self.budget -= 1
        if self.budget < 0 or depth > 4:
            return pad + "mark()\n"
        kind = self.random.choice(
            ["if", "if", "ifelse", "elif", "for", "while", "with", "try", "leave", "mark", "assert"]
        )

        def inner(loop: bool = in_loop) -> str:
            return self.block(depth + 1, loop)

        if kind == "if":
            return f"{pad}if {self.test()}:\n{inner()}"
        if kind == "ifelse":
            return f"{pad}if {self.test()}:\n{inner()}{pad}else:\n{inner()}"
        if kind == "elif":
            return f"{pad}if {self.test()}:\n{inner()}{pad}elif {self.test()}:\n{inner()}{pad}else:\n{inner()}"
        if kind == "for":
            return f"{pad}for x in (1, 2):\n{inner(True)}"
        if kind == "while":
            return f"{pad}while {self.test()}:\n{inner(False)}{pad}    break\n"
        if kind == "with":
            return f"{pad}with quiet():\n{inner()}"
        if kind == "try":
            return f"{pad}try:\n{inner()}{pad}except ValueError:\n{inner()}"
        if kind == "assert":
            return f"{pad}assert {self.test()}\n"
        if kind == "leave":
            return pad + self.random.choice(
                ["return\n", "raise ValueError\n", *(["break\n", "continue\n"] if in_loop else [])]
            )
        return pad + "mark()\n"


@pytest.mark.parametrize("seed", range(150))
def test_whenever_a_line_runs_its_conditions_hold(seed: int) -> None:
    code = Programs(seed).function()
    module = module_of(code)
    (scope,) = module.functions("f")
    guards: dict[int, list[str]] = {}
    for node in walk(*scope.body):
        if isinstance(node, ast.Expr):
            conditions = [each for each in path_conditions(node) if len(each.tests) == 1 and not each.text.startswith(("for ", "no pass"))]  # fmt: skip
            guards[node.lineno] = [each.text for each in conditions]
            assert all(compile(each.text, "", "eval") for each in conditions)
    for choice in range(64):
        values = {name: bool(choice >> bit & 1) for bit, name in enumerate("abcdeg")}
        for line in executed(code, values):
            for text in guards[line]:
                assert eval(text, {}, values), f"line {line} ran with {values} against {text!r}\n{code}"


def executed(code: str, values: dict[str, bool]) -> list[int]:
    """The lines of the marks that run."""
    import contextlib
    import sys

    lines: list[int] = []

    def mark() -> None:
        lines.append(sys._getframe(1).f_lineno)

    namespace = {"mark": mark, "quiet": contextlib.nullcontext}
    exec(compile(code, "made", "exec"), namespace)
    with contextlib.suppress(ValueError, AssertionError):
        namespace["f"](**values)  # type: ignore[operator]
    return lines


def test_a_block_that_never_runs_on() -> None:
    def block(code: str) -> list[ast.stmt]:
        return ast.parse(code).body

    assert terminates(block("if a:\n raise X\nelse:\n raise Y"))
    assert terminates(block("try:\n f()\nexcept E:\n raise\nelse:\n raise X"))
    assert not terminates(block("try:\n raise X\nexcept E:\n pass"))
    assert not terminates(block("for x in y:\n raise X"))

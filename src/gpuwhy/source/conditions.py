"""Under which conditions a statement runs within its function: the tests around it, and the exits before it not taken.

if mode == "off":          "not (mode == 'off')"      an earlier return that was not taken
    return
if not eligible:           "not eligible"             the test around
    raise RuntimeError
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gpuwhy.source.scopes import CALLABLES, COMPREHENSIONS, ancestors, module_of, parent, walk

_FLIPPED: dict[type[ast.cmpop], str] = {
    ast.Is: "is not", ast.IsNot: "is", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_TELLING = (ast.Assert, ast.Try, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Match)
_MAX_EXITS = 40
"""Earlier exits of one block that are told; a dispatcher with more says nothing by them."""


class Condition:
    """``tests`` decide; all of them true is ``holds``. ``text`` is what has to be true. A *weak* one is an earlier raise
    or assert: had it been otherwise, another error would have come."""

    __slots__ = ("holds", "is_weak", "line", "tests", "text")

    def __init__(self, tests: tuple[ast.expr, ...], holds: bool, text: str, line: int, is_weak: bool = False) -> None:
        self.tests = tests
        self.holds = holds
        self.text = text
        self.line = line
        self.is_weak = is_weak


def negated(text: str) -> str:
    """``not (a and b)``; a double negation is taken away."""
    if text.startswith("not ") and not any(word in text for word in (" and ", " or ", " if ")):
        return text[4:]
    return f"not ({text})" if " " in text else f"not {text}"


def path_conditions(node: ast.AST) -> list[Condition]:
    """What must hold for a node to run inside its function, innermost first."""
    found: list[Condition] = []
    below: ast.AST = node
    for above in ancestors(node):
        found += _in_expression(below, above)
        if isinstance(below, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            found += _in_block(below, above)
        if isinstance(above, (*CALLABLES, ast.ClassDef, ast.Module)):
            break
        below = above
    return found


def _in_expression(node: ast.AST, above: ast.AST) -> list[Condition]:
    if isinstance(above, ast.IfExp) and node is not above.test:
        return [_single(above.test, node is above.body, above.lineno)]
    if isinstance(above, ast.BoolOp) and node is not above.values[0]:
        before = above.values[: next(number for number, value in enumerate(above.values) if value is node)]
        return [_single(value, isinstance(above.op, ast.And), above.lineno) for value in reversed(before)]
    if isinstance(above, COMPREHENSIONS) and not isinstance(node, ast.comprehension):
        return [_single(test, True, above.lineno) for generator in above.generators for test in generator.ifs]
    return []


def _in_block(node: ast.AST, above: ast.AST) -> list[Condition]:
    found: list[Condition] = []
    field, block, at = block_of(node, above)
    if field not in ("handlers", "cases", ""):
        for earlier in reversed(block[:at]):
            found += _passed(earlier)
    if isinstance(above, (ast.If, ast.While)) and field:
        found.append(_single(above.test, field == "body", above.lineno))
    elif isinstance(above, (ast.For, ast.AsyncFor)) and field == "body":
        text = f"for {_text(above.target)} in {_text(above.iter)}"
        found.append(Condition((above.iter,), True, text, above.lineno))
    elif isinstance(node, ast.match_case) and isinstance(above, ast.Match):
        tests = (above.subject, *([node.guard] if node.guard else []))
        found.append(Condition(tests, True, f"{_text(above.subject)} matches {_text(node.pattern)}", above.lineno))
    elif isinstance(above, ast.Try) and field == "handlers" and isinstance(node, ast.ExceptHandler):
        caught = _text(node.type) if node.type else "any exception"
        found.append(Condition((), True, f"{caught} was raised in the try at line {above.lineno}", above.lineno))
    elif isinstance(above, ast.Try) and field == "orelse":
        found.append(Condition((), True, f"the try at line {above.lineno} raised nothing", above.lineno))
    return found


def block_of(node: ast.AST, above: ast.AST | None = None) -> tuple[str, list[ast.stmt], int]:
    """The list of statements a node stands in: its field in the parent, the list, the position. ``""`` when none."""
    above = above or parent(node)
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        block = getattr(above, field, None)
        if isinstance(block, list):
            for at, each in enumerate(block):
                if each is node:
                    return field, block, at
    return "", [], 0


def _passed(statement: ast.stmt) -> Sequence[Condition]:
    """What an earlier statement of the block says by having been passed; remembered, as all later ones of it ask."""
    if not isinstance(statement, _TELLING):
        return ()
    found: Sequence[Condition] | None = statement.__dict__.get("_passed")
    if found is None:
        found = statement.__dict__["_passed"] = _found_passed(statement)
    return found


def _found_passed(statement: ast.stmt) -> Sequence[Condition]:
    if isinstance(statement, ast.Assert):
        return [Condition((statement.test,), True, _text(statement.test), statement.lineno, is_weak=True)]
    if isinstance(statement, ast.Try) and terminates(statement.body):
        caught = [handler for handler in statement.handlers if not terminates(handler.body)]
        if caught:
            types = ", ".join(_text(handler.type) if handler.type else "any exception" for handler in caught)
            return [
                Condition((), True, f"the try at line {statement.lineno} ended in except {types}", statement.lineno)
            ]
        return []
    if isinstance(statement, ast.If):
        branch = _passed_branch(statement)
        if branch is not None:
            return branch
    found: list[Condition] = []
    for leaving in _exits(statement):
        within = _within(leaving, statement)
        tests = tuple(test for condition in within for test in condition.tests)
        if not tests:
            continue
        is_weak = isinstance(leaving, ast.Raise)
        if len(within) == 1 and not isinstance(statement, (ast.For, ast.AsyncFor)):
            found.append(_single(within[0].tests[0], not within[0].holds, within[0].line, is_weak))
        else:
            looped = "no pass had " if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)) else ""
            text = " and ".join(_operand(condition.text, len(within)) for condition in reversed(within))
            said = looped + text if looped else negated(text)
            found.append(Condition(tests, False, said, statement.lineno, is_weak))
        if len(found) >= _MAX_EXITS:
            break
    return found


def _operand(text: str, count: int) -> str:
    """A condition as one of several that are joined with ``and``: what binds less than that needs brackets."""
    if count == 1 or not any(word in text for word in (" or ", " if ", "lambda", ":=")):
        return text
    try:
        is_loose = isinstance(ast.parse(text, mode="eval").body, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # shortened, or no expression: a loop, a pattern
        is_loose = not text.startswith("for ")
    return f"({text})" if is_loose else text


def _passed_branch(statement: ast.If) -> list[Condition] | None:
    """An if of which one branch never runs on: the other one was taken, and passed in its turn."""
    for branch, other, holds in ((statement.body, statement.orelse, False), (statement.orelse, statement.body, True)):
        if terminates(branch):
            leaving = [each for inner in branch for each in _exits(inner)]
            is_weak = bool(leaving) and all(isinstance(each, ast.Raise) for each in leaving)
            taken = _single(statement.test, holds, statement.lineno, is_weak)
            return [*(each for inner in reversed(other) for each in _passed(inner)), taken]
    return None


def _within(node: ast.AST, outermost: ast.stmt) -> list[Condition]:
    """The conditions of a node up to and with a statement around it."""
    found: list[Condition] = []
    below = node
    for above in ancestors(node):
        if isinstance(below, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            field, _, _ = block_of(below, above)
            if isinstance(above, ast.If) and field:
                found.append(_single(above.test, field == "body", above.lineno))
            elif isinstance(above, (ast.For, ast.AsyncFor, ast.While, ast.Match, ast.Try)):
                found += [each for each in _in_block(below, above) if each.line == above.lineno and not each.is_weak]
        if above is outermost:
            break
        below = above
    return found


def _exits(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Statements inside that leave the block around: returns and raises, and the jumps of the loop around it. What a
    try around might catch is left out."""
    jumps = not isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
    stack: list[tuple[ast.stmt, bool]] = [(statement, jumps)]
    while stack:
        node, jumps = stack.pop()
        if isinstance(node, (ast.Return, ast.Raise)) or (jumps and isinstance(node, (ast.Continue, ast.Break))):
            yield node
        elif isinstance(node, (ast.With, ast.AsyncWith)) and "suppress" in _text(node.items[0].context_expr):
            continue
        elif isinstance(node, ast.Try):
            if not node.handlers:
                stack += [(each, jumps) for each in reversed(node.body)]
        elif isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Match)):
            is_loop = isinstance(node, (ast.For, ast.AsyncFor, ast.While))
            blocks = [case.body for case in node.cases] if isinstance(node, ast.Match) else [node.body]
            for block in [*blocks, getattr(node, "orelse", [])]:
                stack += [(each, jumps and not is_loop) for each in reversed(_live(block))]


def _live(body: list[ast.stmt]) -> list[ast.stmt]:
    """A block up to the first statement that it never runs on from."""
    ending = next((at for at, statement in enumerate(body) if terminates([statement])), len(body))
    return body[: ending + 1]


def terminates(body: list[ast.stmt]) -> bool:
    """Whether a block never runs on into what follows it."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return True
    if isinstance(last, ast.If):
        return terminates(last.body) and terminates(last.orelse)
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return terminates(last.body)
    if isinstance(last, ast.Try):
        is_left = terminates(last.orelse or last.body) and all(terminates(handler.body) for handler in last.handlers)
        return is_left or terminates(last.finalbody)
    return False


def _single(test: ast.expr, holds: bool, line: int, is_weak: bool = False) -> Condition:
    flipped = _FLIPPED.get(type(test.ops[0])) if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
    if flipped and not holds and isinstance(test, ast.Compare):
        shown = f"{_compared(test.left)} {flipped} {_compared(test.comparators[0])}"
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        shown = _text(test) if holds else _text(test.operand)
    else:
        shown = _text(test) if holds else negated(_text(test))
    return Condition((test,), holds, shown, line, is_weak)


def _compared(node: ast.expr) -> str:
    """One side of a comparison: the text of a node is without the brackets around it."""
    is_loose = isinstance(node, (ast.Compare, ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr))
    is_loose = is_loose or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    return f"({_text(node)})" if is_loose else _text(node)


def _text(node: ast.AST) -> str:
    try:
        return module_of(node).text(node, 160)
    except KeyError:
        # a pattern of a match statement holds no scope of its own
        return next((module_of(each).text(node, 160) for each in walk(node) if "_scope" in each.__dict__), "")

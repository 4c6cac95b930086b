"""What a slice is built of: its nodes, the borders of processes, and the calls that a function is looked at through."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gpuwhy.source.conditions import Condition
from gpuwhy.source.scopes import Scope


class Node:
    """A step of the slice; see :class:`answers.Step` for the kinds, and ``expression`` and ``seen`` besides."""

    __slots__ = ("below", "conditions", "kind", "node", "note", "pending", "text", "touched")

    def __init__(self, kind: str, text: str, node: ast.AST | None = None, conditions: Iterable[Condition] = (), note: str = "") -> None:  # fmt: skip
        self.kind = kind
        self.text = text
        self.node = node
        self.conditions = list(conditions)
        self.note = note
        self.below: list[Node] = []
        self.pending: tuple[ast.expr, float, Context | None] | None = None
        self.touched: object = None
        """The Flag or the Touch behind a flag or an environment node; the Scope behind a field."""


class Border:
    """A handler around all that a process does."""

    __slots__ = ("handler",)

    def __init__(self, handler: ast.ExceptHandler) -> None:
        self.handler = handler


class Context:
    """A call that a function is looked at through: its parameters take their values from there."""

    __slots__ = ("above", "call", "depth", "function", "key")

    def __init__(self, function: Scope, call: ast.Call, above: Context | None) -> None:
        self.function = function
        self.call = call
        self.above = above
        self.depth: int = 1 + (above.depth if above else 0)
        self.key: tuple[int, object] = (id(call), above.key if above and above.depth < 2 else None)


def breadth_first(root: Node) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """The nodes below a root, nearest first, each once, with the shortest path to it."""
    seen: set[int] = set()
    pending: list[tuple[Node, tuple[Node, ...]]] = [(root, ())]
    at = 0
    while at < len(pending):
        node, path = pending[at]
        at += 1
        if id(node) not in seen:
            seen.add(id(node))
            yield node, path
            pending += [(each, (*path, node)) for each in node.below]

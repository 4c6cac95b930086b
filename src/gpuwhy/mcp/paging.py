"""Answers within a budget of bytes: what matters most comes first, the rest is kept here and asked for by a cursor."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

Row: TypeAlias = "tuple[str, Any]"
"""An entry of the list with this name."""

KEPT = 64
"""Answers whose rest is kept."""
_RESERVE = 120
"""Bytes for the cursor and the count of what is left."""
_SHORTEST = 32
_CUT = " [cut]"


class UnknownCursorError(Exception):
    """A cursor is not, or no longer, known."""


class Pages:
    """The rests of answers that were longer than ``budget`` bytes (of JSON, without blanks)."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._rests: OrderedDict[str, tuple[str, list[Row]]] = OrderedDict()

    def first(self, tool: str, head: dict[str, Any], rows: Iterable[Row]) -> dict[str, Any]:
        """An answer: its head, and as many rows as there is room for, in their order."""
        return self._page(tool, _within(head, self.budget - _RESERVE), list(rows))

    def next(self, tool: str, cursor: str) -> dict[str, Any]:
        """The page behind a cursor, which works once. Raises UnknownCursorError."""
        owner, rows = self._rests.pop(cursor, ("", []))
        if owner != tool:
            raise UnknownCursorError(cursor)
        return self._page(tool, {}, rows)

    def _page(self, tool: str, head: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
        page, size, taken = dict(head), len(encoded(head)), 0
        for section, value in rows:
            shown = _within(value, self.budget - _RESERVE - len(section) - 8) if taken == 0 and not head else value
            cost = len(encoded(shown)) + (1 if section in page else len(section) + 6)
            if size + cost > self.budget - _RESERVE and (taken or head):
                break
            page.setdefault(section, []).append(shown)
            size += cost
            taken += 1
        left = list(rows[taken:])
        if left:
            page["next_cursor"] = self._keep(tool, left)
            page["entries_left"] = len(left)
        return page

    def _keep(self, tool: str, rows: list[Row]) -> str:
        cursor = secrets.token_urlsafe(9)
        self._rests[cursor] = (tool, rows)
        while len(self._rests) > KEPT:
            self._rests.popitem(last=False)
        return cursor


def encoded(value: Any) -> bytes:
    """The JSON that a client is sent."""
    return msgspec.json.encode(value)


def _within(value: Any, most: int) -> Any:
    """The value with its longest texts cut until it is small enough; where that does not do, a word in its place."""
    length = most
    while len(encoded(value)) > most:
        length //= 2
        if length < _SHORTEST:
            return {"cut": f"{len(encoded(value))} bytes, more than an answer may have"}
        value = _shortened(value, length)
    return value


def _shortened(value: Any, length: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= length else value[: length - len(_CUT)] + _CUT
    if isinstance(value, dict):
        return {key: _shortened(each, length) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        kept = [_shortened(each, length) for each in value[: max(4, length // 16)]]
        return kept if len(kept) == len(value) else [*kept, f"and {len(value) - len(kept)} more"]
    return value

"""Rows of a query as a table for people, as CSV, or as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from gpuwhy.reports.columns import columns_of, cut, padded
from gpuwhy.reports.document import written
from gpuwhy.reports.neutral import plain

FORMATS = ("table", "csv", "json")
WIDEST = 60
"""Columns of one field in a table; CSV and JSON have all of it."""


def shown(columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> str:
    """The rows in a form of :data:`FORMATS`. Control characters are written out in each."""
    if form == "json":
        names = _each_its_own(columns)
        return written([dict(zip(names, map(_scalar, row), strict=True)) for row in rows])
    if form == "csv":
        return _csv(columns, rows)
    return "".join(f"{line}\n" for line in _table(columns, rows))


def _each_its_own(columns: Sequence[str]) -> list[str]:
    """Names of columns that no other has: a query may give two the same."""
    names: list[str] = []
    for name in columns:
        number = 2
        unique = name
        while unique in names:
            unique, number = f"{name}_{number}", number + 1
        names.append(unique)
    return names


def _scalar(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([plain(each) for each in columns])
    writer.writerows([["" if each is None else plain(str(_scalar(each))) for each in row] for row in rows])
    return text.getvalue()


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    cells = [[_cell(each) for each in row] for row in rows]
    names = [_cell(each) for each in columns]
    widths = [max(columns_of(row[at]) for row in [names, *cells]) for at in range(len(names))]
    numeric = [all(isinstance(row[at], (int, float)) for row in rows) and bool(rows) for at in range(len(names))]
    for row in [names, ["-" * width for width in widths], *cells]:
        fields = (
            each.rjust(width) if is_number else padded(each, width)
            for each, width, is_number in zip(row, widths, numeric, strict=True)
        )
        yield "  ".join(fields).rstrip()


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else plain(str(_scalar(value)))
    return cut(text, WIDEST)

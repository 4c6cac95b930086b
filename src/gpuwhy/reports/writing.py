"""Renders an answer in a format, and writes it to standard output or a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpuwhy.reports.formats import kind_of, show_of
from gpuwhy.reports.interface import Answer, Detail
from gpuwhy.reports.row import Row

NARROWEST, WIDEST = 24, 120
"""Columns between which a report follows the terminal: longer lines are hard to read."""


def render(answer: Answer, form: str, detail: Detail | None = None) -> str:
    """The report as a string. Raises UnknownFormatError."""
    detail = detail or Detail()
    shown = show_of(form, kind_of(answer))(answer, detail)
    return shown if isinstance(shown, str) else wrapped(shown, detail.width)


def wrapped(rows: Sequence[Row], width: int) -> str:
    """Rows as plain text."""
    return "".join(f"{line}\n" for row in rows for line in row.wrapped(width))


def write(answer: Answer, form: str, detail: Detail, path: Path | None = None) -> None:
    """Write the report; to a terminal as wide as that is, and in colour where it is wanted. Raises OSError, UnknownFormatError."""
    if path is not None:
        path.write_text(render(answer, form, detail), encoding="utf-8", errors="replace")
        return
    is_watched = sys.stdout.isatty()
    if is_watched:
        detail = msgspec.structs.replace(detail, width=terminal_width())
    shown = show_of(form, kind_of(answer))(answer, detail)
    if isinstance(shown, str):
        put(shown)
    elif is_watched:
        put(for_terminal(shown, detail.width))
    else:
        put(wrapped(shown, detail.width))


def terminal_width() -> int:
    """Columns to use of the terminal."""
    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST))


def for_terminal(rows: Sequence[Row], width: int) -> str:
    """Rows as a terminal is sent them."""
    from gpuwhy.reports.colour import can_link, coloured, wants_colour

    if not wants_colour():
        return wrapped(rows, width)
    return "".join(f"{line}\n" for line in coloured(rows, width, with_links=can_link()))


def put(text: str) -> None:
    """Write to standard output, whatever its encoding."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()

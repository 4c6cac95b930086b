"""Renders an answer in a format, and writes it to standard output or a file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
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
        save(render(answer, form, detail), path)
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


def write_rows(rows: Iterable[Row], piped_width: int) -> None:
    """Rows on standard output: as a terminal is wide, or in ``piped_width`` columns (0: no line is broken) anywhere else."""
    shown = list(rows)
    put(for_terminal(shown, terminal_width()) if sys.stdout.isatty() else wrapped(shown, piped_width))


def save(text: str, path: Path) -> None:
    """Write a file in one step, so that nobody (node_exporter, a browser) reads half of it. Raises OSError."""
    content = text.encode("utf-8", "replace")
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # a pipe or a device
        return
    target = path.resolve()
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    part = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        if mode is not None:
            part.chmod(mode)
        part.replace(target)
    except OSError:
        part.unlink(missing_ok=True)
        if mode is None:
            raise
        target.write_bytes(content)  # the file may be written, its folder may not


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

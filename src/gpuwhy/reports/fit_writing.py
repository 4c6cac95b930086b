"""Writes the report of ``gpuwhy fit``: plainly to a file or pipe, in colour to a terminal, as JSON."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from gpuwhy.fit.results import Estimate
from gpuwhy.fit.search import Search
from gpuwhy.reports import fit

_STYLES = {"answer": "bold", "heading": "bold cyan", "proven": "green", "likely": "yellow", "swallowed": "bold red", "quote": "dim", "note": "dim"}  # fmt: skip


def write(found: Estimate, form: str, verbose: bool, path: Path | None = None, searched: Search | None = None) -> None:
    """``form`` is ``text`` or ``json``. Raises OSError."""
    if form == "text" and path is None and sys.stdout.isatty():
        width = max(40, min(shutil.get_terminal_size().columns, 100))
        if not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            _print_in_colour(found, verbose, width, searched)
            return
        text = fit.render(found, verbose, width, searched)
    else:
        text = _rendered(found, form, verbose, searched)
    if path is not None:
        path.write_text(text, encoding="utf-8")
        return
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def _print_in_colour(found: Estimate, verbose: bool, width: int, searched: Search | None) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for row in fit.rows(found, verbose, searched):
        for line in row.wrapped(width):
            console.print(Text(line, style=_STYLES.get(row.style, "")), soft_wrap=True)


def _rendered(found: Estimate, form: str, verbose: bool, searched: Search | None) -> str:
    if form == "json":
        from gpuwhy.reports.fit_json import render

        return render(found, searched)
    return fit.render(found, verbose, searched=searched)

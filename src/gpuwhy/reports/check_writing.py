"""Writes the report of ``gpuwhy check``: plainly to a file or pipe, in colour to a terminal, as JSON."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from gpuwhy.investigate.checks.results import Forecast
from gpuwhy.reports import check

_STYLES = {"answer": "bold", "heading": "bold cyan", "proven": "bold red", "likely": "yellow", "possible": "yellow", "command": "green", "quote": "dim", "note": "dim"}  # fmt: skip


def write(forecast: Forecast, form: str, verbose: bool, path: Path | None = None) -> None:
    """``form`` is ``text`` or ``json``. Raises OSError."""
    if form == "text" and path is None and sys.stdout.isatty():
        width = max(40, min(shutil.get_terminal_size().columns, 120))
        if not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            _print_in_colour(forecast, verbose, width)
            return
        text = check.render(forecast, verbose, width)
    else:
        text = _rendered(forecast, form, verbose)
    if path is not None:
        path.write_text(text, encoding="utf-8")
        return
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def _print_in_colour(forecast: Forecast, verbose: bool, width: int) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for row in check.rows(forecast, verbose):
        for line in row.wrapped(width):
            console.print(Text(line, style=_STYLES.get(row.style, "")), soft_wrap=True)


def _rendered(forecast: Forecast, form: str, verbose: bool) -> str:
    if form == "json":
        from gpuwhy.reports.check_json import render

        return render(forecast)
    return check.render(forecast, verbose)

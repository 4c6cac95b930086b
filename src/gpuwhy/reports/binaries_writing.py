"""Writes the report of an inspection to standard output or a file; in colour when a person is looking."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gpuwhy.model.inspection import Inspection
from gpuwhy.reports import binaries

_STYLES = {binaries.GOOD: "green", binaries.BAD: "bold red", binaries.UNSURE: "yellow", binaries.HEADING: "bold cyan", binaries.NOTE: "dim"}  # fmt: skip


def write(inspection: Inspection, form: str, verbose: bool, path: Path | None = None) -> None:
    """``form`` is ``text`` or ``json``. Raises OSError."""
    if form == "text" and path is None and sys.stdout.isatty() and not _wants_no_colour():
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        for line, style in binaries.lines(inspection, verbose):
            console.print(Text(line, style=_STYLES.get(style, "")), soft_wrap=True)
        return
    text = _rendered(inspection, form, verbose)
    if path is not None:
        path.write_text(text, encoding="utf-8")
        return
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def _wants_no_colour() -> bool:
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def _rendered(inspection: Inspection, form: str, verbose: bool) -> str:
    if form == "json":
        from gpuwhy.reports.binaries_json import render

        return render(inspection)
    return binaries.render(inspection, verbose)

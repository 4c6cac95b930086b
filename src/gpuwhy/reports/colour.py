"""The text report in colour, through rich; imported only when a person is looking."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.reports.interface import Detail
from gpuwhy.reports.row import Row
from gpuwhy.reports.text import rows

STYLES = {
    "answer": "bold",
    "proven": "bold green",
    "likely": "bold yellow",
    "possible": "bold magenta",
    "heading": "bold cyan",
    "command": "green",
    "quote": "dim",
    "note": "dim",
    "swallowed": "yellow",
}


def print_in_colour(diagnosis: Diagnosis, detail: Detail, console: Console | None = None) -> None:
    """Print to ``console`` (standard output by default)."""
    console = console or Console(highlight=False, soft_wrap=True)
    for row in rows(diagnosis, detail):
        for line in row.wrapped(detail.width):
            console.print(_styled(row, line), soft_wrap=True)


def _styled(row: Row, line: str) -> Text:
    return Text(line, style=STYLES.get(row.style, ""))

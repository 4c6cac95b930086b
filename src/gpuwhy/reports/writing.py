"""Renders a diagnosis in a format, and writes it to standard output or a file."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.reports.interface import Detail

FORMATS = {"text": "gpuwhy.reports.text", "json": "gpuwhy.reports.json"}
"""The module of each format; it has a function ``render``."""


def render(diagnosis: Diagnosis, form: str, detail: Detail | None = None) -> str:
    """The report as a string. Raises KeyError for an unknown format."""
    text: str = importlib.import_module(FORMATS[form]).render(diagnosis, detail or Detail())
    return text


def write(diagnosis: Diagnosis, form: str, detail: Detail, path: Path | None = None) -> None:
    """Write the report; to a terminal in colour, unless ``NO_COLOR`` is set. Raises OSError."""
    if path is not None:
        path.write_text(render(diagnosis, form, detail), encoding="utf-8")
        return
    if form == "text" and sys.stdout.isatty():
        detail = msgspec.structs.replace(detail, width=max(40, min(shutil.get_terminal_size().columns, 120)))
        if not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            from gpuwhy.reports.colour import print_in_colour

            print_in_colour(diagnosis, detail)
            return
    text = render(diagnosis, form, detail)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()

"""Writes ``docs/seed.svg``: what a terminal shows for the seed log. Run: ``python -m scripts.make_picture``.

The picture is rich's own SVG export without its web fonts, so that it loads nothing from anywhere.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

from gpuwhy.investigate import diagnose_log
from gpuwhy.remedies import prescribe
from gpuwhy.reports import Detail
from gpuwhy.reports.colour import coloured
from gpuwhy.reports.text import rows

ROOT = Path(__file__).parents[1]
LOG = ROOT / "tests" / "data" / "logs" / "sglang.log"
PICTURE = ROOT / "docs" / "seed.svg"
COLUMNS = 110
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def picture() -> str:
    """The report of the seed log, drawn as a terminal, which folds lines that are longer than it is wide."""
    diagnosis = prescribe(diagnose_log(LOG.read_bytes(), LOG.name))
    sent = "\n".join(coloured(rows(diagnosis, Detail(width=COLUMNS)), COLUMNS))
    drawn = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    drawn.print(Text("$ gpuwhy diagnose sglang.log", style="bold"))
    drawn.print(Text.from_ansi(sent), overflow="fold")
    return without_web_fonts(drawn.export_svg(title="gpuwhy", unique_id="gpuwhy"))


def without_web_fonts(svg: str) -> str:
    """The drawing with the reader's own monospace font in place of one that would be fetched."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*", "", svg)
    svg = re.sub(r"font-family:\s*(?:Fira Code|arial)[^;}]*", f"font-family: {FONTS}", svg)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")

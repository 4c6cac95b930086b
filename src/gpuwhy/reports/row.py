"""One paragraph of a report for people, wrapped to the terminal."""

from __future__ import annotations

import msgspec

from gpuwhy.model.evidence import Place
from gpuwhy.reports.columns import filled
from gpuwhy.reports.neutral import plain


class Row(msgspec.Struct, frozen=True):
    """One paragraph: its text, how far it is set in, what it is. Commands are never wrapped, so they can be copied.

    ``place`` is a place that the text names; a terminal that can, leads there. ``is_whole``: never wrapped, a line of a table.
    """

    text: str
    indent: int = 0
    style: str = ""
    hang: int = 0
    place: Place | None = None
    is_whole: bool = False

    def wrapped(self, width: int) -> list[str]:
        """Its lines within ``width`` columns; control characters are written out."""
        margin = " " * self.indent
        if not self.text:
            return [""]
        if self.is_whole or self.style == "command" or width == 0:
            return [margin + plain(line) for line in self.text.split("\n")]
        hang = margin + " " * min(self.hang, max(width // 2 - self.indent, 2))
        return [
            line
            for part in self.text.split("\n")
            for line in filled(plain(part), max(width, self.indent + 20), margin, hang)
        ]

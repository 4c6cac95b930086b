"""The catalogue of causes for a person in a terminal: all of them by family, or the documentation of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuwhy.causes import CauseEntry
from gpuwhy.reports.row import Row


def causes_rows(entries: Sequence[CauseEntry]) -> Iterator[Row]:
    """Each cause with its sentence, under its family."""
    width = max((len(entry.id) for entry in entries), default=0) + 2
    family = ""
    for entry in sorted(entries, key=lambda each: (each.family, each.id)):
        if entry.family != family:
            yield from [Row("")] if family else []
            yield Row(entry.family, style="heading")
            family = entry.family
        yield Row(f"{entry.id:<{width}}{entry.summary}", 2, hang=width)


def cause_rows(entry: CauseEntry) -> Iterator[Row]:
    """The documentation: its headings, and under each the text as paragraphs that follow the width."""
    yield Row(f"{entry.id}  ({entry.family})", style="answer")
    yield Row("")
    paragraph: list[str] = []
    for line in [*entry.documentation.split("\n"), ""]:
        is_heading = bool(line.strip()) and not line.startswith(" ") and line != entry.summary
        if paragraph and (is_heading or not line.strip()):
            yield Row(" ".join(paragraph), 2 if paragraph[0] != entry.summary else 0)
            paragraph = []
        if is_heading:
            yield Row("")
            yield Row(line, style="heading")
        elif line.strip():
            paragraph.append(line.strip())

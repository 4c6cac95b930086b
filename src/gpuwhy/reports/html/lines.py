"""An answer that is text as a page: a headline, and the lines below it with their styles."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.reports.html.page import written

MOST_LINES = 2_000


def render(lines: Sequence[tuple[str, str]], subject: str, kind: str, headline: str = "") -> str:
    """The page of ``lines`` and their styles (a class of the style sheet each). ``headline`` is else the first line."""
    first = next((line.strip() for line, _ in lines if line.strip()), subject)
    return written(
        "lines.html.jinja",
        subject=subject,
        kind=kind,
        headline=headline or first,
        level="plain",
        remark="",
        matrix=None,
        title="The answer",
        lines=lines[:MOST_LINES],
        left_out=max(0, len(lines) - MOST_LINES),
        sections=(),
    )

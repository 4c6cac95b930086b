"""The answer of a trace as a page: the guard as the headline, then the answer line by line."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.reports import trace as text
from gpuwhy.reports.html import lines as page

_STYLES = {text.HEADING: "heading", text.ANSWER: "answer-line", text.NOTE: "note", text.QUOTE: "quote", text.SWALLOWED: "warn"}  # fmt: skip


def render(lines: Iterable[text.Line], question: str) -> str:
    """The page of the lines that the answer has as text."""
    shown = [(line, _STYLES.get(style, "")) for line, style in lines]
    headline = next((line.strip() for line, style in shown if style == "answer-line"), question)
    return page.render(shown, question, "trace of installed source", headline)

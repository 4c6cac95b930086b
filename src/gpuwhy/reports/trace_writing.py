"""Writes the answer of a trace to standard output or a file; the guard first, as soon as it is known."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from gpuwhy.reports import log_places, replay, trace_absence, trace_json
from gpuwhy.reports import trace as text
from gpuwhy.reports.trace_json import Answer
from gpuwhy.source.answers import Absence, Moved, Trace
from gpuwhy.source.texts_asking import LogPlaces

_STYLES = {
    text.HEADING: "bold cyan",
    text.ANSWER: "bold",
    text.NOTE: "dim",
    text.QUOTE: "dim",
    text.SWALLOWED: "yellow",
}


class Writer:
    """``form`` is ``text``, ``json`` or ``html``. Raises OSError when it writes."""

    def __init__(self, form: str, verbose: bool, path: Path | None) -> None:
        self._form = form
        self._verbose = verbose
        self._path = path
        self._has_begun = False
        self._shown: Trace | None = None

    @property
    def is_streaming(self) -> bool:
        """Whether a person reads along: then parts are shown while the rest is being worked out."""
        return self._form == "text" and self._path is None

    def begin(self, trace: Trace) -> None:
        """Show the guard; called again, what was found since."""
        if not self.is_streaming:
            return
        if not self._has_begun:
            self._show(text.first_lines(trace))
            self._has_begun = True
        elif self._shown is None:
            self._show(text.next_lines(trace, self._verbose))
            self._shown = trace
        sys.stdout.flush()

    def finish(self, answer: Answer) -> None:
        """Show what was not shown yet."""
        if isinstance(answer, Trace) and self._form == "text":
            self._show(
                text.rest_lines(answer, self._verbose, self._shown)
                if self._has_begun
                else text.lines(answer, self._verbose)
            )
        elif isinstance(answer, (Absence, Moved)) and self._form == "text":
            self._show(trace_absence.lines(answer, self._verbose))
        else:
            self._put(shown(answer, self._form, self._verbose))
        sys.stdout.flush()

    def _show(self, lines: Iterable[text.Line]) -> None:
        if (
            self._path is None
            and sys.stdout.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        ):
            from rich.console import Console
            from rich.text import Text

            console = Console(highlight=False, soft_wrap=True)
            for line, style in lines:
                console.print(Text(line, style=_STYLES.get(style, "")), soft_wrap=True)
            return
        self._put("".join(line + "\n" for line, _ in lines))

    def _put(self, content: str) -> None:
        if self._path is not None:
            self._path.write_text(content, encoding="utf-8", errors="replace")
            return
        sys.stdout.buffer.write(content.encode("utf-8", "replace"))


def shown(answer: Answer, form: str, verbose: bool) -> str:
    """The whole answer as ``text``, ``json`` or ``html``."""
    if form == "json":
        return trace_json.render(answer)
    if form == "html":
        return _page(answer)
    if isinstance(answer, Trace):
        return text.render(answer, verbose)
    if isinstance(answer, (Absence, Moved)):
        return "".join(f"{line}\n" for line, _ in trace_absence.lines(answer, verbose))
    if isinstance(answer, LogPlaces):
        return log_places.render(answer, verbose)
    return replay.render(answer, verbose=verbose)


def _page(answer: Answer) -> str:
    """The whole answer, whatever it is, as a page."""
    from gpuwhy.reports.html.trace import render

    if isinstance(answer, Trace):
        return render(text.lines(answer, verbose=True), answer.question)
    if isinstance(answer, (Absence, Moved)):
        return render(trace_absence.lines(answer, verbose=True), answer.name)
    if isinstance(answer, LogPlaces):
        return render(((line, "") for line in log_places.lines(answer, verbose=True)), answer.log)
    return render(((line, "") for line in replay.render(answer, verbose=True).splitlines()), answer.entry)

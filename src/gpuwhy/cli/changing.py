"""What the commands that change a target share: where the change is made, questions to a person, what is told meanwhile."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.failing import unusable

if TYPE_CHECKING:
    from gpuwhy.cli.target_options import Reach
    from gpuwhy.remedies.applying.site import Outcome, StepReport
    from gpuwhy.remedies.applying.verification import Rung
    from gpuwhy.reports.row import Row
    from gpuwhy.targets import HostTarget

_STYLES = {"answer": "bold", "heading": "bold cyan", "proven": "bold red", "likely": "yellow", "possible": "yellow", "note": "dim"}  # fmt: skip


def changed_host(where: str, reach: Reach) -> HostTarget:
    """The place whose files and units are changed. Raises :class:`gpuwhy.targets.TargetError`."""
    from gpuwhy.targets import HostTarget
    from gpuwhy.targets.container import ContainerTarget

    target = reach.target(where)
    if not isinstance(target, HostTarget):
        unusable(f"{where} is a file: only a live place can be changed (local, or an SSH destination)")
    if isinstance(target, ContainerTarget):
        return target.host  # a container is changed by who makes it
    if target.kind not in ("local", "ssh"):
        unusable(f"{where}: changes are made to this machine or to a host over SSH, not inside a {target.kind} target")
    return target


def ask_number(most: int) -> int | None:
    """Which remedy; None when nobody is there, or when the answer is empty."""
    if not is_attended():
        return None
    while True:
        answer = click.prompt(f"Which remedy (1-{most}, empty for none)", default="", show_default=False).strip()
        if not answer:
            return None
        if answer.isdigit() and 1 <= int(answer) <= most:
            return int(answer)


def ask_whether(question: str) -> bool:
    """A yes or no; no when nobody is there."""
    return is_attended() and click.confirm(question, default=False)


def ask_word(question: str, words: Sequence[str]) -> str:
    """One of the words; ``""`` when nobody is there."""
    return str(click.prompt(question, type=click.Choice(list(words)), default=words[-1])) if is_attended() else ""


def is_attended() -> bool:
    """Whether a person is there to answer and to read."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def told_steps(form: str) -> Iterator[tuple[Callable[[StepReport], None], Callable[[Rung], None]]]:
    """Each step and each rung on standard error as they come; for a program only what failed."""
    from gpuwhy.reports.fix import rung_line, step_line

    def step(report: StepReport) -> None:
        if form == "text" or report.status != "ok":
            sys.stderr.write(step_line(report) + "\n")
            sys.stderr.flush()

    def rung(climbed: Rung) -> None:
        if form == "text":
            sys.stderr.write(rung_line(climbed) + "\n")
            sys.stderr.flush()

    yield step, rung


def print_outcome(where: str, outcome: Outcome, form: str) -> None:
    """What came of an undo, or of going on with a change."""
    if form == "json":
        from gpuwhy.reports.fix_json import render_outcome

        click.echo(render_outcome(where, outcome), nl=False)
        return
    from gpuwhy.reports.fix import ended

    print_rows(ended(outcome))


def print_rows(rows: Iterable[Row]) -> None:
    """Rows on standard output: in colour on a terminal, plainly otherwise."""
    is_terminal = sys.stdout.isatty()
    width = max(40, min(shutil.get_terminal_size().columns, 120)) if is_terminal else 100
    if not is_terminal or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        text = "".join(line + "\n" for row in rows for line in row.wrapped(width))
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.flush()
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for row in rows:
        for line in row.wrapped(width):
            console.print(Text(line, style=_style_of(row)), soft_wrap=True)


def _style_of(row: Row) -> str:
    """Lines of a diff by their first character, the others by what they are."""
    if row.style == "command":
        return {"+": "green", "-": "red", "@": "cyan"}.get(row.text[:1], "")
    return _STYLES.get(row.style, "")

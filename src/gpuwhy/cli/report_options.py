"""``--format`` and ``--output`` of the commands that answer with a report, and writing it as they ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpuwhy.cli.failing import unusable
from gpuwhy.cli.format_options import FormatName

if TYPE_CHECKING:
    from gpuwhy.reports import Detail
    from gpuwhy.reports.interface import Answer

Command = TypeVar("Command", bound=Callable[..., Any])


def output_option(command: Command) -> Command:
    """``--output``, for the report."""
    kind = click.Path(path_type=Path)
    return click.option("--output", "-o", metavar="FILE", type=kind, help="Write the report to a file.")(command)


def report_options(kind: str) -> Callable[[Command], Command]:
    """``--format`` with the formats that show this kind of answer, given on as ``form``, and ``--output``."""

    def added(command: Command) -> Command:
        form = click.option("--format", "form", type=FormatName(kind), default="text", show_default=True)
        return form(output_option(command))

    return added


def write_report(answer: Answer, form: str, detail: Detail, output: Path | None) -> None:
    """Write it to the file, or to standard output; ends the command where that cannot be written."""
    from gpuwhy.reports import write

    with_words_for(output, lambda: write(answer, form, detail, output))


def with_words_for(output: Path | None, writing: Callable[[], None]) -> None:
    """Writes; ends the command in words where that fails. That a reader went away is for :func:`gpuwhy.cli.group.run`."""
    try:
        writing()
    except BrokenPipeError:
        raise
    except OSError as error:
        unusable(f"{output or 'standard output'}: {error.strerror}")

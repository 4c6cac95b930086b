"""How a command ends when it cannot do its work: one line that says what, on what, and what to try."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from gpuwhy.cli.group import FAILURE, UNREACHABLE, UNUSABLE
from gpuwhy.reports import plain

if TYPE_CHECKING:
    from gpuwhy.api import GpuwhyError, Outcome

_STATUSES = {"failure": FAILURE, "no failure": 0, "not examined": UNREACHABLE}


def status_of(outcome: Outcome) -> int:
    """The exit status that says what came of looking."""
    return _STATUSES[outcome]


def warn(message: str) -> None:
    """One line on standard error; the command goes on."""
    click.echo(f"gpuwhy: {plain(message)}", err=True)


def fail(error: GpuwhyError) -> NoReturn:
    """Ends the command as the error says: exit status 2 or 3."""
    from gpuwhy.api import UnreachableError

    (unreachable if isinstance(error, UnreachableError) else unusable)(str(error))


def unusable(message: str) -> NoReturn:
    """The input or the arguments cannot be used: exit status 2."""
    _end(message, UNUSABLE)


def unreachable(message: str) -> NoReturn:
    """The target could not be examined: exit status 3."""
    _end(message, UNREACHABLE)


def _end(message: str, status: int) -> NoReturn:
    sys.stderr.write("gpuwhy: " + "\n        ".join(plain(line) for line in message.splitlines()) + "\n")
    raise click.exceptions.Exit(status)

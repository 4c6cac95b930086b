"""How a command ends when it cannot do its work: one line that says what, on what, and what to try."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from gpuwhy.cli.group import UNREACHABLE, UNUSABLE
from gpuwhy.reports import plain


def unusable(message: str) -> NoReturn:
    """The input or the arguments cannot be used: exit status 2."""
    _end(message, UNUSABLE)


def unreachable(message: str) -> NoReturn:
    """The target could not be examined: exit status 3."""
    _end(message, UNREACHABLE)


def _end(message: str, status: int) -> NoReturn:
    sys.stderr.write("gpuwhy: " + "\n        ".join(plain(line) for line in message.splitlines()) + "\n")
    raise click.exceptions.Exit(status)

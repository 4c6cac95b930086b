"""The options that commands have in common which examine WHERE: which unit, with which facts, for how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])

DEADLINE = 8.0
"""Seconds that probes are given, where a command needs no other."""


def _places(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:  # noqa: ARG001
    """What WHERE can be, for the shell's completion: ``local``, or a file."""
    from click.shell_completion import CompletionItem

    local = [CompletionItem("local")] if begun and "local".startswith(begun) else []
    return [*local, CompletionItem(begun, type="file")]


def where_argument(*, is_required: bool = True, name: str = "where") -> Callable[[Command], Command]:
    """WHERE, which a shell completes."""
    return click.argument(name, required=is_required, shell_complete=_places)


def unit_option(meaning: str = "to examine; without it the failing one is looked for") -> Callable[[Command], Command]:
    """``--unit``."""
    return click.option("--unit", "-u", default="", metavar="NAME", help=f"The systemd unit {meaning}.")


def facts_option(command: Command) -> Command:
    """``--facts``, given on as ``facts_file``."""
    kind = click.Path()
    return click.option("--facts", "facts_file", type=kind, metavar="FILE", help="Facts of the host, given by hand (YAML or JSON).")(command)  # fmt: skip


def deadline_option(seconds: float = DEADLINE) -> Callable[[Command], Command]:
    """``--deadline``."""
    kind = click.FloatRange(0.5, 600)
    return click.option("--deadline", type=kind, default=seconds, show_default=True, metavar="SECONDS", help="For the probes, of all that --timeout allows.")  # fmt: skip

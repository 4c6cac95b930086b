"""``gpuwhy cause ID``: the documentation of one cause."""

from __future__ import annotations

import difflib

import click

from gpuwhy.cli.failing import unusable


def _causes(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:  # noqa: ARG001
    """For the shell's completion."""
    from gpuwhy.causes import catalogue

    return sorted(identity for identity in catalogue() if identity.startswith(begun))


@click.command("cause")
@click.argument("identity", metavar="ID", shell_complete=_causes)
def command(identity: str) -> None:
    """Print what a cause is, how it shows itself, how to be sure, and what helps."""
    from gpuwhy.causes import catalogue
    from gpuwhy.reports.catalogue import cause_rows
    from gpuwhy.reports.interface import Detail
    from gpuwhy.reports.writing import write_rows

    entry = catalogue().get(identity)
    if entry is None:
        close = difflib.get_close_matches(identity, catalogue(), 3, 0.4)
        unusable(
            f"no cause is called {identity}"
            + (f"; did you mean {', '.join(close)}?" if close else "")
            + "\ngpuwhy causes lists them"
        )
    write_rows(cause_rows(entry), Detail().width)

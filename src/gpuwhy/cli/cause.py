"""``gpuwhy cause ID``: the documentation of one cause."""

from __future__ import annotations

import difflib

import click

from gpuwhy.cli.failing import unusable


@click.command("cause")
@click.argument("identity", metavar="ID")
def command(identity: str) -> None:
    """Print what a cause is, how it shows itself, how to be sure, and what helps."""
    from gpuwhy.causes import catalogue

    entry = catalogue().get(identity)
    if entry is None:
        close = difflib.get_close_matches(identity, catalogue(), 3, 0.4)
        unusable(
            f"no cause is called {identity}"
            + (f"; did you mean {', '.join(close)}?" if close else "")
            + "\ngpuwhy causes lists them"
        )
    click.echo(f"{entry.id}  ({entry.family})\n\n{entry.documentation}")

"""``gpuwhy causes``: the catalogue."""

from __future__ import annotations

import json

import click


@click.command("causes")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(form: str) -> None:
    """List the catalogue of causes by family."""
    from gpuwhy.causes import catalogue

    entries = sorted(catalogue().values(), key=lambda entry: (entry.family, entry.id))
    if form == "json":
        click.echo(json.dumps([{"id": e.id, "family": e.family, "summary": e.summary} for e in entries], indent=1))
        return
    family = ""
    for entry in entries:
        if entry.family != family:
            click.echo(("\n" if family else "") + entry.family)
            family = entry.family
        click.echo(f"  {entry.id:<28} {entry.summary}")

"""``gpuwhy causes``: the catalogue."""

from __future__ import annotations

import json

import click


@click.command("causes")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(form: str) -> None:
    """List the catalogue of causes by family."""
    from gpuwhy.causes import catalogue
    from gpuwhy.reports.catalogue import causes_rows
    from gpuwhy.reports.writing import write_rows

    entries = sorted(catalogue().values(), key=lambda entry: (entry.family, entry.id))
    if form == "json":
        click.echo(json.dumps([{"id": e.id, "family": e.family, "summary": e.summary} for e in entries], indent=1))
        return
    write_rows(causes_rows(entries), 0)

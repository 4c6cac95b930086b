"""``gpuwhy fleet query FOLDER SQL``: questions over a collected fleet."""

from __future__ import annotations

import click

from gpuwhy.cli.failing import unusable


@click.command("query")
@click.argument("folder", type=click.Path())
@click.argument("sql")
@click.option("--format", "form", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
@click.option("--timeout", type=click.FloatRange(0.1, 600), default=20.0, show_default=True, help="Seconds for the answer.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=100_000, show_default=True, help="Rows at most.")
def command(folder: str, sql: str, form: str, timeout: float, limit: int) -> int:
    """Ask the fleet in FOLDER in SQL (SQLite): SELECT node, value FROM fact WHERE key = 'driver'.

    Tables: node, fact (node, key, kind, value), deviation, finding, member, pool, failure, run; docs/fleet-report.md has
    their columns. Nothing can be written. What was collected since the last report is analysed first.
    """
    from gpuwhy.fleet.analysing import analyse
    from gpuwhy.fleet.query import QueryError, is_analysed, query
    from gpuwhy.fleet.store import StoreError
    from gpuwhy.reports.fleet_query import shown
    from gpuwhy.reports.writing import put

    try:
        if not is_analysed(folder):
            click.echo("gpuwhy: what was collected is analysed first", err=True)
            analyse(folder)
        answer = query(folder, sql, timeout, limit)
    except (StoreError, QueryError) as error:
        unusable(str(error))
    put(shown(answer.columns, answer.rows, form))
    if answer.is_cut:
        click.echo(f"gpuwhy: there are more than {limit:,} rows; --limit shows more", err=True)
    return 0

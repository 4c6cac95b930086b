"""``gpuwhy history [WHERE]``: what gpuwhy changed there, and what became of it."""

from __future__ import annotations

import click

from gpuwhy.cli.changing import changed_host, print_rows
from gpuwhy.cli.failing import unreachable
from gpuwhy.cli.target_options import Reach, target_options


@click.command("history")
@click.argument("where", default="local")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@target_options
def command(where: str, form: str, reach: Reach) -> int:
    """List the changes that gpuwhy made at WHERE (default: local) as the account that is logged in there.

    Exit status: 0 listed (also when there are none), 2 the arguments are unusable, 3 the target could not be reached.
    """
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.targets import TargetError

    try:
        with Site(changed_host(where, reach)) as site:
            records = site.history()
    except TargetError as error:
        unreachable(str(error))
    if form == "json":
        from gpuwhy.reports.fix_json import render_history

        click.echo(render_history(where, records), nl=False)
    else:
        from gpuwhy.reports.fix import history

        print_rows(history(records))
    return 0

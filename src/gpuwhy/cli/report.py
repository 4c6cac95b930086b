"""``gpuwhy report WHERE --for PROJECT``: the bug form of a project, filled."""

from __future__ import annotations

from pathlib import Path

import click

from gpuwhy.cli.examining import diagnosed
from gpuwhy.cli.failing import unusable
from gpuwhy.cli.target_options import Reach, target_options

PROJECTS = ("vllm", "sglang", "flashinfer", "pytorch")


@click.command("report")
@click.argument("where")
@click.option("--for", "project", type=click.Choice(PROJECTS), required=True, help="Whose form is filled.")
@click.option("--unit", "-u", default="", help="The systemd unit to examine; without it the failing one is looked for.")
@click.option("--facts", "facts_file", metavar="FILE", help="Facts of the host, given by hand (YAML or JSON).")
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write the report to a file.")
@click.option(
    "--private", is_flag=True, help="Leave names of hosts, addresses, users and folders, and secrets, as they are."
)
@click.option("--deadline", type=click.FloatRange(0.5, 600), default=8.0, show_default=True, help="Seconds for probes.")
@target_options
def command(
    where: str, project: str, unit: str, facts_file: str | None, output: Path | None, private: bool, deadline: float, reach: Reach
) -> int:  # fmt: skip
    """Write the bug report about WHERE that PROJECT's form asks for, to be read once more and pasted.

    WHERE is what gpuwhy diagnose takes, or a diagnosis that was saved with --format json. Secrets, and names of hosts, addresses,
    users and folders are taken out. Nothing is sent anywhere.
    """
    from gpuwhy.reports.issue_forms import FORMS, filled
    from gpuwhy.reports.public import public
    from gpuwhy.reports.writing import put, save

    diagnosis = diagnosed(where, unit, facts_file, deadline, reach)
    text = filled(project, diagnosis if private else public(diagnosis))
    try:
        if output is not None:
            save(text, output)
        else:
            put(text)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        unusable(f"{output}: {error.strerror}")
    click.echo(f"gpuwhy: read it before you post it; add the output of: {FORMS[project].own_tool}", err=True)
    return 0

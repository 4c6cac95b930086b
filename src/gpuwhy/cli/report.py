"""``gpuwhy report WHERE --for PROJECT``: the bug form of a project, filled."""

from __future__ import annotations

from pathlib import Path

import click

from gpuwhy.cli.examination_options import deadline_option, facts_option, unit_option, where_argument
from gpuwhy.cli.examining import diagnosed
from gpuwhy.cli.report_options import output_option, with_words_for
from gpuwhy.cli.target_options import Reach, target_options

PROJECTS = ("vllm", "sglang", "flashinfer", "pytorch")


@click.command("report")
@where_argument()
@click.option("--for", "project", type=click.Choice(PROJECTS), required=True, help="Whose form is filled.")
@unit_option()
@facts_option
@output_option
@click.option(
    "--private", is_flag=True, help="Leave names of hosts, addresses, users and folders, and secrets, as they are."
)
@deadline_option()
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
    with_words_for(output, lambda: save(text, output) if output is not None else put(text))
    click.echo(f"gpuwhy: read it before you post it; add the output of: {FORMS[project].own_tool}", err=True)
    return 0

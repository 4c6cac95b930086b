"""``gpuwhy diagnose WHERE``: the main job."""

from __future__ import annotations

from pathlib import Path

import click

from gpuwhy.cli.examination_options import deadline_option, facts_option, unit_option, where_argument
from gpuwhy.cli.failing import fail, status_of, unusable, warn
from gpuwhy.cli.report_options import report_options, write_report
from gpuwhy.cli.target_options import Reach, target_options


@click.command("diagnose")
@where_argument(is_required=False)
@click.option("--log", "-l", "logs", metavar="FILE", type=click.Path(), multiple=True, help="A further log of the same failure (repeatable).")  # fmt: skip
@unit_option()
@click.option(
    "--pid", type=click.IntRange(1, 2**22), help="A process that runs and does not get on: what it waits for."
)
@facts_option
@report_options("diagnosis")
@click.option("--verbose", "-v", is_flag=True, help="Every remedy in full, the facts used, the evidence.")
@click.option("--show-work", is_flag=True, help="The record of the investigation too.")
@click.option("--follow", "-f", "is_followed", is_flag=True, help="Go on, and tell of each incident when it is complete; Ctrl-C ends it.")  # fmt: skip
@deadline_option()
@target_options
def command(
    where: str | None,
    logs: tuple[str, ...],
    unit: str,
    pid: int | None,
    facts_file: str | None,
    form: str,
    output: Path | None,
    verbose: bool,
    show_work: bool,
    is_followed: bool,
    deadline: float,
    reach: Reach,
) -> int:
    """Find out why the service at WHERE failed, and what the smallest change is that fixes it.

    WHERE is a log or report file, - for standard input, a snapshot, local, an SSH destination, docker:NAME, podman:NAME,
    nerdctl:NAME or k8s:[NAMESPACE/]POD[/CONTAINER]. Several logs of one
    failure (ranks, the kernel's) become one case: --log engine.log --log dmesg.txt.
    """
    from gpuwhy import api
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.reports import Detail

    detail = Detail(verbose=verbose or show_work, show_work=show_work)
    try:
        given = api.facts_of(facts_file, warn) if facts_file else None
        if is_followed:
            from gpuwhy.cli.following import follow

            if where is None or logs or pid is not None:
                unusable("--follow takes one WHERE: a log, -, or a host with --unit; not --log or --pid")
            return follow(where, unit, given, form, detail, output, deadline, reach)
        with shown_progress(where or (logs[0] if logs else "")) as on_probe:
            diagnosis = api.diagnose(
                where,
                unit=unit,
                logs=logs,
                facts=given,
                pid=pid,
                via=reach.via,
                sudo=reach.sudo,
                deadline=deadline,
                timeout=reach.timeout,
                on_probe=on_probe,
            )
    except api.GpuwhyError as error:
        fail(error)
    write_report(diagnosis, form, detail, output)
    return status_of(api.outcome_of(diagnosis))

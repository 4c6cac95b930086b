"""``gpuwhy diagnose WHERE``: the main job."""

from __future__ import annotations

from pathlib import Path

import click

from gpuwhy.cli.failing import fail, status_of, unusable, warn
from gpuwhy.cli.format_options import FormatName
from gpuwhy.cli.target_options import Reach, target_options


@click.command("diagnose")
@click.argument("where", required=False)
@click.option(
    "--log", "-l", "logs", metavar="FILE", multiple=True, help="A further log of the same failure (repeatable)."
)
@click.option("--unit", "-u", default="", help="The systemd unit to examine; without it the failing one is looked for.")
@click.option(
    "--pid", type=click.IntRange(1, 2**22), help="A process that runs and does not get on: what it waits for."
)
@click.option("--facts", "facts_file", metavar="FILE", help="Facts of the host, given by hand (YAML or JSON).")
@click.option("--format", "form", type=FormatName("diagnosis"), default="text", show_default=True)
@click.option("--output", "-o", metavar="FILE", help="Write the report to a file.")
@click.option("--verbose", "-v", is_flag=True, help="Every remedy in full, the facts used, the evidence.")
@click.option("--show-work", is_flag=True, help="The record of the investigation too.")
@click.option("--follow", "-f", "is_followed", is_flag=True, help="Go on, and tell of each incident when it is complete; Ctrl-C ends it.")  # fmt: skip
@click.option("--deadline", type=click.FloatRange(0.5, 600), default=8.0, show_default=True, help="Seconds for probes.")
@target_options
def command(
    where: str | None,
    logs: tuple[str, ...],
    unit: str,
    pid: int | None,
    facts_file: str | None,
    form: str,
    output: str | None,
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
    from gpuwhy.reports import Detail, write

    detail = Detail(verbose=verbose or show_work, show_work=show_work)
    try:
        given = api.facts_of(facts_file, warn) if facts_file else None
        if is_followed:
            from gpuwhy.cli.following import follow

            if where is None or logs or pid is not None:
                unusable("--follow takes one WHERE: a log, -, or a host with --unit; not --log or --pid")
            return follow(where, unit, given, form, detail, Path(output) if output else None, deadline, reach)
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
    try:
        write(diagnosis, form, detail, Path(output) if output else None)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        unusable(f"{output}: {error.strerror}")
    return status_of(api.outcome_of(diagnosis))

"""``gpuwhy diagnose WHERE``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.failing import unusable
from gpuwhy.cli.format_options import FormatName
from gpuwhy.cli.group import FAILURE, UNREACHABLE
from gpuwhy.cli.target_options import Reach, target_options
from gpuwhy.model.diagnosis import Diagnosis

if TYPE_CHECKING:
    from gpuwhy.model.event import Log
    from gpuwhy.targets import Target


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
    deadline: float,
    reach: Reach,
) -> int:
    """Find out why the service at WHERE failed, and what the smallest change is that fixes it.

    WHERE is a log or report file, - for standard input, a snapshot, local, an SSH destination, docker:NAME, podman:NAME,
    nerdctl:NAME or k8s:[NAMESPACE/]POD[/CONTAINER]. Several logs of one
    failure (ranks, the kernel's) become one case: --log engine.log --log dmesg.txt.
    """
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.investigate import investigate
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.remedies import prescribe
    from gpuwhy.reports import Detail, write
    from gpuwhy.snapshot import SnapshotError, read_given
    from gpuwhy.targets import FileTarget, TargetError

    try:
        given = read_given(facts_file) if facts_file else None
        for warning in given.warnings if given else ():
            click.echo(f"gpuwhy: {warning}", err=True)
        target, more = _examined(where, logs, reach)
        if pid is not None and isinstance(target, FileTarget):
            unusable("--pid names a process of a live target: local, an SSH destination, a container")
        with shown_progress(target.name) as on_probe:
            facts = given.facts if given else None
            diagnosis = investigate(
                target,
                unit=unit,
                logs=more,
                facts=facts,
                on_probe=on_probe,
                deadline=deadline,
                timeout=reach.timeout,
                pid=pid,
            )
    except (UnreadableLog, SnapshotError) as error:
        unusable(str(error))
    except TargetError as error:
        reach.fail(where, error)
    detail = Detail(verbose=verbose or show_work, show_work=show_work)
    prescribed = prescribe(diagnosis)
    try:
        write(prescribed, form, detail, Path(output) if output else None)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        unusable(f"{output}: {error.strerror}")
    return _status(diagnosis)


def _examined(where: str | None, logs: tuple[str, ...], reach: Reach) -> tuple[Target, list[Log]]:
    """The target, and the further logs that belong to it. Without WHERE the first log stands for the target."""
    from gpuwhy.diagnosis import sign_literals
    from gpuwhy.logs import open_log
    from gpuwhy.targets import PathTarget

    if where is None and not logs:
        unusable("name what to examine: a log, a snapshot, local, an SSH destination, or --log FILE")
    target = reach.target(where) if where is not None else PathTarget(logs[0])
    return target, [open_log(path, sign_literals()) for path in (logs if where is not None else logs[1:])]


def _status(diagnosis: Diagnosis) -> int:
    if diagnosis.findings or (diagnosis.incident.is_failure and diagnosis.incident.primary is not None):
        return FAILURE
    return 0 if diagnosis.is_examined else UNREACHABLE

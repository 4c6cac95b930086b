"""``gpuwhy check WHERE``: the causes as a forecast, without a crash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.failing import unusable
from gpuwhy.cli.format_options import FormatName
from gpuwhy.cli.group import FAILURE, UNREACHABLE
from gpuwhy.cli.target_options import Reach, target_options

if TYPE_CHECKING:
    from gpuwhy.investigate.checks.plan import Plan
    from gpuwhy.investigate.checks.results import Forecast
    from gpuwhy.model.fact import Facts


@click.command("check")
@click.argument("where", required=False)
@click.option("--gpu", "-g", "gpus", metavar="NAME", multiple=True, help="As if these GPUs were there: '8 x H100', a capability (repeatable).")  # fmt: skip
@click.option("--driver", metavar="VERSION", default="", help="As if this driver were loaded.")
@click.option("--cuda", metavar="X.Y", default="", help="As if the service found this toolkit.")
@click.option("--package", "-p", "packages", metavar="NAME==VERSION", multiple=True, help="As if this were installed, with what it pins (repeatable).")  # fmt: skip
@click.option("--env", "-e", "variables", metavar="NAME=VALUE", multiple=True, help="As if this variable were set (repeatable).")  # fmt: skip
@click.option("--requirements", "-r", metavar="FILE", default="", help="As if these requirements were installed.")
@click.option("--facts", "facts_file", metavar="FILE", help="Facts of the host, given by hand (YAML or JSON).")
@click.option("--unit", "-u", default="", help="The systemd unit whose environment counts.")
@click.option("--format", "form", type=FormatName("forecast"), default="text", show_default=True)
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write the report to a file.")
@click.option("--verbose", "-v", is_flag=True, help="What is in order too, every remedy, the evidence's places.")
@click.option("--deadline", type=click.FloatRange(0.5, 600), default=4.0, show_default=True, help="Seconds for probes.")
@target_options
def command(
    where: str | None,
    gpus: tuple[str, ...],
    driver: str,
    cuda: str,
    packages: tuple[str, ...],
    variables: tuple[str, ...],
    requirements: str,
    facts_file: str | None,
    unit: str,
    form: str,
    output: Path | None,
    verbose: bool,
    deadline: float,
    reach: Reach,
) -> int:
    """Whether the environment at WHERE will run on its GPUs, before anything has failed.

    WHERE is local, an SSH destination, a container, a snapshot or a report. The other options put something else in the
    place of what is there, so that a purchase or an upgrade can be judged; without WHERE they are all that is judged.

    Exit status: 0 nothing found, 1 a problem, 2 the arguments are unusable, 3 not enough could be examined.
    """
    from gpuwhy.investigate.checks.plan import Plan, PlanError
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.reports import Detail, write
    from gpuwhy.reports.check import prescribed
    from gpuwhy.snapshot import SnapshotError, read_given
    from gpuwhy.targets import TargetError

    plan = Plan(gpus, driver, cuda, packages, variables, requirements)
    if where is None and plan.is_empty and not facts_file:
        unusable("name what to check: local, a host, a snapshot, or a plan with --gpu, --requirements and so on")
    try:
        given = read_given(facts_file) if facts_file else None
        for warning in given.warnings if given else ():
            click.echo(f"gpuwhy: {warning}", err=True)
        found = _checked(where, plan, given.facts if given else None, unit, deadline, reach)
    except (PlanError, UnreadableLog, SnapshotError) as error:
        unusable(str(error))
    except TargetError as error:
        reach.fail(where, error)
    try:
        write(prescribed(found), form, Detail(verbose=verbose), output)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        unusable(f"{output}: {error.strerror}")
    if found.problems:
        return FAILURE
    return 0 if found.is_examined else UNREACHABLE


def _checked(where: str | None, plan: Plan, given: Facts | None, unit: str, deadline: float, reach: Reach) -> Forecast:
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.investigate.checks.forecasting import check_plan, check_target

    if where is None:
        return check_plan(plan, given)
    target = reach.target(where)
    with shown_progress(target.name) as on_probe:
        return check_target(
            target, plan, unit=unit, facts=given, on_probe=on_probe, deadline=deadline, timeout=reach.timeout
        )

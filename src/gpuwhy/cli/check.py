"""``gpuwhy check WHERE``: the causes as a forecast, without a crash."""

from __future__ import annotations

from pathlib import Path

import click

from gpuwhy.cli.examination_options import deadline_option, facts_option, unit_option, where_argument
from gpuwhy.cli.failing import fail, warn
from gpuwhy.cli.group import FAILURE, UNREACHABLE
from gpuwhy.cli.report_options import report_options, write_report
from gpuwhy.cli.target_options import Reach, target_options


@click.command("check")
@where_argument(is_required=False)
@click.option("--gpu", "-g", "gpus", metavar="NAME", multiple=True, help="As if these GPUs were there: '8 x H100', a capability (repeatable).")  # fmt: skip
@click.option("--driver", metavar="VERSION", default="", help="As if this driver were loaded.")
@click.option("--cuda", metavar="X.Y", default="", help="As if the service found this toolkit.")
@click.option("--package", "-p", "packages", metavar="NAME==VERSION", multiple=True, help="As if this were installed, with what it pins (repeatable).")  # fmt: skip
@click.option("--env", "-e", "variables", metavar="NAME=VALUE", multiple=True, help="As if this variable were set (repeatable).")  # fmt: skip
@click.option(
    "--requirements",
    "-r",
    metavar="FILE",
    type=click.Path(),
    default="",
    help="As if these requirements were installed.",
)
@facts_option
@unit_option("whose environment counts")
@report_options("forecast")
@click.option("--verbose", "-v", is_flag=True, help="What is in order too, every remedy, the evidence's places.")
@deadline_option(4.0)
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
    from gpuwhy import api
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.reports import Detail

    try:
        given = api.facts_of(facts_file, warn) if facts_file else None
        with shown_progress(where or "") as on_probe:
            found = api.check(
                where,
                gpus=gpus,
                driver=driver,
                cuda=cuda,
                packages=packages,
                env=variables,
                requirements=requirements,
                facts=given,
                unit=unit,
                via=reach.via,
                sudo=reach.sudo,
                deadline=deadline,
                timeout=reach.timeout,
                on_probe=on_probe,
            )
    except api.GpuwhyError as error:
        fail(error)
    write_report(found, form, Detail(verbose=verbose), output)
    if found.problems:
        return FAILURE
    return 0 if found.is_examined else UNREACHABLE

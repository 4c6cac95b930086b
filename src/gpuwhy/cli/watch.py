"""``gpuwhy watch``: a snapshot and a diagnosis at the moment of failure, before a restart destroys the evidence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.changing import ask_whether, changed_host, is_attended, print_rows, told_steps
from gpuwhy.cli.failing import unreachable, unusable
from gpuwhy.cli.group import UNREACHABLE
from gpuwhy.cli.target_options import Reach, target_options

if TYPE_CHECKING:
    from gpuwhy.remedies.applying.plan import NotApplied, Plan
    from gpuwhy.remedies.applying.site import Site


@click.group("watch")
def command() -> None:
    """Look why a unit failed, at the moment in which it does: installed, listed and removed like any change."""


@command.command("install")
@click.argument("unit")
@click.argument("where", default="local")
@click.option("--apply", "is_applied", is_flag=True, help="Make the change; without this it is only shown.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the change.")
@click.option("--gpuwhy", "program", default="", metavar="PATH", help="The gpuwhy there; by default the one that is running.")  # fmt: skip
@click.option("--keep", "number", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many failures are kept.")  # fmt: skip
@click.option("--megabytes", type=click.IntRange(1, 100_000), default=200, show_default=True, help="How much room they may take.")  # fmt: skip
@click.option("--hourly", type=click.IntRange(1, 3600), default=6, show_default=True, help="How many failures an hour are looked at.")  # fmt: skip
@target_options
def install(
    unit: str,
    where: str,
    is_applied: bool,
    yes: bool,
    program: str,
    number: int,
    megabytes: int,
    hourly: int,
    reach: Reach,
) -> int:
    """Hook UNIT at WHERE (default: local), so that each of its failures is looked at. Needs root there.

    Exit status: 0 shown or installed, 2 the arguments are unusable, 3 it was refused.
    """
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.remedies.applying.watching import Caps, plan_install
    from gpuwhy.targets import TargetError

    named = unit if unit.endswith(".service") else f"{unit}.service"
    try:
        host = changed_host(where, reach)
        with Site(host) as site:
            words = (program,) if program else own_words() if host.kind == "local" else ("/usr/bin/gpuwhy",)
            told = site.version_of(words)
            if told is None:
                unusable(
                    f"{' '.join(words)} does not run at {where} as systemd would run it: install gpuwhy there "
                    "(python3 -m venv /opt/gpuwhy; /opt/gpuwhy/bin/pip install gpuwhy) and name it: --gpuwhy /opt/gpuwhy/bin/gpuwhy"
                )
            plan = plan_install(named, words, Caps(number, megabytes, hourly), site)
            return _made(plan, site, is_applied=is_applied, yes=yes, how=f"gpuwhy watch install {unit} {where}")
    except TargetError as error:
        unreachable(str(error))


@command.command("remove")
@click.argument("unit")
@click.argument("where", default="local")
@click.option("--apply", "is_applied", is_flag=True, help="Make the change; without this it is only shown.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the change.")
@target_options
def remove(unit: str, where: str, is_applied: bool, yes: bool, reach: Reach) -> int:
    """Unhook UNIT at WHERE. What was recorded stays."""
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.remedies.applying.watching import plan_remove, watched_units
    from gpuwhy.targets import TargetError

    named = unit if unit.endswith(".service") else f"{unit}.service"
    try:
        with Site(changed_host(where, reach)) as site:
            plan = plan_remove(named, watched_units(site.history(), site), site)
            return _made(plan, site, is_applied=is_applied, yes=yes, how=f"gpuwhy watch remove {unit} {where}")
    except TargetError as error:
        unreachable(str(error))


@command.command("list")
@click.argument("where", default="local")
@target_options
def listed(where: str, reach: Reach) -> int:
    """The units that are watched at WHERE, and where their failures are kept."""
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.remedies.applying.watching import KEPT_BELOW, watched_units
    from gpuwhy.targets import TargetError

    try:
        with Site(changed_host(where, reach)) as site:
            units = watched_units(site.history(), site)
    except TargetError as error:
        unreachable(str(error))
    for unit in units:
        click.echo(f"{unit}  {KEPT_BELOW}/{unit}")
    if not units:
        click.echo(f"no unit is watched at {where}")
    return 0


@command.command("record", hidden=True)
@click.argument("unit")
@click.option("--keep", "number", type=click.IntRange(1), default=20)
@click.option("--megabytes", type=click.IntRange(1), default=200)
@click.option("--below", default="/var/lib/gpuwhy/watch", help="Where it is kept.")
def record(unit: str, number: int, megabytes: int, below: str) -> int:
    """What the hook runs: looks at the unit that has just failed, and keeps what it finds."""
    from gpuwhy.reports.recording import record_failure

    told = record_failure(unit, Path(below), number=number, most_bytes=megabytes << 20)
    click.echo(told)
    return 0


def own_words() -> tuple[str, ...]:
    """How the running gpuwhy is started again by its absolute path."""
    program = Path(sys.argv[0])
    if program.name == "gpuwhy" and program.is_absolute() and program.is_file():
        return (str(program),)
    return (sys.executable, "-m", "gpuwhy")


def _made(plan: Plan | NotApplied, site: Site, *, is_applied: bool, yes: bool, how: str) -> int:
    from gpuwhy.remedies.applying.plan import Plan
    from gpuwhy.reports import fix

    if not isinstance(plan, Plan):
        unreachable(plan.why)
    print_rows(fix.plan_shown(plan))
    if not is_applied:
        click.echo(f"Nothing was changed. To make the change:\n  {how} --apply")
        return 0
    if not yes and not is_attended():
        unusable("nobody is there to be asked: add --yes to make the change without a question")
    if not (yes or ask_whether("Apply this?")):
        return 0
    with told_steps("text") as (on_step, _):
        outcome = site.apply(plan, {"kind": "watch", "name": plan.unit, "value": plan.title}, on_step=on_step)
    if outcome.status in ("applied", "unchanged"):
        number = outcome.record.id if outcome.record is not None else None
        click.echo(f"Done: {plan.title}" + (f" (change {number}; gpuwhy undo takes it back)" if number else ""))
        return 0
    print_rows(fix.refusal(outcome))
    return UNREACHABLE

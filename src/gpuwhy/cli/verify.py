"""``gpuwhy verify WHERE --remedy N``: would a remedy help? Tried as far as possible without changing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpuwhy.cli.changing import ask_number, changed_host, print_rows, told_steps
from gpuwhy.cli.failing import unreachable, unusable
from gpuwhy.cli.fix import diagnosed, number_of
from gpuwhy.cli.group import FAILURE, UNREACHABLE
from gpuwhy.cli.target_options import Reach, target_options

if TYPE_CHECKING:
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.targets import HostTarget


@click.command("verify")
@click.argument("where", default="local")
@click.option("--unit", "-u", default="", help="The systemd unit; without it the failing one is looked for.")
@click.option("--remedy", "-r", "wanted", metavar="N|NAME=VALUE", default="", help="Which remedy: its number in the report, or its name.")  # fmt: skip
@click.option("--build/--no-build", "is_building", default=True, show_default=True, help="Also compile a module and launch a kernel (up to 3 minutes).")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@target_options
def command(where: str, unit: str, wanted: str, is_building: bool, form: str, reach: Reach) -> int:
    """Diagnose the service at WHERE, and try a remedy in processes of its own: nothing is changed, nothing restarted.

    In order: the facts recomputed with the change; the failing check run in the service's own interpreter and environment,
    with the change and without it; a module compiled, loaded and read; one kernel launched where there is a GPU.

    Exit status: 0 the remedy held on every rung that could be tried, 1 it was refuted or none could be tried, 2 the
    arguments are unusable, 3 the target could not be examined.
    """
    from gpuwhy.targets import TargetError

    try:
        host = changed_host(where, reach)
        return _verified(diagnosed(where, unit, reach), host, wanted, is_building, form, reach.via)
    except TargetError as error:
        unreachable(str(error))


def _verified(diagnosis: Diagnosis, host: HostTarget, wanted: str, is_building: bool, form: str, via: str) -> int:
    from gpuwhy.remedies.applying.fixing import choices, planned, verify_remedy
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.remedies.verifying.refuting import with_refutation
    from gpuwhy.reports import fix
    from gpuwhy.reports.fix_json import render_fix

    offered = choices(diagnosis)
    is_text = form == "text"
    if is_text:
        print_rows(fix.diagnosed(diagnosis))
    if not offered:
        if not is_text:
            click.echo(render_fix(diagnosis, offered, None, None), nl=False)
        return FAILURE if diagnosis.is_examined else UNREACHABLE
    number = number_of(wanted, offered)
    if number is None:
        if is_text:
            print_rows(fix.listed(offered))
        number = ask_number(len(offered))
    if number is None:
        unusable("name the remedy to verify: --remedy 1")
    with Site(host) as site:
        choice = planned(offered[number - 1], diagnosis, site)
        with told_steps(form) as (_, on_rung):
            result = verify_remedy(choice, diagnosis, site, is_building=is_building, on_rung=on_rung)
    told = with_refutation(diagnosis, result)
    if is_text:
        print_rows(fix.verified_only(result))
        print_rows(fix.refutation(told, diagnosis))
        if result.verification.refuted is not None and number < len(offered):
            print_rows(fix.what_next(diagnosis, offered[number], via))
    else:
        click.echo(render_fix(diagnosis, offered, choice, result), nl=False)
    return 0 if result.verification.reached and result.verification.refuted is None else FAILURE

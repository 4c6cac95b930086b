"""``gpuwhy fix WHERE``: from the diagnosis to the running service, with a preview before and a way back after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.changing import (
    ask_number,
    ask_whether,
    ask_word,
    changed_host,
    is_attended,
    print_outcome,
    print_rows,
    told_steps,
)
from gpuwhy.cli.failing import status_of, unreachable, unusable
from gpuwhy.cli.group import FAILURE, UNREACHABLE
from gpuwhy.cli.target_options import Reach, target_options

if TYPE_CHECKING:
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.remedies.applying.fixing import Choice, Tried, Trying
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.reports.row import Row
    from gpuwhy.targets import HostTarget


@click.command("fix")
@click.argument("where", default="local")
@click.option("--unit", "-u", default="", help="The systemd unit to mend; without it the failing one is looked for.")
@click.option("--remedy", "-r", "wanted", metavar="N|NAME=VALUE", default="", help="Which remedy: its number in the report, or its name, which stays the same.")  # fmt: skip
@click.option("--apply", "is_applied", is_flag=True, help="Make the change; without this nothing is changed.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the change.")
@click.option("--keep", is_flag=True, help="Keep the change also when the service does not get well.")
@click.option("--grace", type=click.FloatRange(0, 3600), metavar="SECONDS", help="How long the service must stay up; by default longer than its last life.")  # fmt: skip
@click.option("--start", type=click.FloatRange(1, 7200), default=900.0, show_default=True, metavar="SECONDS", help="How long the service may take to come up.")  # fmt: skip
@click.option("--build", "is_building", is_flag=True, help="Before the change, also compile a module with it and launch a kernel (up to 3 minutes).")  # fmt: skip
@click.option("--patch", "patch_file", metavar="FILE", help="For a remedy that patches installed source: write the patch, with who else uses the value.")  # fmt: skip
@click.option("--finish", metavar="ID", type=click.IntRange(1), help="Go on with a change that was interrupted.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@target_options
def command(
    where: str,
    unit: str,
    wanted: str,
    is_applied: bool,
    yes: bool,
    keep: bool,
    grace: float | None,
    start: float,
    is_building: bool,
    patch_file: str | None,
    finish: int | None,
    form: str,
    reach: Reach,
) -> int:
    """Diagnose the service at WHERE (local, or an SSH destination), show the remedies and, for the chosen one, exactly
    what would be changed. With --apply it is changed, watched, and rolled back by itself if the service does not get well.

    Exit status: 0 nothing failed or the change is in force and the service stable, 1 a failure that was not mended
    (a preview too), 2 the arguments are unusable, 3 the target could not be examined or refused the change.
    """
    from gpuwhy.remedies.applying.fixing import Trying
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.targets import TargetError

    if finish is not None and not is_applied:
        unusable(f"to go on with change {finish} add --apply; to take it back: gpuwhy undo {where} {finish}")
    if is_applied and not yes and not is_attended():
        unusable("nobody is there to be asked: add --yes to make the change without a question")
    trying = Trying(grace=grace, deadline=start, keep=keep, is_building=is_building)
    try:
        host = changed_host(where, reach)
        if finish is not None:
            with Site(host) as site:
                return _finished(site, finish, trying, form)
        diagnosis = diagnosed(where, unit, reach)
        if patch_file is not None:
            return _patch_written(diagnosis, host, wanted, patch_file)
        return _fixed(diagnosis, host, wanted, is_applied=is_applied, yes=yes, trying=trying, form=form, via=reach.via)
    except TargetError as error:
        unreachable(str(error))


def diagnosed(where: str, unit: str, reach: Reach) -> Diagnosis:
    """The diagnosis with its remedies. Raises :class:`gpuwhy.targets.TargetError`."""
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.investigate import investigate
    from gpuwhy.remedies import prescribe

    target = reach.target(where)
    with shown_progress(target.name) as on_probe:
        return prescribe(investigate(target, unit=unit, on_probe=on_probe, timeout=reach.timeout))


def _fixed(
    diagnosis: Diagnosis,
    host: HostTarget,
    wanted: str,
    *,
    is_applied: bool,
    yes: bool,
    trying: Trying,
    form: str,
    via: str,
) -> int:
    """The diagnosis told, one remedy chosen, previewed, and tried when that was asked for."""
    from gpuwhy.api import outcome_of
    from gpuwhy.remedies.applying.fixing import choices, planned, try_remedy
    from gpuwhy.remedies.applying.plan import Plan
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.remedies.verifying.refuting import refuted_before, with_refutation
    from gpuwhy.reports import fix

    offered = choices(diagnosis)
    answer = Answer(diagnosis, offered, form)
    answer.tell(fix.diagnosed(diagnosis))
    if not offered:
        answer.end(None, None)
        return status_of(outcome_of(diagnosis))
    answer.tell(fix.listed(offered))
    number = number_of(wanted, offered) if wanted or form == "json" else ask_number(len(offered))
    if number is None:
        answer.tell(fix.how_to_go_on(diagnosis, "N", via))
        answer.end(None, None)
        return FAILURE
    with Site(host) as site:
        if not _is_clean(site, answer, trying):
            return UNREACHABLE
        answer.refuted = refuted_before(site.history(), diagnosis)
        answer.tell(fix.tried_before(offered, answer.refuted))
        choice = planned(offered[number - 1], diagnosis, site)
        answer.tell(fix.preview(choice))
        if not isinstance(choice.plan, Plan) or not is_applied or not (yes or ask_whether("Apply this?")):
            if isinstance(choice.plan, Plan):
                answer.tell(fix.how_to_go_on(diagnosis, fix.name_of(choice), via))
            answer.end(choice, None)
            return FAILURE
        with told_steps(form) as (on_step, on_rung):
            result = try_remedy(choice, diagnosis, site, trying, on_step, on_rung)
    answer.tell(fix.tried(result, host.name))
    answer.tell(fix.refutation(with_refutation(diagnosis, result), diagnosis))
    if result.verification.refuted is not None and number < len(offered):
        answer.tell(fix.what_next(diagnosis, offered[number], via))
    answer.end(choice, result)
    return _status(result)


def _patch_written(diagnosis: Diagnosis, host: HostTarget, wanted: str, file: str) -> int:
    """The patch of the remedy that was named, or of the first that is one, as a file on this machine."""
    from gpuwhy.remedies.applying.fixing import choices
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.remedies.applying.source_patch import NoPatchError, source_patch
    from gpuwhy.reports.writing import save

    offered = choices(diagnosis)
    number = number_of(wanted, offered) if wanted else None
    chosen = [
        each.remedy for each in offered if each.number == number or (number is None and each.remedy.kind == "patch")
    ]
    if not chosen:
        unusable("no remedy of this failure patches installed source")
    try:
        with Site(host) as site:
            save(source_patch(chosen[0], diagnosis, site), Path(file))
    except NoPatchError as error:
        unusable(str(error))
    except OSError as error:
        unusable(f"{file}: {error.strerror}")
    click.echo(f"gpuwhy: {file}: nothing was changed; on {host.name}: patch -p0 < {file}", err=True)
    return FAILURE


def number_of(wanted: str, offered: tuple[Choice, ...]) -> int | None:
    """The number of the remedy that was named; None when none was."""
    from gpuwhy.reports.fix import name_of

    if not wanted:
        return None
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 4 and 1 <= int(wanted) <= len(offered):
        return int(wanted)
    named = [choice.number for choice in offered if name_of(choice) == wanted]
    if not named:
        unusable(
            f"there is no remedy {wanted!r} now: " + "; ".join(f"{each.number}. {name_of(each)}" for each in offered)
        )
    return named[0]


class Answer:
    """Where the answer goes: told row by row to a person, or printed as one document at the end."""

    def __init__(self, diagnosis: Diagnosis, offered: tuple[Choice, ...], form: str) -> None:
        self._diagnosis, self._offered, self._form = diagnosis, offered, form
        self.refuted: Mapping[int, str] = {}

    def tell(self, rows: Iterable[Row]) -> None:
        if self._form == "text":
            print_rows(rows)

    def end(self, chosen: Choice | None, result: Tried | None) -> None:
        if self._form == "json":
            from gpuwhy.reports.fix_json import render_fix

            click.echo(render_fix(self._diagnosis, self._offered, chosen, result, self.refuted), nl=False)


def _is_clean(site: Site, answer: Answer, trying: Trying) -> bool:
    """Whether no earlier change was left half done; where somebody is there, it is finished or undone first."""
    from gpuwhy.reports import fix

    for record in site.look().interrupted:
        answer.tell(fix.interrupted(record, site.target.name))
        act = ask_word("Finish it, undo it, or leave it?", ("finish", "undo", "leave"))
        if act not in ("finish", "undo"):
            unreachable(f"change {record.id} was interrupted: finish it or undo it before another is made")
        with told_steps("text") as (on_step, _):
            outcome = site.undo(record.id, on_step=on_step) if act == "undo" else site.finish(record.id, grace=trying.grace, deadline=trying.deadline, keep=trying.keep, on_step=on_step)  # fmt: skip
        answer.tell(fix.ended(outcome))
        if outcome.status == "failed":
            return False
    return True


def _finished(site: Site, number: int, trying: Trying, form: str) -> int:
    with told_steps(form) as (on_step, _):
        outcome = site.finish(number, grace=trying.grace, deadline=trying.deadline, keep=trying.keep, on_step=on_step)
    print_outcome(site.target.name, outcome, form)
    if outcome.status in ("refused", "failed"):
        return UNREACHABLE
    is_stable = outcome.stability is None or outcome.stability.is_stable
    return 0 if outcome.status in ("applied", "verified") and is_stable else FAILURE


def _status(result: Tried) -> int:
    if result.outcome is not None and result.outcome.status in ("refused", "interrupted", "failed"):
        return UNREACHABLE
    return 0 if result.is_proven else FAILURE

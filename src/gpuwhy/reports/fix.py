"""What ``gpuwhy fix``, ``undo`` and ``history`` tell a person: remedies, the preview, each step, the verdict."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping

from gpuwhy.knowledge.source_edits import edit_of
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.remedies.applying.fixing import Choice, Tried
from gpuwhy.remedies.applying.plan import NotApplied, Plan, Restart
from gpuwhy.remedies.applying.planning import is_never_applied
from gpuwhy.remedies.applying.site import Outcome, Record, StepReport
from gpuwhy.remedies.applying.verification import Rung, Verification
from gpuwhy.remedies.verifying.refuting import title_of
from gpuwhy.reports.neutral import plain
from gpuwhy.reports.row import Row

_NO_FAILURE = "no failure in what was examined: there is nothing to fix"
_NOT_EXAMINED = "not enough could be examined to say what to fix"
_SHOWN_BY_SERVICE = (
    "no check of the failing code depends on it: whether it helps, the service itself shows. gpuwhy fix with --apply "
    "watches it, and takes the change back when it does not help"
)
_UNKNOWN = "the cause is not known, so no remedy can be chosen: gpuwhy diagnose tells what was seen"


def diagnosed(diagnosis: Diagnosis) -> Iterator[Row]:
    """The diagnosis in two lines."""
    unit = diagnosis.incident.unit
    subject = f"{unit} on {diagnosis.where}" if unit and unit not in diagnosis.where else diagnosis.where
    if not diagnosis.findings:
        is_failure = diagnosis.incident.is_failure and diagnosis.incident.primary is not None
        found = _UNKNOWN if is_failure else _NO_FAILURE if diagnosis.is_examined else _NOT_EXAMINED
        yield Row(f"{subject}: {found}", style="answer")
        for note in diagnosis.notes if found == _NOT_EXAMINED else ():
            yield Row(f"- {note}", 2, "note", 2)
        return
    finding = diagnosis.findings[0]
    yield Row(f"{subject}: {finding.certainty.value}: {finding.title}", style="answer")
    yield Row(finding.cause, style=finding.certainty.value)


def listed(choices: Iterable[Choice]) -> Iterator[Row]:
    """The remedies with the numbers that ``--remedy`` takes."""
    yield Row("")
    yield Row("Remedies, from the smallest change to the largest", style="heading")
    for choice in choices:
        remedy = choice.remedy
        unsure = "" if remedy.is_sure else "  (helps in some such cases)"
        never = "  [explained only]" if is_never_applied(remedy) else ""
        yield Row(f"{choice.number}. {remedy.kind} {title_of(remedy)}{unsure}{never}", 2, hang=3)
        yield Row(remedy.summary, 5, "note")


def name_of(choice: Choice) -> str:
    """A remedy by what it changes: a number may stand for another one when the next diagnosis knows more."""
    remedy = choice.remedy
    return f"{remedy.name}={remedy.value}" if remedy.value else remedy.name


def preview(choice: Choice) -> Iterator[Row]:
    """Exactly what applying would do, or why gpuwhy does not do it."""
    plan = choice.plan
    yield Row("")
    if isinstance(plan, NotApplied):
        yield from _not_applied(choice, plan)
        return
    if plan is None:
        return
    yield Row(f"Remedy {choice.number}: {plan.title}", style="heading")
    yield from _changes(plan)
    if choice.remedy.cost:
        yield Row(f"- cost: {choice.remedy.cost}; risk {choice.remedy.risk}", 2, "note", 2)


def plan_shown(plan: Plan) -> Iterator[Row]:
    """A plan that is no remedy's."""
    yield Row(plan.title, style="heading")
    yield from _changes(plan)


def _changes(plan: Plan) -> Iterator[Row]:
    if plan.is_in_place:
        yield Row("All of this is in place already: applying it changes nothing.", 2)
    for change in plan.files:
        for line in change.diff():
            yield Row(line, 2, "command")
    commands = list(plan.commands())
    if commands:
        yield Row("then:", 2, "note")
        for command in commands:
            yield Row(command, 4, "command")
    if any(isinstance(step, Restart) for step in plan.steps):
        yield Row(f"Restarted: {plan.unit}, nothing else.", 2, "note")
    for note in plan.notes:
        yield Row(f"- {note}", 2, "note", 2)


def _not_applied(choice: Choice, reason: NotApplied) -> Iterator[Row]:
    yield Row(f"Remedy {choice.number} is not applied by gpuwhy: {reason.why}", style="heading")
    yield Row(choice.remedy.summary, 2)
    if reason.instead:
        yield Row("by hand:", 2, "note")
        for command in reason.instead:
            yield Row(command, 4, "command")
    if choice.remedy.kind == "patch" and edit_of(choice.remedy.name) is not None:
        yield Row("--patch FILE writes it down, made from the file that is installed there", 2, "note", 2)
    if choice.remedy.cost:
        yield Row(f"cost: {choice.remedy.cost}; risk {choice.remedy.risk}", 2, "note", 2)
    for limit in choice.remedy.limits:
        yield Row(f"- {limit}", 2, "note", 2)


def step_line(report: StepReport) -> str:
    """One step as it is told while it happens."""
    words = report.reason or report.told
    return plain(f"{'ok    ' if report.status == 'ok' else 'FAILED'} {report.name}{': ' + words if words else ''}")[
        :300
    ]


def rung_line(rung: Rung) -> str:
    """One rung as it is told while it happens."""
    words = f": {rung.words}" if rung.words else ""
    return plain(f"verify {rung.letter} ({rung.name}): {rung.outcome}{words}")[:300]


def tried(result: Tried, where: str) -> Iterator[Row]:
    """What came of it, and the way back."""
    yield Row("")
    outcome, plan = result.outcome, result.choice.plan
    title = plan.title if isinstance(plan, Plan) else result.choice.remedy.name
    refuted = result.verification.refuted
    if outcome is None:
        yield Row(f"Refuted before anything was changed: {title}", style="answer")
    elif outcome.status == "unchanged":
        helps = "" if refuted is None else ", and does not help"
        yield Row(f"Nothing to change: {title} is in place already{helps}", style="answer")
    elif outcome.status in ("refused", "interrupted"):
        yield from refusal(outcome)
    elif outcome.status == "undone":
        yield Row(f"Rolled back: {title}: {outcome.reason or (refuted.words if refuted else '')}", style="answer")
        yield Row("The configuration is what it was before.", 2)
    elif outcome.status == "failed":
        yield Row(f"It could not be taken back to its end: {outcome.reason}", style="answer")
    elif refuted is not None:
        yield Row(f"Applied and kept, though it did not help: {title}", style="answer")
    else:
        yield Row(f"Applied: {title}", style="answer")
    yield from verified(result.verification)
    if outcome is not None and outcome.record is not None and result.is_in_force and outcome.status != "unchanged":
        yield Row(f"change {outcome.record.id}; take it back with:", 2, "note")
        yield Row(f"gpuwhy undo {shlex.quote(where)} {outcome.record.id}", 4, "command")


def verified(verification: Verification) -> Iterator[Row]:
    """Which rung was reached, and what remains unproven."""
    if not verification.rungs:
        return
    for rung in verification.rungs:
        if rung.outcome != "failed" and f"{rung.letter}: {rung.name}" != verification.reached:
            yield Row(
                f"{rung.letter} ({rung.name}): {rung.outcome}{': ' + rung.words if rung.words else ''}", 2, "note", 2
            )
    if verification.refuted is not None:
        yield Row(f"failed at rung {verification.refuted.letter} ({verification.refuted.name}): {verification.refuted.words}", 2, hang=2)  # fmt: skip
    elif verification.reached:
        held = [rung.words for rung in verification.rungs if rung.outcome == "passed"]
        yield Row(f"reached rung {verification.reached}: {held[-1]}", 2, hang=2)
    if verification.unproven:
        yield Row(f"unproven: {', '.join(verification.unproven)}", 2, "note", 2)


def verified_only(result: Tried) -> Iterator[Row]:
    """What trying a remedy without making the change showed."""
    remedy, verification = result.choice.remedy, result.verification
    yield Row("")
    if verification.refuted is not None:
        yield Row(f"Refuted: {title_of(remedy)} does not help", style="answer")
    elif verification.reached:
        yield Row(f"Held as far as it was tried: {title_of(remedy)}", style="answer")
    else:
        yield Row(f"Nothing could be tried of: {title_of(remedy)}", style="answer")
        plan = result.choice.plan
        yield Row(plan.why if isinstance(plan, NotApplied) else _SHOWN_BY_SERVICE, 2, "note", 2)
    yield from verified(verification)
    yield Row("Nothing was changed.", 2, "note")


def refutation(now: Diagnosis, before: Diagnosis) -> Iterator[Row]:
    """What the trial added to the evidence of the first finding."""
    if not now.findings or not before.findings:
        return
    for evidence in now.findings[0].against[len(before.findings[0].against) :]:
        yield Row(f"against the diagnosis: {evidence.statement}: {evidence.quote}", 2, "note", 2)
    for evidence in now.findings[0].evidence[len(before.findings[0].evidence) :]:
        yield Row(f"for the diagnosis: {evidence.statement}", 2, "note", 2)


def tried_before(choices: Iterable[Choice], told: Mapping[int, str]) -> Iterator[Row]:
    """The remedies that the target's journal knows as refuted."""
    for choice in choices:
        if choice.number in told:
            yield Row(f"Remedy {choice.number} ({title_of(choice.remedy)}) was {told[choice.number]}", 2, "note", 2)


def refusal(outcome: Outcome) -> Iterator[Row]:
    """Why nothing was changed, and what to do about it."""
    yield Row(f"Not changed: {outcome.reason}", style="answer")
    if outcome.advice:
        yield Row(outcome.advice, 2)
    for line in outcome.detail.get("diff") or ():
        yield Row(str(line), 4, "command")


def undone(outcome: Outcome) -> Iterator[Row]:
    """What came of an undo."""
    if outcome.status in ("refused", "interrupted"):
        yield from refusal(outcome)
        return
    named = f"change {outcome.record.id} ({outcome.record.title})" if outcome.record else "the change"
    if outcome.status == "unchanged":
        yield Row(f"Nothing to undo: {outcome.reason}", style="answer")
    elif outcome.status == "undone":
        yield Row(f"Undone: {named}; the configuration is what it was before", style="answer")
    else:
        yield Row(f"{named} could not be taken back to its end: {outcome.reason}", style="answer")


def interrupted(record: Record, where: str) -> Iterator[Row]:
    """A change that an earlier run left half done."""
    direction = "applied" if record.state == "applying" else "undone"
    yield Row(f"Change {record.id} ({record.title}) was interrupted while it was being {direction}.", style="answer")
    for step in record.steps:
        yield Row(f"{step.state:10} {step.step} {step.path}".rstrip(), 4, "command")
    yield Row("Go on with it, or take it back:", 2)
    yield Row(f"gpuwhy fix {where} --finish {record.id} --apply", 4, "command")
    yield Row(f"gpuwhy undo {where} {record.id}", 4, "command")


def ended(outcome: Outcome) -> Iterator[Row]:
    """What came of finishing or undoing a change that was interrupted."""
    if outcome.status in ("applied", "verified"):
        number = f"change {outcome.record.id}" if outcome.record else "the change"
        words = f": {outcome.stability.words}" if outcome.stability else ""
        yield Row(f"Finished: {number} is in force{words}", style="answer")
    else:
        yield from undone(outcome)


def how_to_go_on(diagnosis: Diagnosis, remedy: str, via: str = "") -> Iterator[Row]:
    """The command that makes the change."""
    yield Row("")
    yield Row("Nothing was changed. To make the change:", style="note")
    yield Row(f"gpuwhy fix {_asked(diagnosis, via)} --remedy {shlex.quote(remedy)} --apply", 2, "command")


def _asked(diagnosis: Diagnosis, via: str) -> str:
    """What was diagnosed, as it is asked for again."""
    unit = diagnosis.incident.unit
    hosts = f"--via {shlex.quote(via)} " if via else ""
    return f"{hosts}{shlex.quote(diagnosis.where)}" + (f" --unit {shlex.quote(unit)}" if unit else "")


def what_next(diagnosis: Diagnosis, choice: Choice, via: str = "") -> Iterator[Row]:
    """The remedy after one that was refuted."""
    yield Row(f"The next one is remedy {choice.number}: {choice.remedy.summary}", 2)
    yield Row(f"gpuwhy fix {_asked(diagnosis, via)} --remedy {shlex.quote(name_of(choice))}", 2, "command")


def history(records: Iterable[Record]) -> Iterator[Row]:
    """Every change, the newest first."""
    newest_first = sorted(records, key=lambda record: -record.id)
    if not newest_first:
        yield Row("gpuwhy has changed nothing here.")
    for record in newest_first:
        made = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(record.made)) if record.made else "unknown time"
        yield Row(f"{record.id:4}  {record.state:12} {made}  {record.unit}  {record.title}".rstrip(), 0, "command")
        reached = record.verification.get("reached") if isinstance(record.verification, dict) else ""
        watched = record.stability.words if record.stability is not None else ""
        told = record.reason or (f"reached rung {reached}" if reached else watched)
        if told:
            yield Row(told, 6, "note", 2)


def render(rows: Iterable[Row], width: int = 100) -> str:
    """The rows as plain text."""
    return "\n".join(line for row in rows for line in row.wrapped(width)) + "\n"

"""A saved answer of ``gpuwhy fix``, ``verify``, ``undo`` or ``history``, told again from its document."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.fixing import Choice
from gpuwhy.remedies.applying.verification import Verification
from gpuwhy.reports.fix import ended, history, listed, tried_before, verified
from gpuwhy.reports.fix_json import FixDocument, FixResult, HistoryDocument, RemedyPreview, UndoDocument
from gpuwhy.reports.row import Row

_CAME_OF_IT = {
    "applied": "Applied",
    "verified": "Applied, and it holds",
    "undone": "Rolled back",
    "unchanged": "Nothing to change, it is in place already",
    "refuted": "Refuted",
    "held": "Held as far as it was tried",
    "not tried": "Nothing could be tried",
    "refused": "Not changed",
    "interrupted": "Not changed, an earlier change is half done",
    "failed": "It could not be taken back to its end",
}
"""What a ``status`` of a result means."""


def rows(document: FixDocument | HistoryDocument | UndoDocument) -> Iterator[Row]:
    """As it was told when it was made, as far as the document holds it."""
    if isinstance(document, HistoryDocument):
        yield from history(document.changes)
    elif isinstance(document, UndoDocument):
        yield from ended(document.outcome)
    else:
        yield from _fixed(document)


def _fixed(document: FixDocument) -> Iterator[Row]:
    unit, where = document.unit, document.where
    subject = f"{unit} on {where}" if unit and unit not in where else where
    if not document.cause:
        yield Row(f"{subject}: no cause was found, and nothing to fix", style="answer")
        return
    yield Row(f"{subject}: {document.certainty}: {document.title}", style="answer")
    yield Row(document.cause, style=document.certainty)
    choices = [Choice(each.number, _remedy(each)) for each in document.remedies]
    if choices:
        yield from listed(choices)
    yield from tried_before(choices, {each.number: each.refuted for each in document.remedies if each.refuted})
    chosen = next((each for each in document.remedies if each.number == document.chosen), None)
    if chosen is not None:
        yield from _preview(chosen)
    if document.result is not None:
        yield from _result(document.result, where)
    for evidence in document.against:
        yield Row(f"against the diagnosis: {evidence.statement}: {evidence.quote}", 2, "note", 2)
    for evidence in document.evidence:
        yield Row(f"for the diagnosis: {evidence.statement}", 2, "note", 2)


def _remedy(saved: RemedyPreview) -> Remedy:
    return Remedy(kind=saved.kind, name=saved.name, value=saved.value, summary=saved.summary, is_sure=saved.is_sure)


def _preview(chosen: RemedyPreview) -> Iterator[Row]:
    plan = chosen.plan
    if plan is None:
        if chosen.not_applied:
            yield Row("")
            yield Row(f"Remedy {chosen.number} is not applied by gpuwhy: {chosen.not_applied}", style="heading")
            yield from (Row(command, 4, "command") for command in chosen.by_hand)
        return
    yield Row("")
    yield Row(f"Remedy {chosen.number}: {plan.title}", style="heading")
    if plan.is_in_place:
        yield Row("All of this is in place already: applying it changes nothing.", 2)
    for file in plan.files:
        yield from (Row(line, 2, "command") for line in file.diff)
    if plan.commands:
        yield Row("then:", 2, "note")
        yield from (Row(command, 4, "command") for command in plan.commands)
    if plan.restarts:
        yield Row(f"Restarted: {plan.restarts}, nothing else.", 2, "note")
    for note in plan.notes:
        yield Row(f"- {note}", 2, "note", 2)


def _result(result: FixResult, where: str) -> Iterator[Row]:
    yield Row("")
    why = f": {result.reason}" if result.reason else ""
    yield Row(f"{_CAME_OF_IT.get(result.status, result.status)}{why}", style="answer")
    if result.advice:
        yield Row(result.advice, 2)
    yield from verified(Verification(result.verification.rungs))
    if result.change is not None and result.is_in_force and result.status != "unchanged":
        yield Row(f"change {result.change.id}; take it back with:", 2, "note")
        yield Row(f"gpuwhy undo {shlex.quote(where)} {result.change.id}", 4, "command")

"""What ``gpuwhy fix``, ``undo`` and ``history`` print with ``--format json``: one document each; see docs/fix.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.investigation import Step
from gpuwhy.remedies.applying.fixing import Choice, Tried
from gpuwhy.remedies.applying.plan import NotApplied, Plan
from gpuwhy.remedies.applying.planning import is_never_applied
from gpuwhy.remedies.applying.site import Outcome, Record, Stability
from gpuwhy.remedies.applying.verification import Rung, Verification
from gpuwhy.remedies.verifying.refuting import with_refutation
from gpuwhy.reports.neutral import encodable, escaped_for_json

SCHEMA_VERSION = "0.1"


class FilePreview(msgspec.Struct, frozen=True):
    """A file that would change, as a unified diff."""

    path: str
    diff: tuple[str, ...]


class PlanPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What applying would do, to the letter."""

    title: str
    files: tuple[FilePreview, ...]
    commands: tuple[str, ...]
    restarts: str
    is_in_place: bool
    notes: tuple[str, ...]


class RemedyPreview(msgspec.Struct, frozen=True, kw_only=True):
    """A remedy by its number; ``plan`` for the chosen one, or in ``not_applied`` why gpuwhy does not carry it out.

    ``refuted``: when it was tried on this unit before, and at which rung it failed.
    """

    number: int
    kind: str
    name: str
    value: str = ""
    summary: str = ""
    is_sure: bool = True
    is_explained_only: bool = False
    refuted: str = ""
    plan: PlanPreview | None = None
    not_applied: str = ""
    by_hand: tuple[str, ...] = ()


class VerificationResult(msgspec.Struct, frozen=True):
    """The rungs that were tried; ``reached`` as ``e: active``, ``unproven`` the names of the rungs not shown."""

    rungs: tuple[Rung, ...]
    reached: str
    unproven: tuple[str, ...]


class FixResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of trying a remedy. ``status``: the change's state, ``refuted``, ``unchanged``, ``refused``, ``interrupted``;
    of ``gpuwhy verify`` ``held``, ``refuted`` or ``not tried``.
    """

    status: str
    reason: str
    advice: str
    is_in_force: bool
    change: Record | None
    stability: Stability | None
    verification: VerificationResult


class FixDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer of ``gpuwhy fix`` and ``gpuwhy verify``. ``result`` is null where nothing was tried.

    ``evidence`` and ``against``: what the trial added to the evidence for and against the diagnosis. ``tried``: the
    questions that it added to the record of the investigation.
    """

    schema_version: str
    gpuwhy_version: str
    where: str
    unit: str
    cause: str
    certainty: str
    title: str
    remedies: tuple[RemedyPreview, ...]
    chosen: int | None
    result: FixResult | None
    evidence: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    tried: tuple[Step, ...] = ()


class HistoryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer of ``gpuwhy history``: oldest first."""

    schema_version: str
    gpuwhy_version: str
    where: str
    changes: tuple[Record, ...]


class UndoDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer of ``gpuwhy undo``."""

    schema_version: str
    gpuwhy_version: str
    where: str
    outcome: Outcome


def schema() -> dict[str, Any]:
    """The JSON Schema of :class:`FixDocument`, from the types."""
    return msgspec.json.schema(FixDocument)


def render_fix(
    diagnosis: Diagnosis,
    choices: Iterable[Choice],
    chosen: Choice | None,
    result: Tried | None,
    refuted: Mapping[int, str] | None = None,
) -> str:
    """``chosen`` is the choice with its plan; ``refuted`` are remedies by number that failed before."""
    after = diagnosis if result is None else with_refutation(diagnosis, result)
    then = after.findings[0] if after.findings else None
    finding = diagnosis.findings[0] if diagnosis.findings else None
    number = None if chosen is None else chosen.number
    document = FixDocument(
        schema_version=SCHEMA_VERSION,
        gpuwhy_version=__version__,
        where=diagnosis.where,
        unit=diagnosis.incident.unit,
        cause="" if finding is None else finding.cause,
        certainty="" if finding is None else finding.certainty.value,
        title="" if finding is None else finding.title,
        remedies=tuple(
            _remedy(
                chosen if chosen is not None and each.number == number else each, (refuted or {}).get(each.number, "")
            )
            for each in choices
        ),
        chosen=number,
        result=None if result is None else _result(result),
        evidence=() if finding is None or then is None else then.evidence[len(finding.evidence) :],
        against=() if finding is None or then is None else then.against[len(finding.against) :],
        tried=after.investigation.steps[len(diagnosis.investigation.steps) :],
    )
    return written(document)


def render_history(where: str, records: Iterable[Record]) -> str:
    return written(HistoryDocument(schema_version=SCHEMA_VERSION, gpuwhy_version=__version__, where=where, changes=tuple(records)))  # fmt: skip


def render_outcome(where: str, outcome: Outcome) -> str:
    """Of ``gpuwhy undo``, and of ``gpuwhy fix --finish``."""
    return written(UndoDocument(schema_version=SCHEMA_VERSION, gpuwhy_version=__version__, where=where, outcome=outcome))  # fmt: skip


def _remedy(choice: Choice, refuted: str) -> RemedyPreview:
    remedy, plan = choice.remedy, choice.plan
    return RemedyPreview(
        number=choice.number,
        kind=remedy.kind,
        name=remedy.name,
        value=remedy.value,
        summary=remedy.summary,
        is_sure=remedy.is_sure,
        is_explained_only=is_never_applied(remedy),
        refuted=refuted,
        plan=_plan(plan) if isinstance(plan, Plan) else None,
        not_applied=plan.why if isinstance(plan, NotApplied) else "",
        by_hand=plan.instead if isinstance(plan, NotApplied) else (),
    )


def _plan(plan: Plan) -> PlanPreview:
    return PlanPreview(
        title=plan.title,
        files=tuple(FilePreview(each.path, tuple(each.diff())) for each in plan.files),
        commands=tuple(plan.commands()),
        restarts=plan.unit,
        is_in_place=plan.is_in_place,
        notes=plan.notes,
    )


def _result(result: Tried) -> FixResult:
    outcome = result.outcome
    return FixResult(
        status=_status_without_change(result) if outcome is None else outcome.status,
        reason=outcome.reason if outcome is not None else (result.verification.refuted or Rung("", "", "failed")).words,
        advice="" if outcome is None else outcome.advice,
        is_in_force=result.is_in_force,
        change=None if outcome is None else outcome.record,
        stability=None if outcome is None else outcome.stability,
        verification=_verification(result.verification),
    )


def _status_without_change(result: Tried) -> str:
    if result.verification.refuted is not None:
        return "refuted"
    return "held" if result.verification.reached else "not tried"


def _verification(verification: Verification) -> VerificationResult:
    return VerificationResult(verification.rungs, verification.reached, verification.unproven)


def written(document: msgspec.Struct) -> str:
    """A document as it is printed."""
    encoded = msgspec.json.encode(encodable(msgspec.to_builtins(document))).decode()
    return msgspec.json.format(escaped_for_json(encoded), indent=1) + "\n"

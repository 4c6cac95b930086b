"""One remedy of a diagnosis tried for real: verified as far as possible, applied, verified in force, or taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.plan import NotApplied, Plan
from gpuwhy.remedies.applying.planning import plan_for
from gpuwhy.remedies.applying.site import STARTS, OnStep, Outcome, Site, Stability
from gpuwhy.remedies.applying.verification import Trial, Verification
from gpuwhy.remedies.setting import Setting, setting_of
from gpuwhy.remedies.verifying.ladder import OnRung, climb


class Choice(msgspec.Struct, frozen=True):
    """A remedy by its number in the report, and what carrying it out would do. ``plan`` None: not looked into."""

    number: int
    remedy: Remedy
    plan: Plan | NotApplied | None = None


class Trying(msgspec.Struct, frozen=True, kw_only=True):
    """How a remedy is tried. ``grace``: seconds that the service must stay up, None: longer than its last life.

    ``is_building``: whether something is compiled and launched before anything is changed.
    """

    grace: float | None = None
    deadline: float = STARTS
    keep: bool = False
    is_building: bool = False


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What came of trying a remedy. ``outcome`` None: it was refuted before anything was changed."""

    choice: Choice
    outcome: Outcome | None = None
    verification: Verification = Verification()

    @property
    def is_in_force(self) -> bool:
        """Whether the target holds the change now."""
        return self.outcome is not None and self.outcome.status in ("applied", "verified", "unchanged")

    @property
    def is_proven(self) -> bool:
        """Whether it is in force and no rung spoke against it."""
        return self.is_in_force and self.verification.refuted is None


def choices(diagnosis: Diagnosis) -> tuple[Choice, ...]:
    """The remedies of the first finding, numbered as the report of ``gpuwhy diagnose`` numbers them."""
    remedies = diagnosis.findings[0].remedies if diagnosis.findings else ()
    return tuple(Choice(number, remedy) for number, remedy in enumerate(remedies, 1))


def planned(choice: Choice, diagnosis: Diagnosis, site: Site, setting: Setting | None = None) -> Choice:
    """The choice with its plan. Changes nothing. Raises :class:`gpuwhy.targets.TargetError`."""
    return msgspec.structs.replace(choice, plan=plan_for(choice.remedy, setting or setting_of(diagnosis), site))


def try_remedy(
    choice: Choice,
    diagnosis: Diagnosis,
    site: Site,
    trying: Trying,
    on_step: OnStep | None = None,
    on_rung: OnRung | None = None,
) -> Tried:
    """Verify, apply, verify again; taken back where a rung fails, unless told to keep it.

    ``choice`` must have a plan. Raises :class:`gpuwhy.targets.TargetError` when the target is lost on the way.
    """
    plan = choice.plan
    if not isinstance(plan, Plan):
        raise TypeError("a remedy without a plan cannot be tried")
    trial = Trial(
        remedy=choice.remedy,
        plan=plan,
        setting=setting_of(diagnosis),
        diagnosis=diagnosis,
        site=site,
        deadline=trying.deadline,
        grace=trying.grace,
        is_building=trying.is_building,
    )
    before = climb(trial, with_change=False, on_rung=on_rung)
    if before.refuted is not None:
        return Tried(choice=choice, verification=before)
    outcome = site.apply(
        plan,
        _described(choice, diagnosis),
        grace=trying.grace,
        deadline=trying.deadline,
        keep=trying.keep,
        on_step=on_step,
    )
    if outcome.status == "unchanged" and plan.unit:
        outcome = msgspec.structs.replace(outcome, stability=_as_it_stands(plan, site))
        after = climb(msgspec.structs.replace(trial, outcome=outcome), with_change=True, on_rung=on_rung)
        return Tried(choice=choice, outcome=outcome, verification=before.with_rungs(after.rungs))
    if outcome.record is None or outcome.status in ("refused", "interrupted", "unchanged"):
        return Tried(choice=choice, outcome=outcome, verification=before)
    after = climb(msgspec.structs.replace(trial, outcome=outcome), with_change=True, on_rung=on_rung)
    verification = before.with_rungs(after.rungs)
    refuted = after.refuted
    if refuted is not None and outcome.status == "applied" and not trying.keep:
        reason = f"{refuted.name}: {refuted.words}"
        outcome = site.undo(outcome.record.id, reason=reason, on_step=on_step)
    concluded = _concluded(site, outcome, verification)
    return Tried(choice=choice, outcome=concluded, verification=verification)


def verify_remedy(
    choice: Choice, diagnosis: Diagnosis, site: Site, *, is_building: bool, on_rung: OnRung | None = None
) -> Tried:
    """The rungs that need no change, whether or not gpuwhy would carry the remedy out. Nothing is changed."""
    plan = choice.plan if isinstance(choice.plan, Plan) else None
    setting = setting_of(diagnosis)
    trial = Trial(remedy=choice.remedy, plan=plan, setting=setting, diagnosis=diagnosis, site=site, is_building=is_building)  # fmt: skip
    return Tried(choice=choice, verification=climb(trial, with_change=False, on_rung=on_rung))


def _as_it_stands(plan: Plan, site: Site) -> Stability:
    """The unit at this moment: it was not restarted, for nothing had to be changed."""
    unit = site.look((), plan.unit, plan.manager).unit
    state, detail = unit.get("ActiveState", "unknown"), unit.get("SubState", "")
    return Stability(state == "active", f"{plan.unit} is {state} ({detail})")


def _concluded(site: Site, outcome: Outcome, verification: Verification) -> Outcome:
    """The journal told of the verification; the record in the outcome as it is then."""
    if outcome.record is None:
        return outcome
    is_verified = outcome.status == "applied" and bool(verification.reached) and verification.refuted is None
    noted = site.conclude(outcome.record.id, document(verification), is_verified=is_verified)
    if noted.record is None:
        return outcome
    return msgspec.structs.replace(outcome, status=noted.record.state, record=noted.record)


def document(verification: Verification) -> Mapping[str, Any]:
    """A verification as the journal keeps it."""
    return {
        "rungs": msgspec.to_builtins(verification.rungs),
        "reached": verification.reached,
        "unproven": list(verification.unproven),
    }


def _described(choice: Choice, diagnosis: Diagnosis) -> dict[str, Any]:
    """The remedy as the journal keeps it: without commands, which may quote the host."""
    cause = diagnosis.findings[0].cause if diagnosis.findings else ""
    remedy = choice.remedy
    return {"kind": remedy.kind, "name": remedy.name, "value": remedy.value, "cause": cause, "number": choice.number}

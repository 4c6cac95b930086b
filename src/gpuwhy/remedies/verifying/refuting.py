"""What trying a remedy says of the diagnosis: a refuted one speaks against it, one that held speaks for it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.finding import Finding
from gpuwhy.model.investigation import Step
from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies.applying.fixing import Tried
from gpuwhy.remedies.applying.site import Record
from gpuwhy.remedies.applying.verification import Rung


def with_refutation(diagnosis: Diagnosis, result: Tried) -> Diagnosis:
    """The diagnosis with what trying the remedy showed: in the record, and as evidence of the first finding."""
    rungs = [rung for rung in result.verification.rungs if rung.outcome in ("passed", "failed")]
    if not diagnosis.findings or not rungs:
        return diagnosis
    remedy, refuted = result.choice.remedy, result.verification.refuted
    steps = tuple(_step(remedy, rung, diagnosis.where) for rung in rungs)
    investigation = msgspec.structs.replace(diagnosis.investigation, steps=(*diagnosis.investigation.steps, *steps))
    first = _refuted(diagnosis.findings[0], remedy, refuted) if refuted else _held(diagnosis.findings[0], remedy, rungs)
    return msgspec.structs.replace(diagnosis, investigation=investigation, findings=(first, *diagnosis.findings[1:]))


def refuted_before(records: Iterable[Record], diagnosis: Diagnosis) -> Mapping[int, str]:
    """Remedies of the first finding, by their number, that were tried on this unit before and failed: when, and at what.

    From the target's own journal. It says nothing of whether the target is still the same.
    """
    if not diagnosis.findings:
        return {}
    told: dict[int, str] = {}
    for record in records:
        rung = _failed_rung(record)
        if rung is None or record.unit.removesuffix(".service") != diagnosis.incident.unit.removesuffix(".service"):
            continue
        for number, remedy in enumerate(diagnosis.findings[0].remedies, 1):
            if (remedy.kind, remedy.name, remedy.value) == tuple(record.remedy.get(key) for key in ("kind", "name", "value")):  # fmt: skip
                when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.made))
                told[number] = f"tried before (change {record.id}, {when}), and refuted at {rung}"
    return told


def title_of(remedy: Remedy) -> str:
    """``NAME=VALUE`` of a variable, ``NAME VALUE`` of everything else."""
    joint = "=" if remedy.kind == "env" and remedy.value != "unset" else " "
    return f"{remedy.name}{joint}{remedy.value}".strip()


def _refuted(finding: Finding, remedy: Remedy, rung: Rung) -> Finding:
    statement = f"{title_of(remedy)} was tried and does not help"
    against = Evidence(statement, rung.words, Place("command", f"verification, {rung.name}"))
    return msgspec.structs.replace(
        finding,
        against=(*finding.against, against),
        remedies=tuple(each for each in finding.remedies if each != remedy),
        not_remedies=(*finding.not_remedies, NotARemedy(title_of(remedy), f"refuted by {rung.name}: {rung.words}")),
    )


def _held(finding: Finding, remedy: Remedy, rungs: Iterable[Rung]) -> Finding:
    shown = tuple(
        Evidence(f"with {title_of(remedy)} it does not come to this failure", rung.words, Place("command", f"verification, {rung.name}"))
        for rung in rungs
        if rung.name in ("guard", "request")
    )  # fmt: skip
    return msgspec.structs.replace(finding, evidence=(*finding.evidence, *shown))


def _step(remedy: Remedy, rung: Rung, where: str) -> Step:
    changed = "it speaks against the finding" if rung.outcome == "failed" else "it speaks for the finding"
    return Step(f"does {title_of(remedy)} help ({rung.name})", where, "ok", rung.words, changed, duration=rung.seconds)


def _failed_rung(record: Record) -> str | None:
    """The rung at which a recorded change failed, in words."""
    rungs = record.verification.get("rungs") if isinstance(record.verification, dict) else None
    for rung in rungs if isinstance(rungs, list) else ():
        if isinstance(rung, dict) and rung.get("outcome") == "failed":
            return f"{rung.get('name')}: {rung.get('words')}"
    if record.stability is not None and not record.stability.is_stable:
        return f"active: {record.stability.words}"
    return None

"""Diagnose from text alone: a crash log or the whole of a bug report, with facts given by hand when there are any."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpuwhy.causes import catalogue
from gpuwhy.diagnosis import Judgement, completed, judge, sign_literals
from gpuwhy.investigate.concluding import conclude
from gpuwhy.investigate.dating import Dating, dated
from gpuwhy.investigate.record import Record
from gpuwhy.logs import facts_in, find_incidents, read_bytes
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Log
from gpuwhy.model.evidence import Evidence, Standing
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Finding
from gpuwhy.model.incident import Incident

_WORTH_A_CHECK = frozenset({"gpu", "gpus", "driver", "torch", "packages"})
"""Facts that make a text worth a check by itself."""


def diagnose_log(data: bytes, name: str, facts: Facts | None = None) -> Diagnosis:
    """Diagnose a log or report given as bytes. ``facts`` (given by hand) win over what the text states.

    Raises :class:`gpuwhy.logs.UnreadableLog` when the bytes are no text.
    """
    log = read_bytes(data, name, sign_literals())
    return diagnose_logs([log], name, facts)


def diagnose_logs(logs: Sequence[Log], where: str, facts: Facts | None = None, unit: str = "") -> Diagnosis:
    """Diagnose logs that were already read; they are one target's, and are merged in time."""
    record = Record()
    known = Facts()
    for log in logs:
        with record.step("what happened, and what does the text state", log.name) as step:
            stated = facts_in(log)
            known = known.merged(stated)
            step.found = f"{len(log.lines)} lines, {len(stated)} facts stated"
    if facts is not None:
        known = known.merged(facts)
        record.add("what is known of the host", "facts given by hand", "ok", f"{len(facts)} facts")
    incident, judgement, dating = judged(logs, known, record, unit)
    found = () if judgement.findings else _of_a_machine(logs, incident, known)
    notes = (*dating.notes, *found)
    return conclude(where, incident, judgement, completed(dating.facts), record, notes=notes)


def _of_a_machine(logs: Sequence[Log], incident: Incident, known: Facts) -> Iterable[str]:
    """What to do with an inventory (collect_env, nvidia-smi, pip freeze): nothing happened in it, and it is worth a check."""
    has_run = any(event.kind in ("start", "ready", "unit") for event in incident.events)
    to_check = {fact.key.partition(".")[0] for fact in known} & _WORTH_A_CHECK
    if incident.is_failure or has_run or len(logs) != 1 or not to_check:
        return
    name = logs[0].name if Path(logs[0].name).exists() else "FILE"
    yield f"it tells of a machine and of no failure: `gpuwhy check {shlex.quote(name)}` says what would fail on it"


def judged(logs: Sequence[Log], facts: Facts, record: Record, unit: str = "") -> tuple[Incident, Judgement, Dating]:
    """Find the incident (of ``unit``, when the logs speak of several), date its frames, and ask the catalogue."""
    with record.step("which life of the service failed, and at what", ", ".join(log.name for log in logs)) as step:
        incident = find_incidents(logs, unit)
        primary = incident.primary_event
        step.found = f"{len(incident.events)} events" + (
            f"; first fatal: {primary.place}" if primary else "; nothing fatal"
        )
    dating = dated(incident, facts, record)
    lines = sum(len(log.lines) for log in incident.logs)
    with record.step("which causes fit", f"{len(catalogue())} causes, their signs in {lines} lines") as step:
        judgement = judge(incident, completed(dating.facts))
        step.found = f"{judgement.considered} causes had a sign, {len(judgement.findings)} fit, {len(judgement.ruled_out)} ruled out"
    _record_causes(judgement, record)
    return incident, judgement, dating


def _record_causes(judgement: Judgement, record: Record) -> None:
    """One step for each cause that was considered: what it said, on what that rests, and what came of it."""
    for rank, finding in enumerate(judgement.findings, 1):
        record.add(
            f"is it {finding.cause}?",
            _places(finding.evidence),
            "ok",
            f"{finding.certainty.value}: {finding.title}",
            _standing(finding, rank, len(judgement.findings)),
            _assumptions(finding),
        )
    for excluded in judgement.ruled_out:
        record.add(
            f"is it {excluded.cause}?", _places(excluded.evidence), "ok", f"no: {excluded.why}", "it is ruled out"
        )
    for identity in judgement.survived:
        record.add(
            f"is it {identity}?", "the lines with its signs", "absent", "seen, and survived: nothing failed of it"
        )
    for identity in judgement.dismissed:
        record.add(f"is it {identity}?", "the lines with its signs", "absent", "they mean something else here")


def _places(evidence: Sequence[Evidence]) -> str:
    places = dict.fromkeys(str(each.place) for each in evidence if each.place is not None)
    return ", ".join(list(places)[:4]) or "the text"


def _standing(finding: Finding, rank: int, count: int) -> str:
    if finding.consequence_of:
        return f"it follows from {finding.consequence_of}"
    if rank == 1:
        return "it is the answer" if count == 1 else f"it leads {count} findings"
    return "it is a problem of its own" if finding.is_independent else f"it stays possible, as number {rank}"


def _assumptions(finding: Finding) -> str:
    inferred = [
        link.statement
        for link in finding.chain
        if link.evidence is not None and link.evidence.standing is Standing.INFERRED and link.installed is None
    ]
    return "; ".join(inferred[:4])

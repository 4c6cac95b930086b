"""Diagnose from text alone: a crash log or the whole of a bug report, with facts given by hand when there are any."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.diagnosis import Judgement, completed, judge
from gpuwhy.investigate.concluding import conclude
from gpuwhy.investigate.record import Record
from gpuwhy.logs import facts_in, find_incidents, read_bytes
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Log
from gpuwhy.model.fact import Facts
from gpuwhy.model.incident import Incident


def diagnose_log(data: bytes, name: str, facts: Facts | None = None) -> Diagnosis:
    """Diagnose a log or report given as bytes. ``facts`` (given by hand) win over what the text states.

    Raises :class:`gpuwhy.logs.UnreadableLog` when the bytes are no text.
    """
    log = read_bytes(data, name)
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
    incident, judgement = judged(logs, known, record, unit)
    return conclude(where, incident, judgement, completed(known), record)


def judged(logs: Sequence[Log], facts: Facts, record: Record, unit: str = "") -> tuple[Incident, Judgement]:
    """Find the incident (of ``unit``, when the logs speak of several) and ask the catalogue."""
    with record.step("which life of the service failed, and at what", ", ".join(log.name for log in logs)) as step:
        incident = find_incidents(logs, unit)
        primary = incident.primary_event
        step.found = f"{len(incident.events)} events" + (
            f"; first fatal: {primary.place}" if primary else "; nothing fatal"
        )
    with record.step("which causes fit", "the catalogue") as step:
        judgement = judge(incident, completed(facts))
        step.found = f"{judgement.considered} causes had a sign, {len(judgement.findings)} fit, {len(judgement.ruled_out)} ruled out"
    return incident, judgement

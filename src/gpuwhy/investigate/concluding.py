"""From a judgement to the diagnosis: what came before, what stays open, what lies outside the catalogue."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.diagnosis import Judgement
from gpuwhy.diagnosis.roles import only_before
from gpuwhy.investigate.going_on import questions
from gpuwhy.investigate.record import Record
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Event
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Finding
from gpuwhy.model.hang import Waiting
from gpuwhy.model.incident import Incident
from gpuwhy.model.source import SourceAnswer

_OTHER_PLATFORMS = {
    "rocm": "ROCm",
    "xpu": "Intel XPU",
    "ascend": "Ascend",
    "metal": "Apple Metal",
    "tpu": "TPU",
}
"""Platforms by the tool that an event of theirs names."""


def conclude(
    where: str,
    incident: Incident,
    judgement: Judgement,
    facts: Facts,
    record: Record,
    *,
    is_examined: bool = True,
    notes: Iterable[str] = (),
    source: SourceAnswer | None = None,
    waiting: Waiting | None = None,
) -> Diagnosis:
    """Put the diagnosis together. Nothing is judged here any more."""
    open_questions = tuple(
        dict.fromkeys(f"{m.key}: {m.why or 'not known'}" for finding in judgement.findings[:3] for m in finding.missing)
    )
    to_go_on = () if judgement.findings else questions(incident, facts)
    log_notes = [f"{log.name}: {note}" for log in incident.logs for note in log.notes]
    return Diagnosis(
        where=where,
        incident=incident,
        findings=judgement.findings,
        ruled_out=judgement.ruled_out,
        decides=judgement.decides or next(iter(to_go_on), None),
        to_go_on=to_go_on,
        facts=tuple(facts),
        investigation=record.closed(open_questions),
        before=tuple(_before(incident, judgement.findings)),
        notes=(*notes, *log_notes, *judgement.faults),
        outside="" if judgement.findings else _other_platform(incident),
        source=source,
        waiting=waiting,
        is_examined=is_examined,
    )


def _before(incident: Incident, findings: Iterable[Finding]) -> Iterable[Evidence]:
    """Of the kernel's events the last of each kind and process, for each other unit the line that says how it ended."""
    last: dict[tuple[str, ...], Event] = {}
    for event in map(incident.event, only_before(findings, incident)):
        unit = event.unit or event.detail.get("unit", "")
        key = (
            ("unit", unit) if event.kind == "unit" else (event.kind, event.tool, unit, event.detail.get("process", ""))
        )
        last[key] = event
    for event in sorted(last.values(), key=lambda event: event.span.first):
        yield Evidence(_sentence(event), event.text.partition("\n")[0], event.place)


def _sentence(event: Event) -> str:
    unit = event.unit or event.detail.get("unit", "")
    whose = f" of {unit}" if unit else ""
    if event.tool == "oom":
        return f"the kernel killed a process{whose} for lack of memory, before this life of the service"
    if event.kind == "kernel":
        return f"the kernel reported a fault{whose} before this life of the service"
    return f"{unit or 'another service'} ended before this life of the service"


def _other_platform(incident: Incident) -> str:
    """The platform that a failure without finding belongs to, when it is not NVIDIA's."""
    return next((_OTHER_PLATFORMS[event.tool] for event in incident.events if event.tool in _OTHER_PLATFORMS), "")

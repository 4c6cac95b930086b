"""The report for programs: one JSON document, described by ``docs/diagnosis.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Event
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Excluded, Finding, Missing
from gpuwhy.model.hang import Waiting
from gpuwhy.model.investigation import Investigation
from gpuwhy.model.source import SourceAnswer
from gpuwhy.reports.document import Versioned, versions, written

SCHEMA_VERSION = "0.1"


class LogSummary(msgspec.Struct, frozen=True):
    """A log that was read, without its lines."""

    name: str
    kind: str
    lines: int
    notes: tuple[str, ...]


class IncidentDocument(msgspec.Struct, frozen=True):
    """The life of the service that was examined. ``primary`` and ``before`` are ids of ``events``."""

    is_failure: bool
    primary: int | None
    before: tuple[int, ...]
    unit: str
    engine: str
    lives: int
    started: float | None
    ended: float | None
    events: tuple[Event, ...]
    logs: tuple[LogSummary, ...]


class Document(Versioned, frozen=True, kw_only=True):
    """The whole answer. ``findings`` are ranked, the first is the answer; see docs/json.md."""

    where: str
    findings: tuple[Finding, ...]
    ruled_out: tuple[Excluded, ...]
    decides: Missing | None
    to_go_on: tuple[Missing, ...]
    incident: IncidentDocument
    before: tuple[Evidence, ...]
    facts: tuple[Fact, ...]
    investigation: Investigation
    notes: tuple[str, ...]
    outside: str
    is_examined: bool
    source: SourceAnswer | None
    waiting: Waiting | None


def document_of(diagnosis: Diagnosis) -> Document:
    """The diagnosis as the document that is printed."""
    incident = diagnosis.incident
    return Document(
        **versions(SCHEMA_VERSION),
        where=diagnosis.where,
        findings=diagnosis.findings,
        ruled_out=diagnosis.ruled_out,
        decides=diagnosis.decides,
        to_go_on=diagnosis.to_go_on,
        incident=IncidentDocument(
            incident.is_failure,
            incident.primary,
            incident.before,
            incident.unit,
            incident.engine,
            incident.lives,
            incident.started,
            incident.ended,
            incident.events,
            tuple(LogSummary(log.name, log.kind, len(log.lines), log.notes) for log in incident.logs),
        ),
        before=diagnosis.before,
        facts=diagnosis.facts,
        investigation=diagnosis.investigation,
        notes=diagnosis.notes,
        outside=diagnosis.outside,
        is_examined=diagnosis.is_examined,
        source=diagnosis.source,
        waiting=diagnosis.waiting,
    )


def render(diagnosis: Diagnosis) -> str:
    """The document, indented."""
    return written(document_of(diagnosis))


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(Document)

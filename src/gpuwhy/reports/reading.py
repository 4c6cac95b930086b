"""Reads an answer back from the JSON document that was written of it, to be shown in another format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gpuwhy.reports.interface import Answer

LARGEST = 256 * 1024 * 1024
"""Bytes of a document; answers have some hundred kilobytes."""


class UnreadableReportError(ValueError):
    """The document is none of gpuwhy's answers, or of a release whose documents have another shape. The message says which."""


def read_answer(data: bytes, name: str) -> Answer:
    """The answer in a JSON document: whatever a command wrote with --format json. Raises UnreadableReportError."""
    if len(data) > LARGEST:
        raise UnreadableReportError(f"{name} is no report of gpuwhy: it has {len(data):,} bytes")
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableReportError(f"{name} is no JSON document: {error}") from error
    read = _reader_of(document)
    if read is None:
        raise UnreadableReportError(
            f"{name} is no diagnosis, check, inspection, difference, estimate, trace, change, report of a fleet or snapshot of gpuwhy"
        )
    version = document.get("schema_version")
    if not isinstance(version, str) or version.partition(".")[0] != "0":
        raise UnreadableReportError(f"{name} has schema version {version!r}; this gpuwhy reads 0.x")
    try:
        return read(document)
    except (msgspec.ValidationError, RecursionError) as error:
        written_by = document.get("gpuwhy_version", "an unknown release")
        raise UnreadableReportError(f"{name}, written by gpuwhy {written_by}, cannot be read: {error}") from error


def _reader_of(document: Any) -> Callable[[Any], Answer] | None:
    """By the keys that only one kind of document has."""
    if not isinstance(document, dict):
        return None
    readers = (
        ({"findings", "incident"}, _diagnosis),
        ({"problems", "unchecked"}, _forecast),
        ({"files", "compute_capability"}, _inspection),
        ({"comparison"}, _comparison),
        ({"estimate", "search"}, _estimate),
        ({"fleet"}, _fleet),
        ({"trace"}, _traced),
        ({"reads"}, _traced),
        ({"moved"}, _traced),
        ({"places"}, _traced),
        ({"replay"}, _traced),
        ({"remedies", "chosen", "result"}, _fix),
        ({"where", "changes"}, _history),
        ({"where", "outcome"}, _undo),
    )
    return next((read for keys, read in readers if keys <= document.keys()), None)


def _diagnosis(value: dict[str, Any]) -> Answer:
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.event import Log
    from gpuwhy.model.incident import Incident
    from gpuwhy.reports.json import Document

    document = msgspec.convert(value, Document)
    found = document.incident
    incident = Incident(
        logs=tuple(Log(each.name, each.kind, (), each.notes) for each in found.logs),
        **{name: getattr(found, name) for name in Incident.__struct_fields__ if name != "logs"},
    )
    fields = {name: getattr(document, name) for name in Diagnosis.__struct_fields__ if name != "incident"}
    return Diagnosis(incident=incident, **fields)


def _forecast(value: dict[str, Any]) -> Answer:
    from gpuwhy.investigate.checks.results import Forecast
    from gpuwhy.reports.check_json import CheckDocument

    document = msgspec.convert(value, CheckDocument)
    return Forecast(**{name: getattr(document, name) for name in Forecast.__struct_fields__ if hasattr(document, name)})


def _inspection(value: dict[str, Any]) -> Answer:
    from gpuwhy.model.inspection import Inspection
    from gpuwhy.reports.binaries_json import InspectDocument

    document = msgspec.convert(value, InspectDocument)
    return Inspection(**{name: getattr(document, name) for name in Inspection.__struct_fields__})


def _comparison(value: dict[str, Any]) -> Answer:
    from gpuwhy.reports.differences import DifferenceDocument

    return msgspec.convert(value, DifferenceDocument).comparison


def _estimate(value: dict[str, Any]) -> Answer:
    from gpuwhy.reports.fit_answer import FitAnswer
    from gpuwhy.reports.fit_json import FitDocument

    document = msgspec.convert(value, FitDocument)
    return FitAnswer(document.estimate, document.search)


def _fleet(value: dict[str, Any]) -> Answer:
    from gpuwhy.reports.fleet_json import FleetDocument

    return msgspec.convert(value, FleetDocument).fleet


def _traced(value: dict[str, Any]) -> Answer:
    from gpuwhy.reports import trace_json as of

    documents = {
        "trace": of.TraceDocument, "reads": of.ReadsDocument, "moved": of.MovedDocument, "places": of.PlacesDocument,
        "replay": of.ReplayDocument,
    }  # fmt: skip
    key = next(each for each in documents if each in value)
    return getattr(msgspec.convert(value, documents[key]), key)


def _fix(value: dict[str, Any]) -> Answer:
    from gpuwhy.reports.fix_json import FixDocument

    return msgspec.convert(value, FixDocument)


def _history(value: dict[str, Any]) -> Answer:
    from gpuwhy.reports.fix_json import HistoryDocument

    return msgspec.convert(value, HistoryDocument)


def _undo(value: dict[str, Any]) -> Answer:
    from gpuwhy.reports.fix_json import UndoDocument

    return msgspec.convert(value, UndoDocument)

"""The answers of ``gpuwhy trace`` for programs: one JSON document, described by ``docs/trace.schema.json``."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from gpuwhy.reports.document import Versioned, versions, written
from gpuwhy.source.answers import Absence, Moved, Trace
from gpuwhy.source.replay import Replay
from gpuwhy.source.texts_asking import LogPlaces

SCHEMA_VERSION = "0.2"

Answer: TypeAlias = Trace | Absence | Moved | LogPlaces | Replay


class TraceDocument(Versioned, frozen=True, kw_only=True, omit_defaults=True):
    """What a place, a symbol or a traceback gives; see docs/trace.md."""

    trace: Trace


class ReadsDocument(Versioned, frozen=True, kw_only=True, omit_defaults=True):
    """What ``--reads`` gives: whether a variable is read, and what limits the answer."""

    reads: Absence


class MovedDocument(Versioned, frozen=True, kw_only=True, omit_defaults=True):
    """What ``--import`` gives: where a name went."""

    moved: Moved


class PlacesDocument(Versioned, frozen=True, kw_only=True, omit_defaults=True):
    """What ``--lines`` gives: the lines of a log with the places that wrote them."""

    places: LogPlaces


class ReplayDocument(Versioned, frozen=True, kw_only=True, omit_defaults=True):
    """What ``--replay`` gives: how the call ends with the facts of a host, and the trail that leads there."""

    replay: Replay


DOCUMENTS = (TraceDocument, ReadsDocument, MovedDocument, PlacesDocument, ReplayDocument)


def render(answer: Answer) -> str:
    """The document, indented."""
    return written(_document(answer))


def _document(answer: Answer) -> Versioned:
    shape = versions(SCHEMA_VERSION)
    if isinstance(answer, Trace):
        return TraceDocument(**shape, trace=answer)
    if isinstance(answer, Absence):
        return ReadsDocument(**shape, reads=answer)
    if isinstance(answer, Moved):
        return MovedDocument(**shape, moved=answer)
    if isinstance(answer, LogPlaces):
        return PlacesDocument(**shape, places=answer)
    return ReplayDocument(**shape, replay=answer)


def schema() -> dict[str, Any]:
    """The JSON Schema of the documents, from the types: each output is exactly one of them."""
    alternatives, definitions = msgspec.json.schema_components(DOCUMENTS, ref_template="#/$defs/{name}")
    return {"oneOf": list(alternatives), "$defs": definitions}

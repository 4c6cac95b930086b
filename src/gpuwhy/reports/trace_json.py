"""The answers of ``gpuwhy trace`` for programs: one JSON document, described by ``docs/trace.schema.json``."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from gpuwhy import __version__
from gpuwhy.reports.neutral import encodable, escaped_for_json
from gpuwhy.source.answers import Absence, Moved, Trace
from gpuwhy.source.replay import Replay
from gpuwhy.source.texts_asking import LogPlaces

SCHEMA_VERSION = "0.2"

Answer: TypeAlias = Trace | Absence | Moved | LogPlaces | Replay


class _Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    schema_version: str
    gpuwhy_version: str


class TraceDocument(_Document, frozen=True, kw_only=True, omit_defaults=True):
    """What a place, a symbol or a traceback gives; see docs/trace.md."""

    trace: Trace


class ReadsDocument(_Document, frozen=True, kw_only=True, omit_defaults=True):
    """What ``--reads`` gives: whether a variable is read, and what limits the answer."""

    reads: Absence


class MovedDocument(_Document, frozen=True, kw_only=True, omit_defaults=True):
    """What ``--import`` gives: where a name went."""

    moved: Moved


class PlacesDocument(_Document, frozen=True, kw_only=True, omit_defaults=True):
    """What ``--lines`` gives: the lines of a log with the places that wrote them."""

    places: LogPlaces


class ReplayDocument(_Document, frozen=True, kw_only=True, omit_defaults=True):
    """What ``--replay`` gives: how the call ends with the facts of a host, and the trail that leads there."""

    replay: Replay


DOCUMENTS = (TraceDocument, ReadsDocument, MovedDocument, PlacesDocument, ReplayDocument)


def render(answer: Answer) -> str:
    """The document, indented."""
    encoded = msgspec.json.encode(encodable(msgspec.to_builtins(_document(answer))))
    return msgspec.json.format(escaped_for_json(encoded.decode()), indent=1) + "\n"


def _document(answer: Answer) -> _Document:
    versions = {"schema_version": SCHEMA_VERSION, "gpuwhy_version": __version__}
    if isinstance(answer, Trace):
        return TraceDocument(**versions, trace=answer)
    if isinstance(answer, Absence):
        return ReadsDocument(**versions, reads=answer)
    if isinstance(answer, Moved):
        return MovedDocument(**versions, moved=answer)
    if isinstance(answer, LogPlaces):
        return PlacesDocument(**versions, places=answer)
    return ReplayDocument(**versions, replay=answer)


def schema() -> dict[str, Any]:
    """The JSON Schema of the documents, from the types: each output is exactly one of them."""
    alternatives, definitions = msgspec.json.schema_components(DOCUMENTS, ref_template="#/$defs/{name}")
    return {"oneOf": list(alternatives), "$defs": definitions}

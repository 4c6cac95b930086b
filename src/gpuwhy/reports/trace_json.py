"""The answer of ``gpuwhy trace`` for programs: one JSON document, described by ``docs/trace.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.reports.neutral import escaped_for_json
from gpuwhy.source.answers import Absence, Moved, Trace

SCHEMA_VERSION = "0.1"


class TraceDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole answer: one of ``trace``, ``reads`` and ``moved``; see docs/trace.md."""

    schema_version: str
    gpuwhy_version: str
    trace: Trace | None = None
    reads: Absence | None = None
    moved: Moved | None = None


def render(answer: Trace | Absence | Moved) -> str:
    """The document, indented."""
    document = TraceDocument(
        schema_version=SCHEMA_VERSION,
        gpuwhy_version=__version__,
        trace=answer if isinstance(answer, Trace) else None,
        reads=answer if isinstance(answer, Absence) else None,
        moved=answer if isinstance(answer, Moved) else None,
    )
    encoded = msgspec.json.encode(_encodable(msgspec.to_builtins(document)))
    return msgspec.json.format(escaped_for_json(encoded.decode()), indent=1) + "\n"


def _encodable(value: Any) -> Any:
    """Lone surrogates, of a path that is no UTF-8 for instance, cannot stand in JSON."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _encodable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encodable(each) for each in value]
    return value


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(TraceDocument)

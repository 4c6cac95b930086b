"""The report of ``gpuwhy inspect`` for programs: one JSON document, described by ``docs/inspect.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.model.inspection import InspectedFile, Inspection, WheelSummary
from gpuwhy.reports.neutral import encodable, escaped_for_json

SCHEMA_VERSION = "0.1"


class InspectDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer; see docs/inspect.md."""

    schema_version: str
    gpuwhy_version: str
    compute_capability: str
    gpu: str
    driver: str
    kernel: str
    files: tuple[InspectedFile, ...]
    wheels: tuple[WheelSummary, ...]
    unreadable: tuple[str, ...]


def render(inspection: Inspection) -> str:
    """The document, indented."""
    document = InspectDocument(
        schema_version=SCHEMA_VERSION,
        gpuwhy_version=__version__,
        compute_capability=inspection.compute_capability,
        gpu=inspection.gpu,
        driver=inspection.driver,
        kernel=inspection.kernel,
        files=inspection.files,
        wheels=inspection.wheels,
        unreadable=inspection.unreadable,
    )
    # a path whose bytes are no UTF-8 comes with lone surrogates, which JSON cannot hold
    encoded = msgspec.json.encode(encodable(msgspec.to_builtins(document)))
    return msgspec.json.format(escaped_for_json(encoded.decode()), indent=1) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(InspectDocument)

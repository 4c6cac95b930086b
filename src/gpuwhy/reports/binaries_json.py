"""The report of ``gpuwhy inspect`` for programs: one JSON document, described by ``docs/inspect.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.model.inspection import InspectedFile, Inspection, WheelSummary
from gpuwhy.reports.document import Versioned, versions, written

SCHEMA_VERSION = "0.1"


class InspectDocument(Versioned, frozen=True, kw_only=True):
    """The whole answer; see docs/inspect.md."""

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
        **versions(SCHEMA_VERSION),
        compute_capability=inspection.compute_capability,
        gpu=inspection.gpu,
        driver=inspection.driver,
        kernel=inspection.kernel,
        files=inspection.files,
        wheels=inspection.wheels,
        unreadable=inspection.unreadable,
    )
    return written(document)


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(InspectDocument)

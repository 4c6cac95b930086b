"""The report of a fleet for programs: one JSON document, described by ``docs/fleet.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.model.fleet import FleetReport
from gpuwhy.reports.document import Versioned, versions, written

SCHEMA_VERSION = "0.1"


class FleetDocument(Versioned, frozen=True, kw_only=True):
    """The whole answer; see docs/fleet-report.md."""

    fleet: FleetReport


def render(report: FleetReport) -> str:
    """The document, indented."""
    return written(FleetDocument(**versions(SCHEMA_VERSION), fleet=report))


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(FleetDocument)

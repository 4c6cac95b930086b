"""The report of ``gpuwhy fit`` for programs: one JSON document, described by ``docs/fit.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.fit.results import Estimate
from gpuwhy.reports.neutral import encodable, escaped_for_json

SCHEMA_VERSION = "0.1"


class FitDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer; see docs/fit.md. Amounts are GiB where no field says otherwise, each with its bounds."""

    schema_version: str
    gpuwhy_version: str
    estimate: Estimate


def render(found: Estimate) -> str:
    """The document, indented."""
    document = FitDocument(schema_version=SCHEMA_VERSION, gpuwhy_version=__version__, estimate=found)
    encoded = msgspec.json.encode(encodable(msgspec.to_builtins(document)))
    return msgspec.json.format(escaped_for_json(encoded.decode()), indent=1) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(FitDocument)

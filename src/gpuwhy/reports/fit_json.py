"""The report of ``gpuwhy fit`` for programs: one JSON document, described by ``docs/fit.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.fit.results import Estimate
from gpuwhy.fit.search import Search
from gpuwhy.reports.document import Versioned, versions, written
from gpuwhy.reports.fit_answer import FitAnswer

SCHEMA_VERSION = "0.1"


class FitDocument(Versioned, frozen=True, kw_only=True):
    """The whole answer; see docs/fit.md. Amounts are GiB where no field says otherwise, each with its bounds."""

    estimate: Estimate
    search: Search | None = None
    """Of ``--optimise``."""


def render(answer: FitAnswer) -> str:
    """The document, indented."""
    return written(FitDocument(**versions(SCHEMA_VERSION), estimate=answer.estimate, search=answer.search))


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(FitDocument)

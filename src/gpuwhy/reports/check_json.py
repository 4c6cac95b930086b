"""The report of ``gpuwhy check`` for programs: one JSON document, described by ``docs/check.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.fit.results import Estimate
from gpuwhy.investigate.checks.results import Forecast, Passed, Problem, Unchecked
from gpuwhy.model.fact import Fact
from gpuwhy.reports.document import Versioned, versions, written

SCHEMA_VERSION = "0.1"


class CheckDocument(Versioned, frozen=True, kw_only=True):
    """The whole answer; see docs/check.md. ``is_examined`` false: nothing could be examined, so nothing is said."""

    where: str
    is_examined: bool
    problems: tuple[Problem, ...]
    passed: tuple[Passed, ...]
    unchecked: tuple[Unchecked, ...]
    facts: tuple[Fact, ...]
    estimate: Estimate | None = None
    """Of the service's memory; see docs/fit.md."""


def render(forecast: Forecast) -> str:
    """The document, indented."""
    document = CheckDocument(
        **versions(SCHEMA_VERSION),
        where=forecast.where,
        is_examined=forecast.is_examined,
        problems=forecast.problems,
        passed=forecast.passed,
        unchecked=forecast.unchecked,
        facts=forecast.facts,
        estimate=forecast.estimate,
    )
    return written(document)


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(CheckDocument)

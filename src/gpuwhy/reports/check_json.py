"""The report of ``gpuwhy check`` for programs: one JSON document, described by ``docs/check.schema.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.investigate.checks.results import Forecast, Passed, Problem, Unchecked
from gpuwhy.model.fact import Fact
from gpuwhy.reports.neutral import encodable, escaped_for_json

SCHEMA_VERSION = "0.1"


class CheckDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer; see docs/check.md. ``is_examined`` false: nothing could be examined, so nothing is said."""

    schema_version: str
    gpuwhy_version: str
    where: str
    is_examined: bool
    problems: tuple[Problem, ...]
    passed: tuple[Passed, ...]
    unchecked: tuple[Unchecked, ...]
    facts: tuple[Fact, ...]


def render(forecast: Forecast) -> str:
    """The document, indented."""
    document = CheckDocument(
        schema_version=SCHEMA_VERSION,
        gpuwhy_version=__version__,
        where=forecast.where,
        is_examined=forecast.is_examined,
        problems=forecast.problems,
        passed=forecast.passed,
        unchecked=forecast.unchecked,
        facts=forecast.facts,
    )
    encoded = msgspec.json.encode(encodable(msgspec.to_builtins(document)))
    return msgspec.json.format(escaped_for_json(encoded.decode()), indent=1) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(CheckDocument)

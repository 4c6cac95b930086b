"""Writes the JSON Schemas of ``gpuwhy diagnose``, ``inspect``, ``trace`` and ``check``, ``docs/*.schema.json``, from the types.

Run: ``python -m scripts.make_schema``; with ``--check`` it only says whether the file is up to date (exit status 1).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from gpuwhy.reports import binaries_json, check_json, differences, fit_json, fix_json, fleet_json, trace_json
from gpuwhy.reports.json import SCHEMA_VERSION, schema
from gpuwhy.snapshot import SCHEMA_VERSION as SNAPSHOT_SCHEMA_VERSION
from gpuwhy.snapshot import Snapshot

DOCS = Path(__file__).parents[1] / "docs"
SCHEMA_FILE = DOCS / "diagnosis.schema.json"
INSPECT_SCHEMA_FILE = DOCS / "inspect.schema.json"
TRACE_SCHEMA_FILE = DOCS / "trace.schema.json"
SNAPSHOT_SCHEMA_FILE = DOCS / "snapshot.schema.json"
DIFF_SCHEMA_FILE = DOCS / "diff.schema.json"
CHECK_SCHEMA_FILE = DOCS / "check.schema.json"
FIX_SCHEMA_FILE = DOCS / "fix.schema.json"
FIT_SCHEMA_FILE = DOCS / "fit.schema.json"
FLEET_SCHEMA_FILE = DOCS / "fleet.schema.json"


def schema_text() -> str:
    """The schema of a diagnosis as it stands in ``docs``."""
    return _text("diagnosis", "diagnose", SCHEMA_VERSION, schema())


def inspect_schema_text() -> str:
    """The schema of an inspection as it stands in ``docs``."""
    return _text("inspection", "inspect", binaries_json.SCHEMA_VERSION, binaries_json.schema())


def trace_schema_text() -> str:
    """The schema of a trace as it stands in ``docs``."""
    return _text("trace", "trace", trace_json.SCHEMA_VERSION, trace_json.schema())


def check_schema_text() -> str:
    """The schema of a forecast as it stands in ``docs``."""
    return _text("forecast", "check", check_json.SCHEMA_VERSION, check_json.schema())


def fit_schema_text() -> str:
    """The schema of an estimate of memory as it stands in ``docs``."""
    return _text("estimate of memory", "fit", fit_json.SCHEMA_VERSION, fit_json.schema())


def fix_schema_text() -> str:
    """The schema of a remedy carried out as it stands in ``docs``."""
    return _text("fix", "fix", fix_json.SCHEMA_VERSION, fix_json.schema())


def fleet_schema_text() -> str:
    """The schema of the analysis of a fleet as it stands in ``docs``."""
    return _text("fleet", "fleet report", fleet_json.SCHEMA_VERSION, fleet_json.schema())


def snapshot_schema_text() -> str:
    """The schema of a snapshot, what ``gpuwhy show --format json`` prints, as it stands in ``docs``."""
    return _text("snapshot", "show", SNAPSHOT_SCHEMA_VERSION, msgspec.json.schema(Snapshot))


def diff_schema_text() -> str:
    """The schema of a comparison as it stands in ``docs``."""
    return _text("comparison", "diff", differences.SCHEMA_VERSION, differences.schema())


def _text(subject: str, command: str, version: str, schema: dict[str, Any]) -> str:
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"gpuwhy {subject}",
        "description": f"The document that `gpuwhy {command} --format json` prints, schema_version {version}.",
        **schema,
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def main() -> int:
    stale = 0
    schemas = (
        (SCHEMA_FILE, schema_text()),
        (INSPECT_SCHEMA_FILE, inspect_schema_text()),
        (TRACE_SCHEMA_FILE, trace_schema_text()),
        (SNAPSHOT_SCHEMA_FILE, snapshot_schema_text()),
        (DIFF_SCHEMA_FILE, diff_schema_text()),
        (CHECK_SCHEMA_FILE, check_schema_text()),
        (FIT_SCHEMA_FILE, fit_schema_text()),
        (FLEET_SCHEMA_FILE, fleet_schema_text()),
        (FIX_SCHEMA_FILE, fix_schema_text()),
    )
    for file, text in schemas:
        if "--check" not in sys.argv[1:]:
            file.write_text(text, encoding="utf-8")
        elif not file.is_file() or file.read_text(encoding="utf-8") != text:
            sys.stderr.write(f"docs/{file.name} is not that of the types: run `make schema`\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())

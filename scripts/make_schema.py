"""Writes ``docs/diagnosis.schema.json``, the JSON Schema of ``gpuwhy diagnose --format json``, from the types.

Run: ``python -m scripts.make_schema``; with ``--check`` it only says whether the file is up to date (exit status 1).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gpuwhy.reports.json import SCHEMA_VERSION, schema

SCHEMA_FILE = Path(__file__).parents[1] / "docs" / "diagnosis.schema.json"


def schema_text() -> str:
    """The schema as it stands in ``docs``."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gpuwhy diagnosis",
        "description": f"The document that `gpuwhy diagnose --format json` prints, schema_version {SCHEMA_VERSION}.",
        **schema(),
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def main() -> int:
    text = schema_text()
    if "--check" not in sys.argv[1:]:
        SCHEMA_FILE.write_text(text, encoding="utf-8")
        return 0
    if SCHEMA_FILE.is_file() and SCHEMA_FILE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("docs/diagnosis.schema.json is not that of the types: run `make schema`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

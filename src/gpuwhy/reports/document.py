"""JSON documents: every answer for programs is written the same way, with its versions in front."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.reports.neutral import encodable, escaped_for_json


class Versioned(msgspec.Struct, frozen=True, kw_only=True):
    """What every document begins with: the version of its shape, and of the program that wrote it."""

    schema_version: str
    gpuwhy_version: str


def versions(schema_version: str) -> dict[str, str]:
    """The first two fields of a document."""
    return {"schema_version": schema_version, "gpuwhy_version": __version__}


def written(document: Any) -> str:
    """The document, indented: a Struct, or what is built of dicts, lists and scalars. It can be printed on a terminal."""
    # lone surrogates of a log's broken encoding, or of a path, cannot be written as UTF-8; they are escaped like control characters
    encoded = msgspec.json.encode(encodable(msgspec.to_builtins(document)))
    # before the line breaks of the layout come in: what is escaped then stands inside strings
    return msgspec.json.format(escaped_for_json(encoded.decode()), indent=1) + "\n"

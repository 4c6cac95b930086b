"""The parts of a SARIF 2.1.0 log. FACTS: the OASIS standard "SARIF Version 2.1.0"; section numbers are its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from gpuwhy import __version__
from gpuwhy.causes import catalogue
from gpuwhy.model.evidence import Place
from gpuwhy.model.finding import Certainty
from gpuwhy.reports.document import written as document
from gpuwhy.reports.neutral import plain

Json: TypeAlias = dict[str, Any]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Certainty.PROVEN: "error", Certainty.LIKELY: "error", Certainty.POSSIBLE: "warning"}

_OUR_RULES = {
    "unrecognised-failure": "A failure that the catalogue does not explain.",
    "binary-cannot-run": "A file has no code that the GPU or its driver takes.",
    "node-deviates": "A node differs from the majority of its fleet.",
    "binary-cannot-load": "The dynamic linker would refuse a file.",
}
_LONGEST = 1000
"""Characters of a message: GitHub shows no more."""


def result(rule: str, level: str, text: str, locations: list[Json], where: str, properties: Json) -> Json:
    """One result (3.27). The fingerprint stays the same when line numbers move: rule, component and target make it."""
    identity = "\0".join((rule, str(properties.get("component", "")), where))
    found: Json = {
        "ruleId": rule,
        "level": level,
        "message": {"text": plain(text)[:_LONGEST]},
        "locations": locations,
        "partialFingerprints": {
            "gpuwhyFinding/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]
        },
    }
    if properties:
        found["properties"] = properties
    return found


def location(place: Place | None, where: str, statement: str = "") -> Json:
    """A place (3.28). What is no file (a journal, a command) is named in words, beside the target as a file: readers want one."""
    is_file = place is not None and place.source in ("log", "report", "file", "binary") and bool(place.path)
    physical: Json = {"artifactLocation": {"uri": _uri(place.path if place is not None and is_file else where)}}
    if place is not None and is_file and place.line is not None and place.line > 0:
        physical["region"] = {"startLine": place.line}
    found: Json = {"physicalLocation": physical}
    if statement:
        found["message"] = {"text": plain(statement)[:_LONGEST]}
    if place is not None and not is_file:
        found["logicalLocations"] = [{"fullyQualifiedName": plain(str(place)), "kind": plain(place.source or "target")}]
    return found


def written(results: list[Json], remarks: Sequence[str], *, is_complete: bool) -> str:
    """The whole log with one run (3.14), its rules from the catalogue. ``remarks``: what else a reader should know."""
    names = list(dict.fromkeys(each["ruleId"] for each in results))
    for each in results:
        each["ruleIndex"] = names.index(each["ruleId"])
    invocation: Json = {"executionSuccessful": is_complete}
    if remarks:
        invocation["toolExecutionNotifications"] = [
            {"level": "note", "message": {"text": plain(each)[:_LONGEST]}} for each in remarks
        ]
    driver = {"name": "gpuwhy", "version": __version__, "semanticVersion": __version__, "rules": [_rule(name) for name in names]}  # fmt: skip
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return document({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(name: str) -> Json:
    """The descriptor of a rule (3.49): a cause of the catalogue with its documentation, or one of our own."""
    entry = catalogue().get(name)
    if entry is None:
        return {"id": name, "shortDescription": {"text": _OUR_RULES.get(name, plain(name))}}
    return {
        "id": name,
        "shortDescription": {"text": entry.summary},
        "fullDescription": {"text": entry.documentation},
        "help": {"text": f"gpuwhy cause {name}\n\n{entry.documentation}"},
        "properties": {"tags": [entry.family]},
    }


def _uri(path: str) -> str:
    """A path as a URI reference (RFC 3986): an absolute one as ``file:``, a relative one without what looks like a scheme."""
    encoded = quote(path.encode("utf-8", "surrogateescape" if _is_bytes(path) else "replace"), safe="/")
    return f"file://{encoded}" if path.startswith("/") else encoded or "target"


def _is_bytes(path: str) -> bool:
    """Whether lone surrogates in it stand for bytes, as Python's file names have them."""
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True

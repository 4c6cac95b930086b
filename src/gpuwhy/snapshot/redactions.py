"""Where the tokens stand that redaction left in a snapshot: what was taken out can be judged without being seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from gpuwhy.snapshot.document import Snapshot

_TOKEN = re.compile(r"<redacted:\d{1,9}>")

_SHOWN = 60
"""Characters of a text around a token."""


class Redaction(msgspec.Struct, frozen=True):
    """One token: equal secrets have equal tokens. ``places`` as ``environment: variables.HF_TOKEN``, in the document's order."""

    token: str
    places: tuple[str, ...]


def redactions_of(snapshot: Snapshot) -> tuple[Redaction, ...]:
    """The tokens of a snapshot by number, each with every place where it stands."""
    places: dict[str, list[str]] = {}
    for name, value in _parts(snapshot):
        for path, text in _texts(value, ""):
            for found in _TOKEN.finditer(text):
                start = max(0, found.start() - _SHOWN)
                around = "" if found.group() == text else f" ({text[start : found.end() + _SHOWN // 4].strip()})"
                places.setdefault(found.group(), []).append(f"{name}: {path or 'value'}{around}")
    ordered = sorted(places.items(), key=lambda each: int(each[0].strip("<>").partition(":")[2]))
    return tuple(Redaction(token, tuple(dict.fromkeys(found))) for token, found in ordered)


def _parts(snapshot: Snapshot) -> Iterator[tuple[str, Any]]:
    for probe in snapshot.probes:
        yield probe.name, probe.value
        yield f"{probe.name} (remarks)", [probe.reason, *probe.sources, *probe.remarks]
    for excerpt in snapshot.excerpts:
        yield f"{excerpt.ask} {excerpt.path}", excerpt.value
    yield "target", msgspec.to_builtins(snapshot.target)


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(str(key), f"{path} (a key)".strip())
            yield from _texts(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{path}[{number}]")

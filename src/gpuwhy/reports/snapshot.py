"""What a snapshot holds, as text: each question with its outcome, the value of one, and what redaction took out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import msgspec

from gpuwhy.reports.counting import counted
from gpuwhy.reports.document import written
from gpuwhy.reports.neutral import plain
from gpuwhy.snapshot import Probe, Snapshot
from gpuwhy.snapshot.anonymising import KINDS
from gpuwhy.snapshot.denials import denials
from gpuwhy.snapshot.redactions import Redaction, redactions_of

_BRIEF = 90
_PLACES = 12
"""Places of one token that are shown; the rest is counted."""


def overview(snapshot: Snapshot) -> str:
    """Who, when, every probe with its status, duration and a glance at its value or its reason, every excerpt."""
    return _text(_overview(snapshot))


def redactions(snapshot: Snapshot) -> str:
    """How many secrets were taken out, of which kinds, and where their tokens stand."""
    return _text(_redactions(snapshot.redacted, redactions_of(snapshot)))


def probe_value(probe: Probe) -> str:
    """All that one probe brought, as JSON."""
    return _json(msgspec.to_builtins(probe))


def whole(snapshot: Snapshot) -> str:
    """The document, as JSON."""
    return _json(msgspec.to_builtins(snapshot))


def _json(value: Any) -> str:
    return written(value)


def _text(lines: Iterator[str]) -> str:
    return "".join(plain(line) + "\n" for line in lines)


def _overview(snapshot: Snapshot) -> Iterator[str]:
    target = snapshot.target
    unit = f", unit {target.unit}" if target.unit else ""
    yield f"{target.name} ({target.kind}{unit})"
    cut = "" if snapshot.is_complete else "; it ended early, and what is missing was not looked at"
    yield f"taken {_when(snapshot.started)} in {snapshot.duration:.1f} s by gpuwhy {snapshot.gpuwhy_version or '(unknown)'}{cut}"
    secrets = sum(count for kind, count in snapshot.redacted.items() if kind not in KINDS)
    names = ", ".join(f"{kind} {count}" for kind, count in snapshot.redacted.items() if kind in KINDS)
    replaced = f"; names replaced: {names}" if names else ""
    yield f"schema {snapshot.schema_version}; {counted(secrets, 'secret')} taken out{replaced}"
    yield ""
    for probe in sorted(snapshot.probes, key=lambda each: each.name):
        yield f"{probe.name:20} {probe.status:9} {probe.duration:5.2f} s  {_glance(probe)}"
        yield from (f"{'':40}{remark}"[:160] for remark in probe.remarks)
    hidden = denials(snapshot)
    if hidden:
        yield ""
        yield "what the account of the collection could not read:"
    yield from (f"  {each}" for each in hidden)
    if snapshot.excerpts:
        yield ""
        yield "asked for by the diagnosis:"
    for excerpt in snapshot.excerpts:
        lines = f" lines {excerpt.first}-{excerpt.last}" if excerpt.first is not None else ""
        reason = f": {excerpt.reason}" if excerpt.reason else ""
        yield f"  {excerpt.ask:8} {excerpt.path}{lines} ({excerpt.status}{reason})"


def _when(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _glance(probe: Probe) -> str:
    if probe.status != "ok":
        return probe.reason.split("\n")[0]
    subject = "" if probe.subject == "host" else f"[{probe.subject}] "
    text = subject + _brief(probe.value)
    return text if len(text) <= _BRIEF else text[: _BRIEF - 3] + "..."


def _brief(value: Any) -> str:
    """A scalar as it is, of a collection the first things that fit in a line."""
    if isinstance(value, dict):
        if isinstance(value.get("entries"), list):
            return f"{counted(len(value['entries']), 'line')}"
        return ", ".join(f"{key}={_inner(item)}" for key, item in list(value.items())[:8])
    if isinstance(value, list):
        return f"{len(value)}: " + ", ".join(_inner(each) for each in value[:4])
    return str(value)


def _inner(value: Any) -> str:
    if isinstance(value, dict):
        told = next((value[key] for key in ("name", "root", "path", "prefix", "version") if value.get(key)), None)
        return str(told) if told is not None else f"{{{len(value)}}}"
    return f"[{len(value)}]" if isinstance(value, list) else str(value)


def _redactions(counts: dict[str, int], found: tuple[Redaction, ...]) -> Iterator[str]:
    total = sum(counts.values())
    if not total and not found:
        yield "no secret was found, so none was taken out"
        return
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items(), key=lambda each: -each[1]))
    yield f"{counted(total, 'replacement')} of {counted(len(found), 'secret')}" + (f": {kinds}" if kinds else "")
    for redaction in found:
        yield ""
        yield redaction.token
        yield from (f"  {place}" for place in redaction.places[:_PLACES])
        if len(redaction.places) > _PLACES:
            yield f"  and {len(redaction.places) - _PLACES} more"

"""What changed between two snapshots: for a person, the most suspicious first; and as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import msgspec

from gpuwhy.investigate.differences import Change, Comparison, Side, Uncompared
from gpuwhy.reports.columns import cut, cut_apart
from gpuwhy.reports.document import Versioned, versions, written
from gpuwhy.reports.neutral import plain

SCHEMA_VERSION = "0.1"

_MINOR_SHOWN = 12
_LINES_SHOWN = 8
_LONGEST = 160


class DifferenceDocument(Versioned, frozen=True, kw_only=True):
    """The whole answer; see docs/snapshots.md."""

    comparison: Comparison


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, from the types."""
    return msgspec.json.schema(DifferenceDocument)


def render_json(comparison: Comparison) -> str:
    """The document, indented."""
    return written(DifferenceDocument(**versions(SCHEMA_VERSION), comparison=comparison))


def render(comparison: Comparison, verbose: bool = False) -> str:
    """The report; with ``verbose`` every change, every line, and all that could not be compared."""
    return "".join(plain(line) + "\n" for line in lines(comparison, verbose))


def lines(comparison: Comparison, verbose: bool = False) -> Iterator[str]:
    """The report line by line."""
    yield f"before: {_side(comparison.before)}"
    yield f"after:  {_side(comparison.after)}"
    changes = comparison.changes
    groups = (
        (f"undone alone, {_each_cause(changes)} no longer stands:", [each for each in changes if each.undoes]),
        ("of a kind that can cause what was found:", [each for each in changes if each.is_suspected and not each.undoes and not each.is_outcome]),
        ("changed as well:", [each for each in changes if not each.undoes and not each.is_suspected and not each.is_outcome]),
        ("follows rather than leads:", [each for each in changes if each.is_outcome and not each.undoes]),
    )  # fmt: skip
    for heading, members in groups:
        if members:
            yield ""
            yield heading
            yield from _changes(members, verbose)
    yield ""
    yield _counts(comparison)
    yield from _uncompared(comparison.uncompared, verbose)


def _side(side: Side) -> str:
    unit = f", unit {side.unit}" if side.unit else ""
    cut = "; collection ended early" if not side.is_complete else ""
    if side.cause:
        failed = f"{side.cause} ({side.certainty}): {side.title}"
    else:
        failed = "a failure that no cause explains" if side.is_failure else "no failure in its logs"
    return f"{side.name} ({side.kind}{unit}) at {_when(side.started)}: {failed}{cut}"


def _when(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unknown time"


def _each_cause(changes: tuple[Change, ...]) -> str:
    return " or ".join(dict.fromkeys(each.undoes for each in changes if each.undoes))


def _changes(changes: list[Change], verbose: bool) -> Iterator[str]:
    shown = changes if verbose else changes[:_MINOR_SHOWN]
    for change in shown:
        yield f"  {change.key} ({change.kind})"
        if change.lines:
            lines = change.lines if verbose else change.lines[:_LINES_SHOWN]
            yield from (f"    {_cut(line, verbose)}" for line in lines)
            if len(change.lines) > len(lines):
                yield f"    and {len(change.lines) - len(lines)} more lines"
        else:
            before, after = (
                (change.before, change.after) if verbose else cut_apart(change.before, change.after, _LONGEST)
            )
            yield f"    - {before}"
            yield f"    + {after}"
        if change.causes and not change.undoes:
            yield f"    can cause: {', '.join(change.causes if verbose else change.causes[:4])}"
    if len(changes) > len(shown):
        yield f"  and {len(changes) - len(shown)} more (--verbose)"


def _cut(text: str, verbose: bool) -> str:
    return text if verbose else cut(text, _LONGEST)


def _counts(comparison: Comparison) -> str:
    if not comparison.compared:
        return "nothing could be compared"
    differ = comparison.compared - comparison.equal
    told = "all are equal" if not differ else f"{differ} differ{'s' if differ == 1 else ''}"
    facts = "1 fact" if comparison.compared == 1 else f"{comparison.compared:,} facts"
    return f"{facts} compared: {told}"


def _uncompared(missing: tuple[Uncompared, ...], verbose: bool) -> Iterator[str]:
    """By side and reason: one probe that failed leaves many facts unknown."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for each in missing:
        by_reason.setdefault((each.side, each.why), []).append(each.key)
    if missing:
        yield f"{len(missing)} could not be compared:"
    for (side, why), keys in by_reason.items():
        named = keys if verbose else keys[:4]
        more = f" and {len(keys) - len(named)} more" if len(keys) > len(named) else ""
        yield f"  {', '.join(named)}{more}: {side}, {why.partition(chr(10))[0]}"

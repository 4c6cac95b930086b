"""What a collection ends with: the counts, and every node without a whole snapshot with its reason."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpuwhy.fleet.collecting import Outcome
from gpuwhy.fleet.store import OK, Node
from gpuwhy.reports import plain
from gpuwhy.reports.columns import padded
from gpuwhy.reports.counting import counted

MOST_ROWS = 40


def collected(folder: str, outcome: Outcome, rows: Sequence[Node]) -> str:
    """Lines for standard error, each free of control characters."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    kinds = ", ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=lambda item: -item[1]))
    kept = f"; {outcome.kept} were there already" if outcome.kept else ""
    lines = [f"gpuwhy: {plain(folder)}: {counted(outcome.nodes, 'node')}: {kinds}{kept}"]
    others = [row for row in rows if row.status != OK]
    width = min(max((len(row.name) for row in others), default=0), 40)
    for row in others[:MOST_ROWS]:
        lines.append(f"  {padded(plain(row.name), width)}  {row.status}: {plain(row.reason)}")
    if len(others) > MOST_ROWS:
        lines.append(f"  and {len(others) - MOST_ROWS} more, in {plain(folder)}/index.sqlite")
    if others:
        lines.append("  --resume tries these again")
    if any(row.file for row in rows):
        lines.append(f"  gpuwhy fleet report {shlex.quote(plain(folder))}   says what differs")
    return "\n".join(lines) + "\n"

"""Where memory goes in GitHub's Markdown: the bars as a block that keeps its shape, every part in a table."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.model.memory_use import MemoryUse
from gpuwhy.reports import memory_chart
from gpuwhy.reports.github import block, bullets, folded, prose, table


def chart_text(use: MemoryUse) -> str:
    """The bars, as the terminal shows them."""
    return block(line for row in memory_chart.rows(use) for line in row.wrapped(0))


def parts_text(use: MemoryUse) -> str:
    """Every part in a table."""
    rows = [
        (
            prose(each.name),
            memory_chart.figure(each.expected, use.unit),
            f"{memory_chart.figure(each.low, use.unit)} to {memory_chart.figure(each.high, use.unit)}",
            prose(each.source),
        )
        for each in use.parts
    ]
    return table(("part", use.unit, "between", "from"), rows)


def uses_text(uses: Iterable[MemoryUse]) -> str:
    """Each with what it comes to; its parts are folded where they were computed, as the log's stand in the bars already."""
    pieces: list[str] = []
    for use in uses:
        said = [*use.says, *(f"not known, or not usable: {each}" for each in use.missing)]
        pieces += [chart_text(use), bullets(map(prose, said))]
        if use.basis == "computed":
            pieces.append(folded("Every part, and where its number is from", parts_text(use)))
    return "\n\n".join(piece for piece in pieces if piece)

"""Where memory goes, as a page draws it: each bar in hundredths of the chart's width, beginning where the one before ends."""

from __future__ import annotations

import msgspec

from gpuwhy.model.memory_use import MemoryPart, MemoryUse
from gpuwhy.reports.memory_chart import Bar, Chart, chart_of, figure, in_words, spread

_LEAST = 0.4
"""Hundredths of the width: a thinner bar cannot be seen."""


class DrawnBar(msgspec.Struct, frozen=True):
    """A group of parts. ``low_at`` and ``high_at`` are where its end may lie; None where it is exact."""

    name: str
    kind: str
    figure: str
    spread: str
    x: str
    width: str
    low_at: str | None
    high_at: str | None
    parts: tuple[tuple[str, str, str, str], ...]
    """Of each part name, figure, bounds, source."""


class DrawnChart(msgspec.Struct, frozen=True):
    """``limit`` is where the memory ends on a chart of more than there is, else None."""

    heading: str
    words: str
    unit: str
    bars: tuple[DrawnBar, ...]
    left: str | None
    left_x: str
    left_width: str
    is_over: bool
    limit: str | None
    says: tuple[str, ...]
    missing: tuple[str, ...]


def drawn(use: MemoryUse) -> DrawnChart:
    """The chart as the macro ``memory`` shows it."""
    chart = chart_of(use)
    is_over = chart.left is not None and chart.left < 0
    used = min(use.total - chart.left, chart.scale) if use.total is not None and chart.left is not None else 0.0
    return DrawnChart(
        heading=chart.heading,
        words=in_words(chart),
        unit=use.unit,
        bars=tuple(_bar(each, chart) for each in chart.bars),
        left=None if chart.left is None else figure(abs(chart.left), use.unit),
        left_x=_share(used, chart),
        left_width=_share(chart.scale - used, chart),
        is_over=is_over,
        limit=_share(use.total, chart) if is_over and use.total is not None else None,
        says=use.says,
        missing=use.missing,
    )


def _bar(bar: Bar, chart: Chart) -> DrawnBar:
    unit = chart.use.unit
    begin = min(bar.begin, chart.scale)
    end = min(begin + max(0.0, bar.expected), chart.scale)
    return DrawnBar(
        name=bar.name,
        kind=bar.kind if bar.kind.replace("-", "").isalpha() else "other",
        figure=figure(bar.expected, unit),
        spread=spread(bar, unit),
        x=_share(begin, chart),
        width=f"{max((end - begin) / chart.scale * 100, _LEAST):.2f}",
        low_at=None if bar.is_exact else _share(begin + max(0.0, bar.low), chart),
        high_at=None if bar.is_exact else _share(begin + max(0.0, bar.high), chart),
        parts=tuple(_part(each, unit) for each in bar.parts),
    )


def _part(part: MemoryPart, unit: str) -> tuple[str, str, str, str]:
    alone = Bar(part.name, "", part.kind, part.low, part.expected, part.high, 0.0, ())
    return part.name, figure(part.expected, unit), spread(alone, unit), part.source


def _share(value: float, chart: Chart) -> str:
    return f"{min(max(value, 0.0) / chart.scale * 100, 100.0):.2f}"

"""Where memory goes as a bar chart: the parts in groups, each bar beginning where the one before ends, and what is left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from gpuwhy.model.memory_use import MemoryPart, MemoryUse
from gpuwhy.reports.neutral import plain
from gpuwhy.reports.row import Row

_GROUPS = (
    ("taken", "other processes", "o"),
    ("before", "gone before loading", "b"),
    ("context", "CUDA context", "c"),
    ("communication", "NCCL and the like", "n"),
    ("weights", "weights", "w"),
    ("draft", "draft model", "d"),
    ("kv-cache", "KV cache", "k"),
    ("workspace", "workspaces, logits", "s"),
    ("graphs", "CUDA graphs", "g"),
    ("activation", "activations (peak)", "a"),
    ("reserve", "kept free", "r"),
    ("torch", "tensors of PyTorch", "t"),
    ("idle", "idle in PyTorch", "i"),
    ("own", "rest of the process", "p"),
    ("unreclaimable", "not reclaimable", "u"),
    ("compilers", "compilers, warm-up", "j"),
    ("page-cache", "page cache", "f"),
)
"""Of each kind of part the name of its group and its letter on a bar, in the order of a start."""
_OTHER = ("other", "?")
_RECLAIMABLE = ("page-cache",)
"""What the kernel takes back when something else wants the room."""
_TELLING = ("kv-cache",)
"""That nothing is left for it is what a reader wants to see."""
_SMALL = 0.005
"""Less is not shown: it would read 0.00."""
_SENSELESS = 1e7
"""No memory is so large: a configuration lies, and its number has to fit a line all the same."""
_BAR = 34
"""Cells of a bar of the chart."""
_STRIP = 34
"""Cells of the one bar of the short chart, which has to fit a pane of 40 columns."""


class Bar(msgspec.Struct, frozen=True):
    """A group of parts. ``begin`` is where the groups before it end."""

    name: str
    letter: str
    kind: str
    low: float
    expected: float
    high: float
    begin: float
    parts: tuple[MemoryPart, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the bounds would read like the number itself."""
        return self.high - self.low < 0.05


class Chart(msgspec.Struct, frozen=True):
    """The bars of a memory. ``left`` is None where its size is not known; below zero it is what is lacking."""

    use: MemoryUse
    bars: tuple[Bar, ...]
    left: float | None
    scale: float
    """What the whole width stands for, above zero."""

    @property
    def heading(self) -> str:
        """``One GPU: 94.97 GiB (+/- 0.25)``; how it is known stands in the title."""
        use = self.use
        if use.total is None:
            return f"{use.title}, {use.unit}"
        within = f" (+/- {use.total_within:.2f})" if use.total_within > 0.01 else ""
        return f"{use.title}: {figure(use.total, use.unit)} {use.unit}{within}"


def chart_of(use: MemoryUse) -> Chart:
    """The groups with anything in them, in the order of a start."""
    bars: list[Bar] = []
    end = used = 0.0
    for kind, name, letter in _named(use.parts):
        parts = tuple(each for each in use.parts if each.kind == kind)
        low, expected, high = _sum(parts)
        if not high >= _SMALL and kind not in _TELLING:
            continue
        bars.append(Bar(name, letter, kind, low, expected, high, end, parts))
        end += max(0.0, expected)
        used = used if kind in _RECLAIMABLE else end
    if use.total is None:
        return Chart(use, tuple(bars), None, end or 1.0)
    return Chart(use, tuple(bars), use.total - used, max(used, use.total) or 1.0)


def _named(parts: Sequence[MemoryPart]) -> Iterator[tuple[str, str, str]]:
    """The kinds that occur; one that is not known (a document of another release) comes last, under its own name."""
    kinds = dict.fromkeys(each.kind for each in parts)
    known = [each for each in _GROUPS if each[0] in kinds]
    yield from known
    for kind in kinds.keys() - {each[0] for each in known}:
        yield kind, kind or _OTHER[0], _OTHER[1]


def _sum(parts: Sequence[MemoryPart]) -> tuple[float, float, float]:
    """The errors of parts are independent of each other: their squares add up, not they themselves."""
    expected = sum(each.expected for each in parts)
    below = math.hypot(*(each.expected - each.low for each in parts))
    above = math.hypot(*(each.high - each.expected for each in parts))
    return expected - below, expected, expected + above


def figure(value: float, unit: str) -> str:
    """A number as its unit is given: hundredths of a GiB, whole GB of a host."""
    if not abs(value) < _SENSELESS:
        return f"{value:.3g}"
    return f"{value:,.2f}" if unit == "GiB" else f"{value:,.0f}"


def spread(bar: Bar, unit: str) -> str:
    """``71.6 to 72.3``; "" where the number is exact."""
    if bar.is_exact:
        return ""
    if unit != "GiB" or not bar.high < _SENSELESS:
        return f"{figure(bar.low, unit)} to {figure(bar.high, unit)}"
    return f"{bar.low:,.1f} to {bar.high:,.1f}"


def rows(use: MemoryUse) -> Iterator[Row]:
    """The chart for a terminal: a line a group."""
    chart = chart_of(use)
    yield Row(plain(chart.heading), style="heading", hang=2)
    for bar in chart.bars:
        cells = "#" * _cells(bar.expected, use.total or chart.scale, _BAR)
        yield _line(bar.name, figure(bar.expected, use.unit), cells, spread(bar, use.unit))
    if chart.left is not None:
        over = chart.left < -_SMALL
        cells = "" if over else "." * _cells(chart.left, use.total or chart.scale, _BAR)
        yield _line("over" if over else "left", figure(abs(chart.left), use.unit), cells, "", "bad" if over else "")


def _line(name: str, number: str, cells: str, bounds: str, style: str = "") -> Row:
    shown = cells if len(cells) <= _BAR else cells[: _BAR - 1] + "+"
    return Row(f"  {plain(name)[:20]:<20}{number:>8} {shown:<{_BAR}}  {bounds}".rstrip(), style=style, is_whole=True)


def _cells(value: float, total: float, room: int) -> int:
    return min(round(max(0.0, value) / total * room), room + 1) if total > 0 else 0


def short_rows(use: MemoryUse) -> Iterator[Row]:
    """The chart on one bar of letters, and what the letters are."""
    chart = chart_of(use)
    yield Row(plain(chart.heading), 2, hang=2)
    strip = ""
    for bar in chart.bars:
        end = min(bar.begin + max(0.0, bar.expected), chart.scale)
        strip += bar.letter * (round(end / chart.scale * _STRIP) - len(strip))
    if chart.left is not None and chart.left > 0:
        strip += "." * (_STRIP - len(strip))
    yield Row(f"[{strip}]", 4, is_whole=True)
    names = [f"{each.letter} {plain(each.name)} {figure(each.expected, use.unit)}" for each in chart.bars]
    yield Row(", ".join([*names, *_left_said(chart)]), 4, "note")


def _left_said(chart: Chart) -> list[str]:
    if chart.left is None:
        return []
    number = figure(abs(chart.left), chart.use.unit)
    return [f". left {number}"] if chart.left >= -_SMALL else [f"{number} more than there is"]


def said_rows(use: MemoryUse) -> Iterator[Row]:
    """What the parts come to, and what is not known of them."""
    for each in use.says:
        yield Row(plain(each), 2, hang=2)
    for each in use.missing:
        yield Row(plain(f"not known, or not usable: {each}"), 2, "note", 2)


def in_words(chart: Chart) -> str:
    """The chart as a sentence, for who cannot see it."""
    names = [f"{each.name} {figure(each.expected, chart.use.unit)}" for each in chart.bars]
    left = [each.removeprefix(". ") for each in _left_said(chart)]
    return f"{chart.heading}: {', '.join([*names, *left])}"

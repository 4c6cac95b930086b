"""What a report format is: one module in :mod:`gpuwhy.reports.formats`, with a function for each kind of answer it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from gpuwhy.reports.row import Row


class Detail(msgspec.Struct, frozen=True):
    """How much is shown. ``width`` in columns; 0: no wrapping. ``is_private``: for the reader's own eyes, nothing has to
    be taken out for the public."""

    verbose: bool = False
    show_work: bool = False
    width: int = 100
    is_private: bool = False


Answer: TypeAlias = Any
"""A :class:`~gpuwhy.model.diagnosis.Diagnosis`, a :class:`~gpuwhy.investigate.checks.results.Forecast`, an
:class:`~gpuwhy.model.inspection.Inspection`, a :class:`~gpuwhy.investigate.differences.Comparison`, a
:class:`~gpuwhy.model.fleet.FleetReport`, a :class:`~gpuwhy.reports.fit_answer.FitAnswer`, an answer of ``gpuwhy trace``
(:data:`gpuwhy.reports.trace_json.Answer`), or a saved document of a change (:mod:`gpuwhy.reports.fix_json`)."""

KINDS = {
    "Diagnosis": "diagnosis", "Forecast": "forecast", "Inspection": "inspection", "Comparison": "comparison",
    "FleetReport": "fleet", "FitAnswer": "estimate",
    "Trace": "trace", "Absence": "trace", "Moved": "trace", "LogPlaces": "trace", "Replay": "trace",
    "FixDocument": "change", "HistoryDocument": "change", "UndoDocument": "change",
}  # fmt: skip
"""The kinds of answers by their types, and how the function of a format is called that shows one."""

Shown: TypeAlias = "str | list[Row]"
"""The report as it is written, or rows that are still to be wrapped, and coloured where that is wanted."""

Show: TypeAlias = Callable[[Answer, Detail], Shown]


class Format(Protocol):
    """A format module has at least one of these. A text ends with a newline and holds no control character but newlines."""

    diagnosis: Show
    forecast: Show
    inspection: Show
    comparison: Show
    fleet: Show
    estimate: Show
    trace: Show
    change: Show


class UnknownFormatError(ValueError):
    """There is no such format, or it does not show this kind of answer."""

"""For a person in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuwhy.reports.row import Row

if TYPE_CHECKING:
    from gpuwhy.investigate.checks.results import Forecast
    from gpuwhy.investigate.differences import Comparison
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.fleet import FleetReport
    from gpuwhy.model.inspection import Inspection
    from gpuwhy.reports import trace_json
    from gpuwhy.reports.fit_answer import FitAnswer
    from gpuwhy.reports.fix_json import FixDocument, HistoryDocument, UndoDocument
    from gpuwhy.reports.interface import Detail


def diagnosis(answer: Diagnosis, detail: Detail) -> list[Row]:
    """The answer first, then how it happened and what to do."""
    from gpuwhy.reports.text import rows

    return list(rows(answer, detail))


def forecast(answer: Forecast, detail: Detail) -> list[Row]:
    """The problems with what to do, then what could not be checked."""
    from gpuwhy.reports.check import rows

    return list(rows(answer, detail.verbose))


def inspection(answer: Inspection, detail: Detail) -> list[Row]:
    """One line a file; a table is never wrapped."""
    from gpuwhy.reports.binaries import lines

    return [Row(line, style=style, is_whole=True) for line, style in lines(answer, detail.verbose)]


def comparison(answer: Comparison, detail: Detail) -> list[Row]:
    """What changed, the most suspicious first."""
    from gpuwhy.reports.differences import lines

    return [Row(line.lstrip(), len(line) - len(line.lstrip()), hang=2) for line in lines(answer, detail.verbose)]


def fleet(answer: FleetReport, detail: Detail) -> list[Row]:
    """How many are alike, who deviates in what, and what that causes."""
    from gpuwhy.reports.fleet import lines

    shown = ((line.lstrip(), len(line) - len(line.lstrip()), style) for line, style in lines(answer, detail.verbose))
    return [Row(text, indent, style, 2) for text, indent, style in shown]


def estimate(answer: FitAnswer, detail: Detail) -> list[Row]:
    """The verdict, one GPU as a bar chart, the checks, the host."""
    from gpuwhy.reports.fit import rows

    return list(rows(answer, detail.verbose))


def trace(answer: trace_json.Answer, detail: Detail) -> str:
    """The guard first, then what was swallowed, what reaches it, and where it comes from."""
    from gpuwhy.reports.trace_writing import shown

    return shown(answer, "text", detail.verbose)


def change(answer: FixDocument | HistoryDocument | UndoDocument, detail: Detail) -> list[Row]:
    """The diagnosis in two lines, the remedies, what was done and what came of it."""
    from gpuwhy.reports.fix_saved import rows

    del detail
    return list(rows(answer))

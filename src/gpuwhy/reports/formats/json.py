"""For programs: one JSON document, with a schema in docs/."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def diagnosis(answer: Diagnosis, detail: Detail) -> str:  # noqa: ARG001 - nothing is ever left out
    """See docs/json.md."""
    from gpuwhy.reports.json import render

    return render(answer)


def forecast(answer: Forecast, detail: Detail) -> str:  # noqa: ARG001
    """See docs/check.md."""
    from gpuwhy.reports.check_json import render

    return render(answer)


def inspection(answer: Inspection, detail: Detail) -> str:  # noqa: ARG001
    """See docs/inspect.md."""
    from gpuwhy.reports.binaries_json import render

    return render(answer)


def comparison(answer: Comparison, detail: Detail) -> str:  # noqa: ARG001
    """See docs/snapshots.md."""
    from gpuwhy.reports.differences import render_json

    return render_json(answer)


def fleet(answer: FleetReport, detail: Detail) -> str:  # noqa: ARG001
    """See docs/fleet-report.md."""
    from gpuwhy.reports.fleet_json import render

    return render(answer)


def estimate(answer: FitAnswer, detail: Detail) -> str:  # noqa: ARG001
    """See docs/fit.md."""
    from gpuwhy.reports.fit_json import render

    return render(answer)


def trace(answer: trace_json.Answer, detail: Detail) -> str:  # noqa: ARG001
    """See docs/trace.md."""
    from gpuwhy.reports.trace_json import render

    return render(answer)


def change(answer: FixDocument | HistoryDocument | UndoDocument, detail: Detail) -> str:  # noqa: ARG001
    """See docs/fix.md."""
    from gpuwhy.reports.fix_json import written

    return written(answer)

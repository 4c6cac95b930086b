"""One HTML file that asks no network for anything; see docs/html.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuwhy.investigate.checks.results import Forecast
from gpuwhy.investigate.differences import Comparison
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.fleet import FleetReport
from gpuwhy.model.inspection import Inspection
from gpuwhy.reports.fit_answer import FitAnswer
from gpuwhy.reports.interface import Detail

if TYPE_CHECKING:
    from gpuwhy.reports import trace_json


def diagnosis(answer: Diagnosis, detail: Detail) -> str:
    """The answer, the chain as a picture, the time line, and all that they rest on; what few want is folded."""
    from gpuwhy.reports.html.diagnosis import render

    return render(answer, detail)


def forecast(answer: Forecast, detail: Detail) -> str:
    """The problems with what to do, then what could not be checked."""
    from gpuwhy.reports.html.check import render

    del detail
    return render(answer)


def inspection(answer: Inspection, detail: Detail) -> str:
    """The architectures of the files against the GPU, then each file."""
    from gpuwhy.reports.html.inspection import render

    del detail
    return render(answer)


def comparison(answer: Comparison, detail: Detail) -> str:
    """What changed, the most suspicious first."""
    from gpuwhy.reports.differences import lines
    from gpuwhy.reports.html.lines import render

    del detail
    return render([(line, "") for line in lines(answer, verbose=True)], "What changed", "comparison")


def fleet(answer: FleetReport, detail: Detail) -> str:
    """The groups against the facts in which they differ, then the outliers."""
    from gpuwhy.reports.html.fleet import render

    del detail
    return render(answer)


def estimate(answer: FitAnswer, detail: Detail) -> str:
    """The verdict, the bars, the checks in the order of the start, the host."""
    from gpuwhy.reports.html.fit import render

    del detail
    return render(answer)


def trace(answer: trace_json.Answer, detail: Detail) -> str:
    """The guard first, then what was swallowed, what reaches it, and where it comes from."""
    from gpuwhy.reports.trace_writing import shown

    return shown(answer, "html", detail.verbose)

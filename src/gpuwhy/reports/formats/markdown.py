"""GitHub's Markdown for an issue: what a maintainer asks for first, the rest folded; made for the public unless told not to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuwhy.investigate.checks.results import Forecast
    from gpuwhy.investigate.differences import Comparison
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.fleet import FleetReport
    from gpuwhy.model.inspection import Inspection
    from gpuwhy.reports.fit_answer import FitAnswer
    from gpuwhy.reports.interface import Detail


def diagnosis(answer: Diagnosis, detail: Detail) -> str:
    """Title, environment, cause and certainty, excerpt, what was tried; then everything else, folded."""
    from gpuwhy.reports.issue import Issue
    from gpuwhy.reports.public import public

    return Issue(answer if detail.is_private else public(answer)).whole()


def forecast(answer: Forecast, detail: Detail) -> str:
    """The problems with what to do, then what could not be checked."""
    from gpuwhy.reports.issue_parts import forecast_text
    from gpuwhy.reports.public import public

    return forecast_text(answer if detail.is_private else public(answer))


def inspection(answer: Inspection, detail: Detail) -> str:
    """A table of files with their architectures and verdicts."""
    from gpuwhy.reports.issue_parts import inspection_text
    from gpuwhy.reports.public import public

    return inspection_text(answer if detail.is_private else public(answer))


def comparison(answer: Comparison, detail: Detail) -> str:
    """A table of what changed, the most suspicious first."""
    from gpuwhy.reports.issue_parts import comparison_text
    from gpuwhy.reports.public import public

    return comparison_text(answer if detail.is_private else public(answer))


def fleet(answer: FleetReport, detail: Detail) -> str:
    """The answer and the outliers as a table, the rest folded; for the public, nodes have other names."""
    from gpuwhy.reports.fleet_issue import fleet_text
    from gpuwhy.reports.public import public

    return fleet_text(answer if detail.is_private else public(answer))


def estimate(answer: FitAnswer, detail: Detail) -> str:
    """The verdict, the bars as a block that keeps its shape, the checks as a table; the rest folded."""
    from gpuwhy.reports.fit_issue import estimate_text
    from gpuwhy.reports.public import public

    return estimate_text(answer if detail.is_private else public(answer))

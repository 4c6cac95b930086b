"""A check as a page: the problems that are there before anything failed, each with what to do, then what is open."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.investigate.checks.results import Forecast, Problem
from gpuwhy.model.finding import Certainty
from gpuwhy.reports.counting import counted
from gpuwhy.reports.html.architectures import matrix_of_facts
from gpuwhy.reports.html.diagnosis import MOST_FACTS, grouped
from gpuwhy.reports.html.memory import DrawnChart, drawn
from gpuwhy.reports.html.page import written
from gpuwhy.reports.html.remedy import Step, step_of

_SURE = {
    Certainty.PROVEN: "will happen when this part is used",
    Certainty.LIKELY: "likely",
    Certainty.POSSIBLE: "in some uses only",
}


class ShownProblem(msgspec.Struct, frozen=True):
    """A problem, its certainty in words, and its remedies ready to be carried out."""

    problem: Problem
    sure: str
    steps: tuple[Step, ...]


def render(forecast: Forecast) -> str:
    """The page."""
    number = len(forecast.problems)
    if number:
        headline, level = f"{counted(number, 'problem')} found", forecast.problems[0].certainty.value
    elif forecast.is_examined:
        headline, level = "No problem found", "fine"
    else:
        headline, level = "Not enough could be examined to say anything", "unknown"
    matrix = matrix_of_facts(forecast.facts)
    memory = _memory(forecast)
    sections = {
        "problems": ("Problems", forecast.problems),
        "memory": ("Where the memory goes", memory),
        "open": ("Could not be checked", forecast.unchecked),
        "passed": ("In order", forecast.passed),
        "binaries": ("Binaries and GPUs", matrix),
        "environment": ("Environment", forecast.facts),
    }
    context: dict[str, Any] = {
        "headline": headline,
        "level": level,
        "remark": f"{counted(len(forecast.passed), 'check')} in order, {len(forecast.unchecked)} could not be made.",
        "problems": tuple(ShownProblem(each, _SURE[each.certainty], tuple(map(step_of, each.remedies))) for each in forecast.problems),
        "matrix": matrix,
        "memory": memory,
        "facts": grouped(forecast.facts),
        "facts_left_out": max(0, len(forecast.facts) - MOST_FACTS),
    }  # fmt: skip
    shown = tuple((anchor, title) for anchor, (title, content) in sections.items() if content)
    return written("check.html.jinja", subject=forecast.where, forecast=forecast, sections=shown, **context)


def _memory(forecast: Forecast) -> tuple[DrawnChart, ...]:
    """Of the service's model, on one GPU and on the host; the calculator is read only where there is an estimate."""
    if forecast.estimate is None:
        return ()
    from gpuwhy.fit.memory_use import gpu_use, host_use

    return drawn(gpu_use(forecast.estimate)), drawn(host_use(forecast.estimate))

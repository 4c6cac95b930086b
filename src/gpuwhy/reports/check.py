"""The report of ``gpuwhy check`` for a person: the problems with what to do, then what could not be checked."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gpuwhy.investigate.checks.results import Forecast, Problem, Unchecked
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Standing
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.model.incident import Incident
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import prescribe
from gpuwhy.reports.counting import counted
from gpuwhy.reports.row import Row

MANY = 12
"""Rows of a list that are shown without -v."""

_SURE = {
    Certainty.PROVEN: "will happen when this part is used",
    Certainty.LIKELY: "likely",
    Certainty.POSSIBLE: "in some uses only",
}


def prescribed(forecast: Forecast) -> Forecast:
    """The forecast with the remedies of each problem in order, written for the place, without those that do not apply."""
    findings = tuple(_as_finding(each) for each in forecast.problems)
    nothing = Incident(logs=(), events=(), is_failure=False)
    written = prescribe(Diagnosis(where=forecast.where, incident=nothing, findings=findings, facts=forecast.facts))
    problems = tuple(
        msgspec.structs.replace(problem, remedies=finding.remedies, not_remedies=finding.not_remedies)
        for problem, finding in zip(forecast.problems, written.findings, strict=True)
    )
    return msgspec.structs.replace(forecast, problems=problems)


def _as_finding(problem: Problem) -> Finding:
    return Finding(
        cause=problem.cause,
        family="",
        component=problem.component,
        certainty=problem.certainty,
        title=problem.title,
        chain=(),
        evidence=problem.evidence,
        remedies=problem.remedies,
        not_remedies=problem.not_remedies,
    )


def render(forecast: Forecast, verbose: bool = False, width: int = 100) -> str:
    """The report as plain text."""
    return "\n".join(line for row in rows(forecast, verbose) for line in row.wrapped(width)) + "\n"


def rows(forecast: Forecast, verbose: bool = False) -> Iterator[Row]:
    """The report, row by row."""
    yield Row(f"{forecast.where}: {_answer(forecast)}", style="answer")
    for number, problem in enumerate(forecast.problems, 1):
        yield Row("")
        yield from _problem(number, problem, verbose)
    if forecast.estimate is not None:
        from gpuwhy.reports import fit  # its calculator is read only where there is an estimate

        yield Row("")
        yield from fit.chart(forecast.estimate)
        yield from fit.rest(forecast.estimate, verbose)
    if forecast.unchecked:
        yield Row("")
        yield Row("Could not check (which is no pass)", style="heading")
        for each in forecast.unchecked[: None if verbose else MANY]:
            yield from _unchecked(each)
        if not verbose and len(forecast.unchecked) > MANY:
            yield Row(f"{len(forecast.unchecked) - MANY} more, with -v", 2, "note")
    if verbose and forecast.passed:
        yield Row("")
        yield Row("In order", style="heading")
        for passed in forecast.passed:
            yield Row(f"- {passed.what}" + (f": {passed.why}" if passed.why else ""), 2, hang=2)


def _answer(forecast: Forecast) -> str:
    number, open_ones = len(forecast.problems), len(forecast.unchecked)
    if number:
        said = counted(number, "problem")
    elif not forecast.is_examined:
        return "not enough could be examined to say anything"
    else:
        said = "no problem found"
    return f"{said}, {counted(len(forecast.passed), 'check')} in order, {open_ones} could not be made"


def _problem(number: int, problem: Problem, verbose: bool) -> Iterator[Row]:
    yield Row(f"{number}. {problem.title}", style="answer", hang=3)
    yield Row(
        f"{problem.cause}: {_SURE[problem.certainty]}", 3, "bad" if problem.certainty is Certainty.PROVEN else "unsure"
    )
    for evidence in problem.evidence[: None if verbose else 4]:
        yield Row(f"- {_said(evidence)}{_where(evidence, verbose)}", 3, "quote", 2)
    for position, remedy in enumerate(problem.remedies[: None if verbose else 3]):
        yield from _remedy(remedy, is_first=position == 0, verbose=verbose)
    if verbose:
        for refused in problem.not_remedies:
            yield Row(f"does not help: {refused.what}: {refused.why}", 3, "note", 2)


def _said(evidence: Evidence) -> str:
    """A fact that was given by hand is its own statement."""
    is_given = evidence.standing is Standing.GIVEN and evidence.statement.endswith(" was given")
    return f"given: {evidence.quote}" if is_given and evidence.quote else evidence.statement


def _where(evidence: Evidence, verbose: bool) -> str:
    quote = evidence.quote.partition("\n")[0][:200]
    place = str(evidence.place) if evidence.place is not None else ""
    if not verbose or not (quote or place):
        return ""
    return f" ({': '.join(dict.fromkeys(part for part in (place, quote) if part))})"


def _remedy(remedy: Remedy, *, is_first: bool, verbose: bool) -> Iterator[Row]:
    named = f" [{remedy.name}={remedy.value}]" if remedy.kind == "env" else ""
    yield Row(f"{'Do' if is_first else 'Or'}: {remedy.summary}{named}", 3, hang=4)
    if is_first or verbose:
        for command in remedy.commands:
            yield Row(command, 7, "command")
    if verbose:
        for text in (remedy.cost, *remedy.limits):
            if text:
                yield Row(f"- {text}", 7, "note", 2)


def _unchecked(each: Unchecked) -> Iterator[Row]:
    yield Row(f"- {each.what}: {each.why}", 2, hang=2)
    if each.command:
        yield Row(each.command, 6, "command")

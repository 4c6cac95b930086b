"""SARIF 2.1.0, for code scanning pages and for editors that show it. No ``fixes``: uploads refuse those without exact edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuwhy.reports.neutral import plain

if TYPE_CHECKING:
    from gpuwhy.investigate.checks.results import Forecast, Problem
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.finding import Finding
    from gpuwhy.model.fleet import FleetReport
    from gpuwhy.model.inspection import Inspection
    from gpuwhy.model.remedy import Remedy
    from gpuwhy.reports.interface import Detail
    from gpuwhy.reports.sarif_log import Json

_NO_RULE = "unrecognised-failure"


def diagnosis(answer: Diagnosis, detail: Detail) -> str:  # noqa: ARG001
    """A result for each finding, with its chain as a code flow; what was ruled out and notes as notifications."""
    from gpuwhy.reports import sarif_log as log

    results = [_found(each, rank, answer.where) for rank, each in enumerate(answer.findings, 1)]
    primary = answer.incident.primary_event
    if not results and answer.incident.is_failure and primary is not None:
        text = f"The cause is not in the catalogue. The first fatal event: {plain(primary.text.partition(chr(10))[0])}"
        places = [log.location(primary.place, answer.where)]
        results.append(log.result(_NO_RULE, "error", text, places, answer.where, {}))
    remarks = [f"ruled out: {each.cause}: {each.why}" for each in answer.ruled_out]
    remarks += [f"not known: {each.key}: {each.why}" for each in (answer.findings[0].missing if answer.findings else answer.to_go_on)]  # fmt: skip
    return log.written(results, [*remarks, *answer.notes], is_complete=answer.is_examined)


def _found(finding: Finding, rank: int, where: str) -> Json:
    from gpuwhy.reports import sarif_log as log

    places = [each.place for each in finding.evidence if each.place is not None]
    places += [link.evidence.place for link in finding.chain if link.evidence is not None and link.evidence.place]
    # what surfaced comes last among the evidence, and is what a reader looks for first
    main, others = places[-1:], list(dict.fromkeys(places[:-1]))
    result = log.result(
        finding.cause,
        log.LEVELS[finding.certainty],
        f"{finding.certainty.value}: {finding.title}{_remedies(finding.remedies)}",
        [log.location(each, where) for each in main] or [log.location(None, where)],
        where,
        {"certainty": finding.certainty.value, "component": finding.component or "", "rank": rank},
    )
    if others:
        result["relatedLocations"] = [log.location(each, where) for each in others]
    if finding.chain:
        steps = [
            {
                "location": log.location(
                    link.evidence.place if link.evidence is not None else None, where, link.statement
                ),
                "importance": "essential" if link.is_swallowed else "important",
            }
            for link in finding.chain
        ]
        result["codeFlows"] = [{"message": {"text": "from the cause to the symptom"}, "threadFlows": [{"locations": steps}]}]  # fmt: skip
    return result


def _remedies(remedies: tuple[Remedy, ...]) -> str:
    if not remedies:
        return ""
    from gpuwhy.reports.remedy_words import change_of

    return f" First thing to do: {change_of(remedies[0])}."


def forecast(answer: Forecast, detail: Detail) -> str:  # noqa: ARG001
    """A result for each problem; checks that could not be made as notifications."""
    from gpuwhy.reports import sarif_log as log

    remarks = [f"not checked: {each.what}: {each.why}" for each in answer.unchecked]
    results = [_foreseen(each, answer.where) for each in answer.problems]
    return log.written(results, [*remarks, *answer.notes], is_complete=answer.is_examined)


def _foreseen(problem: Problem, where: str) -> Json:
    from gpuwhy.reports import sarif_log as log

    places = [each.place for each in problem.evidence if each.place is not None and each.place.source != "knowledge"]
    return log.result(
        problem.cause,
        log.LEVELS[problem.certainty],
        f"{problem.title}{_remedies(problem.remedies)}",
        [log.location(each, where) for each in places[:1]] or [log.location(None, where)],
        where,
        {"certainty": problem.certainty.value, "component": problem.component or ""},
    )


def inspection(answer: Inspection, detail: Detail) -> str:  # noqa: ARG001
    """A result for each file that does not run on the GPU that was asked for, or that cannot be loaded."""
    from gpuwhy.model.evidence import Place
    from gpuwhy.reports import sarif_log as log
    from gpuwhy.reports.loading import lines

    results: list[Json] = []
    for file in answer.files:
        place = log.location(Place("binary", file.path), file.path)
        if file.verdict is not None and file.verdict.runs is False:
            text = f"{file.path}: {file.verdict.outcome.value} on {answer.gpu or answer.compute_capability}: {file.verdict.why}"
            results.append(log.result("binary-cannot-run", "error", text, [place], file.path, {}))
        if file.loading is not None and file.loading.loads is False:
            fault = next((text for text, is_fault in list(lines(file.loading))[1:] if is_fault), "")
            text = f"{file.path}: cannot be loaded" + (f": {fault}" if fault else "")
            results.append(log.result("binary-cannot-load", "error", text, [place], file.path, {}))
    incomplete = [f"incomplete: {each.path}: {each.problems[0]}" for each in answer.files if each.problems]
    return log.written(results, [*(f"unreadable: {each}" for each in answer.unreadable), *incomplete], is_complete=not answer.unreadable)  # fmt: skip


def fleet(answer: FleetReport, detail: Detail) -> str:  # noqa: ARG001
    """A result for each outlier; what could not be compared as notifications."""
    from gpuwhy.reports import sarif_log as log
    from gpuwhy.reports.fleet import sentence
    from gpuwhy.reports.fleet_names import folded

    results: list[Json] = []
    for rank, each in enumerate(answer.outliers, 1):
        rule = each.findings[0].cause if each.findings else "node-deviates"
        level = "warning" if each.findings else "note"
        nodes = folded(each.nodes)
        details: Json = {"component": nodes, "rank": rank, "score": each.score}
        results.append(
            log.result(rule, level, sentence(each), [log.location(None, answer.folder)], answer.folder, details)
        )
    remarks = [f"{folded(each.nodes)}: {each.status}: {each.reason}" for each in answer.not_collected]
    return log.written(results, [*remarks, *answer.notes], is_complete=not answer.not_collected)

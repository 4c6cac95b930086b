"""Gauges in Prometheus' text format, for node_exporter's textfile collector: ``-o /…/textfile/gpuwhy.prom``."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from gpuwhy.reports.neutral import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpuwhy.investigate.checks.results import Forecast, Problem
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.finding import Finding
    from gpuwhy.model.fleet import FleetReport
    from gpuwhy.model.inspection import Inspection
    from gpuwhy.reports.interface import Detail

_LONGEST = 200
"""Characters of a label: each different text is a series of its own."""

_HELP = {
    "gpuwhy_failure": "1: what was examined has failed, 0: it has not.",
    "gpuwhy_finding": "Causes that were found; rank 1 is the answer.",
    "gpuwhy_check_problem": "Problems that were found before anything failed.",
    "gpuwhy_check_passed": "Checks that are in order.",
    "gpuwhy_check_unchecked": "Checks that could not be made, which is no pass.",
    "gpuwhy_inspect_files": "Inspected files by what comes of running them.",
    "gpuwhy_inspect_unreadable": "Paths that could not be read.",
    "gpuwhy_examined": "1: enough could be examined to say something.",
    "gpuwhy_fleet_nodes": "Nodes of the fleet.",
    "gpuwhy_fleet_compared": "Nodes with a snapshot that could be compared.",
    "gpuwhy_fleet_failing": "Nodes whose logs show a failure.",
    "gpuwhy_fleet_outliers": "Sets of nodes that deviate from the majority.",
    "gpuwhy_fleet_alike": "Nodes of a pool that do not deviate.",
    "gpuwhy_fleet_finding": "Nodes on which a cause was found.",
    "gpuwhy_last_run_timestamp_seconds": "When this was written.",
}

_Labels = dict[str, str]
_Sample = tuple[str, _Labels, float]


def diagnosis(answer: Diagnosis, detail: Detail) -> str:  # noqa: ARG001
    """Whether it failed, and each finding as a series of value 1."""
    where = {"where": answer.where, "unit": answer.incident.unit}
    failed = bool(answer.findings) or (answer.incident.is_failure and answer.incident.primary is not None)
    samples: list[_Sample] = [
        ("gpuwhy_failure", where, int(failed)),
        ("gpuwhy_examined", where, int(answer.is_examined)),
    ]
    samples += [("gpuwhy_finding", {**where, "rank": str(rank), **_cause(each)}, 1) for rank, each in enumerate(answer.findings, 1)]  # fmt: skip
    return _written([*samples, _now(where)])


def forecast(answer: Forecast, detail: Detail) -> str:  # noqa: ARG001
    """How many problems by cause, checks that passed, and checks that could not be made."""
    where = {"where": answer.where}
    samples: list[_Sample] = [
        ("gpuwhy_check_passed", where, len(answer.passed)),
        ("gpuwhy_check_unchecked", where, len(answer.unchecked)),
        ("gpuwhy_examined", where, int(answer.is_examined)),
    ]
    counted = Counter(tuple(_cause(each).items()) for each in answer.problems)
    samples += [("gpuwhy_check_problem", {**where, **dict(cause)}, number) for cause, number in counted.items()]
    return _written([*samples, _now(where)])


def inspection(answer: Inspection, detail: Detail) -> str:  # noqa: ARG001
    """How many files come to which outcome on the GPU that was asked for."""
    asked = {"compute_capability": answer.compute_capability, "driver": answer.driver}
    counted = Counter(each.verdict.outcome.value if each.verdict is not None else "not-judged" for each in answer.files)
    samples: list[_Sample] = [("gpuwhy_inspect_files", {**asked, "outcome": outcome}, count) for outcome, count in sorted(counted.items())]  # fmt: skip
    return _written([*samples, ("gpuwhy_inspect_unreadable", asked, len(answer.unreadable)), _now(asked)])


def fleet(answer: FleetReport, detail: Detail) -> str:  # noqa: ARG001
    """How many nodes are alike and how many are not, in each pool, and on how many each cause was found."""
    where = {"where": answer.folder}
    samples: list[_Sample] = [("gpuwhy_fleet_nodes", where, answer.nodes), ("gpuwhy_fleet_compared", where, answer.compared), ("gpuwhy_fleet_failing", where, answer.failing), ("gpuwhy_fleet_outliers", where, len(answer.outliers))]  # fmt: skip
    samples += [("gpuwhy_fleet_alike", {**where, "pool": pool.name}, pool.alike) for pool in answer.pools]
    found: Counter[tuple[str, str, str]] = Counter()
    for each in (finding for pool in answer.pools for group in pool.groups for finding in group.findings):
        found[each.cause, each.component, each.certainty] += each.nodes
    samples += [
        ("gpuwhy_fleet_finding", {**where, "cause": cause, "component": component, "certainty": certainty}, number)
        for (cause, component, certainty), number in found.items()
    ]
    return _written([*samples, _now(where)])


def _cause(found: Finding | Problem) -> _Labels:
    return {"cause": found.cause, "component": found.component or "", "certainty": found.certainty.value}


def _now(where: Mapping[str, str]) -> _Sample:
    return "gpuwhy_last_run_timestamp_seconds", dict(where), round(time.time(), 3)


def _written(samples: Iterable[_Sample]) -> str:
    return "".join(f"{line}\n" for line in _lines(list(samples)))


def _lines(samples: list[_Sample]) -> Iterator[str]:
    """All samples of a metric stand together, after what it is."""
    for name in dict.fromkeys(name for name, _, _ in samples):
        yield f"# HELP {name} {_HELP[name]}"
        yield f"# TYPE {name} gauge"
        for _, labels, value in (each for each in samples if each[0] == name):
            shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
            yield f"{name}{{{shown}}} {value}"


def _escaped(text: str) -> str:
    return plain(text)[:_LONGEST].replace("\\", "\\\\").replace('"', '\\"')

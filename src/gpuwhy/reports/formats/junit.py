"""JUnit's XML for CI: a problem is a failed test, a check that could not be made a skipped one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from gpuwhy.reports.neutral import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuwhy.investigate.checks.results import Forecast, Problem
    from gpuwhy.model.fleet import FleetReport
    from gpuwhy.reports.interface import Detail


def forecast(answer: Forecast, detail: Detail) -> str:  # noqa: ARG001
    """One suite: the problems first."""
    return "".join(f"{line}\n" for line in _lines(answer))


def _lines(answer: Forecast) -> Iterator[str]:
    failures, skipped = len(answer.problems), len(answer.unchecked)
    counts = f'tests="{failures + skipped + len(answer.passed)}" failures="{failures}" errors="0"'
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="gpuwhy check" {counts}>'
    yield f'  <testsuite name={_attribute(answer.where)} {counts} skipped="{skipped}">'
    for problem in answer.problems:
        yield f"    <testcase classname={_attribute(problem.component or 'environment')} name={_attribute(problem.cause)}>"
        kind = _attribute(problem.certainty.value)
        yield f"      <failure type={kind} message={_attribute(problem.title)}>{_text(_said(problem))}</failure>"
        yield "    </testcase>"
    for each in answer.unchecked:
        why = f"{each.why}; to find out: {each.command}" if each.command else each.why
        yield f'    <testcase classname="unchecked" name={_attribute(each.what)}>'
        yield f"      <skipped message={_attribute(why)}/>"
        yield "    </testcase>"
    for passed in answer.passed:
        yield f'    <testcase classname="passed" name={_attribute(passed.what)}/>'
    yield "  </testsuite>"
    yield "</testsuites>"


def _said(problem: Problem) -> str:
    evidence = [
        f"- {each.statement}" + (f" ({each.place})" if each.place is not None else "") for each in problem.evidence
    ]
    remedies = [line for each in problem.remedies[:3] for line in (f"do: {each.summary}", *each.commands)]
    return "\n".join([*evidence, *remedies])


def fleet(answer: FleetReport, detail: Detail) -> str:  # noqa: ARG001
    """One suite: an outlier is a failed test, a node without a snapshot a skipped one, a pool's nodes that are alike passed."""
    return "".join(f"{line}\n" for line in _fleet_lines(answer))


def _fleet_lines(answer: FleetReport) -> Iterator[str]:
    from gpuwhy.reports.fleet import finding_line, pool_line, sentence
    from gpuwhy.reports.fleet_names import folded

    failures, skipped = len(answer.outliers), len(answer.not_collected)
    counts = f'tests="{failures + skipped + len(answer.pools)}" failures="{failures}" errors="0"'
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="gpuwhy fleet" {counts}>'
    yield f'  <testsuite name={_attribute(answer.folder)} {counts} skipped="{skipped}">'
    for each in answer.outliers:
        cause = each.findings[0].cause if each.findings else "node-deviates"
        said = [f"{deviation.key}: {deviation.value} (others {deviation.usual})" for deviation in each.deviations[:20]]
        said += map(finding_line, each.findings)
        yield f"    <testcase classname={_attribute(each.pool)} name={_attribute(folded(each.nodes))}>"
        yield f"      <failure type={_attribute(cause)} message={_attribute(sentence(each))}>{_text(chr(10).join(said))}</failure>"
        yield "    </testcase>"
    for missing in answer.not_collected:
        yield f'    <testcase classname="without a snapshot" name={_attribute(folded(missing.nodes))}>'
        yield f"      <skipped message={_attribute(f'{missing.status}: {missing.reason}')}/>"
        yield "    </testcase>"
    for pool in answer.pools:
        yield f'    <testcase classname="alike" name={_attribute(pool_line(pool))}/>'
    yield "  </testsuite>"
    yield "</testsuites>"


def _attribute(text: str) -> str:
    return quoteattr(_allowed(plain(text)))


def _text(text: str) -> str:
    return "\n".join(escape(_allowed(plain(line))) for line in text.split("\n"))


def _allowed(text: str) -> str:
    """XML 1.0 has no place for a few characters that are no control characters either."""
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")

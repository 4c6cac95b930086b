"""A fleet in GitHub's Markdown, for the issue or the page where an incident is worked on: who differs, in what, and why that matters."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.model.fleet import FleetReport, JobFailure, Outlier, Pool
from gpuwhy.reports.counting import counted
from gpuwhy.reports.fleet import after, common, finding_line, headline, moment
from gpuwhy.reports.fleet_names import folded as named
from gpuwhy.reports.github import bullets, code, folded, prose, table
from gpuwhy.reports.issue_parts import joined

_OUTLIERS, _DEVIATIONS, _MIXED = 30, 8, 60


def fleet_text(report: FleetReport) -> str:
    """The answer, the jobs that failed, the outliers as a table; the rest folded."""
    parts = [f"## {prose(headline(report))}", table(("pool", "alike", "kinds of hosts"), _pools(report))]
    parts += [part for job in report.jobs for part in _job(job)]
    if report.outliers:
        shown = report.outliers[:_OUTLIERS]
        rows = [_outlier(number, each) for number, each in enumerate(shown, 1)]
        more = len(report.outliers) - len(shown)
        parts += ["### Outliers, the most suspicious first"]
        parts += [table(("", "nodes", "differs in", "found", "do"), rows)]
        parts += [f"and {counted(more, 'outlier')} more"] if more else []
    parts += list(_rest(report))
    return joined(parts)


def _pools(report: FleetReport) -> Iterator[tuple[str, str, str]]:
    for pool in report.pools:
        yield code(pool.name), f"{pool.alike:,} of {pool.nodes:,}", f"{len(pool.groups):,}"


def _job(job: JobFailure) -> Iterator[str]:
    unit = code(job.unit) if job.unit else "One job"
    yield f"### {unit} failed on {counted(job.nodes, 'node')} together"
    rows = [(moment(job.first.time), code(job.first.node), code(job.first.text.partition("\n")[0]))]
    rows += [(after(job, each.time), code(each.node), code(each.text.partition("\n")[0])) for each in job.followed[:10]]
    yield table(("when", "node", "said"), rows)
    items = [prose(finding_line(each)) for each in job.findings]
    if not job.is_sure:
        items.append("which of the first two failed first is not sure: no line of the logs tells whose clock is right")
    yield bullets(items)


def _outlier(number: int, outlier: Outlier) -> tuple[str, ...]:
    differs = [f"{code(each.key)} {code(each.value)}, not {code(each.usual)}" for each in outlier.deviations[:_DEVIATIONS]]  # fmt: skip
    more = len(outlier.deviations) - len(differs)
    differs += [f"and {counted(more, 'fact')} more"] if more else []
    found = [f"{code(each.cause)}, {each.certainty}: {prose(each.title)}" for each in outlier.findings[:3]]
    if not found and outlier.deviations and outlier.deviations[0].causes:
        found = [f"can cause {', '.join(map(code, outlier.deviations[0].causes[:4]))}"]
    do = dict.fromkeys(code(each.do) for each in outlier.findings[:3] if each.do)
    return str(number), code(named(outlier.nodes)), "<br>".join(differs), "<br>".join(found), "<br>".join(do)


def _rest(report: FleetReport) -> Iterator[str]:
    for pool, findings in common(report):
        items = [prose(finding_line(each)) + (f" (on {each.nodes:,})" if each.nodes != pool.alike else "") for each in findings]  # fmt: skip
        yield folded(f"Found on the {counted(pool.alike, 'node')} that are alike", f"{code(pool.name)}\n\n{bullets(items)}")  # fmt: skip
    for pool in report.pools:
        yield from _open(pool)
    if report.not_collected:
        lines = [(code(named(each.nodes)), each.status, prose(each.reason)) for each in report.not_collected]
        yield folded("Without a snapshot", table(("nodes", "status", "reason"), lines))
    if report.notes:
        yield bullets(map(prose, report.notes))


def _open(pool: Pool) -> Iterator[str]:
    if pool.mixed:
        rows = [(code(each.key), ", ".join(f"{code(value)} on {count:,}" for value, count in each.values[:3])) for each in pool.mixed[:_MIXED]]  # fmt: skip
        yield folded("Without a majority", table(("fact", "values"), rows))
    if pool.unseen:
        rows = [(code(named(each.nodes)), f"{', '.join(map(code, each.keys[:4]))}: {prose(each.why)}") for each in pool.unseen[:_MIXED]]  # fmt: skip
        yield folded("Could not be seen, which is no difference", table(("nodes", "facts"), rows))

"""What is different in a fleet, for a person: how many are alike, who is not, and what that causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from gpuwhy.model.fleet import Deviation, FleetFinding, FleetReport, JobFailure, Outlier, Pool
from gpuwhy.reports.columns import cut_apart
from gpuwhy.reports.counting import counted
from gpuwhy.reports.fleet_names import folded

SHOWN_OUTLIERS, SHOWN_DEVIATIONS, SHOWN_MIXED = 10, 4, 8
_LONGEST = 110


def lines(report: FleetReport, verbose: bool = False) -> Iterator[tuple[str, str]]:
    """Each line with its style: the answer, one failed job, the outliers, what is not known."""
    yield headline(report), "answer"
    for pool in report.pools:
        yield f"  {pool_line(pool)}", ""
    for job in report.jobs if verbose else report.jobs[:3]:
        yield "", ""
        yield from _job(job, verbose)
    yield from _outliers(report, verbose)
    yield from _common(report)
    for pool in report.pools:
        yield from _open(pool, verbose, len(report.pools) > 1)
    if report.not_collected:
        yield "", ""
        yield "without a snapshot:", "heading"
        for each in report.not_collected:
            reason = f": {_cut(each.reason)}" if each.reason else ""
            yield f"  {folded(each.nodes)} ({counted(len(each.nodes), 'node')}): {each.status}{reason}", ""
    for note in report.notes:
        yield f"note: {note}", "note"


def headline(report: FleetReport) -> str:
    """``61 of 64 alike; gpu017: driver 570.86.15 (others 580.95.05); TITLE (CERTAINTY)``."""
    if not report.compared:
        return f"none of {counted(report.nodes, 'node')} has a snapshot that can be compared"
    alike = sum(pool.alike for pool in report.pools)
    first = f"{alike:,} of {report.compared:,} alike"
    if not report.outliers:
        mixed = sum(len(pool.mixed) for pool in report.pools)
        first += f"; {counted(mixed, 'fact')} without a majority" if mixed else "; nobody deviates"
        shared = [finding for _, findings in common(report) for finding in findings if finding.certainty == "proven"]
        return f"{first}; {shared[0].title} ({shared[0].certainty}, on {shared[0].nodes:,})" if shared else first
    return f"{first}; {sentence(report.outliers[0])}"


def sentence(outlier: Outlier) -> str:
    """One outlier in a sentence."""
    said = [f"{name_of(each)} {value} (others {usual})" for each in outlier.deviations[:1] for value, usual in [_told_apart(each)]]  # fmt: skip
    said += [f"{each.title} ({each.certainty})" for each in outlier.findings[:1]]
    return f"{folded(outlier.nodes, 6)}: {'; '.join(said)}"


def _told_apart(deviation: Deviation) -> tuple[str, str]:
    """Both values, without what stands in parentheses where they differ in what stands before: ``12.4``, and not where it is."""
    value, usual = (text.partition(" (")[0] for text in (deviation.value, deviation.usual))
    if not value or not usual or value == usual:
        value, usual = deviation.value, deviation.usual
    return cut_apart(value, usual, 60)


def name_of(deviation: Deviation) -> str:
    """How a person calls the fact."""
    key = deviation.key
    group, _, rest = key.partition(".")
    if group == "toolkit_resolved":
        return f"{rest}'s toolkit"
    return rest if group in ("env", "packages", "system_packages") else key.replace("_", " ") if "." not in key else key


def pool_line(pool: Pool) -> str:
    """``NVIDIA H100 80GB HBM3, sglang: 61 of 64 alike, in 4 groups``."""
    return f"{pool.name}: {pool.alike:,} of {pool.nodes:,} alike, in {counted(len(pool.groups), 'group')}"


def _job(job: JobFailure, verbose: bool) -> Iterator[tuple[str, str]]:
    unit = job.unit or "one job"
    yield f"{unit} failed on {counted(job.nodes, 'node')} together; the first was {job.first.node}:", "heading"
    yield f"  {moment(job.first.time)}  {job.first.node}: {_cut(job.first.text)}", ""
    for finding in job.findings[: 5 if verbose else 2]:
        yield f"    {finding_line(finding)}", ""
    if not job.is_sure:
        yield f"  {job.followed[0].node} failed within 2 s, and no line of the logs tells whose clock is right", "note"
    shown = job.followed if verbose else job.followed[:3]
    for each in shown:
        moved = f" (clock moved by {each.moved:+.1f} s)" if each.moved else ""
        yield f"  {after(job, each.time)}  {each.node}: {_cut(each.text)}{moved}", ""
    if len(job.followed) > len(shown):
        yield f"  and {counted(len(job.followed) - len(shown), 'node')} more", ""
    for note in job.notes:
        yield f"  {note}", "note"


def moment(time: float | None) -> str:
    """A time in UTC."""
    try:
        return datetime.fromtimestamp(time or 0.0, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unknown time"


def after(job: JobFailure, time: float | None) -> str:
    """``+12.5 s``: how long after the first."""
    return f"{(time or 0.0) - (job.first.time or 0.0):+.1f} s"


def _outliers(report: FleetReport, verbose: bool) -> Iterator[tuple[str, str]]:
    if not report.outliers:
        return
    yield "", ""
    yield "outliers, the most suspicious first:", "heading"
    shown = report.outliers if verbose else report.outliers[:SHOWN_OUTLIERS]
    for number, outlier in enumerate(shown, 1):
        pool = f", {outlier.pool}" if len(report.pools) > 1 else ""
        size = f" ({counted(len(outlier.nodes), 'node')}{pool})" if len(outlier.nodes) > 1 or pool else ""
        yield f"{number:>3}. {folded(outlier.nodes)}{size}", ""
        yield from _deviations(outlier.deviations, verbose)
        for finding in outlier.findings if verbose else outlier.findings[:3]:
            yield f"       {finding_line(finding)}", ""
            if finding.do:
                yield f"         do: {_cut(finding.do)}", ""
    if len(report.outliers) > len(shown):
        yield f"  and {counted(len(report.outliers) - len(shown), 'outlier')} more (--verbose)", "note"


def _deviations(deviations: Sequence[Deviation], verbose: bool) -> Iterator[tuple[str, str]]:
    shown = deviations if verbose else deviations[:SHOWN_DEVIATIONS]
    for each in shown:
        value, usual = cut_apart(each.value.partition("\n")[0], each.usual.partition("\n")[0], _LONGEST)
        yield f"       {each.key}: {value}, not {usual} as on {each.usual_nodes:,}", ""
    if shown and shown[0].causes and not shown[0].is_suspected:
        yield f"         can cause: {', '.join(shown[0].causes[:4])}", "note"
    if len(deviations) > len(shown):
        yield f"       and {counted(len(deviations) - len(shown), 'fact')} more", "note"


def finding_line(finding: FleetFinding) -> str:
    """``diagnose: proven ptx-newer-than-driver (flashinfer-cubin): TITLE``."""
    component = f" ({finding.component})" if finding.component else ""
    return f"{finding.source}: {finding.certainty} {finding.cause}{component}: {_cut(finding.title, 200)}"


def common(report: FleetReport) -> list[tuple[Pool, tuple[FleetFinding, ...]]]:
    """What is found on the majority of each pool: no mark of anyone, and a problem all the same."""
    majorities = ((pool, next((each for each in pool.groups if each.is_majority), None)) for pool in report.pools)
    return [(pool, group.findings) for pool, group in majorities if group is not None and group.findings]


def _common(report: FleetReport) -> Iterator[tuple[str, str]]:
    for pool, findings in common(report):
        yield "", ""
        yield f"found on the {counted(pool.alike, 'node')} that are alike ({pool.name}):", "heading"
        for finding in findings:
            number = f" on {finding.nodes:,}" if finding.nodes != pool.alike else ""
            yield f"  {finding_line(finding)}{number}", ""


def _open(pool: Pool, verbose: bool, is_one_of_several: bool) -> Iterator[tuple[str, str]]:
    whose = f" in {pool.name}" if is_one_of_several else ""
    if pool.mixed:
        yield "", ""
        yield f"without a majority{whose}:", "heading"
        for mixed in pool.mixed if verbose else pool.mixed[:SHOWN_MIXED]:
            values = ", ".join(f"{_cut(value, 50)} on {count:,}" for value, count in mixed.values[:3])
            more = f" and {mixed.distinct - 3} other values" if mixed.distinct > 3 else ""
            yield f"  {mixed.key}: {values}{more}", ""
        if not verbose and len(pool.mixed) > SHOWN_MIXED:
            yield f"  and {counted(len(pool.mixed) - SHOWN_MIXED, 'fact')} more (--verbose)", "note"
    if pool.unseen:
        yield "", ""
        yield f"could not be seen{whose}, which is no difference:", "heading"
        for unseen in pool.unseen if verbose else pool.unseen[:SHOWN_MIXED]:
            keys = ", ".join(unseen.keys[:4]) + (f" and {len(unseen.keys) - 4} more" if len(unseen.keys) > 4 else "")
            yield f"  {folded(unseen.nodes)}: {keys}: {_cut(unseen.why)}", ""


def _cut(text: str, longest: int = _LONGEST) -> str:
    text = text.partition("\n")[0]
    return text if len(text) <= longest else text[: longest - 3] + "..."

"""The report of ``gpuwhy fit`` for a person: the verdict, one GPU as a bar chart, the checks, the host."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.fit.engines import NAMES
from gpuwhy.fit.memory_use import gpu_use
from gpuwhy.fit.results import Check, Estimate, Host, Part, Verdict
from gpuwhy.fit.search import Goal, Proposal, Search
from gpuwhy.reports import memory_chart
from gpuwhy.reports.fit_answer import FitAnswer
from gpuwhy.reports.neutral import plain
from gpuwhy.reports.row import Row

_SHOWN_PARTS = 14
_STYLES = {Verdict.STARTS: "proven", Verdict.FAILS: "bad", Verdict.CLOSE: "likely"}
_SIGNS = {Verdict.STARTS: "fits", Verdict.FAILS: "FAILS", Verdict.CLOSE: "close"}


def rows(answer: FitAnswer, verbose: bool = False) -> Iterator[Row]:
    """The report, row by row."""
    found = answer.estimate
    yield Row(f"{found.verdict.value.capitalize()}: {subject_of(found)}", style="answer", hang=2)
    yield Row(plain(found.reason), 2, hang=0)
    yield from _failure(found)
    if answer.search is not None:
        yield Row("")
        yield from _search(answer.search)
    yield Row("")
    yield from chart(found)
    yield Row("")
    yield from _settings(found)
    yield Row("")
    yield from _checks(found)
    yield Row("")
    yield from _weights(found, verbose)
    yield Row("")
    yield from _host(found)
    if verbose:
        yield Row("")
        yield from _sources(found)
    yield Row("")
    yield Row(plain("Release: " + found.release), style="note")
    if found.missing:
        yield Row("Not known, or not usable", style="heading")
        for each in found.missing:
            yield Row(plain(f"- {each}"), 2, hang=2)


def subject_of(found: Estimate) -> str:
    """``Kimi-K2.6 on 8 x NVIDIA H100, SGLang 0.5.23``."""
    engine = f"{NAMES.get(found.engine, found.engine)} {found.version}".strip()
    return plain(f"{found.model} on {found.gpus} x {found.gpu}, {engine}")


def chart(found: Estimate) -> Iterator[Row]:
    """One GPU as a bar chart."""
    return memory_chart.rows(gpu_use(found, CHARTED))


def rest(found: Estimate, verbose: bool = False) -> Iterator[Row]:
    """What belongs under the chart in a report on something else: cache and host in a few lines, with ``verbose`` the weights."""
    for sentence in cache_sentences(found):
        yield Row(plain(sentence), 2, hang=2)
    yield Row(f"host while loading, GB: {host_sentence(found.host)}", 2, hang=2)
    if verbose:
        yield from _weights(found, verbose)
        yield from _sources(found)
    for each in found.missing:
        yield Row(plain(f"not known, or not usable: {each}"), 2, "note", 2)


CHARTED = "One GPU, as CUDA counts its memory"


def _failure(found: Estimate) -> Iterator[Row]:
    if found.constraints:
        yield from _refused(found)
        return
    check = found.decisive
    if check is None or check.verdict is Verdict.STARTS or not check.message:
        return
    yield Row(printed_when(check), 2)
    yield Row(plain(check.message), 4, "quote")


def printed_when(check: Check) -> str:
    """What introduces the message of the engine."""
    return "It would print:" if check.verdict is Verdict.FAILS else "If it fails, it prints:"


GOALS = {
    Goal.CONTEXT: "the longest request",
    Goal.CONCURRENCY: "the most requests",
    Goal.HEADROOM: "the widest margin",
}


def _search(searched: Search) -> Iterator[Row]:
    """Each proposal as it is typed, what it gives, and what each change costs."""
    yield Row(f"Settings for {GOALS[searched.goal]}, smallest change first ({searched.estimated} estimated, {searched.refused} refused by the engine's own checks)", style="heading", hang=2)  # fmt: skip
    yield Row(plain(searched.says), 2, hang=2)
    for number, proposal in enumerate(searched.proposals, 1):
        yield Row(plain(f"{number}. {typed(proposal)}"), 2, _STYLES[proposal.verdict], hang=5)
        yield Row(plain(gives(proposal)), 5, hang=2)
        for costs in dict.fromkeys(each.costs for each in proposal.changes):
            yield Row(plain(f"costs: {costs}"), 5, "note", hang=2)


def typed(proposal: Proposal) -> str:
    """Its changes as they are typed."""
    return " ".join(f"{each.flag} {each.value}".strip() for each in proposal.changes) or "as it is"


def gives(proposal: Proposal) -> str:
    """What the start then has."""
    return f"{proposal.tokens:,.0f} tokens of cache, longest request {proposal.longest:,.0f}, {proposal.margin_gib:+.2f} GiB at the narrowest"


def _refused(found: Estimate) -> Iterator[Row]:
    for each in found.constraints:
        yield Row(
            plain(f"{each.flag}: {each.says}. It would print:" if each.message else f"{each.flag}: {each.says}"),
            2,
            hang=2,
        )
        if each.message:
            yield Row(plain(each.message), 4, "quote")


def _settings(found: Estimate) -> Iterator[Row]:
    yield Row("Cache", style="heading")
    for sentence in cache_sentences(found):
        yield Row(plain(sentence), 2, hang=2)


def cache_sentences(found: Estimate) -> Iterator[str]:
    """The fraction with its bounds, what it leaves for the cache, and the requests that this holds."""
    fraction, cache = found.fraction, found.cache
    yield f"{fraction.name} {fraction.value:.4g} ({fraction.source})"
    if fraction.minimum and fraction.maximum:
        low, high = fraction.minimum, fraction.maximum
        if low.expected <= high.expected:
            yield f"between {low.expected:.3f} ({low.low:.3f} to {low.high:.3f}) and {high.expected:.3f} ({high.low:.3f} to {high.high:.3f}) it starts"
        else:
            yield f"no value does: the least is {low.expected:.3f}, the most {high.expected:.3f}"
    yield f"{cache.gib.expected:.2f} GiB per GPU for {cache.tokens.expected:,.0f} tokens ({cache.tokens.low:,.0f} to {cache.tokens.high:,.0f}), {cache.bytes_per_token:,.0f} bytes each"
    if cache.context:
        yield f"longest request {min(cache.longest.expected, cache.context):,.0f} tokens of the {cache.context:,} asked for; {cache.concurrency.expected:.2f} of full length at a time"


def _checks(found: Estimate) -> Iterator[Row]:
    yield Row("Checks, in the order of the start (GiB to spare)", style="heading")
    for check in found.checks:
        yield Row(_check_line(check), 2, _STYLES[check.verdict], hang=4)


def _check_line(check: Check) -> str:
    margin = check.margin
    return plain(f"{_SIGNS[check.verdict]:<6}{check.phase:<14}{margin.expected:+7.2f}  ({margin.low:+.2f} to {margin.high:+.2f})  {check.says}")  # fmt: skip


def _weights(found: Estimate, verbose: bool) -> Iterator[Row]:
    parts = [part for part in found.parts if part.kind in ("weights", "draft")]
    yield Row("Weights on each GPU, GiB", style="heading")
    for part in parts[: None if verbose else _SHOWN_PARTS]:
        if part.gib.expected >= 0.005 or verbose:
            yield Row(plain(_weight_line(part)), 2)
    if parts:
        yield Row(plain(f"sizes: {parts[0].source}"), 2, "note")


def _weight_line(part: Part) -> str:
    return f"{part.name:<28}{part.gib.expected:8.2f}  {part.detail}".rstrip()


def _host(found: Estimate) -> Iterator[Row]:
    host = found.host
    yield Row("Host while loading, GB", style="heading")
    yield Row(host_sentence(host), 2, hang=2)
    for part in host.parts[1:]:
        yield Row(plain(f"- {part.name}: {part.gib.expected:.0f} ({part.source})"), 4, hang=2)
    for risk in host.risks:
        yield Row(plain(f"{risk.host_gb:,.0f} GB: {risk.says}"), 2, _STYLES[risk.verdict], hang=2)
    for each in host.advice:
        yield Row(plain(f"- {each}"), 2, hang=2)


def host_sentence(host: Host) -> str:
    """What loading takes of the host, in GB."""
    size = host.unreclaimable_gb
    return f"{size.expected:.0f} ({size.low:.0f} to {size.high:.0f}) that the kernel cannot take back, {host.page_cache_gb:.0f} of page cache that it can, {host.shared_memory_gb:.1f} in /dev/shm"


def _sources(found: Estimate) -> Iterator[Row]:
    yield Row("Where the numbers come from", style="heading")
    for part in found.parts:
        if part.kind != "weights":
            yield Row(plain(f"- {part.name}: {part.gib.expected:.2f} ({part.gib.low:.2f} to {part.gib.high:.2f}): {part.source}"), 2, hang=2)  # fmt: skip

"""The report of ``gpuwhy fit`` for a person: the verdict, one GPU as a bar chart, the checks, the host."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.fit.amount import Amount, combined
from gpuwhy.fit.engines import NAMES
from gpuwhy.fit.results import Check, Estimate, Part, Verdict
from gpuwhy.fit.search import Goal, Proposal, Search
from gpuwhy.reports.neutral import plain
from gpuwhy.reports.row import Row

_BAR = 34
_SHOWN_PARTS = 14
_KINDS = (
    ("taken", "other processes"),
    ("context", "CUDA context"),
    ("communication", "NCCL and the like"),
    ("weights", "weights"),
    ("draft", "draft model"),
    ("kv-cache", "KV cache"),
    ("workspace", "workspaces, logits"),
    ("graphs", "CUDA graphs"),
    ("activation", "activations (peak)"),
    ("reserve", "kept free"),
)
_STYLES = {Verdict.STARTS: "proven", Verdict.FAILS: "swallowed", Verdict.CLOSE: "likely"}
_SIGNS = {Verdict.STARTS: "fits", Verdict.FAILS: "FAILS", Verdict.CLOSE: "close"}


def render(found: Estimate, verbose: bool = False, width: int = 80, searched: Search | None = None) -> str:
    """The report as plain text."""
    return "\n".join(line for row in rows(found, verbose, searched) for line in row.wrapped(width)) + "\n"


def rows(found: Estimate, verbose: bool = False, searched: Search | None = None) -> Iterator[Row]:
    """The report, row by row."""
    engine = f"{NAMES.get(found.engine, found.engine)} {found.version}".strip()
    yield Row(
        plain(f"{found.verdict.value.capitalize()}: {found.model} on {found.gpus} x {found.gpu}, {engine}"),
        style="answer",
        hang=2,
    )
    yield Row(plain(found.reason), 2, hang=0)
    yield from _failure(found)
    if searched is not None:
        yield Row("")
        yield from _search(searched)
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


def _failure(found: Estimate) -> Iterator[Row]:
    if found.constraints:
        yield from _refused(found)
        return
    check = found.decisive
    if check is None or check.verdict is Verdict.STARTS or not check.message:
        return
    yield Row("It would print:" if check.verdict is Verdict.FAILS else "If it fails, it prints:", 2)
    yield Row(plain(check.message), 4, "quote")


_GOALS = {
    Goal.CONTEXT: "the longest request",
    Goal.CONCURRENCY: "the most requests",
    Goal.HEADROOM: "the widest margin",
}


def _search(searched: Search) -> Iterator[Row]:
    """Each proposal as it is typed, what it gives, and what each change costs."""
    yield Row(f"Settings for {_GOALS[searched.goal]}, smallest change first ({searched.estimated} estimated, {searched.refused} refused by the engine's own checks)", style="heading", hang=2)  # fmt: skip
    yield Row(plain(searched.says), 2, hang=2)
    for number, proposal in enumerate(searched.proposals, 1):
        typed = " ".join(f"{each.flag} {each.value}".strip() for each in proposal.changes) or "as it is"
        yield Row(plain(f"{number}. {typed}"), 2, _STYLES[proposal.verdict], hang=5)
        yield Row(plain(_gives(proposal)), 5, hang=2)
        for costs in dict.fromkeys(each.costs for each in proposal.changes):
            yield Row(plain(f"costs: {costs}"), 5, "note", hang=2)


def _gives(proposal: Proposal) -> str:
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


def chart(found: Estimate) -> Iterator[Row]:
    """One GPU as a bar chart."""
    total = found.total_gib.expected
    yield Row(f"One GPU: {total:.2f} GiB, as CUDA counts them" + (f" (+/- {found.total_gib.high - total:.2f})" if found.total_gib.high > total + 0.01 else ""), style="heading")  # fmt: skip
    used = 0.0
    for kind, name in _KINDS:
        parts = [part for part in found.parts if part.kind == kind]
        amount = combined(part.gib for part in parts)
        if amount.high < 0.005:
            continue
        used += amount.expected
        yield _bar(name, amount, total)
    rest = total - used
    if rest >= 0:
        yield _bar("left", Amount.exact(rest), total, ".")
    else:
        yield Row(f"  {'over':<20}{-rest:8.2f}", style="swallowed")


def _bar(name: str, amount: Amount, total: float, sign: str = "#") -> Row:
    cells = round(max(0.0, amount.expected) / total * _BAR) if total > 0 else 0
    bar = sign * min(cells, _BAR) + ("+" if cells > _BAR else "")
    spread = "" if amount.is_exact else f"  {amount.low:.1f} to {amount.high:.1f}"
    return Row(f"  {name:<20}{amount.expected:8.2f} {bar:<{_BAR}}{spread}".rstrip())


def _settings(found: Estimate) -> Iterator[Row]:
    fraction, cache = found.fraction, found.cache
    yield Row("Cache", style="heading")
    yield Row(plain(f"{fraction.name} {fraction.value:.4g} ({fraction.source})"), 2, hang=2)
    if fraction.minimum and fraction.maximum:
        low, high = fraction.minimum, fraction.maximum
        if low.expected <= high.expected:
            yield Row(f"between {low.expected:.3f} ({low.low:.3f} to {low.high:.3f}) and {high.expected:.3f} ({high.low:.3f} to {high.high:.3f}) it starts", 2, hang=2)  # fmt: skip
        else:
            yield Row(f"no value does: the least is {low.expected:.3f}, the most {high.expected:.3f}", 2, hang=2)
    yield Row(f"{cache.gib.expected:.2f} GiB per GPU for {cache.tokens.expected:,.0f} tokens ({cache.tokens.low:,.0f} to {cache.tokens.high:,.0f}), {cache.bytes_per_token:,.0f} bytes each", 2, hang=2)  # fmt: skip
    if cache.context:
        yield Row(f"longest request {cache.longest.expected:,.0f} tokens of the {cache.context:,} asked for; {cache.concurrency.expected:.2f} of full length at a time", 2, hang=2)  # fmt: skip


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
    yield Row(f"{host.unreclaimable_gb.expected:.0f} ({host.unreclaimable_gb.low:.0f} to {host.unreclaimable_gb.high:.0f}) that the kernel cannot take back, {host.page_cache_gb:.0f} of page cache that it can, {host.shared_memory_gb:.1f} in /dev/shm", 2, hang=2)  # fmt: skip
    for part in host.parts[1:]:
        yield Row(plain(f"- {part.name}: {part.gib.expected:.0f} ({part.source})"), 4, hang=2)
    for risk in host.risks:
        yield Row(plain(f"{risk.host_gb:,.0f} GB: {risk.says}"), 2, _STYLES[risk.verdict], hang=2)
    for each in host.advice:
        yield Row(plain(f"- {each}"), 2, hang=2)


def _sources(found: Estimate) -> Iterator[Row]:
    yield Row("Where the numbers come from", style="heading")
    for part in found.parts:
        if part.kind != "weights":
            yield Row(plain(f"- {part.name}: {part.gib.expected:.2f} ({part.gib.low:.2f} to {part.gib.high:.2f}): {part.source}"), 2, hang=2)  # fmt: skip

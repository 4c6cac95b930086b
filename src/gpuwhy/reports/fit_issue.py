"""An estimate of memory in GitHub's Markdown: the verdict, the bars as a block that keeps its shape, tables, the rest folded."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy import __version__
from gpuwhy.fit.memory_use import gpu_use, host_use
from gpuwhy.fit.results import Estimate, Verdict
from gpuwhy.fit.search import Search
from gpuwhy.reports import fit
from gpuwhy.reports.fit_answer import FitAnswer
from gpuwhy.reports.github import block, bullets, code, folded, prose, table
from gpuwhy.reports.memory_issue import chart_text, parts_text

_MESSAGE = 600
"""Characters of a line of the engine's message."""


def estimate_text(answer: FitAnswer) -> str:
    """The whole of it."""
    found = answer.estimate
    parts = [
        f"## {found.verdict.value.capitalize()}: {prose(fit.subject_of(found))}",
        prose(found.reason),
        *_messages(found),
    ]
    if answer.search is not None:
        parts += ["### Settings that fit", *_search(answer.search)]
    parts += [
        "### Where the memory of one GPU goes",
        chart_text(gpu_use(found, fit.CHARTED)),
        "### Cache",
        bullets(prose(each) for each in fit.cache_sentences(found)),
        "### Checks, in the order of the start",
        _checks(found),
        "### Host while loading",
        _host(found),
    ]  # fmt: skip
    if found.missing:
        parts += ["### Not known, or not usable", bullets(map(prose, found.missing))]
    parts += [folded("Every part, and where its number is from", parts_text(gpu_use(found))), f"{prose(found.release)}. Written by gpuwhy {code(__version__)}."]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _messages(found: Estimate) -> Iterator[str]:
    for each in found.constraints:
        yield f"{code(each.flag)}: {prose(each.says)}"
        if each.message:
            yield "It would print:"
            yield _quoted(each.message)
    check = found.decisive
    if found.constraints or check is None or check.verdict is Verdict.STARTS or not check.message:
        return
    yield fit.printed_when(check)
    yield _quoted(check.message)


def _quoted(message: str) -> str:
    return block(piece for line in message.split("\n") for piece in _pieces(line))


def _pieces(line: str) -> Iterator[str]:
    """A message is shown whole, where a block cuts a line."""
    for at in range(0, max(len(line), 1), _MESSAGE // 2):
        yield line[at : at + _MESSAGE // 2]


def _search(searched: Search) -> Iterator[str]:
    yield prose(f"For {fit.GOALS[searched.goal]}, smallest change first: {searched.says}.")
    rows = [
        (code(fit.typed(each)), f"{each.tokens:,.0f}", f"{each.longest:,.0f}", f"{each.margin_gib:+.2f}", prose("; ".join(dict.fromkeys(change.costs for change in each.changes))))
        for each in searched.proposals
    ]  # fmt: skip
    if rows:
        yield table(("change", "tokens of cache", "longest request", "GiB to spare at the narrowest", "costs"), rows)


def _checks(found: Estimate) -> str:
    said = {Verdict.STARTS: "fits", Verdict.FAILS: "**fails**", Verdict.CLOSE: "too close to call"}
    rows = [
        (each.phase, said[each.verdict], f"{each.margin.expected:+.2f}", f"{each.margin.low:+.2f} to {each.margin.high:+.2f}", prose(each.says))
        for each in found.checks
    ]  # fmt: skip
    return table(("check", "", "GiB to spare", "between", "about"), rows)


def _host(found: Estimate) -> str:
    host = found.host
    items = [prose(f"{fit.host_sentence(host)}, in GB")]
    items += [prose(f"{each.host_gb:,.0f} GB: {each.says}") for each in host.risks]
    items += [prose(each) for each in host.advice]
    return bullets(items) + "\n\n" + folded("Its parts", parts_text(host_use(found)))
